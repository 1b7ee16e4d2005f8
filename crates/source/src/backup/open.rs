//! Finds out which backup sets belong together, and opens them as the pages of one database.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use format::allocation::{EXTENT_PAGES, PFS_PAGES};
use format::page::PAGE_BYTES;
use format::version;

use super::config::BackupFile;
use super::damage::{Damage, DamageKind};
use super::files::{is_of_files_of, keep_newest, sets_of_files};
use super::log_portion::LogPortion;
use super::media::Media;
use super::pages::{BackupPages, RegionSum, SetLabel, UsedSet};
use super::placement::{Placed, Stripes, most_extents, place};
use super::places::FilePlaces;
use super::room::{MOST_STRIPES, Room, open_error};
use super::sets::{BackupMedia, BackupSet, LogRegion, SetKind};
use crate::{DataFile, OpenError, storage};

/// A backup set to read, with its stripes and the places of its extents.
pub(super) struct Part<'l> {
    group: &'l Group,
    label: &'l BackupMedia,
    pub(super) set: &'l BackupSet,
    stripes: Vec<(u16, &'l BackupSet)>,
    pub(super) placed: Placed,
}

/// File ID of the primary file, which contains the boot page.
const PRIMARY: u16 = 1;

/// The stripes of a backup set: for each stripe, the index of its file and the index of the set in that file.
pub(super) type Group = Vec<(usize, usize)>;

impl BackupPages {
    /// Opens backup files, in any order, as the pages of one database: a full backup with all its stripes, and
    /// optionally a differential backup that is based on it. `positions` selects sets by their position in the file,
    /// which is the number n in RESTORE ... WITH FILE = n. Without `positions`, the first full backup is used, together
    /// with the first differential backup that is in another file and is based on this full backup.
    ///
    /// # Errors
    /// [`OpenError`] if the files are not backups of the pages of one database.
    pub fn open(paths: &[PathBuf], positions: &[u16]) -> Result<Self, OpenError> {
        Self::open_with(paths, positions, None, None)
    }

    /// Like [`Self::open`], but the path `-` means `input`, the content of standard input. The backup keeps at most
    /// `granted` bytes in memory. Without a limit, it keeps at most a constant plus a fraction of the backup's size.
    ///
    /// # Errors
    /// [`OpenError`] as for [`Self::open`], and [`OpenError::BackupTooLarge`] if the limit is too small.
    pub fn open_with(
        paths: &[PathBuf],
        positions: &[u16],
        input: Option<File>,
        granted: Option<u64>,
    ) -> Result<Self, OpenError> {
        let room = Room::new(granted, size_of_files(paths, input.as_ref()));
        let (media, labels) = open_all(paths, input, &room)?;
        check_labels(&labels, positions)?;
        let (bases, differential) = choose(&labels, positions)?;
        Self::assemble(Arc::new(media), &labels, (&bases, &differential, &[]), &room)
    }

