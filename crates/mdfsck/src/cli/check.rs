//! The options of `mdfsck check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, ValueEnum};
use findings::registry::limits::{self, Limit};
use jobs::request::{RangeBytes, Weight};
use report::Columns;
use source::backup::SetChoice;

use super::{
    CarveArguments, ListenerArguments, OUTPUT, RESOURCES, RecoveryArguments, SnapshotArguments, StopArguments,
};

/// The smallest `--range`, in bytes: for smaller ranges the overhead is larger than the benefit.
const LEAST_RANGE_BYTES: u64 = 1 << 20;
/// The largest `--range`, in bytes: larger ranges would hardly divide a database.
const MOST_RANGE_BYTES: u64 = 1 << 40;
#[derive(Args, Clone)]
pub(crate) struct CheckArguments {
    /// Data files with their logs, backups, folders, or patterns such as '*.bak'
    ///
    /// The order of the files does not matter: mdfsck recognizes each file by its content. The files of one database
    /// are checked together. They are either data files with their logs, or a full backup with all its stripes, a
    /// differential and the log backups that follow, combined as by RESTORE. If the files belong to several databases,
    /// mdfsck checks each database and then prints a table of all databases. If a folder has several backups of one
    /// database, mdfsck checks the newest full backup with its newest differential, and names the backups that it does
    /// not check. Subfolders are searched only with -r. For '-', mdfsck copies standard input to a temporary file and
    /// reads a backup from this file.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Also search the subfolders of each folder
    ///
    /// Searches at most eight levels of subfolders. Does not follow symbolic links to folders.
    #[arg(long, short = 'r')]
    pub(crate) recursive: bool,

    #[command(flatten)]
    pub(crate) carve: CarveArguments,

    #[command(flatten)]
    pub(crate) scope: ScopeArguments,

    #[command(flatten)]
    pub(crate) recovery: RecoveryArguments,

    #[command(flatten)]
    pub(crate) stop: StopArguments,

    /// Estimate the resources that the check needs, without checking
    ///
    /// Reports the memory and the temporary file space that the check needs, and the bytes that it reads. WITH
    /// ESTIMATEONLY reports the tempdb space that CHECKDB needs. With --window, also reports how many windows are
    /// needed to read the whole database, if --history has the speed of earlier windows; with --keep-parts too, how many
    /// tables are closed, and how many windows the others need.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["catalog", "errorlog_line", "log", "html"])]
    pub(crate) estimate_only: bool,

    /// Check N databases at the same time (with 1: one after another)
    ///
    /// Threads and --memory are divided among the N checks. A database that needs more memory than its share waits
    /// until it can be checked alone. N does not change the output or its order.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = RESOURCES)]
    pub(crate) databases: u16,

