//! Rows under ROW and PAGE compression (docs/format/compression.md).
//!
//! [`CdRecord`] and [`CompressionInfo`] are views whose parts were proven to lie inside their space; an [`Expansion`]
//! turns a row into the uncompressed record that it stands for, so that everything else reads rows of one form only.

mod expand;
mod fault;
pub(crate) mod info;
mod record;
pub mod scsu;
mod value;
pub mod vardecimal;

pub use expand::{CompressedColumn, Expanded, Expansion, Scratch};
pub use fault::{CdFault, CdIssue, CdTest};
pub use info::{Anchor, CompressionInfo};
pub use record::{CdColumn, CdKind, CdParts, CdRecord, Columns, Descriptor, cd_status};
pub use value::Doubt;
