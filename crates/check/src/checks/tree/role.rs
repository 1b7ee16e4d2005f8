//! The role of a page in a B-tree: leaf page, non-leaf page, or contradictory.

use format::Page;

use crate::basis::units::{Shape, UnitIndex};
use crate::sweep::context::Context;

/// The role of a page in its tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A leaf page, which contains rows.
    Leaf,
    /// A non-leaf page, which contains entries that name children.
    Node,
    /// A page whose level number contradicts the length of its records.
    Misplaced {
        /// Whether the records have the length of entries.
        is_node: bool,
    },
}

/// Returns the role of a page in its tree. In a nonclustered index, only the level number distinguishes leaf pages from
/// other pages. If the level number is wrong, rows could be mistaken for entries. So the length of the fixed part is
/// also compared with the lengths that rows and entries must have.
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
