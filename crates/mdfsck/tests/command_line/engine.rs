//! `mdfsck watch --engine`: another program, the engine, checks large backups. Whatever the engine does, a backup may
//! be reported as sound only if all of it was read.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::Value;

use super::listener::{is_running, program};
use super::watch::{backup, hurt, lab, lines, reported, runs};
use super::*;

pub(super) fn with_engines() -> Vec<(&'static str, Test)> {
    vec![
        ("watch lets an engine check what is large, round by round, and records what a check would", same),
        ("watch never calls a backup sound that its engine has not carried out, and tries again", hostile),
        ("watch takes no parts of another database from an engine, and no verdict", foreign),
        ("watch keeps what an engine has done, and has only the rest carried out", resumed),
        ("watch ends an engine that takes too long, or when it ends itself", ended),
        ("watch that is killed while an engine works goes on with the same plan", killed),
        ("watch lets an engine check data files and differentials", other_kinds),
        ("watch refuses an engine without a place for plans", refusals),
    ]
}

/// Backups of at least this size are checked by the engine. An uncompressed backup of a 9 MB database is larger, and a
/// compressed backup is smaller.
const LARGE: &str = "4MB";
const MDFSCK: &str = env!("CARGO_BIN_EXE_mdfsck");

/// Writes a script that is used as the engine. A user could write the same script.
fn engine(folder: &Path) -> Result<(), Failed> {
    program(
        folder,
        "engine",
        &format!(
            "for plan; do :; done\necho \"$*\" >> called\n\
             for task in $({MDFSCK} plan --status \"$plan\" --missing | tr , ' '); do {MDFSCK} task \"$plan\" \"$task\" || exit 4; done\n"
        ),
    )
}

fn watch(folder: &Path, options: &[&str]) -> Output {
    let fixed =
        ["watch", "backups", "--history", "h.db", "--settle", "1s", "--once", "--json", "--engine-dir", "plans"];
    mdfsck(folder, &[&fixed[..], &["--engine", "./engine", "--engine-from", LARGE], options].concat())
}

/// Makes all backups due again immediately. After a failed check, a backup is otherwise not due until some time has
/// passed.
fn again(folder: &Path) -> Result<(), Failed> {
    let connection = Connection::open(folder.join("h.db"))?;
    connection.execute("UPDATE backup SET not_before = NULL", [])?;
    Ok(())
}

fn called(folder: &Path) -> usize {
    fs::read_to_string(folder.join("called")).unwrap_or_default().lines().count()
}

fn plans(folder: &Path) -> Result<usize, Failed> {
    Ok(fs::read_dir(folder.join("plans"))?.count())
}

/// The findings in a history, without the times when they were seen.
fn findings(folder: &Path, history: &str) -> Result<Vec<String>, Failed> {
    let output = mdfsck(folder, &["history", history, "findings", "--json"]);
    let mut all = Vec::new();
    for line in text(&output.stdout).lines() {
        let line: Value = serde_json::from_str(line)?;
        all.push(
            ["family", "msg", "object", "file", "page", "slot", "life", "text"]
                .map(|name| line[name].to_string())
                .join(" "),
        );
    }
    all.sort();
    Ok(all)
}

fn same(folder: &Path) -> Result<(), Failed> {
    backup(folder, "sound", "4", &["--stripes", "2"])?;
    hurt(folder, "hurt", "2")?;
    // If an index does not match its table, the engine must run further rounds of tasks.
    lab(folder, &["new", "lost.s", "--size", "9MB", "--seed", "1"])?;
    lab(folder, &["damage", "lost.s", "-o", "lost", "--kind", "lost-write", "--seed", "2"])?;
    lab(folder, &["backup", "lost", "-o", "lost.b"])?;
    fs::rename(folder.join("lost.b/full.bak"), folder.join("backups/lost.bak"))?;
    backup(folder, "small", "9", &["--compressed"])?;
    ensure(fs::metadata(folder.join("backups/small.bak"))?.len() < 4 << 20, "it is small")?;
    engine(folder)?;
    let output = watch(folder, &["--engine-argument", "-x", "--engine-argument", "a b;touch pwned"]);
    ensure(
        reported(&output)? == ["corrupt hurt.bak", "corrupt lost.bak", "sound small.bak", "sound sound_1.bak"],
        format!("{output:?}"),
    )?;
    ensure(output.status.code() == Some(1), format!("{output:?}"))?;
    // Standard output must contain only the lines of `watch`, and no JSON lines about rounds of tasks.
    ensure(lines(&output)?.iter().all(|line| line["kind"] != "round"), text(&output.stdout))?;
    let calls = fs::read_to_string(folder.join("called"))?;
    ensure(calls.lines().count() == 5, format!("three backups, and one of them in two further rounds: {calls}"))?;
    ensure(
        calls.lines().all(|call| call.starts_with("-x a b;touch pwned ") && call.contains("plans/mdfsck-")),
        calls.clone(),
    )?;
    ensure(plans(folder)? == 0 && !folder.join("pwned").exists(), "plans are removed")?;
    ensure(runs(folder)? == (4, 1), format!("{:?}", runs(folder)?))?;
    // Without an engine the result is the same.
    let plain = mdfsck(folder, &["watch", "backups", "--history", "plain.db", "--settle", "1s", "--once", "--json"]);
    ensure(reported(&plain)? == reported(&output)?, format!("{plain:?}"))?;
    let (expected, found) = (findings(folder, "plain.db")?, findings(folder, "h.db")?);
    ensure(found == expected && found.len() >= 4, format!("{found:#?}\n{expected:#?}"))?;
    ensure(reported(&watch(folder, &[]))?.is_empty() && calls_of(folder)? == calls, "each is checked once")
}

