//! The catalog of fields: the name, place, width and meaning of every field of every structure, as data.
//!
//! There is one row for each field. The readers of this crate, the page dump, the documentation and the mutator use
//! these rows: [`instances`](crate::instances) finds every field of a page, [`render`](crate::render) shows its value. The tables do not contain
//! undocumented fields; a dump shows their bytes raw.
//!
//! The tables in docs/format are generated from these rows. `checked_by` lists message numbers of SQL Server. In
//! addition, page protection covers every byte of a protected page (message 8939 state 98).

mod allocation;
mod boot;
mod lob;
mod log;
mod page;
mod place;
mod records;

pub use place::offset;
pub(crate) use place::{column, series};

/// A structure of the format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Structure {
    /// The 96 bytes at the start of every page.
    PageHeader,
    /// The slot array at the end of the page.
    SlotArray,
    /// The record of a PFS page.
    Pfs,
    /// The record in slot 0 of a GAM, SGAM, differential or minimally logged map, which contains only filler.
    MapHeader,
    /// The record in slot 1 of a GAM page.
    GamBitmap,
    /// The record in slot 1 of an SGAM page.
    SgamBitmap,
    /// The record in slot 1 of a differential map.
    DiffBitmap,
    /// The record in slot 1 of a minimally logged map.
    MlBitmap,
    /// The record in slot 0 of an IAM page.
    IamHeader,
    /// The record in slot 1 of an IAM page.
    IamBitmap,
    /// The record of the boot page.
    Boot,
    /// The columns of a file header's record, which is a [`Structure::DataRecord`].
    FileHeader,
    /// A FixedVar record of a data page.
    DataRecord,
    /// A record of an index page.
    IndexRecord,
    /// The record at the old place of a forwarded heap row.
    ForwardingStub,
    /// The last variable column of a forwarded record.
    BackPointer,
    /// The 14 bytes at the end of a versioned record.
    VersionTag,
    /// A compressed (CD) record.
    CdRecord,
    /// The compression information (CI) before the records of a page-compressed page.
    CompressionInfo,
    /// The header of a record on a LOB page.
    LobFragment,
    /// The body of a fragment of type 0.
    LobSmallRoot,
    /// The body of a fragment of type 2.
    LobInternal,
    /// The body of a fragment of type 3.
    LobData,
    /// The body of a fragment of type 4 (SQL Server 2000) or 5.
    LobRoot,
    /// The in-row root of a (max) value.
    InRowRoot,
    /// The in-row pointer of a text, ntext or image value.
    TextPointer,
    /// The in-row pointer of a variable column that was moved to a row-overflow page.
    OverflowPointer,
    /// The sparse columns of a row.
    SparseVector,
    /// The start of a virtual log file.
    VlfHeader,
    /// The header of a log block.
    LogBlock,
    /// The header of a log record.
    LogRecord,
    /// The part of a log record after its header, if the record changes a page.
    LogPageRecord,
    /// The log record that begins a transaction.
    LogBeginTransaction,
    /// The log record that commits or rolls back a transaction.
    LogEndTransaction,
    /// The log record that begins a checkpoint.
    LogBeginCheckpoint,
    /// The log record that ends a checkpoint.
    LogEndCheckpoint,
    /// The log record that formats a page.
    LogFormatPage,
    /// The log record that sets bits of an allocation map.
    LogSetBits,
    /// The log record that replaces a byte of a PFS page.
    LogSetFreeSpace,
    /// The log record that deletes rows from a page because a page split moved them to another page.
    LogDeleteSplit,
    /// The log record that changes counters in the catalog.
    LogCountDelta,
    /// The log record that replaces a page pointer of an allocation unit.
    LogRootChange,
}

