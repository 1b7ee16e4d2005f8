//! Reads the system catalog. The base tables are read from their own pages and converted to a typed [`Database`].
//!
//! Reading starts at the boot page, which contains the ID of the first page of sysallocunits. The base tables
//! sysallocunits, sysrowsets and sysrscols are read by their leading columns, which have fixed offsets. These three
//! tables describe every other table, so nothing else is hard-coded (docs/format/catalog.md#bootstrap). Parts that
//! cannot be read are recorded as a [`Gap`]; this crate reports no findings.

// Indexing is allowed only after a bounds check. A comment on each line that indexes names this check.
#![warn(clippy::indexing_slicing)]

mod base_table;
mod bootstrap;
mod by_records;
mod chain;
mod complete;
mod database;
mod encryption;
mod found;
mod known;
mod layout;
mod load;
mod off_row;
mod row_counts;
mod rows;
mod size;
mod statistics;
mod whole;

pub use base_table::{Unread, read_base_table, read_base_table_as, read_base_table_stored};
pub use by_records::complete_by_records;
pub use chain::{ChainFault, Fetched, fetch};
pub use complete::{NotACopy, complete_from};
pub use database::{
    AllocUnit, Blob, Boot, Boundary, Columnstore, Compared, Constraint, ConstraintKind, Database, Dictionary,
    Difference, Expression, ExpressionKind, FileRow, Filegroup, Gap, Identity, IdentityMark, Index, IndexColumn,
    IndexType, Object, PartitionFunction, Partitioned, RestsOn, RowGroup, Rowset, RowsetsByObject, Segment,
    TableColumn, UnitKind, decimal, integer,
};
pub use found::{CELLS, FileRemains, Found, PageCounts, RecordForm};
pub use layout::{Level, RowLayout, RowsetColumn, Stored, column_status};
pub use load::{load, load_found};
pub use off_row::off_row_value;
pub use row_counts::set_row_counts;
pub use statistics::{Statistics, StatisticsColumn, StoredStatistics, read_statistics};
