//! The catalog of fields: name, place, width and meaning of every field of every structure, as data.
//!
//! One row per field. The rows drive the readers of this crate, the page dump, the documentation and the mutator:
//! [`instances`] finds every field of a page, [`render`] shows its value. Undocumented fields are not in the tables; a
//! dump shows such bytes raw.
//!
//! The tables of docs/format are generated from them. `checked_by` names SQL Server's message numbers; besides these,
//! page protection covers every byte of a protected page (message 8939 state 98).

mod allocation;
mod boot;
mod instances;
mod lob;
mod log;
mod page;
mod place;
mod records;
mod render;

pub use instances::{FieldInstance, RecordSpace, instances, instances_of, record_spaces};
pub use place::offset;
pub(crate) use place::{column, series};
pub use render::{hex, render};

/// A structure of the format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Structure {
    /// The 96 bytes at the start of every page.
    PageHeader,
    /// The slot array at the end of the page.
    SlotArray,
    /// The record of a PFS page.
    Pfs,
    /// The record in slot 0 of GAM, SGAM, differential and minimally logged maps: filler.
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
    /// The header of every record on a LOB page.
    LobFragment,
    /// Body of a fragment of type 0.
    LobSmallRoot,
    /// Body of a fragment of type 2.
    LobInternal,
    /// Body of a fragment of type 3.
    LobData,
    /// Body of a fragment of type 4 (SQL Server 2000) or 5.
    LobRoot,
    /// The root of a (max) value in its row.
    InRowRoot,
    /// A text, ntext or image pointer in its row.
    TextPointer,
    /// A variable column that was pushed off its row.
    OverflowPointer,
    /// The sparse columns of a row.
    SparseVector,
    /// The start of a virtual log file.
    VlfHeader,
    /// The header of a log block.
    LogBlock,
    /// The header of every log record.
    LogRecord,
    /// The part after its header of a log record that changes a page.
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
    /// The log record that drops rows moved to another page.
    LogDeleteSplit,
    /// The log record that sets counters of the catalog.
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

    /// Name for people and for documents.
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

    /// The fields of the structure, in the order of their places.
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

/// Every row of the catalog.
pub fn all() -> impl Iterator<Item = &'static Field> {
    Structure::ALL.into_iter().flat_map(Structure::fields)
}

/// One row of the catalog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The structure it belongs to.
    pub structure: Structure,
    /// Its name: SQL Server's own where that is known.
    pub name: &'static str,
    /// A plain English name.
    pub label: &'static str,
    /// Its place in the structure.
    pub place: Place,
    /// Its width.
    pub width: Width,
    /// How its value is shown.
    pub kind: Kind,
    /// Its meaning, in a sentence.
    pub meaning: &'static str,
    /// The heading under docs/format that describes it.
    pub reference: &'static str,
    /// Message numbers of the checks that a wrong value can fail; empty if no check can notice it.
    pub checked_by: &'static [u16],
}

/// Place of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Bytes from the start of the structure.
    At(u16),
    /// Repeated.
    Each {
        /// The first one, from the start of the structure.
        first: u16,
        /// Bytes from one to the next.
        stride: u16,
        /// Number of repetitions.
        count: Count,
    },
    /// Two bytes per slot, backwards from the end of the page.
    FromPageEnd,
    /// At a place that other fields of the record give.
    Part(Part),
    /// The variable column with this number, counted from 0.
    Column(u16),
}

/// How often a field is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// A fixed number.
    Times(u16),
    /// Given by another field, or by the structure's length.
    Given,
}

/// A part of a record whose place depends on the record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// Fixed-length columns.
    FixedColumns,
    /// The last six bytes of the fixed part of a non-leaf index record.
    ChildPointer,
    /// After the fixed part.
    ColumnCount,
    /// After the column count.
    NullBitmap,
    /// After the null bitmap, or after the fixed part if there is none.
    VariableCount,
    /// After the variable count, two bytes per column.
    EndOffset,
    /// From the end of its predecessor, or of the end offsets, to its own end offset.
    VariableColumn,
    /// Compressed records: after the column count, half a byte per column.
    ColumnCodes,
    /// The rest of the structure.
    Rest,
    /// Compression information: only with a dictionary.
    DictionaryOffset,
    /// Compression information: after the page modification count, or the dictionary offset.
    TotalBytes,
    /// Compression information: after the total size.
    Anchor,
    /// Compression information: at the dictionary offset.
    Dictionary,
}

impl Part {
    /// The place in words.
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

/// Width of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// This many bytes.
    Bytes(u16),
    /// This many bits, each a value by itself.
    Bits(u32),
    /// Depends on the record.
    Varies,
}

/// A named bit, or bits.
pub type Names = &'static [(u64, &'static str)];

/// How a value is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A number.
    Unsigned,
    /// A number shown in hexadecimal.
    Hex,
    /// Bits with names.
    Flags(Names),
    /// One of these named values.
    Named(Names),
    /// [`crate::PageType`].
    PageType,
    /// u32 page, u16 file.
    PagePointer,
    /// u32 page, u16 file, u16 slot.
    RecordPointer,
    /// [`crate::Lsn`].
    Lsn,
    /// u32 ticks of 1/300 second, i32 days since 1900-01-01.
    DateTime,
    /// 16 bytes.
    Guid,
    /// UTF-16, padded.
    Text,
    /// Internal version of a database.
    DatabaseVersion,
    /// Major and minor version, build.
    EngineBuild,
    /// First byte of a FixedVar record, [`crate::record::status`].
    RecordStatus,
    /// First byte of a compressed record.
    CdStatus,
    /// End offset of a variable column; the high bit says it is complex.
    EndOffset,
    /// Offset of a record on the page.
    SlotOffset,
    /// One byte per page, [`crate::allocation::PfsByte`].
    PfsBytes,
    /// One bit per extent, lowest first.
    ExtentBits,
    /// One bit per column, lowest first.
    NullBits,
    /// Half a byte per column, low half first.
    ColumnCodes,
    /// Always zero.
    Zero,
    /// Content that only the catalog explains.
    Bytes,
}

/// The rows of one structure; a row without its own `reference` gets that of the whole table.
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

/// The names that the modules of tables import.
mod prelude {
    pub(super) use super::Count::{Given, Times};
    pub(super) use super::Kind::{self, *};
    pub(super) use super::Place::{At, Column, Each, FromPageEnd, Part as P};
    pub(super) use super::Width::{Bits, Bytes as B, Varies};
    pub(super) use super::{Field, Names, Part, Structure, fields};
}

#[cfg(test)]
mod tests;
