//! The plans of windows, which are stored in a folder next to the history.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use check::part::Sweeper;
use findings::FileRange;
use format::page::PAGE_BYTES;
use parts::{Folder, Image, PlanId, SourceFile, Task, new_key};
use source::storage;
use tempfile::TempDir;

use super::{Subject, Sweep};
use crate::failure::Failure;
use crate::host::warn;
use crate::keep::parts_beside;
use crate::request::Request;
use crate::spread::evidence::Evidence;
use crate::spread::make::{Division, plan_of, refuse_lost, refuse_many};
use crate::spread::{Common, Opened, Planned, What};
use crate::version::BUILD;

/// The age after which an unused plan for objects in object storage is deleted. mdfsck does not look up whether the
/// objects still exist, so it decides by the age of the plan.
const ABANDONED: Duration = Duration::from_secs(92 * 86_400);

/// The plan of an earlier window, if there is one, and the folder in which to store a plan.
pub(crate) struct Stored {
    /// The folder for the plan of this check; `None` without a history.
    pub(super) path: Option<PathBuf>,
    /// The plan of an earlier window, if one was found.
    pub(super) opened: Option<Opened>,
    /// The hash key and the audit for a new plan. They are used if there is no plan of an earlier window.
    fresh: Common,
}

impl Stored {
    /// Looks for the plan of an earlier window with the same paths and options. Ignores the plan if `is_again`. Deletes
    /// nothing, since another process may be using the plan.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn find(
        history: Option<&Path>,
        request: &Request,
        what: &What<'_>,
        is_again: bool,
    ) -> Result<Self, Failure> {
        let fresh = Common { key: new_key()?, audit: None };
        let path = history.and_then(|history| Some(plan_folder(history, &kept_paths(request, what)?)));
        let opened = path.as_deref().filter(|path| !is_again && is_of_window(path)).and_then(|path| {
            let Ok(opened) = Opened::open(path) else {
                note("the plan of earlier windows was made by another build of mdfsck, or is damaged");
                return None;
            };
            // Tests first whether the files have changed. If they have, the data in them is a new image, and the stored
            // result of the comparison with the log may be out of date.
            let why = opened.changed_file();
            why.iter().for_each(|why| note(why));
            why.is_none().then_some(opened)
        });
        Ok(Self { path, opened, fresh })
    }

    /// The hash key and the audit. All windows that use the plan share them.
    pub(crate) fn common(&self) -> &Common {
        self.opened.as_ref().map_or(&self.fresh, |opened| &opened.common)
    }
}

/// The options of the check, with absolute paths; `None` if a path cannot be stored in a plan.
pub(super) fn kept_paths(request: &Request, what: &What<'_>) -> Option<Planned> {
    let absolute = |path: &PathBuf| match storage::url(path) {
        Some(_) => Some(path.clone()),
        None if path.as_os_str() == "-" => None,
        None => std::path::absolute(path).ok().filter(|path| path.to_str().is_some()),
    };
    let paths = request.paths.iter().filter_map(absolute).collect::<Vec<_>>();
    (paths.len() == request.paths.len()).then(|| Planned { paths, ..Planned::of(request, what) })
}

/// The folder for a plan. Its name is a hash of the options.
fn plan_folder(history: &Path, planned: &Planned) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(planned).unwrap_or_default().hash(&mut hasher);
    parts_beside(history).join(format!("{:016x}", hasher.finish()))
}

/// Whether the path is a folder whose name has the form that a window uses. A symbolic link to a folder is not
/// accepted.
fn is_of_window(path: &Path) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 16 && name.bytes().all(is_digit) && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Deletes the plan of a window. Never deletes any other folder.
pub(super) fn remove(path: &Path) {
    if !is_of_window(path) {
        return;
    }
    // Deletes plan.json first, since a folder without it does not count as a plan.
    let _ = fs::remove_file(path.join("plan.json"));
    let _ = fs::remove_dir_all(path);
}

