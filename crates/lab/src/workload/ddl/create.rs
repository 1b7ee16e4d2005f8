//! CREATE TABLE and DROP TABLE.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Altered, End};
use crate::build::table_seed;
use crate::catalogue::TableIds;
use crate::description::{Column, Description, Index, Table, Values};
use crate::ids::{PageId, UnitId};
use crate::layout::Layout;
use crate::rowset;
use crate::types::SqlType;
use crate::values::Rows;
use crate::workload::catalog::TableRows;
use crate::workload::engine::{By, Engine};
use crate::workload::journal::Step;
use crate::workload::key::KeyLayout;
use crate::workload::table::{Counts, Rowset, TableState};

/// The number of tables of the user that exist at the start. DROP TABLE leaves them alone.
pub(super) const FIRST_TABLES: usize = 6;
/// The most tables that exist at the same time because DDL made them.
const MOST_MADE: usize = 12;

/// The shape of a table: a heap, a clustered index with a unique key and one with long values as well, or a clustered
/// index whose rows need uniquifiers.
fn shape(number: u64, kind: u64) -> Table {
    let name = format!("made_{number}");
    let text = |least, most| Values::Text { least, most };
    let mut columns = vec![
        Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
        Column::new("kind", SqlType::INT, Values::Uniform { low: 1, high: 25 }),
        Column::new("label", SqlType::varchar(120), text(5, 110)),
        Column::new("amount", SqlType::BIGINT, Values::Uniform { low: 0, high: 1 << 40 }).nullable(20),
        Column::new("comment", SqlType::nvarchar(90), text(0, 80)).nullable(35),
    ];
    if kind == 2 {
        columns.push(Column::new("body", SqlType::VARCHAR_MAX, text(10, 30_000)).nullable(10));
    }
    let clustered = match kind {
        0 => None,
        1 | 2 => Some(Index::on(&format!("pk_{name}"), &[0]).primary_key()),
        _ => Some(Index::on(&format!("cx_{name}"), &[1])),
    };
    let second =
        if kind == 1 { Index::on(&format!("ix_{name}_label"), &[2]).including(&[3]) } else { Index::default() };
    let mut indexes = vec![Index::on(&format!("ix_{name}_amount"), &[3])];
    indexes.extend((kind == 1).then_some(second));
    Table { name, columns, clustered, indexes, ..Table::default() }
}

/// The layouts of the heap or clustered index, and of the nonclustered indexes.
pub(super) fn layouts(table: &Table, description: &Description) -> Vec<Layout> {
    let base = rowset::base(table, description.collation, description.version);
    let indexes = table.indexes.iter().map(|index| rowset::nonclustered(table, index, description));
    std::iter::once(base).chain(indexes).collect()
}

impl Engine<'_> {
    /// CREATE TABLE, in a transaction of its own. The table gets its first pages with its first rows, which a second
    /// transaction inserts.
    pub(super) fn create_table(&mut self) -> Step {
        if (FIRST_TABLES..self.tables.len()).filter(|&table| !self.tables[table].is_dropped).count() >= MOST_MADE {
            return self.drop_table();
        }
        self.made += 1;
        let (kind, end) = (self.dice.below(4), self.any_end(false));
        let number = self.begin("CREATE TABLE", false)?;
        let Some(table) = self.add_table(shape(self.made, kind)) else { return self.roll_back(number) };
        self.changing.insert(number, Altered { table, before: None, rowsets: Vec::new(), to_free: Vec::new() });
        let rows = self.table_rows(table);
        self.change_catalog(By::Transaction(number), &TableRows::new(), &rows)?;
        self.store_ids()?;
        self.end_ddl(number, end)?;
        if end == End::Committed {
            let rows = 1 + self.dice.below(120);
            self.insert_rows(table, rows)?;
        }
        Ok(())
    }

    /// Adds a table without pages, and returns its number.
    fn add_table(&mut self, table: Table) -> Option<usize> {
        let system = self.system.as_mut()?;
        let object = system.object();
        let has_key = table.clustered.iter().any(|index| index.primary_key);
        let key = has_key.then(|| system.object());
        let ids = TableIds { object, key, defaults: vec![None; table.columns.len()] };
        let (base, count) = (self.rowsets.len(), table.indexes.len());
        let is_heap = table.clustered.is_none();
        let lob = table.columns.iter().position(|column| column.ty.is_lob());
        let mut layouts = layouts(&table, &system.description);
        // The LOB unit belongs to the rowset of the heap or clustered index.
        layouts.extend(lob.and_then(|_| layouts.first().cloned()));
        let id = system.ids.rowset();
        for (at, layout) in layouts.into_iter().enumerate() {
            let is_lob = at > count;
            self.rowsets.push(Rowset {
                id: if at == 0 || is_lob { id } else { system.ids.rowset() },
                unit: UnitId(system.ids.unit()),
                object,
                root: PageId::NONE,
                iam: PageId::NONE,
                keys: KeyLayout::new(layout, table.columns.len()),
                is_base: at == 0 || is_lob,
                is_heap: at == 0 && is_heap || is_lob,
                is_lob,
                is_gone: false,
                pages: Vec::new(),
                extents: Vec::new(),
                counts: Counts::default(),
                unit_row: Default::default(),
                rowset_row: Default::default(),
            });
            self.counted.push(Counts::default());
        }
        self.tables.push(TableState {
            source: Rows::owned(&table, table_seed(&system.description, self.tables.len())),
            table: Cow::Owned(table),
            ids,
            is_dropped: false,
            base,
            indexes: (base + 1..=base + count).collect(),
            lob: lob.map(|column| (base + 1 + count, column)),
            rows: BTreeMap::new(),
            settled: BTreeMap::new(),
            next: 0,
            gone: BTreeMap::new(),
            uniquifiers: BTreeMap::new(),
        });
        Some(self.tables.len() - 1)
    }

    /// DROP TABLE of a table that DDL made.
    pub(super) fn drop_table(&mut self) -> Step {
        let Some(table) = self.any_table(FIRST_TABLES, |_| true) else { return Ok(()) };
        let number = self.begin_ddl("DROPOBJ", table)?;
        let end = self.any_end(true);
        let rows = self.table_rows(table);
        for rowset in self.rowsets_of(table) {
            self.free_rowset(number, rowset, end)?;
            self.rowsets[rowset].is_gone = true;
        }
        self.change_catalog(By::Transaction(number), &rows, &TableRows::new())?;
        let state = &mut self.tables[table];
        state.is_dropped = true;
        state.rows.clear();
        self.end_ddl(number, end)
    }
}
