//! Checks the key order of same-shape rows, one column of all rows at a time.

use std::cmp::Ordering;

use super::{KeyColumn, KeyOrder, compare, compare_values, locators_ascend_bytewise};
use crate::collation::{Beginnings, Encoding};
use crate::record::Record;
use crate::same_shape::Rows;

/// Checks whether the keys of a page ascend. Keeps its buffers from page to page.
#[derive(Default)]
pub struct Ascent {
    /// The slots in which the key equals the key of the slot before, in all columns compared so far.
    open: Vec<u16>,
    /// The first eight bytes of the text in each slot.
    beginnings: Vec<u64>,
}

/// Turns the bytes of a value into an integer that sorts like the value.
trait Image<const N: usize>: Fn([u8; N]) -> u64 {}
impl<const N: usize, F: Fn([u8; N]) -> u64> Image<N> for F {}

const SIGN: u64 = 1 << 63;

impl Ascent {
    /// Counts the pairs of neighboring rows that have an uncertain order, if all other pairs ascend. `None` if the keys
    /// of a pair are equal or in the wrong order, or if some slot of the page has no row of the common shape.
    pub fn undecided(&mut self, rows: Rows<'_>, columns: &[KeyColumn]) -> Option<u64> {
        if rows.slots().is_some() {
            return None;
        }
        if ascend_as_numbers(rows, columns) {
            return Some(0);
        }
        self.open.clear();
        self.open.extend(1..rows.count() as u16);
        for (at, column) in columns.iter().enumerate() {
            if self.open.is_empty() {
                break;
            }
            if !self.ascends(rows, column, at == 0)? {
                return self.rest(rows, columns.get(at..)?);
            }
        }
        self.open.is_empty().then_some(0)
    }

    /// Compares one column in the remaining pairs of rows, and keeps only the pairs that are equal in this column too.
    /// Returns `None` if a pair is in the wrong order. Returns `Some(false)` if the column cannot be compared as an
    /// integer here; some of the kept pairs may then differ.
    fn ascends(&mut self, rows: Rows<'_>, column: &KeyColumn, is_first: bool) -> Option<bool> {
        let KeyColumn { order, offset, length, null_bit, .. } = *column;
        if offset == 0
            || !rows.has_column(null_bit)
            || rows.nulls_of(null_bit).is_some()
            || offset > 0 && !rows.has_fixed(offset.unsigned_abs(), length)
        {
            return Some(false);
        }
        self.begins(rows, column);
        if self.open.is_empty() {
            return Some(false);
        }
        if offset < 0 {
            return self.values(rows, column, rows.variable(offset.unsigned_abs())).then_some(false);
        }
        let is_whole =
            match (order, length) {
                (KeyOrder::Signed, 2) => self
                    .pass(rows, column, is_first, |bytes| i64::from(i16::from_le_bytes(bytes)).cast_unsigned() ^ SIGN),
                (KeyOrder::Signed, 4) => self
                    .pass(rows, column, is_first, |bytes| i64::from(i32::from_le_bytes(bytes)).cast_unsigned() ^ SIGN),
                (KeyOrder::Signed, 8) => {
                    self.pass(rows, column, is_first, |bytes| i64::from_le_bytes(bytes).cast_unsigned() ^ SIGN)
                }
                (KeyOrder::Unsigned, 1) => self.pass(rows, column, is_first, |[byte]: [u8; 1]| byte.into()),
                (KeyOrder::Unsigned, 3) => self.pass(rows, column, is_first, unsigned::<3>),
                (KeyOrder::Unsigned, 4) => self.pass(rows, column, is_first, unsigned::<4>),
                (KeyOrder::Unsigned, 5) => self.pass(rows, column, is_first, unsigned::<5>),
                (KeyOrder::Bit(bit @ 0..8), 1) => {
                    self.pass(rows, column, is_first, |[byte]: [u8; 1]| u64::from(byte >> bit & 1))
                }
                // The days are the high bits and the time the low bits, so one number contains both.
                (KeyOrder::DateTime, 8) => self.pass(rows, column, is_first, |bytes| u64::from_le_bytes(bytes) ^ SIGN),
                (KeyOrder::SmallDateTime, 4) => self.pass(rows, column, is_first, unsigned::<4>),
                // Types with a UTC offset are not compared here, because equal times may have different bytes.
                (KeyOrder::DayAndTime(3), 6) => self.pass(rows, column, is_first, unsigned::<6>),
                (KeyOrder::DayAndTime(4), 7) => self.pass(rows, column, is_first, unsigned::<7>),
                (KeyOrder::DayAndTime(5), 8) => self.pass(rows, column, is_first, unsigned::<8>),
                // The second half of the GUID is compared only if the first halves are equal.
                (KeyOrder::Guid, 16) => {
                    self.pass(rows, column, is_first, |b: [u8; 16]| {
                        u64::from_be_bytes([b[10], b[11], b[12], b[13], b[14], b[15], b[8], b[9]])
                    }) && self.pass(rows, column, false, |b: [u8; 16]| {
                        u64::from_be_bytes([b[6], b[7], b[4], b[5], b[0], b[1], b[2], b[3]])
                    })
                }
                (KeyOrder::Bytes, 8) => self.pass(rows, column, is_first, u64::from_be_bytes),
                _ => {
                    return self.values(rows, column, rows.slices(offset.unsigned_abs(), length)).then_some(false);
                }
            };
        is_whole.then_some(true)
    }

