//! The options of `mdfsck check`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use check::registry::limits::{self, Limit};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, ValueEnum};
use report::{Columns, Format};
use serde::{Deserialize, Serialize};
use source::backup::SetChoice;

use super::{DatabaseArguments, ListenerArguments, OUTPUT, RESOURCES, RecoveryArguments, StopArguments};
use crate::failure::Failure;
use crate::watch::Mark;

/// The smallest range: smaller ones cost more than they are worth.
const LEAST_RANGE_BYTES: u64 = 1 << 20;
/// The largest range: a larger one would hardly divide a database.
const MOST_RANGE_BYTES: u64 = 1 << 40;
/// The default of `--spool-limit`.
const SPOOL_LIMIT_BYTES: u64 = 100 << 30;

#[derive(Args, Clone)]
pub(crate) struct CheckArguments {
    /// Data files with their logs, backups, folders that hold them, or patterns such as '*.bak'
    ///
    /// Files are recognized by content, in any order. Those of one database belong together: data files with their logs; a
    /// full backup with all its stripes, a differential and the log backups that follow, as the database that RESTORE would
    /// make of them. If there are several databases, each is checked, and a table of all follows. If a folder has several
    /// backups of one database, the newest full backup is checked with its newest differential; the others are named.
    /// Subfolders are searched with -r only. '-' reads a backup from standard input and keeps it in a temporary file first.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Search the subfolders of folders too
    ///
    /// Eight levels at most; a symbolic link to a folder is not followed.
    #[arg(long, short = 'r')]
    pub(crate) recursive: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArguments,

    #[command(flatten)]
    pub(crate) recovery: RecoveryArguments,

    #[command(flatten)]
    pub(crate) stop: StopArguments,

    /// Estimate what the check needs, without checking
    ///
    /// Reports memory, temporary file space and bytes to read, as WITH ESTIMATEONLY reports tempdb space. With --window, also
    /// reports how many windows a cycle takes, if a --history has the speed of the last ones.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["catalog", "errorlog_line", "log", "html"])]
    pub(crate) estimate_only: bool,

    /// Check N databases side by side (with one: one after another)
    ///
    /// Threads and --memory are divided among them; a database that needs more memory than its share waits until it can run
    /// alone. The output is the same, in the same order.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = RESOURCES)]
    pub(crate) databases: u16,

    /// Maximum size of the temporary copy of a backup read from standard input
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, default_value = "100GB", help_heading = RESOURCES)]
    pub(crate) spool_limit: u64,

    /// Check the tables in N passes over the files
    ///
    /// 'one' and 'auto' read every page once, which is nearly always best. Each of N passes reads the pages of its share of
    /// the tables, some pages are read twice, and temporary files need 1/N of the space. The opposite of trace flag 2562.
    #[arg(long, value_name = "auto|one|N", value_parser = batches, default_value = "auto", help_heading = RESOURCES)]
    pub(crate) batches: u16,

    #[command(flatten)]
    pub(crate) run: RunArguments,

    #[command(flatten)]
    pub(crate) windows: WindowArguments,

    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

/// How a check is spread over nights.
#[derive(Args, Clone, Default)]
pub(crate) struct WindowArguments {
    /// Check for at most this long, such as 3h, and continue in the next run; needs --history
    ///
    /// Reads as many ranges of the files as fit: those with new findings first, then those never read, then the oldest. The
    /// results are kept beside the history, in FILE.parts. For a backup, for files that were shut down cleanly and have not
    /// changed, and for a snapshot (--image), the next run continues where this one ended, until everything was read; then
    /// the report is that of a single check. Any other database is a new image each time. Ctrl+C ends the window after the
    /// current range; on Windows it ends the run at once, and what was read is kept. Several databases share the window.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = WINDOWS)]
    #[arg(conflicts_with_all = ["table", "filegroup", "alloc", "catalog", "batches"])]
    pub(crate) window: Option<Duration>,

    /// Promise that every page was read and every relation proven within this time, such as 14d; needs --history
    ///
    /// Bit 16 of the exit status says that the promise is broken, or cannot be kept at the present speed.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = WINDOWS)]
    #[arg(conflicts_with_all = ["table", "filegroup", "alloc", "catalog", "estimate_only"])]
    pub(crate) within: Option<Duration>,

