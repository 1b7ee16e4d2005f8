//! Tests that each file from the lab is either complete or does not exist, even if the lab is killed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{data_file, folder_with_database, mdfsck};

/// Starts the program, and kills it when the first file appears in the folder `out`. Returns the names in the folder.
/// Returns `None` if the program ended before it could be killed.
fn killed_at_the_first_file(here: &Path, arguments: &[&str]) -> Option<Vec<String>> {
    let out = here.join("out");
    let mut child = Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).current_dir(here).spawn().unwrap();
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&out).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let start = Instant::now();
    while names().is_empty() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_micros(100));
    }
    child.kill().unwrap();
    let was_killed = !child.wait().unwrap().success();
    let names = names();
    fs::remove_dir_all(&out).unwrap();
    was_killed.then_some(names)
}

#[test]
fn a_lab_that_is_killed_leaves_no_file_under_its_name() {
    let folder = folder_with_database();
    let here = folder.path();
    for arguments in [
        &["lab", "new", "out", "--size", "64MB", "--files", "2"][..],
        &["lab", "damage", "db", "-o", "out", "--kind", "lost-write"],
        &["lab", "backup", "db", "-o", "out", "--stripes", "3", "--compressed"],
    ] {
        // On a busy machine the program may end before it can be killed.
        let names = (0..100).find_map(|_| killed_at_the_first_file(here, arguments));
        let names = names.unwrap_or_else(|| panic!("{arguments:?} was never killed in time"));
        assert!(!names.is_empty(), "{arguments:?} wrote nothing");
        let is_partial = |name: &String| name.starts_with('.') && name.ends_with(".partial");
        assert!(names.iter().all(is_partial), "{arguments:?} left {names:?}");
    }
}

#[test]
fn a_lab_that_ends_leaves_its_files_alone_and_replaces_none() {
    let folder = folder_with_database();
    let here = folder.path();
    let name = data_file(here).file_name().unwrap().to_owned().into_string().unwrap();
    for (arguments, expected) in [
        (&["lab", "new", "out", "--schema", "entries", "--size", "3MB"][..], name.as_str()),
        (&["lab", "damage", "db", "-o", "out", "--kind", "lost-write"], name.as_str()),
        (&["lab", "backup", "db", "-o", "out"], "full.bak"),
    ] {
        assert_eq!(mdfsck(here, arguments).status.code(), Some(0), "{arguments:?}");
        let files: Vec<_> = fs::read_dir(here.join("out")).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files, [expected], "{arguments:?}");
        let made = fs::read(here.join("out").join(expected)).unwrap();
        let again = mdfsck(here, arguments);
        assert_ne!(again.status.code(), Some(0), "{arguments:?}");
        assert!(String::from_utf8_lossy(&again.stderr).contains(expected), "{arguments:?}");
        assert_eq!(fs::read(here.join("out").join(expected)).unwrap(), made, "{arguments:?}");
        assert_eq!(fs::read_dir(here.join("out")).unwrap().count(), 1, "{arguments:?}");
        fs::remove_dir_all(here.join("out")).unwrap();
    }
}

#[test]
fn a_copy_of_a_read_only_database_is_damaged_and_writable() {
    let folder = folder_with_database();
    let here = folder.path();
    let original = data_file(here);
    let mut permissions = fs::metadata(&original).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&original, permissions).unwrap();
    let done = mdfsck(here, &["lab", "damage", "db", "-o", "out", "--kind", "bit-rot"]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let copy = here.join("out").join(original.file_name().unwrap());
    // For the superuser, read-only files are writable: so the test asks for the permissions.
    assert!(!fs::metadata(&copy).unwrap().permissions().readonly());
    assert_ne!(fs::read(&original).unwrap(), fs::read(&copy).unwrap());
}
