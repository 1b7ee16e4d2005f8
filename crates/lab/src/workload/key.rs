//! Reads keys from records. Computes the sort order of keys, and builds the entries for keys on non-leaf pages.

use crate::ids::{PageId, RowId};
use crate::layout::{Layout, Leaf, PhysicalColumn, Source};
use crate::order::push_sort_key;
use crate::record;
use crate::row::{Extra, Kind, Row};
use crate::types::Storage;

/// The record layout and the key columns of an index.
#[derive(Clone, Debug)]
pub(super) struct KeyLayout {
    pub(super) layout: Layout,
    /// Positions of the key columns in the layout, in key order.
    key: Vec<usize>,
    /// The layout of a record that contains only the key. Log records of row changes contain records with this layout.
    alone: Layout,
    /// The number of columns in the table.
    columns: usize,
}

/// Flag in the end offset of a variable-length column: the value is a pointer.
const COMPLEX: u16 = 0x8000;

/// The parts of a FixedVar record.
struct Parts<'r> {
    record: &'r [u8],
    nulls: &'r [u8],
    /// `ends` has the end offsets of the variable-length columns, including the flag for complex columns. `from` is the
    /// start of the first column.
    ends: Vec<usize>,
    from: usize,
}

impl<'r> Parts<'r> {
    fn of(record: &'r [u8], fixed: usize) -> Self {
        let word = |at: usize| usize::from(u16::from_le_bytes([record[at], record[at + 1]]));
        let mut at = fixed;
        let mut nulls: &[u8] = &[];
        if record[0] & 0x10 != 0 {
            let bytes = word(at).div_ceil(8);
            nulls = &record[at + 2..at + 2 + bytes];
            at += 2 + bytes;
        }
        let mut ends = Vec::new();
        if record[0] & 0x20 != 0 {
            let count = word(at);
            ends = (0..count).map(|number| word(at + 2 + 2 * number)).collect();
            at += 2 + 2 * count;
        }
        Self { record, nulls, ends, from: at }
    }

    fn variable(&self, number: usize) -> &'r [u8] {
        let end = |number: usize| self.ends.get(number).map(|end| usize::from(*end as u16 & !COMPLEX));
        let from = number.checked_sub(1).map_or(self.from, |before| end(before).unwrap_or(0));
        end(number).and_then(|end| self.record.get(from..end)).unwrap_or_default()
    }

    fn value(&self, column: &PhysicalColumn, inner: bool) -> Option<&'r [u8]> {
        let place = if inner { column.inner } else { column.leaf };
        let bit = usize::from(place.null_bit).checked_sub(1);
        if bit.is_some_and(|bit| self.nulls.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)) {
            return None;
        }
        if place.offset < 0 {
            return Some(self.variable(usize::from(place.offset.unsigned_abs()) - 1));
        }
        let Storage::Fixed(size) = column.ty.storage() else { return None };
        self.record.get(place.offset as usize..place.offset as usize + usize::from(size))
    }
}

impl KeyLayout {
    pub(super) fn new(layout: Layout, columns: usize) -> Self {
        let mut key: Vec<usize> = (0..layout.columns.len()).filter(|&at| layout.columns[at].key_ordinal > 0).collect();
        key.sort_by_key(|&at| layout.columns[at].key_ordinal);
        let alone = key.iter().map(|&at| PhysicalColumn { in_inner: false, ..layout.columns[at].clone() });
        let alone = Layout::new(Leaf::Index, alone.collect(), true, false);
        Self { layout, key, alone, columns }
    }

