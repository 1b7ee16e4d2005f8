//! A step of a plan.

use std::collections::BTreeSet;

use format::{Lsn, PageId};

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    /// Something is to be looked at before anything is changed.
    Inspect,
    /// DBCC UPDATEUSAGE.
    UpdateUsage,
    /// A nonclustered index is disabled and rebuilt.
    RebuildIndex,
    /// Rows are corrected with UPDATE.
    UpdateRows,
    /// A table is rebuilt from its own rows.
    RebuildTable,
    /// Pages are restored.
    RestorePages,
    /// A file is restored.
    RestoreFile,
    /// The database is restored.
    RestoreDatabase,
    /// Rows are saved with `mdfsck export`.
    Export,
    /// REPAIR_ALLOW_DATA_LOSS.
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

/// A step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// What it does, in a few words: `Rebuild the index IX_Orders_Date of dbo.Orders`.
    pub title: String,
    /// The object, by schema and name; `None` if it is about more than one.
    pub object: Option<String>,
    /// The index.
    pub index: Option<String>,
    /// Pages that it puts right, ascending.
    pub pages: Vec<PageId>,
    /// The backup files that it needs, in the order of their use.
    pub from: Vec<String>,
    /// How far the backups reach.
    pub lsn: Option<Lsn>,
    /// Why it helps.
    pub reason: String,
    /// What can go wrong, and what it costs.
    pub risk: String,
    /// What it cannot bring back.
    pub cannot_restore: Option<String>,
    /// What was read that proves it.
    pub proven: Option<String>,
    /// What it rests on that only labels of backups say.
    pub by_labels: Option<String>,
    /// Statements, one text per statement or comment; never run by mdfsck.
    pub sql: Vec<String>,
    /// A command of mdfsck.
    pub command: Option<String>,
    /// Ids of the findings, or limits, that it rests on.
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

/// What is lost with pages of a table, if no backup has them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LossSummary {
    /// The table, by schema and name.
    pub object: String,
    /// The pages.
    pub pages: Vec<PageId>,
    /// The least number of rows that were on them.
    pub least_rows: u64,
    /// The greatest number; `None` if nothing limits it.
    pub most_rows: Option<u64>,
    /// The key after which, or with which, the lost rows begin; `None` for a heap, or the first key there may be.
    pub first_key: Option<String>,
    /// The key before which, or with which, they end.
    pub last_key: Option<String>,
    /// In words, what is known of which rows they are.
    pub which: String,
    /// Columns of the lost rows that other indexes have: column, index.
    pub recoverable: Vec<(String, String)>,
}
