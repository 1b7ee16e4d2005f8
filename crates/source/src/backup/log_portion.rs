//! The log inside a backup: which pages it still changes (docs/format/log.md#log-blocks,
//! docs/format/backups.md#log-portion).
//!
//! A backup copies pages while the database changes. Restoring it redoes the log written meanwhile and undoes what was
//! not committed at its end; a page that neither touches is already as in the restored database.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use format::bytes::{array_at, u16_at, u32_at};
use format::{Lsn, PageId};

use super::media::Media;
use super::room::Room;
use super::sets::LogRegion;

const SECTOR_BYTES: usize = 512;
/// Longest log block.
const MAX_BLOCK_BYTES: usize = 120 * SECTOR_BYTES;
/// Status byte of a block's first sector.
const FIRST_SECTOR: u8 = 0x10;
/// Block formats and the length of their header.
const HEADERS: [(u16, usize); 4] = [(3, 28), (4, 40), (5, 48), (6, 72)];
/// Flag of a block with a checksum.
const HAS_CHECKSUM: u16 = 2;

/// Operations by number (docs/format/log.md#operations).
mod operation {
    /// Operations on a page.
    pub(super) const ON_A_PAGE: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 10, 11, 13, 16, 17, 18, 19, 22, 126];
    /// Operations that end a transaction.
    pub(super) const ENDS: [u8; 2] = [129, 130];
    pub(super) const BEGIN: u8 = 128;
    /// Page lists of bulk operations.
    pub(super) const BULK_WRITE: u8 = 154;
}

type Transaction = [u8; 6];

/// The effect of a set's log.
#[derive(Debug, Default)]
pub(crate) struct LogPortion {
    /// Last change of each page.
    pub(crate) changes: BTreeMap<PageId, Lsn>,
    /// Pages changed by transactions that had not ended.
    pub(crate) undone: Vec<PageId>,
    /// Something in it is not understood: what it changes is unknown.
    pub(crate) is_unknown: bool,
    /// Tape offsets of invalid blocks and blocks with wrong checksums.
    pub(crate) bad_blocks: Vec<u64>,
    /// Transactions that began and have not ended, and the pages changed by each.
    open: BTreeSet<Transaction>,
    changed: BTreeSet<(Transaction, PageId)>,
}

/// Additional memory per entry of the sets and maps, as their nodes are not full.
const BYTES_PER_ENTRY: usize = 16;
/// Memory for a page that the log changes: its last change, and later its entry in the list of pages in flight.
const BYTES_PER_PAGE: usize = size_of::<(PageId, Lsn)>() + BYTES_PER_ENTRY + size_of::<PageId>();
const BYTES_PER_TRANSACTION: usize = size_of::<Transaction>() + BYTES_PER_ENTRY;
const BYTES_PER_CHANGE: usize = size_of::<(Transaction, PageId)>() + BYTES_PER_ENTRY + size_of::<PageId>();

