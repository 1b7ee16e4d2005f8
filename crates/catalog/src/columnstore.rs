//! Columnstore indexes in the catalog: segments, dictionaries and row groups (docs/format/columnstore.md#catalog).

use format::RecordId;
use format::bytes::u64_at;

use crate::database::Database;
use crate::load::Loader;
use crate::rows::Row;

const SYSCSROWGROUPS: i32 = 35;
const SYSCSCOLSEGMENTS: i32 = 62;
const SYSCSDICTIONARIES: i32 = 63;

/// The columnstore's base tables.
#[derive(Clone, Debug, Default)]
pub struct Columnstore {
    /// Rows of syscscolsegments, by rowset, group and column.
    pub segments: Vec<Segment>,
    /// Rows of syscsdictionaries, by rowset, column and id.
    pub dictionaries: Vec<Dictionary>,
    /// Rows of syscsrowgroups, by rowset and group; none before SQL Server 2014.
    pub row_groups: Vec<RowGroup>,
    /// Base tables that have rows but could not be read.
    pub unread: Vec<&'static str>,
}

/// The place of a segment or dictionary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blob {
    /// Id of the off-row value.
    pub id: u64,
    /// Its root.
    pub root: RecordId,
}

/// The values of one column in one row group.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The columnstore's rowset.
    pub rowset_id: u64,
    /// Column.
    pub column_id: i32,
    /// Row group.
    pub group_id: i32,
    /// Number of rows.
    pub rows: i32,
    /// 1 values, 2 values with a dictionary, 3 strings with a dictionary, 4 and 5 stored values.
    pub encoding: i32,
    /// Value of code 0, in units of the magnitude.
    pub base_id: i64,
    /// Unit of the codes.
    pub magnitude: f64,
    /// Dictionary of the column, or -1.
    pub primary_dictionary: i32,
    /// Dictionary of the row group, or -1.
    pub secondary_dictionary: i32,
    /// Smallest data id.
    pub min_data_id: i64,
    /// Largest data id.
    pub max_data_id: i64,
    /// Place of the segment.
    pub blob: Option<Blob>,
}

/// A dictionary.
#[derive(Clone, Copy, Debug)]
pub struct Dictionary {
    /// The columnstore's rowset.
    pub rowset_id: u64,
    /// Column.
    pub column_id: i32,
    /// Number within the column; 0 for the dictionary that all row groups share.
    pub id: i32,
    /// Place of the dictionary.
    pub blob: Option<Blob>,
}

/// A row group.
#[derive(Clone, Copy, Debug)]
pub struct RowGroup {
    /// The columnstore's rowset.
    pub rowset_id: u64,
    /// Number.
    pub id: i32,
    /// Number of rows, including deleted ones.
    pub rows: i32,
    /// 0 invisible, 1 open, 2 closed, 3 compressed, 4 tombstone.
    pub status: i32,
}

impl RowGroup {
    /// Whether its rows are stored in segments.
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
    /// Reads the columnstore's base tables, if present. In databases of SQL Server 2014 to 2017 they are compressed.
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
