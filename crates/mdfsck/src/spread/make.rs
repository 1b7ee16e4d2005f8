//! `mdfsck plan`: divides a check into tasks.

use std::path::{Path, PathBuf};

use check::part::{SumsError, Sweeper, sweeper};
use findings::FileRange;
use format::page::PAGE_BYTES;
use parts::{Folder, Image, MapsWriter, PartsError, Piece, Plan, PlanId, SourceFile, Task, VERSION, listed, new_key};
use report::parts::{PlanView, StatusView};
use sums::HashKey;

use super::{Common, Planned, Spread, files_of};
use crate::check::{self as checking, What};
use crate::cli::{BUILD, CheckArguments, PlanArguments};
use crate::failure::Failure;
use crate::many::plan;
use crate::{output, progress, size};

/// Maximum number of tasks of a plan. No scheduler can make use of more tasks.
const MOST_TASKS: usize = 100_000;

pub(crate) fn run(arguments: &PlanArguments) -> Result<u8, Failure> {
    if let Some(folder) = &arguments.status {
        return status(folder, arguments.missing);
    }
    let Some(folder) = &arguments.dir else { return Err(Failure::usage("plan: --dir PLAN is missing")) };
    if source::storage::url(folder).is_some() {
        let text = "a plan is a folder of files that all machines can reach; give a folder with --dir";
        return Err(Failure::usage(format!("{}: {text}", folder.display())));
    }
    let folder = absolute(folder)?;
    let named = paths(&arguments.paths)?;
    let check = CheckArguments {
        scope: arguments.scope.clone(),
        recovery: arguments.recovery.clone(),
        stop: arguments.stop.clone(),
        run: arguments.run.clone(),
        ..CheckArguments::of_paths(named.clone())
    };
    checking::set_up(&check, |check| {
        let choice = check.sets()?;
        let common = Common { key: new_key()?, audit: None };
        let (paths, sets) = plan::one("plan", &named, &choice, check.stop.until())?;
        let what =
            What { named: &named, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::Plan(&common) };
        Folder::reserve(&folder)?;
        let plan = make(&folder, &check.of(paths), &what, (arguments.task_size, &common.key))?;
        let view = PlanView {
            plan: plan.plan.as_str(),
            folder: &folder.display().to_string(),
            database: &plan.database,
            tasks: plan.task_count(),
            bytes: plan.tasks.iter().map(bytes_of).sum(),
        };
        output::print(|out| match arguments.json {
            true => report::parts::write_plan_json(&view, out),
            false => report::parts::write_plan(&view, &source::argument(&folder), out),
        })?;
        Ok(0)
    })
}

/// Makes the paths absolute, so that a process in any folder can open them.
fn paths(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if given.iter().any(|path| path.as_os_str() == "-") {
        return Err(Failure::usage(
            "-: each task reads the backup by itself, and standard input can be read once; give a file",
        ));
    }
    given.iter().map(|path| absolute(path)).collect()
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    if let Some(url) = source::storage::url(path) {
        // A plan stores each URL without its query, and a task looks up the query by the stored text. Two URLs must
        // therefore differ in more than their queries.
        let is_one_of_two = url.starts_with("http") && url.contains('#');
        let text = "a plan stores URLs without their queries, and this URL differs from another only in its query; copy the file";
        return if is_one_of_two { Err(Failure::usage(format!("{url}: {text}"))) } else { Ok(path.to_owned()) };
    }
    let absolute =
        std::path::absolute(path).map_err(|cause| Failure::unable(format!("{}: {cause}", path.display())))?;
    match absolute.to_str() {
        Some(_) => Ok(absolute),
        None => Err(Failure::usage(format!(
            "{}: this name is not UTF-8, and a plan can store only UTF-8 names; rename the file",
            path.display()
        ))),
    }
}

