//! Pages that the run takes from an earlier run, but reads again for another reason: non-leaf pages, and pages of units
//! whose sums differ. Such a page was sound in the earlier run. If it is not sound now, although nothing has changed it,
//! its sums must not be used.

use std::sync::{Mutex, OnceLock, PoisonError};

use findings::FileRange;
use format::page::PAGE_BYTES;
use format::protection::verify;
use format::{Page, PageId};
use source::{FileChange, PageSource, ReadError, ReadFaults};

/// A page source that verifies the pages of kept ranges.
pub(super) struct Watched<'a> {
    inner: &'a dyn PageSource,
    kept: OnceLock<Vec<FileRange>>,
    rotten: Mutex<Option<PageId>>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(inner: &'a dyn PageSource) -> Self {
        Self { inner, kept: OnceLock::new(), rotten: Mutex::new(None) }
    }

    /// From here on, the pages of these ranges must be sound. The ranges are ascending.
    pub(super) fn keep(&self, ranges: Vec<FileRange>) {
        let _ = self.kept.set(ranges);
    }

    /// The first page of a kept range that was not sound when it was read.
    pub(super) fn rotten(&self) -> Option<PageId> {
        *self.rotten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_kept(&self, page: PageId) -> bool {
        let kept = self.kept.get().map_or(&[][..], Vec::as_slice);
        let after = kept.partition_point(|range| (range.file_id, range.first) <= (page.file, page.page));
        after.checked_sub(1).and_then(|at| kept.get(at)).is_some_and(|range| range.contains(page))
    }

    fn note(&self, page: PageId) {
        let mut rotten = self.rotten.lock().unwrap_or_else(PoisonError::into_inner);
        *rotten = Some(rotten.map_or(page, |known| known.min(page)));
    }
}

impl PageSource for Watched<'_> {
    source::as_inner!();

    fn read_faults(&self) -> ReadFaults {
        self.inner.read_faults()
    }

    fn changes(&self) -> Vec<FileChange> {
        self.inner.changes()
    }

    fn prefetch(&self, first: PageId, pages: u32) {
        self.inner.prefetch(first, pages);
    }

    fn pages_per_read(&self, first: PageId) -> u32 {
        self.inner.pages_per_read(first)
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
            if !self.is_kept(id) {
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
