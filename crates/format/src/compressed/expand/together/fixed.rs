//! The values of a column of fixed length, put into the expanded forms of some rows.

use super::super::{joined, put_fixed};
use super::values::{Column, Row, Stored, own_word};
use crate::PageBytes;
use crate::compressed::value::{Codec, biased};
use crate::compressed::vardecimal;

/// Rows, what they have for a column, and where their expanded forms are.
pub(super) struct Values<'v> {
    pub(super) page: &'v PageBytes,
    pub(super) rows: &'v [Row],
    pub(super) stored: &'v [Stored],
    pub(super) bytes: &'v mut [u8],
}

impl Column<'_> {
    /// Puts the values into their places, which are zero; `None` if one is no value of the column.
    pub(super) fn put(&self, values: Values<'_>, buffers: (&mut Vec<u8>, &mut Vec<u8>)) -> Option<()> {
        let integer = |number, length| biased(number, length).cast_unsigned();
        // What is left out is 0: at the end of the value, or at its start.
        let in_front = |number: u64, length: usize| left(number, length).swap_bytes();
        match (self.slot.codec, self.slot.length) {
            (Codec::Integer, 2) => self.put_numbers::<2>(values, integer),
            (Codec::Integer, 4) => self.put_numbers::<4>(values, integer),
            (Codec::Integer, 8) => self.put_numbers::<8>(values, integer),
            (Codec::Byte, 1) => self.put_numbers::<1>(values, |number, _| number),
            (Codec::ZerosInFront, 4) => self.put_numbers::<4>(values, |number, _| number.swap_bytes() >> 32),
            (Codec::ZerosInFront, 8) => self.put_numbers::<8>(values, |number, _| number.swap_bytes()),
            (Codec::PaddedWith(0), 3) => self.put_numbers::<3>(values, in_front),
            (Codec::PaddedWith(0), 4) => self.put_numbers::<4>(values, in_front),
            (Codec::PaddedWith(0), 5) => self.put_numbers::<5>(values, in_front),
            (Codec::PaddedWith(0), 6) => self.put_numbers::<6>(values, in_front),
            (Codec::PaddedWith(0), 7) => self.put_numbers::<7>(values, in_front),
            (Codec::PaddedWith(0), 8) => self.put_numbers::<8>(values, in_front),
            (Codec::Decimal, _) => self.put_decimals(values, buffers),
            (Codec::Bit, _) => self.put_bits(values),
            _ => self.put_others(values, buffers),
        }
    }

    /// Values that are numbers of at most N bytes.
    #[inline(always)]
    fn put_numbers<const N: usize>(&self, values: Values<'_>, number: impl Fn(u64, usize) -> u64) -> Option<()> {
        match self.has_prefixes() {
            true => self.put_words::<N>(values, number, |page, stored| self.word(page, stored)),
            false => self.put_words::<N>(values, number, own_word),
        }
    }

    #[inline(always)]
    fn put_words<const N: usize>(
        &self,
        Values { page, rows, stored, bytes }: Values<'_>,
        number: impl Fn(u64, usize) -> u64,
        word: impl Fn(&PageBytes, &Stored) -> Option<u64>,
    ) -> Option<()> {
        let fixed = usize::from(self.slot.fixed);
        for (row, stored) in rows.iter().zip(stored) {
            // A NULL has no bytes, which are 0.
            let length = stored.whole_length();
            if length > N {
                return None;
            }
            let number = number(word(page, stored)?, length).to_le_bytes();
            let at = usize::from(row.place) + fixed;
            *bytes.get_mut(at..at + N)?.first_chunk_mut::<N>()? = *number.first_chunk()?;
        }
        Some(())
    }

    fn put_decimals(&self, values: Values<'_>, (whole, text): (&mut Vec<u8>, &mut Vec<u8>)) -> Option<()> {
        let Values { page, rows, stored, bytes } = values;
        let (fixed, width) = (usize::from(self.slot.fixed), usize::from(self.slot.length));
        for (row, stored) in rows.iter().zip(stored).filter(|(_, stored)| !stored.is_null()) {
            let image = bytes.get_mut(row.place.into()..)?;
            let length = stored.whole_length();
            let short = match length {
                0..=8 => vardecimal::of_word(self.word(page, stored)?, length, self.slot.info),
                _ => None,
            };
            let Some((is_negative, magnitude)) = short else {
                put_fixed(&self.slot, joined(self.prefix(stored)?, stored.own(page)?, whole), image, text).ok()?;
                continue;
            };
            let (sign, into) = image.get_mut(fixed..fixed + width)?.split_first_mut()?;
            *sign = u8::from(!is_negative);
            let magnitude = magnitude.to_le_bytes();
            // One length each, so that the compiler removes the loop.
            match into.len() {
                4 => *into.first_chunk_mut::<4>()? = *magnitude.first_chunk()?,
                8.. => *into.first_chunk_mut::<8>()? = magnitude,
                length => into.copy_from_slice(magnitude.get(..length)?),
            }
        }
        Some(())
    }

    fn put_bits(&self, Values { rows, stored, bytes, .. }: Values<'_>) -> Option<()> {
        for (row, stored) in rows.iter().zip(stored) {
            if stored.whole_length() > 0 {
                return None;
            }
            *bytes.get_mut(usize::from(row.place) + usize::from(self.slot.fixed))? = stored.is_set().into();
        }
        Some(())
    }

    fn put_others(&self, values: Values<'_>, (whole, text): (&mut Vec<u8>, &mut Vec<u8>)) -> Option<()> {
        let Values { page, rows, stored, bytes } = values;
        for (row, stored) in rows.iter().zip(stored).filter(|(_, stored)| !stored.is_null()) {
            let image = bytes.get_mut(row.place.into()..)?;
            put_fixed(&self.slot, joined(self.prefix(stored)?, stored.own(page)?, whole), image, text).ok()?;
        }
        Some(())
    }
}

/// A number of `length` bytes moved to the highest ones of eight.
#[inline(always)]
fn left(number: u64, length: usize) -> u64 {
    number.checked_shl(64 - 8 * length as u32).unwrap_or_default()
}
