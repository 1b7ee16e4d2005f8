//! Restore chains: which full, differential and log backups follow each other without a gap.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use format::Lsn;

use super::forks::{Line, Lines};
use super::open::is_based_on;
use super::sets::{BackupMedia, BackupSet, SetKind};

/// Steps listed in all chains of a database but the newest, which is always listed in full: with as many old full
/// backups as log backups, the lists would grow quadratically.
pub const MOST_STEPS: usize = 1_000_000;

/// A backup set of a database, all its stripes together.
#[derive(Clone, Debug)]
pub struct ChainSet {
    /// The set, according to its first stripe.
    pub set: BackupSet,
    /// The files that hold its stripes.
    pub paths: Vec<PathBuf>,
    /// Stripes that were not found.
    pub missing_stripes: u16,
    /// One of its files is damaged.
    pub is_damaged: bool,
}

impl ChainSet {
    /// Whether it can be restored, as far as its labels say.
    pub fn is_whole(&self) -> bool {
        self.missing_stripes == 0 && !self.is_damaged
    }
}

/// What can be restored from one full backup. Numbers are indexes into [`DatabaseChains::sets`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The full backup.
    pub full: usize,
    /// The recovery forks that it goes through.
    pub line: Arc<Line>,
    /// Its differentials, by time.
    pub differentials: Vec<usize>,
    /// What to restore to get as far as possible: the full backup, the last differential, log backups.
    pub steps: Vec<usize>,
    /// Log backups before the last step that are not listed because of [`MOST_STEPS`].
    pub omitted: usize,
    /// The missing log before later log backups: from LSN, to LSN.
    pub gap: Option<(Lsn, Lsn)>,
}

/// The backups of one database.
#[derive(Clone, Debug)]
pub struct DatabaseChains {
    /// Its name.
    pub database: String,
    /// The server.
    pub server: String,
    /// All sets, by first LSN.
    pub sets: Vec<ChainSet>,
    /// One chain per whole full backup.
    pub chains: Vec<Chain>,
    /// Sets not used by any chain: differentials without their full backup, log backups that follow nothing.
    pub unused: Vec<usize>,
    /// For each of these, why.
    pub reasons: Vec<Unused>,
}

/// Why no chain uses a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unused {
    /// Its files are damaged.
    Damaged,
    /// Some of its stripes were not found.
    StripesMissing,
    /// A differential whose full backup was not found.
    NoFull,
    /// From before or after the database was restored to another moment.
    OtherFork,
    /// A log backup that ends before the oldest full backup: there is nothing to apply it to.
    BeforeFull,
    /// A log backup that another one contains.
    Contained,
    /// A log backup that only a restore to a moment before the differential needs.
    BeforeDifferential,
    /// A log backup after log that is missing.
    AfterGap,
    /// A set of another type.
    NotUnderstood,
}

/// Finds the restore chains in `media`, by database.
pub fn chains(media: &[BackupMedia]) -> Vec<DatabaseChains> {
    let mut databases: BTreeMap<(String, String), Vec<ChainSet>> = BTreeMap::new();
    // For each database, the place of a set in its list.
    let mut known = HashMap::new();
    for media in media {
        for set in &media.sets {
            let id = set.config.binding_id.clone().unwrap_or_default();
            let database = (set.config.database.clone(), id);
            let sets = databases.entry(database.clone()).or_default();
            let index = set.guid.clone().map(|guid| *known.entry((database, guid)).or_insert(sets.len()));
            if let Some(known) = index.and_then(|index| sets.get_mut(index)) {
                // A copy of a file is not another stripe.
                if media.families > 1 && !known.paths.contains(&media.path) {
                    known.missing_stripes = known.missing_stripes.saturating_sub(1);
                    known.paths.push(media.path.clone());
                    known.is_damaged |= !media.damage.is_empty();
                }
                continue;
            }
            sets.push(ChainSet {
                set: set.clone(),
                paths: vec![media.path.clone()],
                missing_stripes: media.families - 1,
                is_damaged: !media.damage.is_empty(),
            });
        }
    }
    databases.into_iter().map(|((database, _), sets)| of_database(database, sets)).collect()
}

