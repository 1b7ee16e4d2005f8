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

/// The smallest `--range`, in bytes: for smaller ranges the overhead is larger than the benefit.
const LEAST_RANGE_BYTES: u64 = 1 << 20;
/// The largest `--range`, in bytes: larger ranges would hardly divide a database.
const MOST_RANGE_BYTES: u64 = 1 << 40;
/// The default of `--spool-limit`.
const SPOOL_LIMIT_BYTES: u64 = 100 << 30;

#[derive(Args, Clone)]
pub(crate) struct CheckArguments {
    /// Data files with their logs, backups, folders that hold them, or patterns such as '*.bak'
    ///
    /// Files are recognized by content, in any order. The files of one database are checked together: data files with
    /// their logs; or a full backup with all its stripes, a differential and the log backups that follow, as RESTORE
    /// would combine them. If there are several databases, each is checked, and a table of all follows. If a folder has
    /// several backups of one database, the newest full backup is checked with its newest differential; the others are
    /// named. Subfolders are searched only with -r. '-' reads a backup from standard input, after copying it to a
    /// temporary file.
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
    /// Reports memory, temporary file space and bytes to read, as WITH ESTIMATEONLY reports tempdb space. With --window
    /// and a --history that has the speed of earlier windows, also reports how many windows a full cycle takes.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["catalog", "errorlog_line", "log", "html"])]
    pub(crate) estimate_only: bool,

    /// Check N databases at the same time (with 1: one after another)
    ///
    /// Threads and --memory are divided among them; a database that needs more memory than its share waits until it can
    /// be checked alone. N does not change the output or its order.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = RESOURCES)]
    pub(crate) databases: u16,

    /// Maximum size of the temporary copy of a backup read from standard input
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, default_value = "100GB", help_heading = RESOURCES)]
    pub(crate) spool_limit: u64,

    /// Check the tables in N passes over the files
    ///
    /// 'one' and 'auto' read every page once, which is nearly always best. With N, each pass reads the pages of its
    /// share of the tables, some pages are read twice, and temporary files need 1/N of the space. Trace flag 2562 does
    /// the opposite for DBCC CHECKDB.
    #[arg(long, value_name = "auto|one|N", value_parser = batches, default_value = "auto", help_heading = RESOURCES)]
    pub(crate) batches: u16,

    #[command(flatten)]
    pub(crate) run: RunArguments,

    #[command(flatten)]
    pub(crate) windows: WindowArguments,

    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

/// The options that spread a check over several windows of time.
#[derive(Args, Clone, Default)]
pub(crate) struct WindowArguments {
    /// Check for at most this long, such as 3h, and continue in the next run; needs --history
    ///
    /// Reads as many ranges of the files as fit into the window: first the ranges with new findings, then those never
    /// read, then those read longest ago. The results are kept beside the history, in FILE.parts. For a backup, for
    /// unchanged files that were shut down cleanly, and for a snapshot (--image), the next run continues where this run
    /// ended; once everything has been read, the report equals that of a single check. For any other database, each run
    /// begins a new image (the database at one point in time). Ctrl+C ends the window after the current range; on
    /// Windows it ends the run immediately and keeps the finished ranges. Several databases share the window.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = WINDOWS)]
    #[arg(conflicts_with_all = ["table", "filegroup", "alloc", "catalog", "batches"])]
    pub(crate) window: Option<Duration>,

    /// Promise to read every page and to prove every relation within this time, such as 14d; needs --history
    ///
    /// Bit 16 of the exit status is set if the promise is broken, or cannot be kept at the present speed.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = WINDOWS)]
    #[arg(conflicts_with_all = ["table", "filegroup", "alloc", "catalog", "estimate_only"])]
    pub(crate) within: Option<Duration>,

    /// Size of the ranges that a window reads; if a run is killed, the next run repeats the unfinished range
    #[arg(long, value_name = "SIZE", value_parser = range, default_value = "1GB", help_heading = WINDOWS, requires = "window")]
    pub(crate) range: RangeBytes,

    /// Name the storage snapshot to be checked, so that later windows continue its check although it was not shut down
    /// cleanly
    ///
    /// Only for files to which nothing writes, such as a mounted snapshot of a LUN. A different name begins a new
    /// image, and so does a change of the size, times or header pages of a file.
    #[arg(long, value_name = "NAME", value_parser = image_name, help_heading = WINDOWS, requires = "window")]
    pub(crate) image: Option<String>,

