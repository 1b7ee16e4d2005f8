//! The rows of base tables as typed values, and the boot page.

use format::compressed::Expansion;
use format::{AllocUnitId, Lsn, PageId};

use crate::layout::RowLayout;
/// The contents of the boot page.
#[derive(Clone, Debug, Default)]
pub struct Boot {
    /// The database name.
    pub name: String,
    /// The internal version number of the database's format.
    pub version: u16,
    /// The internal version number that the database had when it was created.
    pub create_version: u16,
    /// The status bits, see [`format::boot::status`].
    pub status: u32,
    /// The database ID on the server that wrote the boot page.
    pub database_id: u16,
    /// The compatibility level.
    pub compatibility_level: u16,
    /// The LSN of the last checkpoint.
    pub checkpoint_lsn: Lsn,
    /// The LSN at which the redo phase of recovery starts.
    pub redo_lsn: Lsn,
    /// The LSN up to which the log was last backed up; zero if the log was never backed up.
    pub log_backup_lsn: Lsn,
    /// The LSN at which the chain of log backups starts; zero if no full backup has started a chain.
    pub log_backup_chain_origin: Lsn,
    /// The ID of the default collation.
    pub collation: u32,
    /// The family GUID, which all copies of the database share, whatever their names; zeros if the database has none.
    pub family_guid: [u8; 16],
    /// When the database was created or attached, if the field is set.
    pub created: Option<String>,
    /// When the boot page was last modified, if the field is set.
    pub modified: Option<String>,
    /// When DBCC CHECKDB last found no errors, if known.
    pub last_known_good: Option<String>,
    /// When a user last updated system tables directly; `None` if no user ever did, or if the field holds no valid
    /// time.
    pub catalog_updated: Option<String>,
    /// Whether DBCC CHECKDB checks data purity by default.
    pub data_purity: bool,
    /// The build of the engine that last wrote the database: the major version, the minor version and the build number.
    pub engine_build: (u8, u8, u16),
    /// The first page of sysallocunits.
    pub first_sysallocunits: PageId,
}

impl Boot {
    /// Whether the files contain all changes in the log. Always false for tempdb, because each start of the server
    /// recreates tempdb, and no catalog describes much of its content.
    pub fn clean_shutdown(&self) -> bool {
        self.status & format::boot::status::CLEAN_SHUTDOWN != 0 && !self.is_tempdb()
    }

    /// Whether the database uses the simple recovery model, in which checkpoints discard log that log backups would
    /// need.
    pub fn is_simple_recovery(&self) -> bool {
        self.status & format::boot::status::SIMPLE != 0
    }

    /// Whether the database is tempdb. Its content is lost when the server stops.
    pub fn is_tempdb(&self) -> bool {
        const TEMPDB: u16 = 2;
        self.database_id == TEMPDB && self.name == "tempdb"
    }
}

/// What an allocation unit stores (sysallocunits.type).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnitKind {
    /// Rows, including index rows.
    InRow,
    /// LOB values.
    Lob,
    /// Values of variable-length columns that were pushed off the row.
    Overflow,
    /// An undocumented type number.
    Other(u8),
}

impl UnitKind {
    /// The name of the kind in messages.
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
    /// The allocation unit ID in the form in which page headers store it.
    pub id: AllocUnitId,
    /// What the unit stores.
    pub kind: UnitKind,
    /// The ID of the rowset to which the unit belongs, according to this row of sysallocunits.
    pub owner_id: u64,
    /// The position of the unit's rowset in [`crate::Database::rowsets`], if the rowset exists.
    pub rowset: Option<usize>,
    /// The filegroup ID.
    pub filegroup: u16,
    /// The first page of the unit. This field is not reliable.
    pub first_page: PageId,
    /// The root page of the B-tree, or the first page of a heap.
    pub root: PageId,
    /// The first IAM page.
    pub first_iam: PageId,
    /// The number of pages in use, according to the engine's own count.
    pub used_pages: i64,
    /// The number of data pages, according to the engine's own count.
    pub data_pages: i64,
    /// The number of reserved pages, according to the engine's own count.
    pub reserved_pages: i64,
}

impl AllocUnit {
    /// Whether the unit is dropped and its pages wait for deallocation. Such a unit has type 0 or owner 0
    /// (sys.allocation_units).
    pub fn is_dropped(&self) -> bool {
        self.kind == UnitKind::Other(0) || self.owner_id == 0
    }
}

/// A row of sysrowsets: a partition of a heap or index.
#[derive(Clone, Debug, Default)]
pub struct Rowset {
    /// The rowset ID, which messages call "partition ID".
    pub id: u64,
    /// The object ID.
    pub object_id: i32,
    /// The index ID. It is 0 for a heap, and 1 for a clustered index.
    pub index_id: i32,
    /// The partition number. The first partition has number 1.
    pub partition: i32,
    /// The status bits.
    pub status: u32,
    /// The kind of the rowset's owner. It is 1 for ordinary rowsets.
    pub owner_type: u8,
    /// The number of rows, according to the engine's own count.
    pub rows: i64,
    /// The compression. 0 means none, 1 row, 2 page, 3 columnstore and 4 columnstore archive.
    pub compression: u8,
    /// The highest number of a null bit in the rowset's records; 0 if unknown.
    pub max_null_bit: u16,
    /// The length of the fixed part of leaf records; 0 if unknown.
    pub min_leaf: u16,
    /// The length of the fixed part of non-leaf records; 0 if the length is unknown or the rowset has no non-leaf
    /// records.
    pub min_node: u16,
    /// The positions of the rowset's allocation units in [`crate::Database::units`].
    pub units: Vec<usize>,
    /// The positions of the columns in the rows; empty if unknown. For a compressed rowset with [`Self::expansion`],
    /// these are the positions in expanded rows.
    pub layout: RowLayout,
    /// How the rows are expanded; `None` if the rows are not compressed, or if the catalog does not describe their
    /// compression.
    pub expansion: Option<Expansion>,
}

