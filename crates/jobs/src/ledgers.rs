//! The files beside a history that have what checks have added up: the ledger of each full backup, and what was kept of
//! redo for its log backups.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::keep::parts_beside;
use crate::spread::evidence::FileIdentity;

/// The extension of the file of a ledger.
const EXTENSION: &str = "ledger";
/// The extension of the file beside a ledger that has what was kept of redo.
const REDO_EXTENSION: &str = "redo";

/// The full backup on which a ledger builds.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    /// The GUID of the set.
    pub(crate) set: String,
    /// The name of the database.
    pub(crate) database: String,
    /// The set for people: its kind, and when it finished.
    pub(crate) label: String,
    pub(crate) files: Vec<FileIdentity>,
    /// The largest size of the ledger.
    pub(crate) most_bytes: u64,
}

/// Whether there is a ledger of a set.
pub fn has_ledger(history: &Path, set: &str) -> bool {
    path_of(history, set).exists()
}

/// The path of the ledger of a full backup, given the GUID of its set.
pub fn path_of(history: &Path, set: &str) -> PathBuf {
    let name: String = set.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
    parts_beside(history).join(name).with_extension(EXTENSION)
}

/// The file beside a ledger that has what was kept of redo.
pub(crate) fn redo_beside(ledger: &Path) -> PathBuf {
    ledger.with_extension(REDO_EXTENSION)
}

/// The ledgers beside a history, each with the time at which it was changed last and its size.
pub(crate) fn ledgers(history: &Path) -> Vec<(SystemTime, PathBuf, u64)> {
    files_of(history, EXTENSION)
}

/// The files with this extension beside a history, as [`ledgers`].
fn files_of(history: &Path, extension: &str) -> Vec<(SystemTime, PathBuf, u64)> {
    let entries = fs::read_dir(parts_beside(history)).into_iter().flatten().flatten();
    let of_kind = entries.filter(|entry| entry.path().extension().is_some_and(|found| found == extension));
    let found = of_kind.filter_map(|entry| {
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((metadata.modified().ok()?, entry.path(), metadata.len()))
    });
    found.collect()
}

/// Removes the ledgers that were not changed for the longest time, and what was kept of redo beside them, until the rest
/// need at most `most_bytes`. `current` remains.
pub(crate) fn remove_oldest(history: &Path, current: &Path, most_bytes: u64) {
    let mut files = ledgers(history);
    files.extend(files_of(history, REDO_EXTENSION));
    files.sort();
    let mut bytes: u64 = files.iter().map(|(.., bytes)| bytes).sum();
    for (_, path, size) in files.iter().filter(|(_, path, _)| path != current) {
        if bytes <= most_bytes {
            break;
        }
        if fs::remove_file(path).is_ok() {
            bytes -= size;
        }
        // Without its ledger, what was kept of redo is of no use. It is one of the files, so its size is known.
        let beside = redo_beside(path);
        let size = files.iter().find(|(_, path, _)| *path == beside).map_or(0, |(.., size)| *size);
        if beside != *path && fs::remove_file(beside).is_ok() {
            bytes -= size;
        }
    }
}
