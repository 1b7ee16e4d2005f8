//! Builds FixedVar records: rows of tables and of indexes, on leaf and non-leaf pages.

use crate::compress;
use crate::ids::{PageId, RowId};
use crate::layout::{Layout, Leaf, PhysicalColumn, Place, Source};
use crate::row::{Cell, Extra, Kind, Row};
use crate::types::Storage;

/// Status bit: the record ends with a version tag of 14 bytes.
const HAS_VERSION: u8 = 0x40;

/// The most variable-length columns in a record.
pub(crate) const MOST_VARIABLE: usize = 256;
/// Flag in the end offset of a column: the value is a pointer or the sparse vector.
const COMPLEX: u16 = 0x8000;

/// Writes the leaf record of a row.
pub(crate) fn leaf(layout: &Layout, row: &Row, extra: &Extra, kind: Kind, out: &mut Vec<u8>) {
    out.clear();
    let layout = layout.of_row(extra.number);
    if layout.compressed {
        return compress::push_record(
            compress::status(layout.leaf, kind),
            &compress::stored_row(layout, row, extra),
            out,
        );
    }
    let type_bits = match (layout.leaf, kind) {
        (Leaf::Data, Kind::Primary) => 0,
        (Leaf::Data, Kind::Forwarded(_)) => 1 << 1,
        (Leaf::Data, Kind::Ghost) => 6 << 1,
        (Leaf::Index, Kind::Ghost) => 5 << 1,
        (Leaf::Index, _) => 3 << 1,
    };
    out.resize(usize::from(layout.leaf_fixed), 0);
    if layout.leaf == Leaf::Data {
        out[2..4].copy_from_slice(&layout.leaf_fixed.to_le_bytes());
    }
    let back = match kind {
        Kind::Forwarded(stub) => Some(stub),
        _ => None,
    };
    let status = body(out, layout.columns.iter().map(|c| (c, c.leaf)), layout.leaf_nulls, row, extra, back);
    out[0] = type_bits | status;
    if extra.versioned {
        out[0] |= HAS_VERSION;
        // The version tag: the address of the older row version, and the number of the transaction. Both are
        // meaningless after the server has stopped.
        out.extend([0x58, 0x11, 0, 0, 1, 0, 3, 0, 0x2A, 0x07, 0, 0, 0, 0]);
    }
}

/// Writes the non-leaf record that points to the page `child`. `row` is the first row of `child`.
pub(crate) fn inner(layout: &Layout, row: &Row, extra: &Extra, child: PageId, out: &mut Vec<u8>) {
    out.clear();
    out.resize(usize::from(layout.inner_fixed), 0);
    let columns = layout.columns.iter().filter(|column| column.in_inner).map(|column| (column, column.inner));
    let status = body(out, columns, layout.inner_nulls, row, extra, None);
    out[0] = 3 << 1 | status;
    set_child(layout, out, child);
}

/// Sets the child pointer of a non-leaf record, which is the last six bytes of the fixed-length part.
pub(crate) fn set_child(layout: &Layout, record: &mut [u8], child: PageId) {
    let end = usize::from(layout.inner_fixed);
    record[end - 6..end].copy_from_slice(&child.bytes());
}

/// Fills in the fixed-length part of a record, and appends the null bitmap and the variable-length part. Returns the
/// status bits which show that the record has a null bitmap or a variable-length part.
fn body<'a>(
    out: &mut Vec<u8>,
    columns: impl Iterator<Item = (&'a PhysicalColumn, Place)> + Clone,
    nulls: bool,
    row: &Row,
    extra: &Extra,
    back: Option<RowId>,
) -> u8 {
    let mut status = 0;
    let mut count = 0usize;
    let mut null_bits = [0u8; 128];
    let mut ends = [(0u16, 0u16); MOST_VARIABLE];
    let mut variables = 0usize;
    for (column, place) in columns.clone() {
        count = count.max(usize::from(place.null_bit));
        let value = value_of(column, row, extra);
        if place.null_bit > 0 {
            let bit = usize::from(place.null_bit - 1);
            // An altered column has the same null bit as the dropped column from which it was made. So the null bit of
            // the dropped column is overwritten.
            null_bits[bit / 8] &= !(1 << (bit % 8));
            null_bits[bit / 8] |= u8::from(value.is_none()) << (bit % 8);
        }
        if place.offset > 0 {
            let Some(value) = value else { continue };
            let at = place.offset as usize;
            if column.ty.storage() == Storage::Bit {
                out[at] |= (value[0] & 1) << place.bit;
            } else {
                out[at..at + value.len()].copy_from_slice(value);
            }
        } else if place.offset < 0 {
            let number = usize::from(place.offset.unsigned_abs()) - 1;
            ends[number] = (value.map_or(0, <[u8]>::len) as u16, if is_complex(column, row) { COMPLEX } else { 0 });
            if value.is_some_and(|value| !value.is_empty()) {
                variables = variables.max(number + 1);
            }
        }
    }
    if nulls {
        status |= 0x10;
        out.extend((count as u16).to_le_bytes());
        out.extend(&null_bits[..count.div_ceil(8)]);
    }
    if variables == 0 && back.is_none() {
        return status;
    }
    status |= 0x20;
    let all = variables + usize::from(back.is_some());
    out.extend((all as u16).to_le_bytes());
    let mut end = out.len() + 2 * all;
    for &(length, complex) in &ends[..variables] {
        end += length as usize;
        out.extend((end as u16 | complex).to_le_bytes());
    }
    if back.is_some() {
        out.extend(((end + 10) as u16 | COMPLEX).to_le_bytes());
    }
    // Values are written in the order of their column numbers in the record. If the columns are listed in this order,
    // one pass is enough. In non-leaf records, the key columns may be listed in another order.
    let mut written = 0;
    while written < variables {
        for (column, place) in columns.clone() {
            if place.offset == -(written as i16) - 1 {
                out.extend(value_of(column, row, extra).unwrap_or_default());
                written += 1;
            }
        }
    }
    if let Some(stub) = back {
        out.extend([0, 4]);
        out.extend(stub.bytes());
    }
    status
}

fn value_of<'a>(column: &PhysicalColumn, row: &'a Row, extra: &'a Extra) -> Option<&'a [u8]> {
    match column.source {
        Source::Column(at) => row.value(at),
        Source::Uniquifier => Some(extra.uniquifier()),
        Source::RowId => Some(extra.row_id()),
        Source::SparseVector => (!extra.sparse.is_empty()).then_some(&extra.sparse[..]),
    }
}

fn is_complex(column: &PhysicalColumn, row: &Row) -> bool {
    match column.source {
        Source::Column(at) => matches!(row.cell(at), Cell::Pointer(..)),
        Source::SparseVector => true,
        Source::Uniquifier | Source::RowId => false,
    }
}
