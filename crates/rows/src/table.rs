//! A table and its columns.

mod of;

pub use of::NoRows;

use format::collation::CollationId;
use format::types::TypeInfo;

/// A table whose rows can be read.
#[derive(Clone, Debug)]
pub struct Table {
    /// Object id.
    pub object_id: i32,
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// Its columns in the order of their IDs, without dropped columns.
    pub columns: Vec<Column>,
    /// Its partitions, by partition number: indexes into [`catalog::Database::rowsets`].
    pub partitions: Vec<usize>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Column id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Its type. The type of a column that is not stored is unknown here and has xtype 0.
    pub info: TypeInfo,
    /// Its type in sysscalartypes; see [`format::types::user_type`].
    pub user_type: i32,
    /// The collation of a text column.
    pub collation: CollationId,
    /// Whether it may hold NULL.
    pub is_nullable: bool,
    /// Where its values are.
    pub place: Place,
}

/// Where the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the row, or off the row, with a pointer in the row.
    Stored,
    /// In the row, as a PERSISTED computed column.
    Persisted,
    /// Nowhere: a computed column that SQL Server evaluates when it is read.
    Computed,
    /// In the row, encrypted by the client (Always Encrypted): only the encrypted bytes are available.
    Encrypted,
}

impl Table {
    /// Its name with the schema: `dbo.Orders`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
}
