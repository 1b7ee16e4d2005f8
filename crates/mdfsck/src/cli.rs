//! The command line: each option is declared once; parsing, help, completions and manual pages come from the declaration.

mod check;
mod compare;
mod examples;
mod export;
mod history;
mod listener;
pub(crate) mod manual;
mod others;
mod parts;
mod recovery;
mod request;
mod serve;
mod snapshot;
pub(crate) mod usage;
mod watch;

use std::path::PathBuf;

pub(crate) use check::{
    CheckArguments, Constraints, NamingArguments, ProgressKind, ResultArguments, RunArguments, ScopeArguments,
};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
pub(crate) use export::{ExportArguments, ExportFormat, RowsArguments, RowsFormat};
pub(crate) use history::{HistoryArguments, HistoryVerb};
use jobs::failure::Failure;
pub(crate) use parts::{MergeArguments, PlanArguments, TaskArguments};
pub(crate) use recovery::{RecoveryArguments, RoomArguments, StopArguments};

use crate::output;
use crate::version::LONG_VERSION;
pub(crate) use compare::CompareArguments;
use examples::*;
pub(crate) use listener::ListenerArguments;
pub(crate) use others::{
    AdviseArguments, AuditArguments, BenchArguments, ChainArguments, CheckpointsArguments, ConfigArguments,
    EventsArguments, EventsFormat, ExplainArguments, ExtractArguments, InfoArguments, LintArguments, LogArguments,
    PageArguments, TableOrder, TablesArguments,
};
pub(crate) use serve::ServeArguments;
pub(crate) use snapshot::SnapshotArguments;
pub(crate) use watch::{EngineArguments, WatchArguments};

