//! `mdfsck compare-dbcc`. The results of the server are those that `mdfsck check` prints in DBCC's forms, changed in
//! known ways.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::Failed;
use serde_json::Value;

use super::{Test, ensure, mdfsck, refused, refused_by_usage, text};

pub(crate) fn comparisons() -> Vec<(&'static str, Test)> {
    vec![
        ("compare-dbcc finds no difference between the files and what was printed about them", no_difference),
        ("compare-dbcc says what only the server and what only mdfsck found", differences),
        ("compare-dbcc reads results from standard input, and says which files it refuses", refusals),
        ("compare-dbcc takes the options of the server's run", options),
    ]
}

/// A sound database, a damaged copy, and the results about both as rows and as text.
fn sample(folder: &Path) -> Result<(), Failed> {
    let run = |arguments: &[&str]| {
        let output = mdfsck(folder, arguments);
        ensure(output.status.code().is_some_and(|status| status & !17 == 0), text(&output.stderr))
    };
    run(&["lab", "new", "s", "--size", "9MB"])?;
    run(&["lab", "damage", "s", "-o", "hurt", "--kind", "bit-rot", "--seed", "3"])?;
    for name in ["s", "hurt"] {
        run(&["check", "--tableresults", "--output", &format!("{name}.csv"), name])?;
        run(&["check", "--format", "text", "--output", &format!("{name}.txt"), name])?;
    }
    Ok(())
}

fn compared(folder: &Path, arguments: &[&str]) -> Result<(Option<i32>, Vec<Value>), Failed> {
    let output = mdfsck(folder, &[&["compare-dbcc", "--json"], arguments].concat());
    let lines = text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    Ok((output.status.code(), lines))
}

fn no_difference(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    for (result, form) in [("hurt.csv", "table"), ("hurt.txt", "text")] {
        let (status, lines) = compared(folder, &[result, "hurt", "--exit-zero-on-incomplete"])?;
        let (head, last) = (&lines[0], lines.last().ok_or("no line")?);
        ensure(status == Some(0), format!("{result}: {status:?} {last}"))?;
        ensure(head["form"] == form && head["whole"] == true && head["server_database"] == "orders", head.to_string())?;
        let found = mdfsck(folder, &["check", "--json", "hurt"]);
        let found = text(&found.stdout).lines().filter(|line| line.contains("\"kind\":\"finding\"")).count();
        ensure(last["both"] == found && found > 2 && last["differs"] == false, last.to_string())?;
        ensure(last["counts_differ"] == 0 && last["counts_equal"].as_u64() > Some(20), last.to_string())?;
    }
    // What could not be verified keeps its bit.
    ensure(mdfsck(folder, &["compare-dbcc", "hurt.csv", "hurt"]).status.code() == Some(16), "16")?;
    let output = mdfsck(folder, &["compare-dbcc", "s.txt", "s"]);
    let stdout = text(&output.stdout);
    ensure(output.status.code() == Some(0) && stdout.contains("\nNothing differs beyond what is explained.\n"), stdout)
}

fn differences(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let (status, lines) = compared(folder, &["hurt.csv", "s"])?;
    ensure(status == Some(1), format!("{status:?}"))?;
    let of = |state: &str| lines.iter().filter(|line| line["kind"] == "compared" && line["state"] == state).count();
    ensure(of("server-only") > 2 && of("both") == 0 && of("mdfsck-only") == 0, format!("{lines:?}"))?;
    let (status, lines) = compared(folder, &["s.csv", "hurt"])?;
    ensure(status == Some(17), format!("{status:?}"))?;
    let own = lines.iter().filter(|line| line["state"] == "mdfsck-only").all(|line| line["server"].is_null());
    ensure(own && lines.iter().any(|line| line["state"] == "mdfsck-only"), format!("{lines:?}"))?;
    // A cut-off file has fewer errors than its last line counts.
    let whole = fs::read_to_string(folder.join("hurt.csv"))?;
    let first = whole.lines().position(|line| line.contains(",16,")).ok_or("no error")?;
    let cut: Vec<&str> = whole.lines().enumerate().filter(|(at, _)| *at != first).map(|(_, line)| line).collect();
    fs::write(folder.join("cut.csv"), cut.join("\n"))?;
    let output = mdfsck(folder, &["compare-dbcc", "cut.csv", "hurt"]);
    let stdout = text(&output.stdout);
    ensure(output.status.code() == Some(17) && stdout.contains("errors, but the results contain"), stdout)
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.args(["compare-dbcc", "-", "s"]).current_dir(folder).stdin(File::open(folder.join("s.csv"))?);
    ensure(command.stdout(Stdio::piped()).output()?.status.code() == Some(0), "standard input")?;
    let of = |arguments: &[&str]| mdfsck(folder, &[&["compare-dbcc"], arguments].concat());
    refused(
        &of(&["s/orders.mdf", "s.csv"]),
        8,
        &["s/orders.mdf: is a SQL Server file; the results of CHECKDB come first"],
    )?;
    refused(&of(&["missing.csv", "s"]), 4, &["missing.csv: cannot be read"])?;
    refused(&of(&["s.csv", "missing"]), 4, &["missing"])?;
    refused(&of(&["-", "-"]), 8, &["standard input can hold the results or a backup, but not both"])?;
    refused_by_usage(&of(&["s.csv"]), &["PATH"])?;
    fs::write(folder.join("notes.txt"), "Dear all,\nwe found no errors.\n")?;
    refused(&of(&["notes.txt", "s"]), 8, &["notes.txt: no message of DBCC was found"])?;
    let both = fs::read_to_string(folder.join("s.txt"))?;
    fs::write(folder.join("two.txt"), format!("{both}{}", both.replace("'orders'", "'other'")))?;
    refused(&of(&["two.txt", "s"]), 8, &["the databases 'orders' and 'other'"])?;
    File::create(folder.join("large.csv"))?.set_len(65 << 20)?;
    refused(&of(&["large.csv", "s"]), 8, &["large.csv: is larger than 64 MB"])
}

fn options(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let results = ["check", "--physical-only", "--tableresults", "--output", "p.csv", "hurt"];
    ensure(mdfsck(folder, &results).status.code() == Some(1), "physical only")?;
    ensure(compared(folder, &["p.csv", "hurt", "--physical-only"])?.0 == Some(0), "the same options")?;
    let (status, lines) = compared(folder, &["p.csv", "hurt"])?;
    let only = lines.iter().filter(|line| line["state"] == "mdfsck-only").count();
    ensure(status == Some(17) && only > 0, format!("{status:?}, {only}"))
}
