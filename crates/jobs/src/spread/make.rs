//! Makes plans: one task for each range of pages.

use std::path::Path;

use check::change::LeftOut;
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

/// The most pages of a range in which not all pages are swept: 64 MB of maps.
const MOST_PAGES_OF_TASK: u64 = 1 << 25;

/// The ranges into which a plan divides a database.
#[derive(Default)]
pub struct Division {
    /// The range of each task.
    pub tasks: Vec<FileRange>,
    /// Ranges of which no page is swept.
    pub rest: Vec<FileRange>,
    /// The number of pages that the tasks read.
    pub pages_swept: u64,
}

impl Division {
    /// Divides the database into tasks that each read about `pages` pages, or fewer.
    pub fn of(sweeper: &Sweeper<'_, '_>, left_out: Option<&LeftOut>, pages: u64) -> Self {
        let Some(left_out) = left_out else {
            let tasks = sweeper.ranges(pages);
            let pages_swept = tasks.iter().map(|range| u64::from(range.pages)).sum();
            return Self { tasks, rest: Vec::new(), pages_swept };
        };
        let mut division = Self::default();
        for (range, swept) in sweeper.ranges_left(left_out, pages, pages.max(MOST_PAGES_OF_TASK)) {
            division.pages_swept += swept;
            if swept > 0 { &mut division.tasks } else { &mut division.rest }.push(range);
        }
        division
    }

    /// The number of all ranges.
    pub fn count(&self) -> usize {
        self.tasks.len() + self.rest.len()
    }
}

/// Writes the allocation maps that each task needs.
pub fn write_maps(
    folder: &Path,
    plan: &PlanId,
    sweeper: &Sweeper<'_, '_>,
    (division, left_out): (&Division, Option<&LeftOut>),
) -> Result<MapsWriter, Failure> {
    let mut maps = MapsWriter::new(folder)?;
    let failed = |error: SumsError| match error {
        SumsError::Io { error: cause, .. } => PartsError::Unwritable { path: parts::maps_path(folder), cause }.into(),
        error => Failure::unable(error),
    };
    maps.piece(|to| sweeper.write_common(&Piece::Common.bound_to(plan), to).map_err(failed))?;
    for (area, range) in (0..).zip(division.tasks.iter().chain(&division.rest)) {
        let head = Piece::Of(area).bound_to(plan);
        maps.piece(|to| {
            if let Some(left_out) = left_out {
                sweeper.write_ranges(left_out, *range, &head, to).map_err(failed)?;
            }
            sweeper.write_maps(*range, &head, to).map_err(failed)
        })?;
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

/// Makes a plan with one task for each range of the division that has one.
pub fn plan_of(
    id: PlanId,
    options: Planned,
    database: String,
    (files, image): (Vec<SourceFile>, Image),
    division: &Division,
) -> Plan<Planned> {
    let ranges: Vec<FileRange> = division.tasks.iter().chain(&division.rest).copied().collect();
    let mut tasks = Plan::<Planned>::tasks_of(&ranges);
    let rest = tasks.split_off(division.tasks.len());
    Plan { v: VERSION, plan: id, build: BUILD.clone(), database, image, options, files, tasks, rest, round: 0 }
}

/// The number of bytes that a task reads.
pub fn bytes_of(task: &Task) -> u64 {
    u64::from(task.pages) * PAGE_BYTES as u64
}
