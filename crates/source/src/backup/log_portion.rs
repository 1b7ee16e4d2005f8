//! The log inside a backup, which shows the pages that a restore would still change (docs/format/log.md#log-blocks,
//! docs/format/backups.md#log-portion).
//!
//! A backup copies pages while the database changes. A restore first redoes the log written during the backup, and then
//! undoes the transactions that had not committed at the end of this log. If neither redo nor undo changes a page, the
//! page in the backup already has its final content.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use format::log::block::{self, MAX_BYTES};
use format::log::{Block, BlockFault, LogRecord, Operation, TransactionId};
use format::{Lsn, PageId};

use super::media::Media;
use super::room::Room;
use super::sets::LogRegion;

/// The changes in the log of a backup set.
#[derive(Debug, Default)]
pub(crate) struct LogPortion {
    /// The LSN of the last change of each page.
    pub(crate) changes: BTreeMap<PageId, Lsn>,
    /// The pages changed by transactions that had not ended at the end of the log.
    pub(crate) undone: Vec<PageId>,
    /// Whether the changes are not completely known, because a part of the log is not understood.
    pub(crate) is_unknown: bool,
    /// The tape offsets of log blocks that are invalid or have wrong checksums.
    pub(crate) bad_blocks: Vec<u64>,
    /// The transactions that have begun but not ended (`open`), and the pages that each of them changed (`changed`).
    open: BTreeSet<TransactionId>,
    changed: BTreeSet<(TransactionId, PageId)>,
}

/// Additional memory per entry of a set or map, because the nodes of a B-tree are not full.
const BYTES_PER_ENTRY: usize = 16;
/// Memory for a page that the log changes: the LSN of its last change, and later its entry in the list of pages that a
/// restore would still change.
const BYTES_PER_PAGE: usize = size_of::<(PageId, Lsn)>() + BYTES_PER_ENTRY + size_of::<PageId>();
const BYTES_PER_TRANSACTION: usize = size_of::<TransactionId>() + BYTES_PER_ENTRY;
const BYTES_PER_CHANGE: usize = size_of::<(TransactionId, PageId)>() + BYTES_PER_ENTRY + size_of::<PageId>();

