//! Reads the statistics of tables: their columns, and the content that SQL Server has stored for them
//! (docs/format/statistics.md).

use std::collections::BTreeMap;

use format::bytes::{unsigned, utf16};
use format::collation::CollationId;
use format::types::TypeInfo;
use source::PageSource;

use crate::base_table::{Unread, read_base_table, read_base_table_stored};
use crate::database::Database;
use crate::layout::Stored;
use crate::off_row::off_row_value;

/// A size in bytes that no statistics blob reaches. A blob has at most 200 steps with keys of at most 900 bytes, and a
/// summary of strings.
const MAX_BLOB_BYTES: usize = 4 << 20;

/// A column of the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatisticsColumn {
    /// The column ID in the table.
    pub column_id: u32,
    /// The declared type. For the (max) types, the length is 0.
    pub info: TypeInfo,
    /// The collation of the column. If syscolpars contains no collation, this is the collation of the database.
    pub collation: CollationId,
}

/// Statistics of a table or view. They may belong to an index or exist without one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statistics {
    /// The object ID of the table or view.
    pub object_id: i32,
    /// The ID of the statistics within the table. If the statistics belong to an index, this is the index ID.
    pub id: i32,
    /// The name of the statistics; empty if sysidxstats has no row for them.
    pub name: String,
    /// The status bits (docs/format/catalog.md#sysidxstats).
    pub status: u32,
    /// The columns in order. The histogram describes the first column. A column that is missing in syscolpars is
    /// `None`.
    pub columns: Vec<Option<StatisticsColumn>>,
}

/// The content that is stored for statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredStatistics<'a> {
    /// No content, because the statistics were never filled.
    Nothing,
    /// The statistics blob. `format::statistics` parses it.
    Blob(&'a [u8]),
    /// A blob that is stored off the row and cannot be read.
    Unreadable,
}

const SYSCOLPARS: i32 = 41;
const SYSIDXSTATS: i32 = 54;
const SYSISCOLS: i32 = 55;
const SYSOBJVALUES: i32 = 60;

/// The object ID of the table, and the ID of the statistics.
type Key = (i32, i32);

/// Calls `visit` with the statistics of each table for which `is_wanted` is true, and with the stored content of these
/// statistics. The statistics are visited in the order of the base table.
///
/// # Errors
///
/// [`Unread`] if a base table cannot be read completely. `visit` may already have been called for some statistics.
pub fn read_statistics(
    source: &dyn PageSource,
    database: &Database,
    is_wanted: impl Fn(i32) -> bool,
    mut visit: impl FnMut(&Statistics, StoredStatistics<'_>),
) -> Result<(), Unread> {
    const STATISTICS: u64 = 60;
    let mut known = descriptions(source, database, &is_wanted)?;
    let columns = ["valclass", "objid", "subobjid", "imageval"];
    read_base_table_stored(source, database, SYSOBJVALUES, &columns, |_, values| {
        let [class, object, number, image] = values else { return };
        let key = (int(object.plain()), int(number.plain()));
        if class.plain().map(unsigned) != Some(STATISTICS) || !is_wanted(key.0) {
            return;
        }
        let statistics = known.remove(&key).unwrap_or_else(|| Statistics::unknown(key));
        match *image {
            Stored::Null | Stored::Absent | Stored::Plain([]) => visit(&statistics, StoredStatistics::Nothing),
            Stored::Plain(bytes) => visit(&statistics, StoredStatistics::Blob(bytes)),
            Stored::Complex(pointer) => match off_row_value(source, pointer, MAX_BLOB_BYTES) {
                Some(bytes) => visit(&statistics, StoredStatistics::Blob(&bytes)),
                None => visit(&statistics, StoredStatistics::Unreadable),
            },
        }
    })
}

impl Statistics {
    fn unknown((object_id, id): Key) -> Self {
        Self { object_id, id, name: String::new(), status: 0, columns: Vec::new() }
    }

    /// Whether SQL Server created the statistics automatically for a query.
    pub fn is_automatic(&self) -> bool {
        self.status & 0x2000 != 0
    }
}

/// Reads the statistics in the catalog, with their columns.
fn descriptions(
    source: &dyn PageSource,
    database: &Database,
    is_wanted: &impl Fn(i32) -> bool,
) -> Result<BTreeMap<Key, Statistics>, Unread> {
    const INDEX_COLUMN: u64 = 0x2;
    const INCLUDED: u64 = 0x10;
    let mut found = BTreeMap::new();
    read_base_table(source, database, SYSIDXSTATS, &["id", "indid", "name", "status"], |_, values| {
        let &[object, number, name, status] = values else { return };
        let key = (int(object), int(number));
        if is_wanted(key.0) {
            let (name, status) = (name.map(utf16).unwrap_or_default(), int(status).cast_unsigned());
            found.insert(key, Statistics { name, status, ..Statistics::unknown(key) });
        }
    })?;
    // For each index or statistics, the column at each position. The positions are those of the key columns of an
    // index, or those of the columns of statistics that belong to no index.
    let mut places: BTreeMap<Key, BTreeMap<u64, u32>> = BTreeMap::new();
    let columns = ["idmajor", "idminor", "subid", "status", "intprop", "tinyprop1"];
    read_base_table(source, database, SYSISCOLS, &columns, |_, values| {
        let &[object, number, place, status, column, key_place] = values else { return };
        let (key, status) = ((int(object), int(number)), status.map_or(0, unsigned));
        let place = if status & INDEX_COLUMN == 0 { place } else { key_place }.map_or(0, unsigned);
        if status & INCLUDED == 0 && found.contains_key(&key) {
            places.entry(key).or_default().insert(place, int(column).cast_unsigned());
        }
    })?;
    let mut types = BTreeMap::new();
    let columns = ["id", "number", "colid", "xtype", "length", "prec", "scale", "collationid"];
    read_base_table(source, database, SYSCOLPARS, &columns, |_, values| {
        let &[object, number, column, xtype, length, precision, scale, collation] = values else { return };
        let value = |bytes: Option<&[u8]>| bytes.map_or(0, unsigned);
        // Skips the parameters of procedures, which syscolpars also lists. A parameter has the object ID of its
        // procedure, and a value above 0 in the column `number`.
        if value(number) != 0 || !is_wanted(int(object)) {
            return;
        }
        let info = TypeInfo {
            xtype: value(xtype) as u8,
            // For the (max) types, the catalog stores a length of -1, which is converted to 0.
            length: if value(length) as u16 == u16::MAX { 0 } else { value(length) as u16 },
            precision: value(precision) as u8,
            scale: value(scale) as u8,
        };
        let column_id = int(column).cast_unsigned();
        let collation = CollationId(int(collation).cast_unsigned());
        types.insert((int(object), column_id), StatisticsColumn { column_id, info, collation });
    })?;
    let default = CollationId(database.boot.as_ref().map_or(0, |boot| boot.collation));
    for (key, columns) in places {
        let Some(statistics) = found.get_mut(&key) else { continue };
        let column = |column: &u32| {
            let mut column = types.get(&(key.0, *column)).copied()?;
            if column.collation == CollationId(0) {
                column.collation = default;
            }
            Some(column)
        };
        statistics.columns = columns.values().map(column).collect();
    }
    Ok(found)
}

fn int(bytes: Option<&[u8]>) -> i32 {
    (bytes.map_or(0, unsigned) as u32).cast_signed()
}
