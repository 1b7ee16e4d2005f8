//! Compares rows of one shape with the same rows read one by one.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::PageBytes;
use crate::key::{Ascent, KeyColumn, KeyOrder, compare};
use crate::sparse::SparseVector;

mod vectors;

/// Bit of a row's `null` that makes the row a moved row. Together with [`EMPTY`], it makes the row a forwarding stub.
const MOVED: u8 = 64;
/// Bit of a row's `null` that makes the slot of the row empty.
const EMPTY: u8 = 128;

/// Makes a page of rows of one shape: a small number, a date, and up to four variable columns. The third item of a row,
/// `null`, has bits for unusual rows. Its low four bits mark NULL columns. The bit with the value 16 makes the row a
/// ghost, and the bit with the value 32 makes its last variable column complex. [`MOVED`] and [`EMPTY`] may be set on
/// data pages only.
fn page(is_index: bool, rows: &[(i16, u64, u8, Vec<u8>)], scattered: bool) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    (page[0], page[1]) = (1, if is_index { 2 } else { 1 });
    let fixed_end: u16 = if is_index { 11 } else { 14 };
    page[14..16].copy_from_slice(&fixed_end.to_le_bytes());
    page[22..24].copy_from_slice(&(rows.len() as u16).to_le_bytes());
    let mut end = HEADER_BYTES;
    let mut put = |slot: usize, (number, date, null, text): &(i16, u64, u8, Vec<u8>)| {
        if null & (MOVED | EMPTY) == EMPTY {
            return;
        }
        let mut record = if is_index { vec![0x16] } else { vec![0x10, 0, fixed_end as u8, 0] };
        record.extend(number.to_le_bytes());
        record.extend(date.to_le_bytes());
        record.extend([4, 0, *null & 63]);
        let stored = if text.len() > 6 { 4 } else { text.len().min(2) };
        if stored > 0 {
            record[0] |= 0x20;
            record.extend([stored as u8, 0]);
            let first = record.len() + 2 * stored;
            let ends = (1..=stored).map(|number| first + text.len() * number / stored);
            ends.for_each(|end| record.extend((end as u16).to_le_bytes()));
            let last = record.len() - 1;
            record[last] |= (null & 32) << 2;
            record.extend(text);
        }
        if null & 16 != 0 {
            record[0] ^= 0x0C;
        }
        match null & (MOVED | EMPTY) {
            0 => {}
            MOVED => record[0] = record[0] & !0x0E | 0x02,
            _ => record = vec![4, 1, 0, 0, 0, 1, 0, 2, 0],
        }
        page[end..end + record.len()].copy_from_slice(&record);
        let at = PAGE_BYTES - 2 - 2 * slot;
        page[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
        end += record.len();
    };
    if scattered {
        rows.iter().enumerate().rev().for_each(|(slot, row)| put(slot, row));
    } else {
        rows.iter().enumerate().for_each(|(slot, row)| put(slot, row));
    }
    page[30..32].copy_from_slice(&(end as u16).to_le_bytes());
    page
}

