//! The tables that the text and the page share.

use events::Clock;
use events::checkpoints::Totals;

use super::{CheckpointReport, Group, Side, SlowCheckpoint, Source, duration_ms};

/// A table: the headings of its columns, and its rows of cells.
pub(super) struct Table {
    pub(super) heads: &'static [&'static str],
    /// The positions of the columns that contain numbers.
    pub(super) numbers: &'static [usize],
    pub(super) rows: Vec<Vec<String>>,
}

/// The heading for all groups of checkpoints with the same source and clock.
pub(super) fn heading(group: &Group) -> String {
    let source = match &group.source {
        Source::Events => "Checkpoints by events",
        Source::ErrorLog => "Checkpoints by trace flag 3502 in error logs",
        Source::Log(_) => "Checkpoints by transaction logs",
    };
    format!("{source}, {}", clock_words(group.clock))
}

fn clock_words(clock: Clock) -> &'static str {
    match clock {
        Clock::Utc => "times in UTC",
        Clock::Local => "times local to the server",
    }
}

/// Totals of each database.
pub(super) fn totals(groups: &[Group]) -> Table {
    let row = |group: &Group| {
        let totals = Totals::of(&group.checkpoints)?;
        let [count, avg, max, total, per_hour] = figures(Some(totals));
        let (first, last) = (totals.first.rounded().to_string(), totals.last.rounded().to_string());
        Some(vec![group.title(), id(group.database_id), count, first, last, avg, max, total, per_hour])
    };
    Table {
        heads: &["database", "id", "checkpoints", "first", "last", "avg ms", "max ms", "total ms", "per hour"],
        numbers: &[1, 2, 5, 6, 7, 8],
        rows: groups.iter().filter_map(row).collect(),
    }
}

impl CheckpointReport {
    /// The groups, joined if they have the same source and clock. The first value is the heading for the joined groups.
    pub(super) fn sources(&self) -> impl Iterator<Item = (String, &[Group])> {
        let sources = self.groups.chunk_by(|one, next| heading(one) == heading(next));
        sources.filter_map(|groups| Some((heading(groups.first()?), groups)))
    }

    /// Totals before and after each change.
    pub(super) fn change_table(&self) -> Table {
        let row = |group: &Group, side: &Side| {
            let [count, avg, max, total, per_hour] = figures(side.totals);
            let period = if side.is_after { "after" } else { "before" };
            let change = side.change.rounded().to_string();
            vec![group.title(), change, period.to_owned(), count, avg, max, total, per_hour]
        };
        Table {
            heads: &["database", "change (UTC)", "", "checkpoints", "avg ms", "max ms", "total ms", "per hour"],
            numbers: &[3, 4, 5, 6, 7],
            rows: self.groups.iter().flat_map(|group| group.sides().map(|side| row(group, &side))).collect(),
        }
    }

    /// A table of the slowest checkpoints in error logs with this clock, with at most `most` rows. Returns the title,
    /// the table, and the number of rows that were left out.
    pub(super) fn slow_table(&self, clock: Clock, most: usize) -> (String, Table, usize) {
        let mut slow: Vec<&SlowCheckpoint> = self.flushes.iter().filter(|slow| slow.clock == clock).collect();
        slow.sort_by_key(|slow| std::cmp::Reverse(slow.flush.ms));
        let table = Table {
            heads: &["database", "id", "reported", "ms", "buffers", "writes", "MB/s", "write ms", "checkpoint ms"],
            numbers: &[1, 3, 4, 5, 6, 7, 8],
            rows: slow.iter().take(most).map(|slow| self.slow_row(slow)).collect(),
        };
        let title = format!("Slow checkpoints in error logs: {}, {}", slow.len(), clock_words(clock));
        (title, table, slow.len().saturating_sub(most))
    }

    fn slow_row(&self, slow: &SlowCheckpoint) -> Vec<String> {
        let flush = &slow.flush;
        let text = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        vec![
            self.database_name(flush.database_id).unwrap_or_default().to_owned(),
            id(flush.database_id),
            flush.at.map(|at| at.rounded().to_string()).unwrap_or_default(),
            flush.ms.to_string(),
            flush.bufs.to_string(),
            text(flush.writes),
            flush.mb_per_second.map(|rate| format!("{rate:.2}")).unwrap_or_default(),
            text(flush.avg_write_latency_ms),
            self.checkpoint_of(slow).map(|checkpoint| format!("{:.1}", duration_ms(checkpoint))).unwrap_or_default(),
        ]
    }

    /// The settings in boot pages.
    pub(super) fn target_table(&self) -> Table {
        let row = |database: &super::DatabaseTarget| {
            let kind = match database.target_recovery_seconds {
                Some(seconds) => format!("indirect, target recovery time {seconds} s"),
                None => "automatic, by recovery interval".to_owned(),
            };
            vec![database.name.clone(), database.database_id.to_string(), kind]
        };
        Table {
            heads: &["database", "id", "checkpoints"],
            numbers: &[1],
            rows: self.databases.iter().map(row).collect(),
        }
    }
}

fn id(id: Option<u32>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

/// The cells of totals: count, average, maximum, total, checkpoints per hour.
fn figures(totals: Option<Totals>) -> [String; 5] {
    let one = |of: fn(&Totals) -> f64| totals.map(|totals| format!("{:.1}", of(&totals))).unwrap_or_default();
    [
        totals.map_or(0, |totals| totals.count).to_string(),
        one(Totals::avg_ms),
        one(Totals::max_ms),
        one(Totals::total_ms),
        totals.and_then(|totals| totals.per_hour()).map(|rate| format!("{rate:.1}")).unwrap_or_default(),
    ]
}
