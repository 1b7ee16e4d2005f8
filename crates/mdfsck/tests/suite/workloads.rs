//! Tests of `mdfsck lab crash` and `mdfsck lab chain`. The same options must write the same bytes. The files must match
//! the truth, which is a description of the correct content that the lab writes next to them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).current_dir(folder).output().unwrap()
}

/// The contents of all files in a folder and its subfolders, by path.
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
    // The lab must refuse a second database in the same folder before it writes anything.
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

/// `audit` and `check` must find the lost write. `check` must find it with every memory grant and number of threads.
/// Without the log, neither command finds it.
#[test]
fn a_lost_write_is_found_by_audit_and_check() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["lab", "crash", "db", "--clean", "--lost-write", "--transactions", "200", "--seed", "4"];
    let done = run(folder.path(), &options);
    assert!(done.status.success(), "{done:?}");
    let lost = &truth(&contents(&folder.path().join("db")))["lost_write"];
    let audit = run(folder.path(), &["audit", MDF, LDF, "--json"]);
    assert_eq!(audit.status.code(), Some(1), "{audit:?}");
    let text = String::from_utf8(audit.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [finding, summary] = lines.as_slice() else { panic!("{text}") };
    assert_eq!((&finding["id"], &summary["findings"]), (&"log.lost-write".into(), &1.into()), "{text}");
    assert_eq!(finding["evidence"]["lsn"], lost["last"], "{text}");
    assert_eq!(finding["evidence"]["page_lsn"], lost["on_disk"], "{text}");
    assert!(summary["pages_compared"].as_u64() > Some(20), "{text}");
    let listed = |options: &[&str]| {
        let (status, lines, stderr) = check(folder.path(), options);
        assert_eq!(status & 1, 1, "{stderr}");
        lines.into_iter().filter(|line| line["kind"] == "finding" && line["id"] == "log.lost-write").collect::<Vec<_>>()
    };
    let found = listed(&[MDF]);
    assert_eq!((found.len(), &found[0]["page"], &found[0]["evidence"]), (1, &finding["page"], &finding["evidence"]));
    for options in [["--maxdop", "4"], ["--memory", "64MB"], ["--batches", "3"]] {
        assert_eq!(listed(&[&[MDF, LDF], options.as_slice()].concat()), found);
    }
    let (_, lines, _) = check(folder.path(), &[MDF, "--no-log"]);
    assert!(lines.iter().all(|line| line["id"] != "log.lost-write"));
}

#[test]
#[ignore = "full tier: takes seconds"]
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

/// Writes a lab database to the folder `db`. The database was in use when its server crashed.
fn crashed(options: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &[&["lab", "crash", "db", "--transactions", "80"], options].concat());
    assert!(done.status.success(), "{done:?}");
    folder
}

/// Runs `check --format json`. Returns its exit status, its lines, and stderr.
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
        // Fields that describe the cost of a run differ between runs.
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
    // Without the log, only a little of the content of the files can be verified.
    let (status, lines, stderr) = check(folder.path(), &[MDF, "--no-log"]);
    assert_eq!((status, &lines[0]["recovery"]["state"]), (16, &Value::from("off")), "{stderr}");
    assert!(stderr.contains("checked as they are"), "{stderr}");
}

#[test]
#[ignore = "full tier: takes seconds"]
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
    // Damages the first table page that the log changes. Recovery then cannot redo the changes to this page.
    let path = folder.path().join(MDF);
    let mut bytes = fs::read(&path).unwrap();
    let (_, before, _) = check(folder.path(), &[MDF]);
    assert_eq!(before[0]["recovery"]["state"], "done");
    let not_on_disk = truth(&contents(&folder.path().join("db")))["not_on_disk"].clone();
    let ids = not_on_disk.as_array().unwrap().iter().map(|page| page.as_str().unwrap().to_owned());
    let number = |id: &String| id.trim_matches(['(', ')']).split(':').nth(1).and_then(|page| page.parse().ok());
    // Skips allocation pages, since with a damaged allocation page nothing could be verified.
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

