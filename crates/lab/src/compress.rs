//! Writes rows under ROW and PAGE compression: CD records, and the CI record of a page.

mod page;
mod value;

pub(crate) use page::CompressedPage;

use crate::layout::{Layout, Leaf, Source};
use crate::row::{Cell, Extra, Kind, Row};

/// The number of columns in a cluster. The columns of the short data region and of the long data region are grouped in
/// clusters.
const CLUSTER: usize = 30;
/// Length in bytes of the longest value in the short data region.
const SHORT: usize = 8;
/// The most columns of a compressed table. The lab writes the column count in one byte.
pub(crate) const MOST_COLUMNS: usize = 127;

const CODE_NULL: u8 = 0;
const CODE_EMPTY: u8 = 1;
const CODE_LONG: u8 = 0xA;
const CODE_BIT: u8 = 0xB;
const CODE_SYMBOL: u8 = 0xC;

/// The value of a column as a CD record stores it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stored {
    /// NULL.
    Null,
    /// Zero, the empty string, or a value equal to the anchor.
    Empty,
    /// A bit with the value 1.
    Bit,
    /// The bytes of the value.
    Bytes(Vec<u8>),
    /// A pointer to an off-row value.
    Pointer(Vec<u8>),
    /// The number of an entry in the page's dictionary.
    Symbol(u8),
}

/// The values of a row as ROW compression stores them, in layout order.
pub(crate) fn stored_row(layout: &Layout, row: &Row, extra: &Extra) -> Vec<Stored> {
    let stored = layout.of_row(extra.number).columns.iter().map(|column| match column.source {
        Source::Column(at) => match (row.cell(at), row.value(at)) {
            (Cell::Pointer(..), Some(bytes)) => Stored::Pointer(bytes.to_vec()),
            (_, Some(bytes)) => value::store(column.ty, bytes),
            (_, None) => Stored::Null,
        },
        Source::RowId => Stored::Bytes(extra.row_id().to_vec()),
        Source::Uniquifier => value::store(column.ty, extra.uniquifier()),
        Source::SparseVector => Stored::Null,
    });
    stored.collect()
}

/// Returns the first byte of a CD record: bit 0 is set, and the record type begins at bit 2. The bit for a long data
/// region is not set yet.
pub(crate) fn status(leaf: Leaf, kind: Kind) -> u8 {
    let record_type = match (leaf, kind) {
        (Leaf::Data, Kind::Ghost) => 3,
        (Leaf::Data, _) => 0,
        (Leaf::Index, Kind::Ghost) => 7,
        (Leaf::Index, _) => 6,
    };
    1 | record_type << 2
}

/// Whether a record with this first byte is a ghost.
pub(crate) fn is_ghost(status: u8) -> bool {
    matches!(status >> 2 & 7, 3 | 7)
}

/// Appends a CD record.
pub(crate) fn push_record(status: u8, values: &[Stored], out: &mut Vec<u8>) {
    let is_long = |value: &Stored| match value {
        Stored::Bytes(bytes) => bytes.len() > SHORT,
        Stored::Pointer(_) => true,
        _ => false,
    };
    let has_long = values.iter().any(is_long);
    out.push(status | if has_long { 0x20 } else { 0 });
    out.push(values.len() as u8);
    for pair in values.chunks(2) {
        let code = |value: Option<&Stored>| match value {
            None | Some(Stored::Null) => CODE_NULL,
            Some(Stored::Empty) => CODE_EMPTY,
            Some(Stored::Bit) => CODE_BIT,
            Some(Stored::Symbol(_)) => CODE_SYMBOL,
            Some(Stored::Bytes(bytes)) if bytes.is_empty() => CODE_EMPTY,
            Some(Stored::Bytes(bytes)) if bytes.len() <= SHORT => bytes.len() as u8 + 1,
            Some(_) => CODE_LONG,
        };
        out.push(code(pair.first()) | code(pair.get(1)) << 4);
    }
    let short = |value: &Stored| match value {
        Stored::Bytes(bytes) if bytes.len() <= SHORT => bytes.len(),
        Stored::Symbol(_) => 1,
        _ => 0,
    };
    let clusters = values.chunks(CLUSTER);
    let before_last = clusters.len().saturating_sub(1);
    for cluster in clusters.clone().take(before_last) {
        out.push(cluster.iter().map(short).sum::<usize>() as u8);
    }
    for value in values {
        match value {
            Stored::Bytes(bytes) if bytes.len() <= SHORT => out.extend(bytes),
            Stored::Symbol(symbol) => out.push(*symbol),
            _ => {}
        }
    }
    if !has_long {
        return;
    }
    let long: Vec<&Stored> = values.iter().filter(|value| is_long(value)).collect();
    let complex = long.iter().any(|value| matches!(value, Stored::Pointer(_)));
    // Bit 0: the offsets have two bytes. Bit 1: the region contains a pointer.
    out.push(1 | if complex { 2 } else { 0 });
    out.extend((long.len() as u16).to_le_bytes());
    let mut end = 0;
    for value in &long {
        let (bytes, flag) = long_bytes(value);
        end += bytes.len();
        out.extend((end as u16 | flag).to_le_bytes());
    }
    for cluster in clusters.take(before_last) {
        out.push(cluster.iter().filter(|value| is_long(value)).count() as u8);
    }
    for value in long {
        out.extend(long_bytes(value).0);
    }
}

fn long_bytes(value: &Stored) -> (&[u8], u16) {
    match value {
        Stored::Bytes(bytes) => (bytes, 0),
        Stored::Pointer(bytes) => (bytes, 0x8000),
        _ => (&[], 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_codes_short_bytes_and_long_values() {
        let values = [
            Stored::Bytes(vec![0x81]),
            Stored::Null,
            Stored::Empty,
            Stored::Bit,
            Stored::Bytes(b"nine bytes".to_vec()),
        ];
        let mut record = Vec::new();
        push_record(1, &values, &mut record);
        let mut expected = vec![0x21, 5, 0x02, 0xB1, 0x0A, 0x81, 1, 1, 0, 10, 0];
        expected.extend(b"nine bytes");
        assert_eq!(record, expected);
    }

    #[test]
    fn clusters_of_thirty_have_their_sums() {
        // A published example shows that a record with 107 columns has three cluster sums in each of its two data
        // regions.
        let values = vec![Stored::Bytes(vec![7]); 107];
        let mut record = Vec::new();
        push_record(1, &values, &mut record);
        assert_eq!(record[2 + 54..][..3], [30, 30, 30]);
        assert_eq!(record.len(), 2 + 54 + 3 + 107);
    }
}
