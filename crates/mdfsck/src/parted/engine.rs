//! A check whose tasks are run by another program. This process makes the plan and merges the parts that the tasks
//! write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jobs::failure::Failure;
use jobs::request::Request;
use jobs::spread::{Merge, Opened, Planned, Spread, What};
use parts::{Folder, PartsError};

use super::plan::{absolute, make};
use crate::one::{Out, check as run_check};

/// A plan whose tasks are run by another program. This process trusts neither the program's output nor its exit status.
/// It uses only the files that the tasks have written as their parts of the result, and only if these files belong to
/// the plan.
pub(crate) struct HandedOut {
    folder: PathBuf,
}

impl HandedOut {
    /// Makes a plan in `folder`. If an earlier attempt at the same check has left its plan in `folder`, uses this plan
    /// instead. Returns `None` if the plan has no tasks. Deletes everything else in `folder`.
    ///
    /// # Errors
    ///
    /// If the plan cannot be made.
    pub(crate) fn make(
        folder: &Path,
        check: &Request,
        what: &What<'_>,
        task_bytes: u64,
    ) -> Result<Option<Self>, Failure> {
        check.paths.iter().try_for_each(|path| absolute(path).map(drop))?;
        let handed = Self { folder: folder.to_owned() };
        if let Ok(opened) = Opened::open(folder)
            && is_of(&opened, check, what)
            && opened.verify_files().is_ok()
        {
            return Ok(Some(handed));
        }
        remove(folder);
        Folder::reserve(folder)?;
        let plan = make(folder, check, what, task_bytes)?;
        if plan.tasks.is_empty() {
            remove(folder);
            return Ok(None);
        }
        Ok(Some(handed))
    }

    /// Whether every task has written its part. If a file is not a valid part of the plan, deletes the file, so that
    /// the task of this part runs again.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn has_all(&self) -> Result<bool, Failure> {
        let opened = Opened::open(&self.folder)?;
        let status = match opened.folder.current(&opened.plan, &opened.rounds) {
            Ok(Some(round)) => round.folder.status(&round.plan),
            Ok(None) => opened.folder.status(&opened.plan),
            Err(error) => Err(error),
        };
        match status {
            Ok(status) => Ok(status.missing.is_empty()),
            Err(error) if self.removes(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Merges the parts, and records the result in the same way as a check. Returns false if another round of tasks is
    /// needed. Another round is needed if a second look, which reads pages again to locate damage, would read more than
    /// `local_limit` bytes. The merge divides such a second look into tasks.
    ///
    /// # Errors
    ///
    /// If a part is missing or incomplete, or the check fails.
    pub(crate) fn merge(&self, check: &Request, what: &What<'_>, local_limit: u64) -> Result<bool, Failure> {
        let opened = Opened::open(&self.folder)?;
        if !is_of(&opened, check, what) {
            let text = "is not the plan that was made for this backup";
            return Err(Failure::unable(format!("{}: {text}", self.folder.display())));
        }
        let gathered = Merge::gather(opened, local_limit, None).inspect_err(|error| _ = self.removes(error));
        // Changes the exit status of a usage error to that of a failed read, since the merge was not started by a
        // user's command.
        let merge = gathered.map_err(Failure::unable)?;
        let (mut sink, mut unwritten) = (io::sink(), None);
        let what = what.with(Spread::Merge(&merge));
        match run_check(check, &what, |_| Ok(Out::Among(&mut sink, &mut unwritten))) {
            Ok(_) => Ok(true),
            Err(failure) if failure.status == Failure::MORE => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Whether the tasks leave out what a ledger has.
    pub(crate) fn uses_ledger(&self) -> bool {
        let ledger = Opened::open(&self.folder).ok().and_then(|opened| opened.plan.options.ledger);
        ledger.is_some_and(|ledger| ledger.left_out.is_some())
    }

    /// Deletes the plan.
    pub(crate) fn remove(self) {
        remove(&self.folder);
    }

    /// If the error says that a file is not a valid part, deletes this file. Returns whether a file was deleted.
    fn removes(&self, error: &PartsError) -> bool {
        let files: &[&PathBuf] = match error {
            PartsError::Twice { one, other, .. } => &[one, other],
            PartsError::PartDamaged { path, .. } | PartsError::Foreign { path, .. } => &[path],
            _ => return false,
        };
        files.iter().all(|path| path.starts_with(&self.folder) && fs::remove_file(path).is_ok())
    }
}

/// Deletes the folder of a plan.
pub(crate) fn remove(folder: &Path) {
    // Deletes plan.json first, since a folder without it does not count as a plan.
    let _ = fs::remove_file(folder.join("plan.json"));
    let _ = fs::remove_dir_all(folder);
}

/// Whether the plan `opened` was made for this check.
fn is_of(opened: &Opened, check: &Request, what: &What<'_>) -> bool {
    let Planned { has_audit, ledger, .. } = opened.plan.options.clone();
    let wanted = Planned { has_audit, ledger, ..Planned::of(check, what) };
    match (serde_json::to_value(&wanted), serde_json::to_value(&opened.plan.options)) {
        (Ok(wanted), Ok(found)) => wanted == found,
        _ => false,
    }
}
