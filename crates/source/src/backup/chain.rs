//! Restore chains: sequences of full, differential and log backups that follow each other without a gap in the log.

mod logs;
mod moments;
mod points;
#[cfg(test)]
pub(super) mod tests;
mod unused;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use format::Lsn;

use super::chain_sets::{ChainSet, bases, by_database};
use super::forks::{Line, Lines};
use super::sets::{BackupMedia, SetKind};
use logs::Logs;
pub use moments::{Missing, Moment};
pub use points::{Beside, Span};
pub use unused::Unused;

/// The most steps listed for all chains of a database together, not counting the newest chain, which is always listed
/// in full. Without this limit, the lists would grow quadratically if a database has as many full backups as log
/// backups.
pub const MOST_STEPS: usize = 1_000_000;

/// The restore chain that starts at one full backup. Each backup set is given by its index in [`DatabaseChains::sets`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The full backup.
    pub full: usize,
    /// The recovery forks that the chain passes through.
    pub line: Arc<Line>,
    /// The differential backups that are based on this full backup, sorted by time.
    pub differentials: Vec<usize>,
    /// The sets to restore for the latest point in time, in order: the full backup, the last differential backup, and
    /// then the log backups.
    pub steps: Vec<usize>,
    /// Number of log backups that `steps` omits because of [`MOST_STEPS`]. They have to be restored before the last
    /// step.
    pub omitted: usize,
    /// The missing log (first LSN, end LSN), if later log backups exist after the end of the chain.
    pub gap: Option<(Lsn, Lsn)>,
}

/// The backups of one database, and the restore chains that they form.
#[derive(Clone, Debug)]
pub struct DatabaseChains {
    /// Name of the database.
    pub database: String,
    /// Name of the server.
    pub server: String,
    /// All backup sets, sorted by first LSN.
    pub sets: Vec<ChainSet>,
    /// One chain per full backup that is complete and undamaged.
    pub chains: Vec<Chain>,
    /// Index of the chain that restores the latest point in time. This is usually the chain of the newest full backup.
    /// It is another chain if the database was restored to an earlier point and other backups show how the database
    /// continued from that point.
    pub newest: Option<usize>,
    /// The points in time that can be restored on the recovery forks of the newest chain, ascending.
    pub points: Vec<Span>,
    /// The points in time that can be restored only on abandoned recovery forks.
    pub left_points: Vec<Span>,
    /// Sets that the newest chain does not need, but that another restore needs.
    pub beside: Vec<Beside>,
    /// Sets that no restore can use, for example differential backups without their full backup, or log backups after a
    /// gap in the log.
    pub unused: Vec<usize>,
    /// For each entry of `unused`, the reason.
    pub reasons: Vec<Unused>,
}

impl DatabaseChains {
    /// The chain that restores the latest point in time.
    pub fn newest(&self) -> Option<&Chain> {
        self.chains.get(self.newest?)
    }

    /// Recomputes the chains of this database, with the sets in `damaged` marked as damaged.
    #[must_use]
    pub fn without(&self, damaged: &HashSet<usize>) -> Self {
        let mut sets = self.sets.clone();
        for (_, set) in sets.iter_mut().enumerate().filter(|(index, _)| damaged.contains(index)) {
            set.is_damaged = true;
        }
        of_database(self.database.clone(), sets)
    }
}

/// Finds the restore chains in `media`, grouped by database.
pub fn chains(media: &[BackupMedia]) -> Vec<DatabaseChains> {
    by_database(media).into_iter().map(|(database, sets)| of_database(database, sets)).collect()
}

/// Like [`chains`], but also uses damaged sets. If a set has several copies, an undamaged copy is preferred.
pub(super) fn chains_of_damaged(media: &[BackupMedia]) -> Vec<DatabaseChains> {
    let as_sound = |(database, mut sets): (String, Vec<ChainSet>)| {
        sets.iter_mut().for_each(|set| set.is_damaged = false);
        of_database(database, sets)
    };
    by_database(media).into_iter().map(as_sound).collect()
}

fn of_database(database: String, sets: Vec<ChainSet>) -> DatabaseChains {
    let model = Model::of(&sets);
    let mut most = usize::MAX;
    let newest_first = model.fulls.iter().rev().filter_map(|&full| {
        let (line, chain) = model.chain(full, most)?;
        most = most.min(MOST_STEPS).saturating_sub(chain.steps.len());
        Some((line, chain))
    });
    let (mut lines, mut chains): (Vec<usize>, Vec<Chain>) = newest_first.unzip();
    lines.reverse();
    chains.reverse();
    let newest = newest_of(&chains);
    let line = newest.and_then(|newest| lines.get(newest)).copied();
    if let Some(chain) = newest.and_then(|newest| chains.get_mut(newest)).filter(|chain| chain.omitted > 0)
        && let Some((_, whole)) = model.chain(chain.full, usize::MAX)
    {
        *chain = whole;
    }
    let steps = newest.and_then(|newest| chains.get(newest)).map(|chain| chain.steps.as_slice()).unwrap_or_default();
    let found = points::of(&model, line, steps);
    let unused: Vec<usize> = (0..sets.len()).filter(|index| !found.used.contains(index)).collect();
    let reasons = unused.iter().map(|&index| unused::reason(&model, index, &found.gaps)).collect();
    let points::Points { current: points, left: left_points, beside, .. } = found;
    let server = sets.last().map(|set| set.set.config.server.clone()).unwrap_or_default();
    DatabaseChains { database, server, chains, newest, points, left_points, beside, unused, reasons, sets }
}