/// Asserts that each record, parsed by itself, has the same values in all columns as the rows of the page.
fn agrees(same_shape: &SameShapeRows, page: Page<'_>) {
    let rows = same_shape.of(page);
    let mut order = SlotOrder::default();
    order.load(page);
    assert_eq!(order.entries().len(), rows.count() + same_shape.others().len());
    assert_eq!(rows.slots().is_some(), rows.count() < usize::from(page.header().slot_count.get()));
    let (mut bytes, mut padded_bytes, mut has_versions) = (0, 0, false);
    let is_empty = |slot: &u16| page.slot_offset(*slot) == Some(0);
    let empty = (0..).zip(same_shape.spans()).filter(|(_, span)| span.length == 0).map(|(slot, _)| slot);
    assert!(empty.eq((0..page.header().slot_count.get()).filter(is_empty)));
    for (position, entry) in order.entries().iter().enumerate() {
        let space = order.space(page, position);
        let span = same_shape.spans()[usize::from(entry.slot)];
        if same_shape.others().contains(&entry.slot) {
            let record = Record::data(space).expect("the page was found sound");
            assert_eq!((span.offset, usize::from(span.length)), (entry.offset, record.bytes().len()));
            let exception = Exception { slot: entry.slot, is_complex: false };
            assert!(rows.exceptions().contains(&exception) && !rows.slots().unwrap().contains(&entry.slot));
            continue;
        }
        let slot = match rows.slots() {
            Some(slots) => slots.iter().position(|slot| *slot == entry.slot).expect("a row or another"),
            None => usize::from(entry.slot),
        };
        let record = match rows.is_index() {
            true => Record::index(space, page.header().pminlen.get()),
            false => Record::data(space),
        };
        let record = record.expect("the page was found sound");
        assert_eq!((span.offset, usize::from(span.length)), (entry.offset, record.bytes().len()));
        bytes += record.bytes().len();
        padded_bytes += record.bytes().len().max(MIN_HEAP_RECORD_BYTES);
        has_versions |= record.version_tag().is_some();
        assert_eq!((record.fixed_end(), record.column_count()), (rows.fixed_end(), rows.column_count()));
        assert!((rows.fewest_variables()..=rows.most_variables()).contains(&record.variable_count()));
        for number in 0..=rows.column_count() + 1 {
            let is_null = rows.nulls_of(number).is_some_and(|(words, bit)| words[slot] & bit != 0);
            assert_eq!(is_null, record.null_bit(number) == Some(true));
        }
        let is_complex = !record.kind().is_ghost() && record.variables().any(|(_, is_complex)| is_complex);
        let is_exception = record.kind().is_ghost() || is_complex;
        let exception = rows.exceptions().iter().find(|exception| exception.slot == entry.slot);
        assert_eq!(exception.map(|exception| exception.is_complex), is_exception.then_some(is_complex));
        assert_eq!(rows.are_live().is_none_or(|are_live| are_live[slot]), !record.kind().is_ghost());
        let last = record.variables().last().unwrap_or_default();
        assert_eq!(rows.last_variables().nth(slot), Some(last));
        for (number, (_, is_complex)) in (1..).zip(record.variables()) {
            assert!(!is_complex || record.kind().is_ghost() || rows.may_be_complex(number));
        }
        assert_eq!(rows.are_plain().is_none_or(|are_plain| are_plain[slot]), !is_exception);
        for number in 0..=rows.most_variables() + 1 {
            let (bytes, _) = record.variable(number).unwrap_or_default();
            assert_eq!(rows.variable(number).nth(slot), Some(bytes));
            assert_eq!(rows.variable_lengths(number).nth(slot), Some(bytes.len()));
        }
        let start = rows.fixed_end() - 10;
        assert_eq!(&rows.fixed_of::<2>(slot, start)[..], record.fixed(start, 2).unwrap());
        assert_eq!(rows.fixed::<8>(start + 2).nth(slot).unwrap()[..], *record.fixed(start + 2, 8).unwrap());
        assert_eq!(rows.slices(start, 10).nth(slot), record.fixed(start, 10));
    }
    assert_eq!([same_shape.bytes() as usize, same_shape.padded_bytes() as usize], [bytes, padded_bytes]);
    assert_eq!(rows.has_versions(), has_versions);
    let plain = rows.are_plain().map_or(rows.count(), |are_plain| are_plain.iter().filter(|plain| **plain).count());
    assert_eq!(rows.plain_count(), plain);
    assert_eq!(rows.live_count(), rows.count() - same_shape.ghosts() as usize);
    assert_eq!(rows.has_complex(), rows.live_count() > plain);
    assert!(rows.exceptions().is_sorted_by_key(|exception| exception.slot));
    vectors_agree(same_shape, page);
    ascent_agrees(rows);
}

/// Asserts that the order of the rows, found together, is the order of the records, compared one by one.
fn ascent_agrees(rows: Rows<'_>) {
    let pairs = || (1..rows.count()).filter_map(|slot| Some((rows.record(slot - 1)?, rows.record(slot)?)));
    let start = rows.fixed_end() as i16 - 10;
    let column =
        |order, offset, length, null_bit, descending| KeyColumn { order, offset, length, null_bit, descending };
    for keys in [
        [column(KeyOrder::Signed, start, 2, 1, false), column(KeyOrder::DateTime, start + 2, 8, 2, true)],
        [column(KeyOrder::Unsigned, start, 1, 1, true), column(KeyOrder::Bytes, -1, 0, 3, false)],
        [column(KeyOrder::DateTime, start + 2, 8, 0, false), column(KeyOrder::Signed, start, 2, 1, true)],
    ] {
        let orders: Vec<Option<Ordering>> = pairs().map(|(a, b)| compare(&a, &b, &keys)).collect();
        let ascends = rows.slots().is_none()
            && !orders.contains(&Some(Ordering::Greater))
            && !orders.contains(&Some(Ordering::Equal));
        let undecided = orders.iter().filter(|order| order.is_none()).count() as u64;
        assert_eq!(Ascent::default().undecided(rows, &keys), ascends.then_some(undecided), "{keys:?}");
    }
}

