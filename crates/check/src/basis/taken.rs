//! Pages in extents that several units claim. The owner of such a page is the unit in its header, even if the maps name
//! another unit.

use format::PageId;
use sums::Merge;
use sums::wire::wire;

use crate::basis::units::UnitIndex;

/// The maximum number of pages that are kept. If there are more pages, none of them is kept, because the choice would
/// depend on threads and batches.
const MOST: usize = 1 << 14;

/// Pages in extents that several units claim. Only pages whose header names a unit other than the first unit that
/// claimed the extent are kept. Each page is stored with the unit in its header.
#[derive(Clone, Default, Debug)]
pub(crate) struct Taken {
    pages: Vec<(PageId, UnitIndex)>,
    seen: u64,
}

impl Taken {
    /// Adds a page.
    pub(crate) fn add(&mut self, page: PageId, unit: UnitIndex) {
        self.seen += 1;
        if self.pages.len() < MOST {
            self.pages.push((page, unit));
        }
    }

    /// Whether no page was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.seen == 0
    }

    /// Whether all pages were kept.
    pub(crate) fn is_whole(&self) -> bool {
        self.seen <= MOST as u64
    }

    /// The pages sorted for lookups; empty if there were too many.
    pub(crate) fn sorted(mut self) -> Self {
        self.put_in_order();
        self
    }

    /// Sorts the pages; drops all of them if there were too many.
    pub(crate) fn put_in_order(&mut self) {
        if !self.is_whole() {
            self.pages.clear();
        }
        self.pages.sort_unstable();
    }

    /// The unit of a page. Requires that the pages are sorted ([`Self::sorted`]).
    pub(crate) fn unit(&self, page: PageId) -> Option<UnitIndex> {
        let at = self.pages.binary_search_by_key(&page, |(taken, _)| *taken).ok()?;
        self.pages.get(at).map(|(_, unit)| *unit)
    }
}

wire!(Taken { pages, seen });

impl Merge for Taken {
    fn merge(&mut self, other: Self) {
        let Self { pages, seen } = other;
        self.seen.merge(seen);
        if self.is_whole() {
            self.pages.extend(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_all_pages_are_kept_does_not_depend_on_the_way() {
        for (pages, is_whole) in [(MOST, true), (MOST + 1, false)] {
            for parts in [1, 2, 7] {
                let mut all = Taken::default();
                for part in 0..parts {
                    let mut taken = Taken::default();
                    let own = (0..pages).filter(|page| page % parts == part);
                    own.for_each(|page| taken.add(PageId::new(1, page as u32), 5));
                    all.merge(taken);
                }
                let all = all.sorted();
                assert_eq!(all.is_whole(), is_whole, "{pages} pages in {parts} parts");
                assert_eq!(all.unit(PageId::new(1, 77)), is_whole.then_some(5));
                assert_eq!(all.unit(PageId::new(2, 77)), None);
            }
        }
    }
}