    /// Size of the ranges of a window; if the run is killed, the range being read is read again
    #[arg(long, value_name = "SIZE", value_parser = range, default_value = "1GB", help_heading = WINDOWS, requires = "window")]
    pub(crate) range: RangeBytes,

    /// Name the storage snapshot to be checked, so that later windows continue it although it was not shut down cleanly
    ///
    /// Only for files to which nothing writes, such as a mounted snapshot of a LUN. A different name begins a new image, as does
    /// a file whose size, times or header pages have changed.
    #[arg(long, value_name = "NAME", value_parser = image_name, help_heading = WINDOWS, requires = "window")]
    pub(crate) image: Option<String>,

    /// For tests: ranges that a window reads at most.
    #[arg(long, hide = true, requires = "window")]
    pub(crate) most_ranges: Option<u64>,

    /// When the run began, from which windows are counted.
    #[arg(skip)]
    pub(crate) begun: Option<Instant>,
}

impl WindowArguments {
    /// Whether a window or a promise is asked for.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.window.is_some() || self.within.is_some()
    }
}

/// The size of ranges.
#[derive(Clone, Copy)]
pub(crate) struct RangeBytes(pub(crate) u64);

impl Default for RangeBytes {
    fn default() -> Self {
        Self(1 << 30)
    }
}

fn image_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the name must not be empty".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn range(text: &str) -> Result<RangeBytes, String> {
    match crate::size::bytes(text)? {
        bytes @ LEAST_RANGE_BYTES..=MOST_RANGE_BYTES => Ok(RangeBytes(bytes)),
        _ => Err("a range must be from 1MB to 1TB".to_owned()),
    }
}

/// What is checked, and how deeply.
#[derive(Args, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ScopeArguments {
    /// Backup set to check: a number as FILE = N of RESTORE (repeatable), last, or all
    ///
    /// 'last' is the last set of each file, 'all' checks each full and differential backup by itself, in all files. By default
    /// the newest of each database is checked in a folder, and the first full backup of each file that is named, with the
    /// newest differential based on it in other files.
    #[arg(long, value_name = "N|last|all", value_parser = set, help_heading = SCOPE)]
    #[serde(skip)]
    pub(crate) set: Vec<SetChoice>,

    /// Check only pages, record headers and allocation
    ///
    /// As WITH PHYSICAL_ONLY: leaves out keys, links between index pages, and the list of objects.
    #[arg(long, help_heading = SCOPE)]
    pub(crate) physical_only: bool,

    /// Skip the logical checks of nonclustered indexes on user tables
    #[arg(long, help_heading = SCOPE)]
    pub(crate) noindex: bool,

    /// Check only this table or indexed view, as CHECKTABLE; repeatable
    ///
    /// A name without a schema means dbo, or else any schema that has it. Brackets and object IDs are accepted.
    #[arg(long, value_name = "[SCHEMA.]NAME", help_heading = SCOPE, conflicts_with_all = ["filegroup", "alloc", "catalog"])]
    pub(crate) table: Vec<String>,

    /// Check only the objects in this filegroup, as CHECKFILEGROUP
    #[arg(long, value_name = "NAME|ID", help_heading = SCOPE, conflicts_with_all = ["alloc", "catalog"])]
    pub(crate) filegroup: Option<String>,

    /// Check and list only allocation, as CHECKALLOC
    #[arg(long, help_heading = SCOPE)]
    pub(crate) alloc: bool,

    /// Check only the consistency of the catalog, as CHECKCATALOG
    ///
    /// Checks references between base tables, but neither pages nor Service Broker.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["alloc", "physical_only", "noindex"])]
    pub(crate) catalog: bool,

    /// Check that column values are valid for their types (the default)
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["no_data_purity", "physical_only"])]
    pub(crate) data_purity: bool,

    /// Do not check data purity
    #[arg(long, help_heading = SCOPE)]
    pub(crate) no_data_purity: bool,

    /// Check XML indexes against their tables
    ///
    /// As WITH EXTENDED_LOGICAL_CHECKS, as far as it is supported: indexed views, spatial indexes and the contents of XML
    /// indexes are listed as not verified.
    #[arg(long, help_heading = SCOPE)]
    pub(crate) extended_logical_checks: bool,

    /// Also check trusted CHECK and FOREIGN KEY constraints, as CHECKCONSTRAINTS; =all for the others too; beyond CHECKDB
    ///
    /// Disabled and untrusted constraints promise nothing about existing rows and are skipped, unless all are asked for, as
    /// WITH ALL_CONSTRAINTS.
    #[arg(long, value_enum, value_name = "all", num_args = 0..=1, require_equals = true, default_missing_value = "trusted")]
    #[arg(help_heading = SCOPE, conflicts_with_all = ["physical_only", "alloc", "catalog"])]
    pub(crate) constraints: Option<Constraints>,

    /// Report current and highest identity values, as CHECKIDENT with NORESEED; beyond CHECKDB
    ///
    /// A current value below the highest row value is reported but is not an error: SET IDENTITY_INSERT and reseeding can
    /// cause it.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["physical_only", "alloc", "catalog"])]
    pub(crate) identity: bool,
}

