//! The log backups of one line of recovery forks (a recovery fork and its ancestors), and the order in which a restore
//! applies them.

use format::Lsn;

use crate::backup::chain_sets::ChainSet;
use crate::backup::forks::Lines;

/// The log backups of one line of recovery forks, sorted by first LSN.
#[derive(Default)]
pub(super) struct Logs {
    pub(super) sets: Vec<usize>,
    /// First and last LSN of each log backup.
    pub(super) lsns: Vec<(Option<Lsn>, Option<Lsn>)>,
    /// For each log backup, the index of the log backup with the greatest last LSN, among the log backups up to and
    /// including this one. If two last LSNs are equal, the index of the later log backup.
    farthest: Vec<usize>,
    /// For each log backup, the log backups that a restore applies from this one on.
    ways: Vec<Way>,
}

impl Logs {
    /// Distributes `logs` among the lines of recovery forks. A log backup is added to every line to which it belongs.
    /// In the result, the index of an entry is the number of its line.
    pub(super) fn by_line(sets: &[ChainSet], logs: Vec<usize>, lines: &Lines) -> Vec<Self> {
        let mut by_line: Vec<Self> = (0..lines.len()).map(|_| Self::default()).collect();
        for index in logs {
            let Some(config) = sets.get(index).map(|set| &set.set.config) else { continue };
            for line in lines.with(config) {
                if let Some(logs) = by_line.get_mut(line) {
                    logs.push(index, (config.first_lsn, config.last_lsn));
                }
            }
        }
        by_line.iter_mut().for_each(Self::join);
        by_line
    }

    /// Adds a log backup. Log backups must be added in ascending order of their first LSNs.
    pub(super) fn push(&mut self, set: usize, lsns: (Option<Lsn>, Option<Lsn>)) {
        let number = self.sets.len();
        let best = self.farthest.last().copied().unwrap_or(number);
        let is_farther = self.lsns.get(best).is_none_or(|(_, last)| lsns.1 >= *last);
        self.farthest.push(if is_farther { number } else { best });
        self.sets.push(set);
        self.lsns.push(lsns);
    }

    /// Returns the next log backup to apply after a restore up to `at`: among the log backups that start no later than
    /// `at`, the one with the greatest last LSN. `None` if this last LSN is before `at`.
    pub(super) fn follows(&self, at: Option<Lsn>) -> Option<usize> {
        let started = self.lsns.partition_point(|(first, _)| *first <= at);
        let best = self.farthest.get(started.checked_sub(1)?).copied()?;
        // The last LSN may equal `at`: a log backup of an idle database contains no new log, but it extends the
        // restorable time.
        let (_, last) = self.lsns.get(best)?;
        (at.is_some() && *last >= at).then_some(best)
    }

    /// Finds, for each log backup, the log backups that a restore applies after it. These log backups do not depend on
    /// the earlier steps of the restore, so they are the same for every full backup at which the restore may start.
    /// Must be called after the last [`Self::push`].
    pub(super) fn join(&mut self) {
        let mut ways: Vec<Way> = vec![Way::default(); self.sets.len()];
        for number in (0..self.sets.len()).rev() {
            let reached = self.lsns.get(number).and_then(|(_, last)| *last);
            let next = self.follows(reached).filter(|next| *next > number);
            let rest = next.and_then(|next| ways.get(next)).copied().unwrap_or(Way { next, count: 0, end: number });
            if let Some(way) = ways.get_mut(number) {
                *way = Way { next, count: rest.count + 1, end: rest.end };
            }
        }
        self.ways = ways;
    }

    /// The last LSN that can be reached with log backups after a restore up to `start`, and the number of the first log
    /// backup to apply.
    pub(super) fn reach(&self, start: Option<Lsn>) -> (Option<Lsn>, Option<usize>) {
        let first = self.follows(start);
        let end = first.and_then(|first| self.ways.get(first)).and_then(|way| self.lsns.get(way.end));
        (end.map_or(start, |(_, last)| *last), first)
    }

    /// Returns the log backups to restore from the log backup with this number on.
    pub(super) fn way(&self, number: usize) -> Way {
        self.ways.get(number).copied().unwrap_or_default()
    }

    /// The numbers of the log backups to restore, beginning with `first`.
    pub(super) fn from(&self, first: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(first, |number| self.ways.get(*number).and_then(|way| way.next))
    }
}

/// The log backups to restore from a given log backup on.
#[derive(Clone, Copy, Default)]
pub(super) struct Way {
    /// The number of the next log backup.
    pub(super) next: Option<usize>,
    /// The number of log backups to restore, including the given log backup.
    pub(super) count: usize,
    /// The number of the last log backup to restore.
    pub(super) end: usize,
}