    /// Opens the pages of the chosen sets. `bases` contains either one full backup or several sets of files, from old
    /// to new. `differential` may be empty. `logs` are the log backups to apply after these sets.
    pub(super) fn assemble(
        media: Arc<Vec<Media>>,
        labels: &[BackupMedia],
        (bases, differential, logs): (&[Group], &Group, &[Group]),
        room: &Room,
    ) -> Result<Self, OpenError> {
        for group in bases.iter().chain([differential]).chain(logs) {
            refuse_encrypted(labels, group)?;
        }
        let first = labels.first().map(|label| label.path.clone()).unwrap_or_default();
        let failed = |cause| open_error(&first, cause);
        let mut parts = parts_of(&media, labels, bases.iter().chain([differential]), room).map_err(failed)?;
        keep_newest(&mut parts);
        let has_one_moment = parts.iter().filter(|part| part.set.kind.is_of_files()).count() <= 1;
        let groups: Vec<&Group> = parts.iter().map(|part| part.group).collect();
        let mut found = Assembly::new(labels);
        for part in parts {
            found.add(&media, labels, part, room).map_err(failed)?;
        }
        let last = bases.last().and_then(|base| Some((labels.get(base.first()?.0)?, first_set(labels, base)?)));
        let is_without_primary = |set: &BackupSet| set.kind.is_of_files() && !found.files.contains_key(&PRIMARY);
        if let Some((label, set)) = last.filter(|(_, set)| is_without_primary(set)) {
            return Err(OpenError::WithoutPrimary { path: label.path.clone(), position: set.position });
        }
        for (media, set) in logs.iter().flatten() {
            let Some(set) = labels.get(*media).and_then(|label| label.sets.get(*set)) else { continue };
            found.sums.extend(set.log.iter().filter_map(|log| RegionSum::new(*media as u16, log.region)));
        }
        found.end_files();
        let is_known = found.is_known();
        let Assembly {
            damage,
            undescribed,
            files,
            places,
            mut sums,
            missing_stripes,
            missing_numbers,
            newest,
            log,
            sets_added: _,
        } = found;
        // Every file that was copied has an entry in `places`. Files and places are both sorted by file ID.
        let files: Vec<DataFile> = files.into_values().collect();
        let mut places: Vec<FilePlaces> = places.into_values().collect();
        places.iter_mut().for_each(FilePlaces::flatten);
        sums.sort_by_key(RegionSum::place);
        let other_sets = if logs.is_empty() { other_sets(labels, &groups) } else { Vec::new() };
        let names = |group: &Group| {
            let files = first_set(labels, group).map_or(&[][..], |set| &set.files);
            // If two files have the same ID, the first file is used.
            files.iter().rev().map(|file| (file.file_id, file.physical_name.clone())).collect::<Vec<_>>()
        };
        // If a file was moved after the full backup, the differential has its new path.
        let physical_names: BTreeMap<u16, String> = groups.iter().copied().flat_map(names).collect();
        let mut this = Self {
            media,
            files,
            places,
            sums,
            damage,
            missing_stripes,
            missing_numbers,
            set: newest,
            undescribed: undescribed.into_iter().collect(),
            in_flight: None,
            has_one_moment,
            other_sets,
            sets: used_sets(labels, groups.into_iter().chain(logs)),
            is_hinted: room.is_hinted(),
            physical_names,
        };
        this.read_headers();
        if is_known && this.has_one_moment {
            this.in_flight = Some(this.settle(&log));
        }
        Ok(this)
    }
}

/// Places the extents of sets of which some stripe was given.
fn parts_of<'l>(
    media: &[Media],
    labels: &'l [BackupMedia],
    groups: impl Iterator<Item = &'l Group>,
    room: &Room,
) -> io::Result<Vec<Part<'l>>> {
    let mut parts = Vec::new();
    for group in groups {
        let stripes: Vec<(u16, &BackupSet)> =
            group.iter().filter_map(|&(media, set)| Some((media as u16, labels.get(media)?.sets.get(set)?))).collect();
        let Some((tape, set)) = stripes.first().copied() else { continue };
        let Some(label) = labels.get(usize::from(tape)) else { continue };
        let placed = place(media, &stripes, room)?;
        parts.push(Part { group, label, set, stripes, placed });
    }
    Ok(parts)
}

/// What the sets of a backup contain together.
#[derive(Default)]
struct Assembly {
    damage: Vec<Damage>,
    /// The number of blocks of each unknown kind, by their tag.
    undescribed: BTreeMap<[u8; 4], u64>,
    files: BTreeMap<u16, DataFile>,
    places: BTreeMap<u16, FilePlaces>,
    sums: Vec<RegionSum>,
    missing_stripes: u16,
    /// The numbers of the missing stripes, and the number of all stripes, of the last set that lacks some.
    missing_numbers: (Vec<u16>, u16),
    newest: SetLabel,
    log: LogPortion,
    sets_added: usize,
}

impl Assembly {
    fn new(labels: &[BackupMedia]) -> Self {
        let damage = labels.iter().flat_map(|label| label.damage.clone()).collect();
        let mut undescribed: BTreeMap<[u8; 4], u64> = BTreeMap::new();
        for (tag, count) in labels.iter().flat_map(|label| &label.undescribed) {
            *undescribed.entry(*tag).or_default() += count;
        }
        Self { damage, undescribed, ..Self::default() }
    }

