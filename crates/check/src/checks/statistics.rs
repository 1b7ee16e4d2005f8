//! Checks stored statistics, as part of the extended logical checks (docs/format/statistics.md). Wrong statistics do
//! not make a row wrong, and SQL Server may rewrite statistics at any time. So a contradiction is only a note.

use catalog::{Statistics, StoredStatistics, read_statistics};
use findings::registry::limits::{self, Limit, Reason};
use findings::{Coverage, Place};
use format::statistics::{Fault, StatisticsBlob, StepOrder};

use crate::sweep::context::Context;

/// The subject of notes about statistics that cannot be read.
const WHAT: &str = limits::STATISTICS_UNREAD.what;

/// Bytes of memory for the description of an index or a column, including its name.
const BYTES_PER_DESCRIPTION: usize = 150;
/// The minimum and maximum number of descriptions that are in memory during a pass. Within these limits, descriptions
/// may use half of the memory for facts. The maximum corresponds to 15 MB. A catalog with more indexes and columns is
/// read in several passes, each for some of the tables.
const DESCRIPTIONS_PER_PASS: std::ops::RangeInclusive<usize> = 10_000..=100_000;

/// Checks all statistics in scope, after the sweep.
pub(crate) fn reckon(context: &Context<'_>, coverage: &mut Coverage) {
    if !context.options.extended_logical_checks {
        return;
    }
    let columns = context.database.columns.values().map(Vec::len).sum::<usize>();
    let described = columns.saturating_add(context.database.indexes.len());
    let per_pass = (context.bytes_for_facts() / 2 / BYTES_PER_DESCRIPTION)
        .clamp(*DESCRIPTIONS_PER_PASS.start(), *DESCRIPTIONS_PER_PASS.end());
    let passes = u32::try_from(described.div_ceil(per_pass)).unwrap_or(u32::MAX).max(1);
    let mut all_are_read = true;
    for pass in 0..passes {
        let is_wanted = |object_id: i32| share_of(object_id, passes) == pass && context.covers_object(object_id);
        // All passes run even after a failed read, so that the pages that are read do not depend on the number of
        // passes.
        all_are_read &= look(context, is_wanted, coverage);
    }
    if !all_are_read {
        coverage.note_as(WHAT, &limits::STATISTICS_UNREAD, "database", 0);
    }
}

/// The number of the pass that checks the statistics of an object. The multiplication distributes objects evenly over
/// the passes, even if a batch contains, for example, only every second object ID.
fn share_of(object_id: i32, passes: u32) -> u32 {
    (object_id.unsigned_abs().wrapping_mul(0x9E37_79B1) >> 8) % passes
}

/// Checks the statistics of the objects for which `is_wanted` returns true. Returns whether the catalog could be read
/// to its end.
fn look(context: &Context<'_>, is_wanted: impl Fn(i32) -> bool, coverage: &mut Coverage) -> bool {
    let read = read_statistics(context.source, context.database, is_wanted, |statistics, stored| match stored {
        StoredStatistics::Nothing => {}
        StoredStatistics::Unreadable => coverage.note(&limits::STATISTICS_UNREAD, place(context, statistics), 1),
        StoredStatistics::Blob(bytes) => {
            let mut to = Notes { context, statistics, coverage };
            if let Some(blob) = blob_is_whole(bytes, &mut to) {
                counts_are_possible(&blob, &mut to);
                densities_are_possible(&blob, &mut to);
                steps_ascend(&blob, &mut to);
            }
        }
    });
    read.is_ok()
}

fn place(context: &Context<'_>, statistics: &Statistics) -> Place {
    let object = context.database.object_name(statistics.object_id);
    let name = match statistics.name.as_str() {
        "" => format!("{object}, statistics {}", statistics.id),
        name => format!("{object}.{name}"),
    };
    Place::of(statistics.object_id, name)
}

/// Adds notes about one set of statistics.
struct Notes<'n, 'c> {
    context: &'n Context<'c>,
    statistics: &'n Statistics,
    coverage: &'n mut Coverage,
}

