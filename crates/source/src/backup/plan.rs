//! Plans how to restore the databases in some backup files. A restore of a database consists of the newest full backup,
//! its newest differential backup and the log backups that follow, or of a single selected set. If there are file,
//! filegroup and partial backups, the newest of these backups form a further restore.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use format::Lsn;

use super::chain_sets::{ChainSet, bases};
use super::files::databases_of_files;
use super::open::is_based_on;
use super::restore::{Until, find_way};
use super::room::MOST_STRIPES;
use super::sets::{BackupMedia, SetKind};
use crate::OpenError;

/// The choice of the sets to restore.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetChoice {
    /// The newest full backup of each database. From a file that was named individually, the first full backup is used,
    /// as in RESTORE.
    Newest,
    /// The sets at these positions in their files.
    Positions(Vec<u16>),
    /// The last full or differential backup of each file.
    Last,
    /// Every full and differential backup.
    All,
}

/// A backup set, given by the path of its file and its position in the file.
pub type SetPlace = (PathBuf, u16);

/// The restores for the backups of one database.
#[derive(Debug, Default)]
pub struct BackupPlan {
    /// Name of the database.
    pub database: String,
    /// The sets of each restore. A restore consists of a full backup and optionally its differential backup, or of
    /// file, filegroup and partial backups. The first restore may also contain the log backups that follow.
    pub restores: Vec<Vec<ChainSet>>,
    /// Sets that no restore uses, because other sets are newer or reach at least the same LSN.
    pub unused: Vec<SetPlace>,
    /// Log backups, if no restore uses log backups.
    pub logs: Vec<SetPlace>,
    /// Log backups that cannot be applied in a restore, each with the reason.
    pub refused_logs: Vec<(PathBuf, OpenError)>,
    /// Sets that cannot be restored, each with the reason.
    pub refused: Vec<(PathBuf, OpenError)>,
    /// Number of sets of the database.
    pub sets: usize,
}

/// Plans the restores for the backups in `media`. `is_named` returns true for files that were named individually: each
/// of them gets its own restore. If the restores end at a point in time, all sets of a database form one restore
/// instead.
pub fn plan(
    media: &[BackupMedia],
    choice: &SetChoice,
    until: Until<'_>,
    is_named: &dyn Fn(&Path) -> bool,
) -> Vec<BackupPlan> {
    /// The system databases that every server has. On all servers of a SQL Server version, these databases have the
    /// same family IDs, so the server's name is needed to tell them apart.
    const OF_EVERY_SERVER: [&str; 3] = ["master", "model", "msdb"];
    /// The name of a database, its family ID, and the name of the server (empty for user databases).
    type Key = (String, Option<String>, String);
    let mut databases: BTreeMap<Key, (Vec<ChainSet>, Vec<ChainSet>)> = BTreeMap::new();
    for set in sets_of(media, choice) {
        let config = &set.set.config;
        let is_of_every = OF_EVERY_SERVER.iter().any(|name| config.database.eq_ignore_ascii_case(name));
        let server = if is_of_every { config.server.clone() } else { String::new() };
        let id = config.lasting_id().map(str::to_owned);
        let (sets, encrypted) = databases.entry((config.database.clone(), id, server)).or_default();
        if set.set.is_encrypted { encrypted.push(set) } else { sets.push(set) }
    }
    let media: HashMap<&Path, &BackupMedia> = media.iter().map(|media| (media.path.as_path(), media)).collect();
    let plans = databases.into_iter().map(|((database, ..), (sets, encrypted))| {
        let mut plan = Planner::new(&sets, choice, is_named).plan(until, &media);
        let paths = encrypted.iter().map(first_path);
        plan.refused.extend(paths.map(|path| (path.clone(), OpenError::EncryptedBackup { path })));
        // If several sets of a file were refused, only the first refusal is kept.
        let mut seen = HashSet::new();
        plan.refused.retain(|(path, _)| seen.insert(path.clone()));
        BackupPlan { database, sets: sets.len(), ..plan }
    });
    plans.collect()
}

