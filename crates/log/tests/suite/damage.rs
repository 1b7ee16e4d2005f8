//! Tests with generated logs, sound and damaged: every block is read, and reading never continues past damage.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::PathBuf;

use lab::log::LogFile;
use log::{Damage, End, EndReason, Event, History, Log, LogError, Outcome, Walk};
use tempfile::TempDir;

const HEADER: usize = 8192;
const VLF: usize = 0x3E000;

/// The database that all logs in these tests belong to.
fn database() -> lab::Description {
    lab::orders::orders(lab::Version::V904, 1, 0)
}

struct Sample {
    folder: TempDir,
    bytes: Vec<u8>,
}

impl Sample {
    fn new(version: u16) -> Self {
        let folder = TempDir::new().unwrap();
        let file = LogFile {
            version,
            has_checksum: true,
            vlf_bytes: VLF as u64,
            vlfs: 6,
            first_sequence: 33,
            transactions: 1500,
            leaves_open: true,
        };
        let bytes = file.bytes(&database());
        Self { folder, bytes }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("log.ldf")
    }

    /// Reads a log file with these bytes.
    fn read(&self, bytes: &[u8]) -> Result<(History, End, Vec<Event>), LogError> {
        self.read_all(bytes).map(|(history, end, events, _)| (history, end, events))
    }

    /// Like `read`, but also returns the number of bytes lost before the first readable block.
    fn read_all(&self, bytes: &[u8]) -> Result<(History, End, Vec<Event>, u64), LogError> {
        fs::write(self.path(), bytes).unwrap();
        let log = Log::open(&[self.path()])?;
        let (mut walk, mut history, mut events) = (Walk::new(&log), History::new(), Vec::new());
        while let Some(block) = walk.next_block()? {
            history.block(&block, &mut |event| events.push(event));
        }
        history.finish(&mut |event| events.push(event));
        Ok((history, walk.end().unwrap(), events, walk.lost_bytes()))
    }
}

/// Returns the offset in the file and the size of each block of a VLF, according to the block headers.
fn blocks(bytes: &[u8], vlf: usize) -> Vec<(usize, usize)> {
    let (mut at, mut found) = (HEADER + vlf * VLF + HEADER, Vec::new());
    while at < HEADER + (vlf + 1) * VLF && bytes[at] & 0x10 != 0 {
        let size = usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
        found.push((at, size));
        at += size;
    }
    found
}

#[test]
fn a_log_over_several_vlfs_is_read_whole() {
    for version in [611, 661, 706, 904, 957] {
        let sample = Sample::new(version);
        let (history, end, events) = sample.read(&sample.bytes).unwrap();
        assert_eq!(end.reason, EndReason::Written, "{version}");
        let transactions: Vec<_> = events
            .iter()
            .filter_map(|event| if let Event::Transaction(transaction) = event { Some(transaction) } else { None })
            .collect();
        assert_eq!(transactions.len(), 1500);
        let open: Vec<_> = transactions.iter().filter(|one| one.outcome == Outcome::Open).collect();
        assert_eq!((open.len(), open[0].records, open[0].name.as_str()), (1, 4, "user"));
        assert_eq!((history.checkpoints(), history.records()), (16, 1500 * 5 - 1 + 2 * 16));
        assert!(end.at.vlf.sequence > 34, "several VLFs, to {}", end.at.vlf.sequence);
        assert_eq!(events.len(), 1516);
    }
}

#[test]
fn the_order_of_the_vlfs_is_that_of_their_sequence_numbers() {
    let sample = Sample::new(904);
    let whole = sample.read(&sample.bytes).unwrap();
    // Moves the third VLF to the first place, because SQL Server reuses VLFs in any order. The log must still be read
    // in the order of the sequence numbers.
    let mut turned = sample.bytes[..HEADER].to_vec();
    for vlf in [2, 0, 1, 3, 4, 5] {
        let at = turned.len();
        turned.extend(&sample.bytes[HEADER + vlf * VLF..][..VLF]);
        turned[at + 0x18..at + 0x20].copy_from_slice(&(at as u64).to_le_bytes());
    }
    let (history, end, events) = sample.read(&turned).unwrap();
    assert_eq!((history.records(), events), (whole.0.records(), whole.2));
    assert_eq!(end.reason, EndReason::Written);
}

