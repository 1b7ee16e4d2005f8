//! The compressed container: records that decompress, one after another, to the tape of an uncompressed backup
//! (docs/format/backups.md#compressed-containers). Adjacent records that hold at most 64 KB of the tape form a group.
//! An index with eight bytes per group gives random access to the tape.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use format::bytes::{u16_at, u32_at};

use super::blocks::SECTOR_BYTES;
use super::groups::{BYTES_PER_GROUP, Entry, Groups};
use super::media::Part;
use super::records;
use super::room::Room;
use super::version::{MAX_SECTORS, Version, checksum};
use super::xpress;
use crate::positioned::{SharedFile, read_fully_at};

/// The first bytes of a compressed container.
pub(crate) const MAGIC: &[u8] = b"MSSQLBAK";
/// Number of decompressed groups kept in memory.
const CACHED: usize = 16;
/// Number of index entries per entry of the coarse index.
const STEP: usize = 256;

/// A record that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadRecord {
    /// Offset of the record in the file.
    pub(crate) at: u64,
    /// The reason why the record cannot be read.
    pub(crate) fault: RecordFault,
}

/// The reason why a record cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordFault {
    /// There is no record at this offset.
    Lost,
    /// The stored checksum of the record differs from the checksum computed from its bytes.
    Checksum { stored: u32, computed: u32 },
    /// The checksum of the record is correct, but its payload does not decompress to the number of sectors in the
    /// record's header. Either the header is damaged, which the checksum does not cover, or the compression is unknown.
    Malformed,
}

/// The content of a group. `bad` marks the sectors that cannot be read.
#[derive(Debug)]
struct Held {
    bytes: Box<[u8]>,
    bad: BadSectors,
}

/// The sectors of a group that cannot be read, one bit each.
#[derive(Clone, Copy, Default, Debug)]
struct BadSectors {
    /// Sectors of records that are lost or have wrong checksums.
    damaged: u128,
    /// Sectors of records that have correct checksums but cannot be decompressed.
    unknown: u128,
}

impl BadSectors {
    /// A mask with one bit for each sector of a group's bytes `from..to`.
    fn mask(from: usize, to: usize) -> u128 {
        let bits = |sectors: usize| if sectors >= 128 { u128::MAX } else { (1 << sectors) - 1 };
        bits(to.div_ceil(SECTOR_BYTES)) & !bits(from / SECTOR_BYTES)
    }

    /// Fails if a sector of `mask` cannot be read.
    fn check(self, mask: u128) -> io::Result<()> {
        if self.damaged & mask != 0 {
            return Err(damaged(
                "the page is in a record of the compressed backup that has a wrong checksum or is lost",
            ));
        }
        if self.unknown & mask != 0 {
            return Err(damaged("the page is in a record of the compressed backup that is not XPRESS-Huffman"));
        }
        Ok(())
    }
}

/// The number of a group, and a cell for its content. The cell is empty until a thread has decompressed the group. It
/// holds `None` if the group could not be read.
type Slot = (usize, Arc<OnceLock<Option<Held>>>);

/// A compressed container, open for reading.
#[derive(Debug)]
pub(crate) struct Compressed {
    version: Version,
    entries: Vec<Entry>,
    /// The tape offset of every [`STEP`]th entry.
    steps: Vec<u64>,
    losses: Vec<u64>,
    lost_end: Option<u64>,
    /// Length of the tape.
    pub(crate) length: u64,
    /// Whether the file ends with the last record, or with padding after a soft filemark.
    pub(crate) is_whole: bool,
    /// One bit for each entry: whether all its records have been read without error.
    sound: Vec<AtomicU64>,
    cache: Mutex<VecDeque<Slot>>,
    /// If the index came from a hint: whether some record was not sound.
    hint: Option<AtomicBool>,
}

impl Compressed {
    /// Number of bytes kept in memory for the index and the cached groups.
    pub(super) fn held_bytes(&self) -> usize {
        let lists = size_of_val(self.entries.as_slice()) + size_of_val(self.losses.as_slice());
        let index = lists * 3 / 2 + size_of_val(self.steps.as_slice());
        index + size_of_val(self.sound.as_slice()) + CACHED * usize::from(MAX_SECTORS) * SECTOR_BYTES
    }