/// Returns the IDs of the limits that a check lists, and the state of recovery. Leaves out the limit for findings that
/// the log may explain.
fn limits(lines: &[Value]) -> (Vec<&str>, &str) {
    let limits = lines.iter().filter(|line| line["kind"] == "not_verified").filter_map(|line| line["id"].as_str());
    (limits.filter(|id| *id != "demoted.log").collect(), lines[0]["recovery"]["state"].as_str().unwrap_or_default())
}

#[test]
fn a_damaged_log_is_not_verified_and_the_files_are_checked_without_it() {
    const VLF_HEADER: usize = 8192;
    let folder = crashed(&["--seed", "5", "--open"]);
    let log = fs::read(folder.path().join(LDF)).unwrap();
    let mut first_vlf = log.clone();
    first_vlf[VLF_HEADER..VLF_HEADER + 64].fill(0);
    let mut second_vlf = log.clone();
    second_vlf[VLF_HEADER + 0x3E000..][..64].fill(0xA5);
    for (damaged, at) in [(first_vlf, "byte 8192"), (second_vlf, "byte 262144")] {
        fs::write(folder.path().join(LDF), damaged).unwrap();
        // There are three cases: the user names the log, the program finds the log next to the data file, or the
        // program finds the log in a named folder. The answer must be the same in all three cases.
        for way in [&[MDF, LDF][..], &[MDF], &["db"]] {
            let (status, lines, stderr) = check(folder.path(), way);
            assert_eq!((status, limits(&lines)), (16, (vec!["recovery.log"], "refused")), "{way:?} {stderr}");
            assert_eq!(stderr.matches("workload_log.ldf").count(), 1, "{stderr}");
            let reason = lines[0]["recovery"]["reason"].as_str().unwrap();
            assert!(stderr.contains(at) && reason.contains(at), "{stderr} {reason}");
        }
        let extract = run(folder.path(), &["extract", MDF, LDF, "--recovered", "--output", "out"]);
        assert_eq!(extract.status.code(), Some(16), "{extract:?}");
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn pages_newer_than_a_log_that_was_cut_are_not_recovered_beside_older_ones() {
    let folder = crashed(&["--seed", "5", "--flush", "all"]);
    let records = truth(&contents(&folder.path().join("db")))["records"].as_u64().unwrap() - 40;
    let early = ["lab", "crash", "early", "--seed", "5", "--transactions", "80", "--after", &records.to_string()];
    let early = run(folder.path(), &early);
    assert!(early.status.success(), "{early:?}");
    fs::copy(folder.path().join("early/workload_log.ldf"), folder.path().join(LDF)).unwrap();
    let (status, lines, stderr) = check(folder.path(), &[MDF, LDF]);
    assert!(!lines.is_empty(), "{stderr}");
    let (limits, state) = limits(&lines);
    // The log has no damage, the pages are sound, and nothing in the log shows that later log records existed.
    assert!(lines.iter().all(|line| line["kind"] != "finding"), "{stderr}");
    let is_said = ["recovery.log", "audit.log-end"].iter().all(|id| limits.contains(id));
    assert_eq!((status, state, is_said), (16, "refused", true), "{limits:?} {stderr}");
    let extract = run(folder.path(), &["extract", MDF, LDF, "--recovered", "--output", "out"]);
    let written = fs::read_dir(folder.path().join("out")).map_or(0, Iterator::count);
    assert!(extract.status.code() == Some(16) && written == 0, "{extract:?}");
}

/// If a database was not shut down cleanly, its data files may lack changes that are only in the log. Without the log,
/// a check must report that the database was not verified completely.
#[test]
fn a_database_that_was_not_shut_down_cleanly_is_not_complete_without_its_log() {
    let folder = crashed(&["--seed", "5", "--flush", "all", "--open"]);
    let log = fs::read(folder.path().join(LDF)).unwrap();
    fs::remove_file(folder.path().join(LDF)).unwrap();
    let of_none = |lines: &[Value]| {
        lines.iter().find(|line| line["kind"] == "not_verified" && line["id"] == "recovery.none").cloned()
    };
    let (status, lines, stderr) = check(folder.path(), &[MDF]);
    let reason = of_none(&lines).unwrap_or_else(|| panic!("{lines:?}"))["reason"].as_str().unwrap().to_owned();
    assert_eq!((status, reason.contains("its log workload_log.ldf was not found")), (16, true), "{reason} {stderr}");
    for command in [&["tables", MDF][..], &["rows", "accounts", MDF], &["export", MDF, "--output", "out"]] {
        let done = run(folder.path(), command);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!((done.status.code(), said.contains("recovery.none")), (Some(16), true), "{command:?} {said}");
    }
    // With --no-log, the missing log is not reported. The check lists only limits that follow from the data files.
    let (_, lines, _) = check(folder.path(), &[MDF, "--no-log"]);
    assert_eq!((of_none(&lines), &lines[0]["recovery"]["state"]), (None, &"off".into()));
    // If the only log in the folder belongs to another database, the log counts as missing.
    let other = crashed(&["--seed", "6"]);
    fs::copy(other.path().join(LDF), folder.path().join(LDF)).unwrap();
    let (status, lines, stderr) = check(folder.path(), &[MDF]);
    assert_eq!((status, of_none(&lines).is_some()), (16, true), "{stderr}");
    fs::write(folder.path().join(LDF), log).unwrap();
    assert_eq!(check(folder.path(), &[MDF]).0, 0);
}

/// An emptied page stays in its B-tree until a later log record removes it. Message 2574 is about such pages, but here
/// it must not be a finding, because the log may explain the page. Different seeds crash the database at different
/// points.
#[test]
fn crashes_without_their_log_have_no_findings() {
    let moment = |seed: &str, after: &str| {
        let folder = tempfile::tempdir().unwrap();
        let fixed =
            ["lab", "crash", "db", "--transactions", "40", "--rows", "40", "--version", "904", "--flush", "all"];
        let done = run(folder.path(), &[&fixed[..], &["--seed", seed, "--after", after]].concat());
        assert!(done.status.success(), "{done:?}");
        for options in [&[MDF, "--no-log"][..], &[MDF, LDF]] {
            let (_, lines, stderr) = check(folder.path(), options);
            let found: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "finding").collect();
            assert!(found.is_empty() && !lines.is_empty(), "{seed} {options:?}: {found:?} {stderr}");
        }
        let (_, lines, _) = check(folder.path(), &[MDF, "--no-log"]);
        lines.iter().any(|line| line["kind"] == "demoted" && line["id"] == "tree.empty-page")
    };
    assert!(moment("660892", "313"), "it has such a page");
    moment("7", "200");
}

/// A damaged page must be a finding with and without the log, even if the log changes the page. The only exception is a
/// page that a log record formats again.
#[test]
fn a_damaged_page_that_the_log_changes_is_a_finding_with_the_log_too() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["lab", "crash", "db", "--seed", "3", "--open"]);
    assert!(done.status.success(), "{done:?}");
    let mut bytes = fs::read(folder.path().join(MDF)).unwrap();
    bytes[671 * 8192 + 4000] ^= 1;
    fs::write(folder.path().join(MDF), bytes).unwrap();
    let of_page = |options: &[&str]| {
        let (status, lines, _) = check(folder.path(), options);
        let found = |line: &&Value| line["kind"] == "finding" && line["page"] == 671;
        let found: Vec<Value> = lines.iter().filter(found).map(|line| line["id"].clone()).collect();
        (status & 1, found)
    };
    let without = of_page(&[MDF, "--no-log"]);
    assert!(without.0 == 1 && without.1.contains(&"page.io".into()), "{without:?}");
    let with = of_page(&[MDF, LDF]);
    assert!(with.0 == 1 && with.1.contains(&"page.io".into()), "{with:?}");
}

