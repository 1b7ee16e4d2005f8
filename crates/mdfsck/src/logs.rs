//! Log files of a database, by name: from the catalog, and by the usual names beside the data files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use catalog::Database;
use report::info::LogFile;
use source::PageSource;

/// sysprufiles.filetype of a log.
const LOG: u8 = 1;

/// The logs named in the catalog, found or not, and those beside the data files under usual names.
pub(crate) fn find(source: &dyn PageSource, database: &Database) -> Vec<LogFile> {
    let beside = files_beside(source);
    let lookup = |name: &str| {
        let is_named = |path: &&PathBuf| {
            path.file_name().is_some_and(|found| found.to_string_lossy().to_lowercase() == name.to_lowercase())
        };
        beside.iter().find(is_named).cloned()
    };
    let mut logs: Vec<LogFile> = Vec::new();
    for row in database.files.iter().filter(|row| row.file_type == LOG) {
        let name = row.physical_name.rsplit(['\\', '/']).next().unwrap_or_default().to_owned();
        logs.push(LogFile { path: lookup(&name), name });
    }
    for file in source.files() {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
        for name in [format!("{stem}_log.ldf"), format!("{stem}.ldf")] {
            let is_new = |path: &PathBuf| logs.iter().all(|log| log.path.as_ref() != Some(path));
            if let Some(path) = lookup(&name).filter(is_new) {
                logs.push(LogFile {
                    name: path.file_name().unwrap_or_default().to_string_lossy().into(),
                    path: Some(path),
                });
            }
        }
    }
    logs
}

/// All files in the folders of the data files.
fn files_beside(source: &dyn PageSource) -> BTreeSet<PathBuf> {
    let folder = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let folders: BTreeSet<PathBuf> = source.files().iter().map(|file| folder(&file.path)).collect();
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}
