//! Options: which checks a run makes, and which resources it may use.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use catalog::Database;
use format::Lsn;
use sums::HashKey;
use sums::hash::FactHash;

use crate::log_audit::LogAudit;
use crate::registry::limits::{self, Limit};

/// The scope of a run: which objects are checked. Each scope corresponds to a DBCC command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// CHECKDB.
    #[default]
    Database,
    /// CHECKTABLE: the objects with these IDs.
    Tables(Vec<i32>),
    /// CHECKFILEGROUP: the objects in this filegroup.
    Filegroup(u16),
    /// CHECKALLOC: only the allocation of pages and extents.
    Allocation,
    /// CHECKCATALOG: only the consistency of the catalog.
    Catalog,
}

impl Scope {
    /// Whether the run reads pages of tables and indexes.
    pub fn reads_pages(&self) -> bool {
        !matches!(self, Self::Allocation | Self::Catalog)
    }

    /// Whether the run checks the consistency of the catalog.
    pub fn checks_catalog(&self) -> bool {
        matches!(self, Self::Database | Self::Catalog)
    }

    /// Returns whether the run needs the files of this filegroup. Each scope needs the filegroup of its objects, the
    /// primary filegroup with the catalog, and files whose filegroup is unknown.
    pub fn needs(&self, filegroup: u16) -> bool {
        const PRIMARY: u16 = 1;
        match self {
            Self::Filegroup(own) => [0, PRIMARY, *own].contains(&filegroup),
            _ => true,
        }
    }

    /// The DBCC command's name.
    pub fn command(&self) -> &'static str {
        match self {
            Self::Database => "CHECKDB",
            Self::Tables(_) => "CHECKTABLE",
            Self::Filegroup(_) => "CHECKFILEGROUP",
            Self::Allocation => "CHECKALLOC",
            Self::Catalog => "CHECKCATALOG",
        }
    }
}

/// Which threads read the pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Readers {
    /// Each thread reads the pages that it checks, and announces the next pages to the operating system.
    #[default]
    Own,
    /// This many dedicated threads read the pages, in page order.
    Count(u16),
    /// One reading thread per file, as with trace flag 2549. Useful for files on separate disks.
    PerFile,
}

/// Options of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Which objects are checked.
    pub scope: Scope,
    /// Check only pages, record headers and allocation.
    pub physical_only: bool,
    /// Omit the logical checks of nonclustered indexes of user tables.
    pub no_index: bool,
    /// Make the checks that CHECKDB makes only WITH EXTENDED_LOGICAL_CHECKS: compare indexed views, XML indexes and
    /// spatial indexes with the data that they are derived from.
    pub extended_logical_checks: bool,
    /// Check that values are in the domains of their types. `None` has the same effect as true. If `physical_only` is
    /// set, this check is never made.
    pub data_purity: Option<bool>,
    /// Also check CHECK and FOREIGN KEY constraints.
    pub constraints: bool,
    /// With `constraints`: also check constraints that are disabled or not trusted, like CHECKCONSTRAINTS WITH
    /// ALL_CONSTRAINTS.
    pub all_constraints: bool,
    /// Also compare the values in identity columns with the current identity value in the catalog.
    pub identities: bool,
    /// The maximum number of threads; 0 for one thread per processor.
    pub max_threads: usize,
    /// Which threads read the pages.
    pub readers: Readers,
    /// The number of passes over the files; 0 counts as 1. The tables are divided among the passes. Each pass reads the
    /// pages of only some of the tables, so that facts are kept for fewer tables at a time. A table and its indexes are
    /// checked in the same pass.
    pub batches: u16,
    /// Memory that the run may use, in bytes; `None` for [`DEFAULT_MEMORY_BYTES`] plus two bytes per page, but no more than
    /// one gibibyte for all pages. The run uses at least `check::minimum_memory_bytes`. The amount of memory never changes
    /// the findings.
    pub memory_bytes: Option<u64>,
    /// The memory for allocation maps, in bytes. If the maps are larger, most of them are in a temporary file. `None` for
    /// the memory that the grant leaves for them.
    pub most_map_bytes: Option<u64>,
    /// The number of pages of the largest range, if the database is swept in ranges. The maps of only one range are
    /// then in memory at a time. `None` if the whole database is swept.
    pub mapped_pages: Option<u64>,
    /// Folder for facts that do not fit into memory; `None` for the operating system's folder for temporary files.
    pub temp_dir: Option<PathBuf>,
    /// Seed of the key for hashing facts. With `None`, every run uses a new key. So a damaged file cannot be crafted so
    /// that its sums agree. A constant seed is for tests that must be repeatable.
    pub hash_seed: Option<u64>,
    /// The key for hashing facts, if processes exchange sums. Takes precedence over `hash_seed`.
    pub hash_key: Option<HashKey>,
    /// How long a page that contradicts itself must stay the same before it is a finding, if its file changes during the
    /// run: a page that is being written is whole again soon. `None` for two seconds.
    pub settle_page: Option<Duration>,
    /// Limits that the caller accepts. They are still reported, but marked as allowed. They do not change what is
    /// checked.
    pub allowed: Vec<&'static Limit>,
    /// The result of recovery from a log before this run; `None` if the caller did not look for a log.
    pub recovery: Option<RecoverySummary>,
    /// The result of comparing the pages with the log before this run; `None` if they were not compared.
    pub log_audit: Option<Arc<LogAudit>>,
    /// Build a map of the files from which a picture can be drawn: [`crate::Report::page_map`].
    pub page_map: bool,
    /// Check the rows one by one, even if all rows of a page have the same layout and could be checked together. For
    /// tests that compare both methods.
    pub row_by_row: bool,
}

