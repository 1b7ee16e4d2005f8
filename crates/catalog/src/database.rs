//! What a database is made of, as its catalogue tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use format::compressed::Expansion;
use format::{AllocUnitId, Lsn, PageId};
use source::PageSource;

use crate::chain::ChainFault;
use crate::columnstore::Columnstore;
use crate::constraints::{Constraint, Identity};
use crate::layout::RowLayout;
use crate::partitions::{PartitionFunction, Partitioned};

/// What the boot page says.
#[derive(Clone, Debug, Default)]
pub struct Boot {
    /// Database name.
    pub name: String,
    /// Internal version.
    pub version: u16,
    /// Version that created it.
    pub create_version: u16,
    /// Status bits, see [`format::boot::status`].
    pub status: u32,
    /// Database id on the server that wrote it.
    pub database_id: u16,
    /// Compatibility level.
    pub compatibility_level: u16,
    /// LSN of the last checkpoint.
    pub checkpoint_lsn: Lsn,
    /// Default collation id.
    pub collation: u32,
    /// Creation or attach date, if set.
    pub created: Option<String>,
    /// Last modification of the boot page, if set.
    pub modified: Option<String>,
    /// Last DBCC CHECKDB without errors, if known.
    pub last_known_good: Option<String>,
    /// Data purity is checked by default.
    pub data_purity: bool,
    /// Build of the engine that wrote it last: major, minor, build.
    pub engine_build: (u8, u8, u16),
    /// First page of sysallocunits.
    pub first_sysallocunits: PageId,
}

impl Boot {
    /// Whether the log holds nothing that the files lack. Of tempdb, which every start of the server makes anew, nobody sees
    /// to that, and much of what it holds is in no catalogue.
    pub fn clean_shutdown(&self) -> bool {
        const TEMPDB: u16 = 2;
        let is_tempdb = self.database_id == TEMPDB && self.name == "tempdb";
        self.status & format::boot::status::CLEAN_SHUTDOWN != 0 && !is_tempdb
    }
}

/// What an allocation unit stores (sysallocunits.type).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnitKind {
    /// Rows.
    InRow,
    /// LOB values.
    Lob,
    /// Variable columns pushed off the row.
    Overflow,
    /// A type number nobody has described.
    Other(u8),
}

impl UnitKind {
    /// The name that messages print.
    pub fn message_name(self) -> &'static str {
        match self {
            Self::InRow => "In-row data",
            Self::Lob => "LOB data",
            Self::Overflow => "Row-overflow data",
            Self::Other(_) => "Unknown",
        }
    }
}

/// A row of sysallocunits.
#[derive(Clone, Debug)]
pub struct AllocUnit {
    /// Identity, as page headers name it.
    pub id: AllocUnitId,
    /// What it stores.
    pub kind: UnitKind,
    /// The rowset it belongs to, as the row says.
    pub owner_id: u64,
    /// Index into [`Database::rowsets`], if that rowset exists.
    pub rowset: Option<usize>,
    /// Filegroup.
    pub filegroup: u16,
    /// First page; not reliable.
    pub first_page: PageId,
    /// Root of the B-tree, or first page of a heap.
    pub root: PageId,
    /// First IAM page.
    pub first_iam: PageId,
    /// Pages in use, as kept by the engine.
    pub used_pages: i64,
    /// Data pages, as kept by the engine.
    pub data_pages: i64,
    /// Pages reserved, as kept by the engine.
    pub reserved_pages: i64,
}

impl AllocUnit {
    /// Dropped, its pages waiting to be given back: type 0, owner 0 (sys.allocation_units).
    pub fn is_dropped(&self) -> bool {
        self.kind == UnitKind::Other(0) || self.owner_id == 0
    }
}