fn calls_of(folder: &Path) -> Result<String, Failed> {
    Ok(fs::read_to_string(folder.join("called"))?)
}

fn hostile(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    hurt(folder, "two", "2")?;
    // An engine may print the output of a check of a sound database, although it did not check the backup. The watcher
    // must not trust this output.
    let sound = mdfsck(folder, &["check", "backups/one.bak", "--json"]);
    ensure(sound.status.code() == Some(0), "it is sound")?;
    fs::write(folder.join("sound.json"), &sound.stdout)?;
    let scripts = [
        (None, "cannot be started"),
        (Some("exit 3\n"), "ended with exit status: 3; parts missing"),
        (Some("exit 0\n"), "parts missing"),
        (Some("kill -9 $$\n"), "parts missing"),
        (Some("cat sound.json\nexit 0\n"), "parts missing"),
        (Some("head -c 5000000 /dev/urandom\nexit 0\n"), "parts missing"),
        (Some("for plan; do :; done\nrm -rf \"$plan\"\n"), "holds no plan"),
        (Some("for plan; do :; done\nhead -c 1000 /dev/urandom > \"$plan/parts/0-00000.part\"\n"), ""),
        (Some("for plan; do :; done\nhead -c 1000 /dev/urandom > \"$plan/plan.json\"\n"), "plan.json"),
        (Some("for plan; do :; done\necho '{}' > \"$plan/plan.json\"\n"), "plan.json"),
    ];
    for (script, words) in scripts {
        match script {
            None => _ = fs::remove_file(folder.join("engine")),
            Some(script) => program(folder, "engine", script)?,
        }
        let output = watch(folder, &[]);
        ensure(reported(&output)? == ["unknown one.bak", "unknown two.bak"], format!("{script:?}: {output:?}"))?;
        ensure(output.status.code() == Some(4), format!("{script:?}: {output:?}"))?;
        for line in lines(&output)?.iter().filter(|line| line["kind"] == "watched") {
            let message = line["message"].as_str().unwrap_or_default();
            ensure(!message.is_empty() && message.contains(words), format!("{script:?}: {message}"))?;
        }
        again(folder)?;
    }
    ensure(runs_without_error(folder)? == 0, "none was checked")?;
    // An engine completes all tasks and then reports failure. Only the parts that the engine wrote count. An invalid
    // part is replaced.
    engine(folder)?;
    let script = fs::read_to_string(folder.join("engine"))?.replacen("#!/bin/sh\n", "", 1);
    program(folder, "engine", &format!("{script}exit 1\n"))?;
    let output = watch(folder, &[]);
    ensure(reported(&output)? == ["corrupt two.bak", "sound one.bak"], format!("{output:?}"))?;
    ensure(plans(folder)? == 0 && runs_without_error(folder)? == 2, "each once")
}

fn runs_without_error(folder: &Path) -> Result<i64, Failed> {
    let connection = Connection::open(folder.join("h.db"))?;
    Ok(connection.query_row("SELECT count(*) FROM run WHERE error IS NULL", [], |row| row.get(0))?)
}