/// The sets that `choice` permits, with their stripes joined, in the order of their first files.
fn sets_of(media: &[BackupMedia], choice: &SetChoice) -> Vec<ChainSet> {
    let mut sets: Vec<(ChainSet, HashSet<u16>)> = Vec::new();
    // The indexes in `sets` of striped sets, by GUID and media set. If stripes were copied, one GUID has several
    // indexes: each copy of a stripe is added to the first set that still lacks this stripe.
    let mut striped: HashMap<(&str, Option<&str>), Vec<usize>> = HashMap::new();
    for media in media {
        for set in &media.sets {
            if let SetChoice::Positions(positions) = choice
                && !positions.contains(&set.position)
            {
                continue;
            }
            let guid = set.guid.as_deref().filter(|_| media.families > 1);
            let copies = guid.map(|guid| striped.entry((guid, media.media_set.as_deref())).or_default());
            let lacks_it =
                |index: &usize| sets.get(*index).is_some_and(|(_, families)| !families.contains(&media.family));
            let known = copies.as_ref().and_then(|copies| copies.iter().copied().find(lacks_it));
            if let Some((known, families)) = known.and_then(|known| sets.get_mut(known)) {
                known.paths.push(media.path.clone());
                known.missing_stripes = known.missing_stripes.saturating_sub(1);
                known.missing.retain(|family| *family != media.family);
                known.is_damaged |= !media.damage.is_empty();
                families.insert(media.family);
            } else {
                if let Some(copies) = copies {
                    copies.push(sets.len());
                }
                let first = ChainSet {
                    set: set.clone(),
                    paths: vec![media.path.clone()],
                    copies: Vec::new(),
                    stripes: media.families,
                    missing_stripes: media.families.saturating_sub(1),
                    missing: (1..=media.families)
                        .filter(|family| *family != media.family)
                        .take(usize::from(MOST_STRIPES))
                        .collect(),
                    is_damaged: !media.damage.is_empty(),
                };
                sets.push((first, HashSet::from([media.family])));
            }
        }
    }
    sets.into_iter().map(|(set, _)| set).collect()
}

/// Plans the restores of one database.
struct Planner<'a> {
    sets: &'a [ChainSet],
    /// The index of the full backup of each differential backup.
    bases: Vec<Option<usize>>,
    /// The differential backups by the checkpoint LSN of their full backup.
    differentials: HashMap<Lsn, Vec<&'a ChainSet>>,
    choice: &'a SetChoice,
    is_named: &'a dyn Fn(&Path) -> bool,
}

impl<'a> Planner<'a> {
    fn new(sets: &'a [ChainSet], choice: &'a SetChoice, is_named: &'a dyn Fn(&Path) -> bool) -> Self {
        let mut differentials: HashMap<Lsn, Vec<&ChainSet>> = HashMap::new();
        for set in sets.iter().filter(|set| set.set.kind == SetKind::Differential) {
            let lsns: HashSet<Lsn> = set.set.files.iter().filter_map(|file| file.differential_base_lsn).collect();
            lsns.into_iter().for_each(|lsn| differentials.entry(lsn).or_default().push(set));
        }
        Self { sets, bases: bases(sets), differentials, choice, is_named }
    }

    fn plan(&self, until: Until<'_>, media: &HashMap<&Path, &BackupMedia>) -> BackupPlan {
        let mut plan = BackupPlan::default();
        let by_position = matches!(self.choice, SetChoice::Newest | SetChoice::Positions(_));
        let follows = until != Until::End || self.has_file_of_logs();
        if follows && by_position && self.fulls().next().is_some() {
            let way = find_way(&self.labels(media), &[], until);
            match way.and_then(|way| way.map_or(Ok(None), |way| way.ends_by(until).map(|()| Some(way)))) {
                Ok(Some(way)) => (plan.restores, plan.refused_logs) = (vec![way.sets], way.refused),
                // If no log backups can be applied, each full backup can still be restored alone.
                Ok(None) => {}
                Err(_) if until == Until::End => {}
                Err(error) => {
                    let full = self.fulls().next().map(first_path).unwrap_or_default();
                    plan.refused.push((full, error));
                    return plan;
                }
            }
        }
        let has_way = !plan.restores.is_empty();
        let on_way = places(&plan.restores);
        let is_left = |set: &ChainSet| {
            let is_on_it = place(set).is_some_and(|place| on_way.contains(&place));
            has_way && (is_on_it || until != Until::End || !self.is_named(set))
        };
        for (index, set) in self.wanted().into_iter().filter(|(_, set)| !is_left(set)) {
            let restore = match set.set.kind {
                SetKind::Differential => self.with_base(index, set),
                _ if by_position => Ok(self.with_newest_differential(set)),
                _ => Ok(vec![set.clone()]),
            };
            match restore {
                Ok(restore) => plan.restores.push(restore),
                Err(error) => plan.refused.push((first_path(set), error)),
            }
        }
        if until == Until::End {
            plan.restores.extend(databases_of_files(self.sets));
        }
        self.rest(&mut plan, has_way);
        plan
    }

