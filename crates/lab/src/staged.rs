//! Writes files that are either complete or absent. Until a file is complete, it has a temporary name. So a run that is
//! killed leaves no file that looks like a result.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file being written.
#[derive(Debug)]
pub(crate) struct Staged {
    /// The final path of the file.
    pub(crate) path: PathBuf,
    file: NamedTempFile,
}

impl Staged {
    /// Creates a temporary file in the folder of `path`. `path` itself must not exist.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        if path.try_exists()? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".partial");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        Ok(Self { path: path.to_owned(), file: builder.tempfile_in(folder)? })
    }

    /// The temporary file.
    pub(crate) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Flushes the file to disk, then renames it to its final path.
    pub(crate) fn publish(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist_noclobber(&self.path).map_err(|failed| failed.error)?;
        Ok(())
    }
}