#[derive(Parser)]
#[command(name = "mdfsck", version, long_version = LONG_VERSION.as_str(), about = ABOUT, long_about = LONG_ABOUT, after_help = EXIT_STATUS)]
#[command(max_term_width = 120, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check a database or backup for corruption
    ///
    /// Reads every allocated page once and prints the lines that DBCC CHECKDB would print: for each object, its
    /// findings and the numbers of its rows and pages, then the error counts and the minimum repair level. The parts
    /// that could not be verified are listed last.
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(Box<CheckArguments>),

    /// Recommend the cheapest way to recover from damage, and name the data that is lost
    ///
    /// Checks the database, then lists the recovery steps in order. Each step has its reason, its risk, the data that
    /// it cannot recover, and its T-SQL statements. mdfsck never runs these statements. With --backups, mdfsck reads
    /// the copies of the damaged pages in the backups and recommends only sound copies.
    #[command(after_long_help = ADVISE_EXAMPLES)]
    Advise(AdviseArguments),

    /// Compare the results of DBCC CHECKDB with a check of the same files
    ///
    /// Reads what CHECKDB printed about a database: the rows of WITH TABLERESULTS as CSV, or the messages as text. Then
    /// checks the files or the backup of this database, and compares both as sets of messages: number, object, index,
    /// page and slot. Messages that only one of the two prints for a known reason are explained.
    #[command(name = "compare-dbcc", after_long_help = COMPARE_EXAMPLES)]
    CompareDbcc(CompareArguments),

    /// Show the version, files, state and features of a database, or the labels of a backup
    ///
    /// Reads only the boot page, the file headers and the catalog. For a backup file, shows the labels, as RESTORE
    /// LABELONLY, HEADERONLY and FILELISTONLY do.
    #[command(after_long_help = INFO_EXAMPLES)]
    Info(InfoArguments),

    /// List objects, indexes and partitions as the catalog describes them
    ///
    /// Includes keys, compression, filters and computed columns. Reads only the catalog.
    #[command(after_long_help = TABLES_EXAMPLES)]
    Tables(TablesArguments),

    /// List schema features that slow DBCC CHECKDB down or hide damage from it
    ///
    /// Reads only the catalog.
    #[command(after_long_help = LINT_EXAMPLES)]
    Lint(LintArguments),

    /// Benchmark checks on this machine
    ///
    /// Checks a database repeatedly, each time in a new process, with every combination of the configurations, degrees
    /// of parallelism, memory grants and cache states to measure. Reports the median and the spread of the times, and
    /// how the time was spent.
    #[command(after_long_help = BENCH_EXAMPLES)]
    Bench(BenchArguments),

    /// Show one page, field by field
    ///
    /// Shows names, offsets and raw bytes of the header, the records and their columns, as DBCC PAGE (..., 3) does.
    /// Damaged pages can be shown too.
    #[command(after_long_help = PAGE_EXAMPLES)]
    Page(PageArguments),

    /// Show the contents of a transaction log
    ///
    /// Shows the virtual log files, checkpoints and transactions, the reason why the log cannot be truncated, and the
    /// LSN at which the log ends. With --records, or with an option that selects log records, lists the log records
    /// instead. Verifies every log block.
    #[command(after_long_help = LOG_EXAMPLES)]
    Log(LogArguments),

    /// Compare every page with the log to find lost writes, changed bytes and pages from another point in time
    ///
    /// An outdated page with a valid checksum means that the storage lost a write; DBCC CHECKDB cannot see this. mdfsck
    /// compares every allocated page, as stored in the files, with the log records of the page, and reports the changes
    /// that the page lacks.
    #[command(after_long_help = AUDIT_EXAMPLES)]
    Audit(AuditArguments),

    /// Show how long checkpoints took, by database and over time
    ///
    /// Reads the events checkpoint_begin and checkpoint_end from event files (.xel) and XML. Also reads error logs and
    /// transaction logs. Data files and backups provide the target recovery time. Files are recognized by content.
    #[command(after_long_help = CHECKPOINTS_EXAMPLES)]
    Checkpoints(CheckpointsArguments),

    /// Show Extended Events as JSON or CSV
    ///
    /// Reads event files (.xel), and events in XML: the output of sys.fn_xe_file_target_read_file, ring buffers, and
    /// files that SSMS exported.
    #[command(after_long_help = EVENTS_EXAMPLES)]
    Events(EventsArguments),

    /// Build a sample database, damage it in five ways, and show what a check finds
    ///
    /// The databases stay in DIR, so that you can try other commands on them.
    #[cfg(feature = "lab")]
    #[command(after_long_help = crate::demo::EXAMPLES)]
    Demo {
        /// Folder for the databases; created if missing, otherwise it must be empty
        #[arg(value_name = "DIR", default_value = "mdfsck-demo")]
        dir: PathBuf,
    },

    /// Write sample databases and backups
    #[cfg(feature = "lab")]
    #[command(after_long_help = crate::lab::EXAMPLES, subcommand_required = true)]
    Lab {
        #[command(subcommand)]
        command: crate::lab::LabCommand,
    },

    /// Read and summarize the results of the prove-it kit
    ///
    /// The scripts in the folder prove compare mdfsck with DBCC CHECKDB on your own server; they use these commands.
    /// None of them connects to a server.
    #[cfg(feature = "lab")]
    #[command(after_long_help = crate::prove::EXAMPLES, subcommand_required = true)]
    Prove {
        #[command(subcommand)]
        command: crate::prove::ProveCommand,
    },

    /// Show which points in time you can restore to, and how
    ///
    /// For each database, shows the points in time you can restore to, and the shortest path to the latest of these
    /// points. Also shows the purpose of each other backup, the backups that no restore can use, and the backups that
    /// are missing.
    #[command(after_long_help = CHAIN_EXAMPLES)]
    Chain(ChainArguments),

    /// Extract the data files from a backup, or write recovered data files
    ///
    /// Accepts the stripes of a full backup and of a differential backup, in any order. Does not apply the log in the
    /// backup, so the files are only for inspection, and SQL Server does not accept them. With --recovered, mdfsck
    /// recovers the database with its log and writes data files of a cleanly shut down database. These files can be
    /// checked and read without a log. Free extents become holes in the files.
    #[command(after_long_help = EXTRACT_EXAMPLES)]
    Extract(ExtractArguments),

    /// Write the rows of tables to files: CSV, Parquet, JSON lines or T-SQL
    ///
    /// Reads data files or backups without SQL Server and writes one file per table. Rows are in the order of the
    /// clustered key if the clustered index is sound. Pages and values that cannot be read are listed, with the reason.
    #[command(after_long_help = EXPORT_EXAMPLES)]
    Export(ExportArguments),

    /// Show the first rows of a table
    #[command(after_long_help = ROWS_EXAMPLES)]
    Rows(RowsArguments),

    /// Show when each database was checked, and the state of its findings
    ///
    /// Reads the file in which 'mdfsck check --history FILE' records its runs. Without a subcommand, prints one line
    /// per database. All times are UTC.
    #[command(after_long_help = HISTORY_EXAMPLES)]
    History(HistoryArguments),

    /// Show the history in a browser, as a local web server
    ///
    /// Shows all databases, worst first, each with its findings, its runs, any running check, and the time since its
    /// pages were last read. The server is read-only unless --allow-ack lets users with a second token acknowledge
    /// findings. It shows pages of a database only from files that the history names. Other machines can reach the
    /// server only with --listen and --allow-remote. Ctrl+C ends the server.
    #[command(after_long_help = SERVE_EXAMPLES)]
    Serve(ServeArguments),

    /// Find new backups and check each of them once
    ///
    /// Searches folders, patterns and URLs for backups, waits until each backup is complete, and checks it. The history
    /// stores the queue of backups, so a watcher that was killed continues where it ended. No backup is checked twice,
    /// even under another name. Prints one line per backup with its result: sound, corrupt, unknown or skipped (with
    /// --once, also waiting). Runs until SIGTERM or Ctrl+C; with --once, until all backups that it found have been
    /// checked.
    #[command(after_long_help = WATCH_EXAMPLES)]
    Watch(WatchArguments),

    /// Split one check into tasks that any number of processes and machines can run
    ///
    /// Creates a folder with the plan. 'mdfsck task' runs one or more tasks, in any order, on any machine where the
    /// files have the same paths. It writes the result of each task, called a part, to the folder. 'mdfsck merge' then
    /// prints the results that 'mdfsck check' would print.
    #[command(after_long_help = PLAN_EXAMPLES)]
    Plan(PlanArguments),

    /// Run tasks of a plan
    ///
    /// Reads the catalog, then the pages of the given tasks. The allocation maps come from the plan. If merge has asked
    /// for another round of tasks, the task numbers refer to the first round with missing parts; if no part is missing,
    /// to the newest round. A part gets its name only when it is complete, so a killed process leaves no part. A task
    /// whose part exists is not run again. If two processes run the same task, both write the same part.
    #[command(after_long_help = TASK_EXAMPLES)]
    Task(TaskArguments),

    /// Merge the parts of a plan and print the results of the check
    ///
    /// First reads every part to its end. If a part is missing, damaged or from another plan, merge prints no results
    /// and ends with status 8. The results are those of 'mdfsck check' with the options of the plan. If merge must
    /// check an index again, and would read more than --local-limit for this, it leaves the index to the tasks of
    /// another round: it prints one JSON line instead of results, and ends with status 32.
    #[command(after_long_help = MERGE_EXAMPLES)]
    Merge(MergeArguments),

    /// Explain a check, a message or a limit
    ///
    /// For a check, prints the rule, the cause, and what to do. For a message that no check reports, prints its
    /// meaning, what to look at, and what to do. For a limit, prints which part is not verified, the reason, and what
    /// to do.
    #[command(after_long_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArguments),

    /// Show the defaults and limits of this machine, and the files they come from
    ///
    /// The files mdfsck.toml hold defaults for any long option of any command, in a section for each command, so that jobs
    /// need not repeat them. They are in /etc (on Windows in %ProgramData%\mdfsck), for all users, and in ~/.config/mdfsck
    /// (on Windows in %APPDATA%\mdfsck). The environment variable MDFSCK_CONFIG names a file to read in place of both. A
    /// command line counts more than any file. The section limits has the most that a command line may ask for: memory,
    /// maxdop, io-limit. Each run says on stderr which options came from files.
    #[command(after_long_help = CONFIG_EXAMPLES)]
    Config(ConfigArguments),

    /// Print a completion script for a shell
    #[command(after_long_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell that will run the script
        shell: Shell,
    },

    /// Print a manual page (roff)
    #[command(after_long_help = MAN_EXAMPLES)]
    Man {
        /// Command to document, such as check, lab new or lab-new; by default mdfsck itself
        command: Vec<String>,

        /// Print the help of all commands as one Markdown page
        #[arg(long, conflicts_with = "command")]
        markdown: bool,
    },
}

