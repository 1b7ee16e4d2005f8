//! Salvage of damaged tables. The program must report each table that it cannot read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use catalog::read_base_table;
use format::page::PAGE_BYTES;
use format::protection::checksum;
use libtest_mimic::Failed;
use serde_json::Value;

use super::{Test, ensure, lines, mdfsck, sample, table, text};

pub(super) fn salvage() -> Vec<(&'static str, Test)> {
    vec![
        ("each row of a damaged database is whole, doubtful, rebuilt or known to be lost", accounted),
        ("salvaged rows stand in files of their own in every format, and the output names them", formats),
        ("rows of pages beyond the end of a file that was cut are missing, and said to be", cut_file),
        ("rows in a file that was not given are neither damaged nor lost", without_file),
        ("deleted rows are exported only if asked for, as doubtful", ghosts),
        ("columnstore and memory-optimized tables are named with the reason, and the others exported", not_read),
        ("export reports its progress in lines and as JSON", progress),
    ]
}

/// The row count in the field `key` of a table's JSON line.
fn of(line: &Value, key: &str) -> u64 {
    line[key].as_u64().unwrap_or(0)
}

fn tables(folder: &Path, args: &[&str]) -> Result<(BTreeMap<String, Value>, Option<i32>), Failed> {
    let output = mdfsck(folder, args);
    let tables = lines(&output.stdout)?.into_iter().filter(|line| line["kind"] == "table");
    let tables = tables.map(|line| (line["object"].as_str().unwrap_or_default().to_owned(), line));
    Ok((tables.collect(), output.status.code()))
}

/// The rows of a CSV file, without the line of column names.
fn rows(path: &Path) -> Result<Vec<csv::StringRecord>, Failed> {
    Ok(csv::Reader::from_path(path)?.into_records().collect::<Result<_, _>>()?)
}

/// Each distinct row, and how often it occurs.
fn counted<'r>(rows: impl IntoIterator<Item = &'r csv::StringRecord>) -> BTreeMap<Vec<String>, usize> {
    let mut counted = BTreeMap::new();
    for row in rows {
        *counted.entry(row.iter().map(str::to_owned).collect()).or_default() += 1;
    }
    counted
}

fn damaged(folder: &Path, kind: &str, seed: &str) -> Result<(), Failed> {
    let _ = fs::remove_dir_all(folder.join("d"));
    let made = mdfsck(folder, &["lab", "damage", "s", "-o", "d", "--kind", kind, "--seed", seed]);
    ensure(made.status.success(), text(&made.stderr))
}