    /// Maximum size of the temporary copy of a backup read from standard input
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, default_value = "100GB", help_heading = RESOURCES)]
    pub(crate) spool_limit: u64,

    /// Check the tables in N passes over the files
    ///
    /// 'one' and 'auto' read every page once, which is nearly always best. With N, each pass checks one Nth of the
    /// tables and reads their pages. Some pages are then read twice, but temporary files need only 1/N of the space.
    /// DBCC CHECKDB, in contrast, works in several batches unless trace flag 2562 is set.
    #[arg(long, value_name = "auto|one|N", value_parser = batches, default_value = "auto", help_heading = RESOURCES)]
    pub(crate) batches: u16,

    /// How long a damaged page must stay the same if its file is written to during the check [default: 2s]
    ///
    /// A page may be read while it is being written. If a file has changed during the check, the damaged pages of this
    /// file are read again, and once more after this time. Only a page that contradicts itself each time, and has not
    /// changed, is reported as damaged.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = RESOURCES)]
    pub(crate) settle_page: Option<Duration>,

    #[command(flatten)]
    pub(crate) run: RunArguments,

    #[command(flatten)]
    pub(crate) windows: WindowArguments,

    #[command(flatten)]
    pub(crate) snapshot: SnapshotArguments,

    /// Keep what this check of backups has added up, in at most SIZE beside the history, so that checks of later
    /// backups read only what has changed since; needs --history
    ///
    /// A check of a full backup keeps the sums of each 256 KB of the database in the folder FILE.parts beside the history
    /// FILE. This needs less than 1 % of the size of the database. A later check of the same full backup together with
    /// a differential backup or log backups then reads only the ranges that differ: their bytes, their allocation or
    /// their definition in the catalog. Its report is the report of a check that reads all pages, and says what was not
    /// read, and since when. If something does not fit, all pages are read, and one line says why. If the ledgers of
    /// several full backups need more than SIZE, the oldest are removed.
    ///
    /// With --window, each window checks the newest backups, or tonight's storage snapshot of the data files and the log,
    /// whatever has changed, and closes one table after another.
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, help_heading = OUTPUT, requires = "history")]
    pub(crate) keep_parts: Option<u64>,

    /// Read pages again that were last read longer ago than this, such as 7d, although they have not changed, to find
    /// pages that went bad; needs --history
    ///
    /// A check that reads only what has changed since earlier checks (see --keep-parts) cannot notice that other pages
    /// went bad. With this option, no page that it relies on was read longer ago. A check with --window reads such pages
    /// again by itself, so that --within is kept.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = OUTPUT, requires = "history")]
    #[arg(conflicts_with_all = ["window", "estimate_only"])]
    pub(crate) reread: Option<Duration>,

    /// For tests: the number of pages in a range, a power of two.
    #[arg(long, hide = true, requires = "keep_parts", value_parser = part_pages)]
    pub(crate) part_pages: Option<u32>,

    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

/// The options that spread a check over several time windows.
#[derive(Args, Clone, Default)]
pub(crate) struct WindowArguments {
    /// Limit the check to this time, such as 3h, and continue the check in the next run; needs --history
    ///
    /// Reads one range of the files after another until the time has elapsed: first the ranges with new findings, then
    /// the ranges that were never read, then the ranges that were read longest ago. The results are kept in the folder
    /// FILE.parts beside the history FILE. The next run continues where this run ended if it checks a backup, a
    /// snapshot (--image), or unchanged files of a database that was shut down cleanly. Once all ranges have been read,
    /// the report equals the report of a single complete check. For any other database, each run begins a new image,
    /// which is the state of the database at one point in time. Ctrl+C ends the run after the current range; on
    /// Windows, it ends the run immediately, and the results of the finished ranges are kept. If a run checks several
    /// databases, they share the time. With --keep-parts, each run checks the newest backups, or the newest storage snapshot
    /// of the files, although they have changed, and closes one table after another: it compares the links, keys and rows of all tables of which it knows every page.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = WINDOWS)]
    #[arg(conflicts_with_all = ["alloc", "catalog", "batches"])]
    pub(crate) window: Option<Duration>,

    /// Promise that within this time, such as 14d, every page is read and every index and heap is verified; needs
    /// --history
    ///
    /// Sets bit 16 of the exit status if the promise is broken, or if it cannot be kept at the current speed.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = WINDOWS)]
    #[arg(conflicts_with_all = ["table", "filegroup", "alloc", "catalog", "estimate_only"])]
    pub(crate) within: Option<Duration>,

    /// Size of the ranges that --window reads; if a run is killed, the next run reads the unfinished range again
    #[arg(long, value_name = "SIZE", value_parser = range, default_value = "1GB", help_heading = WINDOWS, requires = "window")]
    pub(crate) range: RangeBytes,

    /// Name of the storage snapshot to check; later windows then continue the check even if the database was not shut
    /// down cleanly
    ///
    /// Use this option only for files that no program changes, such as a mounted snapshot of a LUN. The check starts
    /// again from the beginning if NAME differs from the previous run, or if the size, times or header pages of a file
    /// have changed.
    #[arg(long, value_name = "NAME", value_parser = image_name, help_heading = WINDOWS, requires = "window")]
    pub(crate) image: Option<String>,

