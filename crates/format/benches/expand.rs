//! The cost of expanding a compressed row: `cargo bench -p mdfsck-format --bench expand`.

#![expect(clippy::expect_used, reason = "what it measures must work")]

use divan::{Bencher, black_box};
use format::compressed::{CdRecord, CompressedColumn, CompressionInfo, ExpandedPage, Expansion, Scratch};
use format::record::Record;
use format::types::{TypeInfo, xtype};

fn main() {
    divan::main();
}

/// The nine columns of a table of stock movements: numbers, dates, a char, money.
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

/// A row under ROW compression with the columns of `expansion`.
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

/// Builds a page full of compressed records. Returns the bytes of the page, the place of each record, and the expansion
/// of the columns.
fn page(
    kinds: &[(u8, u16)],
    values: impl Fn(usize, usize) -> Vec<u8>,
) -> (Vec<u8>, Vec<std::ops::Range<usize>>, Expansion) {
    let column = |(kind, length): &(u8, u16)| {
        let info = TypeInfo { xtype: *kind, length: *length, precision: 12, scale: 2 };
        Some(CompressedColumn { info, is_uniquifier: false })
    };
    let columns: Vec<_> = kinds.iter().map(column).collect();
    let (mut page, mut spaces) = (vec![0; 96], Vec::new());
    for row in 0.. {
        let values: Vec<_> = (0..kinds.len()).map(|column| values(row, column)).collect();
        let record = record(&values);
        if page.len() + record.len() > 8000 {
            break;
        }
        spaces.push(page.len()..page.len() + record.len());
        page.extend(record);
    }
    page.resize(8192, 0);
    (page, spaces, Expansion::new(&columns).expect("they fit"))
}

/// Builds a compressed record of at most 30 columns, which is one cluster.
fn record(values: &[Vec<u8>]) -> Vec<u8> {
    let half = |value: &Vec<u8>| if value.len() > 8 { 10 } else { value.len() as u8 + 1 };
    let (short, long): (Vec<_>, Vec<_>) = values.iter().partition(|value| value.len() <= 8);
    let mut record = vec![if long.is_empty() { 0x01 } else { 0x21 }, values.len() as u8];
    record.extend(values.chunks(2).map(|pair| half(&pair[0]) | pair.get(1).map_or(0, half) << 4));
    record.extend(short.into_iter().flatten());
    if !long.is_empty() {
        record.extend([1, long.len() as u8, 0]);
        let mut end = 0;
        for value in &long {
            end += value.len();
            record.extend((end as u16).to_le_bytes());
        }
        record.extend(long.into_iter().flatten());
    }
    record
}

/// A pseudo-random number that depends only on the row and the column.
fn drawn(row: usize, column: usize) -> u64 {
    let mixed = ((row * 64 + column) as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
}

/// Encodes an integer as row compression does: biased, in as few bytes as possible.
fn integer(value: u64) -> Vec<u8> {
    let length = (1..8).find(|length| value < 1 << (8 * length - 1)).unwrap_or(8);
    (value + (1 << (8 * length - 1))).to_be_bytes()[8 - length..].to_vec()
}

/// The same column types as in the benchmark `row_forms`.
const PAYMENTS: [(u8, u16); 6] = [
    (xtype::INT, 4),
    (xtype::INT, 4),
    (xtype::DECIMAL, 9),
    (xtype::DATETIME, 8),
    (xtype::SMALLINT, 2),
    (xtype::VARCHAR, 40),
];

fn payment(row: usize, column: usize) -> Vec<u8> {
    match column {
        0 => integer(200_000 + row as u64),
        1 => integer(drawn(row, column) % 1_000_000),
        2 => decimal(drawn(row, column) % 5_000_000 + 1),
        3 => integer(((40_000 + row as u64) << 32) + drawn(row, column) % 20_000_000),
        4 => integer(drawn(row, column) % 9 + 1),
        _ => vec![b'a'; 5 + drawn(row, column) as usize % 16],
    }
}

/// Encodes an amount as a vardecimal with two decimal places.
fn decimal(cents: u64) -> Vec<u8> {
    let digits = cents.to_string();
    let exponent = digits.len() as i32 - 3;
    let mut bits = String::new();
    for group in digits.as_bytes().chunks(3) {
        let text = std::str::from_utf8(group).expect("digits");
        let value: u16 = format!("{text:0<3}").parse().expect("digits");
        bits.push_str(&format!("{value:010b}"));
    }
    let mut bytes = vec![0x80 | (exponent + 64) as u8];
    for eight in bits.as_bytes().chunks(8) {
        let text = format!("{:0<8}", std::str::from_utf8(eight).expect("bits"));
        bytes.push(u8::from_str_radix(&text, 2).expect("bits"));
    }
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

fn expand_together(
    bencher: Bencher<'_, '_>,
    (page, spaces, expansion): (Vec<u8>, Vec<std::ops::Range<usize>>, Expansion),
) {
    let page: &format::PageBytes = page.as_slice().try_into().expect("a page");
    let mut expanded = ExpandedPage::default();
    let mut load =
        || expanded.load(page, spaces.iter().cloned(), &expansion.of_page(None), |row| black_box(row.length) > 0);
    assert!(load());
    bencher.counter(divan::counter::ItemsCount::new(spaces.len())).bench_local(load);
}

#[divan::bench]
fn together_payments(bencher: Bencher<'_, '_>) {
    expand_together(bencher, page(&PAYMENTS, payment));
}

/// Pages with thirty columns, on which the records have few different heads.
#[divan::bench]
fn together_thirty_columns(bencher: Bencher<'_, '_>) {
    let kinds: Vec<_> = PAYMENTS.iter().copied().chain((6..30).map(|_| (xtype::INT, 4))).collect();
    let value = |row, column| if column < 6 { payment(row, column) } else { integer(drawn(row, column) % 9 + 1) };
    expand_together(bencher, page(&kinds, value));
}

/// Pages with thirty columns, on which each record has a different head.
#[divan::bench]
fn together_thirty_columns_unlike(bencher: Bencher<'_, '_>) {
    let kinds: Vec<_> = PAYMENTS.iter().copied().chain((6..30).map(|_| (xtype::INT, 4))).collect();
    let value = |row, column| if column < 6 { payment(row, column) } else { integer(drawn(row, column) % 60_000) };
    expand_together(bencher, page(&kinds, value));
}