impl LogPortion {
    /// Reads all log blocks of a region, in the order written.
    pub(super) fn read(&mut self, media: &Media, log: &LogRegion, room: &Room) -> io::Result<()> {
        let mut block = vec![0; MAX_BLOCK_BYTES];
        let (mut at, end) = (log.region.at, log.region.at + log.used);
        while at < end {
            let wanted = (end - at).min(MAX_BLOCK_BYTES as u64) as usize;
            let read = match media.read_at(block.get_mut(..wanted).unwrap_or_default(), at) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => 0,
                Err(error) => return Err(error),
            };
            let Some(bytes) = size(block.get(..read).unwrap_or_default())
                .and_then(|size| block.get_mut(..size))
                .filter(|bytes| bytes.len() <= read)
            else {
                self.bad(at);
                return Ok(());
            };
            if !is_sound(bytes) {
                self.bad(at);
                return Ok(());
            }
            let length = bytes.len() as u64;
            let before = self.held_bytes();
            // A sound block in an unknown form is not damage.
            self.is_unknown |= self.records(bytes).is_none();
            let held = self.held_bytes();
            room.take(held.saturating_sub(before), "the pages that its log changes")?;
            room.give_back(before.saturating_sub(held));
            at += length;
        }
        Ok(())
    }

    /// Approximate bytes kept in memory.
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

    /// Notes the effects of the records of a block; `None` if its records cannot be separated.
    pub(super) fn records(&mut self, block: &mut [u8]) -> Option<()> {
        // The first byte of each sector holds a status; the displaced byte is at the end of the block.
        let size = block.len();
        for sector in 0..size / SECTOR_BYTES {
            *block.get_mut(sector * SECTOR_BYTES)? = *block.get(size - 1 - sector)?;
        }
        let format = u16_at(block, 0)?;
        let header = HEADERS.iter().find(|(known, _)| *known == format)?.1;
        let (count, used) = (usize::from(u16_at(block, 2)?), usize::from(u16_at(block, 4)?));
        let first = Lsn::read(block, 12)?;
        // Offsets grow downwards from the end of the used part.
        let slots = used.checked_sub(2 * count)?;
        let offset = |index: usize| match index < count {
            true => u16_at(block, used - 2 * (index + 1)).map(usize::from),
            false => Some(slots),
        };
        for index in 0..count {
            let (start, end) = (offset(index)?, offset(index + 1)?);
            let record = block.get(start..end).filter(|_| start >= header)?;
            let slot = first.slot.checked_add(u16::try_from(index).ok()?)?;
            self.record(record, Lsn { slot, ..first })?;
        }
        Some(())
    }

    fn record(&mut self, record: &[u8], lsn: Lsn) -> Option<()> {
        let transaction: Transaction = array_at(record, 0x10)?;
        let operation = *record.get(0x16)?;
        if operation == operation::BEGIN {
            self.end(transaction);
            self.open.insert(transaction);
        } else if operation::ENDS.contains(&operation) {
            self.end(transaction);
        } else if operation == operation::BULK_WRITE {
            // Pages changed by a minimally logged operation are not in the log.
            self.is_unknown = true;
        } else if operation::ON_A_PAGE.contains(&operation) {
            let page = PageId::new(u16_at(record, 0x1C)?, u32_at(record, 0x18)?);
            let last = self.changes.entry(page).or_default();
            *last = lsn.max(*last);
            if self.open.contains(&transaction) {
                self.changed.insert((transaction, page));
            }
        }
        Some(())
    }

    /// Forgets a transaction: its pages are not undone.
    fn end(&mut self, transaction: Transaction) {
        if self.open.remove(&transaction) {
            let first = (transaction, PageId::new(0, 0));
            while let Some(&change) = self.changed.range(first..).next().filter(|(of, _)| *of == transaction) {
                self.changed.remove(&change);
            }
        }
    }

    /// Ends the log: open transactions are undone.
    pub(crate) fn finish(&mut self) {
        self.undone = std::mem::take(&mut self.changed).into_iter().map(|(_, page)| page).collect();
        self.undone.sort_unstable();
        self.undone.dedup();
    }
}

/// Size of the block that starts here, if there can be one.
fn size(bytes: &[u8]) -> Option<usize> {
    let size = usize::from(u16_at(bytes, 6)?);
    let is_block = bytes.first()? & FIRST_SECTOR != 0
        && size.is_multiple_of(SECTOR_BYTES)
        && (SECTOR_BYTES..=MAX_BLOCK_BYTES).contains(&size);
    is_block.then_some(size)
}

/// Whether the checksum of a block as stored on disk is right, if it has one.
fn is_sound(block: &[u8]) -> bool {
    if u16_at(block, 8).is_none_or(|flags| flags & HAS_CHECKSUM == 0) {
        return true;
    }
    let Some(stored) = u32_at(block, 0x18) else { return false };
    // The field itself counts as zero: it is in the first sector, which is rotated most.
    let field = stored.rotate_left((block.len() / SECTOR_BYTES).wrapping_sub(1) as u32);
    sectors_sum(0, block) ^ field == stored
}

