//! The sources of pages.
//!
//! [`PageSource`] separates the checks from storage: the checks read all pages through this trait, and do not know
//! whether the pages are in data files, in a backup or elsewhere. [`DataFiles`] reads the .mdf and .ndf files of one
//! database; [`BackupPages`] reads a backup of a database; [`Carved`] reads the pages in a disk image. All types open their files read-only, shared with other
//! programs, and use large positioned reads. Files are never memory-mapped and never written.

// Code may index only after a bounds check; a comment on each indexing line names the check.
#![warn(clippy::indexing_slicing)]

#[cfg(any(target_os = "linux", test))]
mod announcements;
mod arguments;
pub mod backup;
mod buffer;
mod carved;
mod changes;
mod cpu_cache;
mod data_files;
mod databases;
mod error;
mod extent_set;
mod faults;
mod identify;
mod identify_whole;
mod memory_files;
mod positioned;
mod remains;
mod since_base;
mod start_hash;
pub mod storage;
mod throttle;
mod writers;

pub use arguments::{argument, arguments};
pub use backup::BackupPages;
#[doc(hidden)]
pub use backup::hostile;
pub use buffer::PageBuffer;
pub use carved::{Carved, Carving, LeftOut, PageCopy, carved_bytes};
pub use changes::{ChangeKind, FileChange};
pub use data_files::{
    DataFiles, Looked, MOST_NEWER, Snapshot, copies_without_holes, database_name, is_same_file, look,
};
pub use databases::databases;
pub use error::{CarveError, OpenError, ReadError, StandardInput, remedy};
pub use extent_set::ExtentSet;
pub use faults::{FailedReads, ReadFaults};
pub use identify::{Archive, FileKind, identify};
pub use memory_files::MemoryFiles;
pub use positioned::{FromStart, ReadAt, SharedFile, read_fully_at};
pub use since_base::SinceBase;
pub use throttle::Throttled;
pub use writers::writer;

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use format::page::PAGE_BYTES;
use format::protection::{Protection, ProtectionFault, verify};
use format::{PageBytes, PageId};

/// The part of a memory grant that the program itself uses, in bytes: code and tables (including those for object
/// storage), and read buffers. Measured with a catalog of 10,000 tables.
pub const PROGRAM_BYTES: u64 = 11 << 20;

/// One data file of a database.
#[derive(Clone, Debug)]
pub struct DataFile {
    /// Path of the file.
    pub path: PathBuf,
    /// File ID; 1 for the primary file.
    pub file_id: u16,
    /// ID of the file's filegroup.
    pub filegroup: u16,
    /// Logical name; empty if the header cannot be read.
    pub logical_name: String,
    /// Number of complete pages that can be read.
    pub pages: u32,
    /// Number of pages according to the file header; `None` if the header cannot be trusted.
    pub header_pages: Option<u32>,
    /// Number of bytes after the last complete page; not 0 if the file was cut off inside a page.
    pub tail_bytes: u32,
    /// GUID of the database to which the file belongs; `None` if the header cannot be trusted.
    pub binding_guid: Option<[u8; 16]>,
    /// Whether page 0 is an undamaged file header page.
    pub header_is_sound: bool,
}

impl DataFile {
    /// Length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.pages) * format::PAGE_BYTES as u64 + u64::from(self.tail_bytes)
    }
}

/// A source of one database's pages. Its reads are positioned, and several threads may read at the same time.
pub trait PageSource: Sync {
    /// The data files, in ascending order of their file IDs.
    fn files(&self) -> &[DataFile];

    /// Reads pages into `buffer`, starting with `first`, in the form in which they are stored (checksums and torn bits
    /// are not removed). Returns the number of complete pages read, which is less than requested only at the end of the
    /// file.
    ///
    /// # Errors
    /// [`ReadError`] if the file is not one of [`Self::files`] or the system cannot read it.
    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError>;

    /// Announces that `pages` pages from `first` will be read soon. This is only a hint, which a source may ignore.
    fn prefetch(&self, first: PageId, pages: u32) {
        let _ = (first, pages);
    }

