//! Checkpoints: pairs their begin and end events from any source, and computes totals.

use std::collections::BTreeMap;

use crate::{Event, Moment};

/// The maximum number of begin and end marks that are paired. Each mark needs about 64 bytes. The maximum is enough for
/// one checkpoint per minute in seven databases over a year.
pub const MAX_MARKS: usize = 8_000_000;

/// The beginning or the end of a checkpoint, as an event reports it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mark {
    /// ID of the database.
    pub database_id: u32,
    /// The GUID of the activity, and the sequence number of the event in this activity; `None` if the session does not
    /// track causality.
    pub activity: Option<([u8; 16], u32)>,
    /// Time of the event.
    pub at: Moment,
    /// Whether the mark is the end of the checkpoint.
    pub is_end: bool,
}

impl Mark {
    /// The mark of an event that begins or ends a checkpoint; `None` for all other events, and for an event without a time
    /// or a database.
    pub fn of(event: &Event) -> Option<Self> {
        let is_end = match &*event.name {
            "checkpoint_begin" => false,
            "checkpoint_end" => true,
            _ => return None,
        };
        let database_id = u32::try_from(event.value("database_id")?.number()?).ok()?;
        let activity = event.value("attach_activity_id").and_then(|value| value.activity());
        Some(Self { database_id, activity, at: event.at?, is_end })
    }
}

/// A checkpoint.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Checkpoint {
    /// ID of the database; `None` if only the log of the database is known.
    pub database_id: Option<u32>,
    /// When the checkpoint began, by the clock of the event's source.
    pub began: Moment,
    /// When the checkpoint ended.
    pub ended: Moment,
    /// GUID of the activity, if the session tracks causality.
    pub activity: Option<[u8; 16]>,
}

impl Checkpoint {
    /// Duration of the checkpoint, in ticks of 100 ns; negative if the clock was set back.
    pub fn ticks(&self) -> i64 {
        self.ended.0.saturating_sub(self.began.0)
    }
}

/// The paired checkpoints, and counts of the unpaired marks.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Paired {
    /// The checkpoints, ordered by database, then by the time at which they began.
    pub checkpoints: Vec<Checkpoint>,
    /// Number of begin marks without an end mark. A checkpoint may end after the last event in the files, or be
    /// interrupted by a crash.
    pub unpaired_begins: u64,
    /// Number of end marks without a begin mark. A checkpoint may begin before the first event in the files.
    pub unpaired_ends: u64,
    /// Number of duplicate marks that were dropped, for example because a file and its export were both read.
    pub repeated: u64,
}

/// Pairs the begin mark and the end mark of each checkpoint. Both must have the same database and, if the activity is
/// known, the same activity. `marks` may be in any order. After sorting, an end mark is paired with the mark directly
/// before it, if that mark is a begin mark.
pub fn pair(mut marks: Vec<Mark>) -> Paired {
    let group = |mark: &Mark| (mark.database_id, mark.activity.map(|(guid, _)| guid));
    // Causality tracking numbers the events of an activity, so these numbers give the order. Other marks are ordered by
    // time. Times in XML have only milliseconds, but times in event files have more digits. If two begin marks or two
    // end marks have the same time in milliseconds, only the mark with more digits is kept.
    let order = |mark: &Mark| match mark.activity {
        Some((_, sequence)) => i64::from(sequence),
        None => mark.at.0.div_euclid(Moment::MILLISECOND),
    };
    marks.sort_unstable_by_key(|mark| (group(mark), order(mark), mark.is_end, std::cmp::Reverse(mark.at)));
    let count = marks.len();
    marks.dedup_by_key(|mark| (group(mark), order(mark), mark.is_end));
    let mut paired = Paired { repeated: (count - marks.len()) as u64, ..Paired::default() };
    for marks in marks.chunk_by(|one, next| group(one) == group(next)) {
        let mut open: Option<Mark> = None;
        for moment in marks.chunk_by(|one, next| order(one) == order(next)) {
            // If a checkpoint has begun and not ended yet, an end mark is processed before a begin mark of the same
            // millisecond.
            let ends_first = open.is_some();
            let first = moment.iter().filter(|mark| ends_first && mark.is_end);
            let rest = moment.iter().filter(|mark| !(ends_first && mark.is_end));
            for mark in first.chain(rest) {
                if !mark.is_end {
                    paired.unpaired_begins += u64::from(open.replace(*mark).is_some());
                } else if let Some(begin) = open.take() {
                    paired.checkpoints.push(Checkpoint {
                        database_id: Some(mark.database_id),
                        began: begin.at,
                        ended: mark.at,
                        activity: mark.activity.map(|(guid, _)| guid),
                    });
                } else {
                    paired.unpaired_ends += 1;
                }
            }
        }
        paired.unpaired_begins += u64::from(open.is_some());
    }
    paired.checkpoints.sort_unstable();
    paired
}

