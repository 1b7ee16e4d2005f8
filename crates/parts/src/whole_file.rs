//! Files that are never seen half written: they have a temporary name until they are whole and on disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes a file under a temporary name, and renames it when the whole file is on disk.
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

/// Makes a temporary file in the folder of `path`. It is deleted unless it is renamed.
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

/// Syncs a file to disk and renames it to `path`.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|failed| failed.error)?;
    // The new name must reach the disk too. Not every operating system can sync a folder.
    if let Ok(folder) = File::open(path.parent().unwrap_or(Path::new("."))) {
        let _ = folder.sync_all();
    }
    Ok(())
}
