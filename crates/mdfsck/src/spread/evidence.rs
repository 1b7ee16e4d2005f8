//! What shows that a later window has the same bytes before it: without it nothing of an earlier one is used again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use catalog::Database;
use check::{HashKey, part};
use format::PageId;
use parts::SourceFile;
use serde::{Deserialize, Serialize};
use source::{PageSource, storage};

use crate::check::What;
use crate::cli::CheckArguments;
use crate::failure::Failure;
use crate::fingerprint;
use crate::input::Input;
use crate::logs;

/// The boot page.
const BOOT: PageId = PageId::new(1, 9);

/// An immutable object: a backup, or several of which a restore is made, data files that were shut down cleanly, or those of a storage
/// snapshot that the user names.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evidence {
    /// What the user calls the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    /// Which backup sets, by their own ids; empty for data files.
    sets: Vec<String>,
    /// The files.
    files: Vec<FileIdentity>,
    /// What boot page and file header pages hold.
    headers: String,
}

/// A file, with everything that the system reports about it that changes when it is written to; or an object.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileIdentity {
    path: PathBuf,
    bytes: u64,
    /// When it was last written to, in nanoseconds since 1970.
    modified_ns: i64,
    /// When anything about it was last changed, which no program can set; 0 where the system does not say.
    changed_ns: i64,
    /// Its number in its file system; 0 where the system does not say.
    number: u64,
    /// The strong entity tag of an object, which has no times. Within a run all of its bytes are of this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// What a few of its places hold; an earlier version of the program did not say.
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
    /// What exists now; an error also for an object that another one could be mistaken for.
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

/// Files as they were before they were opened. If a file is replaced, the window still has the old one open, but the evidence
/// describes the new one.
pub(crate) struct Before(BTreeMap<PathBuf, FileIdentity>);

impl Before {
    /// What is named, and the files in folders that are. What the system does not know is left out.
    pub(crate) fn of(arguments: &CheckArguments, what: &What<'_>) -> Self {
        let mut before = Self(BTreeMap::new());
        let of_sets = what.sets.into_iter().flatten().flat_map(|set| &set.paths);
        let named = arguments.paths.iter().chain(of_sets);
        for path in named.filter(|path| storage::url(path).is_none()) {
            match storage::is_folder(path) {
                true => before.add(storage::files_in(path)),
                false => before.add([path.clone()]),
            }
        }
        before
    }

    /// With what is beside data files that were opened just now: their log was not.
    pub(crate) fn with_beside(mut self, input: &Input) -> Self {
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

    /// The first file of the evidence that may be another one than the one that was opened, in words.
    pub(super) fn changed_file(&self, evidence: &Evidence) -> Option<String> {
        let is_other = |file: &&FileIdentity| file.version.is_none() && self.0.get(&file.path) != Some(*file);
        let changed = evidence.files.iter().find(is_other);
        changed.map(|file| format!("{} was changed or replaced when it was open already", file.path.display()))
    }
}

impl Evidence {
    /// What exists now; `None` if a later window may see other bytes: data files that were not shut down cleanly and are not
    /// declared to be an `image`, or an object without a strong tag.
    ///
    /// # Errors
    /// If a file cannot be asked for.
    pub(super) fn of(
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

    /// The first file that is not the same, as far as the system says, in words.
    pub(super) fn changed_file(&self) -> Option<String> {
        let is_other = |file: &&FileIdentity| FileIdentity::of(&file.path).ok().as_ref() != Some(*file);
        self.files.iter().find(is_other).map(|file| format!("{} was changed, replaced or removed", file.path.display()))
    }

    /// Whether a file has been replaced or is gone. A file that the system cannot report on may still be the same, as may one
    /// whose folder is empty or gone: a share that is not mounted looks like that. Objects of other checks are not looked up.
    pub(super) fn is_stale(&self) -> bool {
        let mut of_system = self.files.iter().filter(|file| file.version.is_none());
        of_system.any(|file| match FileIdentity::of(&file.path) {
            Ok(now) => now != *file,
            Err(cause) => cause.kind() == ErrorKind::NotFound && has_files(file.path.parent()),
        })
    }

    /// Whether the files are the same, as far as the system says.
    ///
    /// # Errors
    /// The first that is not.
    pub(super) fn verify_files(&self) -> Result<(), Failure> {
        match self.changed_file() {
            None => Ok(()),
            Some(what) => {
                Err(Failure::unable(format!("{what} while it was read; the next window reads all of it again")))
            }
        }
    }

    /// Whether it is about objects.
    pub(super) fn is_of_objects(&self) -> bool {
        self.files.iter().any(|file| file.version.is_some())
    }

    /// What is different, in words; `None` if nothing is.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
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
        files.or_else(|| {
            (self != now).then(|| "it has other files, or their header pages hold something else".to_owned())
        })
    }
}

/// Whether there is a folder with anything in it.
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
        // A loop of links cannot be followed.
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
        // What was known first counts.
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
