//! Tests pages whose rows match, except that some rows end with a sparse vector.

use super::*;

/// The forms of the vectors of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// One value of four bytes.
    One,
    /// Three values, the second one of any length.
    Three,
    /// Vectors of both forms.
    Any,
}

fn vector(form: Form, number: u16) -> Vec<u8> {
    match form {
        Form::One => [5, 1, 7, 12, number, 1].iter().flat_map(|word| word.to_le_bytes()).collect(),
        Form::Three => {
            let middle = number % 3;
            let words = [5, 3, 7, 9, 10, 18, 18 + middle, 20 + middle, number];
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            bytes.extend((0..middle).map(|byte| byte as u8));
            bytes.extend(number.to_le_bytes());
            bytes
        }
        Form::Any => vector(if number.is_multiple_of(2) { Form::One } else { Form::Three }, number / 2),
    }
}

/// Makes a page of rows with `variables` variable columns; the rows with a number in `rows` also have a vector.
fn page(is_index: bool, variables: u16, form: Form, rows: &[(u8, Option<u16>)]) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    (page[0], page[1]) = (1, if is_index { 2 } else { 1 });
    let fixed_end: u16 = if is_index { 11 } else { 14 };
    page[14..16].copy_from_slice(&fixed_end.to_le_bytes());
    page[22..24].copy_from_slice(&(rows.len() as u16).to_le_bytes());
    let mut end = HEADER_BYTES;
    for (slot, (number, of_vector)) in rows.iter().enumerate() {
        let mut record = if is_index { vec![0x16] } else { vec![0x10, 0, fixed_end as u8, 0] };
        record.extend([*number; 10]);
        record.extend([4, 0, number & 1]);
        let stored = variables + u16::from(of_vector.is_some());
        if stored > 0 {
            record[0] |= 0x20;
            record.extend(stored.to_le_bytes());
            let mut at = record.len() as u16 + 2 * stored;
            for column in 0..variables {
                at += u16::from(*number) % (2 + column);
                record.extend(at.to_le_bytes());
            }
            let values = usize::from(at) - record.len();
            let vector = of_vector.map(|number| vector(form, number)).unwrap_or_default();
            if of_vector.is_some() {
                record.extend((COMPLEX | (at + vector.len() as u16)).to_le_bytes());
            }
            record.resize(record.len() + values - 2 * usize::from(of_vector.is_some()), *number);
            record.extend(vector);
        }
        page[end..end + record.len()].copy_from_slice(&record);
        let at = PAGE_BYTES - 2 - 2 * slot;
        page[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
        end += record.len();
    }
    page[30..32].copy_from_slice(&(end as u16).to_le_bytes());
    page
}

/// Loads the page twice: once as if the page before had no vectors, and once as if it had some. Asserts that both
/// results are equal.
fn loaded_both_ways(bytes: &PageBytes) -> Option<SameShapeRows> {
    let [first, next] = [false, true].map(|expects_vectors| {
        let mut rows = SameShapeRows { expects_vectors, ..SameShapeRows::default() };
        rows.load(Page::new(bytes), true).then_some(rows)
    });
    assert_eq!(first.is_some(), next.is_some());
    let known = |rows: &SameShapeRows| {
        let SameShapeRows { shape, spans, slots, any_nulls, variables, exceptions, are_plain, are_live, .. } = rows;
        let of_rows = (spans.clone(), slots.clone(), any_nulls.clone(), variables.clone());
        let flags = (exceptions.clone(), are_plain.clone(), are_live.clone());
        let sums = (rows.plain, rows.complex, rows.complex_columns, rows.soundness, rows.ghosts, rows.totals);
        (*shape, of_rows, flags, sums)
    };
    assert_eq!(first.as_ref().map(known), next.as_ref().map(known));
    for rows in first.iter().chain(&next) {
        agrees(rows, Page::new(bytes));
    }
    next
}

/// Whether the records are loaded in one pass if the page before also had vectors.
fn are_alike(bytes: &PageBytes, rows: usize, is_index: bool) -> bool {
    let mut same_shape = SameShapeRows { expects_vectors: true, ..SameShapeRows::default() };
    same_shape.load_alike(Page::new(bytes), rows, is_index.then_some(11))
}