    /// Whether any of the files contains log backups of this database, but no other kind of set of this database.
    fn has_file_of_logs(&self) -> bool {
        let mut files: HashMap<&PathBuf, bool> = HashMap::new();
        for set in self.sets {
            for path in &set.paths {
                *files.entry(path).or_insert(true) &= set.set.kind == SetKind::Log;
            }
        }
        files.into_values().any(|is_of_logs| is_of_logs)
    }

    /// Returns the labels of the files that contain sets of this database. The labels list only the sets of this
    /// database.
    fn labels(&self, media: &HashMap<&Path, &BackupMedia>) -> Vec<BackupMedia> {
        let guids: HashSet<&str> = self.sets.iter().filter_map(|set| set.set.guid.as_deref()).collect();
        let known = places(&[self.sets]);
        let mut seen = HashSet::new();
        let paths = self.sets.iter().flat_map(|set| &set.paths).filter(|path| seen.insert(path.as_path()));
        let labels = paths.filter_map(|path| media.get(path.as_path())).map(|label| {
            let mut label = (*label).clone();
            let path = label.path.clone();
            label.sets.retain(|set| match &set.guid {
                Some(guid) => guids.contains(guid.as_str()),
                None => known.contains(&(path.clone(), set.position)),
            });
            label
        });
        labels.collect()
    }

