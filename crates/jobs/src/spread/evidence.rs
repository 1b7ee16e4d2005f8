//! Evidence that a later window of a check reads the same bytes as an earlier window. Without this evidence, parts of
//! an earlier window are not used again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use catalog::Database;
use check::part;
use format::PageId;
use parts::SourceFile;
use serde::{Deserialize, Serialize};
use source::{PageSource, storage};
use sums::HashKey;

use crate::failure::Failure;
use crate::fingerprint;
use crate::input::Input;
use crate::logs;
use crate::request::Request;
use crate::spread::What;

/// The address of the boot page.
const BOOT: PageId = PageId::new(1, 9);

/// Identifies an image, which is input whose bytes do not change. An image is a backup, several backups of one restore,
/// data files that were shut down cleanly, or data files in a storage snapshot that the user declares with `--image`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The image's name from `--image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    /// The GUIDs and positions of the backup sets; empty for data files.
    sets: Vec<String>,
    /// The files of the image.
    files: Vec<FileIdentity>,
    /// A fingerprint of the boot page and of all file header pages.
    headers: String,
}

/// Identifies a file, or an object in object storage. The identity of a file consists of all values that the operating
/// system reports and that change when a program writes to the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileIdentity {
    path: PathBuf,
    bytes: u64,
    /// The time of the last write, in nanoseconds since 1970.
    modified_ns: i64,
    /// The time of the last change of the file's content or metadata, in nanoseconds since 1970. Programs cannot set
    /// this time. 0 if the operating system does not report the time.
    changed_ns: i64,
    /// The inode number of the file; 0 if the operating system does not report it.
    number: u64,
    /// The strong entity tag of an object in object storage, which identifies the version of the object. For such an
    /// object, no times are stored. During a run, all bytes of the object are read from this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The fingerprint of a few places in the file. `None` in a plan that an earlier version of mdfsck has made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

impl PartialEq for FileIdentity {
    fn eq(&self, other: &Self) -> bool {
        let known = |one: &Self| (one.bytes, one.modified_ns, one.changed_ns, one.number);
        let may_be = self.fingerprint == other.fingerprint || self.fingerprint.is_none() || other.fingerprint.is_none();
        known(self) == known(other) && (&self.path, &self.version) == (&other.path, &other.version) && may_be
    }
}

impl FileIdentity {
    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is another now, or cannot be identified.
    pub(crate) fn has_changed(&self) -> bool {
        Self::of(&self.path).ok().as_ref() != Some(self)
    }

    /// Identifies an existing file or object. An object without a strong entity tag causes an error, since two versions
    /// of the object could have the same identity.
    fn of(path: &Path) -> io::Result<Self> {
        if let Some(object) = storage::version(path) {
            let storage::Version { bytes, name, is_strong } = object?;
            let version = is_strong.then_some(name).ok_or_else(|| io::Error::from(ErrorKind::Unsupported))?;
            let path = path.to_owned();
            let version = Some(version);
            return Ok(Self { path, bytes, modified_ns: 0, changed_ns: 0, number: 0, version, fingerprint: None });
        }
        let metadata = fs::metadata(path)?;
        let (changed_ns, number) = identity(&metadata);
        let modified = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let modified_ns = modified.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or_default();
        let (path, bytes, fingerprint) = (path.to_owned(), metadata.len(), fingerprint::of(path).ok().flatten());
        Ok(Self { path, bytes, modified_ns, changed_ns, number, version: None, fingerprint })
    }
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> (i64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec()), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (i64, u64) {
    (0, 0)
}

/// The identities that files had before they were opened. A file that is replaced after it was opened is still read in
/// its old version, but the evidence describes the new version. Comparing the evidence with these identities shows the
/// replacement.
pub struct Before(BTreeMap<PathBuf, FileIdentity>);

impl Before {
    /// Identifies the named files and the files in named folders. Files that cannot be read are left out.
    pub fn of(request: &Request, what: &What<'_>) -> Self {
        let mut before = Self(BTreeMap::new());
        let of_sets = what.sets.into_iter().flatten().flat_map(|set| &set.paths);
        let named = request.paths.iter().chain(of_sets);
        for path in named.filter(|path| storage::url(path).is_none()) {
            match storage::is_folder(path) {
                true => before.add(storage::files_in(path)),
                false => before.add([path.clone()]),
            }
        }
        before
    }

    /// The number of files. Objects in object storage do not count.
    pub(crate) fn files(&self) -> usize {
        self.0.len()
    }

