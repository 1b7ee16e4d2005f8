//! The .mdf and .ndf files of one database.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use format::boot::Boot;
use format::file_header::FileHeader;
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{Page, PageId, PageType, version};

use crate::buffer::is_aligned;
use crate::changes::{ChangeKind, FileChange};
use crate::cpu_cache::pages_per_copy;
use crate::faults::{ReadFaults, Reads};
use crate::identify::{Archive, FileKind, Holder};
use crate::identify_whole::identify_whole;
use crate::positioned::{Cache, ReadAt, SharedFile, read_fully_at, will_need};
use crate::remains::Remains;
use crate::start_hash::StartHash;
use crate::storage::{self, Entry, Kind};
use crate::{DataFile, OpenError, PageSource, ReadError, StandardInput};

mod snapshot;

use snapshot::SnapshotFile;
pub use snapshot::{MOST_NEWER, Snapshot, copies_without_holes};

/// The data files of one database, opened read-only and shared with other programs.
#[derive(Debug)]
pub struct DataFiles {
    files: Vec<DataFile>,
    handles: Vec<SharedFile>,
    /// Hashes of the first pages of the files when they were opened.
    starts: Vec<StartHash>,
    /// The data files, opened again for reads that bypass the system's cache; empty unless such reads were requested.
    direct: Vec<SharedFile>,
    /// The failed reads of each file.
    reads: Vec<Reads>,
    /// The snapshot to which the files belong, if any.
    snapshot: Option<Snapshot>,
}

impl DataFiles {
    /// Opens the files of one database, in any order. The kind of each file is determined from its content.
    ///
    /// * If a path names a folder, the data files in it are opened.
    /// * If data files are given, log files are ignored, and so are folders that contain logs but no data files.
    /// * If files of a database snapshot are named individually, they are laid over the files of their database.
    ///   Snapshot files in a folder are ignored.
    ///
    /// # Errors
    /// [`OpenError`] if the files are not the data files of one database of SQL Server 2005 or later.
    pub fn open(paths: &[PathBuf]) -> Result<Self, OpenError> {
        let (mut opened, mut snapshots) = (Vec::new(), Vec::new());
        let (mut first_log, mut folders) = (None, Vec::new());
        for path in paths {
            if path.as_os_str() == "-" {
                return Err(OpenError::StandardInput(StandardInput::NotRead));
            }
            match storage::kind(path).map_err(|cause| cannot_follow(path, cause))? {
                Kind::Folder => {
                    let Folder { data, log } = open_folder(path)?;
                    match (data.is_empty(), log) {
                        (true, None) => return Err(OpenError::EmptyFolder { path: path.clone() }),
                        (true, log) => first_log = first_log.or(log),
                        (false, _) => folders.push(path.clone()),
                    }
                    opened.extend(data);
                }
                Kind::File { .. } => match open_file(path)? {
                    Opened::Data(file, handle) => opened.push((file, handle)),
                    Opened::Snapshot(file) => snapshots.push(file),
                    Opened::Log => first_log = first_log.or(Some(path.clone())),
                    Opened::Refused(error) => return Err(error),
                },
                Kind::Pipe => return Err(OpenError::Pipe { path: path.clone() }),
                Kind::Other => return Err(OpenError::NotAFile { path: path.clone() }),
            }
        }
        if let (true, Some(path)) = (opened.is_empty(), first_log) {
            return Err(OpenError::Log { path });
        }
        opened.sort_by(|(a, _), (b, _)| (a.file_id, &a.path).cmp(&(b.file_id, &b.path)));
        // Remove duplicates. The paths may name a folder and also a file in this folder, or a link and also its target.
        opened.dedup_by(|(later, _), (first, _)| {
            later.file_id == first.file_id && is_same_file(&later.path, &first.path)
        });
        snapshots.dedup_by(|later, first| is_same_file(&later.file.path, &first.file.path));
        let snapshot = snapshot::lay(&mut opened, snapshots)?;
        let (files, handles): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let starts = handles.iter().map(StartHash::of).collect();
        let reads = files.iter().map(|_| Reads::default()).collect();
        let this = Self { files, handles, starts, direct: Vec::new(), reads, snapshot };
        folders.iter().try_for_each(|folder| this.check_databases(Some(folder.as_path())))?;
        this.check_databases(None)?;
        check_one_database(&this)?;
        Ok(this)
    }

