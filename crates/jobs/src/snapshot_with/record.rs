//! Records of snapshots that exist. A record is two files in a folder: NAME.json says by which program the snapshot was
//! made and of which paths, and NAME.out is what the program has printed.
//!
//! The process that has made the snapshot holds a lock on NAME.json, which the system releases when the process ends,
//! however it ends. The program prints into NAME.out directly. So if mdfsck is killed while the program runs, the next
//! run still learns where the snapshot is.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{MOST_PRINTED_BYTES, Program};
use crate::failure::Failure;
use crate::host::warn;
use crate::keep;

/// The most bytes of a NAME.json that are read.
const MOST_RECORD_BYTES: u64 = 4 << 20;
/// The most records of a folder that are read.
const MOST_RECORDS: usize = 1000;

/// `FILE_SHARE_READ | FILE_SHARE_DELETE`: other processes may read and delete the file, but not write to it.
#[cfg(windows)]
const SHARE_READ_AND_DELETE: u32 = 1 | 4;
#[cfg(windows)]
const ERROR_SHARING_VIOLATION: i32 = 32;

/// The content of NAME.json. Paths that are not Unicode are stored approximately: they are only shown and compared.
#[derive(Serialize, Deserialize)]
pub(super) struct Content {
    program: String,
    arguments: Vec<String>,
    /// The paths of which the snapshot was made.
    pub(super) paths: Vec<String>,
    /// The machine on which the snapshot was made.
    pub(super) host: String,
    process: u32,
}

impl Content {
    pub(super) fn of(program: Program<'_>, paths: &[PathBuf]) -> Self {
        Self {
            program: whole(program.path),
            arguments: program.arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            paths: paths.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            host: keep::host(),
            process: std::process::id(),
        }
    }

    pub(super) fn is_of_this_host(&self) -> bool {
        self.host == keep::host()
    }

    /// Whether the snapshot was made by this program with these arguments.
    pub(super) fn is_of(&self, program: Program<'_>) -> bool {
        let Self { program: path, arguments, .. } = Self::of(program, &[]);
        (&path, &arguments) == (&self.program, &self.arguments)
    }

    /// The program and its arguments.
    pub(super) fn call(&self) -> String {
        std::iter::once(&self.program).chain(&self.arguments).cloned().collect::<Vec<_>>().join(" ")
    }
}

/// The path of a program, independent of the current folder. The system looks for a name without a folder in PATH.
fn whole(program: &Path) -> String {
    let is_name = program.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    let path = if is_name { None } else { std::path::absolute(program).ok() };
    path.as_deref().unwrap_or(program).to_string_lossy().into_owned()
}

/// The folders of records. New records go into the first folder. Records that earlier runs have left may be in any of
/// them, since they may have been made without `--history`.
///
/// # Errors
/// If there is no history, and the environment names no folder of the user.
pub(super) fn folders(history: Option<&Path>) -> Result<Vec<PathBuf>, Failure> {
    let beside = history.map(|history| {
        let mut folder = history.as_os_str().to_owned();
        folder.push(".snapshots");
        PathBuf::from(folder)
    });
    let folders: Vec<PathBuf> = beside.into_iter().chain(of_user()).collect();
    match folders.is_empty() {
        true => Err(Failure::usage(format!(
            "--snapshot-with needs a folder for the record of the snapshot: give --history FILE, or set {}",
            if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_STATE_HOME or HOME" }
        ))),
        false => Ok(folders),
    }
}

/// The folder of records of this user.
fn of_user() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = match cfg!(windows) {
        true => variable("LOCALAPPDATA"),
        false => variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state"))),
    };
    Some(state?.join("mdfsck").join("snapshots"))
}

/// A record that this process has locked.
pub(super) struct Record {
    path: PathBuf,
    /// Closing this file releases the lock.
    _lock: File,
    content: Content,
}

impl Record {
    /// Writes a new record.
    ///
    /// # Errors
    /// If the record cannot be written or locked.
    pub(super) fn create(folder: &Path, content: Content) -> Result<Self, Failure> {
        let create = || -> io::Result<(PathBuf, File)> {
            make_folder(folder)?;
            // The record gets its final name when it is written and locked, since other processes read only records
            // with a final name.
            let mut new = tempfile::Builder::new().prefix("snapshot-").suffix(".new").tempfile_in(folder)?;
            new.as_file().try_lock().map_err(io::Error::from)?;
            new.write_all(&serde_json::to_vec(&content)?)?;
            new.as_file().sync_all()?;
            let path = new.path().with_extension("json");
            File::create_new(path.with_extension("out"))?;
            let lock = new.persist_noclobber(&path).map_err(|failed| failed.error)?;
            #[cfg(unix)]
            File::open(folder)?.sync_all()?;
            Ok((path, lock))
        };
        let (path, lock) = create().map_err(|cause| unusable(folder, &cause))?;
        Ok(Self { path, _lock: lock, content })
    }

