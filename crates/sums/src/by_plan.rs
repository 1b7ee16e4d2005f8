//! One value for each plan of a check, by the plan's index in the list of plans. A plan says how the check handles one
//! index, constraint or column. A plan without a value has the default.

use crate::merge::Merge;
use crate::wire::wire;

/// Values by plan index; the list ends at the highest index that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByPlan<T> {
    values: Vec<T>,
}

impl<T> Default for ByPlan<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<T: Clone + Default> ByPlan<T> {
    /// The value of a plan.
    pub fn get(&self, plan: usize) -> T {
        self.values.get(plan).cloned().unwrap_or_default()
    }

    /// The value of a plan; created with the default on first use.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the list was made long enough just before")]
    pub fn get_mut(&mut self, plan: usize) -> &mut T {
        if self.values.len() <= plan {
            self.values.resize(plan + 1, T::default());
        }
        &mut self.values[plan]
    }

    /// The values in order of their plans, up to the highest index that was used.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }
}

impl<T: Clone + Default + Merge> Merge for ByPlan<T> {
    fn merge(&mut self, other: Self) {
        for (plan, value) in other.values.into_iter().enumerate() {
            self.get_mut(plan).merge(value);
        }
    }
}

wire!(ByPlan<T> { values });

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
