//! The log in a backup: what happened to the database while it was copied.

use std::ops::Range;

use super::tape::{put, sectors};
use crate::ids::PageId;
use crate::page::Lsn;

const SECTOR: usize = 512;
/// Longest block.
const MOST_BYTES: usize = 120 * SECTOR;
/// Sizes of what comes first: the header page of the log file, and that of each part.
const HEADER_PAGE: u64 = 0x2000;
const PART_BYTES: u64 = 0x1F_0000;
const PARTS: u64 = 4;

/// A part of the log file, and which of its bytes are in the backup.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) sequence: u32,
    pub(super) parity: u8,
    pub(super) at: u64,
    pub(super) bytes: u64,
    pub(super) created: [u8; 10],
    pub(super) copied: Range<u64>,
}

/// The parts of a log file whose first one holds this much log.
pub(super) fn parts(first: Lsn, log: u64) -> Vec<Part> {
    let part = |number| Part { at: HEADER_PAGE + number * PART_BYTES, bytes: PART_BYTES, ..Part::default() };
    let mut parts: Vec<Part> = (0..PARTS).map(part).collect();
    if let Some(used) = parts.first_mut() {
        let start = used.at + HEADER_PAGE;
        (used.sequence, used.parity, used.copied) = (first.0, 0x40, start..start + log);
    }
    parts
}

/// Operations, as records number them.
mod operation {
    pub(super) const MODIFY_ROW: u8 = 4;
    pub(super) const BEGIN_TRANSACTION: u8 = 128;
    pub(super) const COMMIT: u8 = 129;
    pub(super) const BEGIN_CHECKPOINT: u8 = 150;
    pub(super) const END_CHECKPOINT: u8 = 153;
}

/// The form of log blocks by version.
#[derive(Clone, Copy)]
pub(super) struct LogForm {
    block: u16,
    header: usize,
    has_checksum: bool,
}

impl LogForm {
    pub(super) fn of(version: u16, has_checksum: bool) -> Self {
        let (block, header) = match version {
            ..655 => (3, 28),
            655..700 => (4, 40),
            700..896 => (5, 48),
            896.. => (6, 72),
        };
        Self { block, header, has_checksum: has_checksum && block > 3 }
    }

    /// Format number of the parts of the log file.
    pub(super) fn part(self) -> u16 {
        if self.block == 3 { 2 } else { self.block.min(5) }
    }
}

/// A change of one byte of a row.
pub(super) struct Change {
    pub(super) page: PageId,
    pub(super) slot: u16,
    /// m_objId and m_indexId of the page.
    pub(super) object: u32,
    pub(super) index: u16,
    /// Its LSN before.
    pub(super) before: Lsn,
    pub(super) offset: u16,
    pub(super) old: u8,
}

/// Log records, block by block.
pub(super) struct Log {
    options: LogForm,
    first: Lsn,
    blocks: Vec<u8>,
    /// Records of the current block.
    records: Vec<Vec<u8>>,
    used: usize,
    previous: usize,
    transactions: u16,
}

