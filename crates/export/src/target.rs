//! Files that appear under their final name only when they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that gets its final name when it is complete. Until then it is named `NAME.partial`, and dropping this value
/// deletes it.
#[derive(Debug)]
pub struct Partial {
    path: PathBuf,
    file: Option<File>,
    replaces: bool,
    bytes: u64,
}

impl Partial {
    /// Creates the file that will be named `path`. Overwrites a partial file that an interrupted run left.
    ///
    /// # Errors
    /// If the file cannot be created, or if its temporary name belongs to a folder, a link or a device.
    pub fn create(path: &Path, replaces: bool) -> io::Result<Self> {
        let partial = partial(path);
        // A symbolic link could point to a file that must not be changed.
        match fs::symlink_metadata(&partial) {
            Ok(found) if !found.is_file() => {
                let text = format!("{} exists and is not a regular file", partial.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            Ok(_) => fs::remove_file(&partial)?,
            Err(_) => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).open(&partial)?;
        Ok(Self { path: path.to_owned(), file: Some(file), replaces, bytes: 0 })
    }

    /// The final path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the file.
    pub fn folder(&self) -> PathBuf {
        match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        }
    }

    /// The number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the file to disk and gives it its final name. Returns its size in bytes.
    ///
    /// # Errors
    /// If the file cannot be written to disk or renamed, or if another file of that name was created meanwhile.
    pub fn finish(mut self) -> io::Result<u64> {
        let Some(file) = self.file.take() else { return Ok(self.bytes) };
        let partial = partial(&self.path);
        let named = file.sync_all().and_then(|()| {
            drop(file);
            if self.replaces { fs::rename(&partial, &self.path) } else { give_new_name(&partial, &self.path) }
        });
        if named.is_err() {
            let _ = fs::remove_file(&partial);
        }
        named.map(|()| self.bytes)
    }
}

/// Renames a file, unless a file of the new name already exists.
fn give_new_name(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        // The file is complete, and now has its final name in addition to its temporary name. If the temporary name
        // cannot be removed, the next run overwrites the partial file.
        Ok(()) => {
            let _ = fs::remove_file(from);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // On a file system without hard links, the code checks whether the new name exists before it renames the file.
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

impl Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotConnected.into()) };
        let written = file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // If the partial file cannot be removed, the next run overwrites it.
            let _ = fs::remove_file(partial(&self.path));
        }
    }
}

/// The temporary path of a file that is not yet complete.
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let mut file = Partial::create(&path, false).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_was_made_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let mut file = Partial::create(&path, false).unwrap();
        file.write_all(b"mine").unwrap();
        fs::write(&path, b"theirs").unwrap();
        assert!(file.finish().is_err());
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        let mut file = Partial::create(&path, true).unwrap();
        file.write_all(b"mine").unwrap();
        assert_eq!(file.finish().unwrap(), 4);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
