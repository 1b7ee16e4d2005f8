//! The description of a database: its shape, from which `build` makes files.

use std::collections::HashMap;
use std::sync::Arc;

use crate::compress;
use crate::page::PageVerify;
use crate::sample::Sample;
use crate::types::SqlType;
use crate::version::Version;

/// Most columns of a table.
const MOST_COLUMNS: usize = 1024;

/// SQL_Latin1_General_CP1_CI_AS.
pub const DEFAULT_COLLATION: u32 = 0x3400_D008;

/// A database to build.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name; its files are named after it.
    pub name: String,
    /// Layout version.
    pub version: Version,
    /// Default collation id.
    pub collation: u32,
    /// Page protection.
    pub verify: PageVerify,
    /// The seed from which all values follow.
    pub seed: u64,
    /// The filegroups, each with its number of data files, at least one. The first filegroup is PRIMARY.
    pub filegroups: Vec<Filegroup>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Files are at least this many pages long.
    pub least_pages: u32,
}

/// A filegroup.
#[derive(Clone, Debug)]
pub struct Filegroup {
    /// Its name.
    pub name: String,
    /// Number of its files.
    pub files: u16,
}

/// How rows are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    /// FixedVar records.
    #[default]
    None,
    /// CD records.
    Row,
    /// CD records and, on full leaf pages, a CI record.
    Page,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its name, in schema dbo.
    pub name: String,
    /// Columns in the order of their ids.
    pub columns: Vec<Column>,
    /// The clustered index; without it the table is a heap.
    pub clustered: Option<Index>,
    /// Nonclustered indexes.
    pub indexes: Vec<Index>,
    /// Number of rows.
    pub rows: u64,
    /// One row in this many is a ghost; 0 for none.
    pub ghost_every: u64,
    /// One row in this many of a heap was moved; 0 for none.
    pub moved_every: u64,
    /// An empty slot follows each run of this many rows of a heap; 0 for none.
    pub hole_every: u64,
    /// One row in this many has a version tag; 0 for none.
    pub versioned_every: u64,
    /// Pages are not in the order of the rows.
    pub fragmented: bool,
    /// Index into the filegroups.
    pub filegroup: usize,
    /// Compression of heap or clustered index.
    pub compression: Compression,
    /// Number of partitions, by row number; 0 or 1 for an unpartitioned table.
    pub partitions: u32,
    /// CHECK constraints: names, and a condition true for every row.
    pub checks: Vec<(String, Filter)>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// Columns with statistics of their own, as SQL Server makes them for queries.
    pub statistics: Vec<usize>,
    /// The table was rebuilt after columns were added and dropped, so that its rows show nothing of that.
    pub is_rebuilt: bool,
}

/// A foreign key of one column.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// Its name.
    pub name: String,
    /// The column; each of its values exists in the other table.
    pub column: usize,
    /// The referenced table.
    pub table: String,
    /// The referenced column, the only key of a unique index.
    pub key: usize,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// May be NULL.
    pub nullable: bool,
    /// Stored only if it has a value.
    pub sparse: bool,
    /// The expression, if the values are computed.
    pub computed: Option<Computed>,
    /// The source of its values.
    pub values: Values,
    /// Percentage of rows that are NULL.
    pub nulls: u8,
    /// The number of its DEFAULT constraint.
    pub default: Option<i32>,
    /// IDENTITY; its values are serial.
    pub identity: bool,
    /// When the column was added and dropped.
    pub life: Life,
}

/// When ALTER TABLE added or dropped a column. Rows were written in the order of their numbers and never rewritten,
/// except as `alters` says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Life {
    /// Rows before this one were written without the column: they are NULL in it, or have its default.
    pub since: u64,
    /// Rows from this one on were written after the column was dropped.
    pub until: Option<u64>,
    /// The dropped column of the same length whose place in the rows it took.
    pub in_place_of: Option<usize>,
    /// The column begins at the end of the last column that was not yet dropped. It takes the space of dropped columns
    /// after it, and may end in the middle of one of them, or after all.
    pub at_end: bool,
    /// ALTER COLUMN made this column from the dropped one whose place it has, which is as long or longer. All rows were
    /// written again, and the column also has the null bit of the dropped one.
    pub alters: bool,
    /// The metadata stores its default for the rows that lack it, as for a NOT NULL column that was added with a
    /// default.
    pub keeps_default: bool,
}