    fn fulls(&self) -> impl DoubleEndedIterator<Item = &'a ChainSet> {
        self.sets.iter().filter(|set| set.set.kind == SetKind::Full)
    }

    fn is_named(&self, set: &ChainSet) -> bool {
        set.paths.iter().any(|path| (self.is_named)(path))
    }

    /// Returns the full and differential backups that `choice` selects, with their indexes.
    fn wanted(&self) -> Vec<(usize, &'a ChainSet)> {
        let has_pages = |set: &&ChainSet| matches!(set.set.kind, SetKind::Full | SetKind::Differential);
        // For each file, the position of the first full backup, and the position of the last full or differential
        // backup.
        let (mut firsts, mut lasts) = (HashMap::new(), HashMap::new());
        for set in self.sets.iter().filter(has_pages) {
            let (path, position) = (set.paths.first(), set.set.position);
            let last = lasts.entry(path).or_insert(position);
            *last = position.max(*last);
            if set.set.kind == SetKind::Full {
                let first = firsts.entry(path).or_insert(position);
                *first = position.min(*first);
            }
        }
        let is_at = |places: &HashMap<_, u16>, set: &ChainSet| {
            places.get(&set.paths.first()).is_some_and(|position| *position == set.set.position)
        };
        let found = self.fulls().filter(|set| !self.is_named(set));
        // If the newest full backup has several copies, the first copy with the fewest missing stripes is used.
        let newest = found.rev().max_by_key(|set| (age(set), Reverse(set.missing_stripes)));
        let is_wanted = |set: &ChainSet| match self.choice {
            SetChoice::All => has_pages(&set),
            SetChoice::Last => has_pages(&set) && is_at(&lasts, set),
            _ if set.set.kind != SetKind::Full => false,
            _ if !self.is_named(set) => newest.is_some_and(|newest| std::ptr::eq(newest, set)),
            SetChoice::Positions(_) => true,
            // RESTORE without FILE = n would use this set of the file.
            SetChoice::Newest => is_at(&firsts, set),
        };
        self.sets.iter().enumerate().filter(|(_, set)| is_wanted(set)).collect()
    }

    /// A full backup and its newest differential backup.
    fn with_newest_differential(&self, full: &ChainSet) -> Vec<ChainSet> {
        // A differential backup in the same file as its full backup is left out if this file was named individually and
        // no positions were given.
        let is_left = |set: &ChainSet| {
            *self.choice == SetChoice::Newest && self.is_named(set) && set.paths.first() == full.paths.first()
        };
        let is_of_it = |set: &&&ChainSet| is_based_on(&set.set, &full.set) && !is_left(set);
        let known = full.set.config.checkpoint_lsn.and_then(|lsn| self.differentials.get(&lsn));
        let newest = known.into_iter().flatten().filter(is_of_it).rev();
        let newest = newest.max_by_key(|set| (age(set), Reverse(set.missing_stripes)));
        std::iter::once(full).chain(newest.copied()).cloned().collect()
    }

    /// A differential backup and the full backup on which it is based.
    fn with_base(&self, index: usize, differential: &ChainSet) -> Result<Vec<ChainSet>, OpenError> {
        let base = self.bases.get(index).copied().flatten();
        match base.and_then(|base| self.sets.get(base)) {
            Some(full) => Ok(vec![full.clone(), differential.clone()]),
            None => Err(self.without_base(differential)),
        }
    }

    fn without_base(&self, differential: &ChainSet) -> OpenError {
        let (path, position) = (first_path(differential), differential.set.position);
        match self.fulls().next() {
            Some(_) => OpenError::OtherBase { path, position },
            None => OpenError::DifferentialAlone { path, position },
        }
    }

    /// Adds each set that no restore uses to `logs`, `refused` or `unused` of `plan`.
    fn rest(&self, plan: &mut BackupPlan, has_way: bool) {
        let used = places(&plan.restores);
        let of_full = plan.restores.iter().flatten().filter(|set| !set.set.kind.is_of_files());
        let newest = of_full.map(age).max();
        let refused_logs: HashSet<PathBuf> = plan.refused_logs.iter().map(|(path, _)| path.clone()).collect();
        let refused: HashSet<PathBuf> = plan.refused.iter().map(|(path, _)| path.clone()).collect();
        for (index, set) in self.sets.iter().enumerate() {
            let Some((path, position)) = place(set).filter(|place| !used.contains(place)) else { continue };
            let is_missed = || self.is_named(set) || Some(age(set)) > newest;
            match set.set.kind {
                SetKind::Log if !has_way => plan.logs.push((path, position)),
                SetKind::Log if refused_logs.contains(&path) => {}
                _ if refused.contains(&path) => {}
                SetKind::Other(_) => {
                    let kind = set.set.kind.name();
                    plan.refused.push((path.clone(), OpenError::UnsupportedSet { path, position, kind }));
                }
                // Old differential backups are often kept longer than their full backup. Such a backup is reported as
                // refused only in two cases: it is newer than the restores, or it is in a file that was named
                // individually.
                SetKind::Differential if self.bases.get(index).copied().flatten().is_none() && is_missed() => {
                    plan.refused.push((path, self.without_base(set)));
                }
                _ => plan.unused.push((path, position)),
            }
        }
    }
}

/// The path and position of each set in `restores`.
fn places<S: AsRef<[ChainSet]>>(restores: &[S]) -> HashSet<SetPlace> {
    let sets = restores.iter().flat_map(AsRef::as_ref);
    sets.flat_map(|set| set.paths.iter().map(|path| (path.clone(), set.set.position))).collect()
}

/// Returns a key that sorts sets by age: the start time, then the last LSN. LSNs alone are not enough, because LSNs
/// repeat after a restore to an earlier point.
fn age(set: &ChainSet) -> (Option<String>, Option<format::Lsn>) {
    (set.set.config.started.clone(), set.set.config.last_lsn)
}

fn first_path(set: &ChainSet) -> PathBuf {
    set.paths.first().cloned().unwrap_or_default()
}

fn place(set: &ChainSet) -> Option<SetPlace> {
    Some((set.paths.first()?.clone(), set.set.position))
}

#[cfg(test)]
mod tests {
    use super::super::chain::tests::set;
    use super::super::config::BackupFile;
    use super::super::damage::{Damage, DamageKind};
    use super::*;

    /// A full backup taken on this day.
    fn full(position: u16, day: u32) -> super::super::BackupSet {
        let mut full = set(SetKind::Full, day * 100, day * 100 + 10).set;
        (full.position, full.guid) = (position, Some(format!("full {day}")));
        full.config.started = Some(format!("2024-01-{day:02} 00:00:00"));
        full.config.checkpoint_lsn = full.config.first_lsn;
        full
    }

