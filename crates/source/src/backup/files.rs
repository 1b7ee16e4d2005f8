//! File, filegroup and partial backups: each holds some files of a database whole, and the newest copies of all files are
//! the database, as far as it was backed up (docs/format/backups.md#file-and-filegroup-backups).

use std::collections::BTreeMap;

use super::open::{Group, stripes_of};
use super::sets::{BackupMedia, BackupSet};

/// Of sets of one database that hold some of its files, those with the newest copy of a file, oldest first.
pub(super) fn newest_of_each_file<'s, T: Copy>(sets: &[(T, &'s BackupSet)]) -> Vec<T> {
    let age = |set: &'s BackupSet| (set.config.finished.as_deref(), set.config.last_lsn);
    let mut by_age: Vec<&(T, &BackupSet)> = sets.iter().collect();
    by_age.sort_by_key(|(_, set)| age(set));
    let mut newest: BTreeMap<u16, usize> = BTreeMap::new();
    for (number, (_, set)) in by_age.iter().enumerate() {
        let copied = set.files.iter().filter(|file| file.is_data && file.pages_copied > 0);
        newest.extend(copied.map(|file| (file.file_id, number)));
    }
    let is_used = |number: &usize| newest.values().any(|used| used == number);
    by_age.iter().enumerate().filter(|(number, _)| is_used(number)).map(|(_, (which, _))| *which).collect()
}

/// The sets of files among those that were `chosen`, if all of them are of one database; empty without any.
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
    let sets: Vec<(usize, &BackupSet)> = groups.iter().enumerate().map(|(at, (_, set))| (at, *set)).collect();
    let newest = newest_of_each_file(&sets);
    newest.into_iter().filter_map(|at| groups.get(at)).map(|(group, _)| group.clone()).collect()
}
