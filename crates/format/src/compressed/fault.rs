//! The rules that compressed pages can break, which are the tests of message 5274.

/// The tests of compressed pages that message 5274 names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CdTest {
    /// The first byte marks the record as compressed.
    Compressed,
    /// The record has no more columns than the rowset.
    ColumnCount,
    /// The column descriptors are inside the record.
    Descriptors,
    /// Each descriptor has a known meaning.
    Descriptor,
    /// Only bit columns have the descriptor of a set bit.
    BitDescriptor,
    /// The stored length of a cluster is the sum of its columns' lengths.
    ShortCluster,
    /// The short region is inside the record.
    ShortRegion,
    /// The long region begins inside the record.
    LongRegion,
    /// There is a long value for each descriptor of a long value.
    LongCount,
    /// The stored number of long values in a cluster equals the number of its descriptors of long values.
    LongCluster,
    /// The ends of the long values ascend.
    LongAscend,
    /// The last long value ends inside the record.
    LongEnd,
    /// The version tag is inside the record.
    VersionTag,
    /// A symbol names an entry of the page's dictionary.
    Symbol,
    /// A prefix is no longer than the anchor.
    Prefix,
    /// The compression information ends before the first record.
    InfoSize,
    /// The dictionary begins inside the compression information.
    DictionaryOffset,
    /// The ends of the dictionary's entries ascend.
    DictionaryAscend,
    /// The last entry ends where the compression information ends.
    DictionaryEnd,
}

impl CdTest {
    /// The text of the test in message 5274. The server's exact texts are unknown. These texts follow the style of the
    /// known texts of other tests.
    pub fn text(self) -> &'static str {
        match self {
            Self::Compressed => "IS_ON (CD_COMPRESSED, hdr->r_tag)",
            Self::ColumnCount => "cColumns <= cColumnsInRowset",
            Self::Descriptors => "CDArrayEnd <= (nextRec - pRec)",
            Self::Descriptor => "CDEntry <= CD_DICTIONARY_SYMBOL",
            Self::BitDescriptor => "CDEntry == CD_BIT_TRUE only for a bit column",
            Self::ShortCluster => "clusterLength == sum of its short columns",
            Self::ShortRegion => "shortDataEnd <= (nextRec - pRec)",
            Self::LongRegion => "longDataStart <= (nextRec - pRec)",
            Self::LongCount => "cLongColumns == long entries of the CD array",
            Self::LongCluster => "clusterCount == long entries of its columns",
            Self::LongAscend => "longOffset [i] >= priorOffset",
            Self::LongEnd => "longDataEnd <= (nextRec - pRec)",
            Self::VersionTag => "versionTagEnd <= (nextRec - pRec)",
            Self::Symbol => "symbol < cDictionaryEntries",
            Self::Prefix => "prefixLength <= anchorLength",
            Self::InfoSize => "CI size <= first record - PAGEHEADSIZE",
            Self::DictionaryOffset => "dictionaryOffset <= CI size",
            Self::DictionaryAscend => "dictionaryOffset [i] >= priorOffset",
            Self::DictionaryEnd => "dictionaryEnd == CI size",
        }
    }
}

/// A rule that a compressed record, or a page's compression information, breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CdFault {
    /// The failed test.
    pub test: CdTest,
    /// The value that was tested.
    pub value: i64,
    /// The value or limit with which the tested value was compared.
    pub against: i64,
}

impl CdFault {
    pub(super) fn new(test: CdTest, value: usize, against: usize) -> Self {
        Self { test, value: value as i64, against: against as i64 }
    }
}

/// The reason why a compressed record, or a page's compression information, cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CdIssue {
    /// The record or the compression information breaks a rule.
    Fault(CdFault),
    /// The record or the compression information has an undocumented form; the text gives the reason.
    Undecided(&'static str),
}

impl From<CdFault> for CdIssue {
    fn from(fault: CdFault) -> Self {
        Self::Fault(fault)
    }
}
