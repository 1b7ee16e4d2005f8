//! Writes the files of database snapshots. The file of a snapshot contains the pages that were changed after the
//! snapshot was taken, in their state before the change.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::disk::LabError;
use crate::ids::PAGE;
use crate::staged::Staged;

/// The file header page and the boot page, which are always in a snapshot.
const OWN: [usize; 2] = [0, 9];

/// Returns the pages that the file of a snapshot contains, each with its page number. `then` is the content of the data
/// file when the snapshot was taken, and `now` is its content at a later time. The snapshot contains the pages of
/// `then` that differ from `now`, the file header page, and the boot page.
pub fn copied<'a>(then: &'a [u8], now: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
    then.chunks(PAGE).enumerate().filter(move |(number, page)| {
        OWN.contains(number) || now.get(number * PAGE..number * PAGE + page.len()) != Some(*page)
    })
}

/// Writes the file of a snapshot into the folder `to`, as `NAME.ss`. The file is sparse, and has the length of `then`.
/// Disk space is allocated in units of 64 KB, so pages that were not copied may be in an allocated unit; they contain
/// zeros.
///
/// # Errors
///
/// [`LabError`] if a file cannot be read or written.
pub fn snapshot(then: &Path, now: &Path, to: &Path) -> Result<PathBuf, LabError> {
    /// The unit in which disk space is allocated to a sparse file, in pages.
    const UNIT: usize = 8;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| LabError::Io { path, source }
    };
    let bytes = fs::read(then).map_err(failed(then))?;
    let later = fs::read(now).map_err(failed(now))?;
    let path = to.join(then.with_extension("ss").file_name().unwrap_or_default());
    let mut staged = Staged::create(&path).map_err(failed(&path))?;
    let file = staged.file();
    let written = (|| {
        file.set_len(bytes.len() as u64)?;
        let mut last_unit = None;
        for (number, page) in copied(&bytes, &later) {
            let unit = number / UNIT;
            if last_unit.replace(unit) != Some(unit) {
                let pages = UNIT.min(bytes.len() / PAGE - unit * UNIT);
                file.seek(SeekFrom::Start((unit * UNIT * PAGE) as u64))?;
                file.write_all(&vec![0; pages * PAGE])?;
            }
            file.seek(SeekFrom::Start((number * PAGE) as u64))?;
            file.write_all(page)?;
        }
        Ok(())
    })();
    written.map_err(failed(&path))?;
    staged.publish().map_err(failed(&path))?;
    Ok(path)
}