fn of_database(database: String, mut sets: Vec<ChainSet>) -> DatabaseChains {
    sets.sort_by_key(|set| (set.set.config.first_lsn, set.set.config.last_lsn, set.set.config.started.clone()));
    let of_kind = |kind: SetKind| {
        let is_kind = move |(_, set): &(usize, &ChainSet)| set.set.kind == kind && set.is_whole();
        sets.iter().enumerate().filter(is_kind).map(|(index, _)| index).collect::<Vec<_>>()
    };
    let (fulls, differentials, logs) = (of_kind(SetKind::Full), of_kind(SetKind::Differential), of_kind(SetKind::Log));
    let lines = Lines::of(&sets);
    let by_line = Logs::by_line(&sets, logs, &lines);
    let (mut most, mut used) = (usize::MAX, vec![HashSet::new(); lines.len()]);
    let newest_first = fulls.iter().rev().filter_map(|&full| {
        let (number, chain) = chain((&sets, full), &differentials, (&lines, &by_line), (most, &mut used))?;
        most = most.min(MOST_STEPS).saturating_sub(chain.steps.len());
        Some((number, chain))
    });
    let mut chains: Vec<(usize, Chain)> = newest_first.collect();
    chains.reverse();
    let used: HashSet<usize> = used.into_iter().flatten().collect();
    let unused: Vec<usize> = (0..sets.len()).filter(|index| !used.contains(index)).collect();
    let restored = Restored::of(&sets, &chains);
    let reason = |index: &usize| why_unused((*index, &sets), &restored, (&lines, &by_line));
    let reasons = unused.iter().map(reason).collect();
    let chains = chains.into_iter().map(|(_, chain)| chain).collect();
    let server = sets.first().map(|set| set.set.config.server.clone()).unwrap_or_default();
    DatabaseChains { database, server, chains, unused, reasons, sets }
}

/// Where the chains of a line of recovery forks start, by its number.
#[derive(Default)]
struct Restored {
    /// Where the oldest full backup ends.
    from: HashMap<usize, Option<Lsn>>,
    /// Where the newest differential ends.
    differential: HashMap<usize, Option<Lsn>>,
}

impl Restored {
    fn of(sets: &[ChainSet], chains: &[(usize, Chain)]) -> Self {
        let mut this = Self::default();
        for (line, chain) in chains {
            let config = |index: usize| sets.get(index).map(|set| &set.set.config);
            let Some(full) = config(chain.full) else { continue };
            let from = this.from.entry(*line).or_insert(full.last_lsn);
            *from = (*from).min(full.last_lsn);
            let last = chain.differentials.iter().filter_map(|&index| config(index)?.last_lsn).max();
            let differential = this.differential.entry(*line).or_default();
            *differential = (*differential).max(last);
        }
        this
    }
}

fn why_unused((index, sets): (usize, &[ChainSet]), restored: &Restored, (lines, by_line): (&Lines, &[Logs])) -> Unused {
    let Some(set) = sets.get(index) else { return Unused::NotUnderstood };
    let config = &set.set.config;
    let lsns = (config.first_lsn, config.last_lsn);
    let line = lines.with(config).find(|line| restored.from.contains_key(line));
    match (set.set.kind, line) {
        _ if set.is_damaged => Unused::Damaged,
        _ if set.missing_stripes > 0 => Unused::StripesMissing,
        (SetKind::Differential, _) => {
            let is_base = |full: &&ChainSet| full.set.kind == SetKind::Full && is_based_on(&set.set, &full.set);
            let is_left = lines.len() > 1 && sets.iter().filter(|full| full.is_whole()).any(|full| is_base(&full));
            if is_left { Unused::OtherFork } else { Unused::NoFull }
        }
        (SetKind::Log, None) if restored.from.is_empty() => Unused::NoFull,
        (SetKind::Log, None) => Unused::OtherFork,
        (SetKind::Log, Some(line)) => match restored.from.get(&line) {
            Some(from) if config.last_lsn <= *from => Unused::BeforeFull,
            _ if by_line.get(line).is_some_and(|logs| logs.contain(index, lsns)) => Unused::Contained,
            _ if restored.differential.get(&line).is_some_and(|last| config.first_lsn < *last) => {
                Unused::BeforeDifferential
            }
            _ => Unused::AfterGap,
        },
        _ => Unused::NotUnderstood,
    }
}

/// The log backups of one line of recovery forks, by their start.
#[derive(Default)]
struct Logs {
    sets: Vec<usize>,
    /// First and last LSN of each.
    lsns: Vec<(Option<Lsn>, Option<Lsn>)>,
    /// For each, the one up to it that reaches farthest; the later one if two reach as far.
    farthest: Vec<usize>,
    /// What follows each of them.
    ways: Vec<Way>,
}