    /// Adds a set. The sets must be added from old to new.
    fn add(&mut self, media: &[Media], labels: &[BackupMedia], part: Part<'_>, room: &Room) -> io::Result<()> {
        let Part { group, label, set, stripes, placed } = part;
        let lost = label.families.saturating_sub(stripes.len().try_into().unwrap_or(u16::MAX));
        if lost == 0 && self.undescribed.is_empty() {
            self.damage.extend(pages_missing(label, set, &placed));
        }
        self.missing_stripes = self.missing_stripes.saturating_add(lost);
        if lost > 0 {
            self.missing_numbers = (missing_of(labels, group, lost), label.families);
        }
        self.newest = set.label();
        add_files(&mut self.files, &stripes, label, &placed);
        add_places(&mut self.places, placed.files, self.sets_added == 0);
        self.sets_added += 1;
        for (tape, set) in &stripes {
            self.sums.extend(set.pages.iter().filter_map(|region| RegionSum::new(*tape, *region)));
            let logs = set.log.iter().map(|log| log.region);
            self.sums.extend(logs.filter_map(|region| RegionSum::new(*tape, region)));
        }
        // Each set replaces the log of the set before it, so the log of the last set remains: a restore brings the
        // pages to the state at the end of that log.
        self.log = read_log(media, &stripes, room)?;
        let bad = self.log.bad_blocks.iter();
        let bad = bad.map(|&at| Damage { path: label.path.clone(), at, kind: DamageKind::LogBlock });
        self.damage.extend(bad);
        Ok(())
    }

    /// Ends each file where the last copied extent shows that it ends.
    fn end_files(&mut self) {
        for (file_id, file) in &mut self.files {
            let end = self.places.get(file_id).map_or(0, FilePlaces::end);
            file.pages = file.pages.min(end_of_file(end, self.missing_stripes));
        }
    }

    /// Whether everything in the backup was read and understood.
    fn is_known(&self) -> bool {
        self.missing_stripes == 0 && self.undescribed.is_empty() && self.damage.is_empty() && !self.log.is_unknown
    }
}

/// The numbers of a set's missing stripes; empty if the labels of the stripes disagree about them.
fn missing_of(labels: &[BackupMedia], group: &Group, lost: u16) -> Vec<u16> {
    let given: BTreeSet<u16> = group.iter().filter_map(|&(media, _)| Some(labels.get(media)?.family)).collect();
    let families = group.first().and_then(|&(media, _)| labels.get(media)).map_or(0, |label| label.families);
    let missing: Vec<u16> =
        (1..=families).filter(|number| !given.contains(number)).take(usize::from(lost) + 1).collect();
    if missing.len() == usize::from(lost) { missing } else { Vec::new() }
}

/// The first stripe of a set.
pub(super) fn first_set<'l>(labels: &'l [BackupMedia], group: &Group) -> Option<&'l BackupSet> {
    group.first().and_then(|&(media, set)| labels.get(media)?.sets.get(set))
}

fn used_sets<'g>(labels: &[BackupMedia], groups: impl Iterator<Item = &'g Group>) -> Vec<UsedSet> {
    let used = groups.filter_map(|group| {
        let &(media, index) = group.first()?;
        let set = labels.get(media)?.sets.get(index)?;
        let paths = group.iter().filter_map(|(media, _)| Some(labels.get(*media)?.path.clone())).collect();
        let (finished, guid) = (set.config.finished.clone(), set.guid.clone());
        Some(UsedSet { paths, position: set.position, kind: set.kind, finished, guid })
    });
    used.collect()
}