impl LogPortion {
    /// Reads all log blocks of a region, in the order in which they were written.
    pub(super) fn read(&mut self, media: &Media, log: &LogRegion, room: &Room) -> io::Result<()> {
        let mut buffer = vec![0; MAX_BYTES];
        let (mut at, end) = (log.region.at, log.region.at + log.used);
        while at < end {
            let wanted = (end - at).min(MAX_BYTES as u64) as usize;
            let read = match media.read_at(buffer.get_mut(..wanted).unwrap_or_default(), at) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => 0,
                Err(error) => return Err(error),
            };
            let bytes = buffer.get_mut(..read).unwrap_or_default();
            let size = block::size_on_disk(bytes);
            let before = self.held_bytes();
            match (Block::restore(bytes), size) {
                (Ok(block), _) => self.block(&block),
                // A block with a correct checksum but an unknown format is not damaged, but its changes are unknown.
                (Err(BlockFault::Format(_) | BlockFault::Records), Some(_)) => self.is_unknown = true,
                _ => {
                    self.bad(at);
                    return Ok(());
                }
            }
            let held = self.held_bytes();
            room.take(held.saturating_sub(before), "the pages that its log changes")?;
            room.give_back(before.saturating_sub(held));
            at += size.unwrap_or(MAX_BYTES) as u64;
        }
        Ok(())
    }

    /// Approximate number of bytes kept in memory.
    fn held_bytes(&self) -> usize {
        self.changes.len() * BYTES_PER_PAGE
            + self.open.len() * BYTES_PER_TRANSACTION
            + self.changed.len() * BYTES_PER_CHANGE
            + self.bad_blocks.len() * size_of::<u64>()
    }

    fn bad(&mut self, at: u64) {
        self.bad_blocks.push(at);
        self.is_unknown = true;
    }

    /// Notes the changes made by the records of a block.
    pub(super) fn block(&mut self, block: &Block<'_>) {
        self.is_unknown |= block.is_encrypted();
        for (lsn, record) in block.records() {
            self.record(&record, lsn);
        }
    }

    fn record(&mut self, record: &LogRecord<'_>, lsn: Lsn) {
        let transaction = record.transaction();
        match record.operation() {
            Operation::BEGIN_XACT => {
                self.end(transaction);
                self.open.insert(transaction);
            }
            Operation::COMMIT_XACT | Operation::ABORT_XACT => self.end(transaction),
            // The log does not contain the pages of a minimally logged operation.
            Operation::BUF_WRITE => self.is_unknown = true,
            operation => match record.on_page() {
                Some(change) => {
                    let last = self.changes.entry(change.page).or_default();
                    *last = lsn.max(*last);
                    // The transaction may have begun before the start of this log. In this case, its first record in
                    // this log adds the transaction to `open`.
                    if transaction != TransactionId::default() {
                        self.open.insert(transaction);
                        self.changed.insert((transaction, change.page));
                    }
                }
                // The record contains no page ID. If its operation changes a page nevertheless, the changes are not
                // completely known.
                None => self.is_unknown |= operation.is_on_a_page(),
            },
        }
    }

    /// Notes that a transaction ended, so that its changes need no undo.
    fn end(&mut self, transaction: TransactionId) {
        if self.open.remove(&transaction) {
            let first = (transaction, PageId::new(0, 0));
            while let Some(&change) = self.changed.range(first..).next().filter(|(of, _)| *of == transaction) {
                self.changed.remove(&change);
            }
        }
    }

    /// Must be called at the end of the log. Stores in `undone` the pages that still-open transactions changed, because
    /// a restore rolls these transactions back.
    pub(crate) fn finish(&mut self) {
        self.undone = std::mem::take(&mut self.changed).into_iter().map(|(_, page)| page).collect();
        self.undone.sort_unstable();
        self.undone.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::sets::Region;
    use format::log::Vlf;
    use std::io::Write;
    use std::path::Path;

    const RECORD_BYTES: usize = 64;
    const HEADER_BYTES: usize = 28;
    const SECTOR_BYTES: usize = 512;

    /// A log block in the format of SQL Server 2005. Each record is given by its transaction, its operation and the
    /// number of its page in file 1.
    fn block(records: &[(u8, u8, u32)]) -> Vec<u8> {
        let used = HEADER_BYTES + records.len() * (RECORD_BYTES + 2);
        let size = (used + MAX_BYTES / SECTOR_BYTES).next_multiple_of(SECTOR_BYTES);
        let mut block = vec![0; size];
        let fields = [3, records.len(), used, size, 1];
        for (field, value) in fields.into_iter().enumerate() {
            block[2 * field..2 * field + 2].copy_from_slice(&(value as u16).to_le_bytes());
        }
        block[12] = 1;
        for (number, &(transaction, operation, page)) in records.iter().enumerate() {
            let at = HEADER_BYTES + number * RECORD_BYTES;
            (block[at + 0x10], block[at + 0x16], block[at + 0x1C]) = (transaction, operation, 1);
            block[at + 0x18..at + 0x1C].copy_from_slice(&page.to_le_bytes());
            let slot = used - 2 * (number + 1);
            block[slot..slot + 2].copy_from_slice(&(at as u16).to_le_bytes());
        }
        for sector in 0..size / SECTOR_BYTES {
            block[size - 1 - sector] = block[sector * SECTOR_BYTES];
            let first = if sector == 0 { 0x10 } else { 0 };
            let last = if (sector + 1) * SECTOR_BYTES == size { 0x08 } else { 0 };
            block[sector * SECTOR_BYTES] = 0x40 | first | last;
        }
        block
    }

    /// Reads log blocks with a memory limit of `granted` bytes.
    fn read(blocks: &[u8], granted: u64) -> io::Result<LogPortion> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(blocks).unwrap();
        let room = Room::new(Some(granted), 0);
        let media = Media::open(Path::new("log"), file.into(), &room).unwrap().unwrap();
        let used = blocks.len() as u64;
        let region = Region { at: 0, length: used, checksum: None };
        let mut portion = LogPortion::default();
        portion.read(&media, &LogRegion { region, used, start: 0, vlf: VLF, file_id: 2 }, &room)?;
        assert!(!portion.is_unknown, "the blocks are understood");
        portion.finish();
        Ok(portion)
    }

    const VLF: Vlf = Vlf {
        sequence: 1,
        parity: 0x40,
        format: 5,
        offset: 8192,
        bytes: 1 << 20,
        created: Lsn { vlf: 0, block: 0, slot: 0 },
    };
    const INSERT: u8 = Operation::INSERT_ROWS.0;
    const BEGIN: u8 = Operation::BEGIN_XACT.0;
    const COMMIT: u8 = Operation::COMMIT_XACT.0;

    #[test]
    fn a_transaction_that_goes_to_and_fro_between_pages_keeps_each_once() {
        let begin = block(&[(1, BEGIN, 0), (2, BEGIN, 0)]);
        let records: Vec<_> = (0..600).map(|number| (1 + number as u8 / 2 % 2, INSERT, 100 + number % 8)).collect();
        let changes = block(&records).repeat(500);
        // 300,000 records change eight pages. One entry per page fits into the memory limit; one entry per record would
        // not.
        let portion = read(&[begin.clone(), changes.clone()].concat(), crate::PROGRAM_BYTES + 4096).unwrap();
        let pages = |numbers: &[u32]| numbers.iter().map(|&page| PageId::new(1, page)).collect::<Vec<_>>();
        assert_eq!(portion.undone, pages(&[100, 101, 102, 103, 104, 105, 106, 107]));
        let end = block(&[(1, COMMIT, 0)]);
        let portion = read(&[begin, changes, end].concat(), crate::PROGRAM_BYTES + 4096).unwrap();
        assert_eq!(portion.undone, pages(&[102, 103, 106, 107]), "the changes of the transaction left open");
        assert_eq!(portion.changes.len(), 8);
    }

    #[test]
    fn a_log_that_changes_more_pages_than_fit_into_the_grant_is_refused() {
        let blocks: Vec<u8> = (0..50u32)
            .flat_map(|number| block(&(0..600).map(|record| (1, INSERT, number * 600 + record)).collect::<Vec<_>>()))
            .collect();
        assert_eq!(read(&blocks, 64 << 20).unwrap().changes.len(), 30_000);
        let refused = read(&blocks, crate::PROGRAM_BYTES + (1 << 20)).unwrap_err();
        assert!(refused.to_string().contains("no room for the pages that its log changes"), "{refused}");
    }
}
