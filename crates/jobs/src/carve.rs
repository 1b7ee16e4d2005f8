//! `--carve`: the paths are raw bytes, such as a disk image, and the pages in them are found by their headers.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use check::Progress;
use format::PAGE_BYTES;
use source::{Carved, PageSource};

use crate::failure::Failure;
use crate::request::{Request, StopOptions};

/// The name of the phase that looks for pages.
const CARVE: &str = "carve";

/// Finds the pages in the files at `paths`. `memory` is the value of `--memory`, in bytes.
///
/// # Errors
/// If a file cannot be read, or no database is in the files.
pub fn open(paths: &[PathBuf], memory: Option<u64>, progress: &dyn Progress) -> Result<Box<dyn PageSource>, Failure> {
    const PAGE: u64 = PAGE_BYTES as u64;
    progress.phase(CARVE, source::carved_bytes(paths) / PAGE);
    let done = Cell::new(0);
    let carved = Carved::open(paths, memory, &|bytes| {
        let before = done.replace(done.get() + bytes);
        progress.advance(done.get() / PAGE - before / PAGE);
    })?;
    Ok(Box::new(carved))
}

/// Refuses the options that choose a backup or a point in time: `--carve` reads no backup.
///
/// # Errors
/// If one of these options was given.
pub fn refuse_beside(sets: &[u16], stop: &StopOptions) -> Result<(), Failure> {
    refuse(&[("--set", !sets.is_empty()), ("--stop-at and marks", stop.is_given())])
}

/// Refuses to search folders: only the named files are read.
///
/// # Errors
/// If `--recursive` was given.
pub fn refuse_recursive(is_given: bool) -> Result<(), Failure> {
    refuse(&[("--recursive", is_given)])
}

/// Refuses the options of a check that make no sense for raw bytes.
///
/// # Errors
/// If one of these options was given.
pub fn refuse_options(request: &Request) -> Result<(), Failure> {
    if !request.carve {
        return Ok(());
    }
    let Request { scope, stop, run, windows, snapshot, results, recursive, .. } = request;
    refuse(&[
        ("--set", !scope.set.is_empty()),
        ("--stop-at and marks", stop.is_given()),
        ("--snapshot-with", snapshot.snapshot_with.is_some()),
        ("--window and --within", windows.are_asked_for()),
        ("--history", results.history.is_some()),
        ("--direct", run.direct),
        ("--recursive", *recursive),
    ])
}

/// Refuses each of these options that was given, with one error.
fn refuse(options: &[(&str, bool)]) -> Result<(), Failure> {
    let given: Vec<&str> = options.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
    match given[..] {
        [] => Ok(()),
        _ => Err(Failure::usage(format!(
            "--carve: the paths are raw bytes, no data files and no backups: leave out {}",
            given.join(", ")
        ))),
    }
}

/// The paths of the files from which pages were read, for the refusal to overwrite them.
pub fn inputs(source: &dyn PageSource) -> Vec<&Path> {
    let files = source.files().iter().map(|file| file.path.as_path());
    files.chain(source.carved().into_iter().flat_map(Carved::paths)).collect()
}
