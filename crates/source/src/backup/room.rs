//! Limits for opening a backup: memory, and as many objects of each kind as a server can write. Anything beyond them is
//! refused before it is stored.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::path::Path;

use crate::{OpenError, PROGRAM_BYTES};

/// Files of one database, and its filegroups: 32,767 each
/// (learn.microsoft.com/sql/sql-server/maximum-capacity-specifications-for-sql-server).
pub(super) const MOST_FILES: usize = 32_767;
/// Backup devices of one backup: 64 (the page of BACKUP in the documentation of Transact-SQL).
pub(super) const MOST_STRIPES: u16 = 64;
/// Regions of pages of one set in one stripe: one, and one for the extents that changed meanwhile
/// (docs/format/backups.md#where-the-pages-are). No more than these two have been seen.
pub(super) const MOST_REGIONS: usize = 1024;
/// Objects of one configuration: two per file, and some for the set.
pub(super) const MOST_OBJECTS: usize = 4 * MOST_FILES;

/// Memory without a grant, in addition to a fraction of the backup's own size.
const DEFAULT_BYTES: u64 = 56 << 20;
/// Without a grant, bytes of the backup per byte of memory. A sound backup needs a fiftieth of that.
const BYTES_PER_BYTE: u64 = 16;

/// The memory allowance for a backup.
#[derive(Debug)]
pub(super) struct Room {
    granted: Option<u64>,
    limit: u64,
    used: Cell<u64>,
}

impl Room {
    /// An allowance of `granted` bytes; without a grant, in proportion to the `size` of the backup in bytes.
    pub(super) fn new(granted: Option<u64>, size: u64) -> Self {
        let limit = granted.map_or(DEFAULT_BYTES + size / BYTES_PER_BYTE, |bytes| bytes.saturating_sub(PROGRAM_BYTES));
        Self { granted, limit, used: Cell::new(0) }
    }

    /// Reserves this many bytes for `what`.
    ///
    /// # Errors
    /// An error that [`open_error`] knows, if too little memory is left.
    pub(super) fn take(&self, bytes: usize, what: &'static str) -> io::Result<()> {
        let used = self.used.get().saturating_add(bytes as u64);
        if used > self.limit {
            return Err(io::Error::other(Refusal::NoRoom { what, granted: self.granted, limit: self.limit }));
        }
        self.used.set(used);
        Ok(())
    }

    /// Gives back reserved bytes.
    pub(super) fn give_back(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes as u64));
    }
}

/// Why a readable backup is not opened.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    NoRoom { what: &'static str, granted: Option<u64>, limit: u64 },
    TooMany { what: &'static str, limit: usize, at: u64 },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom { what, .. } => write!(f, "no room for {what}"),
            Self::TooMany { what, limit, .. } => write!(f, "more than {limit} {what}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Refuses more than `limit` of something, at this place of the tape.
///
/// # Errors
/// An error that [`open_error`] knows, if `count` exceeds `limit`.
pub(super) fn at_most(limit: usize, count: usize, what: &'static str, at: u64) -> io::Result<()> {
    match count > limit {
        true => Err(io::Error::other(Refusal::TooMany { what, limit, at })),
        false => Ok(()),
    }
}

/// Why the backup at `path` could not be opened.
pub(super) fn open_error(path: &Path, cause: io::Error) -> OpenError {
    let path = path.to_owned();
    match cause.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()) {
        Some(&Refusal::NoRoom { what, granted, limit }) => OpenError::BackupTooLarge { path, what, granted, limit },
        Some(&Refusal::TooMany { what, limit, at }) => OpenError::BackupImpossible { path, what, limit, at },
        None => OpenError::Io { path, cause },
    }
}
