//! `mdfsck check --keep-parts`: a check of a full backup keeps its sums, and checks of later backups read only what has
//! changed. Their report must be that of a check that reads everything.

use serde_json::Value;

use super::*;

pub(super) fn with_changes() -> Vec<(&'static str, Test)> {
    vec![
        ("only what changed is read, and the report is that of a whole check", only_changes),
        ("a full backup alone is read whole, however often it is checked", alone),
        ("pages that were not read keep their dates", dates),
        ("all pages are read if something does not fit, and one line says why", whole),
        ("windows close one table after another, whatever has changed", windows),
        ("windows close single tables, and say nothing of others", single_tables),
        ("--reread reads pages again that were read too long ago", reread),
        ("watch proves differential and log backups by what changed", watched),
    ]
}

const FORMATS: [&[&str]; 3] = [&["--format", "text"], &["--format", "json"], &["--tableresults"]];
const KEEP: [&str; 6] = ["--history", "h.db", "--keep-parts", "1GB", "--part-pages", "8"];
const USE: [&str; 2] = ["--history", "h.db"];

fn check(folder: &Path, paths: &[&str], options: &[&str]) -> Output {
    mdfsck(folder, &[&["check"], paths, &["--progress", "none"], options].concat())
}

/// Makes the backups of a database in use, and a ledger of its full backup.
fn chain(folder: &Path, name: &str, options: &[&str]) -> Result<Vec<String>, Failed> {
    let sets = "full,diff,log,diff";
    let made = mdfsck(folder, &[&["lab", "chain", name, "--sets", sets, "--transactions", "40"], options].concat());
    ensure(made.status.success(), text(&made.stderr))?;
    let mut files: Vec<String> = fs::read_dir(folder.join(name))?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|file| !file.ends_with(".json"))
        .map(|file| format!("{name}/{file}"))
        .collect();
    files.sort();
    let base: Vec<&str> = files.iter().filter(|file| file.contains("_full")).map(String::as_str).collect();
    let kept = check(folder, &base, &KEEP);
    ensure(kept.status.code() == Some(0), text(&kept.stderr))?;
    Ok(files)
}

/// The files of some sets.
fn of<'f>(files: &'f [String], sets: &[&str]) -> Vec<&'f str> {
    let is_of = |file: &&str| sets.iter().any(|set| file.contains(set));
    files.iter().map(String::as_str).filter(is_of).collect()
}

