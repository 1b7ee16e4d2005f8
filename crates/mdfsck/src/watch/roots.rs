//! The paths that a watcher searches. Several watchers may use the same history. This watcher ignores files in paths
//! that only other watchers search.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jobs::patterns;

/// The files and folders that a watcher searches. They need not exist.
#[derive(Clone, Default)]
pub(super) struct Roots {
    /// Files and folders that the user named. A folder includes all files and subfolders in it.
    named: Vec<PathBuf>,
    /// Pairs of a folder and a pattern relative to this folder. A folder that matches includes all files and subfolders
    /// in it.
    patterns: Vec<(PathBuf, PathBuf)>,
    /// Data files, and folders of data files without their subfolders.
    data: HashSet<PathBuf>,
}

impl Roots {
    pub(super) fn add(&mut self, path: &Path) {
        self.named.push(path.to_owned());
    }

    /// Adds a pattern inside a folder. A `*` or `?` in the path of the folder itself is an ordinary character.
    pub(super) fn add_pattern(&mut self, folder: &Path, pattern: &Path) {
        self.patterns.push((folder.to_owned(), pattern.to_owned()));
    }

    /// Adds a data file, or a folder of data files without its subfolders.
    pub(super) fn add_data(&mut self, path: &Path) {
        self.data.insert(path.to_owned());
    }

    /// Whether this watcher searches the folder of the file `path`. The file need not exist.
    pub(super) fn has(&self, path: &str) -> bool {
        let path = Path::new(path);
        self.named.iter().any(|root| path.starts_with(root))
            || self
                .patterns
                .iter()
                .any(|(folder, pattern)| path.strip_prefix(folder).is_ok_and(|path| patterns::is_below(pattern, path)))
            || self.data.contains(path)
            || path.parent().is_some_and(|folder| self.data.contains(folder))
    }

    /// Whether this watcher searches the folder of at least one of these files.
    pub(super) fn have_any(&self, paths: &[String]) -> bool {
        paths.iter().any(|path| self.has(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_elsewhere_is_no_business_of_this_watcher() {
        let mut roots = Roots::default();
        roots.add(Path::new("/a"));
        roots.add(Path::new("s3://bucket/full"));
        roots.add_pattern(Path::new("/b"), Path::new("*/x?.bak"));
        roots.add_pattern(Path::new("/what?"), Path::new("*.bak"));
        roots.add_data(Path::new("/d/s.mdf"));
        for path in [
            "/a/1.bak",
            "/a/sub/1.bak",
            "s3://bucket/full/1.bak",
            "/b/c/x1.bak",
            "/b/c/x1.bak/2",
            "/d/s.mdf",
            "/what?/1.bak",
        ] {
            assert!(roots.has(path), "{path}");
        }
        for path in ["/aa/1.bak", "/1.bak", "s3://bucket/1.bak", "/b/x1.bak", "/b/c/x.bak", "/d/t.mdf", "/what2/1.bak"]
        {
            assert!(!roots.has(path), "{path}");
        }
    }
}