#[test]
fn the_log_starts_after_the_last_gap_in_the_sequence_numbers() {
    let sample = Sample::new(904);
    let with_second = |sequence: u32| {
        let mut bytes = sample.bytes.clone();
        bytes[HEADER + VLF + 4..][..4].copy_from_slice(&sequence.to_le_bytes());
        let (history, end, _, _) = sample.read_all(&bytes).unwrap();
        (history.blocks(), history.records(), end.reason)
    };
    // The second VLF has the sequence number of an earlier use, or no sequence number. The log then consists of the
    // third VLF only.
    let (older, unused) = (with_second(5), with_second(0));
    assert_eq!(older, unused);
    assert_eq!((older.0, older.2), (blocks(&sample.bytes, 2).len() as u64, EndReason::Written));
}

#[test]
fn what_follows_a_damaged_block_is_not_read_and_the_damage_is_named() {
    let sample = Sample::new(904);
    let whole = sample.read(&sample.bytes).unwrap().0;
    for (vlf, number) in [(0, 0), (0, 3), (1, 0), (1, 2)] {
        let (at, size) = blocks(&sample.bytes, vlf)[number];
        for byte in [at, at + 6, at + 20, at + size / 2, at + size - 1] {
            let mut bytes = sample.bytes.clone();
            bytes[byte] ^= 0x21;
            let (history, end, _, lost_bytes) = sample.read_all(&bytes).unwrap();
            if (vlf, number) == (0, 0) {
                // If the first block of the log is damaged, the log starts with the next block, and the lost bytes are
                // reported.
                assert_eq!(lost_bytes, size as u64);
                assert!(history.records() < whole.records() && history.records() > whole.records() / 2);
                continue;
            }
            assert_eq!(lost_bytes, 0);
            assert_eq!(end.offset, at as u64, "byte {byte}");
            // The blocks after the damaged block are near enough to have been in flight at a crash. But the damaged
            // block was written completely, so this is damage and not the end of the log.
            let EndReason::Damaged { damage: Damage::Block, later } = end.reason else { panic!("{:?}", end.reason) };
            assert!(later.count > 0);
        }
    }
}

#[test]
fn a_block_whose_write_was_cut_off_ends_the_log_whatever_follows_it() {
    let sample = Sample::new(904);
    for (vlf, number) in [(1, 0), (1, 2)] {
        let (at, size) = blocks(&sample.bytes, vlf)[number];
        for sectors in [0..1, 1..2, size / 512 - 1..size / 512, 0..size / 512] {
            let mut bytes = sample.bytes.clone();
            for sector in sectors {
                bytes[at + sector * 512..][..512].fill(0xC0);
            }
            let (_, end, _, _) = sample.read_all(&bytes).unwrap();
            assert_eq!(end.offset, at as u64);
            assert!(matches!(end.reason, EndReason::UnderWay(later) if later.count > 0), "{:?}", end.reason);
        }
    }
}

/// The last block of the sample: its VLF, offset and size.
fn last_block(sample: &Sample) -> (usize, usize, usize) {
    let whole = sample.read(&sample.bytes).unwrap().1;
    let vlf = (whole.at.vlf.offset as usize - HEADER) / VLF;
    let (at, size) =
        blocks(&sample.bytes, vlf).into_iter().take_while(|(at, _)| *at < whole.offset as usize).last().unwrap();
    (vlf, at, size)
}

#[test]
#[ignore = "full tier: takes seconds"]
fn every_bit_of_the_last_block_counts() {
    let sample = Sample::new(904);
    let (_, at, size) = last_block(&sample);
    let mut as_cut = 0;
    for byte in at..at + size {
        // Changes every bit of the header and of the first byte of each sector, and one bit of every other byte.
        let bits =
            if byte < at + 32 || (byte - at).is_multiple_of(512) { 0..8 } else { byte as u32 % 8..byte as u32 % 8 + 1 };
        for bit in bits {
            let mut bytes = sample.bytes.clone();
            bytes[byte] ^= 1 << bit;
            let (history, end, _, _) = sample.read_all(&bytes).unwrap();
            match end.reason {
                EndReason::Damaged { damage: Damage::Block, .. } => assert_eq!(end.offset, at as u64),
                // If the bit changes the parity of a sector, the block looks like an interrupted write.
                EndReason::Written if byte > at && bit >= 6 && (byte - at).is_multiple_of(512) => as_cut += 1,
                // This bit is the checksum flag: the block now seems to have no checksum, and all its records are still
                // read.
                EndReason::Written => {
                    assert_eq!((byte - at, bit, end.offset), (8, 1, (at + size) as u64));
                    assert_eq!(history.records(), sample.read(&sample.bytes).unwrap().0.records());
                }
                other => panic!("byte {} bit {bit}: {other:?}", byte - at),
            }
        }
    }
    assert_eq!(as_cut, 2 * (size / 512 - 1));
}

