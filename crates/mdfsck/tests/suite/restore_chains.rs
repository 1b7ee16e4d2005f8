//! The program restores chains in memory. Tests a real chain with points in time, and also tests marks, recovery forks,
//! and logs that have several files.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::workload::{Chain, ChainOptions, Commit, Event, Flush, SetKind, Spec, Stop, Workload};
use serde_json::Value;

/// Runs the program. Returns its exit status, the JSON lines, and stderr.
fn run(arguments: &[&str]) -> (i32, Vec<Value>, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (done.status.code().unwrap(), lines, String::from_utf8(done.stderr).unwrap())
}

fn check(paths: &[PathBuf], options: &[&str]) -> (i32, Vec<Value>, String) {
    let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    run(&[&["check", "--format", "json"], paths.as_slice(), options].concat())
}

/// The row counts of user tables in the output of a check.
fn rows(lines: &[Value]) -> BTreeMap<String, usize> {
    let tables = lines.iter().filter(|line| line["kind"] == "object" && line["index_id"].as_u64() < Some(2));
    let tables = tables.filter(|line| line["type"] == "U");
    tables.map(|line| (line["name"].as_str().unwrap().to_owned(), line["rows"].as_u64().unwrap() as usize)).collect()
}

/// The row counts that the tables must have after the transactions in `commits`.
fn truth<'c>(chain: &Chain, commits: impl Iterator<Item = &'c Commit>) -> BTreeMap<String, usize> {
    let mut rows: Vec<usize> = chain.tables.iter().map(|table| table.rows.len()).collect();
    for change in commits.flat_map(|commit| &commit.changes) {
        rows[change.table] += usize::from(change.after.is_some());
        rows[change.table] -= usize::from(change.before.is_some());
    }
    chain.tables.iter().map(|table| table.name.clone()).zip(rows).collect()
}

#[test]
fn a_real_chain_stops_at_a_moment_with_the_rows_that_its_log_had_committed() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    let Ok(entries) = fs::read_dir(corpus.join("dataplat__appveyor-lab/RestoreTimeClean")) else { return };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let names: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let (_, lines, _) = run(&[&["log", "--transactions", "--json"], names.as_slice()].concat());
    // The log contains one insert every five seconds. Each insert is a separate transaction.
    let inserts = lines.iter().filter(|line| line["kind"] == "transaction" && line["name"] == "INSERT");
    let mut times: Vec<String> = inserts.map(|line| line["ended"].as_str().unwrap().replace(' ', "T")).collect();
    times.sort();
    assert_eq!(times.len(), 60);
    for at in [0, 7, 29, 30, 44, 58] {
        // `later` is at the end of the second in which this insert committed, and before the next insert.
        let later = format!("{}.990", &times[at][..19]);
        for moment in [&times[at], &later] {
            for options in [&[][..], &["--memory", "64MB", "--maxdop", "1"]] {
                let (status, lines, stderr) = check(&paths, &[&["--stop-at", moment.as_str()], options].concat());
                assert_eq!((status, rows(&lines)["steps"]), (0, at + 1), "{moment}: {stderr}");
                assert!(lines.iter().all(|line| line["kind"] != "finding" && line["kind"] != "demoted"), "{moment}");
            }
        }
    }
}

#[test]
fn marks_are_found_by_name_and_the_first_of_two_counts() {
    let kinds = [SetKind::Full, SetKind::Log, SetKind::Log];
    let spec = Spec { seed: 6, marked_each: 9, transactions: 120, ..Spec::default() };
    let folder = tempfile::tempdir().unwrap();
    let chain = Workload::new(spec).unwrap().chain(&kinds, ChainOptions::default(), folder.path()).unwrap();
    let paths: Vec<PathBuf> = chain.sets.iter().flat_map(|set| set.files.clone()).collect();
    let ((first, full_end), end) = (&chain.sets[0].lsns, &chain.sets[2].lsns.1);
    let (mut stopped, mut twice) = (0, 0);
    for mark in ["mark 1", "mark 2", "mark 3"] {
        let is_it = |commit: &&Commit| commit.name == mark && commit.lsn >= *first && commit.lsn < *end;
        let marked: Vec<&Commit> = chain.commits.iter().filter(is_it).collect();
        let Some(marked_first) = marked.first() else { continue };
        if marked_first.lsn < *full_end {
            let (status, _, stderr) = check(&paths, &["--stop-at-mark", mark]);
            assert!(status == 8 && stderr.contains("name an earlier full backup"), "{mark}: {status} {stderr}");
            continue;
        }
        let before = chain.commits.iter().filter(|commit| commit.lsn < marked_first.lsn).count();
        for (option, commits) in [("--stop-at-mark", before + 1), ("--stop-before-mark", before)] {
            let (status, lines, stderr) = check(&paths, &[option, mark]);
            let expected = truth(&chain, chain.commits.iter().take(commits));
            assert_eq!((status, rows(&lines)), (0, expected), "{option} {mark}: {stderr}");
        }
        stopped += 1;
        twice += u32::from(marked.len() > 1);
    }
    assert!(stopped >= 2 && twice >= 1, "{stopped} {twice}");
    let (status, _, stderr) = check(&paths, &["--stop-before-mark", "mark 4"]);
    assert!(status == 8 && stderr.contains("no transaction with the name mark 4"), "{status} {stderr}");
}

