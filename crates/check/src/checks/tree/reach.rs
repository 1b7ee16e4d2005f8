//! Where the children of a non-leaf page are, as stretches of extents: exact if the children are near each other, as in a
//! tree that grows at its end, and coarse if they are scattered.

use std::ops::Range;

use format::PageId;
use format::allocation::EXTENT_PAGES;
use format::bytes::{u32_at, u64_at};

/// The extents that contain the children of a page. The files of the children are left out: a filegroup with several
/// files fills them in turns, so the children of a page have similar page numbers in all of them.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Reach {
    /// The lowest number of an extent with a child.
    first: u32,
    /// The highest number of an extent with a child.
    last: u32,
    /// The extents from `first` to `last` in at most 64 stretches of equal length: for each, whether it may have a child.
    stretches: u64,
}

impl Reach {
    /// Number of bytes of the encoded form.
    pub(super) const BYTES: usize = 4 + 4 + 8;

    /// The reach of a page with these children.
    pub(super) fn of(children: impl Iterator<Item = PageId> + Clone) -> Self {
        let extents = children.map(|child| child.page / EXTENT_PAGES);
        let Some((first, last)) = extents.clone().fold(None, |ends, extent| {
            let (first, last) = ends.unwrap_or((extent, extent));
            Some((extent.min(first), extent.max(last)))
        }) else {
            return Self::default();
        };
        let this = Self { first, last, stretches: 0 };
        let bit = |extent: u32| u64::from(extent - first) / this.length();
        Self { stretches: extents.fold(0, |bits, extent| bits | 1 << bit(extent)), ..this }
    }

    /// Number of extents in a stretch. At most 64 stretches of this length contain all extents.
    fn length(self) -> u64 {
        (u64::from(self.last.saturating_sub(self.first)) + 1).div_ceil(64)
    }

    /// The stretches that may have children, as numbers of extents.
    pub(crate) fn stretches(self) -> impl Iterator<Item = Range<u64>> {
        let (length, first) = (self.length(), u64::from(self.first));
        let has_child = move |bit: &u64| self.stretches >> bit & 1 != 0;
        (0..64).filter(has_child).map(move |bit| first + bit * length..first + (bit + 1) * length)
    }

    pub(super) fn to_bytes(self) -> impl Iterator<Item = u8> {
        let ends = [self.first, self.last].into_iter().flat_map(u32::to_le_bytes);
        ends.chain(self.stretches.to_le_bytes())
    }

    /// Reads the output of [`Self::to_bytes`] at an offset.
    pub(super) fn read(bytes: &[u8], at: usize) -> Option<Self> {
        Some(Self { first: u32_at(bytes, at)?, last: u32_at(bytes, at + 4)?, stretches: u64_at(bytes, at + 8)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(extents: &[u32]) -> Vec<Range<u64>> {
        let children = extents.iter().map(|extent| PageId::new(1, extent * EXTENT_PAGES + extent % EXTENT_PAGES));
        let reach = Reach::of(children);
        let bytes: Vec<u8> = [9].into_iter().chain(reach.to_bytes()).collect();
        assert_eq!((bytes.len(), Reach::read(&bytes, 1)), (1 + Reach::BYTES, Some(reach)));
        reach.stretches().collect()
    }

    #[test]
    fn near_children_have_an_exact_reach_and_far_ones_a_coarse_one_that_lacks_none() {
        assert_eq!(reach(&[]), []);
        assert_eq!(reach(&[7]), vec![7..8]);
        assert_eq!(reach(&[70, 7, 9]), [7..8, 9..10, 70..71]);
        assert_eq!(reach(&[0, 64, 127]), [0..2, 64..66, 126..128]);
        let far = [0, 1 << 24, u32::MAX / EXTENT_PAGES];
        let stretches = reach(&far);
        assert_eq!(stretches.len(), 3);
        assert!(far.iter().all(|extent| stretches.iter().any(|stretch| stretch.contains(&u64::from(*extent)))));
    }

    #[test]
    fn a_forged_reach_does_no_harm() {
        let mut bytes = [0xFF; Reach::BYTES];
        assert_eq!(Reach::read(&bytes, 0).unwrap().stretches().count(), 64);
        bytes[4..8].fill(0);
        assert_eq!(Reach::read(&bytes, 0).unwrap().stretches().count(), 64);
        assert_eq!(Reach::read(&bytes[1..], 0), None);
    }
}
