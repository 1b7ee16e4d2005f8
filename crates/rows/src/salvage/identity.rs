//! Identifies a row by its address in a heap or by its clustering key. Rows of nonclustered indexes contain this
//! identity as their locator.

use catalog::{Level, Rowset, RowsetColumn, Stored, column_status};
use format::compressed::{CdKind, CdRecord, CompressionInfo};
use format::record::{Record, RecordKind};
use format::slots::SlotOrder;
use format::types::xtype;
use format::{Page, PageId, RecordId};

use super::difference::{Hash, hash};
use crate::index_columns::{Origin, key_columns};

/// The columns of an index or table that identify a row.
pub(crate) struct Identity<'a> {
    /// For a table or index with a clustering key, the columns of this key in key order. For an index of a heap, only
    /// the column with the row address. For the heap itself, the list is empty.
    columns: Vec<&'a RowsetColumn>,
    is_heap: bool,
}

impl<'a> Identity<'a> {
    /// The identifying columns in rows of a heap or clustered index.
    pub(crate) fn of_table(base: &'a Rowset) -> Self {
        match base.index_id {
            0 => Self { columns: Vec::new(), is_heap: true },
            _ => Self { columns: key_columns(base), is_heap: false },
        }
    }

    /// The identifying columns in rows of a nonclustered index of `base`; `None` if the index lacks a part of the
    /// locator.
    pub(crate) fn of_index(base: &Rowset, index: &'a Rowset, origins: &[(u32, Origin)]) -> Option<Self> {
        let of = |wanted: Origin| {
            let (id, _) = origins.iter().find(|(_, origin)| *origin == wanted)?;
            index.layout.columns.iter().find(|column| column.id == *id)
        };
        let columns = match base.index_id {
            0 => vec![of(Origin::RowId)?],
            _ => key_columns(base)
                .into_iter()
                .map(|column| match column.status & column_status::UNIQUIFIER {
                    0 => of(Origin::Column(column.id)),
                    _ => of(Origin::Uniquifier),
                })
                .collect::<Option<Vec<_>>>()?,
        };
        Some(Self { columns, is_heap: base.index_id == 0 })
    }

    /// A hash of the identity of the row at `place`; `None` if the identity cannot be read from the record, or if the
    /// record is not a current row.
    pub(crate) fn hash(&self, record: &Record<'_>, place: RecordId, bytes: &mut Vec<u8>) -> Option<Hash> {
        bytes.clear();
        match (self.is_heap, self.columns.first()) {
            (true, None) => push_address(home(record, place)?, bytes),
            (true, Some(column)) => push_address(RecordId::read(column.leaf_bytes(record)?, 0)?, bytes),
            (false, _) => self.columns.iter().try_for_each(|column| push(column, record, bytes))?,
        }
        Some(hash(bytes))
    }
}

/// The address that indexes use for a heap row. For a forwarded row, this is the address of its forwarding stub
/// (docs/format/forwarding.md). `None` if the record is not a current row, or if the address of the stub cannot be
/// read.
fn home(record: &Record<'_>, place: RecordId) -> Option<RecordId> {
    match record.kind() {
        RecordKind::Primary => Some(place),
        RecordKind::Forwarded => {
            let (bytes, _) = record.variable(record.variable_count())?;
            // The place of the back pointer in a compressed row is undocumented, so a row that was expanded from a
            // compressed row has a placeholder that points to no page.
            RecordId::read(bytes, 2).filter(|home| !home.page.is_none())
        }
        _ => None,
    }
}

fn push_address(address: RecordId, out: &mut Vec<u8>) {
    out.extend(address.page.page.to_le_bytes());
    out.extend(address.page.file.to_le_bytes());
    out.extend(address.slot.to_le_bytes());
}

/// Appends the value of a column in a form that does not depend on the table or index that stores the value. `None` if
/// the record does not contain the value.
fn push(column: &RowsetColumn, record: &Record<'_>, out: &mut Vec<u8>) -> Option<()> {
    let is_uniquifier =
        column.status & column_status::UNIQUIFIER != 0 || column.info.xtype == xtype::INT && column.leaf_offset < 0;
    let bytes: &[u8] = match column.stored(Level::Leaf, record) {
        // The first row with a key stores no uniquifier. The missing uniquifier counts as 0
        // (docs/format/index-records.md#uniquifier).
        Stored::Null | Stored::Absent if is_uniquifier => &[],
        Stored::Null => {
            out.push(0);
            return Some(());
        }
        Stored::Plain(bytes) => bytes,
        Stored::Absent | Stored::Complex(_) => return None,
    };
    let blanks = |mut bytes: &'_ [u8], blank: &[u8]| {
        while let Some(rest) = bytes.strip_suffix(blank) {
            bytes = rest;
        }
        bytes.len()
    };
    let length = match column.info.xtype {
        xtype::CHAR | xtype::VARCHAR => blanks(bytes, b" "),
        xtype::NCHAR | xtype::NVARCHAR => blanks(bytes, b" \0"),
        xtype::BINARY | xtype::VARBINARY | xtype::DECIMAL | xtype::NUMERIC => blanks(bytes, &[0]),
        xtype::INT if is_uniquifier => blanks(bytes, &[0]),
        _ => bytes.len(),
    };
    let bytes = match (column.info.xtype, bytes.get(..length)?) {
        (xtype::BIT, [byte]) => {
            out.extend([1, byte >> column.leaf_bit.min(7) & 1]);
            return Some(());
        }
        (_, bytes) => bytes,
    };
    out.push(1);
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
    Some(())
}

/// Calls `each` with the identities of the live rows of a sound leaf page of a nonclustered index.
pub(crate) fn each_index_row(
    page: Page<'_>,
    id: PageId,
    rowset: &Rowset,
    identity: &Identity<'_>,
    each: &mut dyn FnMut(u16, Hash),
) {
    let mut bytes = Vec::new();
    each_index_record(page, rowset, &mut |slot, record| {
        if let Some(hash) = identity.hash(record, RecordId { page: id, slot }, &mut bytes) {
            each(slot, hash);
        }
    });
}

/// Calls `each` with the slots and live rows of a sound leaf page of a nonclustered index; compressed rows are
/// expanded.
pub(crate) fn each_index_record(page: Page<'_>, rowset: &Rowset, each: &mut dyn FnMut(u16, &Record<'_>)) {
    let mut order = SlotOrder::default();
    let mut scratch = format::compressed::Scratch::default();
    order.load(page);
    let first = order.entries().first().map_or(0, |entry| usize::from(entry.offset));
    let expansion = rowset.expansion.as_ref().filter(|_| rowset.is_row_compressed());
    let info = expansion.and_then(|expansion| CompressionInfo::of(page, first, expansion.columns()).ok());
    for (position, entry) in order.entries().iter().enumerate() {
        let space = order.space(page, position);
        match (rowset.is_row_compressed(), expansion.zip(info.as_ref())) {
            (false, _) => {
                let record = Record::index(space, page.header().pminlen.get()).ok();
                if let Some(record) = record.filter(|record| record.kind() == RecordKind::Index) {
                    each(entry.slot, &record);
                }
            }
            (true, Some((expansion, info))) => {
                let record = CdRecord::read(space, expansion.columns()).ok();
                if let Some(record) = record.filter(|record| record.kind() == CdKind::Index)
                    && let Ok(expanded) = expansion.expand(&record, info.as_ref(), &mut scratch)
                    && expanded.doubts.is_empty()
                {
                    each(entry.slot, &expanded.record);
                }
            }
            (true, None) => {}
        }
    }
}
