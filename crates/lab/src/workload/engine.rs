//! Changes pages, writes the log records of these changes, and manages transactions.

use std::collections::{BTreeMap, BTreeSet};

use super::catalog::SystemTables;
use super::chain::{Commit, time_text};
use super::ddl::Altered;
use super::entry::{Edit, Entry, context};
use super::frame::Frame;
use super::journal::{Journal, Step};
use super::pool::Pool;
use super::table::{Rowset, TableState};
use crate::bytes::put;
use crate::ids::{PageId, UnitId};
use crate::log::{assemble, operation};
use crate::page::{Lsn, PageVerify, page_type};
use crate::random::Random;
use crate::space::ALLOCATED;

/// A running database.
#[derive(Clone)]
pub(super) struct Engine<'a> {
    pub(super) pool: Pool,
    pub(super) journal: Journal,
    pub(super) rowsets: Vec<Rowset>,
    pub(super) tables: Vec<TableState<'a>>,
    /// The open transactions, by transaction number.
    pub(super) open: BTreeMap<u32, Transaction>,
    pub(super) next_transaction: u32,
    pub(super) dice: Random,
    pub(super) verify: PageVerify,
    pub(super) version: u16,
    /// Whether the run makes checkpoints at random times.
    pub(super) has_checkpoints: bool,
    /// See [`Spec::marked_each`](super::Spec::marked_each).
    pub(super) marked_each: u64,
    /// See [`Spec::ddl_each`](super::Spec::ddl_each).
    pub(super) ddl_each: u64,
    /// Number of tables that DDL has made.
    pub(super) made: u64,
    /// Whether a backup copies pages at the moment.
    pub(super) is_copied: bool,
    /// The base tables; `None` if the workload has no DDL.
    pub(super) system: Option<SystemTables>,
    /// The tables whose schema an open transaction changes, by transaction number.
    pub(super) changing: BTreeMap<u32, Altered<'a>>,
    /// Number of user transactions that have begun.
    pub(super) begun: u64,
    /// LSN of the last BEGIN_CKPT record.
    pub(super) checkpoint: Lsn,
    /// The LSN at which the last log backup ended; `None` under the simple recovery model, which does not keep the log
    /// for backups.
    pub(super) log_backed_up: Option<Lsn>,
    /// The number that the next long value gets.
    pub(super) next_blob: u64,
    /// The commits in order, each with its row changes.
    pub(super) commits: Vec<Commit>,
    /// The counters of each rowset as the catalog currently stores them.
    pub(super) counted: Vec<super::table::Counts>,
}

/// The origin of a change.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    /// The engine, outside of any transaction. The change is never rolled back.
    Engine,
    /// The transaction with this number.
    Transaction(u32),
    /// The rollback of the transaction with this number. The LSN is that of the record to undo next.
    Rollback(u32, Lsn),
}

/// How a change is undone.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    /// The change is not undone separately. Either it is never undone, or it is part of a system transaction that is
    /// undone as a whole.
    Nothing,
    /// The inserted index row becomes a ghost.
    Insert(usize, Vec<u8>),
    /// The ghost becomes a live index row again.
    Delete(usize, Vec<u8>),
    /// The index row is changed back. The bytes are the row that the change to undo has written.
    Modify(usize, Vec<u8>, Edit),
    /// The inserted heap row is removed.
    HeapInsert(usize, PageId, u16),
    /// The deleted heap row is inserted again.
    HeapDelete(usize, PageId, u16, Vec<u8>),
    /// The heap row is changed back.
    HeapModify(usize, PageId, u16, Edit),
    /// A bit of a map page is set to this value. The fields are the context, page, unit, bit number and value.
    Bit(u8, PageId, Option<UnitId>, u32, bool),
    /// A page pointer in the catalog row of a rowset's allocation unit is set to this page. The fields are the rowset,
    /// the offset and the page.
    Pointer(usize, usize, PageId),
    /// The PFS byte of a page in a rowset is set to this value, which makes the page allocated or free.
    Pfs(usize, PageId, u8),
}

