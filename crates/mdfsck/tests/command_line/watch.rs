//! `mdfsck watch`: each complete backup is checked once, whatever happens before or during the check. A half-written
//! backup is never reported as corrupt. The listening program gets all events.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::*;

mod metrics;

pub(super) use metrics::with_other_tools;

pub(super) fn with_watch() -> Vec<(&'static str, Test)> {
    vec![
        ("watch checks each file once, and has the status of what it found", once),
        ("watch never calls a file corrupt that grows, and checks it when it is whole", growing),
        ("watch waits for late stripes, and says so after its patience", stripes),
        ("watch calls a backup without its end unknown after its patience", cut),
        ("watch leaves out what vanished, and checks it when it is there again", vanished),
        ("watch knows a file by one name, whatever folder its relative path is seen from", relative),
        ("watch calls nothing gone that another watcher of the same history looks for", two_watchers),
        ("watch takes a folder that cannot be listed for no folder without backups", unlisted),
        ("watch checks a backup again whose file has changed, and each copy of it", changed),
        ("watch checks a file again that was written although its size and times are the same", written_in_place),
        ("watch has a verdict for each copy of a backup, and takes none for another", copies),
        ("watch that is killed checks each backup exactly once all the same", killed),
        ("watch ends at SIGTERM, and what it was checking is ready again", signal),
        ("watch follows its policy", policies),
        ("watch says when a backup is missing, has no checksums, or a promise is broken", promises),
        ("watch passes events on until the program has worked once, and never for what is acknowledged", events),
        ("watch writes all databases as one page, and replaces it", page),
        ("watch gives names of databases to no shell, and escapes them in metrics and CSV", hostile_names),
        ("watch checks data files of a list whenever they have changed", data_files),
        ("watch checks a differential with its full backup, and reads log backups", chains),
        ("watch calls no log backup sound of which a part is missing", log_with_a_gap),
        ("watch calls the empty log backup of an idle database sound", idle),
        ("watch calls a compressed backup unknown at once", unchecked),
        (
            "watch calls sound what only an allowed limit leaves open, and else has bit 16 unless that is left out",
            allowed,
        ),
        ("watch checks data files that are named twice", named_twice),
        ("watch refuses what makes no sense in one line", refusals),
    ]
}

pub(super) fn lab(folder: &Path, arguments: &[&str]) -> Result<(), Failed> {
    let made = mdfsck(folder, &[&["lab"], arguments].concat());
    ensure(made.status.success(), text(&made.stderr))
}

/// Writes a backup to `backups/NAME.bak`. Different seeds give different databases.
pub(super) fn backup(folder: &Path, name: &str, seed: &str, options: &[&str]) -> Result<(), Failed> {
    lab(folder, &["new", &format!("{name}.d"), "--size", "9MB", "--seed", seed])?;
    lab(folder, &[&["backup", &format!("{name}.d"), "-o", &format!("{name}.b")], options].concat())?;
    fs::create_dir_all(folder.join("backups"))?;
    for entry in fs::read_dir(folder.join(format!("{name}.b")))? {
        let from = entry?.path();
        let suffix = from.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.split_once('_'));
        let suffix = suffix.map(|(_, stripe)| format!("_{stripe}")).unwrap_or_default();
        fs::rename(&from, folder.join(format!("backups/{name}{suffix}.bak")))?;
    }
    Ok(())
}

/// Writes a backup of a damaged database to `backups/NAME.bak`.
pub(super) fn hurt(folder: &Path, name: &str, seed: &str) -> Result<(), Failed> {
    lab(folder, &["new", &format!("{name}.s"), "--size", "9MB", "--seed", seed])?;
    lab(folder, &["damage", &format!("{name}.s"), "-o", &format!("{name}.d"), "--kind", "bit-rot", "--seed", "3"])?;
    lab(folder, &["backup", &format!("{name}.d"), "-o", &format!("{name}.b")])?;
    fs::create_dir_all(folder.join("backups"))?;
    Ok(fs::rename(folder.join(format!("{name}.b/full.bak")), folder.join(format!("backups/{name}.bak")))?)
}

const FIXED: [&str; 6] = ["watch", "backups", "--history", "h.db", "--settle", "1s"];

fn watch(folder: &Path, options: &[&str]) -> Output {
    mdfsck(folder, &[&FIXED[..], &["--once"], options].concat())
}

/// The JSON lines that a run with `--once` printed.
pub(super) fn lines(output: &Output) -> Result<Vec<Value>, Failed> {
    let stdout = text(&output.stdout);
    let lines = stdout.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    ensure(lines.last().is_some_and(|line| line["kind"] == "watch_summary"), format!("{output:?}"))?;
    Ok(lines)
}

/// The first file of a backup, relative to the folder of the test or to the folder of the backups.
fn name(line: &Value) -> &str {
    let path = line["paths"][0].as_str().unwrap_or_default();
    // The paths in the output are absolute. The path of the test's temporary folder is removed; the name of this folder
    // begins with `.tmp`.
    let within = path.split_once("/.tmp").and_then(|(_, path)| path.split_once('/'));
    within.map_or(path, |(_, path)| path.strip_prefix("backups/").unwrap_or(path))
}

