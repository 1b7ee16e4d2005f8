//! Compares the pages, in page order, with the table of logged pages.

use format::allocation::{FixedPage, PFS_PAGES, PfsByte, pfs_page_of};
use format::page::{HEADER_BYTES, PAGE_BYTES};
use format::protection::{self, undo_torn_bits};
use format::{AllocUnitId, Lsn, Page, PageBytes, PageId, PageType};
use source::{ExtentSet, PageSource};

use crate::image::{ImageKey, OnPage};
use crate::stamp::Stamp;
use crate::suspects::{Suspects, Why};
use crate::table::PageTable;
use crate::walk::Extent;

/// Number of pages per read.
const READ_PAGES: usize = 64;
/// Offset, on a PFS page, of the byte that describes the first page of the PFS page's interval.
const PFS_BYTES_AT: usize = HEADER_BYTES + 4;

/// Counts of pages, by the result of the comparison.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) compared: u64,
    pub(crate) images: u64,
    pub(crate) older: u64,
    pub(crate) without_records: u64,
    pub(crate) unreadable: u64,
    /// Pages of extents that were left out because they have not changed and the log does not name them.
    pub(crate) left_out: u64,
}

/// Compares the pages in the address range of `table` with the entries of `table`.
pub(crate) struct Comparison<'a> {
    pub(crate) source: &'a dyn PageSource,
    pub(crate) table: &'a mut PageTable,
    pub(crate) key: ImageKey,
    pub(crate) extent: Extent,
    pub(crate) redo_from: Lsn,
    /// The extents that may have changed; `None` if all pages are compared.
    pub(crate) changed: Option<&'a ExtentSet>,
    pub(crate) suspects: &'a mut Suspects,
    pub(crate) tally: &'a mut Tally,
}

/// The content of a PFS page.
enum Map {
    /// The bytes of a usable PFS page.
    Known(Box<PageBytes>),
    /// The PFS page is unreadable or older than the log. The allocation records of the log then decide whether a page
    /// is allocated.
    Unknown,
}

