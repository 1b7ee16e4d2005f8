//! Rows and columns in log records, decoded with the catalog of the data files.

use catalog::{Database, Level, Rowset};
use format::AllocUnitId;
use format::log::change::{Change, Piece};
use format::log::{LogRecord, PageChange};
use format::record::{Record, RecordKind};

use crate::columns;

/// Contexts of log records about rows: heap, clustered index, leaf of a nonclustered index, index level above the
/// leaves, and ghosts.
const ROWS: [u8; 5] = [1, 2, 3, INTERIOR, 19];
const INTERIOR: u8 = 4;

/// The changes of a record to rows of a table or index, as far as the record and the catalog prove them.
#[derive(Debug)]
pub struct RowChanges {
    /// The table.
    pub object: String,
    /// The index; empty for a heap.
    pub index: String,
    /// Rows that the record inserts or deletes.
    pub rows: Vec<RowImage>,
    /// Bytes of a row that the record replaces.
    pub pieces: Vec<Replaced>,
}

/// A row that is inserted or deleted.
#[derive(Debug)]
pub struct RowImage {
    /// The action: `insert` or `delete`.
    pub action: &'static str,
    /// Names and values of the row's columns; empty if the row does not match the catalog.
    pub columns: Vec<(String, String)>,
}

/// Bytes of a row that are replaced.
#[derive(Debug)]
pub struct Replaced {
    /// Offset of the bytes in the row.
    pub offset: u16,
    /// The column if the bytes are its whole value; empty otherwise.
    pub column: String,
    /// The column that contains the bytes; empty if the bytes are a whole value, or if the catalog does not prove which
    /// column contains them.
    pub part_of: String,
    /// The value before the change; if `column` is empty, the bytes in hexadecimal.
    pub before: String,
    /// The value after the change; if `column` is empty, the bytes in hexadecimal.
    pub after: String,
}

/// The rowset that owns the page that a record changes; `None` if the catalog does not have the rowset.
pub fn rowset_of<'d>(database: &'d Database, place: &PageChange) -> Option<&'d Rowset> {
    let unit = database.units.get(database.unit_index(AllocUnitId::from_header(place.index_id, place.object_id))?)?;
    database.rowset_of(unit)
}

/// The row changes of a record; `None` if the record changes no rows, or if the catalog does not know their table.
pub fn row_changes(database: &Database, record: &LogRecord<'_>) -> Option<RowChanges> {
    let place = record.on_page().filter(|_| ROWS.contains(&record.context()))?;
    let rowset = rowset_of(database, &place)?;
    let level = if record.context() == INTERIOR { Level::Node } else { Level::Leaf };
    let image = |action, bytes: &[u8]| RowImage { action, columns: columns_of(database, rowset, level, bytes) };
    let (rows, pieces) = match record.change()? {
        Change::Insert { images, .. } => (images.iter().map(|bytes| image("insert", bytes)).collect(), Vec::new()),
        Change::Delete { image: [], .. } => return None,
        Change::Delete { image: bytes, .. } => (vec![image("delete", bytes)], Vec::new()),
        Change::ModifyRow(piece) => (Vec::new(), vec![replaced(database, rowset, level, &piece)]),
        Change::ModifyColumns(pieces) => {
            (Vec::new(), pieces.iter().map(|piece| replaced(database, rowset, level, piece)).collect())
        }
        _ => return None,
    };
    let index = database.indexes.get(&(rowset.object_id, rowset.index_id));
    let index = index.map(|index| index.name.clone()).unwrap_or_default();
    Some(RowChanges { object: database.object_name(rowset.object_id), index, rows, pieces })
}

/// The columns of a row that is stored in the log.
fn columns_of(database: &Database, rowset: &Rowset, level: Level, bytes: &[u8]) -> Vec<(String, String)> {
    let is_plain = rowset.expansion.is_none() && !rowset.is_row_compressed();
    let Some(status) = bytes.first().filter(|_| is_plain) else { return Vec::new() };
    let record = match RecordKind::of(*status) {
        RecordKind::Primary | RecordKind::Forwarded if rowset.index_id <= 1 => Record::data(bytes),
        RecordKind::Index => Record::index(bytes, rowset.layout.index_fixed_length(level)),
        _ => return Vec::new(),
    };
    match record {
        Ok(record) => columns::of_record(database, rowset, level, &record)
            .into_iter()
            .map(|column| (column.name, column.value))
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// Decodes the bytes of a row that a record replaces. If the bytes are the whole value of a fixed-length column, they
/// are shown as this value; otherwise, in hexadecimal.
fn replaced(database: &Database, rowset: &Rowset, level: Level, piece: &Piece<'_>) -> Replaced {
    let is_plain = rowset.expansion.is_none() && !rowset.is_row_compressed();
    let is_it = |column: &&catalog::RowsetColumn| {
        let (offset, ..) = column.place(level);
        let length = usize::from(column.info.length);
        is_plain
            && u16::try_from(offset).is_ok_and(|offset| offset > 0 && offset == piece.old_offset)
            && [piece.before.len(), piece.after.len()] == [length; 2]
    };
    match rowset.layout.columns.iter().find(is_it) {
        Some(column) => {
            let (.., bit) = column.place(level);
            let text = |bytes: &[u8]| format::value::text(column.info, bytes, bit);
            let name = columns::name(database, rowset, column);
            Replaced {
                offset: piece.old_offset,
                column: name,
                part_of: String::new(),
                before: text(piece.before),
                after: text(piece.after),
            }
        }
        None => Replaced {
            offset: piece.old_offset,
            column: String::new(),
            part_of: fixed_column(database, rowset, level, piece).filter(|_| is_plain).unwrap_or_default(),
            before: hex(piece.before),
            after: hex(piece.after),
        },
    }
}

/// The name of the fixed-length column that contains all replaced bytes; `None` if no single column contains them.
fn fixed_column(database: &Database, rowset: &Rowset, level: Level, piece: &Piece<'_>) -> Option<String> {
    let length = piece.before.len().max(piece.after.len());
    let holds = |column: &&catalog::RowsetColumn| {
        let (offset, ..) = column.place(level);
        usize::try_from(offset).is_ok_and(|offset| {
            let start = usize::from(piece.old_offset);
            offset > 0 && offset <= start && start + length <= offset + usize::from(column.info.length)
        })
    };
    rowset.layout.columns.iter().find(holds).map(|column| columns::name(database, rowset, column))
}

/// Bytes as SQL Server writes binary values.
fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("0x{digits}")
}
