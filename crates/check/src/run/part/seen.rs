//! The encoding of what was read of a backup's container.

use std::path::{Path, PathBuf};

use source::backup::{ContainerSeen, FileSeen, Runs};
use sums::wire::{Input, Output, SumsError, Wire};

/// The maximum length of a path in a part; no system allows paths of this length.
const MOST_PATH_BYTES: usize = 1 << 16;

pub(super) fn put_path(path: &Path, to: &mut Output<'_>) -> Result<(), SumsError> {
    path.as_os_str().as_encoded_bytes().to_vec().into_boxed_slice().write(to)
}

#[cfg(unix)]
pub(super) fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    (bytes.len() <= MOST_PATH_BYTES).then(|| std::ffi::OsStr::from_bytes(bytes).into())
}

#[cfg(not(unix))]
pub(super) fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MOST_PATH_BYTES);
    text.map(PathBuf::from)
}

fn put_runs(runs: &Runs, to: &mut Output<'_>) -> Result<(), SumsError> {
    (runs.len() as u64).write(to)?;
    let mut before = 0;
    runs.iter().try_for_each(|&(start, end)| {
        (start - before, end - start).write(to)?;
        before = end;
        Ok(())
    })
}

fn take_runs(from: &mut Input<'_>) -> Result<Runs, SumsError> {
    let mut runs = Runs::new();
    let mut before = 0;
    for _ in 0..u64::read(from)? {
        // Decoding a `u64` rejects numbers above 2^56, but a damaged input may contain many numbers. So the additions
        // saturate.
        let (skipped, length): (u64, u64) = Wire::read(from)?;
        let start: u64 = skipped.saturating_add(before);
        before = start.saturating_add(length);
        runs.push((start, before));
    }
    Ok(runs)
}

pub(super) fn put_container(seen: &ContainerSeen, to: &mut Output<'_>) -> Result<(), SumsError> {
    (seen.regions.len() as u64).write(to)?;
    for (sum, runs) in &seen.regions {
        sum.write(to)?;
        put_runs(runs, to)?;
    }
    (seen.records.len() as u64).write(to)?;
    seen.records.iter().try_for_each(|runs| put_runs(runs, to))
}

pub(super) fn take_container(from: &mut Input<'_>) -> Result<ContainerSeen, SumsError> {
    let mut seen = ContainerSeen::default();
    for _ in 0..u64::read(from)? {
        seen.regions.push((Wire::read(from)?, take_runs(from)?));
    }
    for _ in 0..u64::read(from)? {
        seen.records.push(take_runs(from)?);
    }
    Ok(seen)
}

/// Writes what was read of some files.
pub(crate) fn put_files(files: &[FileSeen], to: &mut Output<'_>) -> Result<(), SumsError> {
    (files.len() as u64).write(to)?;
    for FileSeen { path, regions, records } in files {
        put_path(path, to)?;
        (regions.len() as u64).write(to)?;
        for (at, sum, runs) in regions {
            (*at, *sum).write(to)?;
            put_runs(runs, to)?;
        }
        put_runs(records, to)?;
    }
    Ok(())
}

/// Reads the output of [`put_files`].
pub(crate) fn take_files(from: &mut Input<'_>) -> Result<Vec<FileSeen>, SumsError> {
    let mut files = Vec::new();
    for _ in 0..u64::read(from)? {
        let path = path_of(&Box::<[u8]>::read(from)?).ok_or_else(|| from.damaged("a path"))?;
        let mut regions = Vec::new();
        for _ in 0..u64::read(from)? {
            let (at, sum) = Wire::read(from)?;
            regions.push((at, sum, take_runs(from)?));
        }
        files.push(FileSeen { path, regions, records: take_runs(from)? });
    }
    Ok(files)
}
