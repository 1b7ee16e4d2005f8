//! The options of `mdfsck watch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use findings::registry::limits::Limit;

use super::check::LimitId;
use super::{ListenerArguments, NamingArguments, OUTPUT, RESOURCES};
use crate::policy::{During, Policy};

const CHOICE: &str = "Choice of backups";
const ENGINE: &str = "Large backups";

#[derive(Args)]
pub(crate) struct WatchArguments {
    /// Folders with backups (subfolders are searched too), patterns, URLs, or a text file that lists data files in
    /// lines NAME PATH...
    ///
    /// Backups are recognized by content. Files whose names begin with a dot are ignored. A symbolic link to a file is
    /// followed; a symbolic link to a folder is not. Each line of the text file contains the name of a database and the
    /// paths of its data files, or of the folder that holds them. Put paths with blanks in double quotes. Data files
    /// are checked each time they have changed and then stayed unchanged for the time of --settle.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// History file for the queue of backups and for the results of the runs; created if missing
    ///
    /// Several watchers may share this file. Keep it on a local disk.
    #[arg(long, value_name = "FILE")]
    pub(crate) history: PathBuf,

    /// Check the backups that exist now, then exit (for use with a scheduler); if there are new files, this takes at
    /// least the time of --settle
    #[arg(long)]
    pub(crate) once: bool,

    /// How often to look for new backups
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, default_value = "60s")]
    pub(crate) every: Duration,

    /// Treat a file as complete once its size and modification time have not changed for this long; an object in object
    /// storage is always complete
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, default_value = "60s")]
    pub(crate) settle: Duration,

    /// Report a backup as unknown if its end or one of its stripes is still missing after this time
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, default_value = "24h")]
    pub(crate) patience: Duration,

    /// Start checks only between these times of day (local time of this machine); running checks continue
    #[arg(long, value_name = "HH:MM-HH:MM")]
    pub(crate) during: Option<During>,

    /// Backups to check: all, newest (only the newest full backup of each database), or sample:SPAN such as sample:7d
    ///
    /// With sample:7d, one backup of each database is checked every 7 days; mdfsck reads only the labels of the other
    /// backups.
    #[arg(long, value_name = "POLICY", default_value = "all", help_heading = CHOICE)]
    pub(crate) policy: Policy,

    /// Report backups that were taken without WITH CHECKSUM as unknown
    #[arg(long, help_heading = CHOICE)]
    pub(crate) require_checksum: bool,

    /// Maximum age of the newest full or differential backup of each database, such as 26h
    ///
    /// If this backup is older, bit 16 of the exit status is set and the event backup-missing is sent. Times in backups
    /// are read as local time of this machine.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = CHOICE)]
    pub(crate) max_age: Option<Duration>,

    #[command(flatten)]
    pub(crate) naming: NamingArguments,

    /// Promise that within this time, such as 14d, every page of each database is read and every index and heap is
    /// verified
    ///
    /// If the promise is broken, bit 16 of the exit status is set and the event promise-broken is sent. When the
    /// promise is kept again, the event promise-kept-again is sent.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = CHOICE)]
    pub(crate) within: Option<Duration>,

    /// Check N backups at the same time; threads and --memory are divided among the N checks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = RESOURCES)]
    pub(crate) jobs: u16,

    /// Maximum number of threads of all checks together (0 = one per processor)
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RESOURCES)]
    pub(crate) maxdop: u16,

    /// Limit memory of all checks together to SIZE, such as 2GB
    ///
    /// A backup that needs more than its share is checked alone.
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, help_heading = RESOURCES)]
    pub(crate) memory: Option<u64>,

    /// Keep what the checks have added up, in at most SIZE beside the history, so that a differential backup is proven by
    /// reading only what has changed since its full backup
    ///
    /// See --keep-parts of 'mdfsck check'. If the ledgers of several full backups need more than SIZE, the oldest are
    /// removed.
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, help_heading = RESOURCES)]
    pub(crate) keep_parts: Option<u64>,

    /// Read pages of earlier backups again that were last read longer ago than this, such as 7d, although they have not
    /// changed; needs --keep-parts
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, requires = "keep_parts")]
    pub(crate) reread: Option<Duration>,

    /// Folder for temporary files (default: the temporary folder of the system)
    #[arg(long, value_name = "DIR", help_heading = RESOURCES)]
    pub(crate) temp_dir: Option<PathBuf>,

    /// Limit reads of all checks together to SIZE per second, such as 200MB
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, help_heading = RESOURCES)]
    pub(crate) io_limit: Option<u64>,

    /// Run at low processor priority
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) nice: bool,

    /// Accept the limit ID, a reason why something is not verified: this limit then does not make a backup unknown;
    /// repeatable
    ///
    /// The history and the message about a backup show the ID of each limit, and 'mdfsck explain ID' explains it. The
    /// history still records accepted limits.
    #[arg(long, value_name = "ID", value_parser = LimitId, hide_possible_values = true, help_heading = CHOICE)]
    pub(crate) allow: Vec<&'static Limit>,

    /// Do not set bit 16 (incomplete) of the exit status for unknown backups; a broken promise still sets this bit
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) exit_zero_on_incomplete: bool,

    /// Print one JSON object per line
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// Print CSV
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT)]
    pub(crate) csv: bool,

    /// After each search and each check, write one HTML page of all databases, worst first, to FILE; the file is
    /// replaced atomically
    ///
    /// The page is the one that 'mdfsck history FILE html' writes. It loads nothing from a network and sends nothing.
    #[arg(long, value_name = "FILE.html", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) listener: ListenerArguments,

    #[command(flatten)]
    pub(crate) engine: EngineArguments,

    /// Write metrics of all databases to FILE for Prometheus; the file is replaced atomically
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) metrics: Option<PathBuf>,
}

/// The program that carries out the checks of large backups.
#[derive(Args, Clone, Default)]
pub(crate) struct EngineArguments {
    /// Let PROGRAM run the checks of large backups, for example on a cluster
    ///
    /// For each large backup, the watcher makes a plan, calls PROGRAM with the folder of the plan as the last argument,
    /// and then merges the results of the tasks. PROGRAM is started without a shell. It must run 'mdfsck task FOLDER
    /// ID' for each task that 'mdfsck plan --status FOLDER --missing' lists. If results of tasks are missing when
    /// PROGRAM has ended, the watcher tries the backup again later and runs only the missing tasks.
    #[arg(long, value_name = "PROGRAM", requires = "engine_dir", help_heading = ENGINE)]
    pub(crate) engine: Option<PathBuf>,

    /// An argument for PROGRAM, which precedes the folder of the plan; repeatable
    #[arg(long, value_name = "ARG", requires = "engine", allow_hyphen_values = true, help_heading = ENGINE)]
    pub(crate) engine_argument: Vec<OsString>,

    /// Folder for the plans; this folder and the backups must have the same paths on all machines that run tasks
    #[arg(long, value_name = "DIR", requires = "engine", help_heading = ENGINE)]
    pub(crate) engine_dir: Option<PathBuf>,

    /// Treat backups and data files of at least this size as large; a differential is counted together with its full
    /// backup
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, default_value = "1TB", help_heading = ENGINE)]
    pub(crate) engine_from: u64,

    /// Time limit of PROGRAM; when it expires, PROGRAM is stopped, and the backup is tried again later
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, default_value = "24h", help_heading = ENGINE)]
    pub(crate) engine_limit: Duration,
}
