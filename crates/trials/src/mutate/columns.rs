//! Finds the columns of rows. Their offsets come from the damaged database's own catalog.

use std::ops::Range;

use catalog::{Database, Level, Rowset, RowsetColumn, column_status};
use format::fields::{Part, Place, Structure};
use format::instances::{FieldInstance, record_spaces};
use format::record::{Record, RecordKind};
use format::types::xtype;
use format::{Page, PageBytes, PageId};

use super::sites::Site;

/// The columns and null bits of all rows of a page, each with the name of its structure and the name of its field.
pub(super) fn sites(
    database: &Database,
    rowset: &Rowset,
    page: PageId,
    bytes: &PageBytes,
    is_leaf: bool,
    instances: &[FieldInstance],
) -> Vec<(String, String, Site)> {
    let view = Page::new(bytes);
    let level = if is_leaf { Level::Leaf } else { Level::Node };
    let mut found = Vec::new();
    for space in record_spaces(view) {
        let Some(record_bytes) = bytes.get(space.bytes.clone()) else { continue };
        let record = match view.header().kind() {
            Some(format::PageType::Data) => Record::data(record_bytes),
            _ => Record::index(record_bytes, view.header().pminlen.get()),
        };
        let Ok(record) = record else { continue };
        let structure = structure(database, rowset, &record, is_leaf);
        let Some(structure) = structure else { continue };
        let of_slot: Vec<&FieldInstance> =
            instances.iter().filter(|instance| instance.slot == Some(space.slot)).collect();
        for column in &rowset.layout.columns {
            let (_, null_bit, bit) = column.place(level);
            let name = name(database, rowset, column, is_leaf, space.slot == 0);
            // An added column may have the offset of a dropped column. If a row was written before the column was
            // added, the bytes at this offset may belong to the dropped column, and the row has no value for the added
            // column.
            let is_null = record.null_bit(null_bit) == Some(true) || null_bit > 0 && !record.has_column(null_bit);
            let put = |bytes, bit| Site { page, slot: Some(space.slot), bytes, bit };
            if let Some(place) = place(column, level, &record, space.bytes.start, &of_slot) {
                let bit = (column.info.xtype == xtype::BIT).then_some(bit);
                let name = if is_null { "NULL".to_owned() } else { name.clone() };
                found.push((structure.clone(), name, put(place, bit)));
            }
            let bitmap = of_slot.iter().find(|instance| instance.field.place == Place::Part(Part::NullBitmap));
            if let Some(bitmap) = bitmap.filter(|_| null_bit > 0 && null_bit <= record.column_count()) {
                let at = bitmap.bytes.start + usize::from(null_bit - 1) / 8;
                let nullable = match column.status & column_status::NOT_NULL {
                    0 => "",
                    _ => " NOT NULL",
                };
                let name = format!("null bit, {name}{nullable}");
                found.push((structure.clone(), name, put(at..at + 1, Some(((null_bit - 1) % 8) as u8))));
            }
        }
    }
    found
}

/// The kind of the row; `None` for kinds whose columns are not surveyed.
fn structure(database: &Database, rowset: &Rowset, record: &Record<'_>, is_leaf: bool) -> Option<String> {
    let is_system = database.is_system_table(rowset.object_id);
    Some(match (record.kind(), rowset.index_id, is_leaf) {
        (RecordKind::Primary | RecordKind::Forwarded, 0 | 1, true) if is_system => {
            format!("sys.{}", database.objects.get(&rowset.object_id)?.name)
        }
        (RecordKind::Primary | RecordKind::Forwarded, 0 | 1, true) => "table row".to_owned(),
        (RecordKind::Index, 0 | 1, true) => return None,
        (RecordKind::Index, _, true) => "index row".to_owned(),
        (RecordKind::Index, _, false) => "index node row".to_owned(),
        (kind, _, _) if kind.is_ghost() => "ghost row".to_owned(),
        _ => return None,
    })
}

/// Returns the name of a column for the report. For a system table, this is the name of the column; for other tables,
/// it is a description of how the column is used.
fn name(database: &Database, rowset: &Rowset, column: &RowsetColumn, is_leaf: bool, is_first: bool) -> String {
    let is_table = rowset.index_id <= 1 && is_leaf;
    let is_key = column.key_ordinal > 0;
    if column.is_dropped() {
        return "dropped column".to_owned();
    }
    if is_table && database.is_system_table(rowset.object_id) {
        let columns = database.columns.get(&rowset.object_id);
        let named = columns.and_then(|columns| columns.iter().find(|known| known.id == column.id));
        return named.map_or_else(|| format!("column {}", column.id), |known| known.name.clone());
    }
    let is_indexed = database.index_columns.iter().any(|((object, index), columns)| {
        *object == rowset.object_id && *index > 1 && columns.iter().any(|known| known.column_id == column.id)
    });
    let name = match (is_table, is_leaf) {
        (true, _) if column.status & column_status::UNIQUIFIER != 0 => "uniquifier",
        (true, _) if is_key => "column of the clustered key",
        (true, _) if is_indexed => "column in an index",
        (true, _) => "column in no index",
        (false, true) if is_key => "key column",
        (false, true) => "other column",
        (false, false) if is_first => "column of the first entry",
        (false, false) if is_key => "key column",
        (false, false) => "other column",
    };
    name.to_owned()
}

/// The bytes of the column on the page; `None` if the column is not stored in a single byte range without encoding.
fn place(
    column: &RowsetColumn,
    level: Level,
    record: &Record<'_>,
    start: usize,
    of_slot: &[&FieldInstance],
) -> Option<Range<usize>> {
    let (offset, ..) = column.place(level);
    match offset {
        0 => None,
        1.. => {
            let length = match column.info.xtype {
                xtype::BIT => 1,
                _ => column.info.length,
            };
            record.fixed(offset.unsigned_abs(), length)?;
            let at = start + usize::from(offset.unsigned_abs());
            (length > 0).then_some(at..at + usize::from(length))
        }
        _ => of_slot
            .iter()
            .find(|instance| {
                // The values of a sparse vector also have an index, but it is not the number of a variable column.
                instance.field.structure != Structure::SparseVector
                    && instance.field.place == Place::Part(Part::VariableColumn)
                    && instance.index == Some(offset.unsigned_abs() - 1)
            })
            .map(|instance| instance.bytes.clone()),
    }
}