/// What a run may use, and how it shows that it goes on.
#[derive(Args, Clone, Default)]
pub(crate) struct RunArguments {
    /// Maximum number of threads (0 = one per processor)
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RESOURCES)]
    pub(crate) maxdop: u16,

    /// Dedicated reader threads: a number, or one per file (per-file)
    ///
    /// By default each thread reads the pages it checks and announces the next ones to the system, which is fastest for
    /// cached data or a single disk. Use per-file when each file has its own disk, as with trace flag 2549, and N for storage
    /// that needs many outstanding reads. Each reader takes one megabyte of memory and adds context switches.
    #[arg(long, value_name = "N|per-file", value_parser = readers, default_value = "auto", help_heading = RESOURCES)]
    pub(crate) readers: check::Readers,

    /// Bypass the system's file cache
    ///
    /// For a database larger than memory: the check does not evict data that other programs use.
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) direct: bool,

    /// Limit reads to SIZE per second, such as 200MB
    ///
    /// For shared storage; the check takes correspondingly longer.
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, help_heading = RESOURCES)]
    pub(crate) io_limit: Option<u64>,

    /// Run at low processor priority
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) nice: bool,

    /// Progress display on stderr
    #[arg(long, value_enum, default_value_t = ProgressKind::Auto, value_name = "KIND", help_heading = OUTPUT)]
    pub(crate) progress: ProgressKind,
}

/// What is printed, and where.
#[derive(Args, Clone, Default)]
pub(crate) struct ResultArguments {
    /// Report on stderr what each phase cost: time, processor, reading, waiting, spilling
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) stats: bool,

    /// Result format (default: summary if the results go to a terminal, otherwise text)
    ///
    /// With --output, --no-infomsgs or --estimate-only the default is text.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = OUTPUT)]
    format: Option<FormatKind>,

    /// The same as --format json
    #[arg(long, conflicts_with_all = ["format", "tableresults"], help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// The same as --format tableresults; =2008 for the columns of SQL Server 2005 to 2008 R2
    #[arg(long, value_enum, value_name = "2008", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "2012", conflicts_with = "format", help_heading = OUTPUT)]
    tableresults: Option<TableColumns>,

    /// Leave out informational messages
    ///
    /// Findings and nonzero error counts remain; for a sound database nothing goes to standard output. The list of what could
    /// not be verified goes to standard error (with --format text, after the findings); so do the lines that say which
    /// backups were chosen, and whether a log was applied.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) no_infomsgs: bool,

    /// Write the results to FILE instead of stdout ('-')
    ///
    /// An existing file is replaced only once all results are on disk, and never if it is a SQL Server file: a run that
    /// fails or is killed leaves it unchanged. Pipes and devices are written directly.
    #[arg(long, short, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,

    /// Append the line that DBCC writes to the ERRORLOG (8957) to FILE; '-' is stderr
    ///
    /// The line has the time in UTC, who ran the check, the number of errors and the elapsed time. Because it differs on
    /// every run, it is not part of the results.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) errorlog_line: Option<PathBuf>,

    /// Send that line to syslog, or to the Windows event log
    ///
    /// As an error if corruption was found, as a warning if something could not be read or verified, else as information. If
    /// the system has no such log, a warning on stderr says so; the exit status does not change.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) log: bool,

    /// Show at most N findings; all are counted (a summary shows 20 unless N is given)
    #[arg(long, value_name = "N", help_heading = OUTPUT)]
    pub(crate) max_findings: Option<usize>,

    /// Accept a limit: what it leaves unverified does not set bit 16 of the exit status; repeatable
    ///
    /// ID as shown in the list of what was not verified; 'mdfsck explain ID' says what it means. The report still lists it,
    /// marked as allowed.
    #[arg(long, value_name = "ID", value_parser = LimitId, hide_possible_values = true, help_heading = OUTPUT)]
    pub(crate) allow: Vec<&'static Limit>,

    /// Omit bit 16 (incomplete) from the exit status
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) exit_zero_on_incomplete: bool,

    /// Record the run in FILE, which 'mdfsck history' reads; created if missing
    ///
    /// Records what was read, proven and found, and which earlier findings are gone. If the history cannot be used, a line on
    /// stderr says so and bit 4 or 8 of the exit status is set; the check still runs. Keep the file on a local disk.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) history: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) naming: NamingArguments,

    /// Also write the report as one HTML page to FILE: findings, a map of the files, curves of the run
    ///
    /// One database per page. The page loads and sends nothing; it shows names, and bytes of damaged rows. An existing file
    /// is replaced as with --output. If the page cannot be written, a line on stderr says so and bit 4 of the exit status is
    /// set; the results are still printed.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) listener: ListenerArguments,

    /// The watcher's backup that this checks.
    #[arg(skip)]
    pub(crate) watched: Option<Arc<Mark>>,
}

