//! Checks that the layout of a rowset is consistent and agrees with the numbers in sysrowsets (in SQL Server 2005,
//! syshobts).
//!
//! Fixed columns follow each other without gaps. A dropped column keeps its place until a new column with another
//! length begins there. Variable columns and key columns are numbered from 1, and each column in use has its own null
//! bit.

use catalog::{Database, Level, Rowset, RowsetColumn};
use format::types::xtype;

use super::Verdicts;

/// Bytes before the fixed columns of a data record. The next constant is the corresponding number for an index record.
const DATA_HEADER_BYTES: u32 = 4;
const INDEX_HEADER_BYTES: u32 = 1;
/// Bytes after the fixed columns of a record above the leaf level.
const CHILD_POINTER_BYTES: u32 = 6;

/// Length in bytes of the stub that replaces a forwarded row.
const STUB_BYTES: u32 = 9;
const VERSION_2005: u16 = 611;

pub(super) fn check(database: &Database, verdicts: &mut Verdicts<'_>) {
    let mut spans = Vec::new();
    let mut numbers = Vec::new();
    for rowset in &database.rowsets {
        // Compressed rows and columnstore segments have another layout.
        if rowset.compression != 0 || rowset.layout.columns.is_empty() {
            continue;
        }
        let is_from_2000 = database.boot.as_ref().is_some_and(|boot| boot.create_version < VERSION_2005);
        let is_system = database.objects.get(&rowset.object_id).is_none_or(|object| object.type_code == "S");
        for level in [Level::Leaf, Level::Node] {
            let flaw = fixed_part(rowset, level, (is_system, is_from_2000), &mut spans)
                .or_else(|| variable_part(rowset, level, &mut numbers))
                .or_else(|| null_bits(rowset, level, is_system, &mut numbers));
            if let Some(flaw) = flaw {
                verdicts.doubt("sys.sysrscols, places of columns", || {
                    let rows = if level == Level::Leaf { "rows" } else { "entries above the leaf" };
                    format!("index {} of {}, {rows}: {flaw}", rowset.index_id, database.object_name(rowset.object_id))
                });
            }
        }
        if let Some(flaw) = key_places(rowset, &mut numbers) {
            verdicts.doubt("sys.sysrscols, key columns", || {
                format!("index {} of {}: {flaw}", rowset.index_id, database.object_name(rowset.object_id))
            });
        }
    }
}

/// The offset of the first byte of a column, the offset after its last byte, and whether these bytes belong to this
/// column alone. Only the bytes of a dropped column or of a bit column may be shared.
type Span = (u32, u32, bool);

/// Checks that the fixed columns fill the fixed part of the record, and that the catalog stores the right length of the
/// fixed part. Returns a description of the first contradiction, if any.
fn fixed_part(
    rowset: &Rowset,
    level: Level,
    (is_system, is_from_2000): (bool, bool),
    spans: &mut Vec<Span>,
) -> Option<String> {
    spans.clear();
    let mut bits: Vec<(u32, u8)> = Vec::new();
    for column in &rowset.layout.columns {
        let (offset, _, bit) = column.place(level);
        let Some(start) = u32::try_from(offset).ok().filter(|offset| *offset > 0) else { continue };
        if column.info.xtype == xtype::BIT && !column.is_dropped() {
            bits.push((start, bit));
        }
        let is_alone = !column.is_dropped() && column.info.xtype != xtype::BIT;
        spans.push((start, start + u32::from(column.info.length), is_alone));
    }
    bits.sort_unstable();
    if let Some((start, bit)) =
        bits.windows(2).find_map(|two| (two.first() == two.last()).then(|| two.first().copied())?)
    {
        return Some(format!("two columns have bit {bit} of byte {start}"));
    }
    spans.sort_unstable();
    let is_data = level == Level::Leaf && rowset.index_id <= 1;
    let mut end = if is_data { DATA_HEADER_BYTES } else { INDEX_HEADER_BYTES };
    let mut end_of_live = end;
    for &(start, after, is_alone) in spans.iter() {
        if start > end {
            return Some(format!("bytes {end} to {start} are in no column"));
        }
        if is_alone && start < end_of_live {
            return Some(format!("two columns are at byte {start}"));
        }
        end = end.max(after);
        if is_alone {
            end_of_live = end_of_live.max(after);
        }
    }
    let (kept, tail) = match level {
        Level::Leaf => (rowset.min_leaf, 0),
        Level::Node => (rowset.min_node, CHILD_POINTER_BYTES),
    };
    // SQL Server 2000 made the fixed part of each row at least as long as a forwarding stub.
    let least = if is_from_2000 && level == Level::Leaf { STUB_BYTES } else { 0 };
    let (kept, whole) = (u32::from(kept), end + tail);
    // sys.sysrowsets stores the length of the fixed part of a row. A length of 0 means that the length is unknown (in
    // SQL Server 2005) or that the index has no level above the leaf. For a system table, the stored length may be too
    // great: we have seen a system table whose columns had been removed without a change of this length.
    let fits =
        kept == 0 || kept == whole || kept == least.max(whole) || is_system && level == Level::Leaf && kept > whole;
    (!fits).then(|| {
        format!("its fixed part has {whole} bytes according to its columns, but {kept} according to sys.sysrowsets")
    })
}

