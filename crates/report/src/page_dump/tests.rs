use std::ops::Range;
use std::path::{Path, PathBuf};

use format::allocation::{PfsByte, pfs_bytes};
use format::page::{HEADER_BYTES, PAGE_BYTES};
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageId};
use serde_json::{Value, json};

use super::{Allocation, ColumnValue, PageDump};

/// The JSON line of a page.
fn json_of(dump: &PageDump<'_>) -> Value {
    let mut line = Vec::new();
    dump.write_json(None, &mut line).unwrap();
    serde_json::from_slice(&line).unwrap()
}

/// Returns the page with the address (1:200) and a right checksum in its header.
fn sealed(mut page: PageBytes) -> PageBytes {
    page[0] = 1;
    page[5] = 2;
    page[32..38].copy_from_slice(&[200, 0, 0, 0, 1, 0]);
    let sum = format::protection::checksum(&page);
    page[60..64].copy_from_slice(&sum.to_le_bytes());
    page
}

fn with_records(kind: u8, pminlen: u8, records: &[&[u8]]) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    (page[1], page[14], page[22]) = (kind, pminlen, records.len() as u8);
    let mut at = HEADER_BYTES;
    for (slot, record) in records.iter().enumerate() {
        page[at..at + record.len()].copy_from_slice(record);
        let entry = PAGE_BYTES - 2 - 2 * slot;
        page[entry..entry + 2].copy_from_slice(&(at as u16).to_le_bytes());
        at += record.len();
    }
    page[30..32].copy_from_slice(&(at as u16).to_le_bytes());
    sealed(page)
}

const ROW: [u8; 20] = [0x30, 0, 8, 0, 1, 2, 3, 4, 3, 0, 0b010, 2, 0, 19, 0, 20, 0, b'a', b'b', b'c'];

fn has(text: &str, words: &[&str]) {
    let found = text.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") == words.join(" "));
    assert!(found, "{words:?} in\n{text}");
}

#[test]
fn a_data_page_shows_header_records_and_columns() {
    let page = with_records(1, 8, &[&ROW, &ROW]);
    let columns = |slot: u16, space: &[u8]| {
        assert_eq!(space, ROW);
        let (name, type_name) = ("Name".to_owned(), "varchar(10)".to_owned());
        vec![ColumnValue { name, type_name, bytes: 17..19, value: format!("ab{slot}") }]
    };
    let allocation = Allocation {
        pfs: Some((PageId::new(1, 1), 0x41)),
        sgam: Some((PageId::new(1, 3), false)),
        owner: Some("dbo.T".to_owned()),
        ..Allocation::default()
    };
    let at = PageId::new(1, 200);
    let dump = PageDump { allocation: Some(&allocation), columns: Some(&columns), ..PageDump::new(at, &page) };
    let text = dump.text();
    has(&text, &["Page (1:200) data page, file offset 0x190000"]);
    has(&text, &["PFS (1:1) 0x41 ALLOCATED 50_PCT_FULL"]);
    has(&text, &["SGAM (1:3) NOT ALLOCATED"]);
    has(&text, &["0x0016 +22 02 00 m_slotCnt 2 slot count"]);
    has(&text, &["Slot 1 at 0x0074 (116), 20 bytes, primary record"]);
    has(&text, &["0x007E +10 02 nullBitmap NULL: 2 null bitmap"]);
    has(&text, &["+17 Name varchar(10) ab1"]);
    assert!(text.contains(", right\n") && !text.contains("DAMAGED") && !text.contains("undescribed"));
    let json = json_of(&dump);
    assert_eq!(json["records"][1]["columns"][0]["value"], "ab1");
    assert_eq!(json["header"][12]["name"], "m_freeData");
    assert_eq!(json["slots"], json!([96, 116]));
    assert_eq!(json["protection"]["ok"], true);
}

