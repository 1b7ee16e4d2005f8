//! Images of keys: short forms of a fixed size that sort byte by byte as the keys sort.

use std::cmp::Ordering;

use super::{
    KeyColumn, KeyOrder, KeyValue, bit_value, datetime, day_and_time, decimal, float, guid, signed, small_datetime,
    units, unsigned,
};
use crate::collation::{self, CollationId, Encoding};
use crate::record::Record;

/// The number of bytes in a [`KeyImage`].
pub const IMAGE_BYTES: usize = 24;

/// The start of a key, encoded so that images sort byte by byte as the keys sort. All images have the same size, so
/// that facts about the lowest and highest key of a page have a fixed size. If two images are equal, the keys
/// themselves must be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyImage {
    bytes: [u8; IMAGE_BYTES],
    length: u8,
    complete: bool,
}

impl KeyImage {
    /// The image of the key of a record.
    pub fn of(record: &Record<'_>, columns: &[KeyColumn]) -> Self {
        let mut builder = ImageBuilder { bytes: [0; IMAGE_BYTES], length: 0 };
        let complete = columns.iter().all(|column| builder.column(column.value(record), column));
        Self { bytes: builder.bytes, length: builder.length as u8, complete }
    }

    /// Whether the image contains the whole key. If it does not, different keys may have equal images.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The image as bytes, to be stored in a file.
    pub fn to_bytes(self) -> [u8; IMAGE_BYTES + 1] {
        let mut bytes = [0; IMAGE_BYTES + 1];
        bytes[..IMAGE_BYTES].copy_from_slice(&self.bytes);
        bytes[IMAGE_BYTES] = self.length << 1 | u8::from(self.complete);
        bytes
    }

    /// The image from bytes that [`Self::to_bytes`] returned.
    pub fn from_bytes(bytes: &[u8; IMAGE_BYTES + 1]) -> Self {
        let mut image = [0; IMAGE_BYTES];
        image.copy_from_slice(&bytes[..IMAGE_BYTES]);
        let last = bytes[IMAGE_BYTES];
        Self { bytes: image, length: (last >> 1).min(IMAGE_BYTES as u8), complete: last & 1 != 0 }
    }

    /// The order of two keys; `None` if their images do not decide it.
    #[expect(clippy::indexing_slicing, reason = "no length is greater than IMAGE_BYTES")]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let (a, b) = (&self.bytes[..self.length.into()], &other.bytes[..other.length.into()]);
        let common = a.len().min(b.len());
        match a[..common].cmp(&b[..common]) {
            Ordering::Equal if self.complete && other.complete && a.len() == b.len() => Some(Ordering::Equal),
            Ordering::Equal => None,
            order => Some(order),
        }
    }
}

struct ImageBuilder {
    bytes: [u8; IMAGE_BYTES],
    length: usize,
}

#[expect(clippy::indexing_slicing, reason = "the length is never greater than IMAGE_BYTES")]
impl ImageBuilder {
    /// Appends the value of a column. Returns false if the image must end here.
    fn column(&mut self, value: KeyValue<'_>, column: &KeyColumn) -> bool {
        let start = self.length;
        let complete = match value {
            KeyValue::Null => self.push(&[0]),
            KeyValue::Unknown => false,
            KeyValue::Bytes(bytes) => self.push(&[1]) && self.value(bytes, column),
        };
        if column.descending {
            self.bytes[start..self.length].iter_mut().for_each(|byte| *byte = !*byte);
        }
        complete
    }

