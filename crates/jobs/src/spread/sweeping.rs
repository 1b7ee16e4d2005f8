//! Sweeps the ranges of a plan.

use std::path::PathBuf;

use check::part::{Done, PartError, SumsError, Sweeper};
use parts::{PartsError, Task};

use super::Opened;
use crate::failure::Failure;

/// Sweeps the range of a task and writes its part. The sweeper must have the allocation maps of the range.
pub fn sweep(
    opened: &Opened,
    sweeper: &mut Sweeper<'_, '_>,
    task: &Task,
    listener: &dyn check::Progress,
) -> Result<Done, Failure> {
    let path = opened.folder.part_path(&opened.plan, task);
    opened.folder.write(&opened.plan, task, |bound_to, to| {
        let done = sweeper.sweep(task.range(), bound_to, listener, to).map_err(|error| failed(path, error))?;
        // If a file was written to during the sweep, the part would mix two states of the file.
        opened.verify_files()?;
        Ok::<_, Failure>(done)
    })
}

/// The failure for a part at `path` that could not be written.
pub fn failed(path: PathBuf, error: PartError) -> Failure {
    match error {
        PartError::Sums(SumsError::Io { error: cause, .. }) => PartsError::Unwritable { path, cause }.into(),
        error => Failure::unable(error),
    }
}
