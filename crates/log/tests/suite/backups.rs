//! Tests that several backups, in any order, give one log. If two backups contain the same log, the two copies are
//! equal and the log is read once. Missing log is reported as a gap. Wrong headers end the log, and never produce a
//! wrong record.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use format::Lsn;
use lab::workload::{ChainOptions, Event, SetKind, Spec, Workload};
use log::{EndReason, Log, LogError, Walk};
use source::backup::{self, BackupLog};

const KINDS: [SetKind; 6] =
    [SetKind::Full, SetKind::Log, SetKind::Log, SetKind::Differential, SetKind::Log, SetKind::Log];

type Records = BTreeMap<Lsn, Vec<u8>>;

fn chain(seed: u64, options: ChainOptions, folder: &Path) -> Vec<Vec<PathBuf>> {
    let workload = Workload::new(Spec { seed, transactions: 60, ..Spec::default() }).unwrap();
    workload.chain(&KINDS, options, folder).unwrap().sets.into_iter().map(|set| set.files).collect()
}

fn open(paths: &[PathBuf]) -> Result<Log, LogError> {
    Log::of_backups(BackupLog::open(paths, &[]).unwrap())
}

/// Reads the log. Returns the records, and whether the whole log was read. Each record must be returned once, in order.
fn read(log: &Log) -> (Records, bool) {
    let (mut walk, mut records) = (Walk::new(log), Records::new());
    while let Some(block) = walk.next_block().unwrap() {
        for (lsn, record) in block.records() {
            assert!(records.last_key_value().is_none_or(|(last, _)| *last < lsn), "{lsn} comes once, in its order");
            records.insert(lsn, record.bytes().to_vec());
        }
    }
    // An empty backup contains no log, so `walk.end()` is `None`.
    let is_whole = walk.end().is_none_or(|end| end.reason == EndReason::Written) && walk.lost_bytes() == 0;
    (records, is_whole)
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_log_of_backups_in_any_order_is_that_of_all_of_them() {
    let options = [
        ChainOptions::default(),
        ChainOptions { checksum: true, compressed: true, stripes: 1 },
        ChainOptions { checksum: true, compressed: false, stripes: 3 },
    ];
    for (seed, options) in (1..).zip(options) {
        let folder = tempfile::tempdir().unwrap();
        let sets = chain(seed, options, folder.path());
        let (mut all, mut again) = (Records::new(), 0);
        for set in &sets {
            let (records, is_whole) = read(&open(set).unwrap());
            assert!(is_whole, "{set:?}");
            for (lsn, record) in records {
                again += u32::from(all.get(&lsn).is_some_and(|known| *known == record));
                assert!(all.insert(lsn, record.clone()).is_none_or(|known| known == record), "{lsn} of {set:?}");
            }
        }
        assert!(again > 0, "log backups hold the log of the other sets too");
        let mut paths: Vec<PathBuf> = sets.concat();
        for turn in 0..paths.len() {
            paths.rotate_left(1);
            if turn % 2 == 1 {
                paths.reverse();
            }
            let log = open(&paths).unwrap();
            assert_eq!(log.gaps(), []);
            assert!(read(&log) == (all.clone(), true), "seed {seed}, turn {turn}");
        }
        // Giving the file of a backup twice adds no records. This is not tested for striped backups.
        if options.stripes < 2 {
            paths.extend(sets[1].clone());
            assert!(read(&open(&paths).unwrap()) == (all, true));
        }
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_log_backup_that_is_missing_is_a_gap_with_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let sets = chain(7, ChainOptions::default(), folder.path());
    let ends = |set: usize| {
        let config = backup::media(&sets[set][0]).unwrap().sets[0].config.clone();
        (config.first_lsn.unwrap(), config.last_lsn.unwrap())
    };
    // Opens only the second and the last log backup. The first log backup after the differential backup is missing.
    let log = open(&[sets[2].clone(), sets[5].clone()].concat()).unwrap();
    let gaps = log.gaps();
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].from, gaps[0].to), (ends(2).1, ends(5).0));
    // The log after the gap must be read to its end.
    let (records, is_whole) = read(&log);
    assert!(is_whole && records.keys().all(|lsn| *lsn >= ends(5).0) && !records.is_empty());
}

/// Finds the sectors that are equal in two files, and returns the offset of each in both files. Most of these sectors
/// contain log that is in both backups, but other sectors may be equal by chance. So callers must first test a sector:
/// they may use the sector only if damage to the sector ends the log of the first file.
fn shared_sectors(one: &Path, other: &Path) -> Vec<(usize, usize)> {
    let (one, other) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    let is_plain = |sector: &[u8]| sector.iter().any(|byte| *byte != sector[0]);
    let places: BTreeMap<&[u8], usize> =
        other.chunks_exact(SECTOR).enumerate().map(|(at, sector)| (sector, at * SECTOR)).collect();
    let found = one.chunks_exact(SECTOR).enumerate().filter(|(_, sector)| is_plain(sector));
    found.filter_map(|(at, sector)| Some((at * SECTOR, *places.get(sector)?))).collect()
}

