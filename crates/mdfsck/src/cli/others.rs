//! The options of the smaller commands.

use std::path::PathBuf;

use clap::Args;
use findings::registry::limits::Limit;
use jobs::request::Request;

use super::check::{LimitId, SCOPE};
use super::recovery::RECOVERY;
use super::{CarveArguments, Constraints, DatabaseArguments, LikeArguments, OUTPUT, RunArguments, StopArguments};

#[derive(Args)]
pub(crate) struct AdviseArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArguments,

    /// Backups of the database: files, or folders to search for backups at any depth; repeatable
    ///
    /// mdfsck reads the copies of the damaged pages in the newest backups. If these copies are damaged too in a backup,
    /// mdfsck names and skips the backup.
    #[arg(long, value_name = "DIR")]
    pub(crate) backups: Vec<PathBuf>,

    /// Write the statements of all steps to a new FILE; each step begins with SET NOEXEC ON, and runs only after you
    /// delete that line
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    /// Print one JSON object per step
    #[arg(long)]
    pub(crate) json: bool,

    /// Also check trusted CHECK and FOREIGN KEY constraints; with =all, also check untrusted and disabled constraints
    #[arg(long, value_enum, value_name = "all", num_args = 0..=1, require_equals = true, default_missing_value = "trusted")]
    #[arg(help_heading = SCOPE)]
    pub(crate) constraints: Option<Constraints>,

    #[command(flatten)]
    pub(crate) stop: StopArguments,

    #[command(flatten)]
    pub(crate) run: RunArguments,

    /// Accept the limit ID, a reason why something is not verified: advise gives no step for this limit, and the limit
    /// does not set bit 16 (incomplete) of the exit status; repeatable
    #[arg(long, value_name = "ID", value_parser = LimitId, hide_possible_values = true, help_heading = OUTPUT)]
    pub(crate) allow: Vec<&'static Limit>,

    /// Leave bit 16 (incomplete) out of the exit status: 16 becomes 0, and 17 becomes 1
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) exit_zero_on_incomplete: bool,
}

impl AdviseArguments {
    /// The check on which the advice is based.
    pub(crate) fn check(&self) -> Request {
        let mut check = self.database.request(&self.stop);
        check.scope.constraints = self.constraints.map(Into::into);
        check.run = (&self.run).into();
        check.results.allow.clone_from(&self.allow);
        check.results.exit_zero_on_incomplete = self.exit_zero_on_incomplete;
        check
    }
}

#[derive(Args, Clone)]
pub(crate) struct InfoArguments {
    /// Data files, backups, folders, or patterns such as '*.bak'; '-' reads a backup from standard input
    ///
    /// Shows each database and each backup file.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Also search the subfolders of each folder
    ///
    /// Searches at most eight levels of subfolders. Does not follow symbolic links to folders.
    #[arg(long, short = 'r')]
    pub(crate) recursive: bool,

    #[command(flatten)]
    pub(crate) carve: CarveArguments,

    /// Print one JSON object per database or backup file
    #[arg(long, conflicts_with = "tableresults")]
    pub(crate) json: bool,

    /// Print the boot page as CSV, as DBCC DBINFO WITH TABLERESULTS does
    #[arg(long)]
    pub(crate) tableresults: bool,
}

#[derive(Args)]
pub(crate) struct TablesArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArguments,

    #[command(flatten)]
    pub(crate) like: LikeArguments,

    #[command(flatten)]
    pub(crate) carve: CarveArguments,

    /// Include system objects
    #[arg(long)]
    pub(crate) all: bool,

    /// Order of the list
    #[arg(long, value_enum, value_name = "ORDER", default_value = "name", conflicts_with = "statistics")]
    pub(crate) sort: TableOrder,

    /// List statistics instead of tables: columns, time of the last update, rows, number of histogram steps
    #[arg(long)]
    pub(crate) statistics: bool,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Order of the list of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum TableOrder {
    /// By name
    Name,
    /// Most pages first
    Size,
    /// Most rows first
    Rows,
}

#[derive(Args)]
pub(crate) struct LintArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArguments,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct BenchArguments {
    /// Data files of one database, the folder that holds them, or a backup; with --size, a folder in which a database is
    /// built and kept
    #[arg(value_name = "PATH")]
    #[cfg_attr(feature = "lab", arg(required_unless_present = "size"))]
    #[cfg_attr(not(feature = "lab"), arg(required = true))]
    pub(crate) paths: Vec<PathBuf>,

    #[cfg(feature = "lab")]
    #[command(flatten)]
    pub(crate) build: crate::lab::Build,

    /// Degrees of parallelism to measure (0 = one thread per processor)
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2")]
    pub(crate) maxdop: Vec<u16>,

