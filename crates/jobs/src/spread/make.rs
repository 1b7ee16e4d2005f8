//! Makes plans: one task for each range of pages.

use std::path::Path;

use check::part::{SumsError, Sweeper};
use findings::FileRange;
use format::page::PAGE_BYTES;
use parts::{Image, MapsWriter, PartsError, Piece, Plan, PlanId, SourceFile, Task, VERSION};

use super::Planned;
use crate::failure::Failure;
use crate::size;
use crate::version::BUILD;

/// Maximum number of tasks of a plan. No scheduler can make use of more tasks.
pub const MOST_TASKS: usize = 100_000;

/// Writes the allocation maps that each task needs.
pub fn write_maps(
    folder: &Path,
    plan: &PlanId,
    sweeper: &Sweeper<'_, '_>,
    ranges: &[FileRange],
) -> Result<MapsWriter, Failure> {
    let mut maps = MapsWriter::new(folder)?;
    let failed = |error: SumsError| match error {
        SumsError::Io { error: cause, .. } => PartsError::Unwritable { path: parts::maps_path(folder), cause }.into(),
        error => Failure::unable(error),
    };
    maps.piece(|to| sweeper.write_common(&Piece::Common.bound_to(plan), to).map_err(failed))?;
    for (task, range) in (0..).zip(ranges) {
        maps.piece(|to| sweeper.write_maps(*range, &Piece::Of(task).bound_to(plan), to).map_err(failed))?;
    }
    refuse_lost(sweeper)?;
    Ok(maps)
}

/// Refuses to make a plan from maps that may be incomplete.
///
/// # Errors
/// If a temporary file could not be written or read.
pub fn refuse_lost(sweeper: &Sweeper<'_, '_>) -> Result<(), Failure> {
    sweeper.lost().map_or(Ok(()), |error| Err(Failure::unable(error)))
}

/// Refuses a plan that has too many tasks.
///
/// # Errors
/// If there are more than [`MOST_TASKS`] tasks.
pub fn refuse_many(option: &str, bytes: u64, tasks: usize) -> Result<(), Failure> {
    if tasks <= MOST_TASKS {
        return Ok(());
    }
    let size = size::text(bytes);
    Err(Failure::usage(format!(
        "{option} {size}: this size gives {tasks} tasks, and a plan can have at most {MOST_TASKS}; use a larger size"
    )))
}

/// Makes a plan with one task for each range.
pub fn plan_of(
    id: PlanId,
    options: Planned,
    database: String,
    (files, image): (Vec<SourceFile>, Image),
    ranges: &[FileRange],
) -> Plan<Planned> {
    let tasks = Plan::<Planned>::tasks_of(ranges);
    Plan { v: VERSION, plan: id, build: BUILD.clone(), database, image, options, files, tasks, round: 0 }
}

/// The number of bytes that a task reads.
pub fn bytes_of(task: &Task) -> u64 {
    u64::from(task.pages) * PAGE_BYTES as u64
}
