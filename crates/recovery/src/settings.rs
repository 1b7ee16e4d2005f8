//! Limits for a recovery.

use std::path::PathBuf;

/// The divisors that divide a memory grant into parts. A quarter is for the table of pages, an eighth for the list of
/// changes to undo, a sixteenth each for records to redo and records to undo, and a quarter for recovered pages. The
/// part for recovered pages stays in use after the recovery.
pub(crate) const GRANT_PER_TABLE: u64 = 4;
pub(crate) const GRANT_PER_UNDO: u64 = 8;
const GRANT_PER_RECORDS: u64 = 16;
const GRANT_PER_PAGES: u64 = 4;
/// The minimum size of each part of the grant, in bytes.
const LEAST_BYTES: u64 = 512 << 10;

/// Limits and options of a recovery.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Memory grant in bytes. After the recovery, the recovered pages continue to use about a quarter of it.
    pub grant_bytes: u64,
    /// Folder for temporary files; `None` for the system's default folder.
    pub temp_dir: Option<PathBuf>,
    /// Whether the database uses accelerated database recovery. Its row versions decide which changes of open
    /// transactions are kept, so open transactions are not undone.
    pub has_version_store: bool,
}

impl Settings {
    /// Number of bytes for the table of pages. Recovery also works without this table.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.grant_bytes / GRANT_PER_TABLE
    }

    /// Number of bytes for the list of transactions that are open at the same time.
    pub(crate) fn open_bytes(&self) -> u64 {
        self.part(GRANT_PER_TABLE)
    }

    /// Number of bytes for the list of changes to undo.
    pub(crate) fn undo_bytes(&self) -> usize {
        self.part(GRANT_PER_UNDO) as usize
    }

    /// Number of bytes for records to redo. Records to undo may use as many bytes again.
    pub(crate) fn record_bytes(&self) -> usize {
        self.part(GRANT_PER_RECORDS) as usize
    }

    /// Number of bytes for recovered pages.
    pub(crate) fn page_bytes(&self) -> usize {
        self.part(GRANT_PER_PAGES) as usize
    }

    fn part(&self, of: u64) -> u64 {
        (self.grant_bytes / of).max(LEAST_BYTES)
    }
}