pub(super) const SCOPE: &str = "Scope and depth";
const WINDOWS: &str = "Windows of time";

/// By what a history knows a database.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NamingArguments {
    /// Server of the data files, for --history (default: this machine); backups name theirs
    #[arg(long, value_name = "NAME", requires = "history", help_heading = OUTPUT)]
    pub(crate) server: Option<String>,

    /// Count databases of one family as one in the history, whatever their server and name: replicas of an availability group
    ///
    /// Otherwise a database that was restored elsewhere or under another name counts as a different one.
    #[arg(long, requires = "history", help_heading = OUTPUT)]
    pub(crate) replicas: bool,
}

impl CheckArguments {
    /// The same arguments for other paths.
    pub(crate) fn of(&self, paths: Vec<PathBuf>) -> Self {
        Self { paths, ..self.clone() }
    }

    /// A full check of a database, with default options.
    pub(crate) fn of_database(database: &DatabaseArguments, stop: StopArguments) -> Self {
        Self {
            scope: ScopeArguments {
                set: database.set.iter().map(|&position| SetChoice::Positions(vec![position])).collect(),
                ..ScopeArguments::default()
            },
            recovery: database.recovery.clone(),
            stop,
            ..Self::of_paths(database.paths.clone())
        }
    }

    /// A full check of the data files or backups in these paths, with default options.
    pub(crate) fn of_paths(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            recursive: false,
            scope: ScopeArguments::default(),
            recovery: RecoveryArguments::default(),
            stop: StopArguments::default(),
            databases: 1,
            estimate_only: false,
            spool_limit: SPOOL_LIMIT_BYTES,
            batches: 1,
            run: RunArguments::default(),
            windows: WindowArguments::default(),
            results: ResultArguments::default(),
        }
    }

    /// The backup sets to check.
    ///
    /// # Errors
    /// `last` or `all` together with another choice or with a point to stop at.
    pub(crate) fn sets(&self) -> Result<SetChoice, Failure> {
        let mut positions = Vec::new();
        for choice in &self.scope.set {
            match choice {
                SetChoice::Positions(numbers) => positions.extend(numbers),
                _ if self.stop.is_given() => {
                    return Err(Failure::usage(
                        "--set last and --set all check each backup by itself; they cannot be combined with --stop-at or a mark",
                    ));
                }
                choice if self.scope.set.len() == 1 => return Ok(choice.clone()),
                _ => return Err(Failure::usage("--set last and --set all cannot be combined with another --set")),
            }
        }
        Ok(if positions.is_empty() { SetChoice::Newest } else { SetChoice::Positions(positions) })
    }
}

