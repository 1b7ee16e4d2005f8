//! The exceptions of a page: rows that have the common shape but must be examined one by one.

use super::vectors::Soundness;
use super::{GHOST, SameShapeRows, Totals, bytes_of};
use crate::record::COMPLEX;
use crate::slots::Span;

/// A record that must be examined separately.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Exception {
    /// The slot of the record.
    pub slot: u16,
    /// True for a live row of the shape with a complex column (off-row pointer, sparse vector). False for a ghost, or a
    /// record of another shape.
    pub is_complex: bool,
}

impl SameShapeRows {
    /// Stores the totals of the records and finds the exceptions among them. All records must be sound.
    pub(super) fn finish(&mut self, bytes: &[u8], totals: Totals) {
        self.totals = totals;
        self.exceptions.clear();
        self.are_plain.clear();
        self.are_live.clear();
        (self.ghosts, self.plain, self.complex, self.complex_columns) = (0, self.spans.len(), 0, 0);
        self.soundness = Soundness::Unknown;
        if totals.has_ghosts || totals.has_complex {
            self.find_ghosts(bytes);
            self.are_plain.extend_from_slice(&self.are_live);
            if totals.has_complex {
                self.find_complex(bytes);
            }
            self.list_exceptions();
        }
        self.expects_vectors = self.soundness != Soundness::Unknown;
    }

    /// Like `finish`, for records that match a pattern, if some of these records may end with a vector. The caller must
    /// have filled `variables` and `vectors`.
    pub(super) fn finish_with_vectors(&mut self, bytes: &[u8], totals: Totals) {
        let without = totals.fewest_variables;
        self.finish(bytes, totals);
        let with = self.variables.iter().filter(|stored| **stored != without).count();
        if with == 0 {
            return;
        }
        self.complex = with;
        self.complex_columns = 1 << without.min(63);
        self.are_live.resize(self.spans.len(), true);
        self.are_plain.extend(self.variables.iter().map(|stored| *stored == without));
        self.list_exceptions();
        self.totals.most_variables += 1;
        self.totals.fewest_variables += u16::from(self.plain == 0);
        self.totals.has_complex = true;
        self.audit_vectors(bytes);
        self.expects_vectors = self.soundness != Soundness::Unknown;
    }

    fn find_ghosts(&mut self, bytes: &[u8]) {
        let Self { shape, spans, are_live, .. } = self;
        let [live, ghost] = [shape.head, GHOST].map(|head| head as u8);
        let is_live = |status: &u8| (status ^ live) & ghost == 0;
        are_live.extend(spans.iter().map(|span| bytes.get(usize::from(span.offset)).is_some_and(is_live)));
        self.ghosts = are_live.iter().map(|is_live| u32::from(!is_live)).sum();
    }

    fn find_complex(&mut self, bytes: &[u8]) {
        let Self { spans, variables, are_live, are_plain, vectors, .. } = self;
        vectors.clear();
        vectors.resize(spans.len(), Span::default());
        let variable_at = usize::from(self.shape.variable_at) + 2;
        let rows = spans.iter().zip(variables).zip(are_live.iter().zip(are_plain)).zip(vectors);
        let mut are_last = true;
        for (((span, stored), (is_live, is_plain)), vector) in rows {
            let ends = bytes_of(bytes, *span).get(variable_at..variable_at + 2 * usize::from(*stored));
            let ends = ends.unwrap_or_default().as_chunks().0;
            let all = ends.iter().fold(0, |all, end| all | u16::from_le_bytes(*end));
            if all & COMPLEX == 0 || !is_live {
                continue;
            }
            *is_plain = false;
            self.complex += 1;
            for (number, end) in ends.iter().enumerate() {
                let is_complex = u16::from_le_bytes(*end) & COMPLEX != 0;
                self.complex_columns |= u64::from(is_complex) << number.min(63);
                are_last &= !is_complex || number + 1 == ends.len();
            }
            let first = (variable_at + 2 * ends.len()) as u16;
            let [start, end] = match ends {
                [.., start, end] => [u16::from_le_bytes(*start), u16::from_le_bytes(*end)],
                [end] => [first, u16::from_le_bytes(*end)],
                [] => [first, first],
            };
            let [start, end] = [start, end].map(|end| end & !COMPLEX);
            *vector = Span { offset: span.offset.wrapping_add(start), length: end.saturating_sub(start) };
        }
        if are_last && self.complex > 0 {
            self.audit_vectors(bytes);
        }
    }

    fn list_exceptions(&mut self) {
        let Self { slots, exceptions, are_live, are_plain, .. } = self;
        exceptions.resize(are_plain.len(), Exception::default());
        let mut count = 0;
        // This loop has no branch, because a processor cannot predict which rows are exceptions.
        for ((row, is_live), is_plain) in (0..).zip(are_live).zip(are_plain) {
            if let Some(place) = exceptions.get_mut(count) {
                let slot = slots.get(usize::from(row)).copied().unwrap_or(row);
                *place = Exception { slot, is_complex: *is_live };
            }
            count += usize::from(!*is_plain);
        }
        exceptions.truncate(count);
        self.plain -= count;
    }
}