fn accounted(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "s", "--size", "12MB"]).status.success(), "lab new")?;
    let (sound, status) = tables(folder, &["export", "s", "-o", "sound", "--json"])?;
    ensure(status == Some(0) && sound.len() == 8, format!("{status:?}"))?;
    let (mut doubtful, mut rebuilt, mut lost) = (0, 0, 0);
    for (kind, seed) in [
        ("bit-rot", "1"),
        ("bit-rot", "2"),
        ("torn-write", "1"),
        ("swapped-pages", "1"),
        ("zeroed-extent", "1"),
        ("zeroed-extent", "2"),
        ("lost-extent", "1"),
        ("broken-link", "1"),
        ("truncated", "1"),
    ] {
        damaged(folder, kind, seed)?;
        let args = ["export", "d", "-o", "out", "--damaged", "--json", "--force"];
        let _ = fs::remove_dir_all(folder.join("out"));
        let (left, status) = tables(folder, &args)?;
        ensure(left.len() == 8, format!("{kind}: {} tables", left.len()))?;
        let is_complete = left.values().all(|line| of(line, "pages_left_out") == 0);
        ensure(status == Some(if is_complete { 0 } else { 16 }), format!("{kind}: {status:?}"))?;
        for (name, line) in &left {
            let what = format!("{kind} {seed}: {line}");
            let kinds = ["rows", "doubtful", "rebuilt", "known_lost"].map(|key| of(line, key));
            ensure(kinds.iter().sum::<u64>() == of(&sound[name], "rows"), what.clone())?;
            let is_whole = kinds[1..].iter().all(|count| *count == 0);
            ensure(is_whole || of(line, "pages_left_out") > 0, what.clone())?;
            // Every row of the ordinary file must be a row of the sound table.
            let expected = counted(&rows(&folder.join(format!("sound/{name}.csv")))?);
            let whole = rows(&folder.join(format!("out/{name}.csv")))?;
            ensure(whole.len() as u64 == kinds[0], what.clone())?;
            let is_there = |(row, count): (&Vec<String>, &usize)| expected.get(row).is_some_and(|most| count <= most);
            ensure(counted(&whole).iter().all(is_there), format!("{what}: a row that was not there"))?;
            // Doubtful rows and rebuilt rows are written to separate files, which give a reason for each row. If a
            // table has no such rows, the file does not exist.
            for (suffix, count) in [("doubtful", kinds[1]), ("rebuilt", kinds[2])] {
                let file = folder.join(format!("out/{name}.{suffix}.csv"));
                ensure(file.exists() == (count > 0), format!("{what}: {suffix}"))?;
                let listed = if count > 0 { rows(&file)? } else { Vec::new() };
                ensure(listed.len() as u64 == count && listed.iter().all(|row| !row[2].is_empty()), what.clone())?;
                let is_placed = |row: &csv::StringRecord| row[0].starts_with("1:") && row[1].parse::<u16>().is_ok();
                ensure(suffix == "rebuilt" || listed.iter().all(is_placed), what.clone())?;
            }
            (doubtful, rebuilt, lost) = (doubtful + kinds[1], rebuilt + kinds[2], lost + kinds[3]);
        }
    }
    ensure(doubtful > 100 && rebuilt > 100 && lost > 100, format!("{doubtful}, {rebuilt}, {lost}"))
}

fn formats(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "s", "--size", "12MB"]).status.success(), "lab new")?;
    for (kind, suffix, said) in [
        ("bit-rot", "doubtful", "not proven sound, each with the reason"),
        ("zeroed-extent", "rebuilt", "the columns that nonclustered indexes have"),
    ] {
        damaged(folder, kind, "1")?;
        for format in ["csv", "jsonl", "sql", "parquet"] {
            let out = format!("{kind}-{format}");
            let output = mdfsck(folder, &["export", "d", "-o", &out, "--damaged", "--format", format]);
            ensure(output.status.code() == Some(16), text(&output.stderr))?;
            let file = format!("dbo.order_lines.{suffix}.{format}");
            let line = text(&output.stdout).lines().find(|line| line.contains(&file)).map(str::to_owned);
            ensure(line.is_some_and(|line| line.contains(said)), text(&output.stdout))?;
            ensure(fs::metadata(folder.join(&out).join(file))?.len() > 1000, "the file has rows")?;
        }
    }
    // The script creates a table with a different name, without the key of the original table.
    let script = fs::read_to_string(folder.join("bit-rot-sql/dbo.order_lines.doubtful.sql"))?;
    ensure(script.starts_with("/* Rows of [dbo].[order_lines] that are not proven"), script.clone())?;
    ensure(script.contains("INTO [dbo].[order_lines.doubtful]\n"), script.clone())?;
    ensure(script.contains("INSERT INTO [dbo].[order_lines.doubtful] ([_page], [_slot], [_why], [order_id]"), script)
}

fn cut_file(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "s", "--size", "12MB"]).status.success(), "lab new")?;
    let (sound, _) = tables(folder, &["export", "s", "-o", "sound", "--json"])?;
    let bytes = fs::read(folder.join("s/orders.mdf"))?;
    for share in [4, 3, 2] {
        fs::write(folder.join("d.mdf"), &bytes[..bytes.len() / PAGE_BYTES * (share - 1) / share * PAGE_BYTES])?;
        let (left, status) = tables(folder, &["export", "d.mdf", "-o", "out", "--json", "--force"])?;
        ensure(status == Some(16), format!("{status:?}"))?;
        for (name, line) in &left {
            let misses = of(line, "rows") < of(&sound[name], "rows");
            ensure(!misses || of(line, "pages_left_out") > 0, line.to_string())?;
            let alone = mdfsck(folder, &["export", "d.mdf", "-o", "one", "--force", "--table", name]);
            ensure(alone.status.code() == Some(if misses { 16 } else { 0 }), format!("{name}: {:?}", alone.status))?;
        }
    }
    Ok(())
}

