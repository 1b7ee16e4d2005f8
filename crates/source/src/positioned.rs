//! Reads at a given offset of a file. Such reads share no file cursor, so several threads can read without a lock.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::changes::{ChangeKind, FileState};
use crate::storage::{self, Object};

#[cfg(target_os = "linux")]
use crate::announcements::Announcements;

#[cfg(any(windows, test))]
mod handles;

#[cfg(windows)]
use handles::Handles;

/// Reads from `offset` until `buffer` is full or the file ends. Returns the number of bytes read.
///
/// # Errors
/// Errors of the operating system. An interrupted read is repeated instead.
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

/// Bytes that several threads can read at any offset at the same time.
pub trait ReadAt {
    /// Reads at least one byte from `offset`, or none at the end.
    ///
    /// # Errors
    /// Errors of the operating system.
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

/// A file, or an object in object storage, that many threads can read at the same time.
#[derive(Debug)]
pub struct SharedFile(Shared);

#[derive(Debug)]
enum Shared {
    Local(LocalFile),
    Object(Arc<dyn Object>),
}

/// A file of the local system.
#[derive(Debug)]
struct LocalFile {
    file: File,
    /// Whether the length of the file was 0 when it was opened. Such a file is never read. Some files in /proc report a
    /// length of 0 although they have content, and reading some of these files blocks forever.
    is_empty: bool,
    /// The state of the file when it was opened.
    opened: Option<FileState>,
    /// Further handles of the file, because Windows serializes the reads of one handle.
    #[cfg(windows)]
    handles: Option<Handles>,
    #[cfg(target_os = "linux")]
    announcements: Announcements,
}

impl SharedFile {
    /// Whether the system reads ahead after an announcement.
    pub(crate) fn is_read_ahead(&self) -> bool {
        cfg!(target_os = "linux") && matches!(self.0, Shared::Local(_))
    }

    /// Whether the range of the last announcement was in the system's cache.
    pub(crate) fn is_in_memory(&self) -> bool {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Shared::Local(local) => local.announcements.is_in_memory(),
            _ => false,
        }
    }

    /// Opens a file in such a mode that other programs may write, rename and delete it.
    ///
    /// # Errors
    /// Errors of the operating system or of the object storage.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, Cache::Used)
    }

    /// Like [`Self::open`], with or without the system's cache. Objects have no such cache.
    pub(crate) fn open_with(path: &Path, cache: Cache) -> io::Result<Self> {
        if let Some(storage) = storage::of(path) {
            return storage.and_then(|(storage, url)| storage.open(url)).map(Shared::Object).map(Self);
        }
        let file = options(cache)?.open(path)?;
        Ok(Self(Shared::Local(LocalFile {
            #[cfg(windows)]
            handles: Some(Handles::new(path, options(cache)?, &file)?),
            #[cfg(target_os = "linux")]
            announcements: Announcements::default(),
            is_empty: file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0),
            opened: FileState::of(&file),
            file,
        })))
    }

    /// Length of the file in bytes.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn length(&self) -> io::Result<u64> {
        match &self.0 {
            Shared::Local(local) => Ok(local.file.metadata()?.len()),
            Shared::Object(object) => Ok(object.length()),
        }
    }

    /// What has changed about the local file with this path since it was opened; `None` if nothing has. All bytes of an
    /// object come from one version, so an object never changes.
    pub fn change(&self, path: &Path) -> Option<ChangeKind> {
        match &self.0 {
            Shared::Local(local) => local.opened.and_then(|state| state.change(&local.file, path)),
            Shared::Object(_) => None,
        }
    }

    /// The offset of the first hole of the file, or a lower bound of that offset. A hole is a range that has no disk
    /// space and reads as zeros.
    pub(crate) fn first_hole(&self) -> Option<u64> {
        let Shared::Local(local) = &self.0 else { return None };
        let metadata = local.file.metadata().ok()?;
        // The number of allocated blocks cannot be used to detect holes, because on a compressing file system every
        // file has fewer blocks than its length needs.
        #[cfg(target_os = "linux")]
        {
            let hole = rustix::fs::seek(&local.file, rustix::fs::SeekFrom::Hole(0));
            hole.ok().filter(|at| *at < metadata.len())
        }
        #[cfg(not(any(target_os = "linux", windows)))]
        {
            let _ = metadata;
            None
        }
        #[cfg(windows)]
        {
            const SPARSE: u32 = 0x200;
            (std::os::windows::fs::MetadataExt::file_attributes(&metadata) & SPARSE != 0).then_some(0)
        }
    }
}

/// A file opened by the caller; its path is unknown, so no further handles can be opened.
impl From<File> for SharedFile {
    fn from(file: File) -> Self {
        Self(Shared::Local(LocalFile {
            opened: None,
            file,
            is_empty: false,
            #[cfg(windows)]
            handles: None,
            #[cfg(target_os = "linux")]
            announcements: Announcements::default(),
        }))
    }
}

impl ReadAt for SharedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.0 {
            Shared::Local(local) if local.is_empty => Ok(0),
            Shared::Local(local) => local.read_at(buffer, offset),
            Shared::Object(object) => object.read_at(buffer, offset),
        }
    }
}

impl ReadAt for LocalFile {
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

/// Whether reads use the system's cache.
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
    /// The flag makes Windows read ahead and free the cached data after it was read.
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

/// Announces that bytes will be read soon. This is a hint; its failure does no harm.
pub(crate) fn will_need(file: &SharedFile, offset: u64, bytes: u64) {
    match &file.0 {
        Shared::Local(local) => local_will_need(local, offset, bytes),
        Shared::Object(object) => object.prefetch(offset, bytes),
    }
}

#[cfg(target_os = "linux")]
fn local_will_need(local: &LocalFile, offset: u64, bytes: u64) {
    // To guess whether the range is in the system's cache, three of its bytes are tested: the first, the middle and the
    // last. A wrong guess costs only speed.
    let last = bytes.saturating_sub(1);
    let places = [0, last / 2, last].map(|place| offset.saturating_add(place));
    if local.announcements.is_due(bytes, || places.into_iter().all(|place| is_in_memory(&local.file, place))) {
        let bytes = std::num::NonZeroU64::new(bytes);
        let _ = rustix::fs::fadvise(&local.file, offset, bytes, rustix::fs::Advice::WillNeed);
    }
}

/// Whether the byte at `offset` can be read without waiting for a disk. After the end of the file, the result is true.
/// If the file system cannot tell, the result is false.
#[cfg(target_os = "linux")]
fn is_in_memory(file: &File, offset: u64) -> bool {
    let mut byte = [0];
    let mut buffers = [io::IoSliceMut::new(&mut byte)];
    rustix::io::preadv2(file, &mut buffers, offset, rustix::io::ReadWriteFlags::NOWAIT).is_ok()
}

/// This operating system has no call to announce reads.
#[cfg(not(target_os = "linux"))]
fn local_will_need(_local: &LocalFile, _offset: u64, _bytes: u64) {}

/// A file that is read sequentially from its start to its end.
#[derive(Debug)]
pub struct FromStart {
    file: SharedFile,
    at: u64,
}

impl FromStart {
    /// Reads `file` from its first byte.
    pub fn new(file: SharedFile) -> Self {
        Self { file, at: 0 }
    }
}

impl io::Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_length_is_empty_whatever_the_system_would_bring() {
        let file = SharedFile::open(Path::new("/proc/self/status")).unwrap();
        assert_eq!(read_fully_at(&file, &mut [0; 8], 0).unwrap(), 0);
    }
}
