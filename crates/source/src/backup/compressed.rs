//! The compressed container: records that, decompressed one after another, are the tape of an uncompressed backup
//! (logs-backups-events.md 2.5 and 2.7). An index of eight bytes a record lets any place of that tape be read.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use format::bytes::{u16_at, u32_at};

use super::blocks::{SECTOR_BYTES, is_filemark};
use super::xpress;
use crate::positioned::read_fully_at;

/// First bytes of the container.
pub(crate) const MAGIC: &[u8] = b"MSSQLBAK";
/// Largest record: what a byte can count in sectors is more than any writer puts into one.
pub(super) const MAX_SECTORS: u8 = 128;
/// Between a record and the soft filemark behind it lies less than two blocks of at most 4096 bytes.
pub(super) const GAP_BYTES: usize = 2 * 4096 + SECTOR_BYTES;
/// How far behind damage the next record is looked for.
const RESYNC_BYTES: u64 = 1 << 20;
/// Records decompressed and kept.
const CACHED: usize = 16;
/// Entries of the index a step of the coarse index covers.
const STEP: usize = 256;

/// What differs between the versions of the container.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    pub(super) first: u64,
    pub(super) tag: u8,
    pub(super) header: usize,
    pub(super) checksum: usize,
}

impl Version {
    /// By the words behind the magic: 1, 1 or 2, 3; others hold other algorithms.
    pub(super) fn of(words: &[u8]) -> Option<Self> {
        match words {
            [1, 0, 0, 0, 1, 0, 0, 0] => Some(V1),
            [2, 0, 0, 0, 3, 0, 0, 0] => Some(V2),
            _ => None,
        }
    }
}

/// SQL Server 2008.
const V1: Version = Version { first: 0x10, tag: 0x81, header: 8, checksum: 4 };
/// SQL Server 2008 R2 and later.
const V2: Version = Version { first: 0x1E0, tag: 0x21, header: 28, checksum: 24 };

/// A place of the index: offset in the file, size in the tape, and how it is stored, in 64 bits.
#[derive(Clone, Copy, Debug)]
struct Entry(u64);

impl Entry {
    /// Uncompressed in the container: a soft filemark.
    const LITERAL: u64 = 1 << 8;
    /// A record was here that cannot be read.
    const LOST: u64 = 1 << 9;

    fn new(offset: u64, sectors: u8, flags: u64) -> Self {
        Self(offset << 10 | flags | u64::from(sectors))
    }

    fn offset(self) -> u64 {
        self.0 >> 10
    }

    fn bytes(self) -> usize {
        (self.0 & 0xFF) as usize * SECTOR_BYTES
    }

    fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

/// A record whose checksum is wrong, or that is none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct BadRecord {
    /// Where in the file.
    pub(crate) at: u64,
    /// Checksum in its header and over its bytes; `None` when there is no such record at all.
    pub(crate) checksums: Option<(u32, u32)>,
}

/// An entry and what it holds, once a thread has decompressed it; `None` when it cannot be.
type Decoded = (usize, Arc<OnceLock<Option<Box<[u8]>>>>);

/// A compressed container, open for reading.
#[derive(Debug)]
pub(crate) struct Compressed {
    version: Version,
    entries: Vec<Entry>,
    /// Place in the tape of every [`STEP`]th entry.
    steps: Vec<u64>,
    /// Length of the tape.
    pub(crate) length: u64,
    /// Whether the last record ends where the file does, but for the slack behind a soft filemark.
    pub(crate) is_whole: bool,
    /// Entries whose checksum was compared, a bit each.
    seen: Vec<AtomicU64>,
    bad: Mutex<BTreeSet<BadRecord>>,
    cache: Mutex<VecDeque<Decoded>>,
}

impl Compressed {
    /// Bytes that it keeps in memory: 8 bytes a record, and the last records decompressed.
    pub(super) fn held_bytes(&self) -> usize {
        let index = size_of_val(self.entries.as_slice()) * 3 / 2 + size_of_val(self.steps.as_slice());
        index + size_of_val(self.seen.as_slice()) + CACHED * usize::from(MAX_SECTORS) * SECTOR_BYTES
    }

