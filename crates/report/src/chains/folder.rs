//! The folder that all files of a database share. The text prints it only once.

use std::path::{Path, PathBuf};

use source::backup::{ChainSet, DatabaseChains};

/// The deepest folder that contains all files of a database; empty if the files share no folder.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn of(database: &DatabaseChains) -> Self {
        let folder_of = |path: &PathBuf| path.parent().map(Path::to_owned).unwrap_or_default();
        let mut folders = database.sets.iter().flat_map(|set| &set.paths).map(folder_of);
        let mut common = folders.next().unwrap_or_default();
        for folder in folders {
            while !folder.starts_with(&common) && common.pop() {}
        }
        // The root of a file system is not worth printing.
        Self(if common.parent().is_none() { PathBuf::new() } else { common })
    }

    /// The folder's name; `None` if it is the working folder, or if there is no common folder.
    pub(super) fn name(&self) -> Option<String> {
        (!self.0.as_os_str().is_empty()).then(|| self.0.display().to_string())
    }

    /// The names of a set's files, relative to the folder. If the set is not the first in its files, the first name is
    /// followed by the set's number.
    pub(super) fn files(&self, set: &ChainSet) -> Vec<String> {
        let mut names: Vec<String> = set.paths.iter().map(|path| self.file(path)).collect();
        let number = (set.set.position > 1).then(|| format!(" (FILE = {})", set.set.position));
        if let (Some(first), Some(number)) = (names.first_mut(), number) {
            first.push_str(&number);
        }
        names
    }

    pub(super) fn file(&self, path: &Path) -> String {
        path.strip_prefix(&self.0).unwrap_or(path).display().to_string()
    }
}
