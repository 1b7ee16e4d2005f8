//! Finds the records of a compressed container, including the records after a damaged range of any length. The amount
//! of work per byte is bounded.

use std::io;

use super::blocks::{SECTOR_BYTES, is_filemark};
use super::groups::{BYTES_PER_GROUP, Groups};
use super::room::Room;
use super::version::{MAX_SECTORS, Version};
use crate::positioned::{SharedFile, read_fully_at};

/// After the last soft filemark, fewer than this many zero bytes (two blocks of 4096 bytes) may follow. No known file
/// has zero bytes after this filemark, but a device may round up the length of the file.
pub(super) const END_BYTES: u64 = 2 * 4096;
/// Bytes per read where records are small or damaged.
const WINDOW_BYTES: usize = 256 << 10;
/// If a header is less than this number of bytes from the most recent request, the read includes the headers after it,
/// because a system call for each header would be slow.
const NEAR_BYTES: u64 = 4096;
/// The search for the first record ends after this number of bytes. A backup in an unknown container format has no
/// record that can be found.
const FIRST_SEARCH_BYTES: u64 = 64 << 20;
/// The number of groups for which memory is reserved at a time.
const GROUPS_AT_ONCE: usize = 1024;

/// Finds the records of `file`, which has `length` bytes.
///
/// # Errors
/// Errors of the file, and an error if the groups do not fit into the memory limit.
pub(super) fn groups(file: &SharedFile, length: u64, version: Version, room: &Room) -> io::Result<Groups> {
    Walk { window: Window::new(file, length, version), groups: Groups::default(), room, paid: 0 }.run()
}

struct Walk<'a> {
    window: Window<'a>,
    groups: Groups,
    room: &'a Room,
    /// Number of groups for which memory is reserved.
    paid: usize,
}

impl Walk<'_> {
    /// Walks from record header to record header. Between a record and a soft filemark, only a filler may occur, which
    /// stores its own length. Any other bytes there are damage.
    fn run(mut self) -> io::Result<Groups> {
        let (length, header) = (self.window.length, self.window.version.header);
        let mut at = self.window.version.first;
        let mut here = self.window.record(at)?;
        while at < length {
            if self.groups.len() + GROUPS_AT_ONCE > self.paid {
                self.room.take(GROUPS_AT_ONCE * BYTES_PER_GROUP, "its compressed records")?;
                self.paid += GROUPS_AT_ONCE;
            }
            if let Some((sectors, next)) = here {
                let then = self.window.record(next)?;
                // Usually a valid header, a soft filemark or a filler confirms the end of the record. If none of them
                // follows, as in a truncated file, the record itself must have a correct checksum.
                if then.is_some() || self.window.is_boundary(next)? || self.window.is_sound(at)? {
                    self.groups.add_record(at, sectors, next, header);
                    (at, here) = (next, then);
                    continue;
                }
            }
            if let Some(bytes) = self.window.filemark(at)? {
                self.groups.add_filemark(at, bytes);
                at += bytes as u64;
            } else if let Some(end) = self.window.filler(at)? {
                at = end;
            } else if self.groups.ends_with_filemark() && self.window.is_zero_to_end(at)? {
                self.groups.is_whole = true;
                break;
            } else {
                let until = if self.groups.has_records() { length } else { at.saturating_add(FIRST_SEARCH_BYTES) };
                let Some(next) = self.window.next_sound(at + 1, until)? else {
                    self.groups.lost_end = Some(at);
                    break;
                };
                self.groups.add_loss(at);
                at = next;
            }
            here = self.window.record(at)?;
        }
        self.groups.is_whole |= at == length;
        self.groups.read_bytes = self.window.read_bytes;
        self.groups.summed_bytes = self.window.summed_bytes;
        Ok(self.groups)
    }
}

