//! The walk over a compressed container that finds its records, also after damage of any length, with bounded work per
//! byte.

use std::fs::File;
use std::io;

use super::blocks::{SECTOR_BYTES, is_filemark};
use super::groups::{BYTES_A_GROUP, Groups};
use super::room::Room;
use super::version::{MAX_SECTORS, Version};
use crate::positioned::read_fully_at;

/// Fewer zeros than two blocks of 4096 bytes may follow the last soft filemark. None do in a file known, but devices round up.
pub(super) const END_BYTES: u64 = 2 * 4096;
/// How much is read at once where records are small or damaged.
const WINDOW_BYTES: usize = 256 << 10;
/// Records closer than this are read together: their headers alone would cost a call each.
const NEAR_BYTES: u64 = 4096;
/// How far the first record is looked for: a backup in a form that is not known has none.
const FIRST_SEARCH_BYTES: u64 = 64 << 20;
/// Groups that are added before room is taken for them.
const GROUPS_AT_ONCE: usize = 1024;

/// Finds the records of `file`, which has `length` bytes.
///
/// # Errors
/// Those of the file, and when there is no room for the groups.
pub(super) fn groups(file: &File, length: u64, version: Version, room: &Room) -> io::Result<Groups> {
    Walk { window: Window::new(file, length, version), groups: Groups::default(), room, paid: 0 }.run()
}

struct Walk<'a> {
    window: Window<'a>,
    groups: Groups,
    room: &'a Room,
    /// Groups that room was taken for.
    paid: usize,
}