fn foreign(folder: &Path) -> Result<(), Failed> {
    hurt(folder, "two", "2")?;
    backup(folder, "one", "1", &[])?;
    fs::rename(folder.join("backups/one.bak"), folder.join("one.bak"))?;
    // Makes a complete plan of a sound database. The engines below copy this plan over the plan that they should carry
    // out.
    for command in [&["plan", "one.bak", "--dir", "other"][..], &["task", "other", "0"]] {
        let output = mdfsck(folder, command);
        ensure(output.status.success(), format!("{output:?}"))?;
    }
    for (script, words) in [
        ("for plan; do :; done\ncp other/parts/* \"$plan/parts/\"\n", "part"),
        ("for plan; do :; done\nrm -rf \"$plan\"; cp -r other \"$plan\"\n", "is not the plan"),
        ("for plan; do :; done\ncp other/plan.json other/maps.bin other/parts/* \"$plan/\"\n", ""),
    ] {
        program(folder, "engine", script)?;
        let output = watch(folder, &[]);
        ensure(reported(&output)? == ["unknown two.bak"], format!("{script}: {output:?}"))?;
        let message = lines(&output)?[0]["message"].as_str().unwrap_or_default().to_owned();
        ensure(message.contains(words), format!("{script}: {message}"))?;
        again(folder)?;
    }
    engine(folder)?;
    let output = watch(folder, &[]);
    ensure(reported(&output)? == ["corrupt two.bak"] && plans(folder)? == 0, format!("{output:?}"))
}

fn resumed(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "one.d", "--size", "12MB", "--files", "2"])?;
    lab(folder, &["backup", "one.d", "-o", "backups"])?;
    program(
        folder,
        "engine",
        &format!(
            "{MDFSCK} plan --status \"$1\" --missing >> called\nmissing=$({MDFSCK} plan --status \"$1\" --missing)\n\
                  {MDFSCK} task \"$1\" \"${{missing%%,*}}\"\nexit 5\n"
        ),
    )?;
    let first = watch(folder, &[]);
    ensure(reported(&first)? == ["unknown full.bak"] && plans(folder)? == 1, format!("{first:?}"))?;
    let message = lines(&first)?[0]["message"].as_str().unwrap_or_default().to_owned();
    ensure(message.contains("exit status: 5; parts missing: 1 (1 of 2)"), message)?;
    // The backup is not due yet. When it is due again, only the missing task runs.
    ensure(called(folder) == 1 && watch(folder, &[]).status.code() == Some(4) && called(folder) == 1, "not at once")?;
    again(folder)?;
    let second = watch(folder, &[]);
    ensure(reported(&second)? == ["sound full.bak"], format!("{second:?}"))?;
    ensure(calls_of(folder)? == "0,1\n1\n", calls_of(folder)?)?;
    // If a backup has changed, its old plan is not used again.
    program(folder, "engine", "exit 5\n")?;
    let path = folder.join("backups/full.bak");
    let bytes = fs::read(&path)?;
    fs::write(&path, &bytes)?;
    ensure(reported(&watch(folder, &[]))? == ["unknown full.bak"] && plans(folder)? == 1, "it failed")?;
    thread::sleep(Duration::from_millis(20));
    fs::write(&path, &bytes)?;
    again(folder)?;
    engine(folder)?;
    ensure(reported(&watch(folder, &[]))? == ["sound full.bak"] && plans(folder)? == 0, "it was checked")?;
    // If a backup is deleted, its plan is deleted too.
    fs::write(&path, &bytes)?;
    program(folder, "engine", "exit 5\n")?;
    watch(folder, &[]);
    fs::remove_file(&path)?;
    ensure(plans(folder)? == 1, "it was made")?;
    ensure(reported(&watch(folder, &[]))? == ["skipped full.bak"] && plans(folder)? == 0, "it is gone")
}

const HANGS: &str = "trap '' TERM\necho $$ > pids\nsleep 600 & echo $! >> pids\nwait; sleep 600\n";

fn none_runs(folder: &Path) -> Result<(), Failed> {
    for pid in fs::read_to_string(folder.join("pids"))?.lines() {
        ensure(!is_running(pid)?, format!("{pid} is still there"))?;
    }
    Ok(())
}

fn ended(folder: &Path) -> Result<(), Failed> {
    backup(folder, "one", "1", &[])?;
    program(folder, "engine", HANGS)?;
    let output = watch(folder, &["--engine-limit", "1s"]);
    ensure(reported(&output)? == ["unknown one.bak"] && output.status.code() == Some(4), format!("{output:?}"))?;
    let message = lines(&output)?[0]["message"].as_str().unwrap_or_default().to_owned();
    ensure(message.contains("took more than 1 seconds") && message.contains("parts missing"), message)?;
    none_runs(folder)?;
    fs::remove_file(folder.join("pids"))?;
    again(folder)?;
    let mut service = start(folder)?;
    wait_for(|| Ok(fs::read_to_string(folder.join("pids")).unwrap_or_default().lines().count() == 2))?;
    Command::new("kill").arg(service.id().to_string()).status()?;
    wait_for(|| Ok(service.try_wait()?.is_some()))?;
    ensure(service.wait()?.code() == Some(0), "it ends")?;
    none_runs(folder)?;
    // The end of the watcher interrupted the check. This does not count as a failed check of the backup, so the backup
    // is due immediately.
    engine(folder)?;
    ensure(reported(&watch(folder, &[]))? == ["sound one.bak"] && plans(folder)? == 0, "it was checked")
}