fn without_file(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "s", "--size", "8MB", "--files", "2"]).status.success(), "lab new")?;
    let primary = "s/orders.mdf";
    let output = mdfsck(folder, &["export", primary, "-o", "out"]);
    let said = text(&output.stdout) + &text(&output.stderr);
    ensure(output.status.code() == Some(16) && said.contains("in a file that was not given"), &*said)?;
    ensure(!said.contains("is damaged"), &*said)?;
    // The last line lists what could not be exported, and does not mention damage.
    let last = text(&output.stderr).lines().last().unwrap_or_default().to_owned();
    ensure(
        last.contains("rows are missing, because parts of the database were not given")
            && last.contains("give orders_2.ndf too"),
        &*last,
    )?;
    ensure(!said.contains("what is wrong") && !said.contains("beyond the end"), &*said)?;
    let page = mdfsck(folder, &["page", "3:10", primary]);
    ensure(text(&page.stderr).contains("file 3 (orders_2.ndf) is not among"), text(&page.stderr))?;
    let checked = text(&mdfsck(folder, &["check", primary]).stdout);
    ensure(checked.contains("(column.file-not-given)") && !checked.contains("does not make this check"), checked)?;
    let advice = text(&mdfsck(folder, &["advise", primary]).stdout);
    ensure(advice.contains("Provide the missing") && !advice.contains("DBCC CHECKDB"), advice)?;
    let (left, status) = tables(folder, &["export", primary, "-o", "out", "--json", "--force", "--damaged"])?;
    let pages: u64 = left.values().map(|line| of(line, "pages_left_out")).sum();
    ensure(status == Some(16) && pages > 0, format!("{status:?}"))?;
    ensure(left.values().all(|line| of(line, "known_lost") == 0), format!("{left:?}"))
}

fn ghosts(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let table_of = |args: &[&str]| -> Result<Value, Failed> {
        let args = [&["export", "s", "--json", "--force", "--table", "events", "-o", "out"], args].concat();
        Ok(table(&lines(&mdfsck(folder, &args).stdout)?, "dbo.events")?.clone())
    };
    let (without, with) = (table_of(&["--damaged"])?, table_of(&["--damaged", "--ghosts"])?);
    ensure(without["doubtful"] == 0 && with["rows"] == without["rows"], without.to_string())?;
    let listed = rows(&folder.join("out/dbo.events.doubtful.csv"))?;
    ensure(of(&with, "doubtful") == listed.len() as u64 && listed.len() > 10, with.to_string())?;
    ensure(listed.iter().all(|row| row[2].contains("deleted")), format!("{:?}", listed[0]))?;
    // A run removes a file of an earlier run if the new run does not write this file.
    table_of(&["--damaged"])?;
    ensure(!folder.join("out/dbo.events.doubtful.csv").exists(), "the older file is gone")?;
    super::super::refused_by_usage(&mdfsck(folder, &["export", "s", "-o", "x", "--ghosts"]), &["--damaged"])
}

