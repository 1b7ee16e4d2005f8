//! The totals of a sweep. All of them merge in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use format::PageId;

use crate::finding::Finding;
use crate::per_unit::PerUnit;
use crate::taken::Taken;
use crate::units::UnitIndex;
use crate::wire::{Input, Output, SumsError, Wire, wire};

/// Totals about pages of one thread, or of all threads.
pub(crate) struct Tallies {
    /// By unit ordinal.
    pub(crate) units: PerUnit<UnitTally>,
    /// Findings on single pages that were not yet delivered.
    pub(crate) findings: Vec<Finding>,
    /// Pages of extents that several units claim, if they belong to another unit than the first to claim the extent.
    pub(crate) taken: Taken,
    /// Pages that could not be read.
    pub(crate) unread: UnreadPages,
    /// Pages read.
    pub(crate) pages_read: u64,
    /// Pages in use.
    pub(crate) pages_allocated: u64,
    /// Pages in use that no unit claims.
    pub(crate) unclaimed_pages: u64,
    /// Whether a page in an extent that several units claim could not be read, so that its owner is unknown.
    pub(crate) has_unread_shared: bool,
}

/// The totals of a unit.
#[derive(Clone, Default, Debug)]
pub(crate) struct UnitTally {
    /// Data pages that passed their audit.
    pub(crate) data_pages: u64,
    /// Index pages that passed their audit.
    pub(crate) index_pages: u64,
    /// Text pages that passed their audit.
    pub(crate) text_pages: u64,
    /// Pages that failed their audit or that name another unit.
    pub(crate) bad_pages: u64,
    /// Pages that could not be read.
    pub(crate) unread_pages: u64,
    /// Pages that may or may not be in use.
    pub(crate) unknown_pages: u64,
    /// Pages that a repair, reorganize, bulk load or sort was working on.
    pub(crate) pages_in_transit: u64,
    /// Pages of extents that another unit was the first to claim; after the sweep, only those that cannot be found
    /// again.
    pub(crate) taken_pages: u64,
    /// Forwarded rows without a back pointer of the known form; known after the sweep.
    pub(crate) unexplained_forwards: u64,
    /// Live rows of the leaf level.
    pub(crate) rows: u64,
    /// Ghost records of the leaf level.
    pub(crate) ghosts: u64,
    /// Forwarded rows.
    pub(crate) forwarded: u64,
    /// Rows whose insides were not audited.
    pub(crate) unaudited_rows: u64,
    /// Entries of non-leaf pages whose insides were not audited.
    pub(crate) unaudited_entries: u64,
    /// Pages with a record that the header may or may not count.
    pub(crate) uncounted_pages: u64,
    /// Rows that lack some value in their expanded record, as its compressed form is unknown.
    pub(crate) doubtful_rows: u64,
}

impl UnitTally {
    /// Pages that passed their audit.
    pub(crate) fn pages(&self) -> u64 {
        self.data_pages + self.index_pages + self.text_pages
    }

    /// Pages that contributed nothing: damaged, unread or of an unknown kind; and pages that cannot be found again.
    pub(crate) fn lost_pages(&self) -> u64 {
        self.bad_pages + self.unread_pages + self.unknown_pages + self.pages_in_transit + self.taken_pages
    }

    fn merge(&mut self, other: Self) {
        self.data_pages += other.data_pages;
        self.index_pages += other.index_pages;
        self.text_pages += other.text_pages;
        self.bad_pages += other.bad_pages;
        self.unread_pages += other.unread_pages;
        self.unknown_pages += other.unknown_pages;
        self.pages_in_transit += other.pages_in_transit;
        self.taken_pages += other.taken_pages;
        self.unexplained_forwards += other.unexplained_forwards;
        self.rows += other.rows;
        self.ghosts += other.ghosts;
        self.forwarded += other.forwarded;
        self.unaudited_rows += other.unaudited_rows;
        self.doubtful_rows += other.doubtful_rows;
        self.unaudited_entries += other.unaudited_entries;
        self.uncounted_pages += other.uncounted_pages;
    }
}

wire!(UnitTally {
    data_pages,
    index_pages,
    text_pages,
    bad_pages,
    unread_pages,
    unknown_pages,
    pages_in_transit,
    taken_pages,
    unexplained_forwards,
    rows,
    ghosts,
    forwarded,
    unaudited_rows,
    unaudited_entries,
    uncounted_pages,
    doubtful_rows,
});

/// Pages that could not be read: for each file the first page, the error, and the number of pages.
#[derive(Clone, Default, Debug)]
pub(crate) struct UnreadPages {
    files: BTreeMap<u16, (PageId, String, u64)>,
}

wire!(UnreadPages { files });

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

    fn merge(&mut self, other: Self) {
        for (page, error, pages) in other.into_files() {
            self.add(page, || error);
            if let Some((.., all)) = self.files.get_mut(&page.file) {
                *all += pages - 1;
            }
        }
    }

    /// Whether any page in this range of a file may be unread: only the first unread page of a file is known.
    pub(crate) fn may_be_in(&self, file_id: u16, pages: Range<u32>) -> bool {
        self.files.get(&file_id).is_some_and(|&(first, _, count)| match count {
            1 => pages.contains(&first.page),
            _ => first.page < pages.end,
        })
    }

    /// One entry per file.
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

    /// Adds the tallies of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        self.units.merge(other.units, UnitTally::merge);
        self.findings.extend(other.findings);
        self.taken.merge(other.taken);
        self.unread.merge(other.unread);
        self.pages_read += other.pages_read;
        self.pages_allocated += other.pages_allocated;
        self.unclaimed_pages += other.unclaimed_pages;
        self.has_unread_shared |= other.has_unread_shared;
    }

    /// Sorts lists, so that their order does not depend on threads.
    pub(crate) fn put_in_order(&mut self) {
        self.taken.put_in_order();
    }

    /// Units with bad pages.
    pub(crate) fn bad_units(&self) -> BTreeSet<UnitIndex> {
        self.units.touched().filter(|(_, tally)| tally.bad_pages > 0).map(|(at, _)| at as UnitIndex).collect()
    }

    /// Removes and returns the pages of extents that several units claim, ready for lookups.
    pub(crate) fn take_taken(&mut self) -> Taken {
        let taken = std::mem::take(&mut self.taken).sorted();
        if taken.is_whole() {
            self.units.touched_mut().for_each(|(_, tally)| tally.taken_pages = 0);
        }
        taken
    }
}

/// Without findings: a thread delivers them before it ends.
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
