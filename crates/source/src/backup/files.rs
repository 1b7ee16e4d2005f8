//! File, filegroup and partial backups ("sets of files"). Each contains all pages of some files of a database. The
//! newest copies of all files together make up the backed-up part of the database
//! (docs/format/backups.md#files-and-filegroups).

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;

use format::page::PAGE_BYTES;

use super::chain_sets::ChainSet;
use super::media::Media;
use super::names::{SetFiles, names};
use super::open::{Group, Part, first_set, stripes_of};
use super::placement::{Placed, Stripes};
use super::places::FRAME_BYTES;
use super::sets::{BackupMedia, BackupSet};

/// Returns a key that sorts the sets of one database by age. The key begins with the last LSN, because LSNs grow with
/// time. If there are copies of a set, the copy with the most stripes sorts last.
fn age(set: &BackupSet, missing_stripes: u16) -> impl Ord + use<> {
    (set.config.last_lsn, set.config.finished.clone(), Reverse(missing_stripes))
}

/// The sets of files among the `chosen` sets, oldest first. Sets are left out if their database differs from that of
/// the first set.
pub(super) fn sets_of_files<'a>(
    labels: &'a [BackupMedia],
    chosen: &impl Fn(usize, usize) -> Option<&'a BackupSet>,
) -> Vec<Group> {
    let mut groups: Vec<(Group, &BackupSet)> = Vec::new();
    for (number, label) in labels.iter().enumerate() {
        for index in 0..label.sets.len() {
            let Some(set) = chosen(number, index).filter(|set| set.kind.is_of_files()) else { continue };
            let is_known = groups.iter().any(|(group, _)| group.contains(&(number, index)));
            let is_of_database = groups.first().is_none_or(|(_, first)| first.config.is_of_same_database(&set.config));
            if !is_known && is_of_database {
                groups.push((stripes_of(labels, set, label), set));
            }
        }
    }
    let families =
        |group: &Group| group.first().and_then(|&(media, _)| labels.get(media)).map_or(1, |label| label.families);
    let missing = |group: &Group| families(group).saturating_sub(u16::try_from(group.len()).unwrap_or(u16::MAX));
    groups.sort_by_key(|(group, set)| age(set, missing(group)));
    groups.into_iter().map(|(group, _)| group).collect()
}

/// The sets of files among `sets`, grouped by database, oldest first. A set is left out if newer sets contain all its
/// files.
pub(super) fn databases_of_files(sets: &[ChainSet]) -> Vec<Vec<ChainSet>> {
    let mut databases: Vec<Vec<&ChainSet>> = Vec::new();
    for set in sets.iter().filter(|set| set.set.kind.is_of_files()) {
        let is_of = |known: &&mut Vec<&ChainSet>| {
            known.first().is_some_and(|first| first.set.config.is_of_same_database(&set.set.config))
        };
        match databases.iter_mut().find(is_of) {
            Some(known) => known.push(set),
            None => databases.push(vec![set]),
        }
    }
    databases.into_iter().map(not_superseded).collect()
}

fn not_superseded(mut sets: Vec<&ChainSet>) -> Vec<ChainSet> {
    sets.sort_by_key(|set| Reverse(age(&set.set, set.missing_stripes)));
    let mut copied: BTreeSet<u16> = BTreeSet::new();
    let mut used: Vec<ChainSet> = Vec::new();
    for set in sets {
        let is_new = copied_files(&set.set).any(|(file_id, _)| !copied.contains(&file_id));
        if !says_what_it_has(set) {
            used.push(set.clone());
        } else if is_new {
            copied.extend(copied_files(&set.set).map(|(file_id, _)| file_id));
            used.push(set.clone());
        }
    }
    used.reverse();
    used
}

/// The files that a set's label lists as copied, each with its number of pages.
fn copied_files(set: &BackupSet) -> impl Iterator<Item = (u16, u32)> {
    let files = set.files.iter().filter(|file| file.is_data && file.pages_copied > 0);
    files.map(|file| (file.file_id, file.pages_copied))
}

/// Whether the set is large enough to contain all pages that its label counts. Some labels also count files that are
/// not in the set. Such a set is smaller than its label says, so the result is false. The result is also false for a
/// set with several stripes, because the label of one stripe does not show the size of the set.
fn says_what_it_has(set: &ChainSet) -> bool {
    let bytes: u64 = copied_files(&set.set).map(|(_, pages)| u64::from(pages) * PAGE_BYTES as u64).sum();
    set.stripes == 1 && set.set.pages.first().is_some_and(|region| region.length >= bytes)
}

/// Returns the IDs of the files that a set of files contains. A file counts as contained if its first extent, which a
/// backup always copies, was found. If the set has at least as many pages as its label counts, all files that the label
/// counts are contained. `placed` lists all files of the database.
pub(super) fn members(media: &[Media], stripes: &Stripes<'_>, placed: &Placed) -> io::Result<BTreeSet<u16>> {
    let mut members: BTreeSet<u16> =
        placed.files.iter().filter(|file| file.has_start()).map(|file| file.file_id).collect();
    let counted = stripes.first().and_then(|(_, set)| set.copied.first()).map(Vec::as_slice).unwrap_or_default();
    let expected: u64 = counted.iter().map(|(_, pages)| u64::from(*pages)).sum();
    if counted.iter().any(|(file_id, pages)| *pages > 0 && !members.contains(file_id)) {
        let mut present = 0;
        for (tape, set) in stripes {
            let (Some(media), Some(region)) = (media.get(usize::from(*tape)), set.pages.first()) else { continue };
            let mut frames = region.length.div_ceil(FRAME_BYTES);
            // Filler frames at the end of the region contain no pages of the database, so they are not counted.
            while frames > 0 && names(media, region.at + (frames - 1) * FRAME_BYTES, &SetFiles::default())?.is_filler {
                frames -= 1;
            }
            present += frames * (FRAME_BYTES / PAGE_BYTES as u64);
        }
        if present >= expected {
            members.extend(counted.iter().filter(|(_, pages)| *pages > 0).map(|(file_id, _)| *file_id));
        }
    }
    Ok(members)
}

/// Keeps each file only in the newest set of files that contains it, and removes sets without remaining files. `parts`
/// must be sorted from old to new.
pub(super) fn keep_newest(parts: &mut Vec<Part<'_>>) {
    let mut owned = BTreeSet::new();
    for part in parts.iter_mut().rev().filter(|part| part.set.kind.is_of_files()) {
        part.placed.keep(|file_id| owned.insert(file_id));
    }
    parts.retain(|part| !part.set.kind.is_of_files() || !part.placed.files.is_empty());
}

/// Whether `base` and all sets in a backup file are sets of files of the same database.
pub(super) fn is_of_files_of(label: &BackupMedia, labels: &[BackupMedia], base: &Group) -> bool {
    let base = first_set(labels, base).filter(|base| base.kind.is_of_files());
    let is_of_it = |base: &BackupSet| {
        label.sets.iter().all(|set| set.kind.is_of_files() && base.config.is_of_same_database(&set.config))
    };
    base.is_some_and(is_of_it)
}
