//! The content of the catalog: the objects, indexes, columns and files of a database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use format::AllocUnitId;
use source::PageSource;

use crate::chain::ChainFault;

mod columnstore;
mod constraints;
mod partitions;
mod rests_on;
mod tables;

pub use columnstore::{Blob, Columnstore, Dictionary, RowGroup, Segment};
pub use constraints::{Constraint, ConstraintKind, Identity, IdentityMark, decimal, integer};
pub use partitions::{Boundary, PartitionFunction, Partitioned};
pub use rests_on::{Compared, Difference, RestsOn};
pub use tables::{
    AllocUnit, Boot, Expression, ExpressionKind, FileRow, Filegroup, Index, IndexType, Object, Rowset, TableColumn,
    UnitKind,
};

/// A base table that could not be read to its end.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The object ID of the base table.
    pub object_id: i32,
    /// The name of the base table.
    pub table: &'static str,
    /// Where and why reading ended. `None` if the catalog has no description of the base table, so that reading could
    /// not start.
    pub fault: Option<ChainFault>,
    /// The number of slots that were skipped because they hold no valid record.
    pub bad_records: u32,
    /// The number of rows that the catalog counts but that were not found. It is 0 if the tree and the IAM chain prove
    /// that all rows were read. This proof is needed because a leaf chain that ends too early looks complete.
    pub missing_rows: u64,
}

/// The content of a database's catalog, as far as it could be read.
#[derive(Debug, Default)]
pub struct Database {
    /// The boot page; `None` if it is damaged.
    pub boot: Option<Boot>,
    /// Whether the database is encrypted (TDE). In this case, only the boot page was read, because all other pages
    /// contain ciphertext.
    pub is_encrypted: bool,
    /// The names of the schemas, by schema ID.
    pub schemas: BTreeMap<i32, String>,
    /// The objects, by object ID.
    pub objects: BTreeMap<i32, Object>,
    /// The IDs of all rows in sysschobjs. They include objects that do not belong to a schema.
    pub object_ids: BTreeSet<i32>,
    /// The heaps and indexes, by object ID and index ID.
    pub indexes: BTreeMap<(i32, i32), Index>,
    /// The columns of each object, ordered by column ID.
    pub columns: BTreeMap<i32, Vec<TableColumn>>,
    /// The columns of each index in order, with their column IDs in the table. The key is the object ID and the index
    /// ID.
    pub index_columns: BTreeMap<(i32, i32), Vec<IndexColumn>>,
    /// The texts of computed columns, filters and CHECK constraints, ordered by object, kind and sub ID.
    pub expressions: Vec<Expression>,
    /// CHECK and FOREIGN KEY constraints, ordered by object ID.
    pub constraints: Vec<Constraint>,
    /// Identity columns, ordered by table.
    pub identities: Vec<Identity>,
    /// Partition functions, by ID.
    pub partition_functions: BTreeMap<i32, PartitionFunction>,
    /// Partitioned heaps and indexes with a known partition function, by object ID and index ID.
    pub partitioned: BTreeMap<(i32, i32), Partitioned>,
    /// Rowsets: the partitions of heaps and indexes, ordered by ID.
    pub rowsets: Vec<Rowset>,
    /// The rowsets of each object. The list is built on first use.
    pub rowsets_by_object: RowsetsByObject,
    /// Allocation units, ordered by ID.
    pub units: Vec<AllocUnit>,
    /// Filegroups.
    pub filegroups: Vec<Filegroup>,
    /// The files, including log files.
    pub files: Vec<FileRow>,
    /// Segments, dictionaries and row groups of columnstore indexes.
    pub columnstore: Columnstore,
    /// Base tables that could not be read completely.
    pub gaps: Vec<Gap>,
    /// What the descriptions of tables rest on, by object ID. Empty if the catalog was read along its own pointers.
    pub rests_on: BTreeMap<i32, RestsOn>,
}

/// For each object, the positions of its rowsets in [`Database::rowsets`].
#[derive(Debug, Default)]
pub struct RowsetsByObject(OnceLock<Vec<u32>>);

/// A column of an index (sysiscols).
#[derive(Clone, Copy, Debug)]
pub struct IndexColumn {
    /// The position of the column in the index.
    pub position: u32,
    /// The column ID in the table.
    pub column_id: u32,
    /// Whether the column is sorted descending.
    pub descending: bool,
    /// Whether the column is an included column, which is not part of the key.
    pub included: bool,
}

impl Database {
    /// Whether every allocation unit is known. Otherwise, the owner of a page cannot be determined.
    pub fn units_are_complete(&self) -> bool {
        self.gap(7).is_none() && self.gap(5).is_none() && self.boot.is_some()
    }

    /// Whether the catalog describes all row layouts, and which key columns are descending. In SQL Server 2005,
    /// sysiscols is needed to find the descending columns.
    pub fn layouts_are_complete(&self) -> bool {
        let is_2005 = self.boot.as_ref().is_some_and(|boot| boot.version < 655);
        [3, 4, 13].iter().all(|&table| self.gap(table).is_none()) && !(is_2005 && self.gap(55).is_some())
    }

    /// The object IDs of the base tables that list indexes and the columns of their rows. These are sysrscols (in 2005,
    /// its predecessors), sysrowsets, sysallocunits, sysidxstats and sysiscols.
    pub const TABLES_OF_INDEXES: [i32; 7] = [3, 4, 5, 7, 13, 54, 55];

