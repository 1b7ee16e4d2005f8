//! `mdfsck check --history` and `mdfsck history`: tests when a finding counts as new, confirmed or gone. A check must
//! print its results even if its history cannot be used.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::advise::{in_use, spoil};
use super::database::edit;
use super::*;

pub(super) fn with_history() -> Vec<(&'static str, Test)> {
    vec![
        ("findings are new, confirmed, gone and new again as a database is damaged, repaired and damaged again", life),
        ("what was not looked at again is not gone", not_looked_at),
        ("a finding of one copy is not gone because another copy is sound", copies),
        ("a finding in one backup is not gone because another one is sound", moments),
        ("a check with a history prints the same, whatever is wrong with the history", useless_histories),
        ("a history on a full disk stays as it was, and the check prints its report", full_disk),
        ("a check that is killed at any instant leaves a sound history", killed),
        ("coverage says what was read and proven within a span, and sets bit 16 if that is not all", coverage),
        (
            "an acknowledged finding is reported all the same, and is no longer acknowledged when it comes back",
            acknowledged,
        ),
        ("old runs and databases can be forgotten, and what is known of findings stays", forgotten),
        ("names of any characters are kept and printed without harm", hostile_names),
        ("a check that could not look is a run too", failed_runs),
        ("bench keeps its baselines in a history", bench_baselines),
    ]
}

/// Tests that need sqlite3.
pub(super) fn with_other_tools() -> Vec<Trial> {
    let name = "a history is read by other tools: its views say what the commands say";
    vec![needs(&[("sqlite3", is_here("sqlite3"))], name, other_tools)]
}

fn new(folder: &Path, name: &str) -> Result<(), Failed> {
    let made = mdfsck(folder, &["lab", "new", name, "--size", "9MB"]);
    ensure(made.status.success(), text(&made.stderr))
}

fn damaged(folder: &Path, name: &str, kind: &str) -> Result<(), Failed> {
    let made = mdfsck(folder, &["lab", "damage", "sound", "-o", name, "--kind", kind, "--seed", "3"]);
    ensure(made.status.success(), text(&made.stderr))
}

/// Replaces the live database by a copy of the lab database in the folder `name`.
fn put(folder: &Path, name: &str) -> Result<(), Failed> {
    fs::create_dir_all(folder.join("live"))?;
    fs::copy(folder.join(name).join("orders.mdf"), folder.join("live/orders.mdf"))?;
    Ok(())
}

fn check(folder: &Path, options: &[&str]) -> Output {
    mdfsck(folder, &[&["check", "live", "--history", "h.db", "--progress", "none"], options].concat())
}

