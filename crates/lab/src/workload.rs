//! Databases in use: a seeded workload of transactions on a database of the lab, with the log that it writes. It can
//! stop after any record, with any of its changed pages on disk.
//!
//! Each change of a page appends a log record and sets the page's LSN, as the engine does, so that the files after
//! recovery are known exactly. Written from the facts of the log format; it shares no code with the reader.

mod accident;
mod chain;
mod checkpoint;
mod engine;
mod entry;
mod first_page;
mod frame;
mod heap;
mod journal;
mod key;
mod long_values;
mod pool;
mod schema;
mod session;
mod setup;
mod space;
mod split;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use std::path::{Path, PathBuf};

use crate::disk::LabError;
use crate::ids::PageId;
use crate::page::PageVerify;
use crate::random::{Random, mix};
use crate::version::Version;
pub use accident::LostWrite;
pub use chain::{Chain, ChainOptions, ChainSet, Commit, Event, RowChange, SetKind};
use engine::Engine;
use setup::Base;

/// The parameters of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Layout version, 2012 or later.
    pub version: Version,
    /// Page protection; log blocks have checksums if pages have.
    pub verify: PageVerify,
    /// The seed from which everything follows.
    pub seed: u64,
    /// Number of rows of each table at the start.
    pub rows: u64,
    /// Number of transactions that end.
    pub transactions: u64,
    /// Number of virtual log files at the start; the log grows if they are not enough.
    pub vlfs: u32,
    /// Size of each virtual log file: a multiple of 512 that holds the largest block, at least 0x11000.
    pub vlf_bytes: u64,
    /// Number of log files; virtual log files are distributed to them in turn.
    pub log_files: u16,
    /// Whether there are checkpoints; without them, the whole log must be redone.
    pub has_checkpoints: bool,
    /// Every user transaction whose number is divisible by this has a mark, as BEGIN TRANSACTION WITH MARK gives it:
    /// `mark 1`, `mark 2`, `mark 3`, then these again. 0 for no marks.
    pub marked_each: u64,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            version: Version::V904,
            verify: PageVerify::Checksum,
            seed: 1,
            rows: 300,
            transactions: 60,
            vlfs: 4,
            vlf_bytes: 0x3E000,
            log_files: 1,
            has_checkpoints: true,
            marked_each: 0,
        }
    }
}

/// The point at which a run stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A crash after this number of the log records that a run to [`Stop::WithoutOpen`] writes.
    After(u64),
    /// A crash after all transactions, with others still open.
    WithOpen,
    /// A crash after all transactions, with no transaction open.
    WithoutOpen,
    /// A clean shutdown.
    ShutDown,
}

/// The changed pages that are on disk after a crash, besides those that were written before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// None.
    None,
    /// All.
    All,
    /// Some, by seed.
    Some(u64),
}

/// A workload that is prepared to run.
pub struct Workload {
    spec: Spec,
    base: Base,
}

/// The files that a run leaves.
#[derive(Clone, Debug)]
pub struct Crashed {
    /// The data files as they are on disk, with their names.
    pub files: Vec<(String, Vec<u8>)>,
    /// The first log file.
    pub log: (String, Vec<u8>),
    /// The other log files.
    pub more_logs: Vec<(String, Vec<u8>)>,
    /// The state after recovery.
    pub truth: Truth,
}

/// The files and rows that recovery must restore.
#[derive(Clone, Debug)]
pub struct Truth {
    /// The data files. With open transactions, several results are right, and these are one of them: only the rows are
    /// certain. Counters of the catalog are those of the last checkpoint.
    pub files: Vec<(String, Vec<u8>)>,
    /// Each page as of its last record: the files after redo, before open transactions are rolled back.
    pub redone: Vec<(String, Vec<u8>)>,
    /// Rows that committed transactions left.
    pub tables: Vec<TableTruth>,
    /// Transactions that must be rolled back.
    pub open: Vec<OpenTransaction>,
    /// Number of records in the log since the database was started.
    pub records: u64,
    /// The LSN after the last record, as text.
    pub end: String,
    /// Changed pages that are not on disk.
    pub missing: Vec<PageId>,
}

/// The values of a row as rows store them; `None` for NULL.
pub type Values = Vec<Option<Vec<u8>>>;

/// The rows of a table.
#[derive(Clone, Debug)]
pub struct TableTruth {
    /// Its name.
    pub name: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Its rows, in arbitrary order.
    pub rows: Vec<Values>,
}

/// A transaction that did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Transaction number.
    pub number: u32,
    /// The LSN of its first record, as text.
    pub begin: String,
    /// The transaction changes a structure, and is rolled back as a whole.
    pub is_system: bool,
    /// The transaction gave a table its first page. Another transaction allocated the extent, which is still freed by
    /// the rollback.
    pub creates_chain: bool,
    /// The transaction is in doubt: ready to commit, but another system decides. The truth rolls it back.
    pub is_prepared: bool,
}

