//! Counts the connections of this process to history files.
//!
//! When a process closes any descriptor of a file, the operating system drops all locks that the process holds on that
//! file (`fcntl`, POSIX). SQLite takes care not to close a descriptor of its own while it needs a lock, but it cannot
//! see descriptors of other code. So while a connection exists, other code in the process must not open and close the
//! file (SQLite, "How To Corrupt An SQLite Database File", 2.2).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of connections to each file.
static CONNECTIONS: Mutex<BTreeMap<PathBuf, u64>> = Mutex::new(BTreeMap::new());

fn all() -> MutexGuard<'static, BTreeMap<PathBuf, u64>> {
    CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An entry in the count of connections, for one connection. The entry is created before the connection is opened, and
/// dropped after the connection is closed.
#[derive(Debug)]
pub(super) struct Own {
    file: PathBuf,
}

impl Own {
    /// Counts a connection to the file at `path`. If the process has no other connection to the file, calls `look`
    /// first, which may open and read the file without SQLite.
    ///
    /// # Errors
    ///
    /// The errors of `look`.
    pub(super) fn new<E>(path: &Path, look: impl FnOnce() -> Result<(), E>) -> Result<Self, E> {
        let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut all = all();
        if !all.contains_key(&file) {
            look()?;
        }
        *all.entry(file.clone()).or_default() += 1;
        Ok(Self { file })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let mut all = all();
        if let Some(count) = all.get_mut(&self.file) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.file);
            }
        }
    }
}

/// Whether this process has a connection to the file at `path`.
pub fn is_open(path: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|file| all().contains_key(&file))
}