/// The index of the last chain whose recovery fork was not abandoned by a restore, as far as the chains show. If all
/// forks were abandoned, the index of the last chain. `None` if there are no chains.
fn newest_of(chains: &[Chain]) -> Option<usize> {
    let left: HashSet<&Option<String>> = chains.iter().flat_map(|chain| chain.line.left()).collect();
    let is_left = |chain: &Chain| chain.line.last().is_some_and(|fork| left.contains(&fork.id));
    chains.iter().rposition(|chain| !is_left(chain)).or(chains.len().checked_sub(1))
}

/// The backup sets of a database, and the relations between them that decide which restores are possible.
struct Model<'s> {
    sets: &'s [ChainSet],
    lines: Lines,
    /// For each line, its log backups. A line is the sequence of recovery forks that a database passed through.
    logs: Vec<Logs>,
    /// For each differential backup, the index of its full backup.
    bases: Vec<Option<usize>>,
    /// The full backups that are complete and undamaged.
    fulls: Vec<usize>,
    /// The complete and undamaged differential backups of each full backup.
    differentials: HashMap<usize, Vec<usize>>,
    /// The possible starts of a restore on each line of recovery forks: each full backup alone, and each full backup
    /// with one of its differential backups.
    starts: Vec<Vec<Start>>,
}

impl<'s> Model<'s> {
    fn of(sets: &'s [ChainSet]) -> Self {
        let whole = |kind: SetKind| {
            let is_kind = move |(_, set): &(usize, &ChainSet)| set.set.kind == kind && set.is_whole();
            sets.iter().enumerate().filter(is_kind).map(|(index, _)| index)
        };
        let bases = bases(sets);
        let fulls: Vec<usize> = whole(SetKind::Full).collect();
        let mut differentials: HashMap<usize, Vec<usize>> = HashMap::new();
        for index in whole(SetKind::Differential) {
            if let Some(base) = bases.get(index).copied().flatten() {
                differentials.entry(base).or_default().push(index);
            }
        }
        let lines = Lines::of(sets, &bases);
        let logs = Logs::by_line(sets, whole(SetKind::Log).collect(), &lines);
        let mut model = Self { sets, lines, logs, bases, fulls, differentials, starts: Vec::new() };
        model.starts = model.find_starts();
        model
    }

    fn find_starts(&self) -> Vec<Vec<Start>> {
        let mut starts: Vec<Vec<Start>> = vec![Vec::new(); self.lines.len()];
        for &full in &self.fulls {
            let lines = self.set(full).into_iter().flat_map(|set| self.lines.with(&set.set.config));
            for line in lines {
                let Some(starts) = starts.get_mut(line) else { continue };
                starts.push(Start { full, differential: None });
                starts.extend(self.differentials_on(line, full).map(|index| Start { full, differential: Some(index) }));
            }
        }
        starts
    }

