//! Lab databases must be sound, whatever their description is.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use check::Silent;
use findings::{Options, Report};
use lab::description::{Column, Compression, Filter, Index, Table, Values};
use lab::{Description, SqlType, Version, entries, many_tables, orders, shapes};

fn check(folder: &Path, written: &lab::Written) -> Report {
    let source = source::DataFiles::open(&written.files).unwrap();
    let database = catalog::load(&source);
    assert!(folder.exists() && database.gaps.is_empty(), "{:?}", database.gaps);
    let all = Options { constraints: true, identities: true, extended_logical_checks: true, ..Options::default() };
    check::run(&source, &database, &all, &Silent)
}

/// Writes and checks a database. The database must have the rows that the lab wrote, and the check must have no
/// findings.
fn prove_sound(description: &Description) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(description, folder.path()).unwrap();
    let report = check(folder.path(), &written);
    let findings: Vec<String> = report.findings.iter().take(5).map(|finding| format!("{finding:?}")).collect();
    assert!(findings.is_empty(), "{} ({:?}): {findings:#?}", description.name, description.version);
    assert!(report.read_errors.is_empty(), "{:?}", report.read_errors);
    let constraints: usize = description.tables.iter().map(|table| table.checks.len() + table.foreign_keys.len()).sum();
    let verified = |result: &&findings::ConstraintResult| result.is_verified && result.violations == 0;
    assert_eq!(report.beyond.constraints.iter().filter(verified).count(), constraints, "{:?}", report.beyond);
    for (name, rows) in &written.tables {
        let parts = report.rowsets.iter().filter(|rowset| &rowset.name == name && rowset.index_id < 2);
        assert_eq!(parts.map(|rowset| rowset.rows).sum::<u64>(), *rows, "{name} of {}", description.name);
    }
    report
}

#[test]
fn an_empty_database_of_each_version_is_sound() {
    for version in Version::ALL {
        let mut description = orders::orders(version, 1, 0);
        description.tables.clear();
        prove_sound(&description);
    }
}

#[test]
fn the_orders_schema_of_each_version_is_sound() {
    for version in Version::ALL {
        prove_sound(&orders::orders(version, 7, 10 << 20));
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_types_schema_of_each_version_is_sound() {
    for version in Version::ALL {
        prove_sound(&lab::every_type::types(version, 7));
    }
}

#[test]
fn the_entries_schema_of_each_version_is_sound() {
    for version in Version::ALL {
        prove_sound(&entries::entries(version, 7, 12 << 20));
    }
}

/// Serial numbers that exceed the range of the column type start again at 0. The order of the keys then differs from
/// the order of the row numbers, and the lab must still write the keys in order.
#[test]
fn keys_too_short_for_their_row_numbers_are_in_order() {
    let types = [SqlType::decimal(2, 0), SqlType::char(1), SqlType::nchar(1), SqlType::TINYINT];
    let mut description = orders::orders(Version::V852, 7, 0);
    description.tables = (0..)
        .zip(types)
        .map(|(number, ty)| Table {
            name: format!("short_{number}"),
            columns: vec![
                Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
                Column::new("code", ty, Values::Grouped { start: 1, per: 3 }),
            ],
            clustered: Some(Index::on(&format!("pk_{number}"), &[0]).primary_key()),
            indexes: vec![Index::on("ix", &[1])],
            rows: 2_000,
            ..Table::default()
        })
        .collect();
    prove_sound(&description);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn many_tables_of_each_version_are_sound() {
    for (version, seed) in Version::ALL.into_iter().zip(3..) {
        let report = prove_sound(&many_tables::many_tables(version, seed, 260, 5, 90));
        let user_indexes =
            |counts: &&findings::RowsetCounts| counts.index_id > 1 && counts.name.ends_with(char::is_numeric);
        assert!(report.rowsets.iter().filter(user_indexes).count() >= 5 * 260);
        assert!(report.beyond.identities.iter().filter(|identity| identity.farthest.is_some()).count() > 10);
    }
}

#[test]
fn few_tables_without_indexes_or_rows_are_sound_as_are_indexes_by_the_dozen() {
    for (tables, indexes, rows) in [(1, 0, 0), (1, 7, 1), (2, 0, 3_000), (5, 64, 40), (66, 3, 0)] {
        prove_sound(&many_tables::many_tables(Version::V904, 1, tables, indexes, rows));
    }
}

#[test]
fn a_catalog_longer_than_the_shortest_file_knows_the_size_of_its_file_though_no_table_has_rows() {
    let report = prove_sound(&many_tables::many_tables(Version::V904, 1, 320, 40, 0));
    assert!(report.statistics.pages_allocated > 1024, "its catalog is long");
    let values: Vec<_> = report.not_verified.iter().filter(|entry| entry.what == "catalog values").collect();
    assert!(values.is_empty(), "{values:?}");
}

#[test]
fn trees_of_five_levels_are_sound() {
    let wide = Column::new("wide", SqlType::char(800), Values::Scattered { per: 1 });
    let id = Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 });
    let table = Table {
        name: "tall".to_owned(),
        columns: vec![id, wide],
        clustered: Some(Index::on("pk_tall", &[0]).primary_key()),
        indexes: vec![Index::on("ux_tall_wide", &[1]).unique()],
        rows: 12_000,
        ..Table::default()
    };
    let mut description = orders::orders(Version::V904, 3, 0);
    description.tables = vec![table];
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&description, folder.path()).unwrap();
    assert!(check(folder.path(), &written).findings.is_empty());
    let bytes = std::fs::read(&written.files[0]).unwrap();
    let level_of_index_pages = bytes.chunks(8192).filter(|page| page[1] == 2).map(|page| page[3]).max();
    assert_eq!(level_of_index_pages, Some(4));
}

