//! Access to files by path: files of the local system, and objects in object storage if the program supports object
//! storage.
//!
//! A URL (`s3://bucket/sales.bak`) can be used wherever a path can. This crate has no code to access URLs. A program
//! passes an [`ObjectStorage`] to [`use_storage`], and from then on, this object storage opens and lists all paths that
//! are URLs.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Access to objects by URL.
pub trait ObjectStorage: Send + Sync {
    /// Opens an object. Until [`Self::forget`] is called, opening it again yields the same bytes or an error.
    ///
    /// # Errors
    /// An error if the object cannot be read. Its text gives the reason and the remedy, and contains no secret.
    fn open(&self, url: &str) -> io::Result<Arc<dyn Object>>;

    /// The kind of thing at `url`.
    ///
    /// # Errors
    /// As for [`Self::open`]; the kind of the error is `NotFound` if there is nothing at `url`.
    fn kind(&self, url: &str) -> io::Result<Kind>;

    /// The objects and folders directly below `url`, sorted by name.
    ///
    /// # Errors
    /// An error if they cannot be listed. Its text gives the reason and the remedy, and contains no secret.
    fn list(&self, url: &str) -> io::Result<Vec<Entry>>;

    /// Announces that the objects at these URLs will be opened soon.
    fn announce(&self, urls: &[&str]);

    /// Forgets which objects exist and which objects could not be opened, so that the next use of an object looks the
    /// object up again. Objects that are already open do not change.
    fn forget(&self);

    /// The most memory used for contents of objects up to now, in bytes.
    fn held_bytes(&self) -> u64;
}

/// An object that many threads can read at the same time.
pub trait Object: Send + Sync + fmt::Debug {
    /// Length of the object in bytes.
    fn length(&self) -> u64;

    /// An identifier of this version of the object, for example its ETag.
    fn version(&self) -> String;

    /// Whether the version is a strong entity tag (RFC 9110, 8.8.1). Objects with different bytes never have the same
    /// strong entity tag.
    fn has_strong_version(&self) -> bool;

    /// Reads at least one byte from `offset`, or none at the end. All bytes come from the version of the object that
    /// was opened.
    ///
    /// # Errors
    /// An error if the object cannot be read or was overwritten. Its text gives the reason and the remedy, and contains
    /// no secret.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Announces that `bytes` bytes from `offset` will be read soon.
    fn prefetch(&self, offset: u64, bytes: u64);
}

/// The version of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// Length of the object in bytes.
    pub bytes: u64,
    /// An identifier of the version, for example an ETag.
    pub name: String,
    /// Whether objects with different bytes always have different identifiers.
    pub is_strong: bool,
}

/// The kind of thing that a path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file or an object.
    File {
        /// Length in bytes.
        bytes: u64,
    },
    /// A folder, or a common prefix of the names of objects.
    Folder,
    /// A pipe that is named by a path.
    Pipe,
    /// Neither a file, a folder nor a pipe.
    Other,
}

/// An entry of a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Path of the entry.
    pub path: PathBuf,
    /// Whether the entry is a folder; a link to a folder does not count as one.
    pub is_folder: bool,
}

static STORAGE: OnceLock<Box<dyn ObjectStorage>> = OnceLock::new();

/// Uses `storage` for all URLs from now on. Only the first call has an effect.
pub fn use_storage(storage: Box<dyn ObjectStorage>) {
    let _ = STORAGE.set(storage);
}

/// The most memory used for contents of objects up to now, in bytes; 0 if no path of this run is a URL.
pub fn held_bytes() -> u64 {
    STORAGE.get().map_or(0, |storage| storage.held_bytes())
}

/// Forgets which objects exist; see [`ObjectStorage::forget`]. Callers that look at the same paths repeatedly need this
/// function.
pub fn forget() {
    if let Some(storage) = STORAGE.get() {
        storage.forget();
    }
}

/// The path as a URL; `None` if it is not a URL.
///
/// ```
/// use std::path::Path;
/// assert_eq!(source::storage::url(Path::new("s3://backups/sales.bak")), Some("s3://backups/sales.bak"));
/// assert_eq!(source::storage::url(Path::new("C:/backups/sales.bak")), None);
/// ```
pub fn url(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
    is_scheme.then_some(text)
}

/// The object storage for a path that is a URL, and the URL; `None` for a path of the local system.
pub(crate) fn of(path: &Path) -> Option<io::Result<(&'static dyn ObjectStorage, &str)>> {
    let url = url(path)?;
    let missing = || io::Error::new(io::ErrorKind::Unsupported, "this build of mdfsck cannot read object storage");
    Some(STORAGE.get().map(|storage| (storage.as_ref(), url)).ok_or_else(missing))
}

/// The kind of thing that `path` names.
///
/// # Errors
/// Errors of the operating system or of the storage; the kind of the error is `NotFound` if there is nothing at
/// `path`.
pub fn kind(path: &Path) -> io::Result<Kind> {
    if let Some(storage) = of(path) {
        return storage.and_then(|(storage, url)| storage.kind(url));
    }
    let metadata = fs::metadata(path)?;
    Ok(match &metadata {
        file if file.is_file() => Kind::File { bytes: file.len() },
        folder if folder.is_dir() => Kind::Folder,
        pipe if is_pipe(pipe) => Kind::Pipe,
        _ => Kind::Other,
    })
}

