//! The folder of a plan.
//!
//! | file | content |
//! |---|---|
//! | `plan.json` | the plan; written last, so a folder that has this file is complete |
//! | `key` | 32 random bytes, the key with which all facts are hashed; only its owner may read it |
//! | `maps.bin` | the allocation maps that tasks need; absent if there are no tasks |
//! | `audit` | the result of the comparison with the log, if there was one |
//! | `round-1.json` | the tasks of a further round |
//! | `round-1-00000.question` | the facts that the tasks of that round look for |
//! | `parts/0-00017.part` | the part of task 17 in round 0 |

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use check::part::{Digest, digest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sums::HashKey;

use crate::error::PartsError;
use crate::head::Head;
use crate::maps::{self, MapsWriter, Piece, maps_path};
use crate::plan::{Plan, Task, VERSION};
use crate::random::random;
use crate::whole_file::write_whole;

const PLAN: &str = "plan.json";
const KEY: &str = "key";
const AUDIT: &str = "audit";
const PARTS: &str = "parts";
/// A limit, in bytes, for files of a plan. No real plan reaches this limit, because a task needs only some 60 bytes.
pub(crate) const MOST_PLAN_BYTES: u64 = 1 << 28;
/// A limit, in bytes, for the result of the comparison with the log. No real result reaches this limit.
const MOST_AUDIT_BYTES: u64 = 1 << 30;

/// The folder of a plan.
pub struct Folder {
    path: PathBuf,
    key: HashKey,
    /// The digest of `plan.json`.
    plan: Digest,
}

/// Makes a random key.
///
/// # Errors
/// If the operating system gives no random numbers.
pub fn new_key() -> Result<HashKey, PartsError> {
    random().map(HashKey::new)
}

#[derive(Deserialize)]
struct Version {
    v: u32,
    build: String,
}

impl Folder {
    /// Makes the folder of a plan before any work is done, because planning may take an hour and the folder might not
    /// be writable.
    ///
    /// # Errors
    /// If the path exists already, or the folder cannot be made.
    pub fn reserve(path: &Path) -> Result<(), PartsError> {
        let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if fs::symlink_metadata(path).is_ok() && !is_empty() {
            return Err(PartsError::Exists { path: path.to_owned() });
        }
        fs::create_dir_all(path).map_err(PartsError::unwritable(path))?;
        drop(tempfile::tempfile_in(path).map_err(PartsError::unwritable(path))?);
        Ok(())
    }

    /// Writes a plan into the folder that was reserved for it.
    ///
    /// # Errors
    /// If the plan cannot be written.
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

    /// Opens the folder of a plan. The plan must have been made by the mdfsck build `build`. The third returned value
    /// is a warning for the user if other users may read the key.
    ///
    /// # Errors
    ///
    /// If there is no plan, if another mdfsck build made it, or if it is damaged.
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
                "{}: others may read the key of the plan, with which damage can be hidden from a check; chmod 600",
                file.display()
            )
        });
        Ok((Self { path: path.to_owned(), plan: digest(&key, &json), key }, plan, warning))
    }

    /// Returns the digest of `plan.json` or, for a further round, of the plan and the round's file. Parts are written
    /// with this digest, so that parts of another plan or round are not accepted.
    pub(crate) fn digest(&self) -> &Digest {
        &self.plan
    }

    /// Returns the same folder with another digest. Parts in the returned folder must have been written with that
    /// digest.
    pub(crate) fn with_digest(&self, plan: Digest) -> Self {
        Self { path: self.path.clone(), key: self.key.clone(), plan }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The secret key under which tasks hash facts about pages and rows, such as "page A points to page B".
    pub fn key(&self) -> &HashKey {
        &self.key
    }

    /// Reads the result of the comparison with the log.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn audit(&self) -> Result<Vec<u8>, PartsError> {
        read_bounded(&self.path.join(AUDIT), MOST_AUDIT_BYTES)
    }

    /// The path of the result of the comparison with the log.
    pub fn audit_path(&self) -> PathBuf {
        self.path.join(AUDIT)
    }

    /// The path of the maps.
    pub fn maps_path(&self) -> PathBuf {
        maps_path(self.path())
    }

    /// Opens a piece of the maps of a plan. The reader starts at the piece and ends before the table of offsets at the
    /// end of the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is damaged, or does not have the piece.
    pub fn maps<O>(&self, plan: &Plan<O>, piece: Piece) -> Result<impl Read + use<O>, PartsError> {
        maps::open(self.maps_path(), plan, piece)
    }

    /// The folder of the parts.
    pub(crate) fn parts(&self) -> PathBuf {
        self.path.join(PARTS)
    }

    /// The path of a task's part.
    pub fn part_path<O>(&self, plan: &Plan<O>, task: &Task) -> PathBuf {
        self.parts().join(format!("{}-{:05}.part", plan.round, task.id))
    }

    /// Returns bytes that identify a part and its plan: the head of the part, and the digest of the plan. The hashes in
    /// the part also cover these bytes.
    pub(crate) fn bound_to(&self, head: &Head) -> Vec<u8> {
        head.bound_to(&self.plan)
    }

    /// Writes the part of a task. `write` receives bytes that identify the part and the plan, and the output. The
    /// hashes that `write` writes must also cover these bytes. If the process is killed, it leaves no file that looks
    /// like a part. Two processes may write the same part at the same time.
    ///
    /// # Errors
    ///
    /// Errors of `write`, and of the operating system.
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

pub(crate) fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, PartsError> {
    // Only regular files are opened, because opening a pipe without a writer would never return.
    if !fs::metadata(path).map_err(PartsError::unreadable(path))?.is_file() {
        return Err(PartsError::Damaged { path: path.to_owned(), what: "it is not a regular file".to_owned() });
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(PartsError::unreadable(path))?;
    if bytes.len() as u64 > most {
        Err(PartsError::Damaged { path: path.to_owned(), what: format!("it has more than {most} bytes") })
    } else {
        Ok(bytes)
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
