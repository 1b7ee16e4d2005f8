//! What a run of a check is asked to do. The command line, plans and watchers make a [`Request`]; the modules that carry
//! out a check know nothing else about their caller.

mod moment;
mod results;
mod weights;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use findings::Readers;
use history::Originals;
use recovery::Stop;
use serde::{Deserialize, Serialize};
use source::backup::{SetChoice, Until};

use crate::failure::Failure;

pub use moment::{StopMoment, stop_moment};
pub use results::{FormatChoice, ListenerOptions, NamingOptions, ResultOptions, Watch};
pub use weights::{Weight, Weights};

/// The default of `--spool-limit`.
const SPOOL_LIMIT_BYTES: u64 = 100 << 30;

/// A request to check databases.
#[derive(Clone)]
pub struct Request {
    /// Data files with their logs, backups, folders, patterns, or `-` for standard input.
    pub paths: Vec<PathBuf>,
    /// Whether subfolders are searched too.
    pub recursive: bool,
    /// Whether the paths are raw bytes, in which pages are found by their headers.
    pub carve: bool,
    /// What is checked, and how deeply.
    pub scope: ScopeOptions,
    /// Whether the log is used, and the resources of recovery and of the check.
    pub recovery: RecoveryOptions,
    /// Where the restore of backups stops.
    pub stop: StopOptions,
    /// Whether to estimate the resources that the check needs, without a check.
    pub estimate_only: bool,
    /// The number of databases that are checked at the same time.
    pub databases: u16,
    /// The maximum size, in bytes, of the temporary copy of a backup from standard input.
    pub spool_limit: u64,
    /// The number of passes over the files.
    pub batches: u16,
    /// The most bytes of the ledgers beside the history; `None` if the parts of the check are not kept.
    pub keep_parts: Option<u64>,
    /// Pages that were last read longer ago than this are read again, although they have not changed.
    pub reread: Option<Duration>,
    /// Ends the check without a report if it cannot be made by change, and puts the reason here.
    pub only_by_change: Option<Arc<Mutex<Option<String>>>>,
    /// For tests: the number of pages in a range whose parts are kept.
    pub part_pages: Option<u32>,
    /// How long a damaged page must stay the same if its file changes during the check; `None` for the default.
    pub settle_page: Option<Duration>,
    /// Threads, reads and the progress display.
    pub run: RunOptions,
    /// The windows of time over which the check is spread.
    pub windows: WindowOptions,
    /// The program that makes a snapshot.
    pub snapshot: SnapshotOptions,
    /// The format and the destinations of the results.
    pub results: ResultOptions,
}

/// What is checked, and how deeply. A plan stores these options.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScopeOptions {
    /// The backup sets to check. A plan stores their positions itself.
    #[serde(skip)]
    pub set: Vec<SetChoice>,
    /// Only pages, record headers and allocation.
    pub physical_only: bool,
    /// Without the logical checks of nonclustered indexes of user tables.
    pub noindex: bool,
    /// Only these tables or indexed views; all if empty.
    pub table: Vec<String>,
    /// Only the objects in this filegroup.
    pub filegroup: Option<String>,
    /// Only the allocation of pages and extents.
    pub alloc: bool,
    /// Only the consistency of the catalog.
    pub catalog: bool,
    /// Whether DATA_PURITY was asked for; it is the default.
    pub data_purity: bool,
    /// Without the check that values are valid for their types.
    pub no_data_purity: bool,
    /// The checks of WITH EXTENDED_LOGICAL_CHECKS.
    pub extended_logical_checks: bool,
    /// The constraints to check; `None` for no constraints.
    pub constraints: Option<Constraints>,
    /// Whether identity values are compared with the rows.
    pub identity: bool,
}

/// Which constraints are checked.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Constraints {
    /// Enabled and trusted constraints.
    Trusted,
    /// All constraints, as WITH ALL_CONSTRAINTS.
    All,
}

/// Whether the log is used, and the resources of recovery.
#[derive(Clone, Default)]
pub struct RecoveryOptions {
    /// Whether data files are read as they are, without the changes in their log.
    pub no_log: bool,
    /// Memory and temporary files.
    pub room: RoomOptions,
}

/// Memory, and temporary files for data that does not fit into memory.
#[derive(Clone, Default)]
pub struct RoomOptions {
    /// The memory grant in bytes; `None` for the default.
    pub memory: Option<u64>,
    /// The folder for temporary files; `None` for the folder of the system.
    pub temp_dir: Option<PathBuf>,
}

/// The point at which the restore of backups stops. At most one of the options is given. A plan stores them.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StopOptions {
    /// A point in time.
    pub stop_at: Option<StopMoment>,
    /// The end of a marked transaction.
    pub stop_at_mark: Option<String>,
    /// The moment before a marked transaction.
    pub stop_before_mark: Option<String>,
}

