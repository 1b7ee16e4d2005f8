//! Options: the checks that a run makes, and the resources that it may use.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;

use catalog::Database;
use format::Lsn;

use crate::hash::{FactHash, HashKey};
use crate::log_audit::LogAudit;
use crate::registry::limits::{self, Limit};

/// How many objects are checked: which DBCC command it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// CHECKDB.
    #[default]
    Database,
    /// CHECKTABLE: these objects.
    Tables(Vec<i32>),
    /// CHECKFILEGROUP: objects on this filegroup.
    Filegroup(u16),
    /// CHECKALLOC: allocation only.
    Allocation,
    /// CHECKCATALOG: the catalog against itself only.
    Catalog,
}

impl Scope {
    /// Whether pages of tables and indexes are looked at.
    pub fn reads_pages(&self) -> bool {
        !matches!(self, Self::Allocation | Self::Catalog)
    }

    /// Whether the catalog is checked against itself.
    pub fn checks_catalog(&self) -> bool {
        matches!(self, Self::Database | Self::Catalog)
    }

    /// Whether a filegroup must be given: besides its own, a scope needs the primary filegroup with the catalog, and
    /// files whose filegroup is unknown.
    pub(crate) fn needs(&self, filegroup: u16) -> bool {
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
    /// Each thread reads the pages it checks, and announces the next ones to the system.
    #[default]
    Own,
    /// This many threads that only read, in page order.
    Count(u16),
    /// One reading thread per file, as with trace flag 2549: for files on separate disks.
    PerFile,
}

/// Options of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The scope of the check.
    pub scope: Scope,
    /// Pages, record headers and allocation only.
    pub physical_only: bool,
    /// Leave out the logical checks of nonclustered indexes of user tables.
    pub no_index: bool,
    /// The checks that CHECKDB makes only WITH EXTENDED_LOGICAL_CHECKS: indexed views, XML and spatial indexes against
    /// the data that they are derived from.
    pub extended_logical_checks: bool,
    /// Check that values are in the domains of their types; on when `None`, never with `physical_only`.
    pub data_purity: Option<bool>,
    /// Also check CHECK and FOREIGN KEY constraints.
    pub constraints: bool,
    /// With `constraints`: also check those that are disabled or not trusted, as CHECKCONSTRAINTS WITH ALL_CONSTRAINTS.
    pub all_constraints: bool,
    /// Also check identity columns against their high-water mark.
    pub identities: bool,
    /// Threads; 0 for one per processor.
    pub max_threads: usize,
    /// Which threads read.
    pub readers: Readers,
    /// The number of passes over the files that check the tables; 0 counts as 1. Each pass reads the pages of its share
    /// of the tables, so that facts are kept for fewer tables at once. A table is never separated from its indexes.
    pub batches: u16,
    /// Memory that the run may use, in bytes; `None` for [`DEFAULT_MEMORY_BYTES`] and two bytes per page. The run uses
    /// at least [`crate::minimum_memory_bytes`]. The findings do not depend on it.
    pub memory_bytes: Option<u64>,
    /// If only ranges are swept, the number of pages of the largest range, whose maps are in memory at once; `None` for
    /// all.
    pub mapped_pages: Option<u64>,
    /// Folder for facts that do not fit into memory; `None` for the system's folder for temporary files.
    pub temp_dir: Option<PathBuf>,
    /// Seed of the key for hashing facts. With `None`, every run uses a new key, so that no file can be crafted whose
    /// facts cancel. A fixed seed is for tests that must repeat.
    pub hash_seed: Option<u64>,
    /// The key itself, if sums are passed between processes; takes precedence over the seed.
    pub hash_key: Option<HashKey>,
    /// Limits that the caller accepts. They are still reported, marked as allowed; the check does not depend on them.
    pub allowed: Vec<&'static Limit>,
    /// The result of a recovery from a log before this run; `None` if no log was looked for.
    pub recovery: Option<RecoverySummary>,
    /// The result of comparing the pages with the log before this run; `None` if they were not compared.
    pub log_audit: Option<Arc<LogAudit>>,
    /// Build a map of the files for a picture: [`crate::Report::page_map`].
    pub page_map: bool,
    /// Check every row by itself, even if all rows of a page have the same form and could be checked together. For
    /// tests that compare both ways.
    pub row_by_row: bool,
}

/// The outcome of recovery from a database's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryState {
    /// The files hold everything that is in the log.
    NotNeeded,
    /// The pages are as recovery would leave them.
    Done,
    /// Most pages are as recovery would leave them; the others are listed as not verified.
    Partial,
    /// The log does not belong to this database at this point in time, or cannot be used.
    Refused,
    /// The caller asked to ignore the log.
    Off,
}

impl RecoveryState {
    /// The name in JSON.
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
    /// Why recovery was not done; empty if it was.
    pub reason: String,
    /// LSN from which records were redone, and LSN of the last record.
    pub range: Option<(Lsn, Lsn)>,
    /// Bytes of log in this range.
    pub log_bytes: u64,
    /// Records in this range.
    pub records: u64,
    /// Pages that differ from the files.
    pub pages: u64,
    /// Transactions that were rolled back.
    pub transactions_undone: u64,
    /// Transactions whose outcome another server decides.
    pub in_doubt: u64,
    /// Changes that could not be recovered.
    pub doubts: Vec<RecoveryDoubt>,
}

/// A kind of change that could not be recovered, with its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecoveryDoubtKind {
    /// Everything: the database was not shut down cleanly and its log was not given; a text.
    NotGiven(String),
    /// Everything: the log cannot be used, for this reason.
    Log(String),
    /// Pages, for this reason.
    Pages(String),
    /// A transaction whose outcome another server decides.
    InDoubt,
    /// A transaction that could not be rolled back completely.
    Transaction,
    /// The log has checkpoints that the boot page does not know.
    Checkpoints,
    /// Whole blocks follow the end of the log.
    LogEnd,
}

impl RecoveryDoubtKind {
    /// The limit that describes this doubt.
    pub fn limit(&self) -> &'static Limit {
        match self {
            Self::NotGiven(_) => &limits::RECOVERY_NONE,
            Self::Log(_) => &limits::RECOVERY_LOG,
            Self::Pages(_) => &limits::RECOVERY_PAGES,
            Self::InDoubt => &limits::RECOVERY_IN_DOUBT,
            Self::Transaction => &limits::RECOVERY_TRANSACTIONS,
            Self::Checkpoints => &limits::RECOVERY_CHECKPOINTS,
            Self::LogEnd => &limits::RECOVERY_LOG_END,
        }
    }
}

/// One thing that could not be recovered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveryDoubt {
    /// The kind of doubt.
    pub kind: RecoveryDoubtKind,
    /// The place: the database, pages, transactions, or a place in the log.
    pub scope: String,
    /// Number of affected items.
    pub count: u64,
}

/// Memory that a run may use by default, in addition to two bytes per page.
pub const DEFAULT_MEMORY_BYTES: u64 = 128 << 20;

/// The number of processors, read once.
static PROCESSORS: OnceLock<usize> = OnceLock::new();

impl Options {
    /// Whether NOINDEX excludes the logical checks of an index: it does for nonclustered indexes of user tables.
    pub(crate) fn leaves_out(&self, database: &Database, object_id: i32, index_id: i32) -> bool {
        self.no_index && index_id > 1 && !database.is_system_table(object_id)
    }

    /// Threads that read and check pages.
    pub fn threads(&self) -> usize {
        match self.max_threads {
            0 => *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from)),
            threads => threads,
        }
    }

    /// The hash for facts.
    pub(crate) fn fact_hash(&self) -> FactHash {
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
