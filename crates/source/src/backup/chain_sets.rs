//! Groups the sets in backup files by database. The stripes of a set are joined; copies of a set count once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use format::{Lsn, version};

use super::damage::{Damage, DamageKind};
use super::open::is_based_on;
use super::sets::{BackupMedia, BackupSet, SetKind};

/// A differential backup is compared with at most this number of full backups that have the same checkpoint LSN. Each
/// full backup makes its own checkpoint, so only forged labels give many full backups the same checkpoint LSN.
const MOST_WITH_ONE_CHECKPOINT: usize = 16;

/// A backup set of a database, with all its stripes.
#[derive(Clone, Debug)]
pub struct ChainSet {
    /// The set as its first undamaged stripe describes it. If all stripes are damaged, the set as its first stripe
    /// describes it.
    pub set: BackupSet,
    /// The files that hold the stripes.
    pub paths: Vec<PathBuf>,
    /// Copies of the stripe files, at other paths.
    pub copies: Vec<PathBuf>,
    /// Number of stripes.
    pub stripes: u16,
    /// Number of stripes that were not found.
    pub missing_stripes: u16,
    /// The numbers of the missing stripes, from 1; a long list is cut off.
    pub missing: Vec<u16>,
    /// Whether one of the files is damaged.
    pub is_damaged: bool,
}

impl ChainSet {
    /// Whether the set can be restored, according to its labels.
    pub fn is_whole(&self) -> bool {
        self.missing_stripes == 0 && !self.is_damaged && !self.is_too_old()
    }

    /// Whether the set was written by a SQL Server version whose backups this program does not understand.
    pub fn is_too_old(&self) -> bool {
        let found = self.set.config.version;
        found != 0 && found < version::OLDEST
    }
}

/// A stripe of a set, found in one file.
struct Stripe {
    family: u16,
    path: PathBuf,
    is_damaged: bool,
}

/// A set during the collection of its stripes.
struct Collected {
    /// The set as its first undamaged stripe describes it. If all stripes are damaged, the set as its first stripe
    /// describes it.
    set: BackupSet,
    is_damaged: bool,
    families: u16,
    stripes: Vec<Stripe>,
}

impl Collected {
    fn finish(self) -> ChainSet {
        // If a stripe has several copies, an undamaged copy is preferred.
        let mut best: BTreeMap<u16, Stripe> = BTreeMap::new();
        let mut copies = Vec::new();
        for stripe in self.stripes {
            let Some(known) = best.get_mut(&stripe.family) else {
                best.insert(stripe.family, stripe);
                continue;
            };
            let copy = if known.is_damaged && !stripe.is_damaged { std::mem::replace(known, stripe) } else { stripe };
            copies.push(copy.path);
        }
        let missing = (1..=self.families).filter(|family| !best.contains_key(family));
        let found = u16::try_from(best.range(1..=self.families).count()).unwrap_or(u16::MAX);
        ChainSet {
            set: self.set,
            missing: missing.take(MOST_MISSING_NAMED).collect(),
            missing_stripes: self.families.saturating_sub(found),
            stripes: self.families,
            is_damaged: best.values().any(|stripe| stripe.is_damaged),
            paths: best.into_values().map(|stripe| stripe.path).collect(),
            copies,
        }
    }
}

/// The most missing stripes to list; SQL Server writes at most 64 stripes.
pub(super) const MOST_MISSING_NAMED: usize = 64;

/// Groups the sets in `media` by database; each entry has the database's name and its sets in order. A database is
/// identified by its family ID, because a restore changes its binding ID.
pub(super) fn by_database(media: &[BackupMedia]) -> Vec<(String, Vec<ChainSet>)> {
    let mut databases: BTreeMap<(String, String), Vec<Collected>> = BTreeMap::new();
    // For each database and set GUID, the position of the set in the database's list.
    let mut known = HashMap::new();
    for media in media {
        let damaged = damaged(media);
        for (number, set) in media.sets.iter().enumerate() {
            let id = set.config.lasting_id().unwrap_or_default().to_owned();
            let database = (set.config.database.clone(), id);
            let sets = databases.entry(database.clone()).or_default();
            // Within a database, the GUID identifies a set: a set is written to only one media set, and copies of a
            // file belong to the same media set.
            let key = set.guid.clone().map(|guid| (database, guid));
            let index = key.map(|key| *known.entry(key).or_insert(sets.len())).unwrap_or(sets.len());
            if index >= sets.len() {
                let set = set.clone();
                sets.push(Collected { set, is_damaged: true, families: media.families, stripes: Vec::new() });
            }
            let Some(collected) = sets.get_mut(index) else { continue };
            // If a file contains the same set twice, the set counts once.
            if collected.stripes.last().is_some_and(|stripe| stripe.path == media.path) {
                continue;
            }
            let is_damaged = damaged.contains(&number);
            if collected.is_damaged && !is_damaged {
                (collected.set, collected.is_damaged) = (set.clone(), false);
            }
            collected.stripes.push(Stripe { family: media.family, path: media.path.clone(), is_damaged });
        }
    }
    let finished = databases.into_iter().map(|((database, _), sets)| {
        let mut sets: Vec<ChainSet> = sets.into_iter().map(Collected::finish).collect();
        sort(&mut sets);
        (database, sets)
    });
    join_renamed(finished.collect())
}

