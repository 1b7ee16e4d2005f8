//! A list of values of which only a few are used, with quick access by index. The list is a tree of two levels: groups of
//! blocks of values. A block or a group is allocated when one of its values is used first, so a list with one value costs
//! the same whether the index of the value is 1 or 1 million.

use std::array;

use crate::merge::Merge;
use crate::wire::{Input, Output, SumsError, Wire};

/// The number of values in a block. Adjacent indexes are often used together: the units of one table, and the columns of
/// one table, are adjacent.
const VALUES: usize = 2;
/// The number of blocks in a group.
const BLOCKS: usize = 64;

/// Values by index. A value that was never used is not stored.
#[derive(Clone)]
pub(crate) struct Sparse<T> {
    groups: Vec<Option<Box<Group<T>>>>,
}

#[derive(Clone)]
struct Group<T> {
    blocks: [Option<Box<Block<T>>>; BLOCKS],
    /// For each value of each block, from the lowest bit, whether it was used. The bits are not in the blocks, because
    /// they would make the allocation of a block longer by eight bytes.
    used: [u8; BLOCKS],
}

type Block<T> = [T; VALUES];

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self { groups: Vec::new() }
    }
}

impl<T> Default for Group<T> {
    fn default() -> Self {
        Self { blocks: array::from_fn(|_| None), used: [0; BLOCKS] }
    }
}

/// Whether a bit is set that says that a value was used.
fn is_used(used: u8, at: usize) -> bool {
    used & 1 << at != 0
}

impl<T> Sparse<T> {
    /// The value at an index; `None` if it was never used. The result may be a default value that was allocated
    /// together with a used value.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        let group = self.groups.get(at / VALUES / BLOCKS)?.as_ref()?;
        let block = group.blocks.get(at / VALUES % BLOCKS)?.as_ref()?;
        block.get(at % VALUES)
    }

    /// The used values in order of their indexes, with their indexes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let groups = (0..).step_by(BLOCKS).zip(&self.groups);
        let groups = groups.filter_map(|(at, group)| Some((at, group.as_ref()?)));
        let blocks = groups.flat_map(|(at, group)| (at..).zip(group.blocks.iter().zip(&group.used)));
        let blocks = blocks.filter_map(|(at, (block, used))| Some((at * VALUES, block.as_ref()?, *used)));
        blocks.flat_map(|(first, block, used)| {
            let used = block.iter().enumerate().filter(move |(at, _)| is_used(used, *at));
            used.map(move |(at, value)| (first + at, value))
        })
    }

    /// Like [`Self::iter`], with mutable access.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let groups = (0..).step_by(BLOCKS).zip(&mut self.groups);
        let groups = groups.filter_map(|(at, group)| Some((at, group.as_mut()?)));
        let blocks = groups.flat_map(|(at, group)| (at..).zip(group.blocks.iter_mut().zip(&group.used)));
        let blocks = blocks.filter_map(|(at, (block, used))| Some((at * VALUES, block.as_mut()?, *used)));
        blocks.flat_map(|(first, block, used)| {
            let used = block.iter_mut().enumerate().filter(move |(at, _)| is_used(used, *at));
            used.map(move |(at, value)| (first + at, value))
        })
    }
}

impl<T: Default> Sparse<T> {
    /// The value at an index; created with the default on first use.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the list is made long enough first, and a remainder is in its array")]
    pub(crate) fn get_mut(&mut self, at: usize) -> &mut T {
        let group = at / VALUES / BLOCKS;
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, || None);
        }
        let group = self.groups[group].get_or_insert_default();
        let block = at / VALUES % BLOCKS;
        group.used[block] |= 1 << (at % VALUES);
        &mut group.blocks[block].get_or_insert_with(|| Box::new(array::from_fn(|_| T::default())))[at % VALUES]
    }
}

/// Groups and blocks that only one list has are moved, not copied.
impl<T: Merge> Merge for Sparse<T> {
    fn merge(&mut self, other: Self) {
        if self.groups.len() < other.groups.len() {
            self.groups.resize_with(other.groups.len(), || None);
        }
        for (mine, theirs) in self.groups.iter_mut().zip(other.groups) {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(mut theirs)) => mine.take(&mut theirs),
                (None, theirs) => *mine = theirs,
                (Some(_), None) => {}
            }
        }
    }
}