    /// Indexes the records of `file`; `None` when this version of the container is not known.
    pub(crate) fn open(file: &File, length: u64) -> io::Result<Option<Self>> {
        let mut start = [0; 16];
        read_fully_at(file, &mut start, 0)?;
        let Some(version) = start.get(8..).and_then(Version::of) else { return Ok(None) };
        let mut index = Index { file, length, version, entries: Vec::new(), bad: BTreeSet::new() };
        let is_whole = index.walk()?;
        let (entries, bad) = (index.entries, index.bad);
        if entries.iter().all(|entry| entry.is(Entry::LOST)) {
            return Ok(None);
        }
        let (mut steps, mut at) = (Vec::new(), 0);
        for (number, entry) in entries.iter().enumerate() {
            if number % STEP == 0 {
                steps.push(at);
            }
            at += entry.bytes() as u64;
        }
        let seen = (0..entries.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let cache = Mutex::new(VecDeque::new());
        let this = Self { version, entries, steps, length: at, is_whole, seen, bad: Mutex::new(bad), cache };
        // A first record that cannot be decompressed: encrypted, or another algorithm.
        let is_readable = this.entries.first().is_some_and(|entry| entry.is(Entry::LOST))
            || this.copy_part(file, 0, 0, &mut []).is_ok();
        Ok(is_readable.then_some(this))
    }

    /// Reads from place `at` of the tape on; returns the bytes read, fewer than asked for only at its end.
    pub(crate) fn read_at(&self, file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let Some((mut number, start)) = self.entry_at(at) else { return Ok(0) };
        let mut skip = (at - start) as usize;
        let mut done = 0;
        while let (true, Some(entry)) = (done < buffer.len(), self.entries.get(number)) {
            let rest = buffer.get_mut(done..).unwrap_or_default();
            let bytes = entry.bytes();
            let taken = match rest.get_mut(..bytes) {
                // The whole of it is wanted: straight to where it goes.
                Some(whole) if skip == 0 => {
                    self.decode(file, number, whole)?;
                    bytes
                }
                _ => self.copy_part(file, number, skip, rest)?,
            };
            done += taken;
            skip = 0;
            number += 1;
        }
        Ok(done)
    }

    /// Compares the checksums of all records that were not read yet; returns the bad ones.
    pub(crate) fn verify_all(&self, file: &File) -> io::Result<Vec<BadRecord>> {
        let mut raw = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            let is_seen =
                self.seen.get(number / 64).is_some_and(|word| word.load(Ordering::Relaxed) & 1 << (number % 64) != 0);
            if !is_seen && !entry.is(Entry::LITERAL | Entry::LOST) {
                // A bad record is remembered; one that cannot be read at all is an error.
                match self.payload(file, number, &mut raw) {
                    Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(self.bad.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect())
    }

    /// The entry that holds place `at` of the tape, and where it starts.
    fn entry_at(&self, at: u64) -> Option<(usize, u64)> {
        let step = self.steps.partition_point(|&start| start <= at).checked_sub(1)?;
        let mut start = *self.steps.get(step)?;
        for (number, entry) in self.entries.iter().enumerate().skip(step * STEP).take(STEP) {
            let end = start + entry.bytes() as u64;
            if at < end {
                return Some((number, start));
            }
            start = end;
        }
        None
    }

    /// Copies what an entry holds from place `skip` on, as far as `out` has room; returns how much that is. Of threads that
    /// want the same entry one decompresses it, and the others wait.
    fn copy_part(&self, file: &File, number: usize, skip: usize, out: &mut [u8]) -> io::Result<usize> {
        let slot = {
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            match cache.iter().find(|(cached, _)| *cached == number) {
                Some((_, slot)) => slot.clone(),
                None => {
                    let slot = Arc::new(OnceLock::new());
                    cache.truncate(CACHED - 1);
                    cache.push_front((number, slot.clone()));
                    slot
                }
            }
        };
        let again;
        let decoded = match slot.get_or_init(|| self.decoded(file, number).ok()) {
            Some(decoded) => decoded,
            // Once more for the error, unless it was one that passes.
            None => {
                again = self.decoded(file, number)?;
                &again
            }
        };
        let part = decoded.get(skip..).unwrap_or_default();
        let taken = part.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..taken), part.get(..taken)) {
            to.copy_from_slice(from);
        }
        Ok(taken)
    }

    /// What an entry holds.
    fn decoded(&self, file: &File, number: usize) -> io::Result<Box<[u8]>> {
        let mut decoded = vec![0; self.entries.get(number).map_or(0, |entry| entry.bytes())];
        self.decode(file, number, &mut decoded)?;
        Ok(decoded.into_boxed_slice())
    }

    /// The bytes of the file that hold those of the tape from `at` on.
    pub(crate) fn stored(&self, at: u64, length: u64) -> Option<(u64, u64)> {
        let (first, _) = self.entry_at(at)?;
        let last = self.entry_at(at.saturating_add(length)).map_or(self.entries.len(), |(number, _)| number);
        let start = self.entries.get(first)?.offset();
        let end = self.entries.get(last.saturating_add(1)).or(self.entries.last())?.offset();
        Some((start, end.saturating_sub(start)))
    }

    /// Decompresses an entry into `out`, which has its size.
    fn decode(&self, file: &File, number: usize, out: &mut [u8]) -> io::Result<()> {
        let Some(&entry) = self.entries.get(number) else { return Err(damaged("no such record")) };
        if entry.is(Entry::LOST) {
            return Err(damaged("a record of the compressed backup is lost"));
        }
        if entry.is(Entry::LITERAL) {
            let read = read_fully_at(file, out, entry.offset())?;
            return if read == out.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        let mut raw = Vec::new();
        self.payload(file, number, &mut raw)?;
        let payload = raw.get(self.version.header..).unwrap_or_default();
        let inflated = if payload.len() == out.len() {
            // As large as what it holds: stored.
            out.copy_from_slice(payload);
            Ok(())
        } else {
            xpress::decompress(payload, out)
        };
        // The checksum is right, so this is what was written: perhaps a form that is not known.
        inflated.map_err(|_| damaged("the record of the compressed backup that holds it is not XPRESS-Huffman"))
    }

    /// Reads the record of an entry, header included, and verifies its checksum.
    fn payload(&self, file: &File, number: usize, raw: &mut Vec<u8>) -> io::Result<()> {
        let Some(&entry) = self.entries.get(number) else { return Err(damaged("no such record")) };
        if self.is_bad(entry.offset()) {
            return Err(damaged("the record of the compressed backup that holds it has a wrong checksum"));
        }
        let header = self.version.header;
        // The next entry bounds the read; at a soft filemark, or at the end, some slack is read too.
        let end = self.entries.get(number + 1).map_or(u64::MAX, |next| next.offset());
        let limit = (header + usize::from(u16::MAX)) as u64;
        raw.resize(end.saturating_sub(entry.offset()).min(limit) as usize, 0);
        let read = read_fully_at(file, raw, entry.offset())?;
        raw.truncate(read);
        let size = usize::from(u16_at(raw, 2).unwrap_or_default());
        let stored = u32_at(raw, self.version.checksum);
        let (Some(stored), true) = (stored, header + size <= raw.len()) else {
            return Err(self.bad(BadRecord { at: entry.offset(), checksums: None }));
        };
        raw.truncate(header + size);
        let computed = checksum(raw.get(header..).unwrap_or_default());
        if let Some(word) = self.seen.get(number / 64) {
            word.fetch_or(1 << (number % 64), Ordering::Relaxed);
        }
        if computed == stored {
            Ok(())
        } else {
            Err(self.bad(BadRecord { at: entry.offset(), checksums: Some((stored, computed)) }))
        }
    }

    /// Whether the record at this place of the file was found bad before.
    fn is_bad(&self, at: u64) -> bool {
        let bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        bad.range(BadRecord { at, checksums: None }..).next().is_some_and(|record| record.at == at)
    }

    fn bad(&self, record: BadRecord) -> io::Error {
        self.bad.lock().unwrap_or_else(PoisonError::into_inner).insert(record);
        damaged("the record of the compressed backup that holds it has a wrong checksum")
    }
}

fn damaged(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Checksum of a record: words XORed, the sum rotated by one bit before each; the last one is filled up with zeros.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    // Words that lie 32 apart are rotated alike: they are added up side by side.
    let (groups, rest) = bytes.as_chunks::<128>();
    let mut lanes = [0u32; 32];
    for group in groups {
        for (lane, word) in lanes.iter_mut().zip(group.as_chunks::<4>().0) {
            *lane ^= u32::from_le_bytes(*word);
        }
    }
    let sum = lanes.iter().fold(0u32, |sum, lane| sum.rotate_left(1) ^ lane);
    let (words, rest) = rest.as_chunks::<4>();
    let sum = words.iter().fold(sum, |sum, word| sum.rotate_left(1) ^ u32::from_le_bytes(*word));
    if rest.is_empty() {
        return sum;
    }
    let last = rest.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    sum.rotate_left(1) ^ last
}

/// The walk that finds all records.
struct Index<'a> {
    file: &'a File,
    length: u64,
    version: Version,
    entries: Vec<Entry>,
    bad: BTreeSet<BadRecord>,
}

impl Index<'_> {
    /// Hops from header to header. Between a record and a soft filemark lie old bytes, which may look like anything.
    fn walk(&mut self) -> io::Result<bool> {
        let mut at = self.version.first;
        while at < self.length {
            if let Some((sectors, next)) = self.record(at)? {
                if self.record(next)?.is_some() || self.filemark(next)?.is_some() {
                    self.entries.push(Entry::new(at, sectors, 0));
                    at = next;
                    continue;
                }
                // The last record of a file that was cut, one whose header lies, or the old bytes before a filemark.
                if self.filemark(at)?.is_none() && self.is_sound(at)? {
                    self.entries.push(Entry::new(at, sectors, 0));
                    at = next;
                    continue;
                }
            }
            if let Some((mark, bytes)) = self.filemark(at)? {
                self.entries.push(Entry::new(mark, (bytes / SECTOR_BYTES) as u8, Entry::LITERAL));
                at = mark + bytes as u64;
                continue;
            }
            if self.is_slack(at) {
                return Ok(true);
            }
            self.bad.insert(BadRecord { at, checksums: None });
            // One record is taken for lost; where pages lie is told by the pages themselves.
            match self.next_sound(at + 1)? {
                Some(next) => {
                    self.entries.push(Entry::new(at, MAX_SECTORS, Entry::LOST));
                    at = next;
                }
                None => return Ok(false),
            }
        }
        Ok(at == self.length)
    }

