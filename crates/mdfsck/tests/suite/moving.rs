//! Commands on files to which another program writes. Pages that are read at different times may contradict each other,
//! so no command may call the database damaged for that reason, and each command must say that the files changed. Damage
//! that stays must be found.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

const PAGE: usize = 8192;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).current_dir(folder).output().unwrap()
}

/// The data file of a database that was shut down cleanly after this number of transactions.
fn state(folder: &Path, transactions: &str) -> Vec<u8> {
    let options = ["lab", "crash", transactions, "--clean", "--seed", "5", "--transactions", transactions];
    let done = run(folder, &options);
    assert!(done.status.success(), "{done:?}");
    fs::read(folder.join(transactions).join("workload.mdf")).unwrap()
}

fn write_at(file: &File, bytes: &[u8], at: usize) {
    #[cfg(unix)]
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at as u64).unwrap();
    #[cfg(windows)]
    assert_eq!(std::os::windows::fs::FileExt::seek_write(file, bytes, at as u64).unwrap(), bytes.len());
}

/// Runs a command while the pages of `now` replace those of the file, in an order that depends on the seed.
fn while_it_moves(folder: &Path, arguments: &[&str], path: &Path, now: &[u8], seed: usize) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    let child =
        child.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let file = File::options().write(true).open(path).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let pages = now.len() / PAGE;
            // The step and the number of pages have no common divisor, so every page is written once.
            let step = (pages / 3 + seed..).find(|step| gcd(*step, pages) == 1).unwrap();
            for page in (0..pages).map(|number| (number * step + seed) % pages) {
                write_at(&file, &now[page * PAGE..][..PAGE], page * PAGE);
                thread::sleep(Duration::from_micros(1500));
            }
        });
        child.wait_with_output().unwrap()
    })
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

const CHECK: [&str; 6] = ["check", "db/workload.mdf", "--json", "--io-limit", "4MB", "--settle-page=1s"];

/// Creates a folder with a database in `db`. Returns the folder, the path of the data file, and the bytes of the file in
/// an earlier and in a later state. The file is in the earlier state.
fn database() -> (tempfile::TempDir, PathBuf, Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let (then, now) = (state(folder.path(), "60"), state(folder.path(), "240"));
    fs::create_dir(folder.path().join("db")).unwrap();
    let path = folder.path().join("db/workload.mdf");
    fs::write(&path, &then).unwrap();
    (folder, path, then, now)
}

#[test]
fn a_database_that_moves_during_its_check_is_not_called_damaged() {
    let (folder, path, then, now) = database();
    // MDFSCK_MOVES is the number of runs in a campaign by hand.
    let moves = std::env::var("MDFSCK_MOVES").ok().and_then(|moves| moves.parse().ok()).unwrap_or(1);
    for seed in 0..moves {
        fs::write(&path, &then).unwrap();
        let checked = while_it_moves(folder.path(), &CHECK, &path, &now, seed);
        let (lines, text) = (lines(&checked), String::from_utf8_lossy(&checked.stderr));
        assert_eq!(of_kind(&lines, "finding"), Vec::<&Value>::new(), "{text}");
        assert_eq!(checked.status.code(), Some(16), "{text}");
        assert!(
            text.contains("workload.mdf: was written to while it was read") || text.contains("has grown"),
            "{text}"
        );
        let changes = of_kind(&lines, "warning").into_iter().filter(|line| line["id"] == "input.changed").count();
        assert!(changes > 0, "{text}");
        let kinds = of_kind(&lines, "not_verified").into_iter().filter(|line| line["id"] == "input.changed").count();
        assert!(kinds > 0, "{lines:?}");
    }
    let after = run(folder.path(), &["check", "db/workload.mdf"]);
    assert_eq!(after.status.code(), Some(0), "the later state is sound: {after:?}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn damage_that_stays_is_found_in_a_database_that_moves() {
    let (folder, path, mut then, mut now) = database();
    // A data page of the same index in both states: the type is 1, the level 0, and all fields that name the owner agree.
    let is_stable = |page: &usize| {
        let [one, other] = [&then, &now].map(|file| &file[page * PAGE..][..64]);
        one[1] == 1 && one[3] == 0 && one[6..8] == [0, 1] && one[1..8] == other[1..8] && one[24..28] == other[24..28]
    };
    let page = (10..then.len() / PAGE).find(is_stable).unwrap();
    for file in [&mut then, &mut now] {
        file[page * PAGE + 4000] ^= 0x10;
    }
    fs::write(&path, &then).unwrap();
    let checked = while_it_moves(folder.path(), &CHECK, &path, &now, 3);
    let (lines, text) = (lines(&checked), String::from_utf8_lossy(&checked.stderr));
    let found: Vec<_> =
        of_kind(&lines, "finding").into_iter().map(|line| (&line["id"], &line["page"], &line["file"])).collect();
    assert!(found.iter().any(|(id, ..)| **id == "page.io"), "{found:?} {text}");
    assert!(found.iter().all(|(_, at, file)| **at == page && **file == 1), "{found:?} {text}");
    assert_eq!(checked.status.code(), Some(17), "{text}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_page_that_was_zeroed_and_brought_back_is_not_a_finding() {
    let (folder, path, then, _) = database();
    let page = (10..then.len() / PAGE).find(|page| then[page * PAGE + 1] == 1).unwrap();
    let mut zeroed = then.clone();
    zeroed[page * PAGE..][..PAGE].fill(0);
    fs::write(&path, &zeroed).unwrap();
    let checked = while_it_moves(folder.path(), &CHECK, &path, &then, 0);
    assert_eq!(checked.status.code(), Some(16), "{checked:?}");
    assert_eq!(of_kind(&lines(&checked), "finding"), Vec::<&Value>::new());
}

/// Runs a command while another thread writes the first byte of a file again and again.
fn beside_a_writer(path: &Path, command: impl FnOnce() -> Output) -> Output {
    let (first, writer) = (fs::read(path).unwrap()[0], File::options().write(true).open(path).unwrap());
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                write_at(&writer, &[first], 0);
            }
        });
        let output = command();
        is_done.store(true, Ordering::Relaxed);
        output
    })
}