/// Checks that the variable columns are numbered from 1. Returns a description of the first contradiction, if any.
fn variable_part(rowset: &Rowset, level: Level, numbers: &mut Vec<u32>) -> Option<String> {
    let number =
        |column: &RowsetColumn| u32::try_from(-i32::from(column.place(level).0)).ok().filter(|number| *number > 0);
    numbers.clear();
    numbers.extend(rowset.layout.columns.iter().filter_map(number));
    numbers.sort_unstable();
    let wrong = numbers.iter().zip(1..).find(|(number, wanted)| **number != *wanted);
    wrong.map(|(_, wanted)| format!("no column, or more than one, is variable column {wanted}"))
}

/// Checks that each column in use has its own null bit, and that the highest null bit has the number that the catalog
/// stores. Returns a description of the first contradiction, if any.
fn null_bits(rowset: &Rowset, level: Level, is_system: bool, numbers: &mut Vec<u32>) -> Option<String> {
    let bit = |column: &RowsetColumn| column.place(level).1;
    let greatest = rowset.layout.columns.iter().map(bit).max().unwrap_or_default();
    numbers.clear();
    let live = rowset.layout.columns.iter().filter(|column| !column.is_dropped());
    numbers.extend(live.map(|column| u32::from(bit(column))).filter(|bit| *bit > 0));
    numbers.sort_unstable();
    if let Some(twice) = numbers.windows(2).find_map(|two| (two.first() == two.last()).then(|| two.first().copied())?) {
        return Some(format!("two columns have null bit {twice}"));
    }
    let kept = rowset.max_null_bit;
    let fits = level == Level::Node || kept == 0 || kept == greatest || is_system && kept > greatest;
    (!fits).then(|| {
        format!("its greatest null bit is {greatest} according to its columns, but {kept} according to sys.sysrowsets")
    })
}

/// Checks that the key columns are numbered from 1, and that the entries above the leaf contain exactly the key
/// columns. Returns a description of the first contradiction, if any.
fn key_places(rowset: &Rowset, numbers: &mut Vec<u32>) -> Option<String> {
    numbers.clear();
    numbers.extend(rowset.layout.columns.iter().map(|column| u32::from(column.key_ordinal)).filter(|place| *place > 0));
    numbers.sort_unstable();
    if let Some((_, wanted)) = numbers.iter().zip(1..).find(|(number, wanted)| **number != *wanted) {
        return Some(format!("no column, or more than one, has place {wanted} in the key"));
    }
    // Dropped columns are skipped: if a clustered index was converted to a heap, the heap keeps the key positions of
    // dropped columns.
    let is_split =
        |column: &&RowsetColumn| (column.key_ordinal > 0) != (column.node_offset != 0) && !column.is_dropped();
    let column = rowset.layout.columns.iter().find(is_split)?;
    Some(match column.key_ordinal {
        0 => format!("column {} is in the entries above the leaf, but not in the key", column.id),
        place => format!("column {} has place {place} in the key, but none in the entries above the leaf", column.id),
    })
}

#[cfg(test)]
mod tests {
    use catalog::{RowLayout, column_status};
    use format::collation::CollationId;
    use format::types::TypeInfo;

    use super::*;

    /// An int column at offset 4.
    fn number() -> RowsetColumn {
        RowsetColumn {
            id: 1,
            physical: 1,
            info: TypeInfo { length: 4, ..TypeInfo::from_ti(xtype::INT.into()) },
            collation: CollationId(0),
            status: 0,
            key_ordinal: 0,
            leaf_offset: 4,
            node_offset: 0,
            leaf_null_bit: 1,
            node_null_bit: 0,
            default: None,
            leaf_bit: 0,
            node_bit: 0,
        }
    }

    #[test]
    fn rows_of_2000_have_room_for_a_stub() {
        let heap = Rowset { min_leaf: 9, layout: RowLayout { columns: vec![number()] }, ..Rowset::default() };
        let flaw = |is_from_2000| fixed_part(&heap, Level::Leaf, (false, is_from_2000), &mut Vec::new());
        assert_eq!(flaw(true), None);
        assert_eq!(
            flaw(false).as_deref(),
            Some("its fixed part has 8 bytes according to its columns, but 9 according to sys.sysrowsets")
        );
    }

    #[test]
    fn a_dropped_column_of_a_key_keeps_its_place_above_the_leaf() {
        let flaw = |status| {
            let columns = vec![RowsetColumn { node_offset: 1, status, ..number() }];
            key_places(&Rowset { layout: RowLayout { columns }, ..Rowset::default() }, &mut Vec::new())
        };
        assert_eq!(flaw(column_status::DROPPED), None);
        assert!(flaw(0).is_some());
    }
}