    /// Builds the index of the records of `file`, or takes it from `hint`; `None` if the compression is unknown.
    pub(super) fn open(
        file: &SharedFile,
        length: u64,
        version: Version,
        (room, hint): (&Room, Option<Groups>),
    ) -> io::Result<Option<Self>> {
        let is_hinted = hint.is_some();
        let groups = match hint {
            Some(groups) => {
                room.take(groups.len().saturating_mul(BYTES_PER_GROUP), "its compressed records")?;
                groups
            }
            None => records::groups(file, length, version, room)?,
        };
        if !groups.has_records() {
            return Ok(None);
        }
        let (mut steps, mut at) = (Vec::new(), 0);
        for (number, entry) in groups.entries.iter().enumerate() {
            if number % STEP == 0 {
                steps.push(at);
            }
            at += entry.bytes() as u64;
        }
        let Groups { entries, losses, length, lost_end, is_whole, .. } = groups;
        let sound = (0..entries.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let cache = Mutex::new(VecDeque::new());
        let hint = is_hinted.then(AtomicBool::default);
        let this = Self { version, entries, steps, losses, lost_end, length, is_whole, sound, cache, hint };
        // If the first record cannot be decompressed, the container is encrypted or compressed with another algorithm.
        let is_readable = this.entries.first().is_some_and(|entry| entry.is(Entry::LOST))
            || this.with_group(file, 0, |held| held.bad.check(1)).is_ok();
        Ok(is_readable.then_some(this))
    }

    /// Reads the tape from offset `at` and returns the number of bytes read. At the end of the tape, that is fewer than
    /// requested.
    pub(crate) fn read_at(&self, file: &SharedFile, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let Some((mut number, start)) = self.entry_at(at) else { return Ok(0) };
        let mut skip = (at - start) as usize;
        let mut done = 0;
        while let (true, Some(entry)) = (done < buffer.len(), self.entries.get(number)) {
            let rest = buffer.get_mut(done..).unwrap_or_default();
            let bytes = entry.bytes();
            done += match rest.get_mut(..bytes) {
                // The whole group is requested, so it is decompressed directly into the caller's buffer.
                Some(whole) if skip == 0 => {
                    self.decode(file, number, whole)?.check(u128::MAX)?;
                    bytes
                }
                _ => {
                    let taken = rest.len().min(bytes - skip);
                    self.with_group(file, number, |held| {
                        held.bad.check(BadSectors::mask(skip, skip + taken))?;
                        copy(held.bytes.get(skip..).unwrap_or_default(), rest);
                        Ok(())
                    })?;
                    taken
                }
            };
            skip = 0;
            number += 1;
        }
        Ok(done)
    }

    /// Reads the tape from offset `at` up to the next damaged place. If a damaged place begins at `at`, returns its
    /// length in bytes instead.
    pub(super) fn read_part(&self, file: &SharedFile, buffer: &mut [u8], at: u64) -> io::Result<Part> {
        let Some((mut number, start)) = self.entry_at(at) else { return Ok(Part::Read(0)) };
        let mut skip = (at - start) as usize;
        let mut done = 0;
        while let (true, Some(entry)) = (done < buffer.len(), self.entries.get(number)) {
            let bytes = entry.bytes();
            if entry.is(Entry::LOST) {
                return Ok(if done > 0 { Part::Read(done) } else { Part::Damaged((bytes - skip) as u64) });
            }
            let rest = buffer.get_mut(done..).unwrap_or_default();
            let (taken, is_bad) = self.with_group(file, number, |held| {
                // If the sector at `skip` is readable, takes all sectors up to the next unreadable sector. Otherwise,
                // takes all sectors up to the next readable sector.
                let bad = (held.bad.damaged | held.bad.unknown) >> (skip / SECTOR_BYTES);
                let is_bad = bad & 1 != 0;
                let sectors = if is_bad { bad.trailing_ones() } else { bad.trailing_zeros() };
                let same = (sectors as usize * SECTOR_BYTES - skip % SECTOR_BYTES).min(bytes - skip);
                let part = held.bytes.get(skip..skip + same).unwrap_or_default();
                Ok((if is_bad { same } else { copy(part, rest) }, is_bad))
            })?;
            match (is_bad, done) {
                (true, 0) => return Ok(Part::Damaged(taken as u64)),
                (true, _) => break,
                (false, _) => done += taken,
            }
            skip += taken;
            if skip == bytes {
                (skip, number) = (0, number + 1);
            }
        }
        Ok(Part::Read(done))
    }

    /// Reads all records that have not been read yet, and reports unreadable records in file order.
    pub(crate) fn verify_all(&self, file: &SharedFile, mut found: impl FnMut(BadRecord)) -> io::Result<()> {
        let mut found = |bad| {
            self.hint.iter().for_each(|failed| failed.store(true, Ordering::Relaxed));
            found(bad);
        };
        let (mut raw, mut room) = (Vec::new(), vec![0; usize::from(MAX_SECTORS) * SECTOR_BYTES]);
        for (number, entry) in self.entries.iter().enumerate() {
            if entry.is(Entry::LOST) {
                found(BadRecord { at: entry.offset(), fault: RecordFault::Lost });
            } else if !entry.is(Entry::LITERAL) && !self.is_sound(number) {
                self.fetch(file, number, &mut raw)?;
                let mut is_sound = true;
                let mut found = |bad| {
                    is_sound = false;
                    found(bad);
                };
                for record in Records::new(self.version, &raw, *entry) {
                    let room = room.get_mut(record.from..record.to).unwrap_or_default();
                    match record.payload {
                        Ok(payload) if !expand(payload, room) => {
                            found(BadRecord { at: record.at, fault: RecordFault::Malformed });
                        }
                        Ok(_) => {}
                        Err(bad) => found(bad),
                    }
                }
                if is_sound {
                    self.saw(number, BadSectors::default());
                }
            }
        }
        if let Some(at) = self.lost_end {
            found(BadRecord { at, fault: RecordFault::Lost });
        }
        Ok(())
    }

    /// Returns the tape offset at which the first loss of records ends, among the losses that overlap the `length`
    /// bytes of the tape from `at`. `None` if there is no such loss.
    pub(super) fn loss_in(&self, at: u64, length: u64) -> Option<u64> {
        let next = self.losses.partition_point(|&end| end <= at);
        let lost = u64::from(MAX_SECTORS) * SECTOR_BYTES as u64;
        self.losses.get(next).copied().filter(|end| *end - lost < at.saturating_add(length))
    }

    /// The index; `None` if the file has damage, or records that were not read and found sound.
    pub(super) fn sound_entries(&self) -> Option<&[Entry]> {
        let mut entries = self.entries.iter().enumerate();
        let is_sound = entries.all(|(number, entry)| entry.is(Entry::LITERAL) || self.is_sound(number));
        (is_sound && self.losses.is_empty() && self.lost_end.is_none() && self.is_whole).then_some(&self.entries)
    }

    /// Whether the index came from a hint, and some record was not as the index says, or not sound.
    pub(super) fn hint_failed(&self) -> bool {
        self.hint.as_ref().is_some_and(|failed| failed.load(Ordering::Relaxed))
    }

    fn is_sound(&self, number: usize) -> bool {
        self.sound.get(number / 64).is_some_and(|word| word.load(Ordering::Relaxed) & 1 << (number % 64) != 0)
    }

    /// The number of the entry that contains tape offset `at`, and the tape offset of its start.
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

    /// Calls `with` on the content of a group. If several threads need the same group, one thread decompresses it and
    /// the other threads wait.
    fn with_group<T>(
        &self,
        file: &SharedFile,
        number: usize,
        with: impl FnOnce(&Held) -> io::Result<T>,
    ) -> io::Result<T> {
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
        match slot.get_or_init(|| self.held(file, number).ok()) {
            Some(held) => {
                // The group may have been cached before `BackupPages::forget_seen` cleared its mark, so the group is
                // marked as read once more.
                self.saw(number, held.bad);
                with(held)
            }
            // Reading the group failed, and the cell does not keep the error. The group is read again, because the
            // error may have been transient.
            None => with(&self.held(file, number)?),
        }
    }

    /// Reads and decompresses a group.
    fn held(&self, file: &SharedFile, number: usize) -> io::Result<Held> {
        let mut bytes = vec![0; self.entries.get(number).map_or(0, |entry| entry.bytes())].into_boxed_slice();
        let bad = self.decode(file, number, &mut bytes)?;
        Ok(Held { bytes, bad })
    }

    /// The range of the file (offset, length) that contains `length` bytes of the tape from `at`.
    pub(crate) fn stored(&self, at: u64, length: u64) -> Option<(u64, u64)> {
        let (first, _) = self.entry_at(at)?;
        let last = self.entry_at(at.saturating_add(length)).map_or(self.entries.len(), |(number, _)| number);
        let start = self.entries.get(first)?.offset();
        let end = self.entries.get(last.saturating_add(1)).or(self.entries.last())?.offset();
        Some((start, end.saturating_sub(start)))
    }

    /// Decompresses a group into `out`, whose length is the size of the group. Returns the sectors of unreadable
    /// records; their bytes in `out` have no meaning.
    fn decode(&self, file: &SharedFile, number: usize, out: &mut [u8]) -> io::Result<BadSectors> {
        let Some(&entry) = self.entries.get(number) else { return Err(damaged("no such record")) };
        if entry.is(Entry::LOST) {
            return Ok(BadSectors { damaged: u128::MAX, unknown: 0 });
        }
        if entry.is(Entry::LITERAL) {
            let read = read_fully_at(file, out, entry.offset())?;
            return if read == out.len() {
                Ok(BadSectors::default())
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
        let mut raw = Vec::new();
        self.fetch(file, number, &mut raw)?;
        let mut bad = BadSectors::default();
        for record in Records::new(self.version, &raw, entry) {
            let mask = BadSectors::mask(record.from, record.to);
            let out = out.get_mut(record.from..record.to).unwrap_or_default();
            match record.payload {
                Ok(payload) if !expand(payload, out) => bad.unknown |= mask,
                Ok(_) => {}
                Err(_) => bad.damaged |= mask,
            }
        }
        self.saw(number, bad);
        Ok(bad)
    }

    /// Notes that a group was read; a group with unreadable sectors is not noted.
    fn saw(&self, number: usize, bad: BadSectors) {
        if let Some(failed) = self.hint.as_ref().filter(|_| bad.damaged | bad.unknown != 0) {
            failed.store(true, Ordering::Relaxed);
        }
        if let Some(word) = self.sound.get(number / 64).filter(|_| bad.damaged | bad.unknown == 0) {
            word.fetch_or(1 << (number % 64), Ordering::Relaxed);
        }
    }

    /// Returns one bit for each group: whether the group was read without error.
    pub(super) fn seen(&self) -> &[AtomicU64] {
        &self.sound
    }

    /// Reads the range of the file that contains a group.
    fn fetch(&self, file: &SharedFile, number: usize, raw: &mut Vec<u8>) -> io::Result<()> {
        let Some(entry) = self.entries.get(number) else { return Err(damaged("no such record")) };
        // The group ends no later than the start of the next entry. If a soft filemark or the end of the file follows,
        // this read includes some padding.
        let end = self.entries.get(number + 1).map_or(u64::MAX, |next| next.offset());
        raw.resize(end.saturating_sub(entry.offset()).min(self.version.most_bytes()) as usize, 0);
        let read = read_fully_at(file, raw, entry.offset())?;
        raw.truncate(read);
        Ok(())
    }
}

/// Copies as many bytes as both slices have, and returns their number.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let taken = from.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..taken), from.get(..taken)) {
        to.copy_from_slice(from);
    }
    taken
}

/// Decompresses a record's payload into `out`, whose length must be the size of the content. Returns whether the
/// decompression succeeded.
pub(super) fn expand(payload: &[u8], out: &mut [u8]) -> bool {
    // A payload with the same length as its content is stored uncompressed.
    if payload.len() == out.len() {
        out.copy_from_slice(payload);
        return true;
    }
    xpress::decompress(payload, out).is_ok()
}

/// An iterator over the records of a group; `raw` holds the bytes of the group in the file.
struct Records<'a> {
    version: Version,
    raw: &'a [u8],
    entry: Entry,
    /// The offset of the next record in `raw` (`at`) and in the group's content (`place`).
    at: usize,
    place: usize,
}