    /// Compares neighboring rows in one column. Returns false if a value is less than the value in the row before.
    #[inline(always)]
    fn pass<const N: usize>(
        &mut self,
        rows: Rows<'_>,
        column: &KeyColumn,
        is_first: bool,
        image: impl Image<N>,
    ) -> bool {
        let offset = column.offset.unsigned_abs();
        let flip = if column.descending { u64::MAX } else { 0 };
        let image = |bytes| image(bytes) ^ flip;
        let (mut ascends, mut left) = (true, 0);
        if is_first {
            let mut values = rows.fixed(offset).map(image);
            let Some(mut prior) = values.next() else { return true };
            for (slot, value) in (1..).zip(values) {
                ascends &= prior <= value;
                // This code has no branch, because it is unpredictable which keys repeat.
                if let Some(place) = self.open.get_mut(left) {
                    *place = slot;
                }
                left += usize::from(prior == value);
                prior = value;
            }
        } else {
            for at in 0..self.open.len() {
                let Some(&slot) = self.open.get(at) else { break };
                let here = usize::from(slot);
                let (prior, value) = (image(rows.fixed_of(here - 1, offset)), image(rows.fixed_of(here, offset)));
                ascends &= prior <= value;
                if let Some(place) = self.open.get_mut(left) {
                    *place = slot;
                }
                left += usize::from(prior == value);
            }
        }
        self.open.truncate(left);
        ascends
    }

    /// Removes the pairs of texts that are certainly in order by their first eight bytes. Few pairs remain if keys are
    /// short or differ early.
    fn begins(&mut self, rows: Rows<'_>, column: &KeyColumn) {
        let beginnings = match column.order {
            KeyOrder::Ansi(id) => Beginnings::of(id, Encoding::Ansi),
            KeyOrder::Unicode(id) => Beginnings::of(id, Encoding::Unicode),
            _ => None,
        };
        // If a row is an exception (see [`Rows::exceptions`]), its stored bytes may be a pointer and not the value.
        let Some(beginnings) = beginnings.filter(|_| rows.are_plain().is_none()) else { return };
        let Self { open, beginnings: words } = self;
        words.clear();
        match (column.offset, column.length) {
            (..0, _) => words.extend(rows.variable(column.offset.unsigned_abs()).map(|text| beginnings.of_text(text))),
            (_, length @ 8..) if beginnings.are_whole(length.into()) => {
                words.extend(rows.fixed(column.offset.unsigned_abs()).map(u64::from_le_bytes))
            }
            _ => return,
        }
        let mut left = 0;
        for at in 0..open.len() {
            let Some(&slot) = open.get(at) else { break };
            let word = |slot: usize| words.get(slot).copied().unwrap_or_default();
            let (prior, value) = (word(usize::from(slot).wrapping_sub(1)), word(slot.into()));
            let (prior, value) = if column.descending { (value, prior) } else { (prior, value) };
            if let Some(place) = open.get_mut(left) {
                *place = slot;
            }
            left += usize::from(!beginnings.is_less(prior, value));
        }
        open.truncate(left);
    }

