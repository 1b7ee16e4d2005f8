//! Where pages come from.
//!
//! [`PageSource`] is the seam: the checks read pages through it and do not know whether they are in data files, in a
//! backup or elsewhere. [`DataFiles`] reads the .mdf and .ndf files of one database, [`BackupPages`] a backup of it,
//! both opened shared and read-only, with large positioned reads; never a mapping, never a write.

// Indexing is used only where an earlier test proved the place; each such line says which.
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

/// What the program itself takes of a memory grant, in bytes: its code and tables, object storage included, and its read buffers.
/// Measured with a catalog of 10,000 tables.
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
    /// Identifies the database of the file; `None` if the header cannot be trusted.
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

    /// Reads the pages from `first` on into `buffer`, as stored on disk (protection not undone). Returns how many whole
    /// pages were read: fewer than requested only at the end of the file.
    ///
    /// # Errors
    /// [`ReadError`] if the file is not one of [`Self::files`] or the system cannot read it.
    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError>;

    /// Announces that this many pages from `first` on will be read soon. Does nothing unless the source can use the
    /// hint.
    fn prefetch(&self, first: PageId, pages: u32) {
        let _ = (first, pages);
    }

    /// Up to how many pages from `first` on are read in one request if they are looked at next: few where the system reads ahead
    /// as [`Self::prefetch`] says, so that what was copied from its memory is still near the processor; all where that matters less
    /// than the cost of a request.
    fn pages_per_read(&self, first: PageId) -> u32 {
        let _ = first;
        u32::MAX
    }

    /// All reads that have failed so far. For data files only reads of single pages count: larger reads that fail are
    /// repeated page by page.
    fn read_faults(&self) -> ReadFaults {
        ReadFaults::default()
    }

    /// The backup that the pages come from, if any: it knows about its log and about damage around the pages.
    fn backup(&self) -> Option<&BackupPages> {
        None
    }

    /// The database that the pages are of, if they are a snapshot of it.
    fn snapshot(&self) -> Option<&Snapshot> {
        None
    }

    /// The pages, ascending, that do not contain everything in the log, or are not of the moment of their snapshot; empty if all
    /// do, `None` if nothing says so.
    fn in_flight(&self) -> Option<&[PageId]> {
        self.backup().and_then(BackupPages::in_flight)
    }

    /// Those in flight that are damaged in the files although no record of the log makes them anew: that they are is proven.
    fn damaged_in_flight(&self) -> &[PageId] {
        &[]
    }

    /// Whether pages were made from a log: what the database writes at checkpoints only, without a log record, is then not
    /// current.
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

/// What a source in front of another says as that one does, which is its field `inner`: the files, the backup, and what logs say.
///
/// For implementations of [`PageSource`]; reads, hints and faults are left to them.
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

/// Opens data files, or backup files: all of one kind. `sets` selects sets of backup files by position; `direct`
/// bypasses the system's cache for data files.
///
/// # Errors
/// [`OpenError`] if they are not the files of one database, or one backup of it.
pub fn open(paths: &[PathBuf], sets: &[u16], direct: bool) -> Result<Box<dyn PageSource>, OpenError> {
    open_within(paths, sets, direct, None)
}

/// The same; the memory kept for a backup is at most `granted` bytes.
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

/// Whether the file at `path` is a data file, by its content.
pub fn is_data_file(path: &Path) -> bool {
    let mut start = vec![0; identify::IDENTIFY_BYTES];
    let read = match storage::is_file(path) {
        true => SharedFile::open(path).and_then(|file| read_fully_at(&file, &mut start, 0)),
        false => Ok(0),
    };
    matches!(read.map(|read| identify(start.get(..read).unwrap_or_default())), Ok(FileKind::Data { .. }))
}

/// Whether the file at `path` is a backup, by its content.
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