    /// Returns an error if the named files, or the files in a folder, belong to several databases.
    fn check_databases(&self, folder: Option<&Path>) -> Result<(), OpenError> {
        let in_it = || self.files.iter().filter(|file| folder.is_none_or(|folder| file.path.parent() == Some(folder)));
        let of = |file: &DataFile| file.binding_guid;
        let bindings: BTreeSet<[u8; 16]> = in_it().filter_map(of).collect();
        let primaries: BTreeSet<[u8; 16]> = in_it().filter(|file| file.file_id == 1).filter_map(of).collect();
        // If the files were named individually and the primary files among them belong to at most one database,
        // `check_one_database` returns a more specific error.
        if bindings.len() < 2 || folder.is_none() && primaries.len() < 2 {
            return Ok(());
        }
        let mut databases: Vec<(String, Vec<PathBuf>)> = Vec::new();
        for binding in &bindings {
            // The files are sorted by file ID, so the primary file comes first if it was given.
            let mut files: Vec<&DataFile> = in_it().filter(|file| file.binding_guid == Some(*binding)).collect();
            // Copies of a file have the same ID.
            files.dedup_by_key(|file| file.file_id);
            let Some(first) = files.first() else { continue };
            let paths = files.iter().map(|file| file.path.clone()).collect();
            let file = first.path.file_name().unwrap_or_default().to_string_lossy();
            let name = match first.file_id {
                1 => self.database_name(&first.path).map_or(file.to_string(), |name| format!("{name} ({file})")),
                _ => format!("{file} without its primary file"),
            };
            databases.push((name, paths));
        }
        databases.sort();
        // The error message shows the files of one database as an example. If possible, this is a database whose
        // primary file was given, because only such a database can be checked.
        let is_whole = |paths: &[PathBuf]| {
            paths.first().is_some_and(|path| self.files.iter().any(|file| file.path == *path && file.file_id == 1))
        };
        let example = databases.iter().find(|(_, paths)| is_whole(paths)).or(databases.first());
        let example = example.map(|(_, paths)| paths.clone()).unwrap_or_default();
        let databases = databases.into_iter().map(|(name, _)| name).collect();
        Err(OpenError::SeveralDatabases { folder: folder.map(Path::to_owned), databases, example })
    }

    fn database_name(&self, path: &Path) -> Option<String> {
        let at = self.files.iter().position(|file| file.path == path)?;
        name_in(self.handles.get(at)?)
    }

    /// Makes all further reads bypass the system's cache, so that the check of a large database does not evict other
    /// programs' data.
    ///
    /// # Errors
    /// An error if the operating system or the file system does not support such reads.
    pub fn read_directly(&mut self) -> Result<(), OpenError> {
        let open = |file: &DataFile| {
            SharedFile::open_with(&file.path, Cache::Bypassed)
                .map_err(|cause| OpenError::Direct { path: file.path.clone(), cause })
        };
        self.direct = self.files.iter().map(open).collect::<Result<_, _>>()?;
        self.snapshot.as_mut().map_or(Ok(()), Snapshot::read_directly)
    }

    /// Fills `buffer` with the stored bytes of a file's pages, starting with page `first`. If the file belongs to a
    /// snapshot, calls `of_base` for each page that comes from the base file, with the index of the page in `buffer`.
    pub(crate) fn read_stored(
        &self,
        file: usize,
        first: u32,
        buffer: &mut [u8],
        of_base: impl FnMut(usize),
    ) -> io::Result<()> {
        let handle = self.direct.get(file).filter(|_| is_aligned(buffer)).or(self.handles.get(file));
        let Some(handle) = handle else { return Err(io::ErrorKind::NotFound.into()) };
        let offset = u64::from(first) * PAGE_BYTES as u64;
        if read_fully_at(handle, buffer, offset)? < buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.snapshot.as_ref().map_or(Ok(()), |snapshot| snapshot.fill(file, buffer, offset, of_base))
    }
}

/// Returns the name of a database on its server; `path` is the path of its primary file. `None` if the boot page cannot
/// be read.
pub fn database_name(path: &Path) -> Option<String> {
    name_in(&SharedFile::open(path).ok()?)
}

