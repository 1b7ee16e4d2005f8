//! What a compressed row costs: `cargo bench -p mdfsck-format`.

use std::hint::black_box;
use std::time::Instant;

use format::compressed::{CdRecord, CompressedColumn, CompressionInfo, Expansion, Scratch};
use format::record::Record;
use format::types::{TypeInfo, xtype};

const ROUNDS: u32 = 2_000_000;

fn time(name: &str, mut row: impl FnMut() -> usize) {
    let mut bytes = 0;
    for _ in 0..ROUNDS / 10 {
        bytes += row();
    }
    assert!(bytes > 0, "{name}: the row is not read");
    let start = Instant::now();
    for _ in 0..ROUNDS {
        bytes += row();
    }
    let nanoseconds = start.elapsed().as_nanos() / u128::from(ROUNDS);
    println!("{name:<52} {nanoseconds:>5} ns a row");
    black_box(bytes);
}

fn main() {
    // Nine columns, as in a table of stock movements: numbers, dates, a char, money.
    let kinds: [(u8, u16); 9] = [
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
    let expansion = Expansion::new(&kinds.map(column)).unwrap_or_else(|| std::process::exit(1));
    let mut row = vec![0x21, 9, 0x34, 0x13, 0x28, 0x42, 0x0A];
    row.extend([0x83, 0x04, 0x01, 0x83, 0x05, 0x83, 0x06]);
    row.extend([0x80, 0xA3, 0x1E, 0x01, 0x02, 0x03, 0x04, 0x53, 0x85, 0x81, 0x01, 0x02]);
    let name = b"Mountain-200 Silver, 42";
    row.extend([1, 1, 0, name.len() as u8, 0]);
    row.extend(name);
    let mut scratch = Scratch::default();
    let read = |row: &[u8]| CdRecord::read(row, 9).map_or(0, |record| record.bytes().len());
    time("read and audit", || read(black_box(&row)));
    time("read and expand, ROW", || {
        let Ok(record) = CdRecord::read(black_box(&row), 9) else { return 0 };
        expansion.expand(&record, None, &mut scratch).map_or(0, |row| row.record.bytes().len())
    });
    let mut info = vec![0x02, 0, 0, 14 + 5, 0, 0x01, 9, 0x00, 0x00, 0x08, 0x01, 0x00];
    info.extend([0x80, 0xA3, 0x1E, 0, 0, 0, 0]);
    let info = CompressionInfo::read(&info, 9).ok();
    let mut anchored = vec![0x01, 9, 0x34, 0x13, 0x17, 0x31, 0x00, 0x83, 0x04, 0x01, 0x83, 0x05, 0x83, 0x06];
    anchored.extend([0x03, 0x01, 0x02, 0x03, 0x04, 0x05, 0x85, 0x01]);
    time("read and expand, PAGE with prefixes", || {
        let Ok(record) = CdRecord::read(black_box(&anchored), 9) else { return 0 };
        expansion.expand(&record, info.as_ref(), &mut scratch).map_or(0, |row| row.record.bytes().len())
    });
    let plain = CdRecord::read(&row, 9).ok().and_then(|record| {
        let expanded = expansion.expand(&record, None, &mut scratch).ok()?;
        Some(expanded.record.bytes().to_vec())
    });
    let plain = plain.unwrap_or_default();
    time("the same row uncompressed: read and audit", || {
        Record::data(black_box(&plain)).map_or(0, |record| record.bytes().len())
    });
}
