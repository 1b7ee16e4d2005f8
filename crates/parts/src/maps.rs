//! `maps.bin` contains the allocation maps that tasks need, so that no task reads the maps of the whole database. The
//! maps that all tasks share are in the first piece of the file. Then comes one piece for each task. The offsets of the
//! pieces are at the end of the file.
//!
//! The file is untrusted. Each piece contains hashes under the plan's key that also cover the ID of the plan and the
//! number of the piece, so that a reader notices any change.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::PartsError;
use crate::plan::{Plan, PlanId};
use crate::whole_file::{in_folder, persist};

/// The name of the file in the folder of a plan.
const MAPS: &str = "maps.bin";
const MAGIC: &[u8; 8] = b"MDFSMAPS";
/// The size in bytes of each offset at the end of the file.
const PLACE_BYTES: u64 = size_of::<u64>() as u64;

/// A piece of `maps.bin`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// The maps that all tasks share.
    Common,
    /// The maps of the task with this number.
    Of(u32),
}

impl Piece {
    fn number(self) -> u64 {
        match self {
            Self::Common => 0,
            Self::Of(task) => 1 + u64::from(task),
        }
    }

    /// Returns bytes that identify the piece and its plan. The hashes in the piece also cover these bytes.
    pub fn bound_to(self, plan: &PlanId) -> Vec<u8> {
        [&MAGIC[..], plan.as_str().as_bytes(), &self.number().to_le_bytes()].concat()
    }
}

/// Writes the pieces of `maps.bin` in order. The file has a temporary name until the plan is written.
pub struct MapsWriter {
    path: PathBuf,
    file: NamedTempFile,
    places: Vec<u64>,
}

impl MapsWriter {
    /// Starts the file in the folder of a plan.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn new(folder: &Path) -> Result<Self, PartsError> {
        let path = maps_path(folder);
        let mut file = in_folder(&path, 0o666).map_err(PartsError::unwritable(&path))?;
        file.write_all(MAGIC).map_err(PartsError::unwritable(&path))?;
        Ok(Self { path, file, places: Vec::new() })
    }

    /// Writes the next piece.
    ///
    /// # Errors
    /// Errors of `write`, and of the operating system.
    pub fn piece<E: From<PartsError>>(&mut self, write: impl FnOnce(&mut dyn Write) -> Result<(), E>) -> Result<(), E> {
        let at = self.file.stream_position().map_err(PartsError::unwritable(&self.path))?;
        self.places.push(at);
        let mut to = BufWriter::new(self.file.as_file());
        write(&mut to)?;
        Ok(to.flush().map_err(PartsError::unwritable(&self.path))?)
    }

    /// Writes the offsets and gives the file its final name.
    pub(crate) fn finish(mut self) -> Result<(), PartsError> {
        let places: Vec<u8> = self.places.iter().flat_map(|place| place.to_le_bytes()).collect();
        self.file.write_all(&places).map_err(PartsError::unwritable(&self.path))?;
        persist(self.file, &self.path).map_err(PartsError::unwritable(&self.path))
    }
}

/// The path of the maps in the folder of a plan.
pub fn maps_path(folder: &Path) -> PathBuf {
    folder.join(MAPS)
}

/// Opens a piece of `path`, the maps of a plan. The reader starts at the piece and ends before the table of offsets at the
/// end of the file.
///
/// # Errors
///
/// If the file cannot be read, is damaged, or does not have the piece.
pub(crate) fn open<O>(path: PathBuf, plan: &Plan<O>, piece: Piece) -> Result<impl Read + use<O>, PartsError> {
    let mut file = File::open(&path).map_err(PartsError::unreadable(&path))?;
    let damaged = || PartsError::Damaged { path: path.clone(), what: "it is not what the plan wrote".to_owned() };
    let mut read = || -> io::Result<Option<(u64, u64)>> {
        let length = file.seek(SeekFrom::End(0))?;
        let pieces = 1 + u64::from(plan.area_count());
        let Some(end) = length.checked_sub(pieces * PLACE_BYTES) else { return Ok(None) };
        file.seek(SeekFrom::Start(end + piece.number() * PLACE_BYTES))?;
        let mut place = [0; PLACE_BYTES as usize];
        file.read_exact(&mut place)?;
        let place = u64::from_le_bytes(place);
        if !(MAGIC.len() as u64..end).contains(&place) {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(place))?;
        Ok(Some((place, end)))
    };
    let (place, end) = read().map_err(PartsError::unreadable(&path))?.ok_or_else(damaged)?;
    Ok(BufReader::new(file.take(end - place)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::gather::tests::made;

    fn write(path: &Path, pieces: &[&[u8]]) {
        let mut maps = MapsWriter::new(path).unwrap();
        for piece in pieces {
            maps.piece(|to| to.write_all(piece).map_err(PartsError::unwritable(path))).unwrap();
        }
        assert!(!path.join(MAPS).exists(), "nothing is seen before it is whole");
        maps.finish().unwrap();
    }

    #[test]
    fn each_piece_is_found_and_nothing_that_was_cut_is_read_beyond_its_end() {
        let temporary = tempfile::tempdir().unwrap();
        let (folder, plan) = made(temporary.path());
        write(temporary.path(), &[b"common", b"of 0", b"of one", b"of 2"]);
        let read = |piece| {
            let mut bytes = Vec::new();
            folder.maps(&plan, piece).map(|mut from| from.read_to_end(&mut bytes).map(|_| bytes))
        };
        assert_eq!(read(Piece::Common).unwrap().unwrap(), b"commonof 0of oneof 2");
        assert_eq!(read(Piece::Of(1)).unwrap().unwrap(), b"of oneof 2");
        let whole = fs::read(folder.maps_path()).unwrap();
        for length in 0..whole.len() {
            fs::write(folder.maps_path(), &whole[..length]).unwrap();
            match read(Piece::Of(2)) {
                Ok(bytes) => assert!(bytes.unwrap().len() < whole.len(), "{length} bytes"),
                Err(error) => assert!(error.to_string().contains("maps.bin: is damaged"), "{error}"),
            }
        }
        fs::remove_file(folder.maps_path()).unwrap();
        assert!(read(Piece::Common).unwrap_err().to_string().contains("maps.bin: cannot be read"));
    }

    #[test]
    fn maps_without_a_plan_leave_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        let mut maps = MapsWriter::new(temporary.path()).unwrap();
        maps.piece(|to| to.write_all(&[1; 100_000]).map_err(PartsError::unwritable(temporary.path()))).unwrap();
        drop(maps);
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    }

    #[test]
    fn pieces_of_other_plans_and_tasks_are_bound_to_something_else() {
        let (one, other) = (PlanId::new().unwrap(), PlanId::new().unwrap());
        let heads = [
            Piece::Common.bound_to(&one),
            Piece::Of(0).bound_to(&one),
            Piece::Of(1).bound_to(&one),
            Piece::Of(0).bound_to(&other),
        ];
        assert!((0..4).all(|at| heads[at + 1..].iter().all(|head| *head != heads[at])));
    }
}
