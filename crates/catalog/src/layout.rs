//! Where the columns of a rowset lie in its records (sysrscols; format.md 10).

use format::collation::CollationId;
use format::key::{KeyColumn, KeyOrder};
use format::record::Record;
use format::types::TypeInfo;

/// Bits of sysrscols.status.
pub mod column_status {
    /// The column was dropped; it keeps its place.
    pub const DROPPED: u32 = 0x2;
    /// Key column sorted descending.
    pub const DESCENDING: u32 = 0x8;
    /// The uniquifier of a clustered index that is not unique.
    pub const UNIQUIFIER: u32 = 0x10;
    /// FILESTREAM column.
    pub const FILESTREAM: u32 = 0x20;
    /// Declared NOT NULL.
    pub const NOT_NULL: u32 = 0x80;
    /// Sparse.
    pub const SPARSE: u32 = 0x100;
}

/// Leaf or not: columns lie in different places there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Leaf level.
    Leaf,
    /// Any level above.
    Node,
}

/// A column as a rowset stores it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowsetColumn {
    /// Column id in a base rowset (0 for the uniquifier); position in a nonclustered index.
    pub id: u32,
    /// Physical order.
    pub physical: u32,
    /// Type.
    pub info: TypeInfo,
    /// Collation of string columns.
    pub collation: CollationId,
    /// See [`column_status`].
    pub status: u32,
    /// Place in the sort order, from 1; 0 when not part of it. `None` when the catalogue does not tell.
    pub key_ordinal: u16,
    /// Place in leaf records: positive byte offset, negative variable column, 0 not stored.
    pub leaf_offset: i16,
    /// Place in records of the levels above.
    pub node_offset: i16,
    /// Null bit in leaf records, from 1; 0 without.
    pub leaf_null_bit: u16,
    /// Null bit above.
    pub node_null_bit: u16,
    /// Bit position of a bit column in its byte, leaf.
    pub leaf_bit: u8,
    /// The same above.
    pub node_bit: u8,
}

impl RowsetColumn {
    /// Offset, null bit and bit position in records of `level`.
    pub fn place(&self, level: Level) -> (i16, u16, u8) {
        match level {
            Level::Leaf => (self.leaf_offset, self.leaf_null_bit, self.leaf_bit),
            Level::Node => (self.node_offset, self.node_null_bit, self.node_bit),
        }
    }

    /// Whether the column was dropped.
    pub fn is_dropped(&self) -> bool {
        self.status & column_status::DROPPED != 0
    }

    /// The column's plainly stored bytes in a leaf record: `None` when NULL, not stored or complex.
    pub fn leaf_bytes<'a>(&self, record: &Record<'a>) -> Option<&'a [u8]> {
        if record.null_bit(self.leaf_null_bit) == Some(true) {
            return None;
        }
        match self.leaf_offset {
            0 => None,
            1.. => record.fixed(self.leaf_offset.unsigned_abs(), self.info.length),
            _ => match record.variable(self.leaf_offset.unsigned_abs()) {
                Some((_, true)) => None,
                Some((bytes, false)) => Some(bytes),
                // A record of before the column was added has no null bit for it either.
                None => record.null_bit(self.leaf_null_bit).map(|_| &[][..]),
            },
        }
    }

    fn key_column(&self, level: Level) -> KeyColumn {
        let (offset, null_bit, bit) = self.place(level);
        KeyColumn {
            order: KeyOrder::of(self.info, self.collation, bit),
            offset,
            length: self.info.length,
            null_bit,
            descending: self.status & column_status::DESCENDING != 0,
        }
    }
}

/// The columns of a rowset, by physical order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RowLayout {
    /// The columns.
    pub columns: Vec<RowsetColumn>,
}

impl RowLayout {
    /// The columns that order the records of `level`, most significant first; empty when none is known.
    pub fn key(&self, level: Level) -> Vec<KeyColumn> {
        let mut ordered: Vec<&RowsetColumn> =
            self.columns.iter().filter(|column| column.key_ordinal > 0 && column.place(level).0 != 0).collect();
        ordered.sort_by_key(|column| column.key_ordinal);
        ordered.iter().map(|column| column.key_column(level)).collect()
    }

    /// Length of the fixed part of the records of a nonclustered index's `level`: status byte, fixed columns and, above
    /// the leaf, the child pointer.
    pub fn index_fixed_length(&self, level: Level) -> u16 {
        let ends = self.columns.iter().filter_map(|column| {
            let (offset, ..) = column.place(level);
            u16::try_from(offset).ok().filter(|offset| *offset > 0)?.checked_add(column.info.length)
        });
        let child_pointer = if level == Level::Node { 6 } else { 0 };
        ends.max().unwrap_or(1).saturating_add(child_pointer)
    }

    /// The column with id `id`, dropped ones excepted.
    pub fn column(&self, id: u32) -> Option<&RowsetColumn> {
        self.columns.iter().find(|column| column.id == id && !column.is_dropped())
    }
}