fn name_in(primary: &SharedFile) -> Option<String> {
    let mut bytes = [0; PAGE_BYTES];
    let offset = u64::from(PageId::BOOT.page) * PAGE_BYTES as u64;
    let read = read_fully_at(primary, &mut bytes, offset).ok()?;
    undo_torn_bits(&mut bytes);
    let page = Page::new(&bytes);
    let boot = Boot::read(page).filter(|_| read == PAGE_BYTES && page.header().kind() == Some(PageType::Boot))?;
    Some(boot.name()).filter(|name| !name.is_empty())
}

/// The kind of a file, according to its first pages.
#[derive(Debug)]
pub enum Looked {
    /// A data file.
    Data(Box<DataFile>),
    /// A file of a database snapshot.
    Snapshot(Box<DataFile>),
    /// A transaction log file.
    Log,
    /// A backup.
    Backup,
    /// A file that cannot be checked; the error gives the reason.
    Refused(OpenError),
}

/// Finds out the kind of the file at `path`.
///
/// # Errors
/// [`OpenError`] if the file cannot be read.
pub fn look(path: &Path) -> Result<Looked, OpenError> {
    if !matches!(storage::kind(path).map_err(|cause| cannot_follow(path, cause))?, Kind::File { .. }) {
        return Ok(Looked::Refused(OpenError::NotAFile { path: path.to_owned() }));
    }
    Ok(match open_file(path)? {
        Opened::Data(file, _) => Looked::Data(Box::new(file)),
        Opened::Snapshot(snapshot) => Looked::Snapshot(Box::new(snapshot.file)),
        Opened::Log => Looked::Log,
        Opened::Refused(OpenError::Backup { .. }) => Looked::Backup,
        Opened::Refused(error) => Looked::Refused(error),
    })
}

/// Whether two paths refer to the same file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    if storage::url(one).is_some() {
        return one == other;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        identity(one).is_some() && identity(one) == identity(other)
    }
    #[cfg(not(unix))]
    {
        let target = |path| fs::canonicalize(path).ok();
        target(one).is_some() && target(one) == target(other)
    }
}

/// Returns an error if the files cannot be checked as one database. They must include exactly one primary file, have
/// different file IDs, belong to the same database, and have a supported version.
pub(crate) fn check_one_database(source: &dyn PageSource) -> Result<(), OpenError> {
    let files = source.files();
    let primary = files.first().ok_or(OpenError::Nothing)?;
    if primary.file_id != 1 {
        return Err(OpenError::NoPrimary { path: primary.path.clone(), file_id: primary.file_id });
    }
    for pair in files.windows(2) {
        let [first, second] = pair else { continue };
        if first.file_id == second.file_id {
            return Err(OpenError::SameFileId {
                first: first.path.clone(),
                second: second.path.clone(),
                file_id: first.file_id,
            });
        }
    }
    for file in files {
        if let (Some(expected), Some(found)) = (primary.binding_guid, file.binding_guid)
            && expected != found
        {
            return Err(OpenError::OtherDatabase { path: file.path.clone(), primary: primary.path.clone() });
        }
    }
    if let Some(mut bytes) = source.read_page(PageId::BOOT) {
        undo_torn_bits(&mut bytes);
        let page = Page::new(&bytes);
        let found = Boot::version_of(page).filter(|_| page.header().kind() == Some(PageType::Boot));
        if let Some(version) = found.filter(|&version| version < version::OLDEST)
            && let Some(product) = version::product(version)
        {
            return Err(OpenError::TooOld { path: primary.path.clone(), version, product });
        }
    }
    Ok(())
}

