//! Tests with symbolic links instead of files and folders.

use std::fs;
use std::os::unix::fs::symlink;

use super::{data_file, ends, folder_with_database, mdfsck, stdout};

#[test]
fn a_folder_of_links_to_data_files_is_checked_as_a_folder_of_data_files() {
    let folder = folder_with_database();
    let here = folder.path();
    fs::create_dir(here.join("links")).unwrap();
    symlink(data_file(here), here.join("links/a.mdf")).unwrap();
    symlink("links", here.join("to-folder")).unwrap();
    let plain = stdout(&mdfsck(here, &["check", "db"]));
    for path in ["links", "to-folder", "links/a.mdf"] {
        let output = mdfsck(here, &["check", path]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), plain.clone()), "{path}");
    }
    // None of these links adds a data file: a second link to the same file, a link to another kind of file, a link to a
    // folder, and a loop.
    symlink("a.mdf", here.join("links/b.mdf")).unwrap();
    symlink(".", here.join("links/c.mdf")).unwrap();
    symlink("nowhere", here.join("links/.#lock")).unwrap();
    assert_eq!(mdfsck(here, &["check", "links"]).status.code(), Some(0));
}

#[test]
fn a_link_that_leads_nowhere_or_in_a_circle_is_named() {
    let folder = folder_with_database();
    let here = folder.path();
    symlink("gone.ndf", here.join("db/second.ndf")).unwrap();
    symlink("circle.mdf", here.join("circle.mdf")).unwrap();
    ends(&mdfsck(here, &["check", "db"]), 4, &["db/second.ndf", "symbolic link", "gone.ndf", "No such file"]);
    ends(&mdfsck(here, &["info", "circle.mdf"]), 4, &["circle.mdf", "symbolic link", "Too many levels"]);
    ends(&mdfsck(here, &["check", "circle.mdf"]), 4, &["circle.mdf", "symbolic link"]);
}
