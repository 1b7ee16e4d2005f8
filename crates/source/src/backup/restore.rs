//! The result of a RESTORE of some backups: the sets that the restore uses, their pages, and the log to apply.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use format::Lsn;

use super::chain::{Chain, DatabaseChains, chains_of_damaged};
use super::chain_sets::ChainSet;
use super::hints::Hints;
use super::log_parts::BackupLog;
use super::media::Media;
use super::open::{Group, check_labels, choose, open_all, size_of_files};
use super::pages::BackupPages;
use super::room::Room;
use super::sets::{BackupMedia, BackupSet, SetKind};
use crate::OpenError;

/// The point at which a restore ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until<'a> {
    /// The end of the log in the given backups.
    End,
    /// A point in time, in the format of times in backup sets: `2020-05-12 13:30:00`.
    Time(&'a str),
    /// A marked transaction in the log.
    Mark,
}

/// The pages of a full backup, overlaid by a differential backup if there is one, and the log to apply to them.
#[derive(Debug)]
pub struct Restore {
    /// The pages.
    pub pages: BackupPages,
    /// The log of the last set with pages, and the log of the log backups after it.
    pub log: BackupLog,
    /// The LSN from which the log is needed. This is the checkpoint of the last set with pages, or the start of the
    /// oldest transaction that was open at this checkpoint.
    pub from: Lsn,
    /// The LSN at which redo starts: the checkpoint of the last set with pages.
    pub redo_from: Lsn,
    /// The first LSN after the log of the last set with pages. No page has a later LSN.
    pub pages_to: Lsn,
    /// Number of log backups that are part of the restore.
    pub log_backups: usize,
    /// When the first of these log backups finished that has extents of bulk operations, whose content the log lacks.
    /// `None` if none has any.
    pub bulk: Option<String>,
    /// Sets that cannot be part of the restore: the path of the file, and the reason.
    pub refused: Vec<(PathBuf, OpenError)>,
}

impl Restore {
    /// Opens backup files, in any order, as the database that a restore of them would produce. The restore uses the
    /// newest full backup that ends early enough, its newest differential backup, and the log backups that follow. If
    /// no log backups are given and `until` is [`Until::End`], the restore uses the same sets as [`BackupPages::open`].
    ///
    /// `positions` selects sets by their position in the file. The path `-` means `input`. At most `granted` bytes are
    /// kept in memory.
    ///
    /// # Errors
    /// [`OpenError`] if the files are not backups of one database, or contain neither a full backup nor sets of files.
    pub fn open(
        paths: &[PathBuf],
        positions: &[u16],
        input: Option<File>,
        granted: Option<u64>,
        until: Until<'_>,
    ) -> Result<Self, OpenError> {
        Self::open_hinted(paths, positions, input, granted, (until, &Hints::default()))
    }

