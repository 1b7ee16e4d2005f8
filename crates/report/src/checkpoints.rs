//! Checkpoints: `mdfsck checkpoints`.

mod html;
mod json;
mod tables;
mod text;

use std::collections::BTreeMap;

use events::checkpoints::{Checkpoint, Totals, ms};
use events::error_log::Flush;
use events::{Clock, Moment};

/// How long after the end of a checkpoint its line in the error log may be written: times there have hundredths of seconds.
const LATE_TICKS: i64 = 1000 * Moment::MILLISECOND;

/// How checkpoints are known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// By events.
    Events,
    /// By trace flag 3502 in the error log.
    ErrorLog,
    /// By this transaction log.
    Log(String),
}

/// The checkpoints of a database, by one source.
#[derive(Clone, Debug)]
pub struct Group {
    /// How they are known.
    pub source: Source,
    /// Whose clock their times are of.
    pub clock: Clock,
    /// Id of the database; `None` where only its log is known.
    pub database_id: Option<u32>,
    /// Its name, if a data file of it was given.
    pub database: Option<String>,
    /// By begin; not empty.
    pub checkpoints: Vec<Checkpoint>,
    /// Changes to compare before and after, by time.
    pub changes: Vec<Moment>,
}

/// What the boot page of a database says of its checkpoints.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DatabaseTarget {
    /// Its id on the server that wrote the file.
    pub database_id: u32,
    /// Its name.
    pub name: String,
    /// Target recovery time; `None` if checkpoints are automatic.
    pub target_recovery_seconds: Option<u32>,
}

/// A slow checkpoint by the error log.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowCheckpoint {
    /// What the log says.
    pub flush: Flush,
    /// Whose clock its time is of.
    pub clock: Clock,
}

/// What was read together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Begins and ends.
    pub events: u64,
    /// Begins without an end.
    pub unpaired_begins: u64,
    /// Ends without a begin.
    pub unpaired_ends: u64,
    /// Begins and ends that were there more than once.
    pub repeated: u64,
    /// Events of checkpoints without time or database.
    pub unusable: u64,
    /// Lines of error logs about checkpoints whose first line is missing.
    pub unclear_lines: u64,
    /// Events that ring buffers say were dropped.
    pub dropped_events: u64,
    /// Whether a ring buffer was truncated.
    pub truncated: bool,
    /// Faults of files, and files that could not be read.
    pub faults: u64,
}

/// All that the files say of checkpoints.
#[derive(Clone, Default, Debug)]
pub struct CheckpointReport {
    /// By source, then by database.
    pub groups: Vec<Group>,
    /// By clock, then by time.
    pub flushes: Vec<SlowCheckpoint>,
    /// By id.
    pub databases: Vec<DatabaseTarget>,
    /// Names of databases by id, as the master database lists them.
    pub names: BTreeMap<u32, String>,
    /// What is wrong with the files.
    pub errors: Vec<String>,
    /// Totals.
    pub counts: Counts,
}

/// One side of a change: from its start to its end, and what began in it.
struct Side {
    change: Moment,
    is_after: bool,
    totals: Option<Totals>,
}

impl Group {
    /// For each change what was before and what is after it, up to the changes before and after it.
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
    /// The checkpoint that a slow one is, by events of its database at its time.
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

    /// The name of a database, by its own files or the list of the master database.
    pub fn database_name(&self, id: Option<u32>) -> Option<&str> {
        let own = self.databases.iter().find(|database| Some(database.database_id) == id);
        own.map(|database| &database.name).or_else(|| self.names.get(&id?)).map(String::as_str)
    }

    /// Checkpoints whose begin and end are known.
    fn pairs(&self) -> u64 {
        self.groups.iter().map(|group| group.checkpoints.len() as u64).sum()
    }
}

/// A duration with four decimals: what 100 ns are of a millisecond.
fn rounded(ms: f64) -> f64 {
    (ms * 1e4).round() / 1e4
}

fn duration_ms(checkpoint: &Checkpoint) -> f64 {
    ms(checkpoint.ticks().into())
}
