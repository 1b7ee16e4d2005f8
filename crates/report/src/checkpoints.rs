//! Checkpoints: `mdfsck checkpoints`.

mod html;
mod json;
mod tables;
mod text;

use std::collections::BTreeMap;

use events::checkpoints::{Checkpoint, Totals, ms};
use events::error_log::Flush;
use events::{Clock, Moment};

/// The longest time, in ticks, from the end of a checkpoint to the time of its line in the error log. Times in the
/// error log have hundredths of seconds.
const LATE_TICKS: i64 = 1000 * Moment::MILLISECOND;

/// The source of the facts about checkpoints.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// Extended Events.
    Events,
    /// Lines of trace flag 3502 in the error log.
    ErrorLog,
    /// The transaction log in this file.
    Log(String),
}

/// The checkpoints of a database, from one source.
#[derive(Clone, Debug)]
pub struct Group {
    /// The source of the checkpoints.
    pub source: Source,
    /// The clock to which the times of the checkpoints refer.
    pub clock: Clock,
    /// ID of the database; `None` if only its log is known.
    pub database_id: Option<u32>,
    /// Name of the database; `None` if none of the given data files contains this name.
    pub database: Option<String>,
    /// The checkpoints, ordered by start time; never empty.
    pub checkpoints: Vec<Checkpoint>,
    /// The times at which something was changed on the server, ascending. The report compares the totals before and
    /// after each change.
    pub changes: Vec<Moment>,
}

/// The ID, the name and the checkpoint setting of a database, from its boot page.
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
    /// The figures that the error log reports.
    pub flush: Flush,
    /// The clock to which the time in the error log refers.
    pub clock: Clock,
}

/// Totals over all files.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Number of begin and end events.
    pub events: u64,
    /// Begin events without an end event.
    pub unpaired_begins: u64,
    /// End events without a begin event.
    pub unpaired_ends: u64,
    /// Begin and end events that were found more than once.
    pub repeated: u64,
    /// Checkpoint events that have no time or no database.
    pub unusable: u64,
    /// Number of lines in error logs that belong to a message about a checkpoint but could not be used. Either the
    /// first line of the message is missing, or the format of the line is unexpected.
    pub unclear_lines: u64,
    /// Events that ring buffers report as dropped.
    pub dropped_events: u64,
    /// Whether a ring buffer was truncated.
    pub truncated: bool,
    /// Faults in files, and files that could not be read.
    pub faults: u64,
}

/// All facts about checkpoints in the files.
#[derive(Clone, Default, Debug)]
pub struct CheckpointReport {
    /// The groups, ordered by source, then by database.
    pub groups: Vec<Group>,
    /// The slow checkpoints, ordered by clock, then by time.
    pub flushes: Vec<SlowCheckpoint>,
    /// The databases, ordered by ID.
    pub databases: Vec<DatabaseTarget>,
    /// Names of databases by ID, as the master database lists them.
    pub names: BTreeMap<u32, String>,
    /// Texts of the errors in the files.
    pub errors: Vec<String>,
    /// Totals.
    pub counts: Counts,
}

/// The period before or after a change, with the totals of its checkpoints. The period extends to the previous or the
/// next change; without such a change, it has no limit.
struct Side {
    change: Moment,
    is_after: bool,
    totals: Option<Totals>,
}

impl Group {
    /// The two periods of each change: from the previous change to this change, and from this change to the next one.
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

    /// Name of the database; if unknown, its ID; if that is unknown too, the name of its log file.
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
    /// Finds the checkpoint that a line of the error log reports as slow, among the events of the same database. This
    /// is the last checkpoint that began before the time of the line, unless it ended more than [`LATE_TICKS`] before
    /// that time.
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

    /// The name of a database, from the database's own files or from the list in the master database.
    pub fn database_name(&self, id: Option<u32>) -> Option<&str> {
        let own = self.databases.iter().find(|database| Some(database.database_id) == id);
        own.map(|database| &database.name).or_else(|| self.names.get(&id?)).map(String::as_str)
    }

    /// The number of checkpoints with a known begin and end.
    fn pairs(&self) -> u64 {
        self.groups.iter().map(|group| group.checkpoints.len() as u64).sum()
    }
}

/// A duration in milliseconds, rounded to four decimals, because the clock has steps of 100 ns.
fn rounded(ms: f64) -> f64 {
    (ms * 1e4).round() / 1e4
}

fn duration_ms(checkpoint: &Checkpoint) -> f64 {
    ms(checkpoint.ticks().into())
}