    /// Like [`Self::open`], but uses what an earlier opening of the same files has found. The caller vouches that the files
    /// are the same.
    ///
    /// # Errors
    /// [`OpenError`] as for [`Self::open`].
    pub fn open_hinted(
        paths: &[PathBuf],
        positions: &[u16],
        input: Option<File>,
        granted: Option<u64>,
        (until, hints): (Until<'_>, &Hints),
    ) -> Result<Self, OpenError> {
        // A hint that leads to an error is no hint. The standard input can be read only once.
        if !hints.is_empty() && input.is_none() {
            let hinted = Self::open_in(
                Room::new(granted, size_of_files(paths, None)).with_hints(hints),
                paths,
                None,
                until,
                positions,
            );
            if hinted.is_ok() {
                return hinted;
            }
        }
        let room = Room::new(granted, size_of_files(paths, input.as_ref()));
        Self::open_in(room, paths, input, until, positions)
    }

    fn open_in(
        room: Room,
        paths: &[PathBuf],
        input: Option<File>,
        until: Until<'_>,
        positions: &[u16],
    ) -> Result<Self, OpenError> {
        let (media, labels) = open_all(paths, input, &room)?;
        check_labels(&labels, positions)?;
        let is_of_logs = |label: &BackupMedia| label.sets.iter().all(|set| set.kind == SetKind::Log);
        let chosen = match until == Until::End && !labels.iter().any(is_of_logs) {
            true => {
                let (bases, differential) = choose(&labels, positions)?;
                Chosen { bases, differential, logs: Vec::new(), refused: Vec::new() }
            }
            false => choose_chain(&labels, positions, until)?,
        };
        if let Some(set) = chosen.base_set(&labels) {
            if set.kind.is_of_files() && until != Until::End {
                let path = chosen.base().and_then(|base| base.first()).and_then(|&(tape, _)| labels.get(tape));
                let path = path.map(|label| label.path.clone()).unwrap_or_default();
                return Err(OpenError::FilesHaveNoMoment { path, position: set.position });
            }
            let tape = chosen.base().and_then(|base| base.first()).and_then(|&(tape, _)| labels.get(tape));
            ends_by(set, until, tape.map(|label| label.path.as_path()).unwrap_or(Path::new("")))?;
        }
        Self::assemble(media, &labels, chosen, &room)
    }

    /// Opens the sets of a chain found by [`super::chains`], for a restore to the end of the chain. At most `granted`
    /// bytes are kept in memory.
    ///
    /// # Errors
    /// [`OpenError`] if a file of the chain cannot be read or has changed.
    pub fn of_chain(database: &DatabaseChains, chain: &Chain, granted: Option<u64>) -> Result<Self, OpenError> {
        let sets: Vec<&ChainSet> = chain.steps.iter().filter_map(|&step| database.sets.get(step)).collect();
        Self::of_sets(&sets, granted)
    }

    /// Opens sets of one database: a full backup, optionally its differential backup, and the log backups that follow.
    /// At most `granted` bytes are kept in memory.
    ///
    /// # Errors
    /// [`OpenError`] if a file of these sets cannot be read or has changed.
    pub fn of_sets(sets: &[&ChainSet], granted: Option<u64>) -> Result<Self, OpenError> {
        Self::of_sets_hinted(sets, granted, &Hints::default())
    }

    /// Like [`Self::of_sets`], but uses what an earlier opening of the same files has found. The caller vouches that the
    /// files are the same.
    ///
    /// # Errors
    /// [`OpenError`] as for [`Self::of_sets`].
    pub fn of_sets_hinted(sets: &[&ChainSet], granted: Option<u64>, hints: &Hints) -> Result<Self, OpenError> {
        let paths: BTreeSet<PathBuf> = sets.iter().flat_map(|set| set.paths.iter().cloned()).collect();
        let paths: Vec<PathBuf> = paths.into_iter().collect();
        let open = |hints: &Hints| {
            let room = Room::new(granted, size_of_files(&paths, None)).with_hints(hints);
            let (media, labels) = open_all(&paths, None, &room)?;
            check_labels(&labels, &[])?;
            let chosen = Chosen::of(&labels, sets, Vec::new());
            Self::assemble(media, &labels, chosen, &room)
        };
        let hinted = (!hints.is_empty()).then(|| open(hints)).filter(Result::is_ok);
        hinted.unwrap_or_else(|| open(&Hints::default()))
    }

    fn assemble(media: Vec<Media>, labels: &[BackupMedia], chosen: Chosen, room: &Room) -> Result<Self, OpenError> {
        let set = chosen.base_set(labels).ok_or(OpenError::Nothing)?;
        let from = set.config.first_lsn.unwrap_or_default();
        let redo_from = set.config.checkpoint_lsn.unwrap_or(from);
        let pages_to = set.config.last_lsn.unwrap_or_default();
        let has_extents = |&(tape, set): &(usize, usize)| {
            let set = labels.get(tape)?.sets.get(set).filter(|set| set.has_bulk_extents())?;
            Some(set.config.finished.clone().unwrap_or_default())
        };
        let bulk = chosen.logs.iter().flatten().find_map(has_extents);
        let media = Arc::new(media);
        let groups: Vec<Group> = chosen.base().into_iter().chain(&chosen.logs).cloned().collect();
        let log = BackupLog::new(Arc::clone(&media), labels, &groups);
        let parts = (chosen.bases.as_slice(), &chosen.differential, chosen.logs.as_slice());
        let pages = BackupPages::assemble(media, labels, parts, room)?;
        Ok(Self {
            pages,
            log,
            from,
            redo_from,
            pages_to,
            log_backups: chosen.logs.len(),
            bulk,
            refused: chosen.refused,
        })
    }
}

/// The sets of a restore.
struct Chosen {
    /// The full backup, or sets of files from old to new.
    bases: Vec<Group>,
    differential: Group,
    logs: Vec<Group>,
    refused: Vec<(PathBuf, OpenError)>,
}

impl Chosen {
    /// Finds `sets` in `labels`.
    fn of(labels: &[BackupMedia], sets: &[&ChainSet], refused: Vec<(PathBuf, OpenError)>) -> Self {
        let groups = Groups::of(labels);
        let of_kind = |kind| sets.iter().filter(move |set| set.set.kind == kind).map(|set| groups.of_set(set));
        let of_files = sets.iter().filter(|set| set.set.kind.is_of_files()).map(|set| groups.of_set(set));
        Self {
            bases: of_kind(SetKind::Full).take(1).chain(of_files).collect(),
            differential: of_kind(SetKind::Differential).next().unwrap_or_default(),
            logs: of_kind(SetKind::Log).collect(),
            refused,
        }
    }

