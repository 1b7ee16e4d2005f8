//! Rows under ROW and PAGE compression (docs/format/compression.md).
//!
//! A [`CdRecord`] or a [`CompressionInfo`] is checked when it is read. Afterwards, all of its parts are known to be
//! inside the bytes that belong to it. An [`Expansion`] turns a row into the equivalent uncompressed record, so that
//! all other code reads only one record format.

mod expand;
mod fault;
pub(crate) mod info;
mod record;
pub mod scsu;
mod value;
pub mod vardecimal;

pub use expand::{
    BYTES_AFTER, CommonForm, CompressedColumn, Expanded, ExpandedPage, ExpandedRow, Expansion, MostOfPage, PageColumns,
    Scratch,
};
pub use fault::{CdFault, CdIssue, CdTest};
pub use info::{Anchor, CompressionInfo};
pub use record::{CdColumn, CdKind, CdParts, CdRecord, Columns, Descriptor, cd_status};
pub use value::Doubt;
