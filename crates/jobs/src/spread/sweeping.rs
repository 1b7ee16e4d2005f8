//! Sweeps the ranges of a plan.

use std::io::Read;
use std::path::PathBuf;

use check::part::{Done, PartError, SumsError, Sweeper, read_ranges_left};
use findings::FileRange;
use parts::{PartsError, Piece, Task};

use super::Opened;
use super::ledger::PlannedLedger;
use crate::failure::Failure;

/// Sweeps the range of a task and writes its part. The sweeper must have the allocation maps of the range.
pub fn sweep(
    opened: &Opened,
    sweeper: &mut Sweeper<'_, '_>,
    task: &Task,
    listener: &dyn check::Progress,
) -> Result<Done, Failure> {
    let path = opened.folder.part_path(&opened.plan, task);
    let ledger =
        opened.plan.options.ledger.as_ref().map(|ledger| Ok::<_, Failure>((ledger.range_pages, swept(opened, task)?)));
    let ledger = ledger.transpose()?;
    opened.folder.write(&opened.plan, task, |bound_to, to| {
        let range = task.range();
        let done = match &ledger {
            None => sweeper.sweep(range, bound_to, listener, to),
            Some((pages, ranges)) => sweeper.sweep_ranges((range, ranges, *pages), bound_to, listener, to),
        };
        let done = done.map_err(|error| failed(path, error))?;
        // If a file was written to during the sweep, the part would mix two states of the file.
        opened.verify_files()?;
        Ok::<_, Failure>(done)
    })
}

/// Reads the allocation maps of a range from the plan.
pub fn read_maps(opened: &Opened, sweeper: &mut Sweeper<'_, '_>, area: &Task) -> Result<(), Failure> {
    let piece = Piece::Of(area.id);
    let head = piece.bound_to(&opened.plan.plan);
    let mut from = opened.folder.maps(&opened.plan, piece)?;
    let left_out = read_swept(opened, area, (&head, &mut from));
    let read = left_out.and_then(|_| sweeper.read_maps(area.range(), &head, &mut from));
    read.map_err(|error| PartsError::of_maps(&opened.folder.maps_path(), error).into())
}

/// The ranges that a task of the plan sweeps.
pub fn swept(opened: &Opened, task: &Task) -> Result<Vec<FileRange>, Failure> {
    if opened.plan.options.ledger.as_ref().is_none_or(|ledger| ledger.left_out.is_none()) {
        return Ok(vec![task.range()]);
    }
    let piece = Piece::Of(task.id);
    let mut from = opened.folder.maps(&opened.plan, piece)?;
    let read = read_swept(opened, task, (&piece.bound_to(&opened.plan.plan), &mut from));
    read.map_err(|error| PartsError::of_maps(&opened.folder.maps_path(), error).into())
}

/// Reads which ranges of a piece of the maps are swept; they are at its start, if a plan leaves out some.
fn read_swept(opened: &Opened, area: &Task, (head, from): (&[u8], &mut dyn Read)) -> Result<Vec<FileRange>, SumsError> {
    let ledger = opened.plan.options.ledger.as_ref().filter(|ledger| ledger.left_out.is_some());
    let read =
        |ledger: &PlannedLedger| read_ranges_left(opened.folder.key(), (area.range(), ledger.range_pages), head, from);
    ledger.map_or_else(|| Ok(Vec::new()), read)
}

/// The failure for a part at `path` that could not be written.
pub fn failed(path: PathBuf, error: PartError) -> Failure {
    match error {
        PartError::Sums(SumsError::Io { error: cause, .. }) => PartsError::Unwritable { path, cause }.into(),
        error => Failure::unable(error),
    }
}
