//! Collects in one pass over the log the first and last record of each page, and a hash of the bytes that the last
//! record wrote.
//!
//! An entry needs about 60 bytes. If the memory is too small for all pages, the table keeps the pages with the lowest
//! addresses, and another pass over the log processes the remaining pages.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use format::allocation::{FixedPage, PFS_PAGES, PfsByte};
use format::log::change::Change;
use format::log::{Block, LogRecord, Operation};
use format::{Lsn, PageId};

use crate::image::{Image, ImageKey};
use crate::stamp::Stamp;

/// Bytes per entry while the hash table grows. During the growth, the new table is half full and the old table is not
/// yet freed.
const BYTES_PER_PAGE: usize = 2 * (size_of::<(PageId, Entry)>() + 1);
/// Minimum number of pages of a table.
const MIN_PAGES: usize = 64;
/// Offset, in the record of a PFS page, of the byte that describes the first page of the PFS page's interval.
const PFS_BYTES_AT: u32 = 4;
/// The bit of a PFS byte that marks a page as allocated.
const ALLOCATED_BIT: u32 = 6;

/// The log records of a page since its allocation.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Entry {
    /// The LSN that the page had before its first record. If the first record formats the page, this is the default
    /// value, because the earlier LSN does not matter.
    pub(crate) before_first: Stamp,
    /// The LSN of the page's last record before the start of redo.
    pub(crate) settled: Stamp,
    /// The LSN of the page's last record.
    pub(crate) last: Stamp,
    /// A hash of the bytes that the last record wrote.
    pub(crate) image: Image,
    /// Whether, according to a log record, the LSN that the page had just before it was lower than the LSN of the
    /// page's previous record.
    pub(crate) is_broken: bool,
    /// Whether a log record freed the page after the page's last record. The server may then never write the page's
    /// earlier changes to disk. So the entry proves nothing, unless the deallocation was rolled back.
    pub(crate) is_freed: bool,
    /// Whether the log must still be searched for a record of the page at the page's LSN, which is stored in
    /// [`Self::before_first`].
    pub(crate) is_sought: bool,
}

/// The entries of all logged pages in a range of addresses.
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
    /// An empty table for the page `from` and all pages after it.
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

    /// All entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PageId, &Entry)> {
        self.pages.iter().map(|(page, entry)| (*page, entry))
    }

    /// Adds the records of a log block. `run` is the first LSN of the sequence of undamaged blocks that contains the
    /// block.
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
            // If a page is formatted, or is changed after it was freed, its earlier records no longer matter.
            Some(entry) if is_new_page || entry.is_freed => {
                *entry = Entry { settled, last: stamp, image, ..Entry::default() };
            }
            Some(entry) => {
                let last = Lsn::from(entry.last);
                // A page LSN above `last` is legitimate: it comes from a change whose rows were not logged.
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

    /// Removes the half of the pages with the highest addresses, and ends the range before these pages.
    fn halve(&mut self) {
        let mut pages: Vec<PageId> = self.pages.keys().copied().collect();
        let middle = pages.len() / 2;
        let (_, to, _) = pages.select_nth_unstable(middle);
        let to = *to;
        self.range.to = Some(to);
        self.pages.retain(|page, _| *page < to);
    }
}

/// Calls `set_page` for each page that a log record about a PFS page allocates (`true`) or frees (`false`).
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
