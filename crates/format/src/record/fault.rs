//! The tests that a record can fail in its audit.

/// The tests of CHECKDB's record audit, which message 8944 names (docs/format/checkdb.md#tests-in-messages).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RecordTest {
    /// Reserved bits and the compression bit of the status byte are clear.
    StatusA,
    /// The second status byte is 0, or 1 for a ghost forwarded record.
    StatusB,
    /// The page type allows the record type.
    Kind,
    /// The fixed part has at least the length that every record of this kind needs.
    FixedLength,
    /// The fixed part and the null bitmap end inside the record's space.
    ColumnOffsets,
    /// The variable column count is inside the record's space.
    VariableCount,
    /// The end offsets of the variable columns ascend.
    OffsetsAscend,
    /// The last variable column ends inside the record's space.
    LastOffset,
    /// The version tag is inside the record's space.
    VersionTag,
}

impl RecordTest {
    /// The text of the test in message 8944. Only the texts of [`Self::ColumnOffsets`] are known to the letter, from
    /// transcripts. The texts of the other tests follow their style.
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

    /// The state of the message for this test.
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

/// The failure of a record's audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordFault {
    /// The failed test.
    pub test: RecordTest,
    /// The value that was tested.
    pub value: i64,
    /// The value or limit with which the tested value was compared.
    pub against: i64,
}

impl RecordFault {
    pub(super) fn new(test: RecordTest, value: usize, against: usize) -> Self {
        Self { test, value: value as i64, against: against as i64 }
    }
}