/// A record: its fixed part, then elements, each at a multiple of four.
fn record(operation: u8, transaction: u16, fixed: &[u8], elements: &[&[u8]]) -> Vec<u8> {
    let mut bytes = fixed.to_vec();
    put(&mut bytes, 2, &(fixed.len() as u16).to_le_bytes());
    if transaction > 0 {
        put(&mut bytes, 0x0E, &2u16.to_le_bytes());
        put(&mut bytes, 0x10, &u32::from(transaction).to_le_bytes());
    }
    bytes[0x16] = operation;
    bytes.extend((elements.len() as u16).to_le_bytes());
    for element in elements {
        bytes.extend((element.len() as u16).to_le_bytes());
    }
    for element in elements {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(element);
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

impl Log {
    /// Log that starts at `first`, with a checkpoint.
    pub(super) fn new(options: LogForm, first: Lsn, version: u16, time: [u8; 8]) -> Self {
        let mut this =
            Self { options, first, blocks: Vec::new(), records: Vec::new(), used: 0, previous: 0, transactions: 0 };
        let mut begin = [0; 96];
        put(&mut begin, 0x18, &time);
        put(&mut begin, 0x2A, &version.to_le_bytes());
        put(&mut begin, 0x2C, &100u32.to_le_bytes());
        let began = this.push(record(operation::BEGIN_CHECKPOINT, 0, &begin, &[]));
        let mut end = [0; 136];
        put(&mut end, 0x18, &time);
        put(&mut end, 0x20, &began.bytes());
        this.push(record(operation::END_CHECKPOINT, 0, &end, &[]));
        this
    }

    /// Adds a record; returns its LSN.
    fn push(&mut self, record: Vec<u8>) -> Lsn {
        // Two bytes per record for its offset, one per sector for the byte displaced by its status.
        if self.options.header + self.used + record.len() + 2 * (self.records.len() + 1) + 120 > MOST_BYTES {
            self.close();
        }
        self.used += record.len();
        self.records.push(record);
        let block = self.first.1 + (self.blocks.len() / SECTOR) as u32;
        Lsn(self.first.0, block, self.records.len() as u16)
    }

    /// A transaction that changes a row of each page, and commits or is still open at the end. Returns the LSNs of the
    /// changes.
    pub(super) fn transaction(&mut self, changes: &[Change], commits: bool, time: [u8; 8]) -> Vec<Lsn> {
        self.transactions += 1;
        let number = 0x100 + self.transactions;
        let mut begin = vec![0; if self.options.block < 5 { 64 } else { 76 }];
        put(&mut begin, 0x18, &51u16.to_le_bytes());
        put(&mut begin, 0x28, &time);
        let began = self.push(record(operation::BEGIN_TRANSACTION, number, &begin, &[b"u\0s\0e\0r\0", &[1]]));
        let (mut last, mut lsns) = (began, Vec::new());
        for change in changes {
            let mut fixed = [0; 62];
            put(&mut fixed, 4, &last.bytes());
            put(&mut fixed, 0x18, &change.page.bytes());
            put(&mut fixed, 0x1E, &change.slot.to_le_bytes());
            put(&mut fixed, 0x20, &change.object.to_le_bytes());
            put(&mut fixed, 0x24, &change.before.bytes());
            put(&mut fixed, 0x2E, &change.index.to_le_bytes());
            put(&mut fixed, 0x38, &change.offset.to_le_bytes());
            put(&mut fixed, 0x3A, &1u16.to_le_bytes());
            last = self.push(record(operation::MODIFY_ROW, number, &fixed, &[&[change.old], &[!change.old]]));
            lsns.push(last);
        }
        if commits {
            let mut fixed = [0; 80];
            put(&mut fixed, 4, &began.bytes());
            put(&mut fixed, 0x18, &time);
            put(&mut fixed, 0x20, &began.bytes());
            self.push(record(operation::COMMIT, number, &fixed, &[]));
        }
        lsns
    }

    /// Ends the current block.
    fn close(&mut self) {
        if self.records.is_empty() {
            return;
        }
        let options = self.options;
        let records = std::mem::take(&mut self.records);
        let used = options.header + std::mem::take(&mut self.used) + 2 * records.len();
        // Each sector gives up a byte, which moves to the end.
        let mut count = used.div_ceil(SECTOR);
        while used + count > count * SECTOR {
            count += 1;
        }
        let mut block = vec![0; count * SECTOR];
        let flags = 1 | u16::from(options.has_checksum) << 1;
        for (field, value) in
            [options.block, records.len() as u16, used as u16, block.len() as u16, flags].into_iter().enumerate()
        {
            put(&mut block, 2 * field, &value.to_le_bytes());
        }
        put(&mut block, 0x0A, &(self.previous as u16).to_le_bytes());
        let lsn = Lsn(self.first.0, self.first.1 + (self.blocks.len() / SECTOR) as u32, 1);
        put(&mut block, 0x0C, &lsn.bytes());
        let mut at = options.header;
        for (number, record) in records.iter().enumerate() {
            put(&mut block, at, record);
            put(&mut block, used - 2 * (number + 1), &(at as u16).to_le_bytes());
            at += record.len();
        }
        for sector in 0..count {
            let status = 0x40 | if sector == 0 { 0x10 } else { 0 } | if sector + 1 == count { 8 } else { 0 };
            let last = block.len() - 1 - sector;
            block[last] = std::mem::replace(&mut block[sector * SECTOR], status);
        }
        if options.has_checksum {
            let sum = sectors(0, &block);
            put(&mut block, 0x18, &sum.to_le_bytes());
        }
        self.previous = block.len();
        self.blocks.extend(block);
    }

    /// All blocks, and the LSN at which the log continues.
    pub(super) fn finish(mut self) -> (Vec<u8>, Lsn) {
        self.close();
        let end = Lsn(self.first.0, self.first.1 + (self.blocks.len() / SECTOR) as u32, 1);
        (self.blocks, end)
    }
}
