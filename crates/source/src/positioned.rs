//! Positioned reads: no shared cursor, so that threads need no lock.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

#[cfg(any(windows, test))]
mod handles;

#[cfg(windows)]
use handles::Handles;

/// Reads from `offset` on until `buffer` is full or the file ends; returns the bytes read.
///
/// # Errors
/// Those of the system; an interrupted read is repeated.
pub fn read_fully_at(file: &(impl ReadAt + ?Sized), buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(buffer.get_mut(done..).unwrap_or_default(), offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// What can be read at any place, by several threads at once.
pub trait ReadAt {
    /// Reads at least one byte from `offset` on, none at the end.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }
}

/// A file that many threads read at once.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: File,
    /// Windows lets the reads of one handle wait for each other.
    #[cfg(windows)]
    handles: Option<Handles>,
}

impl SharedFile {
    /// Opens a file, so that others may write, rename and delete it.
    pub(crate) fn open(path: &Path, cache: Cache) -> io::Result<Self> {
        let file = options(cache)?.open(path)?;
        Ok(Self {
            #[cfg(windows)]
            handles: Some(Handles::new(path, options(cache)?, &file)?),
            file,
        })
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

/// A file without a name of its own.
impl From<File> for SharedFile {
    fn from(file: File) -> Self {
        Self {
            file,
            #[cfg(windows)]
            handles: None,
        }
    }
}

impl ReadAt for SharedFile {
    #[cfg(not(windows))]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.handles {
            Some(handles) => handles.read_at(&self.file, buffer, offset),
            None => self.file.read_at(buffer, offset),
        }
    }
}

/// Whether reads go through the system's cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    Used,
    Bypassed,
}

#[cfg(target_os = "linux")]
fn options(cache: Cache) -> io::Result<OpenOptions> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.read(true);
    if cache == Cache::Bypassed {
        options.custom_flags(rustix::fs::OFlags::DIRECT.bits().cast_signed());
    }
    Ok(options)
}

#[cfg(windows)]
fn options(cache: Cache) -> io::Result<OpenOptions> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_NO_BUFFERING: u32 = 0x2000_0000;
    /// Read ahead, and let go what was read.
    const FILE_FLAG_SEQUENTIAL_SCAN: u32 = 0x0800_0000;
    let mut options = File::options();
    options.read(true).custom_flags(match cache {
        Cache::Used => FILE_FLAG_SEQUENTIAL_SCAN,
        Cache::Bypassed => FILE_FLAG_NO_BUFFERING,
    });
    Ok(options)
}

#[cfg(not(any(target_os = "linux", windows)))]
fn options(cache: Cache) -> io::Result<OpenOptions> {
    if cache == Cache::Bypassed {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "not supported on this system"));
    }
    let mut options = File::options();
    options.read(true);
    Ok(options)
}

/// Announces that bytes will be read soon: a hint, which may fail without harm.
#[cfg(target_os = "linux")]
pub(crate) fn will_need(file: &SharedFile, offset: u64, bytes: u64) {
    let _ = rustix::fs::fadvise(&file.file, offset, std::num::NonZeroU64::new(bytes), rustix::fs::Advice::WillNeed);
}

/// Announces that bytes will be read soon; this system has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn will_need(_file: &SharedFile, _offset: u64, _bytes: u64) {}