    /// Compares neighboring rows in a column of any type. Returns false if a value is less than the value in the row
    /// before.
    fn values<'a>(&mut self, rows: Rows<'_>, column: &KeyColumn, values: impl Iterator<Item = &'a [u8]>) -> bool {
        let are_plain = rows.are_plain();
        let is_plain = |slot: u16| are_plain.is_none_or(|plain| plain.get(usize::from(slot)) == Some(&true));
        let mut prior = &[][..];
        let (mut read, mut left) = (0, 0);
        for (slot, value) in (0..).zip(values) {
            let before = std::mem::replace(&mut prior, value);
            if self.open.get(read) != Some(&slot) {
                continue;
            }
            read += 1;
            // In a row that is an exception, the stored bytes may be a pointer and not the value.
            let order = compare_values(before, value, column.order).filter(|_| is_plain(slot - 1) && is_plain(slot));
            match if column.descending { order.map(Ordering::reverse) } else { order } {
                Some(Ordering::Less) => continue,
                Some(Ordering::Greater) => return false,
                Some(Ordering::Equal) | None => {}
            }
            if let Some(place) = self.open.get_mut(left) {
                *place = slot;
            }
            left += 1;
        }
        self.open.truncate(left);
        true
    }

    /// Compares the remaining pairs record by record, by `columns`. In each pair, all earlier columns are equal.
    /// Returns the number of undecided pairs; `None` if a pair is equal or in the wrong order.
    fn rest(&self, rows: Rows<'_>, columns: &[KeyColumn]) -> Option<u64> {
        let mut undecided = 0;
        let (mut bytewise, mut as_numbers) = (0, 0);
        let mut last: Option<(u16, Record<'_>)> = None;
        for &slot in &self.open {
            let prior = match last {
                Some((before, record)) if before + 1 == slot => record,
                _ => rows.record(usize::from(slot) - 1)?,
            };
            let record = rows.record(slot.into())?;
            match compare(&prior, &record, columns) {
                Some(Ordering::Less) => {}
                Some(Ordering::Greater | Ordering::Equal) => return None,
                None => match locators_ascend_bytewise(&prior, columns, &record, columns) {
                    Some(true) => bytewise += 1,
                    Some(false) => as_numbers += 1,
                    None => undecided += 1,
                },
            }
            last = Some((slot, record));
        }
        Some(undecided + bytewise.min(as_numbers))
    }
}

/// A column with values that compare as numbers. A number is made from the eight bytes that end where the value ends:
/// some bits of the value are flipped, and the bits of bytes before the value are cleared.
#[derive(Clone, Copy, Default)]
struct Number {
    /// The end of the eight bytes, as an offset in the row.
    end: u16,
    flip: u64,
    mask: u64,
}

impl Number {
    /// Returns `None` if the values do not compare as numbers, or if a row has no value.
    fn of(rows: Rows<'_>, column: &KeyColumn) -> Option<Self> {
        let KeyColumn { order, offset, length, null_bit, descending } = *column;
        let (flip, mask) = match (order, length) {
            (KeyOrder::Signed, 2 | 4 | 8) | (KeyOrder::DateTime, 8) => (SIGN, u64::MAX),
            (KeyOrder::Unsigned, 1 | 3 | 4 | 5) | (KeyOrder::SmallDateTime, 4) => (0, u64::MAX),
            (KeyOrder::DayAndTime(3), 6) | (KeyOrder::DayAndTime(4), 7) | (KeyOrder::DayAndTime(5), 8) => (0, u64::MAX),
            (KeyOrder::Bit(bit @ 0..8), 1) => (0, 1 << (56 + bit)),
            _ => return None,
        };
        let end = offset.unsigned_abs().checked_add(length).filter(|_| offset > 0)?;
        let is_in_rows = rows.has_column(null_bit) && rows.nulls_of(null_bit).is_none();
        if !is_in_rows || !rows.has_fixed(offset.unsigned_abs(), length) {
            return None;
        }
        let flip = if descending { !flip } else { flip };
        Some(Self { end, flip, mask: mask & u64::MAX << (64 - 8 * u32::from(length)) })
    }

    #[inline(always)]
    fn image(self, word: u64) -> u64 {
        (word ^ self.flip) & self.mask
    }
}

/// Whether the first one to three columns prove that the key of each row is greater than the key before. All of these
/// columns must be numbers, as in most keys. One pass compares all of these columns.
fn ascend_as_numbers(rows: Rows<'_>, columns: &[KeyColumn]) -> bool {
    let number = |at: usize| columns.get(at).and_then(|column| Number::of(rows, column));
    let Some(first) = number(0) else { return false };
    match (number(1), number(2)) {
        (None, _) => ascend(rows, [first]),
        (Some(second), None) => ascend(rows, [first, second]),
        (Some(second), Some(third)) => ascend(rows, [first, second, third]),
    }
}

fn ascend<const N: usize>(rows: Rows<'_>, numbers: [Number; N]) -> bool {
    let Some(words) = rows.words(numbers.map(|number| number.end)) else { return false };
    let mut keys = words.map(|mut images| {
        images.iter_mut().zip(numbers).for_each(|(image, number)| *image = number.image(*image));
        images
    });
    let Some(mut prior) = keys.next() else { return true };
    let mut ascends = true;
    for key in keys {
        // Compares the columns as one long number. This has no branches, because it is unpredictable which column is
        // the first to differ.
        let columns = prior.iter().zip(&key).rev();
        ascends &= columns.fold(false, |borrow, (prior, value)| {
            let (rest, is_less) = prior.overflowing_sub(*value);
            is_less | rest.overflowing_sub(borrow.into()).1
        });
        prior = key;
    }
    ascends
}

/// Reads a little-endian number of up to eight bytes.
#[inline(always)]
fn unsigned<const N: usize>(bytes: [u8; N]) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = from;
    }
    u64::from_le_bytes(word)
}
