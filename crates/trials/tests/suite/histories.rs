//! Tables with added and dropped columns. A row that was written before a column was added has no bytes for this
//! column, so the reader must find the value elsewhere, for example in the default of the column. No check may read the
//! bytes of a dropped column as the value of a column that was added later.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use check::Silent;
use findings::Options;
use format::{PAGE_BYTES, Page, RecordId, protection};
use lab::{Version, histories::histories};
use rows::{Reader, Scan, ScanOptions, Table};
use source::{DataFiles, PageSource};
use trials::plain::plain;

type Row = Vec<Option<String>>;

/// Checks a file. Returns the object and the message number of each finding, and the number of verified constraints.
fn check(file: &Path, options: &Options) -> (BTreeSet<(String, u16)>, usize) {
    let files = DataFiles::open(&[file.to_owned()]).unwrap();
    let database = catalog::load(&files);
    let report = check::run(&files, &database, options, &Silent);
    // The lab does not write partition functions.
    let others = report.not_verified.iter().filter(|entry| entry.limit.id != "partition.function");
    let limits: Vec<_> = others.map(|entry| format!("{entry:?}")).collect();
    assert!(limits.is_empty() && report.read_errors.is_empty(), "{limits:#?} {:?}", report.read_errors);
    let object = |id: Option<i32>| database.object_name(id.unwrap_or_default());
    let findings = report.findings.iter().map(|finding| (object(finding.object_id()), finding.check.msg)).collect();
    let is_kept = |result: &&findings::ConstraintResult| result.is_verified && result.violations == 0;
    (findings, report.beyond.constraints.iter().filter(is_kept).count())
}

fn all() -> Options {
    Options { constraints: true, extended_logical_checks: true, ..Options::default() }
}

/// The rows of a table with their addresses. A row contains only the named columns.
fn read(files: &DataFiles, name: &str, columns: &[String]) -> Vec<(RecordId, Row)> {
    let database = catalog::load(files);
    let id = Table::list(&database).into_iter().find(|id| database.objects[id].name == name).unwrap();
    let table = Table::of(&database, id).unwrap();
    let place = |name| table.columns.iter().position(|column| &column.name == name).unwrap();
    let places: Vec<usize> = columns.iter().map(place).collect();
    let options = ScanOptions::default();
    let mut scan = Scan::new(files, &database, &table, options);
    let mut reader = Reader::new(files, &database, &table, options);
    let mut found = Vec::new();
    while let Some(range) = scan.next_range() {
        let counts = reader.read(&range, &mut |row| {
            found.push((row.place, places.iter().map(|at| plain(&row.values[*at])).collect()));
            Ok(())
        });
        assert!(counts.unwrap().damaged_pages.is_empty());
    }
    found
}

/// Requires that every check finds the database sound, including the check that audits each row separately. Each value
/// must be the written value or the default value of its column.
fn proves(version: Version) {
    let folder = tempfile::tempdir().unwrap();
    let description = histories(version, 7);
    let written = lab::write(&description, folder.path()).unwrap();
    let file = &written.files[0];
    let constraints: usize = description.tables.iter().map(|table| table.checks.len()).sum();
    for row_by_row in [false, true] {
        let (findings, kept) = check(file, &Options { row_by_row, ..all() });
        assert_eq!((findings, kept), (BTreeSet::new(), constraints), "{version:?}");
    }
    let files = DataFiles::open(&written.files).unwrap();
    for truth in lab::truth::truth(&description) {
        let mut found: Vec<Row> = read(&files, &truth.table, &truth.columns).into_iter().map(|(_, row)| row).collect();
        let mut expected = truth.rows;
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{} of {version:?}", truth.table);
    }
}

#[test]
fn rows_older_than_a_column_have_null_or_its_default_whatever_bytes_are_in_its_place() {
    proves(Version::V957);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn they_have_in_every_version() {
    Version::ALL.into_iter().for_each(proves);
}

#[test]
fn a_changed_value_in_the_place_of_a_dropped_column_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&histories(Version::V957, 7), folder.path()).unwrap();
    let file = &written.files[0];
    let name = "heap kept none";
    let (place, offset) = {
        let files = DataFiles::open(&written.files).unwrap();
        let database = catalog::load(&files);
        let rows = read(&files, name, &["same".to_owned()]);
        let (place, _) = rows.into_iter().rfind(|(_, row)| row[0].is_some()).unwrap();
        let table = database.objects.values().find(|object| object.name == name).unwrap().id;
        let id = database.columns[&table].iter().find(|column| column.name == "same").unwrap().id;
        let rowset = database.table_rowsets(table).next().unwrap();
        let offset = rowset.layout.column(id).unwrap().leaf_offset;
        let page = files.read_page(place.page).unwrap();
        (place, usize::from(Page::new(&page).slot_offset(place.slot).unwrap() + offset.unsigned_abs()))
    };
    let mut bytes = std::fs::read(file).unwrap();
    let page: &mut [u8; PAGE_BYTES] = bytes[place.page.page as usize * PAGE_BYTES..].first_chunk_mut().unwrap();
    page[offset..offset + 4].copy_from_slice(&(-7i32).to_le_bytes());
    protection::seal(page);
    std::fs::write(file, &bytes).unwrap();
    let files = DataFiles::open(&written.files).unwrap();
    let database = catalog::load(&files);
    let report = check::run(&files, &database, &all(), &Silent);
    let found: BTreeSet<(String, u16)> = report
        .findings
        .iter()
        .map(|finding| (database.object_name(finding.object_id().unwrap_or_default()), finding.check.msg))
        .collect();
    let violated: Vec<u64> =
        report.beyond.constraints.iter().map(|result| result.violations).filter(|n| *n > 0).collect();
    assert!(found.iter().all(|(table, _)| table.contains(name)), "{found:?}");
    let messages: BTreeSet<u16> = found.iter().map(|(_, message)| *message).collect();
    assert!([8951, 8952].iter().all(|message| messages.contains(message)), "{found:?}");
    assert_eq!(violated, [1], "{found:?}");
}
