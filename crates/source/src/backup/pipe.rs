//! A backup from a pipe. The tape is read once, from start to end, and only its most recently read bytes are kept in
//! memory. This is enough to read the labels, but not to read the pages, which are needed in another order.

use std::fmt;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

use super::blocks::{SECTOR_BYTES, is_filemark};
use super::compressed::MAGIC;
use super::records::END_BYTES;
use super::version::Version;
use super::xpress;
use crate::identify::IDENTIFY_BYTES;

/// The number of bytes of the tape that stay available after they were read: enough for descriptor blocks with their
/// configuration.
const KEPT_BYTES: usize = 8 << 20;
/// A length in bytes that no tape reaches. It is used as the tape's length until the end of the pipe.
const MOST_BYTES: u64 = 1 << 62;
/// Bytes per read.
const CHUNK_BYTES: usize = 256 << 10;

/// A tape that can be read only once.
pub(crate) struct Pipe {
    version: Option<Version>,
    state: Mutex<State>,
}

/// The content of a pipe.
pub(crate) enum Piped {
    Backup(Pipe),
    /// A backup with an unknown compression.
    UnknownCompression,
    /// The content is not a backup; these are its first bytes.
    Other(Vec<u8>),
}

struct State {
    input: Box<dyn Read + Send>,
    /// The bytes read from the input (`input_bytes`), how many of these bytes are already used (`used_bytes`), and the
    /// input offset of the first unused byte (`raw_at`).
    input_bytes: Vec<u8>,
    used_bytes: usize,
    raw_at: u64,
    is_input_ended: bool,
    /// The available part of the tape (`window`), and the tape offset at which it starts (`start`).
    window: Vec<u8>,
    start: u64,
    /// Whether the data most recently added to the window is a soft filemark.
    is_after_mark: bool,
    is_ended: bool,
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Pipe {
    /// The maximum number of bytes kept in memory. The window grows to twice `KEPT_BYTES` before it is trimmed, and the
    /// input buffer holds one more chunk.
    pub(super) const MOST_HELD_BYTES: usize = 2 * KEPT_BYTES + CHUNK_BYTES;

    /// Opens the tape in `input`.
    pub(crate) fn open(input: Box<dyn Read + Send>) -> io::Result<Piped> {
        let mut state = State {
            input,
            input_bytes: Vec::new(),
            used_bytes: 0,
            raw_at: 0,
            is_input_ended: false,
            window: Vec::new(),
            start: 0,
            is_after_mark: false,
            is_ended: false,
        };
        state.want(16)?;
        let mut version = None;
        if state.raw().starts_with(MAGIC) {
            let Some(known) = state.raw().get(8..16).and_then(Version::of) else {
                return Ok(Piped::UnknownCompression);
            };
            state.want(known.first as usize)?;
            state.used(known.first as usize);
            version = Some(known);
        } else if !state.raw().starts_with(b"TAPE") {
            state.want(IDENTIFY_BYTES)?;
            return Ok(Piped::Other(state.raw().to_vec()));
        }
        Ok(Piped::Backup(Self { version, state: Mutex::new(state) }))
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.version.is_some()
    }

    /// Length of the tape; before the end of the tape is reached, a length that no tape reaches.
    pub(crate) fn length(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_ended { state.end() } else { MOST_BYTES }
    }

    /// Reads the tape from offset `at` and returns the number of bytes read. At the end of the tape, that is fewer than
    /// requested.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = at.saturating_add(buffer.len() as u64);
        while state.end() < wanted && !state.is_ended {
            state.grow(self.version)?;
            state.forget(at);
        }
        let Some(skipped) = at.checked_sub(state.start) else {
            return Err(lost("the data from the pipe is no longer available"));
        };
        let part = usize::try_from(skipped).ok().and_then(|skipped| state.window.get(skipped..)).unwrap_or_default();
        let taken = part.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..taken), part.get(..taken)) {
            to.copy_from_slice(from);
        }
        Ok(taken)
    }
}

impl State {
    /// The tape offset up to which the tape has been read.
    fn end(&self) -> u64 {
        self.start.saturating_add(self.window.len() as u64)
    }

    /// The bytes of the input that are not used yet.
    fn raw(&self) -> &[u8] {
        self.input_bytes.get(self.used_bytes..).unwrap_or_default()
    }

