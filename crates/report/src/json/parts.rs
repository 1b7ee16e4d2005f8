//! The JSON lines of `mdfsck plan`, as types.

use serde::Serialize;

/// A line of `mdfsck plan`; its first field, `kind`, says which.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum PartsLine<'a> {
    Plan(PlanMade<'a>),
    PlanStatus(PlanStatus<'a>),
    Round(Round<'a>),
}

/// A plan that was made (`mdfsck plan PATH... --dir PLAN --json`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlanMade<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Id of the plan.
    pub(crate) plan: &'a str,
    /// Its folder.
    pub(crate) folder: &'a str,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// How many tasks it has; their ids count from 0.
    pub(crate) tasks: u32,
    /// Bytes that the tasks read.
    pub(crate) bytes: u64,
}

/// How far a plan is (`mdfsck plan --status PLAN`), by the names and heads of its parts: only `merge` reads them to their end.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlanStatus<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Id of the plan.
    pub(crate) plan: &'a str,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Its first round with missing parts, or else its newest; 0 is that of its own tasks.
    pub(crate) round: u32,
    /// How many tasks that has.
    pub(crate) tasks: u32,
    /// Tasks that have a part.
    pub(crate) done: u32,
    /// Tasks that have none.
    pub(crate) missing: &'a [u32],
    /// Bytes of the parts.
    pub(crate) bytes: u64,
}

/// There are tasks to carry out before there are results (`mdfsck merge PLAN`, exit status 32).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Round<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Number of the round, from 1 on.
    pub(crate) round: u32,
    /// How many tasks it has; their ids count from 0.
    pub(crate) tasks: u32,
    /// What they look for.
    pub(crate) why: &'a str,
    /// Bytes that the tasks read.
    pub(crate) bytes: u64,
}
