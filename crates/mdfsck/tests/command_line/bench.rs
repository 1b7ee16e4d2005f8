//! `mdfsck bench`: its output files and comparisons. If a configuration cannot run, the benchmark must continue with
//! the others.

use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use serde_json::Value;

use super::{Test, ensure, mdfsck, refused, text};

pub(crate) fn measurements() -> Vec<(&'static str, Test)> {
    vec![
        ("bench writes what was measured, on what, and keeps a baseline", results),
        ("bench marks a cell that cannot run and goes on", failed_cells),
        ("bench reads what was saved, and says which baselines it cannot read", baselines),
        ("bench measures checks of backups", backups),
        ("bench refuses what it could not write, and wrong values, before it measures", refusals),
    ]
}

fn sample(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "s", "--size", "9MB"]).status.success(), "lab new")
}

fn json(path: &Path) -> Result<Value, Failed> {
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

fn results(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let arguments = ["bench", "--repeat", "2", "--configurations", "full,physical/both", "--maxdop", "0,1"];
    let files = ["--save", "before", "--html", "b.html", "--csv", "b.csv", "--json", "b.json", "s"];
    let output = mdfsck(folder, &[&arguments[..], &files].concat());
    ensure(output.status.code() == Some(0), text(&output.stderr))?;
    let stdout = text(&output.stdout);
    let processors = std::thread::available_parallelism()?.get().to_string();
    // `--maxdop 0` means the number of processors. With one processor, `0` and `1` are the same configuration.
    let cells = if processors == "1" { 2 } else { 4 };
    let table: Vec<&str> = stdout.lines().take_while(|line| !line.is_empty()).collect();
    let dops: Vec<&str> = table.iter().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    ensure(dops.len() == cells && dops.iter().all(|dop| *dop == "1" || *dop == processors), stdout.clone())?;
    ensure(stdout.contains("\nsystem ") && stdout.contains("\ndatabase  ") && stdout.contains(" rows\n"), stdout)?;

    let results = json(&folder.join("b.json"))?;
    ensure(results["cells"].as_array().map(Vec::len) == Some(cells), "cells")?;
    ensure(results["database"]["name"] == "orders" && results["database"]["rows"].as_u64() > Some(1000), "database")?;
    ensure(
        results["machine"]["processors"].as_u64().map(|count| count.to_string()).as_ref() == Some(&processors),
        "machine",
    )?;
    ensure(results["raw"][0]["seconds"].as_array().map(Vec::len) == Some(2), "a raw read in each round")?;
    ensure(results["raw"][0]["bytes"] == results["database"]["bytes"], "all of the files is read")?;
    ensure(results["date"].as_str().is_some_and(|date| date.ends_with('Z')) && results["repeat"] == 2, "date")?;

    let csv = fs::read_to_string(folder.join("b.csv"))?;
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().ok_or("heads")?;
    ensure(heads[..6] == ["configuration", "dop", "memory_bytes", "cache", "runs", "median_s"], csv.clone())?;
    let column = |name: &str| heads.iter().position(|head| *head == name).ok_or_else(|| name.to_owned());
    let figures = column("median_s")?..column("baseline_median_s")?;
    let lines: Vec<Vec<&str>> = lines.collect();
    let is_plain = |value: &&str| value.is_empty() || value.parse::<f64>().is_ok();
    ensure(lines.len() == cells && lines.iter().all(|line| line[figures.clone()].iter().all(is_plain)), &csv)?;
    ensure(lines[0][column("database_version")?] == "852" && !lines[0][column("mdfsck_version")?].is_empty(), csv)?;

    let page = fs::read_to_string(folder.join("b.html"))?;
    for part in [
        "<svg viewBox=",
        "name=viewport",
        "prefers-color-scheme:dark",
        "<dt>system",
        "href=#s1>Elapsed time<",
        "<h2 id=s1>Elapsed time<",
        "Reading alone, cached",
    ] {
        ensure(page.contains(part), part)?;
    }
    ensure(!page.contains("http") && !page.contains("<script"), "a page that needs nothing else")?;
    ensure(page.matches("<svg").count() == page.matches("</figcaption><svg").count(), "captions are above charts")?;

    let output = mdfsck(folder, &[&arguments[..], &["--against", "before", "--html", "c.html", "s"]].concat());
    ensure(output.status.code() == Some(0), text(&output.stderr))?;
    ensure(!text(&output.stderr).contains("differs"), text(&output.stderr))?;
    let page = fs::read_to_string(folder.join("c.html"))?;
    ensure(page.matches("<rect class=then").count() == cells && page.contains("the baseline before of "), "drawn")
}

fn failed_cells(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let arguments = ["bench", "--repeat", "1", "--maxdop", "1", "--memory", "1MB,100MB"];
    let files = ["--html", "b.html", "--csv", "b.csv", "--json", "b.json", "s"];
    let output = mdfsck(folder, &[&arguments[..], &files].concat());
    let stdout = text(&output.stdout);
    ensure(output.status.code() == Some(16), text(&output.stderr))?;
    ensure(stdout.matches("could not run: --memory 1 MB: this check needs ").count() == 2, stdout.clone())?;
    ensure(stdout.lines().filter(|line| line.contains("100 MB  warm")).count() == 2, stdout.clone())?;
    let results = json(&folder.join("b.json"))?;
    ensure(results["cells"][0]["error"].is_string() && results["cells"][2]["error"].is_null(), "error")?;
    let page = fs::read_to_string(folder.join("b.html"))?;
    ensure(page.matches(">could not run<").count() == 2 && page.contains("this check needs "), "marked")?;
    ensure(fs::read_to_string(folder.join("b.csv"))?.matches("this check needs ").count() == 2, "csv")?;
    // If a check takes only a few milliseconds, its rate is not printed, and the remark says why.
    const RATE: usize = 11;
    for cell in stdout.lines().filter(|line| line.contains("100 MB  warm")) {
        let has_rate = cell.split_whitespace().nth(RATE).is_some_and(|rate| rate != "-");
        ensure(cell.contains("too small to measure; try --size 2GB") != has_rate, cell)?;
    }
    let output = mdfsck(folder, &["bench", "--repeat", "1", "--memory", "1MB", "s"]);
    ensure(output.status.code() == Some(20), "nothing could run")
}

fn baselines(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let saved = folder.join(".mdfsck-bench");
    fs::create_dir(&saved)?;
    // Writes a result of an earlier program version, which did not store the machine and the database.
    let old = r#"{"kind": "bench", "v": 1, "version": "0.1.0", "files": ["a"], "processors": 2, "cells": [{"cell": "x",
        "configuration": "full", "maxdop": 1, "memory": null, "cache": "warm", "counters": {}, "runs": [{"seconds": 99.0,
        "bytes": 1.0, "cpu_seconds": 1.0, "read_wait_seconds": 0.0, "idle_seconds": 0.0, "spilled_bytes": 0.0,
        "memory_peak": 1.0, "findings": 0, "counters": {}, "series": []}]}]}"#;
    fs::write(saved.join("old.json"), old)?;
    let against = |name: &str| {
        let arguments = ["bench", "--repeat", "1", "--maxdop", "1", "--configurations", "full", "--csv", "o.csv"];
        mdfsck(folder, &[&arguments[..], &["--against", name, "s"]].concat())
    };
    ensure(against("old").status.code() == Some(0), text(&against("old").stderr))?;
    ensure(fs::read_to_string(folder.join("o.csv"))?.contains(",99.000,-"), "compared with 99 seconds")?;
    fs::write(saved.join("newer.json"), old.replace("\"v\": 1", "\"v\": 2"))?;
    fs::write(saved.join("cut.json"), &old[..old.len() / 2])?;
    fs::write(saved.join("other.json"), old.replace("\"bench\"", "\"check\""))?;
    for (name, cause) in [("newer", "newer than this mdfsck"), ("cut", "line"), ("other", "'check'")] {
        refused(&against(name), 8, &[name, cause, "the baseline cannot be read", "save it again with --save"])?;
    }
    refused(&against("never"), 8, &["never", "no such baseline", "--save never"])
}

