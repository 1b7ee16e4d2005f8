//! FixedVar records of data and index pages (docs/format/records.md, docs/format/index-records.md). A record is audited
//! before its columns are read.
//!
//! A record does not store its length: its end follows from the fixed part, the null bitmap and the variable offset
//! array. [`Record::data`] and [`Record::index`] prove that these three parts are inside the space between this record
//! and the next one. Therefore no accessor of a [`Record`] reads outside this space.

mod fault;

use crate::bytes::{u16_at, unsigned};
use crate::fields::{Structure, offset};

pub use fault::{RecordFault, RecordTest};

/// The length in bytes of a version tag, which a record has if status bit 0x40 is set.
pub const VERSION_TAG_BYTES: usize = offset(Structure::VersionTag, "xsn", 6) + 6;
/// The length of a forwarding stub in bytes.
pub const STUB_BYTES: usize = offset(Structure::ForwardingStub, "forward", 8) + 8;
/// The length in bytes of a ghost version without columns: a status byte and the version tag.
pub const GHOST_VERSION_BYTES: usize = 1 + VERSION_TAG_BYTES;
/// The offset of a data record's second status byte.
pub(crate) const STATUS_B_AT: usize = offset(Structure::DataRecord, "status B", 1);
/// The offset of the length of the fixed part. The next constant is the offset of the first fixed column.
pub(crate) const FIXED_END_AT: usize = offset(Structure::DataRecord, "fixedEnd", 2);
pub(crate) const FIXED_AT: u16 = FIXED_END_AT as u16 + 2;
/// The second status byte of a deleted forwarded row.
const GHOST_FORWARDED: u8 = 1;
/// The minimum length in bytes of a heap record, so that a forwarding stub can replace it.
pub const MIN_HEAP_RECORD_BYTES: usize = 9;

/// The bits of a record's first byte.
pub mod status {
    /// Set in compressed (CD) records, clear in FixedVar records.
    pub const COMPRESSED: u8 = 0x01;
    /// The record type, shifted left by one.
    pub const TYPE_MASK: u8 = 0x0E;
    /// A column count and a null bitmap follow the fixed part.
    pub const NULL_BITMAP: u8 = 0x10;
    /// The record has a variable part.
    pub const VARIABLE: u8 = 0x20;
    /// A 14-byte version tag ends the record.
    pub const VERSION_TAG: u8 = 0x40;
    /// The second status byte of a data record is in use. Never set in other records.
    pub const RESERVED: u8 = 0x80;
}

/// The type of a record: bits 1 to 3 of its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordKind {
    /// A row in its own place, as opposed to a forwarded row.
    Primary,
    /// A heap row that was moved here. A forwarding stub is at its old place.
    Forwarded,
    /// The stub at the old place of a moved heap row, which contains the new address of the row.
    ForwardingStub,
    /// A row on an index page.
    Index,
    /// A fragment of off-row data.
    BlobFragment,
    /// A deleted row on an index page, which ghost cleanup has not removed yet.
    GhostIndex,
    /// A deleted row on a data page, which ghost cleanup has not removed yet.
    GhostData,
    /// The rest of a deleted record, kept for row versioning.
    GhostVersion,
}

impl RecordKind {
    /// The kind that the status byte gives.
    #[inline]
    pub fn of(status: u8) -> Self {
        match (status & status::TYPE_MASK) >> 1 {
            0 => Self::Primary,
            1 => Self::Forwarded,
            2 => Self::ForwardingStub,
            3 => Self::Index,
            4 => Self::BlobFragment,
            5 => Self::GhostIndex,
            6 => Self::GhostData,
            _ => Self::GhostVersion,
        }
    }

    /// Whether a record with this status consists only of a status byte and a version tag: it is a ghost version whose
    /// status byte announces neither a null bitmap nor a variable part (docs/format/records.md#status-byte).
    pub fn is_tag_alone(status: u8) -> bool {
        Self::of(status) == Self::GhostVersion && status & (status::NULL_BITMAP | status::VARIABLE) == 0
    }

    /// Whether the record is a ghost: deleted, but not yet removed by ghost cleanup.
    pub fn is_ghost(self) -> bool {
        matches!(self, Self::GhostIndex | Self::GhostData | Self::GhostVersion)
    }

    /// The name of the kind for messages and dumps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Forwarded => "forwarded",
            Self::ForwardingStub => "forwarding stub",
            Self::Index => "index",
            Self::BlobFragment => "blob fragment",
            Self::GhostIndex => "ghost index",
            Self::GhostData => "ghost data",
            Self::GhostVersion => "ghost version",
        }
    }
}

