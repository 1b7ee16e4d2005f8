//! Changes the system catalog while a workload runs: the rows of the base tables that describe a table and its rowsets.

use std::collections::BTreeMap;

use super::engine::{By, Engine};
use super::frame::NEXT;
use super::journal::Step;
use super::key::page_id;
use super::table::TableState;
use crate::build::{BuiltRowset, Ids, rowset_status, unit_kind};
use crate::catalogue::{Catalogue, SystemRows, base};
use crate::description::Description;
use crate::facts::ObjectFact;
use crate::ids::PageId;
use crate::record;
use crate::row::{Extra, Kind, Row};
use crate::space::Unit;
use crate::version::Version;

/// The catalog rows that describe a table, by base table.
pub(super) type TableRows = BTreeMap<i32, SystemRows>;

/// The base tables, and what their new rows need.
#[derive(Clone)]
pub(super) struct SystemTables {
    /// The description of the database, without its tables.
    pub(super) description: Description,
    /// Facts about the base tables.
    pub(super) objects: Vec<ObjectFact>,
    /// The rowsets of each base table, as positions among the rowsets of the engine. The clustered index is first.
    pub(super) rowsets: BTreeMap<i32, Vec<usize>>,
    /// The sequences of IDs.
    pub(super) ids: Ids,
}

impl SystemTables {
    /// The next object ID.
    pub(super) fn object(&mut self) -> i32 {
        let objects = &self.objects;
        self.ids.object(|id| objects.binary_search_by_key(&id, |object| object.id).is_ok())
    }
}

impl Engine<'_> {
    /// The rows that describe a table, as they are when the table is made: without pages. Only the row counts are
    /// those that the catalog stores now.
    pub(super) fn table_rows(&self, table: usize) -> TableRows {
        let (Some(system), state) = (&self.system, &self.tables[table]) else { return TableRows::new() };
        let built = self.described(system.description.version, state);
        let mut catalogue = Catalogue::of_tables(&system.description, system.objects.clone());
        catalogue.describe_table(&state.table, &state.ids, &built);
        built.iter().for_each(|rowset| catalogue.describe_rowset(rowset));
        catalogue.into_rows()
    }

    /// The rowsets of a table as the catalog describes them.
    fn described(&self, version: Version, state: &TableState<'_>) -> Vec<BuiltRowset> {
        let table = &state.table;
        let numbers = std::iter::once(state.base).chain(state.indexes.iter().copied());
        let describe = |(at, number): (usize, usize)| {
            let rowset = &self.rowsets[number];
            let index = if at == 0 { table.clustered.as_ref() } else { table.indexes.get(at - 1) };
            let mut units = vec![(unit_kind::IN_ROW, Unit::new(rowset.unit, 1))];
            if let (0, Some((lob, _))) = (at, state.lob) {
                units.push((unit_kind::LOB, Unit::new(self.rowsets[lob].unit, 1)));
            }
            BuiltRowset {
                object: rowset.object,
                index: if at == 0 { i32::from(table.clustered.is_some()) } else { at as i32 + 1 },
                partition: 1,
                id: rowset.id,
                status: rowset_status((version, table), at == 0, index.is_some_and(|index| index.unique)),
                fill_factor: index.map_or(0, |index| index.fill_factor),
                compression: 0,
                layout: rowset.keys.layout.clone(),
                units,
                rows: self.counted[number].rows as u64,
            }
        };
        numbers.enumerate().map(describe).collect()
    }

    /// Changes the catalog from the rows `before` to the rows `after`. Rows that are the same stay as they are.
    pub(super) fn change_catalog(&mut self, by: By, before: &TableRows, after: &TableRows) -> Step {
        let Some(system) = &self.system else { return Ok(()) };
        let rowsets: Vec<(i32, usize)> =
            system.rowsets.iter().flat_map(|(&object, all)| all.iter().map(move |&rowset| (object, rowset))).collect();
        for (object, rowset) in rowsets {
            let (old, new) = (self.keyed(rowset, before.get(&object)), self.keyed(rowset, after.get(&object)));
            for (key, record) in &old {
                if !new.contains_key(key) {
                    self.delete_row(by, rowset, record)?;
                }
            }
            for (key, record) in &new {
                match old.get(key) {
                    None => self.insert_row(by, rowset, record)?,
                    Some(same) if same == record => {}
                    Some(_) => self.modify_row(by, rowset, record)?,
                }
            }
        }
        self.find_catalog_rows();
        Ok(())
    }

    /// The records of rows in an index of a base table, by key.
    fn keyed(&self, rowset: usize, rows: Option<&SystemRows>) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let keys = &self.rowsets[rowset].keys;
        let (mut keyed, mut row) = (BTreeMap::new(), Row::default());
        for number in 0..rows.map_or(0, SystemRows::len) {
            if let Some(rows) = rows {
                rows.read(number, &mut row);
            }
            let mut record = Vec::new();
            record::leaf(&keys.layout, &row, &Extra::default(), Kind::Primary, &mut record);
            keyed.insert(keys.sort_key(&record, 0), record);
        }
        keyed
    }

    /// The leaf pages of an index, from first to last.
    pub(super) fn leaves(&mut self, rowset: usize) -> Vec<PageId> {
        let mut page = self.rowsets[rowset].root;
        while page != PageId::NONE && self.pool.frame(page).level() > 0 {
            let first = self.pool.frame(page).records.first().cloned().unwrap_or_default();
            page = self.rowsets[rowset].keys.child(&first);
        }
        let mut leaves = Vec::new();
        while page != PageId::NONE {
            leaves.push(page);
            page = page_id(&self.pool.frame(page).header(NEXT, 6));
        }
        leaves
    }

    /// Finds the places of the catalog rows of all rowsets again. New rows and page splits move the rows of others.
    pub(super) fn find_catalog_rows(&mut self) {
        let units = self.places(base::SYSALLOCUNITS);
        let rowsets = self.places(base::SYSROWSETS);
        for rowset in &mut self.rowsets {
            rowset.unit_row = units.get(&rowset.unit.0).copied().unwrap_or(rowset.unit_row);
            rowset.rowset_row = rowsets.get(&rowset.id).copied().unwrap_or(rowset.rowset_row);
        }
    }

    /// The places of the rows of a base table whose key is an ID of eight bytes in its first column.
    fn places(&mut self, object: i32) -> BTreeMap<u64, (PageId, u16)> {
        let clustered = self.system.as_ref().and_then(|system| system.rowsets.get(&object)?.first().copied());
        let mut places = BTreeMap::new();
        for page in clustered.map(|rowset| self.leaves(rowset)).unwrap_or_default() {
            for (slot, record) in self.pool.frame(page).records.iter().enumerate() {
                let id = record[4..12].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
                places.insert(id, (page, slot as u16));
            }
        }
        places
    }

    /// Removes the ghosts of the base tables, as the ghost cleanup of SQL Server does some time after each DDL.
    pub(super) fn clean_catalog(&mut self) -> Step {
        let all: Vec<usize> =
            self.system.iter().flat_map(|system| system.rowsets.values().flatten().copied()).collect();
        for rowset in all {
            for page in self.leaves(rowset) {
                if self.pool.frame(page).ghosts() > 0 {
                    self.expunge(page)?;
                }
            }
        }
        self.find_catalog_rows();
        Ok(())
    }
}