/// Asserts that the sparse vectors of the page agree with the vectors of the records, parsed one by one.
fn vectors_agree(same_shape: &SameShapeRows, page: Page<'_>) {
    let rows = same_shape.of(page);
    let (mut vectors, mut are_there, mut are_sound) = (Vec::new(), Vec::new(), true);
    for record in (0..rows.count()).map(|row| rows.record(row).expect("a record")) {
        let complex = record.variables().filter(|(_, is_complex)| *is_complex && !record.kind().is_ghost()).count();
        let vector = SparseVector::of(&record).filter(|vector| complex == 1 && vector.fault().is_none());
        are_sound &= complex == 0 || vector.is_some();
        are_there.push(vector.is_some());
        vectors.extend(vector);
    }
    let found = rows.vectors();
    assert_eq!(found.is_some(), are_sound && !vectors.is_empty());
    let Some(found) = found else { return };
    assert!(found.each().eq(vectors.iter().copied()) && found.are_there().eq(are_there.iter().copied()));
    let head = |vector: &SparseVector<'_>| {
        let values: Vec<_> = vector.values().map(|value| (value.column, value.bytes.len(), value.is_complex)).collect();
        (vector.bytes().len(), values)
    };
    let common = vectors.iter().all(|vector| head(vector) == head(&vectors[0])).then_some(vectors[0]);
    assert_eq!(found.common_form(), common);
    for value in common.iter().flat_map(|common| common.values()) {
        let of_rows = vectors.iter().map(|vector| vector.value(value.column).unwrap().unwrap().bytes);
        assert!(found.values(value.column).expect("the column is in all").eq(of_rows.clone()));
        let end = common.unwrap().place_of(value.column).unwrap().end;
        let words = found.words(end).zip(&are_there).filter(|(_, is_there)| **is_there).map(|(word, _)| word);
        for (word, bytes) in words.zip(of_rows) {
            assert!(word.to_le_bytes().ends_with(bytes) || bytes.len() > 8 && bytes.ends_with(&word.to_le_bytes()));
        }
        assert!(found.values(u16::MAX).is_none());
    }
}

/// Asserts that the rows of a data page are read in the same way after a copy to another buffer.
fn agrees_elsewhere(same_shape: &SameShapeRows, page: Page<'_>) {
    let rows = same_shape.of(page);
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for span in same_shape.spans() {
        let start = bytes.len() as u32;
        bytes.extend_from_slice(span.of(page));
        places.push(start..bytes.len() as u32);
    }
    bytes.extend_from_slice(&[0; 8]);
    let mut expanded = SameShapeRows::default();
    assert!(expanded.load_expanded(&bytes, &places));
    assert_eq!(expanded.others(), same_shape.others());
    let others = expanded.of_bytes(&bytes);
    assert_eq!((others.slots(), others.exceptions()), (rows.slots(), rows.exceptions()));
    assert!((0..6).all(|number| others.nulls_of(number) == rows.nulls_of(number)));
    assert_eq!((others.plain_count(), others.are_plain()), (rows.plain_count(), rows.are_plain()));
    assert!((0..4).all(|number| others.variable(number).eq(rows.variable(number))));
    assert!(others.fixed::<8>(6).eq(rows.fixed::<8>(6)) && others.version_tags().eq(rows.version_tags()));
}

fn row() -> impl Strategy<Value = (i16, u64, u8, Vec<u8>)> {
    let null = prop_oneof![6 => Just(0u8), 1 => 0u8..64, 1 => any::<u8>()];
    (-3i16..3, 0u64..3, null, prop::collection::vec(any::<u8>(), 0..9))
}