impl Structure {
    /// All structures.
    pub const ALL: [Self; 42] = [
        Self::PageHeader,
        Self::SlotArray,
        Self::Pfs,
        Self::MapHeader,
        Self::GamBitmap,
        Self::SgamBitmap,
        Self::DiffBitmap,
        Self::MlBitmap,
        Self::IamHeader,
        Self::IamBitmap,
        Self::Boot,
        Self::FileHeader,
        Self::DataRecord,
        Self::IndexRecord,
        Self::ForwardingStub,
        Self::BackPointer,
        Self::VersionTag,
        Self::CdRecord,
        Self::CompressionInfo,
        Self::LobFragment,
        Self::LobSmallRoot,
        Self::LobInternal,
        Self::LobData,
        Self::LobRoot,
        Self::InRowRoot,
        Self::TextPointer,
        Self::OverflowPointer,
        Self::SparseVector,
        Self::VlfHeader,
        Self::LogBlock,
        Self::LogRecord,
        Self::LogPageRecord,
        Self::LogBeginTransaction,
        Self::LogEndTransaction,
        Self::LogBeginCheckpoint,
        Self::LogEndCheckpoint,
        Self::LogFormatPage,
        Self::LogSetBits,
        Self::LogSetFreeSpace,
        Self::LogDeleteSplit,
        Self::LogCountDelta,
        Self::LogRootChange,
    ];

    /// The name of the structure for dumps and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::PageHeader => "page header",
            Self::SlotArray => "slot array",
            Self::Pfs => "PFS record",
            Self::MapHeader => "allocation map header",
            Self::GamBitmap => "GAM bitmap",
            Self::SgamBitmap => "SGAM bitmap",
            Self::DiffBitmap => "differential bitmap",
            Self::MlBitmap => "minimally logged bitmap",
            Self::IamHeader => "IAM header",
            Self::IamBitmap => "IAM bitmap",
            Self::Boot => "boot record",
            Self::FileHeader => "file header",
            Self::DataRecord => "data record",
            Self::IndexRecord => "index record",
            Self::ForwardingStub => "forwarding stub",
            Self::BackPointer => "forwarded back pointer",
            Self::VersionTag => "version tag",
            Self::CdRecord => "compressed record",
            Self::CompressionInfo => "compression information",
            Self::LobFragment => "LOB fragment",
            Self::LobSmallRoot => "LOB small root",
            Self::LobInternal => "LOB internal node",
            Self::LobData => "LOB data",
            Self::LobRoot => "LOB root",
            Self::InRowRoot => "in-row LOB root",
            Self::TextPointer => "text pointer",
            Self::OverflowPointer => "row-overflow pointer",
            Self::SparseVector => "sparse vector",
            Self::VlfHeader => "virtual log file header",
            Self::LogBlock => "log block header",
            Self::LogRecord => "log record header",
            Self::LogPageRecord => "log record of a page",
            Self::LogBeginTransaction => "begin of a transaction",
            Self::LogEndTransaction => "end of a transaction",
            Self::LogBeginCheckpoint => "begin of a checkpoint",
            Self::LogEndCheckpoint => "end of a checkpoint",
            Self::LogFormatPage => "log record: a page made anew",
            Self::LogSetBits => "log record: bits of a map",
            Self::LogSetFreeSpace => "log record: a byte of a PFS page",
            Self::LogDeleteSplit => "log record: rows that moved",
            Self::LogCountDelta => "log record: counters",
            Self::LogRootChange => "log record: page pointer of a unit",
        }
    }

    /// The fields of the structure, ordered by their places.
    pub const fn fields(self) -> &'static [Field] {
        match self {
            Self::PageHeader => page::PAGE_HEADER,
            Self::SlotArray => page::SLOT_ARRAY,
            Self::Pfs => allocation::PFS,
            Self::MapHeader => allocation::MAP_HEADER,
            Self::GamBitmap => allocation::GAM_BITMAP,
            Self::SgamBitmap => allocation::SGAM_BITMAP,
            Self::DiffBitmap => allocation::DIFF_BITMAP,
            Self::MlBitmap => allocation::ML_BITMAP,
            Self::IamHeader => allocation::IAM_HEADER,
            Self::IamBitmap => allocation::IAM_BITMAP,
            Self::Boot => boot::BOOT,
            Self::FileHeader => boot::FILE_HEADER,
            Self::DataRecord => records::DATA_RECORD,
            Self::IndexRecord => records::INDEX_RECORD,
            Self::ForwardingStub => records::FORWARDING_STUB,
            Self::BackPointer => records::BACK_POINTER,
            Self::VersionTag => records::VERSION_TAG,
            Self::CdRecord => records::CD_RECORD,
            Self::CompressionInfo => records::COMPRESSION_INFO,
            Self::LobFragment => lob::FRAGMENT,
            Self::LobSmallRoot => lob::SMALL_ROOT,
            Self::LobInternal => lob::INTERNAL,
            Self::LobData => lob::DATA,
            Self::LobRoot => lob::ROOT,
            Self::InRowRoot => lob::IN_ROW_ROOT,
            Self::TextPointer => lob::TEXT_POINTER,
            Self::OverflowPointer => lob::OVERFLOW_POINTER,
            Self::SparseVector => lob::SPARSE_VECTOR,
            Self::VlfHeader => log::VLF_HEADER,
            Self::LogBlock => log::LOG_BLOCK,
            Self::LogRecord => log::LOG_RECORD,
            Self::LogPageRecord => log::LOG_PAGE_RECORD,
            Self::LogBeginTransaction => log::LOG_BEGIN_TRANSACTION,
            Self::LogEndTransaction => log::LOG_END_TRANSACTION,
            Self::LogBeginCheckpoint => log::LOG_BEGIN_CHECKPOINT,
            Self::LogEndCheckpoint => log::LOG_END_CHECKPOINT,
            Self::LogFormatPage => log::LOG_FORMAT_PAGE,
            Self::LogSetBits => log::LOG_SET_BITS,
            Self::LogSetFreeSpace => log::LOG_SET_FREE_SPACE,
            Self::LogDeleteSplit => log::LOG_DELETE_SPLIT,
            Self::LogCountDelta => log::LOG_COUNT_DELTA,
            Self::LogRootChange => log::LOG_ROOT_CHANGE,
        }
    }
}

