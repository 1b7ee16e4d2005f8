//! Files that are whole or not there: each is written beside its place and takes its name last, so that a run that was
//! killed leaves nothing that looks like a result.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Staged {
    /// The name that it will take.
    pub(crate) path: PathBuf,
    file: NamedTempFile,
}

impl Staged {
    /// A new file beside `path`, where none may be.
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

    /// The file as it is now.
    pub(crate) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives the file its name, once all of it is on the disk.
    pub(crate) fn publish(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist_noclobber(&self.path).map_err(|failed| failed.error)?;
        Ok(())
    }
}
