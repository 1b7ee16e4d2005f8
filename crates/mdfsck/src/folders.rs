//! Files named on the command line, one by one or by their folder.

use std::path::{Path, PathBuf};

use source::{SharedFile, storage};

use crate::failure::Failure;

/// The files named, and those in the folders named that are wanted, by name. `what` says what these are.
///
/// # Errors
/// If a folder cannot be read, or holds no such file.
pub(crate) fn files(paths: &[PathBuf], what: &str, is_wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Failure> {
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
        // Whether it is one that is wanted is not known.
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