    /// A differential backup taken at an hour of a day, based on the full backup of that day.
    fn differential(position: u16, day: u32, hour: u32) -> super::super::BackupSet {
        let mut found = set(SetKind::Differential, day * 100 + hour, day * 100 + hour + 1).set;
        (found.position, found.guid) = (position, Some(format!("differential {day} {hour}")));
        found.config.started = Some(format!("2024-01-{day:02} {hour:02}:00:00"));
        found.files.push(BackupFile {
            is_data: true,
            differential_base_lsn: Some(Lsn { vlf: 1, block: day * 100, slot: 1 }),
            ..BackupFile::default()
        });
        found
    }

    fn file(path: &str, sets: Vec<super::super::BackupSet>) -> BackupMedia {
        BackupMedia::of_sets(path, sets)
    }

    /// The plan for `media`: the sets of each restore, given by file and position, then the unused sets, also given by
    /// file and position, then the number of refused sets.
    fn planned(media: &[BackupMedia], choice: &SetChoice, is_named: bool) -> (Vec<String>, Vec<String>, usize) {
        let plans = plan(media, choice, Until::End, &|_| is_named);
        let text = |set: &ChainSet| format!("{}:{}", set.paths[0].display(), set.set.position);
        let restores = plans.iter().flat_map(|plan| &plan.restores);
        let restores = restores.map(|sets| sets.iter().map(text).collect::<Vec<_>>().join("+")).collect();
        let unused = plans.iter().flat_map(|plan| &plan.unused);
        let unused = unused.map(|(path, position)| format!("{}:{position}", path.display())).collect();
        (restores, unused, plans.iter().map(|plan| plan.refused.len()).sum())
    }

    #[test]
    fn in_a_folder_the_newest_backup_is_taken_and_the_others_are_named() {
        let media = [
            file("a", vec![full(1, 2)]),
            file("b", vec![full(1, 1)]),
            file("c", vec![differential(1, 2, 9)]),
            file("d", vec![differential(1, 2, 12)]),
            file("e", vec![differential(1, 1, 12)]),
        ];
        let (restores, unused, refused) = planned(&media, &SetChoice::Newest, false);
        assert_eq!((restores, refused), (vec!["a:1+d:1".to_owned()], 0));
        assert_eq!(unused, ["b:1", "c:1", "e:1"]);
    }

    #[test]
    fn each_full_backup_that_was_named_is_taken() {
        let media = [file("a", vec![full(1, 1), full(2, 2)]), file("b", vec![full(1, 3)])];
        let (restores, unused, _) = planned(&media, &SetChoice::Newest, true);
        assert_eq!(restores, ["a:1", "b:1"], "of a file its first, as RESTORE has it");
        assert_eq!(unused, ["a:2"]);
        let (restores, ..) = planned(&media, &SetChoice::Positions(vec![1, 2]), true);
        assert_eq!(restores, ["a:1", "a:2", "b:1"]);
    }

    #[test]
    fn the_last_set_of_each_file_and_all_sets() {
        let mut log = set(SetKind::Log, 130, 140).set;
        log.position = 4;
        let media = [
            file("a", vec![full(1, 1), differential(2, 1, 5), differential(3, 1, 8), log]),
            file("b", vec![full(1, 3)]),
        ];
        let (restores, ..) = planned(&media, &SetChoice::Last, true);
        assert_eq!(restores, ["a:1+a:3", "b:1"]);
        let (restores, unused, _) = planned(&media, &SetChoice::All, false);
        assert_eq!(restores, ["a:1", "a:1+a:2", "a:1+a:3", "b:1"]);
        assert!(unused.is_empty());
    }

    #[test]
    fn a_differential_without_its_full_backup_is_missed_only_if_it_is_newer() {
        let media = [file("a", vec![full(1, 2)]), file("b", vec![differential(1, 1, 5)])];
        let (restores, unused, refused) = planned(&media, &SetChoice::Newest, false);
        assert_eq!((restores.len(), unused.len(), refused), (1, 1, 0), "older");
        let media = [file("a", vec![full(1, 2)]), file("b", vec![differential(1, 3, 5)])];
        let (restores, unused, refused) = planned(&media, &SetChoice::Newest, false);
        assert_eq!((restores.len(), unused.len(), refused), (1, 0, 1), "newer");
    }

