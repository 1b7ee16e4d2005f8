//! The description from which the lab builds the files of a database.

use std::collections::HashMap;
use std::sync::Arc;

use crate::compress;
use crate::page::PageVerify;
use crate::sample::Sample;
use crate::types::SqlType;
use crate::version::Version;

/// The most columns of a table.
const MOST_COLUMNS: usize = 1024;

/// The ID of the collation SQL_Latin1_General_CP1_CI_AS.
pub const DEFAULT_COLLATION: u32 = 0x3400_D008;

/// The description of a database.
#[derive(Clone, Debug)]
pub struct Description {
    /// Name of the database, from which the file names are made.
    pub name: String,
    /// The version of SQL Server in whose format the files are written.
    pub version: Version,
    /// ID of the default collation.
    pub collation: u32,
    /// Page protection.
    pub verify: PageVerify,
    /// The seed that determines all values.
    pub seed: u64,
    /// The filegroups. The first one is PRIMARY and has at least one file.
    pub filegroups: Vec<Filegroup>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The minimum length of each file, in pages.
    pub least_pages: u32,
}

/// A filegroup.
#[derive(Clone, Debug)]
pub struct Filegroup {
    /// Name of the filegroup.
    pub name: String,
    /// Number of data files in the filegroup.
    pub files: u16,
}

/// The compression of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    /// No compression: FixedVar records.
    #[default]
    None,
    /// ROW compression: CD records.
    Row,
    /// PAGE compression: CD records, and a CI record on full leaf pages.
    Page,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Name of the table. The schema is dbo.
    pub name: String,
    /// The columns in the order of their IDs.
    pub columns: Vec<Column>,
    /// The clustered index; `None` for a heap.
    pub clustered: Option<Index>,
    /// Nonclustered indexes.
    pub indexes: Vec<Index>,
    /// Number of rows.
    pub rows: u64,
    /// One in this many rows is a ghost; 0 if the table has no ghosts.
    pub ghost_every: u64,
    /// One in this many rows of a heap is a forwarded row; 0 if the heap has no forwarded rows.
    pub moved_every: u64,
    /// In a heap, an empty slot follows each run of this many rows; 0 for no empty slots.
    pub hole_every: u64,
    /// One in this many rows has a version tag; 0 if no row has one.
    pub versioned_every: u64,
    /// Whether the order of the pages differs from the order of the rows.
    pub fragmented: bool,
    /// The position of the filegroup in `Description::filegroups`.
    pub filegroup: usize,
    /// Compression of the heap or clustered index.
    pub compression: Compression,
    /// Number of partitions, which divide the rows by row number; 0 or 1 for an unpartitioned table.
    pub partitions: u32,
    /// CHECK constraints, each with its name and a condition that is true for every row.
    pub checks: Vec<(String, Filter)>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// Columns that have automatically created statistics.
    pub statistics: Vec<usize>,
    /// Whether most extents of the files are reserved for the heap or clustered index, as after a large delete: extents
    /// without pages in use, up to [`Description::least_pages`]. Several such tables divide the extents.
    pub has_reserve: bool,
    /// Whether the table was rebuilt after columns were added and dropped. Then its rows have the same form as if the
    /// columns had never changed.
    pub is_rebuilt: bool,
}

/// A foreign key with one column.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// Name of the foreign key.
    pub name: String,
    /// The referencing column. Each of its values must exist in the referenced table.
    pub column: usize,
    /// Name of the referenced table.
    pub table: String,
    /// The referenced column, which must be the only key column of a unique index.
    pub key: usize,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Type of the column.
    pub ty: SqlType,
    /// Whether the column may be NULL.
    pub nullable: bool,
    /// Whether the column is sparse, so that only values other than NULL are stored.
    pub sparse: bool,
    /// The expression; `None` if the column is not computed.
    pub computed: Option<Computed>,
    /// The source of the values.
    pub values: Values,
    /// The percentage of rows in which the column is NULL.
    pub nulls: u8,
    /// The value of the DEFAULT constraint; `None` if the column has no DEFAULT constraint.
    pub default: Option<i32>,
    /// Whether the column is an IDENTITY column. Its values must be serial.
    pub identity: bool,
    /// When the column was added and dropped, relative to the rows.
    pub life: Life,
}

