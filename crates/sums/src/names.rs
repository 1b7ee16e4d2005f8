//! The names of units and plans. Sums refer to units and plans by numbers, which follow from the catalog and the maps. If
//! the sums of an earlier run are used again, the catalog may have changed since, and with it the numbers. The names stay
//! the same: they translate the earlier numbers to the present ones.

use std::collections::{BTreeMap, HashMap};

use crate::hash::Digest;

/// The names of a run's units and plans, in the order of their numbers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Names {
    /// The ID of each unit.
    pub units: Vec<Name>,
    /// For each check that has plans: the name of the check, and the names of its plans.
    pub plans: Vec<(String, Vec<Digest>)>,
}

/// The ID of an allocation unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Name(pub u64);

/// The present numbers of an earlier run's units and plans.
#[derive(Debug)]
pub struct Translation {
    /// For each unit of the earlier run: its present number; `None` if the unit no longer exists.
    units: Vec<Option<u32>>,
    /// For each check, and for each of its plans in the earlier run: the present number.
    plans: BTreeMap<String, Vec<Option<usize>>>,
}

impl Translation {
    /// Translates the numbers of the run with the names `then` to those of the run with the names `now`.
    pub fn new(then: &Names, now: &Names) -> Self {
        let present: HashMap<Name, u32> = now.units.iter().copied().zip(0..).collect();
        let units = then.units.iter().map(|unit| present.get(unit).copied()).collect();
        let of_check = |(check, plans): &(String, Vec<Digest>)| {
            let now = now.plans.iter().find(|(other, _)| other == check).map_or(&[][..], |(_, plans)| plans);
            let present: HashMap<&Digest, usize> = now.iter().zip(0..).collect();
            (check.clone(), plans.iter().map(|plan| present.get(plan).copied()).collect())
        };
        Self { units, plans: then.plans.iter().map(of_check).collect() }
    }

    /// The number of units of the earlier run.
    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// The present number of a unit.
    pub(crate) fn unit(&self, unit: u32) -> Option<u32> {
        *self.units.get(unit as usize)?
    }

    /// The present number of a plan of a check.
    pub(crate) fn plan(&self, check: &str, plan: usize) -> Option<usize> {
        *self.plans.get(check)?.get(plan)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_their_names_and_what_is_gone_has_none() {
        let names = |units: &[u64], plans: &[u8]| Names {
            units: units.iter().copied().map(Name).collect(),
            plans: vec![("indexes".to_owned(), plans.iter().map(|plan| [*plan; 16]).collect())],
        };
        let translation = Translation::new(&names(&[50, 60, 70], &[1, 2, 3]), &names(&[70, 80, 50], &[3, 9, 2]));
        assert_eq!([0, 1, 2, 3].map(|unit| translation.unit(unit)), [Some(2), None, Some(0), None]);
        assert_eq!([0, 1, 2, 3].map(|plan| translation.plan("indexes", plan)), [None, Some(2), Some(0), None]);
        assert_eq!(translation.plan("columns", 0), None);
    }
}
