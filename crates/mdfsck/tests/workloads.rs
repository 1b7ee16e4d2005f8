//! `mdfsck lab crash` and `mdfsck lab chain`: the same options write the same bytes, and what they write is what they say.
#![allow(clippy::unwrap_used, clippy::panic)]

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

/// A database of the lab that was in use, in the folder `db`.
fn crashed(options: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &[&["lab", "crash", "db", "--transactions", "80"], options].concat());
    assert!(done.status.success(), "{done:?}");
    folder
}

/// Runs `check --format json`; its status, its lines, stderr.
fn check(folder: &Path, arguments: &[&str]) -> (i32, Vec<Value>, String) {
    let done = run(folder, &[&["check", "--format", "json"], arguments].concat());
    let text = String::from_utf8(done.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (done.status.code().unwrap(), lines, String::from_utf8(done.stderr).unwrap())
}

const MDF: &str = "db/workload.mdf";
const LDF: &str = "db/workload_log.ldf";

#[test]
fn a_database_in_use_is_checked_as_recovered_however_it_is_done() {
    let folder = crashed(&["--seed", "5", "--open", "--flush", "some"]);
    let (status, lines, stderr) = check(folder.path(), &[MDF]);
    assert_eq!(status, 0, "{stderr}");
    let recovery = &lines[0]["recovery"];
    assert_eq!(recovery["state"], "done", "{recovery}");
    assert!(recovery["transactions_undone"].as_u64() > Some(0) && recovery["pages"].as_u64() > Some(3), "{recovery}");
    assert_eq!(recovery["from"].as_str().unwrap().len(), 22);
    let results = |lines: &[Value]| {
        // What it took differs.
        let without_times = |line: &Value| {
            let mut line = line.clone();
            for cost in ["seconds", "phases", "memory_peak", "memory_granted", "spilled", "pages_read"] {
                line.as_object_mut().unwrap().remove(cost);
            }
            line.to_string()
        };
        let results = lines.iter().filter(|line| line["kind"] != "statistics");
        results.map(without_times).collect::<Vec<_>>()
    };
    let expected = results(&lines);
    let ways: [&[&str]; 6] = [
        &[MDF, LDF],
        &[LDF, MDF],
        &["db"],
        &[MDF, "--maxdop", "1", "--memory", "40MB"],
        &[MDF, "--maxdop", "3", "--batches", "3"],
        &[MDF, "--readers", "2", "--memory", "300MB"],
    ];
    for way in ways {
        let (status, lines, stderr) = check(folder.path(), way);
        assert_eq!((status, results(&lines)), (0, expected.clone()), "{way:?}: {stderr}");
    }
    // As the files are, little can be said of it.
    let (status, lines, stderr) = check(folder.path(), &[MDF, "--no-log"]);
    assert_eq!((status, &lines[0]["recovery"]["state"]), (16, &Value::from("off")), "{stderr}");
    assert!(stderr.contains("checked as they are"), "{stderr}");
}

#[test]
fn a_log_that_does_not_belong_is_refused_when_named_and_passed_over_when_it_merely_is_there() {
    let folder = crashed(&["--seed", "5", "--open"]);
    let other = crashed(&["--seed", "6", "--open"]);
    fs::copy(other.path().join(LDF), folder.path().join(LDF)).unwrap();
    let (status, _, stderr) = check(folder.path(), &[MDF, LDF]);
    assert!(status == 8 && stderr.contains("workload_log.ldf: the log") && stderr.contains("--no-log"), "{stderr}");
    let (status, lines, stderr) = check(folder.path(), &[MDF]);
    let state = &lines[0]["recovery"]["state"];
    assert!(status & 8 == 0 && (state == "refused" || state.is_null()), "{status} {state} {stderr}");
    assert!(stderr.contains("checked as they are"), "{stderr}");
}

#[test]
fn what_cannot_be_recovered_is_not_verified_and_the_rest_is() {
    let folder = crashed(&["--seed", "9", "--flush", "none"]);
    // The first page of a table that the log changes: its bytes are damaged, so that it cannot be brought forward.
    let path = folder.path().join(MDF);
    let mut bytes = fs::read(&path).unwrap();
    let (_, before, _) = check(folder.path(), &[MDF]);
    assert_eq!(before[0]["recovery"]["state"], "done");
    let not_on_disk = truth(&contents(&folder.path().join("db")))["not_on_disk"].clone();
    let ids = not_on_disk.as_array().unwrap().iter().map(|page| page.as_str().unwrap().to_owned());
    let number = |id: &String| id.trim_matches(['(', ')']).split(':').nth(1).and_then(|page| page.parse().ok());
    // Not a map: nothing could be said without it.
    let page: usize = ids.filter_map(|id| number(&id)).find(|page| *page > 500).unwrap();
    bytes[8192 * page + 4000] ^= 0x55;
    fs::write(&path, bytes).unwrap();
    let (status, lines, stderr) = check(folder.path(), &[MDF]);
    assert!(status & 16 != 0, "{status} {stderr}");
    let recovery = &lines[0]["recovery"];
    assert!(recovery["state"] == "partial" && recovery["pages"].as_u64() > Some(3), "{recovery}");
    let is_it = |line: &&Value| line["kind"] == "not_verified" && line["id"] == "recovery.pages";
    let line = lines.iter().find(is_it).unwrap_or_else(|| panic!("{lines:?}"));
    assert!(line["what"] == "recovery" && line["scope"].as_str().unwrap().contains(&format!("(1:{page})")), "{line}");
}
