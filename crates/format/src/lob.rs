//! Records of LOB pages: fragments of off-row values (format.md 11).

use crate::bytes::{u16_at, u64_at};
use crate::record::{RecordFault, RecordTest, VERSION_TAG_BYTES, status};

/// Header of every fragment: status, u16 length, u64 blob id, u16 type.
pub const FRAGMENT_HEADER_BYTES: usize = 14;

/// A fragment of an off-row value, proven to lie inside its space.
#[derive(Clone, Copy)]
pub struct Fragment<'a> {
    bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The fragment at the start of `space`. Its own length field does not count the version tag.
    pub fn read(space: &'a [u8]) -> Result<Self, RecordFault> {
        let fault =
            |test, value: usize, against: usize| RecordFault { test, value: value as i64, against: against as i64 };
        let status = *space.first().ok_or(fault(RecordTest::ColumnOffsets, FRAGMENT_HEADER_BYTES, 0))?;
        if status & (status::COMPRESSED | status::RESERVED) != 0 {
            return Err(fault(RecordTest::StatusA, status.into(), usize::from(status::COMPRESSED | status::RESERVED)));
        }
        let length = usize::from(u16_at(space, 2).ok_or(fault(RecordTest::ColumnOffsets, 4, space.len()))?);
        if length < FRAGMENT_HEADER_BYTES {
            return Err(fault(RecordTest::FixedLength, length, FRAGMENT_HEADER_BYTES));
        }
        let tag = if status & status::VERSION_TAG != 0 { VERSION_TAG_BYTES } else { 0 };
        let bytes = space.get(..length + tag).ok_or(fault(RecordTest::LastOffset, length + tag, space.len()))?;
        Ok(Self { bytes })
    }

    /// The record's bytes, version tag included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Identity of the value, the same in all its fragments.
    pub fn blob_id(&self) -> u64 {
        u64_at(self.bytes, 4).unwrap_or_default()
    }

    /// What the fragment is: 0 small root, 1 large root, 2 internal, 3 data, 4 and 5 roots, 6 super large root, 8 null.
    pub fn node_type(&self) -> u16 {
        u16_at(self.bytes, 12).unwrap_or_default()
    }
}