impl Walk<'_> {
    /// Hops from header to header. Between a record and a soft filemark stands a filler that says how long it is; anything
    /// else there is damage.
    fn run(mut self) -> io::Result<Groups> {
        let (length, header) = (self.window.length, self.window.version.header);
        let mut at = self.window.version.first;
        let mut here = self.window.record(at)?;
        while at < length {
            if self.groups.len() + GROUPS_AT_ONCE > self.paid {
                self.room.take(GROUPS_AT_ONCE * BYTES_A_GROUP, "its compressed records")?;
                self.paid += GROUPS_AT_ONCE;
            }
            if let Some((sectors, next)) = here {
                let then = self.window.record(next)?;
                // The last record of a file that was cut has only its checksum to prove it.
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

/// A part of the file in memory that moves on with the walk, and sums of its words that give the checksum of any record in
/// it at once.
struct Window<'a> {
    file: &'a File,
    length: u64,
    version: Version,
    start: u64,
    bytes: Vec<u8>,
    /// By offset in `bytes`: the words that end there and every fourth byte before, XORed, each rotated back by its number.
    sums: Vec<u32>,
    /// Where the last bytes were asked for.
    last: u64,
    read_bytes: u64,
    summed_bytes: u64,
}

impl<'a> Window<'a> {
    fn new(file: &'a File, length: u64, version: Version) -> Self {
        let (bytes, sums) = (Vec::new(), Vec::new());
        Self { file, length, version, start: 0, bytes, sums, last: 0, read_bytes: 0, summed_bytes: 0 }
    }

    /// Makes sure that `wanted` bytes from `at` on are at hand, as far as the file has them; reads `ahead` bytes, if any.
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

    /// Up to `wanted` bytes from `at` on, fewer at the end of the file.
    fn bytes(&mut self, at: u64, wanted: usize) -> io::Result<&[u8]> {
        let is_near = at.abs_diff(self.last) < NEAR_BYTES;
        self.last = at;
        self.fetch(at, wanted, if is_near { WINDOW_BYTES } else { 0 })?;
        let rest = self.bytes.get((at - self.start) as usize..).unwrap_or_default();
        Ok(rest.get(..wanted).unwrap_or(rest))
    }

    /// Size in sectors of the record at `at` and where the next one starts, if its header can be one.
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

    /// Length of the soft filemark that starts at `at`, if there is one.
    fn filemark(&mut self, at: u64) -> io::Result<Option<usize>> {
        if !at.is_multiple_of(SECTOR_BYTES as u64) || at >= self.length {
            return Ok(None);
        }
        Ok(is_filemark(self.bytes(at, SECTOR_BYTES)?))
    }

    /// Where the filler that starts at `at` ends, if there is one that leads to a soft filemark or the end of the file.
    fn filler(&mut self, at: u64) -> io::Result<Option<u64>> {
        let version = self.version;
        let Some(length) = version.filler(self.bytes(at, Version::FILLER_START)?) else { return Ok(None) };
        let end = at + length;
        if end >= self.length || !end.is_multiple_of(SECTOR_BYTES as u64) {
            return Ok((end == self.length).then_some(end));
        }
        // Where it leads is looked at beside the window: a file may be full of what only looks like fillers.
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

    /// Whether a row of records may end at `at`.
    fn is_boundary(&mut self, at: u64) -> io::Result<bool> {
        Ok(self.filemark(at)?.is_some() || self.filler(at)?.is_some())
    }

    /// Whether the file goes on with nothing but a few zeros from `at` on.
    fn is_zero_to_end(&mut self, at: u64) -> io::Result<bool> {
        let rest = self.length.saturating_sub(at);
        Ok(rest < END_BYTES && self.bytes(at, rest as usize)?.iter().all(|&byte| byte == 0))
    }

    /// Whether the record at `at` has the right checksum.
    fn is_sound(&mut self, at: u64) -> io::Result<bool> {
        let Some((_, next)) = self.record(at)? else { return Ok(false) };
        self.fetch(at, (next - at) as usize, WINDOW_BYTES)?;
        let (version, offset) = (self.version, (at - self.start) as usize);
        let stored = self.bytes.get(offset + version.checksum..).and_then(|rest| rest.first_chunk::<4>()).copied();
        let computed = self.checksum(offset + version.header, (next - self.start) as usize);
        Ok(stored.is_some_and(|stored| Some(u32::from_le_bytes(stored)) == computed))
    }

    /// The checksum over the bytes between two offsets of the window, as `version::checksum` gives it: the sums at its
    /// ends tell it, as words before it are in both of them.
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
        // The last of its words is the one that is not rotated.
        let sum = between.rotate_left(((end.max(4) - 4) / 4 % 32) as u32);
        if tail == 0 {
            return Some(sum);
        }
        let last = self.bytes.get(end..to)?.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        Some(sum.rotate_left(1) ^ last)
    }

    /// The next record with the right checksum, or soft filemark, at or after `from`.
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
mod tests {
    use super::*;
    use crate::backup::compressed::{BadRecord, Compressed, RecordFault};
    use crate::backup::media::Part;
    use crate::backup::version::checksum;
    use std::io::Write;

    const MAGIC_V1: &[u8] = b"MSSQLBAK\x01\0\0\0\x01\0\0\0";

    /// A file without a name that holds `bytes`.
    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn dice() -> impl FnMut() -> u64 {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 8
        }
    }

    /// A record of the old container that stores so many sectors of `byte` as they are.
    fn stored(byte: u8, sectors: u8) -> Vec<u8> {
        record(sectors, &vec![byte; usize::from(sectors) * SECTOR_BYTES])
    }

    fn record(sectors: u8, payload: &[u8]) -> Vec<u8> {
        let mut record = vec![0x81, sectors];
        record.extend(u16::try_from(payload.len()).unwrap().to_le_bytes());
        record.extend(checksum(payload).to_le_bytes());
        record.extend(payload);
        record
    }

    fn found(bytes: &[u8]) -> Groups {
        let version = Version::of(&MAGIC_V1[8..]).unwrap();
        groups(&file(bytes), bytes.len() as u64, version, &Room::new(None, bytes.len() as u64)).unwrap()
    }

    #[test]
    fn sums_of_a_window_give_the_checksum_of_any_part_of_it() {
        let mut dice = dice();
        let bytes: Vec<u8> = (0..5000).map(|_| dice() as u8).collect();
        let file = file(&bytes);
        let mut window = Window::new(&file, bytes.len() as u64, Version::of(&MAGIC_V1[8..]).unwrap());
        window.fetch(0, bytes.len(), 0).unwrap();
        for _ in 0..2000 {
            let from = dice() as usize % bytes.len();
            let to = from + dice() as usize % (bytes.len() - from + 1);
            assert_eq!(window.checksum(from, to), Some(checksum(&bytes[from..to])), "{from} to {to}");
        }
        assert_eq!(window.summed_bytes as usize, window.sums.len(), "each place is summed up once");
    }

    #[test]
    fn damage_that_looks_like_long_records_costs_a_few_looks_at_each_byte() {
        // Headers of records of 64 KB, one every four bytes, between records that are sound.
        for lying in [&b"\x81\x01\xFF\xFF"[..], b"\x81\x01\xFF\xFFx", b"\x81\x80\xFF\xFE\0\0\0\0", b"\x81\x01\xFF"] {
            let damage = lying.repeat((3 << 20) / lying.len());
            let parts = [MAGIC_V1, &stored(1, 100), &stored(2, 100), &damage, &stored(3, 100), &stored(4, 100)];
            let bytes = parts.concat();
            let groups = found(&bytes);
            assert!(groups.is_whole && groups.lost_end.is_none());
            // Four records, and damage, which counts twice. Some of what looks like a record may have the right checksum.
            assert!(groups.len() == 6 || lying.len() != 4, "{}", groups.len());
            assert!(groups.len() < 200);
            let most = 3 * bytes.len() as u64;
            assert!(groups.read_bytes < most && groups.summed_bytes < most, "{groups:?}");
        }
    }

    #[test]
    fn small_records_between_small_damage_cost_a_few_looks_at_each_byte() {
        // A record of nine bytes, and then the header of one of 64 KB that is none.
        let pair = [&record(1, b"x")[..], b"\x81\x01\xFF\xFF\0\0\0\0\0"].concat();
        let bytes = [MAGIC_V1, &pair.repeat(50_000), &stored(3, 100)].concat();
        let groups = found(&bytes);
        let most = 4 * bytes.len() as u64;
        assert!(
            groups.read_bytes < most && groups.summed_bytes < most,
            "{} {}",
            groups.read_bytes,
            groups.summed_bytes
        );
        assert_eq!(groups.len(), 50_000 * 3 + 1);
        // So many places of damage do not fit into any grant: that is told, and nothing of it is kept.
        let version = Version::of(&MAGIC_V1[8..]).unwrap();
        let refused = super::groups(&file(&bytes), bytes.len() as u64, version, &Room::new(Some(9 << 20), 0));
        assert!(refused.unwrap_err().to_string().contains("no room"));
    }

    #[test]
    fn the_index_grows_with_the_tape_and_not_with_the_number_of_records() {
        let bytes = [MAGIC_V1, &record(1, b"x").repeat(200_000)].concat();
        let groups = found(&bytes);
        assert!(groups.is_whole);
        assert_eq!(groups.len(), 200_000 / usize::from(MAX_SECTORS) + 1);
        assert!(groups.read_bytes < 2 * bytes.len() as u64, "{} bytes were read", groups.read_bytes);
        // Long records of one sector each: a group is read at once, and must not take more than the longest record does.
        let bytes = [MAGIC_V1, &record(1, &[7; 40_000]).repeat(50)].concat();
        assert_eq!(found(&bytes).len(), 50);
    }

    #[test]
    fn records_of_a_group_that_are_sound_are_read_beside_one_that_is_not() {
        let mut records: Vec<Vec<u8>> = (1..=9).map(|number| stored(number, 3)).collect();
        records[4][20] ^= 1;
        let bytes = [MAGIC_V1, &records.concat(), &stored(9, 128 - 1)].concat();
        let file = file(&bytes);
        let room = Room::new(None, 0);
        let opened = Compressed::open(&file, bytes.len() as u64, &room).unwrap().unwrap();
        assert_eq!(opened.length, (9 * 3 + 127) * 512);
        for number in 0..9u8 {
            let mut buffer = vec![0; 3 * 512];
            let read = opened.read_at(&file, &mut buffer, u64::from(number) * 3 * 512);
            if number == 4 {
                assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
            } else {
                assert_eq!((read.unwrap(), &buffer[..]), (3 * 512, &vec![number + 1; 3 * 512][..]));
            }
        }
        // As far as it goes: up to the damage, the damage, and what follows.
        let mut buffer = vec![0; 40 * 512];
        let mut part = |at: u64| opened.read_part(&file, &mut buffer, at).unwrap();
        assert_eq!(part(0), Part::Read(12 * 512));
        assert_eq!(part(10), Part::Read(12 * 512 - 10));
        assert_eq!(part(12 * 512), Part::Damaged(3 * 512));
        assert_eq!(part(12 * 512 + 700), Part::Damaged(3 * 512 - 700));
        assert_eq!(part(15 * 512), Part::Read(40 * 512));
        assert_eq!(part(opened.length), Part::Read(0));
        let mut bad: Vec<BadRecord> = Vec::new();
        opened.verify_all(&file, |record| bad.push(record)).unwrap();
        assert_eq!(bad.len(), 1);
        assert_eq!(bad[0].at as usize, MAGIC_V1.len() + records[..4].concat().len());
        assert!(matches!(bad[0].fault, RecordFault::Checksum { .. }));
    }

    #[test]
    fn what_follows_damage_of_any_length_is_found() {
        let mut dice = dice();
        for megabytes in [1, 2, 5, 20] {
            let noise: Vec<u8> = (0..megabytes << 17).flat_map(|_| dice().to_le_bytes()).collect();
            let sound: Vec<u8> = (0..40).flat_map(|number| stored(number, 127)).collect();
            let bytes = [MAGIC_V1, &sound, &noise, &sound].concat();
            let file = file(&bytes);
            let opened = Compressed::open(&file, bytes.len() as u64, &Room::new(None, 0)).unwrap().unwrap();
            assert!(opened.is_whole);
            assert_eq!(opened.length, 80 * 127 * 512 + 128 * 512, "{megabytes} MB stand for one record");
            assert_eq!(opened.loss_in(0, 40 * 127 * 512), None);
            let behind = opened.loss_in(0, opened.length).unwrap();
            for number in 0..40u8 {
                let mut buffer = vec![0; 127 * 512];
                opened.read_at(&file, &mut buffer, behind + u64::from(number) * 127 * 512).unwrap();
                assert!(buffer.iter().all(|&byte| byte == number));
            }
            let mut bad = Vec::new();
            opened.verify_all(&file, |record| bad.push(record)).unwrap();
            let at = (MAGIC_V1.len() + sound.len()) as u64;
            assert_eq!(bad, [BadRecord { at, fault: RecordFault::Lost }], "the place of the damage");
        }
    }

    #[test]
    fn a_container_without_any_record_is_not_searched_to_its_end() {
        let bytes = vec![0x55; 1 << 20];
        let file = file(&bytes);
        let claimed = 1 << 40;
        let version = Version::of(&MAGIC_V1[8..]).unwrap();
        file.set_len(claimed).unwrap();
        let found = groups(&file, claimed, version, &Room::new(None, 0)).unwrap();
        assert!(!found.has_records() && found.read_bytes < 2 * FIRST_SEARCH_BYTES);
    }

    /// A soft filemark of one sector.
    fn filemark() -> Vec<u8> {
        let mut mark = vec![0; SECTOR_BYTES];
        mark[..4].copy_from_slice(b"SFMB");
        mark[9] = 2;
        let sum = mark[..50].chunks(2).fold(0, |sum, word| sum ^ u16::from_le_bytes([word[0], word[1]]));
        mark[50..52].copy_from_slice(&sum.to_le_bytes());
        mark
    }

    /// What a server writes up to the next sector.
    fn filler(at: usize) -> Vec<u8> {
        let length = (at + 4).next_multiple_of(SECTOR_BYTES) - at;
        let mut filler = vec![0; length];
        filler[0] = 0x84;
        filler[2..4].copy_from_slice(&u16::try_from(length - 4).unwrap().to_le_bytes());
        filler
    }

    #[test]
    fn a_record_before_a_filemark_whose_header_is_damaged_is_lost_and_no_slack() {
        // Three sets of a record each, a filler and a filemark.
        let mut bytes = MAGIC_V1.to_vec();
        let mut starts = Vec::new();
        let mut dice = dice();
        for _ in 0..3 {
            starts.push(bytes.len());
            let payload: Vec<u8> = (0..SECTOR_BYTES).map(|_| dice() as u8).collect();
            bytes.extend(record(1, &payload));
            bytes.extend(filler(bytes.len()));
            bytes.extend(filemark());
        }
        let sound = found(&bytes);
        assert!(sound.is_whole && sound.losses.is_empty() && sound.lost_end.is_none());
        assert_eq!(sound.length, 6 * SECTOR_BYTES as u64);
        let damage = |bytes: &[u8]| {
            let file = file(bytes);
            let opened = Compressed::open(&file, bytes.len() as u64, &Room::new(None, 0)).unwrap().unwrap();
            let mut bad = Vec::new();
            opened.verify_all(&file, |record| bad.push(record.at as usize)).unwrap();
            bad
        };
        assert_eq!(damage(&bytes), []);
        for &start in &starts[1..] {
            for at in 0..5 {
                for flip in 1..=255u8 {
                    let mut damaged = bytes.clone();
                    damaged[start + at] ^= flip;
                    assert_eq!(damage(&damaged), [start], "byte {at} of the record at {start} ^ {flip:02X}");
                }
            }
            // All of it, up to the filemark.
            for blank in [0, 0xFF] {
                let mut damaged = bytes.clone();
                let end = (start + 8 + SECTOR_BYTES).next_multiple_of(SECTOR_BYTES);
                damaged[start..end].fill(blank);
                assert_eq!(damage(&damaged), [start], "the record at {start} is {blank:02X}");
            }
        }
        // After the last filemark nothing may follow but zeros.
        assert!(found(&[&bytes[..], &[0; 4096]].concat()).is_whole);
        let lost = found(&[&bytes[..], &[0; 100], b"x"].concat());
        assert_eq!(lost.lost_end, Some(bytes.len() as u64));
    }

    #[test]
    fn what_looks_like_fillers_that_lead_far_away_costs_a_few_looks_at_each_byte() {
        // A record of nine bytes, and then a filler with contents that leads to a sector half a file further on.
        let mut bytes = MAGIC_V1.to_vec();
        let units = 50_000;
        for _ in 0..units {
            bytes.extend(record(1, b"x"));
            let end = (bytes.len() + (1 << 19)).next_multiple_of(SECTOR_BYTES);
            let size = u32::try_from(end - bytes.len() - 4).unwrap().to_le_bytes();
            bytes.extend([0x8C, 0, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0, size[0], size[1], size[2], size[3]]);
        }
        let groups = found(&bytes);
        assert_eq!(groups.losses.len(), units - 1);
        // A sector is read for each of them, twice: where a record ends, and where there is none.
        let most = 4 * bytes.len() as u64 + 2 * (units * SECTOR_BYTES) as u64;
        assert!(groups.read_bytes < most && groups.summed_bytes < most, "{} bytes", groups.read_bytes);
    }
}
