//! `mdfsck check --on-event`: each event is delivered at least once, even if the listening program or the check fails
//! or is killed. Event delivery must not change the results of the check.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::Value;

use super::*;

pub(super) fn with_listeners() -> Vec<(&'static str, Test)> {
    vec![
        ("check passes on what is new, confirmed and gone, with JSON on standard input and no shell", life),
        ("check passes on later what a program failed to take, and prints its results all the same", failing),
        ("check ends a program that hangs, and the next run calls it again", hanging),
        ("check that is killed while it passes an event on passes it on in the next run, first of all", killed),
        ("check has no status for an event that has failed in another process", elsewhere),
        ("check says that a promise is broken once, and once that it is kept again", promise),
        ("check says that a database could not be read or verified", failed),
        ("check of many databases calls the program once for each", many),
        ("merge passes events on as check does", merge),
        ("check refuses events that nothing can keep", refusals),
    ]
}

/// The exit status for findings (1) and for parts that the damage makes impossible to verify (16).
const HURT: i32 = 1 + 16;

/// The script of a program that appends its input to the file `told`.
const KEEPS: &str = "{ echo \"$MDFSCK_EVENT|$MDFSCK_DATABASE|$MDFSCK_COUNT|$*\"; cat; } >> told\n";

pub(super) fn program(folder: &Path, name: &str, script: &str) -> Result<(), Failed> {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}"))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

fn lab(folder: &Path, arguments: &[&str]) -> Result<(), Failed> {
    let made = mdfsck(folder, &[&["lab"], arguments].concat());
    ensure(made.status.success(), text(&made.stderr))
}

/// Writes a sound database, and a damaged copy of it with four findings.
fn databases(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "9MB"])?;
    lab(folder, &["damage", "sound", "-o", "hurt", "--kind", "bit-rot", "--seed", "3"])
}

/// Copies a database to the folder that the tests check.
fn put(folder: &Path, name: &str) -> Result<(), Failed> {
    fs::create_dir_all(folder.join("d"))?;
    for entry in fs::read_dir(folder.join(name))? {
        let entry = entry?;
        fs::copy(entry.path(), folder.join("d").join(entry.file_name()))?;
    }
    Ok(())
}

fn check(folder: &Path, options: &[&str]) -> Output {
    let fixed = ["check", "d", "--history", "h.db", "--on-event", "./listen", "--no-infomsgs"];
    mdfsck(folder, &[&fixed, options].concat())
}

/// The calls of the listening program. Each call has the environment variables and arguments as one text, and the lines
/// of the input.
fn told(folder: &Path) -> Result<Vec<(String, Vec<Value>)>, Failed> {
    let mut calls: Vec<(String, Vec<Value>)> = Vec::new();
    for line in fs::read_to_string(folder.join("told")).unwrap_or_default().lines() {
        match (line.starts_with('{'), calls.last_mut()) {
            (true, Some((_, lines))) => lines.push(serde_json::from_str(line)?),
            _ => calls.push((line.to_owned(), Vec::new())),
        }
    }
    Ok(calls)
}

fn heads(folder: &Path) -> Result<Vec<String>, Failed> {
    Ok(told(folder)?.into_iter().map(|(head, _)| head).collect())
}

fn status(output: &Output, expected: i32) -> Result<(), Failed> {
    ensure(output.status.code() == Some(expected), format!("not {expected}: {output:?}"))
}

fn life(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    program(folder, "listen", KEEPS)?;
    let with = ["--event-argument", "a b", "--event-argument=-x;touch pwned"];
    put(folder, "sound")?;
    status(&check(folder, &with), 0)?;
    ensure(told(folder)?.is_empty(), "nothing has happened")?;
    put(folder, "hurt")?;
    let plain = mdfsck(folder, &["check", "d", "--no-infomsgs"]);
    let first = check(folder, &with);
    status(&first, HURT)?;
    ensure(text(&first.stdout) == text(&plain.stdout), "the results are those of a check without it")?;
    let calls = told(folder)?;
    ensure(calls.len() == 1 && calls[0].0 == "finding-new|orders|4|a b -x;touch pwned", format!("{calls:?}"))?;
    for line in &calls[0].1 {
        let is_whole = line["v"] == 1 && line["event"] == "finding-new" && line["database"] == "orders";
        let is_found = line["key"].is_i64() && line["msg"].is_i64() && line["run"].is_i64();
        ensure(
            is_whole && is_found && line["paths"].as_str().is_some_and(|path| path.contains("/d/")),
            line.to_string(),
        )?;
    }
    ensure(calls[0].1.len() == 4, "a line for each finding")?;
    status(&check(folder, &with), HURT)?;
    status(&check(folder, &with), HURT)?;
    put(folder, "sound")?;
    status(&check(folder, &with), 0)?;
    let heads: Vec<String> =
        heads(folder)?.iter().map(|head| head.split('|').take(3).collect::<Vec<_>>().join("|")).collect();
    ensure(
        heads == ["finding-new|orders|4", "finding-confirmed|orders|4", "finding-gone|orders|4"],
        format!("{heads:?}"),
    )?;
    ensure(!folder.join("pwned").exists(), "an argument was run")
}

