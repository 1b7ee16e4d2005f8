//! `--carve` for commands without options for their progress.

use std::path::PathBuf;

use check::{Progress, Silent};
use jobs::carve::{open, refuse_beside};
use jobs::failure::Failure;
use jobs::request::{ProgressKind, StopOptions};
use source::PageSource;

use crate::progress;

/// The listener for a command without options for its progress: a bar if pages are carved and stderr is a terminal.
pub(crate) fn listener(is_carved: bool) -> Box<dyn Progress> {
    if is_carved { progress::listener(ProgressKind::Auto, None) } else { Box::new(Silent) }
}

/// Opens data files, backups or, with `--carve`, raw bytes, for a command that reads the catalog as it is stored.
///
/// # Errors
/// If the paths cannot be opened.
pub(crate) fn stored(
    paths: &[PathBuf],
    sets: &[u16],
    memory: Option<u64>,
    carve: bool,
) -> Result<Box<dyn PageSource>, Failure> {
    if !carve {
        return Ok(source::open(paths, sets, false)?);
    }
    refuse_beside(sets, &StopOptions::default())?;
    open(paths, memory, listener(carve).as_ref())
}
