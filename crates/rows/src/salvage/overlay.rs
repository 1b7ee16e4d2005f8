//! A page source in which one page is replaced.

use std::sync::{Mutex, PoisonError};

use format::{PAGE_BYTES, PageBytes, PageId};
use source::{BackupPages, Carved, DataFile, FileChange, PageSource, ReadError, ReadFaults, Snapshot};

/// The pages of another source, with one page replaced.
pub(crate) struct Overlay<'a> {
    below: &'a dyn PageSource,
    page: Mutex<Option<(PageId, Box<PageBytes>)>>,
}

impl<'a> Overlay<'a> {
    /// Creates an overlay that replaces no page.
    pub(crate) fn new(below: &'a dyn PageSource) -> Self {
        Self { below, page: Mutex::default() }
    }

    /// Replaces one page. Reads of other pages return the original pages.
    pub(crate) fn set(&self, page: PageId, bytes: Box<PageBytes>) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = Some((page, bytes));
    }

    /// Removes the replacement.
    pub(crate) fn clear(&self) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl PageSource for Overlay<'_> {
    fn files(&self) -> &[DataFile] {
        self.below.files()
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let own = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = own.as_ref().filter(|(page, _)| page.file == first.file).and_then(|(page, bytes)| {
            let at = page.page.checked_sub(first.page)? as usize;
            (at < buffer.len() / PAGE_BYTES).then_some((at, bytes))
        });
        let Some((at, bytes)) = replaced else { return self.below.read(first, buffer) };
        if at == 0 && buffer.len() < 2 * PAGE_BYTES {
            // Only the replaced page is wanted. The original is not read, because the operating system may be unable to
            // read it.
            if let Some(room) = buffer.get_mut(..PAGE_BYTES) {
                room.copy_from_slice(bytes.as_slice());
            }
            return Ok(1);
        }
        let read = self.below.read(first, buffer)?;
        if let (true, Some(room)) = (at < read, buffer.get_mut(at * PAGE_BYTES..(at + 1) * PAGE_BYTES)) {
            room.copy_from_slice(bytes.as_slice());
        }
        Ok(read)
    }

    fn prefetch(&self, first: PageId, pages: u32) {
        self.below.prefetch(first, pages);
    }

    fn read_faults(&self) -> ReadFaults {
        self.below.read_faults()
    }

    fn changes(&self) -> Vec<FileChange> {
        self.below.changes()
    }

    fn backup(&self) -> Option<&BackupPages> {
        self.below.backup()
    }

    fn carved(&self) -> Option<&Carved> {
        self.below.carved()
    }

    fn snapshot(&self) -> Option<&Snapshot> {
        self.below.snapshot()
    }

    fn in_flight(&self) -> Option<&[PageId]> {
        self.below.in_flight()
    }

    fn damaged_in_flight(&self) -> &[PageId] {
        self.below.damaged_in_flight()
    }

    fn has_recovered_pages(&self) -> bool {
        self.below.has_recovered_pages()
    }
}
