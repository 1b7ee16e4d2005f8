//! Changes single fields of rows and pages, and checks the report on each change.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use catalog::{Database, Level, Stored};
use check::Silent;
use findings::{Options, Report};
use format::fields::Structure;
use format::instances::instances;
use format::record::Record;
use format::{Page, PageBytes, PageId, PageType};
use lab::description::{Column, Filegroup, Index, Table, Values};
use lab::{Description, PageVerify, SqlType, Version};
use source::{MemoryFiles, PageSource};
use trials::mutate::{Survey, seal};

/// A database with a single table.
fn database(table: Table) -> MemoryFiles {
    let description = Description {
        name: "fields".to_owned(),
        version: Version::V904,
        collation: lab::description::DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed: 5,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: vec![table],
        least_pages: 0,
    };
    let folder = tempfile::tempdir().unwrap();
    let files = lab::write(&description, folder.path()).unwrap().files;
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap());
    MemoryFiles::open(files.into_iter().map(read).collect()).unwrap()
}

fn check(files: &MemoryFiles, row_by_row: bool) -> Report {
    check::run(files, &catalog::load(files), &Options { row_by_row, ..Options::default() }, &Silent)
}

/// The database with one page changed.
fn with_page(files: &MemoryFiles, page: PageId, change: impl FnOnce(&mut PageBytes)) -> MemoryFiles {
    let mut bytes = *files.read_page(page).unwrap();
    change(&mut bytes);
    seal(&mut bytes);
    files.with_pages([(page, bytes)]).unwrap()
}

/// The data pages of the table.
fn data_pages(files: &MemoryFiles, database: &Database, object: i32) -> Vec<(PageId, PageBytes)> {
    let of_table = |unit: &&catalog::AllocUnit| {
        database.rowset_of(unit).is_some_and(|rowset| rowset.object_id == object && rowset.index_id <= 1)
    };
    let units: Vec<&catalog::AllocUnit> = database.units.iter().filter(of_table).collect();
    let pages = (0..files.files()[0].pages).map(|page| PageId::new(1, page));
    pages
        .filter_map(|page| Some((page, *files.read_page(page)?)))
        .filter(|(_, bytes)| {
            let header = *Page::new(bytes).header();
            header.kind() == Some(PageType::Data) && units.iter().any(|unit| unit.id == header.alloc_unit())
        })
        .collect()
}

fn object(database: &Database) -> i32 {
    database.objects.values().find(|object| object.name == "one").unwrap().id
}

fn table() -> Table {
    Table {
        name: "one".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("code", SqlType::char(12), Values::Scattered { per: 1 }),
            Column::new("notes", SqlType::varchar(300), Values::Text { least: 5, most: 30 }).nullable(20),
        ],
        indexes: vec![Index::on("ix_code", &[1]).including(&[2])],
        rows: 30,
        ..Table::default()
    }
}

fn sparse_table() -> Table {
    Table {
        columns: vec![
            Column::new("id", SqlType::INT, Values::Grouped { start: 1, per: 3 }),
            Column::new("code", SqlType::varchar(30), Values::Text { least: 0, most: 30 }),
            Column::new("one", SqlType::BIGINT, Values::Scattered { per: 1 }).sparse(40),
            Column::new("two", SqlType::varchar(30), Values::Text { least: 9, most: 9 }).sparse(40),
        ],
        clustered: Some(Index::on("by_id", &[0])),
        indexes: Vec::new(),
        rows: 300,
        ..table()
    }
}

#[test]
fn the_level_of_an_index_of_one_page_is_named_whatever_it_is() {
    for clustered in [None, Some(Index::on("pk", &[0]).primary_key())] {
        let files = database(Table { clustered, ..table() });
        assert!(check(&files, false).findings.is_empty());
        let database = catalog::load(&files);
        let of_index = |unit: &&catalog::AllocUnit| {
            database.rowset_of(unit).is_some_and(|rowset| (rowset.object_id, rowset.index_id) == (object(&database), 2))
        };
        let root = database.units.iter().find(of_index).unwrap().root;
        for level in [1, 2, 5, 255] {
            let report = check(&with_page(&files, root, |bytes| bytes[3] = level), false);
            let found: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
            let expected =
                format!("B-tree level mismatch, page {root}. Level {level} does not match level 1 from parent (0:0).");
            assert!(found.iter().any(|text| text.ends_with(&expected)), "{level}: {found:#?}");
        }
    }
}

#[test]
fn a_null_over_bytes_that_were_kept_is_null() {
    // The table has no indexes, so there is no other copy of the column's values with which the check could compare
    // them.
    let files = database(Table { indexes: Vec::new(), ..table() });
    let loaded = catalog::load(&files);
    let rowset = loaded.table_rowsets(object(&loaded)).next().unwrap();
    let column = rowset.layout.column(3).unwrap();
    let unverified = check(&files, false).not_verified.len();
    let mut seen = 0;
    for (page, bytes) in data_pages(&files, &loaded, object(&loaded)) {
        let view = Page::new(&bytes);
        for slot in 0..view.header().slot_count.get() {
            let at = usize::from(view.slot_offset(slot).unwrap());
            let record = Record::data(&bytes[at..]).unwrap();
            if !matches!(column.stored(Level::Leaf, &record), Stored::Plain(_)) {
                continue;
            }
            let bit = usize::from(column.leaf_null_bit - 1);
            let bitmap = at + usize::from(record.fixed_end()) + 2;
            let changed = with_page(&files, page, |bytes| bytes[bitmap + bit / 8] |= 1 << (bit % 8));
            for row_by_row in [false, true] {
                let report = check(&changed, row_by_row);
                assert!(report.findings.is_empty(), "{page} {slot}");
                assert_eq!(report.not_verified.len(), unverified, "{page} {slot}");
            }
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen} rows");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_sparse_vector_that_no_longer_begins_as_one_is_not_verified() {
    let files = database(sparse_table());
    let is_unknown = |entry: &&findings::NotVerified| entry.reason.contains("unknown form");
    assert_eq!(check(&files, false).not_verified.iter().filter(is_unknown).count(), 0);
    let loaded = catalog::load(&files);
    let mut seen = 0;
    for (page, bytes) in data_pages(&files, &loaded, object(&loaded)) {
        let found = instances(&bytes);
        let heads = found.iter().filter(|at| at.field.structure == Structure::SparseVector && at.field.name == "id");
        for head in heads.step_by(17) {
            for id in [0x8005u16, 4, 2, 0, 0xFFFF, 0x0500] {
                let changed = with_page(&files, page, |bytes| {
                    bytes[head.bytes.start..head.bytes.start + 2].copy_from_slice(&id.to_le_bytes());
                });
                for row_by_row in [false, true] {
                    let report = check(&changed, row_by_row);
                    let told: u64 = report.not_verified.iter().filter(is_unknown).map(|entry| entry.count).sum();
                    assert!(told == 1 && report.findings.is_empty(), "{page} {:?} {id:x}: {told}", head.slot);
                }
            }
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen} vectors");
}

#[test]
fn the_values_of_a_sparse_vector_are_no_columns_of_the_row() {
    let files = database(sparse_table());
    let loaded = catalog::load(&files);
    let survey = Survey::of(&files, &loaded, 1);
    let mut uniquifiers = 0;
    for (structure, field, sites) in survey.fields().filter(|(structure, ..)| *structure == "table row") {
        if field == "uniquifier" {
            for site in sites.drawn() {
                assert_eq!(site.bytes.len(), 4, "{structure} {field}: {site:?}");
                uniquifiers += 1;
            }
        }
    }
    assert!(uniquifiers > 0);
}