fn ask(folder: &Path, arguments: &[&str]) -> Result<Vec<Value>, Failed> {
    let output = mdfsck(folder, &[&["history", "h.db", "--json"], arguments].concat());
    ensure(output.stderr.is_empty(), text(&output.stderr))?;
    Ok(text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// The numbers of findings that are new, confirmed and gone.
fn lives(folder: &Path) -> Result<[usize; 3], Failed> {
    let all = ask(folder, &["findings", "--all"])?;
    Ok(["new", "confirmed", "gone"].map(|life| all.iter().filter(|finding| finding["life"] == life).count()))
}

fn life(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    damaged(folder, "hurt", "bit-rot")?;
    let steps = [
        ("sound", 0, [0, 0, 0]),
        ("hurt", 4, [4, 0, 0]),
        ("hurt", 0, [0, 4, 0]),
        ("sound", 0, [0, 0, 4]),
        ("sound", 0, [0, 0, 4]),
        ("hurt", 4, [4, 0, 0]),
    ];
    for (number, (image, came, expected)) in steps.into_iter().enumerate() {
        put(folder, image)?;
        let output = check(folder, &[]);
        ensure(output.status.code().is_some_and(|code| code & 1 == i32::from(image == "hurt")), text(&output.stderr))?;
        ensure(lives(folder)? == expected, format!("step {number}: {:?}", lives(folder)?))?;
        let runs = ask(folder, &["runs"])?;
        ensure(runs.len() == number + 1 && runs[0]["findings_new"] == came, runs[0].to_string())?;
    }
    let seen: Vec<Value> = ask(folder, &["findings"])?.into_iter().map(|finding| finding["seen"].clone()).collect();
    ensure(seen == [3, 3, 3, 3], format!("{seen:?}"))?;
    let between = ask(folder, &["diff", "2", "4"])?;
    let difference = between.last().ok_or("no difference")?;
    ensure((&difference["new"], &difference["gone"]) == (&0.into(), &4.into()), difference.to_string())?;
    let last = ask(folder, &["diff"])?;
    ensure(last.last().is_some_and(|line| line["new"] == 4 && line["gone"] == 0), format!("{last:?}"))?;
    // A finding that appeared and disappeared between the two runs is not part of the difference.
    let same = ask(folder, &["diff", "1", "5"])?;
    ensure(same.len() == 1 && same[0]["new"] == 0 && same[0]["gone"] == 0, format!("{same:?}"))?;
    let state = ask(folder, &[])?;
    ensure(state.len() == 1 && state[0]["state"] == "corrupt" && state[0]["findings_open"] == 4, format!("{state:?}"))
}

fn not_looked_at(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    damaged(folder, "hurt", "lost-write")?;
    put(folder, "hurt")?;
    check(folder, &[]);
    ensure(lives(folder)? == [2, 0, 0], format!("{:?}", lives(folder)?))?;
    put(folder, "sound")?;
    // Checks that do not compare the rows of an index with its table.
    let others: [&[&str]; 6] = [
        &["--physical-only"],
        &["--noindex"],
        &["--alloc"],
        &["--catalog"],
        &["--table", "dbo.customers"],
        &["--physical-only", "--table", "dbo.order_lines"],
    ];
    for options in others {
        let output = check(folder, options);
        ensure(output.status.code() == Some(0), text(&output.stderr))?;
        ensure(lives(folder)? == [2, 0, 0], format!("{options:?}: {:?}", lives(folder)?))?;
        ensure(text(&output.stderr).contains("2 could not be checked again"), text(&output.stderr))?;
    }
    // With a damaged page in the table, a check cannot see which index rows are missing.
    let mut bytes = fs::read(folder.join("sound/orders.mdf"))?;
    let hurt = fs::read(folder.join("hurt/orders.mdf"))?;
    let rot = mdfsck(folder, &["lab", "damage", "sound", "-o", "rot", "--kind", "bit-rot", "--seed", "3"]);
    ensure(rot.status.success(), text(&rot.stderr))?;
    put(folder, "rot")?;
    check(folder, &[]);
    ensure(lives(folder)? == [6, 0, 0], format!("{:?}", lives(folder)?))?;
    // If a file is truncated, a finding on a page after the new end of the file does not count as gone.
    bytes.truncate(hurt.len() / 2 / PAGE_BYTES * PAGE_BYTES);
    fs::write(folder.join("live/orders.mdf"), bytes)?;
    check(folder, &[]);
    ensure(lives(folder)?[2] == 0, format!("{:?}", lives(folder)?))?;
    put(folder, "sound")?;
    check(folder, &["--table", "dbo.order_lines"]);
    let gone = lives(folder)?[2];
    ensure(gone >= 6, format!("the table was looked at: {:?}", lives(folder)?))?;
    check(folder, &[]);
    ensure(lives(folder)?[..2] == [0, 0], format!("{:?}", lives(folder)?))
}

fn copies(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    damaged(folder, "hurt", "bit-rot")?;
    // Data files are assigned to this machine, or to the server in the option --server. A backup contains the name of
    // its server.
    let with = |path: &str| mdfsck(folder, &["check", path, "--history", "h.db", "--server", "lab"]);
    with("hurt");
    with("sound");
    let backup = mdfsck(folder, &["lab", "backup", "sound", "-o", "b"]);
    ensure(backup.status.success(), text(&backup.stderr))?;
    ensure(with("b").status.code() == Some(0), "the backup is sound")?;
    ensure(lives(folder)? == [4, 0, 0], format!("{:?}", lives(folder)?))?;
    // The history recognizes a database regardless of its file names.
    fs::create_dir(folder.join("moved"))?;
    fs::rename(folder.join("sound/orders.mdf"), folder.join("moved/other.mdf"))?;
    with("moved");
    let databases = ask(folder, &[])?;
    ensure(databases.len() == 1 && databases[0]["findings_open"] == 4, format!("{databases:?}"))?;
    let families: Vec<Value> = ask(folder, &["runs"])?.into_iter().map(|run| run["family"].clone()).collect();
    ensure(families.len() == 4 && families.iter().all(|family| *family == families[0]), format!("{families:?}"))?;
    // With another server name, the same files count as a different database of the same family. With --replicas, they
    // count as the same database.
    let elsewhere = mdfsck(folder, &["check", "moved", "--history", "h.db", "--server", "DEV"]);
    ensure(elsewhere.status.success(), text(&elsewhere.stderr))?;
    let databases = ask(folder, &[])?;
    let servers: Vec<&Value> = databases.iter().map(|one| &one["server"]).collect();
    ensure(servers == ["lab", "DEV"] && databases[0]["family"] == databases[1]["family"], format!("{databases:?}"))?;
    ensure(databases[1]["state"] == "sound" && databases[1]["findings_open"] == 0, format!("{databases:?}"))?;
    let shown = text(&mdfsck(folder, &["history", "h.db"]).stdout);
    ensure(shown.contains(" on DEV (") && shown.contains("other.mdf"), shown)?;
    let replicas = |path: &str| mdfsck(folder, &["check", path, "--history", "r.db", "--replicas", "--server", "x"]);
    replicas("moved");
    replicas("b");
    let one = mdfsck(folder, &["history", "r.db", "--json"]);
    ensure(text(&one.stdout).lines().count() == 1, text(&one.stdout))?;
    // A different database gets a separate entry in the history.
    let other = mdfsck(folder, &["lab", "new", "other", "--size", "9MB", "--seed", "77"]);
    ensure(other.status.success(), text(&other.stderr))?;
    with("other");
    ensure(ask(folder, &[])?.len() == 3, "another database")
}

fn moments(folder: &Path) -> Result<(), Failed> {
    let page = in_use(folder)?;
    let check = |name: &str| {
        let output = mdfsck(folder, &["check", &format!("here/{name}"), "--history", "h.db"]);
        ensure(output.status.code().is_some_and(|code| code & 12 == 0), text(&output.stderr))
    };
    let keep = |name: &str| fs::copy(folder.join("here").join(name), folder.join(name)).map(drop);
    let back = |name: &str| fs::copy(folder.join(name), folder.join("here").join(name)).map(drop);
    ["01_full.bak", "03_full.bak"].into_iter().try_for_each(keep)?;
    spoil(folder, "here/03_full.bak", &page)?;
    check("03_full.bak")?;
    let found = lives(folder)?;
    ensure(found[0] > 0 && found[1..] == [0, 0], format!("{found:?}"))?;
    check("01_full.bak")?;
    ensure(lives(folder)? == found, format!("an older one is sound: {:?}", lives(folder)?))?;
    let databases = ask(folder, &[])?;
    ensure(databases.len() == 1, format!("{databases:?}"))?;
    back("03_full.bak")?;
    check("03_full.bak")?;
    ensure(lives(folder)? == [0, 0, found[0]], format!("the same one was put right: {:?}", lives(folder)?))?;
    // Damage in an older backup is a finding, although a check of a later backup found no damage.
    spoil(folder, "here/01_full.bak", &page)?;
    check("01_full.bak")?;
    ensure(lives(folder)?[0] == found[0], format!("{:?}", lives(folder)?))?;
    // In a new history, the older backup is checked first. A later sound backup does not prove that the older file is
    // sound.
    fs::remove_file(folder.join("h.db"))?;
    check("01_full.bak")?;
    let all = lives(folder)?[0];
    check("03_full.bak")?;
    ensure(all > 0 && lives(folder)? == [all, 0, 0], format!("{all}: {:?}", lives(folder)?))?;
    ensure(ask(folder, &[])?[0]["state"] == "corrupt", "a rotten file lies there")?;
    // A sound copy of the older file does not prove that the older file is sound either.
    fs::copy(folder.join("01_full.bak"), folder.join("here/copy.bak"))?;
    check("copy.bak")?;
    ensure(lives(folder)? == [all, 0, 0], format!("{:?}", lives(folder)?))?;
    back("01_full.bak")?;
    check("01_full.bak")?;
    ensure(lives(folder)? == [0, 0, all], format!("{:?}", lives(folder)?))?;
    // If a file is deleted, its findings are gone.
    spoil(folder, "here/01_full.bak", &page)?;
    check("01_full.bak")?;
    ensure(lives(folder)? == [all, 0, 0], format!("{:?}", lives(folder)?))?;
    fs::remove_file(folder.join("here/01_full.bak"))?;
    check("03_full.bak")?;
    ensure(lives(folder)? == [0, 0, all], format!("{:?}", lives(folder)?))
}

fn useless_histories(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    damaged(folder, "live", "bit-rot")?;
    let plain = mdfsck(folder, &["check", "live"]);
    let recorded = check(folder, &[]);
    ensure((&recorded.stdout, recorded.status) == (&plain.stdout, plain.status), text(&recorded.stderr))?;
    ensure(text(&recorded.stderr).contains("history: 4 new, 0 confirmed, 0 gone"), text(&recorded.stderr))?;
    let whole = fs::read(folder.join("h.db"))?;
    let mut newer = whole.clone();
    newer[60..64].copy_from_slice(&999_u32.to_be_bytes());
    let mut spoiled = whole.clone();
    spoiled[whole.len() / 2..][..5000].fill(0x5A);
    let random: Vec<u8> = (0..9000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let cases: [(&str, Vec<u8>, i32, &str); 7] = [
        ("empty", Vec::new(), 8, "it is empty"),
        ("text", b"hello".to_vec(), 8, "not an SQLite database"),
        ("random", random, 8, "not an SQLite database"),
        ("data file", fs::read(folder.join("live/orders.mdf"))?, 8, "not an SQLite database"),
        ("newer", newer, 8, "newer mdfsck"),
        ("cut", whole[..whole.len() - 4096].to_vec(), 4, "damaged"),
        ("spoiled", spoiled, 4, "damaged"),
    ];
    for (name, bytes, bit, word) in cases {
        fs::write(folder.join("h.db"), &bytes)?;
        let output = check(folder, &[]);
        let stderr = text(&output.stderr);
        ensure(output.stdout == plain.stdout, format!("{name}: {stderr}"))?;
        ensure(output.status.code() == plain.status.code().map(|code| code | bit), format!("{name}: {output:?}"))?;
        let said: Vec<&str> = stderr.lines().filter(|line| line.contains("h.db")).collect();
        ensure(said.len() == 1 && said[0].contains(word) && said[0].contains("not recorded"), stderr.clone())?;
        ensure(fs::read(folder.join("h.db"))? == bytes, format!("{name}: the file is as it was"))?;
        refused(&mdfsck(folder, &["history", "h.db"]), bit, &["h.db", word])?;
        ensure(fs::read(folder.join("h.db"))? == bytes, format!("{name}: the file is as it was"))?;
    }
    fs::remove_file(folder.join("h.db"))?;
    fs::create_dir(folder.join("h.db"))?;
    let output = check(folder, &[]);
    ensure(output.stdout == plain.stdout && output.status.code() == Some(17 | 8), text(&output.stderr))?;
    let nowhere = mdfsck(folder, &["check", "live", "--history", "no/such/folder/h.db"]);
    ensure(nowhere.stdout == plain.stdout && nowhere.status.code() == Some(17 | 4), text(&nowhere.stderr))?;
    refused(&mdfsck(folder, &["history", "none.db"]), 8, &["none.db", "no such history"])?;
    refused(&mdfsck(folder, &["check", "live", "--history", "o", "--output", "o"]), 8, &["--output o", "--history"])?;
    refused_by_usage(&mdfsck(folder, &["check", "live", "--history", "o", "--estimate-only"]), &["--estimate-only"])
}

#[cfg(unix)]
fn full_disk(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    damaged(folder, "live", "bit-rot")?;
    let plain = mdfsck(folder, &["check", "live"]);
    let program = env!("CARGO_BIN_EXE_mdfsck");
    let limited = |blocks: u64| {
        let command = format!("ulimit -f {blocks}; exec '{program}' check live --history h.db");
        Command::new("sh").args(["-c", &command]).current_dir(folder).output().expect("a shell")
    };
    let output = limited(20);
    ensure(output.stdout == plain.stdout && output.status.code() == Some(17 | 4), text(&output.stderr))?;
    ensure(!folder.join("h.db").exists(), "no half of a history")?;
    ensure(text(&output.stderr).lines().filter(|line| line.contains("h.db")).count() == 1, text(&output.stderr))?;
    ensure(check(folder, &[]).status.code() == Some(17), "the first run")?;
    let before = ask(folder, &["runs"])?;
    // With this limit on the size of files, the write-ahead log of the next run cannot be written completely.
    let output = limited(16);
    ensure(output.stdout == plain.stdout && output.status.code() == Some(17 | 4), text(&output.stderr))?;
    ensure(text(&output.stderr).lines().filter(|line| line.contains("h.db")).count() == 1, text(&output.stderr))?;
    ensure(ask(folder, &["runs"])? == before, "nothing was recorded")?;
    ensure(check(folder, &[]).status.code() == Some(17), "and it can be used again")?;
    ensure(ask(folder, &["runs"])?.len() == 2, "the second run")?;
    // The history can be read even if the -shm file cannot be written.
    let asked = format!("ulimit -f 8; exec '{program}' history h.db runs --json");
    let output = Command::new("sh").args(["-c", &asked]).current_dir(folder).output().expect("a shell");
    ensure(output.status.success() && text(&output.stdout).lines().count() == 2, text(&output.stderr))
}

#[cfg(not(unix))]
fn full_disk(_: &Path) -> Result<(), Failed> {
    Ok(())
}

fn killed(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    damaged(folder, "hurt", "bit-rot")?;
    put(folder, "sound")?;
    check(folder, &[]);
    let mut recorded = 1;
    for round in 0..100_u64 {
        put(folder, if round % 2 == 0 { "hurt" } else { "sound" })?;
        let mut child = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
            .args(["check", "live", "--history", "h.db"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        thread::sleep(Duration::from_micros(round.wrapping_mul(7919) % 60_000));
        child.kill()?;
        child.wait()?;
        // The history must be readable, and each run must be recorded completely or not at all.
        let runs = ask(folder, &["runs"])?.len();
        ensure(runs == recorded || runs == recorded + 1, format!("{recorded} runs, then {runs}"))?;
        recorded = runs;
    }
    put(folder, "sound")?;
    check(folder, &[]);
    let open = ask(folder, &["findings"])?;
    ensure(open.is_empty(), format!("{open:?}"))
}

fn coverage(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    put(folder, "sound")?;
    let within = || mdfsck(folder, &["history", "h.db", "coverage", "--within", "1d", "--json"]);
    // The catalog determines the total number of relations, which are pairs of structures that must agree. The scope of
    // the check does not change this number.
    let mut total = None;
    for asked in [&["--physical-only"][..], &["--table", "dbo.orders"], &["--noindex"]] {
        check(folder, asked);
        let part = within();
        let line: Value = serde_json::from_str(&text(&part.stdout))?;
        ensure(part.status.code() == Some(16) && line["kept"] == false, format!("{asked:?} {line}"))?;
        let all = line["relations"]["total"].as_u64();
        ensure(all > Some(50) && (total.is_none() || total == all), format!("{asked:?} {line}"))?;
        ensure(line["relations"]["within"].as_u64() < all, format!("{asked:?} {line}"))?;
        total = all;
    }
    ensure(check(folder, &[]).status.code() == Some(0), "sound")?;
    let output = within();
    let line: Value = serde_json::from_str(&text(&output.stdout))?;
    ensure(output.status.code() == Some(0) && line["kept"] == true, line.to_string())?;
    ensure(line["pages_within"] == line["pages_in_use"] && line["never"] == 0, line.to_string())?;
    ensure(line["relations"]["within"].as_u64() == total, line.to_string())?;
    ensure(line["evidence"]["read"] == line["pages_in_use"], line.to_string())?;
    // Pages of an old backup count as read at the time of the backup.
    fs::remove_file(folder.join("h.db"))?;
    let backup = mdfsck(folder, &["lab", "backup", "sound", "-o", "b"]);
    ensure(backup.status.success(), text(&backup.stderr))?;
    mdfsck(folder, &["check", "b", "--history", "h.db"]);
    let output = within();
    let line: Value = serde_json::from_str(&text(&output.stdout))?;
    ensure(output.status.code() == Some(16) && line["kept"] == false, line.to_string())?;
    ensure(line["pages_within"] == 0 && line["oldest"]["at"].as_str().is_some_and(|at| at < "2026"), line.to_string())?;
    let text_of = text(&mdfsck(folder, &["history", "h.db", "coverage"]).stdout);
    ensure(text_of.contains("pages in use") && text_of.contains("checks of tables and indexes"), text_of)?;
    refused_by_usage(&mdfsck(folder, &["history", "h.db", "coverage", "--within", "soon"]), &["14d"])
}

fn acknowledged(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    damaged(folder, "hurt", "lost-write")?;
    put(folder, "hurt")?;
    let before = check(folder, &[]);
    let because = ["ack", "1", "--because", "is rebuilt on Sunday", "--until", "2999-12-31"];
    let done = mdfsck(folder, &[&["history", "h.db"], &because[..]].concat());
    ensure(text(&done.stdout) == "Finding 1 is acknowledged.\n", text(&done.stderr))?;
    let after = check(folder, &[]);
    ensure((&after.stdout, after.status) == (&before.stdout, before.status), "the report is the same")?;
    let known = |finding: &Value| finding["ack_text"] == "is rebuilt on Sunday";
    let findings = ask(folder, &["findings"])?;
    ensure(known(&findings[0]) && findings[0]["life"] == "confirmed" && !known(&findings[1]), findings[0].to_string())?;
    let shown = text(&mdfsck(folder, &["history", "h.db", "findings"]).stdout);
    ensure(shown.contains("until 2999-12-31 00:00: is rebuilt on Sunday"), shown)?;
    for image in ["sound", "hurt"] {
        put(folder, image)?;
        check(folder, &[]);
    }
    let findings = ask(folder, &["findings"])?;
    ensure(findings[0]["life"] == "new" && findings[0]["ack_by"].is_null(), findings[0].to_string())?;
    refused(&mdfsck(folder, &["history", "h.db", "ack", "99", "--because", "x"]), 8, &["no finding 99"])?;
    refused_by_usage(&mdfsck(folder, &["history", "h.db", "ack", "1"]), &["--because"])
}

fn forgotten(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    damaged(folder, "hurt", "lost-write")?;
    for image in ["sound", "hurt", "hurt"] {
        put(folder, image)?;
        check(folder, &[]);
    }
    let (objects, findings) = (ask(folder, &["objects"])?, ask(folder, &["findings"])?);
    let coverage = ask(folder, &["coverage"])?;
    let done = mdfsck(folder, &["history", "h.db", "forget", "--older", "2999-01-01"]);
    ensure(text(&done.stdout) == "2 runs forgotten.\n", text(&done.stderr))?;
    ensure(ask(folder, &["runs"])?.len() == 1, "the last run stays")?;
    ensure(ask(folder, &["findings"])? == findings && ask(folder, &["coverage"])? == coverage, "what is known stays")?;
    let counts = |objects: &[Value]| -> Vec<(Value, Value)> {
        objects.iter().map(|object| (object["object"].clone(), object["last_rows"].clone())).collect()
    };
    ensure(counts(&ask(folder, &["objects"])?) == counts(&objects), "and so does what was counted last")?;
    refused(&mdfsck(folder, &["history", "h.db", "forget", "other"]), 8, &["no database 'other'"])?;
    refused(&mdfsck(folder, &["history", "h.db", "runs", "--database", "other"]), 8, &["no database 'other'"])?;
    let done = mdfsck(folder, &["history", "h.db", "forget", "ORDERS"]);
    ensure(text(&done.stdout) == "1 database with 1 run forgotten.\n", text(&done.stderr))?;
    ensure(ask(folder, &[])?.is_empty() && ask(folder, &["findings", "--all"])?.is_empty(), "nothing is left")?;
    check(folder, &[]);
    ensure(lives(folder)? == [2, 0, 0], "and it can be used again")
}

/// The offset of the database name in the boot page (docs/format/boot-and-file-headers.md#boot-page).
const NAME_AT: usize = 96 + 0x34;

fn hostile_names(folder: &Path) -> Result<(), Failed> {
    new(folder, "live")?;
    let name = "a\0b'\";--\u{202e}\u{1b}[2J";
    edit(&folder.join("live/orders.mdf"), 9, |page| {
        let units = name.encode_utf16().chain(std::iter::repeat(0x20)).take(128);
        let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        page[NAME_AT..][..bytes.len()].copy_from_slice(&bytes);
        let length = 2 * name.encode_utf16().count() as u32;
        page[NAME_AT + bytes.len()..][..4].copy_from_slice(&length.to_le_bytes());
    });
    let output = check(folder, &[]);
    ensure(output.status.code().is_some_and(|code| code & 12 == 0), text(&output.stderr))?;
    let state = ask(folder, &[])?;
    let kept = state[0]["database"].as_str().ok_or("no name")?;
    ensure(kept.contains("'\";--\u{202e}\u{1b}[2J") && !kept.contains('\0'), format!("{kept:?}"))?;
    for verb in [&[][..], &["coverage"], &["runs"], &["findings"], &["objects"], &["baselines"]] {
        let shown = mdfsck(folder, &[&["history", "h.db"], verb].concat());
        ensure(shown.status.success() && !shown.stdout.contains(&0x1b), text(&shown.stdout))?;
        let only = mdfsck(folder, &[&["history", "h.db", "--database", kept], verb].concat());
        ensure(only.status.success(), text(&only.stderr))?;
    }
    Ok(())
}

fn failed_runs(folder: &Path) -> Result<(), Failed> {
    new(folder, "live")?;
    fs::write(folder.join("notes.mdf"), "my shopping list")?;
    let alone = mdfsck(folder, &["check", "notes.mdf", "--history", "h.db"]);
    ensure(alone.status.code() == Some(4), text(&alone.stderr))?;
    let both = mdfsck(folder, &["check", "notes.mdf", "live/orders.mdf", "--history", "h.db"]);
    ensure(both.status.code() == Some(4), text(&both.stderr))?;
    let runs = ask(folder, &["runs"])?;
    let verdicts: Vec<&str> = runs.iter().filter_map(|run| run["verdict"].as_str()).collect();
    ensure(
        verdicts.len() == 3 && verdicts.iter().filter(|verdict| **verdict == "failed").count() == 2,
        format!("{runs:?}"),
    )?;
    let failed = runs.iter().find(|run| run["verdict"] == "failed").ok_or("none")?;
    ensure(failed["error"].as_str().is_some_and(|error| error.contains("notes.mdf")), failed.to_string())?;
    ensure(failed["database"].is_null() && failed["exit_status"] == 4, failed.to_string())?;
    let csv = text(&mdfsck(folder, &["history", "h.db", "runs", "--csv"]).stdout);
    let head = csv.lines().next().unwrap_or_default();
    ensure(head.starts_with("ID,DatabaseName,SchemaName") && csv.lines().count() == 4, csv.clone())?;
    ensure(csv.contains("DBCC CHECKDB (orders),DBCC_CHECKDB,"), csv)?;
    refused(&mdfsck(folder, &["history", "h.db", "coverage", "--csv"]), 8, &["--csv"])
}

fn bench_baselines(folder: &Path) -> Result<(), Failed> {
    new(folder, "live")?;
    let bench = |more: &[&str]| {
        let few = ["bench", "live", "--repeat", "1", "--maxdop", "1", "--configurations", "full", "--history", "h.db"];
        mdfsck(folder, &[&few[..], more].concat())
    };
    let saved = bench(&["--save", "before"]);
    ensure(saved.status.success(), text(&saved.stderr))?;
    ensure(!folder.join(".mdfsck-bench").exists(), "the baseline is in the history")?;
    let compared = bench(&["--against", "before"]);
    ensure(compared.status.success() && text(&compared.stdout).contains('%'), text(&compared.stdout))?;
    let lines = ask(folder, &["baselines"])?;
    ensure(lines.iter().any(|line| line["kind"] == "baseline" && line["name"] == "before"), format!("{lines:?}"))?;
    refused(&bench(&["--against", "other"]), 8, &["other", "no such baseline", "--save other"])?;
    fs::write(folder.join("h.db"), "no history")?;
    refused(&bench(&["--save", "before"]), 8, &["h.db", "is not a history"])
}

fn other_tools(folder: &Path) -> Result<(), Failed> {
    new(folder, "sound")?;
    damaged(folder, "live", "bit-rot")?;
    check(folder, &[]);
    let query = |sql: &str| -> Result<String, Failed> {
        let output = Command::new("sqlite3").args(["-readonly", "h.db", sql]).current_dir(folder).output()?;
        ensure(output.status.success(), text(&output.stderr))?;
        Ok(text(&output.stdout).trim().to_owned())
    };
    ensure(query("PRAGMA integrity_check; PRAGMA foreign_key_check")? == "ok", "integrity")?;
    ensure(query("SELECT database, exit_status, verdict, findings FROM v_last")? == "orders|17|corrupt|4", "v_last")?;
    let open = query("SELECT life, msg FROM v_open_findings ORDER BY msg")?;
    ensure(open == "new|8928\nnew|8939\nnew|8976\nnew|8978", open)?;
    let pages = ask(folder, &["coverage"])?[0]["pages_in_use"].to_string();
    ensure(query("SELECT pages_in_use, pages_never_read FROM v_coverage")? == format!("{pages}|0"), "v_coverage")
}
