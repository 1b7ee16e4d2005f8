//! Where pages come from.
//!
//! [`PageSource`] separates the checks from storage: they read pages through it and do not know whether the pages are
//! in data files, in a backup or elsewhere. [`DataFiles`] reads the .mdf and .ndf files of one database,
//! [`BackupPages`] a backup of it, both opened shared and read-only, with large positioned reads. Files are never
//! mapped and never written.

// Indexing is used only after a bounds check; each such line names the check.
#![warn(clippy::indexing_slicing)]

#[cfg(any(target_os = "linux", test))]
mod announcements;
pub mod backup;
mod buffer;
mod cpu_cache;
mod data_files;
mod databases;
mod error;
mod faults;
mod identify;
mod memory_files;
mod positioned;
mod snapshot;
pub mod storage;
mod throttle;

pub use backup::BackupPages;
#[doc(hidden)]
pub use backup::hostile;
pub use buffer::PageBuffer;
pub use data_files::{DataFiles, Looked, database_name, is_same_file, look};
pub use databases::databases;
pub use error::{OpenError, ReadError, StandardInput, argument, arguments, remedy};
pub use faults::{FailedReads, ReadFaults};
pub use identify::{Archive, FileKind, identify};
pub use memory_files::MemoryFiles;
pub use positioned::{FromStart, ReadAt, SharedFile, read_fully_at};
pub use snapshot::{MOST_NEWER, Snapshot, copies_without_holes};
pub use throttle::Throttled;

use std::io;
use std::path::{Path, PathBuf};

use format::page::PAGE_BYTES;
use format::{PageBytes, PageId};

/// What the program itself uses of a memory grant, in bytes: its code and tables, including object storage, and its
/// read buffers. Measured with a catalog of 10,000 tables.
pub const PROGRAM_BYTES: u64 = 11 << 20;

/// One data file of the database.
#[derive(Clone, Debug)]
pub struct DataFile {
    /// Its path.
    pub path: PathBuf,
    /// File id: 1 for the primary.
    pub file_id: u16,
    /// Filegroup of the file.
    pub filegroup: u16,
    /// Logical name; empty if the header cannot be read.
    pub logical_name: String,
    /// Whole pages that can be read.
    pub pages: u32,
    /// Pages according to the file header; `None` if the header cannot be trusted.
    pub header_pages: Option<u32>,
    /// Bytes after the last whole page: not 0 in a file cut inside a page.
    pub tail_bytes: u32,
    /// GUID of the database that the file belongs to; `None` if the header cannot be trusted.
    pub binding_guid: Option<[u8; 16]>,
    /// Whether page 0 could be read as a file header.
    pub header_is_sound: bool,
}

impl DataFile {
    /// The bytes of the file.
    pub fn bytes(&self) -> u64 {
        u64::from(self.pages) * format::PAGE_BYTES as u64 + u64::from(self.tail_bytes)
    }
}

/// Pages of one database. Reads are positioned and may come from several threads at once.
pub trait PageSource: Sync {
    /// The data files, by ascending file id.
    fn files(&self) -> &[DataFile];

    /// Reads the pages from `first` on into `buffer`, as stored on disk (checksums and torn bits are not removed).
    /// Returns how many whole pages were read: fewer than requested only at the end of the file.
    ///
    /// # Errors
    /// [`ReadError`] if the file is not one of [`Self::files`] or the system cannot read it.
    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError>;

    /// Announces that this many pages from `first` on will be read soon. Does nothing unless the source can use the
    /// hint.
    fn prefetch(&self, first: PageId, pages: u32) {
        let _ = (first, pages);
    }

    /// The largest number of pages from `first` on that one request should read if they are used right after. Few if
    /// the system reads ahead after [`Self::prefetch`], so that the copied pages are still in the processor's cache;
    /// all pages if the cost of a request matters more.
    fn pages_per_read(&self, first: PageId) -> u32 {
        let _ = first;
        u32::MAX
    }

    /// All reads that have failed so far. For data files only reads of single pages count: larger reads that fail are
    /// repeated page by page.
    fn read_faults(&self) -> ReadFaults {
        ReadFaults::default()
    }

    /// The backup that holds the pages, if any. It knows about its log and about damage around the pages.
    fn backup(&self) -> Option<&BackupPages> {
        None
    }

    /// The snapshot that the pages belong to, if they do.
    fn snapshot(&self) -> Option<&Snapshot> {
        None
    }