/// A row of sysrowsets: a partition of a heap or index.
#[derive(Clone, Debug, Default)]
pub struct Rowset {
    /// Identity; "partition ID" in messages.
    pub id: u64,
    /// Object.
    pub object_id: i32,
    /// Index: 0 heap, 1 clustered.
    pub index_id: i32,
    /// Partition, from 1.
    pub partition: i32,
    /// Status bits.
    pub status: u32,
    /// Kind of owner: 1 for ordinary rowsets.
    pub owner_type: u8,
    /// Rows, as kept by the engine.
    pub rows: i64,
    /// 0 none, 1 row, 2 page, 3 columnstore, 4 columnstore archive.
    pub compression: u8,
    /// Largest null bit; 0 when not known.
    pub max_null_bit: u16,
    /// Fixed length of leaf records; 0 when not known.
    pub min_leaf: u16,
    /// Fixed length of non-leaf records; 0 when not known or none.
    pub min_node: u16,
    /// Its allocation units, indexes into [`Database::units`].
    pub units: Vec<usize>,
    /// Where its columns lie; empty when not known. Of a compressed rowset with [`Self::expansion`]: in expanded rows.
    pub layout: RowLayout,
    /// How its rows are made uncompressed ones; `None` when they are, or when the catalogue does not tell.
    pub expansion: Option<Expansion>,
}

impl Rowset {
    /// Whether rows are compressed one by one: CD records.
    pub fn is_row_compressed(&self) -> bool {
        matches!(self.compression, 1 | 2)
    }

    /// Whether every index row is unique by its key alone.
    pub fn is_unique(&self) -> bool {
        self.status & 0x4 != 0
    }
}

/// A row of sysschobjs.
#[derive(Clone, Debug)]
pub struct Object {
    /// Object id.
    pub id: i32,
    /// Name.
    pub name: String,
    /// Schema id.
    pub schema_id: i32,
    /// Type code without padding: "U", "S", "V", "IT" ...
    pub type_code: String,
    /// Parent object, 0 without.
    pub parent_id: i32,
    /// intprop: of a table the highest column id it ever had; of a default its column.
    pub number: i32,
}

/// sysidxstats.type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexType {
    /// No index.
    Heap,
    /// Clustered.
    Clustered,
    /// Nonclustered.
    Nonclustered,
    /// XML; its rows are in an internal table.
    Xml,
    /// Spatial; likewise.
    Spatial,
    /// Clustered columnstore.
    ClusteredColumnstore,
    /// Nonclustered columnstore.
    NonclusteredColumnstore,
    /// Hash index of a memory-optimized table.
    Hash,
    /// A number nobody has described.
    Other(u8),
}

impl IndexType {
    /// The type with this number.
    pub fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Heap,
            1 => Self::Clustered,
            2 => Self::Nonclustered,
            3 => Self::Xml,
            4 => Self::Spatial,
            5 => Self::ClusteredColumnstore,
            6 => Self::NonclusteredColumnstore,
            7 => Self::Hash,
            other => Self::Other(other),
        }
    }

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Clustered => "clustered",
            Self::Nonclustered => "nonclustered",
            Self::Xml => "XML",
            Self::Spatial => "spatial",
            Self::ClusteredColumnstore => "clustered columnstore",
            Self::NonclusteredColumnstore => "nonclustered columnstore",
            Self::Hash => "hash",
            Self::Other(_) => "unknown",
        }
    }

    /// Whether rows lie in columnstore segments.
    pub fn is_columnstore(self) -> bool {
        matches!(self, Self::ClusteredColumnstore | Self::NonclusteredColumnstore)
    }
}

/// A row of sysidxstats that is a heap or an index, not statistics.
#[derive(Clone, Debug)]
pub struct Index {
    /// Object.
    pub object_id: i32,
    /// Index id.
    pub index_id: i32,
    /// Name; empty for a heap.
    pub name: String,
    /// Type.
    pub index_type: IndexType,
    /// Status bits (docs/format/catalog.md#sysidxstats).
    pub status: u32,
}

impl Index {
    /// UNIQUE.
    pub fn is_unique(&self) -> bool {
        self.status & 0x8 != 0
    }

    /// Disabled: its rows are not maintained.
    pub fn is_disabled(&self) -> bool {
        self.status & 0x80 != 0
    }

    /// Primary key constraint.
    pub fn is_primary_key(&self) -> bool {
        self.status & 0x20 != 0
    }

    /// Filtered.
    pub fn is_filtered(&self) -> bool {
        self.status & 0x20000 != 0
    }
}

/// A row of syscolpars that is a column.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Column id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Its type in sysscalartypes; see [`format::types::user_type`] for those of the engine.
    pub user_type: i32,
    /// Status bits (docs/format/catalog.md#syscolpars).
    pub status: u32,
}

