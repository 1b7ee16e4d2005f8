//! One value for each plan of a check, by the plan's index in the list of plans. A plan says how the check handles one
//! index, constraint or column. A plan without a value has the default.

use std::fmt;

use crate::merge::Merge;
use crate::sparse::Sparse;
use crate::wire::{Input, Output, SumsError, Wire};

/// The most plans of a check. Larger indexes are rejected when values are read.
const MOST: usize = 1 << 28;

/// Values by plan index, stored only for plans whose value was accessed.
#[derive(Clone)]
pub struct ByPlan<T> {
    values: Sparse<T>,
}

impl<T> Default for ByPlan<T> {
    fn default() -> Self {
        Self { values: Sparse::default() }
    }
}

impl<T: Clone + Default> ByPlan<T> {
    /// The value of a plan.
    pub fn get(&self, plan: usize) -> T {
        self.values.get(plan).cloned().unwrap_or_default()
    }

    /// The value of a plan; created with the default on first use.
    #[inline]
    pub fn get_mut(&mut self, plan: usize) -> &mut T {
        self.values.get_mut(plan)
    }

    /// The values that were accessed with [`Self::get_mut`], in order of their plans.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().map(|(_, value)| value)
    }
}

impl<T: Merge> Merge for ByPlan<T> {
    fn merge(&mut self, other: Self) {
        self.values.merge(other.values);
    }
}

/// The values are encoded with the indexes of their plans.
impl<T: Default + Wire> Wire for ByPlan<T> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.values.write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(Self { values: Sparse::read(from, MOST)? })
    }
}

impl<T: fmt::Debug> fmt::Debug for ByPlan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.values.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_up_by_plan_whichever_thread_saw_more_of_them() {
        let mut mine: ByPlan<u64> = ByPlan::default();
        let mut theirs = mine.clone();
        *mine.get_mut(1) = 1;
        *theirs.get_mut(1) = 10;
        *theirs.get_mut(4) = 40;
        mine.merge(theirs);
        assert_eq!([0, 1, 4, 9].map(|plan| mine.get(plan)), [0, 11, 40, 0]);
        assert_eq!(mine.iter().sum::<u64>(), 51);
    }
}