/// A computed column.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Its expression.
    pub expression: Expression,
    /// The value is stored with the row.
    pub persisted: bool,
}

/// The expressions the lab writes. All operands are int columns.
#[derive(Clone, Debug)]
pub enum Expression {
    /// `([a]*[b])`
    Product(usize, usize),
    /// `([a]+[b])`
    Sum(usize, usize),
    /// This text; the value is the sum of the two columns.
    Written(usize, usize, String),
}

/// The source of a column's values. Row numbers count from 0 in the order of the clustered index.
#[derive(Clone, Debug)]
pub enum Values {
    /// `start + step * row`.
    Serial {
        /// Value of row 0.
        start: i64,
        /// Difference from row to row.
        step: i64,
    },
    /// `start + row / per`: groups of rows with the same value.
    Grouped {
        /// Value of the first group.
        start: i64,
        /// Rows in a group.
        per: u64,
    },
    /// `start + row % per`: the position in a group.
    Within {
        /// Value of the first row of a group.
        start: i64,
        /// Rows in a group.
        per: u64,
    },
    /// Each value has `per` rows, at shuffled positions.
    Scattered {
        /// Number of rows with the same value.
        per: u64,
    },
    /// Random values in a range.
    Uniform {
        /// Least value.
        low: i64,
        /// Greatest value.
        high: i64,
    },
    /// Words of random length in characters.
    Text {
        /// Shortest.
        least: u32,
        /// Longest.
        most: u32,
    },
    /// Random bytes of random length.
    Bytes {
        /// Shortest.
        least: u32,
        /// Longest.
        most: u32,
    },
    /// These values, in a cycle.
    Listed(Arc<[Sample]>),
}

/// An index.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Key columns, each with a flag for descending order.
    pub keys: Vec<(usize, bool)>,
    /// Included columns.
    pub included: Vec<usize>,
    /// No two rows have the same key.
    pub unique: bool,
    /// It is the table's primary key.
    pub primary_key: bool,
    /// The condition for rows of a filtered index.
    pub filter: Option<Filter>,
    /// Fill factor of leaf pages in percent; 0 for full pages.
    pub fill_factor: u8,
    /// Compression.
    pub compression: Compression,
    /// Index into the filegroups; `None` for the filegroup of the table.
    pub filegroup: Option<usize>,
}

/// The condition of a filtered index.
#[derive(Clone, Debug)]
pub enum Filter {
    /// `([column] IS NOT NULL)`
    IsNotNull(usize),
    /// `([column]>=(n))`
    AtLeast(usize, i32),
    /// This text, which names the column; rows are written as if all of them satisfied it.
    Written(usize, String),
}

impl Description {
    /// Maps table names to positions.
    pub(crate) fn tables_by_name(&self) -> HashMap<&str, usize> {
        self.tables.iter().enumerate().map(|(at, table)| (table.name.as_str(), at)).collect()
    }

    /// Position of the table that a foreign key refers to, and the id of its index.
    pub(crate) fn referred(&self, tables: &HashMap<&str, usize>, key: &ForeignKey) -> Option<(usize, i32)> {
        let at = *tables.get(key.table.as_str())?;
        let table = &self.tables[at];
        let is_key = |index: &Index| index.unique && index.filter.is_none() && index.keys == [(key.key, false)];
        let clustered = table.clustered.as_ref().filter(|index| is_key(index)).map(|_| 1);
        let index = clustered.or_else(|| Some(table.indexes.iter().position(is_key)? as i32 + 2))?;
        Some((at, index))
    }

