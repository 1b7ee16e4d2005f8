//! Log files, and the run of virtual log files that is the log.

use std::fs::File;
use std::path::{Path, PathBuf};

use format::file_header::FileHeader;
use format::log::{Vlf, vlf};
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{Page, PageBytes};
use source::{FileKind, identify, read_fully_at};

use crate::error::LogError;

/// More VLFs than any log has: the smallest is some 250 KB, so that this is 60 GB of them.
const MAX_VLFS: usize = 250_000;

/// One log file.
#[derive(Debug)]
pub struct LogFile {
    /// Where it was found.
    pub path: PathBuf,
    /// Its file id, 2 for the first one.
    pub file_id: u16,
    /// Its logical name.
    pub logical_name: String,
    /// Identifies the database: its data files have the same.
    pub binding_guid: [u8; 16],
    /// Size in bytes.
    pub bytes: u64,
    /// Its VLFs, by offset.
    pub vlfs: Vec<Vlf>,
    pub(crate) file: File,
}

/// A VLF of the log, and the file that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacedVlf {
    /// Position in [`Log::files`].
    pub file: usize,
    /// The VLF.
    pub vlf: Vlf,
}

/// The log of one database.
#[derive(Debug)]
pub struct Log {
    files: Vec<LogFile>,
    run: Vec<PlacedVlf>,
}

impl Log {
    /// Opens the log files of one database, shared and read-only, and reads the headers of their VLFs.
    ///
    /// # Errors
    /// [`LogError`]: a file that cannot be read or is none of this kind, files of different databases, a log without use.
    pub fn open(paths: &[PathBuf]) -> Result<Self, LogError> {
        let mut files: Vec<LogFile> = Vec::new();
        for path in paths {
            let opened = LogFile::open(path)?;
            if let Some(other) = files.iter().find(|other| other.binding_guid != opened.binding_guid) {
                return Err(LogError::OtherDatabase { path: opened.path, other: other.path.clone() });
            }
            if let Some(other) = files.iter().find(|other| other.file_id == opened.file_id) {
                let (file_id, other) = (opened.file_id, other.path.clone());
                return Err(LogError::SameFile { path: opened.path, other, file_id });
            }
            files.push(opened);
        }
        files.sort_by_key(|file| file.file_id);
        let run = run(&files);
        match (files.first(), run.is_empty()) {
            (None, _) => Err(LogError::Nothing),
            (Some(file), true) => Err(LogError::NeverUsed { path: file.path.clone() }),
            _ => Ok(Self { files, run }),
        }
    }

    /// Its files, by file id.
    pub fn files(&self) -> &[LogFile] {
        &self.files
    }

    /// The VLFs that hold the log, oldest first: those with consecutive sequence numbers up to the highest. Others hold
    /// leftovers of earlier uses.
    pub fn run(&self) -> &[PlacedVlf] {
        &self.run
    }
}

impl LogFile {
    fn open(path: &Path) -> Result<Self, LogError> {
        let failed = |at| move |cause| LogError::Io { path: path.to_owned(), at, cause };
        let file = File::open(path).map_err(failed(0))?;
        let metadata = file.metadata().map_err(failed(0))?;
        if !metadata.is_file() {
            return Err(LogError::NotALog { path: path.to_owned() });
        }
        let mut start = vec![0; 4 * PAGE_BYTES];
        let read = read_fully_at(&file, &mut start, 0).map_err(failed(0))?;
        start.truncate(read);
        if identify(&start) != FileKind::Log {
            return Err(LogError::NotALog { path: path.to_owned() });
        }
        let Some(mut page) = start.first_chunk::<PAGE_BYTES>().copied() else {
            return Err(LogError::NotALog { path: path.to_owned() });
        };
        let Some((file_id, logical_name, binding_guid)) = identity(&mut page) else {
            return Err(LogError::NotALog { path: path.to_owned() });
        };
        let bytes = metadata.len();
        let vlfs = vlfs(path, &file, bytes)?;
        Ok(Self { path: path.to_owned(), file_id, logical_name, binding_guid, bytes, vlfs, file })
    }
}

/// What the header page says: file id, logical name, binding GUID.
fn identity(page: &mut PageBytes) -> Option<(u16, String, [u8; 16])> {
    undo_torn_bits(page);
    let header = FileHeader::read(Page::new(page))?;
    Some((header.file_id(), header.logical_name(), header.binding_guid()))
}

/// Follows the VLFs of a file from one to the next.
fn vlfs(path: &Path, file: &File, bytes: u64) -> Result<Vec<Vlf>, LogError> {
    let mut found: Vec<Vlf> = Vec::new();
    let mut at = vlf::FIRST;
    // A cut file ends inside its last VLF, or has a few bytes more.
    while at.saturating_add(vlf::HEADER_BYTES) < bytes {
        let mut header = [0; vlf::USED_BYTES];
        let read =
            read_fully_at(file, &mut header, at).map_err(|cause| LogError::Io { path: path.to_owned(), at, cause })?;
        let Some(vlf) = Vlf::read(header.get(..read).unwrap_or_default(), at) else {
            return Err(LogError::NoVlf { path: path.to_owned(), at });
        };
        if found.len() == MAX_VLFS {
            return Err(LogError::TooManyVlfs { path: path.to_owned(), most: MAX_VLFS });
        }
        at = vlf.end();
        found.push(vlf);
    }
    Ok(found)
}

/// The VLFs with consecutive sequence numbers up to the highest.
fn run(files: &[LogFile]) -> Vec<PlacedVlf> {
    let placed = |(file, log): (usize, &LogFile)| {
        let used = log.vlfs.iter().filter(|vlf| vlf.is_used());
        used.map(move |vlf| PlacedVlf { file, vlf: *vlf }).collect::<Vec<_>>()
    };
    let mut all: Vec<PlacedVlf> = files.iter().enumerate().flat_map(placed).collect();
    all.sort_by_key(|placed| placed.vlf.sequence);
    let follows = |pair: &[PlacedVlf]| match pair {
        [one, next] => one.vlf.sequence.checked_add(1) == Some(next.vlf.sequence),
        _ => false,
    };
    let start = all.windows(2).rposition(|pair| !follows(pair)).map_or(0, |before| before + 1);
    all.split_off(start)
}