/// A transaction.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    /// The name of the transaction. It is a mark, or the name that SQL Server gives to transactions of this kind.
    pub(super) name: String,
    pub(super) begin: Lsn,
    pub(super) last: Lsn,
    /// Whether the transaction is ready to commit but waits for the decision of another database or coordinator.
    pub(super) is_prepared: bool,
    /// The changed pages as they were before the transaction, if it is a system transaction that changes a structure,
    /// such as a page split; otherwise `None`.
    pub(super) before: Option<BTreeMap<PageId, Frame>>,
    /// For each change: its LSN, the LSN of the transaction's previous record, and how to undo the change.
    pub(super) undo: Vec<(Lsn, Lsn, Undo)>,
    /// For each rowset to which the transaction gave its first page: the rowset, and the extent of this page. Other
    /// transactions do not use the rowset until this transaction ends.
    pub(super) new_chains: Vec<(usize, u32)>,
    /// The pages that the transaction changed.
    pub(super) pages: BTreeSet<PageId>,
    /// The rows that the transaction has locked, as table and row number.
    pub(super) locked: BTreeSet<(usize, u64)>,
    /// The number of bytes that must stay free on each page, so that the transaction can be rolled back.
    pub(super) reserved: BTreeMap<PageId, usize>,
    /// The ghosts that the transaction made, as rowset and sort key.
    pub(super) ghosts: BTreeSet<(usize, Vec<u8>)>,
}

impl<'a> Engine<'a> {
    /// Appends the log record of a page change, then changes the page.
    pub(super) fn change(&mut self, by: By, mut entry: Entry, undo: Undo, apply: impl FnOnce(&mut Frame)) -> Step<Lsn> {
        self.mark_changed(entry.page)?;
        let frame = self.pool.frame(entry.page);
        let (owner, before) = (entry.owner.unwrap_or(frame.unit()), frame.lsn());
        put(&mut entry.fixed, 0x20, &owner.object().to_le_bytes());
        put(&mut entry.fixed, 0x24, &before.bytes());
        put(&mut entry.fixed, 0x2E, &owner.index().to_le_bytes());
        let page = entry.page;
        let lsn = self.append(by, entry.fixed, &entry.elements)?;
        let transaction = match by {
            By::Engine => None,
            By::Transaction(number) | By::Rollback(number, _) => self.open.get_mut(&number),
        };
        let frame = self.pool.frame(page);
        if let Some(transaction) = transaction {
            let previous = std::mem::replace(&mut transaction.last, lsn);
            transaction.pages.insert(page);
            if let Some(before) = &mut transaction.before {
                before.entry(page).or_insert_with(|| frame.clone());
            } else if matches!(by, By::Rollback(..)) {
                transaction.undo.pop();
            } else {
                transaction.undo.push((lsn, previous, undo));
            }
        }
        apply(frame);
        frame.set_lsn(lsn);
        self.pool.touch(page, lsn);
        Ok(lsn)
    }

    /// Appends a log record that does not change a page.
    pub(super) fn note(
        &mut self,
        by: By,
        (operation, context): (u8, u8),
        mut fixed: Vec<u8>,
        elements: &[Vec<u8>],
    ) -> Step<Lsn> {
        put(&mut fixed, 0x16, &[operation, context]);
        let lsn = self.append(by, fixed, elements)?;
        if let By::Transaction(number) = by
            && let Some(transaction) = self.open.get_mut(&number)
        {
            transaction.last = lsn;
        }
        Ok(lsn)
    }

    fn append(&mut self, by: By, mut fixed: Vec<u8>, elements: &[Vec<u8>]) -> Step<Lsn> {
        let last = |number: u32| self.open.get(&number).map(|transaction| transaction.last).unwrap_or_default();
        let of_transaction = match by {
            By::Engine => None,
            By::Transaction(number) => Some((number, 2u16, last(number))),
            By::Rollback(number, next) => Some((number, 3, next)),
        };
        if let Some((number, flags, previous)) = of_transaction {
            put(&mut fixed, 4, &previous.bytes());
            put(&mut fixed, 0x0E, &flags.to_le_bytes());
            put(&mut fixed, 0x10, &number.to_le_bytes());
        }
        self.journal.append(assemble(fixed, elements))
    }

