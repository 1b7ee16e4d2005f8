//! The small commands, which show the type of a file, its tables or a single page. Also tests the answers to wrong
//! command lines.

use std::fs;
use std::path::Path;

use format::page::PAGE_BYTES;
use libtest_mimic::Failed;
use serde_json::Value;

use super::{Test, ensure, mdfsck, refused, text};

pub(crate) fn looks() -> Vec<(&'static str, Test)> {
    vec![
        ("without the boot page, tables lists what it finds, and lint says nothing", no_catalog),
        ("tables has sizes, a total and an order", sizes),
        ("info says what a log file is, names the collation, and counts nothing special as such", info),
        ("an address of a page is understood as messages and DBCC PAGE write it", addresses),
        ("every JSON line has its kind, and the first its version", kinds),
        ("a failure is a JSON line where results would be", failures),
        ("findings in JSON name their index", index_names),
        ("--output - is standard output, and -o is --output", outputs),
        ("help, -v and the pages of nested commands are found as people ask for them", help),
    ]
}

fn sample(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "s", "--size", "9MB"]).status.success(), "lab new")
}

fn lines(bytes: &[u8]) -> Result<Vec<Value>, Failed> {
    Ok(text(bytes).lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn no_catalog(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let mut bytes = fs::read(folder.join("s/orders.mdf"))?;
    bytes[9 * PAGE_BYTES..10 * PAGE_BYTES].fill(0);
    fs::write(folder.join("a.mdf"), bytes)?;
    refused(&mdfsck(folder, &["lint", "a.mdf"]), 4, &["boot page", "cannot be found"])?;
    for command in ["lint", "tables"] {
        let output = mdfsck(folder, &[command, "--json", "a.mdf"]);
        let lines = lines(&output.stdout)?;
        ensure(output.status.code() == Some(4), text(&output.stdout))?;
        let last = lines.last().ok_or("no lines")?;
        ensure(last["kind"] == "error" && last["status"] == 4, text(&output.stdout))?;
        let tables = lines.iter().filter(|line| line["kind"] == "table" && line["rests_on"].is_string()).count();
        ensure((tables > 5) == (command == "tables"), text(&output.stdout))?;
    }
    let tables = text(&mdfsck(folder, &["tables", "a.mdf"]).stdout);
    ensure(tables.contains("order_lines") && tables.contains("catalog pages found by their headers"), tables)
}

fn sizes(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let output = text(&mdfsck(folder, &["tables", "s"]).stdout);
    let heads: Vec<&str> = output.lines().next().unwrap_or_default().split_whitespace().collect();
    ensure(heads == ["object", "index", "type", "properties", "partition", "rows", "pages", "MB", "key"], &output)?;
    let json = |sort: &str| lines(&mdfsck(folder, &["tables", "--json", "--sort", sort, "s"]).stdout);
    let numbers = |sort: &str, key: &str| -> Result<Vec<i64>, Failed> {
        Ok(json(sort)?.iter().filter_map(|line| line[key].as_i64()).collect())
    };
    for (sort, key) in [("size", "pages_in_catalog"), ("rows", "rows_in_catalog")] {
        let numbers = numbers(sort, key)?;
        ensure(numbers.len() > 5 && numbers.is_sorted_by(|a, b| a >= b), format!("{sort}: {numbers:?}"))?;
    }
    let total = output.lines().find(|line| line.starts_with("total")).ok_or("no total")?;
    let total: Vec<&str> = total.split_whitespace().skip(1).collect();
    let pages: i64 = numbers("name", "pages_in_catalog")?.iter().sum();
    let tables = json("name")?.into_iter().filter(|line| line["index_id"].as_i64() < Some(2));
    let rows: i64 = tables.filter_map(|line| line["rows_in_catalog"].as_i64()).sum();
    let megabytes = format!("{:.1}", pages as f64 / 128.0);
    ensure(total == [rows.to_string(), pages.to_string(), megabytes], format!("{total:?} {rows} {pages}"))?;
    ensure(mdfsck(folder, &["tables", "--sort", "colour", "s"]).status.code() == Some(8), "no such order")
}

fn info(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "crash", "c"]).status.success(), "lab crash")?;
    let log = "c/workload_log.ldf";
    let output = mdfsck(folder, &["info", log]);
    ensure(output.status.code() == Some(0), text(&output.stderr))?;
    for word in [log, "transaction log file", "mdfsck log"] {
        ensure(text(&output.stdout).contains(word), text(&output.stdout))?;
    }
    let line = lines(&mdfsck(folder, &["info", "--json", log]).stdout)?;
    let bytes = folder.join(log).metadata()?.len();
    ensure(line[0]["kind"] == "log_file" && line[0]["bytes"].as_u64() == Some(bytes), format!("{line:?}"))?;
    let output = text(&mdfsck(folder, &["info", "c"]).stdout);
    ensure(output.contains("not shut down cleanly: the log may hold changes"), &output)?;
    ensure(output.contains("SQL_Latin1_General_CP1_CI_AS (ID 0x3400d008)"), &output)?;
    ensure(output.contains("DBCC CHECKDB checks the purity of data by default"), output)
}