    /// Whether all indexes and their columns are known.
    pub fn indexes_are_complete(&self) -> bool {
        self.boot.is_some() && Self::TABLES_OF_INDEXES.iter().all(|&table| self.gap(table).is_none())
    }

    /// Whether the pages contain all changes in the log. This is so if the database was shut down cleanly, or if it
    /// comes from a backup with a log that makes no further changes. In other databases, a contradiction between pages
    /// may disappear after recovery. Pages that may be from different points in time are never recovered.
    pub fn is_recovered(&self, source: &dyn PageSource) -> bool {
        match source.in_flight() {
            Some(in_flight) => in_flight.is_empty(),
            None if !source.has_one_moment() => false,
            None => self.boot.as_ref().is_some_and(Boot::clean_shutdown),
        }
    }

    /// Whether the database has row versions of accelerated database recovery. This is so if its persistent version
    /// store has pages (docs/format/versions.md#accelerated-database-recovery).
    pub fn has_version_store(&self) -> bool {
        let is_store = |object_id: i32| {
            self.objects.get(&object_id).is_some_and(|object| object.name.starts_with("persistent_version_store"))
        };
        let has_pages = |unit: &AllocUnit| !unit.first_iam.is_none();
        let mut units = self.units.iter().filter(|unit| has_pages(unit));
        units.any(|unit| self.rowset_of(unit).is_some_and(|rowset| is_store(rowset.object_id)))
    }

    /// The gap in base table `object_id`; `None` if the table could be read completely.
    pub fn gap(&self, object_id: i32) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.object_id == object_id)
    }

    /// The rowset to which `unit` belongs.
    pub fn rowset_of(&self, unit: &AllocUnit) -> Option<&Rowset> {
        self.rowsets.get(unit.rowset?)
    }

    /// The position in [`Self::units`] of the allocation unit with ID `id`, which is the ID in page headers.
    pub fn unit_index(&self, id: AllocUnitId) -> Option<usize> {
        let of = |id| self.units.binary_search_by_key(&id, |unit| unit.id).ok();
        of(id).or_else(|| of(id.clustered_of_2000()?))
    }

    /// The rowsets of an object, ordered by ID. The list of rowsets must not change after the first call.
    pub fn rowsets_of(&self, object_id: i32) -> impl Iterator<Item = &Rowset> + Clone {
        let object = |at: &u32| self.rowsets.get(*at as usize).map_or(i32::MAX, |rowset| rowset.object_id);
        let places = self.rowsets_by_object.0.get_or_init(|| {
            let mut places: Vec<u32> = (0..self.rowsets.len() as u32).collect();
            places.sort_by_key(object);
            places
        });
        let from = places.partition_point(|at| object(at) < object_id);
        let of_object = places.get(from..).unwrap_or_default().iter().filter_map(|at| self.rowsets.get(*at as usize));
        of_object.take_while(move |rowset| rowset.object_id == object_id)
    }

    /// The partitions of a heap or clustered index, ordered by ID.
    pub fn table_rowsets(&self, object_id: i32) -> impl Iterator<Item = &Rowset> + Clone {
        self.rowsets_of(object_id).filter(|rowset| rowset.index_id <= 1)
    }

    /// The text that defines a computed column, filter or CHECK constraint.
    pub fn expression(&self, object_id: i32, kind: ExpressionKind, sub_id: i32) -> Option<&Expression> {
        let key = |expression: &Expression| (expression.object_id, expression.kind, expression.sub_id);
        let at = self.expressions.partition_point(|expression| key(expression) < (object_id, kind, sub_id));
        self.expressions.get(at).filter(|expression| key(expression) == (object_id, kind, sub_id))
    }

    /// Whether an object is a system base table.
    pub fn is_system_table(&self, object_id: i32) -> bool {
        self.objects.get(&object_id).is_some_and(|object| object.type_code == "S") || (1..100).contains(&object_id)
    }

    /// The memory-optimized tables. Their rows are stored in separate files. Such a table has a hash index, or a rowset
    /// that is marked as memory-optimized and has no pages in the data files
    /// (docs/format/other-features.md#memory-optimized-tables).
    pub fn memory_optimized_tables(&self) -> BTreeSet<i32> {
        const IN_MEMORY: u32 = 0x100;
        let has_hash = self.indexes.values().filter(|index| index.index_type == IndexType::Hash);
        let is_user_table = |id: &i32| self.objects.get(id).is_some_and(|object| object.type_code == "U");
        let unplaced = self.rowsets.iter().filter(|rowset| rowset.status & IN_MEMORY != 0 && rowset.units.is_empty());
        let unplaced = unplaced.map(|rowset| rowset.object_id).filter(is_user_table);
        has_hash.map(|index| index.object_id).chain(unplaced).collect()
    }

    /// The name of an object in messages. It consists of the schema and the name of the object. The schema dbo is left
    /// out.
    pub fn object_name(&self, object_id: i32) -> String {
        let Some(object) = self.objects.get(&object_id) else { return format!("object ID {object_id}") };
        match self.schema_name(object) {
            "dbo" => object.name.clone(),
            schema => format!("{schema}.{}", object.name),
        }
    }

    /// The name of an object's schema.
    pub fn schema_name(&self, object: &Object) -> &str {
        self.schemas.get(&object.schema_id).map_or("dbo", String::as_str)
    }
}