/// When ALTER TABLE added or dropped a column, given as row numbers. Rows are written in the order of their numbers. A
/// row keeps the form in which it was written, except if `alters` is set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Life {
    /// The first row that was written with the column. In earlier rows the column is NULL or has its default.
    pub since: u64,
    /// The first row that was written after the column was dropped; `None` if the column still exists.
    pub until: Option<u64>,
    /// The dropped column whose bytes in the row this column uses. Both columns have the same length, except if
    /// `alters` is set.
    pub in_place_of: Option<usize>,
    /// Whether the column begins at the end of the last fixed-length column that was not dropped. The column then uses
    /// the bytes of dropped columns that begin there. It may end within these bytes or beyond them.
    pub at_end: bool,
    /// Whether ALTER COLUMN made this column from the column `in_place_of`, which is at least as long. In this case,
    /// SQL Server rewrites all rows, and the new column also uses the null bit of the old column.
    pub alters: bool,
    /// Whether the metadata stores the default of the column, which applies to rows that were written before the column
    /// was added. SQL Server does this if a NOT NULL column with a default is added.
    pub keeps_default: bool,
    /// Whether the table was rebuilt after the column was dropped, so that its rows do not keep the space of the column.
    pub is_gone: bool,
}

/// A computed column.
#[derive(Clone, Debug)]
pub struct Computed {
    /// The expression of the column.
    pub expression: Expression,
    /// Whether the column is PERSISTED, so that the row stores its value.
    pub persisted: bool,
}

/// The expressions of computed columns that the lab supports. All operands are int columns.
#[derive(Clone, Debug)]
pub enum Expression {
    /// `([a]*[b])`
    Product(usize, usize),
    /// `([a]+[b])`
    Sum(usize, usize),
    /// An expression with the given text. Its value must be the sum of the two columns.
    Written(usize, usize, String),
}

/// The source of a column's values. Row numbers count from 0, in the order in which the rows are generated.
#[derive(Clone, Debug)]
pub enum Values {
    /// `start + step * row`.
    Serial {
        /// The value in row 0.
        start: i64,
        /// The difference between the values of consecutive rows.
        step: i64,
    },
    /// `start + row / per`: groups of rows with the same value.
    Grouped {
        /// The value of the first group.
        start: i64,
        /// The number of rows in a group.
        per: u64,
    },
    /// `start + row % per`: the position of the row in a group of `per` rows.
    Within {
        /// The value in the first row of a group.
        start: i64,
        /// The number of rows in a group.
        per: u64,
    },
    /// Each value occurs in `per` rows, whose positions are shuffled.
    Scattered {
        /// The number of rows with the same value.
        per: u64,
    },
    /// Random values in a range.
    Uniform {
        /// The smallest value.
        low: i64,
        /// The largest value.
        high: i64,
    },
    /// Words with a random total length, in characters.
    Text {
        /// The shortest length, in characters.
        least: u32,
        /// The longest length, in characters.
        most: u32,
    },
    /// Random bytes of random length.
    Bytes {
        /// The shortest length, in bytes.
        least: u32,
        /// The longest length, in bytes.
        most: u32,
    },
    /// The listed values, one for each row; after the last value, the list starts again.
    Listed(Arc<[Sample]>),
}

/// An index.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// Name of the index.
    pub name: String,
    /// The key columns, each with a flag for descending order.
    pub keys: Vec<(usize, bool)>,
    /// The included columns.
    pub included: Vec<usize>,
    /// Whether the index is unique.
    pub unique: bool,
    /// Whether the index is the primary key of the table.
    pub primary_key: bool,
    /// The filter; `None` if the index is not filtered.
    pub filter: Option<Filter>,
    /// The fill factor of the leaf pages in percent; 0 if the pages are filled completely.
    pub fill_factor: u8,
    /// Compression of the index.
    pub compression: Compression,
    /// The position of the filegroup in `Description::filegroups`; `None` for the filegroup of the table.
    pub filegroup: Option<usize>,
}

