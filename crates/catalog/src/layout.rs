//! The positions of a rowset's columns in its records (sysrscols; docs/format/catalog.md#sysrscols).

use format::collation::CollationId;
use format::compressed::{CompressedColumn, Expansion};
use format::key::{KeyColumn, KeyOrder};
use format::record::{Record, RecordKind};
use format::sparse::SparseVector;
use format::types::{TypeInfo, fixed_length, xtype};

/// Bits of sysrscols.status.
pub mod column_status {
    /// The column was dropped, but still occupies its position in the records.
    pub const DROPPED: u32 = 0x2;
    /// A key column that is sorted descending.
    pub const DESCENDING: u32 = 0x8;
    /// The uniquifier of a clustered index that is not unique.
    pub const UNIQUIFIER: u32 = 0x10;
    /// A FILESTREAM column.
    pub const FILESTREAM: u32 = 0x20;
    /// A hidden column of an online index build. It marks rows that the build must remove again.
    pub const ANTI_MATTER: u32 = 0x40;
    /// The column is declared NOT NULL.
    pub const NOT_NULL: u32 = 0x80;
    /// A sparse column.
    pub const SPARSE: u32 = 0x100;
    /// The column was added with a default. Records that were written before the column was added have this default as
    /// its value.
    pub const HAS_DEFAULT: u32 = 0x200;
    /// No bit of a file: the value of the column is the null bitmap of the record. Only tables that no catalog describes
    /// have such a column.
    pub const NULL_BITS: u32 = 0x8000_0000;
}

/// A level of an index. A column has different positions in leaf records and in non-leaf records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// The leaf level.
    Leaf,
    /// Any level above the leaf level.
    Node,
}

/// The content of a column in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored<'a> {
    /// NULL.
    Null,
    /// The record does not contain the column, because the column was added after the record was written. The value is
    /// the default at the time when the column was added, or NULL.
    Absent,
    /// The value.
    Plain(&'a [u8]),
    /// A pointer to the value, or a value in a form that must be decoded first.
    Complex(&'a [u8]),
}

impl<'a> Stored<'a> {
    /// The bytes of the value, if it is stored as [`Self::Plain`].
    pub fn plain(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Plain(bytes) => Some(bytes),
            Self::Null | Self::Absent | Self::Complex(_) => None,
        }
    }
}

/// A column as stored in a rowset.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RowsetColumn {
    /// In a heap or clustered index, the column ID (0 for the uniquifier). In a nonclustered index, the position of the
    /// column in the index.
    pub id: u32,
    /// The number of the column in the physical order of the record.
    pub physical: u32,
    /// The type of the column.
    pub info: TypeInfo,
    /// The collation of a string column.
    pub collation: CollationId,
    /// The status bits, see [`column_status`].
    pub status: u32,
    /// The position of the column in the sort order, starting at 1; 0 if the rows are not sorted by the column.
    pub key_ordinal: u16,
    /// The position in leaf records. It is a positive byte offset, or the negative number of a variable-length column,
    /// or 0 if the column is not stored.
    pub leaf_offset: i16,
    /// The position in non-leaf records, in the same form as `leaf_offset`.
    pub node_offset: i16,
    /// The number of the column's null bit in leaf records, starting at 1; 0 if the column has no null bit.
    pub leaf_null_bit: u16,
    /// The number of the column's null bit in non-leaf records, in the same form as `leaf_null_bit`.
    pub node_null_bit: u16,
    /// The value of the column in records that were written before the column was added; `None` if the catalog has no
    /// such value.
    pub default: Option<Box<[u8]>>,
    /// For a bit column, the number of its bit in the byte, in leaf records.
    pub leaf_bit: u8,
    /// For a bit column, the number of its bit in the byte, in non-leaf records.
    pub node_bit: u8,
}

impl RowsetColumn {
    /// The offset, the null bit and the bit position of the column in records of `level`.
    #[inline]
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

