//! Columnstore indexes in the catalog: segments, dictionaries and row groups (docs/format/columnstore.md#catalog).

use format::RecordId;

/// The contents of the base tables for columnstore indexes.
#[derive(Clone, Debug, Default)]
pub struct Columnstore {
    /// Rows of syscscolsegments, ordered by rowset, group and column.
    pub segments: Vec<Segment>,
    /// Rows of syscsdictionaries, ordered by rowset, column and ID.
    pub dictionaries: Vec<Dictionary>,
    /// Rows of syscsrowgroups, ordered by rowset and group. Empty before SQL Server 2014.
    pub row_groups: Vec<RowGroup>,
    /// The names of the base tables that have rows but could not be read. Only the three base tables for columnstore
    /// indexes are listed here.
    pub unread: Vec<&'static str>,
}

/// The off-row value that contains a segment or a dictionary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blob {
    /// The ID of the off-row value.
    pub id: u64,
    /// The page and slot of the root of the off-row value.
    pub root: RecordId,
}

/// The values of one column in one row group.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The rowset ID of the columnstore.
    pub rowset_id: u64,
    /// The column ID.
    pub column_id: i32,
    /// The ID of the row group.
    pub group_id: i32,
    /// Number of rows.
    pub rows: i32,
    /// The encoding: 1 for values, 2 for values with a dictionary, 3 for strings with a dictionary, 4 or 5 for values
    /// that are stored directly.
    pub encoding: i32,
    /// The value that code 0 represents, in units of `magnitude`.
    pub base_id: i64,
    /// The unit in which codes are counted.
    pub magnitude: f64,
    /// The ID of the dictionary that the column has for all row groups; -1 if it has none.
    pub primary_dictionary: i32,
    /// The ID of the dictionary that the column has for this row group; -1 if it has none.
    pub secondary_dictionary: i32,
    /// The smallest data ID in the segment.
    pub min_data_id: i64,
    /// The largest data ID in the segment.
    pub max_data_id: i64,
    /// The off-row value that contains the segment.
    pub blob: Option<Blob>,
}

/// A dictionary of a columnstore column.
#[derive(Clone, Copy, Debug)]
pub struct Dictionary {
    /// The rowset ID of the columnstore.
    pub rowset_id: u64,
    /// The column ID.
    pub column_id: i32,
    /// The number of the dictionary within the column; 0 for the dictionary that all row groups share.
    pub id: i32,
    /// The off-row value that contains the dictionary.
    pub blob: Option<Blob>,
}

/// A row group.
#[derive(Clone, Copy, Debug)]
pub struct RowGroup {
    /// The rowset ID of the columnstore.
    pub rowset_id: u64,
    /// The number of the row group.
    pub id: i32,
    /// The number of rows, including deleted ones.
    pub rows: i32,
    /// The state of the row group. 0 means invisible, 1 open, 2 closed, 3 compressed and 4 tombstone.
    pub status: i32,
}

impl RowGroup {
    /// Whether the rows of the group are stored in segments.
    pub fn is_compressed(&self) -> bool {
        self.status == 3
    }
}
