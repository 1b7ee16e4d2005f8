//! `mdfsck tables --statistics` must list the statistics objects that the lab has written.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

use lab::description::{Column, Filegroup, Table, Values};
use lab::specimens::specimen;
use lab::{PageVerify, SqlType, Version};
use serde_json::Value;

/// Writes a table with 50 rows, and with statistics on a number column and on a nullable text column. Returns the path
/// of the file.
fn write(folder: &Path) -> String {
    let mut description = specimen(Version::V957, PageVerify::Checksum, 1);
    description.filegroups = vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }];
    let name = Column::new("name", SqlType::nvarchar(20), Values::Text { least: 3, most: 9 });
    description.tables = vec![Table {
        name: "priced".to_owned(),
        columns: vec![
            Column::identity("id", SqlType::INT),
            Column::new("price", SqlType::INT, Values::Serial { start: 7, step: 10 }),
            Column { nullable: true, nulls: 30, ..name },
        ],
        rows: 50,
        statistics: vec![1, 2],
        ..Table::default()
    }];
    lab::write(&description, folder).unwrap().files[0].to_str().unwrap().to_owned()
}

fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).output().expect("mdfsck runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn statistics_are_listed_with_their_columns_time_rows_and_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let text = run(&["tables", "--statistics", &file]);
    let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(cells[0], ["object", "statistics", "columns", "updated", "rows", "NULL", "steps", "from", "to"]);
    assert_eq!(cells[1][..1], ["dbo.priced"]);
    assert_eq!(cells[1][2..8], ["price", "2018-01-15", "12:00:00.000", "50", "0", "26"], "{text}");
    assert_eq!(cells[1][8..], ["7", "497"], "{text}");
    assert_eq!(cells[2][2], "name", "{text}");
}

#[test]
fn json_has_every_step_and_the_rows_of_all_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let lines: Vec<Value> = run(&["tables", "--statistics", "--json", &file])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!((&line["kind"], &line["name"]), (&"table_statistics".into(), &"priced".into()));
        let number = |value: &Value| value.as_f64().unwrap();
        let steps = line["steps"].as_array().unwrap();
        let in_steps: f64 = steps.iter().map(|step| number(&step["equal_rows"]) + number(&step["range_rows"])).sum();
        assert!((in_steps + number(&line["null_rows"]) - 50.0).abs() < f64::EPSILON, "{line}");
        assert!(line["automatic"] == true && line["problem"].is_null());
    }
    assert_eq!(lines[0]["steps"][0]["value"], "7");
}

#[test]
fn extended_checks_say_nothing_of_sound_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let text = run(&["check", "--extended-logical-checks", &file]);
    assert!(!text.contains("statistics"), "{text}");
}
