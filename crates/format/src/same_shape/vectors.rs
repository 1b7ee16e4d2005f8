//! Sparse vectors: loads pages on which all records match except that some end with a vector, and gives access to the
//! vectors of all rows together.
//!
//! A vector is the last variable column, and complex. Most vectors of a page have values of the same columns with the
//! same lengths; the first vector then shows the place of each value in all vectors.

use super::alike::{BLOCK, Found, MANY, Pattern, bytes_at};
use super::{SameShapeRows, bytes_of};
use crate::bytes::u16_at;
use crate::page::{HEADER_BYTES, PAGE_BYTES, PageBytes};
use crate::record::{COMPLEX, status};
use crate::slots::Span;
use crate::sparse::SparseVector;

/// The proven properties of the vectors of a page.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum Soundness {
    /// Nothing is proven. Either no row has a vector, or some complex column is not a vector, or some vector breaks a
    /// rule of its format.
    #[default]
    Unknown,
    /// All complex columns of live rows are sound vectors.
    Sound,
    /// All complex columns of live rows are sound vectors. All vectors have values of the same columns, and each value
    /// ends at the same offset in all vectors. The number is the index of the first row with a vector.
    Alike(u16),
}

/// The sparse vectors of a page's live rows. All vectors are sound, and the rows have no other complex columns.
#[derive(Clone, Copy)]
pub struct Vectors<'a> {
    /// The place of each row's vector; empty for a row without a vector.
    spans: &'a [Span],
    page: &'a [u8],
    first: Option<SparseVector<'a>>,
}

impl<'a> Vectors<'a> {
    /// The vectors of the rows that were loaded last.
    pub(super) fn of(rows: &'a SameShapeRows, page: &'a [u8]) -> Option<Self> {
        let spans = &rows.vectors[..];
        let first = match rows.soundness {
            Soundness::Unknown => return None,
            Soundness::Sound => None,
            Soundness::Alike(row) => SparseVector::read(bytes_of(page, *spans.get(usize::from(row))?)),
        };
        Some(Self { spans, page, first })
    }

    /// The sparse vector of each row that has one.
    pub fn each(self) -> impl Iterator<Item = SparseVector<'a>> {
        let vectors = self.spans.iter().filter(|span| span.length > 0);
        vectors.filter_map(move |span| SparseVector::read(bytes_of(self.page, *span)))
    }

    /// For each row: whether the row is live and has a vector.
    pub fn are_there(self) -> impl Iterator<Item = bool> + 'a {
        self.spans.iter().map(|span| span.length > 0)
    }

    /// The first vector, if all vectors have values of the same columns at the same places.
    pub fn common_form(self) -> Option<SparseVector<'a>> {
        self.first
    }

    /// The value of the column with this ID in each vector. `None` if the vectors do not have values of the same
    /// columns at the same places, or if the column is NULL in all vectors.
    pub fn values(self, column: u16) -> Option<impl Iterator<Item = &'a [u8]>> {
        let place = self.first?.place_of(column)?;
        let place = usize::from(place.start)..usize::from(place.end);
        let vectors = self.spans.iter().filter(|span| span.length > 0);
        Some(vectors.map(move |span| bytes_of(self.page, *span).get(place.clone()).unwrap_or_default()))
    }

    /// For each row: the eight bytes before offset `end` of its vector, as a little-endian number. The number is
    /// undefined for a row without a vector.
    #[inline(always)]
    pub fn words(self, end: u16) -> impl Iterator<Item = u64> + 'a {
        let page = self.page;
        self.spans.iter().map(move |span| {
            let start = usize::from(span.offset) + usize::from(end);
            let word = start.checked_sub(size_of::<u64>()).and_then(|start| page.get(start..)?.first_chunk());
            word.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        })
    }
}

impl SameShapeRows {
    /// Loads the records of a page if all records match one pattern and are in the order of their slots. In addition to
    /// the parts in the pattern, each record may have a vector at its end. If the result is false, the contents of
    /// `self` are undefined.
    pub(super) fn load_with_vectors(&mut self, page: &PageBytes, free_data: u16, pattern: Pattern) -> bool {
        let pattern = u16_at(page, PAGE_BYTES - 2).and_then(|first| pattern.with_vector(page, first.into()));
        let Some(pattern) = pattern else { return false };
        self.variables.resize(self.spans.len(), 0);
        self.vectors.resize(self.spans.len(), Span::default());
        let found = match pattern.shape.column_count {
            0 => self.with_vectors_in_order::<false>(page, free_data, pattern),
            _ => self.with_vectors_in_order::<true>(page, free_data, pattern),
        };
        found.is_some_and(|found| self.take_over(page, pattern, found, true))
    }

    fn with_vectors_in_order<const HAS_BITMAP: bool>(
        &mut self,
        page: &PageBytes,
        free_data: u16,
        pattern: Pattern,
    ) -> Option<Found> {
        match pattern.variables {
            0 => self.ascending_with_vectors::<HAS_BITMAP, 0>(page, free_data, pattern),
            1 => self.ascending_with_vectors::<HAS_BITMAP, 1>(page, free_data, pattern),
            2 => self.ascending_with_vectors::<HAS_BITMAP, 2>(page, free_data, pattern),
            _ => self.ascending_with_vectors::<HAS_BITMAP, MANY>(page, free_data, pattern),
        }
    }

