//! Expands the folders among the paths on the command line into files.

use std::path::{Path, PathBuf};

use source::{SharedFile, storage};

use crate::failure::Failure;

/// Maximum depth of the search in folders. The limit is sufficient because backup jobs use one folder per database and
/// kind of backup.
pub const MAX_DEPTH: usize = 8;

/// Replaces each named folder by the folder itself and all its subfolders. Leaves out folders that contain no files.
/// But a named folder stays in the list if nothing would replace it.
///
/// # Errors
/// If folders are nested deeper than [`MAX_DEPTH`].
pub fn with_subfolders(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        let before = all.len();
        if storage::is_folder(path) {
            add_folder(path, MAX_DEPTH, &mut all)?;
        }
        // If a named folder and its subfolders contain no files, keeps the folder, so that opening it reports the
        // problem.
        if all.len() == before {
            all.push(path.clone());
        }
    }
    Ok(all)
}

fn add_folder(folder: &Path, depth: usize, all: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let Ok(mut entries) = storage::list(folder) else {
        all.push(folder.to_owned());
        return Ok(());
    };
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    if entries.iter().any(|entry| !entry.is_folder) {
        all.push(folder.to_owned());
    }
    for entry in entries.iter().filter(|entry| entry.is_folder) {
        let Some(depth) = depth.checked_sub(1) else {
            let path = entry.path.display();
            return Err(Failure::unable(format!(
                "{path}: is more than {MAX_DEPTH} folders deep and was not searched; give this folder too"
            )));
        };
        add_folder(&entry.path, depth, all)?;
    }
    Ok(())
}

/// The named files, and from each named folder the files for which `is_wanted` is true, sorted by name. `what`
/// describes these files in error messages.
///
/// # Errors
/// If a folder cannot be read, or holds no such file.
pub fn files(paths: &[PathBuf], what: &str, is_wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !storage::is_folder(path) {
            files.push(path.clone());
            continue;
        }
        let failed = |error: std::io::Error| Failure::unable(format!("{}: cannot be read: {error}", path.display()));
        let (mut found, mut unreadable) = (Vec::new(), None);
        for file in storage::files_among(storage::list(path).map_err(failed)?) {
            if is_wanted(&file) {
                found.push(file);
            } else if let (None, Err(cause)) = (&unreadable, SharedFile::open(&file)) {
                unreadable = Some((file, cause));
            }
        }
        // If nothing was found, reports the first unreadable file, which may be the one that the user meant.
        if let (true, Some((file, cause))) = (found.is_empty(), &unreadable) {
            let remedy = source::remedy(cause);
            return Err(Failure::unable(format!("{}: cannot be read: {cause}{remedy}", file.display())));
        }
        if found.is_empty() {
            return Err(Failure::unable(format!("{}: no {what} in this folder", path.display())));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// Joins paths with commas.
pub fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