/// Adds sectors to a checksum: each XORed into one word, the sum rotated by one bit before each.
pub(crate) fn sectors_sum(sum: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(SECTOR_BYTES).fold(sum, |sum, sector| {
        let mut lanes = [0u32; 16];
        for block in sector.chunks_exact(64) {
            for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<4>().0) {
                *lane ^= u32::from_le_bytes(*word);
            }
        }
        sum.rotate_left(1) ^ lanes.iter().fold(0, |folded, lane| folded ^ lane)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::sets::Region;
    use std::io::Write;
    use std::path::Path;

    const RECORD_BYTES: usize = 64;
    const HEADER_BYTES: usize = 28;

    /// A log block as SQL Server 2005 writes it, with these records: transaction, operation, page of file 1.
    fn block(records: &[(u8, u8, u32)]) -> Vec<u8> {
        let used = HEADER_BYTES + records.len() * (RECORD_BYTES + 2);
        let size = (used + MAX_BLOCK_BYTES / SECTOR_BYTES).next_multiple_of(SECTOR_BYTES);
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
            block[sector * SECTOR_BYTES] = if sector == 0 { 0x50 } else { 0x40 };
        }
        block
    }

    /// Reads these blocks within this memory grant.
    fn read(blocks: &[u8], granted: u64) -> io::Result<LogPortion> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(blocks).unwrap();
        let room = Room::new(Some(granted), 0);
        let media = Media::open(Path::new("log"), file, &room).unwrap().unwrap();
        let used = blocks.len() as u64;
        let region = Region { at: 0, length: used, checksum: None };
        let mut portion = LogPortion::default();
        portion.read(&media, &LogRegion { region, used, sequence: 1, start: 0 }, &room)?;
        assert!(!portion.is_unknown, "the blocks are understood");
        portion.finish();
        Ok(portion)
    }

    const INSERT: u8 = 2;

    #[test]
    fn a_transaction_that_alternates_between_pages_keeps_each_once() {
        let begin = block(&[(1, operation::BEGIN, 0), (2, operation::BEGIN, 0)]);
        let records: Vec<_> = (0..600).map(|number| (1 + number as u8 / 2 % 2, INSERT, 100 + number % 8)).collect();
        let changes = block(&records).repeat(500);
        // A few pages, 300,000 records: they fit where one entry per record would not.
        let portion = read(&[begin.clone(), changes.clone()].concat(), (8 << 20) + 4096).unwrap();
        let pages = |numbers: &[u32]| numbers.iter().map(|&page| PageId::new(1, page)).collect::<Vec<_>>();
        assert_eq!(portion.undone, pages(&[100, 101, 102, 103, 104, 105, 106, 107]));
        let end = block(&[(1, operation::ENDS[0], 0)]);
        let portion = read(&[begin, changes, end].concat(), (8 << 20) + 4096).unwrap();
        assert_eq!(portion.undone, pages(&[102, 103, 106, 107]), "the changes of the transaction left open");
        assert_eq!(portion.changes.len(), 8);
    }

    #[test]
    fn a_log_that_changes_more_pages_than_fit_into_the_grant_is_refused() {
        let blocks: Vec<u8> = (0..50u32)
            .flat_map(|number| block(&(0..600).map(|record| (1, INSERT, number * 600 + record)).collect::<Vec<_>>()))
            .collect();
        assert_eq!(read(&blocks, 64 << 20).unwrap().changes.len(), 30_000);
        let refused = read(&blocks, 9 << 20).unwrap_err();
        assert!(refused.to_string().contains("no room for the pages that its log changes"), "{refused}");
    }
}
