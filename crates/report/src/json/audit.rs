//! The JSON lines of `mdfsck audit` that no other command has, as types.

use serde::Serialize;

/// A line of `mdfsck audit`; its first field, `kind`, says which.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum AuditLine {
    Summary(AuditSummary),
}

/// The last line: what was compared. The lines before it are `finding`, `error` and `not_verified`, as of a check.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AuditSummary {
    /// Pages that contradict the log.
    pub(crate) findings: usize,
    /// Pages whose LSN was compared with the records that the log has of them.
    pub(crate) pages_compared: u64,
    /// Pages among these on which the bytes that their last record wrote were found.
    pub(crate) images_compared: u64,
    /// Pages that were last changed before the oldest record of the log.
    pub(crate) pages_older: u64,
    /// Pages in the log's time without a record of their own: written without logging their rows.
    pub(crate) pages_without_records: u64,
    /// The oldest record of the log; null if none could be read.
    pub(crate) from_lsn: Option<String>,
    /// From where recovery redoes: only records before it prove that a write was lost.
    pub(crate) redo_lsn: Option<String>,
    /// The last record of the log.
    pub(crate) to_lsn: Option<String>,
    /// Whether everything could be compared.
    pub(crate) complete: bool,
}