    /// The last set with pages. The log to apply starts with the log of this set.
    fn base(&self) -> Option<&Group> {
        if self.differential.is_empty() { self.bases.last() } else { Some(&self.differential) }
    }

    fn base_set<'l>(&self, labels: &'l [BackupMedia]) -> Option<&'l BackupSet> {
        self.base()?.first().and_then(|&(tape, set)| labels.get(tape)?.sets.get(set))
    }
}

/// Chooses the sets of a restore, including the log backups to apply.
fn choose_chain(labels: &[BackupMedia], positions: &[u16], until: Until<'_>) -> Result<Chosen, OpenError> {
    match find_way(labels, positions, until)? {
        Some(Way { sets, refused }) => Ok(Chosen::of(labels, &sets.iter().collect::<Vec<_>>(), refused)),
        // There is no full backup. If the sets are file, filegroup or partial backups, these are chosen. Otherwise
        // `choose` returns an error that says what is missing.
        None => {
            let (bases, differential) = choose(labels, positions)?;
            Ok(Chosen { bases, differential, logs: Vec::new(), refused: Vec::new() })
        }
    }
}

/// The sets of a restore, including the log backups to apply, and the sets that the restore cannot use.
pub(super) struct Way {
    pub(super) sets: Vec<ChainSet>,
    pub(super) refused: Vec<(PathBuf, OpenError)>,
}

impl Way {
    /// Returns an error if the last set with pages ended after the end of the restore.
    pub(super) fn ends_by(&self, until: Until<'_>) -> Result<(), OpenError> {
        let base = self.sets.iter().rfind(|set| set.set.kind != SetKind::Log);
        base.map_or(Ok(()), |base| ends_by(&base.set, until, &first_path(base)))
    }
}

fn ends_by(set: &BackupSet, until: Until<'_>, path: &Path) -> Result<(), OpenError> {
    let Until::Time(time) = until else { return Ok(()) };
    match set.config.finished.clone().filter(|finished| finished.as_str() > time) {
        Some(finished) => Err(OpenError::EndsLater { path: path.to_owned(), position: set.position, finished }),
        None => Ok(()),
    }
}

/// Finds the sets of a restore, including the log backups to apply. `None` if there is no full backup.
pub(super) fn find_way(labels: &[BackupMedia], positions: &[u16], until: Until<'_>) -> Result<Option<Way>, OpenError> {
    // Damaged sets are not left out, because the check is to report their damage.
    let databases = chains_of_damaged(&candidates(labels, positions, until));
    let Some((at, database)) = databases.iter().enumerate().rev().find(|(_, database)| !database.chains.is_empty())
    else {
        let mut sets = databases.iter().flat_map(|database| &database.sets);
        let full = sets.find(|set| set.set.kind == SetKind::Full && set.missing_stripes > 0);
        return full.map_or(Ok(None), |full| Err(stripes_missing(full)));
    };
    let Some(chain) = database.newest() else { return Err(OpenError::Nothing) };
    let sets: Vec<ChainSet> = chain.steps.iter().filter_map(|&step| database.sets.get(step)).cloned().collect();
    let full = sets.first().map(first_path).unwrap_or_default();
    let reached = sets.last().and_then(|set| set.set.config.last_lsn).unwrap_or_default();
    let steps: HashSet<usize> = chain.steps.iter().copied().collect();
    let unused = database.sets.iter().enumerate().filter(|(number, _)| !steps.contains(number));
    let mut refused: Vec<(PathBuf, OpenError)> = Vec::new();
    for (_, unused) in unused.filter(|(_, set)| set.set.kind == SetKind::Log) {
        let (path, position) = (first_path(unused), unused.set.position);
        let first = unused.set.config.first_lsn.unwrap_or_default();
        let config = &unused.set.config;
        if let Some(left_at) = chain.line.left_at(config).filter(|_| !chain.line.has(config)) {
            let last = config.last_lsn.unwrap_or_default();
            refused.push((path.clone(), OpenError::LeftFork { path, position, last, left_at }));
        } else if !chain.line.has(config) {
            refused.push((path.clone(), OpenError::OtherFork { path, position, other: full.clone() }));
        } else if unused.missing_stripes > 0 {
            refused.push((path, stripes_missing(unused)));
        } else if first > reached {
            refused.push((path.clone(), OpenError::LogGap { path, position, reached, first }));
        }
    }
    for (_, other) in databases.iter().enumerate().filter(|(number, _)| *number != at) {
        refused.extend(other.sets.iter().map(|set| {
            let (path, position) = (first_path(set), set.set.position);
            (path.clone(), OpenError::OtherDatabaseSet { path, position, other: full.clone() })
        }));
    }
    Ok(Some(Way { sets, refused }))
}

