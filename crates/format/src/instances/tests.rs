//! Tests that all fields of a page are found, whatever the page contains.

use proptest::prelude::*;

use super::*;
use crate::compressed::{Anchor, CompressionInfo};

/// A page of type `kind` with these records, one after another from offset 96 on.
fn page_of(kind: PageType, pminlen: u16, records: &[&[u8]]) -> PageBytes {
    let mut page = [0u8; PAGE_BYTES];
    page[0] = 1;
    page[1] = kind as u8;
    page[14..16].copy_from_slice(&pminlen.to_le_bytes());
    page[22..24].copy_from_slice(&(records.len() as u16).to_le_bytes());
    let mut at = HEADER_BYTES;
    for (slot, record) in records.iter().enumerate() {
        page[at..at + record.len()].copy_from_slice(record);
        let entry = PAGE_BYTES - 2 * slot - 2;
        page[entry..entry + 2].copy_from_slice(&(at as u16).to_le_bytes());
        at += record.len();
    }
    page[30..32].copy_from_slice(&(at as u16).to_le_bytes());
    page
}

/// The fields of the record in slot 0: name, offset in the record, and value.
fn slot_0(page: &PageBytes) -> Vec<(&'static str, usize, String)> {
    instances(page)
        .iter()
        .filter(|found| found.slot == Some(0))
        .map(|found| (found.field.name, found.bytes.start - HEADER_BYTES, found.render(page)))
        .collect()
}

