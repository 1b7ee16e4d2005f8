//! Reads the base tables that describe all other tables. Only the leading columns of these base tables have fixed
//! offsets (docs/format/catalog.md#bootstrap).

use format::bytes::{u16_at, u32_at, u64_at};
use format::collation::CollationId;
use format::record::Record;
use format::types::{TypeInfo, fixed_length};
use format::{AllocUnitId, PageId};
use source::PageSource;

use crate::database::{AllocUnit, Gap, Rowset, UnitKind};
use crate::found::Found;
use crate::layout::{RowLayout, RowsetColumn, column_status};
use crate::rows::{Place, Start, fault, scan};

/// The pages from which base tables are read.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'a> {
    /// The source of the pages.
    pub(crate) source: &'a dyn PageSource,
    /// The leaves of base tables whose chain is broken; `None` if all base tables are read along their chains.
    pub(crate) found: Option<&'a Found>,
}

/// Reads one table, and records the rows that could not be read. If the chain of the table is broken, its rows come from
/// the leaves that were found, if any; the fault of the chain stays recorded.
pub(crate) fn table(
    Pages { source, found }: Pages<'_>,
    gaps: &mut Vec<Gap>,
    (object_id, table): (i32, &'static str),
    place: Option<Place<'_>>,
    mut visit: impl FnMut(Record<'_>),
) {
    let mut add = |_, record: Record<'_>| visit(record);
    let broken = found.map(|found| (found, place.map(|place| fault(source, place))));
    let (bad_records, fault) = match (broken, place) {
        (Some((found, chain)), _) if chain != Some(None) => {
            let (unit, leaves) = found.leaves_of(object_id);
            let (bad, _) = scan(source, Place { unit, start: Start::Leaves(leaves), expansion: None }, &mut add);
            (bad, chain.flatten())
        }
        (_, Some(place)) => scan(source, place, &mut add),
        (_, None) => (0, None),
    };
    // Some tables are read twice. A gap in such a table is recorded only once.
    let is_recorded = gaps.iter().any(|gap| gap.object_id == object_id);
    if !is_recorded && (bad_records > 0 || fault.is_some() || place.is_none()) {
        gaps.push(Gap { object_id, table, fault, bad_records, missing_rows: 0 });
    }
}

/// Reads a row of sysallocunits.
pub(crate) fn alloc_unit(record: &Record<'_>) -> Option<AllocUnit> {
    let row = record.fixed(4, 65)?;
    Some(AllocUnit {
        id: AllocUnitId(u64_at(row, 0)?),
        kind: match *row.get(8)? {
            1 => UnitKind::InRow,
            2 => UnitKind::Lob,
            3 => UnitKind::Overflow,
            other => UnitKind::Other(other),
        },
        owner_id: u64_at(row, 9)?,
        rowset: None,
        filegroup: u16_at(row, 21)?,
        first_page: PageId::read(row, 23)?,
        root: PageId::read(row, 29)?,
        first_iam: PageId::read(row, 35)?,
        used_pages: u64_at(row, 41)?.cast_signed(),
        data_pages: u64_at(row, 49)?.cast_signed(),
        reserved_pages: u64_at(row, 57)?.cast_signed(),
    })
}

/// Reads a row of sysrowsets. In SQL Server 2005, this table lacks the columns that describe the row layout.
pub(crate) fn rowset(record: &Record<'_>, is_2005: bool) -> Option<Rowset> {
    let row = record.fixed(4, 35)?;
    let later = |offset: u16, length| record.fixed(4 + offset, length).filter(|_| !is_2005);
    let word = |offset| later(offset, 2).and_then(|bytes| u16_at(bytes, 0)).unwrap_or_default();
    Some(Rowset {
        id: u64_at(row, 0)?,
        owner_type: *row.get(8)?,
        object_id: u32_at(row, 9)?.cast_signed(),
        index_id: u32_at(row, 13)?.cast_signed(),
        partition: u32_at(row, 17)?.cast_signed(),
        status: u32_at(row, 21)?,
        rows: u64_at(row, 27)?.cast_signed(),
        compression: later(35, 1).and_then(<[u8]>::first).copied().unwrap_or_default(),
        max_null_bit: word(37),
        min_leaf: word(45),
        min_node: word(47),
        units: Vec::new(),
        layout: RowLayout::default(),
        expansion: None,
    })
}

/// Reads a row of sysrscols (2008 and later): the rowset ID and the column.
pub(crate) fn rowset_column(record: &Record<'_>) -> Option<(u64, RowsetColumn)> {
    let row = record.fixed(4, 50)?;
    let (offset, null_bit, bit) = (u32_at(row, 40)?, u32_at(row, 44)?, u16_at(row, 48)?);
    Some((
        u64_at(row, 0)?,
        RowsetColumn {
            id: u32_at(row, 8)?,
            physical: u32_at(row, 12)?,
            info: TypeInfo::from_ti(u32_at(row, 24)?),
            collation: CollationId(u32_at(row, 28)?),
            key_ordinal: u16_at(row, 32)?,
            status: u32_at(row, 36)?,
            leaf_offset: (offset as u16).cast_signed(),
            node_offset: ((offset >> 16) as u16).cast_signed(),
            leaf_null_bit: null_bit as u16,
            node_null_bit: (null_bit >> 16) as u16,
            default: None,
            leaf_bit: bit as u8,
            node_bit: (bit >> 8) as u8,
        },
    ))
}

/// Reads a row of sysrowsetcolumns (2005): the rowset ID, the hobt column and the column ID.
pub(crate) fn rowset_column_2005(record: &Record<'_>) -> Option<((u64, u32), u32)> {
    let row = record.fixed(4, 20)?;
    Some(((u64_at(row, 0)?, u32_at(row, 12)?), u32_at(row, 8)?))
}

/// Bits of syshobtcolumns.status (2005).
mod status_2005 {
    pub(super) const UNIQUIFIER: u32 = 0x02;
    pub(super) const NOT_NULL: u32 = 0x20;
}

/// The column ID that sysrowsetcolumns (2005) contains for the first dropped column that still occupies space in the
/// rows. Further dropped columns have the following IDs.
const DROPPED_2005: u32 = 0x1_0000;

/// Sets the ID of a column of syshobtcolumns to its ID in sysrowsetcolumns, and marks dropped columns. Only the exact
/// high bits of [`DROPPED_2005`] mark a dropped column: in upgraded base tables, columns that are still in use have
/// other high bits.
pub(crate) fn name_column_2005(column: &mut RowsetColumn, id: u32) {
    column.id = id;
    column.status &= !column_status::DROPPED;
    if id & !0xFFFF == DROPPED_2005 {
        column.status |= column_status::DROPPED;
    }
}

/// Reads a row of syshobtcolumns (2005), which lacks the column ID.
pub(crate) fn hobt_column_2005(record: &Record<'_>) -> Option<(u64, RowsetColumn)> {
    let row = record.fixed(4, 37)?;
    let (hobt, physical, status) = (u64_at(row, 0)?, u32_at(row, 8)?, u32_at(row, 12)?);
    let mut info =
        TypeInfo { xtype: *row.get(18)?, length: u16_at(row, 19)?, precision: *row.get(21)?, scale: *row.get(22)? };
    info.length = fixed_length(info).unwrap_or(info.length);
    let translated =
        [(status_2005::UNIQUIFIER, column_status::UNIQUIFIER), (status_2005::NOT_NULL, column_status::NOT_NULL)]
            .into_iter()
            .filter(|(bit, _)| status & bit != 0)
            .fold(0, |all, (_, bit)| all | bit);
    Some((
        hobt,
        RowsetColumn {
            id: 0,
            physical,
            info,
            collation: CollationId(u32_at(row, 23)?),
            status: translated,
            key_ordinal: u16_at(row, 16)?,
            leaf_offset: u16_at(row, 27)?.cast_signed(),
            node_offset: u16_at(row, 29)?.cast_signed(),
            leaf_null_bit: u16_at(row, 33)?,
            node_null_bit: u16_at(row, 35)?,
            default: None,
            leaf_bit: *row.get(31)?,
            node_bit: *row.get(32)?,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_that_2005_dropped_are_known_by_their_ids() {
        // A float column as in the SoftQLD database: hobt 1, physical column 13, type 62, length 8, at offset 20.
        let mut bytes = vec![0; 4 + 41 + 3];
        (bytes[0], bytes[2], bytes[4], bytes[12], bytes[22], bytes[31]) = (0x10, 45, 1, 13, 62, 20);
        (bytes[45], bytes[46]) = (1, 0);
        let record = Record::data(&bytes).unwrap();
        let column = |id| {
            let mut column = hobt_column_2005(&record).unwrap().1;
            name_column_2005(&mut column, id);
            column
        };
        assert!(column(DROPPED_2005).is_dropped() && column(DROPPED_2005 + 1).is_dropped());
        assert!(!column(13).is_dropped() && !column(0x0200_0001).is_dropped());
    }
}