/// Another program writes the same bytes again and again, so that nothing is wrong with the content.
#[test]
#[ignore = "full tier: takes seconds"]
fn every_command_says_that_a_file_was_written_to_while_it_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["lab", "crash", "db", "--clean", "--seed", "5", "--transactions", "1500"]);
    assert!(done.status.success(), "{done:?}");
    let done = run(folder.path(), &["lab", "new", "whole"]);
    assert!(done.status.success(), "{done:?}");
    let done = run(folder.path(), &["lab", "backup", "whole", "-o", "backups"]);
    assert!(done.status.success(), "{done:?}");
    let plain = "the result may mix its old and its new content";
    let commands: [(&str, &[&str], i32, &str); 9] = [
        ("db/workload.mdf", &["check", "db/workload.mdf"], 16, "was written to while it was read"),
        ("db/workload.mdf", &["advise", "db/workload.mdf"], 16, "was written to while it was read"),
        ("db/workload.mdf", &["export", "db/workload.mdf", "-o", "rows"], 16, plain),
        ("db/workload.mdf", &["tables", "db/workload.mdf"], 16, plain),
        (
            "db/workload.mdf",
            &["audit", "db/workload.mdf", "db/workload_log.ldf"],
            16,
            "was written to while it was read",
        ),
        (
            "db/workload_log.ldf",
            &["audit", "db/workload.mdf", "db/workload_log.ldf"],
            16,
            "was written to while it was read",
        ),
        ("db/workload.mdf", &["extract", "--recovered", "-o", "out", "db"], 16, plain),
        ("backups/full.bak", &["check", "backups/full.bak"], 16, "was written to while it was read"),
        ("backups/full.bak", &["extract", "-o", "raw", "backups/full.bak"], 16, plain),
    ];
    for (file, command, status, line) in commands {
        let path = folder.path().join(file);
        // On a busy machine, the writer may not have its turn while a short command reads.
        let is_noticed = (0..50).any(|_| {
            ["rows", "out", "raw"].iter().for_each(|made| _ = fs::remove_dir_all(folder.path().join(made)));
            let output = beside_a_writer(&path, || run(folder.path(), command));
            let is_said = String::from_utf8_lossy(&output.stderr).contains(line);
            assert!([Some(0), Some(status)].contains(&output.status.code()), "{command:?}: {output:?}");
            assert!(!is_said || output.status.code() == Some(status), "{command:?}: {output:?}");
            is_said
        });
        assert!(is_noticed, "{command:?} never notices the writer");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_open_for_writing_elsewhere_is_named_before_the_check_begins() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["lab", "new", "db"]);
    assert!(done.status.success(), "{done:?}");
    let path = fs::read_dir(folder.path().join("db")).unwrap().flatten().map(|entry| entry.path());
    let path = path.into_iter().find(|path| path.extension().is_some_and(|name| name == "mdf")).unwrap();
    let reader = File::open(&path).unwrap();
    let silent = run(folder.path(), &["check", "db"]);
    assert!(silent.status.success() && silent.stderr.is_empty(), "{silent:?}");
    let writer = File::options().append(true).open(&path).unwrap();
    let told = run(folder.path(), &["check", "db"]);
    let text = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "nothing was written, so the verdict holds: {text}");
    assert!(text.contains("is open for writing in ") && text.contains(&std::process::id().to_string()), "{text}");
    drop((reader, writer));
}