    /// For tests: the maximum number of ranges that a window reads.
    #[arg(long, hide = true, requires = "window")]
    pub(crate) most_ranges: Option<u64>,

    /// The start of the run, from which the time of a window is counted.
    #[arg(skip)]
    pub(crate) begun: Option<Instant>,
}

impl WindowArguments {
    /// Whether `--window` or `--within` was given.
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

/// The options that choose what is checked, and how deeply.
#[derive(Args, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ScopeArguments {
    /// Backup set to check: a number, as in FILE = N of RESTORE (repeatable), last, or all
    ///
    /// 'last' checks the last set of each file; 'all' checks each full and differential backup in all files separately.
    /// By default, in a folder the newest backup of each database is checked; in a file that is named, the first full
    /// backup is checked, with the newest differential based on it in the other files.
    #[arg(long, value_name = "N|last|all", value_parser = set, help_heading = SCOPE)]
    #[serde(skip)]
    pub(crate) set: Vec<SetChoice>,

    /// Check only pages, record headers and allocation
    ///
    /// As WITH PHYSICAL_ONLY: omits the checks of keys and of links between index pages, and the list of objects.
    #[arg(long, help_heading = SCOPE)]
    pub(crate) physical_only: bool,

    /// Skip the logical checks of nonclustered indexes on user tables
    #[arg(long, help_heading = SCOPE)]
    pub(crate) noindex: bool,

    /// Check only this table or indexed view, as CHECKTABLE; repeatable
    ///
    /// A name without a schema is looked up in dbo, then in all schemas. Brackets and object IDs are accepted.
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
    /// Checks references between the system base tables. Does not check pages or Service Broker.
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
    /// Supports part of WITH EXTENDED_LOGICAL_CHECKS: indexed views, spatial indexes and the contents of XML indexes
    /// are listed as not verified.
    #[arg(long, help_heading = SCOPE)]
    pub(crate) extended_logical_checks: bool,

    /// Also check trusted CHECK and FOREIGN KEY constraints (=all includes untrusted and disabled ones), as
    /// CHECKCONSTRAINTS does; CHECKDB does not
    ///
    /// Disabled and untrusted constraints guarantee nothing about existing rows. They are checked only with =all, as
    /// WITH ALL_CONSTRAINTS does.
    #[arg(long, value_enum, value_name = "all", num_args = 0..=1, require_equals = true, default_missing_value = "trusted")]
    #[arg(help_heading = SCOPE, conflicts_with_all = ["physical_only", "alloc", "catalog"])]
    pub(crate) constraints: Option<Constraints>,

    /// Report current and highest identity values, as CHECKIDENT with NORESEED does; CHECKDB does not
    ///
    /// A current value below the highest row value is reported but is not an error: SET IDENTITY_INSERT and reseeding can
    /// cause it.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["physical_only", "alloc", "catalog"])]
    pub(crate) identity: bool,
}

/// The options for the resources and the progress display of a run.
#[derive(Args, Clone, Default)]
pub(crate) struct RunArguments {
    /// Maximum number of threads (0 = one per processor)
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RESOURCES)]
    pub(crate) maxdop: u16,

    /// Dedicated reader threads: a number, or one per file (per-file)
    ///
    /// By default each thread reads the pages that it checks and asks the system to prefetch the next ones; this is
    /// fastest for cached data or a single disk. Use per-file when each file has its own disk, as with trace flag 2549,
    /// and N for storage that needs many outstanding reads. Each reader needs one megabyte of memory and adds context
    /// switches.
    #[arg(long, value_name = "N|per-file", value_parser = readers, default_value = "auto", help_heading = RESOURCES)]
    pub(crate) readers: check::Readers,

    /// Bypass the system's file cache
    ///
    /// For a database larger than memory: the check then does not evict cached data of other programs.
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

/// The options for the content, format and destination of the output.
#[derive(Args, Clone, Default)]
pub(crate) struct ResultArguments {
    /// Report the cost of each phase on stderr: time, processor time, reads, waits, temporary files
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
    /// Findings and nonzero error counts remain; for a sound database nothing goes to standard output. The list of
    /// unverified parts goes to standard error, or with --format text follows the findings. The lines about the chosen
    /// backups and the applied log go to standard error.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) no_infomsgs: bool,

    /// Write the results to FILE instead of stdout ('-')
    ///
    /// An existing file is replaced only when all results are on disk, so a failed or killed run leaves it unchanged. A
    /// SQL Server file is never replaced. mdfsck writes to pipes and devices directly.
    #[arg(long, short, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,

