use format::same_shape::SameShapeRows;
use format::{Page, PageType};

use super::*;
use crate::test_pages::{PAGE, TestPage};
use crate::values::integers::formula_of_ints;

/// Number of rows on a page: odd, and more than any loop processes at a time.
const ROWS: usize = 51;

/// A rowset whose rows have a fixed-length string and a key of eight bytes.
#[derive(Clone)]
struct Rowset {
    strings: Vec<Vec<u8>>,
    keys: Vec<[u8; 8]>,
    are_null: Vec<bool>,
    are_ghosts: Vec<bool>,
    /// Number of columns that the null bitmaps declare.
    columns: u16,
}

impl Rowset {
    /// A rowset in which no string ends in padding.
    fn of(length: usize) -> Self {
        let mut number = length as u32;
        let mut byte = || {
            number = number.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (number >> 16) as u8 | 1
        };
        let strings = (0..ROWS).map(|_| (0..length).map(|_| byte()).collect()).collect();
        let keys = (0..ROWS).map(|_| [(); 8].map(|()| byte())).collect();
        Self { strings, keys, are_null: vec![false; ROWS], are_ghosts: vec![false; ROWS], columns: 2 }
    }

    fn page(&self) -> Box<format::PageBytes> {
        let mut page = TestPage::new(PageType::Data);
        for (row, (string, key)) in self.strings.iter().zip(&self.keys).enumerate() {
            let status = if self.are_ghosts[row] { 0x1C } else { 0x10 };
            let end = (4 + string.len() + key.len()) as u16;
            let mut record = vec![status, 0];
            record.extend(end.to_le_bytes());
            record.extend(string);
            record.extend(key);
            record.extend(self.columns.to_le_bytes());
            record.push(u8::from(self.are_null[row]));
            page = page.record(&record);
        }
        page.finish()
    }

    /// The sum of the hashes of all live rows, each hashed on its own.
    fn row_by_row(&self, hash: &FactHash, form: Normalization, with_address: bool) -> (Sum, u64) {
        let (mut sum, mut count) = (Sum::default(), 0);
        for row in (0..self.strings.len()).filter(|row| !self.are_ghosts[*row]) {
            let mut hasher = hash.hasher();
            match self.are_null[row] {
                true => hasher.add_null(),
                false => form.add(&mut hasher, &self.strings[row]).unwrap(),
            }
            hasher.add_bytes(&self.keys[row]);
            if with_address {
                hasher.add_bytes(&locator_bytes(format::RecordId { page: PAGE, slot: row as u16 }));
            }
            sum.add(hasher.finish().into());
            count += 1;
        }
        (sum, count)
    }

    fn plan(&self, form: Normalization, with_address: bool) -> BatchPlan {
        let length = self.strings[0].len() as u16;
        let mut places = vec![
            Place::Fixed { offset: 4, length, null_bit: 1 }.formed(form).unwrap(),
            Place::Fixed { offset: 4 + length, length: 8, null_bit: 2 },
        ];
        places.extend(with_address.then_some(Place::Locator));
        let words = Words::of(&places);
        BatchPlan { filter: None, wants_first: false, places, words }
    }

    /// Whether one pass could compute the sum of the rows. Asserts that the sums in one pass and in several passes
    /// equal the sum of rows hashed one by one.
    fn is_in_one_pass(&self, form: Normalization, with_address: bool) -> bool {
        let (hash, bytes, mut desk) = (FactHash::new(Some(9)), self.page(), HashScratch::default());
        let page = Page::new(&bytes);
        let mut same_shape = SameShapeRows::default();
        assert!(same_shape.load(page, false));
        let rows = same_shape.of(page);
        let plan = self.plan(form, with_address);
        let expected = self.row_by_row(&hash, form, with_address);
        let in_passes = BatchPlan { words: None, ..plan.clone() };
        for plan in [&plan, &in_passes] {
            let found = plan.sum(&hash, PAGE, rows, &mut desk).unwrap();
            assert_eq!((found.sum, found.rows), expected, "{form:?}, {} bytes", self.strings[0].len());
            assert!(found.has_complex);
        }
        let Some(words) = &plan.words else { return false };
        let are_words = plan.places.iter().all(|place| place.is_words(rows));
        let in_one = words.sum(&plan, &hash, PAGE, rows, &mut desk.integers).filter(|_| are_words);
        assert!(in_one.as_ref().is_none_or(|found| (found.sum, found.rows) == expected));
        in_one.is_some()
    }
}

const FORMS: [Normalization; 4] = [
    Normalization::AsStored,
    Normalization::Trimmed(b" "),
    Normalization::Trimmed(b" \0"),
    Normalization::Trimmed(&[0]),
];

#[test]
fn values_of_any_length_add_up_in_one_pass_as_row_by_row() {
    for (length, with_address) in (1..=40usize).flat_map(|length| [(length, false), (length, true)]) {
        let has_few = length.div_ceil(8) + 1 + usize::from(with_address) <= 6;
        for form in FORMS {
            let plain = Rowset::of(length);
            assert_eq!(plain.is_in_one_pass(form, with_address), has_few, "{form:?}, {length} bytes");

            let mut with_ghosts = plain.clone();
            with_ghosts.are_ghosts.iter_mut().step_by(3).for_each(|is_ghost| *is_ghost = true);
            assert_eq!(with_ghosts.is_in_one_pass(form, with_address), has_few, "{form:?}, {length} bytes");

            let mut with_null = plain.clone();
            with_null.are_null[ROWS / 2] = true;
            assert!(!with_null.is_in_one_pass(form, with_address));
        }
    }
}

