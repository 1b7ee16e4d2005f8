//! Which restores a number of backup files stand for: for each database the newest full backup with its newest differential
//! and the log backups that follow, or each set by itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::chain_sets::ChainSet;
use super::open::is_based_on;
use super::room::MOST_STRIPES;
use super::sets::{BackupMedia, SetKind};
use crate::OpenError;

/// Which sets are to be restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetChoice {
    /// The newest of each database; of a file that was named, its first full backup, as RESTORE has it.
    Newest,
    /// Those at these positions.
    Positions(Vec<u16>),
    /// The last one with pages of each file.
    Last,
    /// Each one with pages.
    All,
}

/// A set by its file and its position there.
pub type SetPlace = (PathBuf, u16);

/// What is to be restored of the backups of one database.
#[derive(Debug, Default)]
pub struct BackupPlan {
    /// Name of the database.
    pub database: String,
    /// The restores: a full backup, or a full backup and a differential of it.
    pub restores: Vec<Vec<ChainSet>>,
    /// All files of the database, if log backups follow: which sets a restore takes, their log sequence numbers say.
    pub with_logs: Option<Vec<PathBuf>>,
    /// Sets that are not part of a restore, because others are newer.
    pub unused: Vec<SetPlace>,
    /// Log backups that cannot be part of one.
    pub logs: Vec<SetPlace>,
    /// Sets that cannot be restored, and why.
    pub refused: Vec<(PathBuf, OpenError)>,
    /// Sets of the database.
    pub sets: usize,
}

/// Plans what to restore of `media`. A file for which `is_named` holds was named by itself: each of these is looked at. If
/// `is_stopped`, all restores end at a moment, so that all sets of a database belong together.
pub fn plan(
    media: &[BackupMedia],
    choice: &SetChoice,
    is_stopped: bool,
    is_named: &dyn Fn(&Path) -> bool,
) -> Vec<BackupPlan> {
    /// Databases that every server has, with the IDs of the release's own files.
    const OF_EVERY_SERVER: [&str; 3] = ["master", "model", "msdb"];
    let mut databases: BTreeMap<(String, Option<String>, String), Vec<ChainSet>> = BTreeMap::new();
    for set in sets_of(media, choice) {
        let config = &set.set.config;
        let is_of_every = OF_EVERY_SERVER.iter().any(|name| config.database.eq_ignore_ascii_case(name));
        let server = if is_of_every { config.server.clone() } else { String::new() };
        // A restore changes the binding ID, but not the family.
        let id = config.family_id.clone().or_else(|| config.binding_id.clone());
        databases.entry((config.database.clone(), id, server)).or_default().push(set);
    }
    let plans = databases.into_iter().map(|((database, ..), sets)| {
        let planner = Planner { sets: &sets, choice, is_named };
        BackupPlan { database, sets: sets.len(), ..planner.plan(is_stopped, media) }
    });
    plans.collect()
}

/// The sets that may be used, stripes put together, in the order of the files in which they start.
fn sets_of(media: &[BackupMedia], choice: &SetChoice) -> Vec<ChainSet> {
    let mut sets: Vec<(ChainSet, Vec<u16>, Option<&str>)> = Vec::new();
    for media in media {
        for set in &media.sets {
            if let SetChoice::Positions(positions) = choice
                && !positions.contains(&set.position)
            {
                continue;
            }
            // A copy of a stripe belongs to copies of the others.
            let is_stripe_of = |(known, families, of): &&mut (ChainSet, Vec<u16>, Option<&str>)| {
                media.families > 1
                    && set.guid.is_some()
                    && known.set.guid == set.guid
                    && *of == media.media_set.as_deref()
                    && !families.contains(&media.family)
            };
            let known = if media.families > 1 { sets.iter_mut().find(is_stripe_of) } else { None };
            if let Some((known, families, _)) = known {
                known.paths.push(media.path.clone());
                known.missing_stripes = known.missing_stripes.saturating_sub(1);
                known.missing.retain(|family| *family != media.family);
                known.is_damaged |= !media.damage.is_empty();
                families.push(media.family);
            } else {
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
                sets.push((first, vec![media.family], media.media_set.as_deref()));
            }
        }
    }
    sets.into_iter().map(|(set, ..)| set).collect()
}

