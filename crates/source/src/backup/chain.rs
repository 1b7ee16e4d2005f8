//! Restore chains: which full backup, differential and log backups follow each other without a gap.

use std::collections::BTreeMap;
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
    for media in media {
        for set in &media.sets {
            let id = set.config.binding_id.clone().unwrap_or_default();
            let sets = databases.entry((set.config.database.clone(), id)).or_default();
            let same = |known: &&mut ChainSet| set.guid.is_some() && known.set.guid == set.guid;
            if let Some(known) = sets.iter_mut().find(same) {
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
    let chains: Vec<Chain> = fulls.iter().map(|&full| chain(&sets, full, &differentials, &logs)).collect();
    let is_used =
        |index: usize| chains.iter().any(|chain| chain.steps.contains(&index) || chain.differentials.contains(&index));
    let unused = (0..sets.len()).filter(|&index| !is_used(index)).collect();
    let server = sets.first().map(|set| set.set.config.server.clone()).unwrap_or_default();
    DatabaseChains { database, server, chains, unused, sets }
}

fn chain(sets: &[ChainSet], full: usize, differentials: &[usize], logs: &[usize]) -> Chain {
    let set = |index: usize| sets.get(index).map(|set| &set.set);
    let last = |index: usize| set(index).and_then(|set| set.config.last_lsn);
    let is_of_this = |index: &usize| set(*index).zip(set(full)).is_some_and(|(set, full)| is_based_on(set, full));
    let differentials: Vec<usize> = differentials.iter().copied().filter(is_of_this).collect();
    let fork = |index: usize| set(index).and_then(|set| set.config.recovery_fork_id.clone());
    let logs: Vec<usize> = logs.iter().copied().filter(|&log| fork(log) == fork(full)).collect();
    // The way over the last differential is the shortest; if its log breaks off sooner, the full backup's may go on.
    let starts = differentials.last().into_iter().chain([&full]);
    let ways = starts.map(|&start| {
        let mut steps = if start == full { vec![full] } else { vec![full, start] };
        let mut reached = last(start);
        let mut rest = logs.as_slice();
        // Log backups are ordered by their start: of those that start early enough the one that leads farthest counts.
        while let Some(at) = reached {
            let follows = |log: &usize| {
                let log = set(*log).map(|set| (set.config.first_lsn, set.config.last_lsn));
                // One of an idle database adds no log, but time.
                log.is_some_and(|(first, last)| first <= Some(at) && last >= Some(at))
            };
            let Some((index, next)) =
                rest.iter().enumerate().filter(|(_, log)| follows(log)).max_by_key(|(_, log)| last(**log))
            else {
                break;
            };
            reached = last(*next);
            steps.push(*next);
            rest = rest.get(index + 1..).unwrap_or_default();
        }
        (reached, steps)
    });
    // Of two ways that lead as far the one with fewer steps comes first.
    let (reached, steps) =
        ways.reduce(|best, way| if way.0 > best.0 { way } else { best }).unwrap_or((None, vec![full]));
    let later = logs.iter().filter_map(|&log| set(log)?.config.first_lsn).filter(|first| Some(*first) > reached).min();
    Chain { full, differentials, steps, gap: reached.zip(later) }
}