/// Whether something may exist at `path` although [`kind`] failed. A request for an object may fail for other reasons
/// than a missing object, so the result is true for a URL unless the cause is `NotFound`. For a local path the result
/// is false: a folder entry for which [`kind`] fails is a dangling link.
pub fn may_be_there(path: &Path, cause: &io::Error) -> bool {
    url(path).is_some() && cause.kind() != io::ErrorKind::NotFound
}

/// Whether `path` names a file or an object.
pub fn is_file(path: &Path) -> bool {
    matches!(kind(path), Ok(Kind::File { .. }))
}

/// Whether `path` names a folder, or is a common prefix of the names of objects.
pub fn is_folder(path: &Path) -> bool {
    matches!(kind(path), Ok(Kind::Folder))
}

/// The length of a file or an object in bytes; `None` if it cannot be found out.
pub fn length(path: &Path) -> Option<u64> {
    match kind(path) {
        Ok(Kind::File { bytes }) => Some(bytes),
        _ => None,
    }
}

/// The version of the object at `path`; `None` for a path of the local system.
///
/// # Errors
/// Errors of the storage.
pub fn version(path: &Path) -> Option<io::Result<Version>> {
    let object = of(path)?.and_then(|(storage, url)| storage.open(url));
    let version = |object: Arc<dyn Object>| Version {
        bytes: object.length(),
        name: object.version(),
        is_strong: object.has_strong_version(),
    };
    Some(object.map(version))
}

/// The direct entries of a folder, sorted by name.
///
/// # Errors
/// Errors of the operating system or of the storage.
pub fn list(folder: &Path) -> io::Result<Vec<Entry>> {
    if let Some(storage) = of(folder) {
        return storage.and_then(|(storage, url)| storage.list(url));
    }
    // If an entry was deleted in the meantime, opening it will fail later.
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let entry = |entry: fs::DirEntry| Entry { is_folder: is_folder(&entry), path: entry.path() };
    let mut entries = fs::read_dir(folder)?.map(|found| found.map(entry)).collect::<io::Result<Vec<_>>>()?;
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

/// The paths of the files in a folder, sorted by name; links to files count as files. The result is empty if the folder
/// cannot be read.
pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    files_among(list(folder).unwrap_or_default())
}

/// The paths of the files among the entries of a folder.
pub fn files_among(entries: Vec<Entry>) -> Vec<PathBuf> {
    let paths = entries.into_iter().filter(|entry| !entry.is_folder).map(|entry| entry.path);
    paths.filter(|path| url(path).is_some() || path.is_file()).collect()
}

/// Announces that these files will be opened soon, so that the storage can open several objects at the same time.
pub fn announce<'p>(paths: impl Iterator<Item = &'p Path>) {
    let urls: Vec<&str> = paths.filter_map(url).collect();
    if let Some(storage) = STORAGE.get().filter(|_| !urls.is_empty()) {
        storage.announce(&urls);
    }
}

/// Returns the path with all links resolved. All names of a file have the same canonical path. A URL is its own
/// canonical path.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    if url(path).is_some() { Ok(path.to_owned()) } else { fs::canonicalize(path) }
}

/// The device type and name of a backup file in SQL Server statements: `DISK` with its full path, or `URL`. `None` if
/// the path is not UTF-8.
pub fn device(path: &Path) -> Option<(&'static str, String)> {
    if let Some(url) = url(path) {
        return Some(("URL", url.to_owned()));
    }
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Some(("DISK", full.to_str()?.to_owned()))
}

/// Whether a path names a pipe.
#[cfg(unix)]
fn is_pipe(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type())
}

/// On this operating system, pipes have no paths that a user would name.
#[cfg(not(unix))]
fn is_pipe(_: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_scheme_of_several_letters_makes_a_url() {
        for path in ["s3://b/k", "https://host/x.bak", "az://c/", "s3a://b"] {
            assert_eq!(url(Path::new(path)), Some(path));
        }
        for path in ["sales.bak", "c://sales.bak", "/s3:/b", "a b://c", "://x", r"\\server\share\x.bak"] {
            assert_eq!(url(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_url_is_an_error_where_nothing_reads_it() {
        let path = Path::new("s3://bucket/sales.bak");
        assert!(kind(path).is_err() && list(path).is_err() && !is_file(path) && !is_folder(path));
    }

    #[test]
    fn statements_name_a_url_as_such() {
        assert_eq!(device(Path::new("s3://b/x.bak")), Some(("URL", "s3://b/x.bak".to_owned())));
        assert!(device(Path::new("x.bak")).is_some_and(|(device, path)| device == "DISK" && path.len() > 5));
    }

    #[test]
    fn a_folder_is_listed_by_name_with_its_folders() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.bak", "a.bak"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        fs::create_dir(folder.path().join("sub")).unwrap();
        let found = list(folder.path()).unwrap();
        let names: Vec<_> = found.iter().map(|entry| (entry.path.file_name().unwrap(), entry.is_folder)).collect();
        assert_eq!(names, [("a.bak".as_ref(), false), ("b.bak".as_ref(), false), ("sub".as_ref(), true)]);
        assert_eq!(files_in(folder.path()).len(), 2);
        assert_eq!(kind(folder.path()).unwrap(), Kind::Folder);
        assert_eq!(kind(&folder.path().join("a.bak")).unwrap(), Kind::File { bytes: 1 });
    }
}