fn start(folder: &Path) -> Result<std::process::Child, Failed> {
    let mut command = Command::new(MDFSCK);
    command.args(["watch", "backups", "--history", "h.db", "--settle", "1s", "--every", "1s", "--engine", "./engine"]);
    command.args(["--engine-dir", "plans", "--engine-from", LARGE]).current_dir(folder);
    Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

fn wait_for(mut is_it: impl FnMut() -> Result<bool, Failed>) -> Result<(), Failed> {
    let begun = Instant::now();
    while !is_it()? {
        ensure(begun.elapsed() < Duration::from_secs(90), "it does not come")?;
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn killed(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "one.d", "--size", "12MB", "--files", "2"])?;
    lab(folder, &["backup", "one.d", "-o", "backups"])?;
    // If the watcher is killed, the standard input of the engine is closed, and the engine must end.
    program(folder, "engine", &format!("{MDFSCK} task \"$1\" 0\necho $$ > pids\ncat > /dev/null\ntouch saw-end\n"))?;
    let mut service = start(folder)?;
    wait_for(|| Ok(folder.join("pids").exists()))?;
    service.kill()?;
    service.wait()?;
    wait_for(|| Ok(folder.join("saw-end").exists()))?;
    program(folder, "engine", &format!("{MDFSCK} plan --status \"$1\" --missing >> called\n{MDFSCK} task \"$1\" 1\n"))?;
    let output = watch(folder, &[]);
    ensure(reported(&output)? == ["sound full.bak"] && calls_of(folder)? == "1\n", format!("{output:?}"))?;
    ensure(runs(folder)? == (1, 1) && plans(folder)? == 0, "checked once")
}

fn other_kinds(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["chain", "c"])?;
    fs::create_dir(folder.join("backups"))?;
    for entry in fs::read_dir(folder.join("c"))? {
        let path = entry?.path();
        if let Some(name) =
            path.file_name().filter(|_| path.is_file() && path.extension().is_some_and(|it| it == "bak" || it == "trn"))
        {
            fs::copy(&path, folder.join("backups").join(name))?;
        }
    }
    lab(folder, &["new", "data", "--size", "9MB", "--seed", "4"])?;
    fs::write(folder.join("list.txt"), "Sales data/orders.mdf\n")?;
    engine(folder)?;
    let fixed = ["watch", "backups", "list.txt", "--history", "h.db", "--settle", "1s", "--once", "--json"];
    let output = mdfsck(
        folder,
        &[&fixed[..], &["--engine", "./engine", "--engine-dir", "plans", "--engine-from", "1KB"]].concat(),
    );
    let all = lines(&output)?;
    let watched: Vec<&Value> = all.iter().filter(|line| line["kind"] == "watched").collect();
    ensure(watched.iter().all(|line| line["status"] == "sound"), format!("{output:?}"))?;
    let of = |kind: &str| watched.iter().filter(|line| line["type"] == kind).count();
    ensure(of("data") == 1 && of("full") >= 1 && of("log") >= 1, format!("{watched:?}"))?;
    ensure(called(folder) == watched.len() - of("log"), "logs are read here")?;
    ensure(plans(folder)? == 0, "plans are removed")
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    fs::create_dir(folder.join("backups"))?;
    let fixed = ["watch", "backups", "--history", "h.db", "--once"];
    refused_by_usage(&mdfsck(folder, &[&fixed[..], &["--engine", "x"]].concat()), &["--engine-dir"])?;
    refused_by_usage(&mdfsck(folder, &[&fixed[..], &["--engine-argument", "x"]].concat()), &["--engine"])?;
    fs::write(folder.join("file"), "")?;
    let with = |place| mdfsck(folder, &[&fixed[..], &["--engine", "x", "--engine-dir", place]].concat());
    refused(&with("file"), 8, &["--engine-dir", "file", "plans cannot be stored in this folder"])?;
    // A program that was built without object storage refuses every URL before it reads the option.
    let object: &[&str] = if cfg!(feature = "cloud") {
        &["--engine-dir", "s3://bucket/plans", "plans cannot be stored in this folder"]
    } else {
        &["built without object storage"]
    };
    refused(&with("s3://bucket/plans"), 8, object)?;
    Ok(())
}