    #[test]
    fn the_system_databases_of_two_servers_are_two() {
        let on = |path: &str, database: &str, server: &str, day| {
            let mut full = full(1, day);
            (full.config.database, full.config.server) = (database.to_owned(), server.to_owned());
            file(path, vec![full])
        };
        let media = [
            on("a", "master", "one", 1),
            on("b", "master", "two", 2),
            on("c", "Sales", "one", 1),
            // A replica in an availability group has the same family ID on another server.
            on("d", "Sales", "two", 2),
        ];
        let (restores, unused, _) = planned(&media, &SetChoice::Newest, false);
        assert_eq!(restores, ["d:1", "a:1", "b:1"]);
        assert_eq!(unused, ["c:1"]);
    }

    /// A filegroup backup of some files, taken on this day.
    fn of_files(day: u32, files: &[u16]) -> super::super::BackupSet {
        let mut found = full(1, day);
        found.kind = SetKind::Files;
        found.config.finished.clone_from(&found.config.started);
        let file = |&file_id| BackupFile { file_id, is_data: true, pages_copied: 8, ..BackupFile::default() };
        found.files = files.iter().map(file).collect();
        let length = (files.len() as u64) << 16;
        found.pages = vec![super::super::sets::Region { at: 0, length, checksum: None }];
        found
    }

    #[test]
    fn the_newest_sets_of_files_are_one_restore_beside_the_full_backup() {
        let sets = || [(1, &[1, 3][..]), (2, &[4]), (3, &[1])].map(|(day, files)| of_files(day, files));
        let [old, second, newest] = sets();
        let media =
            [file("a", vec![full(1, 2)]), file("b", vec![old]), file("c", vec![newest]), file("d", vec![second])];
        for choice in [SetChoice::Newest, SetChoice::All] {
            let (restores, unused, refused) = planned(&media, &choice, false);
            assert_eq!(restores, ["a:1", "b:1+d:1+c:1"], "of file 3 there is only an old copy");
            assert_eq!((unused.len(), refused), (0, 0));
        }
        let media = [file("b", vec![sets()[0].clone()]), file("e", vec![of_files(4, &[1, 3])])];
        let (restores, unused, _) = planned(&media, &SetChoice::Newest, false);
        assert_eq!((restores, unused), (vec!["e:1".to_owned()], vec!["b:1".to_owned()]));
    }

    #[test]
    fn a_set_that_counts_files_it_has_no_room_for_supersedes_nothing() {
        let mut newer = of_files(2, &[1, 3]);
        newer.pages[0].length = 1 << 16;
        let media = [file("a", vec![of_files(1, &[1])]), file("b", vec![newer])];
        assert_eq!(planned(&media, &SetChoice::Newest, false).0, ["a:1+b:1"]);
    }

    #[test]
    fn sets_of_files_of_a_restored_copy_are_another_database() {
        let mut other = of_files(2, &[3]);
        other.config.binding_id = Some("another".to_owned());
        let media = [file("a", vec![of_files(1, &[1])]), file("b", vec![other])];
        assert_eq!(planned(&media, &SetChoice::Newest, false).0, ["a:1", "b:1"]);
    }

    #[test]
    fn a_differential_without_its_full_backup_is_missed_whatever_sets_of_files_are_there() {
        let media =
            [file("a", vec![full(1, 2)]), file("b", vec![differential(1, 3, 5)]), file("c", vec![of_files(4, &[1])])];
        let (restores, _, refused) = planned(&media, &SetChoice::Newest, false);
        assert_eq!((restores.len(), refused), (2, 1));
    }

    #[test]
    fn log_backups_leave_the_choice_to_their_log_sequence_numbers() {
        let media = [file("a", vec![full(1, 2)]), file("b", vec![set(SetKind::Log, 210, 220).set])];
        let plans = plan(&media, &SetChoice::Newest, Until::End, &|_| true);
        let restores: Vec<_> = plans[0].restores.iter().flatten().flat_map(|set| &set.paths).collect();
        assert_eq!(restores, ["a", "b"].map(Path::new));
        let plans = plan(&media, &SetChoice::All, Until::End, &|_| true);
        assert_eq!((plans[0].restores.len(), plans[0].logs.len()), (1, 1));
    }