/// A FixedVar record that passed the audit: all its parts are inside the space of the record.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    bytes: &'a [u8],
    fixed_end: u16,
    column_count: u16,
    bitmap_at: u16,
    variable_count: u16,
    offsets_at: u16,
    has_complex: bool,
}

impl<'a> Record<'a> {
    /// Audits the data record at the start of `space`. The fixed part may be shorter than the page's pminlen. This is
    /// legal for a record that is older than an added column, if the record was moved to a page that was formatted
    /// after the column was added.
    pub fn data(space: &'a [u8]) -> Result<Self, RecordFault> {
        let status = *space.first().ok_or(RecordFault::new(RecordTest::ColumnOffsets, FIXED_AT.into(), 0))?;
        let kind = RecordKind::of(status);
        let has_status_b = kind != RecordKind::ForwardingStub && !RecordKind::is_tag_alone(status);
        let status_b = space.get(STATUS_B_AT).copied().filter(|_| has_status_b).unwrap_or_default();
        let mask = match status_b {
            GHOST_FORWARDED => status::COMPRESSED,
            _ => status::COMPRESSED | status::RESERVED,
        };
        if status & mask != 0 {
            return Err(RecordFault::new(RecordTest::StatusA, usize::from(status), usize::from(mask)));
        }
        if !has_status_b {
            return Self::without_columns(space, kind);
        }
        // The value 1 marks the ghost of a forwarded row. A record of type 0 (primary) cannot have this value.
        if status_b > GHOST_FORWARDED || status_b == GHOST_FORWARDED && kind == RecordKind::Primary {
            return Err(RecordFault::new(RecordTest::StatusB, usize::from(status_b), 0));
        }
        let at = usize::from(FIXED_AT);
        let fixed_end =
            u16_at(space, FIXED_END_AT).ok_or(RecordFault::new(RecordTest::ColumnOffsets, at, space.len()))?;
        if fixed_end < FIXED_AT {
            return Err(RecordFault::new(RecordTest::FixedLength, fixed_end.into(), at));
        }
        Self::after_fixed(space, status, fixed_end)
    }

    /// Audits the index record at the start of `space`. Its fixed part has exactly `pminlen` bytes, including the
    /// status byte.
    pub fn index(space: &'a [u8], pminlen: u16) -> Result<Self, RecordFault> {
        let status = *space.first().ok_or(RecordFault::new(RecordTest::ColumnOffsets, 1, 0))?;
        if status & (status::COMPRESSED | status::RESERVED) != 0 {
            let mask = status::COMPRESSED | status::RESERVED;
            return Err(RecordFault::new(RecordTest::StatusA, usize::from(status), usize::from(mask)));
        }
        if RecordKind::is_tag_alone(status) {
            return Self::without_columns(space, RecordKind::GhostVersion);
        }
        if pminlen == 0 {
            return Err(RecordFault::new(RecordTest::FixedLength, 0, 1));
        }
        Self::after_fixed(space, status, pminlen)
    }

    /// Audits a forwarding stub, or a ghost version that is only a version tag.
    fn without_columns(space: &'a [u8], kind: RecordKind) -> Result<Self, RecordFault> {
        let (length, fixed_end, test) = match kind {
            RecordKind::ForwardingStub => (STUB_BYTES, STUB_BYTES as u16, RecordTest::ColumnOffsets),
            _ => (GHOST_VERSION_BYTES, 1, RecordTest::VersionTag),
        };
        let bytes = space.get(..length).ok_or(RecordFault::new(test, length, space.len()))?;
        let has_complex = false;
        Ok(Self { bytes, fixed_end, column_count: 0, bitmap_at: 0, variable_count: 0, offsets_at: 0, has_complex })
    }

