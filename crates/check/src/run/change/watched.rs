//! Pages that the run takes from an earlier run, but reads again for another reason: non-leaf pages, and pages of units
//! whose sums differ. Such a page was sound in the earlier run. If it is not sound now, although nothing has changed it,
//! its sums must not be used.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, RwLock};

use findings::FileRange;
use format::allocation::{FixedPage, PFS_PAGES, PfsByte, pfs_bytes, pfs_page_of};
use format::page::PAGE_BYTES;
use format::protection::{undo_torn_bits, verify};
use format::{Page, PageId};
use source::{PageSource, ReadError, ReadFaults, read_settled};

/// A page source that verifies the pages of kept ranges.
pub(crate) struct Watched<'a> {
    inner: &'a dyn PageSource,
    kept: RwLock<Vec<FileRange>>,
    /// Pages that were not sound when they were read.
    suspects: Mutex<BTreeSet<PageId>>,
}

/// The most suspects that are looked at. If there are more, the first counts as in use.
const MOST_SUSPECTS: usize = 4096;

impl<'a> Watched<'a> {
    pub(crate) fn new(inner: &'a dyn PageSource) -> Self {
        Self { inner, kept: RwLock::default(), suspects: Mutex::default() }
    }

    /// From here on, the pages of these ranges must be sound. The ranges are ascending.
    pub(crate) fn keep(&self, ranges: Vec<FileRange>) {
        *self.kept.write().unwrap_or_else(PoisonError::into_inner) = ranges;
    }

    /// Takes the pages of watched ranges that were not sound when they were read.
    pub(crate) fn take_suspects(&self) -> Vec<PageId> {
        let taken = std::mem::take(&mut *self.suspects.lock().unwrap_or_else(PoisonError::into_inner));
        taken.into_iter().collect()
    }

    /// Notes pages that another process has read and that were not sound.
    pub(super) fn suspect(&self, pages: Vec<PageId>) {
        pages.into_iter().filter(|page| self.is_kept(*page)).for_each(|page| self.note(page));
    }

    /// The first page that is in use and was not sound when it was read, of those ranges whose sums the run has used in the
    /// end: of the ranges of [`Self::keep`], the run may have swept some. The ranges are ascending.
    pub(super) fn rotten(&self, in_use: &[FileRange]) -> Option<PageId> {
        let suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = suspects.len() >= MOST_SUSPECTS;
        let mut of_sums = suspects.iter().copied().filter(|page| contains(in_use, *page));
        let rotten = of_sums.find(|page| is_full || self.is_in_use(*page));
        // Of more suspects than were noted, any may be of these ranges.
        rotten.or_else(|| suspects.first().copied().filter(|_| is_full))
    }

    /// Whether PFS says that a page is in use. A page that is not in use may have any content.
    fn is_in_use(&self, page: PageId) -> bool {
        let map = PageId::new(page.file, pfs_page_of(page.page));
        let Some((mut bytes, Ok(_))) = read_settled(self.inner, map) else { return true };
        undo_torn_bits(&mut bytes);
        let byte = pfs_bytes(Page::new(&bytes)).and_then(|bytes| bytes.get((page.page % PFS_PAGES) as usize));
        byte.is_none_or(|byte| PfsByte(*byte).is_allocated())
    }

    fn is_kept(&self, page: PageId) -> bool {
        contains(&self.kept.read().unwrap_or_else(PoisonError::into_inner), page)
    }

    fn note(&self, page: PageId) {
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        if suspects.len() < MOST_SUSPECTS {
            suspects.insert(page);
        }
    }
}

/// Whether one of these ranges, which are ascending, has the page.
pub(super) fn contains(ranges: &[FileRange], page: PageId) -> bool {
    let after = ranges.partition_point(|range| (range.file_id, range.first) <= (page.file, page.page));
    after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|range| range.contains(page))
}

impl PageSource for Watched<'_> {
    source::as_inner!();
    source::hints_as_inner!();

    fn read_faults(&self) -> ReadFaults {
        self.inner.read_faults()
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let read = self.inner.read(first, buffer);
        let count = match &read {
            Ok(pages) => *pages,
            Err(_) => 0,
        };
        let wanted = buffer.len() / PAGE_BYTES;
        for (at, page) in (0..wanted).zip(first.page..) {
            let id = PageId::new(first.file, page);
            // The survey judges maps anew in each run, and no sums contain their bytes.
            if !self.is_kept(id) || FixedPage::at(id).is_some() {
                continue;
            }
            let bytes = buffer.get(at * PAGE_BYTES..).and_then(|bytes| bytes.first_chunk::<PAGE_BYTES>());
            let is_sound = |bytes| verify(bytes).is_ok() && Page::new(bytes).header().page_id() == id;
            if at >= count || !bytes.is_some_and(is_sound) {
                self.note(id);
            }
        }
        read
    }
}
