//! Restore chains: which full backup, differential and log backups follow each other without a gap.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use format::Lsn;

use super::open::is_based_on;
use super::sets::{BackupMedia, BackupSet, SetKind};

/// A backup set of a database, all its stripes together.
#[derive(Clone, Debug)]
pub struct ChainSet {
    /// The set, as its first stripe has it.
    pub set: BackupSet,
    /// The files that hold its stripes.
    pub paths: Vec<PathBuf>,
    /// Stripes that were not found.
    pub missing_stripes: u16,
    /// Damage was met in one of its files.
    pub is_damaged: bool,
}

impl ChainSet {
    /// Whether it can be restored as far as its labels tell.
    pub fn is_whole(&self) -> bool {
        self.missing_stripes == 0 && !self.is_damaged
    }
}

/// What can be restored from one full backup. Numbers are indexes of [`DatabaseChains::sets`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The full backup.
    pub full: usize,
    /// Differentials of it, by time.
    pub differentials: Vec<usize>,
    /// What to restore to come as far as possible: the full backup, the last differential, log backups.
    pub steps: Vec<usize>,
    /// Where the log breaks off although there are later log backups: log from here to there is missing.
    pub gap: Option<(Lsn, Lsn)>,
}

/// The backups of one database.
#[derive(Clone, Debug)]
pub struct DatabaseChains {
    /// Its name, and that of its server.
    pub database: String,
    /// The server.
    pub server: String,
    /// All sets, by first LSN.
    pub sets: Vec<ChainSet>,
    /// One chain a full backup that is whole.
    pub chains: Vec<Chain>,
    /// Sets that no chain uses: differentials without their full backup, log that follows on nothing.
    pub unused: Vec<usize>,
}

