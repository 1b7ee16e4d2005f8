//! Measures the speed of reading rows as typed values: MB of data pages per second on one core. Run it with `cargo
//! bench -p trials --bench values`.
#![expect(clippy::unwrap_used, reason = "an instrument: where it cannot work, no result means anything")]

use std::time::Instant;

use format::PAGE_BYTES;
use lab::description::{Column, Description, Index, Values};
use lab::{SqlType, Version};
use rows::{Reader, Scan, ScanOptions, Table};
use source::DataFiles;

/// A table with fixed-length columns and short strings.
fn plain_table(rows: u64) -> Description {
    let uniform = |low, high| Values::Uniform { low, high };
    let table = lab::description::Table {
        name: "orders".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("customer", SqlType::INT, uniform(1, 1_000_000)),
            Column::new("price", SqlType::INT, uniform(1, 5_000)),
            Column::new("placed", SqlType::DATETIME, Values::Serial { start: 40_000, step: 1 }),
            Column::new("comment", SqlType::nvarchar(60), Values::Text { least: 5, most: 30 }),
            Column::new("note", SqlType::nvarchar(60), Values::Text { least: 20, most: 50 }),
        ],
        clustered: Some(Index::on("pk_orders", &[0]).primary_key()),
        rows,
        ..lab::description::Table::default()
    };
    Description { tables: vec![table], ..lab::every_type::types(Version::V852, 1) }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&plain_table(1_000_000), folder.path()).unwrap();
    let files = DataFiles::open(&written.files).unwrap();
    let database = catalog::load(&files);
    let table = Table::of(&database, Table::list(&database)[0]).unwrap();
    let options = ScanOptions::default();
    for _ in 0..5 {
        let mut scan = Scan::new(&files, &database, &table, options);
        let mut reader = Reader::new(&files, &database, &table, options);
        let start = Instant::now();
        let (mut pages, mut values) = (0, 0);
        while let Some(range) = scan.next_range() {
            pages += range.pages.len();
            let counts = reader.read(&range, &mut |row| {
                values += std::hint::black_box(row.values).len();
                Ok(())
            });
            assert!(counts.unwrap().damaged_pages.is_empty());
        }
        let megabytes = (pages * PAGE_BYTES) as f64 / 1e6;
        println!("{:.0} MB/s, {values} values", megabytes / start.elapsed().as_secs_f64());
    }
}
