//! Loads the expanded form of compressed rows from a separate buffer.

use std::ops::Range;

use super::{RowShape, SameShapeRows, Totals, bytes_of};
use crate::compressed::CommonForm;
use crate::slots::Span;

impl SameShapeRows {
    /// Like `load`, for compressed rows that were expanded into a buffer. Expanded rows always begin like data records.
    /// The buffer has at most 65,535 bytes; the last [`BYTES_AFTER`](crate::compressed::BYTES_AFTER) of them follow the last record.
    pub fn load_expanded(&mut self, bytes: &[u8], places: &[Range<u32>]) -> bool {
        if bytes.len() > u16::MAX.into() || places.is_empty() {
            return false;
        }
        self.places_of(places);
        let first = self.spans.first().and_then(|first| RowShape::of(bytes_of(bytes, *first), None));
        let is_one = !places.iter().any(Range::is_empty) && first.is_some_and(|shape| self.audit(bytes, shape));
        is_one || {
            self.places_of(places);
            self.audit_most(bytes)
        }
    }

    /// Loads records that this crate wrote to `bytes`, one after another and all in the form `form`. These records need
    /// no audit. No range in `places` may be empty.
    pub fn load_written(&mut self, bytes: &[u8], places: &[Range<u32>], form: CommonForm) -> bool {
        if bytes.len() > u16::MAX.into() {
            return false;
        }
        self.places_of(places);
        let Some(first) = self.spans.first() else { return false };
        let Some(shape) = RowShape::of(bytes_of(bytes, *first), None) else { return false };
        if !self.start(bytes, shape) {
            return false;
        }
        let CommonForm { variables, has_nulls, has_ghosts, has_versions, has_complex } = form;
        self.variables.fill(variables);
        let (fewest_variables, most_variables) = (variables, variables);
        let [bytes_in_all, padded_bytes] = self.lengths();
        let totals = Totals {
            fewest_variables,
            most_variables,
            has_versions,
            has_ghosts,
            has_complex,
            bytes: bytes_in_all,
            padded_bytes,
        };
        self.finish(bytes, totals);
        if !has_nulls {
            self.nulls.fill(0);
            return true;
        }
        self.nulls_from(bytes, 0)
    }

    /// Sets the place of the record in each slot.
    fn places_of(&mut self, places: &[Range<u32>]) {
        self.slots.clear();
        self.spans.clear();
        self.spans.extend(places.iter().map(|place| Span { offset: place.start as u16, length: place.len() as u16 }));
    }

    /// All results, so that tests can compare them.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl PartialEq + std::fmt::Debug + '_ {
        let Self { shape, spans, slots, nulls, any_nulls, variables, exceptions, are_plain, are_live, .. } = self;
        let rows = (spans, slots, nulls, any_nulls, variables, are_plain, are_live);
        let sums = (self.plain, self.complex, self.complex_columns, self.soundness, self.ghosts, self.totals);
        (shape, rows, exceptions, sums)
    }
}
