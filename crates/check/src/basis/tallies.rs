//! The totals of a sweep. Totals of different threads can be merged in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use findings::Finding;
use format::PageId;
use sums::wire::{Input, Output, SumsError, Wire, wire};
use sums::{Merge, PerUnit, sums};

use crate::basis::taken::Taken;
use crate::basis::units::UnitIndex;

/// Totals about the pages that one thread, or all threads, have checked.
pub(crate) struct Tallies {
    /// Totals of each unit, indexed by ordinal.
    pub(crate) units: PerUnit<UnitTally>,
    /// Findings about single pages that have not been delivered yet.
    pub(crate) findings: Vec<Finding>,
    /// Pages in extents that several units claim. Only pages that belong to a unit other than the first unit that
    /// claimed the extent are kept.
    pub(crate) taken: Taken,
    /// Pages that could not be read.
    pub(crate) unread: UnreadPages,
    /// Number of pages read.
    pub(crate) pages_read: u64,
    /// Number of pages in use.
    pub(crate) pages_allocated: u64,
    /// Number of pages in use that no unit claims.
    pub(crate) unclaimed_pages: u64,
    /// Whether a page in an extent that several units claim could not be read, so that its owner is unknown.
    pub(crate) has_unread_shared: bool,
}

sums! {
    /// The totals of a unit.
    #[derive(Clone, Default, Debug)]
    pub(crate) struct UnitTally {
        /// Number of data pages that passed their audit.
        pub(crate) data_pages: u64,
        /// Number of index pages that passed their audit.
        pub(crate) index_pages: u64,
        /// Number of text pages that passed their audit.
        pub(crate) text_pages: u64,
        /// Number of pages that failed their audit or whose header names another unit.
        pub(crate) bad_pages: u64,
        /// Number of pages that could not be read.
        pub(crate) unread_pages: u64,
        /// Number of pages in ranges that no window of time has read yet.
        pub(crate) open_pages: u64,
        /// Number of pages that may or may not be in use.
        pub(crate) unknown_pages: u64,
        /// Number of pages that a repair, reorganize, bulk load or sort was working on.
        pub(crate) pages_in_transit: u64,
        /// Number of the unit's pages in extents that another unit claimed first. The number is set to 0 after the sweep,
        /// when the addresses of these pages are known. It is kept only if there are too many such pages to keep their
        /// addresses.
        pub(crate) taken_pages: u64,
        /// Number of forwarded rows whose back pointer does not have the known form. Set after the sweep.
        pub(crate) unexplained_forwards: u64,
        /// Number of live rows on the leaf level.
        pub(crate) rows: u64,
        /// Number of ghost records on the leaf level.
        pub(crate) ghosts: u64,
        /// Number of forwarded rows.
        pub(crate) forwarded: u64,
        /// Number of rows whose content was not audited.
        pub(crate) unaudited_rows: u64,
        /// Number of entries of non-leaf pages whose content was not audited.
        pub(crate) unaudited_entries: u64,
        /// Number of pages whose header counts cannot be verified, because it is unknown whether the counts include one of
        /// the records.
        pub(crate) uncounted_pages: u64,
        /// Number of rows whose expanded record lacks a value, because the compressed form of the value is unknown.
        pub(crate) doubtful_rows: u64,
    }
}

impl UnitTally {
    /// Number of pages that passed their audit.
    pub(crate) fn pages(&self) -> u64 {
        self.data_pages + self.index_pages + self.text_pages
    }

    /// Number of pages whose content cannot be relied on. They are damaged, unread, not read yet, possibly free, of a type without
    /// known rules, or in an extent that another unit claimed first.
    pub(crate) fn lost_pages(&self) -> u64 {
        self.bad_pages + self.unseen_pages() + self.unknown_pages + self.pages_in_transit + self.taken_pages
    }

    /// Number of pages that could not be read, or were not read yet.
    pub(crate) fn unseen_pages(&self) -> u64 {
        self.unread_pages + self.open_pages
    }
}