    /// Audits the parts that data and index records share: null bitmap, variable part and version tag.
    fn after_fixed(space: &'a [u8], status: u8, fixed_end: u16) -> Result<Self, RecordFault> {
        let length = space.len();
        let mut end = usize::from(fixed_end);
        let (mut column_count, mut bitmap_at) = (0, 0);
        if status & status::NULL_BITMAP != 0 {
            column_count = u16_at(space, end).ok_or(RecordFault::new(RecordTest::ColumnOffsets, end + 2, length))?;
            bitmap_at = (end + 2) as u16;
            end += 2 + usize::from(column_count).div_ceil(8);
        }
        if end > length {
            return Err(RecordFault::new(RecordTest::ColumnOffsets, end, length));
        }
        let (mut variable_count, mut offsets_at, mut complex) = (0, 0, 0);
        if status & status::VARIABLE != 0 {
            variable_count = u16_at(space, end).ok_or(RecordFault::new(RecordTest::VariableCount, end + 2, length))?;
            offsets_at = (end + 2) as u16;
            end += 2 + 2 * usize::from(variable_count);
            for number in 0..usize::from(variable_count) {
                let at = usize::from(offsets_at) + 2 * number;
                let offset = u16_at(space, at).ok_or(RecordFault::new(RecordTest::VariableCount, at + 2, length))?;
                complex |= offset & COMPLEX;
                let offset = usize::from(offset & !COMPLEX);
                if offset < end {
                    return Err(RecordFault::new(RecordTest::OffsetsAscend, offset, end));
                }
                end = offset;
            }
            if end > length {
                return Err(RecordFault::new(RecordTest::LastOffset, end, length));
            }
        }
        if status & status::VERSION_TAG != 0 {
            end += VERSION_TAG_BYTES;
        }
        let bytes = space.get(..end).ok_or(RecordFault::new(RecordTest::VersionTag, end, length))?;
        let has_complex = complex != 0;
        Ok(Self { bytes, fixed_end, column_count, bitmap_at, variable_count, offsets_at, has_complex })
    }

    /// The bytes of the record, including the version tag.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The status byte, which is the first byte of the record.
    #[inline]
    pub fn status(&self) -> u8 {
        self.bytes.first().copied().unwrap_or_default()
    }

    /// The kind of the record. The result for a deleted forwarded row is a ghost, although its status byte has the type
    /// of a forwarded row.
    #[inline]
    pub fn kind(&self) -> RecordKind {
        match RecordKind::of(self.status()) {
            RecordKind::Forwarded if self.is_ghost_forwarded() => RecordKind::GhostData,
            kind => kind,
        }
    }

    /// Whether a data record is the ghost of a forwarded row.
    pub fn is_ghost_forwarded(&self) -> bool {
        let has_status_b = matches!(RecordKind::of(self.status()), RecordKind::Forwarded | RecordKind::GhostData);
        has_status_b && self.bytes.get(STATUS_B_AT) == Some(&GHOST_FORWARDED)
    }

    /// Whether a version tag ends the record.
    pub fn is_versioned(&self) -> bool {
        self.kind() != RecordKind::ForwardingStub && self.status() & status::VERSION_TAG != 0
    }