/// Every row of the catalog of fields.
pub fn all() -> impl Iterator<Item = &'static Field> {
    Structure::ALL.into_iter().flat_map(Structure::fields)
}

/// One row of the catalog of fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The structure that the field belongs to.
    pub structure: Structure,
    /// The name of the field; SQL Server's own name if it is known.
    pub name: &'static str,
    /// A plain English name for the field.
    pub label: &'static str,
    /// The place of the field in the structure.
    pub place: Place,
    /// The width of the field.
    pub width: Width,
    /// The way in which the value is shown.
    pub kind: Kind,
    /// The meaning of the field, in one sentence.
    pub meaning: &'static str,
    /// The heading under docs/format that describes the field.
    pub reference: &'static str,
    /// The message numbers of the checks that can detect a wrong value of the field; empty if no check can detect it.
    pub checked_by: &'static [u16],
}

/// The place of a field in its structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// An offset in bytes from the start of the structure.
    At(u16),
    /// The field is repeated at equal distances.
    Each {
        /// The offset of the first repetition from the start of the structure.
        first: u16,
        /// The distance in bytes between the starts of two repetitions.
        stride: u16,
        /// The number of repetitions.
        count: Count,
    },
    /// Two bytes for each slot, counted backwards from the end of the page.
    FromPageEnd,
    /// A place that other fields of the record determine.
    Part(Part),
    /// The variable column with this number, counted from 0.
    Column(u16),
}

/// The number of repetitions of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// A constant number.
    Times(u16),
    /// A number that another field, or the structure's length, determines.
    Given,
}

/// A part of a record that has no constant offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// The fixed-length columns.
    FixedColumns,
    /// The last six bytes of the fixed part of a non-leaf index record.
    ChildPointer,
    /// The column count, after the fixed part.
    ColumnCount,
    /// The null bitmap, after the column count.
    NullBitmap,
    /// The number of variable columns, after the null bitmap, or after the fixed part of a record without a null
    /// bitmap.
    VariableCount,
    /// The end offsets, two bytes for each column, after the number of variable columns.
    EndOffset,
    /// A variable column. It starts at the end of the column before it, or at the end of the end offsets, and ends at
    /// its own end offset.
    VariableColumn,
    /// In compressed records: the half-bytes of the columns, after the column count.
    ColumnCodes,
    /// All bytes up to the end of the structure.
    Rest,
    /// In compression information: the offset of the dictionary, stored only if there is a dictionary.
    DictionaryOffset,
    /// In compression information: the total size, after the page modification count or the dictionary offset.
    TotalBytes,
    /// In compression information: the anchor record, after the total size.
    Anchor,
    /// In compression information: the dictionary, at the dictionary offset.
    Dictionary,
}