/// The condition of a filtered index or CHECK constraint.
#[derive(Clone, Debug)]
pub enum Filter {
    /// `([column] IS NOT NULL)`
    IsNotNull(usize),
    /// `([column]>=(n))`
    AtLeast(usize, i32),
    /// A condition with the given text, which tests the given column. The lab assumes that the condition is true for
    /// all rows.
    Written(usize, String),
}

impl Description {
    /// The position of each table, by its name.
    pub(crate) fn tables_by_name(&self) -> HashMap<&str, usize> {
        self.tables.iter().enumerate().map(|(at, table)| (table.name.as_str(), at)).collect()
    }

    /// The position of the table that a foreign key references, and the ID of the index on the referenced column.
    pub(crate) fn referred(&self, tables: &HashMap<&str, usize>, key: &ForeignKey) -> Option<(usize, i32)> {
        let at = *tables.get(key.table.as_str())?;
        let table = &self.tables[at];
        let is_key = |index: &Index| index.unique && index.filter.is_none() && index.keys == [(key.key, false)];
        let clustered = table.clustered.as_ref().filter(|index| is_key(index)).map(|_| 1);
        let index = clustered.or_else(|| Some(table.indexes.iter().position(is_key)? as i32 + 2))?;
        Some((at, index))
    }

    /// Returns an error if the format or the version of the description does not allow the description, or if the
    /// storage format of a requested feature is undocumented.
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
    /// Whether the lab can write statistics of the column.
    fn has_histogram(&self) -> bool {
        const BIT: u8 = 104;
        !self.is_dropped() && !self.sparse && !self.ty.is_lob() && !self.ty.is_encrypted() && self.ty.xtype != BIT
    }

    /// Creates a NOT NULL column.
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

    /// Makes ALTER TABLE add the column just before row `row` is written.
    pub fn since(mut self, row: u64) -> Self {
        self.life.since = row;
        self
    }

    /// Makes ALTER TABLE drop the column just before row `row` is written.
    pub fn until(mut self, row: u64) -> Self {
        self.life.until = Some(row);
        self
    }

    /// Places the column in the bytes of the dropped column with this position.
    pub fn in_place_of(mut self, column: usize) -> Self {
        self.life.in_place_of = Some(column);
        self
    }

    /// Makes the column the result of an ALTER COLUMN of the column with this position.
    pub fn made_of(mut self, column: usize) -> Self {
        self.life.alters = true;
        self.in_place_of(column)
    }

    /// Places a fixed-length column directly after the last column that was not dropped.
    pub fn at_end(mut self) -> Self {
        self.life.at_end = true;
        self
    }

    /// Gives the column a DEFAULT constraint. The default is also the value of the column in rows that were written
    /// before the column was added (SQL Server 2012 and later).
    pub fn default_of_older_rows(mut self, value: i32) -> Self {
        (self.default, self.life.keeps_default) = (Some(value), true);
        self
    }

    /// Creates an IDENTITY column with the values 1, 2, 3 and so on.
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

    /// Creates an int column that is computed from other columns.
    pub fn computed(name: &str, expression: Expression, persisted: bool) -> Self {
        let computed = Some(Computed { expression, persisted });
        Self { computed, ..Self::new(name, SqlType::INT, Values::Serial { start: 0, step: 0 }) }.nullable(0)
    }

    /// Whether the column was dropped. Rows keep the space of a dropped column.
    pub fn is_dropped(&self) -> bool {
        self.life.until.is_some()
    }

    /// Whether the rows of the table store the column.
    pub fn is_stored(&self) -> bool {
        self.computed.as_ref().is_none_or(|computed| computed.persisted)
    }
}

impl Index {
    /// Creates an index whose key columns are all ascending.
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
    /// The text of the expression as the catalog stores it.
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
    /// The text of the condition as the catalog stores it.
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
