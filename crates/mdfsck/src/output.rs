//! Decides where results are written: to stdout, or to a file that is not a SQL Server file.
//!
//! A file of results is either complete or does not exist. It is written under a temporary name in the target folder
//! and renamed at the end. If a run is killed, no empty or partial file has the final name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use jobs::carve;
use jobs::failure::Failure;
use source::{FileKind, PageSource, identify};
use tempfile::NamedTempFile;

use crate::closed::{self, Closed};

/// Number of bytes to read from the start of a file to identify it.
const IDENTIFY_BYTES: u64 = 4 * format::PAGE_BYTES as u64;
/// Maximum number of symbolic links to follow from the target path to the file. Linux has the same limit.
const MAX_LINKS: usize = 40;

/// A target for results. Opening it tests whether it can be written, before any results exist.
#[derive(Debug)]
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A pipe, a terminal, `/dev/null` or `/dev/stdout`. Results are written to it directly, without a temporary file.
    Direct(PathBuf, File),
    /// A file, which is created or replaced.
    File(PathBuf),
    /// A new file, which never replaces an existing file.
    New(PathBuf),
}

impl Target {
    /// Opens the target at `path`; stdout for `-` or no path. [`Self::write`] replaces an existing file only when all
    /// results are written.
    ///
    /// # Errors
    /// If the file is one of `inputs` or any SQL Server file, or if the target cannot be written.
    pub(crate) fn open(path: Option<&Path>, inputs: &dyn PageSource) -> Result<Self, Failure> {
        Self::among(path, &carve::inputs(inputs))
    }

    /// Like [`Self::open`], but takes the paths of the input files.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub(crate) fn among(path: Option<&Path>, inputs: &[&Path]) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else { return Ok(Self::Stdout) };
        refuse_database_files("--output", path, inputs)?;
        Self::at(path)
    }

    /// Opens the target at `path`.
    ///
    /// # Errors
    /// If the target is a SQL Server file, or cannot be written.
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        refuse_sql_server_file(path)?;
        let failed = |cause| unwritable(path, &cause);
        let Some(file) = replaceable(path).map_err(failed)? else {
            // Opens the path for appending, since /dev/stdout may be a file that already has content.
            let out = OpenOptions::new().append(true).open(path).map_err(failed)?;
            return Ok(Self::Direct(path.to_owned(), out));
        };
        if fs::metadata(&file).is_ok_and(|metadata| metadata.permissions().readonly()) {
            return Err(unwritable(path, &io::Error::from(io::ErrorKind::PermissionDenied)));
        }
        // Creates and removes a temporary file now, so that a folder that cannot be written is reported immediately and
        // not after hours.
        drop(beside(&file).map_err(failed)?);
        Ok(Self::File(file))
    }

    /// Like [`Self::at`], but never replaces a file. Writing fails if the file exists when the results are written.
    ///
    /// # Errors
    /// Those of [`Self::at`].
    pub(crate) fn at_new(path: &Path) -> Result<Self, Failure> {
        Ok(match Self::at(path)? {
            Self::File(path) => Self::New(path),
            target => target,
        })
    }

    /// Writes the results. An existing file is replaced only when all results are on disk. Standard output, pipes and
    /// terminals receive the results directly.
    ///
    /// # Errors
    ///
    /// If the results cannot be written. Then an existing file is unchanged.
    pub(crate) fn write(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        match self {
            Self::Stdout => print(write),
            Self::Direct(path, file) => {
                let mut out = BufWriter::new(file);
                let written = write(&mut out).and_then(|()| out.flush());
                written.map_err(|cause| if is_closed(&cause) { Failure::quiet() } else { unwritable(&path, &cause) })
            }
            Self::File(path) => replace(&path, true, write).map_err(|cause| unwritable(&path, &cause)),
            Self::New(path) => replace(&path, false, write).map_err(|cause| match cause.kind() {
                io::ErrorKind::AlreadyExists => Failure::file_exists(&path),
                _ => unwritable(&path, &cause),
            }),
        }
    }
}

/// The regular file that `path` names after all symbolic links are followed. The file may not exist yet. Returns `None`
/// if the path names anything other than a regular file.
fn replaceable(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        // Links in /proc, such as /dev/stdout, refer to open files. The path that such a link shows may meanwhile name
        // a different file.
        if fs::canonicalize(folder_of(&path)).is_ok_and(|folder| folder.starts_with("/proc")) {
            return Ok(None);
        }
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => path = folder_of(&path).join(fs::read_link(&path)?),
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) => return Ok(metadata.is_file().then_some(path)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Some(path)),
            Err(cause) => return Err(cause),
        }
    }
    Err(io::Error::other("its symbolic links form a loop"))
}