proptest! {
    #[test]
    fn rows_of_one_form_are_what_each_record_says(
        is_index: bool,
        scattered: bool,
        is_sorted: bool,
        alike in prop::option::of(0usize..4),
        mut rows in prop::collection::vec(row(), 1..40),
        changes in prop::collection::vec((0usize..120, any::<u8>(), any::<bool>()), 0..3),
    ) {
        if is_sorted {
            rows.sort();
        }
        if is_index {
            rows.iter_mut().for_each(|(_, _, null, _)| *null &= 63);
        }
        if let Some(alike) = alike {
            let (least, most) = [(0, 0), (1, 1), (2, 6), (7, 9)][alike];
            for (_, _, null, text) in &mut rows {
                *null &= 15;
                text.resize(text.len().clamp(least, most), 1);
            }
        }
        let mut bytes = page(is_index, &rows, scattered);
        let mut same_shape = SameShapeRows::default();
        let of_shape = rows.iter().filter(|(_, _, null, _)| null & (MOVED | EMPTY) == 0).count();
        let others = rows.iter().filter(|(_, _, null, _)| null & MOVED != 0).count();
        let is_loaded = same_shape.load(Page::new(&bytes), true);
        assert_eq!(is_loaded, of_shape > others, "most are of one shape");
        if is_loaded {
            agrees(&same_shape, Page::new(&bytes));
        }
        if is_loaded && !is_index {
            agrees_elsewhere(&same_shape, Page::new(&bytes));
        }
        for (at, byte, in_slots) in changes {
            bytes[if in_slots { PAGE_BYTES - 1 - at } else { HEADER_BYTES + at }] = byte;
        }
        if same_shape.load(Page::new(&bytes), true) {
            agrees(&same_shape, Page::new(&bytes));
        }
    }

    #[test]
    fn any_bytes_are_accepted(noise in prop::collection::vec((0usize..PAGE_BYTES, any::<u8>()), 0..200)) {
        let mut bytes = page(false, &[(1, 1, 0, vec![1, 2, 3]), (2, 1, 0, vec![])], false);
        for (at, byte) in noise {
            bytes[at] = byte;
        }
        let mut same_shape = SameShapeRows::default();
        if same_shape.load(Page::new(&bytes), true) {
            let rows = same_shape.of(Page::new(&bytes));
            assert!(rows.count() > 0 && rows.variable(1).chain(rows.slices(7000, 7000)).count() == 2 * rows.count());
        }
    }
}

/// Asserts that a page whose records match is recognized, in slot order or not. If the status, the column count or the
/// variable columns of one record change, the page must no longer be recognized.
#[test]
fn records_that_are_alike_are_found_so_in_any_order_and_others_are_not() {
    for (is_index, scattered, length) in [false, true].into_iter().flat_map(|is_index| {
        [false, true].into_iter().flat_map(move |scattered| [0, 1, 4, 8].map(|length| (is_index, scattered, length)))
    }) {
        let rows: Vec<_> = (0..40).map(|number| (number, 1, 0, vec![7; length])).collect();
        let index_fixed_end = is_index.then_some(11);
        let alike = |bytes: &PageBytes| {
            let mut same_shape = SameShapeRows::default();
            let is_alike = same_shape.load_alike(Page::new(bytes), rows.len(), index_fixed_end) || {
                let spaces = same_shape.spaces(Page::new(bytes), rows.len());
                spaces.is_some_and(|(has_empty, _)| !has_empty) && {
                    let before = same_shape.spans.clone();
                    let is_alike = same_shape.audit_alike(bytes, index_fixed_end);
                    assert!(is_alike || same_shape.spans == before, "the general way needs the spaces");
                    is_alike
                }
            };
            if is_alike {
                agrees(&same_shape, Page::new(bytes));
            }
            is_alike
        };
        let sound = page(is_index, &rows, scattered);
        assert!(alike(&sound));
        let start = usize::from(Page::new(&sound).slot_offset(33).expect("a slot"));
        let (bitmap, variable) = if is_index { (11, 14) } else { (14, 17) };
        let changed = |at: usize, bits: u8| {
            let mut bytes = sound;
            bytes[start + at] ^= bits;
            alike(&bytes)
        };
        assert!(changed(bitmap + 2, 8), "a NULL");
        assert!(!changed(0, 0x40), "a version tag");
        assert!(!changed(0, 0x0C), "a deleted row");
        assert!(!changed(0, 0x20), "with and without variable columns");
        assert!(is_index || !changed(1, 1) && !changed(2, 1), "another fixed part");
        assert!(!changed(bitmap, 1) && !changed(bitmap + 1, 1), "another number of columns");
        if length > 0 {
            assert!(!changed(variable, 1) && !changed(variable + 1, 1), "another number of variable columns");
            let last = variable + 2 * length.min(if length > 6 { 4 } else { 2 });
            assert!(!changed(last, 16) && !changed(last + 1, 0x80), "a column that ends outside, or is complex");
            assert!(!changed(variable + 2, 0xFF), "a column that ends before it begins, or after the next");
        }
    }
}

