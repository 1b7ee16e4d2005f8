//! What a compressed row costs: `cargo bench -p mdfsck-format --bench expand`.

#![expect(clippy::expect_used, reason = "what it measures must work")]

use divan::{Bencher, black_box};
use format::compressed::{CdRecord, CompressedColumn, CompressionInfo, Expansion, Scratch};
use format::record::Record;
use format::types::{TypeInfo, xtype};

fn main() {
    divan::main();
}

/// Nine columns, as in a table of stock movements: numbers, dates, a char, money.
fn expansion() -> Expansion {
    let kinds: [(u8, u16); COLUMNS] = [
        (xtype::INT, 4),
        (xtype::INT, 4),
        (xtype::INT, 4),
        (xtype::INT, 4),
        (xtype::DATETIME, 8),
        (xtype::NCHAR, 2),
        (xtype::INT, 4),
        (xtype::MONEY, 8),
        (xtype::NVARCHAR, 100),
    ];
    let column = |(kind, length)| {
        let info = TypeInfo { xtype: kind, length, precision: 0, scale: 0 };
        Some(CompressedColumn { info, is_uniquifier: false })
    };
    Expansion::new(&kinds.map(column)).expect("nine columns fit")
}

const COLUMNS: usize = 9;

/// A row of them under ROW compression.
fn row() -> Vec<u8> {
    let mut row = vec![0x21, 9, 0x34, 0x13, 0x28, 0x42, 0x0A];
    row.extend([0x83, 0x04, 0x01, 0x83, 0x05, 0x83, 0x06]);
    row.extend([0x80, 0xA3, 0x1E, 0x01, 0x02, 0x03, 0x04, 0x53, 0x85, 0x81, 0x01, 0x02]);
    let name = b"Mountain-200 Silver, 42";
    row.extend([1, 1, 0, name.len() as u8, 0]);
    row.extend(name);
    row
}

#[divan::bench]
fn read_and_audit(bencher: Bencher<'_, '_>) {
    let row = row();
    assert!(CdRecord::read(&row, COLUMNS).is_ok());
    bencher.bench_local(|| CdRecord::read(black_box(&row), COLUMNS).map(|record| record.bytes().len()));
}

fn expand(bencher: Bencher<'_, '_>, row: &[u8], info: Option<&CompressionInfo<'_>>) {
    let (expansion, mut scratch) = (expansion(), Scratch::default());
    let mut expanded = || {
        let record = CdRecord::read(black_box(row), COLUMNS).ok()?;
        expansion.expand(&record, info, &mut scratch).ok().map(|row| row.record.bytes().len())
    };
    assert!(expanded().is_some());
    bencher.bench_local(expanded);
}

#[divan::bench]
fn read_and_expand_row(bencher: Bencher<'_, '_>) {
    expand(bencher, &row(), None);
}

#[divan::bench]
fn read_and_expand_page_with_prefixes(bencher: Bencher<'_, '_>) {
    let mut info = vec![0x02, 0, 0, 14 + 5, 0, 0x01, 9, 0x00, 0x00, 0x08, 0x01, 0x00];
    info.extend([0x80, 0xA3, 0x1E, 0, 0, 0, 0]);
    let info = CompressionInfo::read(&info, COLUMNS).expect("an anchor of nine columns");
    let mut row = vec![0x01, 9, 0x34, 0x13, 0x17, 0x31, 0x00, 0x83, 0x04, 0x01, 0x83, 0x05, 0x83, 0x06];
    row.extend([0x03, 0x01, 0x02, 0x03, 0x04, 0x05, 0x85, 0x01]);
    expand(bencher, &row, Some(&info));
}

#[divan::bench]
fn the_same_row_uncompressed(bencher: Bencher<'_, '_>) {
    let (row, mut scratch) = (row(), Scratch::default());
    let record = CdRecord::read(&row, COLUMNS).expect("a sound row");
    let plain = expansion().expand(&record, None, &mut scratch).expect("a sound row").record.bytes().to_vec();
    bencher.bench_local(|| Record::data(black_box(&plain)).map(|record| record.bytes().len()));
}
