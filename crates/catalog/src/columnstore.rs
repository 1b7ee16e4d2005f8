//! Columnstore indexes in the catalog: segments, dictionaries and row groups (docs/format/columnstore.md#catalog).

use format::RecordId;
use format::bytes::u64_at;

use crate::database::Database;
use crate::load::Loader;
use crate::rows::Row;

const SYSCSROWGROUPS: i32 = 35;
const SYSCSCOLSEGMENTS: i32 = 62;
const SYSCSDICTIONARIES: i32 = 63;

/// The contents of the base tables for columnstore indexes.
#[derive(Clone, Debug, Default)]
pub struct Columnstore {
    /// Rows of syscscolsegments, ordered by rowset, group and column.
    pub segments: Vec<Segment>,
    /// Rows of syscsdictionaries, ordered by rowset, column and ID.
    pub dictionaries: Vec<Dictionary>,
    /// Rows of syscsrowgroups, ordered by rowset and group. Empty before SQL Server 2014.
    pub row_groups: Vec<RowGroup>,
    /// The names of the base tables that have rows but could not be read. Only the three base tables for columnstore
    /// indexes are listed here.
    pub unread: Vec<&'static str>,
}

/// The off-row value that contains a segment or a dictionary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blob {
    /// The ID of the off-row value.
    pub id: u64,
    /// The page and slot of the root of the off-row value.
    pub root: RecordId,
}

/// The values of one column in one row group.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The rowset ID of the columnstore.
    pub rowset_id: u64,
    /// The column ID.
    pub column_id: i32,
    /// The ID of the row group.
    pub group_id: i32,
    /// Number of rows.
    pub rows: i32,
    /// The encoding: 1 for values, 2 for values with a dictionary, 3 for strings with a dictionary, 4 or 5 for values
    /// that are stored directly.
    pub encoding: i32,
    /// The value that code 0 represents, in units of `magnitude`.
    pub base_id: i64,
    /// The unit in which codes are counted.
    pub magnitude: f64,
    /// The ID of the dictionary that the column has for all row groups; -1 if it has none.
    pub primary_dictionary: i32,
    /// The ID of the dictionary that the column has for this row group; -1 if it has none.
    pub secondary_dictionary: i32,
    /// The smallest data ID in the segment.
    pub min_data_id: i64,
    /// The largest data ID in the segment.
    pub max_data_id: i64,
    /// The off-row value that contains the segment.
    pub blob: Option<Blob>,
}

/// A dictionary of a columnstore column.
#[derive(Clone, Copy, Debug)]
pub struct Dictionary {
    /// The rowset ID of the columnstore.
    pub rowset_id: u64,
    /// The column ID.
    pub column_id: i32,
    /// The number of the dictionary within the column; 0 for the dictionary that all row groups share.
    pub id: i32,
    /// The off-row value that contains the dictionary.
    pub blob: Option<Blob>,
}

/// A row group.
#[derive(Clone, Copy, Debug)]
pub struct RowGroup {
    /// The rowset ID of the columnstore.
    pub rowset_id: u64,
    /// The number of the row group.
    pub id: i32,
    /// The number of rows, including deleted ones.
    pub rows: i32,
    /// The state of the row group. 0 means invisible, 1 open, 2 closed, 3 compressed and 4 tombstone.
    pub status: i32,
}

impl RowGroup {
    /// Whether the rows of the group are stored in segments.
    pub fn is_compressed(&self) -> bool {
        self.status == 3
    }
}

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
    pub(crate) fn load_columnstore(&self, database: &mut Database) {
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
