//! The JSON lines of `mdfsck plan`, as types.

use serde::Serialize;

/// A line of `mdfsck plan`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum PartsLine<'a> {
    Plan(PlanMade<'a>),
    PlanStatus(PlanStatus<'a>),
    Round(Round<'a>),
}

/// A new plan (`mdfsck plan PATH... --dir PLAN --json`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlanMade<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Id of the plan.
    pub(crate) plan: &'a str,
    /// Folder of the plan.
    pub(crate) folder: &'a str,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Number of tasks; task ids count from 0.
    pub(crate) tasks: u32,
    /// Bytes that the tasks read.
    pub(crate) bytes: u64,
    /// Bytes that no task reads, because they have not changed since they were checked (`--history`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_left_out: Option<u64>,
}

/// Progress of a plan (`mdfsck plan --status PLAN`). A part is the file with the results of one task. The progress is
/// determined from the names and headers of the parts. Only `merge` reads whole parts.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlanStatus<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Id of the plan.
    pub(crate) plan: &'a str,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The first round in which parts are missing, otherwise the newest round. Round 0 consists of the tasks of the
    /// plan itself.
    pub(crate) round: u32,
    /// Number of tasks in this round.
    pub(crate) tasks: u32,
    /// Number of tasks that have a part.
    pub(crate) done: u32,
    /// Ids of the tasks that have no part.
    pub(crate) missing: &'a [u32],
    /// Total size of the parts, in bytes.
    pub(crate) bytes: u64,
    /// Bytes that no task of round 0 reads, because they have not changed since they were checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_left_out: Option<u64>,
}

/// A further round of tasks, which must run before `merge` can report results (`mdfsck merge PLAN`, exit status 32).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Round<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Number of the round, from 1.
    pub(crate) round: u32,
    /// Number of tasks; task ids count from 0.
    pub(crate) tasks: u32,
    /// The purpose of the tasks.
    pub(crate) why: &'a str,
    /// Bytes that the tasks read.
    pub(crate) bytes: u64,
}
