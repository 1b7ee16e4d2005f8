//! DDL statements and changes of the size of the data file, between and among the user transactions. A statement holds
//! a lock on its table until its transaction ends, as a schema modification lock of SQL Server does: no other
//! transaction uses the table.

mod alter;
mod create;
mod free;
mod rebuild;
mod resize;

use std::collections::BTreeMap;

use super::Values;
use super::chain::RowChange;
use super::engine::{By, Engine};
use super::journal::Step;
use super::session::MOST_OPEN;
use super::table::{Counts, Live, Rowset, TableState};
use crate::ids::PageId;

/// The percentage of DDL transactions that are rolled back at once. `OPEN_OR_ROLLED_BACK` is the percentage of these and
/// of those that stay open while other transactions run.
const ROLLED_BACK: u64 = 15;
const OPEN_OR_ROLLED_BACK: u64 = 35;
/// The percentage of DDL statements after which the ghosts of the base tables are removed.
const CLEANED: u64 = 40;

/// A table before an open transaction changed its schema.
#[derive(Clone)]
pub(super) struct Altered<'a> {
    table: usize,
    /// The table; `None` if the transaction made it.
    before: Option<TableState<'a>>,
    /// The rowsets of the table with the counters that the catalog stores.
    rowsets: Vec<(usize, Rowset, Counts)>,
    /// The rowsets whose pages are freed just before the transaction commits.
    to_free: Vec<usize>,
}

/// What becomes of a transaction with DDL in the step in which it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Committed,
    RolledBack,
    /// It stays open while other transactions run.
    LeftOpen,
}

/// The values of rows by row number.
fn values(state: &TableState<'_>, rows: &BTreeMap<u64, Live>) -> BTreeMap<u64, Values> {
    rows.iter().map(|(&row, live)| (row, state.values(live))).collect()
}

impl<'a> Engine<'a> {
    /// Runs a DDL statement or changes the size of the data file. At most one transaction with DDL is open at a time.
    pub(super) fn run_ddl(&mut self) -> Step {
        if !self.changing.is_empty() {
            return Ok(());
        }
        match self.dice.below(100) {
            0..22 => self.create_table()?,
            22..32 => self.drop_table()?,
            32..47 => self.truncate_table()?,
            47..65 => self.rebuild()?,
            65..78 => self.add_column()?,
            78..86 => self.drop_column()?,
            86..90 => self.grow_file().map(|_| ())?,
            90..94 => self.shrink_file()?,
            _ => self.bulk_load()?,
        }
        if self.changing.is_empty() && self.dice.chance(CLEANED) {
            self.clean_catalog()?;
        }
        Ok(())
    }

    /// Whether transactions may change rows of a table: it exists, and no open transaction changes its schema.
    pub(super) fn is_usable(&self, table: usize) -> bool {
        !self.tables[table].is_dropped && self.changing.values().all(|altered| altered.table != table)
    }