impl PageSource for DataFiles {
    fn files(&self) -> &[DataFile] {
        &self.files
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let position = self.files.iter().position(|file| file.file_id == first.file);
        let (Some(file), Some(handle), Some(reads)) = (
            position.and_then(|at| self.files.get(at)),
            position.and_then(|at| self.handles.get(at)),
            position.and_then(|at| self.reads.get(at)),
        ) else {
            return Err(ReadError::NoSuchFile { file_id: first.file });
        };
        let direct = position.and_then(|at| self.direct.get(at)).filter(|_| is_aligned(buffer));
        let handle = direct.unwrap_or(handle);
        let offset = u64::from(first.page) * PAGE_BYTES as u64;
        let wanted = file.pages.saturating_sub(first.page) as usize * PAGE_BYTES;
        let wanted = wanted.min(buffer.len());
        let buffer = buffer.get_mut(..wanted).unwrap_or_default();
        let is_page = wanted <= PAGE_BYTES;
        let failed = |offset, cause| {
            if is_page {
                reads.failed(offset, &cause);
            }
            Err(ReadError::Io { path: file.path.clone(), offset, cause })
        };
        let at = position.unwrap_or_default();
        let mut attempt = || {
            let read = read_fully_at(handle, buffer, offset)?;
            if let Some(snapshot) = &self.snapshot {
                snapshot.fill(at, buffer.get_mut(..read).unwrap_or_default(), offset, |_| ())?;
            }
            Ok(read)
        };
        // Only reads of a single page are retried here. If a read of several pages fails, the caller reads each page
        // separately.
        match if is_page { reads.patiently(attempt) } else { attempt() } {
            Ok(read) if read < wanted => {
                let text = "the file has become shorter while it was read";
                failed(offset + read as u64, io::Error::new(io::ErrorKind::UnexpectedEof, text))
            }
            Ok(read) => Ok(read / PAGE_BYTES),
            Err(cause) => failed(offset, cause),
        }
    }

    fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    fn in_flight(&self) -> Option<&[PageId]> {
        self.snapshot.as_ref().map(|snapshot| snapshot.newer(self).pages.as_slice())
    }

    fn read_faults(&self) -> ReadFaults {
        let mut faults = ReadFaults::default();
        for (file, reads) in self.files.iter().zip(&self.reads) {
            reads.add_to(&file.path, &mut faults);
        }
        faults
    }

    fn changes(&self) -> Vec<FileChange> {
        let own = self.files.iter().zip(&self.handles).zip(&self.starts).filter_map(|((file, handle), start)| {
            let status = handle.change(&file.path);
            let kind = status.filter(|kind| *kind != ChangeKind::Attributes);
            let content = || (StartHash::of(handle) != *start).then_some(ChangeKind::Content);
            let kind = kind.or_else(content).or(status)?;
            Some(FileChange { path: file.path.clone(), kind })
        });
        own.chain(self.snapshot.iter().flat_map(Snapshot::changes)).collect()
    }

    fn prefetch(&self, first: PageId, pages: u32) {
        let position = self.files.iter().position(|file| file.file_id == first.file);
        let (Some(at), true) = (position, self.direct.is_empty()) else { return };
        let base = self.snapshot.as_ref().and_then(|snapshot| snapshot.base(at));
        for handle in self.handles.get(at).into_iter().chain(base) {
            will_need(handle, u64::from(first.page) * PAGE_BYTES as u64, u64::from(pages) * PAGE_BYTES as u64);
        }
    }

    fn pages_per_read(&self, first: PageId) -> u32 {
        let position = self.files.iter().position(|file| file.file_id == first.file);
        match position.and_then(|at| self.handles.get(at)) {
            Some(handle) if self.direct.is_empty() && handle.is_read_ahead() => pages_per_copy(handle.is_in_memory()),
            _ => u32::MAX,
        }
    }
}

/// SQL Server's limit for the size of a file, 16 TiB. Page numbers therefore stay below 2^31.
const MAX_PAGES: u32 = 1 << 31;

enum Opened {
    Data(DataFile, SharedFile),
    Snapshot(SnapshotFile),
    Log,
    Refused(OpenError),
}

fn open_file(path: &Path) -> Result<Opened, OpenError> {
    let failed = |cause| OpenError::Io { path: path.to_owned(), cause };
    let handle = SharedFile::open(path).map_err(failed)?;
    let length = handle.length().map_err(failed)?;
    if length == 0 {
        return Ok(Opened::Refused(OpenError::Empty { path: path.to_owned() }));
    }
    if length > u64::from(MAX_PAGES) * PAGE_BYTES as u64 {
        return Ok(Opened::Refused(OpenError::TooLarge { path: path.to_owned(), length }));
    }
    let mut start = vec![0; snapshot::START_BYTES];
    let read = read_fully_at(&handle, &mut start, 0).map_err(failed)?;
    start.truncate(read);
    let hole = handle.first_hole();
    Ok(match describe(path, &start, length, &handle) {
        Ok(Some(file)) if snapshot::is_snapshot(path, &start, hole) => {
            Opened::Snapshot(SnapshotFile { file, handle, is_sparse: hole.is_some() })
        }
        Ok(Some(file)) => Opened::Data(file, handle),
        Ok(None) => Opened::Log,
        Err(error) => Opened::Refused(error),
    })
}

