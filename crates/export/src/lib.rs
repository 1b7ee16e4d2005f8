//! Files of rows: CSV, JSON lines, T-SQL and Parquet.
//!
//! [`write_table`] writes the rows of a table, [`write_rows`] rows from any source. docs/values.md shows each value in
//! each form of file. The same table gives the same bytes with any number of threads.

// Indexing is used only after a bounds check; a comment on each such line names it.
#![warn(clippy::indexing_slicing)]

mod csv;
mod digits;
#[cfg(test)]
#[cfg(feature = "parquet")]
mod documents;
mod jsonl;
mod layout;
mod names;
mod ordered;
mod out;
#[cfg(feature = "parquet")]
mod parquet;
mod plain;
mod preview;
mod salvage;
mod script_frame;
mod table;
mod target;
mod text_file;
mod tsql;

pub use layout::{Field, Kind, Layout};
pub use names::stems;
pub use out::{Gap, GapReason};
pub use preview::{Cells, Previewed, cells, write_some};
pub use salvage::{SalvageFiles, SalvageForm, write_salvaged};
pub use script_frame::{foreign_keys, frame};
pub use table::{Destination, EachRow, Form, SqlFrame, TableSource, Written, write_rows, write_table};
pub use target::{Partial, partial};