/// Totals of the checkpoints of one database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Totals {
    /// Number of checkpoints.
    pub count: u64,
    /// Sum of the durations, in ticks of 100 ns.
    pub total_ticks: i128,
    /// Longest duration, in ticks of 100 ns.
    pub max_ticks: i64,
    /// When the first checkpoint began.
    pub first: Moment,
    /// When the last checkpoint began.
    pub last: Moment,
}

impl Totals {
    /// Totals of `checkpoints`; `None` if there are none.
    pub fn of<'a>(checkpoints: impl IntoIterator<Item = &'a Checkpoint>) -> Option<Self> {
        let one = |checkpoint: &Checkpoint| Self {
            count: 1,
            total_ticks: checkpoint.ticks().into(),
            max_ticks: checkpoint.ticks(),
            first: checkpoint.began,
            last: checkpoint.began,
        };
        let both = |a: Self, b: Self| Self {
            count: a.count + b.count,
            total_ticks: a.total_ticks + b.total_ticks,
            max_ticks: a.max_ticks.max(b.max_ticks),
            first: a.first.min(b.first),
            last: a.last.max(b.last),
        };
        checkpoints.into_iter().map(one).reduce(both)
    }

    /// Average duration in milliseconds.
    pub fn avg_ms(&self) -> f64 {
        self.total_ms() / self.count as f64
    }

    /// Longest duration in milliseconds.
    pub fn max_ms(&self) -> f64 {
        ms(self.max_ticks.into())
    }

    /// Sum of the durations in milliseconds.
    pub fn total_ms(&self) -> f64 {
        ms(self.total_ticks)
    }

    /// Checkpoints per hour, counted from the time at which the first one began to the time at which the last one
    /// began. `None` if both times are equal.
    pub fn per_hour(&self) -> Option<f64> {
        let hours =
            (i128::from(self.last.0) - i128::from(self.first.0)) as f64 / (3_600_000.0 * Moment::MILLISECOND as f64);
        (self.count > 1 && hours > 0.0).then(|| (self.count - 1) as f64 / hours)
    }
}

/// Converts ticks of 100 ns to milliseconds.
pub fn ms(ticks: i128) -> f64 {
    ticks as f64 / Moment::MILLISECOND as f64
}