    /// Like `ascending`, for records that may have a vector. Also fills `variables` and `vectors`.
    #[inline(never)]
    fn ascending_with_vectors<const HAS_BITMAP: bool, const VARIABLES: usize>(
        &mut self,
        page: &PageBytes,
        free_data: u16,
        pattern: Pattern,
    ) -> Option<Found> {
        let array = page.get(PAGE_BYTES - 2 * self.spans.len()..)?;
        let mut found = Found::default();
        let mut next = i32::from(free_data);
        let of_rows = self.spans.rchunks_mut(BLOCK).zip(self.variables.rchunks_mut(BLOCK));
        let of_rows = of_rows.zip(self.vectors.rchunks_mut(BLOCK));
        for (entries, ((spans, variables), vectors)) in array.chunks(2 * BLOCK).zip(of_rows) {
            let rows = spans.iter_mut().zip(variables).zip(vectors).rev();
            for (entry, ((span, stored), vector)) in entries.as_chunks().0.iter().zip(rows) {
                let offset = u16::from_le_bytes(*entry);
                let space = next - i32::from(offset);
                let record = pattern.record_with_vector::<HAS_BITMAP, VARIABLES>(page, offset, space, &mut found)?;
                let (length, vector_at) = record;
                *span = Span { offset, length };
                *stored = pattern.variables + u16::from(vector_at.is_some());
                let vector_at = vector_at.unwrap_or(length);
                *vector = Span { offset: offset.wrapping_add(vector_at), length: length.wrapping_sub(vector_at) };
                next = offset.into();
            }
            if !found.is_like(&pattern) {
                return None;
            }
        }
        (next >= HEADER_BYTES as i32).then_some(found)
    }

    /// Finds the properties that all vectors of live rows share. The caller must have set `vectors` to the last complex
    /// column of each row.
    pub(super) fn audit_vectors(&mut self, bytes: &[u8]) {
        let mut rows = (0..).zip(&self.vectors).filter(|(_, span)| span.length > 0);
        let Some((row, first)) = rows.next() else { return };
        let mut form = bytes_of(bytes, *first);
        let Some(mut head) = head_of(form) else { return };
        let (mut are_alike, mut count) = (true, 1);
        for (_, span) in rows {
            let vector = bytes_of(bytes, *span);
            if vector.len() != form.len() || !begins_with(vector, head) {
                let Some(other) = head_of(vector) else { return };
                (form, head, are_alike) = (vector, other, false);
            }
            count += 1;
        }
        // A complex column without bytes is not a vector. `count` does not include its row, but `self.complex` does.
        if count == self.complex {
            self.soundness = if are_alike { Soundness::Alike(row) } else { Soundness::Sound };
        }
    }
}

/// The bytes of a vector before its values; `None` if the vector breaks a rule.
fn head_of(bytes: &[u8]) -> Option<&[u8]> {
    SparseVector::read(bytes)?.sound_head()
}

/// Whether the bytes begin with `head`. This is fast for a vector with one value, which has a head of eight bytes.
#[inline(always)]
fn begins_with(bytes: &[u8], head: &[u8]) -> bool {
    match (bytes.split_first_chunk::<8>(), head.split_first_chunk::<8>()) {
        (Some((word, rest)), Some((expected, more))) => word == expected && (more.is_empty() || rest.starts_with(more)),
        _ => bytes.starts_with(head),
    }
}

impl Pattern {
    /// Audits the record at `offset`, which has a space of `space` bytes. Returns its length, and the start of its
    /// vector if it has one.
    #[inline(always)]
    fn record_with_vector<const HAS_BITMAP: bool, const VARIABLES: usize>(
        &self,
        page: &PageBytes,
        offset: u16,
        space: i32,
        found: &mut Found,
    ) -> Option<(u16, Option<u16>)> {
        let start = usize::from(offset);
        let head = self.head::<HAS_BITMAP>(page, start, found)?;
        let ends_at = start + usize::from(self.shape.variable_at);
        let words = u64::from_le_bytes(bytes_at(page, ends_at)?);
        let has_none = VARIABLES == 0 && head & u32::from(status::VARIABLE) == 0;
        let stored = if has_none { 0 } else { words as u16 };
        let more = stored.wrapping_sub(self.variables);
        let has_vector = more == 1;
        // A record may legally have a variable part without columns. Such a record is marked as different, so this
        // function does not load the page.
        found.counts |= u64::from(more & !1) | u64::from(VARIABLES == 0 && has_none == has_vector);
        // A record without other variable columns stores the number of variable columns only if it has a vector.
        let mut end = self.columns_at() + if has_vector { 2 + 2 * i32::from(VARIABLES == 0) } else { 0 };
        let last = match VARIABLES {
            MANY.. => {
                let last_at = ends_at + 2 + 2 * usize::from(self.variables);
                let ends = page.get(ends_at + 2..last_at)?;
                for column_end in ends.as_chunks().0 {
                    found.column(&mut end, u16::from_le_bytes(*column_end));
                }
                u16_at(page, last_at)?
            }
            _ => {
                (1..=VARIABLES).for_each(|number| found.column(&mut end, (words >> (16 * number)) as u16));
                (words >> (16 * (VARIABLES + 1))) as u16
            }
        };
        let vector_at = end as u16;
        found.counts |= u64::from(!last & COMPLEX & (u16::from(has_vector) << 15));
        found.column(&mut end, if has_vector { last & !COMPLEX } else { vector_at });
        Some((found.ends(end, space), has_vector.then_some(vector_at)))
    }
}
