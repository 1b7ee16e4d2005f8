//! `mdfsck extract`: writes the data files that a backup contains, either as stored in the backup or after recovery.

mod recovered;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use format::{PAGE_BYTES, PageId};
use jobs::failure::{Failure, report_faults};
use jobs::request::StopOptions;
use source::{BackupPages, DataFile, PageSource};

use crate::cli::ExtractArguments;
use crate::output;
use crate::speaker::warn;

/// Number of pages to copy at a time.
const CHUNK_PAGES: u32 = 128;
/// A mark in the names of the written files. It warns that the files lack changes that are only in the log of the
/// backup.
const MARK: &str = "not-recovered";

pub(crate) fn run(arguments: &ExtractArguments) -> Result<u8, Failure> {
    if arguments.recovered {
        return recovered::run(arguments);
    }
    if StopOptions::from(&arguments.stop).is_given() {
        return Err(Failure::usage("--stop-at and marks need --recovered: without --recovered, no log is applied"));
    }
    let pages = BackupPages::open(&arguments.database.paths, &arguments.database.set)?;
    let targets = Targets::new(&pages, &arguments.output, MARK)?;
    let missing = targets.write(&mut |first, bytes| read(&pages, first, bytes))?;
    targets.finish()?;
    warn("these files are not recovered and are for inspection only; to get a usable database, use RESTORE");
    if missing > 0 {
        warn(format!(
            "{missing} pages are missing from the given backup files or unreadable; zeros were written for these pages"
        ));
        return Ok(Failure::INCOMPLETE | report_faults(&pages));
    }
    Ok(report_faults(&pages))
}

/// Fills a buffer with consecutive pages, starting with the given page. Returns the number of missing pages.
type Fill<'f> = dyn FnMut(PageId, &mut [u8]) -> Result<u64, Failure> + 'f;

/// The files to write. Each file has a temporary name until all files are complete.
struct Targets {
    files: Vec<(DataFile, PathBuf)>,
}

