//! Checkpoints, startup and shutdown of a database.

use super::engine::{By, Engine, Undo};
use super::entry::{Entry, context};
use super::journal::Step;
use crate::bytes::put;
use crate::fixed::{CHECKPOINT_LSN, CLEAN, FIRST_WITH_REDO_LSN, REDO_LSN, STATUS};
use crate::ids::PageId;
use crate::log::operation;
use crate::page::Lsn;

pub(super) const BOOT_PAGE: PageId = PageId::new(1, 9);
/// Offset of the number of data pages in a row of sysallocunits. `PAGES_USED` and `PAGES_RESERVED` are offsets in the
/// same row, and `ROWS` is the offset of the row count in a row of sysrowsets.
const PAGES_DATA: u32 = 0x35;
const PAGES_USED: u32 = 0x2D;
const PAGES_RESERVED: u32 = 0x3D;
const ROWS: u32 = 0x1F;
/// Length in bytes of the entry for a transaction in an XACT_CKPT record.
const OPEN_BYTES: usize = 80;
/// Context of the log record for the write of the boot page by a checkpoint.
const BOOT_WRITE: u8 = 23;

/// Returns the LSN at which redo starts. `record` is the record of the boot page.
pub(super) fn redo_start(record: &[u8]) -> Lsn {
    let number =
        |at: usize, bytes: usize| record[at..at + bytes].iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte));
    Lsn(number(REDO_LSN, 4), number(REDO_LSN + 4, 4), number(REDO_LSN + 8, 2) as u16)
}

