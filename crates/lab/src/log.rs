//! Writes transaction logs: log files, and the log in a backup, which contains the changes made while pages were
//! copied.

use std::ops::Range;

use crate::bytes::{put, sectors};
use crate::description::Description;
use crate::fixed::log_header;
use crate::ids::{PAGE, PageId};
use crate::page::{self, Lsn, page_type};

pub(crate) const SECTOR: usize = 512;
/// Size in bytes of the longest log block.
pub(crate) const MOST_BYTES: usize = 120 * SECTOR;
/// Size in bytes of a log file's header page, and of the header of each VLF.
pub(crate) const HEADER_PAGE: u64 = 0x2000;
const PART_BYTES: u64 = 0x1F_0000;
const PARTS: u64 = 4;

/// A VLF of a log file, and the range of its bytes that a backup contains.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// File ID of the log file; 0 means the first log file.
    pub(crate) file: u16,
    pub(crate) sequence: u32,
    pub(crate) parity: u8,
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    pub(crate) created: [u8; 10],
    pub(crate) copied: Range<u64>,
}

/// The VLFs of a log file. The first VLF contains `log` bytes of log; the others are unused.
pub(crate) fn parts(first: Lsn, log: u64) -> Vec<Part> {
    let part = |number| Part { at: HEADER_PAGE + number * PART_BYTES, bytes: PART_BYTES, ..Part::default() };
    let mut parts: Vec<Part> = (0..PARTS).map(part).collect();
    if let Some(used) = parts.first_mut() {
        let start = used.at + HEADER_PAGE;
        (used.sequence, used.parity, used.copied) = (first.0, 0x40, start..start + log);
    }
    parts
}

/// Operation codes of log records.
pub(crate) mod operation {
    #![allow(missing_docs)]
    pub(crate) const FORMAT_PAGE: u8 = 1;
    pub(crate) const INSERT_ROWS: u8 = 2;
    pub(crate) const DELETE_ROWS: u8 = 3;
    pub(crate) const MODIFY_ROW: u8 = 4;
    pub(crate) const MODIFY_HEADER: u8 = 5;
    pub(crate) const MODIFY_COLUMNS: u8 = 6;
    pub(crate) const SET_BITS: u8 = 7;
    pub(crate) const SET_FREE_SPACE: u8 = 10;
    pub(crate) const DELETE_SPLIT: u8 = 11;
    pub(crate) const EXPUNGE_ROWS: u8 = 13;
    pub(crate) const FILE_HEADER: u8 = 16;
    pub(crate) const SET_GAM_BITS: u8 = 17;
    pub(crate) const COUNT_DELTA: u8 = 18;
    pub(crate) const ROOT_CHANGE: u8 = 19;
    pub(crate) const IN_SYSTEM_TRANSACTION: u8 = 22;
    pub(crate) const BEGIN_TRANSACTION: u8 = 128;
    pub(crate) const COMMIT: u8 = 129;
    pub(crate) const ABORT: u8 = 130;
    pub(crate) const PREPARE: u8 = 131;
    pub(crate) const HOBT_DELTA: u8 = 140;
    pub(crate) const BEGIN_CHECKPOINT: u8 = 150;
    pub(crate) const TRANSACTIONS_AT_CHECKPOINT: u8 = 152;
    pub(crate) const CREATE_ALLOCATION_CHAIN: u8 = 176;
    pub(crate) const END_CHECKPOINT: u8 = 153;
}

/// The format of log blocks, which depends on the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogForm {
    block: u16,
    pub(crate) header: usize,
    has_checksum: bool,
}

impl LogForm {
    pub(crate) fn of(version: u16, has_checksum: bool) -> Self {
        let (block, header) = match version {
            ..655 => (3, 28),
            655..700 => (4, 40),
            700..896 => (5, 48),
            896.. => (6, 72),
        };
        Self { block, header, has_checksum: has_checksum && block > 3 }
    }

    /// The format number of a VLF.
    pub(crate) fn part(self) -> u16 {
        if self.block == 3 { 2 } else { self.block.min(5) }
    }
}

