//! The result of a run: what was found, what was covered, what was not.

use std::path::PathBuf;

use crate::beyond::Beyond;
use crate::coverage::NotVerified;
use crate::finding::Names;
use crate::findings::{ErrorCounts, Findings};
use crate::options::Options;
use crate::page_map::PageMap;
use crate::registry::Repair;
use crate::registry::limits::Limit;

/// Something about the input that explains results, or keeps them from being complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// Stable id: that of the limit that it leads to, where there is one.
    pub id: &'static str,
    /// One line.
    pub text: String,
}

/// Result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The database.
    pub database: DatabaseSummary,
    /// What the reader must know about the input first.
    pub warnings: Vec<Warning>,
    /// What was asked for.
    pub options: Options,
    /// Objects and indexes in scope, by object id, index id, partition.
    pub rowsets: Vec<RowsetCounts>,
    /// What was found, in the order in which it is listed.
    pub findings: Findings,
    /// Findings that something unknown may explain, in the same order: no proofs. Each names its limit, and is counted among
    /// what was not verified.
    pub demoted: Findings,
    /// What was asked for beyond CHECKDB.
    pub beyond: Beyond,
    /// What was asked for and could not be verified.
    pub not_verified: Vec<NotVerified>,
    /// Worth knowing: neither findings nor anything that was left unverified.
    pub notes: Vec<NotVerified>,
    /// Reads that failed: each one line for stderr.
    pub read_errors: Vec<String>,
    /// What went otherwise than was asked for and changes no result: each one line for stderr.
    pub notices: Vec<String>,
    /// Allocation totals by file, for CHECKALLOC's listing.
    pub file_totals: Vec<FileTotals>,
    /// Which pages were read and judged; empty unless the whole database was.
    pub ranges: Vec<RangeRead>,
    /// What the extents of each file are used for, if it was asked for and there are maps that can be read.
    pub page_map: Option<PageMap>,
    /// Service Broker's objects, in the order of CHECKDB's lines; empty when they were not asked for.
    pub service_broker: Vec<BrokerCount>,
    /// What the run cost.
    pub statistics: Statistics,
}

/// A range of pages that a run went through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeRead {
    /// File id.
    pub file_id: u16,
    /// The first page.
    pub first: u32,
    /// How many there are.
    pub pages: u32,
    /// Those in use, or that may be.
    pub in_use: u32,
    /// Whether each of them was read.
    pub is_read: bool,
}

/// How many there are of a kind of Service Broker objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerCount {
    /// Number of the message that reports it.
    pub number: u16,
    /// The kind, as that message names it.
    pub name: &'static str,
    /// How many.
    pub count: u64,
}

/// The checked database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseSummary {
    /// Name; from the file's name when the boot page cannot be read.
    pub name: String,
    /// Database id on the server that wrote it; 0 when not known.
    pub id: u16,
    /// Internal version; 0 when not known.
    pub version: u16,
    /// Nothing in the log is missing from the files; `None` when not known.
    pub clean_shutdown: Option<bool>,
    /// When somebody last updated system tables by hand, `2011-03-10 08:09:00.000`.
    pub catalog_updated: Option<String>,
    /// The data files.
    pub files: Vec<FileSummary>,
    /// The backup sets that they come from.
    pub sets: Vec<source::backup::UsedSet>,
    /// The backup that the pages are from, if they are from one.
    pub backup: Option<BackupSummary>,
}

/// The backup set whose state of the database was checked.
#[derive(Clone, Debug)]
pub struct BackupSummary {
    /// What the set is, as RESTORE HEADERONLY names it.
    pub kind: &'static str,
    /// Position in its file, from 1.
    pub set: u16,
    /// When the backup finished, in the local time of the server.
    pub finished: Option<String>,
}

/// A data file of the checked database.
#[derive(Clone, Debug)]
pub struct FileSummary {
    /// Path as given or found.
    pub path: PathBuf,
    /// File id.
    pub file_id: u16,
    /// Logical name.
    pub logical_name: String,
    /// Whole pages in the file.
    pub pages: u32,
}

/// A rowset and what was seen of it; never what the catalog says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsetCounts {
    /// Object.
    pub object_id: i32,
    /// Schema name.
    pub schema: String,
    /// Object name.
    pub name: String,
    /// Type code, "U", "S", "V", "IT" ...
    pub type_code: String,
    /// Index: 0 heap, 1 clustered.
    pub index_id: i32,
    /// Index name; empty for a heap.
    pub index_name: String,
    /// Partition, from 1.
    pub partition: i32,
    /// Rowset id.
    pub partition_id: u64,
    /// Its table is memory-optimized: the data files do not have its rows (5296).
    pub memory_optimized: bool,
    /// Pages of it are in a data file that was not given: what is counted are those of the others.
    pub lacks_file: bool,
    /// Live rows.
    pub rows: u64,
    /// Ghost records.
    pub ghost_rows: u64,
    /// Forwarded rows among the live ones.
    pub forwarded_rows: u64,
    /// Data pages.
    pub data_pages: u64,
    /// Index pages.
    pub index_pages: u64,
    /// IAM pages of all its units.
    pub iam_pages: u64,
    /// Pages of its LOB unit.
    pub lob_pages: u64,
    /// Pages of its row-overflow unit.
    pub overflow_pages: u64,
    /// Its allocation units, for CHECKALLOC's listing.
    pub units: Vec<UnitTotals>,
}

impl RowsetCounts {
    /// Name by which messages call the object: without the schema for dbo.
    pub fn display_name(&self) -> String {
        if self.schema == "dbo" { self.name.clone() } else { format!("{}.{}", self.schema, self.name) }
    }