impl Workload {
    /// Prepares a workload.
    ///
    /// # Errors
    /// [`LabError`]: workloads do not support the version or the size of virtual log files, or a folder cannot be
    /// written.
    pub fn new(spec: Spec) -> Result<Self, LabError> {
        Ok(Self { spec, base: Base::new(&spec)? })
    }

    /// Number of records that all transactions write.
    pub fn records(&self) -> u64 {
        self.run(Stop::WithOpen).journal.count
    }

    /// Runs the workload.
    pub fn crash(&self, stop: Stop, flush: Flush) -> Crashed {
        let mut engine = self.run(stop);
        engine.journal.close();
        let mut dice = match flush {
            Flush::Some(seed) => Some(Random::new(mix(seed ^ self.spec.seed))),
            Flush::None | Flush::All => None,
        };
        let percent = dice.as_mut().map_or(if flush == Flush::All { 100 } else { 0 }, |dice| 25 * dice.below(5));
        let dirty: Vec<PageId> = engine.pool.dirty().keys().copied().collect();
        let written = dirty.into_iter().filter(|_| match &mut dice {
            Some(dice) => dice.chance(percent),
            None => percent == 100,
        });
        let mut lying = engine.clone();
        lying.write_back(written.collect());
        let missing = lying.pool.dirty().keys().copied().collect();
        let files = self.base.named(lying.pool.files());
        let mut logs = self.base.logs(&mut lying.journal);
        let log = logs.remove(0);
        let mut truth = self.truth(engine, stop);
        truth.missing = missing;
        Crashed { files, log, more_logs: logs, truth }
    }

    fn run(&self, stop: Stop) -> Engine<'_> {
        let mut engine = self.base.engine(&self.spec);
        if let Stop::After(records) = stop {
            engine.journal.limit = records;
        }
        // A run that reaches its limit of records is a crash like any other.
        let _stopped = engine.start().and_then(|()| engine.run(self.spec.transactions)).and_then(|()| match stop {
            Stop::WithOpen => Ok(()),
            Stop::After(_) | Stop::WithoutOpen => engine.end_all(),
            Stop::ShutDown => engine.end_all().and_then(|()| engine.shut_down()),
        });
        engine
    }

    /// Rolls open transactions back, as recovery would, and returns the resulting files and rows.
    fn truth(&self, mut engine: Engine<'_>, stop: Stop) -> Truth {
        let open = engine.open.iter().map(|(&number, transaction)| OpenTransaction {
            number,
            begin: transaction.begin.to_string(),
            is_system: transaction.before.is_some(),
            creates_chain: transaction.new_chain.is_some(),
            is_prepared: transaction.is_prepared,
        });
        let open: Vec<OpenTransaction> = open.collect();
        let (records, end) = (engine.journal.count, engine.journal.end().to_string());
        engine.journal.limit = u64::MAX;
        let mut redone = engine.clone();
        if stop != Stop::ShutDown {
            redone.settle_files();
        }
        let redone = self.base.named(redone.pool.files());
        let _always_possible = engine.recover();
        if stop != Stop::ShutDown {
            engine.settle_files();
        }
        let tables = engine.tables();
        let files = self.base.named(engine.pool.files());
        Truth { files, redone, tables, open, records, end, missing: Vec::new() }
    }
}

impl Engine<'_> {
    /// The committed rows of all tables.
    fn tables(&self) -> Vec<TableTruth> {
        let table = |state: &table::TableState<'_>| TableTruth {
            name: state.table.name.clone(),
            columns: state.table.columns.iter().map(|column| column.name.clone()).collect(),
            rows: state.settled.values().map(|live| state.values(live)).collect(),
        };
        self.tables.iter().map(table).collect()
    }
}

impl Crashed {
    /// Writes data files and log into a folder, and the files after recovery into its subfolder `truth`.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, LabError> {
        let truth = folder.join("truth");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LabError::Io { path, source }
        };
        std::fs::create_dir_all(&truth).map_err(failed(&truth))?;
        let mut written = Vec::new();
        let own = self.files.iter().chain([&self.log]).chain(&self.more_logs).map(|file| (folder, file));
        for (folder, (name, bytes)) in own.chain(self.truth.files.iter().map(|file| (truth.as_path(), file))) {
            let path = folder.join(name);
            let mut staged = crate::staged::Staged::create(&path).map_err(failed(&path))?;
            std::io::Write::write_all(staged.file(), bytes).map_err(failed(&path))?;
            staged.publish().map_err(failed(&path))?;
            written.push(path);
        }
        Ok(written)
    }
}
