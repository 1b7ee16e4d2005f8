//! Loads pages on which all records have one shape and equal numbers of variable columns, and which have no ghosts,
//! versions or complex columns. Nearly all pages are like this. [`super::vectors`] also uses these functions, for
//! records that may end with a sparse vector.
//!
//! No branch depends on a record. The differences from the pattern of the first record are accumulated, and tested once
//! for each block of records. If there are differences, the caller loads the page with the slower functions of the
//! parent module.

use super::{OPTIONAL, RowShape, SameShapeRows, Totals, WORD_BITS, mask};
use crate::bytes::u16_at;
use crate::page::{HEADER_BYTES, PAGE_BYTES, Page, PageBytes};
use crate::record::{COMPLEX, MIN_HEAP_RECORD_BYTES, status};
use crate::slots::Span;

/// The number of records between two tests of the accumulated differences.
pub(super) const BLOCK: usize = 16;

/// The number of null bits in the word that also has the column count.
const BITS_WITH_COUNT: u16 = WORD_BITS - u16::BITS as u16;

/// The functions for records with fewer variable columns than this are generated for each number of variable columns.
/// For records with at least this many variable columns, a loop reads the ends of the columns.
pub(super) const MANY: usize = 3;

/// The pattern that each record is expected to have.
#[derive(Clone, Copy)]
pub(super) struct Pattern {
    pub(super) shape: RowShape,
    /// The first four bytes of a record, masked with `head_mask`. For an index record, the mask keeps only the status
    /// byte. For a data record, it keeps all four bytes.
    head: u32,
    head_mask: u32,
    /// The number of variable columns that a record stores, not counting the vector.
    pub(super) variables: u16,
}

/// The differences from the pattern, for all records so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    /// The bits in which the first four bytes of some record differ from the pattern.
    heads: u32,
    /// In the low 16 bits, the bits in which the column count of some record differs from the pattern. The higher bits
    /// are the union of the null bits of all records.
    bitmaps: u64,
    /// In the low 16 bits, the bits in which the number of variable columns of some record differs from the pattern.
    /// Any of these 16 bits may also be set to mark another unexpected property of a record. The higher bits have no
    /// meaning.
    pub(super) counts: u64,
    /// Negative if some record or column ends before its start, or some record ends beyond its space.
    room: i32,
    bytes: u32,
}

impl Found {
    #[inline(always)]
    pub(super) fn is_like(self, pattern: &Pattern) -> bool {
        let differences = self.heads & pattern.head_mask | u32::from(self.bitmaps as u16 | self.counts as u16);
        differences == 0 && self.room >= 0
    }

    /// Tests a column that begins at `end` and ends at `column_end`, and sets `end` to `column_end`.
    #[inline(always)]
    pub(super) fn column(&mut self, end: &mut i32, column_end: u16) {
        let column_end = i32::from(column_end);
        self.room |= column_end - *end;
        *end = column_end;
    }

    /// Tests that a record that ends at `end` fits into its space of `space` bytes, and adds its length to the total.
    /// Returns its length.
    #[inline(always)]
    pub(super) fn ends(&mut self, end: i32, space: i32) -> u16 {
        self.room |= space - end;
        self.bytes = self.bytes.wrapping_add(end as u32);
        end as u16
    }
}

impl SameShapeRows {
    /// Loads the records of a page if all match one pattern and are in the order of their slots. Otherwise the results
    /// are undefined.
    pub(super) fn load_alike(&mut self, page: Page<'_>, count: usize, index_fixed_end: Option<u16>) -> bool {
        let free_data = page.header().free_data.get();
        let Some(pattern) = Pattern::of_first(page.bytes(), free_data, index_fixed_end) else { return false };
        self.spans.resize(count, Span::default());
        if self.expects_vectors {
            return self.load_with_vectors(page.bytes(), free_data, pattern);
        }
        let found = match pattern.shape.column_count {
            0 => self.in_order::<false>(page.bytes(), free_data, pattern),
            _ => self.in_order::<true>(page.bytes(), free_data, pattern),
        };
        found.is_some_and(|found| self.take_over(page.bytes(), pattern, found, false))
    }

