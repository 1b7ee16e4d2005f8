//! The result of a run: findings, statistics, and what was not verified.

use std::path::PathBuf;

use crate::beyond::Beyond;
use crate::by_change::Change;
use crate::coverage::NotVerified;
use crate::finding::Names;
use crate::list::{ErrorCounts, Findings};
use crate::options::Options;
use crate::page_map::PageMap;
use crate::pattern::Pattern;
use crate::registry::Repair;
use crate::registry::limits::Limit;

/// A fact about the input that explains the results or makes them incomplete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// Stable ID. If a limit follows from the fact, the ID is that of the limit.
    pub id: &'static str,
    /// One line of text.
    pub text: String,
}

/// The ID of the warning that a data file has bytes after its last page.
pub const TAIL_BYTES: &str = "file.tail-bytes";

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The database.
    pub database: DatabaseSummary,
    /// Facts about the input that a reader of the report must know first.
    pub warnings: Vec<Warning>,
    /// The options of the run.
    pub options: Options,
    /// Objects and indexes in scope, sorted by object ID, index ID and partition.
    pub rowsets: Vec<RowsetCounts>,
    /// Findings, in listing order.
    pub findings: Findings,
    /// Findings that are not proofs, because something unknown may explain them. They are in listing order. Each
    /// finding names the limit that explains it, and is also counted in [`Self::not_verified`].
    pub demoted: Findings,
    /// Patterns in the damaged pages, by file and first page. A pattern only says what findings have in common.
    pub patterns: Vec<Pattern>,
    /// Results of the requested checks beyond CHECKDB.
    pub beyond: Beyond,
    /// Requested checks that could not be made.
    pub not_verified: Vec<NotVerified>,
    /// Facts worth knowing that are neither findings nor checks that could not be made.
    pub notes: Vec<NotVerified>,
    /// Failed reads, each as one line for stderr.
    pub read_errors: Vec<String>,
    /// Deviations from the request that do not change the results, each as one line for stderr.
    pub notices: Vec<String>,
    /// Allocation totals by file, for CHECKALLOC's listing.
    pub file_totals: Vec<FileTotals>,
    /// Ranges of pages. Each range tells whether all its pages in use were read. Empty unless the run covered the whole
    /// database.
    pub ranges: Vec<RangeRead>,
    /// The use of the extents of each file; `None` if not requested or if no allocation map could be read.
    pub page_map: Option<PageMap>,
    /// Counts of Service Broker objects, in the order of CHECKDB's lines; empty if these objects are not in scope.
    pub service_broker: Vec<BrokerCount>,
    /// Statistics about the cost of the run.
    pub statistics: Statistics,
    /// What was not read because it has not changed; `None` if the run had no ledger to use or to make.
    pub change: Option<Change>,
}

/// A range of pages, and whether the run has read all pages in this range that are in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeRead {
    /// File id.
    pub file_id: u16,
    /// The first page.
    pub first: u32,
    /// The number of pages.
    pub pages: u32,
    /// The number of pages that are in use or may be in use.
    pub in_use: u32,
    /// Whether all pages in use were read.
    pub is_read: bool,
}

/// The number of Service Broker objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerCount {
    /// The number of the message that reports the count.
    pub number: u16,
    /// The kind of objects, as the message names it.
    pub name: &'static str,
    /// The number of objects.
    pub count: u64,
}

/// The checked database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseSummary {
    /// Name of the database; taken from the file's name if the boot page cannot be read.
    pub name: String,
    /// Database ID on the server that wrote the files; 0 if unknown.
    pub id: u16,
    /// Internal version of the database; 0 if unknown.
    pub version: u16,
    /// Whether the files contain all changes in the log; `None` if unknown.
    pub clean_shutdown: Option<bool>,
    /// Date and time of the last manual update of system tables, in the form `2011-03-10 08:09:00.000`.
    pub catalog_updated: Option<String>,
    /// The data files.
    pub files: Vec<FileSummary>,
    /// The backup sets from which the files were read.
    pub sets: Vec<source::backup::UsedSet>,
    /// The backup from which the pages were read, if any.
    pub backup: Option<BackupSummary>,
}

/// The backup set that contains the checked state of the database.
#[derive(Clone, Debug)]
pub struct BackupSummary {
    /// The kind of the backup set, as RESTORE HEADERONLY names it.
    pub kind: &'static str,
    /// Position of the backup set in its file, from 1.
    pub set: u16,
    /// When the backup finished, in the local time of the server that made it.
    pub finished: Option<String>,
}

