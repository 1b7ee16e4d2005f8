//! Adding up what threads, passes over the files, and parts of the database have counted.

use std::collections::{BTreeMap, BTreeSet};

use crate::hash::Sum;

/// Values that can be added up. Neither the order nor the grouping of the calls may change the result, except for the
/// order within lists: [`CheckSums::put_in_order`](crate::CheckSums::put_in_order) sorts these.
pub trait Merge {
    /// Adds another value.
    fn merge(&mut self, other: Self);
}

/// Makes a struct that threads add up, with its `Merge` and its `Wire`: the fields are listed only here, so none can be
/// forgotten where values are merged or carried to another process.
#[doc(hidden)]
#[macro_export]
macro_rules! summed_fields {
    ($(#[$of_struct:meta])* $sees:vis struct $name:ident {
        $($(#[$of_field:meta])* $seen:vis $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$of_struct])*
        $sees struct $name {
            $($(#[$of_field])* $seen $field: $type,)*
        }

        $crate::wire::wire!($name { $($field),* });

        impl $crate::Merge for $name {
            fn merge(&mut self, other: Self) {
                let Self { $($field),* } = other;
                $($crate::Merge::merge(&mut self.$field, $field);)*
            }
        }
    };
}

/// Counts never overflow: each comes from as many items of the database, or from a carried count, which has a limit.
impl Merge for u64 {
    fn merge(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

impl Merge for Sum {
    fn merge(&mut self, other: Self) {
        self.add(other);
    }
}

/// Whether something was seen.
impl Merge for bool {
    fn merge(&mut self, other: Self) {
        *self |= other;
    }
}

impl<T> Merge for Vec<T> {
    fn merge(&mut self, other: Self) {
        self.extend(other);
    }
}

impl<T: Ord> Merge for BTreeSet<T> {
    fn merge(&mut self, other: Self) {
        self.extend(other);
    }
}

impl<K: Ord, V: Default + Merge> Merge for BTreeMap<K, V> {
    fn merge(&mut self, other: Self) {
        for (key, value) in other {
            self.entry(key).or_default().merge(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums;

    sums! {
        #[derive(Clone, Default, PartialEq, Debug)]
        struct Seen {
            rows: u64,
            is_damaged: bool,
            pages: Vec<u32>,
            reasons: BTreeMap<u8, u64>,
        }
    }

    #[test]
    fn every_field_is_added_up() {
        let one = |rows, is_damaged, page, reason| Seen {
            rows,
            is_damaged,
            pages: vec![page],
            reasons: BTreeMap::from([(reason, 1)]),
        };
        let mut all = one(1, false, 10, 1);
        all.merge(one(2, true, 11, 1));
        all.merge(one(u64::MAX, false, 12, 2));
        let reasons = BTreeMap::from([(1, 2), (2, 1)]);
        assert_eq!(all, Seen { rows: u64::MAX, is_damaged: true, pages: vec![10, 11, 12], reasons });
    }
}