/// The output without the lines that contain the cost of a run.
fn results(output: &Output) -> String {
    let costs = [r#"{"kind":"statistics""#, r#"{"kind":"summary""#];
    let stdout = text(&output.stdout);
    stdout.lines().filter(|line| !costs.iter().any(|start| line.starts_with(start))).collect::<Vec<_>>().join("\n")
}

/// The summary of a check with --json, without what depends on the way, and what it says about the way.
fn summary(output: &Output) -> Result<(Value, Value, Value), Failed> {
    let stdout = text(&output.stdout);
    let last = stdout.lines().last().ok_or_else(|| format!("no line: {}", text(&output.stderr)))?;
    let mut summary: Value = serde_json::from_str(last)?;
    let (by_change, why) = (summary["by_change"].take(), summary["not_by_change"].take());
    for cost in ["seconds", "phases", "memory_peak", "memory_granted", "spilled", "pages_read"] {
        summary[cost].take();
    }
    Ok((summary, by_change, why))
}

fn only_changes(folder: &Path) -> Result<(), Failed> {
    for (name, options) in
        [("plain", &["--seed", "3", "--checksum"][..]), ("packed", &["--seed", "4", "--compressed", "--stripes", "2"])]
    {
        let files = chain(folder, name, options)?;
        for sets in [&["_full", "02_diff"][..], &["_full", "02_diff", "03_log"], &["_full", "04_diff"]] {
            let paths = of(&files, sets);
            for format in FORMATS {
                let (whole, by_change) =
                    (check(folder, &paths, format), check(folder, &paths, &[format, &USE].concat()));
                ensure(results(&whole) == results(&by_change), format!("{sets:?} {format:?}"))?;
                ensure(whole.status == by_change.status, format!("{sets:?}: {:?}", by_change.status))?;
                let said = text(&by_change.stderr);
                ensure(said.contains("proven by change: ") && said.contains("base: Database of "), said)?;
            }
            let whole = summary(&check(folder, &paths, &["--json"]))?;
            let (of_change, by_change, why) =
                summary(&check(folder, &paths, &[&USE[..], &["--json", "--readers", "1"]].concat()))?;
            ensure(whole.0 == of_change && why.is_null(), format!("{} {of_change}", whole.0))?;
            let number = |name: &str| by_change[name].as_u64().unwrap_or_default();
            ensure(number("bytes_kept") > 500_000 && number("ranges") > number("ranges_swept"), by_change.to_string())?;
            let reasons = by_change["reasons"].as_object().into_iter().flatten();
            let swept: u64 = reasons.filter_map(|(_, count)| count.as_u64()).sum();
            ensure(swept == number("ranges_swept"), by_change.to_string())?;
        }
    }
    let listed = mdfsck(folder, &["history", "h.db", "ledgers", "--json"]);
    let lines = text(&listed.stdout);
    ensure(lines.lines().count() == 2 && lines.matches(r#""not_usable":null"#).count() == 2, lines)?;
    let listed = text(&mdfsck(folder, &["history", "h.db", "ledgers"]).stdout);
    ensure(listed.contains("full backup") && listed.matches("usable").count() == 2, listed)
}

fn alone(folder: &Path) -> Result<(), Failed> {
    let files = chain(folder, "c", &["--seed", "3"])?;
    let base = of(&files, &["_full"]);
    let expected = summary(&check(folder, &base, &["--json"]))?.0;
    for options in [&USE[..], &KEEP] {
        let (found, by_change, why) = summary(&check(folder, &base, &[options, &["--json"]].concat()))?;
        ensure(found == expected && by_change.is_null() && why.is_null(), by_change.to_string())?;
    }
    Ok(())
}

/// The dates at which the pages of the database were read.
fn read_dates(folder: &Path) -> Result<Vec<String>, Failed> {
    let covered = text(&mdfsck(folder, &["history", "h.db", "coverage", "--json"]).stdout);
    let line: Value = serde_json::from_str(covered.lines().next().ok_or("no line")?)?;
    let text = line.to_string();
    Ok(text.split('"').filter(|word| word.starts_with("20") && word.contains('T')).map(str::to_owned).collect())
}

fn dates(folder: &Path) -> Result<(), Failed> {
    let files = chain(folder, "c", &["--seed", "3"])?;
    let before = read_dates(folder)?;
    let output = check(folder, &of(&files, &["_full", "02_diff"]), &[&USE[..], &["--json"]].concat());
    ensure(summary(&output)?.1["bytes_kept"].as_u64() > Some(0), text(&output.stdout))?;
    let after = read_dates(folder)?;
    let oldest = |dates: &[String]| dates.iter().min().cloned();
    ensure(oldest(&before).is_some() && oldest(&before) == oldest(&after), format!("{before:?} {after:?}"))
}

const WINDOW: [&str; 4] = ["--window", "1h", "--most-ranges", "30"];

/// The last line of the output of a window, which is about the window.
fn window_line(output: &Output) -> Result<Value, Failed> {
    let stdout = text(&output.stdout);
    let line = stdout.lines().find(|line| line.starts_with(r#"{"kind":"window""#));
    Ok(serde_json::from_str(line.ok_or_else(|| text(&output.stderr))?)?)
}

fn windows(folder: &Path) -> Result<(), Failed> {
    let made = ["lab", "chain", "c", "--sets", "full,diff,diff", "--transactions", "40", "--seed", "5"];
    ensure(mdfsck(folder, &made).status.success(), "no chain")?;
    let states = [vec!["c/01_full.bak", "c/02_diff.bak"], vec!["c/01_full.bak", "c/03_diff.bak"]];
    let mut first_known = Vec::new();
    for (night, state) in states.iter().enumerate() {
        if night > 0 {
            let asked = ["--estimate-only", "--history", "h.db", "--keep-parts", "1GB", "--window", "1h", "--json"];
            let line: Value = serde_json::from_str(&text(&check(folder, state, &asked).stdout))?;
            ensure(line["new_bytes"].as_u64() > Some(0), line.to_string())?;
        }
        let whole = check(folder, state, &["--json"]);
        let (mut closed, mut known) = (Vec::new(), Vec::new());
        for round in 0..20 {
            let output = check(folder, state, &[&KEEP[..], &WINDOW, &["--json"]].concat());
            ensure(output.status.code() == Some(0), text(&output.stderr))?;
            let done = window_line(&output)?["done"].take();
            closed.push(done["tables_closed"].as_u64().ok_or("no number")?);
            known.push(done["image_bytes_done"].as_u64());
            ensure(done["tables"].as_u64() >= closed.last().copied(), done.to_string())?;
            if round == 0 {
                estimated(folder, state, &done)?;
            }
            let is_open = text(&output.stdout).contains("window.table-open");
            ensure(is_open != (done["is_closed"] == true), done.to_string())?;
            if done["is_closed"] == true {
                let said: String = results(&output)
                    .lines()
                    .filter(|line| !line.starts_with(r#"{"kind":"window""#))
                    .collect::<Vec<_>>()
                    .join("\n");
                ensure(said == results(&whole), format!("{state:?}, round {round}"))?;
                break;
            }
            ensure(round < 19, "the windows never end")?;
        }
        ensure(closed.is_sorted(), format!("{closed:?}"))?;
        ensure(known.is_sorted(), format!("{known:?}"))?;
        first_known.push(known[0]);
    }
    // What has not changed since the windows over the earlier state is known in the first window over the later one.
    ensure(first_known[1] > first_known[0], format!("{first_known:?}"))?;
    let output = check(folder, &states[1], &[&KEEP[..], &WINDOW, &["--format", "text"]].concat());
    let said = text(&output.stdout);
    ensure(said.contains("closed).\nRead: ") && said.contains(" tables of this state; the oldest proof is "), said)?;
    let tables = text(&mdfsck(folder, &["history", "h.db", "tables", "--json"]).stdout);
    let rows: Vec<Value> = tables.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let is_proven = |row: &Value| row["is_sound"] == true && row["proven_at"].is_string() && row["read_at"].is_string();
    ensure(!rows.is_empty() && rows.iter().all(is_proven), tables)
}

/// An estimate after a window says what the window has left, and changes nothing.
fn estimated(folder: &Path, state: &[&str], done: &Value) -> Result<(), Failed> {
    let kept = || -> Result<Vec<Vec<u8>>, Failed> {
        let files = fs::read_dir(folder.join("h.db.parts"))?;
        files.map(|file| Ok(fs::read(file?.path())?)).collect()
    };
    let before = kept()?;
    let asked = ["--estimate-only", "--history", "h.db", "--keep-parts", "1GB", "--window", "1h"];
    let output = check(folder, state, &[&asked[..], &["--json"]].concat());
    ensure(output.status.code() == Some(0), text(&output.stderr))?;
    let line: Value = serde_json::from_str(&text(&output.stdout))?;
    ensure(line["tables"] == done["tables"], format!("{line} {done}"))?;
    // A table with pages in ranges that every window reads is closed only in the window.
    ensure(line["tables_closed"].as_u64() <= done["tables_closed"].as_u64(), format!("{line} {done}"))?;
    ensure(line["left_bytes"].as_u64() > Some(0) && line["windows_left"].as_u64() >= Some(1), line.to_string())?;
    let said = text(&check(folder, state, &asked).stderr);
    ensure(said.contains(" are closed; ") && said.contains(" are left"), said)?;
    ensure(kept()? == before, "an estimate changes no ledger")
}

fn single_tables(folder: &Path) -> Result<(), Failed> {
    let made = ["lab", "chain", "c", "--sets", "full,diff", "--transactions", "40", "--seed", "5"];
    ensure(mdfsck(folder, &made).status.success(), "no chain")?;
    let paths = ["c/01_full.bak", "c/02_diff.bak"];
    let listed = text(&check(folder, &paths, &["--json"]).stdout);
    let objects: Vec<Value> = listed
        .lines()
        .filter(|line| line.starts_with(r#"{"kind":"object""#))
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let largest = objects.iter().filter(|object| object["object_id"].as_i64() > Some(100));
    let largest = largest.max_by_key(|object| object["rows"].as_u64()).ok_or("no table")?;
    let table =
        format!("{}.{}", largest["schema"].as_str().ok_or("no schema")?, largest["name"].as_str().ok_or("no name")?);
    for (scope, most) in [(&["--table", table.as_str()][..], "1"), (&["--filegroup", "PRIMARY"], "20")] {
        let whole = check(folder, &paths, &[scope, &["--json"]].concat());
        let mut rounds = 0;
        loop {
            rounds += 1;
            let short = ["--window", "1h", "--most-ranges", most, "--weight", &format!("{table}=3"), "--json"];
            let output = check(folder, &paths, &[&KEEP[..], &short, scope].concat());
            ensure(output.status.code() == Some(0), text(&output.stderr))?;
            let done = window_line(&output)?["done"].take();
            let said: Vec<String> = results(&output)
                .lines()
                .filter(|line| !line.starts_with(r#"{"kind":"window""#))
                .map(str::to_owned)
                .collect();
            let is_open = said.iter().any(|line| line.contains("window.table-open"));
            ensure(is_open != (done["is_closed"] == true), done.to_string())?;
            if scope[0] == "--table" {
                ensure(done["tables"] == 1, done.to_string())?;
            }
            if done["is_closed"] == true {
                ensure(said.join("\n") == results(&whole), format!("{scope:?}, round {rounds}"))?;
                break;
            }
            ensure(rounds < 60, "the windows never end")?;
        }
        ensure(rounds > 1, format!("{scope:?} needs several windows"))?;
        let text_of = text(&check(folder, &paths, &[&KEEP[..], &WINDOW, scope, &["--format", "text"]].concat()).stdout);
        ensure(text_of.contains("Closed: ") && !text_of.contains("\nRead: "), text_of)?;
    }
    let listed = text(&mdfsck(folder, &["history", "h.db", "ledgers"]).stdout);
    ensure(listed.contains(", tables ") && listed.contains(", filegroup 1"), listed)?;
    let without = check(folder, &paths, &["--history", "h.db", "--window", "1h", "--table", &table]);
    ensure(without.status.code() == Some(8) && text(&without.stderr).contains("--keep-parts"), text(&without.stderr))?;
    let unknown = check(folder, &paths, &[&KEEP[..], &WINDOW, &["--weight", "Nowhere=2"]].concat());
    ensure(unknown.status.code() == Some(8), text(&unknown.stderr))?;
    ensure(text(&unknown.stderr).contains("no database with this name is checked"), text(&unknown.stderr))
}

fn reread(folder: &Path) -> Result<(), Failed> {
    let files = chain(folder, "c", &["--seed", "3"])?;
    let paths = of(&files, &["_full", "02_diff"]);
    let reasons = |options: &[&str]| -> Result<Value, Failed> {
        let output = check(folder, &paths, &[&USE[..], options, &["--json"]].concat());
        Ok(summary(&output)?.1["reasons"].take())
    };
    let before = reasons(&["--reread", "7d"])?;
    ensure(before["again"].is_null(), before.to_string())?;
    // Times are in seconds.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let again = reasons(&["--reread", "1s"])?;
    ensure(again["again"].as_u64() > Some(10), again.to_string())
}

fn whole(folder: &Path) -> Result<(), Failed> {
    let files = chain(folder, "c", &["--seed", "3"])?;
    let paths = of(&files, &["_full", "02_diff"]);
    let expected = results(&check(folder, &paths, &["--json"]));
    let why = |options: &[&str]| -> Result<String, Failed> {
        let (_, by_change, why) = summary(&check(folder, &paths, &[&USE[..], &["--json"], options].concat()))?;
        ensure(by_change.is_null(), by_change.to_string())?;
        Ok(why.as_str().unwrap_or_default().to_owned())
    };
    ensure(why(&["--physical-only"])?.contains("--physical-only"), "physical only")?;
    ensure(why(&["--constraints"])?.contains("--constraints"), "constraints")?;
    // The full backup is another file now.
    let base = folder.join(of(&files, &["_full"])[0]);
    let bytes = fs::read(&base)?;
    fs::write(&base, &bytes)?;
    let output = check(folder, &paths, &[&USE[..], &["--json"]].concat());
    ensure(results(&output) == expected, "the report of a whole check")?;
    ensure(
        text(&output.stderr).contains("all pages were read: ") && text(&output.stderr).contains("was changed"),
        text(&output.stderr),
    )?;
    let listed = text(&mdfsck(folder, &["history", "h.db", "ledgers"]).stdout);
    ensure(listed.contains("not usable: "), listed)?;
    // Something else is in the place of the ledger.
    let folder_of_ledgers = folder.join("h.db.parts");
    for ledger in fs::read_dir(&folder_of_ledgers)? {
        fs::write(ledger?.path(), b"something else")?;
    }
    let output = check(folder, &paths, &[&USE[..], &["--json"]].concat());
    ensure(results(&output) == expected && !summary(&output)?.2.is_null(), text(&output.stderr))?;
    // A new check of the full backup replaces it.
    check(folder, &of(&files, &["_full"]), &KEEP);
    let output = check(folder, &paths, &[&USE[..], &["--json"]].concat());
    ensure(results(&output) == expected && !summary(&output)?.1.is_null(), text(&output.stderr))?;
    let refused = mdfsck(folder, &["check", "c", "--keep-parts", "1GB"]);
    ensure(refused.status.code() == Some(8) && text(&refused.stderr).contains("--history"), text(&refused.stderr))
}

fn watched(folder: &Path) -> Result<(), Failed> {
    let made = mdfsck(folder, &["lab", "chain", "c", "--sets", "full,diff,log", "--transactions", "40", "--seed", "3"]);
    ensure(made.status.success(), text(&made.stderr))?;
    fs::create_dir(folder.join("b"))?;
    let watch = ["watch", "b", "--history", "h.db", "--once", "--settle", "1s", "--keep-parts", "1GB"];
    fs::copy(folder.join("c/01_full.bak"), folder.join("b/full.bak"))?;
    let first = mdfsck(folder, &watch);
    ensure(first.status.code() == Some(0), text(&first.stderr))?;
    ensure(fs::read_dir(folder.join("h.db.parts"))?.count() == 1, "one ledger")?;
    fs::copy(folder.join("c/02_diff.bak"), folder.join("b/diff.bak"))?;
    let second = mdfsck(folder, &watch);
    ensure(second.status.code() == Some(0), text(&second.stderr))?;
    ensure(text(&second.stderr).contains("proven by change: "), text(&second.stderr))?;
    fs::copy(folder.join("c/03_log.trn"), folder.join("b/log.trn"))?;
    let third = mdfsck(folder, &watch);
    ensure(third.status.code() == Some(0), text(&third.stderr))?;
    ensure(text(&third.stderr).contains("proven by change: Transaction Log of "), text(&third.stderr))?;
    // Without its ledger, the state cannot be proven, and the blocks of the next log backup are read.
    let runs = |folder: &Path| text(&mdfsck(folder, &["history", "h.db", "runs", "--json"]).stdout).lines().count();
    ensure(runs(folder) == 3, "a run for each backup")?;
    fs::remove_dir_all(folder.join("h.db.parts"))?;
    fs::copy(folder.join("c/03_log.trn"), folder.join("b/again.trn"))?;
    let fourth = mdfsck(folder, &watch);
    ensure(fourth.status.code() == Some(0) && !text(&fourth.stderr).contains("proven"), text(&fourth.stderr))
}