/// The full path of the file that results for the target `path` would be written to. The file may not exist yet.
pub(crate) fn place(path: &Path) -> PathBuf {
    let file = replaceable(path).ok().flatten();
    let path = file.as_deref().unwrap_or(path);
    let of_folder = || Some(fs::canonicalize(folder_of(path)).ok()?.join(path.file_name()?));
    fs::canonicalize(path).ok().or_else(of_folder).unwrap_or_else(|| path.to_owned())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Creates a temporary file in the folder of `path`. Its permissions are those of the existing file at `path`, or those
/// of a new file if there is no file at `path`.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".partial");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(folder_of(path)).map_err(|cause| {
        // Removes the name of the temporary file from the end of the message, since the name means nothing to a user.
        let text = cause.to_string();
        let (text, folder) = (text.split(" at path ").next().unwrap_or_default(), folder_of(path).display());
        io::Error::new(cause.kind(), format!("no file can be created in the folder {folder}: {text}"))
    })?;
    if let Ok(metadata) = fs::metadata(path) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    Ok(file)
}

fn replace(path: &Path, may_replace: bool, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let file = beside(path)?;
    let mut out = BufWriter::new(file.as_file());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    file.as_file().sync_all()?;
    match may_replace {
        true => file.persist(path),
        false => file.persist_noclobber(path),
    }
    .map_err(|failed| failed.error)?;
    // Syncs the folder too, so that the new file name is on disk. Some systems cannot sync a folder; their error is
    // ignored.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

pub(crate) fn unwritable(path: &Path, cause: &io::Error) -> Failure {
    Failure::unable(format!("{}: cannot be written: {cause}", path.display()))
}

/// Refuses to overwrite one of the input files.
pub(crate) fn refuse_database_files(option: &str, path: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    let same = |input: &Path| matches!((fs::canonicalize(input), fs::canonicalize(path)), (Ok(a), Ok(b)) if a == b);
    if inputs.iter().any(|input| same(input)) {
        return Err(Failure::usage(format!("{option} {}: is one of the files to be checked", path.display())));
    }
    Ok(())
}

/// Refuses to overwrite an existing data, log or backup file of SQL Server, whatever its name and extension are.
pub(crate) fn refuse_sql_server_file(path: &Path) -> Result<(), Failure> {
    // Identifies the file by its content, so that inputs and log files are also protected if a hard link with another
    // name points to them. Reads only regular files, since reading a pipe might never end.
    if fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        let mut start = Vec::new();
        let read = File::open(path).and_then(|file| file.take(IDENTIFY_BYTES).read_to_end(&mut start));
        read.map_err(|cause| unwritable(path, &cause))?;
        if identify(&start) != FileKind::Other {
            let text = format!("{}: is a SQL Server file and will not be overwritten", path.display());
            return Err(Failure::usage(text));
        }
    }
    Ok(())
}

/// Refuses standard output as the target of an HTML page.
///
/// # Errors
/// If `path` is standard output.
pub(crate) fn refuse_standard_output(option: &str, path: &Path) -> Result<(), Failure> {
    if path.as_os_str() == "-" || is_standard_output(path) {
        let text = format!("{option} {}: standard output is for the results; give a file", path.display());
        return Err(Failure::usage(text));
    }
    Ok(())
}

/// Whether a path, such as `/dev/stdout`, names standard output.
#[cfg(unix)]
fn is_standard_output(path: &Path) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let out = io::stdout().as_fd().try_clone_to_owned().and_then(|out| File::from(out).metadata());
    matches!((out, fs::metadata(path)), (Ok(out), Ok(page)) if (out.dev(), out.ino()) == (page.dev(), page.ino()))
}

#[cfg(not(unix))]
fn is_standard_output(_: &Path) -> bool {
    false
}

/// Runs `write` on stdout.
///
/// # Errors
///
/// If not all output could be written. If the reader has closed the pipe (as in `| head`), the failure has no message,
/// since the reader already has the output that it wanted. The exit status still differs from that of complete output.
pub(crate) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let written = match closed::is_stdout() {
        true => write(&mut Closed),
        false => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out).and_then(|()| out.flush())
        }
    };
    written.map_err(|cause| match is_closed(&cause) {
        true => Failure::quiet(),
        false => Failure::unable(format!("the results cannot be written to standard output: {cause}")),
    })
}

fn is_closed(cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::BrokenPipe
}
