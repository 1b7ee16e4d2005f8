//! Database snapshots: what was copied of the files of one moment until they became those of a later one.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::disk::LabError;
use crate::ids::PAGE;
use crate::staged::Staged;

/// Pages that a snapshot has from the start: file header and boot page.
const OWN: [usize; 2] = [0, 9];

/// The pages that become part of the file of a snapshot, together with the place of each: those of `then` that are others `now`.
pub fn copied<'a>(then: &'a [u8], now: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
    then.chunks(PAGE).enumerate().filter(move |(number, page)| {
        OWN.contains(number) || now.get(number * PAGE..number * PAGE + page.len()) != Some(*page)
    })
}

/// Writes the file of a snapshot into the folder `to`, as `NAME.ss`: a sparse file of the length of `then`. The pages around a copied
/// one, up to 64 KB, are zeros on the disk.
///
/// # Errors
/// [`LabError`] if a file cannot be read or written.
pub fn snapshot(then: &Path, now: &Path, to: &Path) -> Result<PathBuf, LabError> {
    /// The pages that a sparse file gets room for at once.
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
