//! `mdfsck export` and `mdfsck rows`. Each output file must be complete, or must not exist. The content of an output
//! file must be the same with all options.

mod faults;
mod names;
mod salvage;

use std::fs;
use std::path::Path;

use format::page::PAGE_BYTES;
use lab::description::{Column, Description, Index, Table, Values};
use lab::{SqlType, Version};
use libtest_mimic::Failed;
use serde_json::Value;

use super::{Test, ensure, mdfsck, refused, text};

pub(crate) fn exports() -> Vec<(&'static str, Test)> {
    let mut all = own();
    all.extend(names::names());
    all.extend(faults::faults());
    all.extend(salvage::salvage());
    all
}

fn own() -> Vec<(&'static str, Test)> {
    vec![
        ("an export has the same bytes for every number of threads and grant", same_bytes),
        ("files that exist are refused before anything is written, and replaced with --force", existing_files),
        ("a table that does not exist is refused with near names", near_names),
        ("rows of a damaged page are left out and said", left_out),
        ("rows shows as many rows as asked for", some_rows),
        ("the bits of a large file's pages count against the grant", bits_of_pages),
        ("csv and json lines have as many rows as the summary says", counts),
        ("what the client encrypted is exported as the bytes that are stored, and said", encrypted),
    ]
}

fn sample(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "s", "--size", "9MB"]).status.success(), "lab new")
}

fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, fs::read(&path)?));
    }
    files.sort();
    Ok(files)
}

fn same_bytes(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "s", "--size", "24MB"]).status.success(), "lab new")?;
    for format in ["csv", "jsonl", "sql", "parquet"] {
        let mut first = None;
        for (number, options) in
            [["--maxdop", "1"], ["--maxdop", "2"], ["--maxdop", "8"], ["--memory", "256MB"]].iter().enumerate()
        {
            let out = format!("{format}{number}");
            let output = mdfsck(folder, &[&["export", "s", "-o", &out, "--format", format], &options[..]].concat());
            ensure(matches!(output.status.code(), Some(0 | 16)), text(&output.stderr))?;
            let made = files(&folder.join(out))?;
            ensure(made.len() >= 8 && made.iter().all(|(name, _)| !name.ends_with(".partial")), format)?;
            ensure(*first.get_or_insert_with(|| made.clone()) == made, format!("{format} {options:?}"))?;
        }
    }
    Ok(())
}

/// The bitmaps of pages must count toward the memory grant. The test uses a sparse file of 300 GB, which needs no space
/// on disk.
fn bits_of_pages(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let export = |out: &str, memory: &str| mdfsck(folder, &["export", "s", "-o", out, "--damaged", "--memory", memory]);
    let rows = || mdfsck(folder, &["rows", "orders", "s", "--memory", "28MB"]);
    ensure(matches!(export("small", "36MB").status.code(), Some(0 | 16)), "enough for the small file")?;
    ensure(matches!(rows().status.code(), Some(0 | 16)), "enough for rows of the small file")?;
    let path = fs::read_dir(folder.join("s"))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|own| own == "mdf"));
    fs::File::options().write(true).open(path.ok_or("no data file")?)?.set_len(300 << 30)?;
    // The minimum grant must include three bitmaps in addition to the memory of one thread. Each bitmap has one bit per
    // page and takes 4.7 MB.
    refused(&export("large", "36MB"), 8, &["--memory 36 MB: this export needs", "at least"])?;
    refused(&rows(), 8, &["--memory 28 MB: reading rows needs", "at least"])?;
    ensure(!folder.join("large").exists() || files(&folder.join("large"))?.is_empty(), "nothing is written")
}

fn existing_files(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    fs::create_dir(folder.join("out"))?;
    fs::write(folder.join("out/dbo.visits.csv"), "mine")?;
    refused(&mdfsck(folder, &["export", "s", "-o", "out"]), 8, &["dbo.visits.csv", "--force"])?;
    ensure(files(&folder.join("out"))?.len() == 1, "nothing else is written")?;
    let output = mdfsck(folder, &["export", "s", "-o", "out", "--force"]);
    ensure(matches!(output.status.code(), Some(0 | 16)), text(&output.stderr))?;
    ensure(fs::read(folder.join("out/dbo.visits.csv"))?.len() > 100, "it is replaced")?;
    // An export never replaces a file of the database, whatever the name of the file.
    fs::create_dir(folder.join("in"))?;
    fs::copy(folder.join("s/orders.mdf"), folder.join("in/dbo.visits.csv"))?;
    refused(&mdfsck(folder, &["export", "s", "-o", "in", "--force"]), 8, &["SQL Server file"])
}

fn near_names(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    for command in [&["export", "s", "-o", "out", "--table", "Ordrs"][..], &["rows", "Ordrs", "s"]] {
        refused(&mdfsck(folder, command), 8, &["\"Ordrs\"", "Did you mean dbo.orders?"])?;
    }
    ensure(!folder.join("out").exists(), "nothing is made")
}

fn lines(bytes: &[u8]) -> Result<Vec<Value>, Failed> {
    Ok(text(bytes).lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn table<'l>(lines: &'l [Value], name: &str) -> Result<&'l Value, Failed> {
    lines.iter().find(|line| line["object"] == name).ok_or_else(|| format!("no line of {name}").into())
}

