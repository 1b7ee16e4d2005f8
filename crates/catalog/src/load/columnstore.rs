//! Reads the base tables for columnstore indexes (docs/format/columnstore.md#catalog).

use format::RecordId;
use format::bytes::u64_at;

use super::Loader;
use crate::database::{Blob, Columnstore, Database, Dictionary, RowGroup, Segment};
use crate::rows::Row;

const SYSCSROWGROUPS: i32 = 35;
const SYSCSCOLSEGMENTS: i32 = 62;
const SYSCSDICTIONARIES: i32 = 63;

fn blob(row: &Row<'_>) -> Option<Blob> {
    let bytes = row.bytes("data_ptr")?;
    Some(Blob { id: u64_at(bytes, 0)?, root: RecordId::read(bytes, 8)? })
}

fn wide(row: &Row<'_>, name: &str) -> i64 {
    row.number(name).cast_signed()
}

impl Loader<'_> {
    /// Reads the columnstore's base tables, if they exist. In databases of SQL Server 2014 to 2017, these tables are
    /// compressed.
    pub(super) fn load_columnstore(&self, database: &mut Database) {
        let mut store = Columnstore::default();
        let mut readable = |database: &Database, (object_id, name): (i32, &'static str)| {
            let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (object_id, 1));
            let has_pages = |unit: &usize| database.units.get(*unit).is_some_and(|unit| !unit.root.is_none());
            let Some(rowset) = rowset.filter(|rowset| rowset.units.iter().any(has_pages)) else { return false };
            let is_readable = rowset.expansion.is_some() || !rowset.is_row_compressed();
            if !is_readable {
                store.unread.push(name);
            }
            is_readable
        };
        let tables = [
            (SYSCSCOLSEGMENTS, "syscscolsegments"),
            (SYSCSDICTIONARIES, "syscsdictionaries"),
            (SYSCSROWGROUPS, "syscsrowgroups"),
        ];
        let [segments, dictionaries, groups] = tables.map(|table| readable(database, table).then_some(table));
        if let Some(table) = segments {
            self.scan(database, table, |row| {
                store.segments.push(Segment {
                    rowset_id: row.number("hobt_id"),
                    column_id: row.int("column_id"),
                    group_id: row.int("segment_id"),
                    rows: row.int("row_count"),
                    encoding: row.int("encoding_type"),
                    base_id: wide(&row, "base_id"),
                    magnitude: f64::from_bits(row.number("magnitude")),
                    primary_dictionary: row.int("primary_dictionary_id"),
                    secondary_dictionary: row.int("secondary_dictionary_id"),
                    min_data_id: wide(&row, "min_data_id"),
                    max_data_id: wide(&row, "max_data_id"),
                    blob: blob(&row),
                });
            });
        }
        if let Some(table) = dictionaries {
            self.scan(database, table, |row| {
                store.dictionaries.push(Dictionary {
                    rowset_id: row.number("hobt_id"),
                    column_id: row.int("column_id"),
                    id: row.int("dictionary_id"),
                    blob: blob(&row),
                });
            });
        }
        if let Some(table) = groups {
            self.scan(database, table, |row| {
                store.row_groups.push(RowGroup {
                    rowset_id: row.number("hobt_id"),
                    id: row.int("segment_id"),
                    rows: row.int("row_count"),
                    status: row.int("status"),
                });
            });
        }
        store.segments.sort_by_key(|segment| (segment.rowset_id, segment.group_id, segment.column_id));
        store.dictionaries.sort_by_key(|dictionary| (dictionary.rowset_id, dictionary.column_id, dictionary.id));
        store.row_groups.sort_by_key(|group| (group.rowset_id, group.id));
        database.columnstore = store;
    }
}