    /// The pages, ascending, that lack changes in the log or are newer than their snapshot. Empty if there are none,
    /// `None` if the source does not know.
    fn in_flight(&self) -> Option<&[PageId]> {
        self.backup().and_then(BackupPages::in_flight)
    }

    /// The pages in flight that are damaged in the files and that no log record formats anew: their damage is proven.
    fn damaged_in_flight(&self) -> &[PageId] {
        &[]
    }

    /// Whether pages were recovered from a log. Values that the database writes only at checkpoints, without a log
    /// record, are not current then.
    fn has_recovered_pages(&self) -> bool {
        false
    }

    /// The file with id `file_id`.
    fn file(&self, file_id: u16) -> Option<&DataFile> {
        let files = self.files();
        files.binary_search_by_key(&file_id, |file| file.file_id).ok().and_then(|at| files.get(at))
    }

    /// Whether `page` is inside a file.
    fn contains(&self, page: PageId) -> bool {
        self.file(page.file).is_some_and(|file| page.page < file.pages)
    }

    /// Reads one page as stored on disk; `None` if it is outside the files or cannot be read.
    fn read_page(&self, page: PageId) -> Option<Box<PageBytes>> {
        let mut bytes = Box::new([0; PAGE_BYTES]);
        match self.read(page, bytes.as_mut_slice()) {
            Ok(1) => Some(bytes),
            _ => None,
        }
    }
}

/// Forwards methods of [`PageSource`] to the field `inner`: the files, the backup, and what logs say.
///
/// For implementations of [`PageSource`] that wrap another source; they implement reads, hints and faults themselves.
#[macro_export]
macro_rules! as_inner {
    () => {
        fn files(&self) -> &[$crate::DataFile] {
            self.inner.files()
        }

        fn backup(&self) -> Option<&$crate::BackupPages> {
            self.inner.backup()
        }

        fn snapshot(&self) -> Option<&$crate::Snapshot> {
            self.inner.snapshot()
        }

        fn in_flight(&self) -> Option<&[format::PageId]> {
            self.inner.in_flight()
        }

        fn damaged_in_flight(&self) -> &[format::PageId] {
            self.inner.damaged_in_flight()
        }

        fn has_recovered_pages(&self) -> bool {
            self.inner.has_recovered_pages()
        }
    };
}

/// Opens data files, or backup files: but not both. `sets` selects sets of backup files by position; `direct` bypasses
/// the system's cache for data files.
///
/// # Errors
/// [`OpenError`] if they are not the files of one database, or one backup of it.
pub fn open(paths: &[PathBuf], sets: &[u16], direct: bool) -> Result<Box<dyn PageSource>, OpenError> {
    open_within(paths, sets, direct, None)
}

/// Like [`open`], with at most `granted` bytes of memory for a backup.
///
/// # Errors
/// [`OpenError`] as [`open`]; [`OpenError::BackupTooLarge`] if the grant is too small.
pub fn open_within(
    paths: &[PathBuf],
    sets: &[u16],
    direct: bool,
    granted: Option<u64>,
) -> Result<Box<dyn PageSource>, OpenError> {
    let backups = paths.iter().filter(|path| is_backup(path)).count();
    if backups == 0 {
        let mut files = DataFiles::open(paths)?;
        if direct {
            files.read_directly()?;
        }
        return Ok(Box::new(files));
    }
    match paths.iter().find(|path| !is_backup(path)) {
        Some(path) => Err(OpenError::NotABackup { path: path.clone() }),
        None => Ok(Box::new(BackupPages::open_with(paths, sets, None, granted)?)),
    }
}

/// Whether the content of the file at `path` is that of a data file.
pub fn is_data_file(path: &Path) -> bool {
    let mut start = vec![0; identify::IDENTIFY_BYTES];
    let read = match storage::is_file(path) {
        true => SharedFile::open(path).and_then(|file| read_fully_at(&file, &mut start, 0)),
        false => Ok(0),
    };
    matches!(read.map(|read| identify(start.get(..read).unwrap_or_default())), Ok(FileKind::Data { .. }))
}

/// Whether the content of the file at `path` is that of a backup.
pub fn is_backup(path: &Path) -> bool {
    storage::is_file(path) && starts_backup(path).unwrap_or(false)
}

/// Whether a file begins like a backup.
///
/// # Errors
/// Those of the system: then it is not known.
pub fn starts_backup(path: &Path) -> io::Result<bool> {
    let mut start = [0; 8];
    let read = read_fully_at(&SharedFile::open(path)?, &mut start, 0)?;
    Ok(matches!(identify(start.get(..read).unwrap_or_default()), FileKind::Backup(_)))
}