/// The context of log records that change a row in a clustered index. `INDEX_LEAF` is the context of changes on a leaf
/// page of a nonclustered index.
const CLUSTERED: u8 = 2;
const INDEX_LEAF: u8 = 3;

/// A change of some bytes in a row.
pub(crate) struct Change {
    pub(crate) page: PageId,
    pub(crate) slot: u16,
    /// `object` and `index` are m_objId and m_indexId of the page.
    pub(crate) object: u32,
    pub(crate) index: u16,
    /// The LSN of the page before the change.
    pub(crate) before: Lsn,
    pub(crate) offset: u16,
    pub(crate) old: Vec<u8>,
    /// The context of the log record, which names the kind of page.
    pub(crate) context: u8,
    /// Whether a second log record reverts the change. This is necessary if the row must still agree with rows on other
    /// pages.
    pub(crate) is_changed_back: bool,
}

impl Change {
    /// The bytes of the row after the change.
    pub(crate) fn after(&self) -> Vec<u8> {
        self.old.iter().map(|byte| !byte).collect()
    }

    /// Creates a change of up to `most` bytes in the fixed-length part of the first row on the page. `None` if the page
    /// is not a leaf page of a user table, or its first row cannot be changed.
    pub(crate) fn of_first_row(id: PageId, bytes: &[u8], most: usize) -> Option<Self> {
        let mut page = *bytes.first_chunk::<PAGE>()?;
        page::unprotect(&mut page);
        let word = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
        let long = |at: usize| u32::from(word(at)) | u32::from(word(at + 2)) << 16;
        let context = match page[1] {
            page_type::DATA => CLUSTERED,
            page_type::INDEX => INDEX_LEAF,
            _ => return None,
        };
        let is_user_leaf = page[3] == 0 && word(6) == 0x100 && page[32..38] == id.bytes() && word(22) > 0;
        let row = usize::from(word(PAGE - 2));
        // Compressed rows are not changed, because changing one byte could change the meaning of the bytes after it.
        let is_compressed = page[2] & 0x80 != 0 || page.get(row).is_some_and(|status| status & 1 != 0);
        let fixed_end = if page[1] == page_type::DATA { word(row.min(PAGE - 4) + 2) } else { word(14) };
        let length = usize::from(fixed_end).saturating_sub(4).clamp(1, most);
        let old = page.get(row + 4..row + 4 + length).filter(|_| is_user_leaf && row > 0 && !is_compressed)?.to_vec();
        let before = Lsn(long(40), long(44), word(48));
        let (object, index) = (long(24), word(6));
        Some(Self { page: id, slot: 0, object, index, before, offset: 4, old, context, is_changed_back: false })
    }
}

/// Collects log records in blocks.
pub(crate) struct Log {
    form: LogForm,
    /// The LSN at which the current VLF starts.
    first: Lsn,
    blocks: Vec<u8>,
    /// The number of bytes in a VLF that blocks can use. The log continues in the next VLF only when these bytes are
    /// used up.
    capacity: usize,
    full: Vec<Vec<u8>>,
    /// The records of the current block.
    records: Vec<Vec<u8>>,
    used: usize,
    previous: usize,
    transactions: u16,
}

/// Builds a log record: its fixed part, followed by its elements. Each element starts at a multiple of four.
fn record(operation: u8, transaction: u16, fixed: &[u8], elements: &[&[u8]]) -> Vec<u8> {
    let mut bytes = fixed.to_vec();
    if transaction > 0 {
        put(&mut bytes, 0x0E, &2u16.to_le_bytes());
        put(&mut bytes, 0x10, &u32::from(transaction).to_le_bytes());
    }
    bytes[0x16] = operation;
    assemble(bytes, elements)
}

/// The operations whose log records have neither elements nor a count of elements.
const WITHOUT_ELEMENTS: [u8; 5] = [
    operation::COUNT_DELTA,
    operation::ROOT_CHANGE,
    operation::HOBT_DELTA,
    operation::BEGIN_CHECKPOINT,
    operation::CREATE_ALLOCATION_CHAIN,
];

