//! Tests of the walk over containers with damage, fillers and small records. The tests check which records the walk
//! finds, and how many bytes the walk reads.

use super::*;
use crate::backup::compressed::{BadRecord, Compressed, RecordFault};
use crate::backup::media::Part;
use crate::backup::version::checksum;
use std::io::Write;

const MAGIC_V1: &[u8] = b"MSSQLBAK\x01\0\0\0\x01\0\0\0";

fn version_1() -> Version {
    Version::of(&MAGIC_V1[8..]).unwrap()
}

/// An unnamed temporary file with the content `bytes`.
fn file(bytes: &[u8]) -> SharedFile {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.into()
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

/// A record of the container version of SQL Server 2008 that stores sectors full of `byte` uncompressed.
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
    let version = version_1();
    groups(&file(bytes), bytes.len() as u64, version, &Room::new(None, bytes.len() as u64)).unwrap()
}

#[test]
fn sums_of_a_window_give_the_checksum_of_any_part_of_it() {
    let mut dice = dice();
    let bytes: Vec<u8> = (0..5000).map(|_| dice() as u8).collect();
    let file = file(&bytes);
    let mut window = Window::new(&file, bytes.len() as u64, version_1());
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
    // Between the undamaged records are many false headers, one every few bytes. Each false header claims a record of
    // 64 KB.
    for lying in [&b"\x81\x01\xFF\xFF"[..], b"\x81\x01\xFF\xFFx", b"\x81\x80\xFF\xFE\0\0\0\0", b"\x81\x01\xFF"] {
        let damage = lying.repeat((3 << 20) / lying.len());
        let parts = [MAGIC_V1, &stored(1, 100), &stored(2, 100), &damage, &stored(3, 100), &stored(4, 100)];
        let bytes = parts.concat();
        let groups = found(&bytes);
        assert!(groups.is_whole && groups.lost_end.is_none());
        // There are four records, and the damage counts as two groups. This number is exact only for the first false
        // header, which has four bytes. With the other false headers, some false records may have a correct checksum.
        assert!(groups.len() == 6 || lying.len() != 4, "{}", groups.len());
        assert!(groups.len() < 200);
        let most = 3 * bytes.len() as u64;
        assert!(groups.read_bytes < most && groups.summed_bytes < most, "{groups:?}");
    }
}

#[test]
fn small_records_between_small_damage_cost_a_few_looks_at_each_byte() {
    // A record of nine bytes, followed by an invalid header that claims a record of 64 KB.
    let pair = [&record(1, b"x")[..], b"\x81\x01\xFF\xFF\0\0\0\0\0"].concat();
    let bytes = [MAGIC_V1, &pair.repeat(50_000), &stored(3, 100)].concat();
    let groups = found(&bytes);
    let most = 4 * bytes.len() as u64;
    assert!(groups.read_bytes < most && groups.summed_bytes < most, "{} {}", groups.read_bytes, groups.summed_bytes);
    assert_eq!(groups.len(), 50_000 * 3 + 1);
    // The memory limit is too small for this many damaged places, so the walk returns an error and no groups.
    let version = version_1();
    let refused = super::groups(
        &file(&bytes),
        bytes.len() as u64,
        version,
        &Room::new(Some(crate::PROGRAM_BYTES + (1 << 20)), 0),
    );
    assert!(refused.unwrap_err().to_string().contains("no room"));
}

#[test]
fn the_index_grows_with_the_tape_and_not_with_the_number_of_records() {
    let bytes = [MAGIC_V1, &record(1, b"x").repeat(200_000)].concat();
    let groups = found(&bytes);
    assert!(groups.is_whole);
    assert_eq!(groups.len(), 200_000 / usize::from(MAX_SECTORS) + 1);
    assert!(groups.read_bytes < 2 * bytes.len() as u64, "{} bytes were read", groups.read_bytes);
    // Long records of one sector each. A group is read in one piece, so it must not be longer than the longest record.
    let bytes = [MAGIC_V1, &record(1, &[7; 40_000]).repeat(50)].concat();
    assert_eq!(found(&bytes).len(), 50);
}

#[test]
fn sound_records_of_a_group_are_read_beside_a_damaged_one() {
    let mut records: Vec<Vec<u8>> = (1..=9).map(|number| stored(number, 3)).collect();
    records[4][20] ^= 1;
    let bytes = [MAGIC_V1, &records.concat(), &stored(9, 128 - 1)].concat();
    let file = file(&bytes);
    let room = Room::new(None, 0);
    let opened = Compressed::open(&file, bytes.len() as u64, version_1(), (&room, None)).unwrap().unwrap();
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
    // `read_part` returns the data up to the damage, then the length of the damage, then the data after it.
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
        let opened =
            Compressed::open(&file, bytes.len() as u64, version_1(), (&Room::new(None, 0), None)).unwrap().unwrap();
        assert!(opened.is_whole);
        assert_eq!(opened.length, 80 * 127 * 512 + 128 * 512, "{megabytes} MB stand for one record");
        assert_eq!(opened.loss_in(0, 40 * 127 * 512), None);
        let after = opened.loss_in(0, opened.length).unwrap();
        for number in 0..40u8 {
            let mut buffer = vec![0; 127 * 512];
            opened.read_at(&file, &mut buffer, after + u64::from(number) * 127 * 512).unwrap();
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
    let claimed = 1 << 40;
    let version = version_1();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![0x55; 1 << 20]).unwrap();
    file.set_len(claimed).unwrap();
    let file = SharedFile::from(file);
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

/// Returns the filler that SQL Server writes from offset `at` up to the next sector.
fn filler(at: usize) -> Vec<u8> {
    let length = (at + 4).next_multiple_of(SECTOR_BYTES) - at;
    let mut filler = vec![0; length];
    filler[0] = 0x84;
    filler[2..4].copy_from_slice(&u16::try_from(length - 4).unwrap().to_le_bytes());
    filler
}

#[test]
fn a_record_before_a_filemark_whose_header_is_damaged_is_lost_and_no_slack() {
    // Three sets; each consists of one record, a filler and a soft filemark.
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
        let opened =
            Compressed::open(&file, bytes.len() as u64, version_1(), (&Room::new(None, 0), None)).unwrap().unwrap();
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
        // Overwrite everything from the start of the damaged record up to the next filemark.
        for blank in [0, 0xFF] {
            let mut damaged = bytes.clone();
            let end = (start + 8 + SECTOR_BYTES).next_multiple_of(SECTOR_BYTES);
            damaged[start..end].fill(blank);
            assert_eq!(damage(&damaged), [start], "the record at {start} is {blank:02X}");
        }
    }
    // Only zeros may follow the last filemark.
    assert!(found(&[&bytes[..], &[0; 4096]].concat()).is_whole);
    let lost = found(&[&bytes[..], &[0; 100], b"x"].concat());
    assert_eq!(lost.lost_end, Some(bytes.len() as u64));
}

#[test]
fn what_looks_like_fillers_that_lead_far_away_costs_a_few_looks_at_each_byte() {
    // Pairs of a record of nine bytes and a false filler. The filler has contents, and claims to end 512 KB later.
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
    // Each false filler costs two reads of one sector. One read occurs at the end of the record before the filler, the
    // other when the walk expects a record at the place of the filler.
    let most = 4 * bytes.len() as u64 + 2 * (units * SECTOR_BYTES) as u64;
    assert!(groups.read_bytes < most && groups.summed_bytes < most, "{} bytes", groups.read_bytes);
}
