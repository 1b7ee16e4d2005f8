//! Groups data files by database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::{DataFile, storage};

/// Groups data files by the database that their file headers name. Each group is sorted by file ID. Copies of a
/// database in different folders form separate groups, and so do copies of a primary file in one folder. If it is
/// unclear which files belong together, they form one group, which cannot be opened.
///
/// A file with a damaged header names no database. If its folder contains files of exactly one known database, all such
/// files in the folder join that database. There are two conditions: all file IDs must differ, and `has_file` must
/// confirm that the catalog of the primary file lists each of these files. If the folder contains no other database,
/// the files with damaged headers form a database of their own under the same conditions. Otherwise, each of these
/// files forms a group of its own.
pub fn databases(files: Vec<DataFile>, has_file: &dyn Fn(&DataFile, &DataFile) -> bool) -> Vec<Vec<DataFile>> {
    let (bound, unbound): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.binding_guid.is_some());
    let mut by_binding: BTreeMap<Option<[u8; 16]>, Vec<DataFile>> = BTreeMap::new();
    for file in bound {
        by_binding.entry(file.binding_guid).or_default().push(file);
    }
    let mut databases: Vec<Vec<DataFile>> = by_binding.into_values().flat_map(copies).collect();
    for (folder, nameless) in by_folder(unbound) {
        let is_in_it = |files: &Vec<DataFile>| files.iter().any(|file| folder_of(file) == folder);
        let mut beside = databases.iter().enumerate().filter(|(_, files)| is_in_it(files)).map(|(number, _)| number);
        let only = match (beside.next(), beside.next()) {
            (_, Some(_)) => None,
            (only, None) => only.and_then(|only| databases.get_mut(only)),
        };
        match only {
            Some(known) if is_database(known, &nameless, &folder, has_file) => known.extend(nameless),
            None if nameless.len() > 1 && is_database(&[], &nameless, &folder, has_file) => databases.push(nameless),
            _ => databases.extend(nameless.into_iter().map(|file| vec![file])),
        }
    }
    databases.iter_mut().for_each(|files| files.sort_by(|a, b| (a.file_id, &a.path).cmp(&(b.file_id, &b.path))));
    databases
}

/// Whether the files `known` and `nameless` may form one database. The headers of the `nameless` files are damaged and
/// name no database.
fn is_database(
    known: &[DataFile],
    nameless: &[DataFile],
    folder: &Path,
    has_file: &dyn Fn(&DataFile, &DataFile) -> bool,
) -> bool {
    let mut files = known.iter().chain(nameless);
    let Some(primary) = files.clone().find(|file| file.file_id == 1 && folder_of(file) == folder) else { return false };
    let mut seen = BTreeSet::new();
    let is_new = |file: &DataFile| seen.insert(file.file_id);
    // If the primary file names no database, its catalog must list all other files.
    let is_asked = |file: &&DataFile| file.binding_guid.is_none() || primary.binding_guid.is_none();
    files.clone().all(is_new) && files.all(|file| file.file_id == 1 || !is_asked(&file) || has_file(primary, file))
}

/// Splits the files of one database into its copies.
fn copies(files: Vec<DataFile>) -> Vec<Vec<DataFile>> {
    if is_one(&files) {
        return vec![files];
    }
    let ids: BTreeSet<u16> = files.iter().map(|file| file.file_id).collect();
    let is_whole = |files: &[DataFile]| is_one(files) && files.len() == ids.len();
    let (whole, rest): (Vec<_>, Vec<_>) = by_folder(files).into_values().partition(|files| is_whole(files));
    let mut found: Vec<Vec<DataFile>> = whole;
    // If one of the folders contains no primary file, the folders do not contain copies: the database is spread over
    // several folders. The files are then not split.
    let has_primaries = rest.iter().all(|files| files.iter().any(|file| file.file_id == 1));
    match has_primaries {
        true => found.extend(rest),
        false => found.push(rest.into_iter().flatten().collect()),
    }
    // If a group contains only primary files, the files are copies of one file, and each of them forms a group of its
    // own.
    let split = |files: Vec<DataFile>| match files.iter().all(|file| file.file_id == 1) {
        true => files.into_iter().map(|file| vec![file]).collect(),
        false => vec![files],
    };
    found.into_iter().flat_map(split).collect()
}

fn by_folder(files: Vec<DataFile>) -> BTreeMap<PathBuf, Vec<DataFile>> {
    let mut folders: BTreeMap<PathBuf, Vec<DataFile>> = BTreeMap::new();
    for file in files {
        folders.entry(folder_of(&file)).or_default().push(file);
    }
    folders
}