    /// Refuses a description that the format or the chosen version does not allow, or whose storage is undocumented.
    pub(crate) fn check(&self) -> Result<(), String> {
        let since_2008 = self.version > Version::V611;
        let tables = self.tables_by_name();
        if tables.len() < self.tables.len() {
            return Err("two tables have the same name".to_owned());
        }
        for table in &self.tables {
            let name = &table.name;
            let indexes = || table.clustered.iter().chain(&table.indexes);
            let compressed =
                table.compression != Compression::None || indexes().any(|index| index.compression != Compression::None);
            let sparse = table.columns.iter().any(|column| column.sparse);
            let lives = || table.columns.iter().map(|column| column.life);
            let keys =
                || indexes().flat_map(|index| index.keys.iter().map(|&(key, _)| key).chain(index.included.clone()));
            let is_older = |column: usize| table.columns.get(column).is_some_and(|column| column.life.since == 0);
            let refused = [
                (
                    !lives().map(|life| life.since).is_sorted(),
                    "has columns that are not in the order in which they came",
                ),
                (
                    keys().any(|key| table.columns.get(key).is_none_or(Column::is_dropped)),
                    "has an index on a dropped column",
                ),
                (
                    table.clustered.iter().any(|index| !index.keys.iter().all(|&(key, _)| is_older(key))),
                    "is ordered by a column that its first rows lack",
                ),
                (
                    lives().any(|life| life.keeps_default) && self.version < Version::V706,
                    "keeps a default for older rows, which came with 2012",
                ),
                (table.columns.len() > MOST_COLUMNS, "has more than 1,024 columns"),
                (
                    compressed && table.columns.len() > compress::MOST_COLUMNS,
                    "is compressed and has more than 127 columns",
                ),
                (
                    table
                        .statistics
                        .iter()
                        .any(|&column| !table.columns.get(column).is_some_and(Column::has_histogram)),
                    "has statistics of a column that does not exist, or whose type has none here",
                ),
                (table.filegroup >= self.filegroups.len(), "names a filegroup that does not exist"),
                (compressed && !since_2008, "is compressed, which 2005 does not know"),
                (sparse && !since_2008, "has sparse columns, which 2005 does not know"),
                (
                    indexes().any(|index| index.filter.is_some()) && !since_2008,
                    "has a filter, which 2005 does not know",
                ),
                (compressed && sparse, "is compressed and has sparse columns"),
                (compressed && table.versioned_every > 0, "is compressed and has row versions"),
                (compressed && table.moved_every > 0, "is compressed and has moved rows, whose form is undocumented"),
                (indexes().any(|index| index.keys.is_empty()), "has an index without a key"),
                (
                    table.foreign_keys.iter().any(|key| self.referred(&tables, key).is_none()),
                    "has a foreign key that does not refer to a key of another table",
                ),
            ];
            if let Some((_, why)) = refused.iter().find(|(refused, _)| *refused) {
                return Err(format!("table {name} {why}"));
            }
        }
        Ok(())
    }
}

impl Column {
    /// Whether the lab writes statistics of it.
    fn has_histogram(&self) -> bool {
        const BIT: u8 = 104;
        !self.is_dropped() && !self.sparse && !self.ty.is_lob() && !self.ty.is_encrypted() && self.ty.xtype != BIT
    }

    /// A NOT NULL column.
    pub fn new(name: &str, ty: SqlType, values: Values) -> Self {
        Self {
            name: name.to_owned(),
            ty,
            nullable: false,
            sparse: false,
            computed: None,
            values,
            nulls: 0,
            default: None,
            identity: false,
            life: Life::default(),
        }
    }

    /// Adds the column just before this row was written.
    pub fn since(mut self, row: u64) -> Self {
        self.life.since = row;
        self
    }

    /// Drops the column just before this row was written.
    pub fn until(mut self, row: u64) -> Self {
        self.life.until = Some(row);
        self
    }

    /// Puts the column in the place of a dropped one.
    pub fn in_place_of(mut self, column: usize) -> Self {
        self.life.in_place_of = Some(column);
        self
    }

