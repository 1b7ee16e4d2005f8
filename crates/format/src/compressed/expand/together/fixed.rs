//! Writes the values of a fixed column to the expanded forms of several rows.

use super::super::{joined, put_fixed};
use super::layouts::Layouts;
use super::values::{Column, Row, Stored};
use crate::PageBytes;
use crate::compressed::value::{Codec, biased};
use crate::compressed::vardecimal;

/// Several rows of a page, and the buffer for their expanded forms.
pub(super) struct Values<'v> {
    pub(super) page: &'v PageBytes,
    pub(super) rows: &'v [Row],
    pub(super) bytes: &'v mut [u8],
}

/// A source of the stored values of one column, row by row.
pub(super) trait Found {
    /// Takes the stored value of the next row, which must be `row`.
    fn of_next(&mut self, page: &PageBytes, column: &Column<'_>, row: &Row) -> Option<Stored>;
    /// The stored value of a row, as a big-endian number. The value must have at most eight bytes.
    #[inline(always)]
    fn word_of(&self, page: &PageBytes, column: &Column<'_>, (_, stored): (&Row, &Stored)) -> Option<u64> {
        column.word(page, stored)
    }
    /// Takes the value of the next row as a number, with the length of the value in bytes; `None` if the value has more
    /// than eight bytes.
    fn word(&mut self, page: &PageBytes, column: &Column<'_>, row: &Row) -> Option<(u64, usize)>;
}

/// A source of values that `Column::find` found and completed earlier. Some of them begin with bytes of the anchor, or
/// are not in the short region.
impl Found for std::slice::Iter<'_, Stored> {
    #[inline(always)]
    fn of_next(&mut self, _: &PageBytes, _: &Column<'_>, _: &Row) -> Option<Stored> {
        self.next().copied()
    }

    #[inline(always)]
    fn word(&mut self, page: &PageBytes, column: &Column<'_>, _: &Row) -> Option<(u64, usize)> {
        let stored = self.next()?;
        let length = stored.whole_length();
        if length > size_of::<u64>() {
            return None;
        }
        Some((column.word(page, stored)?, length))
    }
}

/// A source of values that are stored completely in the short region.
pub(super) struct Short<'l> {
    pub(super) layouts: &'l Layouts,
    pub(super) column: usize,
}

impl Found for Short<'_> {
    #[inline(always)]
    fn of_next(&mut self, _: &PageBytes, _: &Column<'_>, row: &Row) -> Option<Stored> {
        row.short(self.layouts, self.column)
    }

    #[inline(always)]
    fn word_of(&self, page: &PageBytes, _: &Column<'_>, (row, _): (&Row, &Stored)) -> Option<u64> {
        Some(row.short_word(page, self.layouts, self.column)?.0)
    }

    #[inline(always)]
    fn word(&mut self, page: &PageBytes, _: &Column<'_>, row: &Row) -> Option<(u64, usize)> {
        row.short_word(page, self.layouts, self.column)
    }
}

/// A source of values that begin with bytes of the anchor. The other bytes of these values are in the short region.
pub(super) struct Anchored<'l> {
    pub(super) layouts: &'l Layouts,
    pub(super) column: usize,
}

impl Found for Anchored<'_> {
    #[inline(always)]
    fn of_next(&mut self, page: &PageBytes, column: &Column<'_>, row: &Row) -> Option<Stored> {
        row.anchored(page, self.layouts, (self.column, column))
    }

    #[inline(always)]
    fn word(&mut self, page: &PageBytes, column: &Column<'_>, row: &Row) -> Option<(u64, usize)> {
        row.anchored_word(page, self.layouts, (self.column, column))
    }
}

