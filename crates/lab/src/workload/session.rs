//! Runs several user transactions at the same time. A transaction changes only rows that no other transaction has
//! locked.

use super::engine::{By, Engine, Transaction};
use super::journal::Step;
use super::table::Live;
use crate::ids::{PageId, RowId};
use crate::record;
use crate::row::{Kind, Row};

/// The most transactions that are open at the same time.
pub(super) const MOST_OPEN: usize = 4;
/// The percentage of steps that are checkpoints. `CLEANUPS`, `WRITES`, `BEGINS` and `ENDS` are the percentages of other
/// kinds of steps. All remaining steps change a row.
const CHECKPOINTS: u64 = 2;
const CLEANUPS: u64 = 4;
const WRITES: u64 = 6;
const BEGINS: u64 = 10;
const ENDS: u64 = 12;
/// The percentage of commits that belong to distributed transactions. A distributed transaction is prepared before it
/// commits.
const PREPARED: u64 = 5;
/// A long value stays in its row if the record has at most this number of bytes.
const MOST_IN_ROW: usize = 8000;
/// The percentage of transactions that are rolled back.
const ROLLBACKS: u64 = 30;

impl Engine<'_> {
    /// Runs until this number of transactions have ended. At that point, further transactions may still be open.
    pub(super) fn run(&mut self, transactions: u64) -> Step {
        let mut ended = 0;
        while ended < transactions {
            ended += u64::from(self.one_step()?);
        }
        Ok(())
    }

    /// Runs one step; returns whether a transaction ended.
    pub(super) fn one_step(&mut self) -> Step<bool> {
        self.journal.wait(1 + self.dice.below(300));
        let mut dice = self.dice.below(100);
        let mut is = |percent: u64| {
            let hit = dice < percent;
            dice = dice.wrapping_sub(percent);
            hit
        };
        if is(CHECKPOINTS) {
            if !self.has_checkpoints {
                return Ok(false);
            }
            let leaves = if self.dice.chance(30) { 1 + self.dice.below(4) as usize } else { 0 };
            self.checkpoint(leaves)?;
        } else if is(CLEANUPS) {
            self.clean_up()?;
        } else if is(WRITES) {
            self.write_one();
        } else if is(BEGINS) && self.open.len() < MOST_OPEN || self.open.is_empty() {
            self.begin_of_a_user()?;
        } else if is(ENDS) {
            let number = self.any_open();
            // A transaction that created an IAM chain is not rolled back here, because it is unknown how SQL Server
            // frees a new chain while the database runs.
            let has_new_chain = self.open.get(&number).is_some_and(|transaction| !transaction.new_chains.is_empty());
            if self.dice.chance(ROLLBACKS) && !has_new_chain {
                self.roll_back(number)?;
            } else {
                if self.dice.chance(PREPARED) && !self.changing.contains_key(&number) {
                    self.prepare(number)?;
                }
                self.commit(number)?;
            }
            return Ok(true);
        } else {
            let number = self.any_open();
            self.change_a_row(number)?;
        }
        Ok(false)
    }

    fn begin_of_a_user(&mut self) -> Step<u32> {
        const NAMES: u64 = 3;
        self.begun += 1;
        if self.ddl_each > 0 && self.begun.is_multiple_of(self.ddl_each) {
            self.run_ddl()?;
        }
        match self.begun.checked_div(self.marked_each) {
            Some(number) if self.begun.is_multiple_of(self.marked_each) => {
                self.begin(&format!("mark {}", 1 + (number - 1) % NAMES), false)
            }
            _ => self.begin("user_transaction", false),
        }
    }

    /// Commits all open transactions.
    pub(super) fn end_all(&mut self) -> Step {
        while let Some(&number) = self.open.keys().next() {
            self.commit(number)?;
        }
        Ok(())
    }

    fn any_open(&mut self) -> u32 {
        let numbers: Vec<u32> = self.open.keys().copied().collect();
        numbers.get(self.dice.below(numbers.len() as u64) as usize).copied().unwrap_or_default()
    }

    /// Writes a random changed page to disk, independently of checkpoints.
    fn write_one(&mut self) {
        let pages: Vec<PageId> = self.pool.dirty().keys().copied().collect();
        if let Some(&page) = pages.get(self.dice.below(pages.len() as u64) as usize) {
            self.write_back(vec![page]);
        }
    }

    /// Removes the ghosts of a random index page.
    fn clean_up(&mut self) -> Step {
        let table = self.dice.below(self.tables.len() as u64) as usize;
        if !self.is_usable(table) {
            return Ok(());
        }
        let state = &self.tables[table];
        let rowsets: Vec<usize> = std::iter::once(state.base).chain(state.indexes.iter().copied()).collect();
        let rowset = rowsets[self.dice.below(rowsets.len() as u64) as usize];
        let Some((_, live)) = self.any_row(table).filter(|_| !self.rowsets[rowset].is_heap) else { return Ok(()) };
        let record = self.record(rowset, &live);
        let (page, _) = self.find(rowset, &record).leaf();
        self.expunge(page)
    }

    fn any_row(&mut self, table: usize) -> Option<(u64, Live)> {
        let from = self.dice.below(self.tables[table].next);
        let rows = &self.tables[table].rows;
        let found = rows.range(from..).next().or_else(|| rows.iter().next());
        found.map(|(&number, live)| (number, live.clone()))
    }

    /// Locks a row for a transaction; returns false if another transaction has locked it.
    fn lock_row(&mut self, number: u32, row: (usize, u64)) -> bool {
        if self.open.iter().any(|(&other, transaction)| other != number && transaction.locked.contains(&row)) {
            return false;
        }
        if let Some(transaction) = self.open.get_mut(&number) {
            transaction.locked.insert(row);
        }
        true
    }

    fn change_a_row(&mut self, number: u32) -> Step {
        let table = self.dice.below(self.tables.len() as u64) as usize;
        if !self.is_usable(table) {
            return Ok(());
        }
        let base = self.tables[table].base;
        let is_new = |open: &Transaction| open.new_chains.iter().any(|&(rowset, _)| rowset == base);
        if self.open.iter().any(|(&other, open)| other != number && is_new(open)) {
            return Ok(());
        }
        match self.dice.below(100) {
            0..40 => self.insert(number, table),
            40..60 => match self.any_row(table) {
                Some((row, live)) if self.lock_row(number, (table, row)) => self.delete(number, table, (row, live)),
                _ => Ok(()),
            },
            _ => match self.any_row(table) {
                Some((row, live)) if self.lock_row(number, (table, row)) => self.update(number, table, (row, live)),
                _ => Ok(()),
            },
        }
    }

    /// The leaf record of a row in a heap or index.
    pub(super) fn record(&self, rowset: usize, live: &Live) -> Vec<u8> {
        let mut record = Vec::new();
        let layout = &self.rowsets[rowset].keys.layout;
        let lob = self.tables.iter().find(|state| state.base == rowset).and_then(|state| state.lob);
        let stored = live.stored(lob.map(|(_, column)| column));
        record::leaf(layout, &stored, &live.extra(), Kind::Primary, &mut record);
        record
    }

    /// Stores the long value of a new row on LOB pages if the row would otherwise be too long for its page. The row
    /// then has a pointer.
    fn store_long(&mut self, by: By, table: usize, live: &mut Live) -> Step {
        let Some((lob, column)) = self.tables[table].lob.filter(|_| live.pointer.is_none()) else { return Ok(()) };
        if self.record(self.tables[table].base, live).len() > MOST_IN_ROW {
            let value = live.values.value(column).unwrap_or_default().to_vec();
            live.pointer = Some(self.store_value(by, lob, &value)?);
        }
        Ok(())
    }

    /// Frees the long value of a row that is deleted or changed.
    fn free_long(&mut self, by: By, table: usize, live: &Live) -> Step {
        match (self.tables[table].lob, &live.pointer) {
            (Some((lob, _)), Some(root)) => self.free_value(by, lob, root),
            _ => Ok(()),
        }
    }

    /// Inserts a new row, or inserts a deleted row again.
    pub(super) fn insert(&mut self, number: u32, table: usize) -> Step {
        let again = self.dice.chance(20);
        let state = &self.tables[table];
        let gone = state.gone.iter().filter(|(row, _)| !state.rows.contains_key(row)).map(|(&row, &of)| (row, of));
        let gone: Vec<(u64, u32)> = if again { gone.collect() } else { Vec::new() };
        let back = gone.get(self.dice.below(gone.len() as u64) as usize).copied();
        let (row, uniquifier) = match back {
            Some(back) => back,
            None => {
                let state = &mut self.tables[table];
                let row = state.next;
                state.next += 1;
                (row, state.uniquifier(row))
            }
        };
        if !self.lock_row(number, (table, row)) {
            return Ok(());
        }
        let (mut values, other) = (Row::default(), self.dice.next() >> 1);
        self.tables[table].source.fill(row, &mut values);
        if back.is_some() {
            values = self.tables[table].blend(&values, other, &mut self.dice);
        }
        self.tables[table].gone.insert(row, uniquifier);
        let by = By::Transaction(number);
        let base = self.tables[table].base;
        let mut live = Live { values, uniquifier, at: RowId::default(), pointer: None };
        self.store_long(by, table, &mut live)?;
        if self.rowsets[base].is_heap {
            let record = self.heap_record(base, &live.values, Kind::Primary);
            live.at = self.insert_in_heap(by, base, &record, PageId::NONE)?;
        } else {
            self.insert_row(by, base, &self.record(base, &live))?;
        }
        for rowset in self.tables[table].indexes.clone() {
            self.insert_row(by, rowset, &self.record(rowset, &live))?;
        }
        self.tables[table].rows.insert(row, live);
        Ok(())
    }

    fn delete(&mut self, number: u32, table: usize, (row, live): (u64, Live)) -> Step {
        let by = By::Transaction(number);
        let base = self.tables[table].base;
        self.free_long(by, table, &live)?;
        if self.rowsets[base].is_heap {
            self.delete_from_heap(by, base, live.at)?;
        } else {
            self.delete_row(by, base, &self.record(base, &live))?;
        }
        for rowset in self.tables[table].indexes.clone() {
            self.delete_row(by, rowset, &self.record(rowset, &live))?;
        }
        let state = &mut self.tables[table];
        state.rows.remove(&row);
        state.gone.insert(row, live.uniquifier);
        Ok(())
    }

    fn update(&mut self, number: u32, table: usize, (row, live): (u64, Live)) -> Step {
        let by = By::Transaction(number);
        let base = self.tables[table].base;
        let other = self.dice.next() >> 1;
        let values = self.tables[table].blend(&live.values, other, &mut self.dice);
        let mut new = Live { values, ..live.clone() };
        let long =
            |of: &Live| self.tables[table].lob.and_then(|(_, column)| of.values.value(column).map(<[u8]>::to_vec));
        if long(&live) != long(&new) {
            self.free_long(by, table, &live)?;
            new.pointer = None;
        }
        self.store_long(by, table, &mut new)?;
        if self.rowsets[base].is_heap {
            if !self.update_in_heap(by, base, live.at, &new.values)? {
                return Ok(());
            }
        } else {
            self.modify_row(by, base, &self.record(base, &new))?;
        }
        for rowset in self.tables[table].indexes.clone() {
            let (before, after) = (self.record(rowset, &live), self.record(rowset, &new));
            let keys = &self.rowsets[rowset].keys;
            if keys.sort_key(&before, 0) == keys.sort_key(&after, 0) {
                self.modify_row(by, rowset, &after)?;
            } else {
                self.delete_row(by, rowset, &before)?;
                self.insert_row(by, rowset, &after)?;
            }
        }
        self.tables[table].rows.insert(row, new);
        Ok(())
    }
}
