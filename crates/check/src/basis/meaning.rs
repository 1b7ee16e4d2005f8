//! The meaning of a unit: everything by which the sweep judges the pages of the unit, apart from the pages themselves and
//! their maps. If the meaning of a unit is the same as in an earlier run, the same pages give the same sums.
//!
//! The catalog changes all the time without a change of meaning: row counts, statistics, first pages. So the meaning is
//! a digest of the plans that the checks have made from the catalog, not of the catalog itself.

use std::hash::{Hash, Hasher};

use sums::hash::FactHash;
use sums::names::Names;
use sums::wire::Digest;

use super::units::{UnitIndex, Units};

/// A digest under the key of the run, to which values are added one by one.
pub(crate) struct Meaning<'a> {
    to: Keyed<'a>,
    units: &'a Units,
    names: &'a Names,
    /// The names of the plans of the check whose plans are added.
    plans: &'a [Digest],
}

impl<'a> Meaning<'a> {
    /// An empty digest. `names` are the names of the run's plans.
    pub(crate) fn new(hash: &'a FactHash, units: &'a Units, names: &'a Names) -> Self {
        Self { to: Keyed(hash.hasher()), units, names, plans: &[] }
    }

    /// From here on, plans are those of this check.
    pub(crate) fn of_check(&mut self, check: &str) {
        let own = self.names.plans.iter().find(|(name, _)| name == check);
        self.plans = own.map_or(&[], |(_, plans)| plans);
        check.hash(self);
    }

    /// Adds the name of a plan, which stays the same when other plans come and go.
    pub(crate) fn plan(&mut self, plan: usize) {
        self.plans.get(plan).hash(self);
    }

    /// Adds the IDs of units.
    pub(crate) fn units<'u>(&mut self, units: impl IntoIterator<Item = &'u UnitIndex>) {
        for unit in units {
            self.units.get(*unit).map(|unit| unit.id).hash(self);
        }
        u8::MAX.hash(self);
    }

    /// The digest of all values that were added.
    pub(crate) fn digest(&self) -> Digest {
        self.to.0.digest()
    }
}

impl Hasher for Meaning<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.to.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.to.finish()
    }
}

/// A hash under the key of the run, for values that can be hashed.
struct Keyed<'a>(sums::hash::Hasher<'a>);

impl Hasher for Keyed<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.add_bytes(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.finish().0
    }
}

/// The names of a check's plans, in the order of the plans.
pub(crate) struct PlanNames<'a> {
    hash: &'a FactHash,
    list: Vec<Digest>,
}

impl<'a> PlanNames<'a> {
    /// An empty list.
    pub(crate) fn new(hash: &'a FactHash) -> Self {
        Self { hash, list: Vec::new() }
    }

    /// Adds a plan. `name` must differ from the names of all other plans of the check.
    pub(crate) fn add(&mut self, name: &impl Hash) {
        let mut hasher = Keyed(self.hash.hasher());
        name.hash(&mut hasher);
        self.list.push(hasher.0.digest());
    }

    /// The names.
    pub(crate) fn into_list(self) -> Vec<Digest> {
        self.list
    }
}

/// Adds the fields of a plan to a [`Meaning`]. Each field is in one of four lists: hashed as it is; `plans`, the number
/// of a plan; `units`, the numbers of units; `without`, fields that follow from other fields, or that only findings
/// print. A field that is in none of the lists does not compile.
macro_rules! meaning {
    ($name:ident {
        $($field:ident),* $(,)?
        $(; plans $($plan:ident),*)? $(; units $($units:ident),*)? $(; without $($left:ident),*)?
    }) => {
        impl $name {
            /// Adds everything by which the sweep judges pages with this plan.
            pub(crate) fn add_to(&self, to: &mut $crate::basis::meaning::Meaning<'_>) {
                let Self { $($field,)* $($($plan,)*)? $($($units,)*)? $($($left: _,)*)? } = self;
                $(std::hash::Hash::hash($field, to);)*
                $($(to.plan(*$plan);)*)?
                $($(to.units($units);)*)?
            }
        }
    };
}
pub(crate) use meaning;