#[test]
fn values_whose_padding_is_dropped_are_not_taken_as_they_are() {
    for length in 1..=40 {
        for form in FORMS {
            let Normalization::Trimmed(padding) = form else { continue };
            for row in [0, ROWS / 2, ROWS - 1] {
                for padded in (padding.len()..=length).step_by(padding.len()) {
                    let mut rows = Rowset::of(length);
                    let end = rows.strings[row].len();
                    let pairs = rows.strings[row][end - padded..].chunks_mut(padding.len());
                    pairs.for_each(|pair| pair.copy_from_slice(padding));
                    assert!(!rows.is_in_one_pass(form, false), "{form:?}, {padded} of {length} bytes");
                }
            }
        }
    }
}

#[test]
fn rows_that_lack_a_column_are_left_to_others() {
    let rows = Rowset { columns: 1, ..Rowset::of(28) };
    let (bytes, mut same_shape) = (rows.page(), SameShapeRows::default());
    let page = Page::new(&bytes);
    assert!(same_shape.load(page, false));
    let plan = rows.plan(Normalization::AsStored, false);
    let found = plan.sum(&FactHash::new(Some(9)), PAGE, same_shape.of(page), &mut HashScratch::default());
    assert!(found.is_none());
}

#[test]
fn each_bit_of_each_word_changes_the_sum() {
    let sum = |rows: &Rowset| {
        let (bytes, mut same_shape) = (rows.page(), SameShapeRows::default());
        let page = Page::new(&bytes);
        assert!(same_shape.load(page, false));
        let plan = rows.plan(Normalization::AsStored, false);
        let rows = same_shape.of(page);
        plan.sum(&FactHash::new(Some(9)), PAGE, rows, &mut HashScratch::default()).unwrap().sum.parts()
    };
    for length in [1, 4, 8, 9, 16, 28, 32, 40] {
        let rows = Rowset::of(length);
        let before = sum(&rows);
        for bit in 0..8 * (length + 8) {
            let mut changed = rows.clone();
            match bit / 8 {
                at if at < length => changed.strings[ROWS / 2][at] ^= 1 << (bit % 8),
                at => changed.keys[ROWS / 2][at - length] ^= 1 << (bit % 8),
            }
            let after = sum(&changed);
            assert!(before.0 != after.0 && before.1 != after.1, "bit {bit} of {length} bytes and a key");
        }
    }
}

#[test]
fn an_operation_on_two_ints_adds_up_in_one_pass_as_row_by_row() {
    for (text, operate) in [
        ("[a]+[b]", i32::checked_add as fn(i32, i32) -> Option<i32>),
        ("[a]-[b]", i32::checked_sub),
        ("[a]*[b]", i32::checked_mul),
    ] {
        for (length, has_ghost, row_beyond) in
            [(1, false, None), (28, false, None), (8, true, None), (8, false, Some(ROWS - 1))]
        {
            let mut rowset = Rowset::of(length);
            rowset.are_ghosts[ROWS / 2] = has_ghost;
            for key in &mut rowset.keys {
                let ints = [key[0], key[4]].map(|byte| i32::from(byte.cast_signed()) * 181);
                *key = [ints[0].to_le_bytes(), ints[1].to_le_bytes()].concat().try_into().unwrap();
            }
            if let Some(row) = row_beyond {
                // With these operands, the result of each operation is outside the range of int.
                let ints = [i32::MIN, if text == "[a]-[b]" { 1 } else { i32::MIN }];
                rowset.keys[row] = [ints[0].to_le_bytes(), ints[1].to_le_bytes()].concat().try_into().unwrap();
            }
            let key = 4 + length as u16;
            let formula = formula_of_ints(text, [(key, 2), (key + 4, 2)]);
            let places = vec![
                Place::Computed(formula),
                Place::Fixed { offset: 4, length: length as u16, null_bit: 1 },
                Place::Fixed { offset: key, length: 8, null_bit: 2 },
            ];
            let words = Words::of(&places).unwrap();
            let plan = BatchPlan { filter: None, wants_first: false, places, words: Some(words.clone()) };
            let (hash, bytes, mut desk) = (FactHash::new(Some(9)), rowset.page(), HashScratch::default());
            let (page, mut same_shape) = (Page::new(&bytes), SameShapeRows::default());
            assert!(same_shape.load(page, false));
            let rows = same_shape.of(page);
            let in_one = words.sum(&plan, &hash, PAGE, rows, &mut desk.integers);
            let in_passes = BatchPlan { words: None, ..plan }.sum(&hash, PAGE, rows, &mut desk);
            assert!([&in_one, &in_passes].iter().all(|found| found.is_some() == row_beyond.is_none()), "{text}");
            let mut expected = (Sum::default(), 0);
            for row in (0..ROWS).filter(|row| !rowset.are_ghosts[*row] && row_beyond.is_none()) {
                let int = |at: usize| i32::from_le_bytes(rowset.keys[row][at..at + 4].try_into().unwrap());
                let mut hasher = hash.hasher();
                hasher.add_bytes(&operate(int(0), int(4)).unwrap().to_le_bytes());
                hasher.add_bytes(&rowset.strings[row]);
                hasher.add_bytes(&rowset.keys[row]);
                expected.0.add(hasher.finish().into());
                expected.1 += 1;
            }
            for found in in_one.iter().chain(&in_passes) {
                assert_eq!((found.sum, found.rows), expected, "{text}");
            }
        }
    }
}
