//! Hashes of the first pages of data files, which show changes that neither the length nor the times of a file show.

use std::hash::{DefaultHasher, Hasher};

use format::PageId;
use format::page::PAGE_BYTES;

use crate::positioned::{SharedFile, read_fully_at};

/// The number of bytes at the start of a data file that are read again to see whether they have changed. A server writes
/// to the boot page, which is among these pages, at each checkpoint.
const START_BYTES: usize = (PageId::BOOT.page as usize + 1) * PAGE_BYTES;

/// A hash of the first pages of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartHash(u64);

impl StartHash {
    /// Hashes the first pages of a file. The result for pages that cannot be read is the same each time, because the
    /// failed read is reported by itself.
    pub(crate) fn of(file: &SharedFile) -> Self {
        let mut start = vec![0; START_BYTES];
        let read = read_fully_at(file, &mut start, 0).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        hasher.write(start.get(..read).unwrap_or_default());
        Self(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn other_first_pages_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mdf");
        std::fs::write(&path, [1; 100]).unwrap();
        let file = SharedFile::open(&path).unwrap();
        let start = StartHash::of(&file);
        assert_eq!(StartHash::of(&file), start);
        File::options().write(true).open(&path).unwrap().write_all(&[2]).unwrap();
        assert_ne!(StartHash::of(&file), start);
    }
}
