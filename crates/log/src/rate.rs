//! Computes the amount of log written over time.

use std::collections::BTreeMap;

use format::log::{Block, LogTime, Operation};

/// The maximum number of time steps to keep. If the log needs more steps, each step is made longer.
const MOST_STEPS: usize = 4096;
/// The lengths of a step, in seconds, while the log is being read. Each length divides the next one.
const LENGTHS: [i64; 7] = [60, 600, 3600, 21_600, 86_400, 7 * 86_400, 364 * 86_400];
/// The lengths of a step, in seconds, that a result can have. Each is a period that is easy to read, such as ten
/// minutes or a day.
const SHOWN: [i64; 17] = [
    60,
    120,
    300,
    600,
    1800,
    3600,
    7200,
    10_800,
    21_600,
    43_200,
    86_400,
    2 * 86_400,
    7 * 86_400,
    14 * 86_400,
    28 * 86_400,
    91 * 86_400,
    364 * 86_400,
];
const SECONDS_PER_DAY: i64 = 86_400;
const TICKS_PER_SECOND: i64 = 300;

/// The log that was written in one time step.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Step {
    /// The size of the log blocks in bytes.
    pub log_bytes: u64,
    /// The number of records.
    pub records: u64,
    /// The number of transactions that ended.
    pub transactions: u64,
}

impl Step {
    fn add(&mut self, other: Self) {
        self.log_bytes += other.log_bytes;
        self.records += other.records;
        self.transactions += other.transactions;
    }
}

/// Adds up the blocks of a log by time, in the server's local time. The time of a block is the time at which the block
/// was closed. If this time is unknown, `Rate` uses the last time in the records of the block. If the records contain
/// no time, it uses the time of the previous block.
#[derive(Debug, Default)]
pub struct Rate {
    /// The steps by number. Step 0 begins on 1900-01-01.
    steps: BTreeMap<i64, Step>,
    /// The index of the current step length in [`LENGTHS`].
    length: usize,
    now: Option<LogTime>,
    /// The sum of the sizes and counts of all blocks before the first block with a known time.
    early: Step,
}

impl Rate {
    /// Adds the size, records and ended transactions of a block to the time step that contains the block's time.
    pub fn add(&mut self, block: &Block<'_>) {
        let (mut named, mut transactions) = (None, 0);
        for (_, record) in block.records() {
            let time = match record.operation() {
                Operation::BEGIN_XACT => record.begin_transaction().and_then(|begin| begin.began),
                Operation::COMMIT_XACT | Operation::ABORT_XACT => {
                    transactions += 1;
                    record.end_transaction().and_then(|(ended, _)| ended)
                }
                Operation::BEGIN_CKPT => record.begin_checkpoint().and_then(|begin| begin.began),
                _ => None,
            };
            named = time.or(named);
        }
        self.now = block.closed().or(named).or(self.now);
        let step = Step { log_bytes: block.size() as u64, records: block.record_count() as u64, transactions };
        let Some(now) = self.now else { return self.early.add(step) };
        let early = std::mem::take(&mut self.early);
        let entry = self.steps.entry(seconds(now).div_euclid(self.length())).or_default();
        entry.add(early);
        entry.add(step);
        while self.steps.len() > MOST_STEPS && self.length + 1 < LENGTHS.len() {
            let before = self.length();
            self.length += 1;
            self.steps = joined(&self.steps, before, self.length());
        }
    }

    fn length(&self) -> i64 {
        LENGTHS.get(self.length).copied().unwrap_or(SECONDS_PER_DAY)
    }

    /// Returns the length of a step in seconds, and the steps in which log was written, each with its start time. The
    /// length is the shortest round period that gives at most `most` steps. If no time in the log is known, there are
    /// no steps.
    pub fn steps(&self, most: usize) -> (i64, Vec<(LogTime, Step)>) {
        let length = self.length();
        let fitting = |shown: &i64| shown % length == 0 && joined(&self.steps, length, *shown).len() <= most;
        let longest = SHOWN.last().copied().unwrap_or(length);
        let shown = SHOWN.iter().copied().find(fitting).unwrap_or(longest);
        let steps = joined(&self.steps, length, shown);
        (shown, steps.into_iter().map(|(number, step)| (time(number * shown), step)).collect())
    }
}

/// Joins steps of `length` seconds into steps of `longer` seconds.
fn joined(steps: &BTreeMap<i64, Step>, length: i64, longer: i64) -> BTreeMap<i64, Step> {
    let mut joined: BTreeMap<i64, Step> = BTreeMap::new();
    for (number, step) in steps {
        joined.entry((number * length).div_euclid(longer)).or_default().add(*step);
    }
    joined
}

/// The number of seconds since 1900-01-01.
fn seconds(time: LogTime) -> i64 {
    i64::from(time.days) * SECONDS_PER_DAY + i64::from(time.ticks) / TICKS_PER_SECOND
}

fn time(seconds: i64) -> LogTime {
    LogTime {
        days: i32::try_from(seconds.div_euclid(SECONDS_PER_DAY)).unwrap_or_default(),
        ticks: (seconds.rem_euclid(SECONDS_PER_DAY) * TICKS_PER_SECOND) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(times: &[i64]) -> Rate {
        let mut rate = Rate::default();
        for second in times {
            let step = Step { log_bytes: 512, records: 2, transactions: 1 };
            rate.steps.entry(second.div_euclid(60)).or_default().add(step);
        }
        rate
    }

    #[test]
    fn the_shortest_step_that_makes_few_enough_is_shown_and_nothing_is_lost() {
        const DAY: i64 = 40_000 * SECONDS_PER_DAY;
        for (times, length, count) in [
            ((0..12).map(|minute| DAY + 60 * minute).collect::<Vec<_>>(), 60, 12),
            ((0..120).map(|minute| DAY + 60 * minute).collect(), 600, 12),
            // Log was written in only three steps, and the last of these steps is years after the others. Steps without
            // log are not counted, so the shortest step length must be enough.
            (vec![DAY, DAY + 60, DAY + 900 * SECONDS_PER_DAY], 60, 3),
            ((0..400).map(|day| DAY + day * SECONDS_PER_DAY).collect(), 91 * SECONDS_PER_DAY, 5),
        ] {
            let rate = rate(&times);
            let (found, steps) = rate.steps(12);
            assert_eq!((found, steps.len()), (length, count), "{times:?}");
            assert_eq!(steps.iter().map(|(_, step)| step.records).sum::<u64>(), 2 * times.len() as u64);
            assert!(steps.first().is_some_and(|(first, _)| seconds(*first) <= times[0]));
        }
        assert!(Rate::default().steps(12).1.is_empty());
    }
}
