//! Writes rows to files: CSV, JSON lines, T-SQL and Parquet.
//!
//! [`write_table`] writes the rows of a table; [`write_rows`] writes rows from any source. docs/values.md shows how
//! each form of file represents each type. The exported file of a table has the same bytes for any number of threads.

// Code may index only after a bounds check; a comment on each indexing line names the check.
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
mod quotes;
#[cfg(test)]
#[cfg(feature = "parquet")]
mod round_trip;
mod salvage;
mod script_frame;
mod table;
mod target;
mod task;
mod text_file;
mod tsql;

pub use layout::{Field, Kind, Layout};
pub use names::stems;
pub use out::{Gap, GapReason};
pub use preview::{Cells, Previewed, cells, write_some};
pub use salvage::{SalvageFiles, SalvageForm, write_salvaged};
pub use script_frame::{foreign_keys, frame};
pub use table::{Destination, Form, SqlFrame, Written, write_rows, write_table};
pub use target::{Partial, partial};
pub use task::{EachRow, TableSource};