/// The status and the first file of each reported backup, sorted.
pub(super) fn reported(output: &Output) -> Result<Vec<String>, Failed> {
    let lines = lines(output)?;
    let of_backups = lines.iter().filter(|line| line["kind"] == "watched");
    let mut all: Vec<String> =
        of_backups.map(|line| format!("{} {}", line["status"].as_str().unwrap_or_default(), name(line))).collect();
    all.sort();
    Ok(all)
}

/// Counts runs in the history. Returns the number of backups, and the largest number of checks of one backup.
pub(super) fn runs(folder: &Path) -> Result<(usize, usize), Failed> {
    let output = mdfsck(folder, &["history", "h.db", "runs", "--json"]);
    let mut counts: std::collections::BTreeMap<String, usize> = Default::default();
    for line in text(&output.stdout).lines() {
        let run: Value = serde_json::from_str(line)?;
        *counts.entry(format!("{} {}", run["family"], run["taken_at"])).or_default() += 1;
    }
    Ok((counts.len(), counts.into_values().max().unwrap_or_default()))
}

fn expect(found: Vec<String>, expected: &[&str]) -> Result<(), Failed> {
    ensure(found == expected, format!("{found:?}, not {expected:?}"))
}

fn once(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    backup(folder, "two", "2", &["--compressed"])?;
    fs::create_dir(folder.join("backups/sub"))?;
    fs::rename(folder.join("backups/two.bak"), folder.join("backups/sub/two.backup"))?;
    fs::write(folder.join("backups/readme.txt"), "no backup")?;
    let first = watch(folder, &["--json", "--jobs", "2", "--memory", "400MB"]);
    expect(reported(&first)?, &["sound one.bak", "sound sub/two.backup"])?;
    ensure(first.status.code() == Some(0), format!("{first:?}"))?;
    fs::rename(folder.join("backups/one.bak"), folder.join("backups/renamed.bak"))?;
    hurt(folder, "three", "3")?;
    let second = watch(folder, &["--json"]);
    expect(reported(&second)?, &["corrupt three.bak", "sound renamed.bak"])?;
    ensure(second.status.code() == Some(1), format!("{second:?}"))?;
    let third = watch(folder, &[]);
    ensure(third.status.code() == Some(0) && text(&third.stdout).lines().count() == 1, format!("{third:?}"))?;
    ensure(runs(folder)? == (3, 2), format!("{:?}", runs(folder)?))?;
    let state = mdfsck(folder, &["history", "h.db"]);
    ensure(text(&state.stdout).contains("corrupt"), text(&state.stdout))
}

fn page(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    let first = watch(folder, &["--html", "e.html"]);
    ensure(first.status.code() == Some(0), format!("{first:?}"))?;
    hurt(folder, "two", "2")?;
    let second = watch(folder, &["--html", "e.html"]);
    ensure(second.status.code() == Some(1), format!("{second:?}"))?;
    let all = super::html::data(&fs::read_to_string(folder.join("e.html"))?)?;
    let rows = all["estate"]["rows"].as_array().ok_or("no rows")?;
    let states: Vec<_> = rows.iter().map(|row| row["state"].as_str().unwrap_or_default()).collect();
    ensure(states == ["corrupt", "sound"], format!("{states:?}"))?;
    for (place, status, words) in [
        ("-", 8, "give a file"),
        ("h.db", 8, "is the history"),
        ("backups/one.bak", 8, "will not be overwritten"),
        ("no/e.html", 4, "cannot be written"),
    ] {
        refused(&watch(folder, &["--html", place]), status, &[place, words])?;
    }
    for other in ["h.db-wal", "m.prom"] {
        let output = watch(folder, &["--metrics", "m.prom", "--html", other]);
        refused(&output, 8, &[other, "the file of another option"])?;
    }
    Ok(())
}

fn growing(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    let whole = fs::read(folder.join("backups/one.bak"))?;
    fs::remove_file(folder.join("backups/one.bak"))?;
    let mut service = start(folder, &["--every", "1s", "--json"])?;
    let mut file = fs::File::create(folder.join("backups/one.bak"))?;
    // Some pauses between writes are longer than the settle time.
    for (number, piece) in whole.chunks(whole.len() / 5 + 1).enumerate() {
        file.write_all(piece)?;
        thread::sleep(Duration::from_millis(if number % 2 == 0 { 300 } else { 2500 }));
    }
    drop(file);
    let printed = BufReader::new(service.stdout.take().ok_or("no output")?);
    let (send, receive) = mpsc::channel();
    thread::spawn(move || printed.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let line = receive.recv_timeout(Duration::from_secs(120)).map_err(|_| "the whole file was not checked")?;
    ensure(line.contains("\"status\":\"sound\""), line)?;
    end(&mut service)?;
    let rest: Vec<String> = receive.iter().collect();
    ensure(rest.is_empty(), format!("{rest:?}"))?;
    ensure(runs(folder)? == (1, 1), "checked once")
}

fn stripes(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &["--stripes", "3"])?;
    fs::rename(folder.join("backups/one_1.bak"), folder.join("late.bak"))?;
    let early = watch(folder, &["--json"]);
    let shown = lines(&early)?;
    let says = |line: &Value| line["message"].as_str().unwrap_or_default().contains("2 of 3 found, missing: 1");
    ensure(early.status.code() == Some(0) && shown[0]["status"] == "waiting" && says(&shown[0]), format!("{early:?}"))?;
    ensure(shown.len() == 2 && shown[1]["waiting"] == 1 && shown[1]["unknown"] == 0, format!("{early:?}"))?;
    let for_people = text(&watch(folder, &[]).stdout);
    ensure(for_people.starts_with("waiting  ") && for_people.contains("missing: 1\n"), for_people)?;
    thread::sleep(Duration::from_secs(2));
    let impatient = watch(folder, &["--json", "--patience", "1s"]);
    let line = lines(&impatient)?.remove(0);
    ensure(
        line["status"] == "unknown" && says(&line) && impatient.status.code() == Some(16),
        format!("{impatient:?}"),
    )?;
    fs::rename(folder.join("late.bak"), folder.join("backups/one_1.bak"))?;
    let whole = watch(folder, &["--json"]);
    expect(reported(&whole)?, &["sound one_1.bak"])?;
    ensure(whole.status.code() == Some(0) && runs(folder)? == (1, 1), format!("{whole:?}"))
}