    /// Whether the column is sparse.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        self.status & column_status::SPARSE != 0
    }

    /// Whether decimal values of the column are stored with variable length (vardecimal), as in tables of SQL Server
    /// 2005 SP2 (docs/format/compression.md#decimals).
    pub fn is_vardecimal(&self) -> bool {
        matches!(self.info.xtype, xtype::DECIMAL | xtype::NUMERIC) && self.leaf_offset < 0 && !self.is_sparse()
    }

    /// Whether the column has a fixed-length type but is stored as a variable-length column, possibly without padding.
    /// This is true for decimals of SQL Server 2005 SP2, and for nullable strings of a table that was created with
    /// ANSI_PADDING OFF.
    pub fn is_stored_shorter(&self) -> bool {
        let is_padded = matches!(self.info.xtype, xtype::CHAR | xtype::NCHAR | xtype::BINARY);
        self.is_vardecimal() || is_padded && self.leaf_offset < 0 && !self.is_sparse()
    }

    /// The content of the column in a record of `level`.
    #[inline]
    pub fn stored<'a>(&self, level: Level, record: &Record<'a>) -> Stored<'a> {
        // In a table, the sparse vector of the row contains the sparse columns. In an index, sparse columns are stored
        // like other columns.
        if self.is_sparse() && !matches!(record.kind(), RecordKind::Index | RecordKind::GhostIndex) {
            return self.sparse(record);
        }
        let (offset, null_bit, _) = self.place(level);
        let known = record.null_bit(null_bit);
        match offset {
            _ if known == Some(true) => Stored::Null,
            0 if self.status & column_status::NULL_BITS != 0 => Stored::Plain(record.null_bitmap()),
            0 => Stored::Absent,
            // A record that was written before the column was added has other content at the column's position, so the
            // column counts as absent. For a bit column, the byte may contain older bit columns. For a variable-length
            // column, the column number may be that of the back pointer of a forwarded row.
            _ if !record.has_column(null_bit) => Stored::Absent,
            1.. => record.fixed(offset.unsigned_abs(), self.info.length).map_or(Stored::Absent, Stored::Plain),
            _ => match record.variable(offset.unsigned_abs()) {
                Some((bytes, true)) => Stored::Complex(bytes),
                Some((bytes, false)) => Stored::Plain(bytes),
                // A record omits trailing columns that are empty. It also omits columns that were added after the
                // record was written; it has no null bit for such columns.
                None if known.is_some() || null_bit == 0 => Stored::Plain(&[]),
                None => Stored::Absent,
            },
        }
    }

    /// The value of the column in the row's sparse vector (docs/format/sparse.md); NULL if the vector does not contain
    /// the column. If the length of the value is wrong for the type, the value has an undocumented form.
    fn sparse<'a>(&self, record: &Record<'a>) -> Stored<'a> {
        let (Some(vector), Ok(id)) = (SparseVector::of(record), u16::try_from(self.id)) else { return Stored::Null };
        match vector.value(id) {
            Ok(None) => Stored::Null,
            Ok(Some(value)) => {
                let is_whole = fixed_length(self.info).is_none_or(|length| value.bytes.len() == usize::from(length));
                if value.is_complex || !is_whole { Stored::Complex(value.bytes) } else { Stored::Plain(value.bytes) }
            }
            Err(_) => Stored::Complex(&[]),
        }
    }

    /// The bytes of the column in a leaf record; `None` if the value is NULL or absent, or is not stored as plain
    /// bytes.
    pub fn leaf_bytes<'a>(&self, record: &Record<'a>) -> Option<&'a [u8]> {
        self.stored(Level::Leaf, record).plain()
    }

    fn key_column(&self, level: Level) -> KeyColumn {
        let (offset, null_bit, bit) = self.place(level);
        // Values of a fixed-length type that are stored as a variable-length column have a special form (vardecimal),
        // so their order is unknown. The uniquifier, which is an int, is the exception.
        let is_plain = offset >= 0 || fixed_length(self.info).is_none() || self.info.xtype == xtype::INT;
        KeyColumn {
            order: if is_plain { KeyOrder::of(self.info, self.collation, bit) } else { KeyOrder::Unknown },
            offset,
            length: self.info.length,
            null_bit,
            descending: self.status & column_status::DESCENDING != 0,
        }
    }
}

/// The columns of a rowset in physical order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RowLayout {
    /// The columns.
    pub columns: Vec<RowsetColumn>,
}

