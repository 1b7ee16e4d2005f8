//! The sums that a check adds up during the sweep.

use std::fmt::Debug;

use crate::spill::TempStore;
use crate::wire::Wire;

/// The sums of one thread, or of all threads.
pub(crate) trait CheckSums: Wire + Send + Sized {
    /// Adds the sums of another thread or part of the tables, in any order.
    fn merge(&mut self, other: Self);

    /// Sorts entries kept in order of arrival, so that the order does not depend on threads, and drops incomplete
    /// lists.
    fn put_in_order(&mut self, _: &TempStore) {}

    /// Merges the lists of different threads or parts, so that many of them need no more memory than one.
    fn gather(&mut self, _: &TempStore) {}

    /// A view of the sums for tests that compute them in two ways.
    fn facts(&self, space: &TempStore) -> impl Debug + '_;
}

/// For a check that settles each page by itself.
impl CheckSums for () {
    fn merge(&mut self, (): Self) {}

    fn facts(&self, _: &TempStore) -> impl Debug + '_ {}
}
