//! One backup file, which is read as a tape.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use super::compressed::{Compressed, MAGIC, RecordFault};
use super::damage::{Damage, DamageKind};
use super::pipe::Pipe;
use super::remains::{self, Form};
use super::room::Room;
use super::version::Version;
use crate::changes::FileChange;
use crate::faults::{ReadFaults, Reads};
use crate::positioned::{SharedFile, read_fully_at, will_need};

/// A backup file. All offsets are tape offsets; the tape of a compressed backup is its decompressed content.
#[derive(Debug)]
pub(crate) struct Media {
    pub(crate) path: PathBuf,
    input: Input,
    reads: Reads,
}

/// Whether an error means that the data is damaged or ends early, and not that reading failed.
pub(super) fn is_damage(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

#[derive(Debug)]
enum Input {
    File(SharedFile, u64),
    Compressed(SharedFile, u64, Box<Compressed>),
    Pipe(Pipe),
}

impl Media {
    /// Number of bytes kept in memory.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.input {
            Input::File(..) => 0,
            Input::Compressed(.., compressed) => compressed.held_bytes(),
            Input::Pipe(_) => Pipe::MOST_HELD_BYTES,
        }
    }

    /// Opens a backup file; `None` if its compression is unknown.
    pub(super) fn open(path: &Path, file: SharedFile, room: &Room) -> io::Result<Option<Self>> {
        let length = file.length()?;
        let mut start = [0; MAGIC.len() + 8];
        let read = read_fully_at(&file, &mut start, 0)?;
        let start = start.get(..read).unwrap_or_default();
        let version = match start.strip_prefix(MAGIC) {
            Some(words) => match Version::of(words) {
                Some(version) => Some(version),
                None => return Ok(None),
            },
            None if start.starts_with(b"TAPE") => None,
            None => match remains::form(path, &file, length) {
                Some(Form::Compressed(version)) => Some(version),
                Some(Form::Plain) | None => None,
            },
        };
        let input = match version {
            Some(version) => match Compressed::open(&file, length, version, (room, room.index(path, length)))? {
                Some(compressed) => Input::Compressed(file, length, Box::new(compressed)),
                None => return Ok(None),
            },
            None => Input::File(file, length),
        };
        Ok(Some(Self { path: path.to_owned(), input, reads: Reads::default() }))
    }

    /// A backup from a pipe, which can be read only once.
    pub(crate) fn pipe(path: &Path, pipe: Pipe) -> Self {
        Self { path: path.to_owned(), input: Input::Pipe(pipe), reads: Reads::default() }
    }

    /// Length of the tape.
    pub(crate) fn length(&self) -> u64 {
        match &self.input {
            Input::File(_, length) => *length,
            Input::Compressed(_, _, compressed) => compressed.length,
            Input::Pipe(pipe) => pipe.length(),
        }
    }

    /// The groups of records of a compressed backup that were read without error, one bit each.
    pub(super) fn seen(&self) -> &[AtomicU64] {
        match &self.input {
            Input::Compressed(.., compressed) => compressed.seen(),
            _ => &[],
        }
    }

    /// The length of the file and its index, if it is compressed and no pipe.
    pub(super) fn compressed(&self) -> Option<(u64, &Compressed)> {
        match &self.input {
            Input::Compressed(_, length, compressed) => Some((*length, compressed)),
            _ => None,
        }
    }

    pub(crate) fn is_compressed(&self) -> bool {
        match &self.input {
            Input::File(..) => false,
            Input::Compressed(..) => true,
            Input::Pipe(pipe) => pipe.is_compressed(),
        }
    }

    /// Reads the tape from offset `at` and returns the number of bytes read. At the end of the tape, that is fewer than
    /// requested.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let read = match &self.input {
            Input::File(file, _) => self.reads.patiently(|| read_fully_at(file, buffer, at)),
            Input::Compressed(file, _, compressed) => self.reads.patiently(|| compressed.read_at(file, buffer, at)),
            Input::Pipe(pipe) => pipe.read_at(buffer, at),
        };
        read.inspect_err(|cause| self.note(at, cause))
    }

    /// Reads the tape from offset `at` and returns the number of bytes read. A failed read is neither repeated nor
    /// recorded, because the caller reads the same bytes again in smaller pieces.
    pub(super) fn try_read_at(&self, buffer: &mut [u8], at: u64) -> usize {
        let read = match &self.input {
            Input::File(file, _) => read_fully_at(file, buffer, at),
            Input::Compressed(file, _, compressed) => compressed.read_at(file, buffer, at),
            Input::Pipe(pipe) => pipe.read_at(buffer, at),
        };
        read.unwrap_or_default()
    }

    /// Records a failed read, unless the cause is damage.
    fn note(&self, at: u64, cause: &io::Error) {
        if !is_damage(cause) {
            self.reads.failed(at, cause);
        }
    }

    /// The change of this file since it was opened, if there is one. What came through a pipe never changes.
    pub(super) fn change(&self) -> Option<FileChange> {
        let kind = match &self.input {
            Input::File(file, _) | Input::Compressed(file, ..) => file.change(&self.path)?,
            Input::Pipe(_) => return None,
        };
        Some(FileChange { path: self.path.clone(), kind })
    }

    /// Adds the failed reads of this file to `faults`.
    pub(crate) fn add_read_faults(&self, faults: &mut ReadFaults) {
        self.reads.add_to(&self.path, faults);
    }

    /// Reads the tape from offset `at` up to the next damaged place. If a damaged place begins at `at`, returns its
    /// length in bytes instead.
    pub(super) fn read_part(&self, buffer: &mut [u8], at: u64) -> io::Result<Part> {
        match &self.input {
            Input::Compressed(file, _, compressed) => self
                .reads
                .patiently(|| compressed.read_part(file, buffer, at))
                .inspect_err(|cause| self.note(at, cause)),
            _ => self.read_at(buffer, at).map(Part::Read),
        }
    }

    /// Returns the tape offset at which the first loss of records ends, among the losses that overlap the `length`
    /// bytes of the tape from `at`. `None` if there is no such loss. The original size of lost records is unknown.
    pub(super) fn loss_in(&self, at: u64, length: u64) -> Option<u64> {
        match &self.input {
            Input::Compressed(_, _, compressed) => compressed.loss_in(at, length),
            _ => None,
        }
    }

    /// Fills `buffer` from tape offset `at`.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        if self.read_at(buffer, at)? == buffer.len() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the backup ends before the data that must be at this place"))
    }

    /// Announces that `length` bytes of the tape from offset `at` will be read soon.
    pub(crate) fn prefetch(&self, at: u64, length: u64) {
        let stored = match &self.input {
            Input::File(file, _) => Some((file, (at, length))),
            Input::Compressed(file, _, compressed) => compressed.stored(at, length).map(|stored| (file, stored)),
            Input::Pipe(_) => None,
        };
        if let Some((file, (at, length))) = stored {
            will_need(file, at, length);
        }
    }

    /// Reports damage to the compressed container to `found`. To find all damage, this function reads all records that
    /// have not been read before.
    pub(crate) fn container_damage(&self, mut found: impl FnMut(Damage)) -> io::Result<()> {
        let Input::Compressed(file, length, compressed) = &self.input else { return Ok(()) };
        let damage = |at, kind| Damage { path: self.path.clone(), at, kind };
        compressed.verify_all(file, |bad| {
            found(damage(
                bad.at,
                match bad.fault {
                    RecordFault::Lost => DamageKind::RecordLost,
                    RecordFault::Checksum { stored, computed } => DamageKind::RecordChecksum { stored, computed },
                    RecordFault::Malformed => DamageKind::RecordForm,
                },
            ));
        })?;
        if !compressed.is_whole {
            found(damage(*length, DamageKind::Truncated));
        }
        Ok(())
    }
}

/// The result of a read that stops at damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// The number of bytes read; 0 at the end of the tape.
    Read(usize),
    /// The number of bytes that cannot be read, counted from the offset of the read.
    Damaged(u64),
}