    /// Returns the maximum number of pages, from `first` on, that one request should read if the pages are used
    /// immediately after it. If the system reads ahead after [`Self::prefetch`], the number is small, so that the
    /// copied pages are still in the processor's cache when they are used. If each request is expensive, one request
    /// should read all pages.
    fn pages_per_read(&self, first: PageId) -> u32 {
        let _ = first;
        u32::MAX
    }

    /// Returns all failed reads up to now. For data files, only failed reads of single pages are included, because a
    /// larger read that fails is repeated page by page.
    fn read_faults(&self) -> ReadFaults {
        ReadFaults::default()
    }

    /// The files that have changed since they were opened. Each call looks at the files again.
    fn changes(&self) -> Vec<FileChange> {
        Vec::new()
    }

    /// Returns the backup that contains the pages, if any. The result also gives access to the log in the backup, and
    /// to reports of damage outside the pages.
    fn backup(&self) -> Option<&BackupPages> {
        None
    }

    /// The snapshot to which the pages belong, if any.
    fn snapshot(&self) -> Option<&Snapshot> {
        None
    }

    /// The pages as they were carved out of raw bytes, if they were.
    fn carved(&self) -> Option<&Carved> {
        None
    }

    /// Whether all pages have the state of the same point in time, as far as is known. If false, pages may contradict
    /// each other although none of them is damaged.
    fn has_one_moment(&self) -> bool {
        self.backup().is_none_or(BackupPages::has_one_moment) && self.carved().is_none_or(Carved::has_one_moment)
    }

    /// Returns the pages in flight, in ascending order: the pages that lack changes in the log, and the pages that are
    /// newer than their snapshot. An empty slice means that there are no such pages. `None` means that the source does
    /// not know its pages in flight.
    fn in_flight(&self) -> Option<&[PageId]> {
        self.backup().and_then(BackupPages::in_flight)
    }

    /// Returns the pages of [`Self::in_flight`] that are damaged in the files and that no log record formats anew. The
    /// log does not repair these pages, so their damage is certain.
    fn damaged_in_flight(&self) -> &[PageId] {
        &[]
    }

    /// For each of `pages` pages from `first`, at most 128: whether its bytes may come from elsewhere than the first set
    /// of the backup, that is, from a later set or from the log. Bit 0 is the first page. The bytes of all other pages
    /// are what a restore of the first set alone would write. `None` if the source does not know this, as for data
    /// files, except in [`SinceBase`].
    fn above_base(&self, first: PageId, pages: u32) -> Option<u128> {
        let _ = (first, pages);
        None
    }

    /// Like [`Self::above_base`], but without the pages that recovery has made or changed: the bytes of the others are
    /// what a later set of the backup holds.
    fn above_base_as_stored(&self, first: PageId, pages: u32) -> Option<u128> {
        self.above_base(first, pages)
    }

    /// Whether [`Self::above_base`] relies on the differential maps of data files: that the bytes of pages outside of it are
    /// always the same is then a promise of the server, which a reader can test.
    fn has_promise(&self) -> bool {
        false
    }

    /// Whether pages were recovered from a log. If so, values that the server writes only at checkpoints and does not
    /// log may be outdated.
    fn has_recovered_pages(&self) -> bool {
        false
    }

    /// The file with the ID `file_id`.
    fn file(&self, file_id: u16) -> Option<&DataFile> {
        let files = self.files();
        files.binary_search_by_key(&file_id, |file| file.file_id).ok().and_then(|at| files.get(at))
    }

    /// Whether `page` is inside a file.
    fn contains(&self, page: PageId) -> bool {
        self.file(page.file).is_some_and(|file| page.page < file.pages)
    }

    /// Reads one page in the form in which it is stored; `None` if it is outside the files or cannot be read.
    fn read_page(&self, page: PageId) -> Option<Box<PageBytes>> {
        let mut bytes = Box::new([0; PAGE_BYTES]);
        match self.read(page, bytes.as_mut_slice()) {
            Ok(1) => Some(bytes),
            _ => None,
        }
    }
}