impl StopOptions {
    /// Whether one of these options was given.
    pub fn is_given(&self) -> bool {
        self.stop_at.is_some() || self.stop_at_mark.is_some() || self.stop_before_mark.is_some()
    }

    /// The end of the restore: a point in time, a mark, or the end of the log.
    pub fn until(&self) -> Until<'_> {
        match &self.stop_at {
            Some(moment) => Until::Time(moment.text()),
            None if self.is_given() => Until::Mark,
            None => Until::End,
        }
    }

    /// The point at which the restore stops, if one was given.
    pub fn stop(&self) -> Option<Stop> {
        let at = self.stop_at.map(|moment| Stop::At(moment.time));
        let at_mark = || self.stop_at_mark.clone().map(Stop::AtMark);
        at.or_else(at_mark).or_else(|| self.stop_before_mark.clone().map(Stop::BeforeMark))
    }
}

/// Threads, reads and the progress display.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// The maximum number of threads; 0 for one per processor.
    pub maxdop: u16,
    /// Which threads read the pages.
    pub readers: Readers,
    /// Whether the file cache of the system is bypassed.
    pub direct: bool,
    /// The maximum number of bytes to read per second; `None` for no limit.
    pub io_limit: Option<u64>,
    /// Whether the run yields processors to other programs.
    pub nice: bool,
    /// The progress display.
    pub progress: ProgressKind,
}

/// The progress display on stderr.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgressKind {
    /// A bar if stderr is a terminal, or a spinner while the number of pages is unknown; otherwise nothing.
    #[default]
    Auto,
    /// Always a bar.
    Bar,
    /// One line per update: phase, percent, pages done, number of pages, seconds left.
    Lines,
    /// The same values as JSON, one object per line.
    Json,
    /// No progress display.
    None,
}

/// The windows of time over which a check is spread.
#[derive(Clone, Default)]
pub struct WindowOptions {
    /// The length of this window; `None` if the check is not spread.
    pub window: Option<Duration>,
    /// The promise: the time within which every page is read and every index and heap is verified.
    pub within: Option<Duration>,
    /// The size, in bytes, of the ranges that the window reads.
    pub range: RangeBytes,
    /// The name of the storage snapshot that is checked.
    pub image: Option<String>,
    /// How the time is divided between databases and tables.
    pub weights: Weights,
    /// For tests: the maximum number of ranges that a window reads.
    pub most_ranges: Option<u64>,
    /// The start of the run. The time limit of the window counts from here.
    pub begun: Option<Instant>,
}

impl WindowOptions {
    /// Whether `--window` or `--within` was given.
    pub fn are_asked_for(&self) -> bool {
        self.window.is_some() || self.within.is_some()
    }
}

/// The size, in bytes, of the ranges that a window reads.
#[derive(Clone, Copy)]
pub struct RangeBytes(pub u64);

impl Default for RangeBytes {
    fn default() -> Self {
        Self(1 << 30)
    }
}

/// The program that makes and removes a snapshot.
#[derive(Clone, Default)]
pub struct SnapshotOptions {
    /// The program; `None` if no snapshot is made.
    pub snapshot_with: Option<PathBuf>,
    /// The arguments of the program, before `create` or `remove`.
    pub snapshot_argument: Vec<OsString>,
    /// The original paths of the files in the snapshot that is checked.
    pub originals: Originals,
}

impl Request {
    /// A full check of the data files or backups in these paths, with default options.
    pub fn of_paths(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            recursive: false,
            carve: false,
            scope: ScopeOptions::default(),
            recovery: RecoveryOptions::default(),
            stop: StopOptions::default(),
            estimate_only: false,
            databases: 1,
            spool_limit: SPOOL_LIMIT_BYTES,
            batches: 1,
            keep_parts: None,
            reread: None,
            only_by_change: None,
            part_pages: None,
            settle_page: None,
            run: RunOptions::default(),
            windows: WindowOptions::default(),
            snapshot: SnapshotOptions::default(),
            results: ResultOptions::default(),
        }
    }

    /// The same request for other paths.
    pub fn of(&self, paths: Vec<PathBuf>) -> Self {
        Self { paths, ..self.clone() }
    }

    /// The paths as the user named them, or the originals of the paths if a snapshot is checked.
    pub fn originals(&self) -> Vec<PathBuf> {
        self.paths.iter().map(|path| self.snapshot.originals.of(path)).collect()
    }

    /// The backup sets to check.
    ///
    /// # Errors
    ///
    /// Fails if `last` or `all` is combined with another choice or with a point at which the restore stops.
    pub fn sets(&self) -> Result<SetChoice, Failure> {
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