/// Deletes the stored plans of `history` that no window can use again, for example because their files have changed.
/// Keeps plans of other builds of mdfsck, since a process of another build may be using them. Returns the IDs of the
/// remaining plans; `None` if some of these IDs are unknown.
pub(super) fn remove_stale(history: &Path) -> Option<BTreeSet<String>> {
    let mut left = Some(BTreeSet::new());
    for entry in fs::read_dir(parts_beside(history)).into_iter().flatten().flatten() {
        let path = entry.path();
        if !is_of_window(&path) {
            continue;
        }
        match Folder::open::<Planned>(&path, &BUILD) {
            Ok((_, plan, _)) if plan.options.evidence.as_ref().is_some_and(|of| is_useless(&path, of)) => remove(&path),
            Ok((_, plan, _)) => _ = left.as_mut().map(|left| left.insert(plan.plan.as_str().to_owned())),
            Err(_) => left = None,
        }
    }
    left
}

/// Whether no window will use a plan again.
fn is_useless(path: &Path, evidence: &Evidence) -> bool {
    let last = || fs::metadata(path).and_then(|found| found.modified());
    let is_abandoned = || last().is_ok_and(|at| at.elapsed().is_ok_and(|since| since > ABANDONED));
    evidence.is_stale() || (evidence.is_of_objects() && is_abandoned())
}

/// Reports why this window cannot continue the earlier image and begins a new one.
pub(super) fn note(why: &str) {
    warn(format!(
        "window: {why}. So this window begins a new image and reads all ranges again; the dates of earlier reads remain"
    ));
}

/// The contents of a new plan.
pub(super) struct NewPlan<'n> {
    pub(super) planned: Planned,
    pub(super) evidence: Option<Evidence>,
    pub(super) files: Vec<SourceFile>,
    pub(super) key: &'n sums::HashKey,
    /// The folder in which to store the plan for the next window; `None` if the plan is not kept.
    pub(super) place: Option<&'n Path>,
}

impl NewPlan<'_> {
    /// Returns the earlier plan if the allocation maps have not changed since it was made, otherwise a new plan. If the
    /// folder of the plan is temporary, also returns the folder.
    pub(super) fn plan(
        &self,
        sweep: &Sweep<'_>,
        sweeper: &Sweeper<'_, '_>,
        former: Option<Opened>,
    ) -> Result<(Opened, Option<TempDir>), Failure> {
        if let Some(former) = former {
            let ranges: Vec<FileRange> = former.plan.tasks.iter().map(Task::range).collect();
            if former.verify_maps(sweeper.fingerprint).is_ok() && sweeper.tile(&ranges).is_ok() {
                return Ok((former, None));
            }
            note("its allocation maps have changed");
        }
        let Subject { request, prepared, .. } = *sweep.subject;
        let bytes = request.windows.range.0;
        let division = Division::of(sweeper, None, (bytes / PAGE_BYTES as u64).max(1));
        refuse_many("--range", bytes, division.count())?;
        refuse_lost(sweeper)?;
        let audit = prepared.options.log_audit.as_deref();
        let bytes =
            audit.map(|audit| check::part::write_audit(self.key, audit)).transpose().map_err(Failure::unable)?;
        let options = Planned { has_audit: audit.is_some(), evidence: self.evidence.clone(), ..self.planned.clone() };
        let name = findings::database_name(sweep.source, &prepared.database);
        let image = Image::new(prepared.catalog, Some(sweeper.fingerprint));
        let plan = plan_of(PlanId::new()?, options, name, (self.files.clone(), image), &division);
        let common = Common { key: self.key.clone(), audit: Some(prepared.options.log_audit.clone()) };
        if let Some(place) = self.place {
            // Deletes an old plan that is stored in this folder. The old plan cannot be used, and no other process can
            // be using it.
            remove(place);
            let made =
                Folder::reserve(place).and_then(|()| Folder::create(place, &plan, self.key, bytes.as_deref(), None));
            match made {
                Ok(folder) => return Ok((Opened { folder, plan, rounds: Vec::new(), common }, None)),
                Err(error) => warn(format!("{error}; the results of this window are not kept for the next window")),
            }
        }
        let folder = match &request.recovery.room.temp_dir {
            Some(folder) => tempfile::Builder::new().prefix("mdfsck-window.").tempdir_in(folder),
            None => tempfile::Builder::new().prefix("mdfsck-window.").tempdir(),
        };
        let temporary = folder.map_err(|cause| {
            Failure::unable(format!(
                "no temporary folder can be created for a window: {cause}; give a folder with --temp-dir"
            ))
        })?;
        let folder = Folder::create(temporary.path(), &plan, self.key, bytes.as_deref(), None)?;
        Ok((Opened { folder, plan, rounds: Vec::new(), common }, Some(temporary)))
    }
}
