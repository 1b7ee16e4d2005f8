//! The JSON lines of `mdfsck advise`, as types.

use serde::Serialize;

use super::lines::Pattern;

/// A line of `mdfsck advise`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum AdviceLine<'a> {
    Pattern(Box<Pattern>),
    Step(AdviceStep<'a>),
    Loss(AdviceLoss<'a>),
    Rejected(RejectedBackup<'a>),
    Summary(AdviceSummary<'a>),
}

/// One step of the plan (`mdfsck advise`). The steps are listed in the order in which to take them.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AdviceStep<'a> {
    /// Number of the step, from 1.
    pub(crate) n: usize,
    /// The action: `inspect`, `update_usage`, `rebuild_index`, `update_rows`, `rebuild_table`, `restore_pages`,
    /// `restore_file`, `restore_database`, `export` or `repair_allow_data_loss`.
    pub(crate) action: &'static str,
    /// The step in a few words.
    pub(crate) title: &'a str,
    /// The object, with its schema; null if the step is about several objects.
    pub(crate) object: Option<&'a str>,
    /// The index that the step is about.
    pub(crate) index: Option<&'a str>,
    /// The pages that the step repairs, such as `1:57`.
    pub(crate) pages: Vec<String>,
    /// The backup files that the step needs, in the order of their use.
    pub(crate) from: &'a [String],
    /// The last LSN in the log of the backups in `from`.
    pub(crate) lsn: Option<String>,
    /// Why the step helps, and the assumptions on which this depends.
    pub(crate) reason: &'a str,
    /// What can go wrong, and what the step costs.
    pub(crate) risk: &'a str,
    /// Data that the step cannot restore.
    pub(crate) cannot_restore: Option<&'a str>,
    /// The evidence for `reason` that mdfsck itself read, as text, such as `These rows were read in this check.`; null
    /// if there is no such evidence.
    pub(crate) proven: Option<&'a str>,
    /// Assumptions of the step for which backup labels are the only evidence.
    pub(crate) by_labels: Option<&'a str>,
    /// SQL statements to review; mdfsck never runs them.
    pub(crate) sql: &'a [String],
    /// A command of mdfsck for this step.
    pub(crate) command: Option<&'a str>,
    /// Ids of the findings or limits that are the reason for the step.
    pub(crate) findings: Vec<&'static str>,
}

/// The rows that are lost with pages of a table if no backup contains the pages (`mdfsck advise`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AdviceLoss<'a> {
    /// The table, with its schema.
    pub(crate) object: &'a str,
    /// The lost pages, which are next to each other in the order of the table's rows.
    pub(crate) pages: Vec<String>,
    /// Minimum number of lost rows.
    pub(crate) rows: u64,
    /// Maximum number of lost rows; null if there is no upper bound.
    pub(crate) most_rows: Option<u64>,
    /// Lower bound for the keys of the lost rows. A lost row may have exactly this key. Null for a heap, or if there is
    /// no lower bound.
    pub(crate) first_key: Option<&'a str>,
    /// Upper bound for the keys of the lost rows. A lost row may have exactly this key. Null for a heap, or if there is
    /// no upper bound.
    pub(crate) last_key: Option<&'a str>,
    /// A description of the lost rows.
    pub(crate) which: &'a str,
    /// Columns of the lost rows that nonclustered indexes still contain.
    pub(crate) columns_recoverable: Vec<RecoverableColumn<'a>>,
}

/// A column of lost rows that a nonclustered index still contains.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RecoverableColumn<'a> {
    /// Name of the column.
    pub(crate) column: &'a str,
    /// Name of the nonclustered index.
    pub(crate) index: &'a str,
}

/// A backup that was examined and cannot replace the pages (`mdfsck advise`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RejectedBackup<'a> {
    /// The files of the backup.
    pub(crate) set: &'a str,
    /// Why the backup cannot replace the pages.
    pub(crate) reason: &'a str,
}

/// The last line of `mdfsck advise`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AdviceSummary<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The situation: `sound`, `unverified`, `not_recovered`, `no_loss`, `in_backup`, `loss` or `of_backup`.
    pub(crate) situation: &'static str,
    /// A sentence about the situation.
    pub(crate) sentence: &'a str,
    /// Number of steps.
    pub(crate) steps: usize,
    /// Number of findings of the check.
    pub(crate) findings: usize,
    /// Whether the check was complete.
    pub(crate) complete: bool,
}