/// The outcome of recovery from a database's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryState {
    /// The files already contain all changes in the log.
    NotNeeded,
    /// The pages are in the state that recovery would produce.
    Done,
    /// Most pages are in the state that recovery would produce; the other pages are listed as not verified.
    Partial,
    /// The log belongs to another database or to another point in time, or it cannot be used.
    Refused,
    /// The caller asked to ignore the log.
    Off,
}

impl RecoveryState {
    /// The name of the outcome in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotNeeded => "not-needed",
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Refused => "refused",
            Self::Off => "off",
        }
    }
}

/// The result of recovery from a log before a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoverySummary {
    /// The outcome.
    pub state: RecoveryState,
    /// Why recovery was not performed; empty if recovery was performed.
    pub reason: String,
    /// LSN of the first record that was redone, and LSN of the last record.
    pub range: Option<(Lsn, Lsn)>,
    /// Bytes of log in the range of LSNs.
    pub log_bytes: u64,
    /// Log records in the range of LSNs.
    pub records: u64,
    /// Pages whose recovered content differs from the files.
    pub pages: u64,
    /// Transactions that were rolled back.
    pub transactions_undone: u64,
    /// Distributed transactions whose outcome another server decides.
    pub in_doubt: u64,
    /// Changes that could not be recovered.
    pub doubts: Vec<RecoveryDoubt>,
}

/// The kind of changes that could not be recovered, with the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecoveryDoubtKind {
    /// Nothing was recovered: the database was not shut down cleanly and its log was not given. The text describes the
    /// situation.
    NotGiven(String),
    /// Nothing was recovered: the log is damaged, incomplete or of another point in time, for this reason. A server cannot
    /// use this log either.
    Log(String),
    /// Nothing was recovered: this program cannot use the log, for this reason. A server may be able to use it.
    Unsupported(String),
    /// Pages could not be recovered, for this reason.
    Pages(String),
    /// The outcome of a distributed transaction is decided by another server.
    InDoubt,
    /// A transaction could not be rolled back completely.
    Transaction,
    /// The log and the data files may not belong together, for this reason.
    Contradicted(String),
    /// Complete log blocks exist after the place at which the log seems to end.
    LogEnd,
}

impl RecoveryDoubtKind {
    /// The limit that describes this doubt.
    pub fn limit(&self) -> &'static Limit {
        match self {
            Self::NotGiven(_) => &limits::RECOVERY_NONE,
            Self::Log(_) | Self::Unsupported(_) => &limits::RECOVERY_LOG,
            Self::Pages(_) => &limits::RECOVERY_PAGES,
            Self::InDoubt => &limits::RECOVERY_IN_DOUBT,
            Self::Transaction => &limits::RECOVERY_TRANSACTIONS,
            Self::Contradicted(_) => &limits::RECOVERY_CONTRADICTED,
            Self::LogEnd => &limits::RECOVERY_LOG_END,
        }
    }
}

/// Changes that could not be recovered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveryDoubt {
    /// The kind of doubt.
    pub kind: RecoveryDoubtKind,
    /// The database, the pages, the transactions, or the place in the log.
    pub scope: String,
    /// Number of affected pages, transactions or other items.
    pub count: u64,
}

/// Memory that a run may use by default, in addition to two bytes per page.
pub const DEFAULT_MEMORY_BYTES: u64 = 128 << 20;

/// The number of processors, which the operating system is asked for only once.
static PROCESSORS: OnceLock<usize> = OnceLock::new();

impl Options {
    /// Returns whether the option NOINDEX is set and applies to this index. NOINDEX excludes the logical checks of
    /// nonclustered indexes of user tables.
    pub fn leaves_out(&self, database: &Database, object_id: i32, index_id: i32) -> bool {
        self.no_index && index_id > 1 && !database.is_system_table(object_id)
    }

    /// The number of threads that read and check pages.
    pub fn threads(&self) -> usize {
        match self.max_threads {
            0 => *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from)),
            threads => threads,
        }
    }

    /// The keyed hash function for facts.
    pub fn fact_hash(&self) -> FactHash {
        self.hash_key.as_ref().map_or_else(|| FactHash::new(self.hash_seed), FactHash::of_key)
    }

    /// Whether data purity is checked.
    pub fn checks_purity(&self) -> bool {
        self.data_purity.unwrap_or(true) && !self.physical_only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filegroup_needs_its_own_files_and_those_of_the_catalog() {
        let needed = |scope: Scope| [0, 1, 2, 3].map(|filegroup| scope.needs(filegroup));
        assert_eq!(needed(Scope::Filegroup(2)), [true, true, true, false]);
        assert_eq!(needed(Scope::Database), [true; 4]);
    }
}