    /// The version tag: the address of an older version of the row in tempdb (8 bytes) and the number of the
    /// transaction (6 bytes).
    pub fn version_tag(&self) -> Option<&'a [u8; VERSION_TAG_BYTES]> {
        self.bytes.last_chunk().filter(|_| self.is_versioned())
    }

    /// The end of the fixed part, as an offset in the record.
    #[inline]
    pub fn fixed_end(&self) -> u16 {
        self.fixed_end
    }

    /// The number of columns in the null bitmap; 0 without a null bitmap.
    #[inline]
    pub fn column_count(&self) -> u16 {
        self.column_count
    }

    /// The number of variable columns that the record stores. Empty columns at the end may be missing.
    #[inline]
    pub fn variable_count(&self) -> u16 {
        self.variable_count
    }

    /// Whether some variable column is complex.
    #[inline]
    pub fn has_complex(&self) -> bool {
        self.has_complex
    }

    /// The `length` bytes at `offset` of the record; `None` if they are not inside its fixed part.
    #[inline]
    pub fn fixed(&self, offset: u16, length: u16) -> Option<&'a [u8]> {
        let end = offset.checked_add(length)?;
        if end > self.fixed_end {
            return None;
        }
        self.bytes.get(usize::from(offset)..usize::from(end))
    }

    /// The null bits `64 * word + 1` to `64 * word + 64`, with the first as the lowest bit. Bits beyond the null bitmap
    /// are 0.
    #[inline]
    pub fn null_word(&self, word: u16) -> u64 {
        let first = u32::from(word) * 64;
        let count = u32::from(self.column_count).saturating_sub(first);
        if count == 0 {
            return 0;
        }
        let bytes = self.bytes.get(usize::from(self.bitmap_at) + usize::from(word) * 8..).unwrap_or_default();
        let bits = match bytes.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => unsigned(bytes),
        };
        match count {
            64.. => bits,
            count => bits & ((1 << count) - 1),
        }
    }

    /// The bytes of the null bitmap; empty if the record has none.
    pub fn null_bitmap(&self) -> &'a [u8] {
        let start = usize::from(self.bitmap_at);
        let end = start + usize::from(self.column_count).div_ceil(8);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// The null bit `number`, counted from 1. `None` if the record has no null bitmap, or if the column was added after
    /// the record was written.
    #[inline]
    pub fn null_bit(&self, number: u16) -> Option<bool> {
        if !has_null_bit(number, self.column_count) {
            return None;
        }
        let bit = usize::from(number - 1);
        let byte = self.bytes.get(usize::from(self.bitmap_at) + bit / 8)?;
        Some(byte & (1 << (bit % 8)) != 0)
    }

    /// Whether the record stores the column with the null bit `number`. A record that was written before a column was
    /// added does not store this column. The record may still have bytes at the column's offset: they belong to a
    /// dropped column that had this offset before (docs/format/records.md).
    #[inline]
    pub fn has_column(&self, number: u16) -> bool {
        is_known(number, self.column_count)
    }

    /// The variable columns that the record stores.
    pub fn variables(&self) -> Variables<'a> {
        let start = self.offsets_at + 2 * self.variable_count;
        let ends = self.bytes.get(self.offsets_at.into()..start.into()).unwrap_or_default();
        Variables { bytes: self.bytes, ends, start }
    }

    /// The bytes of variable column `number`, counted from 1, and whether the column is complex. `None` if the record
    /// stores fewer variable columns.
    #[inline]
    pub fn variable(&self, number: u16) -> Option<(&'a [u8], bool)> {
        if number == 0 || number > self.variable_count {
            return None;
        }
        let entry = |number: u16| u16_at(self.bytes, usize::from(self.offsets_at) + 2 * (usize::from(number) - 1));
        let start = match number {
            1 => self.offsets_at + 2 * self.variable_count,
            _ => entry(number - 1)? & !COMPLEX,
        };
        let end = entry(number)?;
        Some((self.bytes.get(usize::from(start)..usize::from(end & !COMPLEX))?, end & COMPLEX != 0))
    }
}

/// An iterator over the variable columns of a record. Each item has the bytes, and whether the column is complex.
#[derive(Clone, Copy)]
pub struct Variables<'a> {
    bytes: &'a [u8],
    /// The end offsets of the variable columns that are not returned yet.
    ends: &'a [u8],
    start: u16,
}