impl ResultArguments {
    /// Whether results go to stdout as JSON lines.
    pub(super) fn are_json(&self) -> bool {
        let is_stdout = self.output.as_ref().is_none_or(|path| path.as_os_str() == "-");
        self.format() == Format::Json && is_stdout
    }

    /// The format of the results; for a summary it is text.
    pub(crate) fn format(&self) -> Format {
        if let Some(columns) = self.tableresults {
            return Format::TableResults(columns.into());
        }
        match self.format {
            _ if self.json => Format::Json,
            None | Some(FormatKind::Summary | FormatKind::Text) => Format::Text,
            Some(FormatKind::Json) => Format::Json,
            Some(FormatKind::Tableresults) => Format::TableResults(Columns::Newer),
        }
    }

    /// Whether DBCC's lines are limited to findings and their counts, as scripts expect: DBCC has no lines for what was not
    /// verified.
    pub(crate) fn are_findings_only(&self) -> bool {
        self.no_infomsgs && self.format.is_none() && matches!(self.format(), Format::Text)
    }

    /// Whether to print a summary: it was requested, or no format was requested and stdout is a terminal.
    pub(crate) fn wants_summary(&self, is_terminal: bool) -> bool {
        let is_other = self.tableresults.is_some() || self.json || self.no_infomsgs || self.output.is_some();
        match self.format {
            Some(format) => matches!(format, FormatKind::Summary),
            None => is_terminal && !is_other,
        }
    }
}

fn set(text: &str) -> Result<SetChoice, String> {
    match (text, text.parse()) {
        ("last", _) => Ok(SetChoice::Last),
        ("all", _) => Ok(SetChoice::All),
        (_, Ok(position @ 1..)) => Ok(SetChoice::Positions(vec![position])),
        _ => Err("neither the number of a backup set, from 1, nor last or all".to_owned()),
    }
}

fn readers(text: &str) -> Result<check::Readers, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(check::Readers::Own),
        ("per-file", _) => Ok(check::Readers::PerFile),
        (_, Ok(count @ 1..=256)) => Ok(check::Readers::Count(count)),
        _ => Err("neither per-file nor a number from 1 to 256".to_owned()),
    }
}

fn batches(text: &str) -> Result<u16, String> {
    match (text, text.parse()) {
        ("auto" | "one", _) => Ok(1),
        (_, Ok(count @ 1..=1000)) => Ok(count),
        _ => Err("neither auto, one, nor a number from 1 to 1000".to_owned()),
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatKind {
    /// The verdict, causes first, and what to do, for people; may change
    Summary,
    /// DBCC's own lines in DBCC's order
    Text,
    /// One JSON object per line
    Json,
    /// CSV with the columns of WITH TABLERESULTS in SQL Server 2012 and later
    Tableresults,
}

/// Which constraints are checked.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Constraints {
    /// Those that are enabled and trusted
    Trusted,
    /// All, as WITH ALL_CONSTRAINTS
    All,
}

/// Columns of WITH TABLERESULTS, by the release that has them.
#[derive(Clone, Copy, ValueEnum)]
enum TableColumns {
    /// SQL Server 2012 and later
    #[value(name = "2012")]
    Newer,
    /// SQL Server 2005, 2008 and 2008 R2
    #[value(name = "2008")]
    Older,
}

impl From<TableColumns> for Columns {
    fn from(columns: TableColumns) -> Self {
        match columns {
            TableColumns::Newer => Self::Newer,
            TableColumns::Older => Self::Older,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ProgressKind {
    /// A bar if stderr is a terminal, a spinner while the length is unknown; otherwise nothing
    #[default]
    Auto,
    /// A bar
    Bar,
    /// Lines "phase percent current maximum seconds-left", in pages
    Lines,
    /// The same as JSON
    Json,
    /// Nothing
    None,
}

/// The id of a limit, known to completion scripts.
#[derive(Clone)]
pub(super) struct LimitId;

impl TypedValueParser for LimitId {
    type Value = &'static Limit;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let find =
            |id: &str| Limit::find(id).ok_or("no limit has this id; list them with 'mdfsck explain --all --limits'");
        TypedValueParser::parse_ref(&find, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(limits::ALL.iter().map(|limit| PossibleValue::new(limit.id).help(limit.reason))))
    }
}
