//! What a page costs, and a row of it: `cargo bench -p mdfsck-format --bench page`.

use std::hint::black_box;
use std::time::Instant;

use format::key::{Ascent, KeyColumn, KeyOrder, compare};
use format::page::HEADER_BYTES;
use format::protection::checksum;
use format::slots::SlotOrder;
use format::uniform::UniformRows;
use format::{PAGE_BYTES, Page, PageBytes};

const RUNS: u32 = 1000;
const ROUNDS: u32 = 20;
/// Lines of orders: two numbers of eight bytes, five of four, a text of 10 to 34 bytes.
const FIXED_END: u16 = 40;

/// A page full of rows, and how many they are.
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

/// The shortest time of many short runs, which others on the machine disturb less.
fn time(name: &str, rows: u16, mut work: impl FnMut() -> u64) {
    let mut shortest = f64::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(work());
        }
        shortest = shortest.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
    }
    println!("{name:<44} {shortest:>7.0} ns a page {:>6.1} ns a row", shortest / f64::from(rows));
}

fn main() {
    let (page, rows) = full_page();
    let page = Page::new(&page);
    let column = |offset, length| {
        let (order, null_bit, descending) = (KeyOrder::Signed, 0, false);
        KeyColumn { order, offset, length, null_bit, descending }
    };
    let key = [column(4, 8), column(12, 4)];
    time("checksum", rows, || checksum(black_box(page.bytes())).into());
    let mut order = SlotOrder::default();
    let mut uniform = UniformRows::default();
    assert!(uniform.load(page) && uniform.spans().len() == usize::from(rows), "the page is uniform");
    let records = || (0..rows).filter_map(|slot| uniform.of(page).record(slot.into()));
    time("records, one by one", rows, || {
        order.load(black_box(page));
        records().map(|record| record.bytes().len() as u64).sum()
    });
    time("order of keys, one by one", rows, || {
        let pairs = records().zip(records().skip(1));
        pairs.filter(|(a, b)| compare(a, b, &key).is_some_and(std::cmp::Ordering::is_lt)).count() as u64
    });
    let mut ascent = Ascent::default();
    time("order of keys, together", rows, || ascent.undecided(black_box(uniform.of(page)), &key).unwrap_or(u64::MAX));
    let mut other = UniformRows::default();
    time("records, together", rows, || {
        other.load(black_box(page));
        other.bytes().into()
    });
}
