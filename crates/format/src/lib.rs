//! The structures of a SQL Server data file.
//!
//! This crate has typed views of pages, records, allocation maps and values, and the catalog of their fields. It does
//! no I/O, makes no decisions and reports no findings: a view either returns a value or names the rule that the bytes
//! break.
//!
//! There are two kinds of accessors: *checked* ones return the violated rule ([`record::RecordFault`],
//! [`slots::SlotFault`], [`protection::ProtectionFault`]), and *raw* ones return the stored bytes for dumps. No bytes,
//! however damaged, make this crate panic.

// Code may index only after a bounds check. A comment or a `reason` at the indexing line names the check.
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
pub mod instances;
pub mod key;
pub mod lob;
pub mod log;
pub mod page;
pub mod protection;
pub mod record;
pub mod render;
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