#[test]
#[ignore = "full tier: takes seconds"]
fn every_bit_of_the_headers_of_vlfs_counts_or_changes_nothing() {
    let sample = Sample::new(904);
    let (last, ..) = last_block(&sample);
    let whole = sample.read(&sample.bytes).unwrap();
    let mut silent = Vec::new();
    for vlf in 0..=last {
        for bit in 0..8 * 42 {
            let mut bytes = sample.bytes.clone();
            bytes[HEADER + vlf * VLF + bit / 8] ^= 1 << (bit % 8);
            let Ok((_, end, _, lost_bytes)) = sample.read_all(&bytes) else { continue };
            // A changed size that makes a VLF longer than its file looks like a cut-off file. Such a change counts as
            // found.
            let is_longer = (18..24).contains(&(bit / 8));
            let is_found = matches!(end.reason, EndReason::Damaged { .. }) || lost_bytes > 0 || is_longer;
            // If the damage is not found, reading must end at the same place as in the unchanged log. Recovery then
            // misses no log.
            let is_same = (end.offset, end.reason) == (whole.1.offset, whole.1.reason);
            if !is_found && !is_same {
                silent.push((vlf, bit / 8, bit % 8, end));
            }
        }
    }
    assert_eq!(silent, []);
}

#[test]
fn a_log_that_lost_whole_vlfs_or_hides_them_behind_the_last_one_does_not_end_there() {
    let sample = Sample::new(904);
    let whole = sample.read(&sample.bytes).unwrap();
    let last = whole.1.at.vlf.offset as usize;
    assert!(last > HEADER + VLF, "more than one VLF is in use");
    // The file is cut at the start of the newest VLF, so it is shorter than the size in its header. The cut must be
    // reported.
    let path = sample.folder.path().join("cut.ldf");
    std::fs::write(&path, &sample.bytes[..last]).unwrap();
    let log = Log::open(&[path]).unwrap();
    let mut walk = Walk::new(&log);
    while walk.next_block().unwrap().is_some() {}
    assert_eq!(log.cut_at(&walk.end().unwrap()), Some(last as u64));
    // The header of the previous VLF has a size that covers the newest VLF, or all VLFs after the previous one. The
    // walk must find the hidden newest VLF.
    let before = last - VLF;
    for end in [last + VLF, sample.bytes.len()] {
        let mut bytes = sample.bytes.clone();
        bytes[before + 0x10..before + 0x18].copy_from_slice(&((end - before) as u64).to_le_bytes());
        let (_, end, _) = sample.read(&bytes).unwrap();
        let hidden = Damage::Header { file: 0, offset: last as u64 };
        assert!(matches!(end.reason, EndReason::Damaged { damage, .. } if damage == hidden), "{end:?}");
    }
    // The header of the previous VLF has a size that covers nearly the whole file after it, as if no other VLF
    // followed. The log must then be refused.
    let mut bytes = sample.bytes.clone();
    let size = (bytes.len() - 512 - before) as u64;
    bytes[before + 0x10..before + 0x18].copy_from_slice(&size.to_le_bytes());
    assert!(matches!(sample.read(&bytes), Err(LogError::NoVlf { .. })));
    // The file is as long as its header says, but the VLF header has a size that reaches beyond the end of the file.
    for size in [(bytes.len() - before + 8192) as u64, 0x1EC6_0000_0002_0000] {
        bytes[before + 0x10..before + 0x18].copy_from_slice(&size.to_le_bytes());
        assert!(matches!(sample.read(&bytes), Err(LogError::NoVlf { .. })), "{size:#x}");
    }
}

#[test]
fn damage_further_from_the_end_than_any_write_reaches_is_no_crash() {
    let mut sample = Sample::new(904);
    let many = LogFile {
        version: 904,
        has_checksum: true,
        vlf_bytes: VLF as u64,
        vlfs: 0,
        first_sequence: 33,
        transactions: 12_000,
        leaves_open: false,
    };
    sample.bytes = many.bytes(&database());
    assert!(sample.bytes.len() > 5 << 20);
    let (at, _) = blocks(&sample.bytes, 1)[1];
    let mut bytes = sample.bytes.clone();
    bytes[at + 100] ^= 1;
    let (_, end, _) = sample.read(&bytes).unwrap();
    assert_eq!(end.offset, at as u64);
    let EndReason::Damaged { later, .. } = end.reason else { panic!("{:?}", end.reason) };
    let payload = |vlfs: u64| vlfs * (VLF - HEADER) as u64;
    assert!((3 << 20..payload(40)).contains(&later.reach_bytes) && later.count > 50, "{later:?}");
}

