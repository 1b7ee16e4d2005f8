//! Limits the cost of an evaluation. Expressions come from the database file, and a few bytes of text (`replicate`,
//! LIKE with `%`) can cause hours of work. Therefore, all work is counted in steps.
//!
//! One step is the cost of reading, copying or writing one byte, which is one to three nanoseconds. The number of steps
//! of an evaluation depends only on the expression and the values.

use std::cell::Cell;

use crate::Undecided;
use crate::program::{Node, Pred, Root};

/// The most steps for evaluating one expression for one row. An ordinary expression needs fewer than a thousand steps.
/// The limit is high enough for eight nested REPLACE calls on a value of 8000 bytes.
pub const STEPS_PER_ROW: u64 = 1 << 19;

/// The most bytes of strings that one evaluation may produce, including intermediate strings.
pub(crate) const MOST_BYTES_MADE: usize = 1 << 17;

/// The number of steps for each node of an expression.
pub(crate) const STEPS_PER_NODE: u64 = 2;

/// The number of steps for a function call, and for arithmetic on numbers other than integers. The steps for bytes are
/// counted in addition. A quotient of decimals takes some 60 nanoseconds.
const STEPS_PER_OPERATION: u64 = 32;

/// The number of steps for a conversion. Converting a date and time to a string takes some 300 nanoseconds, including
/// the work for its bytes and nodes.
const STEPS_PER_CONVERSION: u64 = 128;

/// The number of steps for comparing two characters in a search.
pub(crate) const STEPS_PER_COMPARISON: u64 = 4;

/// The error of an evaluation that exceeds its limit of steps.
pub(crate) const TOO_EXPENSIVE: Undecided = Undecided { reason: "too expensive to evaluate" };

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

/// The steps that are left for evaluations.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The steps left for the current evaluation.
    left: Cell<u64>,
    /// The steps left for later evaluations.
    allowed: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Self { left: Cell::new(STEPS_PER_ROW), allowed: u64::MAX }
    }
}

impl Steps {
    /// Limits the total steps of all evaluations from now on.
    pub(crate) fn allow(&mut self, steps: u64) {
        self.end();
        self.allowed = steps;
        self.left.set(0);
    }

    /// The number of steps that are left of the total limit.
    pub(crate) fn allowed(&mut self) -> u64 {
        self.end();
        self.allowed
    }

    /// Starts an evaluation with its own limit.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.end();
        let left = self.allowed.min(STEPS_PER_ROW);
        self.allowed -= left;
        self.left.set(left);
    }

    /// Adds the unused steps of the last evaluation to the steps left for later evaluations.
    #[inline]
    fn end(&mut self) {
        self.allowed = self.allowed.saturating_add(self.left.take());
    }

    /// Uses up the given number of steps.
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

    /// Uses up one step for each byte.
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
