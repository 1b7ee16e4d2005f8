//! The folder of a plan.
//!
//! | file | what it is |
//! |---|---|
//! | `plan.json` | the plan; written last, so that a folder with it is whole |
//! | `key` | 32 random bytes under which all facts are hashed; only its owner may read it |
//! | `maps.bin` | what tasks have to know of the allocation maps; none if there are no tasks |
//! | `audit` | what a comparison with the log found, if there was one |
//! | `round-1.json` | the tasks of a further round |
//! | `round-1-00000.question` | what these look for |
//! | `parts/0-00017.part` | the part of task 17 in round 0 |

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use check::HashKey;
use check::part::{Digest, digest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::error::PartsError;
use crate::head::Head;
use crate::maps::MapsWriter;
use crate::plan::{Plan, Task, VERSION};

const PLAN: &str = "plan.json";
const KEY: &str = "key";
const AUDIT: &str = "audit";
const PARTS: &str = "parts";
/// Longer than any plan: a task takes some 60 bytes.
pub(crate) const MOST_PLAN_BYTES: u64 = 1 << 28;
/// Longer than what any comparison with a log finds.
const MOST_AUDIT_BYTES: u64 = 1 << 30;

/// A folder with a plan.
pub struct Folder {
    path: PathBuf,
    key: HashKey,
    /// The digest of `plan.json`.
    plan: Digest,
}

/// A new key.
///
/// # Errors
/// If the system gives no random numbers.
pub fn new_key() -> Result<HashKey, PartsError> {
    random().map(HashKey::new)
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], PartsError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| PartsError::NoRandomNumbers(error.to_string()))?;
    Ok(bytes)
}

#[derive(Deserialize)]
struct Version {
    v: u32,
    build: String,
}

impl Folder {
    /// Makes the folder of a plan, before anything is known of it: what cannot be written must not cost an hour.
    ///
    /// # Errors
    /// If there is something already, or nothing can be made there.
    pub fn reserve(path: &Path) -> Result<(), PartsError> {
        let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if fs::symlink_metadata(path).is_ok() && !is_empty() {
            return Err(PartsError::Exists { path: path.to_owned() });
        }
        fs::create_dir_all(path).map_err(PartsError::unwritable(path))?;
        drop(tempfile::tempfile_in(path).map_err(PartsError::unwritable(path))?);
        Ok(())
    }