#[test]
fn page_compression_makes_a_heap_smaller_and_keeps_it_sound() {
    let pages = |compression| {
        let mut description = orders::orders(Version::V904, 3, 0);
        description.tables.retain(|table| table.name == "price_history");
        description.tables[0].compression = compression;
        let report = prove_sound(&description);
        let counts = report.rowsets.iter().find(|rowset| rowset.name == "price_history" && rowset.index_id == 0);
        counts.map_or(0, |counts| counts.data_pages)
    };
    let (plain, row, page) = (pages(Compression::None), pages(Compression::Row), pages(Compression::Page));
    assert!(plain > row && row > page && page > 0, "{plain} {row} {page}");
}

#[test]
fn constraints_that_do_not_hold_are_told() {
    let mut description = orders::orders(Version::V904, 3, 0);
    for table in &mut description.tables {
        match table.name.as_str() {
            // Removes the last order, to which four order lines refer.
            "orders" => table.rows -= 1,
            "order_lines" => table.checks = vec![("ck_many".to_owned(), Filter::AtLeast(3, 25))],
            _ => {}
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&description, folder.path()).unwrap();
    let report = check(folder.path(), &written);
    let is_of_constraint = |finding: &findings::Finding| finding.check.id.contains("constraint");
    let others: Vec<_> = report.findings.iter().filter(|finding| !is_of_constraint(finding)).collect();
    assert!(others.is_empty() && !report.findings.is_empty(), "{others:?}");
    let violations = |name: &str| report.beyond.constraints.iter().find(|c| c.name == name).map(|c| c.violations);
    assert_eq!(violations("fk_order_lines_orders"), Some(4));
    assert!(violations("ck_many").is_some_and(|rows| (100..300).contains(&rows)), "{:?}", violations("ck_many"));
    let mut keyless = orders::orders(Version::V904, 3, 0);
    keyless.tables.retain(|table| table.name != "orders");
    assert!(lab::write(&keyless, folder.path()).is_err(), "a foreign key to a table that is not there");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn random_databases_are_sound() {
    let count = std::env::var("LAB_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(40);
    let first = std::env::var("LAB_FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    for seed in first..first + count {
        prove_sound(&shapes::random(seed));
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let description = shapes::random(5);
    // The catalog contains the paths of the files, so both runs must write to the same paths.
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("twice");
    let write = || {
        std::fs::create_dir(&folder).unwrap();
        let written = lab::write(&description, &folder).unwrap();
        let bytes: Vec<Vec<u8>> = written.files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        bytes
    };
    assert!(write() == write());
}