impl Rowset {
    /// Whether the rows are compressed one by one, each as a CD record.
    pub fn is_row_compressed(&self) -> bool {
        matches!(self.compression, 1 | 2)
    }

    /// Whether pages of the rowset may also contain an anchor record and a dictionary (PAGE compression).
    pub fn is_page_compressed(&self) -> bool {
        self.compression == 2
    }

    /// Whether no two index rows have the same key.
    pub fn is_unique(&self) -> bool {
        self.status & 0x4 != 0
    }
}

/// A row of sysschobjs.
#[derive(Clone, Debug)]
pub struct Object {
    /// The object ID.
    pub id: i32,
    /// The name of the object.
    pub name: String,
    /// The schema ID.
    pub schema_id: i32,
    /// The type code without padding: "U", "S", "V", "IT" ...
    pub type_code: String,
    /// The object ID of the parent object; 0 if there is none.
    pub parent_id: i32,
    /// The value of the column intprop. For a table, it is the highest column ID ever used. For a default, it is the ID
    /// of the column to which the default belongs.
    pub number: i32,
}

/// The type of a heap or index (sysidxstats.type).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexType {
    /// A heap, which is not an index.
    Heap,
    /// A clustered index.
    Clustered,
    /// A nonclustered index.
    Nonclustered,
    /// An XML index. An internal table contains its rows.
    Xml,
    /// A spatial index. An internal table contains its rows.
    Spatial,
    /// A clustered columnstore index.
    ClusteredColumnstore,
    /// A nonclustered columnstore index.
    NonclusteredColumnstore,
    /// A hash index of a memory-optimized table.
    Hash,
    /// An undocumented type number.
    Other(u8),
}

impl IndexType {
    /// Converts a type number (sysidxstats.type).
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

    /// The name of the type for messages and reports.
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

    /// Whether the index stores its rows in columnstore segments.
    pub fn is_columnstore(self) -> bool {
        matches!(self, Self::ClusteredColumnstore | Self::NonclusteredColumnstore)
    }
}

/// A row of sysidxstats that describes a heap or an index. Rows that describe statistics are left out.
#[derive(Clone, Debug)]
pub struct Index {
    /// The object ID.
    pub object_id: i32,
    /// The index ID.
    pub index_id: i32,
    /// The name of the index; empty for a heap.
    pub name: String,
    /// The type of the heap or index.
    pub index_type: IndexType,
    /// The status bits (docs/format/catalog.md#sysidxstats).
    pub status: u32,
}

impl Index {
    /// Whether the index is UNIQUE.
    pub fn is_unique(&self) -> bool {
        self.status & 0x8 != 0
    }

    /// Whether the index is disabled. The engine does not maintain the rows of a disabled index.
    pub fn is_disabled(&self) -> bool {
        self.status & 0x80 != 0
    }

    /// Whether the index belongs to a PRIMARY KEY constraint.
    pub fn is_primary_key(&self) -> bool {
        self.status & 0x20 != 0
    }

    /// Whether the index has a filter.
    pub fn is_filtered(&self) -> bool {
        self.status & 0x20000 != 0
    }
}

/// A row of syscolpars that describes a column.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// The column ID.
    pub id: u32,
    /// The name of the column.
    pub name: String,
    /// The ID of the column's type in sysscalartypes. For the built-in types, see [`format::types::user_type`].
    pub user_type: i32,
    /// The status bits (docs/format/catalog.md#syscolpars).
    pub status: u32,
}

impl TableColumn {
    /// Whether the column is declared NOT NULL. sysrscols also has a bit for NOT NULL. That bit is not used, because in
    /// every sound file it is set for some columns that contain NULLs (docs/format/catalog.md#sysrscols).
    pub fn is_not_null(&self) -> bool {
        self.status & 0x1 != 0
    }

    /// Whether the column is computed.
    pub fn is_computed(&self) -> bool {
        self.status & 0x10 != 0
    }

    /// Whether the column is sparse.
    pub fn is_sparse(&self) -> bool {
        self.status & 0x0100_0000 != 0
    }
}

/// What the text of an expression defines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ExpressionKind {
    /// A computed column. The sub ID is the column ID.
    ComputedColumn,
    /// The filter of an index. The sub ID is the index ID.
    Filter,
    /// The condition of a CHECK constraint. The object is the constraint, and the sub ID is 0.
    Check,
}

/// T-SQL text stored in the catalog.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What the text defines.
    pub kind: ExpressionKind,
    /// The ID of the object to which the expression belongs.
    pub object_id: i32,
    /// The column ID or the index ID, depending on the kind.
    pub sub_id: i32,
    /// The text; `None` if it is stored off the row.
    pub text: Option<String>,
}

/// A filegroup.
#[derive(Clone, Debug)]
pub struct Filegroup {
    /// The filegroup ID.
    pub id: u16,
    /// The name of the filegroup.
    pub name: String,
}

/// A row of sysprufiles, which describes a file.
#[derive(Clone, Debug)]
pub struct FileRow {
    /// The file ID.
    pub file_id: u16,
    /// The filegroup ID; 0 for log files.
    pub filegroup: u16,
    /// The file type: 0 data, 1 log, 2 FILESTREAM or memory-optimized container.
    pub file_type: u8,
    /// The state of the file: 0 is online.
    pub state: u8,
    /// The logical name.
    pub logical_name: String,
    /// The path of the file on the server.
    pub physical_name: String,
}