/// Joins the sets of a database that was renamed. Two names belong to one database if two conditions are met: the
/// database family, the recovery fork and the server are equal, and all backups under one name ended before the first
/// backup under the other name began. Copies of a database that were used in parallel therefore stay separate.
fn join_renamed(databases: Vec<(String, Vec<ChainSet>)>) -> Vec<(String, Vec<ChainSet>)> {
    let mut families: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, (_, sets)) in databases.iter().enumerate() {
        if let Some(family) = sets.first().and_then(|set| set.set.config.family_id.clone()) {
            families.entry(family).or_default().push(index);
        }
    }
    let mut databases: Vec<Option<(String, Vec<ChainSet>)>> = databases.into_iter().map(Some).collect();
    for mut names in families.into_values().filter(|names| names.len() > 1) {
        names.sort_by_key(|index| databases.get(*index).and_then(Option::as_ref).map(|(_, sets)| times(sets)));
        for pair in names.windows(2) {
            let &[earlier, later] = pair else { continue };
            let both = |databases: &[Option<(String, Vec<ChainSet>)>]| {
                let sets = |index: usize| databases.get(index)?.as_ref().map(|(_, sets)| sets.as_slice());
                sets(earlier).zip(sets(later)).is_some_and(|(earlier, later)| is_renamed(earlier, later))
            };
            if both(&databases)
                && let Some((_, sets)) = databases.get_mut(earlier).and_then(Option::take)
                && let Some((_, known)) = databases.get_mut(later).and_then(Option::as_mut)
            {
                known.extend(sets);
                sort(known);
            }
        }
    }
    databases.into_iter().flatten().collect()
}

/// The start time of the first set, and the end time of the last set.
fn times(sets: &[ChainSet]) -> (Option<&String>, Option<&String>) {
    let started = sets.iter().map(|set| set.set.config.started.as_ref()).min().flatten();
    (started, sets.iter().map(|set| set.set.config.finished.as_ref()).max().flatten())
}

fn is_renamed(earlier: &[ChainSet], later: &[ChainSet]) -> bool {
    let known: HashSet<_> =
        earlier.iter().map(|set| (&set.set.config.server, &set.set.config.recovery_fork_id)).collect();
    let is_of_it = later.iter().any(|set| known.contains(&(&set.set.config.server, &set.set.config.recovery_fork_id)));
    let (ended, started) = (times(earlier).1, times(later).0);
    is_of_it && ended.is_some() && ended < started
}

fn sort(sets: &mut [ChainSet]) {
    sets.sort_by(|a, b| {
        let key = |set: &ChainSet| (set.set.config.first_lsn, set.set.config.last_lsn);
        key(a).cmp(&key(b)).then_with(|| a.set.config.started.cmp(&b.set.config.started))
    });
}

/// The indexes of the sets that the damage in a file affects. Some kinds of damage state the position of the affected
/// set. A missing end affects the last set. Any other damage affects the set in which it was found.
fn damaged(media: &BackupMedia) -> HashSet<usize> {
    let of_position = |position: u16| media.sets.iter().position(|set| set.position == position);
    let is_incomplete = |damage: &Damage| matches!(damage.kind, DamageKind::SetIncomplete { .. });
    let names_its_end = media.damage.iter().any(is_incomplete);
    let concerned = |damage: &Damage| match damage.kind {
        DamageKind::SetIncomplete { position } | DamageKind::Configuration { position } => of_position(position),
        DamageKind::Truncated if names_its_end => None,
        DamageKind::Truncated => media.sets.len().checked_sub(1),
        // Sets are listed in tape order. The label of the whole tape precedes the first set, and damage to this label
        // counts as damage to the first set.
        _ => Some(media.sets.partition_point(|set| set.at <= damage.at).saturating_sub(1)),
    };
    media.damage.iter().filter_map(concerned).collect()
}

/// Returns the index of the full backup that each differential backup names as its base. Maps make the search fast: not
/// every differential backup is compared with every full backup.
pub(super) fn bases(sets: &[ChainSet]) -> Vec<Option<usize>> {
    let fulls = || sets.iter().enumerate().filter(|(_, set)| set.set.kind == SetKind::Full);
    // If the full backup has several copies, the first copy is used.
    let by_guid: HashMap<&str, usize> =
        fulls().rev().filter_map(|(index, full)| Some((full.set.guid.as_deref()?, index))).collect();
    let mut by_checkpoint: HashMap<Lsn, Vec<usize>> = HashMap::new();
    for (index, full) in fulls() {
        let Some(checkpoint) = full.set.config.checkpoint_lsn else { continue };
        let known = by_checkpoint.entry(checkpoint).or_default();
        if known.len() < MOST_WITH_ONE_CHECKPOINT {
            known.push(index);
        }
    }
    let base_of = |differential: &BackupSet| {
        let is_base = |index: &usize| sets.get(*index).is_some_and(|full| is_based_on(differential, &full.set));
        let guid = differential.config.differential_base_guid.as_deref();
        let named = guid.and_then(|guid| by_guid.get(guid)).copied().filter(is_base);
        named.or_else(|| {
            let lsns = differential.files.iter().filter_map(|file| file.differential_base_lsn);
            lsns.filter_map(|lsn| by_checkpoint.get(&lsn)).flatten().copied().find(is_base)
        })
    };
    let of_set = |set: &ChainSet| match set.set.kind {
        SetKind::Differential => base_of(&set.set),
        _ => None,
    };
    sets.iter().map(of_set).collect()
}