impl<T: Merge> Group<T> {
    /// Adds the values of another group, which is empty afterwards.
    fn take(&mut self, other: &mut Self) {
        let blocks = self.blocks.iter_mut().zip(&mut other.blocks);
        for ((mine, theirs), (used, their_used)) in blocks.zip(self.used.iter_mut().zip(&other.used)) {
            let Some(theirs) = theirs.take() else { continue };
            *used |= their_used;
            match mine {
                Some(mine) => {
                    let values = mine.iter_mut().zip(*theirs).enumerate();
                    values
                        .filter(|(at, _)| is_used(*their_used, *at))
                        .for_each(|(_, (mine, theirs))| mine.merge(theirs));
                }
                None => *mine = Some(theirs),
            }
        }
    }
}

/// Each used value is encoded as the distance of its index from the index before it, and the value. The first distance is
/// one more than the first index. A zero ends the list.
impl<T: Wire> Sparse<T> {
    pub(crate) fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        let mut next = 0;
        for (at, value) in self.iter() {
            ((at + 1 - next) as u64).write(to)?;
            value.write(to)?;
            next = at + 1;
        }
        0u64.write(to)
    }

    /// Reads the output of [`Self::write`]. `place` gives the present index of an index in the output. An index that is
    /// not below `end` is an error, because a list may need memory in proportion to its highest index.
    pub(crate) fn read(
        from: &mut Input<'_>,
        end: usize,
        place: impl Fn(&Input<'_>, usize) -> Result<usize, SumsError>,
    ) -> Result<Self, SumsError>
    where
        T: Default,
    {
        let mut values = Self::default();
        let mut next = 0;
        while let distance @ 1.. = u64::read(from)? {
            let at = next + distance - 1;
            let then = usize::try_from(at).ok().filter(|at| *at < end).ok_or_else(|| from.damaged("an index"))?;
            let now = place(from, then)?;
            *values.get_mut(now) = T::read(from)?;
            next = at + 1;
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::FactHash;
    use crate::spill::TempStore;

    const INDEXES: [usize; 7] = [0, 7, 8, 2047, 2048, 400_000, 1_000_002];

    fn of(indexes: &[usize]) -> Sparse<u64> {
        let mut values = Sparse::default();
        indexes.iter().for_each(|at| *values.get_mut(*at) += *at as u64 + 1);
        values
    }

    #[test]
    fn used_values_come_in_order_and_no_others_do() {
        let mut values = of(&[400_000, 8, 2048, 0, 1_000_002, 2047, 7]);
        let expected: Vec<(usize, u64)> = INDEXES.iter().map(|at| (*at, *at as u64 + 1)).collect();
        assert_eq!(values.iter().map(|(at, value)| (at, *value)).collect::<Vec<_>>(), expected);
        assert_eq!(values.iter_mut().map(|(at, value)| (at, *value)).collect::<Vec<_>>(), expected);
        assert_eq!([7, 1, 9, 3000, 2_000_000].map(|at| values.get(at)), [Some(&8), Some(&0), Some(&0), None, None]);
    }

    #[test]
    fn one_value_takes_one_block_wherever_it_is() {
        for at in INDEXES {
            let values = of(&[at]);
            assert_eq!(values.groups.iter().flatten().flat_map(|group| group.blocks.iter().flatten()).count(), 1);
        }
        assert_eq!(Sparse::<u64>::default().groups.capacity(), 0);
    }

    #[test]
    fn merging_adds_what_both_have_and_takes_what_one_has() {
        let mut random = 1u32;
        let mut next = || {
            random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (random >> 16) as usize % 5000
        };
        let (mine, theirs): (Vec<usize>, Vec<usize>) = (0..500).map(|_| (next(), next())).unzip();
        let expected = of(&[&mine[..], &theirs].concat());
        for (mine, theirs) in [(&mine, &theirs), (&theirs, &mine)] {
            let mut merged = of(mine);
            merged.merge(of(theirs));
            assert!(merged.iter().eq(expected.iter()));
        }
    }

    #[test]
    fn what_is_written_is_read_again_unless_an_index_is_too_high() {
        let (space, hash) = (TempStore::default(), FactHash::new(Some(5)));
        let mut bytes = Vec::new();
        let mut output = Output::new(&hash, &[], &space, &mut bytes);
        let expected = of(&INDEXES);
        expected.write(&mut output).unwrap();
        output.finish().unwrap();
        for (end, is_read) in [(1_000_003, true), (1_000_002, false), (5, false)] {
            let mut from = &bytes[..];
            let mut input = Input::new(&hash, &[], (&space, 0), &mut from);
            let read = Sparse::<u64>::read(&mut input, end, |_, at| Ok(at));
            assert_eq!(read.is_ok_and(|read| read.iter().eq(expected.iter())), is_read, "{end}");
        }
    }
}
