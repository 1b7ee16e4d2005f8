use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tempfile::TempDir;

use super::*;

/// Copies a folder, and writes each call to the file `calls`.
const COPIES: &str = r#"cd "$(dirname "$0")"; echo "$*" >>calls
case $1 in
create) cp -r "$2" copy; echo "$PWD/copy" ;;
remove) rm -r "$2" ;;
esac"#;

/// A folder with a program `snap` and a folder `data`, and the arguments for a check of `data`.
fn arguments(script: &str) -> (TempDir, Request) {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("snap");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(place.path().join("data")).unwrap();
    let mut arguments = Request::of_paths(vec![place.path().join("data")]);
    arguments.snapshot.snapshot_with = Some(program);
    arguments.results.history = Some(place.path().join("h.db"));
    (place, arguments)
}

/// The verbs of the calls.
fn calls(place: &Path) -> Vec<String> {
    let calls = fs::read_to_string(place.join("calls")).unwrap_or_default();
    calls.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

fn records(place: &Path) -> usize {
    fs::read_dir(place.join("h.db.snapshots")).unwrap().count()
}

#[test]
fn a_check_that_panics_leaves_no_snapshot() {
    let (place, arguments) = arguments(COPIES);
    let place = place.path();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        around(&arguments, |arguments| {
            assert_eq!(arguments.paths, [place.join("copy")]);
            assert!(arguments.paths[0].is_dir() && records(place) == 2);
            std::panic::resume_unwind(Box::new("stop"));
        })
    }));
    assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "stop");
    assert_eq!(calls(place), ["create", "remove"]);
    assert!(!place.join("copy").exists());
    assert_eq!(records(place), 0);
}

#[test]
fn a_check_keeps_its_status_and_has_bit_4_if_the_snapshot_cannot_be_removed() {
    for (script, more) in [(COPIES.to_owned(), 0), (COPIES.replace("rm -r \"$2\"", "exit 3"), Failure::UNABLE)] {
        let (place, arguments) = arguments(&script);
        let done = around(&arguments, |_| Ok(Failure::CORRUPT));
        assert_eq!(done.unwrap(), Failure::CORRUPT | more);
        assert_eq!(records(place.path()), if more == 0 { 0 } else { 2 });
        let _ = fs::remove_dir_all(place.path().join("copy"));
        let failed = around(&arguments, |_| Err(Failure::incomplete("none"))).unwrap_err();
        assert_eq!((failed.status, failed.text.as_str()), (Failure::INCOMPLETE | more, "none"));
    }
}

#[test]
fn the_original_of_each_file_in_the_snapshot_is_known() {
    let (place, arguments) = arguments(COPIES);
    let place = place.path();
    fs::write(place.join("data/a.mdf"), "").unwrap();
    let one = arguments.of(vec![place.join("data")]);
    let done = around(&one, |inner| {
        assert_eq!(inner.originals(), [place.join("data")]);
        assert_eq!(inner.snapshot.originals.of(&place.join("copy/a.mdf")), place.join("data/a.mdf"));
        Ok(0)
    });
    assert_eq!(done.unwrap(), 0);
}

#[test]
fn a_record_of_another_program_or_machine_is_told_and_kept() {
    let (place, arguments) = arguments(COPIES);
    let folder = place.path().join("h.db.snapshots");
    let program = Program::of(&arguments).unwrap();
    let more = [OsString::from("more")];
    let mut elsewhere = Content::of(program, &arguments.paths);
    elsewhere.host = "elsewhere".to_owned();
    for content in [Content::of(Program { arguments: &more, ..program }, &arguments.paths), elsewhere] {
        let record = Record::create(&folder, content).unwrap();
        fs::write(record.path().with_extension("out"), "/a\n").unwrap();
    }
    assert_eq!(remove_left(program, &folder), 0);
    assert_eq!((calls(place.path()).len(), records(place.path())), (0, 4));
}
