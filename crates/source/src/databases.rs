//! Which data files are of one database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::DataFile;

/// Groups data files by the database that their headers name, each group by file ID. Copies of a database in folders of their
/// own are databases of their own, and so are copies of a primary file in one folder. Where it is not clear which files belong
/// together, they are one group, which cannot be opened.
pub fn databases(files: Vec<DataFile>) -> Vec<Vec<DataFile>> {
    let (bound, unbound): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.binding_guid.is_some());
    let mut by_binding: BTreeMap<Option<[u8; 16]>, Vec<DataFile>> = BTreeMap::new();
    for file in bound {
        by_binding.entry(file.binding_guid).or_default().push(file);
    }
    let mut groups: Vec<Vec<DataFile>> = by_binding.into_values().collect();
    let mut alone = Vec::new();
    for file in unbound {
        // A damaged header names no database. Only one can be meant, or the file stands for itself.
        match groups.as_mut_slice() {
            [group] if group.iter().all(|known| known.file_id != file.file_id) => group.push(file),
            [] => groups.push(vec![file]),
            _ => alone.push(vec![file]),
        }
    }
    let mut databases: Vec<Vec<DataFile>> = groups.into_iter().flat_map(copies).chain(alone).collect();
    databases.iter_mut().for_each(|files| files.sort_by(|a, b| (a.file_id, &a.path).cmp(&(b.file_id, &b.path))));
    databases
}

/// The copies of a database, each by itself.
fn copies(files: Vec<DataFile>) -> Vec<Vec<DataFile>> {
    if is_one(&files) {
        return vec![files];
    }
    let mut by_folder: BTreeMap<Option<PathBuf>, Vec<DataFile>> = BTreeMap::new();
    for file in files {
        by_folder.entry(file.path.parent().map(Path::to_owned)).or_default().push(file);
    }
    let in_folders = by_folder.into_values().flat_map(|files| match files.iter().all(|file| file.file_id == 1) {
        true => files.into_iter().map(|file| vec![file]).collect(),
        false => vec![files],
    });
    in_folders.collect()
}

/// Whether no two files have one ID.
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
        let files = files.iter().map(|&(path, id, binding)| file(path, id, binding)).collect();
        let names = |group: Vec<DataFile>| group.iter().map(|file| file.path.display().to_string()).collect();
        databases(files).into_iter().map(names).collect()
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
        // Which of the two secondary files is meant, nothing says.
        let unclear = [("a.mdf", 1, Some(1)), ("a.ndf", 3, Some(1)), ("b.ndf", 3, Some(1)), ("c.mdf", 1, Some(2))];
        assert_eq!(grouped(&unclear), [vec!["a.mdf", "a.ndf", "b.ndf"], vec!["c.mdf"]]);
    }

    #[test]
    fn a_file_with_a_damaged_header_belongs_to_the_only_database_that_lacks_it() {
        assert_eq!(grouped(&[("a.mdf", 1, Some(1)), ("b.ndf", 3, None)]), [["a.mdf", "b.ndf"]]);
        assert_eq!(grouped(&[("a.mdf", 1, None), ("b.ndf", 3, Some(1))]), [["a.mdf", "b.ndf"]]);
        assert_eq!(grouped(&[("a.mdf", 1, Some(1)), ("b.mdf", 1, None)]), [["a.mdf"], ["b.mdf"]]);
        let several = [("a.mdf", 1, Some(1)), ("b.mdf", 1, Some(2)), ("b.ndf", 3, None)];
        assert_eq!(grouped(&several), [["a.mdf"], ["b.mdf"], ["b.ndf"]]);
    }
}
