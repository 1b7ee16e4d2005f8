//! `mdfsck extract`: the data files in a backup.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use format::{PAGE_BYTES, PageId};
use source::{BackupPages, DataFile, PageSource};

use crate::cli::ExtractArguments;
use crate::failure::{Failure, report_read_faults, warn};
use crate::output;

/// Pages copied at once.
const CHUNK_PAGES: u32 = 128;
/// Part of the file names: the files lack the changes of the backup's log.
const MARK: &str = "not-recovered";

pub(crate) fn run(arguments: &ExtractArguments) -> Result<u8, Failure> {
    let pages = BackupPages::open(&arguments.paths, &arguments.set)?;
    let targets: Vec<(DataFile, PathBuf)> =
        pages.files().iter().map(|file| (file.clone(), arguments.output.join(name(&pages, file)))).collect();
    for (_, target) in &targets {
        if fs::symlink_metadata(target).is_ok() {
            return Err(Failure::usage(format!("{}: exists and will not be overwritten", target.display())));
        }
    }
    fs::create_dir_all(&arguments.output).map_err(|error| unwritable(&arguments.output, &error))?;
    let mut missing = 0;
    for (file, target) in &targets {
        missing += extract(&pages, file, target)?;
        output::print(|out| writeln!(out, "{}", target.display()))?;
    }
    warn(
        "these files are as the backup holds them: not recovered, for inspection only; a server needs the log for them, \
         so use RESTORE to get a database",
    );
    if missing > 0 {
        warn(format!("{missing} pages are missing from the given backup files or unreadable; they are zeros"));
        return Ok(Failure::INCOMPLETE | report_read_faults(&pages.read_faults()));
    }
    Ok(report_read_faults(&pages.read_faults()))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::unable(format!("{}: cannot be written: {error}", path.display()))
}

/// The name on the server, marked; no path in the backup is used.
fn name(pages: &BackupPages, file: &DataFile) -> String {
    let physical = pages.physical_name(file.file_id);
    let base = physical.rsplit(['\\', '/', ':']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
    let base: String = base.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let (stem, extension) = base.rsplit_once('.').unwrap_or((&base, if file.file_id == 1 { "mdf" } else { "ndf" }));
    match stem.trim_matches(['.', ' ']) {
        "" => format!("file_{}.{MARK}.{extension}", file.file_id),
        stem => format!("{stem}.{MARK}.{extension}"),
    }
}

/// Writes one file, zeros as holes; returns how many of its pages are missing. The file of an earlier, interrupted run
/// is compared and completed.
fn extract(pages: &BackupPages, file: &DataFile, target: &Path) -> Result<u64, Failure> {
    let mut partial = target.to_owned().into_os_string();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let failed = |error: io::Error| unwritable(&partial, &error);
    let mut out = OpenOptions::new()
        .read(true)
        .append(false)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&partial)
        .map_err(failed)?;
    let present = out.metadata().map_err(failed)?.len();
    let (mut buffer, mut old) = (vec![0; CHUNK_PAGES as usize * PAGE_BYTES], Vec::new());
    let mut missing = 0;
    for first in (0..file.pages).step_by(CHUNK_PAGES as usize) {
        let count = CHUNK_PAGES.min(file.pages - first) as usize;
        let bytes = buffer.get_mut(..count * PAGE_BYTES).unwrap_or_default();
        missing += read(pages, PageId::new(file.file_id, first), bytes)?;
        let at = u64::from(first) * PAGE_BYTES as u64;
        let known = present.saturating_sub(at).min(bytes.len() as u64) as usize;
        let (known_bytes, new_bytes) = bytes.split_at_checked(known).unwrap_or_default();
        if known > 0 {
            old.resize(known, 0);
            out.seek(SeekFrom::Start(at)).and_then(|_| out.read_exact(&mut old)).map_err(failed)?;
            if old != known_bytes {
                return Err(Failure::usage(format!(
                    "{}: differs from this backup and will not be overwritten",
                    partial.display()
                )));
            }
        }
        if new_bytes.iter().any(|&byte| byte != 0) {
            let written = out.seek(SeekFrom::Start(at + known as u64)).and_then(|_| out.write_all(new_bytes));
            written.map_err(failed)?;
        }
    }
    out.set_len(u64::from(file.pages) * PAGE_BYTES as u64).and_then(|()| out.sync_all()).map_err(failed)?;
    finish(&partial, target)?;
    Ok(missing)
}

/// Renames the file to its target, unless that exists by now.
fn finish(partial: &Path, target: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| unwritable(target, &error);
    // Creates the target first, so that a file created meanwhile is not replaced.
    File::create_new(target).map_err(failed)?;
    fs::rename(partial, target).map_err(failed)
}

/// Reads pages; missing ones are zeros, and counted.
fn read(pages: &BackupPages, first: PageId, bytes: &mut [u8]) -> Result<u64, Failure> {
    if pages.read(first, bytes).is_ok() {
        return Ok(0);
    }
    let mut missing = 0;
    for (page, bytes) in (first.page..).zip(bytes.chunks_exact_mut(PAGE_BYTES)) {
        if pages.read(PageId::new(first.file, page), bytes).is_err() {
            bytes.fill(0);
            missing += 1;
        }
    }
    Ok(missing)
}
