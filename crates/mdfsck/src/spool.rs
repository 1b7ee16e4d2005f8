//! A backup from standard input, kept in a temporary file: a check needs its pages in another order.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use source::{BackupPages, FileKind, OpenError, PageSource, identify};

use crate::failure::{Failure, warn};
use crate::size;

/// Bytes read at once, and the unit of holes.
const CHUNK_BYTES: usize = 1 << 20;

/// Opens the input of a check; a path of `-` is standard input.
pub(crate) fn open(
    paths: &[PathBuf],
    sets: &[u16],
    direct: bool,
    (directory, limit): (Option<&Path>, u64),
    granted: Option<u64>,
) -> Result<Box<dyn PageSource>, Failure> {
    if !paths.iter().any(|path| path.as_os_str() == "-") {
        return Ok(source::open_within(paths, sets, direct, granted)?);
    }
    if let Some(path) = paths.iter().find(|path| path.as_os_str() != "-" && !source::is_backup(path)) {
        return Err(OpenError::NotABackup { path: path.clone() }.into());
    }
    let directory = directory.map_or_else(std::env::temp_dir, Path::to_owned);
    let kept = keep(&mut io::stdin().lock(), &directory, limit)?;
    Ok(Box::new(BackupPages::open_with(paths, sets, Some(kept), granted)?))
}

/// Copies `input` to an unnamed file, zeros as holes.
fn keep(input: &mut dyn Read, directory: &Path, limit: u64) -> Result<File, Failure> {
    let unread = |error: io::Error| Failure::unable(format!("-: cannot be read: {error}"));
    let unkept = |error: io::Error| {
        Failure::unable(format!("{}: cannot keep standard input there: {error}; see --temp-dir", directory.display()))
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
                // Identified by its first bytes, before anything is kept.
                if !matches!(identify(bytes), FileKind::Backup(_)) {
                    return Err(OpenError::StandardInput.into());
                }
                warn(format!(
                    "standard input is kept in {} first, as a check reads its pages in another order",
                    directory.display()
                ));
                file.insert(tempfile::tempfile_in(directory).map_err(unkept)?)
            }
        };
        total += filled as u64;
        if total > limit {
            return Err(Failure::unable(format!(
                "-: standard input is longer than {}; --spool-limit allows more, a file needs no copy",
                size::text(limit)
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
