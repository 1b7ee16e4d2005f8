//! The results of checks when they are settled.

use crate::beyond::Beyond;
use crate::coverage::Coverage;
use crate::ledger::FindingCollector;

/// Results of checks besides findings and what is not verified.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Rows whose columns were checked.
    pub(crate) rows_checked: u64,
    /// Values in these rows that were verified.
    pub(crate) column_values_checked: u64,
    /// Values in these rows that were not verified.
    pub(crate) column_values_not_verified: u64,
    /// Nonclustered indexes that the run covers.
    pub(crate) indexes_in_scope: u64,
    /// Indexes whose rows were compared with those of their table.
    pub(crate) indexes_compared: u64,
    /// Rows of the compared indexes.
    pub(crate) index_rows_compared: u64,
    /// Constraints and identity columns.
    pub(crate) beyond: Beyond,
}

/// Where checks put their results.
pub(crate) struct Results<'a> {
    pub(crate) findings: &'a mut FindingCollector,
    pub(crate) coverage: &'a mut Coverage,
    pub(crate) outcome: &'a mut Outcome,
}
