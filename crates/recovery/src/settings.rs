//! Bounds of a recovery.

use std::path::PathBuf;

/// What part of a grant each use of memory has: a quarter for the table of pages, an eighth for the list of what is to be
/// taken back, an eighth for records on their way to their pages, a quarter for pages, which stays in use.
pub(crate) const GRANT_PER_TABLE: u64 = 4;
pub(crate) const GRANT_PER_UNDO: u64 = 8;
const GRANT_PER_RECORDS: u64 = 16;
const GRANT_PER_PAGES: u64 = 4;
/// What each of them has at least.
const LEAST_BYTES: u64 = 512 << 10;

/// Bounds of a recovery.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Memory in bytes; about a quarter of it stays in use afterwards.
    pub grant_bytes: u64,
    /// Folder for temporary files; the system's without one.
    pub temp_dir: Option<PathBuf>,
    /// The database has row versions of accelerated database recovery: they say what open transactions leave, so that these
    /// are not taken back.
    pub has_version_store: bool,
}

impl Settings {
    /// For the table of pages, which recovery can do without.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.grant_bytes / GRANT_PER_TABLE
    }

    /// For the list of transactions that are open at a time.
    pub(crate) fn open_bytes(&self) -> u64 {
        self.part(GRANT_PER_TABLE)
    }

    /// For the list of what is to be taken back.
    pub(crate) fn undo_bytes(&self) -> usize {
        self.part(GRANT_PER_UNDO) as usize
    }

    /// For records that are to be redone, and again for those that are to be taken back.
    pub(crate) fn record_bytes(&self) -> usize {
        self.part(GRANT_PER_RECORDS) as usize
    }

    /// For pages.
    pub(crate) fn page_bytes(&self) -> usize {
        self.part(GRANT_PER_PAGES) as usize
    }

    fn part(&self, of: u64) -> u64 {
        (self.grant_bytes / of).max(LEAST_BYTES)
    }
}