/// Heading of the options for the content, format and destination of results.
const OUTPUT: &str = "Output";
/// Heading of the options that limit the resources of a run.
const RESOURCES: &str = "Resources";

/// The options that name a database, choose a backup set, and control the use of its log.
#[derive(Args)]
pub(crate) struct DatabaseArguments {
    /// Data files of one database with their log, or the folder that holds these files, or backup files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Number N of the backup set to use, as in RESTORE ... WITH FILE = N, if a file holds several backup sets;
    /// repeatable
    ///
    /// By default mdfsck uses the first full backup and, from the other files, the first differential that is based on
    /// this full backup.
    #[arg(long, value_name = "N")]
    pub(crate) set: Vec<u16>,

    #[command(flatten)]
    pub(crate) recovery: RecoveryArguments,
}

/// The option that names a copy of the database.
#[derive(Args, Clone)]
pub(crate) struct LikeArguments {
    /// A backup or another copy of the same database, whose catalog says what the lost parts of the catalog said;
    /// repeatable for the files of one copy
    ///
    /// Used only if system tables cannot be read. Names and columns that the database itself still has are not taken from
    /// the copy.
    #[arg(long, value_name = "PATH")]
    pub(crate) like: Vec<PathBuf>,
}

/// The option that says that the paths are raw bytes.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct CarveArguments {
    /// Read each PATH as raw bytes, such as a disk image, and find the pages in it by their headers
    ///
    /// Use this option for disk images, streams of carved pages, and files with bytes before, behind or between their
    /// pages. A page may begin at any multiple of 512 bytes, or of 512 bytes plus the offset that most pages of the file
    /// have. It is found by its header and its checksum or torn bits. If a page is there more than once, the copy with
    /// the newest LSN is read. A page that is not found is not verified, and is never an error. The pages of several
    /// databases cannot be distinguished. Logs and backups in the bytes are not read.
    #[arg(long)]
    pub(crate) carve: bool,
}

