//! Columns of a record by name and value, from the catalog's row layout.

use std::ops::Range;

use catalog::{Database, Level, Rowset, RowsetColumn, Stored};
use format::record::Record;
use format::value;

/// A column of a record, decoded by a caller that knows the table.
#[derive(Clone, Debug)]
pub struct ColumnValue {
    /// Name of the column.
    pub name: String,
    /// The column's type, as a table definition would write it.
    pub type_name: String,
    /// The range of the value's bytes, counted from the start of the record; empty if the value is not stored.
    pub bytes: Range<usize>,
    /// The value as text.
    pub value: String,
}

/// Decodes the columns of `record`, in physical order. The record is on `level` of `rowset`. A column without a place
/// in the row layout is left out. A complex column (off-row pointer, sparse vector) is listed with its name, but its
/// off-row value is not read.
pub fn of_record(database: &Database, rowset: &Rowset, level: Level, record: &Record<'_>) -> Vec<ColumnValue> {
    let stored = rowset.layout.columns.iter().filter(|column| column.place(level).0 != 0);
    stored.map(|column| column_value(database, rowset, level, record, column)).collect()
}

fn column_value(
    database: &Database,
    rowset: &Rowset,
    level: Level,
    record: &Record<'_>,
    column: &RowsetColumn,
) -> ColumnValue {
    let (.., bit) = column.place(level);
    let (bytes, text) = match column.stored(level, record) {
        Stored::Null => (None, "NULL".to_owned()),
        Stored::Absent => (None, "not stored: added after the row was written".to_owned()),
        Stored::Plain(bytes) => (Some(bytes), value::text(column.info, bytes, bit)),
        Stored::Complex(bytes) => (Some(bytes), format!("stored off the row, {} bytes here", bytes.len())),
    };
    ColumnValue {
        name: name(database, rowset, column),
        type_name: column.info.declaration(),
        bytes: bytes.and_then(|bytes| place_in(record.bytes(), bytes)).unwrap_or_default(),
        value: text,
    }
}

/// The range of bytes in `whole` that its subslice `part` occupies.
fn place_in(whole: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (!part.is_empty() && end <= whole.len()).then_some(start..end)
}

/// The name of a column of a rowset. In a heap or clustered index, `column.id` is the ID of a table column. In a
/// nonclustered index, `column.id` is the position of the column in the index.
pub fn name(database: &Database, rowset: &Rowset, column: &RowsetColumn) -> String {
    use catalog::column_status::{DROPPED, UNIQUIFIER};
    if column.status & DROPPED != 0 {
        return format!("(dropped column {})", column.id);
    }
    if column.status & UNIQUIFIER != 0 {
        return "(uniquifier)".to_owned();
    }
    let id = match rowset.index_id {
        0 | 1 => Some(column.id),
        _ => database
            .index_columns
            .get(&(rowset.object_id, rowset.index_id))
            .and_then(|columns| columns.iter().find(|indexed| indexed.position == column.id))
            .map(|indexed| indexed.column_id),
    };
    let named = database.columns.get(&rowset.object_id).zip(id);
    let named = named.and_then(|(columns, id)| columns.iter().find(|named| named.id == id));
    match named {
        Some(named) => named.name.clone(),
        // The columns after the index's own columns form the row locator.
        None if rowset.index_id > 1 => format!("(locator column {})", column.id),
        None => format!("(column {})", column.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::{RowLayout, TableColumn};
    use format::collation::CollationId;
    use format::types::{TypeInfo, xtype};

    fn column(id: u32, info: TypeInfo, leaf_offset: i16, leaf_null_bit: u16) -> RowsetColumn {
        RowsetColumn {
            id,
            physical: id,
            info,
            collation: CollationId::default(),
            status: 0,
            key_ordinal: 0,
            leaf_offset,
            node_offset: 0,
            leaf_null_bit,
            node_null_bit: 0,
            default: None,
            leaf_bit: 0,
            node_bit: 0,
        }
    }

    #[test]
    fn columns_are_named_placed_and_shown() {
        let int = TypeInfo { xtype: xtype::INT, length: 4, ..TypeInfo::default() };
        let varchar = TypeInfo { xtype: xtype::VARCHAR, length: 10, ..TypeInfo::default() };
        let columns =
            vec![column(1, int, 4, 1), column(2, varchar, -1, 2), column(3, varchar, -2, 3), column(4, varchar, -3, 4)];
        let rowset = Rowset {
            id: 1,
            object_id: 5,
            index_id: 1,
            partition: 1,
            status: 0,
            owner_type: 1,
            rows: 0,
            compression: 0,
            max_null_bit: 4,
            min_leaf: 8,
            min_node: 0,
            units: Vec::new(),
            layout: RowLayout { columns },
            expansion: None,
        };
        let mut database = Database::default();
        let named = |id: u32, name: &str| TableColumn { id, name: name.to_owned(), user_type: 0, status: 0 };
        database.columns.insert(5, vec![named(1, "Id"), named(2, "Name")]);
        // A record with three columns: 7, "ab" (variable length) and NULL. Column 4 was added after it was written.
        let bytes = [0x30, 0, 8, 0, 7, 0, 0, 0, 3, 0, 0b100, 1, 0, 17, 0, b'a', b'b'];
        let record = Record::data(&bytes).unwrap();
        let values = of_record(&database, &rowset, Level::Leaf, &record);
        let shown: Vec<_> =
            values.iter().map(|value| (value.name.as_str(), value.value.as_str(), value.bytes.clone())).collect();
        assert_eq!(
            shown,
            [
                ("Id", "7", 4..8),
                ("Name", "'ab'", 15..17),
                ("(column 3)", "NULL", 0..0),
                ("(column 4)", "not stored: added after the row was written", 0..0),
            ]
        );
    }
}
