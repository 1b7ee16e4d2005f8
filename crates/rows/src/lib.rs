//! Rows of tables as typed values.
//!
//! [`Table`] says which columns a table has and where their values are; [`Value`] is what a row has in one of them. Nothing
//! here judges a page: that is what `check` does.

// Indexing is used only where an earlier test proved the place; each such line says which.
#![warn(clippy::indexing_slicing)]

pub mod loss;
pub mod salvage;
mod table;
mod value;

pub use table::{Column, Place, Table};
pub use value::{DateTime, LongValue, ReadLong, TimeOfDay, Unreadable, Value};