#[test]
fn damage_is_reported_and_the_rest_shown() {
    let mut row = ROW;
    row[15] = 18;
    let mut page = with_records(1, 8, &[&row]);
    page[5000] ^= 1;
    let dump = PageDump::new(PageId::new(1, 201), &page);
    let text = dump.text();
    assert!(text.contains("checksum WRONG: stored 0x"), "{text}");
    assert!(text.contains("The header says it is page (1:200)"), "{text}");
    assert!(text.contains("DAMAGED: columnOffsets->offTbl"), "{text}");
    has(&text, &["0x0073 +19 63 - 1 bytes undescribed"]);
    assert_eq!(json_of(&dump)["records"][0]["fault"]["value"], 18);
    assert_eq!(dump.raw().lines().count(), 512);
}

#[test]
fn allocation_pages_come_out_as_runs() {
    let mut record = vec![0; 8092];
    record[2..4].copy_from_slice(&8092u16.to_le_bytes());
    record[4..8].fill(0x44);
    let page = with_records(11, 0, &[&record]);
    let text = PageDump::new(PageId::new(1, 8088), &page).text();
    has(&text, &["(1:8088) - (1:8091) = ALLOCATED 100_PCT_FULL 4 pages"]);
    has(&text, &["(1:8092) - (1:16175) = NOT ALLOCATED 0_PCT_FULL 8084 pages"]);
    let mut map = vec![0xFF; 7992];
    map[4] = 0b1111_1110;
    let page = with_records(8, 90, &[&[0; 94], &map]);
    let text = PageDump::new(PageId::new(3, 2), &page).text();
    has(&text, &["(3:0) - = ALLOCATED 1 extent"]);
    has(&text, &["(3:8) - (3:511224) = NOT ALLOCATED 63903 extents"]);
}

#[test]
fn any_bytes_can_be_shown() {
    show_any_bytes(0..42);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn more_of_any_bytes_can_be_shown() {
    show_any_bytes(0..300);
}

fn show_any_bytes(rounds: Range<u32>) {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    for round in rounds {
        let mut page = [0u8; PAGE_BYTES];
        page.fill_with(&mut next);
        page[1] = (round % 21) as u8;
        if round % 3 != 0 {
            page[23] = 0;
            page[8001..].iter_mut().step_by(2).for_each(|high| *high &= 0x1F);
        }
        let dump = PageDump::new(PageId::new(u16::MAX, u32::MAX - round), &page);
        assert!(dump.text().len() < 1 << 23);
        assert!(json_of(&dump).is_object());
    }
}

fn data_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            data_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mdf")) {
            found.push(path);
        }
    }
}

/// Checks pages of real files: a field describes every byte of every record, and no record is damaged.
#[test]
#[ignore = "full tier: takes seconds"]
fn real_pages_are_described_completely() {
    const MOST_BYTES: u64 = 5 << 20;
    const FILES: usize = 6;
    let mut files = Vec::new();
    data_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus"), &mut files);
    files.retain(|path| path.metadata().is_ok_and(|metadata| metadata.len() <= MOST_BYTES));
    files.sort();
    if files.is_empty() {
        eprintln!("SKIPPED: no corpus in target/corpus");
    }
    for path in files.iter().step_by((files.len() / FILES).max(1)) {
        let bytes = std::fs::read(path).unwrap();
        let pages = bytes.as_chunks::<PAGE_BYTES>().0;
        if format::boot::Boot::version_of(Page::new(&pages[9])).is_none_or(|version| version < 611) {
            continue;
        }
        let mut pfs = pages[1];
        undo_torn_bits(&mut pfs);
        let pfs = *pfs_bytes(Page::new(&pfs)).unwrap();
        for (number, page) in pages.iter().enumerate().filter(|(number, _)| PfsByte(pfs[*number]).is_allocated()) {
            let dump = PageDump::new(PageId::new(1, number as u32), page);
            let text = dump.text();
            let at = format!("{} page {number}\n{text}", path.display());
            assert!(!text.contains("WRONG") && !text.contains("TORN") && !text.contains("DAMAGED"), "{at}");
            assert!(!text.contains("The header says"), "{at}");
            let json = json_of(&dump);
            let kind = json["type"].as_u64().unwrap();
            // Other pages may have undescribed bytes: parts of the boot record are unknown, and LOB nodes have unused
            // slots.
            if (kind == 1 || kind == 2) && number != 32 {
                assert!(!text.contains("undescribed"), "{at}");
            }
        }
    }
}