impl Notes<'_, '_> {
    /// Notes a contradiction. If changes that only the log contains may explain the contradiction, notes the limit for
    /// missing log changes instead of the contradiction.
    fn contradiction(&mut self, reason: impl Into<Reason>) {
        let place = place(self.context, self.statistics);
        match self.context.is_clean() {
            true => self.coverage.note(reason, place, 1),
            false => self.coverage.note_as(WHAT, &limits::DEMOTED_LOG, place, 1),
        }
    }

    /// Notes that something is not verified.
    fn unknown(&mut self, limit: &'static Limit, count: u64) {
        self.coverage.note(limit, place(self.context, self.statistics), count);
    }
}

/// Checks that every part of the blob ends where the next part begins, and that the last part ends where the blob ends.
fn blob_is_whole<'a>(bytes: &'a [u8], to: &mut Notes<'_, '_>) -> Option<StatisticsBlob<'a>> {
    match StatisticsBlob::read(bytes) {
        Ok(blob) => Some(blob),
        Err(Fault::Unknown) => {
            to.unknown(&limits::STATISTICS_FORM, 1);
            None
        }
        Err(Fault::Broken(how)) => {
            to.contradiction(limits::STATISTICS_WHOLE.with(&[&how]));
            None
        }
    }
}

/// Checks that all counts are numbers and not negative, and that they add up to the number of rows if all rows were
/// sampled.
fn counts_are_possible(blob: &StatisticsBlob<'_>, to: &mut Notes<'_, '_>) {
    if !blob.has_possible_counts() {
        to.contradiction(&limits::STATISTICS_COUNTS);
    }
}

/// Checks that each density is possible: there is at least one distinct value, and there are no more distinct values
/// than rows.
fn densities_are_possible(blob: &StatisticsBlob<'_>, to: &mut Notes<'_, '_>) {
    if !blob.has_possible_densities() {
        to.contradiction(&limits::STATISTICS_DENSITIES);
    }
}

/// Checks that every step of the histogram is greater than the previous step, in the sort order of the first column.
fn steps_ascend(blob: &StatisticsBlob<'_>, to: &mut Notes<'_, '_>) {
    if blob.steps.is_empty() {
        return;
    }
    let Some(column) = to.statistics.columns.first().copied().flatten() else {
        return to.unknown(&limits::STATISTICS_COLUMN, 1);
    };
    let Some(order) = StepOrder::of(column.info, column.collation) else {
        return to.unknown(&limits::STATISTICS_ORDER_UNKNOWN, blob.steps.len() as u64);
    };
    if !blob.steps.iter().all(|step| order.fits(step)) {
        return to.unknown(&limits::STATISTICS_COLUMN, 1);
    }
    let neighbors = || blob.steps.iter().zip(blob.steps.iter().skip(1));
    if neighbors().any(|(before, after)| order.ascends(before, after) == Some(false)) {
        to.contradiction(&limits::STATISTICS_ORDER);
    }
    let undecided = neighbors().filter(|(before, after)| order.ascends(before, after).is_none()).count() as u64;
    if undecided > 0 {
        let limit = match order.is_of_text() {
            true => &limits::STATISTICS_ORDER_COLLATION,
            false => &limits::STATISTICS_ORDER_UNKNOWN,
        };
        to.unknown(limit, undecided);
    }
}

#[cfg(test)]
mod tests {
    use super::share_of;

    #[test]
    fn the_passes_share_the_objects_of_a_batch_evenly() {
        const PASSES: u32 = 16;
        let mut shares = [0; PASSES as usize];
        // Every sixteenth object ID, because one of 16 batches contains only these objects.
        for object_id in (1_000_000..2_600_000).step_by(16) {
            shares[share_of(object_id, PASSES) as usize] += 1;
        }
        assert!(shares.iter().all(|share| (5_000..7_500).contains(share)), "{shares:?}");
        assert_eq!(share_of(i32::MIN, 1), 0);
    }
}