    /// Behind the last soft filemark less than a block may follow.
    fn is_slack(&self, at: u64) -> bool {
        self.entries.last().is_some_and(|last| last.is(Entry::LITERAL)) && self.length - at < GAP_BYTES as u64
    }

    /// Size in sectors of the record at `at` and where the next one starts, if its header can be one.
    fn record(&self, at: u64) -> io::Result<Option<(u8, u64)>> {
        let mut header = [0; 8];
        if at >= self.length || read_fully_at(self.file, &mut header, at)? < header.len() {
            return Ok(None);
        }
        let [tag, sectors, low, high, ..] = header;
        let size = u16::from_le_bytes([low, high]);
        let next = at + self.version.header as u64 + u64::from(size);
        let is_record = tag == self.version.tag && (1..=MAX_SECTORS).contains(&sectors) && size > 0;
        Ok((is_record && next <= self.length).then_some((sectors, next)))
    }

    /// The soft filemark behind a record that ends at `at`: at the next multiple of a sector, or some sectors on.
    fn filemark(&self, at: u64) -> io::Result<Option<(u64, usize)>> {
        let first = at.next_multiple_of(SECTOR_BYTES as u64);
        let mut window = [0; GAP_BYTES];
        let read = if first < self.length { read_fully_at(self.file, &mut window, first)? } else { 0 };
        for (sector, bytes) in window.get(..read).unwrap_or_default().chunks(SECTOR_BYTES).enumerate() {
            if let Some(length) = is_filemark(bytes) {
                return Ok(Some((first + (sector * SECTOR_BYTES) as u64, length)));
            }
        }
        Ok(None)
    }