fn first_path(set: &ChainSet) -> PathBuf {
    set.paths.first().cloned().unwrap_or_default()
}

/// Returns the labels without the sets that a restore to `until` cannot use.
fn candidates(labels: &[BackupMedia], positions: &[u16], until: Until<'_>) -> Vec<BackupMedia> {
    let mut labels = labels.to_vec();
    let fulls = |labels: &[BackupMedia], is_wanted: &dyn Fn(&BackupSet) -> bool| {
        labels.iter().flat_map(|label| &label.sets).filter(|set| set.kind == SetKind::Full && is_wanted(set)).count()
    };
    for label in &mut labels {
        label.sets.retain(|set| positions.is_empty() || positions.contains(&set.position));
    }
    let oldest = labels.iter().flat_map(|label| &label.sets).filter(|set| set.kind == SetKind::Full);
    let oldest = oldest.map(|set| set.config.checkpoint_lsn).min().flatten();
    let ended = |set: &BackupSet, time: &str| set.config.finished.as_deref().is_some_and(|finished| finished < time);
    let has_earlier = matches!(until, Until::Time(time) if fulls(&labels, &|set| ended(set, time)) > 0);
    for label in &mut labels {
        label.sets.retain(|set| match (until, set.kind) {
            (Until::Time(time), SetKind::Full) if has_earlier => ended(set, time),
            // If no full backup ended in an earlier second, the oldest full backup is kept: it may have ended before
            // the requested time within the same second. The log shows whether it did.
            (Until::Time(_), SetKind::Full) => set.config.checkpoint_lsn == oldest,
            (Until::Time(time), SetKind::Differential) => ended(set, time),
            // The LSN of the marked transaction is known only after the log is read. Only the oldest full backup can be
            // assumed to end before the mark.
            (Until::Mark, SetKind::Full) => set.config.checkpoint_lsn == oldest,
            (Until::Mark, SetKind::Differential) => false,
            _ => true,
        });
    }
    labels
}

fn stripes_missing(set: &ChainSet) -> OpenError {
    OpenError::StripesMissing {
        path: set.paths.first().cloned().unwrap_or_default(),
        position: set.set.position,
        kind: set.set.kind.name(),
        missing: set.missing_stripes,
    }
}

/// Maps sets to their stripes.
struct Groups<'l> {
    labels: &'l [BackupMedia],
    by_path: HashMap<&'l Path, usize>,
    /// The stripes of each set, by media set and set GUID.
    by_guid: HashMap<(Option<&'l str>, &'l str), Group>,
}

impl<'l> Groups<'l> {
    fn of(labels: &'l [BackupMedia]) -> Self {
        let (mut by_path, mut by_guid) = (HashMap::new(), HashMap::<_, Group>::new());
        for (number, label) in labels.iter().enumerate() {
            by_path.entry(label.path.as_path()).or_insert(number);
            for (index, set) in label.sets.iter().enumerate() {
                let Some(guid) = set.guid.as_deref() else { continue };
                let group = by_guid.entry((label.media_set.as_deref(), guid)).or_default();
                // If a file contains the same set twice, the set counts once.
                if group.last().is_none_or(|(last, _)| *last != number) {
                    group.push((number, index));
                }
            }
        }
        Self { labels, by_path, by_guid }
    }

    /// The stripes of a set.
    fn of_set(&self, wanted: &ChainSet) -> Group {
        let number = wanted.paths.first().and_then(|path| self.by_path.get(path.as_path())).copied();
        let Some((number, label)) = number.and_then(|number| Some((number, self.labels.get(number)?))) else {
            return Group::new();
        };
        let Some(index) = label.sets.iter().position(|set| set.position == wanted.set.position) else {
            return Group::new();
        };
        let guid = label.sets.get(index).and_then(|set| set.guid.as_deref());
        let stripes = guid.and_then(|guid| self.by_guid.get(&(label.media_set.as_deref(), guid)));
        // The group may also contain copies of a stripe at other paths. These copies are left out.
        let is_its = |&&(number, _): &&(usize, usize)| {
            self.labels.get(number).is_some_and(|label| wanted.paths.contains(&label.path))
        };
        stripes.map_or_else(|| vec![(number, index)], |stripes| stripes.iter().filter(is_its).copied().collect())
    }
}