impl Engine<'_> {
    /// Writes the log of a startup after a clean shutdown: a checkpoint, then the change of the database status.
    pub(super) fn start(&mut self) -> Step {
        self.mark_checkpoint(Lsn::default())?;
        let number = self.begin("DBMgr::StartupDB", false)?;
        let status = self.pool.frame(BOOT_PAGE).records[0][STATUS..STATUS + 4].to_vec();
        let running = (u32::from_le_bytes([status[0], status[1], status[2], status[3]]) & !CLEAN).to_le_bytes();
        let mut entry = Entry::bytes(context::BOOT, (BOOT_PAGE, 0), STATUS, status, &running);
        entry.elements.resize(6, Vec::new());
        self.change(By::Transaction(number), entry, Undo::Nothing, |frame| {
            put(&mut frame.records[0], STATUS, &running);
        })?;
        self.commit(number)?;
        self.journal.close();
        self.pool.flush(BOOT_PAGE);
        Ok(())
    }

    /// Makes a checkpoint: writes the changed pages to disk, and records the checkpoint in the log and on the boot
    /// page. Up to `leaves` changed pages, selected at random, are not written.
    pub(super) fn checkpoint(&mut self, leaves: usize) -> Step {
        self.write_counts()?;
        let dirty: Vec<PageId> = self.pool.dirty().keys().copied().collect();
        let mut left = Vec::new();
        for _ in 0..leaves.min(dirty.len()) {
            left.push(dirty[self.dice.below(dirty.len() as u64) as usize]);
        }
        // Redo must start at the oldest change that is not on disk.
        let redo = left.iter().filter_map(|page| self.pool.dirty().get(page)).min().copied();
        self.write_back(dirty.into_iter().filter(|page| !left.contains(page)).collect());
        let redo = self.mark_checkpoint(redo.unwrap_or_default())?;
        let oldest = self.open.values().map(|transaction| transaction.begin).min();
        let needed = [Some(redo), oldest, self.log_backed_up].into_iter().flatten().min();
        self.journal.needed_from = needed.map_or(0, |lsn| lsn.0);
        let begin = self.checkpoint;
        self.set_boot_lsns(begin, redo);
        Ok(())
    }

    /// Writes the log to disk, then writes pages to disk.
    pub(super) fn write_back(&mut self, pages: Vec<PageId>) {
        self.journal.close();
        pages.into_iter().for_each(|page| self.pool.flush(page));
    }

    /// Writes the log records of a checkpoint. Redo starts at `redo`, or at the start of the checkpoint if `redo` is
    /// zero; returns the LSN at which redo starts.
    fn mark_checkpoint(&mut self, redo: Lsn) -> Step<Lsn> {
        let oldest = self.open.values().map(|transaction| transaction.begin).min().unwrap_or_default();
        let mut begin = vec![0; 96];
        put(&mut begin, 4, &self.checkpoint.bytes());
        put(&mut begin, 0x18, &self.journal.time());
        put(&mut begin, 0x20, &oldest.bytes());
        put(&mut begin, 0x2A, &self.version.to_le_bytes());
        put(&mut begin, 0x2C, &self.next_transaction.to_le_bytes());
        let begin = self.note(By::Engine, (operation::BEGIN_CHECKPOINT, context::NONE), begin, &[])?;
        self.journal.close();
        self.journal.wait(1 + self.dice.below(20));
        if !self.open.is_empty() {
            let entries = self.open.iter().map(|(number, open)| {
                let mut entry = vec![0; OPEN_BYTES];
                put(&mut entry, 0, &number.to_le_bytes());
                put(&mut entry, 8, &open.begin.bytes());
                put(&mut entry, 0x12, &[1, 4]);
                put(&mut entry, 0x14, &open.last.bytes());
                put(&mut entry, 0x48, &number.to_le_bytes());
                entry
            });
            let entries: Vec<Vec<u8>> = entries.collect();
            self.note(By::Engine, (operation::TRANSACTIONS_AT_CHECKPOINT, context::NONE), vec![0; 24], &entries)?;
            self.journal.close();
        }
        self.note(By::Engine, (operation::TRANSACTIONS_AT_CHECKPOINT, BOOT_WRITE), vec![0; 24], &[])?;
        self.journal.close();
        let redo = if redo == Lsn::default() { begin } else { redo };
        let mut end = vec![0; 136];
        put(&mut end, 4, &begin.bytes());
        put(&mut end, 0x18, &self.journal.time());
        put(&mut end, 0x20, &redo.bytes());
        self.note(By::Engine, (operation::END_CHECKPOINT, context::NONE), end, &[])?;
        self.journal.close();
        self.checkpoint = begin;
        Ok(redo)
    }

    /// Writes the row and page counters of all rowsets to the catalog. SQL Server writes these counters only at
    /// checkpoints. The counters include the changes of open transactions.
    fn write_counts(&mut self) -> Step {
        for number in 0..self.rowsets.len() {
            let rowset = &self.rowsets[number];
            if rowset.is_gone {
                continue;
            }
            let (now, before) = (rowset.counts, self.counted[number]);
            let (id, unit_row, rowset_row) = (rowset.id, rowset.unit_row, rowset.rowset_row);
            let pages = [(now.data, PAGES_DATA), (now.used, PAGES_USED), (now.reserved, PAGES_RESERVED)];
            if (now.data, now.used, now.reserved) != (before.data, before.used, before.reserved) {
                self.write_counters(unit_row, 0, id, &pages)?;
            }
            if now.rows != before.rows {
                self.write_counters(rowset_row, 1, id, &[(now.rows, ROWS)])?;
            }
            self.counted[number] = now;
        }
        Ok(())
    }

    fn write_counters(&mut self, place: (PageId, u16), kind: u32, rowset: u64, values: &[(i64, u32)]) -> Step {
        let entry = Entry::counts(place, kind, rowset, values);
        self.change(By::Engine, entry, Undo::Nothing, |frame| {
            for (value, at) in values {
                put(&mut frame.records[usize::from(place.1)], *at as usize, &value.to_le_bytes());
            }
        })?;
        Ok(())
    }

    /// Sets the LSNs on the boot page. This change is not logged.
    fn set_boot_lsns(&mut self, checkpoint: Lsn, redo: Lsn) {
        let has_redo = self.version >= FIRST_WITH_REDO_LSN;
        let record = &mut self.pool.frame(BOOT_PAGE).records[0];
        put(record, CHECKPOINT_LSN, &checkpoint.bytes());
        if has_redo {
            put(record, REDO_LSN, &redo.bytes());
        }
        self.pool.flush(BOOT_PAGE);
    }

    /// Shuts the database down cleanly, after all transactions have ended.
    pub(super) fn shut_down(&mut self) -> Step {
        self.checkpoint(0)?;
        self.mark_clean();
        Ok(())
    }

    /// Sets the status bit for a clean shutdown, which means that the database needs no recovery.
    pub(super) fn mark_clean(&mut self) {
        let record = &mut self.pool.frame(BOOT_PAGE).records[0];
        if let Some(highest) = record.get_mut(STATUS + 3) {
            *highest |= (CLEAN >> 24) as u8;
        }
        self.pool.flush(BOOT_PAGE);
    }

    /// Brings the files to the state after recovery: all changes are on disk, no transaction is open, and no log must
    /// be redone.
    pub(super) fn settle_files(&mut self) {
        let dirty: Vec<PageId> = self.pool.dirty().keys().copied().collect();
        self.write_back(dirty);
        let end = self.journal.end();
        self.set_boot_lsns(end, end);
        self.mark_clean();
    }
}