fn is(found: &[(&'static str, usize, String)], expected: &[(&str, usize, &str)]) {
    let found: Vec<(&str, usize, &str)> = found.iter().map(|(name, at, value)| (*name, *at, value.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_part_of_a_data_record_is_found() {
    let record = [0x30, 0, 8, 0, 1, 2, 3, 4, 3, 0, 0b010, 2, 0, 19, 0, 20, 0, b'a', b'b', b'c'];
    is(
        &slot_0(&page_of(PageType::Data, 8, &[&record])),
        &[
            ("status A", 0, "0x30 primary, null bitmap, variable part"),
            ("status B", 1, "0 none"),
            ("fixedEnd", 2, "8"),
            ("fixed", 4, "...."),
            ("columnCount", 8, "3"),
            ("nullBitmap", 10, "NULL: 2"),
            ("variableCount", 11, "2"),
            ("endOffset", 13, "19"),
            ("endOffset", 15, "20"),
            ("variable", 17, "ab"),
            ("variable", 19, "c"),
        ],
    );
}

#[test]
fn complex_columns_show_what_they_hold() {
    // A record with two columns: the in-row root and the row-overflow pointer of docs/format/lob.md#pointers-in-rows.
    let mut record = vec![0x30, 0, 4, 0, 2, 0, 0, 2, 0, 37, 0x80, 61, 0x80];
    record.extend([4, 0, 1, 0, 1, 0, 0, 0, 0x52, 0x69, 0, 0, 0x50, 0xC3, 0, 0, 0x96, 3, 0, 0, 1, 0, 3, 0]);
    record.extend([2, 0, 0, 0, 1, 0, 0, 0, 0x29, 0, 0, 0, 0x40, 0x1F, 0, 0, 0x75, 0x46, 3, 0, 1, 0, 0, 0]);
    let found = slot_0(&page_of(PageType::Data, 4, &[&record]));
    let value = |name: &str, at: usize| {
        found.iter().find(|(field, place, _)| *field == name && *place == at).map(|(_, _, value)| value.as_str())
    };
    assert_eq!(value("blobId", 13 + 6), Some("0x000069520000"));
    assert_eq!(value("linkEnd", 13 + 12), Some("50000"));
    assert_eq!(value("link", 13 + 16), Some("(1:918:3)"));
    assert_eq!(value("length", 37 + 12), Some("8000"));
    assert_eq!(value("link", 37 + 16), Some("(1:214645:0)"));
}

#[test]
fn a_forwarded_row_and_its_stub_name_each_other() {
    let stub = [4, 0xE1, 1, 0, 0, 1, 0, 7, 0];
    is(
        &slot_0(&page_of(PageType::Data, 4, &[&stub])),
        &[("status A", 0, "0x04 forwarding stub"), ("forward", 1, "(1:481:7)")],
    );
    let row = [0x22, 0, 4, 0, 1, 0, 18, 0x80, 0, 4, 0xE1, 1, 0, 0, 1, 0, 7, 0];
    assert!(slot_0(&page_of(PageType::Data, 4, &[&row])).contains(&("back", 10, "(1:481:7)".to_owned())));
}

#[test]
fn a_child_pointer_ends_the_fixed_part_above_the_leaf() {
    let record = [0x06, 1, 0, 0, 0, 0x91, 0, 0, 0, 1, 0];
    let mut page = page_of(PageType::Index, 11, &[&record]);
    page[3] = 1;
    is(&slot_0(&page), &[("status A", 0, "0x06 index"), ("fixed", 1, "...."), ("child", 5, "(1:145)")]);
    page[3] = 0;
    assert_eq!(slot_0(&page).len(), 2);
    assert_eq!(instances_of(&page, false).iter().filter(|found| found.field.name == "child").count(), 1);
}

#[test]
fn a_lob_root_shows_the_links_in_use() {
    let mut record = vec![8, 0, 84, 0, 0, 0, 0xD1, 0x56, 0, 0, 0, 0, 5, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    record.extend([0x58, 0x1B, 0, 0, 0x77, 0, 0, 0, 1, 0, 2, 0]);
    record.resize(84, 0xEE);
    let found = slot_0(&page_of(PageType::TextMix, 0, &[&record]));
    let links: Vec<_> = found.iter().filter(|(name, ..)| name.starts_with("link")).cloned().collect();
    is(&links, &[("linkEnd", 24, "7000"), ("link", 28, "(1:119:2)")]);
}

#[test]
fn a_vector_of_16_bytes_is_no_text_pointer() {
    let with = |complex: [u8; 16]| {
        let mut record = vec![0x30, 0, 8, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 31, 0x80];
        record.extend(complex);
        let found = slot_0(&page_of(PageType::Data, 8, &[&record]));
        found.iter().map(|(name, ..)| *name).collect::<Vec<_>>()
    };
    let vector = [5, 0, 1, 0, 2, 0, 16, 0, 20, 0, 0, 0, 0, 0, 0, 0];
    assert!(["id", "count", "columnId", "value"].iter().all(|name| with(vector).contains(name)), "{:?}", with(vector));
    // If some part of a sparse vector is impossible, the bytes are not a sparse vector, and their first word is an
    // ordinary number.
    let pointer = [5, 0, 1, 0, 2, 0, 15, 0, 20, 0, 0, 0, 0, 0, 0, 0];
    assert!(!with(pointer).contains(&"columnId"), "{:?}", with(pointer));
}

#[test]
fn maps_are_found_by_their_slots() {
    let mut map = vec![0u8; 7992];
    map[4] = 0b11;
    for (kind, name) in [
        (PageType::Gam, "gam"),
        (PageType::Sgam, "sgam"),
        (PageType::DiffMap, "diff"),
        (PageType::MlMap, "ml"),
        (PageType::Iam, "extents"),
    ] {
        let page = page_of(kind, 90, &[&[0; 94], &map]);
        let found = instances(&page);
        let bitmap = found.iter().find(|found| found.field.name == name).unwrap();
        assert_eq!((bitmap.bytes.clone(), bitmap.slot), (194..8182, Some(1)));
        assert_eq!(bitmap.render(&page), "63904 extents, 2 set");
        assert_eq!(found.iter().filter(|found| found.field.name == "singlePage").count() == 8, kind == PageType::Iam);
    }
}

#[test]
fn compression_information_is_where_its_reader_finds_it() {
    // First an anchor of one column, a dictionary of one entry, and a record after them; then an anchor and a record
    // without a dictionary.
    let with: &[u8] = &[6, 7, 0, 12, 0, 18, 0, 1, 1, 3, 8, 9, 1, 0, 6, 0, 0xAA, 0xBB];
    let without: &[u8] = &[2, 7, 0, 10, 0, 1, 1, 3, 8, 9];
    let parts = ["dictionaryOffset", "size", "anchor", "dictionary"];
    for (info, places) in [(with, &[3..5, 5..7, 7..12, 12..18][..]), (without, &[3..5, 5..10])] {
        let mut page = page_of(PageType::Data, 0, &[info, &[1, 1, 3, 1]]);
        page[2] = 0x80;
        page[22] = 1;
        page[PAGE_BYTES - 2] = (HEADER_BYTES + info.len()) as u8;
        let read = CompressionInfo::of(Page::new(&page), HEADER_BYTES + info.len(), 1).unwrap().unwrap();
        assert_eq!((read.size(), read.anchor(0)), (info.len(), Anchor::Bytes(&[8, 9])));
        assert_eq!(read.entry(0), (info == with).then_some(&[0xAA, 0xBB][..]));
        let found = instances(&page);
        let place = |name| found.iter().find(|found| found.field.name == name).map(|found| found.bytes.clone());
        let found =
            parts.into_iter().filter_map(place).map(|bytes| bytes.start - HEADER_BYTES..bytes.end - HEADER_BYTES);
        assert_eq!(found.collect::<Vec<_>>(), places);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Tests arbitrary bytes, some of them after a header that looks like a page header.
    #[test]
    #[ignore = "full tier: takes seconds"]
    fn no_page_breaks_the_walk(
        bytes in proptest::collection::vec(any::<u8>(), PAGE_BYTES),
        kind in 0u8..21,
        slots in prop_oneof![0u16..60, any::<u16>()],
        pminlen in prop_oneof![0u16..60, any::<u16>()],
        low_offsets: bool,
        leaf: bool,
    ) {
        let mut page: PageBytes = bytes.try_into().unwrap();
        page[1] = kind;
        page[14..16].copy_from_slice(&pminlen.to_le_bytes());
        page[22..24].copy_from_slice(&slots.to_le_bytes());
        if low_offsets {
            page[4096..].iter_mut().skip(1).step_by(2).for_each(|high| *high &= 0x1F);
        }
        let found = instances_of(&page, leaf);
        prop_assert!(found.len() <= 2 * PAGE_BYTES);
        let mut records: Vec<_> = Vec::new();
        for instance in &found {
            prop_assert!(instance.bytes.start < instance.bytes.end && instance.bytes.end <= PAGE_BYTES);
            instance.render(&page);
            if instance.slot.is_some() {
                records.push(instance.bytes.clone());
            }
        }
        records.sort_unstable_by_key(|range| range.start);
        prop_assert!(records.windows(2).all(|pair| pair[0].end <= pair[1].start), "fields of records overlap");
    }
}