fn backups(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let written = mdfsck(folder, &["lab", "backup", "s", "-o", "b"]);
    let backup = text(&written.stdout).lines().next().unwrap_or_default().to_owned();
    let output = mdfsck(folder, &["bench", "--repeat", "1", "--json", "b.json", &backup]);
    ensure(output.status.code() == Some(0), text(&output.stderr))?;
    let results = json(&folder.join("b.json"))?;
    ensure(results["database"]["bytes"].as_u64() == Some(folder.join(&backup).metadata()?.len()), "bytes")?;
    refused(&mdfsck(folder, &["bench", "-"]), 8, &["-: ", "standard input", "only once"])
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    refused(&mdfsck(folder, &["bench", "--repeat", "0", "s"]), 8, &["--repeat"])?;
    refused(&mdfsck(folder, &["bench", "--html", "s/orders.mdf", "s"]), 8, &["orders.mdf", "SQL Server file"])?;
    refused(&mdfsck(folder, &["bench", "--csv", "missing/b.csv", "s"]), 4, &["missing"])?;
    refused(&mdfsck(folder, &["bench", "--save", "a/b", "s"]), 8, &["a/b", "letters"])?;
    refused(&mdfsck(folder, &["bench", "nowhere.mdf"]), 4, &["nowhere.mdf"])
}