/// The part of the file that is in memory. This window advances with the walk. It keeps running sums over its words, so
/// that the checksum of any record in the window can be computed without another pass over the record.
struct Window<'a> {
    file: &'a SharedFile,
    length: u64,
    version: Version,
    start: u64,
    bytes: Vec<u8>,
    /// For each offset in `bytes`, the XOR of the 4-byte words that precede it without a gap: the words that end at
    /// this offset, four bytes before it, and so on. Before the XOR, each word is rotated right by its offset divided
    /// by 4.
    sums: Vec<u32>,
    /// The file offset of the most recent request for bytes.
    last: u64,
    read_bytes: u64,
    summed_bytes: u64,
}

impl<'a> Window<'a> {
    fn new(file: &'a SharedFile, length: u64, version: Version) -> Self {
        let (bytes, sums) = (Vec::new(), Vec::new());
        Self { file, length, version, start: 0, bytes, sums, last: 0, read_bytes: 0, summed_bytes: 0 }
    }

    /// Makes `wanted` bytes from file offset `at` available, or fewer at the end of the file. If a read is necessary,
    /// at least `ahead` bytes are read.
    fn fetch(&mut self, at: u64, wanted: usize, ahead: usize) -> io::Result<()> {
        let end = at.saturating_add(wanted as u64).min(self.length);
        if at < self.start || end > self.start + self.bytes.len() as u64 {
            let room = wanted.max(ahead).min(self.length.saturating_sub(at) as usize);
            self.bytes.resize(room, 0);
            let read = read_fully_at(self.file, &mut self.bytes, at)?;
            self.bytes.truncate(read);
            self.read_bytes += read as u64;
            self.start = at;
            self.sums.clear();
        }
        Ok(())
    }

    /// `wanted` bytes from file offset `at`, or fewer at the end of the file.
    fn bytes(&mut self, at: u64, wanted: usize) -> io::Result<&[u8]> {
        let is_near = at.abs_diff(self.last) < NEAR_BYTES;
        self.last = at;
        self.fetch(at, wanted, if is_near { WINDOW_BYTES } else { 0 })?;
        let rest = self.bytes.get((at - self.start) as usize..).unwrap_or_default();
        Ok(rest.get(..wanted).unwrap_or(rest))
    }

    /// The size in sectors of the record at file offset `at`, and the offset of the next record; `None` if there is no
    /// valid header.
    fn record(&mut self, at: u64) -> io::Result<Option<(u8, u64)>> {
        if at >= self.length {
            return Ok(None);
        }
        let (version, length) = (self.version, self.length);
        let Some(&[tag, sectors, low, high]) = self.bytes(at, 8)?.first_chunk() else { return Ok(None) };
        let size = u16::from_le_bytes([low, high]);
        let next = at + version.header as u64 + u64::from(size);
        let is_record = tag == version.tag && (1..=MAX_SECTORS).contains(&sectors) && size > 0;
        Ok((is_record && next <= length).then_some((sectors, next)))
    }

    /// Length of the soft filemark at file offset `at`; `None` if there is none.
    fn filemark(&mut self, at: u64) -> io::Result<Option<usize>> {
        if !at.is_multiple_of(SECTOR_BYTES as u64) || at >= self.length {
            return Ok(None);
        }
        Ok(is_filemark(self.bytes(at, SECTOR_BYTES)?))
    }

    /// The end of the filler at file offset `at`; `None` if there is no filler, or if neither a soft filemark nor the
    /// end of the file follows it.
    fn filler(&mut self, at: u64) -> io::Result<Option<u64>> {
        let version = self.version;
        let Some(length) = version.filler(self.bytes(at, Version::FILLER_START)?) else { return Ok(None) };
        let end = at + length;
        if end >= self.length || !end.is_multiple_of(SECTOR_BYTES as u64) {
            return Ok((end == self.length).then_some(end));
        }
        // The bytes after the filler are read without moving the window, because a file may be full of bytes that only
        // look like fillers.
        let mut far = [0; SECTOR_BYTES];
        let offset = end.checked_sub(self.start).map(|offset| offset as usize);
        let near = offset.and_then(|offset| self.bytes.get(offset..offset + SECTOR_BYTES));
        let bytes = match near {
            Some(near) => near,
            None => {
                let read = read_fully_at(self.file, &mut far, end)?;
                self.read_bytes += read as u64;
                far.get(..read).unwrap_or_default()
            }
        };
        Ok(is_filemark(bytes).map(|_| end))
    }