impl Targets {
    /// Plans a new file for each data file, and creates `folder`. Refuses existing files, so that no input is
    /// overwritten.
    fn new(pages: &dyn PageSource, folder: &Path, mark: &str) -> Result<Self, Failure> {
        let names: Vec<(u16, String)> = pages.files().iter().map(|file| (file.file_id, name(pages, file))).collect();
        let targets = targets(&names, mark).into_iter().map(|name| folder.join(name));
        let files: Vec<(DataFile, PathBuf)> = pages.files().iter().cloned().zip(targets).collect();
        let mut names: Vec<&PathBuf> = files.iter().map(|(_, target)| target).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| pair.first()) {
            return Err(Failure::usage(format!("{}: two of the files have this name", twice.display())));
        }
        let is_input = |path: &Path| {
            let path = fs::canonicalize(path).ok();
            path.is_some() && pages.files().iter().any(|file| fs::canonicalize(&file.path).ok() == path)
        };
        for (_, target) in &files {
            if fs::symlink_metadata(target).is_ok() || is_input(&partial(target)) {
                return Err(Failure::exists(target));
            }
        }
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        Ok(Self { files })
    }

    /// Writes all pages of all files. Returns the number of missing pages.
    fn write(&self, fill: &mut Fill<'_>) -> Result<u64, Failure> {
        self.files.iter().try_fold(0, |missing, (file, target)| Ok(missing + extract(file, &partial(target), fill)?))
    }

    /// Renames the files to their final names, and prints these names.
    fn finish(&self) -> Result<(), Failure> {
        for (_, target) in &self.files {
            finish(&partial(target), target)?;
            output::print(|out| writeln!(out, "{}", target.display()))?;
        }
        Ok(())
    }

    /// Deletes the partial files.
    fn discard(&self) {
        for (_, target) in &self.files {
            // If a partial file cannot be deleted, the next run either completes the file or refuses to write it.
            let _ = fs::remove_file(partial(target));
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::unable(format!("{}: cannot be written: {error}", path.display()))
}

/// Returns the name for an extracted file. For a file in a backup, this is the file's name on the server, without the
/// folder. For a snapshot file, this is the name of the source database's file, since the extracted copy is complete.
fn name(pages: &dyn PageSource, file: &DataFile) -> String {
    let place = pages.files().iter().position(|other| other.file_id == file.file_id).unwrap_or_default();
    let base = pages.snapshot().and_then(|snapshot| snapshot.bases().nth(place));
    let own = base.unwrap_or(&file.path).file_name().unwrap_or_default().to_string_lossy();
    pages.backup().map_or(own.as_ref(), |backup| backup.physical_name(file.file_id)).to_owned()
}

/// The names of the files to write. Each name contains `mark`, and no two names are equal. `files` has the ID and the
/// original name of each file.
fn targets(files: &[(u16, String)], mark: &str) -> Vec<String> {
    let names: Vec<[String; 2]> = files.iter().map(|(file_id, name)| parts(*file_id, name)).collect();
    // Windows ignores case in file names.
    let key = |parts: &[String; 2]| parts.concat().to_lowercase();
    let is_alone = |one: &[String; 2]| names.iter().filter(|other| key(other) == key(one)).count() == 1;
    let marked = |((file_id, _), parts): (&(u16, String), &[String; 2])| {
        let [stem, extension] = parts;
        match is_alone(parts) {
            true => format!("{stem}.{mark}.{extension}"),
            false => format!("{stem}.file_{file_id}.{mark}.{extension}"),
        }
    };
    files.iter().zip(&names).map(marked).collect()
}

/// The stem and the extension of a name, without characters that a file system may not allow.
fn parts(file_id: u16, name: &str) -> [String; 2] {
    let base = name.rsplit(['\\', '/', ':']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
    let base: String = base.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let (stem, extension) = base.rsplit_once('.').unwrap_or((&base, if file_id == 1 { "mdf" } else { "ndf" }));
    let stem = match stem.trim_matches(['.', ' ']) {
        "" => format!("file_{file_id}"),
        stem if is_device(stem) => format!("_{stem}"),
        stem => stem.to_owned(),
    };
    [stem, extension.to_owned()]
}

/// Whether Windows treats a name as a device name. Windows ignores everything after the first dot.
fn is_device(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default().trim_end().to_uppercase();
    let is_port = |port: &str| {
        let number = first.strip_prefix(port);
        number.is_some_and(|number| {
            matches!(number.chars().next(), Some('0'..='9' | '¹' | '²' | '³')) && number.chars().count() == 1
        })
    };
    ["CON", "PRN", "AUX", "NUL"].contains(&first.as_str()) || is_port("COM") || is_port("LPT")
}

/// The temporary name of a file, used until the file is complete.
fn partial(target: &Path) -> PathBuf {
    let mut partial = target.to_owned().into_os_string();
    partial.push(".partial");
    partial.into()
}

/// Writes one file. Zeros become holes in the file. Returns the number of missing pages. If an interrupted run has left
/// a part of the file, compares this part with the pages and appends the remaining pages.
fn extract(file: &DataFile, partial: &Path, fill: &mut Fill<'_>) -> Result<u64, Failure> {
    let failed = |error: io::Error| unwritable(partial, &error);
    let mut out = OpenOptions::new()
        .read(true)
        .append(false)
        .write(true)
        .create(true)
        .truncate(false)
        .open(partial)
        .map_err(failed)?;
    let present = out.metadata().map_err(failed)?.len();
    let (mut buffer, mut old) = (vec![0; CHUNK_PAGES as usize * PAGE_BYTES], Vec::new());
    let mut missing = 0;
    for first in (0..file.pages).step_by(CHUNK_PAGES as usize) {
        let count = CHUNK_PAGES.min(file.pages - first) as usize;
        let bytes = buffer.get_mut(..count * PAGE_BYTES).unwrap_or_default();
        missing += fill(PageId::new(file.file_id, first), bytes)?;
        let at = u64::from(first) * PAGE_BYTES as u64;
        let known = present.saturating_sub(at).min(bytes.len() as u64) as usize;
        let (known_bytes, new_bytes) = bytes.split_at_checked(known).unwrap_or_default();
        if known > 0 {
            old.resize(known, 0);
            out.seek(SeekFrom::Start(at)).and_then(|_| out.read_exact(&mut old)).map_err(failed)?;
            if old != known_bytes {
                return Err(Failure::usage(format!(
                    "{}: differs from this backup, or from the recovered files, and will not be overwritten",
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
    Ok(missing)
}

/// Renames a file to its final name. Fails if another program has created a file with the final name in the meantime.
fn finish(partial: &Path, target: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| unwritable(target, &error);
    // Creates an empty file under the final name first. This fails if a file with this name exists.
    File::create_new(target).map_err(failed)?;
    fs::rename(partial, target).map_err(failed)
}

/// Reads consecutive pages. Fills missing pages with zeros, and returns their number.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<String> {
        let files: Vec<(u16, String)> = (1..).zip(names.iter().map(|name| (*name).to_owned())).collect();
        targets(&files, "x")
    }

    #[test]
    fn files_of_one_name_in_several_folders_are_told_apart() {
        let names = named(&[r"D:\a\Sales.mdf", r"E:\b\sales.MDF", r"E:\b\other.ndf"]);
        assert_eq!(names, ["Sales.file_1.x.mdf", "sales.file_2.x.MDF", "other.x.ndf"]);
    }

    #[test]
    fn no_file_is_named_like_a_device() {
        let names = named(&[
            "con.mdf",
            "/data/NUL.tar.ndf",
            "Com1.ndf",
            "lpt\u{b2}.ndf",
            "console.ndf",
            "com10.ndf",
            "aux .ndf",
        ]);
        let expected = [
            "_con.x.mdf",
            "_NUL.tar.x.ndf",
            "_Com1.x.ndf",
            "_lpt\u{b2}.x.ndf",
            "console.x.ndf",
            "com10.x.ndf",
            "_aux.x.ndf",
        ];
        assert_eq!(names, expected);
    }
}