impl TableColumn {
    /// Declared NOT NULL: sysrscols says so of some columns that hold NULLs in every sound file
    /// (docs/format/catalog.md#sysrscols).
    pub fn is_not_null(&self) -> bool {
        self.status & 0x1 != 0
    }

    /// Computed column.
    pub fn is_computed(&self) -> bool {
        self.status & 0x10 != 0
    }

    /// Sparse column.
    pub fn is_sparse(&self) -> bool {
        self.status & 0x0100_0000 != 0
    }
}

/// What an expression text defines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ExpressionKind {
    /// A computed column; sub id is the column id.
    ComputedColumn,
    /// The filter of an index; sub id is the index id.
    Filter,
    /// The condition of a CHECK constraint, which is the object; sub id is 0.
    Check,
}

/// T-SQL text that the catalogue stores.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What it defines.
    pub kind: ExpressionKind,
    /// Object.
    pub object_id: i32,
    /// Column or index.
    pub sub_id: i32,
    /// The text; `None` when it is stored off the row.
    pub text: Option<String>,
}

/// A filegroup.
#[derive(Clone, Debug)]
pub struct Filegroup {
    /// Id.
    pub id: u16,
    /// Name.
    pub name: String,
}

/// A row of sysprufiles.
#[derive(Clone, Debug)]
pub struct FileRow {
    /// File id.
    pub file_id: u16,
    /// Filegroup; 0 for logs.
    pub filegroup: u16,
    /// 0 data, 1 log, 2 FILESTREAM or memory-optimized container.
    pub file_type: u8,
    /// 0 online.
    pub state: u8,
    /// Logical name.
    pub logical_name: String,
    /// Path on the server.
    pub physical_name: String,
}

/// A base table that could not be read to its end.
#[derive(Clone, Debug)]
pub struct Gap {
    /// Object id of the base table.
    pub object_id: i32,
    /// Its name.
    pub table: &'static str,
    /// Where and why reading ended; `None` when the table is missing from the catalogue itself.
    pub fault: Option<ChainFault>,
    /// Records skipped because they are not records.
    pub bad_records: u32,
    /// Rows that the catalogue counts and that were not found, where tree and IAM chain do not prove that all were read: a
    /// chain that ends too early looks whole.
    pub missing_rows: u64,
}

/// A database as its catalogue describes it, as far as that could be read.
#[derive(Debug, Default)]
pub struct Database {
    /// What the boot page says; `None` when it is damaged.
    pub boot: Option<Boot>,
    /// Encrypted (TDE): nothing but the boot page was read, as all else is ciphertext.
    pub is_encrypted: bool,
    /// Schemas by id.
    pub schemas: BTreeMap<i32, String>,
    /// Objects by id.
    pub objects: BTreeMap<i32, Object>,
    /// Ids of everything that sysschobjs has a row of, objects outside schemas included.
    pub object_ids: BTreeSet<i32>,
    /// Heaps and indexes by object and index id.
    pub indexes: BTreeMap<(i32, i32), Index>,
    /// Columns by object, in column id order.
    pub columns: BTreeMap<i32, Vec<TableColumn>>,
    /// For each index, the table column ids of its index columns in order.
    pub index_columns: BTreeMap<(i32, i32), Vec<IndexColumn>>,
    /// Computed columns, filters and CHECK constraints, by object, kind and sub id.
    pub expressions: Vec<Expression>,
    /// CHECK and FOREIGN KEY constraints, by object id.
    pub constraints: Vec<Constraint>,
    /// Identity columns, by table.
    pub identities: Vec<Identity>,
    /// Partition functions by id.
    pub partition_functions: BTreeMap<i32, PartitionFunction>,
    /// Partitioned heaps and indexes by object and index id, as far as their function is known.
    pub partitioned: BTreeMap<(i32, i32), Partitioned>,
    /// Partitions of heaps and indexes, by id.
    pub rowsets: Vec<Rowset>,
    /// Which rowsets an object has, made when it is first asked for.
    pub rowsets_by_object: RowsetsByObject,
    /// Allocation units, by id.
    pub units: Vec<AllocUnit>,
    /// Filegroups.
    pub filegroups: Vec<Filegroup>,
    /// Files, logs included.
    pub files: Vec<FileRow>,
    /// Segments, dictionaries and row groups.
    pub columnstore: Columnstore,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// The places of all rowsets in [`Database::rowsets`], by object.
#[derive(Debug, Default)]
pub struct RowsetsByObject(OnceLock<Vec<u32>>);

/// A column of an index (sysiscols).
#[derive(Clone, Copy, Debug)]
pub struct IndexColumn {
    /// Position in the index.
    pub position: u32,
    /// Column id of the table.
    pub column_id: u32,
    /// Sorted descending.
    pub descending: bool,
    /// Included, not part of the key.
    pub included: bool,
}

impl Database {
    /// Whether every allocation unit is known: without that nobody can say who owns a page.
    pub fn units_are_complete(&self) -> bool {
        self.gap(7).is_none() && self.gap(5).is_none() && self.boot.is_some()
    }

