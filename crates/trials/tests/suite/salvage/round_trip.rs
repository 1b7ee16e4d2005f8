//! The values read from lab tables of every type must equal the values that the lab reports.

use std::collections::BTreeSet;

use lab::{Version, every_type};
use rows::{Reader, Scan, ScanOptions, Table};
use source::MemoryFiles;
use trials::plain::plain;

type Row = Vec<Option<String>>;

fn rows_of(files: &MemoryFiles, database: &catalog::Database, table: &Table) -> Vec<Row> {
    let mut scan = Scan::new(files, database, table, ScanOptions::default());
    let mut reader = Reader::new(files, database, table, ScanOptions::default());
    let mut rows = Vec::new();
    while let Some(range) = scan.next_range() {
        let counts = reader
            .read(&range, &mut |row| {
                rows.push(row.values.iter().map(plain).collect());
                Ok(())
            })
            .unwrap();
        assert!(counts.damaged_pages.is_empty() && counts.skipped_slots == 0, "{} {counts:?}", table.name);
    }
    rows
}

#[test]
#[ignore = "full tier: takes seconds"]
fn every_type_of_every_version_and_compression_is_read_as_it_was_written() {
    let mut wrong = BTreeSet::new();
    let mut values = 0;
    for version in Version::ALL {
        let folder = tempfile::tempdir().unwrap();
        let description = every_type::types(version, 3);
        let written = lab::write(&description, folder.path()).unwrap();
        let contents = written.files.iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        let files = MemoryFiles::open(contents).unwrap();
        let database = catalog::load(&files);
        let ids = Table::list(&database);
        for truth in lab::truth::truth(&description) {
            let named = |id: &&i32| database.objects[*id].name == truth.table;
            let table = Table::of(&database, *ids.iter().find(named).unwrap()).unwrap();
            let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
            assert_eq!(names, truth.columns);
            let by_id = |row: &Row| row[0].as_ref().unwrap().parse::<u64>().unwrap();
            let mut rows = rows_of(&files, &database, &table);
            rows.sort_by_key(by_id);
            assert_eq!(rows.len(), truth.rows.len(), "{version:?} {}", truth.table);
            for (row, expected) in rows.iter().zip(&truth.rows) {
                for ((value, expected), name) in row.iter().zip(expected).zip(&truth.columns) {
                    values += 1;
                    if value != expected {
                        let short = |value: &Option<String>| {
                            value.as_ref().map(|text| text.chars().take(90).collect::<String>())
                        };
                        wrong.insert(format!(
                            "{}.{name}: {:?}, not {:?} ({version:?})",
                            truth.table,
                            short(value),
                            short(expected)
                        ));
                    }
                }
            }
        }
    }
    let few: Vec<_> = wrong.iter().take(40).collect();
    assert!(wrong.is_empty(), "{} of {values} values are wrong: {few:#?}", wrong.len());
}
