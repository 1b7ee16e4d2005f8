//! Changes of files while they are read. A program that writes to a file changes its length or its times, so the state
//! of a file when it was opened is compared with its present state.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file that has changed since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Path of the file.
    pub path: PathBuf,
    /// What has changed.
    pub kind: ChangeKind,
}

/// What has changed about a file. The most certain evidence comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// The time of the last write has changed.
    Written,
    /// The length has changed from the first to the second number of bytes.
    Resized(u64, u64),
    /// The first pages of the file have changed, although its length and times have not.
    Content,
    /// Only the time of the last status change differs. A program that writes to a file and then restores the time of
    /// the last write leaves this trace, and so does a program that renames the file or changes its permissions.
    Attributes,
}

impl FileChange {
    /// Whether the content of the file has changed for certain.
    pub fn is_of_content(&self) -> bool {
        self.kind != ChangeKind::Attributes
    }

    /// A clause without a subject: "was written to while it was read".
    pub fn what(&self) -> String {
        match self.kind {
            ChangeKind::Written => "was written to while it was read".to_owned(),
            ChangeKind::Resized(from, to) if to > from => {
                format!("has grown from {from} to {to} bytes while it was read")
            }
            ChangeKind::Resized(from, to) => format!("has shrunk from {from} to {to} bytes while it was read"),
            ChangeKind::Content => "has other first pages than when it was opened".to_owned(),
            ChangeKind::Attributes => "may have been written to while it was read: its status has changed".to_owned(),
        }
    }
}

/// The state of an open file, as the operating system reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    bytes: u64,
    modified: Option<SystemTime>,
    /// The time of the last change of content or status, in seconds and nanoseconds. Programs cannot set this time.
    status_changed: Option<(i64, i64)>,
    /// Device and number of the file.
    identity: Option<(u64, u64)>,
    /// Whether no path leads to the file any more.
    is_deleted: bool,
}

impl FileState {
    /// The present state of a regular file; `None` for devices, pipes and files about which the system does not report.
    pub(crate) fn of(file: &File) -> Option<Self> {
        file.metadata().ok().filter(Metadata::is_file).map(|metadata| Self::from(&metadata))
    }

    /// The difference between the state of a file when it was opened and its present state. The `path` of the file is
    /// opened again, because some network file systems only then report the present state. A path that now leads to
    /// another file is ignored: the opened file was replaced, but its bytes have not changed.
    pub(crate) fn change(self, file: &File, path: &Path) -> Option<ChangeKind> {
        let again = File::open(path).ok().and_then(|file| Self::of(&file));
        let again = again.filter(|again| again.identity.is_some() && again.identity == self.identity);
        let states = [Self::of(file), again];
        states.into_iter().flatten().filter_map(|now| self.difference(now)).min()
    }

    fn difference(self, now: Self) -> Option<ChangeKind> {
        if self.bytes != now.bytes {
            return Some(ChangeKind::Resized(self.bytes, now.bytes));
        }
        if self.modified != now.modified {
            return Some(ChangeKind::Written);
        }
        // Deleting or replacing a file changes its status, but not the bytes of the opened file.
        (self.status_changed != now.status_changed && !now.is_deleted).then_some(ChangeKind::Attributes)
    }
}

#[cfg(unix)]
impl From<&Metadata> for FileState {
    fn from(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            status_changed: Some((metadata.ctime(), metadata.ctime_nsec())),
            identity: Some((metadata.dev(), metadata.ino())),
            is_deleted: metadata.nlink() == 0,
        }
    }
}

#[cfg(not(unix))]
impl From<&Metadata> for FileState {
    fn from(metadata: &Metadata) -> Self {
        let (bytes, modified) = (metadata.len(), metadata.modified().ok());
        Self { bytes, modified, status_changed: None, identity: None, is_deleted: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::time::Duration;

    fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mdf");
        std::fs::write(&path, bytes).unwrap();
        let past = SystemTime::now() - Duration::from_secs(60);
        File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
        (folder, path)
    }

    #[test]
    fn a_write_a_growth_and_a_cut_are_changes() {
        let (_folder, path) = written(&[1; 100]);
        let opened = File::open(&path).unwrap();
        let state = FileState::of(&opened).unwrap();
        assert_eq!(state.change(&opened, &path), None);
        let mut writer = File::options().write(true).open(&path).unwrap();
        writer.write_all(&[2]).unwrap();
        assert_eq!(state.change(&opened, &path), Some(ChangeKind::Written));
        writer.set_len(101).unwrap();
        assert_eq!(state.change(&opened, &path), Some(ChangeKind::Resized(100, 101)));
        writer.set_len(1).unwrap();
        assert_eq!(state.change(&opened, &path), Some(ChangeKind::Resized(100, 1)));
    }

    #[test]
    #[cfg(unix)]
    fn a_write_whose_time_was_set_back_leaves_a_trace() {
        let (_folder, path) = written(&[1; 100]);
        let opened = File::open(&path).unwrap();
        let state = FileState::of(&opened).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let mut writer = File::options().write(true).open(&path).unwrap();
        writer.write_all(&[2]).unwrap();
        writer.set_modified(state.modified.unwrap()).unwrap();
        assert_eq!(state.change(&opened, &path), Some(ChangeKind::Attributes));
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_was_replaced_has_not_changed() {
        let (folder, path) = written(&[1; 100]);
        let opened = File::open(&path).unwrap();
        let state = FileState::of(&opened).unwrap();
        let other = folder.path().join("b.mdf");
        std::fs::write(&other, [2; 200]).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(state.change(&opened, &path), None);
    }
}
