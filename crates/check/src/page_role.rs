//! What a page is to its unit: leaf level or not, and how its records are read.

use format::record::Record;
use format::slots::Span;
use format::{Page, PageType};

use crate::context::Context;
use crate::units::{Shape, UnitIndex};

/// Whether a page is of the leaf level of its unit, by type or level number.
pub(crate) fn is_leaf(shape: Shape, page: Page<'_>) -> bool {
    match shape {
        Shape::Nonclustered => page.header().level == 0,
        _ => page.header().kind() == Some(PageType::Data),
    }
}

/// Whether a page of a unit is of its leaf level.
pub(crate) fn is_leaf_of(context: &Context<'_>, unit: UnitIndex, page: Page<'_>) -> bool {
    context.units.get(unit).is_some_and(|unit| is_leaf(unit.shape, page))
}

/// What a page of a tree is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Leaf: rows.
    Leaf,
    /// Non-leaf: entries that name children.
    Node,
    /// Its level number says one thing, the length of its records another.
    Misplaced {
        /// What the length of its records says.
        is_node: bool,
    },
}

/// What a page of a tree is. In a nonclustered index only the level number tells, and a wrong one must not make leaf rows
/// pass for entries: the length of their fixed part tells them apart.
pub(crate) fn role(context: &Context<'_>, index: UnitIndex, page: Page<'_>) -> Role {
    let Some(unit) = context.units.get(index) else { return Role::Leaf };
    let plain = if is_leaf(unit.shape, page) { Role::Leaf } else { Role::Node };
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

/// The record in a slot.
pub(crate) fn record<'a>(page: Page<'a>, span: Span) -> Option<Record<'a>> {
    let bytes = span.of(page);
    match page.header().kind() {
        Some(PageType::Data) => Record::data(bytes).ok(),
        _ => Record::index(bytes, page.header().pminlen.get()).ok(),
    }
}
