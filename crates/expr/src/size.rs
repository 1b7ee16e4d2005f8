//! The memory size of a compiled expression. It is many times the size of the text, so it must be counted.

use crate::node::{Conversion, Node, Pred, Root};
use crate::program::Program;
use crate::value::Datum;

/// The overhead of an allocation in bytes, which is also the minimum size of an allocation.
const ALLOCATION_BYTES: usize = 24;

impl Program {
    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(|name| size_of::<String>() + name.len() + ALLOCATION_BYTES);
        let root = match &self.root {
            Root::Scalar(value) => node(value),
            Root::Condition(pred) => condition(pred),
        };
        size_of::<Self>() + ALLOCATION_BYTES + columns.sum::<usize>() + root
    }
}

/// The number of bytes of a value in its own allocation, plus `held`, the bytes of the allocations that the value
/// holds.
fn boxed<T>(held: usize) -> usize {
    size_of::<T>() + ALLOCATION_BYTES + held
}

/// The bytes of a list, including the allocations of its items. A list that has grown may occupy twice the memory that
/// its items need.
fn list<T>(items: &Vec<T>, held: impl Fn(&T) -> usize) -> usize {
    items.capacity() * size_of::<T>() + ALLOCATION_BYTES + items.iter().map(held).sum::<usize>()
}

/// The bytes of the allocations that a node holds.
fn node(of: &Node) -> usize {
    match of {
        Node::Const(Datum::Ansi(bytes) | Datum::Unicode(bytes) | Datum::Binary(bytes)) => {
            bytes.len() + ALLOCATION_BYTES
        }
        Node::Const(_) | Node::Unknown(_) | Node::Column(..) => 0,
        Node::Arithmetic(operation, _) => boxed::<(Node, Node)>(16 + node(&operation.1) + node(&operation.2)),
        Node::Concat(operands, _) => boxed::<(Node, Node)>(node(&operands.0) + node(&operands.1)),
        Node::Convert(conversion) => boxed::<Conversion>(node(&conversion.value)),
        Node::Case(whens, otherwise) => {
            list(whens, |(when, then)| condition(when) + node(then)) + boxed::<Node>(node(otherwise))
        }
        Node::Call(_, arguments, types) => {
            let own = list(&types.args, |_| 0) + size_of_val(&**types) + ALLOCATION_BYTES;
            own + list(arguments, node)
        }
    }
}

/// The bytes of the allocations that a condition holds.
fn condition(of: &Pred) -> usize {
    match of {
        Pred::And(terms) | Pred::Or(terms) => list(terms, condition),
        Pred::Not(term) => boxed::<Pred>(condition(term)),
        Pred::Compare(sides, _) => boxed::<(Node, Node)>(16 + node(&sides.1) + node(&sides.2)),
        Pred::IsNull(value) => boxed::<Node>(node(value)),
        Pred::Like(parts, _) => {
            let escape = parts.2.as_ref().map_or(0, node);
            boxed::<(Node, Node, Option<Node>)>(node(&parts.0) + node(&parts.1) + escape)
        }
    }
}