    /// All pages.
    pub fn pages(&self) -> u64 {
        self.data_pages + self.index_pages + self.iam_pages + self.lob_pages + self.overflow_pages
    }
}

/// An allocation unit in CHECKALLOC's listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTotals {
    /// Unit id.
    pub alloc_unit: format::AllocUnitId,
    /// What it stores.
    pub type_name: &'static str,
    /// First IAM page.
    pub first_iam: format::PageId,
    /// Root page.
    pub root: format::PageId,
    /// Data pages the catalog counts.
    pub data_pages: i64,
    /// Pages in use, IAM pages included.
    pub used_pages: u64,
    /// Dedicated extents.
    pub extents: u64,
    /// The same by file, without files in which it has no pages.
    pub files: Vec<UnitFileTotals>,
}

/// What an allocation unit has in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitFileTotals {
    /// File id.
    pub file_id: u16,
    /// Dedicated extents.
    pub extents: u64,
    /// Pages in use, IAM pages included.
    pub used_pages: u64,
    /// Those of them in mixed extents.
    pub mixed_pages: u64,
}

/// Allocation totals of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTotals {
    /// File id.
    pub file_id: u16,
    /// Allocated extents.
    pub extents: u64,
    /// Pages in use.
    pub used_pages: u64,
    /// Pages reserved.
    pub reserved_pages: u64,
    /// Mixed extents.
    pub mixed_extents: u64,
    /// Pages in use in mixed extents.
    pub mixed_pages: u64,
}

/// What a run cost.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Pages read.
    pub pages_read: u64,
    /// Allocated pages.
    pub pages_allocated: u64,
    /// Live rows seen in heaps and clustered indexes.
    pub rows: u64,
    /// Rows of heaps and indexes whose columns were checked.
    pub rows_checked: u64,
    /// Values in them, NULLs included, that were verified.
    pub column_values_checked: u64,
    /// Values in them that were not.
    pub column_values_not_verified: u64,
    /// Threads that checked pages.
    pub threads: usize,
    /// Nonclustered indexes that the run covers.
    pub indexes_in_scope: u64,
    /// Those whose rows were compared with the rows of their table.
    pub indexes_compared: u64,
    /// Their rows.
    pub index_rows_compared: u64,
    /// Wall time.
    pub seconds: f64,
    /// By phase.
    pub phases: Vec<PhaseStatistics>,
    /// Totals ten times per second; less often for a long run.
    pub series: Vec<Sample>,
    /// Largest resident memory in bytes, if the system reports it.
    pub memory_peak: Option<u64>,
    /// Memory that the run was granted, in bytes.
    pub memory_granted: u64,
    /// Bytes of facts and findings that went to temporary files.
    pub spilled_bytes: u64,
    /// What the system counted for the process during the run, if it reports it: page faults, switches, bytes from
    /// disk.
    pub counters: Vec<(&'static str, u64)>,
}

/// What a phase cost. Waits are summed over the threads.
#[derive(Clone, Debug)]
pub struct PhaseStatistics {
    /// Name.
    pub name: &'static str,
    /// Wall time.
    pub seconds: f64,
    /// Bytes read.
    pub bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Time that threads waited for reads.
    pub read_wait_seconds: f64,
    /// Time that threads had nothing to do while the slowest worked: SQL Server's CXPACKET.
    pub idle_seconds: f64,
    /// Time that threads waited for locks, by name: under "merge" each thread adds its sums to those of all, once; under
    /// "findings" it hands over what it found.
    pub lock_waits: [(&'static str, f64); 2],
    /// Bytes of facts that went to temporary files.
    pub spilled_bytes: u64,
    /// Time that threads waited for writing and reading them.
    pub spill_wait_seconds: f64,
    /// Processor time in the program, if the system reports it; in hundredths of a second.
    pub cpu_user_seconds: Option<f64>,
    /// Processor time in the system.
    pub cpu_system_seconds: Option<f64>,
    /// Largest resident memory in bytes from the start of the run to the end of the phase, if the system reports it.
    pub memory_peak: Option<u64>,
}

/// Totals at one moment of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Time since the run began.
    pub seconds: f64,
    /// Bytes read.
    pub bytes: u64,
    /// Processor time, if the system reports it.
    pub cpu_seconds: Option<f64>,
    /// Resident memory, if the system reports it.
    pub memory_bytes: Option<u64>,
    /// Bytes of facts in temporary files.
    pub spilled_bytes: u64,
}

impl Report {
    /// Names that messages insert.
    pub fn names(&self) -> Names<'_> {
        Names { database: &self.database.name, database_id: self.database.id, command: self.options.scope.command() }
    }

    /// Counts over all findings.
    pub fn counts(&self) -> ErrorCounts {
        self.findings.counts()
    }

    /// The minimum repair level: the highest over all findings; [`Repair::None`] when none can be repaired.
    pub fn repair(&self) -> Repair {
        self.findings.repair()
    }

    /// Whether everything asked for was verified.
    pub fn complete(&self) -> bool {
        self.not_verified.is_empty()
    }

    /// Whether a limit is among those that whoever asked for the run accepts.
    pub fn is_allowed(&self, limit: &Limit) -> bool {
        self.options.allowed.contains(&limit)
    }

    /// Whether everything asked for was verified but for what is allowed.
    pub fn complete_as_allowed(&self) -> bool {
        self.not_verified.iter().all(|entry| self.is_allowed(entry.limit))
    }
}