/// The canonical path of a file's folder.
fn folder_of(file: &DataFile) -> PathBuf {
    let folder = file.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    storage::canonical(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Whether all files have different IDs.
fn is_one(files: &[DataFile]) -> bool {
    let ids: BTreeSet<u16> = files.iter().map(|file| file.file_id).collect();
    ids.len() == files.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, file_id: u16, binding: Option<u8>) -> DataFile {
        DataFile {
            path: path.into(),
            file_id,
            filegroup: 1,
            logical_name: String::new(),
            pages: 8,
            header_pages: Some(8),
            tail_bytes: 0,
            binding_guid: binding.map(|byte| [byte; 16]),
            header_is_sound: binding.is_some(),
        }
    }

    fn grouped(files: &[(&str, u16, Option<u8>)]) -> Vec<Vec<String>> {
        grouped_if(files, &|_, _| true)
    }

    fn grouped_if(
        files: &[(&str, u16, Option<u8>)],
        has_file: &dyn Fn(&DataFile, &DataFile) -> bool,
    ) -> Vec<Vec<String>> {
        let files = files.iter().map(|&(path, id, binding)| file(path, id, binding)).collect();
        let names = |group: Vec<DataFile>| group.iter().map(|file| file.path.display().to_string()).collect();
        databases(files, has_file).into_iter().map(names).collect()
    }

    #[test]
    fn files_go_to_the_database_that_their_headers_name() {
        let files = [("x/b.ndf", 3, Some(1)), ("c.mdf", 1, Some(2)), ("a.mdf", 1, Some(1))];
        assert_eq!(grouped(&files), [vec!["a.mdf", "x/b.ndf"], vec!["c.mdf"]]);
    }

    #[test]
    fn copies_are_databases_of_their_own() {
        assert_eq!(grouped(&[("a.mdf", 1, Some(1)), ("copy.mdf", 1, Some(1))]), [["a.mdf"], ["copy.mdf"]]);
        let in_folders =
            [("x/a.mdf", 1, Some(1)), ("x/a.ndf", 3, Some(1)), ("y/a.mdf", 1, Some(1)), ("y/a.ndf", 3, Some(1))];
        assert_eq!(grouped(&in_folders), [["x/a.mdf", "x/a.ndf"], ["y/a.mdf", "y/a.ndf"]]);
        // Both `a.ndf` and `b.ndf` have file ID 3, and each of them could belong to the database of `a.mdf`.
        let unclear = [("a.mdf", 1, Some(1)), ("a.ndf", 3, Some(1)), ("b.ndf", 3, Some(1)), ("c.mdf", 1, Some(2))];
        assert_eq!(grouped(&unclear), [vec!["a.mdf", "a.ndf", "b.ndf"], vec!["c.mdf"]]);
    }

    #[test]
    fn a_copy_does_not_split_a_database_that_spans_folders() {
        let spans = [("x/a.mdf", 1, Some(1)), ("y/a.ndf", 3, Some(1))];
        let copy = [("z/a.mdf", 1, Some(1)), ("z/a.ndf", 3, Some(1))];
        assert_eq!(grouped(&[&spans[..], &copy].concat()), [["z/a.mdf", "z/a.ndf"], ["x/a.mdf", "y/a.ndf"]]);
    }

    #[test]
    fn a_file_with_a_damaged_header_belongs_to_the_only_database_that_lacks_it() {
        assert_eq!(grouped(&[("a.mdf", 1, Some(1)), ("b.ndf", 3, None)]), [["a.mdf", "b.ndf"]]);
        assert_eq!(grouped(&[("a.mdf", 1, None), ("b.ndf", 3, Some(1))]), [["a.mdf", "b.ndf"]]);
        assert_eq!(grouped(&[("a.mdf", 1, None), ("b.ndf", 3, None)]), [["a.mdf", "b.ndf"]]);
        assert_eq!(grouped(&[("a.mdf", 1, Some(1)), ("b.mdf", 1, None)]), [["a.mdf"], ["b.mdf"]]);
        let several = [("a.mdf", 1, Some(1)), ("b.mdf", 1, Some(2)), ("b.ndf", 3, None)];
        assert_eq!(grouped(&several), [["a.mdf"], ["b.mdf"], ["b.ndf"]]);
    }

    #[test]
    fn a_stray_file_with_a_damaged_header_belongs_to_no_database() {
        let stray = [("a.mdf", 1, Some(1)), ("b.ndf", 3, None)];
        assert_eq!(grouped_if(&stray, &|_, _| false), [["a.mdf"], ["b.ndf"]], "the catalog has no such file");
        let elsewhere = [("x/a.mdf", 1, Some(1)), ("y/b.ndf", 3, None)];
        assert_eq!(grouped(&elsewhere), [["x/a.mdf"], ["y/b.ndf"]], "another folder");
        let two = [("a.mdf", 1, Some(1)), ("b.ndf", 3, None), ("c.ndf", 3, None)];
        assert_eq!(grouped(&two), [["a.mdf"], ["b.ndf"], ["c.ndf"]], "which of the two, nothing says");
        let one_fits = |_: &DataFile, file: &DataFile| file.file_id == 3;
        let remains = [("a.mdf", 1, Some(1)), ("b.ndf", 3, None), ("c.ndf", 4, None)];
        assert_eq!(grouped_if(&remains, &one_fits), [["a.mdf"], ["b.ndf"], ["c.ndf"]], "another remains");
    }
}