fn cut(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    backup(folder, "two", "2", &["--compressed"])?;
    for name in ["backups/one.bak", "backups/two.bak"] {
        let whole = fs::read(folder.join(name))?;
        fs::write(folder.join("backups/whole.tmp"), &whole)?;
        fs::remove_file(folder.join("backups/whole.tmp"))?;
        fs::write(folder.join(name), &whole[..whole.len() / 2])?;
    }
    fs::write(folder.join("backups/empty.bak"), "")?;
    let early = watch(folder, &["--json"]);
    expect(reported(&early)?, &["waiting empty.bak", "waiting one.bak", "waiting two.bak"])?;
    ensure(early.status.code() == Some(0), format!("{early:?}"))?;
    for _ in 0..2 {
        let late = watch(folder, &["--json", "--patience", "1s"]);
        expect(reported(&late)?, &["unknown empty.bak", "unknown one.bak", "unknown two.bak"])?;
        ensure(late.status.code() == Some(16), format!("{late:?}"))?;
    }
    ensure(runs(folder)? == (0, 0), "none was checked")
}

fn vanished(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &["--stripes", "2"])?;
    fs::rename(folder.join("backups/one_2.bak"), folder.join("late.bak"))?;
    watch(folder, &[]);
    fs::rename(folder.join("backups/one_1.bak"), folder.join("other.bak"))?;
    let gone = watch(folder, &["--json"]);
    expect(reported(&gone)?, &["skipped one_1.bak"])?;
    let line = lines(&gone)?.remove(0);
    ensure(gone.status.code() == Some(0) && line["message"] == "gone", format!("{gone:?}"))?;
    fs::rename(folder.join("late.bak"), folder.join("backups/2.bak"))?;
    fs::rename(folder.join("other.bak"), folder.join("backups/1.bak"))?;
    expect(reported(&watch(folder, &["--json"]))?, &["sound 1.bak"])?;
    // If a folder cannot be read, the watcher must not treat it as empty.
    fs::rename(folder.join("backups"), folder.join("away"))?;
    let away = watch(folder, &["--json"]);
    ensure(away.status.code() == Some(4) && reported(&away)?.is_empty(), format!("{away:?}"))
}

fn two_watchers(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &["--stripes", "2"])?;
    fs::rename(folder.join("backups/one_2.bak"), folder.join("late.bak"))?;
    fs::create_dir(folder.join("other"))?;
    backup(folder, "two", "2", &[])?;
    fs::rename(folder.join("backups/two.bak"), folder.join("other/two.bak"))?;
    let other = || mdfsck(folder, &["watch", "other/*.bak", "--history", "h.db", "--settle", "1s", "--once", "--json"]);
    expect(reported(&watch(folder, &["--json"]))?, &["waiting one_1.bak"])?;
    expect(reported(&other())?, &["sound other/two.bak"])?;
    fs::rename(folder.join("late.bak"), folder.join("backups/one_2.bak"))?;
    expect(reported(&watch(folder, &["--json"]))?, &["sound one_1.bak"])?;
    ensure(reported(&other())?.is_empty() && runs(folder)? == (2, 1), "each is checked once")
}

