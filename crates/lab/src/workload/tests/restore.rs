//! Reads the backups of a chain, so that a test can restore them. Uses only the rules of the format: the address in a
//! page identifies the page, and the LSN of a log record identifies the record.

use std::collections::BTreeMap;
use std::path::Path;

use super::read::{self, Record, long, lsn, word};
use crate::ids::{PAGE, PageId};
use crate::page::Lsn;
use crate::workload::key::page_id;

/// The content of one backup file.
#[derive(Default)]
pub(super) struct Set {
    pub(super) letter: u8,
    /// The first LSN, the LSN of the checkpoint, and the LSN that follows the last record.
    pub(super) lsns: [Lsn; 3],
    pub(super) pages: BTreeMap<PageId, Vec<u8>>,
    pub(super) records: Vec<Record>,
}

fn wide(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize
}

/// Reads the blocks of a backup file and their streams.
pub(super) fn open(path: &Path) -> Set {
    let bytes = std::fs::read(path).unwrap();
    let (mut set, mut at) = (Set::default(), 0);
    while at < bytes.len() {
        let block = &bytes[at..];
        let words = (0..25).fold(0, |sum, number| sum ^ word(block, 2 * number));
        assert_eq!(words, word(block, 0x32), "sum of the block at {at:x}");
        if &block[..4] == b"SFMB" {
            at += usize::from(word(block, 8));
            continue;
        }
        let mut stream = at + usize::from(word(block, 8));
        loop {
            let header = &bytes[stream..];
            let (tag, length) = (&header[..4], wide(header, 8));
            let data = &header[22..22 + length];
            match tag {
                b"MQCI" => configuration(&mut set, data),
                b"MQDA" if length > 0 => pages(&mut set, &data[2..]),
                b"MQTL" => log(&mut set, block, &data[2..]),
                _ => {}
            }
            let is_last = tag == b"SPAD";
            stream = (stream + 22 + length).next_multiple_of(if is_last { 1 } else { 4 });
            if is_last {
                break;
            }
        }
        at = stream;
    }
    set
}

fn configuration(set: &mut Set, data: &[u8]) {
    let object = &data[if &data[..4] == b"SCIN" { 0 } else { 2 }..];
    assert_eq!(&object[..4], b"SCIN");
    (set.letter, set.lsns) = (object[0x57], [0x20, 0x34, 0x2A].map(|at| lsn(object, at)));
}

fn pages(set: &mut Set, data: &[u8]) {
    for page in data.chunks_exact(PAGE).filter(|page| page[0] == 1 && page[1] != 0x65) {
        set.pages.insert(page_id(&page[32..38]), page.to_vec());
    }
}

/// Reads the log of one VLF from `data`. `block` describes the VLF, and the range of the log file from which `data` was
/// copied.
fn log(set: &mut Set, block: &[u8], data: &[u8]) {
    let (start, end) = (wide(block, 0x3C), wide(block, 0x44));
    let (sequence, vlf, parity) = (long(block, 0x5C), wide(block, 0x68), block[0x72]);
    let first = ((start - vlf) / 512) as u32;
    set.records.extend(read::blocks(&data[..end - start], (sequence, parity, first), true));
}