    /// The identity that a file had before it was opened, if it is still the same; that of an object in object storage
    /// names the version that is read.
    pub(crate) fn of_path(&self, path: &Path) -> Option<FileIdentity> {
        if storage::url(path).is_some() {
            return FileIdentity::of(path).ok();
        }
        let known = self.0.get(&std::path::absolute(path).ok()?)?;
        (!known.has_changed()).then(|| known.clone())
    }

    /// Adds the opened data files and all files in the folders of the data files. The log is not open yet, but is
    /// usually one of the files in these folders.
    pub fn with_beside(mut self, input: &Input) -> Self {
        if let Input::Files(files) = input {
            let source: &dyn PageSource = files.as_ref();
            self.add(source.files().iter().map(|file| file.path.clone()).chain(logs::files_beside(source)));
        }
        self
    }

    fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths.into_iter().filter_map(|path| std::path::absolute(path).ok()) {
            if let Entry::Vacant(entry) = self.0.entry(path)
                && let Ok(identity) = FileIdentity::of(entry.key())
            {
                entry.insert(identity);
            }
        }
    }

    /// Describes the first file of the evidence that may differ from the file that was opened; `None` if there is no
    /// such file.
    pub fn changed_file(&self, evidence: &Evidence) -> Option<String> {
        let is_other = |file: &&FileIdentity| file.version.is_none() && self.0.get(&file.path) != Some(*file);
        let changed = evidence.files.iter().find(is_other);
        changed.map(|file| format!("{} was changed or replaced after it had been opened", file.path.display()))
    }
}

impl Evidence {
    /// The evidence for the files in their present state. Returns `None` if a later window may read different bytes.
    /// This is the case for data files that were not shut down cleanly and that the user did not declare as an `image`,
    /// and for objects without a strong entity tag.
    ///
    /// # Errors
    ///
    /// If the operating system cannot report on a file.
    pub fn of(
        input: &Input,
        (source, is_recovered): (&dyn PageSource, bool),
        (database, image): (&Database, Option<&str>),
        (key, files): (&HashKey, &[SourceFile]),
    ) -> Result<Option<Self>, Failure> {
        let sets = match input {
            Input::Files(_) => {
                let is_clean = database.boot.as_ref().is_some_and(catalog::Boot::clean_shutdown);
                if image.is_none() && (!is_clean || is_recovered) {
                    return Ok(None);
                }
                Vec::new()
            }
            Input::Backups(backups) => {
                let of_set = |set: &source::backup::UsedSet| {
                    let guid = set.guid.as_deref().unwrap_or_default();
                    format!("{guid} {} {:?} {}", set.position, set.kind, set.finished.as_deref().unwrap_or_default())
                };
                let guid = backups.pages.set().guid.clone().unwrap_or_default();
                std::iter::once(guid).chain(backups.pages.sets().iter().map(of_set)).collect()
            }
        };
        let of_file = |file: &SourceFile| match FileIdentity::of(&file.path) {
            Ok(identity) => Ok(Some(identity)),
            Err(cause) if cause.kind() == ErrorKind::Unsupported => Ok(None),
            Err(cause) => Err(Failure::unable(format!("{}: {cause}", file.path.display()))),
        };
        let Some(files) = files.iter().map(of_file).collect::<Result<Option<Vec<_>>, _>>()? else { return Ok(None) };
        let first = source.files().iter().map(|file| PageId::new(file.file_id, 0));
        let headers = part::fingerprint_of(source, key, first.chain([BOOT])).to_string();
        Ok(Some(Self { image: image.map(str::to_owned), sets, files, headers }))
    }

    /// Describes the first file that has changed. Detects only changes that the operating system reports.
    pub fn changed_file(&self) -> Option<String> {
        let is_other = |file: &&FileIdentity| FileIdentity::of(&file.path).ok().as_ref() != Some(*file);
        self.files.iter().find(is_other).map(|file| format!("{} was changed, replaced or removed", file.path.display()))
    }

    /// Whether a file has been replaced or deleted. Returns false for a missing file if the operating system cannot
    /// report on it. Also returns false if the folder of the file is empty or missing, since the folder may be a share
    /// that is not mounted. Objects in object storage are not looked up.
    pub fn is_stale(&self) -> bool {
        let mut of_system = self.files.iter().filter(|file| file.version.is_none());
        of_system.any(|file| match FileIdentity::of(&file.path) {
            Ok(now) => now != *file,
            Err(cause) => cause.kind() == ErrorKind::NotFound && has_files(file.path.parent()),
        })
    }

