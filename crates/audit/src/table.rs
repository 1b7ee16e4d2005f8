//! Collects in one pass the first and last record of each page, and what the last one wrote.
//!
//! An entry uses some 60 bytes. If the memory is too small for all pages, the table keeps those with the lowest
//! addresses, and another pass over the log processes the rest.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use format::allocation::{FixedPage, PFS_PAGES, PfsByte};
use format::log::change::Change;
use format::log::{Block, LogRecord, Operation};
use format::{Lsn, PageId};

use crate::image::{Image, ImageKey};
use crate::stamp::Stamp;

/// Bytes per entry while the table grows: it is then half full, and the old table still exists.
const BYTES_PER_PAGE: usize = 2 * (size_of::<(PageId, Entry)>() + 1);
/// Minimum number of pages of a table.
const MIN_PAGES: usize = 64;
/// Offset in the record of a PFS page of the byte for its first page.
const PFS_BYTES_AT: u32 = 4;
/// The bit of a PFS byte for an allocated page.
const ALLOCATED_BIT: u32 = 6;

/// The records of a page since it was allocated.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Entry {
    /// The LSN that the page had before its first record; none if that does not matter, because the page was formatted
    /// anew.
    pub(crate) before_first: Stamp,
    /// Its last record before the start of redo.
    pub(crate) settled: Stamp,
    /// Its last record.
    pub(crate) last: Stamp,
    /// The bytes that the last record wrote.
    pub(crate) image: Image,
    /// Whether a record names an earlier LSN of the page than the record before it wrote.
    pub(crate) is_broken: bool,
    /// Whether the log freed the page later. Changes not written by then never will be, so the entry proves nothing,
    /// unless the freeing was undone.
    pub(crate) is_freed: bool,
    /// Whether its LSN must still be found among its records; the LSN is then in [`Self::before_first`].
    pub(crate) is_sought: bool,
}

/// The pages of a range.
pub(crate) struct PageTable {
    pages: HashMap<PageId, Entry, RandomState>,
    most_pages: usize,
    range: Range,
    key: ImageKey,
    redo_from: Lsn,
}

/// The pages from `from` up to, but not including, `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) from: PageId,
    pub(crate) to: Option<PageId>,
}

impl Range {
    pub(crate) fn contains(&self, page: PageId) -> bool {
        page >= self.from && self.to.is_none_or(|to| page < to)
    }
}

impl PageTable {
    /// An empty table for the pages from `from` on.
    pub(crate) fn new(from: PageId, redo_from: Lsn, memory_bytes: usize, key: ImageKey) -> Self {
        Self {
            pages: HashMap::default(),
            most_pages: (memory_bytes / BYTES_PER_PAGE).max(MIN_PAGES),
            range: Range { from, to: None },
            key,
            redo_from,
        }
    }

    pub(crate) fn range(&self) -> Range {
        self.range
    }

    pub(crate) fn get(&self, page: PageId) -> Option<&Entry> {
        self.pages.get(&page)
    }

    pub(crate) fn get_mut(&mut self, page: PageId) -> Option<&mut Entry> {
        self.pages.get_mut(&page)
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PageId, &Entry)> {
        self.pages.iter().map(|(page, entry)| (*page, entry))
    }

    /// Adds the records of a block of an unbroken run of blocks that starts at `run`.
    pub(crate) fn block(
        &mut self,
        block: &Block<'_>,
        run: Lsn,
        is_known_file: &impl Fn(u16) -> bool,
        others: &mut BTreeSet<u16>,
    ) {
        for (lsn, record) in block.records() {
            let Some(place) = record.on_page() else { continue };
            allocations(&record, place.page, |page, is_allocated| {
                if let Some(entry) = self.pages.get_mut(&page)
                    && (!is_allocated || record.is_compensation())
                {
                    entry.is_freed = !is_allocated;
                }
            });
            if !is_known_file(place.page.file) {
                others.insert(place.page.file);
            } else if self.range.contains(place.page) {
                self.record(lsn, &record, (place.page, place.slot, place.page_lsn), run);
            }
        }
    }

    fn record(&mut self, lsn: Lsn, record: &LogRecord<'_>, (page, slot, page_lsn): (PageId, u16, Lsn), run: Lsn) {
        let is_new_page = record.operation() == Operation::FORMAT_PAGE;
        let image = self.key.of(record, slot);
        let stamp = Stamp::from(lsn);
        let settled = if lsn < self.redo_from { stamp } else { Stamp::default() };
        match self.pages.get_mut(&page) {
            // The earlier state of the page no longer matters.
            Some(entry) if is_new_page || entry.is_freed => {
                *entry = Entry { settled, last: stamp, image, ..Entry::default() };
            }
            Some(entry) => {
                let last = Lsn::from(entry.last);
                // A newer LSN comes from a change whose rows were not logged.
                entry.is_broken |= page_lsn < last && last >= run;
                (entry.last, entry.image) = (stamp, image);
                if !settled.is_none() {
                    entry.settled = settled;
                }
            }
            None => {
                let before_first = if is_new_page { Stamp::default() } else { page_lsn.into() };
                self.pages.insert(page, Entry { before_first, settled, last: stamp, image, ..Entry::default() });
                if self.pages.len() > self.most_pages {
                    self.halve();
                }
            }
        }
    }

    /// Keeps the lower half of the pages.
    fn halve(&mut self) {
        let mut pages: Vec<PageId> = self.pages.keys().copied().collect();
        let middle = pages.len() / 2;
        let (_, to, _) = pages.select_nth_unstable(middle);
        let to = *to;
        self.range.to = Some(to);
        self.pages.retain(|page, _| *page < to);
    }
}

/// Calls `set_page` for each page that a record of a PFS page allocates or frees, with `true` for allocated pages.
fn allocations(record: &LogRecord<'_>, map: PageId, mut set_page: impl FnMut(PageId, bool)) {
    let is_map = map.page == 1 || map.page.is_multiple_of(PFS_PAGES);
    if !is_map || FixedPage::at(map) != Some(FixedPage::Pfs) {
        return;
    }
    let first = if map.page == 1 { 0 } else { map.page };
    let mut set = |offset: u32, byte: u8| {
        let number = offset.checked_sub(PFS_BYTES_AT).filter(|number| *number < PFS_PAGES);
        if let Some(number) = number {
            set_page(PageId::new(map.file, first.saturating_add(number)), PfsByte(byte).is_allocated());
        }
    };
    match record.change() {
        Some(Change::SetFreeSpace { offset, new, .. }) => set(offset.into(), new),
        Some(Change::ModifyRow(piece)) => {
            (u32::from(piece.new_offset)..).zip(piece.after).for_each(|(offset, byte)| set(offset, *byte));
        }
        Some(Change::ModifyColumns(pieces)) => {
            for piece in pieces {
                (u32::from(piece.new_offset)..).zip(piece.after).for_each(|(offset, byte)| set(offset, *byte));
            }
        }
        Some(Change::SetBits { first, count, value }) => {
            let byte = if value { PfsByte::DEDICATED } else { 0 };
            let bits = u32::from(first)..u32::from(first) + u32::from(count);
            bits.filter(|bit| bit % 8 == ALLOCATED_BIT).for_each(|bit| set(bit / 8, byte));
        }
        _ => {}
    }
}
