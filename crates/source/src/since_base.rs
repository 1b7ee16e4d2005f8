//! Data files of which it is known which extents have changed since the last full backup.

use format::PageId;

use crate::{BackupPages, Carved, DataFile, ExtentSet, FileChange, PageSource, ReadError, ReadFaults, Snapshot};

/// The pages of data files, recovered or not, with the extents that may have changed since the full backup on which the
/// differential maps are based. The pages of all other extents are as they were then.
pub struct SinceBase<'a> {
    inner: &'a dyn PageSource,
    changed: ExtentSet,
}

impl<'a> SinceBase<'a> {
    /// Takes `changed` for the extents that may have changed.
    pub fn new(inner: &'a dyn PageSource, changed: ExtentSet) -> Self {
        Self { inner, changed }
    }
}

impl PageSource for SinceBase<'_> {
    crate::hints_as_inner!();

    fn files(&self) -> &[DataFile] {
        self.inner.files()
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.inner.read(first, buffer)
    }

    fn read_faults(&self) -> ReadFaults {
        self.inner.read_faults()
    }

    fn changes(&self) -> Vec<FileChange> {
        self.inner.changes()
    }

    fn backup(&self) -> Option<&BackupPages> {
        self.inner.backup()
    }

    fn snapshot(&self) -> Option<&Snapshot> {
        self.inner.snapshot()
    }

    fn carved(&self) -> Option<&Carved> {
        self.inner.carved()
    }

    fn in_flight(&self) -> Option<&[PageId]> {
        self.inner.in_flight()
    }

    fn damaged_in_flight(&self) -> &[PageId] {
        self.inner.damaged_in_flight()
    }

    fn has_recovered_pages(&self) -> bool {
        self.inner.has_recovered_pages()
    }

    fn above_base(&self, first: PageId, pages: u32) -> Option<u128> {
        Some(self.changed.pages(first, pages))
    }

    fn has_promise(&self) -> bool {
        true
    }
}