impl Part {
    /// The description of the place in the documents.
    pub fn text(self) -> &'static str {
        match self {
            Self::FixedColumns => "fixed part",
            Self::ChildPointer => "pminlen - 6",
            Self::ColumnCount => "end of fixed part",
            Self::NullBitmap => "end of fixed part + 2",
            Self::VariableCount => "end of null bitmap",
            Self::EndOffset => "variable count + 2",
            Self::VariableColumn => "by end offset",
            Self::ColumnCodes => "after column count",
            Self::Rest => "to the end",
            Self::DictionaryOffset => "3, with a dictionary",
            Self::TotalBytes => "3, or 5 with a dictionary",
            Self::Anchor => "after total size",
            Self::Dictionary => "by dictionary offset",
        }
    }
}

/// The width of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// A number of bytes.
    Bytes(u16),
    /// A number of bits. Each bit is a separate value.
    Bits(u32),
    /// A width that depends on the record.
    Varies,
}

/// Values or bits with their names.
pub type Names = &'static [(u64, &'static str)];

/// The way in which a value is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A number.
    Unsigned,
    /// A number shown in hexadecimal.
    Hex,
    /// A set of named bits.
    Flags(Names),
    /// A value with a name, from this list.
    Named(Names),
    /// A page type, [`crate::PageType`].
    PageType,
    /// A page ID: u32 page, u16 file.
    PagePointer,
    /// A record ID: u32 page, u16 file, u16 slot.
    RecordPointer,
    /// A log sequence number, [`crate::Lsn`].
    Lsn,
    /// A datetime: u32 ticks of 1/300 second, i32 days since 1900-01-01.
    DateTime,
    /// A GUID of 16 bytes.
    Guid,
    /// Padded UTF-16 text.
    Text,
    /// The internal version of a database.
    DatabaseVersion,
    /// The build of an engine: major version, minor version, build number.
    EngineBuild,
    /// The first byte of a FixedVar record; see [`crate::record::status`].
    RecordStatus,
    /// The first byte of a compressed record.
    CdStatus,
    /// The end offset of a variable column. The high bit marks the column as complex.
    EndOffset,
    /// The offset of a record on the page.
    SlotOffset,
    /// PFS bytes, one for each page; see [`crate::allocation::PfsByte`].
    PfsBytes,
    /// One bit for each extent, lowest bit first.
    ExtentBits,
    /// One bit for each column, lowest bit first.
    NullBits,
    /// Half a byte for each column, low half first.
    ColumnCodes,
    /// A field that is always zero.
    Zero,
    /// Bytes whose meaning only the catalog determines.
    Bytes,
}

/// Defines the rows of one structure. All of them get the same `reference`.
macro_rules! fields {
    ($name:ident: $structure:ident, $reference:literal; $(
        $field:literal, $label:literal, $place:expr, $width:expr, $kind:expr, [$($check:literal),*], $meaning:literal;
    )*) => {
        pub(super) const $name: &[Field] = &[$(Field {
            structure: Structure::$structure,
            name: $field,
            label: $label,
            place: $place,
            width: $width,
            kind: $kind,
            meaning: $meaning,
            reference: $reference,
            checked_by: &[$($check),*],
        }),*];
    };
}
use fields;

/// The names that the modules with the tables import.
mod prelude {
    pub(super) use super::Count::{Given, Times};
    pub(super) use super::Kind::{self, *};
    pub(super) use super::Place::{At, Column, Each, FromPageEnd, Part as P};
    pub(super) use super::Width::{Bits, Bytes as B, Varies};
    pub(super) use super::{Field, Names, Part, Structure, fields};
}

#[cfg(test)]
mod tests;