/// Plans for one database.
struct Planner<'a> {
    sets: &'a [ChainSet],
    choice: &'a SetChoice,
    is_named: &'a dyn Fn(&Path) -> bool,
}

impl Planner<'_> {
    fn plan(&self, is_stopped: bool, media: &[BackupMedia]) -> BackupPlan {
        let mut plan = BackupPlan::default();
        let files: BTreeSet<&PathBuf> = self.sets.iter().flat_map(|set| &set.paths).collect();
        let media = || media.iter().filter(|media| files.contains(&media.path));
        let is_of_logs = |media: &BackupMedia| media.sets.iter().all(|set| set.kind == SetKind::Log);
        let follows = is_stopped || media().any(is_of_logs);
        let by_position = matches!(self.choice, SetChoice::Newest | SetChoice::Positions(_));
        if follows && by_position && self.fulls().next().is_some() {
            plan.with_logs = Some(media().map(|media| media.path.clone()).collect());
            return plan;
        }
        plan.logs = self.sets.iter().filter(|set| set.set.kind == SetKind::Log).filter_map(place).collect();
        for set in self.wanted() {
            let restore = match set.set.kind {
                SetKind::Differential => self.with_base(set),
                _ if by_position => Ok(self.with_newest_differential(set)),
                _ => Ok(vec![set.clone()]),
            };
            match restore {
                Ok(restore) => plan.restores.push(restore),
                // Once for each file.
                Err(_) if plan.refused.iter().any(|(path, _)| *path == first_path(set)) => {}
                Err(error) => plan.refused.push((first_path(set), error)),
            }
        }
        self.rest(&mut plan);
        plan
    }

    fn fulls(&self) -> impl DoubleEndedIterator<Item = &ChainSet> {
        self.sets.iter().filter(|set| set.set.kind == SetKind::Full)
    }

    fn is_named(&self, set: &ChainSet) -> bool {
        set.paths.iter().any(|path| (self.is_named)(path))
    }

    /// The sets that are to be restored, each by itself.
    fn wanted(&self) -> Vec<&ChainSet> {
        let has_pages = |set: &&ChainSet| matches!(set.set.kind, SetKind::Full | SetKind::Differential);
        let with_pages = || self.sets.iter().filter(has_pages);
        let is_last = |set: &&ChainSet| {
            let in_file = with_pages().filter(|other| other.paths.first() == set.paths.first());
            in_file.map(|other| other.set.position).max() == Some(set.set.position)
        };
        match self.choice {
            SetChoice::All => with_pages().collect(),
            SetChoice::Last => with_pages().filter(is_last).collect(),
            SetChoice::Newest | SetChoice::Positions(_) => {
                let found = self.fulls().filter(|set| !self.is_named(set));
                // Of copies the first one that is whole.
                let newest = found.rev().max_by_key(|set| (age(set), Reverse(set.missing_stripes)));
                let is_wanted = |set: &&ChainSet| match self.is_named(set) {
                    true => self.is_first(set),
                    false => newest.is_some_and(|newest| std::ptr::eq(newest, *set)),
                };
                self.fulls().filter(is_wanted).collect()
            }
        }
    }

    /// Whether RESTORE would take this set of its file.
    fn is_first(&self, set: &ChainSet) -> bool {
        let mut in_file = self.fulls().filter(|other| other.paths.first() == set.paths.first());
        matches!(self.choice, SetChoice::Positions(_)) || in_file.all(|other| other.set.position >= set.set.position)
    }

    /// A full backup, with the newest differential of it.
    fn with_newest_differential(&self, full: &ChainSet) -> Vec<ChainSet> {
        // In a file that was named, a differential behind the full backup counts only if its position was given.
        let is_left = |set: &ChainSet| {
            *self.choice == SetChoice::Newest && self.is_named(set) && set.paths.first() == full.paths.first()
        };
        let is_of_it = |set: &&ChainSet| {
            set.set.kind == SetKind::Differential && is_based_on(&set.set, &full.set) && !is_left(set)
        };
        let of_it = self.sets.iter().filter(is_of_it);
        let newest = of_it.rev().max_by_key(|set| (age(set), Reverse(set.missing_stripes)));
        std::iter::once(full).chain(newest).cloned().collect()
    }

    /// A differential, with the full backup that it is based on.
    fn with_base(&self, differential: &ChainSet) -> Result<Vec<ChainSet>, OpenError> {
        match self.fulls().find(|full| is_based_on(&differential.set, &full.set)) {
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

    /// What no restore takes.
    fn rest(&self, plan: &mut BackupPlan) {
        let used: BTreeSet<SetPlace> = plan.restores.iter().flatten().filter_map(place).collect();
        let newest = plan.restores.iter().flatten().map(age).max();
        for set in self.sets {
            let Some((path, position)) = place(set).filter(|place| !used.contains(place)) else { continue };
            let is_refused = plan.refused.iter().any(|(known, _)| *known == path);
            let is_missed = || self.is_named(set) || Some(age(set)) > newest;
            match set.set.kind {
                SetKind::Log => {}
                _ if is_refused => {}
                SetKind::Other(_) => {
                    let kind = set.set.kind.name();
                    plan.refused.push((path.clone(), OpenError::UnsupportedSet { path, position, kind }));
                }
                // If its full backup is gone, as are others of that time, only a newer one is missed.
                SetKind::Differential if self.with_base(set).is_err() && is_missed() => {
                    plan.refused.push((path, self.without_base(set)));
                }
                _ => plan.unused.push((path, position)),
            }
        }
    }
}

/// When a backup was taken; log sequence numbers start again when a database is restored to an earlier moment.
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
    use format::Lsn;

    use super::super::chain::tests::set;
    use super::super::config::BackupFile;
    use super::*;

    /// A full backup taken on this day.
    fn full(position: u16, day: u32) -> super::super::BackupSet {
        let mut full = set(SetKind::Full, day * 100, day * 100 + 10).set;
        (full.position, full.guid) = (position, Some(format!("full {day}")));
        full.config.started = Some(format!("2024-01-{day:02} 00:00:00"));
        full.config.checkpoint_lsn = full.config.first_lsn;
        full
    }

    /// A differential of the full backup of a day, taken later that day.
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

    /// The files and positions of each restore, and what is not used.
    fn planned(media: &[BackupMedia], choice: &SetChoice, is_named: bool) -> (Vec<String>, Vec<String>, usize) {
        let plans = plan(media, choice, false, &|_| is_named);
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
            // A replica of an availability group.
            on("d", "Sales", "two", 2),
        ];
        let (restores, unused, _) = planned(&media, &SetChoice::Newest, false);
        assert_eq!(restores, ["d:1", "a:1", "b:1"]);
        assert_eq!(unused, ["c:1"]);
    }

    #[test]
    fn log_backups_leave_the_choice_to_their_log_sequence_numbers() {
        let media = [file("a", vec![full(1, 2)]), file("b", vec![set(SetKind::Log, 210, 220).set])];
        let plans = plan(&media, &SetChoice::Newest, false, &|_| true);
        assert_eq!(plans[0].with_logs.as_deref(), Some(&["a".into(), "b".into()][..]));
        let plans = plan(&media, &SetChoice::All, false, &|_| true);
        assert_eq!((plans[0].restores.len(), plans[0].logs.len()), (1, 1));
    }

    #[test]
    fn stripes_are_one_set_and_copies_are_others() {
        let stripe = |path: &str, family| {
            let mut stripe = file(path, vec![full(1, 1)]);
            (stripe.families, stripe.family, stripe.media_set) = (2, family, Some("media".to_owned()));
            stripe
        };
        let media = [stripe("a1", 1), stripe("a2", 2), stripe("b1", 1)];
        let plans = plan(&media, &SetChoice::Newest, false, &|_| false);
        let restores: Vec<_> = plans[0].restores.iter().flatten().map(|set| set.paths.len()).collect();
        assert_eq!((restores, plans[0].unused.len()), (vec![2], 1), "the whole one");
    }
}