fn left_out(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let sound = lines(&mdfsck(folder, &["export", "s", "-o", "a", "--json", "--table", "order_lines"]).stdout)?;
    let rows = table(&sound, "dbo.order_lines")?["rows"].as_u64().unwrap_or(0);
    let mut bytes = fs::read(folder.join("s/orders.mdf"))?;
    let listed = fs::read_to_string(folder.join("a/dbo.order_lines.csv"))?;
    ensure(listed.lines().count() as u64 == rows + 1, "a line per row and one of names")?;
    // Finds a page of the table by damaging each data page until an export misses rows.
    for page in 100..bytes.len() / PAGE_BYTES {
        let at = page * PAGE_BYTES;
        if bytes[at + 1] != 1 || bytes[at + 3] != 0 {
            continue;
        }
        bytes[at + 4000] ^= 0xFF;
        fs::write(folder.join("d.mdf"), &bytes)?;
        bytes[at + 4000] ^= 0xFF;
        let args = ["export", "d.mdf", "-o", "b", "--force", "--json", "--table", "order_lines"];
        let output = mdfsck(folder, &args);
        let damaged = lines(&output.stdout)?;
        // If the damaged page belongs to the catalog, the table or its columns are not found.
        let Ok(line) = table(&damaged, "dbo.order_lines") else { continue };
        // If the page belongs to sysallocunits, the pages of the table are not known.
        if line["rows"].as_u64() < Some(rows) && line["rests_on"].is_null() {
            ensure(output.status.code() == Some(16), "status 16")?;
            ensure(line["left_out"][0]["page"] == format!("1:{page}"), line.to_string())?;
            return ensure(line["pages_left_out"] == 1, line.to_string());
        }
    }
    Err("no page of the table was found".into())
}

fn some_rows(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let count = |args: &[&str]| text(&mdfsck(folder, args).stdout).lines().count();
    ensure(count(&["rows", "orders", "s"]) == 22, "names, 20 rows, how many there are")?;
    ensure(count(&["rows", "orders", "s", "--limit", "3", "--format", "csv"]) == 4, "names and 3 rows")?;
    ensure(count(&["rows", "orders", "s", "--limit", "3", "--format", "jsonl"]) == 3, "3 rows")
}

fn counts(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let output = mdfsck(folder, &["export", "s", "-o", "j", "--format", "jsonl", "--json"]);
    let all = lines(&output.stdout)?;
    let summary = all.last().ok_or("no lines")?;
    ensure(summary["kind"] == "summary", summary.to_string())?;
    let mut rows = 0;
    for line in all.iter().filter(|line| line["kind"] == "table") {
        let file = folder.join("j").join(line["file"].as_str().unwrap_or_default());
        let exported = lines(&fs::read(file)?)?;
        ensure(Some(exported.len() as u64) == line["rows"].as_u64(), line.to_string())?;
        rows += exported.len() as u64;
    }
    ensure(Some(rows) == summary["rows"].as_u64() && rows > 1000, summary.to_string())
}

/// A table with Always Encrypted columns. The catalog gives the types int and date, but each stored value has 65 bytes.
fn encrypted(folder: &Path) -> Result<(), Failed> {
    let values = Values::Serial { start: 1, step: 1 };
    let table = Table {
        name: "people".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, values.clone()),
            Column::new("salary", SqlType::INT.encrypted(), values.clone()),
            Column::new("born", SqlType::DATE.encrypted(), values).nullable(50),
        ],
        clustered: Some(Index::on("pk", &[0]).primary_key()),
        rows: 200,
        ..Table::default()
    };
    let description =
        Description { name: "people".to_owned(), tables: vec![table], ..lab::orders::orders(Version::V852, 1, 0) };
    fs::create_dir(folder.join("s"))?;
    lab::write(&description, &folder.join("s"))?;
    let stored = |id: i64| {
        let mut bytes = Vec::new();
        SqlType::INT.encrypted().encode_number(id, &mut bytes);
        bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>()
    };
    for format in ["csv", "jsonl", "sql", "parquet"] {
        let output = mdfsck(folder, &["export", "s", "-o", format, "--format", format]);
        ensure(output.status.code() == Some(0), text(&output.stderr))?;
        let said = text(&output.stdout);
        let values = "values as stored bytes: the client encrypted them";
        ensure(said.contains(values) && !said.contains("NULL"), said)?;
    }
    let mut reader = csv::Reader::from_path(folder.join("csv/dbo.people.csv"))?;
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
    ensure(rows.len() == 200, format!("{} rows", rows.len()))?;
    for row in &rows {
        let id = stored(row[0].parse()?);
        ensure(row[1] == id && (row[2].is_empty() || row[2] == id), format!("{row:?}"))?;
    }
    let nulls = rows.iter().filter(|row| row[2].is_empty()).count();
    ensure((1..200).contains(&nulls), format!("{nulls} are NULL"))?;
    let script = fs::read_to_string(folder.join("sql/dbo.people.sql"))?;
    let comment = "encrypted by the client; inserted as the stored bytes: salary, born";
    ensure(script.contains(comment) && script.contains(&format!("(1,0x{},", stored(1))), script)?;
    let shown = mdfsck(folder, &["rows", "people", "s", "--limit", "3"]);
    ensure(shown.status.code() == Some(0), text(&shown.stderr))?;
    ensure(text(&shown.stdout).contains(&format!("0x{}", &stored(2)[..16])), text(&shown.stdout))
}