const SECTOR: usize = 512;

#[test]
fn where_a_backup_is_damaged_the_log_is_read_from_another_that_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let sets = chain(5, ChainOptions::default(), folder.path());
    // Each pair has log in common, since a log backup also contains the log in the full or differential backup before
    // it.
    let (mut tried, mut ended) = (0, 0);
    for (one, other) in [(0, 1), (3, 4), (1, 0), (4, 3)] {
        let (one, other) = (&sets[one][0], &sets[other][0]);
        let (truth, is_whole) = read(&open(&[one.clone(), other.clone()]).unwrap());
        assert!(is_whole);
        let damaged = |path: &Path, at: usize| {
            let mut bytes = fs::read(path).unwrap();
            bytes[at + 200] ^= 0x11;
            let target = folder.path().join(format!("damaged {}", path.file_name().unwrap().display()));
            fs::write(&target, bytes).unwrap();
            target
        };
        let shared = shared_sectors(one, other);
        for (at, at_other) in shared.iter().step_by(shared.len() / 6 + 1) {
            let bad = damaged(one, *at);
            let alone = open(std::slice::from_ref(&bad)).map(|log| read(&log));
            if alone.is_ok_and(|(_, is_whole)| is_whole) {
                continue;
            }
            tried += 1;
            for paths in [[bad.clone(), other.clone()], [other.clone(), bad.clone()]] {
                assert!(read(&open(&paths).unwrap()) == (truth.clone(), true), "{paths:?}, byte {at}");
            }
            // If the same log is damaged in both backups, it cannot be read. All records that are read must still be
            // correct.
            let (records, is_whole) = read(&open(&[bad, damaged(other, *at_other)]).unwrap());
            assert!(!is_whole && records.len() < truth.len());
            assert!(records.iter().all(|(lsn, record)| truth[lsn] == *record));
            ended += 1;
        }
    }
    assert!(tried >= 10 && ended == tried, "{tried} {ended}");
}

/// Two backups contain the same log. One backup is damaged at one place of this log, and the other backup at another
/// place. The whole log can be read, partly from each backup.
#[test]
#[ignore = "full tier: takes seconds"]
fn two_damaged_backups_make_one_whole_log() {
    let folder = tempfile::tempdir().unwrap();
    let sets = chain(5, ChainOptions::default(), folder.path());
    let (one, other) = (&sets[0][0], &sets[1][0]);
    let truth = read(&open(&[one.clone(), other.clone()]).unwrap());
    let paths = ["one.bak", "other.trn"].map(|name| folder.path().join(name));
    let is_whole_without = |path: &Path, of: &Path, at: usize| {
        let mut bytes = fs::read(of).unwrap();
        bytes[at + 100] ^= 1;
        fs::write(path, bytes).unwrap();
        open(std::slice::from_ref(&path.to_owned())).is_ok_and(|log| read(&log).1)
    };
    // The damage is in the first and in the last block that both backups contain.
    let shared = shared_sectors(one, other);
    let first = shared.iter().find(|(at, _)| !is_whole_without(&paths[0], one, *at)).unwrap();
    let last = shared.iter().rfind(|(_, at)| !is_whole_without(&paths[1], other, *at)).unwrap();
    assert!(last.0 > first.0 + 4 * SECTOR, "{first:?} {last:?}");
    assert!(read(&open(&paths).unwrap()) == truth);
    // Repeat with the two damaged places exchanged.
    assert!(!is_whole_without(&paths[0], one, last.0) && !is_whole_without(&paths[1], other, first.1));
    assert!(read(&open(&paths).unwrap()) == truth);
}

/// If two backup sets of one database contain the same record, the bytes of the record are equal in both sets.
#[test]
fn records_that_real_backups_share_are_the_same() {
    let mut known: BTreeMap<([u8; 16], Option<String>, Lsn), Vec<u8>> = BTreeMap::new();
    let (mut shared, mut sets) = (0u32, 0u32);
    for path in backups_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus")) {
        let Ok(media) = backup::media(&path) else { continue };
        for set in media.sets.iter().filter(|_| media.families == 1) {
            let Ok(backups) = BackupLog::open(std::slice::from_ref(&path), &[set.position]) else { continue };
            let Ok(log) = Log::of_backups(backups) else { continue };
            sets += 1;
            for (lsn, record) in read(&log).0 {
                let key = (set.config.binding_guid, set.config.recovery_fork_id.clone(), lsn);
                match known.get(&key) {
                    Some(known) => {
                        assert!(*known == record, "{lsn} of {} set {}", path.display(), set.position);
                        shared += 1;
                    }
                    None => _ = known.insert(key, record),
                }
            }
        }
    }
    if sets > 0 {
        assert!(sets > 150 && shared > 1_000, "{sets} {shared}");
    }
}