    /// Whether a sequence of records may end at file offset `at`, because a soft filemark or a filler is there.
    fn is_boundary(&mut self, at: u64) -> io::Result<bool> {
        Ok(self.filemark(at)?.is_some() || self.filler(at)?.is_some())
    }

    /// Whether only a few zeros follow from file offset `at` to the end of the file.
    fn is_zero_to_end(&mut self, at: u64) -> io::Result<bool> {
        let rest = self.length.saturating_sub(at);
        Ok(rest < END_BYTES && self.bytes(at, rest as usize)?.iter().all(|&byte| byte == 0))
    }

    /// Whether the record at file offset `at` has a correct checksum.
    fn is_sound(&mut self, at: u64) -> io::Result<bool> {
        let Some((_, next)) = self.record(at)? else { return Ok(false) };
        self.fetch(at, (next - at) as usize, WINDOW_BYTES)?;
        let (version, offset) = (self.version, (at - self.start) as usize);
        let stored = self.bytes.get(offset + version.checksum..).and_then(|rest| rest.first_chunk::<4>()).copied();
        let computed = self.checksum(offset + version.header, (next - self.start) as usize);
        Ok(stored.is_some_and(|stored| Some(u32::from_le_bytes(stored)) == computed))
    }

    /// Computes the same checksum as `version::checksum` for the bytes `from..to` of the window. This is the XOR of the
    /// running sums at `from` and at `to`: the words before `from` are in both sums and cancel out.
    fn checksum(&mut self, from: usize, to: usize) -> Option<u32> {
        let tail = to.checked_sub(from)? % 4;
        let end = to - tail;
        self.sums.reserve(self.bytes.len().saturating_sub(self.sums.len()));
        for at in self.sums.len()..=end {
            let sum = match at.checked_sub(4) {
                Some(before) => {
                    let word = u32::from_le_bytes(*self.bytes.get(before..)?.first_chunk()?);
                    self.sums.get(before)? ^ word.rotate_right((before / 4 % 32) as u32)
                }
                None => 0,
            };
            self.sums.push(sum);
            self.summed_bytes += 1;
        }
        let between = self.sums.get(end)? ^ self.sums.get(from)?;
        // In a checksum, the last word is not rotated. The sum is therefore rotated back by the number of bits by which
        // the last word was rotated.
        let sum = between.rotate_left(((end.max(4) - 4) / 4 % 32) as u32);
        if tail == 0 {
            return Some(sum);
        }
        let last = self.bytes.get(end..to)?.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        Some(sum.rotate_left(1) ^ last)
    }

    /// The offset of the next record with a correct checksum, or of the next soft filemark, between `from` and `until`.
    fn next_sound(&mut self, from: u64, until: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        while at < self.length.min(until) {
            self.fetch(at, 1, WINDOW_BYTES)?;
            let rest = self.bytes.get((at - self.start) as usize..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let tag = self.version.tag;
            let Some(skipped) = rest.iter().position(|&byte| byte == tag || byte == b'S') else {
                at += rest.len() as u64;
                continue;
            };
            at += skipped as u64;
            let is_next = match rest.get(skipped) {
                Some(b'S') if at.is_multiple_of(SECTOR_BYTES as u64) => {
                    self.fetch(at, SECTOR_BYTES, WINDOW_BYTES)?;
                    self.filemark(at)?.is_some()
                }
                Some(b'S') => false,
                _ => self.is_sound(at)?,
            };
            if is_next {
                return Ok(Some(at));
            }
            at += 1;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
