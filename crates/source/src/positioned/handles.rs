//! Further handles of one file. Windows serializes the reads of a handle, so each concurrent read uses a handle of its
//! own and does not wait for another thread's read.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::ReadAt;

/// Further handles of one file. A further handle is opened when a read begins while all existing handles are in use.
#[derive(Debug)]
pub(super) struct Handles {
    path: PathBuf,
    options: OpenOptions,
    identity: Identity,
    idle: Mutex<Idle>,
}

/// The handles that no thread is using.
#[derive(Debug, Default)]
struct Idle {
    is_first_used: bool,
    others: Vec<File>,
    /// Whether the path now names another file or can no longer be opened. If so, only the existing handles are used.
    is_gone: bool,
}

/// Properties that identify a file, to detect that its path now names another file.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    length: u64,
    created: Option<SystemTime>,
    modified: Option<SystemTime>,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self { length: metadata.len(), created: metadata.created().ok(), modified: metadata.modified().ok() }
    }
}

/// The handle that a read uses.
enum Chosen {
    /// The first handle, which no other read is using.
    First,
    /// The first handle, which other reads may be using too.
    Shared,
    Other(File),
}

impl Handles {
    /// Handles of the file at `path`. `first` is its first handle, which was opened with `options`.
    pub(super) fn new(path: &Path, options: OpenOptions, first: &File) -> io::Result<Self> {
        let identity = Identity::of(&first.metadata()?);
        // The path is made absolute because the working directory may change.
        let path = std::path::absolute(path)?;
        Ok(Self { path, options, identity, idle: Mutex::default() })
    }

    /// Reads through a handle that no other thread is using.
    pub(super) fn read_at(&self, first: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let chosen = self.choose();
        let read = match &chosen {
            Chosen::First | Chosen::Shared => first,
            Chosen::Other(other) => other,
        }
        .read_at(buffer, offset);
        self.idle(|idle| match chosen {
            Chosen::First => idle.is_first_used = false,
            Chosen::Shared => {}
            Chosen::Other(other) => idle.others.push(other),
        });
        read
    }

    fn choose(&self) -> Chosen {
        let chosen = self.idle(|idle| match (idle.is_first_used, idle.is_gone) {
            (false, _) => {
                idle.is_first_used = true;
                Some(Chosen::First)
            }
            (true, is_gone) => idle.others.pop().map(Chosen::Other).or_else(|| is_gone.then_some(Chosen::Shared)),
        });
        chosen.unwrap_or_else(|| match self.another() {
            Some(other) => Chosen::Other(other),
            None => {
                self.idle(|idle| idle.is_gone = true);
                Chosen::Shared
            }
        })
    }

    /// Opens another handle; `None` if the path now names another file or cannot be opened.
    fn another(&self) -> Option<File> {
        let file = self.options.open(&self.path).ok()?;
        let metadata = file.metadata().ok()?;
        (Identity::of(&metadata) == self.identity).then_some(file)
    }

    fn idle<T>(&self, act: impl FnOnce(&mut Idle) -> T) -> T {
        act(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn handles(path: &Path) -> (Handles, File) {
        let first = File::open(path).unwrap();
        let mut options = File::options();
        options.read(true);
        (Handles::new(path, options, &first).unwrap(), first)
    }

    /// Reads through a further handle while the first handle is in use.
    fn read(handles: &Handles, first: &File) -> [u8; 3] {
        handles.idle(|idle| idle.is_first_used = true);
        let mut bytes = [0; 3];
        assert_eq!(handles.read_at(first, &mut bytes, 1).unwrap(), 3);
        bytes
    }

    #[test]
    fn reads_at_the_same_time_have_handles_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mdf");
        fs::write(&path, b"01234").unwrap();
        let (handles, first) = handles(&path);
        let mut bytes = [0; 9];
        assert_eq!(handles.read_at(&first, &mut bytes, 3).unwrap(), 2, "up to the end");
        assert!(handles.idle(|idle| idle.others.is_empty() && !idle.is_first_used), "one handle is enough");
        assert_eq!(read(&handles, &first), *b"123");
        assert_eq!(read(&handles, &first), *b"123");
        assert_eq!(handles.idle(|idle| (idle.others.len(), idle.is_gone)), (1, false), "it is used again");
    }

    #[test]
    fn a_file_that_took_the_name_is_never_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mdf");
        fs::write(&path, b"01234").unwrap();
        let (handles, first) = handles(&path);
        fs::rename(&path, folder.path().join("old.mdf")).unwrap();
        assert_eq!(read(&handles, &first), *b"123", "no file has the name");
        handles.idle(|idle| idle.is_gone = false);
        fs::write(&path, b"56789").unwrap();
        assert_eq!(read(&handles, &first), *b"123", "another file has it");
        assert!(handles.idle(|idle| idle.others.is_empty() && idle.is_gone));
    }
}
