//! Checks the links of a B-tree by their sums, without reading pages.

use std::cmp::Ordering;

use format::PageId;
use format::bytes::{u8_at, u32_at};
use sums::hash::Sum;
use sums::spill::{Item, Sorter, page_to};

use crate::basis::units::{Shape, UnitIndex};
use crate::checks::tree::levels::bounds_per_window;
use crate::checks::tree::{LevelSums, NodePage, PageBounds, Sums, TreeLevel, TreeSums};
use crate::sweep::context::Context;

/// Whether every page of the tree has the correct parent, neighbors and level.
pub(super) fn is_sound(context: &Context<'_>, index: UnitIndex, tree: &TreeSums, bad_pages: u64) -> bool {
    let Some(unit) = context.units.get(index) else { return true };
    let root = context.root(unit);
    if tree.levels.is_empty() {
        return root.is_none() && bad_pages == 0;
    }
    let node_levels: Vec<u8> = (0..=u8::MAX).filter(|level| is_node_level(unit.shape, tree, *level)).collect();
    let leaf = if unit.shape == Shape::Clustered { TreeLevel::Data(0) } else { TreeLevel::Index(0) };
    let known =
        |level: &TreeLevel| *level == leaf || matches!(level, TreeLevel::Index(number) if node_levels.contains(number));
    if !tree.levels.iter().all(|(level, _)| known(level)) {
        return false;
    }
    // Goes from the leaf level upwards. The entries of each level must name exactly the pages of the level below.
    let mut below = tree.get(leaf);
    let mut expected_number = None;
    for &number in &node_levels {
        // The lowest index level of a clustered tree may be 0 or 1
        // (docs/format/README.md#level-of-the-lowest-index-pages).
        let lowest: &[u8] = if unit.shape == Shape::Clustered { &[0, 1] } else { &[1] };
        let in_place = match expected_number {
            None => lowest.contains(&number),
            Some(expected) => number == expected,
        };
        let level = tree.get(TreeLevel::Index(number));
        // If there is no level below, the index is a single leaf with a wrong level number.
        if below.pages == 0 || !in_place || level.children != below.selves || !links_agree(&below, &level) {
            return false;
        }
        below = level;
        expected_number = number.checked_add(1);
    }
    // The topmost level must consist of the root only.
    below.pages == 1
        && below.selves == context.hash.page(root)
        && below.next == Sum::default()
        && below.prev == Sum::default()
}

/// Returns whether next and previous pointers agree on each level. In a compressed tree, nothing else can be checked,
/// because it is undocumented how the entries of compressed pages name their children.
pub(super) fn chains_agree(tree: &TreeSums) -> bool {
    tree.levels.iter().all(|(_, level)| level.next == level.prev)
}

fn is_node_level(shape: Shape, tree: &TreeSums, number: u8) -> bool {
    let lowest = u8::from(shape == Shape::Nonclustered);
    number >= lowest && tree.levels.iter().any(|(level, _)| *level == TreeLevel::Index(number))
}

/// Whether next pointers, previous pointers, and the order of entries in the parents all agree about the neighbors of
/// the pages.
fn links_agree(children: &LevelSums, parents: &LevelSums) -> bool {
    children.next == parents.child_links && children.prev == parents.child_links
}

/// Adds to the sums the links that cross the boundary between two non-leaf pages: from the last child of each non-leaf
/// page to the first child of the next page.
pub(super) fn join_neighbors(context: &Context<'_>, sums: &mut Sums) {
    // The sorter uses the memory that is reserved for reading key bounds back. This memory is not in use yet.
    let mut ends = Sorter::new(bounds_per_window(context) * size_of::<PageBounds>(), context.space);
    for run in &sums.nodes {
        run.each(context.space, |NodePage { unit, level, page, prev, first_child, last_child, .. }| {
            ends.push(End { of: page, is_wanted: false, unit, level, child: last_child });
            if !prev.is_none() {
                ends.push(End { of: prev, is_wanted: true, unit, level, child: first_child });
            }
        });
    }
    let mut last: Option<End> = None;
    for end in ends.into_sorted() {
        if !end.is_wanted {
            last = Some(end);
            continue;
        }
        let left = last.filter(|last| (last.of, last.unit, last.level) == (end.of, end.unit, end.level));
        let from = left.map_or(PageId::NONE, |left| left.child);
        if let Some(tree) = sums.units.get_mut(end.unit as usize) {
            tree.level(TreeLevel::Index(end.level)).child_links.add(context.hash.link(from, end.child));
        }
    }
}

/// One of the two children at the boundary between two adjacent non-leaf pages. It is either the last child of page
/// `of`, or the first child of the next page. The next page is the page of the same unit and level that names `of` as
/// its left neighbor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct End {
    of: PageId,
    is_wanted: bool,
    unit: UnitIndex,
    level: u8,
    child: PageId,
}

impl Item for End {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        page_to(out, self.of);
        page_to(out, self.child);
        out.extend(self.unit.to_le_bytes());
        out.extend([self.level, self.is_wanted.into()]);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            of: PageId::read(bytes, 0)?,
            child: PageId::read(bytes, 6)?,
            unit: u32_at(bytes, 12)?,
            level: u8_at(bytes, 16)?,
            is_wanted: u8_at(bytes, 17)? != 0,
        })
    }
}

#[cfg(test)]
mod tests;