/// Makes a plan in `folder`, which is used only for this plan.
pub(super) fn make(
    folder: &Path,
    check: &CheckArguments,
    what: &What<'_>,
    (task_bytes, key): (u64, &HashKey),
) -> Result<Plan<Planned>, Failure> {
    let listener = progress::listener(check.run.progress, None);
    let input = checking::open(check, what, listener.as_ref())?;
    // Stores the state of the files before they are read, since the comparison with the log may take hours and the
    // files may change during this time.
    let before = files_of(check, what, &input, &catalog::load(input.pages()))?;
    let prepared = checking::prepare(check, &input, listener.as_ref(), what)?;
    let files = files_of(check, what, &input, &prepared.database)?;
    before.iter().filter(|file| files.iter().any(|now| now.path == file.path)).try_for_each(SourceFile::verify)?;
    let source = prepared.recovered.pages_or(input.pages());
    let pages = (task_bytes / PAGE_BYTES as u64).max(1);
    let id = PlanId::new()?;
    let (ranges, fingerprint, maps) = checking::throttled(check, source, |source| {
        sweeper(source, &prepared.database, &prepared.options, listener.as_ref(), |sweeper| match sweeper {
            Some(sweeper) => {
                let ranges = sweeper.ranges(pages);
                refuse_many("--task-size", task_bytes, ranges.len())?;
                let maps = (!ranges.is_empty()).then(|| write_maps(folder, &id, sweeper, &ranges)).transpose()?;
                Ok::<_, Failure>((ranges, Some(sweeper.fingerprint), maps))
            }
            None => Ok(Default::default()),
        })
    })?;
    drop(listener);
    let audit = prepared.options.log_audit.as_deref();
    let audit = audit.map(|audit| check::part::write_audit(key, audit)).transpose().map_err(Failure::unable)?;
    let plan = plan_of(
        id,
        Planned { has_audit: audit.is_some(), ..Planned::of(check, what) },
        findings::database_name(source, &prepared.database),
        (files, Image::new(prepared.catalog, fingerprint)),
        &ranges,
    );
    // Requires that the files have not changed while the plan was made.
    plan.verify_files()?;
    Folder::create(folder, &plan, key, audit.as_deref(), maps)?;
    Ok(plan)
}

/// Writes the allocation maps that each task needs.
fn write_maps(
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
    Ok(maps)
}

/// Refuses a plan that has too many tasks.
///
/// # Errors
/// If there are more than [`MOST_TASKS`] tasks.
pub(super) fn refuse_many(option: &str, bytes: u64, tasks: usize) -> Result<(), Failure> {
    if tasks <= MOST_TASKS {
        return Ok(());
    }
    let size = size::text(bytes);
    Err(Failure::usage(format!(
        "{option} {size}: this size gives {tasks} tasks, and a plan can have at most {MOST_TASKS}; use a larger size"
    )))
}

/// Makes a plan with one task for each range.
pub(super) fn plan_of(
    id: PlanId,
    options: Planned,
    database: String,
    (files, image): (Vec<SourceFile>, Image),
    ranges: &[FileRange],
) -> Plan<Planned> {
    let tasks = Plan::<Planned>::tasks_of(ranges);
    Plan { v: VERSION, plan: id, build: BUILD.clone(), database, image, options, files, tasks, round: 0 }
}

pub(super) fn bytes_of(task: &Task) -> u64 {
    u64::from(task.pages) * PAGE_BYTES as u64
}

/// Runs `mdfsck plan --status`.
fn status(path: &Path, only_missing: bool) -> Result<u8, Failure> {
    let (folder, plan, _) = Folder::open::<Planned>(path, &BUILD)?;
    let rounds = folder.rounds(&plan)?;
    let current = folder.current(&plan, &rounds)?;
    let (folder, plan) = current.map_or((&folder, &plan), |open| (&open.folder, &open.plan));
    let status = folder.status(plan)?;
    output::print(|out| match only_missing {
        true => writeln!(out, "{}", listed(&status.missing)),
        false => {
            let view = StatusView {
                plan: plan.plan.as_str(),
                database: &plan.database,
                round: plan.round,
                tasks: plan.task_count(),
                done: status.done,
                missing: &status.missing,
                bytes: status.bytes,
            };
            report::parts::write_status_json(&view, out)
        }
    })?;
    Ok(0)
}