/// Two watchers that run in different folders give the same files by different relative paths. Both watchers must
/// recognize the files as the same, so each backup is checked only once.
fn relative(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &["--stripes", "2"])?;
    fs::rename(folder.join("backups/one_2.bak"), folder.join("late.bak"))?;
    lab(folder, &["new", "data", "--size", "5MB", "--seed", "4"])?;
    fs::create_dir_all(folder.join("a/b"))?;
    fs::write(folder.join("list.txt"), "Sales data/orders.mdf\n")?;
    fs::write(folder.join("a/list.txt"), "Sales ../data/orders.mdf\n")?;
    let from = |place: &str, paths: &[&str], history: &str| {
        let options = ["--history", history, "--settle", "1s", "--once", "--json", "--patience", "1s"];
        mdfsck(&folder.join(place), &[&["watch"], paths, &options].concat())
    };
    let first = from(".", &["backups", "list.txt"], "h.db");
    ensure(reported(&first)?.contains(&"sound data/orders.mdf".to_owned()), format!("{first:?}"))?;
    // Sleeps longer than `--patience`.
    thread::sleep(Duration::from_millis(2500));
    for (place, paths, history) in [
        ("a", &["../backups", "list.txt"][..], "../h.db"),
        ("a/b", &["../../backups/*.bak"], "../../h.db"),
        ("backups", &["."], "../h.db"),
        ("a", &["b/../../backups/one_?.bak"], "../h.db"),
    ] {
        let other = from(place, paths, history);
        ensure(reported(&other)? == ["unknown one_1.bak"], format!("{place}: {other:?}"))?;
        ensure(lines(&other)?.last().is_some_and(|line| line["waiting"] == 1), format!("{place}: {other:?}"))?;
    }
    let connection = Connection::open_with_flags(folder.join("h.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let count = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0));
    ensure(count("SELECT count(*) FROM watched_file WHERE path LIKE '%one_1.bak'")? == 1, "one file")?;
    ensure(
        count("SELECT count(*) FROM watched_file WHERE path LIKE '%..%' OR path NOT LIKE '/%'")? == 0,
        "whole paths",
    )?;
    ensure(count("SELECT count(*) FROM backup WHERE gone_at IS NOT NULL")? == 0, "nothing is gone")?;
    // The missing part of the backup arrives. One watcher checks the backup, and the other watcher then has nothing to
    // check.
    fs::rename(folder.join("late.bak"), folder.join("backups/one_2.bak"))?;
    ensure(reported(&from("a", &["../backups"], "../h.db"))? == ["sound one_1.bak"], "it is whole now")?;
    ensure(reported(&from("backups", &["."], "../h.db"))?.is_empty(), "nothing is left")?;
    fs::remove_file(folder.join("backups/one_1.bak"))?;
    fs::remove_file(folder.join("backups/one_2.bak"))?;
    from(".", &["backups"], "h.db");
    ensure(
        count("SELECT count(*) FROM watched_file WHERE path LIKE '%one_%'")? == 0,
        "this one sees that they are gone",
    )
}

fn unlisted(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &["--stripes", "2"])?;
    fs::rename(folder.join("backups/one_2.bak"), folder.join("late.bak"))?;
    let look = || {
        let pattern = ["watch", "backups/*.bak", "--history", "h.db", "--settle", "1s", "--once", "--json"];
        mdfsck(folder, &pattern)
    };
    look();
    fs::rename(folder.join("backups"), folder.join("away"))?;
    let away = look();
    ensure(away.status.code() == Some(4), format!("{away:?}"))?;
    expect(reported(&away)?, &["waiting one_1.bak"])?;
    fs::create_dir(folder.join("backups"))?;
    expect(reported(&look())?, &["skipped one_1.bak"])
}

fn changed(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    backup(folder, "two", "2", &[])?;
    let (one, two) = (folder.join("backups/one.bak"), folder.join("backups/two.bak"));
    let good = fs::read(&one)?;
    expect(reported(&watch(folder, &["--json"]))?, &["sound one.bak", "sound two.bak"])?;
    // Writes the file again with the same bytes. Its modification time changes, so the watcher must check it once more.
    fs::write(&one, &good)?;
    expect(reported(&watch(folder, &["--json"]))?, &["sound one.bak"])?;
    ensure(reported(&watch(folder, &["--json"]))?.is_empty(), "nothing has changed")?;
    fs::copy(&one, folder.join("backups/zero.bak"))?;
    expect(reported(&watch(folder, &["--json"]))?, &["sound zero.bak"])?;
    backup(folder, "three", "3", &[])?;
    let third = fs::read(folder.join("backups/three.bak"))?;
    fs::remove_file(folder.join("backups/three.bak"))?;
    fs::write(&two, third)?;
    expect(reported(&watch(folder, &["--json"]))?, &["sound two.bak"])
}

/// The content of a backup changes, but its times do not. To simulate a system that does not store the time of a
/// change, the test writes the new times of the file into the history.
fn written_in_place(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    let one = folder.join("backups/one.bak");
    let mut bytes = fs::read(&one)?;
    let changed = |is_known: bool| {
        let history = Connection::open(folder.join("h.db"))?;
        let now = fs::metadata(&one)?;
        let times = {
            use std::os::unix::fs::MetadataExt as _;
            let modified = now.modified()?.duration_since(std::time::UNIX_EPOCH)?.as_nanos();
            format!("{modified} {}.{:09}", now.ctime(), now.ctime_nsec())
        };
        history.execute("UPDATE watched_file SET version = ?1", [&times])?;
        history.execute("UPDATE backup SET versions = ?1", [format!("[\"{} {times}\"]", now.len())])?;
        if !is_known {
            history
                .execute_batch("UPDATE watched_file SET fingerprint = NULL; UPDATE backup SET fingerprints = '[]'")?;
        }
        Ok::<(), Failed>(())
    };
    expect(reported(&watch(folder, &["--json"]))?, &["sound one.bak"])?;
    changed(true)?;
    expect(reported(&watch(folder, &["--json"]))?, &[])?;
    let middle = bytes.len() / 3..bytes.len() * 2 / 3;
    bytes[middle.clone()].iter_mut().step_by(8).for_each(|byte| *byte ^= 0x10);
    fs::write(&one, &bytes)?;
    changed(true)?;
    expect(reported(&watch(folder, &["--json"]))?, &["corrupt one.bak"])?;
    expect(reported(&watch(folder, &["--json"]))?, &[])?;
    // An earlier version of the program stored no fingerprint. The next run must then store one, so that later runs
    // detect a change of the file.
    changed(false)?;
    expect(reported(&watch(folder, &["--json"]))?, &[])?;
    bytes[middle.clone()].iter_mut().step_by(8).for_each(|byte| *byte ^= 0x10);
    fs::write(&one, &bytes)?;
    changed(true)?;
    expect(reported(&watch(folder, &["--json"]))?, &["sound one.bak"])
}

