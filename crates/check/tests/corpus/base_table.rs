//! Finds rows of base tables and changes their columns by name, in the table and in its indexes.

use std::collections::HashMap;

use catalog::{Database, RowsetColumn, UnitKind};
use format::page::PAGE_BYTES;
use format::types::xtype;
use format::{AllocUnitId, Page};

use crate::image::{Image, offset_of};

/// A base table whose rows can be changed.
pub struct BaseTable {
    table: Leaves,
    indexes: Vec<Leaves>,
}

/// The leaf level of a table or index, with the columns of fixed length by name.
struct Leaves {
    unit: AllocUnitId,
    page_type: u8,
    columns: HashMap<String, RowsetColumn>,
}

/// A row and its place.
pub struct Row {
    page: u32,
    offset: usize,
    /// The bytes of the record.
    pub bytes: Vec<u8>,
}

impl BaseTable {
    /// The base table with this object ID; `None` if the database does not have it.
    pub fn of(database: &Database, object_id: i32) -> Option<Self> {
        let names: HashMap<u32, String> =
            database.columns.get(&object_id)?.iter().map(|column| (column.id, column.name.clone())).collect();
        let leaves = |rowset: &catalog::Rowset, named: Vec<(u32, RowsetColumn)>| {
            let units = rowset.units.iter().map(|unit| &database.units[*unit]);
            let unit = units.into_iter().find(|unit| unit.kind == UnitKind::InRow)?.id;
            let columns = named
                .into_iter()
                .filter(|(_, column)| column.leaf_offset > 0 && column.info.length <= 8 && !column.is_dropped())
                .filter_map(|(id, column)| Some((names.get(&id)?.clone(), column)))
                .collect();
            let page_type = if rowset.index_id <= 1 { 1 } else { 2 };
            Some(Leaves { unit, page_type, columns })
        };
        let rowsets = || database.rowsets.iter().filter(|rowset| rowset.object_id == object_id);
        let base = rowsets().find(|rowset| rowset.index_id <= 1)?;
        let own = base.layout.columns.iter().map(|column| (column.id, column.clone())).collect();
        let table = leaves(base, own)?;
        let columns_of = |index: i32| -> Vec<u32> {
            let columns = database.index_columns.get(&(object_id, index));
            columns.into_iter().flatten().map(|column| column.column_id).collect()
        };
        let indexes = rowsets().filter(|rowset| rowset.index_id > 1).filter_map(|rowset| {
            // An index row contains the index's own columns. Then follow the clustering key columns that the index does
            // not already contain (docs/format/index-records.md#what-an-index-row-holds).
            let mut ids = columns_of(rowset.index_id);
            ids.extend(columns_of(1).into_iter().filter(|id| !columns_of(rowset.index_id).contains(id)));
            let named = rowset
                .layout
                .columns
                .iter()
                .filter_map(|column| Some((*ids.get((column.id as usize).checked_sub(1)?)?, column.clone())));
            leaves(rowset, named.collect())
        });
        Some(Self { table, indexes: indexes.collect() })
    }

    /// The length of a column in bytes.
    pub fn length(&self, column: &str) -> u16 {
        self.table.columns.get(column).map_or(0, |column| column.info.length)
    }

    /// The value of a column as a signed number. The bytes of a type code are read as a number too.
    pub fn value(&self, record: &[u8], column: &str) -> Option<i64> {
        self.table.value(record, column)
    }

    /// The rows, in page order.
    pub fn rows(&self, image: &Image) -> Vec<Row> {
        self.table.rows(image)
    }

    /// Changes a column of a row in the table and in each index that has the column.
    pub fn change(&self, image: &mut Image, row: &Row, column: &str, value: i64) {
        for index in self.indexes.iter().filter(|index| index.columns.contains_key(column)) {
            let is_its = |other: &&Row| {
                index.columns.keys().all(|name| index.value(&other.bytes, name) == self.value(&row.bytes, name))
            };
            let rows = index.rows(image);
            let of_row = rows.iter().find(is_its).expect("the row's index row");
            index.put(image, of_row, column, value);
        }
        self.change_alone(image, row, column, value);
    }

    /// Changes a column of a row in the table, but not in its indexes.
    pub fn change_alone(&self, image: &mut Image, row: &Row, column: &str, value: i64) {
        self.table.put(image, row, column, value);
    }
}

impl Leaves {
    fn rows(&self, image: &Image) -> Vec<Row> {
        let mut rows = Vec::new();
        let pfs = image.page(1);
        for page in 0..(image.bytes.len() / PAGE_BYTES) as u32 {
            let bytes = image.page(page);
            let header = *Page::new(&bytes).header();
            let in_use = pfs.get(100 + page as usize).is_some_and(|byte| byte & 0x40 != 0);
            let is_leaf = header.page_type == self.page_type && header.level == 0;
            if !is_leaf || header.alloc_unit() != self.unit || !in_use {
                continue;
            }
            for slot in 0..header.slot_count.get() {
                let offset = offset_of(&bytes, slot);
                let ghost = matches!(bytes[offset] >> 1 & 7, 5 | 6);
                if !ghost {
                    rows.push(Row { page, offset, bytes: bytes[offset..].to_vec() });
                }
            }
        }
        rows
    }

    fn value(&self, record: &[u8], column: &str) -> Option<i64> {
        let column = self.columns.get(column)?;
        let offset = usize::from(column.leaf_offset.unsigned_abs());
        let bytes = record.get(offset..offset + usize::from(column.info.length))?;
        let mut whole = [0; 8];
        whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let value = i64::from_le_bytes(whole);
        Some(match column.info.xtype {
            xtype::SMALLINT => i64::from(value as i16),
            xtype::INT => i64::from(value as i32),
            _ => value,
        })
    }

    fn put(&self, image: &mut Image, row: &Row, column: &str, value: i64) {
        let column = &self.columns[column];
        let offset = row.offset + usize::from(column.leaf_offset.unsigned_abs());
        let length = usize::from(column.info.length);
        image.edit(row.page, |bytes| bytes[offset..offset + length].copy_from_slice(&value.to_le_bytes()[..length]));
    }
}