impl Column<'_> {
    /// Writes the values of this column to their places, which must be zeroed; `None` if a value is invalid for the
    /// column.
    pub(super) fn put(
        &self,
        values: Values<'_>,
        found: impl Found,
        buffers: (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Option<()> {
        let integer = |number, length| biased(number, length).cast_unsigned();
        // `in_front` returns a number whose little-endian form is the stored bytes, followed by zeros. Columns of
        // `ZerosInFront` need the reverse: zeros, followed by the stored bytes.
        let in_front = |number: u64, length: usize| left(number, length).swap_bytes();
        match (self.slot.codec, self.slot.length) {
            (Codec::Integer, 2) => self.put_numbers::<2>(values, found, integer),
            (Codec::Integer, 4) => self.put_numbers::<4>(values, found, integer),
            (Codec::Integer, 8) => self.put_numbers::<8>(values, found, integer),
            (Codec::Byte, 1) => self.put_numbers::<1>(values, found, |number, _| number),
            (Codec::ZerosInFront, 4) => self.put_numbers::<4>(values, found, |number, _| number.swap_bytes() >> 32),
            (Codec::ZerosInFront, 8) => self.put_numbers::<8>(values, found, |number, _| number.swap_bytes()),
            (Codec::PaddedWith(0), 3) => self.put_numbers::<3>(values, found, in_front),
            (Codec::PaddedWith(0), 4) => self.put_numbers::<4>(values, found, in_front),
            (Codec::PaddedWith(0), 5) => self.put_numbers::<5>(values, found, in_front),
            (Codec::PaddedWith(0), 6) => self.put_numbers::<6>(values, found, in_front),
            (Codec::PaddedWith(0), 7) => self.put_numbers::<7>(values, found, in_front),
            (Codec::PaddedWith(0), 8) => self.put_numbers::<8>(values, found, in_front),
            (Codec::Decimal, _) => self.put_decimals(values, found, buffers),
            (Codec::Bit, _) => self.put_bits(values, found),
            _ => self.put_others(values, found, buffers),
        }
    }

    /// Writes values that are numbers of at most N bytes.
    #[inline(always)]
    fn put_numbers<const N: usize>(
        &self,
        Values { page, rows, bytes }: Values<'_>,
        mut found: impl Found,
        number: impl Fn(u64, usize) -> u64,
    ) -> Option<()> {
        let fixed = usize::from(self.slot.fixed);
        for row in rows {
            // A NULL has length 0 and is written as 0.
            let (word, length) = found.word(page, self, row)?;
            if length > N {
                return None;
            }
            let number = number(word, length).to_le_bytes();
            let at = usize::from(row.place) + fixed;
            *bytes.get_mut(at..at + N)?.first_chunk_mut::<N>()? = *number.first_chunk()?;
        }
        Some(())
    }

    fn put_decimals(
        &self,
        Values { page, rows, bytes }: Values<'_>,
        mut found: impl Found,
        (whole, text): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Option<()> {
        let (fixed, width) = (usize::from(self.slot.fixed), usize::from(self.slot.length));
        for row in rows {
            let stored = found.of_next(page, self, row)?;
            if stored.is_null() {
                continue;
            }
            let image = bytes.get_mut(row.place.into()..)?;
            let length = stored.whole_length();
            let short = match length {
                0..=8 => vardecimal::of_word(found.word_of(page, self, (row, &stored))?, length, self.slot.info),
                _ => None,
            };
            let Some((is_negative, magnitude)) = short else {
                put_fixed(&self.slot, joined(self.prefix(&stored)?, stored.own(page)?, whole), image, text).ok()?;
                continue;
            };
            let (sign, into) = image.get_mut(fixed..fixed + width)?.split_first_mut()?;
            *sign = u8::from(!is_negative);
            let magnitude = magnitude.to_le_bytes();
            // With one branch for each length, the compiler replaces the copy loop with single moves.
            match into.len() {
                4 => *into.first_chunk_mut::<4>()? = *magnitude.first_chunk()?,
                8.. => *into.first_chunk_mut::<8>()? = magnitude,
                length => into.copy_from_slice(magnitude.get(..length)?),
            }
        }
        Some(())
    }

    fn put_bits(&self, Values { page, rows, bytes }: Values<'_>, mut found: impl Found) -> Option<()> {
        for row in rows {
            let stored = found.of_next(page, self, row)?;
            if stored.whole_length() > 0 {
                return None;
            }
            *bytes.get_mut(usize::from(row.place) + usize::from(self.slot.fixed))? = stored.is_set().into();
        }
        Some(())
    }

    fn put_others(
        &self,
        Values { page, rows, bytes }: Values<'_>,
        mut found: impl Found,
        (whole, text): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Option<()> {
        for row in rows {
            let stored = found.of_next(page, self, row)?;
            if stored.is_null() {
                continue;
            }
            let image = bytes.get_mut(row.place.into()..)?;
            put_fixed(&self.slot, joined(self.prefix(&stored)?, stored.own(page)?, whole), image, text).ok()?;
        }
        Some(())
    }
}

/// Shifts a number of `length` bytes into the highest bytes of the eight-byte result.
#[inline(always)]
fn left(number: u64, length: usize) -> u64 {
    number.checked_shl(64 - 8 * length as u32).unwrap_or_default()
}
