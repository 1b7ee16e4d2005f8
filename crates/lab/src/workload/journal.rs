//! The log that a workload writes. Records are collected in blocks, and blocks in virtual log files (VLFs). A VLF is
//! used again when its log is no longer needed.

use std::ops::Range;

use crate::bytes::put;
use crate::ids::PAGE;
use crate::log::{BlockPlace, HEADER_PAGE, LogForm, MOST_BYTES, Part, SECTOR, block, parity, part_header};
use crate::page::Lsn;

/// The reason why a run stops early: the log has the requested number of records, or the data file is full.
#[derive(Debug)]
pub(super) struct Halt;

/// The result of a step of a workload; an error if the run stops in this step.
pub(super) type Step<T = ()> = Result<T, Halt>;

/// The number of ticks of 1/300 second in a day. `FIRST_DAY` is the day on which all workloads start: 2024-03-04.
const TICKS_PER_DAY: u64 = 300 * 86_400;
const FIRST_DAY: u64 = 45_353;

/// A virtual log file.
#[derive(Clone, Debug)]
struct Vlf {
    sequence: u32,
    uses: u32,
    /// The bytes of the VLF after its header.
    blocks: Vec<u8>,
}

/// A block that was written to disk.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// The byte range of the block in the log file.
    pub(super) place: Range<usize>,
    /// The number of records in the log before this block.
    pub(super) records_before: u64,
}

/// Collects log records in blocks and writes them to VLFs.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    form: LogForm,
    vlf_bytes: u64,
    /// The VLFs of all log files. They are distributed among the log files in turn.
    vlfs: Vec<Vlf>,
    /// The file IDs of the log files.
    files: Vec<u16>,
    /// `current` is the position of the current VLF, and `end` is the number of bytes of its blocks so far.
    current: usize,
    end: usize,
    /// The records of the current block.
    records: Vec<Vec<u8>>,
    used: usize,
    previous: usize,
    /// The blocks of the current VLF that contain records.
    written: Vec<Written>,
    /// The clock: ticks of 1/300 second since midnight of the first day.
    ticks: u64,
    /// `count` is the number of records so far, and `limit` is the number of records at which the run stops.
    pub(super) count: u64,
    pub(super) limit: u64,
    /// VLFs with a sequence number below this one are no longer needed.
    pub(super) needed_from: u32,
}

impl Journal {
    /// Creates an empty log of `vlfs` VLFs with `vlf_bytes` bytes each. `files` has the IDs of the log files.
    pub(super) fn new(form: LogForm, first_sequence: u32, (vlfs, vlf_bytes): (u32, u64), files: Vec<u16>) -> Self {
        let room = (vlf_bytes - HEADER_PAGE) as usize;
        let empty = Vlf { sequence: 0, uses: 0, blocks: vec![0; room] };
        let mut vlfs = vec![empty; (vlfs.max(2) as usize).max(files.len())];
        (vlfs[0].sequence, vlfs[0].uses) = (first_sequence, 1);
        Self {
            form,
            vlf_bytes,
            vlfs,
            files,
            current: 0,
            end: 0,
            records: Vec::new(),
            used: 0,
            previous: 0,
            written: Vec::new(),
            ticks: 9 * 3600 * 300,
            count: 0,
            limit: u64::MAX,
            needed_from: first_sequence,
        }
    }

    /// Advances the clock.
    pub(super) fn wait(&mut self, ticks: u64) {
        self.ticks += ticks;
    }

    /// Sets the clock to at least one minute after the clock of another log.
    pub(super) fn wait_for(&mut self, other: &Self) {
        self.ticks = self.ticks.max(other.ticks) + 60 * 300;
    }

    /// The current time as a datetime.
    pub(super) fn time(&self) -> [u8; 8] {
        let (day, ticks) = (FIRST_DAY + self.ticks / TICKS_PER_DAY, self.ticks % TICKS_PER_DAY);
        ((day << 32) | ticks).to_le_bytes()
    }

    /// Appends a record and returns its LSN.
    pub(super) fn append(&mut self, record: Vec<u8>) -> Step<Lsn> {
        if self.count >= self.limit {
            return Err(Halt);
        }
        // Each record needs two more bytes for its offset. The status byte of a sector overwrites one byte of the data,
        // and the block stores the overwritten byte at its end: one more byte for each of at most 120 sectors.
        if self.form.header + self.used + record.len() + 2 * (self.records.len() + 1) + 120 > MOST_BYTES {
            self.close();
        }
        if self.records.is_empty() && self.end + MOST_BYTES > self.room() {
            self.next_vlf();
        }
        self.count += 1;
        self.used += record.len();
        let lsn = Lsn(self.vlfs[self.current].sequence, self.next_block(), self.records.len() as u16 + 1);
        self.records.push(record);
        Ok(lsn)
    }

    /// Completes the current block and writes it to disk.
    pub(super) fn close(&mut self) {
        if !self.records.is_empty() {
            let records = std::mem::take(&mut self.records);
            self.used = 0;
            self.write(&records, 1);
        }
    }

    /// Completes the current block, and returns the LSN that the next record gets.
    pub(super) fn end(&mut self) -> Lsn {
        self.close();
        Lsn(self.vlfs[self.current].sequence, self.next_block(), 1)
    }

