//! The output of `mdfsck plan`.

use std::io;

use crate::json::{VERSION, line, parts};

/// A plan that was written.
pub struct PlanView<'a> {
    /// The plan's ID.
    pub plan: &'a str,
    /// The plan's folder.
    pub folder: &'a str,
    /// Name of the database.
    pub database: &'a str,
    /// The number of tasks.
    pub tasks: u32,
    /// Bytes that the tasks read.
    pub bytes: u64,
    /// Bytes that no task reads, because they have not changed since they were checked; `None` if the plan uses no ledger.
    pub left_out: Option<u64>,
}

/// A further round of a plan.
pub struct RoundView<'a> {
    /// Number of the round, from 1.
    pub round: u32,
    /// The number of tasks.
    pub tasks: u32,
    /// The purpose of the tasks of this round.
    pub why: &'a str,
    /// Bytes that the tasks read.
    pub bytes: u64,
}

/// The progress of a plan.
pub struct StatusView<'a> {
    /// The plan's ID.
    pub plan: &'a str,
    /// Name of the database.
    pub database: &'a str,
    /// The first round in which parts are missing, or the newest round if no part is missing. A part is the file with
    /// the results of one task. Round 0 consists of the tasks of the plan itself.
    pub round: u32,
    /// The number of tasks in that round.
    pub tasks: u32,
    /// Number of tasks with a part.
    pub done: u32,
    /// The IDs of the tasks without a part.
    pub missing: &'a [u32],
    /// Total size of the parts, in bytes.
    pub bytes: u64,
    /// Bytes that no task reads, because they have not changed since they were checked; `None` if the plan uses no ledger.
    pub left_out: Option<u64>,
}

/// Writes a plan for people. `folder` is the folder of the plan, quoted for use in a command.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_plan(plan: &PlanView<'_>, folder: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let PlanView { database, tasks, bytes, left_out, .. } = *plan;
    let database = crate::text_table::printable(database);
    match tasks {
        0 if left_out.is_some() => writeln!(out, "{database}: no tasks, because nothing has changed")?,
        0 => writeln!(out, "{database}: no tasks, because no page of a table has to be read")?,
        1 => writeln!(out, "{database}: 1 task (0), which reads {} MB", bytes.div_ceil(1 << 20))?,
        _ => {
            writeln!(out, "{database}: {tasks} tasks (0 to {}), which read {} MB", tasks - 1, bytes.div_ceil(1 << 20))?
        }
    }
    if let Some(left_out) = left_out {
        let megabytes = left_out.div_ceil(1 << 20);
        writeln!(out, "{megabytes} MB are left out, because they have not changed since they were checked")?;
    }
    if tasks > 0 {
        writeln!(out, "mdfsck task {folder} ID     each, in any order, on any machine that has the same paths")?;
    }
    writeln!(out, "mdfsck merge {folder}       then: the results")
}

/// Writes a plan as JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_plan_json(plan: &PlanView<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let PlanView { plan, folder, database, tasks, bytes, left_out } = *plan;
    let made = parts::PlanMade { v: VERSION, plan, folder, database, tasks, bytes, bytes_left_out: left_out };
    line(&parts::PartsLine::Plan(made), out)
}

/// Writes a further round as JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_round_json(round: &RoundView<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let RoundView { round, tasks, why, bytes } = *round;
    line(&parts::PartsLine::Round(parts::Round { v: VERSION, round, tasks, why, bytes }), out)
}

/// Writes the progress of a plan as JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_status_json(status: &StatusView<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let StatusView { plan, database, round, tasks, done, missing, bytes, left_out } = *status;
    line(
        &parts::PartsLine::PlanStatus(parts::PlanStatus {
            v: VERSION,
            plan,
            database,
            round,
            tasks,
            done,
            missing,
            bytes,
            bytes_left_out: left_out,
        }),
        out,
    )
}
