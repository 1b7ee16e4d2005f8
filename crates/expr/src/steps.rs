//! What an evaluation may cost. Expressions come from the file, and a few bytes of text (`replicate`, LIKE with `%`) can
//! ask for hours of work, so that all work is counted.
//!
//! A step is a byte that is looked at, copied or made: about a nanosecond. How many steps an evaluation takes depends on the
//! expression and the values alone.

use std::cell::Cell;

use crate::Undecided;

/// Steps that the evaluation of one expression for one row may take. An ordinary one takes fewer than a thousand; a value of
/// 8000 bytes can go through eight REPLACEs.
pub const STEPS_PER_ROW: u64 = 1 << 19;

/// Bytes of the strings that one evaluation may make, those that it only needs on its way included.
pub(crate) const MOST_BYTES_MADE: usize = 1 << 17;

/// Steps for a node of an expression.
pub(crate) const STEPS_PER_NODE: u64 = 2;

/// Steps for comparing two characters in a search.
pub(crate) const STEPS_PER_COMPARISON: u64 = 4;

/// Why an expression that takes more steps than it may has no value.
pub(crate) const TOO_EXPENSIVE: Undecided = Undecided { reason: "too expensive to evaluate" };

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
