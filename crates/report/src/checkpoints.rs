//! Checkpoints: `mdfsck checkpoints`.

mod html;
mod json;
mod tables;
mod text;

use std::collections::BTreeMap;

use events::checkpoints::{Checkpoint, Totals, ms};
use events::error_log::Flush;
use events::{Clock, Moment};

/// How long after the end of a checkpoint its line in the error log may be written. Times in the error log have
/// hundredths of seconds.
const LATE_TICKS: i64 = 1000 * Moment::MILLISECOND;

/// The source from which checkpoints are known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// Extended Events.
    Events,
    /// Lines of trace flag 3502 in the error log.
    ErrorLog,
    /// This transaction log.
    Log(String),
}

/// The checkpoints of a database, from one source.
#[derive(Clone, Debug)]
pub struct Group {
    /// The source of the checkpoints.
    pub source: Source,
    /// The clock of their times.
    pub clock: Clock,
    /// ID of the database; `None` if only its log is known.
    pub database_id: Option<u32>,
    /// Name of the database, if one of its data files was given.
    pub database: Option<String>,
    /// Ordered by begin; never empty.
    pub checkpoints: Vec<Checkpoint>,
    /// Points in time to compare before and after, in order.
    pub changes: Vec<Moment>,
}

/// The settings and identity in the boot page of a database.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DatabaseTarget {
    /// ID of the database on the server that wrote the file.
    pub database_id: u32,
    /// Name of the database.
    pub name: String,
    /// Target recovery time in seconds; `None` if checkpoints are automatic.
    pub target_recovery_seconds: Option<u32>,
}

/// A slow checkpoint that the error log reports.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowCheckpoint {
    /// The figures of the error log.
    pub flush: Flush,
    /// The clock of its time.
    pub clock: Clock,
}

/// Totals over all files.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Begin and end events.
    pub events: u64,
    /// Begins that have no end.
    pub unpaired_begins: u64,
    /// Ends that have no begin.
    pub unpaired_ends: u64,
    /// Begins and ends that were found more than once.
    pub repeated: u64,
    /// Checkpoint events that have no time or no database.
    pub unusable: u64,
    /// Lines of error logs about checkpoints whose first line is missing.
    pub unclear_lines: u64,
    /// Events that ring buffers report as dropped.
    pub dropped_events: u64,
    /// Whether a ring buffer was truncated.
    pub truncated: bool,
    /// Faults in files, and files that could not be read.
    pub faults: u64,
}

/// Everything that the files say about checkpoints.
#[derive(Clone, Default, Debug)]
pub struct CheckpointReport {
    /// Ordered by source, then by database.
    pub groups: Vec<Group>,
    /// Ordered by clock, then by time.
    pub flushes: Vec<SlowCheckpoint>,
    /// Ordered by ID.
    pub databases: Vec<DatabaseTarget>,
    /// Names of databases by ID, as the master database lists them.
    pub names: BTreeMap<u32, String>,
    /// Errors in the files.
    pub errors: Vec<String>,
    /// Totals.
    pub counts: Counts,
}

/// One side of a change: its totals, from the change to the next one or the one before.
struct Side {
    change: Moment,
    is_after: bool,
    totals: Option<Totals>,
}

impl Group {
    /// For each change, the sides before and after it, each up to the neighboring change.
    fn sides(&self) -> impl Iterator<Item = Side> {
        let between = |from: Option<Moment>, to: Option<Moment>| {
            let inside = move |checkpoint: &&Checkpoint| {
                from.is_none_or(|from| checkpoint.began >= from) && to.is_none_or(|to| checkpoint.began < to)
            };
            Totals::of(self.checkpoints.iter().filter(inside))
        };
        self.changes.iter().enumerate().flat_map(move |(at, change)| {
            let last = at.checked_sub(1).and_then(|at| self.changes.get(at)).copied();
            let next = self.changes.get(at + 1).copied();
            [
                Side { change: *change, is_after: false, totals: between(last, Some(*change)) },
                Side { change: *change, is_after: true, totals: between(Some(*change), next) },
            ]
        })
    }

    /// Name of the database, else its id, else its log.
    fn title(&self) -> String {
        match (&self.database, self.database_id, &self.source) {
            (Some(name), ..) => name.clone(),
            (None, Some(id), _) => format!("database {id}"),
            (None, None, Source::Log(path)) => path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
            (None, None, _) => String::new(),
        }
    }
}

impl CheckpointReport {
    /// The checkpoint that the error log reports as slow, found among the events of its database by its time.
    fn checkpoint_of(&self, slow: &SlowCheckpoint) -> Option<&Checkpoint> {
        let (at, database_id) = (slow.flush.at?, slow.flush.database_id?);
        let of_database = |group: &&Group| {
            group.source == Source::Events && group.clock == slow.clock && group.database_id == Some(database_id)
        };
        let checkpoints = &self.groups.iter().find(of_database)?.checkpoints;
        let after = checkpoints.partition_point(|checkpoint| checkpoint.began <= at);
        let found = checkpoints.get(after.checked_sub(1)?)?;
        (at.0 <= found.ended.0.saturating_add(LATE_TICKS)).then_some(found)
    }

    /// The name of a database, from its own files or the list of the master database.
    pub fn database_name(&self, id: Option<u32>) -> Option<&str> {
        let own = self.databases.iter().find(|database| Some(database.database_id) == id);
        own.map(|database| &database.name).or_else(|| self.names.get(&id?)).map(String::as_str)
    }

    /// The number of checkpoints whose begin and end are known.
    fn pairs(&self) -> u64 {
        self.groups.iter().map(|group| group.checkpoints.len() as u64).sum()
    }
}

/// A duration in milliseconds, rounded to four decimals, which is the 100 ns of the clock.
fn rounded(ms: f64) -> f64 {
    (ms * 1e4).round() / 1e4
}

fn duration_ms(checkpoint: &Checkpoint) -> f64 {
    ms(checkpoint.ticks().into())
}
