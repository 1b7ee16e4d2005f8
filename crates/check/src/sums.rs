//! What a check adds up during the sweep.

use std::fmt::Debug;

use crate::spill::TempStore;
use crate::wire::Wire;

/// What one thread, or all, added up.
pub(crate) trait CheckSums: Wire + Send + Sized {
    /// Adds what another thread, or another part of the tables, has; in any order.
    fn merge(&mut self, other: Self);

    /// Puts what is kept as it came into an order that does not depend on threads, and drops lists that are not whole.
    fn put_in_order(&mut self, _: &TempStore) {}

    /// Joins what was kept apart by threads or parts, so that many of them take no more memory than one.
    fn gather(&mut self, _: &TempStore) {}

    /// What it holds, for tests that compare two ways to the same sums.
    fn facts(&self, space: &TempStore) -> impl Debug + '_;
}

/// For a check that each page settles by itself.
impl CheckSums for () {
    fn merge(&mut self, (): Self) {}

    fn facts(&self, _: &TempStore) -> impl Debug + '_ {}
}
