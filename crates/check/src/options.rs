//! What a run is asked to check.

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

    /// Whether it needs the files of a filegroup: beside its own there are those of the catalog, and those whose filegroup is not
    /// known.
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

/// Who reads the pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Readers {
    /// Each thread reads the pages it checks, and announces the next ones to the system.
    #[default]
    Own,
    /// So many threads that do nothing but read, in page order.
    Count(u16),
    /// One such thread a file, as with trace flag 2549: for files on disks of their own.
    PerFile,
}

/// Options of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// What is checked.
    pub scope: Scope,
    /// Pages, record headers and allocation only.
    pub physical_only: bool,
    /// Leave out the logical checks of nonclustered indexes of user tables.
    pub no_index: bool,
    /// The checks that CHECKDB makes WITH EXTENDED_LOGICAL_CHECKS only: indexed views, XML and spatial indexes against
    /// what they are made from.
    pub extended_logical_checks: bool,
    /// Check that values are in the domains of their types; on when `None`, never with `physical_only`.
    pub data_purity: Option<bool>,
    /// CHECK and FOREIGN KEY constraints too.
    pub constraints: bool,
    /// With `constraints`: those too that are disabled or not trusted, as CHECKCONSTRAINTS WITH ALL_CONSTRAINTS.
    pub all_constraints: bool,
    /// Identity columns against their high-water mark too.
    pub identities: bool,
    /// Threads; 0 for one per processor.
    pub max_threads: usize,
    /// Who reads.
    pub readers: Readers,
    /// In how many passes over the files the tables are checked; 0 counts as 1. Each pass reads the pages of its tables,
    /// so that facts are kept for fewer of them at once. A table with all its indexes is never divided.
    pub batches: u16,
    /// Memory that the run may use, in bytes; `None` for [`DEFAULT_MEMORY_BYTES`] and two bytes per page. Never below what
    /// [`crate::minimum_memory_bytes`] says. The findings do not depend on it.
    pub memory_bytes: Option<u64>,
    /// Pages whose maps are in memory at once, where only ranges are swept: those of the largest; `None` for all.
    pub mapped_pages: Option<u64>,
    /// Where facts go that do not fit into memory; `None` for the system's place for temporary files.
    pub temp_dir: Option<PathBuf>,
    /// Seed of the key under which facts are hashed; a new one in every run when `None`, so that no file can be made whose
    /// facts cancel. A fixed one is for tests that must repeat.
    pub hash_seed: Option<u64>,
    /// The key itself, where sums are carried from one process to another; it goes before the seed.
    pub hash_key: Option<HashKey>,
    /// Limits that whoever asks accepts. They are reported all the same, as allowed; the check does not depend on them.
    pub allowed: Vec<&'static Limit>,
    /// What recovery from a log did to the pages before this run; `None` if no log was looked for.
    pub recovery: Option<RecoverySummary>,
    /// What a comparison of the pages with the log found before this run; `None` if there was none.
    pub log_audit: Option<Arc<LogAudit>>,
    /// Keep a map of the files for a picture: [`crate::Report::page_map`].
    pub page_map: bool,
    /// Looks at every row by itself, also where a page's rows are all of one form and could be looked at together. For
    /// tests that compare the two ways.
    pub row_by_row: bool,
}

/// What became of a database's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryState {
    /// The files hold everything that is in the log.
    NotNeeded,
    /// The pages are as recovery would leave them.
    Done,
    /// So are most; what is not is listed as not verified.
    Partial,
    /// The log is not one of this database at this moment, or cannot be used.
    Refused,
    /// It was not to be used.
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

/// What recovery from a log did before a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoverySummary {
    /// What became of the log.
    pub state: RecoveryState,
    /// Why, where it was not done; empty otherwise.
    pub reason: String,
    /// From where records were redone, and the last record.
    pub range: Option<(Lsn, Lsn)>,
    /// Bytes of log in this range.
    pub log_bytes: u64,
    /// Records in this range.
    pub records: u64,
    /// Pages that differ from the files.
    pub pages: u64,
    /// Transactions that were taken back.
    pub transactions_undone: u64,
    /// Transactions that another server decides about.
    pub in_doubt: u64,
    /// What could not be recovered.
    pub doubts: Vec<RecoveryDoubt>,
}

/// What could not be recovered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecoveryDoubtKind {
    /// All: the database was not shut down cleanly, and its log is not given; in words.
    NotGiven(String),
    /// All: the log cannot be used, for this reason.
    Log(String),
    /// Pages, for this reason.
    Pages(String),
    /// A transaction about which another server decides.
    InDoubt,
    /// A transaction that could not be taken back whole.
    Transaction,
    /// Whole blocks follow the end of the log.
    LogEnd,
}

impl RecoveryDoubtKind {
    /// The limit that says so.
    pub fn limit(&self) -> &'static Limit {
        match self {
            Self::NotGiven(_) => &limits::RECOVERY_NONE,
            Self::Log(_) => &limits::RECOVERY_LOG,
            Self::Pages(_) => &limits::RECOVERY_PAGES,
            Self::InDoubt => &limits::RECOVERY_IN_DOUBT,
            Self::Transaction => &limits::RECOVERY_TRANSACTIONS,
            Self::LogEnd => &limits::RECOVERY_LOG_END,
        }
    }
}

/// Something that could not be recovered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveryDoubt {
    /// What.
    pub kind: RecoveryDoubtKind,
    /// Where.
    pub scope: String,
    /// How many.
    pub count: u64,
}

/// Memory that a run may use by default, in addition to two bytes per page.
pub const DEFAULT_MEMORY_BYTES: u64 = 128 << 20;

/// How many processors the system has, once it was asked.
static PROCESSORS: OnceLock<usize> = OnceLock::new();

impl Options {
    /// Whether NOINDEX leaves out the logical checks of an index: of nonclustered indexes of user tables.
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

    /// The hash of facts.
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