proptest! {
    /// Compares keys whose bytes may differ at any position: the order of the rows must be the order of the keys
    /// compared one by one.
    #[test]
    fn keys_of_any_type_are_ordered_as_one_by_one(
        bytes in prop::collection::vec((0usize..16, 0u8..3), 1..6),
        is_sorted: bool,
        descending: bool,
    ) {
        for (order, length) in [
            (KeyOrder::Signed, 2u16), (KeyOrder::Signed, 4), (KeyOrder::Signed, 8), (KeyOrder::Unsigned, 1),
            (KeyOrder::Unsigned, 3), (KeyOrder::Unsigned, 4), (KeyOrder::Unsigned, 5), (KeyOrder::Bit(1), 1),
            (KeyOrder::DateTime, 8), (KeyOrder::SmallDateTime, 4), (KeyOrder::DayAndTime(3), 6),
            (KeyOrder::DayAndTime(4), 7), (KeyOrder::DayAndTime(5), 8), (KeyOrder::DayAndTime(4), 9),
            (KeyOrder::Guid, 16), (KeyOrder::Bytes, 8), (KeyOrder::Decimal, 9), (KeyOrder::Float, 8),
        ] {
            let key = [KeyColumn { order, offset: 1, length, null_bit: 0, descending }];
            let mut records: Vec<Vec<u8>> = Vec::new();
            for (at, byte) in &bytes {
                let mut record = vec![0; 1 + usize::from(length)];
                record[0] = 0x06;
                record[1 + at % usize::from(length)] = byte.wrapping_sub(1);
                records.push(record);
            }
            let order_of = |a: &Vec<u8>, b: &Vec<u8>| {
                let of = |record| Record::index(record, 1 + length);
                compare(&of(a).unwrap(), &of(b).unwrap(), &key)
            };
            if is_sorted {
                records.sort_by(|a, b| order_of(a, b).unwrap_or(Ordering::Equal));
            }
            let mut page = [0; PAGE_BYTES];
            (page[0], page[1]) = (1, 2);
            page[14..16].copy_from_slice(&(1 + length).to_le_bytes());
            page[22] = records.len() as u8;
            let mut end = HEADER_BYTES;
            for (slot, record) in records.iter().enumerate() {
                page[end..end + record.len()].copy_from_slice(record);
                let at = PAGE_BYTES - 2 - 2 * slot;
                page[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
                end += record.len();
            }
            page[30..32].copy_from_slice(&(end as u16).to_le_bytes());
            let mut same_shape = SameShapeRows::default();
            assert!(same_shape.load(Page::new(&page), false));
            let pairs = records.windows(2);
            let orders: Vec<_> = pairs.map(|pair| order_of(&pair[0], &pair[1])).collect();
            let ascends = orders.iter().all(|order| !matches!(order, Some(Ordering::Greater | Ordering::Equal)));
            let undecided = orders.iter().filter(|order| order.is_none()).count() as u64;
            let found = Ascent::default().undecided(same_shape.of(Page::new(&page)), &key);
            assert_eq!(found, ascends.then_some(undecided), "{order:?} {records:02x?}");
        }
    }
}

#[test]
fn what_is_unusual_has_not_one_shape() {
    let rows = vec![(1, 1, 0, vec![1, 2, 3]), (2, 1, 0, vec![4]), (3, 2, 0, vec![])];
    let sound = page(false, &rows, false);
    let load = |change: &dyn Fn(&mut PageBytes)| {
        let mut bytes = sound;
        change(&mut bytes);
        SameShapeRows::default().load(Page::new(&bytes), false)
    };
    assert!(load(&|_| {}));
    assert!(load(&|bytes| bytes[HEADER_BYTES] = 0x3C), "a ghost is an exception");
    assert!(load(&|bytes| bytes[HEADER_BYTES + 22] |= 0x80), "so is a row with a complex column");
    let others = |change: &dyn Fn(&mut PageBytes)| {
        let mut bytes = sound;
        change(&mut bytes);
        let mut same_shape = SameShapeRows::default();
        same_shape.load(Page::new(&bytes), true).then(|| same_shape.others().to_vec())
    };
    assert_eq!(others(&|_| {}), Some(vec![]));
    assert_eq!(others(&|bytes| bytes[HEADER_BYTES] = 0x3E), Some(vec![0]), "a ghost kept for its versions");
    assert_eq!(others(&|bytes| bytes[HEADER_BYTES] = 0x32), Some(vec![0]), "a forwarded row");
    assert_eq!(others(&|bytes| bytes[HEADER_BYTES + 14] = 5), Some(vec![0]), "a column more than in the other rows");
    assert_eq!(others(&|bytes| bytes[HEADER_BYTES + 14] = 200), None, "with a null bitmap beyond its space");
    assert_eq!(others(&|bytes| bytes[PAGE_BYTES - 4..PAGE_BYTES - 2].fill(0)), Some(vec![]), "an empty slot");
    let each = |change: fn(u8) -> u8| {
        move |bytes: &mut PageBytes| {
            for slot in 0..3 {
                let at = usize::from(Page::new(bytes).slot_offset(slot).expect("a slot"));
                bytes[at] = change(bytes[at]);
            }
        }
    };
    assert!(load(&each(|status| status | 0x0C)), "ghosts all of them");
    assert!(!load(&each(|status| status | 0x06)), "rows of an index all of them");
    assert!(!load(&each(|status| status | 0x0A)), "ghosts of an index all of them");
    assert!(!load(&|bytes| bytes[HEADER_BYTES + 1] = 1), "the second status byte");
    assert!(!load(&|bytes| bytes[HEADER_BYTES] = 0x70), "a version tag without room");
    assert!(!load(&|bytes| bytes[PAGE_BYTES - 2] += 1), "an overlap");
    assert!(!load(&|bytes| bytes[PAGE_BYTES - 4..PAGE_BYTES - 2].fill(0)), "an empty slot where none may be");
    assert!(!load(&|bytes| bytes[30] -= 1), "used space ends inside the last record");
    assert!(!load(&|bytes| bytes[22] = 0), "no row");
    assert!(!load(&|bytes| bytes[4] = 2), "aligned records");
    assert!(!load(&|bytes| bytes[1] = 3), "a text page");
}

#[test]
fn the_null_bits_of_wide_rows_are_those_of_their_records() {
    for columns in [1u16, 8, 63, 64, 65, 128, 129, 1000, 1024] {
        let mut page = [0; PAGE_BYTES];
        (page[0], page[1], page[22]) = (1, 1, 5);
        let mut end = HEADER_BYTES;
        for slot in 0..5usize {
            let mut record = vec![0x10, 0, 14, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
            record.extend(columns.to_le_bytes());
            record.extend((0..columns.div_ceil(8)).map(|byte| (usize::from(byte) * 37 * slot) as u8));
            page[end..end + record.len()].copy_from_slice(&record);
            let at = PAGE_BYTES - 2 - 2 * slot;
            page[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
            end += record.len();
        }
        page[30..32].copy_from_slice(&(end as u16).to_le_bytes());
        let mut same_shape = SameShapeRows::default();
        assert!(same_shape.load(Page::new(&page), false), "{columns} columns");
        agrees(&same_shape, Page::new(&page));
        let rows = same_shape.of(Page::new(&page));
        for word in 0..17 {
            let any = (0..5).fold(0, |any, row| any | rows.record(row).unwrap().null_word(word));
            assert_eq!(rows.null_word(word), any);
        }
    }
}

#[test]
fn records_that_claim_more_columns_than_the_page_can_hold_take_no_memory() {
    let mut page = [0; PAGE_BYTES];
    let slots = 1000u16;
    (page[0], page[1]) = (1, 1);
    page[22..24].copy_from_slice(&slots.to_le_bytes());
    for slot in 0..usize::from(slots) {
        // Each record has only a status, the end of the fixed part, and a count of 1024 columns. Where its null bitmap
        // should be, the next record begins.
        let at = HEADER_BYTES + 6 * slot;
        page[at..at + 6].copy_from_slice(&[0x10, 0, 4, 0, 0, 4]);
        let entry = PAGE_BYTES - 2 - 2 * slot;
        page[entry..entry + 2].copy_from_slice(&(at as u16).to_le_bytes());
    }
    page[30..32].copy_from_slice(&(HEADER_BYTES as u16 + 6 * slots).to_le_bytes());
    let mut same_shape = SameShapeRows::default();
    assert!(!same_shape.load(Page::new(&page), true));
    assert_eq!(same_shape.nulls.capacity(), 0);
}
