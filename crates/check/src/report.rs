//! The result of a run: findings, coverage, and what was not verified.

use std::path::PathBuf;

use crate::beyond::Beyond;
use crate::coverage::NotVerified;
use crate::finding::Names;
use crate::findings::{ErrorCounts, Findings};
use crate::options::Options;
use crate::page_map::PageMap;
use crate::registry::Repair;
use crate::registry::limits::Limit;

/// A fact about the input that explains the results or makes them incomplete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// Stable id: that of the resulting limit, if there is one.
    pub id: &'static str,
    /// One line of text.
    pub text: String,
}

/// Result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The database.
    pub database: DatabaseSummary,
    /// Facts about the input that the reader must know first.
    pub warnings: Vec<Warning>,
    /// The options of the run.
    pub options: Options,
    /// Objects and indexes in scope, by object id, index id, partition.
    pub rowsets: Vec<RowsetCounts>,
    /// Findings, in listing order.
    pub findings: Findings,
    /// Findings that something unknown may explain, in the same order; they are not proofs. Each names its limit and is
    /// counted among what was not verified.
    pub demoted: Findings,
    /// Results of the requested checks beyond CHECKDB.
    pub beyond: Beyond,
    /// Requested checks that could not be made.
    pub not_verified: Vec<NotVerified>,
    /// Facts worth knowing that are neither findings nor unverified items.
    pub notes: Vec<NotVerified>,
    /// Failed reads, one line for stderr each.
    pub read_errors: Vec<String>,
    /// Deviations from the request that change no result, one line for stderr each.
    pub notices: Vec<String>,
    /// Allocation totals by file, for CHECKALLOC's listing.
    pub file_totals: Vec<FileTotals>,
    /// Which pages were read and judged; empty unless the run covered the whole database.
    pub ranges: Vec<RangeRead>,
    /// The use of the extents of each file, if requested and if any allocation map could be read.
    pub page_map: Option<PageMap>,
    /// Service Broker's objects, in the order of CHECKDB's lines; empty when they are not in scope.
    pub service_broker: Vec<BrokerCount>,
    /// The cost of the run.
    pub statistics: Statistics,
}

/// A range of pages that a run went through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeRead {
    /// File id.
    pub file_id: u16,
    /// The first page.
    pub first: u32,
    /// The number of pages.
    pub pages: u32,
    /// The number of pages that are or may be in use.
    pub in_use: u32,
    /// Whether all pages in use were read.
    pub is_read: bool,
}

/// The number of Service Broker objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerCount {
    /// Number of the message that reports it.
    pub number: u16,
    /// The kind, as that message names it.
    pub name: &'static str,
    /// The number of objects.
    pub count: u64,
}

/// The checked database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseSummary {
    /// Name; from the file's name when the boot page cannot be read.
    pub name: String,
    /// Database id on the server that wrote the files; 0 when unknown.
    pub id: u16,
    /// Internal version; 0 when unknown.
    pub version: u16,
    /// Whether the files contain all changes of the log; `None` when unknown.
    pub clean_shutdown: Option<bool>,
    /// When system tables were last updated by hand, `2011-03-10 08:09:00.000`.
    pub catalog_updated: Option<String>,
    /// The data files.
    pub files: Vec<FileSummary>,
    /// The backup sets that the files come from.
    pub sets: Vec<source::backup::UsedSet>,
    /// The backup that the pages come from, if any.
    pub backup: Option<BackupSummary>,
}