    /// Let the age of a table or database count N times, such as dbo.Orders=3, when windows decide what is next;
    /// repeatable
    ///
    /// A name with a schema is that of a table: with --keep-parts, the table with the oldest proof is next, and each day
    /// of a table of weight 3 counts as three. A name without a schema is that of a database: several databases share the
    /// window, and a database of weight 3 gets three times the time of others.
    #[arg(long, value_name = "NAME=N", value_parser = Weight::parse, help_heading = WINDOWS, requires = "window")]
    pub(crate) weight: Vec<Weight>,

    /// For tests: the maximum number of ranges that a window reads.
    #[arg(long, hide = true, requires = "window")]
    pub(crate) most_ranges: Option<u64>,
}

pub(super) fn part_pages(text: &str) -> Result<u32, String> {
    let pages = text.parse().ok().filter(|pages: &u32| pages.is_power_of_two() && (8..=128).contains(pages));
    pages.ok_or_else(|| "expected 8, 16, 32, 64 or 128".to_owned())
}

fn image_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the name must not be empty".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn range(text: &str) -> Result<RangeBytes, String> {
    match jobs::size::bytes(text)? {
        bytes @ LEAST_RANGE_BYTES..=MOST_RANGE_BYTES => Ok(RangeBytes(bytes)),
        _ => Err("a range must be from 1MB to 1TB".to_owned()),
    }
}

/// The options that choose what is checked, and how deeply.
#[derive(Args, Clone, Default)]
pub(crate) struct ScopeArguments {
    /// Backup set to check: a number N as in RESTORE ... WITH FILE = N (repeatable), last, or all
    ///
    /// 'last' checks the last backup set in each file. 'all' checks each full and differential backup in all files
    /// separately. Without --set, mdfsck checks the newest backup of each database in a folder. If a file is named on
    /// the command line, mdfsck checks the first full backup in this file, together with the newest differential based
    /// on it in the other files.
    #[arg(long, value_name = "N|last|all", value_parser = set, help_heading = SCOPE)]
    pub(crate) set: Vec<SetChoice>,

    /// Check only pages, record headers and allocation
    ///
    /// Like WITH PHYSICAL_ONLY, omits the checks of keys, the checks of links between index pages, and the list of
    /// objects.
    #[arg(long, help_heading = SCOPE)]
    pub(crate) physical_only: bool,

    /// Skip the logical checks of nonclustered indexes on user tables
    #[arg(long, help_heading = SCOPE)]
    pub(crate) noindex: bool,

    /// Check only this table or indexed view, as CHECKTABLE does; repeatable
    ///
    /// A name without a schema is looked up in schema dbo first, then in all schemas. Names in brackets and object IDs
    /// are accepted too.
    #[arg(long, value_name = "[SCHEMA.]NAME", help_heading = SCOPE, conflicts_with_all = ["filegroup", "alloc", "catalog"])]
    pub(crate) table: Vec<String>,

    /// Check only the objects in this filegroup, as CHECKFILEGROUP does
    #[arg(long, value_name = "NAME|ID", help_heading = SCOPE, conflicts_with_all = ["alloc", "catalog"])]
    pub(crate) filegroup: Option<String>,

    /// Check and list only the allocation of pages and extents, as CHECKALLOC does
    #[arg(long, help_heading = SCOPE)]
    pub(crate) alloc: bool,

    /// Check only the consistency of the catalog, as CHECKCATALOG does
    ///
    /// Checks references between the system base tables. Does not check pages or Service Broker.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["alloc", "physical_only", "noindex"])]
    pub(crate) catalog: bool,