#[test]
fn of_two_copies_of_a_log_the_one_of_the_files_moment_is_used() {
    let folder = crashed(&["--seed", "5", "--open"]);
    let (status, expected, stderr) = check(folder.path(), &[MDF, LDF]);
    assert_eq!(status, 0, "{stderr}");
    let early = run(folder.path(), &["lab", "crash", "early", "--seed", "5", "--transactions", "80", "--after", "20"]);
    assert!(early.status.success(), "{early:?}");
    for name in ["db/a_copy.ldf", "db/z_copy.ldf"] {
        fs::copy(folder.path().join("early/workload_log.ldf"), folder.path().join(name)).unwrap();
        let (status, lines, stderr) = check(folder.path(), &["db"]);
        assert_eq!((status, limits(&lines)), (0, limits(&expected)), "{stderr}");
        assert!(stderr.contains(&format!("{name}: is another copy")), "{stderr}");
        fs::remove_file(folder.path().join(name)).unwrap();
    }
}

/// Runs a command and returns its stdout. Requires that the command ends with the exit status `status`.
fn stdout(folder: &Path, arguments: &[&str], status: i32) -> String {
    let done = run(folder, arguments);
    assert_eq!(done.status.code(), Some(status), "{arguments:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn tables_and_lint_show_the_catalog_as_recovered() {
    let folder = crashed(&["--seed", "1", "--flush", "none"]);
    let truth = ["tables", "--json", "db/truth/workload.mdf", "--no-log"];
    let truth = stdout(folder.path(), &truth, 0);
    for way in [&["tables", "--json", MDF][..], &["tables", "--json", LDF, MDF], &["tables", "--json", "db"]] {
        assert_eq!(stdout(folder.path(), way, 0), truth, "{way:?}");
    }
    let as_it_lies = run(folder.path(), &["tables", "--json", MDF, "--no-log"]);
    assert!(as_it_lies.stdout != truth.as_bytes());
    assert!(String::from_utf8_lossy(&as_it_lies.stderr).contains("without the changes in the log"), "{as_it_lies:?}");
    let lint = stdout(folder.path(), &["lint", "--json", MDF], 0);
    assert_eq!(lint, stdout(folder.path(), &["lint", "--json", "db/truth/workload.mdf", "--no-log"], 0));
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_page_is_shown_as_it_lies_and_as_recovered() {
    let folder = crashed(&["--seed", "5", "--flush", "none"]);
    let not_on_disk = truth(&contents(&folder.path().join("db")))["not_on_disk"].clone();
    let pages: Vec<&str> = not_on_disk.as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    let page = |options: &[&str]| -> Value {
        let text = stdout(folder.path(), &[&["page", "--json"], options].concat(), 0);
        assert_eq!(text.lines().count(), 1);
        serde_json::from_str(&text).unwrap()
    };
    for at in &pages {
        let shown = page(&[at, MDF]);
        let recovered = &shown["recovered"];
        assert!(recovered["records_redone"].as_u64() > Some(0), "{at} {recovered}");
        assert!(recovered["on_disk_lsn"].as_str() < recovered["lsn"].as_str(), "{at} {recovered}");
        // The recovered rows must equal the rows in the truth that the lab has written.
        let truth = page(&[at, "db/truth/workload.mdf", "--no-log"]);
        let rows = |page: &Value| {
            let records = page["records"].as_array().unwrap().iter();
            records.map(|record| record["columns"].to_string()).collect::<Vec<_>>()
        };
        assert_eq!(rows(&recovered["page"]), rows(&truth), "{at}");
        let as_it_lies = page(&[at, MDF, "--no-log"]);
        assert!(as_it_lies["recovered"].is_null() && as_it_lies["header"] == shown["header"], "{at}");
    }
    let text = stdout(folder.path(), &["page", pages[0], MDF], 0);
    assert!(text.starts_with("As stored, LSN (") && text.matches("\nHeader\n").count() == 2, "{text}");
    // The log does not change this page, so the output must not show it as recovered.
    assert!(page(&["1:3", MDF])["recovered"].is_null());
}

#[test]
fn info_says_whether_recovery_is_needed_and_its_log_at_hand() {
    let folder = crashed(&["--seed", "5", "--open"]);
    let recovery = |arguments: &[&str]| -> Value {
        let text = stdout(folder.path(), &[&["info", "--json"], arguments].concat(), 0);
        serde_json::from_str::<Value>(&text).unwrap()["recovery"].clone()
    };
    let (_, lines, _) = check(folder.path(), &[MDF]);
    let needed = recovery(&[MDF]);
    assert_eq!(needed, recovery(&["db"]));
    assert!(needed["needed"] == "yes" && needed["from_lsn"] == lines[0]["recovery"]["from"], "{needed}");
    assert!(needed["problem"].is_null(), "{needed}");
    let text = stdout(folder.path(), &["info", MDF], 0);
    assert!(text.contains("needed, from LSN ") && text.contains("; its log was found"), "{text}");
    fs::rename(folder.path().join(LDF), folder.path().join("elsewhere.ldf")).unwrap();
    assert_eq!(recovery(&[MDF])["problem"], "its log workload_log.ldf was not found");
    assert!(recovery(&[MDF, "elsewhere.ldf"])["problem"].is_null());
    let clean = crashed(&["--seed", "5", "--clean"]);
    let text = stdout(clean.path(), &["info", MDF], 0);
    assert!(text.lines().any(|line| line.starts_with("recovery") && line.ends_with("not needed")), "{text}");
}

/// Writes backups of a workload to the folder `chain`.
fn chained(sets: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["lab", "chain", "chain", "--sets", sets, "--transactions", "120"]);
    assert!(done.status.success(), "{done:?}");
    folder
}

#[test]
#[ignore = "full tier: takes seconds"]
fn backups_with_their_log_are_the_restored_database_in_any_order_and_way() {
    let folder = chained("full,log,diff,log");
    let (full, log1, diff, log2) = ("chain/01_full.bak", "chain/02_log.trn", "chain/03_diff.bak", "chain/04_log.trn");
    let (status, lines, stderr) = check(folder.path(), &[full, log1, diff, log2]);
    assert_eq!(status, 0, "{stderr}");
    let recovery = &lines[0]["recovery"];
    assert_eq!(recovery["state"], "done", "{recovery}");
    assert!(recovery["records"].as_u64().unwrap() > 100 && recovery["pages"].as_u64().unwrap() > 10, "{recovery}");
    // The cost of a run may differ between runs. The results must not differ.
    let results = |lines: &[Value]| -> Vec<Value> {
        let is_result =
            |line: &&Value| ["object", "finding", "not_verified", "demoted"].map(Value::from).contains(&line["kind"]);
        lines.iter().filter(is_result).cloned().collect()
    };
    assert!(results(&lines).len() > 50);
    let ways: [&[&str]; 6] = [
        &[log2, full, diff, log1],
        &["chain"],
        &[full, log1, log2],
        &[full, log1, diff, log2, "--memory", "24MB"],
        &[full, log1, diff, log2, "--maxdop", "1", "--batches", "7"],
        &["chain", "--stop-at", "2024-03-30"],
    ];
    for way in ways {
        let (other, again, stderr) = check(folder.path(), way);
        assert_eq!(other, 0, "{way:?}: {stderr}");
        assert!(results(&again) == results(&lines), "{way:?}");
    }
    let (status, lines, _) = check(folder.path(), &["chain", "--no-log"]);
    assert_eq!((status & 8, &lines[0]["recovery"]["state"]), (0, &Value::from("off")));
}

#[test]
#[ignore = "full tier: takes seconds"]
fn log_that_does_not_follow_is_refused_when_named_and_passed_over_in_a_folder() {
    let folder = chained("full,log,log");
    let (full, second) = ("chain/01_full.bak", "chain/03_log.trn");
    let (status, lines, stderr) = check(folder.path(), &[full, second]);
    assert_eq!((status, lines.len(), &lines[0]["kind"]), (8, 1, &Value::from("error")), "{stderr}");
    assert!(stderr.contains("03_log.trn") && stderr.contains("name the log backups between them"), "{stderr}");
    fs::remove_file(folder.path().join("chain/02_log.trn")).unwrap();
    let (status, _, stderr) = check(folder.path(), &["chain"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("03_log.trn") && stderr.contains("skipped"), "{stderr}");
    let alone = check(folder.path(), &[second]);
    assert!(alone.0 & 12 != 0 && alone.2.contains("has no pages to check"), "{alone:?}");
    // Makes backups of another database that has the same name. A check of the full backup together with a log backup
    // of the other database must be refused.
    let other = chained("full,log");
    let moved = run(other.path(), &["lab", "chain", "more", "--sets", "full,log", "--seed", "9"]);
    assert!(moved.status.success());
    let foreign = other.path().join("more/02_log.trn");
    let (status, _, stderr) = check(folder.path(), &[full, foreign.to_str().unwrap()]);
    assert_eq!(status, 8, "{stderr}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_moment_that_cannot_be_restored_to_is_said() {
    let folder = chained("full,log");
    let cases = [
        (vec!["chain", "--stop-at", "2024-03-01T00:00:00"], "name an earlier full backup"),
        (vec!["chain/01_full.bak", "--stop-at", "2024-03-01"], "name an earlier full backup"),
        (vec!["chain", "--stop-at-mark", "nothing"], "no transaction with the name nothing"),
        (vec!["chain", "--stop-before-mark", "nothing"], "no transaction with the name nothing"),
        (vec!["chain", "--stop-at", "yesterday"], "local time of the server"),
        (vec!["chain", "--stop-at", "2024-03-04", "--stop-at-mark", "x"], "cannot be used with"),
    ];
    for (arguments, expected) in cases {
        let (status, _, stderr) = check(folder.path(), &arguments);
        assert!(status == 8 && stderr.contains(expected), "{arguments:?}: {status} {stderr}");
    }
    let files = crashed(&[]);
    let (status, _, stderr) = check(files.path(), &[MDF, "--stop-at", "2024-03-04"]);
    assert!(status == 8 && stderr.contains("data files cannot be restored to a point in time"), "{stderr}");
}

/// The JSON lines of a check. The cost of the run, the state of recovery and the paths are removed.
fn verdict(lines: &[Value]) -> Vec<String> {
    let judged = lines.iter().filter(|line| line["kind"] != "statistics" && line["kind"] != "run");
    let without_cost = |line: &Value| {
        let mut line = line.clone();
        let object = line.as_object_mut().unwrap();
        for cost in ["seconds", "phases", "memory_peak", "memory_granted", "spilled", "pages_read"] {
            object.remove(cost);
        }
        line.to_string()
    };
    judged.map(without_cost).collect()
}

const EXTRACTED: &str = "out/workload.recovered.mdf";

#[test]
#[ignore = "full tier: takes seconds"]
fn extracted_files_are_clean_and_give_the_verdict_of_data_files_with_their_log() {
    let crashes: [&[&str]; 4] = [
        &["--seed", "1", "--flush", "none"],
        &["--seed", "5", "--open"],
        &["--seed", "7", "--open", "--flush", "all", "--version", "706"],
        &["--seed", "9", "--clean"],
    ];
    for options in crashes {
        let folder = crashed(options);
        let before = contents(&folder.path().join("db"));
        let (status, expected, _) = check(folder.path(), &[MDF, LDF]);
        let done = run(folder.path(), &["extract", "--recovered", MDF, LDF, "--output", "out"]);
        assert_eq!(done.status.code(), Some(0), "{options:?}: {done:?}");
        assert_eq!(String::from_utf8(done.stdout).unwrap(), format!("{EXTRACTED}\n"));
        assert!(contents(&folder.path().join("db")) == before, "{options:?}: the input changed");
        assert_eq!(contents(&folder.path().join("out")).len(), 1);
        let (found, lines, stderr) = check(folder.path(), &[EXTRACTED]);
        assert_eq!((found, stderr.as_str()), (status, ""), "{options:?}");
        assert_eq!(verdict(&lines), verdict(&expected), "{options:?}");
        assert_eq!(lines[0]["clean_shutdown"], true);
        // The command must not change a file that exists already.
        let again = run(folder.path(), &["extract", "--recovered", MDF, "--output", "out"]);
        assert_eq!(again.status.code(), Some(8), "{again:?}");
        // The extracted files are in the state at the end of the log, so they are newer than the last checkpoint in the
        // log.
        let (status, _, stderr) = check(folder.path(), &[EXTRACTED, LDF]);
        let is_same = options.contains(&"--clean");
        assert!(
            is_same || status == 8 && stderr.contains("from another point in time"),
            "{options:?}: {status} {stderr}"
        );
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn files_that_servers_left_dirty_are_extracted_with_the_same_verdict() {
    const PAIRS: [(&str, bool); 4] = [
        ("rohaankathir__Venue/DB/VenueDB.rar.d/Venue.mdf", false),
        ("PeterKvayt__HumanResourceManager/@06007cc5/DataBase.rar.d/HumanResourceManagerDB.mdf", false),
        ("Arivunidhi-S__SJClassic/SJClassic.mdf", false),
        // This database is marked as shut down cleanly, but its log continues after the shutdown.
        ("Asssatiani__GymManagerDB/DB.rar.d/GymManagerWPF.mdf", true),
    ];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    for (name, is_marked_clean) in PAIRS {
        let file = corpus.join(name);
        if !file.is_file() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = file.to_str().unwrap();
        let (status, expected, stderr) = check(folder.path(), &[file]);
        assert_eq!(expected[0]["recovery"]["state"], "done", "{name}: {stderr}");
        let info: Value = serde_json::from_str(&stdout(folder.path(), &["info", "--json", file], 0)).unwrap();
        assert_eq!(info["clean_shutdown"], is_marked_clean, "{name}");
        let done = run(folder.path(), &["extract", "--recovered", file, "--output", "."]);
        let written = String::from_utf8(done.stdout).unwrap();
        let (found, lines, stderr) = check(folder.path(), &[written.trim_end()]);
        assert_eq!((found, verdict(&lines)), (status, verdict(&expected)), "{name}: {stderr}");
        assert_eq!(lines[0]["clean_shutdown"], true, "{name}");
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn backups_with_their_log_are_extracted_as_the_restored_database() {
    let folder = chained("full,log,diff,log");
    let (status, expected, _) = check(folder.path(), &["chain"]);
    let done = run(folder.path(), &["extract", "--recovered", "chain", "--output", "out"]);
    let written = String::from_utf8(done.stdout.clone()).unwrap();
    assert!(done.status.success() && written.contains(".recovered.mdf"), "{done:?}");
    let (found, lines, stderr) = check(folder.path(), &[written.trim_end()]);
    assert_eq!((found, lines[0]["clean_shutdown"].clone()), (status, Value::from(true)), "{stderr}");
    assert_eq!(verdict(&lines), verdict(&expected));
    let done = run(folder.path(), &["extract", "chain/01_full.bak", "--stop-at", "2024-03-04", "--output", "other"]);
    assert!(done.status.code() == Some(8) && String::from_utf8_lossy(&done.stderr).contains("--recovered"), "{done:?}");
}

#[test]
fn files_are_not_extracted_as_recovered_if_anything_is_in_doubt() {
    let folder = crashed(&["--seed", "9", "--flush", "none"]);
    let refused = |arguments: &[&str], status, words: &str| {
        let done = run(folder.path(), &[&["extract", "--recovered", "--output", "out"], arguments].concat());
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(status) && stderr.contains(words), "{:?} {stderr}", done.status);
        assert!(done.stdout.is_empty() && !folder.path().join("out").exists(), "{arguments:?}");
    };
    refused(&[MDF, "--no-log"], 8, "--no-log");
    fs::rename(folder.path().join(LDF), folder.path().join("log")).unwrap();
    refused(&[MDF], 16, "its log workload_log.ldf was not found");
    // Damages a page that the log changes.
    let not_on_disk = truth(&contents(&folder.path().join("db")))["not_on_disk"].clone();
    let numbers =
        not_on_disk.as_array().unwrap().iter().filter_map(|page| page.as_str()?.split(':').nth(1)?.parse().ok());
    let page: usize = numbers.into_iter().find(|page| *page > 500).unwrap();
    let mut bytes = fs::read(folder.path().join(MDF)).unwrap();
    bytes[8192 * page + 4000] ^= 0x55;
    fs::write(folder.path().join(MDF), bytes).unwrap();
    refused(&[MDF, "log"], 16, &format!("(1:{page})"));
}

/// Runs `log --json` with `options`. Returns the JSON lines of log records.
fn records(folder: &Path, options: &[&str]) -> Vec<Value> {
    let done = run(folder, &[&["log", "--json", LDF], options].concat());
    assert!(done.status.success(), "{done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["kind"] == "record").collect()
}

#[test]
fn records_show_the_rows_of_tables_by_the_catalog() {
    let folder = crashed(&["--seed", "3"]);
    let truth = truth(&contents(&folder.path().join("db")));
    let shown = records(folder.path(), &[MDF, "--object", "accounts", "--operation", "LOP_INSERT_ROWS"]);
    assert!(shown.len() > 20 && shown.iter().all(|record| record["object"] == "accounts"));
    let mut inserted: Vec<String> = Vec::new();
    for record in &shown {
        for row in record["rows"].as_array().unwrap() {
            let columns = row["columns"].as_array().unwrap();
            assert!(!columns.is_empty(), "{record}");
            let id = columns.iter().find(|column| column["name"] == "account_id");
            // The rows of nonclustered indexes also contain the ID, because the ID is the locator of the table row.
            if let Some(id) = id.filter(|_| record["index"] == "pk_accounts") {
                inserted.push(id["value"].as_str().unwrap().to_owned());
                assert_eq!(columns.len(), 5, "{record}");
            }
        }
    }
    // IDs increase. IDs above 300 were inserted after the initial rows. The first of these later inserts are no longer
    // in the log, because their log records were overwritten.
    let number = |id: &String| id.parse::<u32>().unwrap();
    let oldest = inserted.iter().map(number).filter(|id| *id > 300).min().unwrap();
    let table = truth["tables"].as_array().unwrap().iter().find(|table| table["name"] == "accounts").unwrap();
    let new = table["rows"].as_array().unwrap().iter().filter_map(|row| {
        let bytes = row[0].as_str().unwrap().trim_start_matches("0x");
        let byte = |at: usize| u32::from_str_radix(&bytes[2 * at..2 * at + 2], 16).unwrap();
        let id = byte(0) | byte(1) << 8 | byte(2) << 16;
        (id >= oldest).then(|| id.to_string())
    });
    let new: Vec<String> = new.collect();
    assert!(new.len() > 5 && new.iter().all(|id| inserted.contains(id)), "{new:?} {inserted:?}");
    let changed = records(folder.path(), &[MDF, "--object", "accounts", "--operation", "MODIFY_COLUMNS"]);
    assert!(changed.iter().any(|record| !record["pieces"][0]["part_of"].is_null()), "{changed:?}");
}

#[test]
fn records_are_found_by_transaction_operation_time_and_page() {
    let folder = crashed(&["--seed", "3"]);
    let all = records(folder.path(), &["--records"]);
    let inserts = records(folder.path(), &["--operation", "insert"]);
    let expected = all.iter().filter(|record| record["operation"] == "INSERT_ROWS").count();
    assert!(expected > 20 && inserts.len() == expected);
    let id = inserts[0]["transaction"].as_str().unwrap();
    let of_one = records(folder.path(), &["--transaction", id]);
    assert_eq!(of_one.len(), all.iter().filter(|record| record["transaction"] == id).count());
    let commits = records(folder.path(), &["--transaction", "user_transaction", "--operation", "commit"]);
    let all_commits = all.iter().filter(|record| record["operation"] == "COMMIT_XACT").count();
    assert!(!commits.is_empty() && commits.len() < all_commits);
    // `early` is the median of the times at which the checkpoints in the log began.
    let text = String::from_utf8(run(folder.path(), &["log", "--json", LDF]).stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut times: Vec<&str> = lines.iter().filter_map(|line| line["began"].as_str()).collect();
    times.sort_unstable();
    let early = times[times.len() / 2];
    let (before, after) = (records(folder.path(), &["--until", early]), records(folder.path(), &["--since", early]));
    assert!(!before.is_empty() && !after.is_empty() && before.len() + after.len() < 2 * all.len(), "{early}");
    let both = records(folder.path(), &["--transaction", id, "--operation", "insert", "--until", early]);
    assert!(both.len() < inserts.len());
    for (options, expected) in [
        (vec!["--operation", "nonsense"], "the operations are"),
        (vec!["--object", "accounts"], "give the data files too"),
        (vec!["--since", "soon"], "local time of the server"),
    ] {
        let done = run(folder.path(), &[vec!["log", LDF], options].concat());
        let text = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(8) && text.contains(expected), "{text}");
    }
}