/// A data file of the checked database.
#[derive(Clone, Debug)]
pub struct FileSummary {
    /// Path of the file, as given or as found.
    pub path: PathBuf,
    /// File id.
    pub file_id: u16,
    /// Logical name.
    pub logical_name: String,
    /// Number of whole pages in the file.
    pub pages: u32,
}

/// A rowset, with counts. The run determined all counts itself; no count is taken from the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsetCounts {
    /// Object ID.
    pub object_id: i32,
    /// Schema name.
    pub schema: String,
    /// Object name.
    pub name: String,
    /// Type code of the object: "U", "S", "V", "IT" ...
    pub type_code: String,
    /// Index ID: 0 for a heap, 1 for a clustered index.
    pub index_id: i32,
    /// Index name; empty for a heap.
    pub index_name: String,
    /// Partition, from 1.
    pub partition: i32,
    /// Rowset id.
    pub partition_id: u64,
    /// Whether the table is memory-optimized: its rows are not in the data files (message 5296).
    pub memory_optimized: bool,
    /// Whether some pages of the rowset are in a data file that was not given. Then only the pages in the other files
    /// are counted.
    pub lacks_file: bool,
    /// Whether a window of time has left pages of the rowset for later windows. Its rows are not counted then.
    pub is_open: bool,
    /// Live rows.
    pub rows: u64,
    /// Ghost records.
    pub ghost_rows: u64,
    /// Forwarded rows, which are also counted as live rows.
    pub forwarded_rows: u64,
    /// Number of data pages.
    pub data_pages: u64,
    /// Number of index pages.
    pub index_pages: u64,
    /// Number of IAM pages of all units of the rowset.
    pub iam_pages: u64,
    /// Number of pages of the LOB unit.
    pub lob_pages: u64,
    /// Number of pages of the row-overflow unit.
    pub overflow_pages: u64,
    /// The allocation units of the rowset, for CHECKALLOC's listing.
    pub units: Vec<UnitTotals>,
}

impl RowsetCounts {
    /// The name of the object as messages print it. The schema is omitted if it is dbo.
    pub fn display_name(&self) -> String {
        if self.schema == "dbo" { self.name.clone() } else { format!("{}.{}", self.schema, self.name) }
    }

    /// The rowset without its counts, because not all of its pages were read.
    pub fn uncounted(self) -> Self {
        Self {
            rows: 0,
            ghost_rows: 0,
            forwarded_rows: 0,
            data_pages: 0,
            index_pages: 0,
            iam_pages: 0,
            lob_pages: 0,
            overflow_pages: 0,
            ..self
        }
    }

    /// The number of all pages.
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
    /// Number of data pages according to the catalog.
    pub data_pages: i64,
    /// Number of pages in use, including IAM pages.
    pub used_pages: u64,
    /// Number of dedicated extents.
    pub extents: u64,
    /// The totals for each file that contains pages of the unit.
    pub files: Vec<UnitFileTotals>,
}

/// The totals of an allocation unit in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitFileTotals {
    /// File id.
    pub file_id: u16,
    /// Number of dedicated extents.
    pub extents: u64,
    /// Number of pages in use, including IAM pages.
    pub used_pages: u64,
    /// Number of pages in use in mixed extents.
    pub mixed_pages: u64,
}

/// Allocation totals of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTotals {
    /// File id.
    pub file_id: u16,
    /// Number of allocated extents.
    pub extents: u64,
    /// Number of pages in use.
    pub used_pages: u64,
    /// Number of reserved pages.
    pub reserved_pages: u64,
    /// Number of mixed extents.
    pub mixed_extents: u64,
    /// Number of pages in use in mixed extents.
    pub mixed_pages: u64,
}

