//! The JSON lines of `mdfsck advise`, as types.

use serde::Serialize;

/// A line of `mdfsck advise`; its first field, `kind`, says which.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum AdviceLine<'a> {
    Step(AdviceStep<'a>),
    Loss(AdviceLoss<'a>),
    Rejected(RejectedBackup<'a>),
    Summary(AdviceSummary<'a>),
}

/// One step of the plan, in the order in which the steps are to be taken (`mdfsck advise`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AdviceStep<'a> {
    /// Its number, from 1.
    pub(crate) n: usize,
    /// What it does: `inspect`, `update_usage`, `rebuild_index`, `update_rows`, `rebuild_table`, `restore_pages`, `restore_file`,
    /// `restore_database`, `export` or `repair_allow_data_loss`.
    pub(crate) action: &'static str,
    /// The same in a few words.
    pub(crate) title: &'a str,
    /// The object, with its schema; null if it is about more than one.
    pub(crate) object: Option<&'a str>,
    /// The index.
    pub(crate) index: Option<&'a str>,
    /// The pages that it puts right, as `1:57`.
    pub(crate) pages: Vec<String>,
    /// The backup files that it needs, in the order of their use.
    pub(crate) from: &'a [String],
    /// How far the log of these backups goes.
    pub(crate) lsn: Option<String>,
    /// Why it helps, and what that rests on.
    pub(crate) reason: &'a str,
    /// What can go wrong, and what it costs.
    pub(crate) risk: &'a str,
    /// What it cannot bring back.
    pub(crate) cannot_restore: Option<&'a str>,
    /// What was read that proves it; null if nothing was read for it.
    pub(crate) proven: Option<&'a str>,
    /// What it rests on that only the labels of backups say.
    pub(crate) by_labels: Option<&'a str>,
    /// Statements to review; they are never run.
    pub(crate) sql: &'a [String],
    /// A command of mdfsck that belongs to it.
    pub(crate) command: Option<&'a str>,
    /// Ids of the findings, or of the limits, that it rests on.
    pub(crate) findings: Vec<&'static str>,
}

/// What is lost with pages of a table, if no backup has them (`mdfsck advise`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AdviceLoss<'a> {
    /// The table, with its schema.
    pub(crate) object: &'a str,
    /// The pages, side by side in the order of the rows on them.
    pub(crate) pages: Vec<String>,
    /// The least number of rows that are lost.
    pub(crate) rows: u64,
    /// The greatest number of rows that are lost; null if nothing limits it.
    pub(crate) most_rows: Option<u64>,
    /// The key that the lost rows follow, or begin with; null for a heap, or if there is none.
    pub(crate) first_key: Option<&'a str>,
    /// The key that the lost rows end before, or with.
    pub(crate) last_key: Option<&'a str>,
    /// Which rows, in words.
    pub(crate) which: &'a str,
    /// Columns of these rows that nonclustered indexes still have.
    pub(crate) columns_recoverable: Vec<RecoverableColumn<'a>>,
}

/// A column of lost rows that an index still has.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RecoverableColumn<'a> {
    /// The column.
    pub(crate) column: &'a str,
    /// The index.
    pub(crate) index: &'a str,
}

/// A backup that was looked at and cannot replace the pages (`mdfsck advise`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RejectedBackup<'a> {
    /// Its files.
    pub(crate) set: &'a str,
    /// Why.
    pub(crate) reason: &'a str,
}

/// The last line (`mdfsck advise`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AdviceSummary<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// The database.
    pub(crate) database: &'a str,
    /// `sound`, `unverified`, `no_loss`, `in_backup`, `loss` or `of_backup`.
    pub(crate) situation: &'static str,
    /// The same in one sentence.
    pub(crate) sentence: &'a str,
    /// How many steps there are.
    pub(crate) steps: usize,
    /// Findings of the check.
    pub(crate) findings: usize,
    /// Whether the check was complete.
    pub(crate) complete: bool,
}