    /// Makes the column from a dropped one by ALTER COLUMN.
    pub fn made_of(mut self, column: usize) -> Self {
        self.life.alters = true;
        self.in_place_of(column)
    }

    /// Puts a fixed column after the last column that was not dropped.
    pub fn at_end(mut self) -> Self {
        self.life.at_end = true;
        self
    }

    /// Sets a DEFAULT constraint whose value also applies to rows written before the column was added (2012 and later).
    pub fn default_of_older_rows(mut self, value: i32) -> Self {
        (self.default, self.life.keeps_default) = (Some(value), true);
        self
    }

    /// An IDENTITY column: 1, 2, 3 ...
    pub fn identity(name: &str, ty: SqlType) -> Self {
        Self { identity: true, ..Self::new(name, ty, Values::Serial { start: 1, step: 1 }) }
    }

    /// Sets a DEFAULT constraint.
    pub fn default(mut self, value: i32) -> Self {
        self.default = Some(value);
        self
    }

    /// Allows NULL, and makes the column NULL in this percentage of rows.
    pub fn nullable(mut self, nulls: u8) -> Self {
        (self.nullable, self.nulls) = (true, nulls);
        self
    }

    /// Makes the column sparse, and NULL in this percentage of rows.
    pub fn sparse(mut self, nulls: u8) -> Self {
        self.sparse = true;
        self.nullable(nulls)
    }

    /// An int column computed from others.
    pub fn computed(name: &str, expression: Expression, persisted: bool) -> Self {
        let computed = Some(Computed { expression, persisted });
        Self { computed, ..Self::new(name, SqlType::INT, Values::Serial { start: 0, step: 0 }) }.nullable(0)
    }

    /// Whether the column was dropped; rows keep its place.
    pub fn is_dropped(&self) -> bool {
        self.life.until.is_some()
    }

    /// Whether the table's own rows store the column.
    pub fn is_stored(&self) -> bool {
        self.computed.as_ref().is_none_or(|computed| computed.persisted)
    }
}

impl Index {
    /// An index on ascending columns.
    pub fn on(name: &str, keys: &[usize]) -> Self {
        let keys = keys.iter().map(|&key| (key, false)).collect();
        Self { name: name.to_owned(), keys, ..Self::default() }
    }

    /// Makes the index unique.
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Makes the index the primary key.
    pub fn primary_key(mut self) -> Self {
        (self.unique, self.primary_key) = (true, true);
        self
    }

    /// Adds included columns.
    pub fn including(mut self, columns: &[usize]) -> Self {
        self.included = columns.to_vec();
        self
    }

    /// Sets a filter.
    pub fn filtered(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }
}

impl Expression {
    /// The expression as text, as the catalog stores it.
    pub fn text(&self, columns: &[Column]) -> String {
        let name = |at: usize| columns.get(at).map_or("", |column| &column.name);
        match self {
            Self::Product(a, b) => format!("([{}]*[{}])", name(*a), name(*b)),
            Self::Sum(a, b) => format!("([{}]+[{}])", name(*a), name(*b)),
            Self::Written(_, _, text) => text.clone(),
        }
    }

    /// The two columns that the expression combines.
    pub fn operands(&self) -> (usize, usize) {
        match self {
            Self::Product(a, b) | Self::Sum(a, b) | Self::Written(a, b, _) => (*a, *b),
        }
    }
}

impl Filter {
    /// The condition as text, as the catalog stores it.
    pub fn text(&self, columns: &[Column]) -> String {
        let name = |at: usize| columns.get(at).map_or("", |column| &column.name);
        match self {
            Self::IsNotNull(column) => format!("([{}] IS NOT NULL)", name(*column)),
            Self::AtLeast(column, n) => format!("([{}]>=({n}))", name(*column)),
            Self::Written(_, text) => text.clone(),
        }
    }

    /// The column that the condition tests.
    pub fn column(&self) -> usize {
        match self {
            Self::IsNotNull(column) | Self::AtLeast(column, _) | Self::Written(column, _) => *column,
        }
    }
}