    /// Makes `bytes` bytes of the input available, or fewer if the input ends.
    fn want(&mut self, bytes: usize) -> io::Result<()> {
        while self.raw().len() < bytes && !self.is_input_ended {
            // The used bytes are removed only before the next read, and not after each small record, because every
            // removal moves the remaining bytes.
            self.input_bytes.drain(..self.used_bytes);
            self.used_bytes = 0;
            let old = self.input_bytes.len();
            self.input_bytes.resize(old.saturating_add(CHUNK_BYTES), 0);
            let read = self.input.read(self.input_bytes.get_mut(old..).unwrap_or_default());
            // Removes the bytes of the buffer that the read did not fill, also after an error.
            self.input_bytes.truncate(old.saturating_add(*read.as_ref().unwrap_or(&0)));
            match read {
                Ok(read) => self.is_input_ended = read == 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Marks `bytes` bytes of the available input as used.
    fn used(&mut self, bytes: usize) {
        let bytes = bytes.min(self.raw().len());
        self.used_bytes += bytes;
        self.raw_at = self.raw_at.saturating_add(bytes as u64);
    }

    /// Adds the next part of the tape to the window.
    fn grow(&mut self, version: Option<Version>) -> io::Result<()> {
        match version {
            Some(version) => self.grow_by_record(version),
            None => {
                self.want(1)?;
                self.window.extend_from_slice(self.input_bytes.get(self.used_bytes..).unwrap_or_default());
                self.used(usize::MAX);
                self.is_ended = self.is_input_ended;
                Ok(())
            }
        }
    }

    /// Adds the next record or soft filemark of a compressed container to the window.
    fn grow_by_record(&mut self, version: Version) -> io::Result<()> {
        self.want(version.most_bytes() as usize)?;
        if let Some((sectors, payload)) = version.record(self.input_bytes.get(self.used_bytes..).unwrap_or_default()) {
            let old = self.window.len();
            self.window.resize(old + usize::from(sectors) * SECTOR_BYTES, 0);
            let room = self.window.get_mut(old..).unwrap_or_default();
            if payload.len() == room.len() {
                room.copy_from_slice(payload);
            } else if xpress::decompress(payload, room).is_err() {
                return Err(lost("a record of the compressed backup is not XPRESS-Huffman"));
            }
            let used = version.header + payload.len();
            self.used(used);
            self.is_after_mark = false;
            return Ok(());
        }
        if let Some(length) = self.filemark() {
            let mark = self.input_bytes.get(self.used_bytes..).and_then(|raw| raw.get(..length));
            self.window.extend_from_slice(mark.unwrap_or_default());
            self.used(length);
            self.is_after_mark = true;
            return Ok(());
        }
        let is_rest_zero = (self.raw().len() as u64) < END_BYTES && self.raw().iter().all(|&byte| byte == 0);
        if self.is_input_ended && (self.raw().is_empty() || self.is_after_mark && is_rest_zero) {
            self.is_ended = true;
            return Ok(());
        }
        if let Some(filler) = version.filler(self.raw()) {
            self.pass(filler)?;
            self.want(version.most_bytes() as usize)?;
            if self.raw().is_empty() || self.filemark().is_some() || version.record(self.raw()).is_some() {
                return Ok(());
            }
        }
        Err(lost(
            "a record of the compressed backup is damaged; save the backup to a file, so that mdfsck can search for the next record",
        ))
    }

    /// Length of the soft filemark at the current position of the input; `None` if there is none.
    fn filemark(&self) -> Option<usize> {
        is_filemark(self.raw()).filter(|_| self.raw_at.is_multiple_of(SECTOR_BYTES as u64))
    }

    /// Skips `bytes` bytes of the input, even if they are not available yet.
    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.raw_at.saturating_add(bytes);
        while self.raw_at < end {
            self.want(1)?;
            if self.raw().is_empty() {
                break;
            }
            self.used(usize::try_from(end - self.raw_at).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    /// Removes from the window the bytes before tape offset `at`, but keeps at least `KEPT_BYTES` bytes.
    fn forget(&mut self, at: u64) {
        let spare = self.window.len().saturating_sub(KEPT_BYTES);
        let passed = usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let dropped = spare.min(passed);
        // The window is trimmed rarely, because its remaining bytes have to be moved.
        if dropped >= KEPT_BYTES {
            self.window.drain(..dropped);
            self.start = self.start.saturating_add(dropped as u64);
        }
    }
}

/// Returns the error for damage in a pipe. A pipe cannot be searched for the next record as a file can, so everything
/// after the damage is unreadable.
fn lost(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that returns parts in turn, from the end of the list; `None` is a read that fails.
    struct Failing(Vec<Option<Vec<u8>>>);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.pop() {
                Some(None) => Err(io::ErrorKind::TimedOut.into()),
                Some(Some(part)) => part.as_slice().read(buffer),
                None => Ok(0),
            }
        }
    }

    #[test]
    fn a_read_that_fails_adds_nothing_to_the_tape() {
        let tape: Vec<u8> = b"TAPE".iter().copied().chain((4..3000).map(|at| at as u8)).collect();
        let parts = tape.chunks(1000).rev().flat_map(|part| [Some(part.to_vec()), None]);
        let mut parts: Vec<_> = parts.collect();
        // The list is read from its end, so the failing read is removed there: the first read must succeed, because it
        // shows the kind of file.
        parts.pop();
        let Ok(Piped::Backup(pipe)) = Pipe::open(Box::new(Failing(parts))) else { panic!("a backup") };
        let mut read = vec![0; tape.len()];
        for _ in 0..2 {
            assert_eq!(pipe.read_at(&mut read, 0).unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        assert_eq!(pipe.read_at(&mut read, 0).unwrap(), tape.len());
        assert!(read == tape);
    }
}
