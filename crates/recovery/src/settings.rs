//! Limits of a recovery.

use std::path::PathBuf;

/// The parts of a grant: a quarter for the table of pages, an eighth for the list of changes to undo, an eighth for
/// records waiting for their pages, a quarter for pages, which stays in use.
pub(crate) const GRANT_PER_TABLE: u64 = 4;
pub(crate) const GRANT_PER_UNDO: u64 = 8;
const GRANT_PER_RECORDS: u64 = 16;
const GRANT_PER_PAGES: u64 = 4;
/// The minimum for each of these uses.
const LEAST_BYTES: u64 = 512 << 10;

/// Limits of a recovery.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Memory grant in bytes; about a quarter of it stays in use afterwards.
    pub grant_bytes: u64,
    /// Folder for temporary files; the system's default if `None`.
    pub temp_dir: Option<PathBuf>,
    /// Whether the database has row versions of accelerated database recovery: these decide which changes of open
    /// transactions remain, so such transactions are not undone.
    pub has_version_store: bool,
}

impl Settings {
    /// Bytes for the table of pages, which recovery can do without.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.grant_bytes / GRANT_PER_TABLE
    }

    /// Bytes for the list of transactions that are open at the same time.
    pub(crate) fn open_bytes(&self) -> u64 {
        self.part(GRANT_PER_TABLE)
    }

    /// Bytes for the list of changes to undo.
    pub(crate) fn undo_bytes(&self) -> usize {
        self.part(GRANT_PER_UNDO) as usize
    }

    /// Bytes for records to redo, and the same again for records to undo.
    pub(crate) fn record_bytes(&self) -> usize {
        self.part(GRANT_PER_RECORDS) as usize
    }

    /// Bytes for pages.
    pub(crate) fn page_bytes(&self) -> usize {
        self.part(GRANT_PER_PAGES) as usize
    }

    fn part(&self, of: u64) -> u64 {
        (self.grant_bytes / of).max(LEAST_BYTES)
    }
}