/// Pages that could not be read. For each file, only the first unreadable page, the error of its read, and the number
/// of unreadable pages are kept.
#[derive(Clone, Default, Debug)]
pub(crate) struct UnreadPages {
    files: BTreeMap<u16, (PageId, String, u64)>,
}

wire!(UnreadPages { files });

impl Merge for UnreadPages {
    fn merge(&mut self, other: Self) {
        for (page, error, pages) in other.into_files() {
            self.add(page, || error);
            if let Some((.., all)) = self.files.get_mut(&page.file) {
                *all += pages - 1;
            }
        }
    }
}

impl UnreadPages {
    /// Adds a page.
    pub(crate) fn add(&mut self, page: PageId, why: impl FnOnce() -> String) {
        match self.files.get_mut(&page.file) {
            Some((first, error, pages)) => {
                *pages += 1;
                if page < *first {
                    (*first, *error) = (page, why());
                }
            }
            None => _ = self.files.insert(page.file, (page, why(), 1)),
        }
    }

    /// Returns whether any page in this range of a file may be unread. The result may be true although all pages were
    /// read, because only the first unread page of each file is known.
    pub(crate) fn may_be_in(&self, file_id: u16, pages: Range<u32>) -> bool {
        self.files.get(&file_id).is_some_and(|&(first, _, count)| match count {
            1 => pages.contains(&first.page),
            _ => first.page < pages.end,
        })
    }

    /// Whether all pages could be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// One entry per file: the first page, its error, and the number of pages.
    pub(crate) fn into_files(self) -> impl Iterator<Item = (PageId, String, u64)> {
        self.files.into_values()
    }
}

impl Tallies {
    /// Empty tallies for this number of units.
    pub(crate) fn new(units: usize) -> Self {
        Self {
            units: PerUnit::new(units),
            findings: Vec::new(),
            taken: Taken::default(),
            unread: UnreadPages::default(),
            pages_read: 0,
            pages_allocated: 0,
            unclaimed_pages: 0,
            has_unread_shared: false,
        }
    }

    /// Sorts lists, so that their order does not depend on threads.
    pub(crate) fn put_in_order(&mut self) {
        self.taken.put_in_order();
    }

    /// Units that have bad pages.
    pub(crate) fn bad_units(&self) -> BTreeSet<UnitIndex> {
        self.units.touched().filter(|(_, tally)| tally.bad_pages > 0).map(|(at, _)| at as UnitIndex).collect()
    }

    /// Removes and returns the pages in extents that several units claim, sorted for lookups.
    pub(crate) fn take_taken(&mut self) -> Taken {
        let taken = std::mem::take(&mut self.taken).sorted();
        if taken.is_whole() {
            self.units.touched_mut().for_each(|(_, tally)| tally.taken_pages = 0);
        }
        taken
    }
}

impl Merge for Tallies {
    fn merge(&mut self, other: Self) {
        let Self { units, findings, taken, unread, pages_read, pages_allocated, unclaimed_pages, has_unread_shared } =
            other;
        self.units.merge(units);
        self.findings.merge(findings);
        self.taken.merge(taken);
        self.unread.merge(unread);
        self.pages_read.merge(pages_read);
        self.pages_allocated.merge(pages_allocated);
        self.unclaimed_pages.merge(unclaimed_pages);
        self.has_unread_shared.merge(has_unread_shared);
    }
}

/// Tallies are encoded without findings, because each thread delivers its findings before it ends.
impl Wire for Tallies {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        let Self { units, findings: _, taken, unread, pages_read, pages_allocated, unclaimed_pages, has_unread_shared } =
            self;
        units.write(to)?;
        taken.write(to)?;
        unread.write(to)?;
        (*pages_read, *pages_allocated, *unclaimed_pages).write(to)?;
        has_unread_shared.write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let (units, taken, unread) = Wire::read(from)?;
        let (pages_read, pages_allocated, unclaimed_pages) = Wire::read(from)?;
        let has_unread_shared = Wire::read(from)?;
        let findings = Vec::new();
        Ok(Self { units, findings, taken, unread, pages_read, pages_allocated, unclaimed_pages, has_unread_shared })
    }
}
