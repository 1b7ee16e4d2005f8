//! Limits for opening a backup: a memory limit, and for each kind of object the maximum number that a server can write.
//! A backup that exceeds a limit is refused before its objects are stored.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::path::Path;

use super::groups::Groups;
use super::hints::Hints;
use super::media::Media;
use super::placement::{Placed, Stripes};
use crate::{OpenError, PROGRAM_BYTES};

/// The most files of one database, and also the most filegroups of one database: 32,767 each
/// (learn.microsoft.com/sql/sql-server/maximum-capacity-specifications-for-sql-server).
pub(super) const MOST_FILES: usize = 32_767;
/// The most backup devices of one backup: 64, according to the Transact-SQL reference for BACKUP.
pub(super) const MOST_STRIPES: u16 = 64;
/// The most page regions of one set in one stripe. Only two have been seen: one for all extents, and one for the
/// extents that changed during the backup (docs/format/backups.md#where-the-pages-are).
pub(super) const MOST_REGIONS: usize = 1024;
/// The most objects in one configuration. A configuration has at most two objects per file, and a few for the set.
pub(super) const MOST_OBJECTS: usize = 4 * MOST_FILES;

/// The memory limit in bytes if no memory was granted. A fraction of the backup's size is added to it.
const DEFAULT_BYTES: u64 = 56 << 20;
/// If no memory was granted, the limit grows by one byte per this number of bytes of the backup. An undamaged backup
/// needs a fiftieth of this additional memory.
const BYTES_PER_BYTE: u64 = 16;

/// The memory limit for a backup, and the amount of memory that is already reserved.
#[derive(Debug)]
pub(super) struct Room {
    granted: Option<u64>,
    limit: u64,
    used: Cell<u64>,
    /// What an earlier opening has found.
    hints: Hints,
    /// Whether a hint was used.
    is_hinted: Cell<bool>,
}

impl Room {
    /// A limit of `granted` bytes. Without a grant, the limit depends on `size`, the length of the backup in bytes.
    pub(super) fn new(granted: Option<u64>, size: u64) -> Self {
        let limit = granted.map_or(DEFAULT_BYTES + size / BYTES_PER_BYTE, |bytes| bytes.saturating_sub(PROGRAM_BYTES));
        Self { granted, limit, used: Cell::new(0), hints: Hints::default(), is_hinted: Cell::new(false) }
    }

    /// Uses what an earlier opening of the same files has found.
    pub(super) fn with_hints(self, hints: &Hints) -> Self {
        Self { hints: hints.clone(), ..self }
    }

    /// The index of a compressed file, if it is known.
    pub(super) fn index(&self, path: &Path, length: u64) -> Option<Groups> {
        let index = self.hints.index(path, length);
        self.is_hinted.set(self.is_hinted.get() || index.is_some());
        index
    }

    /// The places of the extents of a set, if they are known.
    pub(super) fn places(&self, media: &[Media], stripes: &Stripes<'_>) -> Option<Placed> {
        let places = self.hints.places(media, stripes);
        self.is_hinted.set(self.is_hinted.get() || places.is_some());
        places
    }

    /// Whether a hint was used.
    pub(super) fn is_hinted(&self) -> bool {
        self.is_hinted.get()
    }

    /// Reserves `bytes` bytes for `what`.
    ///
    /// # Errors
    /// An error that [`open_error`] recognizes, if the limit is exceeded.
    pub(super) fn take(&self, bytes: usize, what: &'static str) -> io::Result<()> {
        let used = self.used.get().saturating_add(bytes as u64);
        if used > self.limit {
            return Err(io::Error::other(Refusal::NoRoom { what, granted: self.granted, limit: self.limit }));
        }
        self.used.set(used);
        Ok(())
    }

    /// Releases reserved bytes.
    pub(super) fn give_back(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes as u64));
    }
}

/// The reason why a backup that can be read is refused.
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

/// Returns an error if `count` objects of the kind `what` are more than `limit`. `at` is the tape offset of the
/// objects.
///
/// # Errors
/// An error that [`open_error`] recognizes, if `count` exceeds `limit`.
pub(super) fn at_most(limit: usize, count: usize, what: &'static str, at: u64) -> io::Result<()> {
    match count > limit {
        true => Err(io::Error::other(Refusal::TooMany { what, limit, at })),
        false => Ok(()),
    }
}

/// The error for a backup at `path` that could not be opened.
pub(super) fn open_error(path: &Path, cause: io::Error) -> OpenError {
    let path = path.to_owned();
    match cause.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()) {
        Some(&Refusal::NoRoom { what, granted, limit }) => OpenError::BackupTooLarge { path, what, granted, limit },
        Some(&Refusal::TooMany { what, limit, at }) => OpenError::BackupImpossible { path, what, limit, at },
        None => OpenError::Io { path, cause },
    }
}