/// Changes the type of an index in the catalog (docs/format/catalog.md#sysidxstats).
fn retype(path: &Path, table: &str, index_id: i32, ty: u8) -> Result<(), Failed> {
    const SYSIDXSTATS: i32 = 54;
    const TYPE_AT: usize = 21;
    let source = source::open(&[path.to_owned()], &[], false)?;
    let database = catalog::load(&*source);
    let object = database.objects.values().find(|object| object.name == table).ok_or("no table")?.id;
    let number = |bytes: Option<&[u8]>| bytes.and_then(|bytes| Some(i32::from_le_bytes(*bytes.first_chunk()?)));
    let mut place = None;
    let visit = |at, values: &[Option<&[u8]>]| {
        if number(values[0]) == Some(object) && number(values[1]) == Some(index_id) {
            place = Some(at);
        }
    };
    ensure(read_base_table(&*source, &database, SYSIDXSTATS, &["id", "indid"], visit).is_ok(), "sysidxstats")?;
    let place: format::RecordId = place.ok_or("no index")?;
    let mut bytes = fs::read(path)?;
    let page = &mut bytes[place.page.page as usize * PAGE_BYTES..][..PAGE_BYTES];
    let slot = PAGE_BYTES - 2 * (usize::from(place.slot) + 1);
    let record = usize::from(u16::from_le_bytes([page[slot], page[slot + 1]]));
    page[record + TYPE_AT] = ty;
    let page: &mut [u8; PAGE_BYTES] = page.try_into()?;
    let sum = checksum(page);
    page[60..64].copy_from_slice(&sum.to_le_bytes());
    drop(source);
    Ok(fs::write(path, bytes)?)
}

fn not_read(folder: &Path) -> Result<(), Failed> {
    const COLUMNSTORE: u8 = 5;
    const HASH: u8 = 7;
    sample(folder)?;
    let path = folder.join("s/orders.mdf");
    retype(&path, "orders", 1, COLUMNSTORE)?;
    retype(&path, "customers", 2, HASH)?;
    for format in ["csv", "sql"] {
        let (all, status) = tables(folder, &["export", "s", "-o", format, "--format", format, "--json"])?;
        ensure(status == Some(16) && all.len() == 8, format!("{status:?}"))?;
        for (name, reason) in [("orders", "columnstore"), ("customers", "memory-optimized")] {
            let line = &all[&format!("dbo.{name}")];
            let says = line["reason"].as_str().is_some_and(|text| text.contains(reason));
            ensure(line["file"].is_null() && says && line["rows"] == 0, line.to_string())?;
            ensure(!folder.join(format).join(format!("dbo.{name}.{format}")).exists(), "no file")?;
            let shown = mdfsck(folder, &["rows", name, "s"]);
            super::refused(&shown, 4, &[name, reason])?;
        }
        ensure(all.values().filter(|line| of(line, "rows") > 0).count() == 6, "the others")?;
        let printed = mdfsck(folder, &["export", "s", "-o", "out", "--force"]);
        ensure(text(&printed.stdout).contains("none: its rows are in a clustered columnstore index"), "it is named")?;
    }
    Ok(())
}

fn progress(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let shown = mdfsck(folder, &["export", "s", "-o", "a", "--progress", "lines"]);
    let (stderr, stdout) = (text(&shown.stderr), text(&shown.stdout));
    let of_rows: Vec<&str> = stderr.lines().filter(|line| line.contains("rows")).collect();
    ensure(stderr.lines().all(|line| line.split(' ').count() == 5), stderr.clone())?;
    ensure(of_rows.first().is_some_and(|line| line.contains(" 0 0 ")), stderr.clone())?;
    ensure(of_rows.last().is_some_and(|line| line.contains(" 100 ") && line.ends_with(" 0")), stderr.clone())?;
    let json = text(&mdfsck(folder, &["export", "s", "-o", "b", "--damaged", "--progress", "json"]).stderr);
    let lines = json.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let last = |phase: &str| lines.iter().rev().find(|line| line["phase"] == phase).cloned().ok_or("no such phase");
    let exported = last("export")?;
    ensure(exported["current"] == exported["maximum"] && exported["percent"] == 100, exported.to_string())?;
    last("salvage")?;
    // The results do not contain the progress lines.
    let silent = mdfsck(folder, &["export", "s", "-o", "c", "--progress", "none"]);
    ensure(silent.stderr.is_empty() && text(&silent.stdout).replace(" in c", " in a") == stdout, text(&silent.stderr))
}