/// The cost of a run.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Number of pages read.
    pub pages_read: u64,
    /// Number of allocated pages.
    pub pages_allocated: u64,
    /// Number of live rows seen in heaps and clustered indexes.
    pub rows: u64,
    /// Number of rows, in tables and in indexes, whose columns were checked.
    pub rows_checked: u64,
    /// Number of values that were verified in the rows that [`Self::rows_checked`] counts, including NULLs.
    pub column_values_checked: u64,
    /// Number of values that were not verified in the rows that [`Self::rows_checked`] counts.
    pub column_values_not_verified: u64,
    /// Number of threads that checked pages.
    pub threads: usize,
    /// Number of nonclustered indexes in scope.
    pub indexes_in_scope: u64,
    /// Number of indexes whose rows were compared with those of their table.
    pub indexes_compared: u64,
    /// Number of rows of the compared indexes.
    pub index_rows_compared: u64,
    /// Elapsed time in seconds.
    pub seconds: f64,
    /// The cost by phase.
    pub phases: Vec<PhaseStatistics>,
    /// Samples of the totals, taken ten times per second, or less often in a long run.
    pub series: Vec<Sample>,
    /// Largest resident memory in bytes, if the operating system reports it.
    pub memory_peak: Option<u64>,
    /// Memory that the run was granted, in bytes.
    pub memory_granted: u64,
    /// Bytes of facts and findings that were written to temporary files.
    pub spilled_bytes: u64,
    /// The operating system's counters for this process, such as page faults, context switches, and bytes read from
    /// disk. Each value is the increase during the run. Empty if the operating system does not report such counters.
    pub counters: Vec<(&'static str, u64)>,
}

/// The cost of a phase. Waiting times are summed over all threads.
#[derive(Clone, Debug)]
pub struct PhaseStatistics {
    /// Name of the phase.
    pub name: &'static str,
    /// Elapsed time in seconds.
    pub seconds: f64,
    /// Number of bytes read.
    pub bytes: u64,
    /// Number of reads.
    pub reads: u64,
    /// Time in seconds that threads waited for reads.
    pub read_wait_seconds: f64,
    /// Time in seconds that threads had no work while the slowest thread was still working, like SQL Server's wait type
    /// CXPACKET.
    pub idle_seconds: f64,
    /// Time in seconds that threads waited for each lock, with the name of the lock. A thread takes the lock "merge"
    /// once, to add its sums to the common sums. A thread takes the lock "findings" whenever it delivers findings.
    pub lock_waits: [(&'static str, f64); 2],
    /// Bytes of facts that were written to temporary files.
    pub spilled_bytes: u64,
    /// Time in seconds that threads waited while writing and reading temporary files.
    pub spill_wait_seconds: f64,
    /// Processor time in user mode, in seconds, with a resolution of a hundredth of a second; `None` if the operating
    /// system does not report it.
    pub cpu_user_seconds: Option<f64>,
    /// Processor time in the kernel, in seconds; `None` if the operating system does not report it.
    pub cpu_system_seconds: Option<f64>,
    /// Largest resident memory in bytes from the start of the run to the end of the phase, if the operating system
    /// reports it.
    pub memory_peak: Option<u64>,
}

/// Totals at one point in time of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Seconds since the run began.
    pub seconds: f64,
    /// Number of bytes read.
    pub bytes: u64,
    /// Processor time in seconds, if the operating system reports it.
    pub cpu_seconds: Option<f64>,
    /// Resident memory in bytes, if the operating system reports it.
    pub memory_bytes: Option<u64>,
    /// Bytes of facts in temporary files.
    pub spilled_bytes: u64,
}

impl Report {
    /// The names and numbers of the database that are inserted into messages.
    pub fn names(&self) -> Names<'_> {
        Names { database: &self.database.name, database_id: self.database.id, command: self.options.scope.command() }
    }

    /// The error counts of all findings.
    pub fn counts(&self) -> ErrorCounts {
        self.findings.counts()
    }

    /// The minimum repair level: the highest level that any finding needs; [`Repair::None`] if no finding can be
    /// repaired.
    pub fn repair(&self) -> Repair {
        self.findings.repair()
    }

    /// Whether every requested check was made.
    pub fn complete(&self) -> bool {
        self.not_verified.is_empty()
    }

    /// Whether the options of the run accept this limit.
    pub fn is_allowed(&self, limit: &Limit) -> bool {
        self.options.allowed.contains(&limit)
    }

    /// Whether every requested check was made, apart from checks that an accepted limit prevented.
    pub fn complete_as_allowed(&self) -> bool {
        self.not_verified.iter().all(|entry| self.is_allowed(entry.limit))
    }
}

/// The resources that a run would need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimate {
    /// Bytes that would be read.
    pub read_bytes: u64,
    /// Memory that the run would use if nothing is damaged, in bytes: at most the memory grant, but at least the
    /// minimum.
    pub memory_bytes: u64,
    /// The smallest memory grant, in bytes, with which the run is not refused.
    pub minimum_memory_bytes: u64,
    /// Space for temporary files, in bytes.
    pub temp_bytes: u64,
}