/// Finds the restore chains in `media`, by database.
pub fn chains(media: &[BackupMedia]) -> Vec<DatabaseChains> {
    let mut databases: BTreeMap<(String, String), Vec<ChainSet>> = BTreeMap::new();
    // Of each database, the place of a set in its list.
    let mut known = HashMap::new();
    for media in media {
        for set in &media.sets {
            let id = set.config.binding_id.clone().unwrap_or_default();
            let database = (set.config.database.clone(), id);
            let sets = databases.entry(database.clone()).or_default();
            let index = set.guid.clone().map(|guid| *known.entry((database, guid)).or_insert(sets.len()));
            if let Some(known) = index.and_then(|index| sets.get_mut(index)) {
                // A copy of a file is no other stripe.
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
    let by_fork = Logs::by_fork(&sets, logs);
    let chains: Vec<Chain> = fulls.iter().map(|&full| chain(&sets, full, &differentials, &by_fork)).collect();
    let used: HashSet<usize> =
        chains.iter().flat_map(|chain| chain.steps.iter().chain(&chain.differentials)).copied().collect();
    let unused = (0..sets.len()).filter(|index| !used.contains(index)).collect();
    let server = sets.first().map(|set| set.set.config.server.clone()).unwrap_or_default();
    DatabaseChains { database, server, chains, unused, sets }
}

/// The log backups of one line of restores, by their start.
#[derive(Default)]
struct Logs {
    sets: Vec<usize>,
    /// First and last LSN of each.
    lsns: Vec<(Option<Lsn>, Option<Lsn>)>,
    /// For each, the one up to it that leads farthest; of two that lead as far the later one.
    farthest: Vec<usize>,
}

impl Logs {
    /// `logs`, which are in order, by the line of restores that they belong to.
    fn by_fork(sets: &[ChainSet], logs: Vec<usize>) -> HashMap<Option<String>, Self> {
        let mut forks: HashMap<Option<String>, Self> = HashMap::new();
        for index in logs {
            let Some(config) = sets.get(index).map(|set| &set.set.config) else { continue };
            forks.entry(config.recovery_fork_id.clone()).or_default().push(index, (config.first_lsn, config.last_lsn));
        }
        forks
    }

    /// Adds a log backup that starts no earlier than those before.
    fn push(&mut self, set: usize, lsns: (Option<Lsn>, Option<Lsn>)) {
        let number = self.sets.len();
        let best = self.farthest.last().copied().unwrap_or(number);
        let is_farther = self.lsns.get(best).is_none_or(|(_, last)| lsns.1 >= *last);
        self.farthest.push(if is_farther { number } else { best });
        self.sets.push(set);
        self.lsns.push(lsns);
    }

    /// The log backups that lead on from `at`, each starting early enough and leading farthest, and how far they lead.
    fn steps_from(&self, mut reached: Option<Lsn>) -> (Option<Lsn>, Vec<usize>) {
        let (mut steps, mut before) = (Vec::new(), None);
        while let Some(at) = reached {
            let started = self.lsns.partition_point(|(first, _)| *first <= Some(at));
            let best = started.checked_sub(1).and_then(|number| self.farthest.get(number)).copied();
            let Some(best) = best.filter(|best| before.is_none_or(|before| *best > before)) else { break };
            let (Some(&(_, last)), Some(&set)) = (self.lsns.get(best), self.sets.get(best)) else { break };
            // One of an idle database adds no log, but time.
            if last < Some(at) {
                break;
            }
            (reached, before) = (last, Some(best));
            steps.push(set);
        }
        (reached, steps)
    }
}

fn chain(sets: &[ChainSet], full: usize, differentials: &[usize], by_fork: &HashMap<Option<String>, Logs>) -> Chain {
    let set = |index: usize| sets.get(index).map(|set| &set.set);
    let last = |index: usize| set(index).and_then(|set| set.config.last_lsn);
    let is_of_this = |index: &usize| set(*index).zip(set(full)).is_some_and(|(set, full)| is_based_on(set, full));
    let differentials: Vec<usize> = differentials.iter().copied().filter(is_of_this).collect();
    let nothing = Logs::default();
    let logs = set(full).and_then(|set| by_fork.get(&set.config.recovery_fork_id)).unwrap_or(&nothing);
    // The way over the last differential is the shortest; if its log breaks off sooner, the full backup's may go on.
    let starts = differentials.last().into_iter().chain([&full]);
    let ways = starts.map(|&start| {
        let (reached, logs) = logs.steps_from(last(start));
        let start = if start == full { vec![full] } else { vec![full, start] };
        (reached, [start, logs].concat())
    });
    // Of two ways that lead as far the one with fewer steps comes first.
    let (reached, steps) =
        ways.reduce(|best, way| if way.0 > best.0 { way } else { best }).unwrap_or((None, vec![full]));
    let later = logs.lsns.get(logs.lsns.partition_point(|(first, _)| *first <= reached)..);
    let later = later.unwrap_or_default().iter().find_map(|(first, _)| *first);
    Chain { full, differentials, steps, gap: reached.zip(later) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps as they are defined: of the log backups after the last one those that start early enough and lead as far at
    /// least, and of these the one that leads farthest.
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
    fn steps_over_log_backups_are_those_that_one_by_one_are_found() {
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
            for start in 0..40 {
                let steps = logs.steps_from(Some(lsn(start)));
                assert_eq!(steps, steps_one_by_one(&lsns, Some(lsn(start))), "from {start} over {lsns:?}");
                longest = longest.max(steps.1.len());
            }
        }
        assert!(longest > 5);
    }

    #[test]
    fn a_hundred_thousand_log_backups_are_gone_through_once() {
        let mut logs = Logs::default();
        let lsn = |block: u32| Some(Lsn { vlf: 1, block, slot: 1 });
        for number in 0..100_000u32 {
            logs.push(number as usize, (lsn(number), lsn(number + 1)));
        }
        assert_eq!(logs.steps_from(lsn(0)).1.len(), 100_000);
    }
}