impl Logs {
    /// `logs`, in order, by the number of the line.
    fn by_line(sets: &[ChainSet], logs: Vec<usize>, lines: &Lines) -> Vec<Self> {
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

    /// Adds a log backup; none before it starts later.
    fn push(&mut self, set: usize, lsns: (Option<Lsn>, Option<Lsn>)) {
        let number = self.sets.len();
        let best = self.farthest.last().copied().unwrap_or(number);
        let is_farther = self.lsns.get(best).is_none_or(|(_, last)| lsns.1 >= *last);
        self.farthest.push(if is_farther { number } else { best });
        self.sets.push(set);
        self.lsns.push(lsns);
    }

    /// Among the log backups that start early enough, the one that reaches farthest beyond `at`.
    fn follows(&self, at: Option<Lsn>) -> Option<usize> {
        let started = self.lsns.partition_point(|(first, _)| *first <= at);
        let best = self.farthest.get(started.checked_sub(1)?).copied()?;
        // A log backup of an idle database adds time but no log.
        let (_, last) = self.lsns.get(best)?;
        (at.is_some() && *last >= at).then_some(best)
    }

    /// Whether a log backup other than `set` has all log from `first` to `last`.
    fn contain(&self, set: usize, (first, last): (Option<Lsn>, Option<Lsn>)) -> bool {
        let is_another =
            |best: usize| self.sets.get(best) != Some(&set) && self.lsns.get(best).is_some_and(|(_, end)| *end >= last);
        let started = self.lsns.partition_point(|(other, _)| *other <= first);
        started.checked_sub(1).and_then(|at| self.farthest.get(at)).is_some_and(|&best| is_another(best))
    }

    /// Called once all are there. What follows each does not depend on what comes before it, so the paths from all full
    /// backups join.
    fn join(&mut self) {
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

    /// How far the log backups that follow `start` reach, and the first of them.
    fn reach(&self, start: Option<Lsn>) -> (Option<Lsn>, Option<usize>) {
        let first = self.follows(start);
        let end = first.and_then(|first| self.ways.get(first)).and_then(|way| self.lsns.get(way.end));
        (end.map_or(start, |(_, last)| *last), first)
    }

    /// The log backups from `first` on.
    fn from(&self, first: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(first, |number| self.ways.get(*number).and_then(|way| way.next))
    }
}

/// Where a log backup leads.
#[derive(Clone, Copy, Default)]
struct Way {
    /// The next log backup.
    next: Option<usize>,
    /// Number of log backups from here on, including this one.
    count: usize,
    /// The last of them.
    end: usize,
}

/// The way from a full backup to the end of one line of recovery forks.
struct Reach {
    /// The number of the line.
    line: usize,
    /// The differentials on it.
    differentials: Vec<usize>,
    /// The full backup, or the differential after it.
    start: usize,
    /// The first log backup after that, by its number among those of the line.
    first: Option<usize>,
    /// How far it gets.
    reached: Option<Lsn>,
    /// The last set.
    end: usize,
}

impl Reach {
    fn of(
        (sets, full): (&[ChainSet], usize),
        differentials: &[usize],
        (lines, by_line): (&Lines, &[Logs]),
        line: usize,
    ) -> Option<Self> {
        let config = |index: usize| sets.get(index).map(|set| &set.set.config);
        let (way, logs) = (lines.get(line)?, by_line.get(line)?);
        let is_on_it = |index: &usize| config(*index).is_some_and(|config| way.has(config));
        let differentials: Vec<usize> = differentials.iter().copied().filter(is_on_it).collect();
        // The path over the last differential is the shortest; if its log breaks off sooner, that of the full backup may go
        // on. If two paths reach as far, the one with fewer steps comes first.
        let starts = differentials.last().into_iter().chain([&full]);
        let ways = starts.map(|&start| (logs.reach(config(start).and_then(|config| config.last_lsn)), start));
        let ((reached, first), start) = ways.reduce(|best, way| if way.0.0 > best.0.0 { way } else { best })?;
        let end = first.and_then(|first| logs.sets.get(logs.ways.get(first)?.end)).copied().unwrap_or(start);
        // What ends in an earlier fork is the way to the end of that one.
        let is_there = way.last().is_some_and(|fork| config(end).is_some_and(|end| end.recovery_fork_id == fork.id));
        is_there.then_some(Self { line, differentials, start, first, reached, end })
    }
}

/// The chain of a full backup, with at most this many steps if possible, and the number of its line; marks the sets that it
/// uses, by line. Of several lines it is the one that the database went last.
fn chain(
    (sets, full): (&[ChainSet], usize),
    differentials: &[usize],
    (lines, by_line): (&Lines, &[Logs]),
    (most, used): (usize, &mut [HashSet<usize>]),
) -> Option<(usize, Chain)> {
    let set = |index: usize| sets.get(index).map(|set| &set.set);
    let is_of_this = |index: &usize| set(*index).zip(set(full)).is_some_and(|(set, full)| is_based_on(set, full));
    let differentials: Vec<usize> = differentials.iter().copied().filter(is_of_this).collect();
    let reaches = lines.with(&set(full)?.config);
    let reaches = reaches.filter_map(|line| Reach::of((sets, full), &differentials, (lines, by_line), line));
    let reaches: Vec<Reach> = reaches.collect();
    let left: HashSet<&Option<String>> =
        reaches.iter().filter_map(|reach| lines.get(reach.line)).flat_map(|line| line.left()).collect();
    let is_last = |reach: &&Reach| lines.get(reach.line)?.last().map(|fork| !left.contains(&fork.id));
    let finished = |reach: &&Reach| set(reach.end).map(|set| (set.config.finished.clone(), reach.reached));
    let newest = reaches.iter().filter(|reach| is_last(reach) == Some(true)).max_by_key(finished);
    let reach = newest.or(reaches.last())?;
    let (line, logs, used) = (lines.get(reach.line)?, by_line.get(reach.line)?, used.get_mut(reach.line)?);
    let &Reach { start, first, .. } = reach;
    let mut steps = if start == full { vec![full] } else { vec![full, start] };
    used.extend(steps.iter().chain(&reach.differentials));
    // Those after a used one are used too.
    let numbers = logs.from(first).filter_map(|number| logs.sets.get(number));
    let _ = numbers.take_while(|set| used.insert(**set)).count();
    let way = first.and_then(|first| logs.ways.get(first)).copied().unwrap_or_default();
    let listed = if way.count <= most { first } else { Some(way.end) };
    steps.extend(logs.from(listed).filter_map(|number| logs.sets.get(number)));
    let omitted = if way.count <= most { 0 } else { way.count - 1 };
    let later = logs.lsns.get(logs.lsns.partition_point(|(first, _)| *first <= reach.reached)..);
    let later = later.unwrap_or_default().iter().find_map(|(first, _)| *first);
    let gap = reach.reached.zip(later);
    Some((
        reach.line,
        Chain { full, line: Arc::clone(line), differentials: reach.differentials.clone(), steps, omitted, gap },
    ))
}

/// A set of nothing but LSNs, for tests.
#[cfg(test)]
pub(super) fn set(kind: SetKind, first: u32, last: u32) -> ChainSet {
    ChainSet {
        set: BackupSet {
            position: 1,
            kind,
            name: String::new(),
            description: String::new(),
            user: String::new(),
            machine: String::new(),
            software: (0, 0),
            guid: None,
            labelled: None,
            files: Vec::new(),
            filegroups: Vec::new(),
            has_checksums: false,
            is_copy_only: false,
            is_encrypted: false,
            copied: Vec::new(),
            pages: Vec::new(),
            log: Vec::new(),
            config: super::SetConfig {
                first_lsn: Some(Lsn { vlf: 1, block: first, slot: 1 }),
                last_lsn: Some(Lsn { vlf: 1, block: last, slot: 1 }),
                ..super::SetConfig::default()
            },
        },
        paths: Vec::new(),
        missing_stripes: 0,
        is_damaged: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::BackupFile;

    /// The definition of the steps: among the log backups after the last one that start early enough and reach at least
    /// as far, the one that reaches farthest.
    fn steps_one_by_one(lsns: &[(Option<Lsn>, Option<Lsn>)], mut reached: Option<Lsn>) -> (Option<Lsn>, Vec<usize>) {
        let (mut steps, mut next) = (Vec::new(), 0);
        while let Some(at) = reached {
            let follows = |number: &usize| lsns[*number].0 <= Some(at) && lsns[*number].1 >= Some(at);
            let Some(best) = (next..lsns.len()).filter(follows).max_by_key(|&number| lsns[number].1) else { break };
            steps.push(best);
            (reached, next) = (lsns[best].1, best + 1);
        }
        (reached, steps)
    }

    #[test]
    fn steps_over_log_backups_are_those_found_one_by_one() {
        let mut state = 3u64;
        let mut dice = move |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let lsn = |block: u64| Lsn { vlf: 1, block: block as u32, slot: 1 };
        let mut longest = 0;
        for _ in 0..500 {
            let mut lsns: Vec<_> = (0..dice(30))
                .map(|_| {
                    let first = dice(40);
                    let last = first + dice(4);
                    ((dice(20) > 0).then(|| lsn(first)), (dice(20) > 0).then(|| lsn(last)))
                })
                .collect();
            lsns.sort();
            let mut logs = Logs::default();
            lsns.iter().enumerate().for_each(|(number, lsns)| logs.push(number, *lsns));
            logs.join();
            for start in 0..40 {
                let (reached, first) = logs.reach(Some(lsn(start)));
                let steps = (reached, logs.from(first).collect());
                assert_eq!(steps, steps_one_by_one(&lsns, Some(lsn(start))), "from {start} over {lsns:?}");
                longest = longest.max(steps.1.len());
            }
        }
        assert!(longest > 5);
    }

    #[test]
    fn each_log_backup_without_use_has_its_reason() {
        let log = |first, last| set(SetKind::Log, first, last);
        let mut other_fork = log(20, 30);
        other_fork.set.config.recovery_fork_id = Some("other".to_owned());
        let mut striped = log(31, 32);
        striped.missing_stripes = 1;
        // Full backup, log backups up to the differential, one after it, a gap.
        let mut sets = vec![set(SetKind::Full, 10, 20), set(SetKind::Differential, 40, 50)];
        sets[1].set.files.push(BackupFile {
            is_data: true,
            differential_base_lsn: Some(Lsn { vlf: 1, block: 10, slot: 1 }),
            ..BackupFile::default()
        });
        sets[0].set.config.checkpoint_lsn = Some(Lsn { vlf: 1, block: 10, slot: 1 });
        sets.extend([log(5, 12), log(12, 30), log(14, 18), log(15, 28), log(30, 45), log(45, 60), log(70, 80)]);
        sets.extend([other_fork, striped]);
        let found = of_database(String::new(), sets);
        let blocks = |index: usize| found.sets[index].set.config.first_lsn.unwrap().block;
        let reasons: Vec<_> = found.unused.iter().map(|&index| blocks(index)).zip(found.reasons.clone()).collect();
        let expected = [
            (5, Unused::BeforeFull),
            (12, Unused::BeforeDifferential),
            (14, Unused::BeforeFull),
            (15, Unused::Contained),
            (20, Unused::OtherFork),
            (30, Unused::BeforeDifferential),
            (31, Unused::StripesMissing),
            (70, Unused::AfterGap),
        ];
        assert_eq!(reasons, expected);
        let without_full = of_database(String::new(), vec![log(1, 2)]);
        assert_eq!(without_full.reasons, [Unused::NoFull]);
    }

    /// Backups of one recovery fork: full ones at 0, 1, 2 ..., and log backups from each block to the next.
    fn line(fulls: u32, logs: u32) -> Vec<ChainSet> {
        let fulls = (0..fulls).map(|number| set(SetKind::Full, number, number + 1));
        fulls.chain((0..logs).map(|number| set(SetKind::Log, number, number + 1))).collect()
    }

    #[test]
    fn many_full_backups_share_their_log_backups_and_do_not_list_them_all() {
        let start = std::time::Instant::now();
        let found = of_database(String::new(), line(1_000, 10_000));
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
        assert_eq!(found.chains.len(), 1_000);
        let listed: usize = found.chains.iter().map(|chain| chain.steps.len()).sum();
        assert!(listed < MOST_STEPS + 10_000 + 2 * 1_000, "{listed} steps are kept");
        // The newest is complete, the oldest has its ends.
        let (oldest, newest) = (found.chains.first().unwrap(), found.chains.last().unwrap());
        assert_eq!((newest.steps.len(), newest.omitted), (1 + 9_000, 0));
        assert_eq!((oldest.steps.len(), oldest.omitted), (2, 9_998));
        assert_eq!(oldest.steps.last(), newest.steps.last());
        // The log backup that ends before the first full backup is of no use.
        assert_eq!(found.unused.len(), 1);
        let few = of_database(String::new(), line(3, 100));
        assert!(few.chains.iter().all(|chain| chain.omitted == 0 && chain.steps.len() > 97));
    }

    #[test]
    fn a_hundred_thousand_log_backups_are_visited_once() {
        let found = of_database(String::new(), line(1, 100_000));
        assert_eq!(found.chains.first().unwrap().steps.len(), 100_000);
    }
}
