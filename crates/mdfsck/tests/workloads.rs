//! `mdfsck lab crash` and `mdfsck lab chain`: the same options write the same bytes, and what they write is what they say.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).current_dir(folder).output().unwrap()
}

/// The files of a folder and of those in it.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            all.extend(contents(&entry.path()).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            all.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    all
}

fn truth(files: &BTreeMap<String, Vec<u8>>) -> Value {
    serde_json::from_slice(&files["truth.json"]).unwrap()
}

#[test]
fn a_crash_is_written_with_its_log_and_its_truth() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let done = run(folder.path(), &["lab", "crash", name, "--seed", "5", "--transactions", "40", "--open"]);
        assert!(done.status.success(), "{done:?}");
    }
    let files = contents(&folder.path().join("one"));
    assert!(files == contents(&folder.path().join("two")));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["truth.json", "truth/workload.mdf", "workload.mdf", "workload_log.ldf"]);
    let truth = truth(&files);
    assert!(truth["records"].as_u64().unwrap() > 500 && truth["tables"].as_array().unwrap().len() > 4);
    let log = run(folder.path(), &["log", "one/workload_log.ldf"]);
    let text = String::from_utf8(log.stdout).unwrap();
    assert!(log.status.success() && text.contains("nothing follows"), "{text}");
    // A second one in the same folder is refused before anything is written.
    let again = run(folder.path(), &["lab", "crash", "one", "--seed", "6"]);
    assert!(!again.status.success() && files == contents(&folder.path().join("one")));
}

#[test]
fn a_lost_write_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["lab", "crash", "lost", "--clean", "--lost-write", "--transactions", "200"]);
    assert!(done.status.success(), "{done:?}");
    let lost = &truth(&contents(&folder.path().join("lost")))["lost_write"];
    assert!(lost["on_disk"].as_str().unwrap() < lost["last"].as_str().unwrap(), "{lost}");
}

#[test]
fn a_chain_is_written_with_the_rows_at_the_end_of_each_set() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["lab", "chain", "chain", "--sets", "full,log,diff,log", "--transactions", "80", "--checksum"];
    let done = run(folder.path(), &options);
    assert!(done.status.success(), "{done:?}");
    let truth = truth(&contents(&folder.path().join("chain")));
    let sets = truth["sets"].as_array().unwrap();
    assert_eq!(sets.len(), 4);
    assert_eq!(sets[1]["last"], sets[3]["first"], "log backups follow each other");
    for (number, name) in [(0, "01_full.bak"), (1, "02_log.trn"), (2, "03_diff.bak"), (3, "04_log.trn")] {
        assert_eq!(sets[number]["files"][0], name);
        let info = run(folder.path(), &["info", &format!("chain/{name}")]);
        assert!(info.status.success(), "{info:?}");
    }
    let without_full = run(folder.path(), &["lab", "chain", "other", "--sets", "log"]);
    assert!(!without_full.status.success());
}
