//! A step of a plan.

use std::collections::BTreeSet;

use format::{Lsn, PageId};

/// The kind of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    /// Look at something before anything is changed.
    Inspect,
    /// DBCC UPDATEUSAGE.
    UpdateUsage,
    /// Disable and rebuild a nonclustered index.
    RebuildIndex,
    /// Correct rows with UPDATE.
    UpdateRows,
    /// Rebuild a table from its own rows.
    RebuildTable,
    /// Restore pages.
    RestorePages,
    /// Restore a file.
    RestoreFile,
    /// Restore the database.
    RestoreDatabase,
    /// Save rows with `mdfsck export`.
    Export,
    /// Run REPAIR_ALLOW_DATA_LOSS.
    RepairAllowDataLoss,
}

impl Action {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inspect => "inspect",
            Self::UpdateUsage => "update_usage",
            Self::RebuildIndex => "rebuild_index",
            Self::UpdateRows => "update_rows",
            Self::RebuildTable => "rebuild_table",
            Self::RestorePages => "restore_pages",
            Self::RestoreFile => "restore_file",
            Self::RestoreDatabase => "restore_database",
            Self::Export => "export",
            Self::RepairAllowDataLoss => "repair_allow_data_loss",
        }
    }
}

/// A step of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The kind of the step.
    pub action: Action,
    /// The title: `Rebuild the index IX_Orders_Date of dbo.Orders`.
    pub title: String,
    /// The object, by schema and name; `None` if the step is about several.
    pub object: Option<String>,
    /// The index.
    pub index: Option<String>,
    /// Pages that the step repairs, ascending.
    pub pages: Vec<PageId>,
    /// The backup files that the step needs, in the order in which it uses them.
    pub from: Vec<String>,
    /// The LSN that the backups reach.
    pub lsn: Option<Lsn>,
    /// Why the step helps.
    pub reason: String,
    /// Its risk and cost.
    pub risk: String,
    /// Data that the step cannot bring back.
    pub cannot_restore: Option<String>,
    /// The reads of this check that prove the reason.
    pub proven: Option<String>,
    /// Assumptions that only backup labels support.
    pub by_labels: Option<String>,
    /// Statements, one text per statement or comment; never run by mdfsck.
    pub sql: Vec<String>,
    /// A command of mdfsck for this step.
    pub command: Option<String>,
    /// IDs of the findings, or limits, that require this step.
    pub rests_on: BTreeSet<&'static str>,
}

impl Step {
    /// A step without statements.
    pub(crate) fn new(action: Action, title: impl Into<String>) -> Self {
        Self {
            action,
            title: title.into(),
            object: None,
            index: None,
            pages: Vec::new(),
            from: Vec::new(),
            lsn: None,
            reason: String::new(),
            risk: String::new(),
            cannot_restore: None,
            proven: None,
            by_labels: None,
            sql: Vec::new(),
            command: None,
            rests_on: BTreeSet::new(),
        }
    }
}

/// The rows lost with pages of a table, if no backup has them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LossSummary {
    /// The table, by schema and name.
    pub object: String,
    /// The pages.
    pub pages: Vec<PageId>,
    /// The least number of rows that were on them.
    pub least_rows: u64,
    /// The greatest number of rows; `None` if nothing limits it.
    pub most_rows: Option<u64>,
    /// The key after which, or with which, the lost rows begin; `None` for a heap, or if no key limits them.
    pub first_key: Option<String>,
    /// The key before which, or with which, the lost rows end.
    pub last_key: Option<String>,
    /// A description of the lost rows.
    pub which: String,
    /// Columns of the lost rows that other indexes have: column, index.
    pub recoverable: Vec<(String, String)>,
}
