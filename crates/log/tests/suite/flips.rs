//! Tests with real logs in which one bit is changed. Either the change is found, or everything that was read is
//! unchanged.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use log::{EndReason, Log, LogError, LogFile, Walk};
use tempfile::TempDir;

use crate::corpus::{find, is_log};

const SECTOR: u64 = 512;
/// The number of bytes in use in the header of a virtual log file.
const VLF_HEADER: u64 = 42;

/// The result of reading a log from its start to its end.
#[derive(Clone, Debug, PartialEq)]
struct ReadLog {
    /// A hash of the records of all blocks.
    content: u64,
    end: (u64, EndReason),
    lost_bytes: u64,
    is_cut: bool,
    /// The blocks by offset: the size of each, and whether it has a checksum.
    blocks: BTreeMap<u64, (u64, bool)>,
}

fn read(path: &Path) -> Result<ReadLog, LogError> {
    let log = Log::open(&[path.to_owned()])?;
    let mut walk = Walk::new(&log);
    let (mut content, mut blocks) = (0u64, BTreeMap::new());
    while let Some(block) = walk.next_block()? {
        for (lsn, record) in block.records() {
            let sum = record
                .bytes()
                .iter()
                .fold(u64::from(lsn.block), |sum, byte| sum.wrapping_mul(0x100_0000_01B3) ^ u64::from(*byte));
            content = content.wrapping_mul(31).wrapping_add(sum);
        }
        let place = log.run().iter().find(|placed| placed.vlf.sequence == block.first_lsn().vlf);
        let at = place.and_then(|placed| placed.vlf.block_offset(block.first_lsn().block)).unwrap();
        blocks.insert(at, (block.size() as u64, block.has_checksum()));
    }
    let lost_bytes = walk.lost_bytes();
    let end = walk.end().unwrap();
    Ok(ReadLog {
        content,
        end: (end.offset, end.reason),
        lost_bytes,
        is_cut: log.files().iter().any(LogFile::is_cut),
        blocks,
    })
}

/// The number of changed bits, by their effect.
#[derive(Debug, Default)]
struct Found {
    found: u64,
    harmless: u64,
    /// Changes that look like an interrupted write, because a sector of a block now has the parity of another use.
    as_cut: u64,
    /// Changes in a block without a checksum.
    unprotected: u64,
    silent: Vec<String>,
}

/// A copy of a log in which bits are changed, one at a time.
struct Copy {
    path: PathBuf,
    file: File,
    whole: ReadLog,
}

impl Copy {
    /// Copies a log to `folder` and reads the copy. Returns `None` for an unreadable log of SQL Server 2000.
    fn of(log: &Path, folder: &Path) -> Option<Self> {
        let path = folder.join("copy.ldf");
        fs::copy(log, &path).unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        #[allow(clippy::permissions_set_readonly_false)]
        permissions.set_readonly(false);
        fs::set_permissions(&path, permissions).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let whole = read(&path).ok()?;
        Some(Self { path, file, whole })
    }

    fn change(&mut self, at: u64, bit: u32) {
        let mut byte = [0];
        self.file.seek(SeekFrom::Start(at)).unwrap();
        self.file.read_exact(&mut byte).unwrap();
        byte[0] ^= 1 << bit;
        self.file.seek(SeekFrom::Start(at)).unwrap();
        self.file.write_all(&byte).unwrap();
    }

    fn flip(&mut self, (at, bit): (u64, u32), found: &mut Found) {
        self.change(at, bit);
        let changed = read(&self.path);
        self.change(at, bit);
        let whole = &self.whole;
        let block = whole.blocks.range(..=at).next_back().filter(|(start, (size, _))| at < **start + size);
        let is_mark = block.is_some() && at.is_multiple_of(SECTOR) && bit >= 6;
        let changed = match changed {
            Err(_) => return found.found += 1,
            Ok(changed) => changed,
        };
        let is_found = matches!(changed.end.1, EndReason::Damaged { .. })
            || changed.lost_bytes > whole.lost_bytes
            || changed.is_cut && !whole.is_cut;
        // Blocks may be missing at the start of the changed log. This does no harm, because recovery names the LSN from
        // which it needs the log.
        let has_same_end = changed.end == whole.end
            && changed.blocks.iter().all(|(at, block)| whole.blocks.get(at).is_some_and(|whole| whole.0 == block.0));
        match () {
            () if is_found => found.found += 1,
            () if has_same_end && (changed.content == whole.content || changed.blocks.len() < whole.blocks.len()) => {
                found.harmless += 1;
            }
            () if is_mark => found.as_cut += 1,
            () if block.is_some_and(|(_, (_, has_checksum))| !has_checksum) => found.unprotected += 1,
            () => found.silent.push(format!("bit {bit} of byte {at}, {block:?}, {:?}: {:?}", whole.end, changed.end)),
        }
    }
}

/// The number of logs to try, or of bits to change in each log. The environment variable `name` can raise the number
/// `usual`.
fn count(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |count| count.parse().unwrap())
}

/// The logs of the corpus, smallest first.
fn logs() -> Vec<PathBuf> {
    let mut logs = find(is_log);
    logs.sort_by_key(|path| fs::metadata(path).unwrap().len());
    logs
}

#[test]
#[ignore = "full tier: real files"]
fn every_bit_of_the_last_block_and_of_the_headers_of_real_logs_counts() {
    let folder = TempDir::new().unwrap();
    let (mut last, mut headers) = (Found::default(), Found::default());
    let mut tried = 0;
    for path in logs() {
        let Some(mut copy) = Copy::of(&path, folder.path()) else { continue };
        let Some((&at, &(size, _))) = copy.whole.blocks.last_key_value() else { continue };
        for bit in at * 8..(at + size) * 8 {
            copy.flip((bit / 8, (bit % 8) as u32), &mut last);
        }
        let log = Log::open(&[copy.path.clone()]).unwrap();
        for vlf in log.files().iter().flat_map(|file| &file.vlfs) {
            for bit in vlf.offset * 8..(vlf.offset + VLF_HEADER) * 8 {
                copy.flip((bit / 8, (bit % 8) as u32), &mut headers);
            }
        }
        tried += 1;
        if tried == count("MDFSCK_FLIPPED_LOGS", 2) {
            break;
        }
    }
    println!("{tried} logs: last blocks {last:?}, headers {headers:?}");
    assert_eq!((last.silent, headers.silent), (vec![], vec![]));
}

#[test]
#[ignore = "full tier: real files"]
fn bits_near_the_end_of_real_logs_count() {
    let folder = TempDir::new().unwrap();
    let (mut found, mut tried) = (Found::default(), 0);
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    for path in logs() {
        let Some(mut copy) = Copy::of(&path, folder.path()) else { continue };
        let end = copy.whole.end.0;
        for _ in 0..count("MDFSCK_FLIPPED_BITS", 40) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let back = (random >> 33) % (64 << 10);
            copy.flip((end.saturating_sub(1 + back), (random >> 30 & 7) as u32), &mut found);
        }
        tried += 1;
        if tried == count("MDFSCK_FLIPPED_LOGS", 20) {
            break;
        }
    }
    println!("{tried} logs: {found:?}");
    assert_eq!(found.silent, [""; 0]);
}
