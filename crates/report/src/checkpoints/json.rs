//! Checkpoints as JSON lines.

use std::io;

use events::Clock;
use events::checkpoints::{Totals, by_hour};
use format::types::guid_text;

use super::{CheckpointReport, Group, Side, SlowCheckpoint, Source, duration_ms, rounded};
use crate::json::checkpoints as lines;
use crate::json::line;
use crate::json::lines::ErrorText;

impl CheckpointReport {
    /// Writes the whole report as JSON lines.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        for database in &self.databases {
            let value = lines::DatabaseTarget {
                database_id: database.database_id,
                name: &database.name,
                target_recovery_seconds: database.target_recovery_seconds,
                automatic: database.target_recovery_seconds.is_none(),
            };
            line(&lines::CheckpointsLine::Database(value), out)?;
        }
        for group in &self.groups {
            group.write_checkpoints(out)?;
        }
        for group in &self.groups {
            group.write_totals(out)?;
        }
        for slow in &self.flushes {
            line(&lines::CheckpointsLine::Flush(self.flush(slow)), out)?;
        }
        for text in &self.errors {
            line(&lines::CheckpointsLine::Error(ErrorText::of(text)), out)?;
        }
        line(&lines::CheckpointsLine::Summary(self.summary()), out)
    }

    fn flush(&self, slow: &SlowCheckpoint) -> lines::Flush<'_> {
        let (flush, checkpoint) = (&slow.flush, self.checkpoint_of(slow));
        lines::Flush {
            database_id: flush.database_id,
            database: self.database_name(flush.database_id),
            at: flush.at.map(|at| at.iso(slow.clock)),
            clock: clock(slow.clock),
            bufs: flush.bufs,
            writes: flush.writes,
            ms: flush.ms,
            avoided: flush.avoided,
            writes_per_second: flush.writes_per_second,
            mb_per_second: flush.mb_per_second,
            io_saturation: flush.io_saturation,
            context_switches: flush.context_switches,
            last_target_outstanding: flush.last_target_outstanding,
            avg_write_latency_ms: flush.avg_write_latency_ms,
            checkpoint_began: checkpoint.map(|checkpoint| checkpoint.began.iso(slow.clock)),
            checkpoint_ms: checkpoint.map(|checkpoint| rounded(duration_ms(checkpoint))),
        }
    }

    fn summary(&self) -> lines::CheckpointsSummary {
        let counts = self.counts;
        lines::CheckpointsSummary {
            events: counts.events,
            pairs: self.pairs(),
            unpaired_begins: counts.unpaired_begins,
            unpaired_ends: counts.unpaired_ends,
            repeated: counts.repeated,
            unusable: counts.unusable,
            flushes: self.flushes.len() as u64,
            unclear_lines: counts.unclear_lines,
            dropped_events: counts.dropped_events,
            truncated: counts.truncated,
            complete: counts.faults == 0,
        }
    }
}

impl Group {
    fn of(&self) -> lines::CheckpointsOf<'_> {
        let (source, log) = match &self.source {
            Source::Events => ("events", None),
            Source::ErrorLog => ("error log", None),
            Source::Log(path) => ("log", Some(path.as_str())),
        };
        let clock = clock(self.clock);
        lines::CheckpointsOf { source, database_id: self.database_id, database: self.database.as_deref(), log, clock }
    }

    fn write_checkpoints(&self, out: &mut dyn io::Write) -> io::Result<()> {
        for checkpoint in &self.checkpoints {
            let value = lines::CheckpointPair {
                of: self.of(),
                began: checkpoint.began.iso(self.clock),
                ended: checkpoint.ended.iso(self.clock),
                ms: rounded(duration_ms(checkpoint)),
                activity: checkpoint.activity.map(guid_text),
            };
            line(&lines::CheckpointsLine::Checkpoint(value), out)?;
        }
        Ok(())
    }

    fn write_totals(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let all = self.totals("all", None, Totals::of(&self.checkpoints));
        line(&lines::CheckpointsLine::CheckpointTotals(all), out)?;
        for Side { change, is_after, totals } in self.sides() {
            let period = if is_after { "after" } else { "before" };
            let value = self.totals(period, Some(change.iso(Clock::Utc)), totals);
            line(&lines::CheckpointsLine::CheckpointTotals(value), out)?;
        }
        for (hour, totals) in by_hour(&self.checkpoints) {
            let value = lines::CheckpointHour {
                of: self.of(),
                hour: hour.iso(self.clock),
                count: totals.count,
                avg_ms: rounded(totals.avg_ms()),
                max_ms: rounded(totals.max_ms()),
                total_ms: rounded(totals.total_ms()),
            };
            line(&lines::CheckpointsLine::CheckpointHour(value), out)?;
        }
        Ok(())
    }

    fn totals(
        &self,
        period: &'static str,
        change: Option<String>,
        totals: Option<Totals>,
    ) -> lines::CheckpointTotals<'_> {
        lines::CheckpointTotals {
            of: self.of(),
            period,
            change,
            count: totals.map_or(0, |totals| totals.count),
            avg_ms: totals.map(|totals| rounded(totals.avg_ms())),
            max_ms: totals.map(|totals| rounded(totals.max_ms())),
            total_ms: totals.map_or(0.0, |totals| rounded(totals.total_ms())),
            per_hour: totals.and_then(|totals| totals.per_hour()).map(rounded),
            first: totals.map(|totals| totals.first.iso(self.clock)),
            last: totals.map(|totals| totals.last.iso(self.clock)),
        }
    }
}

fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Utc => "utc",
        Clock::Local => "local",
    }
}
