//! ALTER TABLE: adds and drops columns. Only the catalog changes; a row gets its new form when it is written again.

use std::borrow::Cow;

use super::create::layouts;
use crate::build::table_seed;
use crate::description::{Column, Table, Values};
use crate::types::SqlType;
use crate::values::Rows;
use crate::workload::engine::{By, Engine};
use crate::workload::journal::Step;
use crate::workload::key::KeyLayout;

/// The most columns of a table, dropped ones included.
const MOST_COLUMNS: usize = 14;
/// The fewest columns that DROP COLUMN leaves.
const LEAST_COLUMNS: usize = 3;

/// The columns that can be dropped: no index has them.
fn droppable(table: &Table) -> Vec<usize> {
    let is_in = |at: usize| {
        let mut indexes = table.clustered.iter().chain(&table.indexes);
        indexes.any(|index| index.keys.iter().any(|&(key, _)| key == at) || index.included.contains(&at))
    };
    let kept = || table.columns.iter().enumerate().filter(|(_, column)| !column.is_dropped());
    if kept().count() <= LEAST_COLUMNS {
        return Vec::new();
    }
    // The long values of a dropped LOB column would stay.
    kept().filter(|&(at, column)| at > 0 && !column.ty.is_lob() && !is_in(at)).map(|(at, _)| at).collect()
}

impl Engine<'_> {
    /// ALTER TABLE ADD of a nullable column. Rows that exist lack the column, so that it is NULL in them.
    pub(super) fn add_column(&mut self) -> Step {
        let fits = |state: &super::TableState<'_>| state.table.columns.len() < MOST_COLUMNS;
        let Some(table) = self.any_table(0, fits) else { return Ok(()) };
        let text = |most| Values::Text { least: 0, most };
        let number = |high| Values::Uniform { low: 0, high };
        let (ty, values) = match self.dice.below(5) {
            0 => (SqlType::INT, number(1 << 30)),
            1 => (SqlType::varchar(60), text(50)),
            2 => (SqlType::nvarchar(40), text(30)),
            3 => (SqlType::DATETIME, number(900_000)),
            _ => (SqlType::BIT, number(1)),
        };
        self.alter(table, |table| {
            let name = format!("added_{}", table.columns.len() + 1);
            table.columns.push(Column::new(&name, ty, values).nullable(40));
        })
    }

    /// ALTER TABLE DROP COLUMN. Rows that exist keep the bytes of the column.
    pub(super) fn drop_column(&mut self) -> Step {
        let fits = |state: &super::TableState<'_>| !droppable(&state.table).is_empty();
        let Some(table) = self.any_table(0, fits) else { return Ok(()) };
        let columns = droppable(&self.tables[table].table);
        let at = columns[self.dice.below(columns.len() as u64) as usize];
        self.alter(table, |table| table.columns[at].life.until = Some(0))
    }

    /// Changes the columns of a table in a transaction of its own.
    fn alter(&mut self, table: usize, change: impl FnOnce(&mut Table)) -> Step {
        let number = self.begin_ddl("ALTER TABLE", table)?;
        let end = self.any_end(true);
        let before = self.table_rows(table);
        change(self.tables[table].table.to_mut());
        self.lay_out(table);
        let after = self.table_rows(table);
        self.change_catalog(By::Transaction(number), &before, &after)?;
        self.end_ddl(number, end)
    }

    /// Lays out the rows of a heap or clustered index anew after the columns of its table changed.
    pub(super) fn lay_out(&mut self, table: usize) {
        let Some(system) = &self.system else { return };
        let state = &mut self.tables[table];
        let columns = state.table.columns.len();
        state.ids.defaults.resize(columns, None);
        state.source = Rows::owned(&state.table, table_seed(&system.description, table));
        if let Some(layout) = layouts(&state.table, &system.description).into_iter().next() {
            self.rowsets[state.base].keys = KeyLayout::new(layout, columns);
        }
    }

    /// Notes that the rows of a table no longer keep the space of dropped columns.
    pub(super) fn forget_dropped_columns(&mut self, table: usize) {
        if self.tables[table].table.columns.iter().all(|column| !column.is_dropped() || column.life.is_gone) {
            return;
        }
        let table_of = &mut self.tables[table].table;
        for column in Cow::to_mut(table_of).columns.iter_mut().filter(|column| column.is_dropped()) {
            column.life.is_gone = true;
        }
        self.lay_out(table);
    }
}