    /// Locks and reads the record at `path`. `None` if a process has locked it or has deleted it meanwhile.
    ///
    /// # Errors
    /// If the file cannot be read or is not a record of this user.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::options().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(cause)) => return Err(cause),
        }
        if !path.exists() {
            return Ok(None);
        }
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::uid(&file.metadata()?) != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
        }
        let content = serde_json::from_reader((&file).take(MOST_RECORD_BYTES))?;
        Ok(Some(Self { path: path.to_owned(), _lock: file, content }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    fn out(&self) -> PathBuf {
        self.path.with_extension("out")
    }

    /// The file into which the program prints.
    pub(super) fn output(&self) -> Result<File, Failure> {
        let mut options = File::options();
        options.append(true);
        // The program inherits the open file, and with it a lock or, on Windows, where it does not inherit locks, the
        // share mode. So the file is not free before the program has ended, even if mdfsck is killed.
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, SHARE_READ_AND_DELETE);
        let out = options.open(self.out()).map_err(|cause| unusable(&self.out(), &cause))?;
        #[cfg(unix)]
        out.try_lock().map_err(|cause| unusable(&self.out(), &cause.into()))?;
        Ok(out)
    }

    /// Whether the program that makes the snapshot, or a step of it, is still running: it has the file open into which it
    /// prints.
    #[cfg(not(windows))]
    pub(super) fn is_being_made(&self) -> bool {
        let file = File::open(self.out());
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Whether the program that makes the snapshot, or a step of it, is still running: it has the file open into which it
    /// prints.
    #[cfg(windows)]
    pub(super) fn is_being_made(&self) -> bool {
        let file = File::options().append(true).open(self.out());
        file.is_err_and(|cause| cause.raw_os_error() == Some(ERROR_SHARING_VIOLATION))
    }

    /// The number of bytes that the program has printed.
    pub(super) fn printed_bytes(&self) -> u64 {
        fs::metadata(self.out()).map_or(0, |file| file.len())
    }

    /// What the program has printed, up to the limit.
    pub(super) fn printed(&self) -> Result<Vec<u8>, Failure> {
        let mut printed = Vec::new();
        let read = File::open(self.out()).and_then(|out| {
            // After a power failure, the next run needs these lines.
            let _ = out.sync_all();
            out.take(MOST_PRINTED_BYTES).read_to_end(&mut printed)
        });
        match read {
            Ok(_) => Ok(printed),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(printed),
            Err(cause) => Err(unusable(&self.out(), &cause)),
        }
    }

    /// Deletes the record. Returns the exit-status bits.
    pub(super) fn delete(self) -> u8 {
        let deleted = fs::remove_file(&self.path).and_then(|()| fs::remove_file(self.out()));
        let failed = deleted.err().filter(|cause| cause.kind() != io::ErrorKind::NotFound);
        failed.map_or(0, |cause| {
            let text = "the snapshot is removed, but its record cannot be deleted";
            Failure::unable(format!("{}: {text}: {cause}", self.path.display())).report()
        })
    }
}

/// The records in a folder that no process has locked: those of killed runs, and those whose snapshots could not be
/// removed or were still being made.
///
/// # Errors
/// If the folder cannot be read.
pub(super) fn left(folder: &Path) -> Result<Vec<Record>, Failure> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(unusable(folder, &cause)),
    };
    let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_record).take(MOST_RECORDS).collect();
    paths.sort();
    let take = |path: PathBuf| {
        Record::take(&path).unwrap_or_else(|cause| {
            warn(format!("{}: the record of a snapshot cannot be used: {cause}", path.display()));
            None
        })
    };
    Ok(paths.into_iter().filter_map(take).collect())
}

/// Makes a folder that only its owner can use.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn unusable(path: &Path, cause: &io::Error) -> Failure {
    Failure::unable(format!("{}: cannot be used for the record of the snapshot: {cause}", path.display()))
}