#[test]
fn a_log_that_a_restore_wrote_starts_in_the_middle_of_its_oldest_vlf() {
    let sample = Sample::new(904);
    let whole = sample.read(&sample.bytes).unwrap().0;
    let before = blocks(&sample.bytes, 0);
    for blank in [0x00, 0xC0] {
        let mut bytes = sample.bytes.clone();
        let (first, _) = before[2];
        bytes[before[0].0..first].fill(blank);
        let (history, end, _, lost_bytes) = sample.read_all(&bytes).unwrap();
        assert_eq!((history.blocks(), end.reason), (whole.blocks() - 2, EndReason::Written));
        assert_eq!(lost_bytes, 0, "nothing was there");
    }
}

#[test]
fn residue_of_an_earlier_use_ends_the_log() {
    let sample = Sample::new(904);
    let whole = sample.read(&sample.bytes).unwrap();
    let last = whole.1.at.vlf;
    // Fills the place after the last block with blocks of an earlier use of the VLF. These blocks have the other
    // parity, an older sequence number and correct checksums. The log must still end at the same place.
    let older = LogFile {
        version: 904,
        has_checksum: true,
        vlf_bytes: VLF as u64,
        vlfs: 1,
        first_sequence: 7,
        transactions: 300,
        leaves_open: false,
    };
    let residue = older.bytes(&database());
    let mut bytes = sample.bytes.clone();
    let at = whole.1.offset as usize;
    let within = at - last.offset as usize;
    let length = VLF - within;
    bytes[at..at + length].copy_from_slice(&residue[HEADER + within..][..length]);
    let (history, end, _) = sample.read(&bytes).unwrap();
    assert_eq!((history.records(), end.reason), (whole.0.records(), EndReason::Written));
}

#[test]
fn cut_files_and_files_of_another_kind_are_refused_with_a_word_or_read_to_the_cut() {
    let sample = Sample::new(904);
    let whole = sample.read(&sample.bytes).unwrap().0;
    for length in [0, 100, HEADER, HEADER + 8, 4 * HEADER] {
        let read = sample.read(&sample.bytes[..length]);
        let is_refused = matches!(
            read,
            Err(LogError::Empty { .. }
                | LogError::NotALog { .. }
                | LogError::NeverUsed { .. }
                | LogError::CutOff { .. })
        );
        assert!(is_refused || length == 4 * HEADER, "{length}: {read:?}");
    }
    let (history, ..) = sample.read(&sample.bytes[..HEADER + VLF + VLF / 2]).unwrap();
    assert!((1..whole.records()).contains(&history.records()));
    let mut other = sample.bytes.clone();
    other[HEADER + VLF] = 0;
    let error = sample.read(&other).unwrap_err().to_string();
    assert!(error.contains(&format!("no virtual log file starts at byte {}", HEADER + VLF)), "{error}");
}

#[test]
fn a_log_named_twice_or_of_another_database_is_refused() {
    let (one, two) = (Sample::new(904), Sample::new(904));
    fs::write(one.path(), &one.bytes).unwrap();
    let mut bytes = two.bytes.clone();
    let copy = one.folder.path().join("copy.ldf");
    fs::write(&copy, &bytes).unwrap();
    assert!(matches!(Log::open(&[one.path(), copy.clone()]), Err(LogError::SameFile { file_id: 2, .. })));
    // The flags of page protection are cleared, so that the header page can be changed.
    let guid = Log::open(&[copy]).unwrap().files()[0].binding_guid;
    let guid = bytes.windows(16).position(|window| window == guid);
    bytes[guid.unwrap()] ^= 1;
    bytes[4] &= !3;
    bytes[5] &= !3;
    fs::write(two.path(), &bytes).unwrap();
    assert!(matches!(Log::open(&[one.path(), two.path()]), Err(LogError::OtherDatabase { .. })));
    assert!(matches!(Log::open(&[]), Err(LogError::Nothing)));
}

/// For any change of bytes, reading must come to an end: without a panic, without an endless loop, and without more
/// records than the unchanged log has.
#[test]
fn changed_logs_are_read_to_an_end() {
    let sample = Sample::new(661);
    let whole = sample.read(&sample.bytes).unwrap().0;
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..400 {
        let mut bytes = sample.bytes.clone();
        for _ in 0..1 + random(8) {
            // The headers of VLFs and blocks are changed more often than other bytes.
            let at = match random(3) {
                0 => HEADER + random(6) * VLF + random(42),
                1 => {
                    let blocks = blocks(&sample.bytes, random(3));
                    blocks[random(blocks.len())].0 + random(80)
                }
                _ => HEADER + random(bytes.len() - HEADER),
            };
            bytes[at] = random(256) as u8;
        }
        if let Ok((history, ..)) = sample.read(&bytes) {
            assert!(history.records() <= whole.records());
        }
    }
}
