//! Reads rows in order, skips damaged pages, and reads pages with random bytes. Also measures the speed of reading.

#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::fs;
use std::path::Path;

use format::{PAGE_BYTES, PageId, protection};
use lab::description::{Column, Description, Index, Values};
use lab::{SqlType, Version};
use rows::{Order, RangeCounts, Reader, Scan, ScanOptions, Table, Value, Why};
use source::DataFiles;

/// Reads all tables of a database. Returns the counts of the reader, added up over all tables.
fn read_all(path: &Path) -> RangeCounts {
    let files = DataFiles::open(&[path.to_owned()]).unwrap();
    let database = catalog::load(&files);
    let options = ScanOptions::default();
    let mut all = RangeCounts::default();
    for table in database.objects.keys().filter_map(|id| Table::of(&database, *id).ok()) {
        let mut scan = Scan::new(&files, &database, &table, options);
        let mut reader = Reader::new(&files, &database, &table, options);
        while let Some(range) = scan.next_range() {
            let counts = reader.read(&range, &mut |row| {
                for value in row.values {
                    if let Value::LongText(long) | Value::LongBytes(long) = value {
                        let _ = long.pieces(&mut |_| Ok(()))?;
                    }
                }
                Ok(())
            });
            all.add(&counts.unwrap());
        }
    }
    all
}

/// Pseudo-random numbers, the same in each run.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize
}

#[test]
#[ignore = "full tier: takes seconds"]
fn no_bytes_of_sound_looking_pages_make_the_reader_panic_or_hang() {
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&lab::every_type::types(Version::V852, 3), folder.path()).unwrap();
    let sound = fs::read(&written.files[0]).unwrap();
    let most = read_all(&written.files[0]).rows;
    let path = folder.path().join("hostile.mdf");
    let mut state = 0x9E37_79B9_7F4A_7C15;
    for _ in 0..40 {
        let mut bytes = sound.clone();
        for _ in 0..200 {
            let page = 10 + random(&mut state) % (bytes.len() / PAGE_BYTES - 10);
            let page: &mut [u8; PAGE_BYTES] = bytes[page * PAGE_BYTES..].first_chunk_mut().unwrap();
            // Half of the changes are in the page header or the slot array, where they do the most harm.
            let at = match random(&mut state) % 4 {
                0 => random(&mut state) % 60,
                1 => PAGE_BYTES - 1 - random(&mut state) % 40,
                _ => 96 + random(&mut state) % (PAGE_BYTES - 96),
            };
            page[at] = random(&mut state) as u8;
            protection::seal(page);
        }
        fs::write(&path, &bytes).unwrap();
        assert!(read_all(&path).rows <= 4 * most, "rows come from nowhere");
    }
}

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

#[test]
fn the_rows_of_all_pages_but_the_damaged_one_are_read_in_the_order_of_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&plain_table(20_000), folder.path()).unwrap();
    let read = |expected: &Order| {
        let files = DataFiles::open(&written.files).unwrap();
        let database = catalog::load(&files);
        let table = Table::of(&database, Table::list(&database)[0]).unwrap();
        let options = ScanOptions::default();
        let mut scan = Scan::new(&files, &database, &table, options);
        assert_eq!(scan.order(), expected);
        let mut reader = Reader::new(&files, &database, &table, options);
        let (mut rows, mut counts) = (Vec::new(), RangeCounts::default());
        while let Some(range) = scan.next_range() {
            let read = reader.read(&range, &mut |row| {
                let Value::Integer(id) = row.values[0] else { panic!("{row:?}") };
                rows.push((id, row.place.page));
                Ok(())
            });
            counts.add(&read.unwrap());
        }
        (rows, counts)
    };
    let (rows, counts) = read(&Order::Key);
    assert!(rows.is_sorted() && rows.len() == 20_000 && counts.damaged_pages.is_empty());
    let victim: PageId = rows[10_000].1;
    let mut bytes = fs::read(&written.files[0]).unwrap();
    bytes[victim.page as usize * PAGE_BYTES + 5_000] ^= 1;
    fs::write(&written.files[0], &bytes).unwrap();
    // If only a leaf page is damaged, the other rows can still be read in key order.
    let (left, counts) = read(&Order::Key);
    assert_eq!(left, rows.iter().copied().filter(|(_, page)| *page != victim).collect::<Vec<_>>());
    assert_eq!(counts.damaged_pages, [(victim, Why::Damaged)]);
}