/// The pauses between reads of a page that is being written.
const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(5), Duration::from_millis(20)];

/// Reads one page like [`PageSource::read_page`], and verifies its protection. A page of a file that fails is read again,
/// because it may have been read while it was written. The result is the first sound page, or the page that two reads in
/// a row returned, or else the last page.
pub fn read_settled(
    source: &dyn PageSource,
    page: PageId,
) -> Option<(Box<PageBytes>, Result<Protection, ProtectionFault>)> {
    let mut bytes = source.read_page(page)?;
    let mut verified = verify(&bytes);
    for pause in PAUSES {
        // A backup is not written in place.
        if verified.is_ok() || source.backup().is_some() {
            break;
        }
        thread::sleep(pause);
        let Some(again) = source.read_page(page).filter(|again| *again != bytes) else { break };
        verified = verify(&again);
        bytes = again;
    }
    Some((bytes, verified))
}

/// Forwards some methods of [`PageSource`] to the field `inner`: the methods for the files and their changes, for the
/// backup, and for facts from logs.
///
/// Implementations of [`PageSource`] that wrap another source use this macro. They implement the methods for reads,
/// hints and faults themselves.
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

        fn carved(&self) -> Option<&$crate::Carved> {
            self.inner.carved()
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

        fn above_base(&self, first: format::PageId, pages: u32) -> Option<u128> {
            self.inner.above_base(first, pages)
        }

        fn above_base_as_stored(&self, first: format::PageId, pages: u32) -> Option<u128> {
            self.inner.above_base_as_stored(first, pages)
        }

        fn has_promise(&self) -> bool {
            self.inner.has_promise()
        }

        fn changes(&self) -> Vec<$crate::FileChange> {
            self.inner.changes()
        }
    };
}

/// Forwards the hints of [`PageSource`] to the field `inner`.
#[macro_export]
macro_rules! hints_as_inner {
    () => {
        fn prefetch(&self, first: format::PageId, pages: u32) {
            self.inner.prefetch(first, pages);
        }

        fn pages_per_read(&self, first: format::PageId) -> u32 {
            self.inner.pages_per_read(first)
        }
    };
}

/// Opens either data files or backup files. `sets` selects sets of backup files by position; with `direct`, reads
/// of data files bypass the system's cache.
///
/// # Errors
/// [`OpenError`] if the files are not the data files of one database, or one backup of it.
pub fn open(paths: &[PathBuf], sets: &[u16], direct: bool) -> Result<Box<dyn PageSource>, OpenError> {
    open_within(paths, sets, direct, None)
}

/// Like [`open`], but a backup uses at most `granted` bytes of memory.
///
/// # Errors
/// [`OpenError`] as for [`open`], and [`OpenError::BackupTooLarge`] if the limit is too small.
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

/// Whether the file at `path` is a data file, according to its content.
pub fn is_data_file(path: &Path) -> bool {
    let kind = || -> io::Result<FileKind> {
        let file = SharedFile::open(path)?;
        let mut start = vec![0; identify::IDENTIFY_BYTES];
        let read = read_fully_at(&file, &mut start, 0)?;
        let (kind, _) =
            identify_whole::identify_whole(path, &file, start.get(..read).unwrap_or_default(), file.length()?);
        Ok(kind)
    };
    storage::is_file(path) && matches!(kind(), Ok(FileKind::Data { .. }))
}

/// Whether the file at `path` is a backup, according to its content.
pub fn is_backup(path: &Path) -> bool {
    storage::is_file(path) && starts_backup(path).unwrap_or(false)
}

/// Whether the file at `path` begins like a backup, or has the name and further parts of a backup whose beginning is
/// overwritten.
///
/// # Errors
/// Errors of the operating system, which leave the answer unknown.
pub fn starts_backup(path: &Path) -> io::Result<bool> {
    let file = SharedFile::open(path)?;
    let mut start = [0; 8];
    let read = read_fully_at(&file, &mut start, 0)?;
    Ok(matches!(identify(start.get(..read).unwrap_or_default()), FileKind::Backup(_))
        || backup::remains::form(path, &file, file.length()?).is_some())
}