    /// Loads records that match one pattern; their spaces in `spans` may be in any order. If a record does not match,
    /// `spans` is unchanged.
    pub(super) fn audit_alike(&mut self, bytes: &PageBytes, index_fixed_end: Option<u16>) -> bool {
        let Some(Span { offset, length }) = self.spans.first().copied() else { return false };
        let end = offset.saturating_add(length);
        let Some(pattern) = Pattern::of(bytes, offset..end, index_fixed_end) else { return false };
        let found = match pattern.shape.column_count {
            0 => self.in_spaces::<false>(bytes, pattern),
            _ => self.in_spaces::<true>(bytes, pattern),
        };
        let Some(found) = found else { return false };
        std::mem::swap(&mut self.spans, &mut self.places);
        let is_loaded = self.take_over(bytes, pattern, found, false);
        if !is_loaded {
            std::mem::swap(&mut self.spans, &mut self.places);
        }
        is_loaded
    }

    fn in_order<const HAS_BITMAP: bool>(
        &mut self,
        page: &PageBytes,
        free_data: u16,
        pattern: Pattern,
    ) -> Option<Found> {
        match pattern.variables {
            0 => self.ascending::<HAS_BITMAP, 0>(page, free_data, pattern),
            1 => self.ascending::<HAS_BITMAP, 1>(page, free_data, pattern),
            2 => self.ascending::<HAS_BITMAP, 2>(page, free_data, pattern),
            _ => self.ascending::<HAS_BITMAP, MANY>(page, free_data, pattern),
        }
    }

    fn in_spaces<const HAS_BITMAP: bool>(&mut self, page: &PageBytes, pattern: Pattern) -> Option<Found> {
        match pattern.variables {
            0 => self.anywhere::<HAS_BITMAP, 0>(page, pattern),
            1 => self.anywhere::<HAS_BITMAP, 1>(page, pattern),
            2 => self.anywhere::<HAS_BITMAP, 2>(page, pattern),
            _ => self.anywhere::<HAS_BITMAP, MANY>(page, pattern),
        }
    }

    /// Audits the records from the last slot, which has the last record on the page, to the first slot. A record may
    /// extend to the start of the next record. Each kind of record gets its own copy of this function. The copies are
    /// not inlined into their caller, because then fewer variables of the loop would stay in registers.
    #[inline(never)]
    fn ascending<const HAS_BITMAP: bool, const VARIABLES: usize>(
        &mut self,
        page: &PageBytes,
        free_data: u16,
        pattern: Pattern,
    ) -> Option<Found> {
        let array = page.get(PAGE_BYTES - 2 * self.spans.len()..)?;
        let mut found = Found::default();
        let mut next = i32::from(free_data);
        for (entries, spans) in array.chunks(2 * BLOCK).zip(self.spans.rchunks_mut(BLOCK)) {
            for (entry, span) in entries.as_chunks().0.iter().zip(spans.iter_mut().rev()) {
                let offset = u16::from_le_bytes(*entry);
                let space = next - i32::from(offset);
                let length = pattern.record::<HAS_BITMAP, VARIABLES>(page, offset, space, &mut found)?;
                *span = Span { offset, length };
                next = offset.into();
            }
            if !found.is_like(&pattern) {
                return None;
            }
        }
        (next >= HEADER_BYTES as i32).then_some(found)
    }

    /// Audits the records in their spaces, and writes the places of the records to `places`. The spaces must be
    /// disjoint and inside the page.
    fn anywhere<const HAS_BITMAP: bool, const VARIABLES: usize>(
        &mut self,
        page: &PageBytes,
        pattern: Pattern,
    ) -> Option<Found> {
        let mut found = Found::default();
        self.places.clone_from(&self.spans);
        for spans in self.places.chunks_mut(BLOCK) {
            for span in spans {
                let space = i32::from(span.length);
                span.length = pattern.record::<HAS_BITMAP, VARIABLES>(page, span.offset, space, &mut found)?;
            }
            if !found.is_like(&pattern) {
                return None;
            }
        }
        Some(found)
    }

    /// Stores the results of the audit for records that match the pattern. If the records may have vectors, the caller
    /// must have filled `variables` and `vectors`.
    pub(super) fn take_over(
        &mut self,
        page: &PageBytes,
        pattern: Pattern,
        found: Found,
        may_have_vector: bool,
    ) -> bool {
        let Pattern { shape, variables, .. } = pattern;
        if !self.start(page, shape) {
            return false;
        }
        if !may_have_vector {
            self.variables.fill(variables);
        }
        let padded_bytes = match pattern.columns_at() >= MIN_HEAP_RECORD_BYTES as i32 {
            true => found.bytes,
            false => self.lengths()[1],
        };
        let (bytes, fewest_variables, most_variables) = (found.bytes, variables, variables);
        let totals = Totals { fewest_variables, most_variables, bytes, padded_bytes, ..Totals::default() };
        match may_have_vector {
            false => self.finish(page, totals),
            true => self.finish_with_vectors(page, totals),
        }
        // The null bitmap of each row must be read only if at least one row has a NULL.
        let has_none =
            shape.column_count <= BITS_WITH_COUNT && (found.bitmaps >> u16::BITS) & mask(shape.column_count) == 0;
        shape.column_count == 0 || has_none || self.nulls_from(page, 0)
    }
}