fn failing(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    put(folder, "hurt")?;
    let plain = mdfsck(folder, &["check", "d", "--no-infomsgs"]);
    // Tries a missing listening program, a program that fails, and a program that reads nothing and writes a lot.
    for script in [None, Some("exit 3\n"), Some("yes | head -c 1000000 >&2; exit 1\n")] {
        match script {
            None => _ = fs::remove_file(folder.join("listen")),
            Some(script) => program(folder, "listen", script)?,
        }
        let output = check(folder, &[]);
        status(&output, HURT + 4)?;
        ensure(text(&output.stdout) == text(&plain.stdout), format!("{output:?}"))?;
        ensure(text(&output.stderr).contains("could not be passed on"), format!("{output:?}"))?;
    }
    program(folder, "listen", KEEPS)?;
    status(&check(folder, &[]), HURT)?;
    ensure(
        heads(folder)? == ["finding-new|orders|4|", "finding-confirmed|orders|4|"],
        format!("{:?}", heads(folder)?),
    )?;
    // If the history cannot be used, the check still runs, and reports the problem.
    fs::write(folder.join("other"), "no history")?;
    let output = mdfsck(folder, &["check", "d", "--history", "other", "--on-event", "./listen", "--no-infomsgs"]);
    status(&output, HURT + 8)?;
    ensure(text(&output.stdout) == text(&plain.stdout), format!("{output:?}"))
}

fn hanging(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    put(folder, "hurt")?;
    // After the check, neither the listening program nor its child process may still be running.
    program(folder, "listen", "trap '' TERM; echo $$ > pids\nsleep 600 & echo $! >> pids\nwait; sleep 600\n")?;
    let output = check(folder, &["--event-seconds", "2"]);
    status(&output, HURT + 4)?;
    ensure(text(&output.stderr).contains("took more than 2 seconds"), format!("{output:?}"))?;
    for pid in fs::read_to_string(folder.join("pids"))?.lines() {
        ensure(!is_running(pid)?, format!("{pid} is still there"))?;
    }
    program(folder, "listen", KEEPS)?;
    status(&check(folder, &[]), HURT)?;
    ensure(heads(folder)?[0] == "finding-new|orders|4|", format!("{:?}", heads(folder)?))
}

/// Whether a process is running. A process that has ended but was not waited for does not count as running.
pub(super) fn is_running(pid: &str) -> Result<bool, Failed> {
    let output = Command::new("ps").args(["-o", "stat=", "-p", pid]).output()?;
    let state = text(&output.stdout);
    Ok(!state.trim().is_empty() && !state.trim().starts_with('Z'))
}

/// Starts a check. Waits until the check has called its listening program, which creates the file `called`.
fn start_until_called(folder: &Path) -> Result<Child, Failed> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
        .args(["check", "d", "--history", "h.db", "--on-event", "./listen"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    while !folder.join("called").exists() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(20));
    }
    if !folder.join("called").exists() {
        child.kill()?;
        child.wait()?;
        return Err("the program was not called".into());
    }
    Ok(child)
}

fn elsewhere(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    put(folder, "hurt")?;
    program(folder, "listen", "touch called; while [ ! -e go ]; do sleep 0.1; done\n")?;
    let mut child = start_until_called(folder)?;
    // Simulates another process that has just failed to deliver an event.
    let connection = Connection::open(folder.join("h.db"))?;
    connection.execute_batch(
        "INSERT INTO outbox (created, event, database, count, lines, tries, not_before, error)
         SELECT created, event, 'other', count, lines, 1, '9999-01-01T00:00:00Z', 'it ended with exit status: 1' FROM outbox",
    )?;
    fs::write(folder.join("go"), "")?;
    let status = child.wait()?;
    let left: i64 = connection.query_row("SELECT count(*) FROM outbox WHERE done_at IS NULL", [], |row| row.get(0))?;
    ensure(left == 1 && status.code() == Some(HURT), format!("{status}, {left} left"))
}

fn killed(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    put(folder, "hurt")?;
    program(folder, "listen", "touch called; exec sleep 20\n")?;
    let mut child = start_until_called(folder)?;
    child.kill()?;
    child.wait()?;
    program(folder, "listen", KEEPS)?;
    // The next run checks a different, sound database, and also delivers the waiting event.
    lab(folder, &["new", "e", "--size", "5MB", "--seed", "9"])?;
    let next = mdfsck(folder, &["check", "e", "--history", "h.db", "--on-event", "./listen"]);
    status(&next, 0)?;
    ensure(heads(folder)? == ["finding-new|orders|4|"], format!("{:?}", heads(folder)?))
}