#[test]
fn backups_of_a_recovery_fork_that_was_left_are_refused_by_name_and_passed_over_in_a_folder() {
    use Event::{BackUp, Remember, Restore, Settle, Work};
    let log = BackUp(SetKind::Log);
    let restored = [Settle, Remember, Work, log, Restore, Work, log];
    let story = [&[Work, BackUp(SetKind::Full), Work, log, Work][..], &restored, &restored].concat();
    let folder = tempfile::tempdir().unwrap();
    let workload = Workload::new(Spec { seed: 2, transactions: 90, ..Spec::default() }).unwrap();
    let chain = workload.story(&story, ChainOptions::default(), folder.path()).unwrap();
    let end = &chain.sets.last().unwrap().lsns.1;
    let expected = truth(&chain, chain.commits.iter().filter(|commit| commit.lsn < *end));
    let (mut left, mut kept) = (Vec::new(), Vec::new());
    for set in &chain.sets {
        (if set.is_left { &mut left } else { &mut kept }).extend(set.files.clone());
    }
    assert_eq!((left.len(), kept.len()), (2, 4));
    // The first check uses only the backups that do not belong to abandoned forks. The second check uses a folder with
    // all backups.
    let (status, lines, stderr) = check(&kept, &[]);
    assert_eq!((status, rows(&lines)), (0, expected.clone()), "{stderr}");
    let (status, lines, stderr) = check(&[folder.path().to_owned()], &[]);
    assert_eq!((status, rows(&lines)), (0, expected), "{stderr}");
    for file in &left {
        let name = file.file_name().unwrap().to_str().unwrap();
        let passed_over = stderr.lines().find(|line| line.contains(name)).unwrap();
        assert!(passed_over.contains("that was abandoned at") && passed_over.ends_with("skipped"), "{passed_over}");
        let (status, _, stderr) = check(&[kept.clone(), vec![file.clone()]].concat(), &[]);
        assert!(status == 8 && stderr.contains(name) && stderr.contains("that was abandoned at"), "{status} {stderr}");
    }
    let (_, lines, _) = run(&["chain", "--json", folder.path().to_str().unwrap()]);
    let files = |numbers: &Value| -> Vec<PathBuf> {
        let path = |number: &Value| lines[0]["sets"][number.as_u64().unwrap() as usize]["paths"][0].as_str().unwrap();
        numbers.as_array().unwrap().iter().map(|number| path(number).into()).collect()
    };
    // An abandoned fork can still be restored, so its backups are not listed as unused.
    let beside: Value = lines[0]["beside"].as_array().unwrap().iter().map(|beside| beside["set"].clone()).collect();
    assert_eq!((files(&lines[0]["chains"][0]["steps"]), files(&beside)), (kept, left));
    assert_eq!(lines[0]["unused"], Value::Array(Vec::new()));
    assert!(lines[0]["beside"].as_array().unwrap().iter().all(|beside| beside["left"] == true));
    assert_eq!(lines[0]["left_points"].as_array().unwrap().len(), 2, "{}", lines[0]["left_points"]);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_log_in_several_files_is_used_in_any_order_and_refused_with_the_name_of_one_that_is_missing() {
    for (seed, log_files) in [(3, 2), (4, 3)] {
        let spec = Spec { seed, log_files, vlfs: 6, ..Spec::default() };
        let crashed = Workload::new(spec).unwrap().crash(Stop::WithoutOpen, Flush::Some(seed));
        let folder = tempfile::tempdir().unwrap();
        let written = crashed.write(folder.path()).unwrap();
        let (data, logs) = (written[0].clone(), written[1..=usize::from(log_files)].to_vec());
        let with = |logs: &[PathBuf]| check(&[std::slice::from_ref(&data), logs].concat(), &[]);
        let expected: BTreeMap<String, usize> =
            crashed.truth.tables.iter().map(|table| (table.name.clone(), table.rows.len())).collect();
        // In the first check, the program finds the log files next to the data file. In the other checks, the log files
        // are named, each time in another order.
        let (status, lines, stderr) = with(&[]);
        assert_eq!((status, rows(&lines)), (0, expected.clone()), "{stderr}");
        assert_eq!(lines[0]["recovery"]["state"], "done", "{stderr}");
        let mut order = logs.clone();
        for _ in 0..log_files {
            order.rotate_left(1);
            let (status, lines, stderr) = with(&order);
            assert_eq!((status, rows(&lines)), (0, expected.clone()), "{stderr}");
        }
        for missing in &logs {
            let name = missing.file_name().unwrap().to_str().unwrap();
            let rest: Vec<PathBuf> = logs.iter().filter(|log| *log != missing).cloned().collect();
            let words = format!("the log has another file, {name}");
            let (status, _, stderr) = with(&rest);
            assert!(status == 8 && stderr.contains(&words), "{status} {stderr}");
            // Even if the user names no log, the log files next to the data file must be complete.
            let away = folder.path().join("truth").join(name);
            fs::rename(missing, &away).unwrap();
            let (status, lines, stderr) = with(&[]);
            fs::rename(away, missing).unwrap();
            assert!(stderr.contains(&words), "{status} {stderr}");
            assert_ne!(lines[0]["recovery"]["state"], "done", "{stderr}");
        }
    }
}