    /// The key values of a record. `level` is the level of the record's page.
    fn values(&self, record: &[u8], level: u8) -> (Row, Extra) {
        let inner = level > 0;
        let parts = Parts::of(record, if inner { usize::from(self.layout.inner_fixed) } else { self.fixed(record) });
        let mut values: Vec<Option<&[u8]>> = vec![None; self.columns];
        let mut extra = Extra::default();
        for &at in &self.key {
            let column = &self.layout.columns[at];
            let value = parts.value(column, inner);
            match column.source {
                Source::Column(at) => values[at] = value,
                Source::Uniquifier => extra.set_uniquifier(number(value.unwrap_or_default())),
                Source::RowId => extra.set_row_id(row_id(value.unwrap_or_default())),
                Source::SparseVector => {}
            }
        }
        let mut row = Row::default();
        for value in values {
            match value {
                Some(bytes) => row.push(bytes),
                None => row.push_null(),
            }
        }
        (row, extra)
    }

    /// The end of the fixed-length part of a leaf record. A data record names it, because columns may have been added
    /// since the record was written.
    fn fixed(&self, record: &[u8]) -> usize {
        match self.layout.leaf {
            Leaf::Data => number(&record[2..4]) as usize,
            Leaf::Index => usize::from(self.layout.leaf_fixed),
        }
    }

    /// Returns the key of a record as bytes. The byte-wise order of such keys is the order of the keys in the index.
    pub(super) fn sort_key(&self, record: &[u8], level: u8) -> Vec<u8> {
        let (row, extra) = self.values(record, level);
        let mut key = Vec::new();
        for &at in &self.key {
            let column = &self.layout.columns[at];
            match column.source {
                Source::Column(at) => {
                    push_sort_key((column.ty, column.collation), row.value(at), column.descending, &mut key);
                }
                Source::Uniquifier => key.extend(number(extra.uniquifier()).to_be_bytes()),
                Source::RowId => key.extend(extra.row_id()),
                Source::SparseVector => {}
            }
        }
        key
    }

    /// Builds the index entry that points to the page `child` from the level above. `record` is the first record of
    /// `child`.
    pub(super) fn entry(&self, record: &[u8], level: u8, child: PageId) -> Vec<u8> {
        let (row, extra) = self.values(record, level);
        let mut entry = Vec::new();
        record::inner(&self.layout, &row, &extra, child, &mut entry);
        entry
    }

    /// A record that contains only the key. Log records of row changes contain the key in this form.
    pub(super) fn alone(&self, record: &[u8]) -> Vec<u8> {
        let (row, extra) = self.values(record, 0);
        let mut key = Vec::new();
        record::leaf(&self.alone, &row, &extra, Kind::Primary, &mut key);
        key
    }

    /// Returns two offsets in a leaf record: the end of the fixed-length part, and the start of the variable-length
    /// values.
    pub(super) fn parts(&self, record: &[u8]) -> [usize; 2] {
        let fixed = self.fixed(record);
        [fixed, Parts::of(record, fixed).from]
    }

    /// Returns the pointer that a leaf record stores instead of the value of a table column; `None` if the value itself
    /// is in the row.
    pub(super) fn pointer(&self, record: &[u8], column: usize) -> Option<Vec<u8>> {
        let column = self.layout.columns.iter().find(|own| own.source == Source::Column(column))?;
        let parts = Parts::of(record, self.fixed(record));
        let number = usize::from(column.leaf.offset.checked_neg()?.unsigned_abs()).checked_sub(1)?;
        let is_complex = parts.ends.get(number).is_some_and(|end| *end as u16 & COMPLEX != 0);
        is_complex.then(|| parts.variable(number).to_vec())
    }

    /// The page to which an entry points.
    pub(super) fn child(&self, entry: &[u8]) -> PageId {
        let end = usize::from(self.layout.inner_fixed);
        page_id(&entry[end - 6..end])
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte))
}

/// Reads a page address of six bytes.
pub(super) fn page_id(bytes: &[u8]) -> PageId {
    PageId::new(number(&bytes[4..6]) as u16, number(&bytes[..4]))
}

/// Reads a row address of eight bytes.
pub(super) fn row_id(bytes: &[u8]) -> RowId {
    if bytes.len() < 8 {
        return RowId::default();
    }
    RowId { page: page_id(&bytes[..6]), slot: number(&bytes[6..8]) as u16 }
}
