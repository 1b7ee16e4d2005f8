//! Databases in use: a workload of transactions runs on a database that the lab built, and writes a log. The seed
//! determines the workload. The run can stop after any log record. When the run stops, any subset of the changed pages
//! can be on disk.
//!
//! Each page change appends a log record and sets the LSN of the page, as SQL Server does, so the exact files after
//! recovery are known. This code is written from the facts of the log format, and shares no code with the log reader
//! that it tests.

mod accident;
mod catalog;
mod chain;
mod checkpoint;
mod ddl;
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
pub use chain::{Chain, ChainOptions, ChainSet, ChainSnapshot, Commit, Event, RowChange, SetKind, Spoil};
use engine::Engine;
use setup::Base;

/// The parameters of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The version of SQL Server; it must be 2012 or later.
    pub version: Version,
    /// The kind of page protection. Log blocks have checksums if pages have checksums.
    pub verify: PageVerify,
    /// The seed that determines the whole run.
    pub seed: u64,
    /// The number of rows in each table at the start.
    pub rows: u64,
    /// The number of transactions that end before the run stops.
    pub transactions: u64,
    /// The number of virtual log files at the start. If they are not enough, the log grows.
    pub vlfs: u32,
    /// Size of each virtual log file in bytes. It must be a multiple of 512 and at least 0x11000, so that the header
    /// and the largest block fit.
    pub vlf_bytes: u64,
    /// The number of log files. The virtual log files are distributed among the log files in turn.
    pub log_files: u16,
    /// Whether the run makes checkpoints. Without checkpoints, recovery must redo the whole log.
    pub has_checkpoints: bool,
    /// Marks every user transaction whose number is divisible by this value, as BEGIN TRANSACTION WITH MARK does. The
    /// marks are `mark 1`, `mark 2` and `mark 3` in turn. 0 means no marks.
    pub marked_each: u64,
    /// Each time this number of user transactions has begun, a DDL statement or a change of the size of the data file
    /// runs. 0 means none.
    pub ddl_each: u64,
    /// Each log backup of a chain also has this number of extents, as after a bulk operation under the bulk-logged recovery
    /// model.
    pub bulk_extents: u32,
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
            ddl_each: 0,
            bulk_extents: 0,
        }
    }
}

/// The point at which a run stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A crash after this number of log records. Up to the crash, the run is the same as with [`Stop::WithoutOpen`].
    After(u64),
    /// A crash after the last transaction of the workload, while other transactions are still open.
    WithOpen,
    /// A crash after the last transaction of the workload, when no transaction is open.
    WithoutOpen,
    /// A clean shutdown.
    ShutDown,
}

/// Which of the changed pages are written to disk at the moment of the crash. Pages that the run wrote earlier are on
/// disk with every variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// No pages.
    None,
    /// All changed pages.
    All,
    /// Some changed pages, selected by this seed.
    Some(u64),
}

/// A workload that is ready to run.
pub struct Workload {
    spec: Spec,
    base: Base,
}

/// The files after a run.
#[derive(Clone, Debug)]
pub struct Crashed {
    /// The data files as they are on disk, each with its name.
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
    /// The data files after recovery. If transactions were open, several contents of the files are correct, and these
    /// files are only one of them. The rows are the same in all correct files. The counters in the catalog are those of
    /// the last checkpoint.
    pub files: Vec<(String, Vec<u8>)>,
    /// The data files after redo, before open transactions are rolled back. Each page contains the changes of all log
    /// records for this page.
    pub redone: Vec<(String, Vec<u8>)>,
    /// The rows that committed transactions left.
    pub tables: Vec<TableTruth>,
    /// The transactions that recovery must roll back.
    pub open: Vec<OpenTransaction>,
    /// The number of log records that were written since the database was started.
    pub records: u64,
    /// The LSN that follows the last log record, as text.
    pub end: String,
    /// The pages whose last changes are not on disk.
    pub missing: Vec<PageId>,
}

/// The values of a row as stored bytes; `None` for NULL.
pub type Values = Vec<Option<Vec<u8>>>;

/// The rows of a table.
#[derive(Clone, Debug)]
pub struct TableTruth {
    /// Name of the table.
    pub name: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows in arbitrary order.
    pub rows: Vec<Values>,
}

/// A transaction that had not ended when the run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Transaction number.
    pub number: u32,
    /// The LSN of the transaction's first record, as text.
    pub begin: String,
    /// Whether the transaction is a system transaction that changes a structure, such as a page split. Such a
    /// transaction is rolled back as a whole.
    pub is_system: bool,
    /// Whether the transaction gave a table its first page. Although another transaction allocated the extent of this
    /// page, the rollback must also free the extent.
    pub creates_chain: bool,
    /// Whether the transaction is in doubt: it is prepared to commit, but another system makes the decision. [`Truth`]
    /// assumes that the transaction is rolled back.
    pub is_prepared: bool,
}

impl Workload {
    /// Prepares a workload.
    ///
    /// # Errors
    ///
    /// [`LabError`] if workloads do not support the version or the size of the virtual log files, or if a temporary
    /// folder cannot be written.
    pub fn new(spec: Spec) -> Result<Self, LabError> {
        Ok(Self { spec, base: Base::new(&spec)? })
    }

    /// The number of log records that the whole workload writes.
    pub fn records(&self) -> u64 {
        self.run(Stop::WithOpen).journal.count
    }

    /// Runs the workload up to `stop`. Returns the files on disk, and the state that recovery must restore.
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
        // The run also stops when the log reaches its maximum number of records. Such a stop counts as a crash, so the
        // error is ignored.
        let _stopped = engine.start().and_then(|()| engine.run(self.spec.transactions)).and_then(|()| match stop {
            Stop::WithOpen => Ok(()),
            Stop::After(_) | Stop::WithoutOpen => engine.end_all(),
            Stop::ShutDown => engine.end_all().and_then(|()| engine.shut_down()),
        });
        engine
    }

    /// Rolls back the open transactions as recovery would, and returns the resulting files and rows.
    fn truth(&self, mut engine: Engine<'_>, stop: Stop) -> Truth {
        let open = engine.open.iter().map(|(&number, transaction)| OpenTransaction {
            number,
            begin: transaction.begin.to_string(),
            is_system: transaction.before.is_some(),
            creates_chain: !transaction.new_chains.is_empty(),
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
            columns: state.names(),
            rows: state.settled.values().map(|live| state.values(live)).collect(),
        };
        self.tables.iter().filter(|state| !state.is_dropped).map(table).collect()
    }
}

impl Crashed {
    /// Writes the data files and the log files into a folder, and the files after recovery into its subfolder `truth`.
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