    /// Check that column values are valid for their types (the default)
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["no_data_purity", "physical_only"])]
    pub(crate) data_purity: bool,

    /// Do not check that column values are valid for their types
    #[arg(long, help_heading = SCOPE)]
    pub(crate) no_data_purity: bool,

    /// Check XML indexes against their tables
    ///
    /// This is only a part of WITH EXTENDED_LOGICAL_CHECKS: indexed views, spatial indexes and the contents of XML
    /// indexes are listed as not verified.
    #[arg(long, help_heading = SCOPE)]
    pub(crate) extended_logical_checks: bool,

    /// Also check trusted CHECK and FOREIGN KEY constraints, as CHECKCONSTRAINTS does; with =all, also check untrusted
    /// and disabled constraints
    ///
    /// CHECKDB does not check constraints. Disabled and untrusted constraints guarantee nothing about existing rows, so
    /// they are checked only with =all, as WITH ALL_CONSTRAINTS does.
    #[arg(long, value_enum, value_name = "all", num_args = 0..=1, require_equals = true, default_missing_value = "trusted")]
    #[arg(help_heading = SCOPE, conflicts_with_all = ["physical_only", "alloc", "catalog"])]
    pub(crate) constraints: Option<Constraints>,

    /// Report the current identity value of each table and the highest value in its rows, as CHECKIDENT with NORESEED
    /// does
    ///
    /// CHECKDB does not report these values. A current value below the highest value in the rows is reported but is not
    /// an error, because SET IDENTITY_INSERT and reseeding can cause it.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["physical_only", "alloc", "catalog"])]
    pub(crate) identity: bool,
}

/// The options for the resources and the progress display of a run.
#[derive(Args, Clone, Default)]
pub(crate) struct RunArguments {
    /// Maximum number of threads (0 = one per processor)
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RESOURCES)]
    pub(crate) maxdop: u16,

    /// Number of dedicated reader threads, or per-file for one reader thread per file
    ///
    /// By default each thread reads the pages that it checks, and asks the system to prefetch the next pages. This is
    /// fastest for cached data and for a single disk. Use per-file if each file is on its own disk, as trace flag 2549
    /// tells CHECKDB. Use N for storage that needs many outstanding reads. Each reader needs one megabyte of memory and
    /// adds context switches.
    #[arg(long, value_name = "N|per-file", value_parser = readers, default_value = "auto", help_heading = RESOURCES)]
    pub(crate) readers: findings::Readers,

    /// Bypass the system's file cache
    ///
    /// Use this option for a database that is larger than memory: the check then does not evict the cached data of
    /// other programs.
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) direct: bool,

    /// Limit reads to SIZE per second, such as 200MB
    ///
    /// Use this option on shared storage. The check takes correspondingly longer.
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, help_heading = RESOURCES)]
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
    /// Report the cost of each phase on stderr: elapsed time, processor time, reads, waits, temporary files
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) stats: bool,

    /// Result format (default: summary if the results go to a terminal, otherwise text)
    ///
    /// With --output, --no-infomsgs or --estimate-only the default is text.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = OUTPUT)]
    pub(super) format: Option<FormatKind>,

    /// The same as --format json
    #[arg(long, conflicts_with_all = ["format", "tableresults"], help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// The same as --format tableresults; =2008 selects the columns of SQL Server 2005 to 2008 R2
    #[arg(long, value_enum, value_name = "2008", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "2012", conflicts_with = "format", help_heading = OUTPUT)]
    pub(super) tableresults: Option<TableColumns>,

    /// Leave out informational messages
    ///
    /// Findings and nonzero error counts are still printed; for a sound database, standard output is empty. The list of
    /// parts that could not be verified goes to standard error; with --format text it follows the findings instead. The
    /// lines that name the chosen backups and the applied log go to standard error.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) no_infomsgs: bool,

    /// Write the results to FILE instead of stdout; '-' is stdout
    ///
    /// An existing file is replaced only when all results are on disk, so a failed or killed run leaves the old file
    /// unchanged. A SQL Server file is never replaced. mdfsck writes to pipes and devices directly.
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
    /// The level of the message is 'error' if corruption was found, 'warning' if something could not be read or
    /// verified, and otherwise 'information'. If this machine has no such log, mdfsck warns on stderr; the exit status
    /// does not change.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) log: bool,

    /// Show at most N findings, but count all findings; a summary shows 20 unless N is given
    #[arg(long, value_name = "N", help_heading = OUTPUT)]
    pub(crate) max_findings: Option<usize>,

    /// Accept the limit ID, a reason why something is not verified: this limit then does not set bit 16 (incomplete) of
    /// the exit status; repeatable
    ///
    /// The list of parts that could not be verified shows the ID of each limit, and 'mdfsck explain ID' explains it.
    /// The report still lists an accepted limit, but marks it as allowed.
    #[arg(long, value_name = "ID", value_parser = LimitId, hide_possible_values = true, help_heading = OUTPUT)]
    pub(crate) allow: Vec<&'static Limit>,

    /// Leave bit 16 (incomplete) out of the exit status: 16 becomes 0, and 17 becomes 1
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) exit_zero_on_incomplete: bool,

    /// Record the run in the history FILE, which 'mdfsck history' shows; FILE is created if it is missing
    ///
    /// Records which pages were read, which indexes and heaps were verified, the findings, and which earlier findings
    /// are gone. If the history cannot be used, mdfsck still runs the check, but warns on stderr and sets bit 4 or 8 of
    /// the exit status. Keep FILE on a local disk.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) history: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) naming: NamingArguments,

    /// Also write the report as one HTML page to FILE: findings, a map of the files, charts of the run
    ///
    /// The page shows one database, with names of its objects and with bytes of damaged rows. It loads nothing from a
    /// network and sends nothing. An existing file is replaced as with --output. If the page cannot be written, mdfsck
    /// warns on stderr and sets bit 4 of the exit status; the results are still printed.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) listener: ListenerArguments,
}

