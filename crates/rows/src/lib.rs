//! Rows of tables as typed values.
//!
//! [`Table`] says which columns a table has and where their values are; [`Value`] is what a row has in one of them. Nothing
//! here judges a page: that is what `check` does.

// Indexing is used only where an earlier test proved the place; each such line says which.
#![warn(clippy::indexing_slicing)]

mod blob;
mod long;
pub mod loss;
mod plan;
mod reader;
mod row;
pub mod salvage;
mod scan;
mod table;
mod value;
mod values;

pub use reader::{Doubt, RangeCounts, Reader, Row, Why};
pub use scan::{NoKeyOrder, Order, RANGE_PAGES, Range, Scan, ScanOptions};
pub use table::{Column, NoRows, Place, Table};
pub use value::{DateTime, LongValue, ReadLong, TimeOfDay, Unreadable, Value};
