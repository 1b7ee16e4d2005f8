//! A table and its columns.

mod of;

pub use of::NoRows;

use format::collation::CollationId;
use format::types::TypeInfo;

/// A table whose rows can be read.
#[derive(Clone, Debug)]
pub struct Table {
    /// Object ID.
    pub object_id: i32,
    /// Name of the schema.
    pub schema: String,
    /// Name of the table.
    pub name: String,
    /// The columns in the order of their IDs, without dropped columns.
    pub columns: Vec<Column>,
    /// The partitions in the order of their numbers, as positions in [`catalog::Database::rowsets`].
    pub partitions: Vec<usize>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Column ID.
    pub id: u32,
    /// Name of the column.
    pub name: String,
    /// The type of the column. For a column that is not stored, the type is unknown and its xtype is 0.
    pub info: TypeInfo,
    /// The ID of the type in sysscalartypes; see [`format::types::user_type`].
    pub user_type: i32,
    /// The collation of a text column.
    pub collation: CollationId,
    /// Whether the column may hold NULL.
    pub is_nullable: bool,
    /// The place where the column's values are stored.
    pub place: Place,
}

/// The place where the values of a column are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the row, or off the row with a pointer in the row.
    Stored,
    /// In the row, as a PERSISTED computed column.
    Persisted,
    /// Nowhere: SQL Server evaluates the computed column when a query reads it.
    Computed,
    /// In the row, encrypted by the client (Always Encrypted). Only the encrypted bytes are available.
    Encrypted,
}

impl Table {
    /// The name of the table with its schema: `dbo.Orders`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
}