    /// Number of log files.
    pub(super) fn files(&self) -> u16 {
        self.files.len() as u16
    }

    /// The bytes of a log file, without the block that is not written yet. `header` receives the size of the file in
    /// bytes and returns its header page.
    pub(super) fn file(&self, number: u16, header: impl Fn(u64) -> [u8; PAGE]) -> Vec<u8> {
        let mut bytes = vec![0; PAGE];
        for vlf in self.vlfs.iter().skip(number.into()).step_by(self.files.len()) {
            let at = bytes.len() as u64;
            bytes.extend(part_header(self.form, vlf.sequence, vlf.uses, at, self.vlf_bytes));
            bytes.extend(&vlf.blocks);
        }
        let header = header(bytes.len() as u64);
        bytes[..PAGE].copy_from_slice(&header);
        bytes
    }

    /// The sequence number of the oldest VLF that still belongs to the log. The VLFs of the log have consecutive
    /// sequence numbers up to the newest one. VLFs before a gap in the sequence numbers contain old log that no longer
    /// belongs to the log.
    pub(super) fn oldest(&self) -> u32 {
        let has_log = |sequence: u32| self.vlfs.iter().any(|vlf| vlf.sequence == sequence && vlf.uses > 0);
        let newest = self.vlfs[self.current].sequence;
        (1..=newest).rev().take_while(|&sequence| has_log(sequence)).last().unwrap_or(newest)
    }

    /// The blocks of the newest VLF that contain records.
    pub(super) fn newest_blocks(&self) -> &[Written] {
        &self.written
    }

    /// Copies the log from the LSN `from` on. Returns the bytes of the blocks, and for each VLF the part that was
    /// copied.
    pub(super) fn copy(&self, from: Lsn) -> (Vec<u8>, Vec<Part>) {
        let newest = self.vlfs[self.current].sequence;
        let (mut blocks, mut parts) = (Vec::new(), Vec::new());
        let mut in_order: Vec<(usize, &Vlf)> = self.vlfs.iter().enumerate().collect();
        // The VLFs that contain log from the LSN `from` on come first, in the order of their sequence numbers.
        in_order.sort_by_key(|(_, vlf)| if vlf.sequence >= from.0 { vlf.sequence } else { u32::MAX });
        for (number, vlf) in in_order {
            let at = self.place(number);
            let start = if vlf.sequence == from.0 { from.1 as usize * SECTOR - HEADER_PAGE as usize } else { 0 };
            let end = if vlf.sequence == newest { self.end } else { self.room() };
            let own = if vlf.sequence >= from.0 && vlf.uses > 0 { start..end } else { 0..0 };
            blocks.extend(&vlf.blocks[own.clone()]);
            let place = |offset: usize| at + HEADER_PAGE + offset as u64;
            parts.push(Part {
                file: self.files[number % self.files.len()],
                sequence: vlf.sequence,
                parity: if vlf.uses > 0 { parity(vlf.uses) } else { 0 },
                at,
                bytes: self.vlf_bytes,
                copied: if own.is_empty() { 0..0 } else { place(own.start)..place(own.end) },
                ..Part::default()
            });
        }
        (blocks, parts)
    }

    /// The offset of a VLF in its log file.
    fn place(&self, number: usize) -> u64 {
        HEADER_PAGE + (number / self.files.len()) as u64 * self.vlf_bytes
    }

    fn room(&self) -> usize {
        (self.vlf_bytes - HEADER_PAGE) as usize
    }

    fn next_block(&self) -> u32 {
        ((HEADER_PAGE as usize + self.end) / SECTOR) as u32
    }

    fn write(&mut self, records: &[Vec<u8>], least: usize) {
        let lsn = Lsn(self.vlfs[self.current].sequence, self.next_block(), 1);
        let time = Some(self.time());
        let vlf = &mut self.vlfs[self.current];
        let place = BlockPlace { lsn, previous: self.previous, parity: parity(vlf.uses), time };
        let block = block(self.form, &place, records, least);
        put(&mut vlf.blocks, self.end, &block);
        if !records.is_empty() {
            let at = (self.place(self.current) + HEADER_PAGE) as usize + self.end;
            let records_before = self.count - records.len() as u64;
            self.written.push(Written { place: at..at + block.len(), records_before });
        }
        self.end += block.len();
        self.previous = block.len();
    }

    /// Fills the rest of the current VLF with empty blocks, and continues in a VLF whose log is no longer needed. If
    /// the log in all VLFs is needed, a new VLF is added.
    fn next_vlf(&mut self) {
        while self.end < self.room() {
            let sectors = (self.room() - self.end) / SECTOR;
            self.write(&[], sectors.min(MOST_BYTES / SECTOR));
        }
        let sequence = self.vlfs[self.current].sequence + 1;
        let free = (1..self.vlfs.len())
            .map(|step| (self.current + step) % self.vlfs.len())
            .find(|&at| self.vlfs[at].sequence < self.needed_from);
        self.current = free.unwrap_or_else(|| {
            self.vlfs.push(Vlf { sequence: 0, uses: 0, blocks: vec![0; self.room()] });
            self.vlfs.len() - 1
        });
        let vlf = &mut self.vlfs[self.current];
        (vlf.sequence, vlf.uses) = (sequence, vlf.uses + 1);
        self.end = 0;
        self.written.clear();
    }
}