impl Pattern {
    /// The pattern of the record in slot 0.
    fn of_first(page: &PageBytes, free_data: u16, index_fixed_end: Option<u16>) -> Option<Self> {
        let first = u16_at(page, PAGE_BYTES - 2)?;
        Self::of(page, first..free_data, index_fixed_end)
    }

    /// The pattern of the record in this space; `None` if the record has a form that this module does not handle.
    fn of(page: &PageBytes, space: std::ops::Range<u16>, index_fixed_end: Option<u16>) -> Option<Self> {
        let space = page.get(space.start.into()..space.end.into())?;
        let shape = RowShape::of(space, index_fixed_end)?;
        let head_mask = if shape.has_length { u32::MAX } else { u8::MAX.into() };
        let head = u32::from_le_bytes(*space.first_chunk()?) & head_mask;
        let has_variable = u32::from(status::VARIABLE);
        if head & !has_variable != shape.head & !u32::from(OPTIONAL) {
            return None;
        }
        let variables = match head & has_variable {
            0 => 0,
            _ => u16_at(space, shape.variable_at.into()).filter(|variables| *variables > 0)?,
        };
        Some(Self { shape, head, head_mask, variables })
    }

    /// Extends the pattern so that each record may end with a sparse vector. The pattern is that of the record at
    /// `first`.
    pub(super) fn with_vector(mut self, page: &PageBytes, first: usize) -> Option<Self> {
        if self.variables > 0 {
            let last = first + usize::from(self.shape.variable_at) + 2 * usize::from(self.variables);
            self.variables -= u16::from(u16_at(page, last)? & COMPLEX != 0);
        }
        if self.variables == 0 {
            self.head_mask &= !u32::from(status::VARIABLE);
        }
        Some(self)
    }

    /// The offset of the first variable column in each record, or the end of the record if the pattern has no variable
    /// columns. This is the minimum length of a record.
    pub(super) fn columns_at(self) -> i32 {
        let ends = if self.variables == 0 { 0 } else { 2 + 2 * i32::from(self.variables) };
        i32::from(self.shape.variable_at) + ends
    }

    /// Compares the first bytes and the null bitmap of the record at `start` with the pattern. Returns the first four
    /// bytes of the record.
    #[inline(always)]
    pub(super) fn head<const HAS_BITMAP: bool>(
        &self,
        page: &PageBytes,
        start: usize,
        found: &mut Found,
    ) -> Option<u32> {
        let head = u32::from_le_bytes(bytes_at(page, start)?);
        found.heads |= head ^ self.head;
        if HAS_BITMAP {
            let bitmap = u64::from_le_bytes(bytes_at(page, start + usize::from(self.shape.fixed_end))?);
            found.bitmaps |= bitmap ^ u64::from(self.shape.column_count);
        }
        Some(head)
    }

    /// Audits the record at `offset`, which has a space of `space` bytes. Returns its length.
    #[inline(always)]
    fn record<const HAS_BITMAP: bool, const VARIABLES: usize>(
        &self,
        page: &PageBytes,
        offset: u16,
        space: i32,
        found: &mut Found,
    ) -> Option<u16> {
        let start = usize::from(offset);
        self.head::<HAS_BITMAP>(page, start, found)?;
        let mut end = self.columns_at();
        let ends_at = start + usize::from(self.shape.variable_at);
        match VARIABLES {
            0 => {}
            MANY.. => {
                let ends = page.get(ends_at..ends_at + 2 + 2 * usize::from(self.variables))?;
                let (count, ends) = ends.split_first_chunk()?;
                found.counts |= u64::from(u16::from_le_bytes(*count) ^ self.variables);
                for column_end in ends.as_chunks().0 {
                    found.column(&mut end, u16::from_le_bytes(*column_end));
                }
            }
            _ => {
                let words = u64::from_le_bytes(bytes_at(page, ends_at)?);
                found.counts |= words ^ u64::from(self.variables);
                (1..=VARIABLES).for_each(|number| found.column(&mut end, (words >> (16 * number)) as u16));
            }
        }
        Some(found.ends(end, space))
    }
}

#[inline(always)]
pub(super) fn bytes_at<const N: usize>(page: &PageBytes, at: usize) -> Option<[u8; N]> {
    page.get(at..at + N)?.first_chunk().copied()
}