impl Comparison<'_> {
    /// Reads and compares all pages of the range.
    pub(crate) fn run(&mut self) {
        let range = self.table.range();
        let files: Vec<(u16, u32)> = self.source.files().iter().map(|file| (file.file_id, file.pages)).collect();
        let mut buffer = vec![0; READ_PAGES * PAGE_BYTES];
        let wanted_extents = self.changed.map(|changed| {
            let mut wanted = changed.clone();
            self.table.iter().for_each(|(page, _)| wanted.insert(page));
            wanted
        });
        for (file, pages) in files {
            let mut next = if range.from.file == file { range.from.page } else { 0 };
            let end = match range.to {
                Some(to) if to.file == file => to.page.min(pages),
                _ => pages,
            };
            if !range.contains(PageId::new(file, next)) {
                continue;
            }
            let mut map: Option<(u32, Map)> = None;
            while next < end {
                let mut until = end;
                if let Some(extents) = &wanted_extents {
                    let pages = extents.next_pages(PageId::new(file, next), end).unwrap_or(end..end);
                    self.tally.left_out += u64::from(pages.start - next);
                    (next, until) = (pages.start, pages.end);
                }
                let wanted = READ_PAGES.min((until - next) as usize);
                if wanted == 0 {
                    break;
                }
                let first = PageId::new(file, next);
                let space = buffer.get_mut(..wanted * PAGE_BYTES).unwrap_or_default();
                let read = self.source.read(first, space).unwrap_or_default();
                if wanted_extents.is_none() {
                    self.source.prefetch(PageId::new(file, next.saturating_add(wanted as u32)), READ_PAGES as u32);
                }
                let (whole, _) = space.as_chunks_mut::<PAGE_BYTES>();
                for (number, bytes) in (next..).zip(whole.iter_mut()) {
                    let page = PageId::new(file, number);
                    // If a read of several pages fails, reads the remaining pages one by one.
                    if (number - next) as usize >= read {
                        match self.source.read_page(page) {
                            Some(again) => *bytes = *again,
                            None => {
                                self.tally.unreadable += u64::from(self.table.get(page).is_some());
                                continue;
                            }
                        }
                    }
                    let place = pfs_page_of(number);
                    if map.as_ref().is_none_or(|(known, _)| *known != place) {
                        map = Some((place, self.map(PageId::new(file, place))));
                    }
                    let is_allocated = match &map {
                        _ if FixedPage::at(page).is_some() => true,
                        Some((_, Map::Known(map))) => is_allocated(map, page),
                        _ => self.table.get(page).is_some_and(|entry| !entry.is_freed),
                    };
                    if is_allocated {
                        self.page(page, bytes);
                    }
                }
                next += wanted as u32;
            }
        }
    }

    /// Reads a PFS page; [`Map::Unknown`] if the page is damaged or lacks logged changes.
    fn map(&self, page: PageId) -> Map {
        let Some(mut bytes) = self.source.read_page(page) else { return Map::Unknown };
        let header = Page::new(&bytes).header();
        let is_sound = protection::verify(&bytes).is_ok()
            && header.kind() == Some(PageType::Pfs)
            && header.page_id() == page
            && !header.is_encrypted();
        let is_old = self.table.get(page).is_some_and(|entry| Stamp::from(header.lsn()) < entry.settled);
        if !is_sound || is_old {
            return Map::Unknown;
        }
        undo_torn_bits(&mut bytes);
        Map::Known(bytes)
    }

    fn page(&mut self, page: PageId, bytes: &mut PageBytes) {
        let is_blank = bytes.iter().all(|byte| *byte == 0);
        let header = *Page::new(bytes).header();
        let entry = self.table.get(page).copied();
        if !is_blank && (header.page_id() != page || protection::verify(bytes).is_err()) {
            self.tally.unreadable += u64::from(entry.is_some());
            return;
        }
        let (lsn, unit) = (header.lsn(), header.alloc_unit());
        if lsn > self.extent.end {
            self.suspects.add(page, Why::Newer, lsn, unit);
            return;
        }
        let Some(entry) = entry else {
            match lsn {
                lsn if is_blank || lsn < self.extent.oldest => self.tally.older += 1,
                lsn => {
                    self.tally.without_records += 1;
                    if self.extent.covers(lsn) {
                        self.suspects.add_stray(page, lsn, unit);
                    }
                }
            }
            return;
        };
        if entry.is_freed {
            return;
        }
        self.tally.compared += 1;
        let stamp = Stamp::from(lsn);
        let (before, redo_from) = (entry.before_first, Stamp::from(self.redo_from));
        let is_before = !before.is_none() && stamp < before && before < redo_from;
        if stamp < entry.settled || is_before {
            self.suspects.add(page, Why::Lost, lsn, unit);
        } else if entry.is_broken {
            self.suspects.add(page, Why::Links, lsn, unit);
        } else if stamp == entry.last {
            self.image(page, bytes, lsn, unit);
        } else if stamp == entry.settled || is_blank {
        } else if lsn >= self.extent.oldest {
            if self.extent.covers(lsn)
                && let Some(entry) = self.table.get_mut(page)
            {
                (entry.is_sought, entry.before_first) = (true, stamp);
            }
        } else if !before.is_none() && stamp > before {
            self.suspects.add(page, Why::Apart, lsn, unit);
        }
    }

    /// Compares the bytes that the page's last record wrote with the page. Skips the boot page and file header pages,
    /// which SQL Server usually writes without log records.
    fn image(&mut self, page: PageId, bytes: &mut PageBytes, lsn: Lsn, unit: AllocUnitId) {
        let Some(entry) = self.table.get(page).copied() else { return };
        let is_apart = matches!(FixedPage::at(page), Some(FixedPage::Boot | FixedPage::FileHeader));
        if is_apart || Page::new(bytes).header().is_encrypted() {
            return;
        }
        undo_torn_bits(bytes);
        match self.key.is_on(&entry.image, bytes) {
            OnPage::Yes => self.tally.images += 1,
            OnPage::No => self.suspects.add(page, Why::Image(entry.image.slot), lsn, unit),
            OnPage::Unknown => {}
        }
    }
}

fn is_allocated(map: &PageBytes, page: PageId) -> bool {
    let byte = map.get(PFS_BYTES_AT + (page.page % PFS_PAGES) as usize).copied().unwrap_or_default();
    PfsByte(byte).is_allocated()
}