impl<'a> Iterator for Variables<'a> {
    type Item = (&'a [u8], bool);

    fn next(&mut self) -> Option<Self::Item> {
        let (end, rest) = self.ends.split_first_chunk()?;
        let end = u16::from_le_bytes(*end);
        let value = self.bytes.get(usize::from(self.start)..usize::from(end & !COMPLEX))?;
        (self.ends, self.start) = (rest, end & !COMPLEX);
        Some((value, end & COMPLEX != 0))
    }
}

/// The bit of an end offset which means that the column is complex: the record stores an off-row pointer, a back
/// pointer or a sparse vector instead of the plain value.
pub const COMPLEX: u16 = 0x8000;

/// Whether a record whose null bitmap has `column_count` columns stores the column with this null bit. `column_count`
/// is 0 for a record without a null bitmap, which stores all columns.
#[inline]
pub(crate) fn is_known(null_bit: u16, column_count: u16) -> bool {
    column_count == 0 || null_bit <= column_count
}

/// Whether a null bitmap of `column_count` columns contains the bit with this number, counted from 1.
#[inline]
pub(crate) fn has_null_bit(null_bit: u16, column_count: u16) -> bool {
    null_bit > 0 && null_bit <= column_count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with status 0x30, 4 fixed bytes, 3 columns (the second is NULL), and the variable columns "ab" and "c".
    fn sample() -> Vec<u8> {
        vec![0x30, 0, 8, 0, 1, 2, 3, 4, 3, 0, 0b010, 2, 0, 19, 0, 20, 0, b'a', b'b', b'c']
    }

    #[test]
    fn parts_of_a_data_record() {
        let bytes = sample();
        let record = Record::data(&bytes).unwrap();
        assert_eq!(record.fixed(4, 4), Some(&[1, 2, 3, 4][..]));
        assert_eq!(record.fixed(6, 4), None, "beyond the fixed part");
        assert_eq!((record.null_bit(1), record.null_bit(2), record.null_bit(4)), (Some(false), Some(true), None));
        assert_eq!(record.variable(1), Some((&b"ab"[..], false)));
        assert_eq!(record.variable(2), Some((&b"c"[..], false)));
        assert_eq!(record.variable(3), None);
        assert_eq!(record.variables().collect::<Vec<_>>(), [(&b"ab"[..], false), (&b"c"[..], false)]);
        assert_eq!((record.null_word(0), record.null_word(1)), (0b010, 0));
        assert_eq!(record.bytes().len(), 20);
    }

    #[test]
    fn each_part_must_lie_inside_the_space() {
        let fault = |bytes: &[u8]| Record::data(bytes).err().map(|fault| fault.test);
        let bytes = sample();
        assert_eq!(fault(&bytes[..10]), Some(RecordTest::ColumnOffsets));
        assert_eq!(fault(&bytes[..12]), Some(RecordTest::VariableCount));
        assert_eq!(fault(&bytes[..19]), Some(RecordTest::LastOffset));
        let with = |at: usize, byte: u8| {
            let mut bytes = sample();
            bytes[at] = byte;
            fault(&bytes)
        };
        assert_eq!(with(0, 0xB0), Some(RecordTest::StatusA));
        assert_eq!(with(0, 0xB2), Some(RecordTest::StatusA));
        assert_eq!(with(0, 0x31), Some(RecordTest::StatusA));
        assert_eq!(with(1, 2), Some(RecordTest::StatusB));
        assert_eq!(with(2, 3), Some(RecordTest::FixedLength));
        assert_eq!(with(9, 0x40), Some(RecordTest::ColumnOffsets));
        assert_eq!(with(15, 18), Some(RecordTest::OffsetsAscend));
        assert_eq!(with(0, 0x70), Some(RecordTest::VersionTag));
    }

    #[test]
    fn complex_columns_are_marked() {
        let mut bytes = sample();
        bytes[16] |= 0x80;
        let record = Record::data(&bytes).unwrap();
        assert_eq!(record.variable(2), Some((&b"c"[..], true)));
        assert_eq!(record.variables().collect::<Vec<_>>(), [(&b"ab"[..], false), (&b"c"[..], true)]);
    }

    #[test]
    fn a_deleted_forwarded_row_is_a_ghost() {
        // The second status byte marks the row as a ghost. Bit 0x80 of the first status byte may be set to show that
        // the second one is in use.
        for status in [0x32, 0xB2, 0x3C, 0xBC] {
            let mut bytes = sample();
            bytes[..2].copy_from_slice(&[status, 1]);
            let record = Record::data(&bytes).unwrap();
            assert_eq!((record.kind(), record.is_ghost_forwarded()), (RecordKind::GhostData, true));
            assert_eq!(record.bytes().len(), 20);
        }
        let mut bytes = sample();
        bytes[0] = 0x32;
        let record = Record::data(&bytes).unwrap();
        assert_eq!((record.kind(), record.is_ghost_forwarded()), (RecordKind::Forwarded, false));
        bytes[..2].copy_from_slice(&[0xB0, 1]);
        assert_eq!(Record::data(&bytes).err().map(|fault| fault.test), Some(RecordTest::StatusB), "no forwarded row");
    }

    #[test]
    fn a_ghost_version_is_a_version_tag_alone() {
        let mut bytes = [0xA7; 20];
        bytes[0] = 0x4E;
        for record in [Record::data(&bytes), Record::index(&bytes, 11)].map(Result::unwrap) {
            assert_eq!((record.kind(), record.bytes().len()), (RecordKind::GhostVersion, 15));
            assert_eq!(record.version_tag(), Some(&[0xA7; VERSION_TAG_BYTES]));
            assert_eq!((record.column_count(), record.variables().count(), record.fixed(4, 4)), (0, 0, None));
        }
        assert_eq!(Record::data(&bytes[..14]).err().map(|fault| fault.test), Some(RecordTest::VersionTag));
        // A ghost version with a null bitmap and a variable part is audited like an ordinary record.
        bytes[0] = 0x7E;
        assert_eq!(Record::data(&bytes).err().map(|fault| fault.test), Some(RecordTest::StatusB));
    }

    #[test]
    fn a_stub_has_nine_bytes_whatever_follows() {
        let bytes = [4, 0xE1, 1, 0, 0, 1, 0, 0, 0, 0xFF];
        let record = Record::data(&bytes).unwrap();
        assert_eq!((record.kind(), record.bytes().len()), (RecordKind::ForwardingStub, 9));
        assert!(Record::data(&bytes[..8]).is_err());
    }
}