    /// Configurations to measure: full or physical, each alone or followed by /batches, /per-file or /both
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "full,physical")]
    #[arg(value_parser = crate::matrix::configuration)]
    pub(crate) configurations: Vec<crate::matrix::Configuration>,

    /// Memory grants to measure (default: the grant that a check uses without --memory)
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = jobs::size::bytes)]
    pub(crate) memory: Vec<u64>,

    /// State of the system's file cache before each run
    #[arg(long, value_name = "STATE,...", value_delimiter = ',', value_enum, default_value = "warm")]
    pub(crate) cache: Vec<crate::matrix::Cache>,

    /// Number of runs per cell; a cell is one combination of the options above
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeat: u16,

    /// Write all figures to FILE as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write the results to FILE as CSV, one line per cell
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Write a page with charts to FILE
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,

    /// Keep baselines in this history instead of .mdfsck-bench in the current folder
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) history: Option<PathBuf>,

    /// Save the results as a baseline in .mdfsck-bench in the current folder, or in --history
    #[arg(long, value_name = "NAME", help_heading = OUTPUT)]
    pub(crate) save: Option<String>,

    /// Compare with the baseline NAME: report changes, and whether they exceed the noise
    #[arg(long, value_name = "NAME", help_heading = OUTPUT)]
    pub(crate) against: Option<String>,
}

#[derive(Args)]
pub(crate) struct PageArguments {
    /// Page address as FILE:PAGE, such as 1:153; '(1:153)', 1,153 and '1 153' are accepted too
    ///
    /// For the address of a row, as in message 8955, mdfsck shows the page that contains the row.
    #[arg(value_name = "F:P", value_parser = crate::values::address)]
    pub(crate) page: format::PageId,

    #[command(flatten)]
    pub(crate) database: DatabaseArguments,

    #[command(flatten)]
    pub(crate) carve: CarveArguments,

    /// Print all bytes of the page in hexadecimal, as read from the file
    #[arg(long, conflicts_with_all = ["json", "tableresults"])]
    pub(crate) raw: bool,

    /// Print one JSON object
    #[arg(long, conflicts_with = "tableresults")]
    pub(crate) json: bool,

    /// Print CSV, as DBCC PAGE WITH TABLERESULTS does; if the log changes the page, print the recovered version
    #[arg(long)]
    pub(crate) tableresults: bool,
}

#[derive(Args)]
pub(crate) struct AuditArguments {
    /// Data files and log files of one database, or the folder that holds these files; mdfsck itself finds logs in the
    /// folder of the data files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Limit memory to SIZE, such as 256MB (default: 128MB)
    ///
    /// If the pages do not fit into this memory, mdfsck compares them in parts and reads the log once for each part.
    /// The findings do not change.
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes)]
    pub(crate) memory: Option<u64>,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct LogArguments {
    /// Log files of one database, backups of this database (log, full or differential), or the folder that holds these
    /// files
    ///
    /// If you also pass the data files of the database, log records show table names and the columns of rows, as the
    /// current catalog describes them.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// List all transactions, not only open ones (with --json)
    #[arg(long, requires = "json")]
    pub(crate) transactions: bool,

    /// List the log records
    #[arg(long)]
    pub(crate) records: bool,

    /// List only records that change this page
    #[arg(long, value_name = "F:P", value_parser = crate::values::address)]
    pub(crate) page: Option<format::PageId>,

    /// List only records at or after this LSN
    #[arg(long, value_name = "LSN", value_parser = crate::values::lsn)]
    pub(crate) from: Option<format::Lsn>,

    /// List only records up to this LSN
    #[arg(long, value_name = "LSN", value_parser = crate::values::lsn)]
    pub(crate) to: Option<format::Lsn>,

    /// List only records of this table, by name or object ID; also needs the data files
    #[arg(long, value_name = "[SCHEMA.]NAME")]
    pub(crate) object: Option<String>,

    /// List only records of this transaction: its ID, such as 0000:000003a8, or its name
    #[arg(long, value_name = "ID|NAME")]
    pub(crate) transaction: Option<String>,

    /// List only records of operations whose names begin with NAME, such as LOP_INSERT_ROWS or MODIFY (LOP_ is
    /// optional)
    #[arg(long, value_name = "NAME")]
    pub(crate) operation: Option<String>,

    /// List only records at or after this time (local time of the server)
    ///
    /// Most log records contain no time. The time of a record is therefore the last time that is stored before it in
    /// the log: the begin or end of a transaction, or the closing of a log block (SQL Server 2019 and later).
    #[arg(long, value_name = "TIME", value_parser = jobs::request::stop_moment)]
    pub(crate) since: Option<jobs::request::StopMoment>,

    /// List only records up to this time (local time of the server)
    #[arg(long, value_name = "TIME", value_parser = jobs::request::stop_moment)]
    pub(crate) until: Option<jobs::request::StopMoment>,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CheckpointsArguments {
    /// Event files (.xel), exports of events as XML, error logs, transaction logs, data files, or folders that hold
    /// such files; a file or backup of the master database provides the names of the databases
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Compare the checkpoints before and after a change to database DB at this time (UTC); repeatable
    #[arg(long, value_name = "DB=TIMEZ", value_parser = crate::values::change)]
    pub(crate) change: Vec<crate::values::Change>,

    /// Print one JSON object per line
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// Write a page with charts to FILE
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct EventsArguments {
    /// Event files (.xel), exports of events as XML, or folders that hold such files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Show only events with this name; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,

    /// Format of the events
    #[arg(long, value_enum, default_value = "json", help_heading = OUTPUT)]
    pub(crate) format: EventsFormat,

    /// Same as --format json
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// Formats of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum EventsFormat {
    /// One JSON object per event
    Json,
    /// One line per event, one column per field
    Csv,
}

#[derive(Args)]
pub(crate) struct ConfigArguments {
    /// One JSON object per default and limit
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ChainArguments {
    /// Backup files, or folders in which to search for backups at any depth
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Show whether you can restore to this point in time (local time of the server), and from which files
    ///
    /// An example is 2024-03-01T13:10:00. Lists the backups in the order in which to restore them. If you cannot
    /// restore to this time, lists the missing backups and the nearest points in time you can restore to.
    #[arg(long, value_name = "TIME", value_parser = jobs::request::stop_moment)]
    pub(crate) at: Option<jobs::request::StopMoment>,

    /// Restore each chain in memory and check the result; with --at, restore to the given point in time
    ///
    /// Checks the structure of the backup files, every block of the log in them, and every log record against the page
    /// that it changes. Also checks pages and allocation, as check --physical-only does. Writes no database. If a
    /// backup is damaged, mdfsck tries a path without this backup. Backups that no chain needs are not read.
    #[arg(long)]
    pub(crate) verify: bool,

    /// Write RESTORE statements for the latest point in time, or for the time of --at, to FILE; '-' prints them instead
    /// of the list
    ///
    /// Review the statements before use: they contain the paths that you gave to mdfsck, and their MOVE options are
    /// commented out. An existing file is never overwritten.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    /// Limit memory of --verify to SIZE, such as 256MB or 2GB
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, requires = "verify")]
    pub(crate) memory: Option<u64>,

    /// Folder for temporary files of --verify (default: the temporary folder of the system)
    #[arg(long, value_name = "DIR", requires = "verify")]
    pub(crate) temp_dir: Option<PathBuf>,

    /// With --verify: prove the latest point in time by reading only what has changed, with the ledgers beside this history
    ///
    /// Checks more than --verify without a history: also rows, keys and indexes, as check does. If the result is not sound
    /// and complete, or if there is no ledger of the full backup, all pages are read. The result is the same.
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub(crate) history: Option<PathBuf>,

    /// Keep what the proof has added up, in at most SIZE beside the history; see --keep-parts of 'mdfsck check'
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, requires = "history")]
    pub(crate) keep_parts: Option<u64>,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