    /// Append message 8957, the line that DBCC writes to the ERRORLOG, to FILE; '-' is stderr
    ///
    /// The line contains the time in UTC, the user who ran the check, the number of errors and the elapsed time.
    /// Because the line differs on every run, it is not part of the results.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) errorlog_line: Option<PathBuf>,

    /// Send message 8957 to syslog, or to the Windows event log
    ///
    /// Its level is error if corruption was found, warning if something could not be read or verified, otherwise
    /// information. If the system has no such log, mdfsck warns on stderr; the exit status does not change.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) log: bool,

    /// Show at most N findings; all are counted (a summary shows 20 unless N is given)
    #[arg(long, value_name = "N", help_heading = OUTPUT)]
    pub(crate) max_findings: Option<usize>,

    /// Accept a limit: it does not set bit 16 (incomplete) of the exit status; repeatable
    ///
    /// The list of unverified parts shows the ID of each limit; 'mdfsck explain ID' explains the limit. The report
    /// still lists it, marked as allowed.
    #[arg(long, value_name = "ID", value_parser = LimitId, hide_possible_values = true, help_heading = OUTPUT)]
    pub(crate) allow: Vec<&'static Limit>,

    /// Leave bit 16 (incomplete) out of the exit status: 16 becomes 0, and 17 becomes 1
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) exit_zero_on_incomplete: bool,

    /// Record the run in the history FILE, for 'mdfsck history'; created if missing
    ///
    /// Records the pages read, the relations proven, the findings, and which earlier findings are gone. If the history
    /// cannot be used, mdfsck warns on stderr and sets bit 4 or 8 of the exit status; the check still runs. Keep the
    /// file on a local disk.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) history: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) naming: NamingArguments,

    /// Also write the report as one HTML page to FILE: findings, a map of the files, charts of the run
    ///
    /// The page holds one database. It loads nothing from a network and sends nothing; it shows names, and bytes of
    /// damaged rows. An existing file is replaced as with --output. If the page cannot be written, mdfsck warns on
    /// stderr and sets bit 4 of the exit status; the results are still printed.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) listener: ListenerArguments,

    /// The backup in the queue of `mdfsck watch` that this run checks.
    #[arg(skip)]
    pub(crate) watched: Option<Arc<Mark>>,
}

pub(super) const SCOPE: &str = "Scope and depth";
const WINDOWS: &str = "Windows of time";

/// The options that identify a database in a history.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NamingArguments {
    /// Server name of the data files in the history (default: this machine); backups contain their server's name
    #[arg(long, value_name = "NAME", requires = "history", help_heading = OUTPUT)]
    pub(crate) server: Option<String>,

    /// Treat all databases with one family GUID, such as replicas of an availability group, as one database in the
    /// history
    ///
    /// Otherwise a database that was restored on another server or under another name counts as a different database.
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

    /// Whether the results are only findings and their counts, as scripts expect. DBCC has no lines for unverified
    /// parts.
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
        _ => Err("expected the number of a backup set (1 or higher), last or all".to_owned()),
    }
}

fn readers(text: &str) -> Result<check::Readers, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(check::Readers::Own),
        ("per-file", _) => Ok(check::Readers::PerFile),
        (_, Ok(count @ 1..=256)) => Ok(check::Readers::Count(count)),
        _ => Err("expected per-file or a number from 1 to 256".to_owned()),
    }
}

fn batches(text: &str) -> Result<u16, String> {
    match (text, text.parse()) {
        ("auto" | "one", _) => Ok(1),
        (_, Ok(count @ 1..=1000)) => Ok(count),
        _ => Err("expected auto, one, or a number from 1 to 1000".to_owned()),
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatKind {
    /// For people: the verdict, the findings, causes first, and what to do; the format may change
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
    /// Enabled and trusted constraints
    Trusted,
    /// All constraints, as WITH ALL_CONSTRAINTS
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
    /// If stderr is a terminal, a bar, or a spinner while the length is unknown; otherwise nothing
    #[default]
    Auto,
    /// A bar
    Bar,
    /// Lines "phase percent current maximum seconds-left", in pages
    Lines,
    /// The same values as JSON
    Json,
    /// Nothing
    None,
}

/// The ID of a limit; completion scripts list the IDs.
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
            |id: &str| Limit::find(id).ok_or("no limit has this ID; 'mdfsck explain --all --limits' lists all limits");
        TypedValueParser::parse_ref(&find, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(limits::ALL.iter().map(|limit| PossibleValue::new(limit.id).help(limit.reason))))
    }
}
