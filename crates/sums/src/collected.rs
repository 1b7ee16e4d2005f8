//! The sums that a check adds up during the sweep.

use std::fmt::Debug;

use crate::merge::Merge;
use crate::spill::TempStore;
use crate::wire::Wire;

/// The sums of a check: those that one thread adds up, or the merged sums of all threads.
pub trait CheckSums: Wire + Merge + Send + Sized {
    /// Sorts lists whose entries are in order of arrival, so that the result does not depend on threads. Drops lists
    /// that are incomplete.
    fn put_in_order(&mut self, _: &TempStore) {}

    /// Merges the lists of different threads or parts, so that many lists need no more memory than one list.
    fn gather(&mut self, _: &TempStore) {}

    /// A view of the sums, for tests that compute the sums in two ways and compare them.
    fn facts(&self, space: &TempStore) -> impl Debug + '_;
}

/// The sums of a check that needs no sums, because it checks each page on its own.
impl Merge for () {
    fn merge(&mut self, (): Self) {}
}

impl CheckSums for () {
    fn facts(&self, _: &TempStore) -> impl Debug + '_ {}
}
