//! The memory that a compiled expression takes: many times its text, so it must be counted.

use crate::program::{Conversion, Node, Pred, Program, Root};
use crate::value::Datum;

/// Overhead of an allocation, and its minimum size.
const ALLOCATION_BYTES: usize = 24;

impl Program {
    /// Approximate bytes in memory.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(|name| size_of::<String>() + name.len() + ALLOCATION_BYTES);
        let root = match &self.root {
            Root::Scalar(value) => node(value),
            Root::Condition(pred) => condition(pred),
        };
        size_of::<Self>() + ALLOCATION_BYTES + columns.sum::<usize>() + root
    }
}

/// A value in its own allocation.
fn boxed<T>(held: usize) -> usize {
    size_of::<T>() + ALLOCATION_BYTES + held
}

/// A list and what its items hold. A grown list has up to twice the size.
fn list<T>(items: &Vec<T>, held: impl Fn(&T) -> usize) -> usize {
    items.capacity() * size_of::<T>() + ALLOCATION_BYTES + items.iter().map(held).sum::<usize>()
}

/// What a node holds besides itself.
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

/// What a condition holds besides itself.
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
