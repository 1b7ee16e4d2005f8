//! Makes a plan: opens and prepares the database, and writes the folder of the plan.

use std::path::Path;
use std::time::SystemTime;

use check::Progress;
use check::part::sweeper;
use format::page::PAGE_BYTES;
use parts::{Folder, Image, Plan, PlanId, SourceFile, new_key};

use crate::change::ForPlan;
use crate::failure::Failure;
use crate::host::warn;
use crate::prepare::{open, prepare};
use crate::request::Request;
use crate::spread::make::{Division, plan_of, refuse_lost, refuse_many, write_maps};
use crate::spread::{Before, Common, Planned, Spread, What, files_of};
use crate::throttle::throttled;

/// Makes a plan in `folder`, which is used only for this plan.
///
/// # Errors
/// If the database cannot be opened or prepared, or the plan cannot be written.
pub fn make(
    folder: &Path,
    check: &Request,
    what: &What<'_>,
    task_bytes: u64,
    listener: Box<dyn Progress>,
) -> Result<Plan<Planned>, Failure> {
    let identities = Before::of(check, what);
    let input = open(check, what, listener.as_ref())?;
    let reads_all = |why: String| warn(format!("{why}; the tasks read all pages"));
    let ledger = ForPlan::of(check, &identities, &input, SystemTime::now());
    let mut ledger = ledger.unwrap_or_else(|why| {
        reads_all(why);
        None
    });
    // The sums in a ledger are hashed with its key, so the tasks use the same key.
    let key = ledger.as_ref().and_then(ForPlan::key).map_or_else(new_key, Ok)?;
    let common = Common { key, audit: None };
    let what = &what.with(Spread::Plan(&common));
    // Stores the state of the files before they are read, since the comparison with the log may take hours and the
    // files may change during this time.
    let before = files_of(check, what, &input, &catalog::load(input.pages()))?;
    let prepared = prepare(check, &input, listener.as_ref(), what)?;
    let files = files_of(check, what, &input, &prepared.database)?;
    before.iter().filter(|file| files.iter().any(|now| now.path == file.path)).try_for_each(SourceFile::verify)?;
    let source = prepared.recovered.pages_or(input.pages());
    let pages = (task_bytes / PAGE_BYTES as u64).max(1);
    let id = PlanId::new()?;
    let (division, fingerprint, maps, planned) = throttled(check, source, |source| {
        sweeper(source, &prepared.database, &prepared.options, listener.as_ref(), |sweeper| {
            let Some(sweeper) = sweeper else { return Ok::<_, Failure>(Default::default()) };
            let found = ledger.as_ref().map(|ledger| ledger.left_out(&prepared, sweeper, listener.as_ref()));
            let left_out = found.unwrap_or(Ok(None)).unwrap_or_else(|why| {
                reads_all(why);
                ledger = None;
                None
            });
            let division = Division::of(sweeper, left_out.as_ref(), pages);
            refuse_lost(sweeper)?;
            refuse_many("--task-size", task_bytes, division.count())?;
            let write = || write_maps(folder, &id, sweeper, (&division, left_out.as_ref()));
            let maps = (division.count() > 0).then(write).transpose()?;
            refuse_lost(sweeper)?;
            let planned = ledger.take().map(|ledger| ledger.planned(left_out.as_ref(), division.pages_swept));
            Ok((division, Some(sweeper.fingerprint), maps, planned))
        })
    })?;
    drop(listener);
    let audit = prepared.options.log_audit.as_deref();
    let audit = audit.map(|audit| check::part::write_audit(&common.key, audit)).transpose().map_err(Failure::unable)?;
    let plan = plan_of(
        id,
        Planned { has_audit: audit.is_some(), ledger: planned, ..Planned::of(check, what) },
        findings::database_name(source, &prepared.database),
        (files, Image::new(prepared.catalog, fingerprint)),
        &division,
    );
    // Requires that the files have not changed while the plan was made.
    plan.verify_files()?;
    Folder::create(folder, &plan, &common.key, audit.as_deref(), maps)?;
    Ok(plan)
}