/// A record of a group.
struct Record<'a> {
    /// Offset of the record in the file.
    at: u64,
    /// The record holds the bytes `from..to` of the group's content.
    from: usize,
    to: usize,
    payload: Result<&'a [u8], BadRecord>,
}

impl<'a> Records<'a> {
    fn new(version: Version, raw: &'a [u8], entry: Entry) -> Self {
        Self { version, raw, entry, at: 0, place: 0 }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (whole, from) = (self.entry.bytes(), self.place);
        if from >= whole {
            return None;
        }
        let at = self.entry.offset() + self.at as u64;
        let rest = self.raw.get(self.at..).unwrap_or_default();
        let size = usize::from(u16_at(rest, 2).unwrap_or_default());
        let to = from + rest.get(1).map_or(0, |&sectors| usize::from(sectors)) * SECTOR_BYTES;
        let payload = rest.get(self.version.header..).and_then(|rest| rest.get(..size));
        let stored = u32_at(rest, self.version.checksum);
        let is_record = rest.first() == Some(&self.version.tag) && from < to && to <= whole;
        let (Some(payload), Some(stored), true) = (payload, stored, is_record) else {
            // A record was at this offset when the file was opened, but there is none now: the file was changed.
            self.place = whole;
            return Some(Record { at, from, to: whole, payload: Err(BadRecord { at, fault: RecordFault::Lost }) });
        };
        self.at += self.version.header + size;
        self.place = to;
        let computed = checksum(payload);
        let fault = RecordFault::Checksum { stored, computed };
        let payload = if computed == stored { Ok(payload) } else { Err(BadRecord { at, fault }) };
        Some(Record { at, from, to, payload })
    }
}

fn damaged(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
