//! Reads rows of tables as typed values.
//!
//! [`Table`] says which columns a table has and where their values are; [`Value`] is the value of one column in one
//! row. This crate does not report damage as findings; the crate `check` does.

// Indexing is used only after a bounds check; a comment on each indexing line names the check.
#![warn(clippy::indexing_slicing)]

mod blob;
mod counts;
mod index_columns;
mod leaf;
mod long;
pub mod loss;
mod maps;
mod owner;
mod page_set;
mod plan;
mod reader;
mod row;
pub mod salvage;
mod scan;
mod table;
mod tree;
mod value;
mod values;

pub use counts::{MOST_LISTED, RangeCounts, Why};
pub use index_columns::{Origin, column_origins};
pub use reader::{Doubt, Reader, Row};
pub use scan::{NoKeyOrder, Order, RANGE_PAGES, Range, Scan, ScanOptions};
pub use table::{Column, NoRows, Place, Table};
pub use value::{DateTime, LongValue, ReadLong, Text, TimeOfDay, Unreadable, Value};
