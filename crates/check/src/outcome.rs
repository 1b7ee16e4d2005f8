//! What checks come to when they are settled.

use crate::beyond::Beyond;
use crate::coverage::Coverage;
use crate::ledger::FindingCollector;

/// What checks report besides findings and what is not verified.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Rows whose columns were checked.
    pub(crate) rows_checked: u64,
    /// Values in them that were verified.
    pub(crate) column_values_checked: u64,
    /// Values in them that were not.
    pub(crate) column_values_not_verified: u64,
    /// Nonclustered indexes that the run covers.
    pub(crate) indexes_in_scope: u64,
    /// Those that were compared with their table.
    pub(crate) indexes_compared: u64,
    /// Their rows.
    pub(crate) index_rows_compared: u64,
    /// Constraints and identity columns.
    pub(crate) beyond: Beyond,
}

/// Where results go.
pub(crate) struct Results<'a> {
    pub(crate) findings: &'a mut FindingCollector,
    pub(crate) coverage: &'a mut Coverage,
    pub(crate) outcome: &'a mut Outcome,
}
