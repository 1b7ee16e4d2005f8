//! Partition functions, and the heaps and indexes that they partition.

use format::types::TypeInfo;

/// A boundary between two partitions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Boundary {
    /// The type of the value, with its precision or scale. For a NULL, this is the default `TypeInfo`.
    pub info: TypeInfo,
    /// The value of the boundary; `None` for NULL.
    pub value: Option<Box<[u8]>>,
}

/// A partition function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartitionFunction {
    /// The name of the partition function.
    pub name: String,
    /// The possible lists of boundaries, each ordered by boundary number. There is at most one list, unless
    /// sysobjvalues also has rows of another class with the ID of this function.
    pub candidates: Vec<Vec<Boundary>>,
}

/// A partitioned heap or index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partitioned {
    /// The ID of the partition function.
    pub function_id: i32,
    /// The ID of the partition scheme.
    pub scheme_id: i32,
    /// The column ID of the partitioning column in the table.
    pub column_id: u32,
}
