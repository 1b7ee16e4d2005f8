//! Compares the text output of `mdfsck log` with stored snapshots and with the JSON output.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const MDF: &str = "db/workload.mdf";
const LDF: &str = "db/workload_log.ldf";

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).current_dir(folder).output().unwrap()
}

/// Writes a lab database after a crash to the folder `db`.
fn crashed(seed: &str, options: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = ["lab", "crash", "db", "--seed", seed, "--transactions", "300"];
    let done = run(folder.path(), &[&made, options].concat());
    assert!(done.status.success(), "{done:?}");
    folder
}

fn text(folder: &Path, arguments: &[&str]) -> String {
    let done = run(folder, &[&["log"], arguments].concat());
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn lines(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let text = text(folder, &[&["--json"], arguments].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

#[test]
#[ignore = "full tier: takes seconds"]
fn what_holds_a_log_back_is_the_oldest_of_what_needs_it() {
    let open = crashed("5", &["--open"]);
    let at_rest = crashed("5", &["--clean"]);
    let shown = lines(open.path(), &[LDF]);
    let summary = of(&shown, "summary")[0];
    let oldest =
        of(&shown, "transaction").iter().filter_map(|line| line["begin_lsn"].as_str()).min().map(str::to_owned);
    let redo = of(&shown, "checkpoint").iter().filter_map(|line| line["redo_lsn"].as_str()).max().map(str::to_owned);
    let (oldest, redo) = (oldest.unwrap(), redo.unwrap());
    let from = summary["held_from_lsn"].as_str().unwrap();
    assert_eq!(from, oldest.clone().min(redo.clone()), "{summary}");
    let expected = match from[..8] == summary["end_lsn"].as_str().unwrap()[..8] {
        true => "NOTHING",
        false if oldest < redo => "ACTIVE_TRANSACTION",
        false => "CHECKPOINT",
    };
    assert_eq!(summary["held_by"], expected, "{summary}");
    assert!(summary["held_bytes"].as_u64() > Some(0), "{summary}");
    let shown = text(open.path(), &[LDF]);
    assert!(shown.contains(&format!("Log reuse wait  {expected}, ")) && shown.contains(from), "{shown}");
    assert!(shown.contains("unknown without the data files"), "{shown}");
    assert!(text(open.path(), &[LDF, MDF]).contains("Log backups "), "{shown}");
    let shown = lines(at_rest.path(), &[LDF, MDF]);
    assert_eq!(of(&shown, "summary")[0]["held_by"], "NOTHING");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn log_over_time_has_all_of_it_in_few_steps() {
    for version in ["706", "904", "957"] {
        let folder = crashed("7", &["--version", version]);
        let shown = lines(folder.path(), &[LDF, "--transactions"]);
        let summary = of(&shown, "summary")[0];
        let steps = of(&shown, "rate");
        assert!((1..=14).contains(&steps.len()), "{version}: {steps:?}");
        for field in ["log_bytes", "records"] {
            let sum: u64 = steps.iter().map(|step| step[field].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), summary[field].as_u64(), "{version} {field}");
        }
        let ended: u64 = steps.iter().map(|step| step["transactions"].as_u64().unwrap()).sum();
        let states = of(&shown, "transaction").into_iter().filter(|line| line["state"] != "open").count();
        assert_eq!(ended, states as u64, "{version}");
        let times: Vec<&str> = steps.iter().map(|step| step["from"].as_str().unwrap()).collect();
        assert!(times.is_sorted(), "{version}: {times:?}");
        let shown = text(folder.path(), &[LDF]);
        let bars = shown.lines().filter(|line| line.trim_end().ends_with('#') && line.contains(" 2")).count();
        assert!(bars >= steps.len(), "{version}: {shown}");
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn data_files_of_another_database_are_refused() {
    let (folder, other) = (crashed("5", &[]), crashed("6", &[]));
    let foreign = other.path().join(MDF);
    let done = run(folder.path(), &["log", LDF, foreign.to_str().unwrap()]);
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(8) && stderr.contains("of another database than the log"), "{stderr}");
    let done = run(folder.path(), &["log", MDF]);
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(8) && stderr.contains("give the .ldf files"), "{stderr}");
}

/// The log has some tenths of a megabyte and open transactions. Columns must be aligned, and no line may end in a
/// space. After a change to the text or to the lab, update the snapshots with `INSTA_UPDATE=always cargo test -p mdfsck
/// --test suite log_text::`.
#[test]
fn the_text_stays_as_it_is_with_its_columns_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let made = ["lab", "crash", "db", "--seed", "11", "--transactions", "12", "--open"];
    let done = run(folder.path(), &made);
    assert!(done.status.success(), "{done:?}");
    let shown = text(folder.path(), &[LDF, MDF]);
    assert!(shown.lines().all(|line| line == line.trim_end()), "{shown}");
    assert!(!shown.contains(" 0.0 MB"), "{shown}");
    insta::assert_snapshot!("log", shown);
    let records = text(folder.path(), &[LDF, MDF, "--records"]);
    assert!(records.lines().all(|line| line == line.trim_end()), "{records}");
    /// Maximum length of a line in the snapshot. Longer lines, which show rows, are truncated.
    const LETTERS: usize = 160;
    // For each pair of operation and context, the snapshot contains only the first log record, together with the rows
    // that this record changes.
    let mut seen = std::collections::BTreeSet::new();
    let (mut shown, mut is_shown) = (String::new(), true);
    for line in records.lines() {
        if !line.starts_with(' ') {
            let words: Vec<&str> = line.split_whitespace().skip(1).take(2).collect();
            is_shown = seen.insert(words);
        }
        if is_shown {
            shown.extend(line.chars().take(LETTERS));
            shown.push('\n');
        }
    }
    insta::assert_snapshot!("log_records", shown);
}