/// Opens backup files and reads their labels. The path `-` means `input`.
pub(super) fn open_all(
    paths: &[PathBuf],
    mut input: Option<File>,
    room: &Room,
) -> Result<(Vec<Media>, Vec<BackupMedia>), OpenError> {
    let (mut media, mut labels) = (Vec::new(), Vec::new());
    for path in paths {
        let kept = if path.as_os_str() == "-" { input.take() } else { None };
        let opened = match kept {
            Some(file) => super::open_file(path, file.into(), room)?,
            None => super::open(path, room)?,
        };
        let label = BackupMedia::read(&opened, room).map_err(|cause| open_error(path, cause))?;
        media.push(opened);
        labels.push(label);
    }
    Ok((media, labels))
}

/// Chooses the sets to use: the full backup and a differential backup based on it, or sets of files if there is no full
/// backup. Each given file must contain a stripe of a chosen set. As an exception, a file may contain only older sets
/// of files of the same database.
pub(super) fn choose(labels: &[BackupMedia], positions: &[u16]) -> Result<(Vec<Group>, Group), OpenError> {
    let chosen = |media: usize, index: usize| {
        let set = labels.get(media).and_then(|label| label.sets.get(index));
        set.filter(|set| positions.is_empty() || positions.contains(&set.position))
    };
    let (bases, differential) = match choose_full(labels, &chosen) {
        Ok(full) => {
            let differential = choose_differential(labels, &chosen, &full, positions)?;
            (vec![full], differential)
        }
        Err(error) => match sets_of_files(labels, &chosen) {
            bases if bases.is_empty() => return Err(error),
            bases => (bases, Group::new()),
        },
    };
    let is_older = |label: &BackupMedia| bases.first().is_some_and(|base| is_of_files_of(label, labels, base));
    let is_used = |number| bases.iter().flatten().chain(&differential).any(|(media, _)| *media == number);
    let mut unused = labels.iter().enumerate().filter(|(number, _)| !is_used(*number)).map(|(_, label)| label);
    match unused.find(|label| !is_older(label)) {
        Some(unused) => Err(unmatched(labels, unused, &bases)),
        None => Ok((bases, differential)),
    }
}

/// Returns the total length in bytes of the backup files, including `input`.
pub(super) fn size_of_files(paths: &[PathBuf], input: Option<&File>) -> u64 {
    let named = paths.iter().filter_map(|path| storage::length(path));
    named.chain(input.and_then(|file| file.metadata().ok()).map(|metadata| metadata.len())).sum()
}

/// Checks the labels of all files. Each file must contain a selected set, and a set that is not encrypted. No set may
/// come from a version before the oldest supported version. No two files may hold the same stripe.
pub(super) fn check_labels(labels: &[BackupMedia], positions: &[u16]) -> Result<(), OpenError> {
    let mut families = BTreeSet::new();
    for label in labels {
        let path = || label.path.clone();
        if label.sets.is_empty() {
            return Err(super::no_set(&label.path));
        }
        if label.sets.iter().all(|set| set.is_encrypted) {
            return Err(OpenError::EncryptedBackup { path: path() });
        }
        if !positions.is_empty() && !label.sets.iter().any(|set| positions.contains(&set.position)) {
            return Err(OpenError::NoSuchSet { path: path(), sets: label.sets.len() });
        }
        if let (Some(media_set), true) = (&label.media_set, label.families > 1)
            && !families.insert((media_set.clone(), label.family))
        {
            return Err(OpenError::SameStripe { path: path(), family: label.family });
        }
        let too_old =
            label.sets.iter().map(|set| set.config.version).find(|&found| found != 0 && found < version::OLDEST);
        if let Some(found) = too_old {
            let product = version::product(found).unwrap_or("an old release");
            return Err(OpenError::TooOld { path: path(), version: found, product });
        }
    }
    Ok(())
}

/// Returns an error if the set to read is encrypted. Other sets in its files may be encrypted.
pub(super) fn refuse_encrypted(labels: &[BackupMedia], group: &Group) -> Result<(), OpenError> {
    let sets = group.iter().filter_map(|&(media, set)| labels.get(media).map(|label| (label, label.sets.get(set))));
    for (label, set) in sets {
        if set.is_some_and(|set| set.is_encrypted) {
            return Err(OpenError::EncryptedBackup { path: label.path.clone() });
        }
    }
    Ok(())
}

