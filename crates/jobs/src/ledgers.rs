//! The files beside a history that have what checks have added up: the ledger of each full backup, and what was kept of
//! redo for its log backups.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use findings::Scope;
use twox_hash::XxHash64;

use crate::keep::parts_beside;

/// The extension of the file of a ledger.
const EXTENSION: &str = "ledger";
/// The extension of the file beside a ledger that has what was kept of redo.
const REDO_EXTENSION: &str = "redo";

/// Whether there is a ledger of a set.
pub fn has_ledger(history: &Path, set: &str) -> bool {
    path_of(history, set).exists()
}

/// The path of the ledger of a full backup, given the GUID of its set.
pub fn path_of(history: &Path, set: &str) -> PathBuf {
    let name: String = set.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
    parts_beside(history).join(name).with_extension(EXTENSION)
}

/// The objects to which windows are confined, as text; empty for the whole database.
pub(crate) fn scope_name(scope: &Scope) -> String {
    match scope {
        Scope::Tables(objects) => {
            let objects: Vec<String> = objects.iter().map(i32::to_string).collect();
            format!("tables {}", objects.join(","))
        }
        Scope::Filegroup(filegroup) => format!("filegroup {filegroup}"),
        Scope::Database | Scope::Allocation | Scope::Catalog => String::new(),
    }
}

/// The path of the ledger of windows over some objects only. Their sums are of no use to other checks.
pub(crate) fn path_in_scope(history: &Path, set: &str, scope: &Scope) -> PathBuf {
    match scope_name(scope) {
        name if name.is_empty() => path_of(history, set),
        name => path_of(history, &format!("{set}-{:016x}", XxHash64::oneshot(0, name.as_bytes()))),
    }
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
