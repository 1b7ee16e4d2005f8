//! The number of steps that each evaluation of an expression uses, whatever the values in the row are.

use crate::node::{Node, Pred, Root};

/// The number of steps for each node of an expression.
pub(crate) const STEPS_PER_NODE: u64 = 2;

/// The number of steps for a function call, and for arithmetic on numbers other than integers. The steps for bytes are
/// counted in addition. A quotient of decimals takes some 60 nanoseconds.
const STEPS_PER_OPERATION: u64 = 32;

/// The number of steps for a conversion. Converting a date and time to a string takes some 300 nanoseconds, including
/// the work for its bytes and nodes.
const STEPS_PER_CONVERSION: u64 = 128;

/// The number of steps for the operations of an expression. It does not depend on the values in the row. Each operation
/// in the text counts once.
pub(crate) fn of_operations(root: &Root) -> u64 {
    match root {
        Root::Scalar(node) => of_node(node),
        Root::Condition(pred) => of_condition(pred),
    }
}

fn of_node(node: &Node) -> u64 {
    match node {
        Node::Const(_) | Node::Unknown(_) | Node::Column(..) => 0,
        Node::Arithmetic(operation, ty) => {
            let own = if ty.is_integer() { 0 } else { STEPS_PER_OPERATION };
            own + of_node(&operation.1) + of_node(&operation.2)
        }
        Node::Concat(operands, _) => of_node(&operands.0) + of_node(&operands.1),
        Node::Convert(conversion) => STEPS_PER_CONVERSION + of_node(&conversion.value),
        Node::Case(whens, otherwise) => {
            let whens = whens.iter().map(|(when, then)| of_condition(when) + of_node(then));
            whens.sum::<u64>() + of_node(otherwise)
        }
        Node::Call(_, arguments, _) => STEPS_PER_OPERATION + arguments.iter().map(of_node).sum::<u64>(),
    }
}

fn of_condition(pred: &Pred) -> u64 {
    match pred {
        Pred::And(terms) | Pred::Or(terms) => terms.iter().map(of_condition).sum(),
        Pred::Not(term) => of_condition(term),
        Pred::Compare(sides, _) => of_node(&sides.1) + of_node(&sides.2),
        Pred::IsNull(value) => of_node(value),
        Pred::Like(parts, _) => of_node(&parts.0) + of_node(&parts.1) + parts.2.as_ref().map_or(0, of_node),
    }
}
