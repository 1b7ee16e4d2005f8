//! The results that checks produce when their sums are compared after the sweep.

use findings::{Beyond, Coverage};

use crate::basis::ledger::FindingCollector;

/// Results of checks other than findings and limits.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Rows whose columns were checked.
    pub(crate) rows_checked: u64,
    /// Values that were verified in the rows that [`Self::rows_checked`] counts.
    pub(crate) column_values_checked: u64,
    /// Values that were not verified in the rows that [`Self::rows_checked`] counts.
    pub(crate) column_values_not_verified: u64,
    /// Nonclustered indexes in scope.
    pub(crate) indexes_in_scope: u64,
    /// Indexes whose rows were compared with those of their table.
    pub(crate) indexes_compared: u64,
    /// Rows of the compared indexes.
    pub(crate) index_rows_compared: u64,
    /// Results about constraints and identity columns.
    pub(crate) beyond: Beyond,
}

/// The collections to which checks add their results.
pub(crate) struct Results<'a> {
    pub(crate) findings: &'a mut FindingCollector,
    pub(crate) coverage: &'a mut Coverage,
    pub(crate) outcome: &'a mut Outcome,
}
