//! The source files of a plan, and a test whether they have changed since the plan was made.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use source::storage;

use crate::error::PartsError;

/// The state of a source file at the time when the plan was made.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// The absolute path of the file, or its URL.
    pub path: PathBuf,
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// The time of the last write, in milliseconds since 1970; 0 for an object in object storage.
    pub modified_ms: i64,
    /// The version of the object, if the source is an object in object storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl SourceFile {
    /// Describes the present state of the file.
    ///
    /// # Errors
    /// Errors of the operating system, or of the object storage.
    pub fn of(path: &Path) -> Result<Self, PartsError> {
        if let Some(object) = storage::version(path) {
            let storage::Version { bytes, name, .. } = object.map_err(PartsError::unreadable(path))?;
            return Ok(Self { path: path.to_owned(), bytes, modified_ms: 0, version: Some(name) });
        }
        let path = std::path::absolute(path).map_err(PartsError::unreadable(path))?;
        let metadata = fs::metadata(&path).map_err(PartsError::unreadable(&path))?;
        Ok(Self { bytes: metadata.len(), modified_ms: modified_ms(&metadata), path, version: None })
    }

    /// Checks that the file has not changed.
    ///
    /// # Errors
    /// An error that describes the change.
    pub fn verify(&self) -> Result<(), PartsError> {
        let changed = |what: String| Err(PartsError::Changed { path: self.path.clone(), what });
        let now = Self::of(&self.path)?;
        match now {
            now if now.bytes != self.bytes => {
                changed(format!("has grown or shrunk from {} to {} bytes", self.bytes, now.bytes))
            }
            now if now.modified_ms != self.modified_ms => changed("has been written to".to_owned()),
            now if now.version != self.version => changed("has been overwritten".to_owned()),
            _ => Ok(()),
        }
    }
}

/// The time of the last write in milliseconds since 1970, negative for earlier times; 0 if the operating system does
/// not report this time.
fn modified_ms(metadata: &Metadata) -> i64 {
    let Ok(modified) = metadata.modified() else { return 0 };
    let ms = |span: std::time::Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_to_or_is_gone_is_not_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mdf");
        fs::write(&path, [1; 100]).unwrap();
        let file = SourceFile::of(&path).unwrap();
        file.verify().unwrap();
        let later = fs::metadata(&path).unwrap().modified().unwrap() + std::time::Duration::from_secs(2);
        fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert!(file.verify().unwrap_err().to_string().contains("has been written to since the plan was made"));
        fs::write(&path, [1; 101]).unwrap();
        assert!(file.verify().unwrap_err().to_string().contains("from 100 to 101 bytes"));
        fs::remove_file(&path).unwrap();
        assert!(!file.verify().unwrap_err().is_usage());
    }
}