/// Tests a damaged copy next to a sound original, then a damaged original next to a sound copy. Each file has its own
/// verdict. A finding in the damaged file must not count as gone because the sound file does not have it.
fn copies(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    let (one, copy) = (folder.join("backups/one.bak"), folder.join("backups/copy.bak"));
    let good = fs::read(&one)?;
    let mut rotten = good.clone();
    let middle = rotten.len() / 2;
    rotten[middle] ^= 0x10;
    expect(reported(&watch(folder, &["--json"]))?, &["sound one.bak"])?;
    fs::write(&copy, &rotten)?;
    expect(reported(&watch(folder, &["--json"]))?, &["corrupt copy.bak"])?;
    fs::write(&one, &good)?;
    expect(reported(&watch(folder, &["--json"]))?, &["sound one.bak"])?;
    let findings = || mdfsck(folder, &["history", "h.db", "findings", "--json"]);
    ensure(text(&findings().stdout).contains("\"life\":\"new\""), text(&findings().stdout))?;
    fs::write(&copy, &good)?;
    fs::write(&one, &rotten)?;
    expect(reported(&watch(folder, &["--json"]))?, &["corrupt one.bak", "sound copy.bak"])
}

fn start(folder: &Path, options: &[&str]) -> Result<Child, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.args(FIXED).args(options).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::null());
    Ok(command.spawn()?)
}