    /// Whether row layouts are known, and which columns of a key descend: 2005 has that in sysiscols.
    pub fn layouts_are_complete(&self) -> bool {
        let is_2005 = self.boot.as_ref().is_some_and(|boot| boot.version < 655);
        [3, 4, 13].iter().all(|&table| self.gap(table).is_none()) && !(is_2005 && self.gap(55).is_some())
    }

    /// The base tables that tell which indexes there are and what their rows consist of: sysrscols and what stood for it in
    /// 2005, sysrowsets, sysallocunits, sysidxstats, sysiscols.
    pub const TABLES_OF_INDEXES: [i32; 7] = [3, 4, 5, 7, 13, 54, 55];

    /// Whether all indexes and their columns are known.
    pub fn indexes_are_complete(&self) -> bool {
        self.boot.is_some() && Self::TABLES_OF_INDEXES.iter().all(|&table| self.gap(table).is_none())
    }

    /// Whether the pages hold all that the log does: shut down cleanly, or from a backup whose log changes nothing more.
    /// What does not fit in others, recovery may settle.
    pub fn is_recovered(&self, source: &dyn PageSource) -> bool {
        match source.backup().and_then(source::BackupPages::in_flight) {
            Some(in_flight) => in_flight.is_empty(),
            None => self.boot.as_ref().is_some_and(Boot::clean_shutdown),
        }
    }

    /// What is missing of base table `object_id`.
    pub fn gap(&self, object_id: i32) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.object_id == object_id)
    }

    /// The rowset that `unit` belongs to.
    pub fn rowset_of(&self, unit: &AllocUnit) -> Option<&Rowset> {
        self.rowsets.get(unit.rowset?)
    }

    /// The unit with this id: an index into [`Self::units`].
    pub fn unit_index(&self, id: AllocUnitId) -> Option<usize> {
        self.units.binary_search_by_key(&id, |unit| unit.id).ok()
    }

    /// The rowsets of an object, by id. The list of rowsets must not change any more.
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

    /// The partitions of a heap or clustered index, by id.
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

    /// Tables that are kept in memory, their rows in files of their own: they have a hash index, or a rowset that says so
    /// and has no place in the data files (docs/format/other-features.md#memory-optimized-tables).
    pub fn memory_optimized_tables(&self) -> BTreeSet<i32> {
        const IN_MEMORY: u32 = 0x100;
        let has_hash = self.indexes.values().filter(|index| index.index_type == IndexType::Hash);
        let is_user_table = |id: &i32| self.objects.get(id).is_some_and(|object| object.type_code == "U");
        let unplaced = self.rowsets.iter().filter(|rowset| rowset.status & IN_MEMORY != 0 && rowset.units.is_empty());
        let unplaced = unplaced.map(|rowset| rowset.object_id).filter(is_user_table);
        has_hash.map(|index| index.object_id).chain(unplaced).collect()
    }

    /// The name by which messages call an object: schema and name, without the schema for dbo.
    pub fn object_name(&self, object_id: i32) -> String {
        let Some(object) = self.objects.get(&object_id) else { return format!("object ID {object_id}") };
        match self.schema_name(object) {
            "dbo" => object.name.clone(),
            schema => format!("{schema}.{}", object.name),
        }
    }

    /// Schema of an object.
    pub fn schema_name(&self, object: &Object) -> &str {
        self.schemas.get(&object.schema_id).map_or("dbo", String::as_str)
    }
}
