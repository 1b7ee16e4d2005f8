//! Checks integer computed columns for all rows of a page together, if the rows have the same layout.

use format::same_shape::Rows;

use super::{Persisted, Plans, Scratch, Sums};
use crate::basis::units::UnitIndex;
use crate::values::integers::{IntegerColumn, IntegerFormula, IntegerScratch};
use crate::values::{Column, Formula};

/// How to compute a column for many rows together.
pub(super) struct BatchPlan {
    formula: IntegerFormula,
    stored: IntegerColumn,
}

/// Scratch space for pages; reused from page to page.
#[derive(Default)]
pub(super) struct BatchScratch {
    integers: IntegerScratch,
    stored: Vec<i64>,
}

impl BatchPlan {
    /// The plan for a column; `None` unless the column and all operands are integers in the fixed part of the rows.
    pub(super) fn of(column: &Column, formula: &Formula) -> Option<Self> {
        Some(Self { formula: IntegerFormula::of(formula)?, stored: IntegerColumn::of(column)? })
    }

    /// Whether in each row the stored value equals the result of the definition.
    fn holds(&self, rows: Rows<'_>, room: &mut BatchScratch) -> bool {
        if let Some(computed) = self.formula.values_of_two_ints(rows)
            && let Some(stored) = self.stored.ints(rows)
        {
            // A result outside the range of int differs from every stored value.
            return computed.zip(stored).fold(true, |all, (computed, stored)| all & (computed == stored.into()));
        }
        let BatchScratch { integers, stored } = room;
        stored.resize(rows.count(), 0);
        let computed = self.formula.values(rows, integers);
        computed.is_some_and(|computed| self.stored.read(rows, stored) && computed == stored)
    }
}

/// Whether all computed columns of the page's rows are certainly right. If they are, counts the values of the live
/// rows.
pub(super) fn page(plans: &Plans, unit: UnitIndex, rows: Rows<'_>, sums: &mut Sums, scratch: &mut Scratch) -> bool {
    let columns = plans.of(unit);
    let mut holds =
        |column: &Persisted| column.together.as_ref().is_some_and(|plan| plan.holds(rows, &mut scratch.page));
    if !columns.iter().all(&mut holds) {
        return false;
    }
    for column in columns {
        sums.values.get_mut(column.counter).known += rows.live_count() as u64;
    }
    true
}
