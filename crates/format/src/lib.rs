//! What the bytes of a SQL Server data file mean.
//!
//! Typed views of pages, records, allocation maps and values, and the catalog of their fields. No I/O, no policy, no
//! findings: a view either yields a value or says which rule the bytes break.
//!
//! Accessors come in two tiers: *checked* ones, which return the violated rule ([`record::RecordFault`],
//! [`slots::SlotFault`], [`protection::ProtectionFault`]), and *raw* ones for dumps, which return the bytes as they
//! are. Nothing here panics, whatever the bytes are.

// Indexing is used only after a bounds check; each such line names it.
#![warn(clippy::indexing_slicing)]

pub mod allocation;
pub mod boot;
pub mod bytes;
pub mod collation;
pub mod compressed;
pub mod domain;
pub mod fields;
pub mod file_header;
pub mod ids;
pub mod key;
pub mod lob;
pub mod log;
pub mod page;
pub mod protection;
pub mod record;
pub mod same_shape;
mod simd;
pub mod slots;
pub mod sparse;
pub mod statistics;
pub mod types;

pub mod value;
pub mod version;

pub use ids::{AllocUnitId, Lsn, PageId, RecordId};
pub use page::{PAGE_BYTES, Page, PageBytes, PageHeader, PageType};
