//! Measures the time that reading a page takes, and the time for each row on it: `cargo bench -p mdfsck-format --bench
//! page`.

use std::cmp::Ordering;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use format::key::{Ascent, KeyColumn, KeyOrder, compare};
use format::page::HEADER_BYTES;
use format::protection::checksum;
use format::record::Record;
use format::same_shape::SameShapeRows;
use format::slots::SlotOrder;
use format::{PAGE_BYTES, Page, PageBytes};

/// The end of the fixed part of an order line: two 8-byte numbers and five 4-byte numbers. A text of 10 to 34 bytes
/// follows.
const FIXED_END: u16 = 40;

/// A page full of rows, and the number of its rows.
fn full_page() -> (PageBytes, u16) {
    let mut page = [0; PAGE_BYTES];
    (page[0], page[1]) = (1, 1);
    page[14..16].copy_from_slice(&FIXED_END.to_le_bytes());
    let (mut end, mut rows) = (HEADER_BYTES, 0u16);
    loop {
        let mut record = vec![0x30, 0];
        record.extend(FIXED_END.to_le_bytes());
        record.extend((u64::from(rows) / 4).to_le_bytes());
        record.extend((u32::from(rows) % 4).to_le_bytes());
        record.resize(FIXED_END.into(), 7);
        let text = 10 + (usize::from(rows) * 7) % 25;
        let whole = record.len() + 3 + 4 + text;
        record.extend([8, 0, 0, 1, 0]);
        record.extend((whole as u16).to_le_bytes());
        record.resize(whole, b'x');
        if end + record.len() + 2 * (usize::from(rows) + 1) > PAGE_BYTES {
            break;
        }
        page[end..end + record.len()].copy_from_slice(&record);
        rows += 1;
        let slot = PAGE_BYTES - 2 * usize::from(rows);
        page[slot..slot + 2].copy_from_slice(&(end as u16).to_le_bytes());
        end += record.len();
    }
    page[22..24].copy_from_slice(&rows.to_le_bytes());
    page[30..32].copy_from_slice(&(end as u16).to_le_bytes());
    (page, rows)
}

/// A page with the parsers and the key columns that the benchmarks use.
struct Bench {
    page: PageBytes,
    rows: ItemsCount,
    same_shape: SameShapeRows,
    key: [KeyColumn; 2],
}

impl Bench {
    fn new() -> Self {
        let (page, rows) = full_page();
        let mut same_shape = SameShapeRows::default();
        assert!(
            same_shape.load(Page::new(&page), false) && same_shape.spans().len() == usize::from(rows),
            "the page has rows of one shape"
        );
        let column = |offset, length| {
            let (order, null_bit, descending) = (KeyOrder::Signed, 0, false);
            KeyColumn { order, offset, length, null_bit, descending }
        };
        Self { page, rows: ItemsCount::new(rows), same_shape, key: [column(4, 8), column(12, 4)] }
    }

    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let rows = self.same_shape.of(black_box(Page::new(&self.page)));
        (0..rows.count()).filter_map(move |slot| rows.record(slot))
    }
}

fn main() {
    divan::main();
}

#[divan::bench]
fn checksum_of_a_page(bencher: Bencher<'_, '_>) {
    let bench = Bench::new();
    bencher.counter(BytesCount::new(PAGE_BYTES)).bench_local(|| checksum(black_box(&bench.page)));
}

#[divan::bench]
fn records_one_by_one(bencher: Bencher<'_, '_>) {
    let bench = Bench::new();
    let mut order = SlotOrder::default();
    bencher.counter(bench.rows).bench_local(|| {
        order.load(black_box(Page::new(&bench.page)));
        bench.records().map(|record| record.bytes().len()).sum::<usize>()
    });
}

#[divan::bench]
fn records_together(bencher: Bencher<'_, '_>) {
    let bench = Bench::new();
    let mut same_shape = SameShapeRows::default();
    bencher.counter(bench.rows).bench_local(|| same_shape.load(black_box(Page::new(&bench.page)), false));
}

#[divan::bench]
fn order_of_keys_one_by_one(bencher: Bencher<'_, '_>) {
    let bench = Bench::new();
    bencher.counter(bench.rows).bench_local(|| {
        let pairs = bench.records().zip(bench.records().skip(1));
        pairs.filter(|(a, b)| compare(a, b, &bench.key).is_some_and(Ordering::is_lt)).count()
    });
}

#[divan::bench]
fn order_of_keys_together(bencher: Bencher<'_, '_>) {
    let bench = Bench::new();
    let mut ascent = Ascent::default();
    let rows = bench.same_shape.of(Page::new(&bench.page));
    bencher.counter(bench.rows).bench_local(|| ascent.undecided(black_box(rows), &bench.key));
}