/// Waits until a watching service checks a backup.
fn wait_for_a_check(folder: &Path) -> Result<(), Failed> {
    let begun = Instant::now();
    let count = || -> rusqlite::Result<i64> {
        let history = Connection::open_with_flags(folder.join("h.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        history.query_row("SELECT count(*) FROM progress", [], |row| row.get(0))
    };
    // The history does not exist until the service has created it.
    while count().unwrap_or_default() == 0 {
        ensure(begun.elapsed() < Duration::from_secs(60), "nothing is checked")?;
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Ends a service by the signal that service managers send.
fn end(service: &mut Child) -> Result<(), Failed> {
    Command::new("kill").arg(service.id().to_string()).status()?;
    let status = service.wait()?;
    ensure(status.code() == Some(0), format!("{status}"))
}

fn killed(folder: &Path) -> Result<(), Failed> {
    for number in 1..=8 {
        backup(folder, &format!("b{number}"), &number.to_string(), &[])?;
    }
    let mut dice = 7_u64;
    for _ in 0..12 {
        let mut service = start(folder, &["--every", "1s"])?;
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_millis(900 + (dice >> 33) % 600));
        service.kill()?;
        service.wait()?;
    }
    let last = watch(folder, &["--json"]);
    ensure(last.status.code() == Some(0), format!("{last:?}"))?;
    ensure(lines(&last)?.last().is_some_and(|line| line["ready"] == 0), format!("{last:?}"))?;
    ensure(runs(folder)? == (8, 1), format!("{:?}", runs(folder)?))
}

fn signal(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    // The read rate is so low that the check is still running when the test ends the service.
    let mut service = start(folder, &["--every", "1s", "--io-limit", "100KB"])?;
    wait_for_a_check(folder)?;
    end(&mut service)?;
    expect(reported(&watch(folder, &["--json"]))?, &["sound one.bak"])?;
    ensure(runs(folder)? == (1, 1), "checked once")
}

fn policies(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    let newest = watch(folder, &["--json", "--policy", "newest"]);
    expect(reported(&newest)?, &["sound one.bak"])?;
    backup(folder, "two", "2", &[])?;
    // Writes a second backup of the same database.
    lab(folder, &["backup", "two.d", "-o", "more", "--sets", "2"])?;
    fs::rename(folder.join("more/full.bak"), folder.join("backups/more.bak"))?;
    let sample = watch(folder, &["--json", "--policy", "sample:7d"]);
    let (sound, skipped) = (lines(&sample)?, reported(&sample)?);
    let of = |status: &str| sound.iter().filter(|line| line["status"] == status).count();
    ensure(of("sound") == 1 && of("skipped") >= 1 && sample.status.code() == Some(0), format!("{skipped:?}"))?;
    backup(folder, "four", "4", &[])?;
    let closed = ["--json", "--during"];
    let now = mdfsck(folder, &["history", "h.db"]);
    ensure(now.status.success(), "the history is sound")?;
    // The present time is within exactly one of these two ranges.
    let (one, other) = ("00:00-12:00", "12:00-24:00");
    let outputs = [watch(folder, &[&closed[..], &[one]].concat()), watch(folder, &[&closed[..], &[other]].concat())];
    let checked: usize = outputs.iter().map(|output| reported(output).map_or(0, |all| all.len())).sum();
    ensure(checked == 1 && runs(folder)?.1 == 1, format!("{outputs:?}"))
}

fn promises(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    let output = watch(folder, &["--json", "--require-checksum", "--max-age", "26h", "--within", "14d"]);
    let all = lines(&output)?;
    ensure(
        all[0]["status"] == "unknown" && all[0]["message"].as_str().is_some_and(|text| text.contains("CHECKSUM")),
        format!("{all:?}"),
    )?;
    let events: Vec<&Value> = all.iter().filter(|line| line["kind"] == "alarm").map(|line| &line["event"]).collect();
    ensure(events == ["backup-missing", "promise-broken"], format!("{all:?}"))?;
    ensure(output.status.code() == Some(16), format!("{output:?}"))?;
    let kept = watch(folder, &["--json", "--max-age", "36500d"]);
    ensure(kept.status.code() == Some(0), format!("{kept:?}"))?;
    backup(folder, "two", "2", &["--checksum"])?;
    let with = watch(folder, &["--json", "--require-checksum"]);
    expect(reported(&with)?, &["sound two.bak"])
}

/// Writes a listening program that fails when it is called the first time, and appends its input to a file on later
/// calls. The tests call it with fixed arguments.
#[cfg(unix)]
fn listener(folder: &Path) -> Result<(), Failed> {
    use std::os::unix::fs::PermissionsExt;
    let script = "#!/bin/sh\n[ -e failed ] || { touch failed; exit 3; }\n\
                  { echo \"$MDFSCK_EVENT|$MDFSCK_DATABASE|$MDFSCK_COUNT|$*\"; cat; } >> told\n";
    fs::write(folder.join("listen"), script)?;
    Ok(fs::set_permissions(folder.join("listen"), fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn listener(_folder: &Path) -> Result<(), Failed> {
    Err("needs a shell".into())
}

const TELL: [&str; 6] = ["--json", "--on-event", "./listen", "--event-argument", "a b", "--event-argument=-x"];

fn events(folder: &Path) -> Result<(), Failed> {
    listener(folder)?;
    hurt(folder, "one", "1")?;
    let first = watch(folder, &TELL);
    ensure(first.status.code() == Some(1 + 4) && !folder.join("told").exists(), format!("{first:?}"))?;
    let second = watch(folder, &TELL);
    let told = fs::read_to_string(folder.join("told"))?;
    let (head, rest) = told.split_once('\n').unwrap_or_default();
    ensure(head == "finding-new|orders|4|a b -x" && second.status.code() == Some(0), format!("{told} {second:?}"))?;
    for line in rest.lines() {
        let line: Value = serde_json::from_str(line)?;
        ensure(line["event"] == "finding-new" && line["key"].is_i64() && line["msg"].is_i64(), line.to_string())?;
    }
    ensure(rest.lines().count() == 4, told.clone())?;
    watch(folder, &TELL);
    ensure(fs::read_to_string(folder.join("told"))? == told, "nobody is told twice")?;
    // A later backup with the same damage confirms the findings. Acknowledged findings are not delivered.
    for key in ["1", "2", "3"] {
        let acknowledged = mdfsck(folder, &["history", "h.db", "ack", key, "--because", "known"]);
        ensure(acknowledged.status.success(), text(&acknowledged.stderr))?;
    }
    lab(folder, &["backup", "one.d", "-o", "later", "--stripes", "2"])?;
    for stripe in ["full_1.bak", "full_2.bak"] {
        fs::rename(folder.join("later").join(stripe), folder.join("backups").join(stripe))?;
    }
    let later = watch(folder, &TELL);
    let told = fs::read_to_string(folder.join("told"))?;
    let of_it: Vec<&str> = told.lines().filter(|line| line.starts_with("finding-confirmed|")).collect();
    ensure(of_it == ["finding-confirmed|orders|1|a b -x"], format!("{told} {later:?}"))?;
    // If the listening program is missing, the watcher must still check backups.
    hurt(folder, "two", "2")?;
    let missing = watch(folder, &["--json", "--on-event", "./missing"]);
    ensure(missing.status.code() == Some(1 + 4), format!("{missing:?}"))
}

fn hostile_names(folder: &Path) -> Result<(), Failed> {
    listener(folder)?;
    fs::write(folder.join("failed"), "")?;
    let name = "x\"\\$(touch pwned)`touch pwned`;\u{202e}";
    lab(folder, &["new", "s", "--size", "9MB"])?;
    lab(folder, &["damage", "s", "-o", "d", "--kind", "bit-rot", "--seed", "3"])?;
    fs::write(folder.join("list"), format!("{} \"d/orders.mdf\"\n", "\"$(touch pwned);-x\""))?;
    fs::create_dir(folder.join("backups"))?;
    fs::write(folder.join("backups").join(format!("{name}.bak").replace('/', "")), "")?;
    let output = mdfsck(
        folder,
        &[&FIXED[..], &["list", "--once", "--csv", "--patience", "1s", "--metrics", "m.prom"], &TELL[1..]].concat(),
    );
    thread::sleep(Duration::from_secs(1));
    let again = mdfsck(folder, &[&FIXED[..], &["--once", "--csv", "--patience", "1s"]].concat());
    ensure(!folder.join("pwned").exists(), "a name was run")?;
    ensure(output.status.code().is_some_and(|status| status & 1 == 1), format!("{output:?}"))?;
    let rows = text(&again.stdout);
    ensure(
        rows.starts_with("Server,Database,Backup,Type,Start,End,Status,Findings,NotVerified,Message\n"),
        rows.clone(),
    )?;
    ensure(rows.contains("x\"\"\\$(touch") && rows.contains(",unknown,"), rows.clone())?;
    let metrics = fs::read_to_string(folder.join("m.prom"))?;
    ensure(metrics.contains("mdfsck_database_state{database=\"orders\"") && metrics.ends_with('\n'), metrics)
}

fn data_files(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "data", "--size", "9MB"])?;
    fs::write(folder.join("list.txt"), "# name and files\n\"My Sales\" data/orders.mdf\nGone missing.mdf\n")?;
    let look = |options: &[&str]| {
        mdfsck(
            folder,
            &[&["watch", "list.txt", "--history", "h.db", "--settle", "1s", "--once", "--json"], options].concat(),
        )
    };
    let first = look(&[]);
    let line = lines(&first)?.remove(0);
    ensure((&line["status"], &line["type"]) == (&"sound".into(), &"data".into()), format!("{first:?}"))?;
    ensure(line["database"] == "My Sales" && lines(&first)?[2]["waiting"] == 1, format!("{first:?}"))?;
    ensure(reported(&look(&[]))? == ["waiting missing.mdf"], "nothing has changed")?;
    let file = fs::File::options().write(true).open(folder.join("data/orders.mdf"))?;
    file.set_modified(std::time::SystemTime::now())?;
    drop(file);
    ensure(reported(&look(&[]))? == ["sound data/orders.mdf", "waiting missing.mdf"], "it has changed")?;
    ensure(reported(&look(&["--patience", "1s"]))? == ["unknown missing.mdf"], "a file that is not there")
}

fn chains(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["chain", "c"])?;
    let backups: Vec<_> = fs::read_dir(folder.join("c"))?.collect::<Result<_, _>>()?;
    fs::create_dir(folder.join("backups"))?;
    for entry in &backups {
        let name = entry.file_name();
        if entry.path().is_file() && name.to_str().is_some_and(|name| name.ends_with(".bak") || name.ends_with(".trn"))
        {
            fs::copy(entry.path(), folder.join("backups").join(name))?;
        }
    }
    let output = watch(folder, &["--json"]);
    let all = lines(&output)?;
    let of = |kind: &str| all.iter().filter(|line| line["type"] == kind).count();
    ensure(of("full") >= 1 && of("log") >= 1, format!("{all:?}"))?;
    ensure(all.iter().all(|line| line["kind"] != "watched" || line["status"] == "sound"), format!("{all:?}"))?;
    ensure(output.status.code() == Some(0), format!("{output:?}"))
}

/// Changes one bit of the number that says where a part of the log is stored in the backup. The reader then skips this
/// part, so the backup must not be reported as sound.
fn log_with_a_gap(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["chain", "c", "--transactions", "40"])?;
    fs::create_dir(folder.join("backups"))?;
    let mut bytes = fs::read(folder.join("c/05_log.trn"))?;
    let descriptor = bytes.windows(4).position(|start| start == b"MSTL").ok_or("no descriptor")?;
    bytes[descriptor + 72] ^= 1;
    fs::write(folder.join("backups/log.trn"), bytes)?;
    let output = watch(folder, &["--json"]);
    ensure(reported(&output)? == ["unknown log.trn"], format!("{output:?}"))?;
    ensure(text(&output.stdout).contains("parts of its log cannot be put in order"), text(&output.stdout))?;
    ensure(output.status.code() == Some(16), format!("{output:?}"))
}

fn idle(folder: &Path) -> Result<(), Failed> {
    use lab::workload::{ChainOptions, Event, SetKind, Spec, Workload};
    let log = Event::BackUp(SetKind::Log);
    let workload = Workload::new(Spec { seed: 5, transactions: 20, ..Spec::default() })?;
    let story = [Event::Work, Event::BackUp(SetKind::Full), Event::Work, log, log];
    fs::create_dir(folder.join("backups"))?;
    workload.story(&story, ChainOptions::default(), &folder.join("backups"))?;
    let output = watch(folder, &["--json"]);
    expect(reported(&output)?, &["sound 01_full.bak", "sound 02_log.trn", "sound 03_log.trn"])?;
    ensure(output.status.code() == Some(0), format!("{output:?}"))?;
    let output = mdfsck(folder, &["log", "backups/03_log.trn"]);
    ensure(output.status.code() == Some(0), format!("{output:?}"))?;
    ensure(text(&output.stdout).contains("set 1 holds no log: it starts and ends at "), text(&output.stdout))?;
    let output = mdfsck(folder, &["log", "backups/03_log.trn", "--json"]);
    let summary: Value = serde_json::from_str(&text(&output.stdout))?;
    ensure(summary["end"] == "empty" && summary["complete"] == true, format!("{summary}"))?;
    let output = mdfsck(folder, &["chain", "backups", "--verify"]);
    ensure(output.status.code() == Some(0), format!("{output:?}"))
}

/// If a compressed file has a name like a backup, its status is reported as unknown.
fn unchecked(folder: &Path) -> Result<(), Failed> {
    backup(folder, "a", "1", &[])?;
    fs::write(folder.join("backups/y.bak.gz"), [&[0x1F, 0x8B, 8, 0][..], &[7; 9000]].concat())?;
    fs::write(folder.join("backups/notes.gz"), [&[0x1F, 0x8B, 8, 0][..], &[7; 9000]].concat())?;
    let output = watch(folder, &["--json"]);
    expect(reported(&output)?, &["sound a.bak", "unknown y.bak.gz"])?;
    ensure(output.status.code() == Some(16), format!("{output:?}"))?;
    let reason = text(&output.stdout);
    ensure(reason.contains("is compressed with gzip"), reason)?;
    fs::write(folder.join("backups/z.bak.gz"), [&[0x1F, 0x8B, 8, 0][..], &[8; 9000]].concat())?;
    let output = watch(folder, &["--json", "--exit-zero-on-incomplete"]);
    expect(reported(&output)?, &["unknown z.bak.gz"])?;
    ensure(output.status.code() == Some(0), format!("{output:?}"))?;
    // Other commands that accept folders must also report these compressed files.
    let info = mdfsck(folder, &["info", "backups"]);
    ensure(
        info.status.code() == Some(4) && text(&info.stdout).contains("NOT CHECKED: backups/y.bak.gz"),
        format!("{info:?}"),
    )?;
    let chain = mdfsck(folder, &["chain", "backups"]);
    ensure(
        chain.status.code() == Some(4) && text(&chain.stderr).contains("y.bak.gz: is compressed"),
        format!("{chain:?}"),
    )
}

/// The data files were not shut down cleanly, and their log is missing, so the verdict is unknown. With `--allow
/// recovery.none`, the user accepts this limit, and the verdict must be sound.
fn allowed(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["crash", "c", "--seed", "3", "--transactions", "40", "--flush", "all"])?;
    fs::create_dir(folder.join("alone"))?;
    fs::rename(folder.join("c/workload.mdf"), folder.join("alone/workload.mdf"))?;
    fs::write(folder.join("list.txt"), "Work alone/workload.mdf\n")?;
    let look = |history: &str, options: &[&str]| {
        let watch = ["watch", "list.txt", "--history", history, "--settle", "1s", "--once", "--json"];
        mdfsck(folder, &[&watch[..], options].concat())
    };
    let said = |output: &Output| Ok::<_, Failed>((reported(output)?.remove(0), output.status.code()));
    let unknown = ("unknown alone/workload.mdf".to_owned(), Some(16));
    ensure(said(&look("a.db", &[]))? == unknown, "without the option")?;
    ensure(said(&look("b.db", &["--allow", "recovery.log"]))? == unknown, "another limit is allowed")?;
    let output = look("c.db", &["--allow", "recovery.none"]);
    ensure(said(&output)? == ("sound alone/workload.mdf".to_owned(), Some(0)), format!("{output:?}"))?;
    let output = look("d.db", &["--exit-zero-on-incomplete"]);
    ensure(said(&output)? == ("unknown alone/workload.mdf".to_owned(), Some(0)), format!("{output:?}"))?;
    refused(&look("e.db", &["--allow", "no.such"]), 8, &["no.such"])
}

/// If a list and a folder both name the same file, the watcher waits for the file to settle like for any other file.
fn named_twice(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "data", "--size", "5MB"])?;
    fs::write(folder.join("list.txt"), "Sales data/orders.mdf\nCopy data/orders.mdf\n")?;
    let options = ["watch", "data", "list.txt", "--history", "h.db", "--settle", "1s", "--once", "--json"];
    let output = mdfsck(folder, &options);
    let all = lines(&output)?;
    ensure(all.iter().any(|line| line["status"] == "sound"), format!("{output:?}"))?;
    ensure(all.last().is_some_and(|line| line["waiting"] == 0), format!("{output:?}"))
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    fs::create_dir(folder.join("backups"))?;
    refused(&mdfsck(folder, &["watch", "-", "--history", "h.db"]), 8, &["cannot read standard input"])?;
    fs::write(folder.join("other"), "text")?;
    refused(&mdfsck(folder, &["watch", "backups", "--history", "other"]), 8, &["other", "is not a history"])?;
    for wrong in [
        &["--policy", "oldest"][..],
        &["--during", "1-2"],
        &["--jobs", "0"],
        &["--json", "--csv"],
        &["--event-argument", "x"],
        &["--settle", "5"],
    ] {
        refused_by_usage(&watch(folder, wrong), &[])?;
    }
    refused_by_usage(&mdfsck(folder, &["watch", "backups"]), &["--history"])
}