/// The backup set whose state of the database was checked.
#[derive(Clone, Debug)]
pub struct BackupSummary {
    /// The kind of the set, as RESTORE HEADERONLY names it.
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

/// A rowset with the counts of the run, never those of the catalog.
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
    /// Whether the table is memory-optimized: its rows are not in the data files (5296).
    pub memory_optimized: bool,
    /// Whether some of its pages are in a data file that was not given: only those in the other files are counted.
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
    /// The kind of data in the unit.
    pub type_name: &'static str,
    /// First IAM page.
    pub first_iam: format::PageId,
    /// Root page.
    pub root: format::PageId,
    /// Data pages as counted in the catalog.
    pub data_pages: i64,
    /// Pages in use, IAM pages included.
    pub used_pages: u64,
    /// Dedicated extents.
    pub extents: u64,
    /// The same totals by file, without files in which the unit has no pages.
    pub files: Vec<UnitFileTotals>,
}

/// The totals of an allocation unit in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitFileTotals {
    /// File id.
    pub file_id: u16,
    /// Dedicated extents.
    pub extents: u64,
    /// Pages in use, IAM pages included.
    pub used_pages: u64,
    /// Pages in use in mixed extents.
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

/// The cost of a run.
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
    /// Values in these rows that were verified, NULLs included.
    pub column_values_checked: u64,
    /// Values in these rows that were not verified.
    pub column_values_not_verified: u64,
    /// Threads that checked pages.
    pub threads: usize,
    /// Nonclustered indexes that the run covers.
    pub indexes_in_scope: u64,
    /// Indexes whose rows were compared with those of their table.
    pub indexes_compared: u64,
    /// Rows of the compared indexes.
    pub index_rows_compared: u64,
    /// Wall time.
    pub seconds: f64,
    /// The cost by phase.
    pub phases: Vec<PhaseStatistics>,
    /// Totals ten times per second; less often for a long run.
    pub series: Vec<Sample>,
    /// Largest resident memory in bytes, if the system reports it.
    pub memory_peak: Option<u64>,
    /// Memory that the run was granted, in bytes.
    pub memory_granted: u64,
    /// Bytes of facts and findings that went to temporary files.
    pub spilled_bytes: u64,
    /// Counters of the system for the process during the run, if it reports them: page faults, switches, bytes from
    /// disk.
    pub counters: Vec<(&'static str, u64)>,
}

/// The cost of a phase. Waits are summed over the threads.
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
    /// Time in which threads had no work while the slowest worked: SQL Server's CXPACKET.
    pub idle_seconds: f64,
    /// Time that threads waited for locks, by name: "merge" for adding a thread's sums to the common ones, once per
    /// thread; "findings" for delivering findings.
    pub lock_waits: [(&'static str, f64); 2],
    /// Bytes of facts that went to temporary files.
    pub spilled_bytes: u64,
    /// Time that threads waited for writing and reading temporary files.
    pub spill_wait_seconds: f64,
    /// Processor time in user mode, if the system reports it; in hundredths of a second.
    pub cpu_user_seconds: Option<f64>,
    /// Processor time in the kernel.
    pub cpu_system_seconds: Option<f64>,
    /// Largest resident memory in bytes from the start of the run to the end of the phase, if the system reports it.
    pub memory_peak: Option<u64>,
}

/// Totals at one point in time of a run.
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
    /// The names that messages insert.
    pub fn names(&self) -> Names<'_> {
        Names { database: &self.database.name, database_id: self.database.id, command: self.options.scope.command() }
    }

    /// Error counts over all findings.
    pub fn counts(&self) -> ErrorCounts {
        self.findings.counts()
    }

    /// The minimum repair level: the highest over all findings; [`Repair::None`] when none can be repaired.
    pub fn repair(&self) -> Repair {
        self.findings.repair()
    }

    /// Whether every requested check was made.
    pub fn complete(&self) -> bool {
        self.not_verified.is_empty()
    }

    /// Whether a limit is among those that the caller accepts.
    pub fn is_allowed(&self, limit: &Limit) -> bool {
        self.options.allowed.contains(&limit)
    }

    /// Whether every requested check was made, except where an accepted limit applies.
    pub fn complete_as_allowed(&self) -> bool {
        self.not_verified.iter().all(|entry| self.is_allowed(entry.limit))
    }
}