/// Returns the error for a file that does not belong to the chosen sets. If the media header of any file cannot be
/// read, the error names that file instead.
fn unmatched(labels: &[BackupMedia], unused: &BackupMedia, bases: &[Group]) -> OpenError {
    if let Some(damaged) = labels.iter().find(|label| label.media_set.is_none()) {
        return OpenError::UnknownMedia { path: damaged.path.clone() };
    }
    let first = bases.first();
    let log = unused.sets.iter().find(|set| set.kind == SetKind::Log);
    if let Some(log) =
        log.filter(|_| first.and_then(|base| first_set(labels, base)).is_some_and(|base| base.kind.is_of_files()))
    {
        return OpenError::LogOfFiles { path: unused.path.clone(), position: log.position };
    }
    let other = first.and_then(|base| base.first()).and_then(|(media, _)| labels.get(*media));
    let other = other.map(|label| label.path.clone()).unwrap_or_default();
    OpenError::OtherBackup { path: unused.path.clone(), other }
}

/// Finds the stripes of a set in all files that contain the set.
pub(super) fn stripes_of(labels: &[BackupMedia], set: &BackupSet, of: &BackupMedia) -> Group {
    let mut group = Group::new();
    for (number, label) in labels.iter().enumerate() {
        let is_same = |other: &BackupSet| {
            std::ptr::eq(other, set) || set.guid.is_some() && other.guid == set.guid && label.media_set == of.media_set
        };
        if let Some(index) = label.sets.iter().position(is_same) {
            group.push((number, index));
        }
    }
    group
}

fn choose_full<'a>(
    labels: &'a [BackupMedia],
    chosen: &impl Fn(usize, usize) -> Option<&'a BackupSet>,
) -> Result<Group, OpenError> {
    let mut other = None;
    for (number, label) in labels.iter().enumerate() {
        for index in 0..label.sets.len() {
            match chosen(number, index) {
                Some(set) if set.kind == SetKind::Full => return Ok(stripes_of(labels, set, label)),
                Some(set) => other = other.or(Some((label.path.clone(), set.kind, set.position))),
                None => {}
            }
        }
    }
    let Some((path, kind, position)) = other else { return Err(OpenError::Nothing) };
    Err(match kind {
        SetKind::Log => OpenError::LogBackup { path, position },
        SetKind::Differential => OpenError::DifferentialAlone { path, position },
        _ => OpenError::UnsupportedSet { path, position, kind: kind.name() },
    })
}

fn choose_differential<'a>(
    labels: &'a [BackupMedia],
    chosen: &impl Fn(usize, usize) -> Option<&'a BackupSet>,
    full: &Group,
    positions: &[u16],
) -> Result<Group, OpenError> {
    let base = full.first().and_then(|&(media, set)| labels.get(media)?.sets.get(set));
    let mut foreign = None;
    for (number, label) in labels.iter().enumerate() {
        // A differential backup in the same file as the full backup is used only if `positions` selects it.
        if positions.is_empty() && full.iter().any(|(media, _)| *media == number) {
            continue;
        }
        for index in 0..label.sets.len() {
            let Some(set) = chosen(number, index).filter(|set| set.kind == SetKind::Differential) else { continue };
            if base.is_some_and(|base| is_based_on(set, base)) {
                return Ok(stripes_of(labels, set, label));
            }
            foreign = foreign.or(Some(OpenError::OtherBase { path: label.path.clone(), position: set.position }));
        }
    }
    foreign.map_or(Ok(Group::new()), Err)
}

/// The largest possible number of pages of a file, if its last copied extent ends at `end`. There is a PFS page every
/// 8088 pages, and backups always copy PFS pages, so the file ends soon after its last copied extent. If stripes are
/// missing, they may have contained further PFS pages.
fn end_of_file(end: u32, missing_stripes: u16) -> u32 {
    let intervals = end.saturating_mul(EXTENT_PAGES).div_ceil(PFS_PAGES).max(1);
    intervals.saturating_add(u32::from(missing_stripes.min(2 * MOST_STRIPES))).saturating_mul(PFS_PAGES)
}

