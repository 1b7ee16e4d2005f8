//! What an evaluation may cost. Expressions come from the file, and a few bytes of text (`replicate`, LIKE with `%`) can
//! ask for hours of work, so that all work is counted.
//!
//! A step is a byte that is looked at, copied or made: one to three nanoseconds. How many steps an evaluation takes depends on the
//! expression and the values alone.

use std::cell::Cell;

use crate::Undecided;
use crate::program::{Node, Pred, Root};

/// Steps that the evaluation of one expression for one row may take. An ordinary one takes fewer than a thousand; a value of
/// 8000 bytes can go through eight REPLACEs.
pub const STEPS_PER_ROW: u64 = 1 << 19;

/// Bytes of the strings that one evaluation may make, those that it only needs on its way included.
pub(crate) const MOST_BYTES_MADE: usize = 1 << 17;

/// Steps for a node of an expression.
pub(crate) const STEPS_PER_NODE: u64 = 2;

/// Steps for a function and for arithmetic on all but integers, besides those for bytes: a decimal quotient takes some 60
/// nanoseconds.
const STEPS_PER_OPERATION: u64 = 32;

/// Steps for a conversion: a date and time becomes a string in some 300 nanoseconds, with its bytes and nodes.
const STEPS_PER_CONVERSION: u64 = 128;

/// Steps for comparing two characters in a search.
pub(crate) const STEPS_PER_COMPARISON: u64 = 4;

/// Why an expression that takes more steps than it may has no value.
pub(crate) const TOO_EXPENSIVE: Undecided = Undecided { reason: "too expensive to evaluate" };

/// Steps that the operations of an expression take whatever the row holds; each that is written once is counted once.
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

/// A count of steps that only falls.
#[derive(Debug)]
pub(crate) struct Steps {
    /// Left of the evaluation that is under way.
    left: Cell<u64>,
    /// Left for those that follow.
    allowed: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Self { left: Cell::new(STEPS_PER_ROW), allowed: u64::MAX }
    }
}

impl Steps {
    /// Limits what the evaluations from now on may take together.
    pub(crate) fn allow(&mut self, steps: u64) {
        self.end();
        self.allowed = steps;
        self.left.set(0);
    }

    /// What is left of it.
    pub(crate) fn allowed(&mut self) -> u64 {
        self.end();
        self.allowed
    }

    /// Begins an evaluation.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.end();
        let left = self.allowed.min(STEPS_PER_ROW);
        self.allowed -= left;
        self.left.set(left);
    }

    /// Gives back what the last evaluation left over.
    #[inline]
    fn end(&mut self) {
        self.allowed = self.allowed.saturating_add(self.left.take());
    }

    /// Takes so many steps.
    #[inline]
    pub(crate) fn take(&self, steps: u64) -> Result<(), Undecided> {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(TOO_EXPENSIVE)
            }
        }
    }

    /// Takes a step for each byte.
    #[inline]
    pub(crate) fn take_bytes(&self, bytes: usize) -> Result<(), Undecided> {
        self.take(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_share_what_is_allowed_and_each_has_a_limit_of_its_own() {
        let mut steps = Steps::default();
        steps.begin();
        assert_eq!(steps.take(STEPS_PER_ROW), Ok(()));
        assert_eq!(steps.take(1), Err(TOO_EXPENSIVE));
        steps.allow(100);
        steps.begin();
        assert_eq!(steps.take(30), Ok(()));
        assert_eq!(steps.allowed(), 70);
        steps.begin();
        assert_eq!(steps.take(71), Err(TOO_EXPENSIVE), "more than is left");
        assert_eq!(steps.take(0), Ok(()));
        assert_eq!(steps.allowed(), 0, "what was refused took all that was left");
        steps.begin();
        assert_eq!(steps.take(1), Err(TOO_EXPENSIVE));
        steps.allow(5);
        steps.begin();
        assert_eq!(steps.take(5), Ok(()));
    }
}