/// Totals by hour. A checkpoint belongs to the hour in which it began.
pub fn by_hour<'a>(checkpoints: impl IntoIterator<Item = &'a Checkpoint>) -> BTreeMap<Moment, Totals> {
    let mut hours: BTreeMap<Moment, Vec<&Checkpoint>> = BTreeMap::new();
    for checkpoint in checkpoints {
        hours.entry(checkpoint.began.hour()).or_default().push(checkpoint);
    }
    hours.into_iter().filter_map(|(hour, of)| Some((hour, Totals::of(of)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(database_id: u32, ms: i64, is_end: bool, activity: Option<(u8, u32)>) -> Mark {
        let activity = activity.map(|(guid, sequence)| ([guid; 16], sequence));
        Mark { database_id, activity, at: Moment(ms * Moment::MILLISECOND), is_end }
    }

    fn spans(paired: &Paired) -> Vec<(u32, i64, i64)> {
        let ms = |moment: Moment| moment.0 / Moment::MILLISECOND;
        paired.checkpoints.iter().map(|one| (one.database_id.unwrap(), ms(one.began), ms(one.ended))).collect()
    }

    /// Pairs the marks in the given order and in other orders, and requires equal results.
    fn paired(marks: &[Mark]) -> Paired {
        let expected = pair(marks.to_vec());
        for turn in 0..marks.len() {
            let mut turned = marks.to_vec();
            turned.rotate_left(turn);
            assert_eq!(pair(turned.clone()), expected);
            turned.reverse();
            assert_eq!(pair(turned), expected);
        }
        expected
    }

    #[test]
    fn checkpoints_of_several_databases_overlap() {
        let found = paired(&[
            mark(5, 0, false, None),
            mark(6, 1, false, None),
            mark(5, 10, true, None),
            mark(6, 30, true, None),
        ]);
        assert_eq!(spans(&found), [(5, 0, 10), (6, 1, 30)]);
        assert_eq!((found.unpaired_begins, found.unpaired_ends), (0, 0));
    }

    #[test]
    fn an_end_closes_the_last_begin() {
        let found = paired(&[
            mark(5, 0, false, None),
            mark(5, 5, false, None),
            mark(5, 9, true, None),
            mark(5, 12, true, None),
        ]);
        assert_eq!((spans(&found), found.unpaired_begins, found.unpaired_ends), (vec![(5, 5, 9)], 1, 1));
    }

    #[test]
    fn activities_are_kept_apart() {
        let found = paired(&[
            mark(5, 0, false, Some((1, 1))),
            mark(5, 1, false, Some((2, 1))),
            mark(5, 3, true, Some((1, 2))),
            mark(5, 7, true, Some((2, 2))),
            mark(5, 8, true, Some((3, 2))),
        ]);
        assert_eq!((spans(&found), found.unpaired_ends), (vec![(5, 0, 3), (5, 1, 7)], 1));
    }

    #[test]
    fn within_a_millisecond_order_follows_from_what_is_open() {
        // In the first case, one checkpoint ends in the same millisecond in which the next checkpoint begins. In the
        // other cases, a checkpoint begins and ends in the same millisecond.
        let found =
            paired(&[mark(5, 0, false, None), mark(5, 4, true, None), mark(5, 4, false, None), mark(5, 9, true, None)]);
        assert_eq!(spans(&found), [(5, 0, 4), (5, 4, 9)]);
        assert_eq!(spans(&paired(&[mark(5, 4, false, None), mark(5, 4, true, None)])), [(5, 4, 4)]);
        let found = paired(&[mark(5, 4, false, Some((1, 1))), mark(5, 4, true, Some((1, 2)))]);
        assert_eq!(spans(&found), [(5, 4, 4)]);
    }

    #[test]
    fn a_mark_that_is_repeated_counts_once() {
        let marks = [mark(5, 0, false, Some((1, 1))), mark(5, 3, true, Some((1, 2)))];
        let exact = Mark { at: Moment(marks[0].at.0 + 1234), ..marks[0] };
        let found = paired(&[marks[0], exact, marks[1], marks[1]]);
        assert_eq!((found.repeated, found.checkpoints.len()), (2, 1));
        assert_eq!(found.checkpoints[0].began, exact.at);
    }

    #[test]
    fn totals_are_of_all_and_of_each_hour() {
        let found = pair(vec![
            mark(5, 0, false, None),
            mark(5, 10, true, None),
            mark(5, 3_600_000, false, None),
            mark(5, 3_600_030, true, None),
            mark(5, 7_200_000, false, None),
            mark(5, 7_200_002, true, None),
        ]);
        let all = Totals::of(&found.checkpoints).unwrap();
        assert_eq!(
            (all.count, all.avg_ms(), all.max_ms(), all.total_ms(), all.per_hour()),
            (3, 14.0, 30.0, 42.0, Some(1.0))
        );
        assert_eq!(Totals::of(&found.checkpoints[..1]).unwrap().per_hour(), None);
        let hours: Vec<u64> = by_hour(&found.checkpoints).values().map(|totals| totals.count).collect();
        assert_eq!(hours, [1, 1, 1]);
        assert_eq!(Totals::of([]), None);
    }
}
