//! Gives access to the rows of one shape on a page, column by column.

use super::{Exception, SameShapeRows, Vectors, WORD_BITS, bytes_of};
use crate::bytes::u16_at;
use crate::record::{COMPLEX, Record, VERSION_TAG_BYTES, has_null_bit, is_known, status};
use crate::slots::Span;

/// The rows of one shape on a page.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    rows: &'a SameShapeRows,
    /// The bytes of the page, or the buffer that contains the rows.
    page: &'a [u8],
}

impl<'a> Rows<'a> {
    /// The rows in `page`, which must be the page or buffer loaded last.
    pub(super) fn new(rows: &'a SameShapeRows, page: &'a [u8]) -> Self {
        Self { rows, page }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.rows.spans.len()
    }

    /// The slot of each row; `None` if every slot of the page has a row of the shape, so that the number of a row is
    /// its slot.
    pub fn slots(&self) -> Option<&'a [u16]> {
        Some(&self.rows.slots[..]).filter(|slots| !slots.is_empty())
    }

    /// The records that must be examined one by one, by ascending slot: ghosts, rows with a complex column, and records
    /// of another shape.
    pub fn exceptions(&self) -> &'a [Exception] {
        &self.rows.exceptions
    }

    /// Number of rows that are not exceptions.
    pub fn plain_count(&self) -> usize {
        self.rows.plain
    }

    /// The number of rows that are not ghosts.
    pub fn live_count(&self) -> usize {
        self.rows.plain + self.rows.complex
    }

    /// False for each row that is an exception; `None` if no row is an exception.
    pub fn are_plain(&self) -> Option<&'a [bool]> {
        Some(&self.rows.are_plain[..]).filter(|plain| !plain.is_empty())
    }

    /// False for each row that is a ghost; `None` if no row is an exception.
    pub fn are_live(&self) -> Option<&'a [bool]> {
        Some(&self.rows.are_live[..]).filter(|live| !live.is_empty())
    }

    /// Whether some live row has a complex column.
    pub fn has_complex(&self) -> bool {
        self.rows.complex > 0
    }

    /// Whether the variable column `number`, counted from 1, may be complex in some live row.
    pub fn may_be_complex(&self, number: u16) -> bool {
        number > 0 && self.rows.complex_columns >> (number - 1).min(63) & 1 != 0
    }

    /// The sparse vectors of live rows. `None` if no live row has a vector, or if some complex column of a live row is
    /// not a sound vector. The caller must know that the table has sparse columns, because the page does not show this.
    pub fn vectors(self) -> Option<Vectors<'a>> {
        Vectors::of(self.rows, self.page)
    }

    /// The bytes of the last variable column of each row, and whether this column is complex. The bytes are empty for a
    /// row without variable columns.
    pub fn last_variables(self) -> impl Iterator<Item = (&'a [u8], bool)> + 'a {
        let page = self.page;
        let variable_at = usize::from(self.rows.shape.variable_at);
        self.rows.spans.iter().zip(&self.rows.variables).map(move |(span, &stored)| {
            let start = usize::from(span.offset);
            let ends = variable_at + 2;
            let end_of = |number: usize| u16_at(page, start + variable_at + 2 * number).unwrap_or_default();
            let (first, last) = match usize::from(stored) {
                0 => return (&[][..], false),
                1 => (ends + 2, end_of(1)),
                stored => (usize::from(end_of(stored - 1) & !COMPLEX), end_of(stored)),
            };
            let bytes = page.get(start + first..start + usize::from(last & !COMPLEX)).unwrap_or_default();
            (bytes, last & COMPLEX != 0)
        })
    }

    /// Whether the rows belong to an index.
    pub fn is_index(&self) -> bool {
        self.rows.shape.is_index
    }

    /// The number of columns in the null bitmaps; 0 without null bitmaps.
    pub fn column_count(&self) -> u16 {
        self.rows.shape.column_count
    }

    /// End of the fixed part of each row.
    pub fn fixed_end(&self) -> u16 {
        self.rows.shape.fixed_end
    }

    /// The largest number of variable columns that a row stores.
    pub fn most_variables(&self) -> u16 {
        self.rows.totals.most_variables
    }

    /// The smallest number of variable columns that a row stores.
    pub fn fewest_variables(&self) -> u16 {
        self.rows.totals.fewest_variables
    }

    /// Whether some row ends with a version tag.
    pub fn has_versions(&self) -> bool {
        self.rows.totals.has_versions
    }

    /// The version tag of each row that has one.
    pub fn version_tags(&self) -> impl Iterator<Item = &'a [u8; VERSION_TAG_BYTES]> + 'a {
        let page = self.page;
        let records = self.rows.spans.iter().map(move |span| bytes_of(page, *span));
        let has_tag = |record: &&[u8]| record.first().is_some_and(|status| status & status::VERSION_TAG != 0);
        records.filter(has_tag).filter_map(|record| record.last_chunk())
    }

    /// The union of the null bitmaps of all rows: the null bits `64 * word + 1` to `64 * word + 64`, with the first as
    /// the lowest bit. A bit is set if it is set in at least one row.
    pub fn null_word(&self, word: u16) -> u64 {
        self.rows.any_nulls.get(usize::from(word)).copied().filter(|_| self.column_count() > 0).unwrap_or_default()
    }

    /// The null bit `number`, counted from 1, of all rows. Returns, for each row, the word of its null bitmap that
    /// contains the bit, and, for all rows, the mask of the bit in the word. `None` if no row has the bit set.
    pub fn nulls_of(&self, number: u16) -> Option<(&'a [u64], u64)> {
        let at = number.checked_sub(1)?;
        let (word, bit) = (at / WORD_BITS, 1 << (at % WORD_BITS));
        let first = usize::from(word) * self.count();
        (self.null_word(word) & bit != 0).then_some((self.rows.nulls.get(first..first + self.count())?, bit))
    }

    /// The row with this number, counted from 0.
    pub fn record(&self, row: usize) -> Option<Record<'a>> {
        let span = self.rows.spans.get(row)?;
        let bytes = bytes_of(self.page, *span);
        match self.rows.shape.has_length {
            true => Record::data(bytes).ok(),
            false => Record::index(bytes, self.fixed_end()).ok(),
        }
    }

    /// Whether the rows store the column with the null bit `number`; see [`Record::has_column`].
    #[inline]
    pub fn has_column(&self, number: u16) -> bool {
        is_known(number, self.column_count())
    }

    /// Whether the null bitmaps of the rows contain the bit `number`. Only then do they show whether the column is
    /// NULL.
    #[inline]
    pub fn has_null_bit(&self, number: u16) -> bool {
        has_null_bit(number, self.column_count())
    }

    /// Whether all rows have `length` bytes at `offset` in their fixed part.
    pub fn has_fixed(&self, offset: u16, length: u16) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.fixed_end())
    }

    /// The `N` bytes at `offset` of each row. The caller must have verified with [`Self::has_fixed`] that all rows have
    /// these bytes.
    #[inline(always)]
    pub fn fixed<const N: usize>(self, offset: u16) -> impl Iterator<Item = [u8; N]> + 'a {
        let page = self.page;
        self.rows.spans.iter().map(move |span| {
            let start = usize::from(span.offset) + usize::from(offset);
            page.get(start..start + N).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
        })
    }

    /// For each row, one little-endian number for each offset in `ends`: the eight bytes before the offset. A value
    /// that ends at the offset is in the highest bytes of the number; the lower bytes precede the value in the record.
    /// `None` if an offset of some row has fewer than eight bytes before it in the buffer.
    #[inline(always)]
    pub fn words<const N: usize>(self, ends: [u16; N]) -> Option<impl Iterator<Item = [u64; N]> + 'a> {
        const BYTES: usize = size_of::<u64>();
        let page = self.page;
        let nearest = ends.iter().copied().min().map_or(0, usize::from);
        let is_inside = |span: &Span| usize::from(span.offset) + nearest >= BYTES;
        if nearest < BYTES && !self.rows.spans.iter().fold(true, |all, span| all & is_inside(span)) {
            return None;
        }
        // The offsets have 32 bits, so that the end of a word cannot overflow and one comparison shows whether the word
        // is on the page.
        let places = ends.map(|end| u32::from(end).wrapping_sub(BYTES as u32));
        Some(self.rows.spans.iter().map(move |span| {
            places.map(|place| {
                let start = u32::from(span.offset).wrapping_add(place) as usize;
                let word = page.get(start..start + BYTES).and_then(|bytes| bytes.first_chunk());
                word.map_or(0, |bytes| u64::from_le_bytes(*bytes))
            })
        }))
    }

    /// The `N` bytes at `offset` of the row with number `row`.
    #[inline(always)]
    pub fn fixed_of<const N: usize>(&self, row: usize, offset: u16) -> [u8; N] {
        let start = self.rows.spans.get(row).map_or(0, |span| usize::from(span.offset)) + usize::from(offset);
        self.page.get(start..start + N).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
    }

    /// The `length` bytes at `offset` of each row.
    pub fn slices(&self, offset: u16, length: u16) -> impl Iterator<Item = &'a [u8]> + 'a {
        let page = self.page;
        self.rows.spans.iter().map(move |span| {
            let start = usize::from(span.offset) + usize::from(offset);
            page.get(start..start + usize::from(length)).unwrap_or_default()
        })
    }

    /// The stored bytes of variable column `number`, counted from 1, in each row; empty if a row does not store the
    /// column. The bytes of a complex column are not its value.
    #[inline(always)]
    pub fn variable(&self, number: u16) -> impl Iterator<Item = &'a [u8]> + 'a {
        let page = self.page;
        self.variable_places(number).map(move |(start, end)| page.get(start..end).unwrap_or_default())
    }

    /// The lengths of the values that [`Self::variable`] returns.
    #[inline(always)]
    pub fn variable_lengths(&self, number: u16) -> impl Iterator<Item = usize> + 'a {
        self.variable_places(number).map(|(start, end)| end.saturating_sub(start))
    }

    /// The start and the end, on the page, of variable column `number` of each row.
    #[inline(always)]
    fn variable_places(&self, number: u16) -> impl Iterator<Item = (usize, usize)> + 'a {
        let page = self.page;
        let variable_at = usize::from(self.rows.shape.variable_at);
        let entry = variable_at + 2 * usize::from(number);
        self.rows.spans.iter().zip(&self.rows.variables).map(move |(span, &stored)| {
            if number == 0 || number > stored {
                return (0, 0);
            }
            let start = usize::from(span.offset);
            let read = |at: usize| u16_at(page, start + at).unwrap_or_default() & !COMPLEX;
            // The word before the first end offset is the number of variable columns.
            let first = if number == 1 { variable_at + 2 + 2 * usize::from(stored) } else { read(entry - 2).into() };
            (start + first, start + usize::from(read(entry)))
        })
    }
}
