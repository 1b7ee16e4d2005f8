//! The pass over an image: reads it once from its start to its end, and finds the pages in it.

use std::io;

use format::page::{HEADER_BYTES, PAGE_BYTES};
use format::{PageBytes, PageId};

use super::page::{Place, may_begin};
use crate::faults::Reads;
use crate::positioned::{SharedFile, read_fully_at, will_need};

/// Pages begin at multiples of a sector from the start of an image, or from a phase.
pub(super) const SECTOR_BYTES: usize = 512;
/// The bytes of one read.
const CHUNK_BYTES: usize = 4 << 20;
/// The bytes that are read at a time where a larger read failed.
const PIECE_BYTES: usize = PAGE_BYTES;

/// A page that was found.
pub(super) struct Found<'a> {
    /// The ID in its header.
    pub(super) id: PageId,
    /// Its offset in the image.
    pub(super) at: u64,
    /// The page, and the bytes beside it.
    pub(super) place: Place<'a>,
}

/// Calls `found` for each page of an image, in ascending order of offsets, and `passed` with the number of bytes after
/// each read. `phases` are the offsets within a sector at which pages may begin, in ascending order. Bytes that cannot
/// be read are recorded in `reads`, and count as bytes without a page.
///
/// The pages do not overlap: after a page, the pass goes on behind it. At all other sectors, the first bytes decide in
/// most cases, so that an image without pages costs little. An image in which each sector looks like a page costs a
/// checksum of a page per sector.
///
/// # Errors
/// The errors of `found`.
pub(super) fn pass<E>(
    (file, reads): (&SharedFile, &Reads),
    phases: &[usize],
    passed: &dyn Fn(u64),
    mut found: impl FnMut(&Found<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut window = Window::new(file, reads);
    let mut at = phases.first().copied().unwrap_or_default() as u64;
    loop {
        if window.lacks(at + 2 * PAGE_BYTES as u64) {
            let read = window.slide(at.saturating_sub(PAGE_BYTES as u64));
            passed(read as u64);
            continue;
        }
        let Some(page) = window.page(at) else { return Ok(()) };
        if !may_begin(page) {
            at = next(at, phases);
            continue;
        }
        let place = Place {
            page,
            before: at.checked_sub(PAGE_BYTES as u64).and_then(|before| window.page(before)),
            after: window.at(at + PAGE_BYTES as u64).and_then(|bytes| bytes.first_chunk::<HEADER_BYTES>()),
        };
        match place.page_id() {
            Some(id) => {
                found(&Found { id, at, place })?;
                at += PAGE_BYTES as u64;
            }
            None => at = next(at, phases),
        }
    }
}

/// The next offset after `at` at which a page may begin.
fn next(at: u64, phases: &[usize]) -> u64 {
    let within = (at % SECTOR_BYTES as u64) as usize;
    let sector = at - within as u64;
    match phases.iter().find(|phase| **phase > within) {
        Some(phase) => sector + *phase as u64,
        None => sector + (SECTOR_BYTES + phases.first().copied().unwrap_or_default()) as u64,
    }
}

/// The part of an image that is in memory.
struct Window<'a> {
    file: &'a SharedFile,
    reads: &'a Reads,
    /// The length of the image; `None` if the system does not know it, as for a device.
    length: Option<u64>,
    bytes: Vec<u8>,
    /// The offset of the first of the bytes.
    start: u64,
    /// The number of bytes that are filled.
    filled: usize,
    is_end: bool,
}

impl<'a> Window<'a> {
    fn new(file: &'a SharedFile, reads: &'a Reads) -> Self {
        let length = file.length().ok().filter(|length| *length > 0);
        Self { file, reads, length, bytes: vec![0; CHUNK_BYTES], start: 0, filled: 0, is_end: false }
    }

    fn end(&self) -> u64 {
        self.start + self.filled as u64
    }

    /// Whether bytes before the offset `end` can still be read.
    fn lacks(&self, end: u64) -> bool {
        !self.is_end && end > self.end()
    }

    fn at(&self, offset: u64) -> Option<&[u8]> {
        let within = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(..self.filled)?.get(within..)
    }

    fn page(&self, offset: u64) -> Option<&PageBytes> {
        self.at(offset)?.first_chunk()
    }

    /// Removes the bytes before the offset `start`, and reads as many bytes at the end. Returns their number.
    fn slide(&mut self, start: u64) -> usize {
        let dropped = usize::try_from(start.saturating_sub(self.start)).map_or(self.filled, |at| at.min(self.filled));
        self.bytes.copy_within(dropped..self.filled, 0);
        self.start += dropped as u64;
        self.filled -= dropped;
        let end = self.end();
        let room = self.bytes.get_mut(self.filled..).unwrap_or_default();
        let wanted = room.len();
        let read = match read_fully_at(self.file, room, end) {
            Ok(read) => read,
            Err(_) => read_in_pieces((self.file, self.reads), room, end, self.length),
        };
        self.is_end = read < wanted;
        self.filled += read;
        if !self.is_end {
            will_need(self.file, self.end(), CHUNK_BYTES as u64);
        }
        read
    }
}

/// Reads the bytes around a place that cannot be read, piece by piece. A piece that cannot be read is filled with
/// zeros. Returns the number of bytes up to the end of the image. If its length is unknown, a piece that cannot be read
/// counts as its end: beyond it, no read would ever succeed.
fn read_in_pieces((file, reads): (&SharedFile, &Reads), bytes: &mut [u8], offset: u64, length: Option<u64>) -> usize {
    let mut done = 0;
    for piece in bytes.chunks_mut(PIECE_BYTES) {
        let at = offset + done as u64;
        let wanted = piece.len();
        let read = match reads.patiently(|| read_fully_at(file, piece, at)) {
            Ok(read) => read,
            Err(cause) => {
                reads.failed(at, &cause);
                piece.fill(0);
                let left = length.map_or(0, |length| length.saturating_sub(at));
                usize::try_from(left).map_or(wanted, |left| left.min(wanted))
            }
        };
        done += read;
        if read < wanted {
            break;
        }
    }
    done
}

/// Reads the bytes of copies of pages.
///
/// # Errors
/// Errors of the operating system, and an image that has become shorter.
pub(super) fn read_exactly(file: &SharedFile, bytes: &mut [u8], at: u64) -> io::Result<()> {
    match read_fully_at(file, bytes, at)? {
        read if read < bytes.len() => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter while it was read"))
        }
        _ => Ok(()),
    }
}