impl RowLayout {
    /// The columns by which the records of `level` are sorted, most significant first; empty if no key column is known.
    pub fn key(&self, level: Level) -> Vec<KeyColumn> {
        let mut ordered: Vec<&RowsetColumn> =
            self.columns.iter().filter(|column| column.key_ordinal > 0 && column.place(level).0 != 0).collect();
        ordered.sort_by_key(|column| column.key_ordinal);
        ordered.iter().map(|column| column.key_column(level)).collect()
    }

    /// Replaces the column positions of a compressed rowset by the positions in expanded rows. For compressed rows, the
    /// catalog contains only column numbers instead of positions. The first column has number -1, whatever its type
    /// (docs/format/compression.md#recognizing-it). If the catalog has other numbers, returns `None` and changes
    /// nothing.
    pub(crate) fn expand(&mut self) -> Option<Expansion> {
        let number = |column: &RowsetColumn| usize::try_from(-i32::from(column.leaf_offset)).ok()?.checked_sub(1);
        let count = self.columns.iter().filter_map(number).max()? + 1;
        let mut stored = vec![None; count];
        for column in self.columns.iter().filter(|column| column.leaf_offset != 0) {
            let place = stored.get_mut(number(column)?)?;
            let is_uniquifier = column.status & column_status::UNIQUIFIER != 0;
            let taken = place.replace(CompressedColumn { info: column.info, is_uniquifier });
            if taken.is_some() || column.is_sparse() {
                return None;
            }
        }
        let expansion = Expansion::new(&stored)?;
        for column in &mut self.columns {
            let number = number(column).filter(|_| column.leaf_offset != 0);
            // The positions of columns in the entries of compressed non-leaf pages are undocumented, so all of them are
            // set to 0.
            (column.node_offset, column.node_null_bit, column.node_bit) = (0, 0, 0);
            (column.leaf_offset, column.leaf_null_bit) = match number {
                Some(number) => (expansion.place(number)?, number as u16 + 1),
                None => (0, 0),
            };
            column.leaf_bit = 0;
        }
        Some(expansion)
    }

    /// The length of the fixed part of a nonclustered index's records at `level`: the status byte, the fixed-length
    /// columns and, above the leaf level, the child pointer.
    pub fn index_fixed_length(&self, level: Level) -> u16 {
        let ends = self.columns.iter().filter_map(|column| {
            let (offset, ..) = column.place(level);
            u16::try_from(offset).ok().filter(|offset| *offset > 0)?.checked_add(column.info.length)
        });
        let child_pointer = if level == Level::Node { 6 } else { 0 };
        ends.max().unwrap_or(1).saturating_add(child_pointer)
    }

    /// The column with ID `id`, unless it was dropped.
    pub fn column(&self, id: u32) -> Option<&RowsetColumn> {
        self.columns.iter().find(|column| column.id == id && !column.is_dropped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: u8, leaf_offset: i16, leaf_null_bit: u16, leaf_bit: u8) -> RowsetColumn {
        RowsetColumn {
            id: 1,
            physical: 1,
            info: TypeInfo { length: 1, ..TypeInfo::from_ti(kind.into()) },
            collation: CollationId(0),
            status: 0,
            key_ordinal: 0,
            leaf_offset,
            node_offset: 0,
            leaf_null_bit,
            node_null_bit: 0,
            default: None,
            leaf_bit,
            node_bit: 0,
        }
    }

    #[test]
    fn a_column_that_a_record_does_not_know_is_absent_whatever_is_in_its_place() {
        // A record with one bit column of value 1, and with a back pointer as its only variable-length column.
        let bytes = [0x32, 0, 5, 0, 0b11, 1, 0, 0, 1, 0, 22, 0x80, 0, 4, 7, 0, 0, 0, 1, 0, 3, 0];
        let record = Record::data(&bytes).unwrap();
        assert_eq!(column(xtype::BIT, 4, 1, 0).stored(Level::Leaf, &record), Stored::Plain(&[0b11]));
        assert_eq!(column(xtype::BIT, 4, 2, 1).stored(Level::Leaf, &record), Stored::Absent);
        assert_eq!(column(xtype::VARCHAR, -1, 2, 0).stored(Level::Leaf, &record), Stored::Absent);
    }
}