/// Returns the positions of the sets that are not used, in the file that contains the first stripe of the first used
/// set.
fn other_sets(labels: &[BackupMedia], groups: &[&Group]) -> Vec<u16> {
    let first = groups.first().and_then(|group| group.first());
    let Some((media, label)) = first.and_then(|&(media, _)| Some((media, labels.get(media)?))) else {
        return Vec::new();
    };
    let is_other = |index: usize| !groups.iter().any(|group| group.contains(&(media, index)));
    label.sets.iter().enumerate().filter(|(index, _)| is_other(*index)).map(|(_, set)| set.position).collect()
}

/// Whether a differential backup contains the changes since the full backup `base`.
pub(super) fn is_based_on(differential: &BackupSet, base: &BackupSet) -> bool {
    let mut files = differential.files.iter().filter(|file| file.is_data);
    let guid = &differential.config.differential_base_guid;
    files.any(|file| file.differential_base_lsn.is_some() && file.differential_base_lsn == base.config.checkpoint_lsn)
        && (guid.is_none() || base.guid.is_none() || *guid == base.guid)
}

fn pages_missing(label: &BackupMedia, set: &BackupSet, placed: &Placed) -> Vec<Damage> {
    let at = set.pages.first().map_or(0, |region| region.at);
    let missing = placed.short.iter().map(|&(file_id, expected, found)| Damage {
        path: label.path.clone(),
        at,
        kind: DamageKind::PagesMissing { file_id, expected, found },
    });
    missing.collect()
}

/// Adds the data files of a set. If a file is already listed, the greater size is kept.
fn add_files(files: &mut BTreeMap<u16, DataFile>, stripes: &Stripes<'_>, label: &BackupMedia, placed: &Placed) {
    let limit = most_extents(stripes).saturating_mul(EXTENT_PAGES);
    let Some((_, set)) = stripes.first() else { return };
    let is_placed = |file_id| placed.files.iter().any(|file| file.file_id == file_id);
    let is_copied = |file: &BackupFile| file.pages_copied > 0 || set.kind.is_of_files();
    for found in set.files.iter().filter(|file| file.is_data && is_copied(file) && is_placed(file.file_id)) {
        let pages = u32::try_from(found.bytes / PAGE_BYTES as u64).unwrap_or(u32::MAX).min(limit);
        let file = files.entry(found.file_id).or_insert_with(|| DataFile {
            path: label.path.clone(),
            file_id: found.file_id,
            filegroup: found.filegroup,
            logical_name: found.logical_name.clone(),
            pages,
            header_pages: None,
            tail_bytes: 0,
            binding_guid: None,
            header_is_sound: true,
        });
        // `limit` is computed from the length of the backup. For a short differential backup, `limit` may be less than
        // the real size of a file. In this case the full backup gives the greater, correct size.
        file.pages = file.pages.max(pages);
    }
}

fn add_places(places: &mut BTreeMap<u16, FilePlaces>, added: Vec<FilePlaces>, is_first: bool) {
    for mut file in added {
        let known = places.entry(file.file_id).or_insert_with(|| FilePlaces {
            file_id: file.file_id,
            layers: Vec::new(),
            base_layers: Some(if is_first { file.layers.len() } else { 0 }),
        });
        known.layers.append(&mut file.layers);
    }
}

/// Reads the log of a set from all stripes of the set.
fn read_log(media: &[Media], stripes: &Stripes<'_>, room: &Room) -> io::Result<LogPortion> {
    let mut regions: Vec<(u16, LogRegion)> =
        stripes.iter().flat_map(|(tape, set)| set.log.iter().map(|log| (*tape, *log))).collect();
    regions.sort_by_key(|(tape, log)| (log.vlf.sequence, log.start, *tape, log.region.at));
    let mut log = LogPortion::default();
    for (tape, region) in &regions {
        if let Some(media) = media.get(usize::from(*tape)) {
            log.read(media, region, room)?;
        }
    }
    log.is_unknown |= regions.is_empty();
    log.finish();
    Ok(log)
}