    /// A table from `from` on for which `is_wanted` is true, and which no open transaction uses.
    fn any_table(&mut self, from: usize, is_wanted: impl Fn(&TableState<'_>) -> bool) -> Option<usize> {
        let is_used = |table: usize| {
            let base = self.tables[table].base;
            self.open.values().any(|open| {
                open.locked.iter().any(|&(locked, _)| locked == table)
                    || open.new_chains.iter().any(|&(rowset, _)| rowset == base)
            })
        };
        let free = |&table: &usize| self.is_usable(table) && is_wanted(&self.tables[table]) && !is_used(table);
        let all: Vec<usize> = (from..self.tables.len()).filter(free).collect();
        all.get(self.dice.below(all.len() as u64) as usize).copied()
    }

    /// The rowsets of a table: the heap or clustered index, the nonclustered indexes, and the LOB unit.
    fn rowsets_of(&self, table: usize) -> Vec<usize> {
        let state = &self.tables[table];
        let lob = state.lob.map(|(lob, _)| lob);
        std::iter::once(state.base).chain(state.indexes.iter().copied()).chain(lob).collect()
    }

    /// Begins a transaction that changes the schema of a table.
    fn begin_ddl(&mut self, name: &str, table: usize) -> Step<u32> {
        let number = self.begin(name, false)?;
        let rowsets = self.rowsets_of(table).into_iter();
        let rowsets = rowsets.map(|at| (at, self.rowsets[at].clone(), self.counted[at])).collect();
        self.changing
            .insert(number, Altered { table, before: Some(self.tables[table].clone()), rowsets, to_free: Vec::new() });
        Ok(number)
    }

    /// Decides what becomes of the next transaction with DDL. It stays open only if `may_stay_open` is true.
    fn any_end(&mut self, may_stay_open: bool) -> End {
        match self.dice.below(100) {
            0..ROLLED_BACK => End::RolledBack,
            ROLLED_BACK..OPEN_OR_ROLLED_BACK if may_stay_open && self.open.len() < MOST_OPEN => End::LeftOpen,
            _ => End::Committed,
        }
    }

    fn end_ddl(&mut self, number: u32, end: End) -> Step {
        match end {
            End::Committed => self.commit(number),
            End::RolledBack => self.roll_back(number),
            End::LeftOpen => Ok(()),
        }
    }

    /// Frees the pages of a rowset that a transaction drops: at once, or just before the commit if the transaction
    /// stays open. A backup that is made while it is open must have the pages, which a rollback needs, and backups have
    /// no free extents.
    fn free_rowset(&mut self, number: u32, rowset: usize, end: End) -> Step {
        match self.changing.get_mut(&number).filter(|_| end == End::LeftOpen) {
            Some(altered) => altered.to_free.push(rowset),
            None => self.free_all(By::Transaction(number), rowset)?,
        }
        Ok(())
    }

    /// Frees what a transaction has dropped, before it commits.
    pub(super) fn free_dropped(&mut self, number: u32) -> Step {
        let dropped = self.changing.get_mut(&number).map(|altered| std::mem::take(&mut altered.to_free));
        dropped.into_iter().flatten().try_for_each(|rowset| self.free_all(By::Transaction(number), rowset))
    }

    /// Makes the schema that a transaction changed the committed one; returns the changes of rows.
    pub(super) fn settle_schema(&mut self, number: u32) -> Vec<RowChange> {
        let Some(Altered { table, before, .. }) = self.changing.remove(&number) else { return Vec::new() };
        let state = &mut self.tables[table];
        let mut before = before.map(|old| values(&old, &old.settled)).unwrap_or_default();
        state.settled = if state.is_dropped { BTreeMap::new() } else { state.rows.clone() };
        let after = values(state, &state.settled);
        let mut changes = Vec::new();
        for (row, after) in after {
            let before = before.remove(&row);
            if before.as_ref() != Some(&after) {
                changes.push(RowChange { table, before, after: Some(after) });
            }
        }
        changes.extend(before.into_values().map(|before| RowChange { table, before: Some(before), after: None }));
        changes
    }

    /// Restores the table whose schema a transaction changed, after the transaction was rolled back.
    pub(super) fn restore_schema(&mut self, number: u32) {
        let Some(altered) = self.changing.remove(&number) else { return };
        for (at, rowset, counted) in altered.rowsets {
            let (now, stored) = (&self.rowsets[at], self.counted[at]);
            // A checkpoint may have written newer counters to the catalog rows that are not replaced.
            let rows = if now.id == rowset.id { stored.rows } else { counted.rows };
            self.counted[at] = if now.unit == rowset.unit { stored } else { counted };
            self.counted[at].rows = rows;
            self.rowsets[at] = rowset;
        }
        match altered.before {
            Some(before) => self.tables[altered.table] = before,
            None => {
                self.tables[altered.table].is_dropped = true;
                for at in self.rowsets_of(altered.table) {
                    self.rowsets[at].is_gone = true;
                }
            }
        }
        self.find_catalog_rows();
    }

    /// Inserts rows into a table in a transaction of its own. If the table has a LOB unit without pages, at least one row
    /// has a long value, because the rollback of a later transaction that makes the first page of the unit leaves extents
    /// that recovery cannot find.
    fn insert_rows(&mut self, table: usize, rows: u64) -> Step {
        let number = self.begin("INSERT", false)?;
        for _ in 0..rows {
            self.insert(number, table)?;
        }
        while self.tables[table].lob.is_some_and(|(lob, _)| self.rowsets[lob].iam == PageId::NONE) {
            self.insert(number, table)?;
        }
        self.commit(number)
    }

    /// Writes the IDs that were assigned last to the boot page. A rollback does not take them back.
    fn store_ids(&mut self) -> Step {
        const LAST_OBJECT: usize = 0x28;
        const NEXT_UNIT: usize = 0x2E0;
        let Some(system) = &self.system else { return Ok(()) };
        let (object, unit) = (system.ids.last_object(), system.ids.unit_sequence() as u32);
        self.set_boot_bytes(LAST_OBJECT, &object.to_le_bytes())?;
        self.set_boot_bytes(NEXT_UNIT, &unit.to_le_bytes())
    }

    fn set_boot_bytes(&mut self, at: usize, new: &[u8]) -> Step {
        use super::checkpoint::BOOT_PAGE;
        use super::engine::Undo;
        use super::entry::{Entry, context};
        let old = self.pool.frame(BOOT_PAGE).records[0].get(at..at + new.len()).map(<[u8]>::to_vec);
        let Some(old) = old.filter(|old| old != new) else { return Ok(()) };
        let entry = Entry::bytes(context::BOOT, (BOOT_PAGE, 0), at, old, new);
        self.change(By::Engine, entry, Undo::Nothing, |frame| crate::bytes::put(&mut frame.records[0], at, new))?;
        Ok(())
    }
}
