//! The totals of a log: sums over all its checkpoints, and its largest transactions.

use std::collections::VecDeque;

use format::log::LogTime;

use crate::history::{Checkpoint, Event, Transaction};

/// The maximum length of each list: longest checkpoints, latest checkpoints, and largest transactions.
const KEPT: usize = 5;

/// Sums over the transactions and checkpoints of a log.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// The number of checkpoints whose begin and end times are both known.
    pub timed_checkpoints: u64,
    /// The sum of the durations of the timed checkpoints, in milliseconds.
    pub checkpoint_ms: i64,
    /// The bytes of log from the start of the previous checkpoint to the start of a checkpoint, summed over all timed
    /// checkpoints.
    pub checkpoint_log_bytes: u64,
    /// The time at which the first checkpoint began.
    pub first: Option<LogTime>,
    /// The time at which the last checkpoint began.
    pub last: Option<LogTime>,
    /// The longest checkpoints, longest first. Of two checkpoints with equal durations, the earlier one comes first.
    pub longest: Vec<Checkpoint>,
    /// The latest checkpoints that ended, in the order of the log.
    pub latest: VecDeque<Checkpoint>,
    /// The transactions with the most log, largest first.
    pub largest: Vec<Transaction>,
}

/// The duration of a checkpoint in milliseconds; `None` if a time is missing.
pub fn duration_ms(checkpoint: &Checkpoint) -> Option<i64> {
    Some(checkpoint.ended?.ms_since(checkpoint.began?))
}

impl Totals {
    /// Adds a transaction or checkpoint.
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Transaction(transaction) => keep(&mut self.largest, transaction, |kept| kept.log_bytes),
            Event::Checkpoint(checkpoint) => {
                self.first = self.first.or(checkpoint.began);
                self.last = checkpoint.began.or(self.last);
                if let Some(ms) = duration_ms(checkpoint) {
                    self.timed_checkpoints += 1;
                    self.checkpoint_ms = self.checkpoint_ms.saturating_add(ms);
                    self.checkpoint_log_bytes += checkpoint.log_bytes;
                    self.latest.push_back(*checkpoint);
                    if self.latest.len() > KEPT {
                        self.latest.pop_front();
                    }
                    keep(&mut self.longest, checkpoint, |kept| duration_ms(kept).unwrap_or_default());
                }
            }
        }
    }
}

/// Inserts `new` before the smaller items in `kept`, if `new` is among the largest.
fn keep<T: Clone, K: Ord>(kept: &mut Vec<T>, new: &T, key: impl Fn(&T) -> K) {
    let at = kept.partition_point(|other| key(other) >= key(new));
    if at < KEPT {
        kept.insert(at, new.clone());
        kept.truncate(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_kept_in_order_and_of_equals_the_first() {
        let mut kept = Vec::new();
        for (number, size) in [3, 9, 1, 9, 4, 4, 7, 2].into_iter().enumerate() {
            keep(&mut kept, &(size, number), |(size, _)| *size);
        }
        assert_eq!(kept, [(9, 1), (9, 3), (7, 6), (4, 4), (4, 5)]);
    }
}