    /// Those differential backups of a full backup that belong to a line of recovery forks.
    fn differentials_on(&self, line: usize, full: usize) -> impl Iterator<Item = usize> + '_ {
        let differentials = self.differentials.get(&full).into_iter().flatten().copied();
        differentials.filter(move |&index| self.is_on(line, index))
    }

    /// The possible starts of a restore on a line of recovery forks.
    fn starts(&self, line: usize) -> &[Start] {
        self.starts.get(line).map(Vec::as_slice).unwrap_or_default()
    }

    fn set(&self, index: usize) -> Option<&'s ChainSet> {
        self.sets.get(index)
    }

    fn last_lsn(&self, index: usize) -> Option<Lsn> {
        self.set(index)?.set.config.last_lsn
    }

    fn finished(&self, index: usize) -> Option<&'s str> {
        self.set(index)?.set.config.finished.as_deref()
    }

    /// The time up to which a log backup certainly contains the log; `None` if the backup has no times. A change
    /// committed while the backup runs may be in this log backup or in the next one.
    fn log_until(&self, index: usize) -> Option<&'s str> {
        let config = &self.set(index)?.set.config;
        config.started.as_deref().or(config.finished.as_deref())
    }

    fn is_on(&self, line: usize, index: usize) -> bool {
        let line = self.lines.get(line);
        line.zip(self.set(index)).is_some_and(|(line, set)| line.has(&set.set.config))
    }

    /// The steps of a restore on a line of recovery forks: the sets of `start`, followed by the log backups of the
    /// line, beginning with the log backup that has the number `first`.
    fn steps(&self, line: usize, start: Start, first: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        let logs = self.logs.get(line);
        let after = logs.into_iter().flat_map(move |logs| logs.from(first).filter_map(|number| logs.sets.get(number)));
        std::iter::once(start.full).chain(start.differential).chain(after.copied())
    }

    /// The log that is missing on a line of recovery forks after the LSN `reached` (first LSN, end LSN); `None` if no
    /// later log backup exists.
    fn gap_after(&self, line: usize, reached: Option<Lsn>) -> Option<(Lsn, Lsn)> {
        let lsns = &self.logs.get(line)?.lsns;
        let later = lsns.get(lsns.partition_point(|(first, _)| *first <= reached)..).unwrap_or_default();
        reached.zip(later.iter().find_map(|(first, _)| *first))
    }

    /// The chain that starts at a full backup, and the index of the line (the sequence of recovery forks) that the
    /// chain follows. A chain with more than `most` steps omits most of its log backups. If the full backup is on
    /// several lines, the line that the database followed last is used. `None` if no line has a path from the full
    /// backup.
    fn chain(&self, full: usize, most: usize) -> Option<(usize, Chain)> {
        let lines = self.lines.with(&self.set(full)?.set.config);
        let reaches: Vec<Reach> = lines.filter_map(|line| Reach::of(self, full, line)).collect();
        let line_of = |reach: &Reach| self.lines.get(reach.line);
        let left: HashSet<&Option<String>> = reaches.iter().filter_map(line_of).flat_map(|line| line.left()).collect();
        let is_last = |reach: &&Reach| Some(!left.contains(&line_of(reach)?.last()?.id));
        let finished = |reach: &&Reach| Some((self.set(reach.end)?.set.config.finished.clone(), reach.reached));
        let newest = reaches.iter().filter(|reach| is_last(reach) == Some(true)).max_by_key(finished);
        let reach = newest.or(reaches.last())?;
        let (line, logs) = (line_of(reach)?, self.logs.get(reach.line)?);
        let way = reach.first.map(|first| logs.way(first)).unwrap_or_default();
        let (listed, omitted) = if way.count <= most { (reach.first, 0) } else { (Some(way.end), way.count - 1) };
        let chain = Chain {
            full,
            line: Arc::clone(line),
            differentials: reach.differentials.clone(),
            steps: self.steps(reach.line, reach.start, listed).collect(),
            omitted,
            gap: self.gap_after(reach.line, reach.reached),
        };
        Some((reach.line, chain))
    }
}

/// The start of a restore: a full backup, with or without a differential backup.
#[derive(Clone, Copy)]
struct Start {
    full: usize,
    /// The differential backup to restore after the full backup, if there is one.
    differential: Option<usize>,
}

impl Start {
    /// The set that is restored last at this start: the differential backup if there is one, otherwise the full backup.
    fn set(self) -> usize {
        self.differential.unwrap_or(self.full)
    }
}

/// The path from a full backup to the end of one line of recovery forks.
struct Reach {
    /// The index of the line (the sequence of recovery forks) that the path follows.
    line: usize,
    /// The differential backups of the full backup on this line.
    differentials: Vec<usize>,
    start: Start,
    /// The first log backup after `start`, by its number among the log backups of the line; `None` if the path has no
    /// log backups.
    first: Option<usize>,
    /// The LSN that the path reaches.
    reached: Option<Lsn>,
    /// The last set of the path.
    end: usize,
}

impl Reach {
    fn of(model: &Model<'_>, full: usize, line: usize) -> Option<Self> {
        let (way, logs) = (model.lines.get(line)?, model.logs.get(line)?);
        let differentials: Vec<usize> = model.differentials_on(line, full).collect();
        // The path through the last differential backup is the shortest. If the log after that backup ends early, the
        // path with only the full backup may reach a later LSN. If the two paths reach the same LSN, the shorter path
        // is used.
        let over = differentials.last().map(|&last| Start { full, differential: Some(last) });
        let starts = over.into_iter().chain([Start { full, differential: None }]);
        let ways = starts.map(|start| (logs.reach(model.last_lsn(start.set())), start));
        let ((reached, first), start) = ways.reduce(|best, way| if way.0.0 > best.0.0 { way } else { best })?;
        let end = first.and_then(|first| logs.sets.get(logs.way(first).end)).copied().unwrap_or(start.set());
        // A path that ends in an earlier fork of this line is left out here, because it belongs to the line that ends
        // with that fork.
        let end_fork = &model.set(end)?.set.config.recovery_fork_id;
        let is_there = way.last().is_some_and(|fork| fork.id == *end_fork);
        is_there.then_some(Self { line, differentials, start, first, reached, end })
    }
}
