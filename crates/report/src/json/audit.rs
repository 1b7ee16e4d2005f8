//! The JSON lines of `mdfsck audit` that no other command has, as types.

use serde::Serialize;

/// A line of `mdfsck audit`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum AuditLine {
    Summary(AuditSummary),
}

/// The last line: totals of the comparison. The lines before it are `finding`, `error` and `not_verified`, as in a
/// check.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AuditSummary {
    /// Number of pages that contradict the log.
    pub(crate) findings: usize,
    /// Number of pages for which the page LSN was compared with the log records of the page.
    pub(crate) pages_compared: u64,
    /// Number of these pages that contain the bytes written by their last log record.
    pub(crate) images_compared: u64,
    /// Number of pages that were last changed before the oldest record of the log.
    pub(crate) pages_older: u64,
    /// Number of pages that changed in the period covered by the log but have no log record, because their rows were
    /// written without logging.
    pub(crate) pages_without_records: u64,
    /// LSN of the oldest record of the log; null if none could be read.
    pub(crate) from_lsn: Option<String>,
    /// LSN at which the redo of a recovery starts. Only records before this LSN prove that a write was lost.
    pub(crate) redo_lsn: Option<String>,
    /// LSN of the last record of the log.
    pub(crate) to_lsn: Option<String>,
    /// Whether everything in the scope of the audit could be compared.
    pub(crate) complete: bool,
}
