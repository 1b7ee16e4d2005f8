//! Rows of base tables as typed values, and the boot page.

use format::compressed::Expansion;
use format::{AllocUnitId, Lsn, PageId};

use crate::layout::RowLayout;
/// The contents of the boot page.
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
    /// LSN where the redo phase of recovery starts.
    pub redo_lsn: Lsn,
    /// LSN up to which log was backed up last; zero if it never was.
    pub log_backup_lsn: Lsn,
    /// Where the chain of log backups starts; zero without a full backup to start it.
    pub log_backup_chain_origin: Lsn,
    /// Default collation id.
    pub collation: u32,
    /// GUID of the database's family, which all copies share, whatever their names; zeros if it has none.
    pub family_guid: [u8; 16],
    /// Creation or attach date, if set.
    pub created: Option<String>,
    /// Last modification of the boot page, if set.
    pub modified: Option<String>,
    /// Last DBCC CHECKDB without errors, if known.
    pub last_known_good: Option<String>,
    /// When system tables were last updated by hand; `None` if never, or if the field holds no valid time.
    pub catalog_updated: Option<String>,
    /// Whether data purity is checked by default.
    pub data_purity: bool,
    /// Build of the engine that wrote it last: major, minor, build.
    pub engine_build: (u8, u8, u16),
    /// First page of sysallocunits.
    pub first_sysallocunits: PageId,
}

impl Boot {
    /// Whether the files contain all changes in the log. Always false for tempdb: each start of the server recreates it
    /// in any case, and much of its content is in no catalog.
    pub fn clean_shutdown(&self) -> bool {
        self.status & format::boot::status::CLEAN_SHUTDOWN != 0 && !self.is_tempdb()
    }

    /// Whether log is discarded at checkpoints instead of being kept for log backups.
    pub fn is_simple_recovery(&self) -> bool {
        self.status & format::boot::status::SIMPLE != 0
    }

    /// Whether the database is tempdb, whose content is lost when the server stops.
    pub fn is_tempdb(&self) -> bool {
        const TEMPDB: u16 = 2;
        self.database_id == TEMPDB && self.name == "tempdb"
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
    /// An undocumented type number.
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
    /// What the unit stores.
    pub kind: UnitKind,
    /// The rowset it belongs to, according to the row.
    pub owner_id: u64,
    /// Index into [`crate::Database::rowsets`], if that rowset exists.
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
    /// Dropped, its pages waiting for deallocation: type 0, owner 0 (sys.allocation_units).
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
    /// Largest null bit; 0 if unknown.
    pub max_null_bit: u16,
    /// Fixed length of leaf records; 0 if unknown.
    pub min_leaf: u16,
    /// Fixed length of non-leaf records; 0 if unknown or none.
    pub min_node: u16,
    /// Its allocation units, indexes into [`crate::Database::units`].
    pub units: Vec<usize>,
    /// Places of its columns; empty if unknown. For a compressed rowset with [`Self::expansion`], these are places in
    /// expanded rows.
    pub layout: RowLayout,
    /// How its rows are expanded; `None` if they are not compressed, or if the catalog does not say how.
    pub expansion: Option<Expansion>,
}

impl Rowset {
    /// Whether rows are compressed individually: CD records.
    pub fn is_row_compressed(&self) -> bool {
        matches!(self.compression, 1 | 2)
    }

    /// Whether its pages may also have anchors and dictionaries.
    pub fn is_page_compressed(&self) -> bool {
        self.compression == 2
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
    /// Parent object; 0 if it has none.
    pub parent_id: i32,
    /// intprop: for a table, the highest column id ever used; for a default, its column.
    pub number: i32,
}

/// sysidxstats.type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexType {
    /// A heap, not an index.
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
    /// An undocumented number.
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

    /// Name for messages and reports.
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

    /// Whether rows are in columnstore segments.
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
    /// ID of its type in sysscalartypes; see [`format::types::user_type`] for the built-in ones.
    pub user_type: i32,
    /// Status bits (docs/format/catalog.md#syscolpars).
    pub status: u32,
}

impl TableColumn {
    /// Whether it is declared NOT NULL. sysrscols has a bit for this too, but also sets it for some columns that hold
    /// NULLs in every sound file (docs/format/catalog.md#sysrscols).
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

/// The object that the text of an expression defines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ExpressionKind {
    /// A computed column; sub id is the column id.
    ComputedColumn,
    /// The filter of an index; sub id is the index id.
    Filter,
    /// The condition of a CHECK constraint, which is the object; sub id is 0.
    Check,
}

/// T-SQL text stored in the catalog.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What the text defines.
    pub kind: ExpressionKind,
    /// Object.
    pub object_id: i32,
    /// Column or index.
    pub sub_id: i32,
    /// The text; `None` if it is stored off the row.
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
