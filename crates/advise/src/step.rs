//! A plan, and its steps.

use std::collections::BTreeSet;

use findings::Pattern;
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
    /// Run DBCC with REPAIR_ALLOW_DATA_LOSS.
    RepairAllowDataLoss,
}

impl Action {
    /// The name in JSON.
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
    /// The object, by schema and name; `None` if the step concerns several objects.
    pub object: Option<String>,
    /// The index that the step concerns.
    pub index: Option<String>,
    /// Pages that the step repairs, in ascending order.
    pub pages: Vec<PageId>,
    /// The backup files that the step needs, in the order of use.
    pub from: Vec<String>,
    /// The LSN up to which the backups have the log.
    pub lsn: Option<Lsn>,
    /// The reason why the step helps.
    pub reason: String,
    /// The risk and cost of the step.
    pub risk: String,
    /// Data that the step cannot recover.
    pub cannot_restore: Option<String>,
    /// A sentence about the evidence for the reason that this check itself has read; `None` if there is no such
    /// evidence.
    pub proven: Option<String>,
    /// Assumptions for which backup labels are the only evidence.
    pub by_labels: Option<String>,
    /// Statements and comments, one per list entry. mdfsck never runs them.
    pub sql: Vec<String>,
    /// The mdfsck command to run for this step.
    pub command: Option<String>,
    /// IDs of the findings or limits that are the reason for this step.
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

/// Rows that are lost with pages of a table, unless a backup has them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LossSummary {
    /// The table, by schema and name.
    pub object: String,
    /// The pages with the lost rows.
    pub pages: Vec<PageId>,
    /// The minimum number of lost rows.
    pub least_rows: u64,
    /// The maximum number of lost rows; `None` if nothing limits it.
    pub most_rows: Option<u64>,
    /// The lower limit of the keys of the lost rows, inclusive or exclusive; `None` for a heap, or if no key limits
    /// them.
    pub first_key: Option<String>,
    /// The upper limit of the keys of the lost rows, inclusive or exclusive.
    pub last_key: Option<String>,
    /// A description of the lost rows.
    pub which: String,
    /// Columns of the lost rows that nonclustered indexes still have, each with the name of the index.
    pub recoverable: Vec<(String, String)>,
}

/// The state of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Situation {
    /// Nothing is wrong, and everything was verified.
    Sound,
    /// Nothing was found, but not everything could be verified.
    Unverified,
    /// The database was not shut down cleanly, and its log is missing or cannot be used.
    NotRecovered,
    /// Something is damaged, but no row is lost.
    NoLoss,
    /// Data is damaged, and the given backups have sound copies of it.
    InBackup,
    /// Data is damaged, and no given backup has sound copies of it.
    Loss,
    /// The input is a damaged backup.
    OfBackup,
}

impl Situation {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Unverified => "unverified",
            Self::NotRecovered => "not_recovered",
            Self::NoLoss => "no_loss",
            Self::InBackup => "in_backup",
            Self::Loss => "loss",
            Self::OfBackup => "of_backup",
        }
    }
}

/// The steps to recover, in order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The state of the database.
    pub situation: Situation,
    /// The state in one sentence.
    pub sentence: String,
    /// What the damaged pages have in common.
    pub patterns: Vec<Pattern>,
    /// The steps, cheapest first.
    pub steps: Vec<Step>,
    /// The rows that are lost, unless another source contains them.
    pub losses: Vec<LossSummary>,
    /// Backups that were examined and cannot be used: their files, and the reason.
    pub rejected: Vec<(String, String)>,
}

/// A clause about the number of damaged pages, such as `2 pages are damaged`. Damage without pages is in the data or in
/// the catalog.
pub(crate) fn counted_pages(pages: usize) -> String {
    match pages {
        0 => "data or catalog are damaged".to_owned(),
        1 => "1 page is damaged".to_owned(),
        pages => format!("{pages} pages are damaged"),
    }
}