pub(super) const SCOPE: &str = "Scope and depth";
const WINDOWS: &str = "Time windows";

/// The options that identify a database in a history.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NamingArguments {
    /// Server name under which data files are recorded in the history (default: this machine); a backup contains the
    /// name of its server
    #[arg(long, value_name = "NAME", requires = "history", help_heading = OUTPUT)]
    pub(crate) server: Option<String>,

    /// Treat all databases with the same family GUID, such as replicas of an availability group, as one database in the
    /// history
    ///
    /// Without this option, a database that was restored on another server or under another name counts as a different
    /// database.
    #[arg(long, requires = "history", help_heading = OUTPUT)]
    pub(crate) replicas: bool,
}

fn set(text: &str) -> Result<SetChoice, String> {
    match (text, text.parse()) {
        ("last", _) => Ok(SetChoice::Last),
        ("all", _) => Ok(SetChoice::All),
        (_, Ok(position @ 1..)) => Ok(SetChoice::Positions(vec![position])),
        _ => Err("expected the number of a backup set (1 or higher), last or all".to_owned()),
    }
}

fn readers(text: &str) -> Result<findings::Readers, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(findings::Readers::Own),
        ("per-file", _) => Ok(findings::Readers::PerFile),
        (_, Ok(count @ 1..=256)) => Ok(findings::Readers::Count(count)),
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
pub(super) enum FormatKind {
    /// For people: the verdict, the findings (causes before their effects) and what to do; the layout may change
    Summary,
    /// The lines that DBCC prints, in DBCC's order
    Text,
    /// One JSON object per line
    Json,
    /// CSV with the columns of WITH TABLERESULTS in SQL Server 2012 and later
    Tableresults,
}

/// Which constraints are checked.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Constraints {
    /// Enabled and trusted constraints
    Trusted,
    /// All constraints, as WITH ALL_CONSTRAINTS
    All,
}

/// The sets of columns of WITH TABLERESULTS. The releases of SQL Server have different columns.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum TableColumns {
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
    /// A bar if stderr is a terminal, or a spinner while the number of pages is unknown; otherwise nothing
    #[default]
    Auto,
    /// Always a bar
    Bar,
    /// One line per update: phase, percent, pages done, number of pages, seconds left
    Lines,
    /// The same values as JSON, one object per line
    Json,
    /// No progress display
    None,
}

/// Parses the ID of a limit. Completion scripts list all IDs.
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