impl ChainArguments {
    /// The options with which `--verify` restores.
    pub(crate) fn recovery(&self) -> super::RecoveryArguments {
        super::RecoveryArguments {
            no_log: false,
            room: super::RoomArguments { memory: self.memory, temp_dir: self.temp_dir.clone() },
        }
    }
}

#[derive(Args)]
pub(crate) struct ExtractArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArguments,

    /// Folder for the data files; created if missing
    #[arg(long, short, value_name = "DIR", help_heading = OUTPUT)]
    pub(crate) output: PathBuf,

    /// Recover the database with its log, and write the recovered data files
    ///
    /// Needs data files with their log, or backups with the log backups that follow. All pages get their state at the
    /// end of the log, open transactions are rolled back, and the boot page marks the database as cleanly shut down. If
    /// anything cannot be recovered, mdfsck writes nothing, reports the reason and ends with status 16.
    #[arg(long, conflicts_with = "no_log", help_heading = RECOVERY)]
    pub(crate) recovered: bool,

    #[command(flatten)]
    pub(crate) stop: StopArguments,
}

#[derive(Args)]
pub(crate) struct ExplainArguments {
    /// Message number, check ID, or limit ID; without one of these, all are listed; - reads a pasted error log or output of
    /// DBCC from standard input, and says what happened, causes first, and what to do next
    #[arg(value_name = "ID|MSG", conflicts_with = "all")]
    pub(crate) keys: Vec<String>,

    /// Print JSON, one object per line
    #[arg(long, conflicts_with = "all")]
    pub(crate) json: bool,

    /// List all checks and limits, each with one sentence
    #[arg(long)]
    pub(crate) all: bool,

    /// List only limits: reasons why something is not verified
    #[arg(long, requires = "all")]
    pub(crate) limits: bool,

    /// With --markdown: list the messages of SQL Server that no check reports
    #[arg(long, requires = "markdown", conflicts_with = "limits")]
    pub(crate) messages: bool,

    /// With --markdown: list what mdfsck does in place of each message of CHECKDB
    #[arg(long, requires = "markdown", conflicts_with_all = ["limits", "messages"])]
    pub(crate) parity: bool,

    /// Print full explanations as Markdown: docs/checks.md, docs/limits.md (with --limits), docs/messages.md (with
    /// --messages), or docs/parity.md (with --parity)
    #[arg(long, requires = "all")]
    pub(crate) markdown: bool,
}
