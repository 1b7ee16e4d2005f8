//! The tests that a record can fail.

/// The tests of CHECKDB's record audit, message 8944 (docs/format/checkdb.md#tests-in-messages).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RecordTest {
    /// Reserved bits and the compression bit of the status byte are clear.
    StatusA,
    /// The second status byte is 0, or 1 for a ghost forwarded record.
    StatusB,
    /// The record type may occur on the page type.
    Kind,
    /// The fixed part is at least as long as every record of the kind needs.
    FixedLength,
    /// Fixed part and null bitmap end inside the record's space.
    ColumnOffsets,
    /// The variable column count is inside.
    VariableCount,
    /// The variable offsets ascend.
    OffsetsAscend,
    /// The last variable column ends inside.
    LastOffset,
    /// The version tag is inside.
    VersionTag,
}

impl RecordTest {
    /// The text that message 8944 inserts. Only the texts of [`Self::ColumnOffsets`] are known verbatim from
    /// transcripts; the others follow their style.
    pub fn text(self) -> &'static str {
        match self {
            Self::StatusA => "!(hdr->r_tagA & (VERSION_MASK | RECTAG_RESV_A | RECTAG_RESV_B))",
            Self::StatusB => "hdr->r_tagB == 0",
            Self::Kind => "record type is valid for the page type",
            Self::FixedLength => "fixedLength >= minimumLength",
            Self::ColumnOffsets => "ColumnOffsets <= (nextRec - pRec)",
            Self::VariableCount => "ColumnOffsets + (int)sizeof (COLOFF) <= (nextRec - pRec)",
            Self::OffsetsAscend => "columnOffsets->offTbl [varColumnNumber] >= priorOffset",
            Self::LastOffset => "columnOffsets->offTbl [varColumnNumber] <= (nextRec - pRec)",
            Self::VersionTag => "versionTagEnd <= (nextRec - pRec)",
        }
    }

    /// The state that accompanies the text.
    pub fn state(self) -> u8 {
        match self {
            Self::StatusA => 1,
            Self::StatusB => 2,
            Self::Kind => 3,
            Self::FixedLength => 4,
            Self::ColumnOffsets => 12,
            Self::VariableCount => 14,
            Self::OffsetsAscend => 16,
            Self::LastOffset => 17,
            Self::VersionTag => 18,
        }
    }
}

/// A record that fails its audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordFault {
    /// The failed test.
    pub test: RecordTest,
    /// The value tested.
    pub value: i64,
    /// What it was tested against.
    pub against: i64,
}

impl RecordFault {
    pub(super) fn new(test: RecordTest, value: usize, against: usize) -> Self {
        Self { test, value: value as i64, against: against as i64 }
    }
}
