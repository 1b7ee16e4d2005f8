//! The options of `mdfsck watch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use check::registry::limits::Limit;
use clap::Args;

use super::check::LimitId;
use super::{ListenerArguments, NamingArguments, OUTPUT, RESOURCES};
use crate::watch::policy::{During, Policy};

const CHOICE: &str = "Which backups";
const ENGINE: &str = "Large backups";

#[derive(Args)]
pub(crate) struct WatchArguments {
    /// Folders with backups (and their subfolders), patterns, URLs, or a text file with lines NAME PATH... for data files
    ///
    /// Backups are recognized by content. Files whose names begin with a dot are ignored. A symbolic link to a file is
    /// followed; one to a folder is not. A line of a text file names a database and its data files, or the folder that holds
    /// them; put paths with blanks in double quotes. Data files are checked whenever they have changed and then settled.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// The file that keeps the queue and records the runs; created if missing
    ///
    /// Several watchers may share it. Keep it on a local disk.
    #[arg(long, value_name = "FILE")]
    pub(crate) history: PathBuf,

    /// Check what is there and exit, for a scheduler; with new files this takes at least as long as --settle
    #[arg(long)]
    pub(crate) once: bool,

    /// How often to look for new backups
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, default_value = "60s")]
    pub(crate) every: Duration,

    /// A file counts as whole only after its size and time have not changed for this long; objects in object storage are whole at once
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, default_value = "60s")]
    pub(crate) settle: Duration,

    /// Report a backup as unknown if it is still not whole after this time: its end or one of its stripes is missing
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, default_value = "24h")]
    pub(crate) patience: Duration,

    /// Start checks only between these times of day (local time of this machine); checks already running go on
    #[arg(long, value_name = "HH:MM-HH:MM")]
    pub(crate) during: Option<During>,

    /// all, newest (only the newest full backup of each database), or sample:SPAN such as sample:7d
    ///
    /// With sample:7d, one backup of each database is checked every 7 days; for the others, only the labels are read.
    #[arg(long, value_name = "POLICY", default_value = "all", help_heading = CHOICE)]
    pub(crate) policy: Policy,

    /// Report backups that were taken without WITH CHECKSUM as unknown
    #[arg(long, help_heading = CHOICE)]
    pub(crate) require_checksum: bool,

    /// The newest full or differential backup of each database must not be older than this, such as 26h
    ///
    /// If one is older, bit 16 of the exit status is set, and the event is backup-missing. Times in backups are taken as
    /// local time of this machine.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = CHOICE)]
    pub(crate) max_age: Option<Duration>,

    #[command(flatten)]
    pub(crate) naming: NamingArguments,

    /// Every page of each database must have been read and every relation proven within this time, such as 14d
    ///
    /// If this is broken, bit 16 of the exit status is set, and the event is promise-broken; later, promise-kept-again.
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, help_heading = CHOICE)]
    pub(crate) within: Option<Duration>,

    /// Check N backups at once; threads and --memory are divided among them
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = RESOURCES)]
    pub(crate) jobs: u16,

    /// Maximum number of threads of all checks together (0 = one per processor)
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RESOURCES)]
    pub(crate) maxdop: u16,

    /// Limit memory of all checks together to SIZE, such as 2GB
    ///
    /// A backup that needs more than its share is checked alone.
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, help_heading = RESOURCES)]
    pub(crate) memory: Option<u64>,

    /// Folder for temporary files (default: the system's)
    #[arg(long, value_name = "DIR", help_heading = RESOURCES)]
    pub(crate) temp_dir: Option<PathBuf>,

    /// Limit reads of all checks together to SIZE per second, such as 200MB
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, help_heading = RESOURCES)]
    pub(crate) io_limit: Option<u64>,

    /// Run at low processor priority
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) nice: bool,

    /// Accept a limit: a backup counts as sound if nothing else was left unverified; repeatable
    ///
    /// ID as shown in the history or in the message about a backup; 'mdfsck explain ID' says what it means. The history still
    /// records what was not verified.
    #[arg(long, value_name = "ID", value_parser = LimitId, hide_possible_values = true, help_heading = CHOICE)]
    pub(crate) allow: Vec<&'static Limit>,

    /// Omit bit 16 (incomplete) from the exit status for backups that are unknown; not for a promise that is broken
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) exit_zero_on_incomplete: bool,

    /// Print one JSON object per line
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// Print CSV
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT)]
    pub(crate) csv: bool,

    /// Write all databases as one page to FILE, worst first, after each look and each check; the file is always replaced as a whole
    ///
    /// The page is that of 'mdfsck history FILE html', which loads and sends nothing.
    #[arg(long, value_name = "FILE.html", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) listener: ListenerArguments,

    #[command(flatten)]
    pub(crate) engine: EngineArguments,

    /// Write metrics of all databases to FILE for Prometheus; the file is always replaced as a whole
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) metrics: Option<PathBuf>,
}

/// The program that carries out the checks of large backups.
#[derive(Args, Clone, Default)]
pub(crate) struct EngineArguments {
    /// Let PROGRAM run the checks of large backups, for example on a cluster
    ///
    /// For each, the watcher makes a plan, calls PROGRAM with the folder of the plan as the last argument, and merges the
    /// results of the tasks. PROGRAM is started without a shell, and has to run the tasks that 'mdfsck plan --status FOLDER
    /// --missing' lists, with 'mdfsck task FOLDER ID'. If parts are missing afterwards, the backup is tried again later, and
    /// only the missing tasks are run.
    #[arg(long, value_name = "PROGRAM", requires = "engine_dir", help_heading = ENGINE)]
    pub(crate) engine: Option<PathBuf>,

    /// An argument for that program, before the folder of the plan; repeatable
    #[arg(long, value_name = "ARG", requires = "engine", allow_hyphen_values = true, help_heading = ENGINE)]
    pub(crate) engine_argument: Vec<OsString>,

    /// Folder for the plans; all machines that run tasks must see it under this path, and the backups under theirs
    #[arg(long, value_name = "DIR", requires = "engine", help_heading = ENGINE)]
    pub(crate) engine_dir: Option<PathBuf>,

    /// Backups and data files from this size on are large; a differential counts together with its full backup
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, default_value = "1TB", help_heading = ENGINE)]
    pub(crate) engine_from: u64,

    /// End that program, and try again later, if it takes longer than this
    #[arg(long, value_name = "SPAN", value_parser = history::time::span, default_value = "24h", help_heading = ENGINE)]
    pub(crate) engine_limit: Duration,
}
