//! Checkpoints as text.

use std::io;

use events::Clock;
use events::checkpoints::Totals;

use super::{CheckpointReport, Group, Side, SlowCheckpoint, Source, duration_ms};
use crate::text_table::TextTable;

/// Slow checkpoints that are listed, the slowest first.
const LISTED: usize = 20;

impl CheckpointReport {
    /// Writes all of it for people.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut sections = Sections { out, is_first: true };
        self.totals(&mut sections)?;
        self.changes(&mut sections)?;
        for clock in [Clock::Utc, Clock::Local] {
            self.slow(clock, &mut sections)?;
        }
        self.targets(&mut sections)?;
        self.remarks(&mut sections)
    }

    fn totals(&self, sections: &mut Sections<'_>) -> io::Result<()> {
        for groups in self.groups.chunk_by(|one, next| heading(one) == heading(next)) {
            let Some(first) = groups.first() else { continue };
            let mut table = TextTable::new(&[1, 2, 5, 6, 7, 8]);
            table.row(["database", "id", "checkpoints", "first", "last", "avg ms", "max ms", "total ms", "per hour"]);
            for group in groups {
                let Some(totals) = Totals::of(&group.checkpoints) else { continue };
                let [count, avg, max, total, per_hour] = figures(Some(totals));
                let (first, last) = (totals.first.rounded().to_string(), totals.last.rounded().to_string());
                table.row([group.title(), id(group.database_id), count, first, last, avg, max, total, per_hour]);
            }
            sections.table(&heading(first), &table)?;
        }
        Ok(())
    }

    fn changes(&self, sections: &mut Sections<'_>) -> io::Result<()> {
        if self.groups.iter().all(|group| group.changes.is_empty()) {
            return Ok(());
        }
        let mut table = TextTable::new(&[3, 4, 5, 6, 7]);
        table.row(["database", "change (UTC)", "", "checkpoints", "avg ms", "max ms", "total ms", "per hour"]);
        for group in &self.groups {
            for Side { change, is_after, totals } in group.sides() {
                let period = if is_after { "after" } else { "before" };
                let [count, avg, max, total, per_hour] = figures(totals);
                let row =
                    [group.title(), change.rounded().to_string(), period.to_owned(), count, avg, max, total, per_hour];
                table.row(row);
            }
        }
        sections.table("Before and after a change", &table)
    }

    fn slow(&self, clock: Clock, sections: &mut Sections<'_>) -> io::Result<()> {
        let mut slow: Vec<&SlowCheckpoint> = self.flushes.iter().filter(|slow| slow.clock == clock).collect();
        if slow.is_empty() {
            return Ok(());
        }
        slow.sort_by_key(|slow| std::cmp::Reverse(slow.flush.ms));
        let title = format!("Slow checkpoints in error logs: {}, {}", slow.len(), clock_words(clock));
        let mut table = TextTable::new(&[2, 3, 4, 5, 6, 7, 8]);
        table.row(["reported", "database", "id", "ms", "buffers", "writes", "MB/s", "write ms", "checkpoint ms"]);
        let text = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        for slow in slow.iter().take(LISTED) {
            let flush = &slow.flush;
            table.row([
                flush.at.map(|at| at.rounded().to_string()).unwrap_or_default(),
                self.database_name(flush.database_id).unwrap_or_default().to_owned(),
                id(flush.database_id),
                flush.ms.to_string(),
                flush.bufs.to_string(),
                text(flush.writes),
                flush.mb_per_second.map(|rate| format!("{rate:.2}")).unwrap_or_default(),
                text(flush.avg_write_latency_ms),
                self.checkpoint_of(slow)
                    .map(|checkpoint| format!("{:.1}", duration_ms(checkpoint)))
                    .unwrap_or_default(),
            ]);
        }
        sections.table(&title, &table)?;
        match slow.len().checked_sub(LISTED) {
            None | Some(0) => Ok(()),
            Some(more) => writeln!(sections.out, "  and {more} faster ones, which --json lists"),
        }
    }

    fn targets(&self, sections: &mut Sections<'_>) -> io::Result<()> {
        if self.databases.is_empty() {
            return Ok(());
        }
        let mut table = TextTable::new(&[1]);
        table.row(["database", "id", "checkpoints"]);
        for database in &self.databases {
            let kind = match database.target_recovery_seconds {
                Some(seconds) => format!("indirect, target recovery time {seconds} s"),
                None => "automatic, by recovery interval".to_owned(),
            };
            table.row([database.name.clone(), database.database_id.to_string(), kind]);
        }
        sections.table("Settings by the boot pages", &table)
    }

    fn remarks(&self, sections: &mut Sections<'_>) -> io::Result<()> {
        let counts = self.counts;
        let remarks = [
            (counts.unpaired_begins, "Begins without an end"),
            (counts.unpaired_ends, "Ends without a begin"),
            (counts.repeated, "Begins and ends that were repeated, counted once"),
            (counts.unusable, "Events of checkpoints without time or database, not counted"),
            (counts.unclear_lines, "Lines of error logs about checkpoints whose first line is missing, not counted"),
        ];
        let is_first = sections.is_first;
        if is_first && remarks.iter().all(|(count, _)| *count == 0) {
            return writeln!(sections.out, "No checkpoints.");
        }
        for (at, (count, text)) in remarks.into_iter().filter(|(count, _)| *count > 0).enumerate() {
            let gap = if at == 0 && !is_first { "\n" } else { "" };
            writeln!(sections.out, "{gap}{text}: {count}")?;
        }
        Ok(())
    }
}

/// Tables under headings, with an empty line between them.
struct Sections<'a> {
    out: &'a mut dyn io::Write,
    is_first: bool,
}

impl Sections<'_> {
    fn table(&mut self, title: &str, table: &TextTable) -> io::Result<()> {
        if !std::mem::take(&mut self.is_first) {
            writeln!(self.out)?;
        }
        writeln!(self.out, "{title}")?;
        table.write(2, self.out)
    }
}

fn heading(group: &Group) -> String {
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

fn id(id: Option<u32>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

/// Count, average, maximum, total, per hour.
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