    /// Returns the set as a set of another database, at another position in its file.
    fn of_database(mut set: super::super::BackupSet, name: &str, position: u16) -> super::super::BackupSet {
        set.guid = Some(format!("{name} {:?} {:?}", set.kind, set.config.first_lsn));
        (set.config.database, set.position) = (name.to_owned(), position);
        set
    }

    #[test]
    fn databases_that_share_a_device_have_a_chain_each() {
        let log = |name| of_database(set(SetKind::Log, 205, 230).set, name, 1);
        let media = [
            file("device", vec![of_database(full(1, 2), "A", 1), of_database(full(2, 2), "B", 2)]),
            file("a.trn", vec![log("A")]),
            file("b.trn", vec![log("B")]),
        ];
        for is_named in [false, true] {
            let (restores, unused, refused) = planned(&media, &SetChoice::Newest, is_named);
            assert_eq!(restores, ["device:1+a.trn:1", "device:2+b.trn:1"]);
            assert_eq!((unused.len(), refused), (0, 0));
        }
    }

    #[test]
    fn beside_a_chain_each_named_full_backup_is_a_restore_and_others_are_unused() {
        let log = |from| of_database(set(SetKind::Log, from, from + 125).set, "A", 1);
        let media = [
            file("monday", vec![of_database(full(1, 1), "A", 1)]),
            file("1.trn", vec![log(105)]),
            file("tuesday", vec![of_database(full(1, 2), "A", 1)]),
            file("2.trn", vec![log(205)]),
        ];
        let (restores, unused, refused) = planned(&media, &SetChoice::Newest, true);
        assert_eq!((restores, refused), (vec!["tuesday:1+2.trn:1".to_owned(), "monday:1".to_owned()], 0));
        assert_eq!(unused, ["1.trn:1"]);
        let (restores, unused, _) = planned(&media, &SetChoice::Newest, false);
        assert_eq!((restores.len(), unused), (1, vec!["monday:1".to_owned(), "1.trn:1".to_owned()]));
        // With a point in time there is only one restore, even if the files were named individually.
        let plans = plan(&media, &SetChoice::Newest, Until::Time("2024-01-01 12:00:00"), &|_| true);
        let restores: Vec<_> = plans[0].restores.iter().map(|sets| sets[0].paths[0].display().to_string()).collect();
        assert_eq!(restores, ["monday"]);
    }

    #[test]
    fn of_copies_in_a_chain_a_sound_one_counts() {
        let log = || of_database(set(SetKind::Log, 105, 230).set, "A", 1);
        let mut cut = file("1.trn", vec![log()]);
        cut.damage.push(Damage { path: "1.trn".into(), at: 0, kind: DamageKind::Truncated });
        let full = file("full", vec![of_database(full(1, 1), "A", 1)]);
        let (restores, unused, _) =
            planned(&[full.clone(), cut.clone(), file("2.trn", vec![log()])], &SetChoice::Newest, false);
        assert_eq!((restores, unused), (vec!["full:1+2.trn:1".to_owned()], vec!["1.trn:1".to_owned()]));
        let (restores, ..) = planned(&[full, cut], &SetChoice::Newest, false);
        assert_eq!(restores, ["full:1+1.trn:1"], "without a sound one its damage is reported by a check");
    }

    #[test]
    fn an_encrypted_set_does_not_refuse_the_others_of_its_file() {
        let mut encrypted = of_database(full(1, 1), "A", 1);
        encrypted.is_encrypted = true;
        let media = [file("a", vec![encrypted, of_database(full(2, 2), "A", 2)])];
        let (restores, _, refused) = planned(&media, &SetChoice::Newest, true);
        assert_eq!((restores, refused), (vec!["a:2".to_owned()], 1));
    }

    #[test]
    fn stripes_are_one_set_and_copies_are_others() {
        let stripe = |path: &str, family| {
            let mut stripe = file(path, vec![full(1, 1)]);
            (stripe.families, stripe.family, stripe.media_set) = (2, family, Some("media".to_owned()));
            stripe
        };
        let media = [stripe("a1", 1), stripe("a2", 2), stripe("b1", 1)];
        let plans = plan(&media, &SetChoice::Newest, Until::End, &|_| false);
        let restores: Vec<_> = plans[0].restores.iter().flatten().map(|set| set.paths.len()).collect();
        assert_eq!((restores, plans[0].unused.len()), (vec![2], 1), "the whole one");
    }
}