    /// Writes a plan into a folder that was reserved for it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create<O: Serialize>(
        path: &Path,
        plan: &Plan<O>,
        key: &HashKey,
        audit: Option<&[u8]>,
        maps: Option<MapsWriter>,
    ) -> Result<Self, PartsError> {
        let parts = path.join(PARTS);
        fs::create_dir_all(&parts).map_err(PartsError::unwritable(&parts))?;
        let put = |name: &str, bytes: &[u8], mode: u32| {
            let path = path.join(name);
            write_whole(&path, mode, |to| to.write_all(bytes)).map_err(PartsError::unwritable(&path))
        };
        put(KEY, key.bytes(), 0o600)?;
        audit.map_or(Ok(()), |bytes| put(AUDIT, bytes, 0o600))?;
        maps.map_or(Ok(()), MapsWriter::finish)?;
        let mut json = serde_json::to_vec_pretty(plan).map_err(|error| {
            let path = path.join(PLAN);
            PartsError::Unwritable { path, cause: error.into() }
        })?;
        json.push(b'\n');
        put(PLAN, &json, 0o666)?;
        Ok(Self { path: path.to_owned(), plan: digest(key, &json), key: key.clone() })
    }

    /// Opens the folder of a plan that mdfsck `build` made. The third value is what its owner must know.
    ///
    /// # Errors
    /// If there is no plan, another mdfsck made it, or it is damaged.
    pub fn open<O: DeserializeOwned>(path: &Path, build: &str) -> Result<(Self, Plan<O>, Option<String>), PartsError> {
        let file = path.join(PLAN);
        let json = match read_bounded(&file, MOST_PLAN_BYTES) {
            Err(PartsError::Unreadable { cause, .. }) if is_missing(&cause) => {
                return Err(PartsError::NoPlan { path: path.to_owned() });
            }
            read => read?,
        };
        let damaged = |what: String| PartsError::Damaged { path: file.clone(), what };
        let version: Version = serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
        if version.v != VERSION {
            return Err(PartsError::OtherForm { path: file, found: version.v, known: VERSION });
        }
        if version.build != build {
            return Err(PartsError::OtherBuild { path: file, theirs: version.build, ours: build.to_owned() });
        }
        let plan: Plan<O> = serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
        if !plan.is_in_order() {
            return Err(damaged("its tasks are not in order".to_owned()));
        }
        let file = path.join(KEY);
        let key = read_bounded(&file, HashKey::BYTES as u64)?;
        let what = "a key has 32 bytes".to_owned();
        let key = HashKey::new(key.try_into().map_err(|_| PartsError::Damaged { path: file.clone(), what })?);
        let warning = is_open_to_others(&file).then(|| {
            format!(
                "{}: others may read the key of the plan, and who knows it can make a database whose damage is not seen; chmod 600",
                file.display()
            )
        });
        Ok((Self { path: path.to_owned(), plan: digest(&key, &json), key }, plan, warning))
    }

    /// What parts are bound to besides their heads.
    pub(crate) fn digest(&self) -> &Digest {
        &self.plan
    }

    /// The same folder, whose parts are bound to something else.
    pub(crate) fn with_digest(&self, plan: Digest) -> Self {
        Self { path: self.path.clone(), key: self.key.clone(), plan }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The key under which all facts are hashed.
    pub fn key(&self) -> &HashKey {
        &self.key
    }

    /// What a comparison with the log found.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn audit(&self) -> Result<Vec<u8>, PartsError> {
        read_bounded(&self.path.join(AUDIT), MOST_AUDIT_BYTES)
    }

    /// Where that is.
    pub fn audit_path(&self) -> PathBuf {
        self.path.join(AUDIT)
    }

    /// Where parts are.
    pub(crate) fn parts(&self) -> PathBuf {
        self.path.join(PARTS)
    }

    /// The file of the part of a task.
    pub fn part_path<O>(&self, plan: &Plan<O>, task: &Task) -> PathBuf {
        self.parts().join(format!("{}-{:05}.part", plan.round, task.id))
    }

    /// What the sums of a part are bound to.
    pub(crate) fn bound_to(&self, head: &Head) -> Vec<u8> {
        head.bound_to(&self.plan)
    }

    /// Writes the part of a task: `write` is given what its sums are bound to, and where they go. Whoever is killed leaves nothing
    /// that looks like a part, and two that write the same one do not meet.
    ///
    /// # Errors
    /// Those of `write`, and of the system.
    pub fn write<O, T, E: From<PartsError>>(
        &self,
        plan: &Plan<O>,
        task: &Task,
        write: impl FnOnce(&[u8], &mut dyn Write) -> Result<T, E>,
    ) -> Result<T, E> {
        let (path, head) = (self.part_path(plan, task), Head::of(plan, task));
        let mut done = None;
        let written = write_whole(&path, 0o666, |to| {
            to.write_all(&head.bytes())?;
            let result = write(&self.bound_to(&head), to);
            let is_done = result.is_ok();
            done = Some(result);
            if is_done { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
        });
        match (written, done) {
            (_, Some(Err(error))) => Err(error),
            (Ok(()), Some(done)) => done,
            (Err(cause), _) => Err(PartsError::Unwritable { path, cause }.into()),
            (Ok(()), None) => Err(PartsError::Unwritable { path, cause: io::ErrorKind::Other.into() }.into()),
        }
    }
}

/// Writes a file under another name, and renames it when all of it is on disk.
pub(crate) fn write_whole(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = in_folder(path, mode)?;
    let mut to = BufWriter::new(file.as_file());
    write(&mut to)?;
    to.flush()?;
    drop(to);
    persist(file, path)
}

/// A file beside `path`, which is gone unless it is given that name.
pub(crate) fn in_folder(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder.tempfile_in(folder)
}

/// Gives a file its name when all of it is on disk.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|failed| failed.error)?;
    // The new name must be on disk too. Not every system can sync a folder.
    if let Ok(folder) = File::open(path.parent().unwrap_or(Path::new("."))) {
        let _ = folder.sync_all();
    }
    Ok(())
}

pub(crate) fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, PartsError> {
    // A pipe without a writer would never be opened.
    if !fs::metadata(path).map_err(PartsError::unreadable(path))?.is_file() {
        return Err(PartsError::Damaged { path: path.to_owned(), what: "it is no regular file".to_owned() });
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(PartsError::unreadable(path))?;
    match bytes.len() as u64 > most {
        true => Err(PartsError::Damaged { path: path.to_owned(), what: format!("it has more than {most} bytes") }),
        false => Ok(bytes),
    }
}

pub(crate) fn is_missing(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}