/// Sets the length of the fixed part of a record and appends the elements. The record is padded to a multiple of eight
/// bytes.
pub(crate) fn assemble(fixed: Vec<u8>, elements: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = fixed;
    let length = bytes.len() as u16;
    put(&mut bytes, 2, &length.to_le_bytes());
    if WITHOUT_ELEMENTS.contains(&bytes[0x16]) {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        return bytes;
    }
    bytes.extend((elements.len() as u16).to_le_bytes());
    for element in elements {
        bytes.extend((element.as_ref().len() as u16).to_le_bytes());
    }
    for element in elements {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(element.as_ref());
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// The header fields that depend on the place of a block in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPlace {
    /// LSN of the first record in the block.
    pub(crate) lsn: Lsn,
    /// Size of the previous block in bytes.
    pub(crate) previous: usize,
    /// Parity of the current use of the VLF: 0x40 or 0x80.
    pub(crate) parity: u8,
    /// The time when the block was closed. Only the newest block format stores it.
    pub(crate) time: Option<[u8; 8]>,
}

/// Builds a block that contains `records`. The block has at least `least` sectors.
pub(crate) fn block(form: LogForm, place: &BlockPlace, records: &[Vec<u8>], least: usize) -> Vec<u8> {
    let used = form.header + records.iter().map(Vec::len).sum::<usize>() + 2 * records.len();
    // The first byte of each sector is a status byte. It replaces a byte of the data, and the replaced bytes are stored
    // at the end of the block.
    let mut count = used.div_ceil(SECTOR).max(least);
    while used + count > count * SECTOR {
        count += 1;
    }
    let mut block = vec![0; count * SECTOR];
    let flags = 1 | u16::from(form.has_checksum) << 1;
    for (field, value) in
        [form.block, records.len() as u16, used as u16, block.len() as u16, flags].into_iter().enumerate()
    {
        put(&mut block, 2 * field, &value.to_le_bytes());
    }
    put(&mut block, 0x0A, &(place.previous as u16).to_le_bytes());
    put(&mut block, 0x0C, &place.lsn.bytes());
    if let (6.., Some(time)) = (form.block, place.time) {
        put(&mut block, 0x30, &time);
        put(&mut block, 0x38, &[0xFF; 16]);
    }
    let mut at = form.header;
    for (number, record) in records.iter().enumerate() {
        put(&mut block, at, record);
        put(&mut block, used - 2 * (number + 1), &(at as u16).to_le_bytes());
        at += record.len();
    }
    for sector in 0..count {
        let status = place.parity | if sector == 0 { 0x10 } else { 0 } | if sector + 1 == count { 8 } else { 0 };
        let last = block.len() - 1 - sector;
        block[last] = std::mem::replace(&mut block[sector * SECTOR], status);
    }
    if form.has_checksum {
        let sum = sectors(0, &block);
        put(&mut block, 0x18, &sum.to_le_bytes());
    }
    block
}

/// Builds the header of a VLF that was used `uses` times. In a VLF that was never used, the sequence number is 0, and
/// `sequence` is ignored.
pub(crate) fn part_header(form: LogForm, sequence: u32, uses: u32, at: u64, bytes: u64) -> Vec<u8> {
    let mut header = vec![0; HEADER_PAGE as usize];
    put(&mut header, 0, &[0xAB]);
    put(&mut header, 2, &form.part().to_le_bytes());
    put(&mut header, 0x10, &bytes.to_le_bytes());
    put(&mut header, 0x18, &at.to_le_bytes());
    if uses > 0 {
        put(&mut header, 1, &[parity(uses)]);
        put(&mut header, 4, &sequence.to_le_bytes());
        put(&mut header, 0x0C, &uses.to_le_bytes());
    }
    header
}

/// The parity of a VLF that was used `uses` times.
pub(crate) fn parity(uses: u32) -> u8 {
    if uses % 2 == 1 { 0x40 } else { 0x80 }
}

impl Log {
    /// Creates a log that starts at `first` with a checkpoint.
    pub(crate) fn new(form: LogForm, first: Lsn, version: u16, time: [u8; 8]) -> Self {
        let mut this = Self::empty(form, first, usize::MAX);
        this.checkpoint(version, time);
        this
    }

    pub(crate) fn empty(form: LogForm, first: Lsn, capacity: usize) -> Self {
        let (blocks, full, records) = (Vec::new(), Vec::new(), Vec::new());
        Self { form, first, blocks, capacity, full, records, used: 0, previous: 0, transactions: 0 }
    }

    /// Appends a checkpoint without open transactions.
    pub(crate) fn checkpoint(&mut self, version: u16, time: [u8; 8]) {
        let mut begin = [0; 96];
        put(&mut begin, 0x18, &time);
        put(&mut begin, 0x2A, &version.to_le_bytes());
        put(&mut begin, 0x2C, &100u32.to_le_bytes());
        let began = self.push(record(operation::BEGIN_CHECKPOINT, 0, &begin, &[]));
        let mut end = [0; 136];
        put(&mut end, 0x18, &time);
        put(&mut end, 0x20, &began.bytes());
        self.push(record(operation::END_CHECKPOINT, 0, &end, &[]));
    }

    /// Adds a record; returns its LSN.
    fn push(&mut self, record: Vec<u8>) -> Lsn {
        // Each record needs two more bytes for its offset. The status byte of a sector overwrites one byte of the data,
        // and the block stores the overwritten byte at its end: one more byte for each of at most 120 sectors.
        if self.form.header + self.used + record.len() + 2 * (self.records.len() + 1) + 120 > MOST_BYTES {
            self.close();
        }
        if self.records.is_empty() && self.blocks.len() > self.capacity - MOST_BYTES {
            self.fill();
        }
        self.used += record.len();
        self.records.push(record);
        let block = self.first.1 + (self.blocks.len() / SECTOR) as u32;
        Lsn(self.first.0, block, self.records.len() as u16)
    }

    /// Appends a transaction that changes one row on each page in `changes`. If `commits` is true, the transaction
    /// commits; otherwise, it stays open. Returns the LSN of the last change of each page.
    pub(crate) fn transaction(&mut self, changes: &[Change], commits: bool, time: [u8; 8]) -> Vec<Lsn> {
        self.transactions = self.transactions.wrapping_add(1);
        let number = 0x100 + self.transactions % 0xF000;
        let mut begin = vec![0; if self.form.block < 5 { 64 } else { 76 }];
        put(&mut begin, 0x18, &51u16.to_le_bytes());
        put(&mut begin, 0x28, &time);
        let began = self.push(record(operation::BEGIN_TRANSACTION, number, &begin, &[b"u\0s\0e\0r\0", &[1]]));
        let (mut last, mut lsns) = (began, Vec::new());
        for change in changes {
            let mut fixed = [0; 62];
            put(&mut fixed, 0x17, &[change.context]);
            put(&mut fixed, 0x18, &change.page.bytes());
            put(&mut fixed, 0x1E, &change.slot.to_le_bytes());
            put(&mut fixed, 0x20, &change.object.to_le_bytes());
            put(&mut fixed, 0x2E, &change.index.to_le_bytes());
            put(&mut fixed, 0x38, &change.offset.to_le_bytes());
            put(&mut fixed, 0x3A, &(change.old.len() as u16).to_le_bytes());
            let after = change.after();
            let (old, new) = (change.old.as_slice(), after.as_slice());
            let mut page_lsn = change.before;
            for images in [Some([old, new]), change.is_changed_back.then_some([new, old])].into_iter().flatten() {
                put(&mut fixed, 4, &last.bytes());
                put(&mut fixed, 0x24, &page_lsn.bytes());
                last = self.push(record(operation::MODIFY_ROW, number, &fixed, &images));
                page_lsn = last;
            }
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

    /// Completes the current block.
    fn close(&mut self) {
        if self.records.is_empty() {
            return;
        }
        let records = std::mem::take(&mut self.records);
        self.block(records, 1);
    }

    /// Fills the rest of the VLF with empty blocks, and continues in the next VLF.
    fn fill(&mut self) {
        while self.blocks.len() < self.capacity {
            let sectors = (self.capacity - self.blocks.len()) / SECTOR;
            self.block(Vec::new(), sectors.min(MOST_BYTES / SECTOR));
        }
        self.full.push(std::mem::take(&mut self.blocks));
        self.first = Lsn(self.first.0 + 1, self.first.1, 1);
    }

    /// Appends a block that contains `records`. The block has at least `least` sectors.
    fn block(&mut self, records: Vec<Vec<u8>>, least: usize) {
        let lsn = Lsn(self.first.0, self.first.1 + (self.blocks.len() / SECTOR) as u32, 1);
        let place = BlockPlace { lsn, previous: self.previous, parity: parity(1), time: None };
        let block = block(self.form, &place, &records, least);
        self.used = 0;
        self.previous = block.len();
        self.blocks.extend(block);
    }

    /// Takes the blocks of VLFs that became full since the last call, oldest VLF first.
    pub(crate) fn take_full(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.full)
    }

    /// The blocks of the last VLF, and the LSN at which the log continues.
    pub(crate) fn finish(mut self) -> (Vec<u8>, Lsn) {
        self.close();
        let end = Lsn(self.first.0, self.first.1 + (self.blocks.len() / SECTOR) as u32, 1);
        (self.blocks, end)
    }
}

/// The parameters of a log file.
#[derive(Clone, Debug)]
pub struct LogFile {
    /// Internal version of the database.
    pub version: u16,
    /// Whether blocks have a checksum.
    pub has_checksum: bool,
    /// The size of each virtual log file in bytes. The size must be a multiple of 512, and large enough for the VLF
    /// header and one block of maximum size.
    pub vlf_bytes: u64,
    /// The minimum number of virtual log files. Virtual log files that the log does not need are empty.
    pub vlfs: u32,
    /// Sequence number of the first virtual log file.
    pub first_sequence: u32,
    /// Number of transactions. Each transaction changes three pages, and a checkpoint follows every hundred
    /// transactions.
    pub transactions: u32,
    /// Whether the last transaction stays open.
    pub leaves_open: bool,
}

impl LogFile {
    /// The bytes of the log file. The database has no other log file.
    pub fn bytes(&self, of: &Description) -> Vec<u8> {
        let form = LogForm::of(self.version, self.has_checksum);
        // The first transaction is at 2020-01-01 12:00, and there are one hundred transactions per second.
        let time = |number: u32| (43_829u64 << 32 | u64::from(12 * 3600 * 300 + 3 * number)).to_le_bytes();
        let capacity = (self.vlf_bytes - HEADER_PAGE) as usize;
        let mut log = Log::empty(form, Lsn(self.first_sequence, 16, 1), capacity);
        let mut last = [Lsn(self.first_sequence, 16, 1); 64];
        log.checkpoint(self.version, time(0));
        for number in 0..self.transactions {
            let pages: Vec<usize> = (0..3).map(|of| ((number * 7 + of * 13) % 64) as usize).collect();
            let change = |&page: &usize| Change {
                page: PageId::new(1, 100 + page as u32),
                slot: (number % 40) as u16,
                object: 80,
                index: 256,
                before: last[page],
                offset: 4,
                old: vec![number as u8],
                context: 0,
                is_changed_back: false,
            };
            let changes: Vec<Change> = pages.iter().map(change).collect();
            let commits = !(self.leaves_open && number + 1 == self.transactions);
            let lsns = log.transaction(&changes, commits, time(number));
            pages.iter().zip(lsns).for_each(|(page, lsn)| last[*page] = lsn);
            if number % 100 == 99 {
                log.checkpoint(self.version, time(number));
            }
        }
        log.close();
        let mut parts = std::mem::take(&mut log.full);
        parts.push(log.blocks);
        let used = parts.len();
        parts.resize((self.vlfs as usize).max(used), Vec::new());
        let mut bytes = log_header(of, (0, 1), HEADER_PAGE + parts.len() as u64 * self.vlf_bytes).to_vec();
        for (number, blocks) in parts.into_iter().enumerate() {
            let at = bytes.len();
            let uses = u32::from(number < used);
            let vlf = part_header(form, self.first_sequence + number as u32, uses, at as u64, self.vlf_bytes);
            bytes.extend(vlf);
            bytes.extend(blocks);
            bytes.resize(at + self.vlf_bytes as usize, 0);
        }
        bytes
    }
}