fn promise(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    put(folder, "sound")?;
    program(folder, "listen", KEEPS)?;
    let some = ["--window", "1h", "--range", "1MB", "--most-ranges", "1"];
    let within = ["--within", "14d"];
    status(&check(folder, &[&some[..], &within].concat()), 0)?;
    ensure(told(folder)?.is_empty(), format!("{:?}", told(folder)?))?;
    // Moves the times in the history into the past.
    let connection = Connection::open(folder.join("h.db"))?;
    connection.execute_batch(
        "UPDATE database SET first_seen = '2020-01-01T00:00:00Z'; UPDATE coverage SET read_at = NULL, known_since = '2020-01-01T00:00:00Z'",
    )?;
    drop(connection);
    for _ in 0..2 {
        status(&check(folder, &[&some[..], &within].concat()), 16)?;
    }
    // Each time span of --within is a separate promise. The promise with this longer time span is kept, so no further
    // event is raised.
    status(&check(folder, &["--within", "9999d"]), 0)?;
    ensure(heads(folder)? == ["promise-broken|orders|1|"], format!("{:?}", heads(folder)?))?;
    for _ in 0..2 {
        status(&check(folder, &within), 0)?;
    }
    let calls = told(folder)?;
    let heads: Vec<&str> = calls.iter().map(|(head, _)| head.as_str()).collect();
    ensure(heads == ["promise-broken|orders|1|", "promise-kept-again|orders|1|"], format!("{heads:?}"))?;
    let says = calls[0].1[0]["text"].as_str().unwrap_or_default().contains("PROMISE BROKEN");
    ensure(says && calls[0].1[0]["family"].is_string(), format!("{calls:?}"))
}

fn failed(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "9MB", "--files", "2"])?;
    program(folder, "listen", KEEPS)?;
    status(&check(folder, &[]), 0)?;
    let second = fs::read_dir(folder.join("d"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "ndf"))
        .ok_or("no second file")?;
    // If a file is missing, a check cannot verify everything.
    fs::rename(&second, folder.join("away"))?;
    let output = check(folder, &[]);
    let bits = output.status.code().unwrap_or_default();
    ensure(bits & 1 == 0 && bits & 16 != 0, format!("{output:?}"))?;
    let calls = told(folder)?;
    ensure(calls.len() == 1 && calls[0].0 == "failed|orders|1|", format!("{calls:?}"))?;
    ensure(calls[0].1[0]["text"].as_str().is_some_and(|text| !text.is_empty()), format!("{calls:?}"))?;
    // With --exit-zero-on-incomplete, an incomplete check does not count as failed.
    check(folder, &["--exit-zero-on-incomplete"]);
    let is_zero = check(folder, &["--exit-zero-on-incomplete"]).status.code() == Some(0);
    ensure(!is_zero || heads(folder)?.len() == 1, format!("{:?}", heads(folder)?))?;
    let before = heads(folder)?.len();
    // If the files cannot be opened, the failure is reported for the database that was last checked in this folder.
    fs::rename(folder.join("away"), second)?;
    fs::rename(folder.join("d/orders.mdf"), folder.join("mdf"))?;
    fs::write(folder.join("d/orders.mdf"), "no database")?;
    let broken = check(folder, &[]);
    ensure(broken.status.code().is_some_and(|bits| bits & 12 != 0), format!("{broken:?}"))?;
    let calls = told(folder)?;
    ensure(calls.len() == before + 1, format!("{calls:?}"))?;
    let (head, lines) = &calls[before];
    ensure(head.starts_with("failed|") && lines[0]["event"] == "failed", format!("{calls:?}"))
}

fn many(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    lab(folder, &["new", "other", "--size", "9MB", "--seed", "5"])?;
    fs::create_dir(folder.join("d"))?;
    lab(folder, &["damage", "other", "-o", "d/other", "--kind", "bit-rot", "--seed", "3"])?;
    fs::rename(folder.join("hurt"), folder.join("d/hurt"))?;
    fs::rename(folder.join("sound"), folder.join("d/sound"))?;
    program(folder, "listen", KEEPS)?;
    let checked = mdfsck(
        folder,
        &["check", "d/*", "--databases", "2", "--history", "h.db", "--on-event", "./listen", "--no-infomsgs"],
    );
    status(&checked, HURT)?;
    let heads = heads(folder)?;
    ensure(heads.len() == 2 && heads.iter().all(|head| head.starts_with("finding-new|orders|")), format!("{heads:?}"))
}

fn merge(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    put(folder, "hurt")?;
    program(folder, "listen", KEEPS)?;
    status(&mdfsck(folder, &["plan", "d", "--dir", "plan"]), 0)?;
    status(&mdfsck(folder, &["task", "plan", "0"]), 0)?;
    let merged = mdfsck(folder, &["merge", "plan", "--history", "h.db", "--on-event", "./listen", "--no-infomsgs"]);
    status(&merged, HURT)?;
    ensure(heads(folder)? == ["finding-new|orders|4|"], format!("{:?}", heads(folder)?))
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "2MB"])?;
    refused_by_usage(&mdfsck(folder, &["check", "d", "--on-event", "x"]), &["--history"])?;
    refused_by_usage(&mdfsck(folder, &["check", "d", "--history", "h.db", "--event-argument", "x"]), &["--on-event"])?;
    let estimate = check(folder, &["--estimate-only"]);
    refused(&estimate, 8, &["--estimate-only", "--on-event"])
}
