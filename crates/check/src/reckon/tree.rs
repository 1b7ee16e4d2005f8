//! Whether the links of a B-tree agree, by their sums alone.

use format::PageId;

use crate::context::Context;
use crate::hash::Sum;
use crate::sweep::{LevelSums, NodePage, TreeLevel, UnitTally};
use crate::units::{Shape, UnitIndex};

/// Whether every page of the tree has the parent, the neighbours and the level it must have.
pub(super) fn is_sound(context: &Context<'_>, index: UnitIndex, tally: &UnitTally, nodes: &[NodePage]) -> bool {
    let Some(unit) = context.units.get(index) else { return true };
    let root = context.root(unit);
    if tally.tree.levels.is_empty() {
        return root.is_none() && tally.bad_pages == 0;
    }
    let first = nodes.partition_point(|node| node.unit < index);
    let nodes = &nodes[first..first + nodes[first..].partition_point(|node| node.unit == index)];
    let tree = &tally.tree;
    let node_levels: Vec<u8> = (0..=u8::MAX).filter(|level| is_node_level(unit.shape, tally, *level)).collect();
    let leaf = if unit.shape == Shape::Clustered { TreeLevel::Data(0) } else { TreeLevel::Index(0) };
    let known =
        |level: &TreeLevel| *level == leaf || matches!(level, TreeLevel::Index(number) if node_levels.contains(number));
    if !tree.levels.iter().all(|(level, _)| known(level)) {
        return false;
    }
    // From the leaf upwards: what a level's pages are must be what the level above names.
    let mut below = tree.get(leaf);
    let mut expected_number = None;
    for &number in &node_levels {
        // The lowest index level of a clustered tree may be 0 or 1 (format.md 0, rule 4).
        let lowest: &[u8] = if unit.shape == Shape::Clustered { &[0, 1] } else { &[1] };
        let in_place = match expected_number {
            None => lowest.contains(&number),
            Some(expected) => number == expected,
        };
        let level = tree.get(TreeLevel::Index(number));
        if !in_place || level.children != below.selves || !links_agree(context, &below, &level, nodes, number) {
            return false;
        }
        below = level;
        expected_number = number.checked_add(1);
    }
    // The topmost level is the root alone.
    below.pages == 1
        && below.selves == context.hash.page(root)
        && below.next == Sum::default()
        && below.prev == Sum::default()
}

/// Whether, on each level, next and previous pointers say the same: all that can be told of a compressed tree, as nobody
/// has published how its entries name their children.
pub(super) fn chains_agree(tally: &UnitTally) -> bool {
    tally.tree.levels.iter().all(|(_, level)| level.next == level.prev)
}

fn is_node_level(shape: Shape, tally: &UnitTally, number: u8) -> bool {
    let lowest = u8::from(shape == Shape::Nonclustered);
    number >= lowest && tally.tree.levels.iter().any(|(level, _)| *level == TreeLevel::Index(number))
}

/// Next pointers, previous pointers and the parents' order of entries name the same neighbours.
fn links_agree(
    context: &Context<'_>,
    children: &LevelSums,
    parents: &LevelSums,
    nodes: &[NodePage],
    number: u8,
) -> bool {
    let mut expected = parents.child_links;
    let level: Vec<&NodePage> = nodes.iter().filter(|node| node.level == number).collect();
    for node in &level {
        if node.prev.is_none() {
            continue;
        }
        let left = level.binary_search_by_key(&node.prev, |other| other.page).ok().and_then(|at| level.get(at));
        let from = left.map_or(PageId::NONE, |left| left.last_child);
        expected.add(context.hash.link(from, node.first_child));
    }
    children.next == expected && children.prev == expected
}