/// Describes the data file of `length` bytes with the first pages `start`; `None` for a log file. `all` is the whole file.
pub(crate) fn describe(
    path: &Path,
    start: &[u8],
    length: u64,
    all: &dyn ReadAt,
) -> Result<Option<DataFile>, OpenError> {
    let path = path.to_owned();
    let (kind, remains) = identify_whole(&path, all, start, length);
    let (file_id, header_is_sound) = match kind {
        FileKind::Data { file_id, header_is_sound } => (file_id, header_is_sound),
        FileKind::Log => return Ok(None),
        FileKind::Backup(kind) => return Err(OpenError::Backup { path, kind }),
        FileKind::Other => {
            return Err(match (Holder::of(&path, start), Archive::of(start), remains) {
                (Some(holder), ..) => {
                    let what = holder.told(&path);
                    OpenError::Held { path, what }
                }
                (None, Some(archive), _) => OpenError::Compressed { path, archive },
                (None, None, Remains::Moved { file_id, by }) => OpenError::Moved { path, file_id, by },
                (None, None, _) => OpenError::NotADataFile { path },
            });
        }
    };
    let mut file = DataFile {
        path,
        file_id,
        filegroup: u16::from(file_id == 1),
        logical_name: String::new(),
        pages: u32::try_from(length / PAGE_BYTES as u64).unwrap_or(MAX_PAGES),
        header_pages: None,
        tail_bytes: (length % PAGE_BYTES as u64) as u32,
        binding_guid: None,
        header_is_sound,
    };
    if let Some(bytes) = start.first_chunk::<PAGE_BYTES>().filter(|_| header_is_sound) {
        let mut bytes = *bytes;
        undo_torn_bits(&mut bytes);
        if let Some(header) = FileHeader::read(Page::new(&bytes)) {
            file.filegroup = header.filegroup();
            file.logical_name = header.logical_name();
            file.header_pages = Some(header.size_pages());
            file.binding_guid = Some(header.binding_guid());
        }
    }
    Ok(Some(file))
}

/// The error for a `path` that cannot be read; the path may be a dangling symbolic link.
fn cannot_follow(path: &Path, cause: io::Error) -> OpenError {
    let path = path.to_owned();
    match fs::read_link(&path) {
        Ok(target) => OpenError::BrokenLink { path, target, cause },
        Err(_) => OpenError::Io { path, cause },
    }
}

/// Whether a file has one of the usual extensions of data files (.mdf, .ndf).
fn has_data_file_name(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    extension.eq_ignore_ascii_case("mdf") || extension.eq_ignore_ascii_case("ndf")
}

/// The database files in a folder.
struct Folder {
    /// The data files.
    data: Vec<(DataFile, SharedFile)>,
    /// The first log file.
    log: Option<PathBuf>,
}

/// Opens the data files in a folder, including the targets of symbolic links. Other files and subfolders are ignored.
fn open_folder(folder: &Path) -> Result<Folder, OpenError> {
    let failed = |cause| OpenError::Io { path: folder.to_owned(), cause };
    let mut paths = Vec::new();
    for Entry { path, is_folder } in storage::list(folder).map_err(failed)? {
        if is_folder {
            continue;
        }
        match storage::kind(&path) {
            Ok(Kind::File { .. }) => paths.push(path),
            Ok(_) => {}
            // This entry is a dangling link, or an object that cannot be read. A dangling link is an error only if it
            // has the extension of a data file; otherwise it is ignored.
            Err(cause) if has_data_file_name(&path) || storage::may_be_there(&path, &cause) => {
                return Err(cannot_follow(&path, cause));
            }
            Err(_) => {}
        }
    }
    let (mut found, mut seen) = (Folder { data: Vec::new(), log: None }, BTreeSet::new());
    for path in paths {
        // A link and its target count as one file.
        if storage::canonical(&path).is_ok_and(|file| !seen.insert(file)) {
            continue;
        }
        match open_file(&path)? {
            Opened::Data(file, handle) => found.data.push((file, handle)),
            Opened::Log => found.log = found.log.or(Some(path)),
            Opened::Snapshot(_) | Opened::Refused(_) => {}
        }
    }
    Ok(found)
}
