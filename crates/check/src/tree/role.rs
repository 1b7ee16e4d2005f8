//! The role of a page in a B-tree: leaf, non-leaf page, or contradictory.

use format::Page;

use crate::context::Context;
use crate::units::{Shape, UnitIndex};

/// The role of a page in its tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Leaf: rows.
    Leaf,
    /// Non-leaf: entries that name children.
    Node,
    /// Its level number and the length of its records contradict each other.
    Misplaced {
        /// Whether the length of the records is that of entries.
        is_node: bool,
    },
}

/// The role of a page in its tree. In a nonclustered index, only the level number distinguishes leaves from other
/// pages, and a wrong one must not make leaf rows pass for entries: the length of their fixed part decides.
pub(super) fn role(context: &Context<'_>, index: UnitIndex, page: Page<'_>) -> Role {
    let Some(unit) = context.units.get(index) else { return Role::Leaf };
    let plain = if unit.shape.is_leaf(page) { Role::Leaf } else { Role::Node };
    let Some(keys) = context.keys(index).filter(|_| unit.shape == Shape::Nonclustered && !unit.compressed) else {
        return plain;
    };
    if keys.node_length == keys.leaf_length {
        return plain;
    }
    match (plain, page.header().pminlen.get()) {
        (Role::Leaf, length) if length == keys.node_length => Role::Misplaced { is_node: true },
        (Role::Node, length) if length == keys.leaf_length => Role::Misplaced { is_node: false },
        _ => plain,
    }
}