/// `mdfsck completions`.
pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mdfsck", &mut script);
    output::print(|out| out.write_all(&script))?;
    Ok(0)
}

impl Command {
    /// The value of `--memory`, if the command has this option and it was given.
    pub(crate) fn memory(&self) -> Option<u64> {
        match self {
            Self::Check(arguments) => arguments.recovery.room.memory,
            Self::CompareDbcc(arguments) => arguments.recovery.room.memory,
            Self::Advise(AdviseArguments { database, .. })
            | Self::Tables(TablesArguments { database, .. })
            | Self::Lint(LintArguments { database, .. })
            | Self::Page(PageArguments { database, .. })
            | Self::Extract(ExtractArguments { database, .. })
            | Self::Export(ExportArguments { database, .. })
            | Self::Rows(RowsArguments { database, .. }) => database.recovery.room.memory,
            Self::Audit(arguments) => arguments.memory,
            Self::Chain(arguments) => arguments.memory,
            Self::Watch(arguments) => arguments.memory,
            _ => None,
        }
    }

    /// Whether results go to stdout as JSON lines.
    pub(crate) fn prints_json(&self) -> bool {
        match self {
            Self::Check(arguments) => arguments.results.are_json(),
            Self::Merge(arguments) => arguments.results.are_json(),
            Self::Plan(arguments) => arguments.json || arguments.status.is_some() && !arguments.missing,
            Self::Advise(arguments) => arguments.json,
            Self::CompareDbcc(arguments) => arguments.json,
            Self::Info(arguments) => arguments.json,
            Self::Tables(arguments) => arguments.json,
            Self::Lint(arguments) => arguments.json,
            Self::Export(arguments) => arguments.json,
            Self::Page(arguments) => arguments.json,
            Self::Log(arguments) => arguments.json,
            Self::Audit(arguments) => arguments.json,
            Self::Checkpoints(arguments) => arguments.json,
            Self::Events(arguments) => arguments.format == EventsFormat::Json,
            Self::Chain(arguments) => arguments.json,
            Self::Config(arguments) => arguments.json,
            Self::Explain(arguments) => arguments.json,
            Self::History(arguments) => arguments.json,
            Self::Watch(arguments) => arguments.json,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declarations_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(text.contains(&format!("mdfsck {}", command.get_name())), "{}", command.get_name());
        }
    }
}
