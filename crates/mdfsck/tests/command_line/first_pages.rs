//! Data files whose first pages are overwritten, as by ransomware, and files whose pages are not at their places.

use std::collections::BTreeMap;

use super::*;

pub(super) fn without_first_pages() -> Vec<(&'static str, Test)> {
    vec![
        ("a data file without its first pages is checked, and its rows are exported", overwritten),
        (
            "without its first megabyte, rows are exported with a copy by value, and alone as raw fields",
            without_catalog,
        ),
        ("a copy of another database, or one without a catalog, is not used", other_copies),
        ("a file with bytes before its pages, or without its first bytes, is named as such, with the remedy", moved),
    ]
}

/// Writes a lab database, and returns the bytes of its only data file.
fn sample(folder: &Path) -> Result<Vec<u8>, Failed> {
    let made = mdfsck(folder, &["lab", "new", "sound", "--size", "9MB"]);
    ensure(made.status.success(), text(&made.stderr))?;
    fs::create_dir(folder.join("hurt"))?;
    Ok(fs::read(folder.join("sound/orders.mdf"))?)
}

/// The rows of each table in an export, sorted. Rows that are not proven sound are in separate files, behind their page,
/// their slot and the reason.
pub(super) fn exported(folder: &Path, data: &str, to: &str) -> Result<BTreeMap<String, Vec<String>>, Failed> {
    exported_with(folder, data, to, &[])
}

pub(super) fn exported_with(
    folder: &Path,
    data: &str,
    to: &str,
    more: &[&str],
) -> Result<BTreeMap<String, Vec<String>>, Failed> {
    const DOUBTFUL: &str = ".doubtful";
    let output = mdfsck(folder, &[&["export", data, "--damaged", "-o", to], more].concat());
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in fs::read_dir(folder.join(to)).map_err(|cause| format!("{cause}: {output:?}"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(table) = name.strip_suffix(".csv") else { continue };
        let text = fs::read_to_string(&path)?;
        let rows = text.lines().skip(1);
        let rows: Vec<String> = match table.strip_suffix(DOUBTFUL) {
            Some(_) => rows.filter_map(|row| Some(row.splitn(4, ',').nth(3)?.to_owned())).collect(),
            None => rows.map(str::to_owned).collect(),
        };
        tables.entry(table.trim_end_matches(DOUBTFUL).to_owned()).or_default().extend(rows);
    }
    tables.values_mut().for_each(|rows| rows.sort());
    ensure(tables.len() > 2, format!("{output:?}"))?;
    Ok(tables)
}

fn overwritten(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    let rows = exported(folder, "sound", "rows")?;
    // What an encryption leaves, and zeros.
    let noise = (0u32..).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8);
    let fills: [Vec<u8>; 2] = [noise.take(8 * PAGE_BYTES).collect(), vec![0; 8 * PAGE_BYTES]];
    for (number, fill) in fills.into_iter().enumerate() {
        let bytes = [&fill, &sound[8 * PAGE_BYTES..]].concat();
        fs::write(folder.join("hurt/orders.mdf"), &bytes)?;
        for input in ["hurt", "hurt/orders.mdf"] {
            let output = mdfsck(folder, &["check", input, "--format", "json"]);
            let status = output.status.code().unwrap_or_default();
            ensure(status & 1 == 1 && status & 4 == 0, format!("{output:?}"))?;
            let found = text(&output.stdout);
            let lines: Vec<serde_json::Value> = found.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
            let is_beyond = |line: &&serde_json::Value| {
                line["kind"] == "finding"
                    && line["ref_page"].is_null()
                    && line["page"].as_u64().is_some_and(|page| page > 8)
            };
            ensure(lines.iter().filter(is_beyond).count() == 0, found)?;
        }
        // Ransomware adds an extension. A name that is not that of a data file is not looked at so closely.
        for (name, is_known) in [("orders.mdf.locked", true), ("orders.locked", false)] {
            fs::copy(folder.join("hurt/orders.mdf"), folder.join(name))?;
            let status = mdfsck(folder, &["check", name]).status.code().unwrap_or_default();
            ensure((status & 4 == 0) == is_known, format!("{name}: {status}"))?;
        }
        let info = mdfsck(folder, &["info", "hurt/orders.mdf"]);
        let info = text(&info.stdout);
        ensure(info.contains("its header page is damaged"), info)?;
        ensure(exported(folder, "hurt", &format!("rows{number}"))? == rows, "not the same rows")?;
    }
    // Without the boot page the catalog is unknown, but the file is still one of pages.
    let bytes = [vec![0xA7; 128 * PAGE_BYTES], sound[128 * PAGE_BYTES..].to_vec()].concat();
    fs::write(folder.join("hurt/orders.mdf"), &bytes)?;
    let output = mdfsck(folder, &["check", "hurt"]);
    let status = output.status.code().unwrap_or_default();
    ensure(status & 1 == 1 && status & 4 == 0, format!("{output:?}"))
}

