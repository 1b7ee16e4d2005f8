//! The rows of a page that have its shape and are to be looked at by themselves all the same.

use super::{GHOST, SameShapeRows, Totals, bytes_of};
use crate::record::COMPLEX;

/// A record that is to be looked at by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exception {
    /// Its slot.
    pub slot: u16,
    /// It is a live row of the shape, and has a complex column (off-row pointer, sparse vector). Others are deleted, or of another
    /// shape.
    pub is_complex: bool,
}

impl SameShapeRows {
    /// Takes over what all records, which are whole, have together, and finds the exceptions among them.
    pub(super) fn finish(&mut self, bytes: &[u8], totals: Totals) {
        self.totals = totals;
        self.exceptions.clear();
        self.are_plain.clear();
        self.are_live.clear();
        (self.ghosts, self.plain, self.complex, self.complex_columns) = (0, self.spans.len(), 0, 0);
        if totals.has_ghosts || totals.has_complex {
            self.find_ghosts(bytes);
            self.are_plain.extend_from_slice(&self.are_live);
            if totals.has_complex {
                self.find_complex(bytes);
            }
            self.list_exceptions();
        }
    }

    fn find_ghosts(&mut self, bytes: &[u8]) {
        let Self { shape, spans, are_live, .. } = self;
        let [live, ghost] = [shape.head, GHOST].map(|head| head as u8);
        let is_live = |status: &u8| (status ^ live) & ghost == 0;
        are_live.extend(spans.iter().map(|span| bytes.get(usize::from(span.offset)).is_some_and(is_live)));
        self.ghosts = are_live.iter().map(|is_live| u32::from(!is_live)).sum();
    }

    fn find_complex(&mut self, bytes: &[u8]) {
        let Self { spans, variables, are_live, are_plain, .. } = self;
        let variable_at = usize::from(self.shape.variable_at) + 2;
        let rows = spans.iter().zip(variables).zip(are_live.iter().zip(are_plain));
        for ((span, stored), (is_live, is_plain)) in rows {
            let ends = bytes_of(bytes, *span).get(variable_at..variable_at + 2 * usize::from(*stored));
            let ends = ends.unwrap_or_default().as_chunks().0;
            let all = ends.iter().fold(0, |all, end| all | u16::from_le_bytes(*end));
            if all & COMPLEX == 0 || !is_live {
                continue;
            }
            *is_plain = false;
            self.complex += 1;
            for (number, end) in ends.iter().enumerate() {
                self.complex_columns |= u64::from(u16::from_le_bytes(*end) & COMPLEX != 0) << number.min(63);
            }
        }
    }

    fn list_exceptions(&mut self) {
        let Self { slots, exceptions, are_live, are_plain, .. } = self;
        for ((row, is_live), is_plain) in (0..).zip(are_live).zip(are_plain) {
            if !*is_plain {
                let slot = slots.get(usize::from(row)).copied().unwrap_or(row);
                exceptions.push(Exception { slot, is_complex: *is_live });
            }
        }
        self.plain -= exceptions.len();
    }
}
