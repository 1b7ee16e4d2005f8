//! Whatever a table contains, an export must keep to its memory grant.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use lab::SqlType;
use lab::description::{Column, Description, Index, Table, Values};
use tempfile::TempDir;

/// The memory grant without `--memory`, in bytes.
const DEFAULT_BYTES: u64 = 64 << 20;
const FORMATS: [&str; 4] = ["csv", "jsonl", "sql", "parquet"];

/// Exports a database. Returns the peak memory in bytes, the exit status, and stderr.
fn export(folder: &Path, arguments: &[&str]) -> (u64, Option<i32>, String) {
    let out = TempDir::new().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
        .arg("export")
        .arg(folder)
        .arg("-o")
        .arg(out.path().join("out"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // Reads the peak memory of the process repeatedly until the process ends. The system records the peak, so a peak
    // between two reads is not missed.
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) << 10);
        thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    (peak, output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Exports the tables in each format, with the minimum grant and with the default grant. Requires that each export
/// keeps to its grant. If `is_small`, the minimum grant must not exceed the default grant.
fn keeps_to_its_grants(formats: &[&str], tables: Vec<Table>, is_small: bool) {
    let folder = TempDir::new().unwrap();
    let description = Description { tables, ..lab::orders::orders(lab::Version::V852, 7, 0) };
    lab::write(&description, folder.path()).unwrap();
    for format in formats {
        let with = |grant: &[&str]| export(folder.path(), &[&["--format", format][..], grant].concat());
        let (_, status, refusal) = with(&["--memory", "1MB"]);
        assert_eq!(status, Some(8), "{refusal}");
        let least = refusal.split("needs at least ").nth(1).unwrap().lines().next().unwrap().replace(' ', "");
        let least_bytes = least.trim_end_matches("MB").parse::<u64>().unwrap() << 20;
        assert!(!is_small || least_bytes <= DEFAULT_BYTES, "{format}: {least}");
        let grants: [(&[&str], u64); 3] = [
            (&["--memory", &least, "--maxdop", "4"], least_bytes),
            (&["--maxdop", "1"], DEFAULT_BYTES.max(least_bytes)),
            (&["--maxdop", "8"], DEFAULT_BYTES.max(least_bytes)),
        ];
        for (grant, bytes) in grants {
            let (peak, status, said) = with(grant);
            assert!(matches!(status, Some(0 | 16)), "{said}");
            println!("{format} {grant:?}: peak {} KB of {} KB", peak >> 10, bytes >> 10);
            assert!(peak <= bytes, "{format} {grant:?}: {peak} bytes of {bytes}");
        }
    }
}

fn table(columns: impl IntoIterator<Item = Column>, rows: u64) -> Table {
    let id = Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 });
    Table {
        name: "subject".to_owned(),
        columns: [id].into_iter().chain(columns).collect(),
        clustered: Some(Index::on("pk", &[0]).primary_key()),
        rows,
        ..Table::default()
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn rows_of_many_columns() {
    let columns = (0..1000).map(|n| {
        let ty = if n % 10 == 0 { SqlType::nvarchar(20) } else { SqlType::INT };
        let values =
            if n % 10 == 0 { Values::Text { least: 0, most: 3 } } else { Values::Uniform { low: 0, high: 1 << 30 } };
        Column::new(&format!("column {n}"), ty, values)
    });
    keeps_to_its_grants(&FORMATS, vec![table(columns, 12_000)], true);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn rows_of_many_values_off_the_row() {
    let column = |n: u32| {
        let ty = if n.is_multiple_of(2) { SqlType::VARBINARY_MAX } else { SqlType::NVARCHAR_MAX };
        let most = 1_040_000 >> (n % 2);
        let values = if n.is_multiple_of(2) {
            Values::Bytes { least: 900_000, most }
        } else {
            Values::Text { least: 400_000, most }
        };
        Column::new(&format!("c{n}"), ty, values)
    };
    keeps_to_its_grants(&FORMATS, vec![table((0..100).map(column), 2)], true);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn long_texts_and_bytes_of_every_length() {
    let texts = |n: u32| {
        Column::new(&format!("c{n}"), SqlType::VARCHAR_MAX, Values::Text { least: 0, most: 1_500_000 }).nullable(20)
    };
    let bytes = |n: u32| {
        Column::new(&format!("b{n}"), SqlType::IMAGE, Values::Bytes { least: 0, most: 4_000_000 }).nullable(20)
    };
    keeps_to_its_grants(&FORMATS, vec![table((0..3).map(texts).chain((0..3).map(bytes)), 10)], true);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn thousands_of_tables() {
    let tables = (0..1500).map(|number| Table {
        name: format!("a table with a name of its own {number}"),
        ..table(
            (0..60).map(|n| Column::new(&format!("a column {n}"), SqlType::INT, Values::Serial { start: 1, step: 1 })),
            1,
        )
    });
    keeps_to_its_grants(&["sql"], tables.collect(), false);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn thousands_of_partitions() {
    let column = Column::new("a", SqlType::nvarchar(40), Values::Text { least: 0, most: 40 });
    keeps_to_its_grants(&FORMATS, vec![Table { partitions: 3000, ..table([column], 30_000) }], false);
}