    /// Requires that no file has changed. Detects only changes that the operating system reports.
    ///
    /// # Errors
    /// An error for the first file that has changed.
    pub fn verify_files(&self) -> Result<(), Failure> {
        match self.changed_file() {
            None => Ok(()),
            Some(what) => Err(Failure::unable(format!(
                "{what} while it was read; the next window reads the whole database again"
            ))),
        }
    }

    /// Whether the image consists of objects in object storage.
    pub fn is_of_objects(&self) -> bool {
        self.files.iter().any(|file| file.version.is_some())
    }

    /// Describes how the evidence `now` differs from this evidence. Returns `None` if both are equal.
    pub fn difference(&self, now: &Self) -> Option<String> {
        let changed = |(then, now): (&FileIdentity, &FileIdentity)| {
            (then != now).then(|| format!("{} was changed, replaced or removed", now.path.display()))
        };
        let files = self.files.iter().zip(&now.files).find_map(changed);
        if self.image != now.image {
            return Some("it has another name (--image)".to_owned());
        }
        if self.sets != now.sets {
            return Some("it is another backup".to_owned());
        }
        files.or_else(|| (self != now).then(|| "it has other files, or their header pages differ".to_owned()))
    }
}

/// Whether a folder exists and is not empty.
fn has_files(folder: Option<&Path>) -> bool {
    folder.is_some_and(|folder| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn evidence(path: &Path) -> Evidence {
        let files = vec![FileIdentity::of(path).unwrap()];
        Evidence { image: None, sets: vec!["1".to_owned()], files, headers: "2".to_owned() }
    }

    #[test]
    fn a_byte_that_was_changed_shows_even_if_size_and_time_are_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mdf");
        fs::write(&path, [1; 100]).unwrap();
        let then = evidence(&path);
        assert_eq!(then.difference(&evidence(&path)), None);
        then.verify_files().unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        fs::write(&path, [2; 100]).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
        if cfg!(unix) {
            assert!(then.difference(&evidence(&path)).unwrap().ends_with("was changed, replaced or removed"));
            assert!(then.verify_files().unwrap_err().text.contains("removed while it was read"));
            assert!(then.is_stale());
        }
    }

    #[test]
    fn a_file_that_cannot_be_asked_about_is_not_stale() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mdf");
        fs::write(&path, [1; 100]).unwrap();
        let then = evidence(&path);
        assert!(!then.is_stale());
        fs::remove_file(&path).unwrap();
        assert!(!then.is_stale(), "a share that is not mounted is an empty folder");
        fs::write(folder.path().join("b.mdf"), [1; 100]).unwrap();
        assert!(then.is_stale());
        // The operating system cannot follow a loop of links, so it cannot report on the file.
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&path, &path).unwrap();
            assert!(!then.is_stale() && then.verify_files().is_err());
        }
    }

    #[test]
    fn a_file_that_was_put_in_the_place_of_one_that_is_open_shows() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a.bak"), folder.path().join("b.bak"));
        fs::write(&path, [1; 100]).unwrap();
        fs::write(&other, [1; 100]).unwrap();
        let mut before = Before(BTreeMap::new());
        before.add([path.clone()]);
        assert_eq!(before.changed_file(&evidence(&path)), None);
        assert!(before.changed_file(&evidence(&other)).is_some(), "nothing is known of it");
        fs::rename(&other, &path).unwrap();
        // Adding a file again keeps the identity that was recorded first.
        before.add([path.clone()]);
        if cfg!(unix) {
            assert!(before.changed_file(&evidence(&path)).unwrap().contains("a.bak was changed or replaced"));
        }
    }

    #[test]
    fn another_backup_or_other_header_pages_are_another_image() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bak");
        fs::write(&path, [1; 100]).unwrap();
        let then = evidence(&path);
        let other = Evidence { image: Some("LUN 7, Sunday".to_owned()), ..then.clone() };
        assert_eq!(then.difference(&other).as_deref(), Some("it has another name (--image)"));
        let other = Evidence { sets: vec!["2".to_owned()], ..then.clone() };
        assert_eq!(then.difference(&other).as_deref(), Some("it is another backup"));
        let other = Evidence { headers: "3".to_owned(), ..then.clone() };
        assert!(then.difference(&other).unwrap().contains("header pages"));
        let other = Evidence { files: Vec::new(), ..then.clone() };
        assert!(then.difference(&other).is_some());
    }
}
