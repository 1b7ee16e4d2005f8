//! Checks lab databases through the library, without a command line and without a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use check::Silent;
use findings::Scope;
use format::page::PAGE_BYTES;

use crate::failure::Failure;
use crate::host::{self, Host};
use crate::inventory::{self, Job, Planned};
use crate::judge::judge;
use crate::request::Request;
use crate::spread::{Spread, What};

/// What this library has told the user, in all tests.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listening;

impl Host for Listening {
    fn warn(&self, text: &str) {
        TOLD.lock().unwrap().push(text.to_owned());
    }
}

/// Writes a sound database into a folder, and returns the path of its data file.
fn sound(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    lab::write(&lab::orders::orders(lab::Version::V904, 3, 4 << 20), folder).unwrap().files.remove(0)
}

/// Changes a byte of a data page, so that the checksum of the page is wrong.
fn damage(path: &Path) -> u32 {
    let mut bytes = fs::read(path).unwrap();
    let page = (200..).find(|page| bytes[page * PAGE_BYTES + 1] == 1).unwrap();
    bytes[page * PAGE_BYTES + 4000] ^= 1;
    fs::write(path, bytes).unwrap();
    page as u32
}

/// The exit status of a check, and the pages of its findings.
fn checked(request: &Request) -> Result<(u8, Vec<u32>), Failure> {
    let choice = request.sets()?;
    let (paths, sets) = inventory::one("check", &request.paths, &choice, request.stop.until())?;
    let what =
        What { named: &request.paths, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    judge(&request.of(paths), &what, Box::new(Silent), |report, _, _| {
        report.findings.iter().filter_map(|finding| Some(finding.page?.page)).collect()
    })
}

#[test]
fn a_check_reports_damage_and_its_status_without_a_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = sound(folder.path());
    let request = Request::of_paths(vec![path.clone()]);
    assert_eq!(checked(&request).unwrap(), (0, Vec::new()));
    let page = damage(&path);
    let (status, pages) = checked(&request).unwrap();
    // Rows of the damaged page cannot be compared with the indexes.
    assert_eq!(status, Failure::CORRUPT | Failure::INCOMPLETE);
    assert!(pages.contains(&page), "{pages:?}");
}

#[test]
fn the_request_decides_what_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = sound(folder.path());
    damage(&path);
    let mut request = Request::of_paths(vec![path]);
    request.scope.alloc = true;
    assert_eq!(checked(&request).unwrap(), (0, Vec::new()), "{}", Scope::Allocation.command());
    request.scope.alloc = false;
    request.scope.table = vec!["no.such_table".to_owned()];
    let failure = checked(&request).unwrap_err();
    assert_eq!(failure.status, Failure::USAGE);
    assert!(failure.text.contains("no.such_table"), "{}", failure.text);
}

#[test]
fn a_grant_that_is_too_small_is_refused_with_the_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = Request::of_paths(vec![sound(folder.path())]);
    request.recovery.room.memory = Some(1 << 10);
    let failure = checked(&request).unwrap_err();
    assert!(failure.needs_memory && failure.text.contains("needs at least"), "{}", failure.text);
}

#[test]
fn the_databases_of_a_folder_are_found_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let path = sound(&folder.path().join(name));
        fs::rename(&path, folder.path().join(format!("{name}.renamed"))).unwrap();
        fs::remove_dir_all(folder.path().join(name)).unwrap();
    }
    let request = Request::of_paths(["a", "b"].map(|name| folder.path().join(format!("{name}.renamed"))).to_vec());
    let planned = inventory::plan(&request.paths, &request.sets().unwrap(), request.stop.until()).unwrap();
    let Planned::Several(plan) = planned else { panic!("two databases") };
    assert_eq!(plan.items.len(), 2);
    assert!(plan.items.iter().all(|item| matches!(item.job, Job::Files { has_primary: true })));
    let failure = checked(&request).unwrap_err();
    assert!(failure.text.contains("one database at a time"), "{}", failure.text);
}

#[test]
fn what_the_user_must_know_goes_to_the_host() {
    host::set(&Listening);
    let folder = tempfile::tempdir().unwrap();
    let path = sound(folder.path());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 40 * PAGE_BYTES]).unwrap();
    let (status, _) = checked(&Request::of_paths(vec![path.clone()])).unwrap();
    assert_ne!(status & Failure::UNABLE, 0, "{status}");
    let told = TOLD.lock().unwrap();
    assert!(told.iter().any(|line| line.contains(&path.display().to_string())), "{told:?}");
}

#[test]
fn a_path_that_does_not_exist_is_named() {
    let failure = checked(&Request::of_paths(vec!["/no/such/file.mdf".into()])).unwrap_err();
    assert!(failure.text.contains("/no/such/file.mdf"), "{}", failure.text);
}