    /// Whether the record at `at` has the right checksum.
    fn is_sound(&self, at: u64) -> io::Result<bool> {
        let Some((_, next)) = self.record(at)? else { return Ok(false) };
        let mut raw = vec![0; (next - at) as usize];
        if read_fully_at(self.file, &mut raw, at)? < raw.len() {
            return Ok(false);
        }
        let stored = raw.get(self.version.checksum..).and_then(|rest| rest.first_chunk::<4>());
        let payload = raw.get(self.version.header..).unwrap_or_default();
        Ok(stored.is_some_and(|stored| u32::from_le_bytes(*stored) == checksum(payload)))
    }

    /// The next record with the right checksum, or soft filemark, not too far behind `from`.
    fn next_sound(&self, from: u64) -> io::Result<Option<u64>> {
        let end = from.saturating_add(RESYNC_BYTES).min(self.length);
        // Mostly it is near: a file of many bad records must not cost the whole stretch for each of them.
        let mut window = [0; GAP_BYTES];
        for start in (from..end).step_by(GAP_BYTES) {
            let wanted = (end - start).min(GAP_BYTES as u64) as usize;
            let read = read_fully_at(self.file, window.get_mut(..wanted).unwrap_or_default(), start)?;
            for (at, &byte) in (start..).zip(window.iter().take(read)) {
                let is_next = byte == self.version.tag && self.is_sound(at)?
                    || byte == b'S'
                        && at.is_multiple_of(SECTOR_BYTES as u64)
                        && self.filemark(at)?.is_some_and(|(mark, _)| mark == at);
                if is_next {
                    return Ok(Some(at));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_pads_with_zeros() {
        assert_eq!(checksum(&[]), 0);
        assert_eq!(checksum(&[1, 0, 0, 0, 2]), 2 ^ 2);
        assert_eq!(checksum(&[1, 0, 0, 0, 2, 0, 0, 0]), checksum(&[1, 0, 0, 0, 2]));
        assert_eq!(checksum(&[0, 0, 0, 0x80, 0, 0, 0, 0]), 1, "the top bit comes back below");
        let bytes: Vec<u8> = (0..1003u32).map(|n| (n * n / 8) as u8).collect();
        for length in 0..bytes.len() {
            let one_by_one = bytes[..length].chunks(4).fold(0u32, |sum, chunk| {
                let mut word = [0; 4];
                word[..chunk.len()].copy_from_slice(chunk);
                sum.rotate_left(1) ^ u32::from_le_bytes(word)
            });
            assert_eq!(checksum(&bytes[..length]), one_by_one, "{length} bytes");
        }
    }
}
