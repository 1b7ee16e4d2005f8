//! One value per allocation unit, stored only for units whose value was accessed. In a database with many tables, most
//! values are empty.

use std::fmt;

use crate::merge::Merge;
use crate::sparse::Sparse;
use crate::wire::{Input, Output, SumsError, Wire};

/// A value for each unit, indexed by ordinal. Units whose value was never set have the default.
pub struct PerUnit<T> {
    units: usize,
    values: Sparse<T>,
    untouched: T,
}

impl<T: Default> PerUnit<T> {
    /// Default values for this number of units. Takes the same time for any number.
    pub fn new(units: usize) -> Self {
        Self { units, values: Sparse::default(), untouched: T::default() }
    }

    /// The value of a unit; `None` if there is no unit with this ordinal.
    #[inline]
    pub fn get(&self, unit: usize) -> Option<&T> {
        (unit < self.units).then(|| self.values.get(unit).unwrap_or(&self.untouched))
    }

    /// The value of a unit, created with the default on first use; `None` if there is no unit with this ordinal.
    #[inline]
    pub fn get_mut(&mut self, unit: usize) -> Option<&mut T> {
        (unit < self.units).then(|| self.values.get_mut(unit))
    }

    /// The values that were accessed with [`Self::get_mut`], by ascending unit.
    pub fn touched(&self) -> impl Iterator<Item = (usize, &T)> {
        self.values.iter()
    }

    /// Like `touched`, with mutable access.
    pub fn touched_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.values.iter_mut()
    }

    /// All values, by ascending unit.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.units).filter_map(|unit| self.get(unit))
    }
}

impl<T: Merge> Merge for PerUnit<T> {
    fn merge(&mut self, other: Self) {
        self.values.merge(other.values);
    }
}

impl<T: Default> Default for PerUnit<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

/// The values are encoded as the number of units, followed by the accessed values.
impl<T: Default + Wire> Wire for PerUnit<T> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.units as u64).write(to)?;
        self.values.write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        if u64::read(from)? != from.units as u64 {
            return Err(from.damaged("the number of units"));
        }
        Ok(Self { values: Sparse::read(from, from.units)?, ..Self::new(from.units) })
    }
}

impl<T: Default + fmt::Debug> fmt::Debug for PerUnit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_nobody_touched_have_the_default() {
        let mut counts: PerUnit<u64> = PerUnit::new(1_000_003);
        *counts.get_mut(9).unwrap() += 5;
        *counts.get_mut(1_000_002).unwrap() += 7;
        assert_eq!([counts.get(9), counts.get(500), counts.get(1_000_002)], [Some(&5), Some(&0), Some(&7)]);
        assert!(counts.get(1_000_003).is_none() && counts.get_mut(1_000_003).is_none(), "inside the last eight");
        assert_eq!(counts.touched().collect::<Vec<_>>(), [(9, &5), (1_000_002, &7)]);
    }

    #[test]
    fn merging_adds_what_both_have_and_takes_what_one_has() {
        let mut mine: PerUnit<u64> = PerUnit::new(20);
        let mut theirs = PerUnit::new(20);
        *mine.get_mut(1).unwrap() = 1;
        *theirs.get_mut(1).unwrap() = 10;
        *theirs.get_mut(19).unwrap() = 100;
        mine.merge(theirs);
        assert_eq!(mine.iter().copied().filter(|count| *count > 0).collect::<Vec<_>>(), [11, 100]);
    }
}