/// Overwrites the first megabyte.
fn without_megabyte(folder: &Path, sound: &[u8]) -> Result<(), Failed> {
    let bytes = [vec![0xA7; 128 * PAGE_BYTES], sound[128 * PAGE_BYTES..].to_vec()].concat();
    Ok(fs::write(folder.join("hurt/orders.mdf"), bytes)?)
}

fn without_catalog(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    let rows = exported(folder, "sound", "rows")?;
    without_megabyte(folder, &sound)?;
    // With a copy, each table has its name, and each row is one of the original.
    let with_copy = exported_with(folder, "hurt", "copy", &["--like", "sound"])?;
    let mut kept = 0;
    for (table, rows_left) in &with_copy {
        let original = rows.get(table).map(Vec::as_slice).unwrap_or_default();
        // Compressed records cannot be cut into raw fields.
        kept += if table == "dbo.price_history" { 0 } else { rows_left.len() };
        let invented = rows_left.iter().find(|row| original.binary_search(row).is_err());
        ensure(invented.is_none(), format!("{table}: {invented:?}"))?;
    }
    ensure(kept > 1000, format!("{kept} rows"))?;
    let little = exported_with(folder, "hurt", "little", &["--like", "sound", "--memory", "40MB", "--maxdop", "1"])?;
    ensure(little == with_copy, "other rows with less memory")?;
    // Alone, at least as many rows come as raw fields or with columns without names.
    let alone = exported(folder, "hurt", "alone")?;
    let count: usize = alone.values().map(Vec::len).sum();
    ensure(count >= kept, format!("{count} of {kept} rows"))?;
    let json = mdfsck(folder, &["export", "hurt", "--damaged", "-o", "json", "--json"]);
    let json = text(&json.stdout);
    ensure(json.contains(r#""rests_on":""#), json)?;
    let tables = mdfsck(folder, &["tables", "hurt", "--like", "sound"]);
    ensure(text(&tables.stdout).contains("the catalog of the copy"), format!("{tables:?}"))?;
    ensure(tables.status.code() == Some(4), format!("{tables:?}"))?;
    let shown = mdfsck(folder, &["rows", "order_lines", "hurt", "--like", "sound", "--limit", "2"]);
    ensure(text(&shown.stdout).contains("(2 rows;"), format!("{shown:?}"))?;
    let info = mdfsck(folder, &["info", "hurt"]);
    for part in ["file 1  [", "128 are damaged; no page is damaged from page 128 (byte 1,048,576) on"] {
        ensure(text(&info.stdout).contains(part), format!("{part}: {info:?}"))?;
    }
    let json = mdfsck(folder, &["info", "hurt", "--json"]);
    ensure(text(&json.stdout).contains(r#""damaged":128,"whole_from":128"#), format!("{json:?}"))
}

fn other_copies(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    let made = mdfsck(folder, &["lab", "new", "other", "--size", "9MB", "--seed", "77"]);
    ensure(made.status.success(), text(&made.stderr))?;
    // A damaged system table leaves the boot page, whose family GUID tells the two databases apart.
    let boot = PAGE_BYTES * 9..PAGE_BYTES * 10;
    let mut bytes = vec![0xA7; 128 * PAGE_BYTES];
    bytes[boot.clone()].copy_from_slice(&sound[boot]);
    let bytes = [bytes, sound[128 * PAGE_BYTES..].to_vec()].concat();
    fs::write(folder.join("hurt/orders.mdf"), bytes)?;
    let to = ["export", "hurt", "--damaged", "-o", "rows", "--like"];
    refused(&mdfsck(folder, &[&to[..], &["other"]].concat()), 8, &["--like other", "a copy of another database"])?;
    without_megabyte(folder, &sound)?;
    refused(&mdfsck(folder, &[&to[..], &["hurt"]].concat()), 8, &["--like hurt", "its own catalog cannot be read"])?;
    refused(&mdfsck(folder, &[&to[..], &["absent"]].concat()), 4, &["absent"])?;
    let output = mdfsck(folder, &["export", "sound", "-o", "whole", "--like", "other"]);
    ensure(output.status.success(), format!("{output:?}"))?;
    ensure(text(&output.stderr).contains("--like is not needed"), format!("{output:?}"))
}

fn moved(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    let hurt = folder.join("hurt/orders.mdf");
    fs::write(&hurt, [&[b'!'; 836][..], &sound].concat())?;
    let carve = "'mdfsck check --carve hurt/orders.mdf' reads the pages where they are";
    let words = ["has pages of file 1 of a database", "836 bytes behind its place", "tail -c +837", carve];
    refused(&mdfsck(folder, &["check", "hurt/orders.mdf"]), 4, &words)?;
    fs::write(&hurt, &sound[836..])?;
    let words =
        ["836 bytes before its place", "the first 836 bytes of the file are missing", "head -c 836 /dev/zero", carve];
    refused(&mdfsck(folder, &["check", "hurt/orders.mdf"]), 4, &words)?;
    // A file of another program stays what it is.
    fs::write(&hurt, vec![1; 1 << 20])?;
    refused(&mdfsck(folder, &["check", "hurt/orders.mdf"]), 4, &["is not a SQL Server data file"])
}