    /// Sets the bit of a page's extent in the differential map if it is not set yet.
    fn mark_changed(&mut self, page: PageId) -> Step {
        let map = PageId::new(page.file, page.page / crate::ids::GAM_INTERVAL * crate::ids::GAM_INTERVAL + 6);
        if self.pool.frame(page).kind() == page_type::DIFFERENTIAL {
            return Ok(());
        }
        let extent = page.page % crate::ids::GAM_INTERVAL / crate::ids::EXTENT;
        if self.bit(map, extent) {
            return Ok(());
        }
        self.set_bit(By::Engine, context::DIFFERENTIAL_MAP, (map, None), extent, true)
    }

    /// Begins a transaction. If `changes_structure` is true, this is a system transaction, such as a page split, which
    /// is rolled back as a whole.
    pub(super) fn begin(&mut self, name: &str, changes_structure: bool) -> Step<u32> {
        let number = self.next_transaction;
        let mut fixed = vec![0; if self.version < 700 { 64 } else { 76 }];
        put(&mut fixed, 0x0E, &2u16.to_le_bytes());
        put(&mut fixed, 0x10, &number.to_le_bytes());
        put(&mut fixed, 0x18, &51u16.to_le_bytes());
        put(&mut fixed, 0x28, &self.journal.time());
        let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let begin = self.note(By::Engine, (operation::BEGIN_TRANSACTION, context::NONE), fixed, &[units, vec![1]])?;
        self.next_transaction += 1;
        let transaction = Transaction {
            name: name.to_owned(),
            begin,
            last: begin,
            is_prepared: false,
            before: changes_structure.then(BTreeMap::new),
            undo: Vec::new(),
            new_chains: Vec::new(),
            pages: BTreeSet::new(),
            locked: BTreeSet::new(),
            reserved: BTreeMap::new(),
            ghosts: BTreeSet::new(),
        };
        self.open.insert(number, transaction);
        Ok(number)
    }

    /// Commits a transaction. If it is a user transaction, the log is also written to disk.
    pub(super) fn commit(&mut self, number: u32) -> Step {
        self.free_dropped(number)?;
        let time = self.journal.time();
        let lsn = self.end(number, operation::COMMIT)?;
        if let Some(transaction) = self.open.remove(&number)
            && transaction.before.is_none()
        {
            let changes =
                transaction.locked.into_iter().filter_map(|(table, row)| self.tables[table].settle(table, row));
            let mut changes: Vec<_> = changes.collect();
            changes.extend(self.settle_schema(number));
            let (lsn, time) = (lsn.to_string(), time_text(time));
            self.commits.push(Commit { name: transaction.name, lsn, time, changes });
            self.journal.close();
        }
        Ok(())
    }

    /// Writes the log record which says that a distributed transaction is ready to commit.
    pub(super) fn prepare(&mut self, number: u32) -> Step {
        let Some(transaction) = self.open.get_mut(&number) else { return Ok(()) };
        let begin = transaction.begin;
        let mut fixed = vec![0; 64];
        put(&mut fixed, 0x2C, &begin.bytes());
        put(&mut fixed, 0x38, &self.journal.time());
        self.note(By::Transaction(number), (operation::PREPARE, context::NONE), fixed, &[Vec::new()])?;
        if let Some(transaction) = self.open.get_mut(&number) {
            transaction.is_prepared = true;
        }
        Ok(())
    }

    /// Rolls a transaction back.
    pub(super) fn roll_back(&mut self, number: u32) -> Step {
        while let Some((previous, undo)) = self.next_undo(number) {
            self.take_back(number, previous, undo)?;
        }
        self.end(number, operation::ABORT)?;
        if let Some(transaction) = self.open.remove(&number) {
            for &(table, row) in &transaction.locked {
                self.tables[table].return_to_settled(row);
            }
            self.restore_schema(number);
        }
        Ok(())
    }

    /// Returns the newest change that must still be undone in a transaction, and the LSN of the transaction's record
    /// before this change. The change stays in the list until its compensation record is in the log.
    fn next_undo(&mut self, number: u32) -> Option<(Lsn, Undo)> {
        let undo = &mut self.open.get_mut(&number)?.undo;
        while matches!(undo.last(), Some((.., Undo::Nothing))) {
            undo.pop();
        }
        undo.last().map(|(_, previous, undo)| (*previous, undo.clone()))
    }

