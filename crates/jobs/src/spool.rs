//! Copies a backup from standard input to a temporary file. A check does not read pages in the order of the backup, and
//! a pipe can be read only in this order.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use check::Progress;
use source::{Archive, FileKind, OpenError, StandardInput, identify};

use crate::failure::Failure;
use crate::host::warn;
use crate::size;

/// The name of the phase that copies standard input. The progress of this phase is counted in bytes, and the total
/// number of bytes is unknown.
pub const SPOOL: &str = "spool";
/// Number of bytes per read. A chunk of this size that contains only zeros becomes a hole in the temporary file.
const CHUNK_BYTES: usize = 1 << 20;

/// Where to store the copy of standard input, and the maximum size of the copy.
pub struct Spool<'a> {
    /// The folder from `--temp-dir`.
    pub directory: Option<&'a Path>,
    /// The limit from `--spool-limit`, in bytes.
    pub limit: u64,
    /// The listener that receives the number of copied bytes.
    pub progress: &'a dyn Progress,
}

/// Tests whether temporary files can be created in a folder. Used before a long run that may need temporary files.
///
/// # Errors
/// If no file can be created in the folder.
pub fn try_folder(folder: &Path) -> Result<(), Failure> {
    let failed = |cause: io::Error| {
        let text = cause.to_string();
        // Removes the name of the temporary file from the end of the message, since the name means nothing to a user.
        let text = text.split(" at path ").next().unwrap_or_default();
        Failure::unable(format!("--temp-dir {}: no temporary file can be created there: {text}", folder.display()))
    };
    tempfile::tempfile_in(folder).map(drop).map_err(failed)
}

/// Copies standard input to a temporary file, if one of the paths is `-`.
pub fn keep_input(paths: &[PathBuf], spool: &Spool<'_>) -> Result<Option<File>, Failure> {
    match paths.iter().filter(|path| path.as_os_str() == "-").count() {
        0 => Ok(None),
        1 => {
            let directory = spool.directory.map_or_else(std::env::temp_dir, Path::to_owned);
            keep(&mut io::stdin().lock(), &directory, spool).map(Some)
        }
        _ => Err(OpenError::StandardInput(StandardInput::Twice).into()),
    }
}

/// Copies `input` to an unnamed temporary file. Zeros become holes in the file.
fn keep(input: &mut dyn Read, directory: &Path, spool: &Spool<'_>) -> Result<File, Failure> {
    let unread = |error: io::Error| Failure::unable(format!("-: cannot be read: {error}"));
    let unkept = |error: io::Error| {
        Failure::unable(format!(
            "{}: standard input cannot be copied there: {error}; see --temp-dir",
            directory.display()
        ))
    };
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut file, mut total) = (None, 0u64);
    loop {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match input.read(rest) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unread(error)),
            }
        }
        let bytes = buffer.get(..filled).unwrap_or_default();
        let file = match &mut file {
            Some(file) => file,
            None => {
                // Identifies the input by its first bytes, before anything is stored.
                if !matches!(identify(bytes), FileKind::Backup(_)) {
                    return Err(match Archive::of(bytes) {
                        Some(archive) => OpenError::Compressed { path: "-".into(), archive }.into(),
                        None => OpenError::StandardInput(StandardInput::of(bytes)).into(),
                    });
                }
                let made = tempfile::tempfile_in(directory).map_err(unkept)?;
                warn(format!("copying standard input to {} first", directory.display()));
                spool.progress.phase(SPOOL, 0);
                file.insert(made)
            }
        };
        total += filled as u64;
        spool.progress.advance(filled as u64);
        if total > spool.limit {
            return Err(Failure::unable(format!(
                "-: standard input is longer than {}; use a larger --spool-limit, or give a file, which needs no copy",
                size::text(spool.limit)
            )));
        }
        if bytes.iter().any(|&byte| byte != 0) {
            file.seek(SeekFrom::Start(total - filled as u64)).and_then(|_| file.write_all(bytes)).map_err(unkept)?;
        }
        if filled < CHUNK_BYTES {
            file.set_len(total).map_err(unkept)?;
            return file.try_clone().map_err(unkept);
        }
    }
}
