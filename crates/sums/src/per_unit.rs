//! One value per allocation unit, stored only for units whose value was accessed. In a database with many tables, most
//! values are empty.

use std::fmt;

use crate::merge::Merge;
use crate::wire::{Input, Output, SumsError, Wire};

/// The number of adjacent units whose values are allocated together. The units of one table are adjacent.
const TOGETHER: usize = 8;

/// A value for each unit, indexed by ordinal. Units whose value was never set have the default.
pub struct PerUnit<T> {
    units: usize,
    values: Vec<Option<Box<[T; TOGETHER]>>>,
    untouched: T,
}

impl<T: Default> PerUnit<T> {
    /// Default values for this number of units.
    pub fn new(units: usize) -> Self {
        let mut values = Vec::new();
        values.resize_with(units.div_ceil(TOGETHER), || None);
        Self { units, values, untouched: T::default() }
    }

    /// The value of a unit; `None` if there is no unit with this ordinal.
    #[inline]
    pub fn get(&self, unit: usize) -> Option<&T> {
        match self.values.get(unit / TOGETHER)? {
            Some(values) if unit < self.units => values.get(unit % TOGETHER),
            _ => (unit < self.units).then_some(&self.untouched),
        }
    }

    /// The value of a unit, created with the default on first use; `None` if there is no unit with this ordinal.
    #[inline]
    pub fn get_mut(&mut self, unit: usize) -> Option<&mut T> {
        let values = self.values.get_mut(unit / TOGETHER).filter(|_| unit < self.units)?;
        values.get_or_insert_with(|| Box::new(std::array::from_fn(|_| T::default()))).get_mut(unit % TOGETHER)
    }

    /// Returns all values in memory, by ascending unit: the accessed values, and the default values that were allocated
    /// together with them.
    pub fn touched(&self) -> impl Iterator<Item = (usize, &T)> {
        let made = (0..).step_by(TOGETHER).zip(&self.values).filter_map(|(at, values)| Some((at, values.as_ref()?)));
        made.flat_map(|(at, values)| (at..).zip(values.iter())).take_while(|(at, _)| *at < self.units)
    }

    /// Like `touched`, with mutable access.
    pub fn touched_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let units = self.units;
        let made =
            (0..).step_by(TOGETHER).zip(&mut self.values).filter_map(|(at, values)| Some((at, values.as_mut()?)));
        made.flat_map(|(at, values)| (at..).zip(values.iter_mut())).take_while(move |(at, _)| *at < units)
    }

    /// All values, by ascending unit.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.units).filter_map(|unit| self.get(unit))
    }
}

impl<T: Merge> Merge for PerUnit<T> {
    fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.values.iter_mut().zip(other.values) {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(theirs)) => mine.iter_mut().zip(*theirs).for_each(|(mine, value)| mine.merge(value)),
                (None, theirs) => *mine = theirs,
                (Some(_), None) => {}
            }
        }
    }
}

impl<T: Default> Default for PerUnit<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

/// The values are encoded as the number of units, followed by the values in order. A byte before each value says
/// whether the value was accessed.
impl<T: Default + Wire> Wire for PerUnit<T> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.units as u64).write(to)?;
        for (unit, value) in self.touched() {
            (true, unit as u32).write(to)?;
            value.write(to)?;
        }
        false.write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        if u64::read(from)? != from.units as u64 {
            return Err(from.damaged("the number of units"));
        }
        let mut values = Self::new(from.units);
        while bool::read(from)? {
            let unit = u32::read(from)?;
            *values.get_mut(unit as usize).ok_or_else(|| from.damaged("a unit"))? = T::read(from)?;
        }
        Ok(values)
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
    fn units_that_nobody_touched_have_the_default_and_take_no_room() {
        let mut counts: PerUnit<u64> = PerUnit::new(1_000_003);
        *counts.get_mut(9).unwrap() += 5;
        *counts.get_mut(1_000_002).unwrap() += 7;
        assert_eq!([counts.get(9), counts.get(500), counts.get(1_000_002)], [Some(&5), Some(&0), Some(&7)]);
        assert!(counts.get(1_000_003).is_none() && counts.get_mut(1_000_003).is_none(), "inside the last eight");
        assert_eq!(counts.values.iter().flatten().count(), 2);
        assert_eq!(counts.touched().filter(|(_, count)| **count > 0).collect::<Vec<_>>(), [(9, &5), (1_000_002, &7)]);
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
