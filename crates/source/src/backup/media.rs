//! One backup file, read as the tape it holds.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::compressed::{Compressed, MAGIC};
use super::damage::{Damage, DamageKind};
use crate::positioned::{read_fully_at, will_need};

/// A backup file; reads are positioned in the tape, which for a compressed backup is what its records hold.
#[derive(Debug)]
pub(crate) struct Media {
    pub(crate) path: PathBuf,
    file: File,
    length: u64,
    compressed: Option<Compressed>,
}

impl Media {
    /// Opens a backup file; `None` when it is compressed in a way that is not known.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut start = [0; 8];
        read_fully_at(&file, &mut start, 0)?;
        let compressed = match start == *MAGIC {
            true => match Compressed::open(&file, length)? {
                Some(compressed) => Some(compressed),
                None => return Ok(None),
            },
            false => None,
        };
        Ok(Some(Self { path: path.to_owned(), file, length, compressed }))
    }

    /// Length of the tape.
    pub(crate) fn length(&self) -> u64 {
        self.compressed.as_ref().map_or(self.length, |compressed| compressed.length)
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compressed.is_some()
    }

    /// Reads from place `at` of the tape on; fewer bytes than asked for only at its end.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        match &self.compressed {
            Some(compressed) => compressed.read_at(&self.file, buffer, at),
            None => read_fully_at(&self.file, buffer, at),
        }
    }

    /// Fills `buffer` from place `at` of the tape.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        if self.read_at(buffer, at)? == buffer.len() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the backup ends before the data that must be here"))
    }

    /// Says that so many bytes from place `at` of the tape on will be read soon.
    pub(crate) fn prefetch(&self, at: u64, length: u64) {
        let stored = match &self.compressed {
            Some(compressed) => compressed.stored(at, length),
            None => Some((at, length)),
        };
        if let Some((at, length)) = stored {
            will_need(&self.file, at, length);
        }
    }

    /// Damage of the compressed container; all of it is read that was not read before.
    pub(crate) fn container_damage(&self) -> io::Result<Vec<Damage>> {
        let Some(compressed) = &self.compressed else { return Ok(Vec::new()) };
        let damage = |at, kind| Damage { path: self.path.clone(), at, kind };
        let mut found = Vec::new();
        for bad in compressed.verify_all(&self.file)? {
            found.push(damage(
                bad.at,
                match bad.checksums {
                    Some((stored, computed)) => DamageKind::RecordChecksum { stored, computed },
                    None => DamageKind::RecordLost,
                },
            ));
        }
        if !compressed.is_whole {
            found.push(damage(self.length, DamageKind::Truncated));
        }
        Ok(found)
    }
}
