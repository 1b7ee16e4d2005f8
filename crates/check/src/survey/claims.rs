//! Finds the units that claim an extent. A claim is a bit in an IAM page of the unit. If several units claim an extent,
//! the IAM pages of these units are read again.

use std::cmp::Ordering;
use std::iter::Peekable;

use findings::FileRange;
use format::PageId;
use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, bit};
use format::bytes::u32_at;
use source::PageSource;
use sums::spill::{Item, Sorted, page_to};

use super::iam::iam_bitmap;
use crate::basis::units::UnitIndex;

/// A unit's claim to an extent that another unit had already claimed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Claim {
    /// The first page of the extent.
    pub(super) extent: PageId,
    pub(super) unit: UnitIndex,
}

impl Item for Claim {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        page_to(out, self.extent);
        out.extend(self.unit.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self { extent: PageId::read(bytes, 0)?, unit: u32_at(bytes, 6)? })
    }
}

/// The units that claim `extent`, other than its owner. Must be called with extents in ascending order.
pub(super) fn claimants(claims: &mut Peekable<Sorted<Claim>>, extent: PageId) -> Vec<UnitIndex> {
    while claims.next_if(|claim| claim.extent < extent).is_some() {}
    std::iter::from_fn(|| claims.next_if(|claim| claim.extent == extent)).map(|claim| claim.unit).collect()
}

/// The IAM pages of all units, sorted by unit and interval.
#[derive(Default)]
pub(crate) struct Intervals(Vec<Interval>);

/// An IAM page and the interval that it maps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Interval {
    pub(super) unit: UnitIndex,
    /// First page of the interval.
    pub(super) start: PageId,
    /// Address of the IAM page.
    pub(super) page: PageId,
}

impl Intervals {
    /// Sorts the intervals of all IAM pages.
    pub(super) fn new(mut pages: Vec<Interval>) -> Self {
        pages.sort_unstable();
        Self(pages)
    }

    /// The IAM pages whose intervals begin in a range.
    pub(super) fn within(&self, range: FileRange) -> Vec<Interval> {
        self.0.iter().filter(|interval| range.contains(interval.start)).copied().collect()
    }

    /// Pairs of IAM pages that map the same interval for the same unit.
    pub(super) fn doubles(&self) -> impl Iterator<Item = (Interval, Interval)> + '_ {
        let pairs = self.0.iter().zip(self.0.iter().skip(1));
        pairs.filter(|(a, b)| (a.unit, a.start) == (b.unit, b.start)).map(|(a, b)| (*a, *b))
    }

    fn of(&self, unit: UnitIndex, page: PageId) -> &[Interval] {
        let key = (unit, PageId::new(page.file, page.page - page.page % INTERVAL_PAGES));
        let first = self.0.partition_point(|interval| (interval.unit, interval.start) < key);
        let end = self.0.partition_point(|interval| (interval.unit, interval.start) <= key);
        self.0.get(first..end).unwrap_or_default()
    }

    /// The IAM page that contains a unit's claim to an extent.
    pub(super) fn page_of(&self, unit: UnitIndex, extent: PageId) -> Option<PageId> {
        self.of(unit, extent).last().map(|interval| interval.page)
    }

    /// Whether a unit claims the extent of `page`; `None` if the IAM page with the claim could not be read.
    pub(crate) fn claims(&self, source: &dyn PageSource, unit: UnitIndex, page: PageId) -> Option<bool> {
        let index = page.page % INTERVAL_PAGES / EXTENT_PAGES;
        for interval in self.of(unit, page) {
            let bytes = source.read_page(interval.page)?;
            if bit(&iam_bitmap(interval.page, &bytes)?, index) {
                return Some(true);
            }
        }
        Some(false)
    }
}