    /// Undoes an incomplete system transaction by restoring all its pages. No other transaction can have changed these
    /// pages in the meantime.
    pub(super) fn restore(&mut self, number: u32) {
        let Some(transaction) = self.open.remove(&number) else { return };
        for (page, before) in transaction.before.into_iter().flatten() {
            if before.kind() != page_type::DIFFERENTIAL {
                self.pool.replace(page, before);
                self.pool.touch(page, transaction.last);
            }
        }
        for at in 0..self.rowsets.len() {
            let (iam, mut extents) = (self.rowsets[at].iam, self.rowsets[at].extents.clone());
            if iam == PageId::NONE {
                continue;
            }
            extents.retain(|&extent| self.bit(iam, extent));
            self.rowsets[at].extents = extents;
        }
    }

    /// Rolls back all open transactions, starting with the newest change.
    pub(super) fn recover(&mut self) -> Step {
        let structural = self.open.iter().filter(|(_, transaction)| transaction.before.is_some());
        for number in structural.map(|(&number, _)| number).collect::<Vec<_>>() {
            self.restore(number);
        }
        loop {
            let newest = self.open.iter().filter_map(|(&number, open)| Some((open.undo.last()?.0, number)));
            let Some((_, number)) = newest.max() else { break };
            if let Some((previous, undo)) = self.next_undo(number) {
                self.take_back(number, previous, undo)?;
            }
        }
        // A change of a page's fullness in its PFS byte has a log record of its own, which a rollback does not undo.
        // The fullness must therefore be set again below.
        let pages: Vec<PageId> = self.open.values().flat_map(|transaction| transaction.pages.clone()).collect();
        let chains: Vec<(usize, u32)> = self.open.values().flat_map(|open| open.new_chains.clone()).collect();
        while let Some(&number) = self.open.keys().next() {
            self.roll_back(number)?;
        }
        for &(rowset, extent) in &chains {
            self.drop_chain(rowset, extent)?;
        }
        for page in pages {
            let unit = self.pool.frame(page).unit();
            if self.rowsets.iter().any(|rowset| rowset.unit == unit && rowset.is_heap)
                && self.pfs(page) & ALLOCATED != 0
            {
                self.set_fullness(page)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, number: u32, operation: u8) -> Step<Lsn> {
        let begin = self.open.get(&number).map(|transaction| transaction.begin).unwrap_or_default();
        let mut fixed = vec![0; 80];
        put(&mut fixed, 4, &begin.bytes());
        put(&mut fixed, 0x0E, &2u16.to_le_bytes());
        put(&mut fixed, 0x10, &number.to_le_bytes());
        put(&mut fixed, 0x18, &self.journal.time());
        put(&mut fixed, 0x20, &begin.bytes());
        self.note(By::Engine, (operation, context::NONE), fixed, &[])
    }

    /// Returns the number of free bytes on a page, minus the bytes that are reserved for rollbacks. Bytes are reserved
    /// only on heap pages, because an index row can be moved to another page.
    pub(super) fn room(&mut self, page: PageId) -> usize {
        let reserved = self.open.values().filter_map(|transaction| transaction.reserved.get(&page));
        let reserved: usize = reserved.sum();
        self.pool.frame(page).room().saturating_sub(reserved)
    }

    /// Keeps the bytes that a transaction freed on a page from being used, because a rollback of the transaction would
    /// need these bytes again.
    pub(super) fn reserve(&mut self, by: By, page: PageId, bytes: usize) {
        if let By::Transaction(number) = by
            && let Some(transaction) = self.open.get_mut(&number)
        {
            *transaction.reserved.entry(page).or_default() += bytes;
        }
    }

    /// Describes the lock for a row change: the object, the kind of lock, and a hash of the key.
    pub(super) fn lock(&self, rowset: usize, key: &[u8]) -> Vec<u8> {
        let rowset = &self.rowsets[rowset];
        let mut lock = vec![1, 1, 0, 12, 0, 0];
        lock.extend(rowset.object.to_le_bytes());
        if rowset.is_heap {
            lock.extend([0, 0, 1, 2, 0, 4, 2, 3, 0, 4]);
            return lock;
        }
        lock.extend([0, 0, 1, 2, 0, 4, 2, 4, 0, 10]);
        let hash = key.iter().fold(rowset.id, |hash, &byte| crate::random::mix(hash ^ u64::from(byte)));
        lock.extend(&hash.to_le_bytes()[..6]);
        lock
    }
}