proptest! {
    #[test]
    fn rows_with_vectors_are_what_each_record_says(
        is_index: bool,
        variables in 0u16..5,
        form in prop_oneof![Just(Form::One), Just(Form::Three), Just(Form::Any)],
        rows in prop::collection::vec((any::<u8>(), prop::option::of(0u16..300)), 1..50),
        changes in prop::collection::vec((0usize..200, any::<u8>(), any::<bool>()), 0..3),
    ) {
        let mut bytes = page(is_index, variables, form, &rows);
        assert!(are_alike(&bytes, rows.len(), is_index));
        let loaded = loaded_both_ways(&bytes).expect("they have one shape");
        let has_vectors = rows.iter().any(|(_, vector)| vector.is_some());
        let is_common = matches!(loaded.soundness, Soundness::Alike(_));
        assert_eq!(loaded.soundness != Soundness::Unknown, has_vectors);
        assert!(!has_vectors || form != Form::One || is_common);
        assert_eq!(loaded.expects_vectors, has_vectors);
        for (at, byte, in_slots) in changes {
            bytes[if in_slots { PAGE_BYTES - 1 - at } else { HEADER_BYTES + at }] = byte;
        }
        loaded_both_ways(&bytes);
    }
}

#[test]
fn a_page_with_a_vector_that_breaks_a_rule_has_no_known_vectors() {
    for (variables, first_has_vector) in (0..5).flat_map(|variables| [(variables, false), (variables, true)]) {
        let rows: Vec<_> =
            (0..40).map(|row| (8, ((row > 0 || first_has_vector) && row % 3 == 0).then_some(row))).collect();
        let sound = page(false, variables, Form::One, &rows);
        let start = usize::from(Page::new(&sound).slot_offset(36).expect("a slot"));
        let end = usize::from(Page::new(&sound).slot_offset(37).expect("a slot"));
        let vector = end - 12;
        // The end offset of the vector follows the end offsets of all other variable columns; the number of variable
        // columns precedes all end offsets.
        let ends = start + 17;
        let last = ends + 2 + 2 * usize::from(variables);
        let soundness = |at: usize, bits: u8| {
            let mut bytes = sound;
            bytes[at] ^= bits;
            loaded_both_ways(&bytes).map(|rows| rows.soundness)
        };
        let common = soundness(end - 1, 1);
        assert!(matches!(common, Some(Soundness::Alike(0 | 3))), "another value");
        assert_eq!(soundness(vector, 1), Some(Soundness::Unknown), "not a vector");
        assert_eq!(soundness(vector + 2, 3), Some(Soundness::Unknown), "more values than it has room for");
        assert_eq!(soundness(vector + 2, 1), Some(Soundness::Unknown), "bytes without a value");
        assert_eq!(soundness(vector + 4, 1), Some(Soundness::Sound), "of another column");
        assert_eq!(soundness(vector + 6, 1), Some(Soundness::Unknown), "an end that is not its own");
        assert_eq!(soundness(vector + 7, 0x80), Some(Soundness::Sound), "a value that is not plain");
        assert_ne!(soundness(last, 1), common, "a byte less or more");
        assert_eq!(soundness(last + 1, 0x80), common, "a vector less: the column is not complex");
        soundness(ends, 1);
        soundness(ends + 1, 1);
        if variables > 0 {
            assert_eq!(soundness(ends + 3, 0x80), Some(Soundness::Unknown), "another complex column before it");
        }
        let mut empty = sound;
        let before = u16::from_le_bytes([empty[last], empty[last + 1]]) - 12;
        empty[last..last + 2].copy_from_slice(&before.to_le_bytes());
        let soundness = |bytes: &PageBytes| loaded_both_ways(bytes).map(|rows| (rows.complex, rows.soundness));
        let with_vectors = rows.iter().filter(|(_, vector)| vector.is_some()).count();
        assert_eq!(soundness(&empty), Some((with_vectors, Soundness::Unknown)), "a complex column without bytes");
        assert!(are_alike(&sound, rows.len(), false));
    }
}

#[test]
fn a_complex_column_without_bytes_is_no_vector_where_it_is_the_only_one() {
    let rows: Vec<_> = (0..9).map(|row| (8, (row == 4).then_some(row))).collect();
    let mut bytes = page(false, 0, Form::One, &rows);
    let start = usize::from(Page::new(&bytes).slot_offset(4).expect("a slot"));
    let last = start + 19;
    let before = u16::from_le_bytes([bytes[last], bytes[last + 1]]) - 12;
    bytes[last..last + 2].copy_from_slice(&before.to_le_bytes());
    let rows = loaded_both_ways(&bytes).expect("they have one shape");
    assert_eq!((rows.complex, rows.soundness), (1, Soundness::Unknown));
}