fn addresses(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let expected = mdfsck(folder, &["page", "1:153", "s"]).stdout;
    for address in [&["(1:153)"][..], &["1,153"], &["1 153"], &["(1:153:2)"], &["1", "153"]] {
        let output = mdfsck(folder, &[&["page"], address, &["s"]].concat());
        ensure(output.status.success() && output.stdout == expected, format!("{address:?}"))?;
    }
    refused(
        &mdfsck(folder, &["page", "1:4294967295", "s"]),
        8,
        &["1:4294967295", "the largest page number is 2147483647"],
    )?;
    refused(&mdfsck(folder, &["page", "1:2147483647", "s"]), 8, &["(1:2147483647)", "ends after"])
}

fn kinds(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let commands: [(&[&str], &str); 5] = [
        (&["info", "--json", "s"], "info"),
        (&["tables", "--json", "s"], "table"),
        (&["lint", "--json", "s"], "lint"),
        (&["page", "--json", "1:9", "s"], "page"),
        (&["check", "--json", "--estimate-only", "s"], "estimate"),
    ];
    for (command, kind) in commands {
        let lines = lines(&mdfsck(folder, command).stdout)?;
        ensure(!lines.is_empty() && lines.iter().all(|line| line["kind"] == kind && line["v"] == 1), kind)?;
    }
    Ok(())
}

fn failures(folder: &Path) -> Result<(), Failed> {
    for command in ["check", "info", "tables", "lint", "audit", "log"] {
        let output = mdfsck(folder, &[command, "--json", "nowhere.mdf"]);
        let (status, lines) = (output.status.code().unwrap_or_default(), lines(&output.stdout)?);
        ensure(lines.len() == 1, format!("{command}: {lines:?}"))?;
        let text_of = lines[0]["text"].as_str().unwrap_or_default();
        ensure(lines[0]["kind"] == "error" && lines[0]["v"] == 1 && lines[0]["status"] == status, command)?;
        ensure(text_of.contains("nowhere.mdf") && text(&output.stderr).contains(text_of), command)?;
    }
    let output = mdfsck(folder, &["check", "--json", "--output", "results.json", "nowhere.mdf"]);
    ensure(output.stdout.is_empty() && output.status.code() == Some(4), "results are not on standard output")
}

fn index_names(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    ensure(mdfsck(folder, &["lab", "damage", "s", "-o", "d", "--kind", "key-order"]).status.success(), "damage")?;
    let objects = lines(&mdfsck(folder, &["check", "--json", "d"]).stdout)?;
    let name = |finding: &Value| {
        let same = |line: &&Value| {
            line["kind"] == "object" && ["object_id", "index_id"].iter().all(|key| line[key] == finding[key])
        };
        objects.iter().find(same).map(|line| line["index"].clone())
    };
    let findings: Vec<&Value> = objects.iter().filter(|line| line["kind"] == "finding").collect();
    let of_index = findings.iter().filter(|finding| finding["index_id"].as_i64() > Some(0));
    ensure(!findings.is_empty(), "findings")?;
    for finding in of_index {
        ensure(finding["index"].is_string() && Some(finding["index"].clone()) == name(finding), finding.to_string())?;
    }
    Ok(())
}

fn outputs(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let expected = mdfsck(folder, &["check", "s"]).stdout;
    let output = mdfsck(folder, &["check", "--output", "-", "s"]);
    ensure(output.stdout == expected && !folder.join("-").exists(), "standard output")?;
    let output = mdfsck(folder, &["check", "-o", "results.txt", "s"]);
    ensure(output.stdout.is_empty() && fs::read(folder.join("results.txt"))? == expected, "a file")
}

fn help(folder: &Path) -> Result<(), Failed> {
    let same = |a: &[&str], b: &[&str]| {
        let (a, b) = (mdfsck(folder, a), mdfsck(folder, b));
        ensure(a.status.success() && a.stdout == b.stdout && !a.stdout.is_empty(), text(&a.stderr))
    };
    same(&["help"], &["--help"])?;
    same(&["help", "check"], &["check", "--help"])?;
    same(&["help", "lab", "new"], &["lab", "new", "--help"])?;
    same(&["-v"], &["--version"])?;
    same(&["man", "lab", "new"], &["man", "lab-new"])?;
    let page = text(&mdfsck(folder, &["man", "lab-new"]).stdout);
    ensure(page.contains("mdfsck\\-lab\\-new") || page.contains("MDFSCK\\-LAB\\-NEW"), &page[..page.len().min(300)])?;
    refused(&mdfsck(folder, &["man", "lab", "old"]), 8, &["lab old", "no such command"])?;
    refused(&mdfsck(folder, &["sales.mdf"]), 8, &["sales.mdf is not a command; to check it: mdfsck check sales.mdf"])?;
    refused(&mdfsck(folder, &["check"]), 8, &["<PATH>... is missing, for example: mdfsck check sales.mdf"])
}
