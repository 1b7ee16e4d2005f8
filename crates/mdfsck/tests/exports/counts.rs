//! Compares the number of exported rows with the number that an independent reader counted.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::{ensure, export};

/// Row counts by object ID.
type Counts = BTreeMap<i64, u64>;

pub(crate) fn trials(files: &Path, lists: &Path) -> Vec<Trial> {
    let mut trials = Vec::new();
    for list in LISTS {
        for (path, counts) in expected(&lists.join(list)) {
            let full = files.join(&path);
            trials.push(Trial::test(format!("counts: {path}"), move || as_counted(&full, &counts)));
        }
    }
    trials
}

pub(crate) const LISTS: [&str; 3] = ["expected.tsv.gz", "expected2.tsv.gz", "expected-backups.tsv.gz"];

/// For each data file that `list` names, the number of live rows of each object. Counts only the rows of heaps and
/// clustered indexes.
pub(crate) fn expected(list: &Path) -> BTreeMap<String, Counts> {
    let mut text = String::new();
    let file = fs::File::open(list).expect("a list of the corpus");
    GzDecoder::new(file).read_to_string(&mut text).expect("text");
    let mut files: BTreeMap<String, Counts> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [path, _, _, object, _, _, _, "0" | "1", _, _, _, live, ..] = columns.as_slice() else { continue };
        let (Ok(object), Ok(live)) = (object.parse(), live.parse::<u64>()) else { continue };
        *files.entry((*path).to_owned()).or_default().entry(object).or_default() += live;
    }
    files
}

/// Requires that three numbers of rows are equal: the number that the export reports, the number in the exported files,
/// and the number that the independent reader counted.
fn as_counted(path: &Path, expected: &Counts) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    // The independent reader counted only the rows in the data files. Changes that are only in the log are therefore
    // left out.
    let output = export(path, folder.path(), &["--format", "jsonl", "--json", "--system", "--no-log"]);
    ensure(output.status.code() == Some(0), String::from_utf8_lossy(&output.stderr))?;
    let mut written = Counts::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let (Some(id), Some(file)) = (line["object_id"].as_i64(), line["file"].as_str()) else { continue };
        let rows = rows_of(&folder.path().join(file))?;
        ensure(line["rows"].as_u64() == Some(rows), format!("{file} has {rows} rows: {line}"))?;
        written.insert(id, rows);
    }
    let differs = |(id, counted): &(&i64, &u64)| written.get(id) != Some(*counted);
    let wrong: Vec<String> = expected
        .iter()
        .filter(differs)
        .map(|(id, counted)| format!("object {id}: {counted} rows counted, {:?} exported", written.get(id)))
        .collect();
    ensure(wrong.is_empty(), wrong.join("\n"))
}

/// Counts the rows of a JSON lines file. Each row is one line, because the JSON of a row contains no line breaks.
fn rows_of(path: &Path) -> Result<u64, Failed> {
    Ok(fs::read(path)?.iter().filter(|byte| **byte == b'\n').count() as u64)
}
