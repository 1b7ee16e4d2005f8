//! Limits the cost of an evaluation. Expressions come from the database file, and a few bytes of text (`replicate`,
//! LIKE with `%`) can cause hours of work. Therefore, all work is counted in steps.
//!
//! One step is the cost of reading, copying or writing one byte, which is one to three nanoseconds. The number of steps
//! of an evaluation depends only on the expression and the values.

use std::cell::Cell;

use crate::Undecided;

/// The most steps for evaluating one expression for one row. An ordinary expression needs fewer than a thousand steps.
/// The limit is high enough for eight nested REPLACE calls on a value of 8000 bytes.
pub const STEPS_PER_ROW: u64 = 1 << 19;

/// The most bytes of strings that one evaluation may produce, including intermediate strings.
pub(crate) const MOST_BYTES_MADE: usize = 1 << 17;

/// The number of steps for comparing two characters in a search.
pub(crate) const STEPS_PER_COMPARISON: u64 = 4;

/// The error of an evaluation that exceeds its limit of steps.
pub(crate) const TOO_EXPENSIVE: Undecided = Undecided { reason: "too expensive to evaluate" };

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
