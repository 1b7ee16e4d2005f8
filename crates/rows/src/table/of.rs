//! Finds tables in the catalog.

use std::fmt;

use catalog::{Database, IndexType, Rowset, RowsetColumn, TableColumn, column_status};
use format::collation::CollationId;
use format::types::{TypeInfo, fixed_length};

use super::{Column, Place, Table};

/// Bit of syscolpars.status: the column is a column set, which is computed XML that is not stored
/// (docs/format/catalog.md#syscolpars).
const COLUMN_SET: u32 = 0x200_0000;

/// The reason why the rows of a table cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoRows {
    /// No object has this ID, or the catalog row of the object is lost.
    NoObject,
    /// The object has no rows of its own. For example, it is a view or a procedure.
    NoTable,
    /// The rows of the table are in a clustered columnstore index.
    Columnstore,
    /// The rows of the table are in the files of a memory-optimized filegroup.
    MemoryOptimized,
    /// The database is encrypted (TDE).
    Encrypted,
    /// The catalog does not say where the columns are in the rows of the partition with this number.
    NoLayout(i32),
    /// The catalog has no columns of the table.
    NoColumns,
}

impl fmt::Display for NoRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::NoObject => "the catalog has no object with this id: its row in sysschobjs is missing or unreadable",
            Self::NoTable => "it has no rows of its own",
            Self::Columnstore => {
                "its rows are in a clustered columnstore index, which mdfsck does not decode; restore a backup to read them"
            }
            Self::MemoryOptimized => {
                "it is memory-optimized: its rows are in checkpoint files outside the data files; restore a backup to read them"
            }
            Self::Encrypted => {
                "the database is encrypted (TDE), and its rows cannot be read without the key; restore it on a server that \
                 has the certificate"
            }
            Self::NoLayout(partition) => {
                return write!(
                    f,
                    "the catalog does not say where the columns are in the rows of partition {partition}: sysrscols is \
                     damaged, or its form is not documented"
                );
            }
            Self::NoColumns => "the catalog has no columns of it: syscolpars is missing or unreadable",
        };
        f.write_str(text)
    }
}

impl Table {
    /// The table with this object ID. It may be a user table, a system base table, an internal table or an indexed
    /// view.
    ///
    /// # Errors
    ///
    /// [`NoRows`] if its rows cannot be read.
    pub fn of(database: &Database, object_id: i32) -> Result<Self, NoRows> {
        if database.is_encrypted {
            return Err(NoRows::Encrypted);
        }
        let object = database.objects.get(&object_id).ok_or(NoRows::NoObject)?;
        let base = |index: i32| database.indexes.get(&(object_id, index)).map(|index| index.index_type);
        let is_columnstore = |kind: Option<IndexType>| kind == Some(IndexType::ClusteredColumnstore);
        let mut partitions: Vec<usize> = rowset_places(database, object_id).collect();
        let compression = |at: &usize| database.rowsets.get(*at).map_or(0, |rowset| rowset.compression);
        if is_columnstore(base(1)) || is_columnstore(base(0)) || partitions.iter().any(|at| compression(at) > 2) {
            return Err(NoRows::Columnstore);
        }
        if database.memory_optimized_tables().contains(&object_id) {
            return Err(NoRows::MemoryOptimized);
        }
        if partitions.is_empty() {
            return Err(NoRows::NoTable);
        }
        partitions.sort_by_key(|at| database.rowsets.get(*at).map(|rowset| (rowset.partition, rowset.id)));
        let rowsets: Vec<&Rowset> = partitions.iter().filter_map(|at| database.rowsets.get(*at)).collect();
        let unknown = |rowset: &&&Rowset| {
            rowset.layout.columns.is_empty() || rowset.is_row_compressed() && rowset.expansion.is_none()
        };
        if let Some(rowset) = rowsets.iter().find(unknown) {
            return Err(NoRows::NoLayout(rowset.partition));
        }
        let described = database.columns.get(&object_id).ok_or(NoRows::NoColumns)?;
        let columns: Vec<Column> = described.iter().filter_map(|column| Column::of(column, rowsets.first()?)).collect();
        if columns.is_empty() {
            return Err(NoRows::NoColumns);
        }
        Ok(Self {
            object_id,
            schema: database.schema_name(object).to_owned(),
            name: object.name.clone(),
            columns,
            partitions,
        })
    }

    /// The object IDs of the user tables, ordered by schema and name.
    pub fn list(database: &Database) -> Vec<i32> {
        let is_table = |object: &&catalog::Object| object.type_code == "U";
        let mut tables: Vec<_> = database.objects.values().filter(is_table).collect();
        tables.sort_by(|a, b| {
            let key =
                |object: &catalog::Object| (database.schema_name(object).to_owned(), object.name.clone(), object.id);
            key(a).cmp(&key(b))
        });
        tables.iter().map(|object| object.id).collect()
    }
}

/// The positions of an object's rowsets: those of its clustered index, or those of its heap if it has no clustered
/// index. A damaged catalog may contain rowsets of both kinds.
fn rowset_places(database: &Database, object_id: i32) -> impl Iterator<Item = usize> + '_ {
    let of = move |rowset: &Rowset, index: i32| rowset.object_id == object_id && rowset.index_id == index;
    let index = i32::from(database.rowsets.iter().any(|rowset| of(rowset, 1)));
    database.rowsets.iter().enumerate().filter(move |(_, rowset)| of(rowset, index)).map(|(at, _)| at)
}

impl Column {
    /// A column of the table; `None` for a column set, which only shows the sparse columns as XML.
    fn of(column: &TableColumn, rowset: &Rowset) -> Option<Self> {
        if column.status & COLUMN_SET != 0 {
            return None;
        }
        let stored = rowset.layout.column(column.id);
        let is_compressed = rowset.expansion.is_some();
        let place = match stored {
            None => Place::Computed,
            Some(_) if column.is_computed() => Place::Persisted,
            Some(stored) if !is_compressed && is_encrypted(stored) => Place::Encrypted,
            Some(_) => Place::Stored,
        };
        Some(Self {
            id: column.id,
            name: column.name.clone(),
            info: stored.map_or_else(TypeInfo::default, |stored| stored.info),
            user_type: column.user_type,
            collation: stored.map_or(CollationId(0), |stored| stored.collation),
            is_nullable: !column.is_not_null(),
            place,
        })
    }
}

/// Whether a column of a fixed-length type is stored as a variable-length column. This shows that it is encrypted,
/// because an encrypted value is longer than a value of the type (docs/format/other-features.md#always-encrypted).
fn is_encrypted(column: &RowsetColumn) -> bool {
    let is_special = column.is_sparse() || column.is_stored_shorter() || column.status & column_status::UNIQUIFIER != 0;
    let is_pointer = matches!(
        column.info.xtype,
        format::types::xtype::TEXT | format::types::xtype::NTEXT | format::types::xtype::IMAGE
    );
    column.leaf_offset < 0 && fixed_length(column.info).is_some() && !is_special && !is_pointer
}