fn backups_of(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(backups_of(&path));
        } else if source::is_backup(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The offsets and sizes, in bytes, of fields in the header of a log region: the fields with the range of the region,
/// and the fields that describe its VLF.
const FIELDS: [(usize, usize); 8] = [
    (0x3C, 8), // start
    (0x44, 8), // end
    (0x5C, 4), // sequence
    (0x60, 8), // size
    (0x68, 8), // offset
    (0x70, 2), // file id
    (0x72, 2), // parity
    (0x74, 4),
];

#[test]
#[ignore = "full tier: takes seconds"]
fn headers_of_regions_that_lie_end_the_log_and_make_up_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let sets = chain(11, ChainOptions::default(), folder.path());
    let (truth, _) = read(&open(&sets.concat()).unwrap());
    let mut state = 5u64;
    let mut dice = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let target = folder.path().join("hostile.trn");
    let (mut fewer, mut refused) = (0, 0);
    for case in 0..400 {
        let set = case % sets.len();
        let mut bytes = fs::read(&sets[set][0]).unwrap();
        let headers: Vec<usize> =
            (0..bytes.len() - 512).step_by(512).filter(|&at| bytes[at..].starts_with(b"MSTL")).collect();
        for _ in 0..1 + dice(3) {
            let header = headers[dice(headers.len() as u64) as usize];
            let (field, size) = FIELDS[dice(FIELDS.len() as u64) as usize];
            let at = header + field;
            let old = bytes[at..at + size].to_vec();
            match dice(6) {
                0 => bytes[at..at + size].fill(0),
                1 => bytes[at..at + size].fill(0xFF),
                2 => bytes[at + size - 1] ^= 0x80,
                3 => bytes[at] = old[0].wrapping_add(1),
                4 => bytes[at + 1] = old[1].wrapping_add(2),
                _ => bytes[at + dice(size as u64) as usize] = dice(256) as u8,
            }
        }
        fs::write(&target, &bytes).unwrap();
        let mut paths: Vec<PathBuf> = sets.concat();
        paths[set] = target.clone();
        // Tests the changed file alone, and then the changed file together with the other files.
        for paths in [std::slice::from_ref(&target), &paths] {
            let Ok(backups) = BackupLog::open(paths, &[]) else { continue };
            let Ok(log) = Log::of_backups(backups) else {
                refused += 1;
                continue;
            };
            let (records, _) = read(&log);
            assert!(records.len() <= truth.len(), "case {case}");
            fewer += u32::from(records.len() < truth.len() && paths.len() > 1);
            for (lsn, record) in records {
                assert!(truth.get(&lsn) == Some(&record), "case {case}: {lsn} is made up");
            }
        }
    }
    assert!(fewer > 20 && refused > 5, "{fewer} {refused}");
}

/// A full backup and two log backups. Nothing was written between the log backups.
fn idle(stripes: u16, folder: &Path) -> Vec<Vec<PathBuf>> {
    let workload = Workload::new(Spec { seed: 5, transactions: 20, ..Spec::default() }).unwrap();
    let log = Event::BackUp(SetKind::Log);
    let story = [Event::Work, Event::BackUp(SetKind::Full), Event::Work, log, log];
    let options = ChainOptions { stripes, ..ChainOptions::default() };
    workload.story(&story, options, folder).unwrap().sets.into_iter().map(|set| set.files).collect()
}

#[test]
fn a_log_backup_of_an_idle_database_is_empty_and_nothing_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let sets = idle(1, folder.path());
    let label = backup::media(&sets[2][0]).unwrap().sets[0].config.clone();
    assert_eq!(label.first_lsn, label.last_lsn);
    let log = open(&sets[2]).unwrap();
    assert!(log.is_empty() && log.gaps().is_empty() && log.sets().len() == 1);
    let twice = open(&[sets[2].clone(), sets[2].clone()].concat()).unwrap();
    assert!(twice.is_empty() && twice.gaps().is_empty());
    let with_log = open(&[sets[2].clone(), sets[1].clone()].concat()).unwrap();
    assert!(!with_log.is_empty() && read(&with_log).1);
}

#[test]
fn a_stripe_without_log_is_no_empty_backup_as_long_as_others_are_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let sets = idle(2, folder.path());
    for set in &sets[1..] {
        let error = open(&set[1..]).unwrap_err();
        assert!(error.to_string().contains("stripe 1 of 2 is not given; name its file too"), "{error}");
    }
    assert!(open(&sets[2]).unwrap().is_empty());
    let first = open(&sets[1][..1]).unwrap();
    assert_eq!(first.missing_stripes().map(|(_, text)| text).collect::<Vec<_>>(), ["stripe 2 of 2 is not given"]);
}