    fn value(&mut self, bytes: &[u8], column: &KeyColumn) -> bool {
        let length = column.length;
        match column.order {
            KeyOrder::Signed => self.number(signed(bytes), i64::MIN, length),
            KeyOrder::Unsigned => self.number(unsigned(bytes).cast_signed(), 0, length),
            KeyOrder::Bit(bit) => bit_value(bytes, bit).is_some_and(|value| self.push(&[value.into()])),
            KeyOrder::DateTime => datetime(bytes)
                .is_some_and(|(days, ticks)| self.number(days, i64::MIN, 4) && self.number(ticks.cast_signed(), 0, 4)),
            KeyOrder::SmallDateTime => small_datetime(bytes)
                .is_some_and(|(days, minutes)| self.number((days << 16 | minutes).cast_signed(), 0, 4)),
            KeyOrder::DayAndTime(width) => day_and_time(bytes, width).is_some_and(|(days, time)| {
                self.number(days.cast_signed(), 0, 3) && self.number(time.cast_signed(), 0, width.into())
            }),
            KeyOrder::Guid => guid(bytes).is_some_and(|bytes| self.push(&bytes)),
            KeyOrder::Ansi(id) => self.text(bytes.iter().map(|&byte| u16::from(byte)), id, Encoding::Ansi),
            KeyOrder::Unicode(id) => bytes.len().is_multiple_of(2) && self.text(units(bytes), id, Encoding::Unicode),
            KeyOrder::Decimal => decimal(bytes).is_some_and(|value| {
                // Minus zero, or a value with an invalid sign byte, ends the image, because the same value can also be
                // stored in another way.
                self.decimal(value, length) && bytes.first() == Some(&u8::from(value >= 0))
            }),
            KeyOrder::Float => float(bytes).is_some_and(|value| self.float(value)),
            KeyOrder::Bytes => self.binary(bytes, column),
            KeyOrder::Locator | KeyOrder::Unknown => false,
        }
    }

    /// Appends a number as its distance from the least value, in `width` bytes, most significant byte first. `least` is
    /// 0 for unsigned numbers, and `i64::MIN` for signed numbers of any width. A value that does not fit ends the
    /// image.
    fn number(&mut self, value: i64, least: i64, width: u16) -> bool {
        if !(1..=8).contains(&width) {
            return false;
        }
        let unused = 64 - 8 * u32::from(width);
        let from_least = value.wrapping_sub(least >> unused).cast_unsigned();
        let bytes = (from_least << unused).to_be_bytes();
        from_least << unused >> unused == from_least && self.push(bytes.get(..width.into()).unwrap_or_default())
    }

    /// Appends a decimal of `length` bytes, including the sign byte.
    fn decimal(&mut self, value: i128, length: u16) -> bool {
        match length {
            ..=8 => i64::try_from(value).is_ok_and(|value| self.number(value, i64::MIN, length)),
            9..=17 => {
                let (high, low) = ((value >> 64) as i64, value as u64);
                self.number(high, i64::MIN, (length - 8).min(8)) && self.push(&low.to_be_bytes())
            }
            _ => false,
        }
    }

    /// Appends a floating-point number, with bits flipped so that images sort like the numbers. Minus zero ends the
    /// image, because it equals zero but is stored in another way.
    fn float(&mut self, value: f64) -> bool {
        let is_minus_zero = value == 0.0 && value.is_sign_negative();
        let bits = if is_minus_zero { 0 } else { value.to_bits() };
        let flip = if value < 0.0 { u64::MAX } else { 1 << 63 };
        self.push(&(bits ^ flip).to_be_bytes()) && !is_minus_zero
    }

    /// Appends bytes. They are padded with zeros to the length of the column, because trailing zeros do not count. Two
    /// kinds of values end the image: a value that is longer than its column, and a value of variable length that ends
    /// with zeros, because the same value can also be stored without them.
    fn binary(&mut self, bytes: &[u8], column: &KeyColumn) -> bool {
        let length = usize::from(column.length);
        let padding = length.saturating_sub(bytes.len());
        let mut padded = bytes.iter().copied().take(length).chain(std::iter::repeat_n(0, padding));
        padded.all(|byte| self.push(&[byte]))
            && bytes.len() <= length
            && (column.offset > 0 || bytes.last() != Some(&0))
    }

    /// Appends characters up to the first uncertain one. Always ends the image: two texts with equal folded characters
    /// may still differ, so the next column must not be compared.
    fn text(&mut self, units: impl Iterator<Item = u16>, id: CollationId, encoding: Encoding) -> bool {
        let mut units = units.peekable();
        let mut before = None;
        while let Some(unit) = units.next() {
            let byte = collation::image_of(before, unit, units.peek().copied(), id, encoding);
            if !byte.is_some_and(|byte| self.push(&[byte])) {
                return false;
            }
            before = Some(unit);
        }
        false
    }

    fn push(&mut self, bytes: &[u8]) -> bool {
        let room = &mut self.bytes[self.length..];
        let taken = bytes.len().min(room.len());
        room[..taken].copy_from_slice(&bytes[..taken]);
        self.length += taken;
        taken == bytes.len()
    }
}

#[cfg(test)]
mod tests;
