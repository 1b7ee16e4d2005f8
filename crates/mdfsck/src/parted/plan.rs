//! `mdfsck plan`: divides a check into tasks.

use std::path::{Path, PathBuf};

use jobs::failure::Failure;
use jobs::inventory;
use jobs::planning;
use jobs::request::{Request, ResultOptions};
use jobs::spread::make::bytes_of;
use jobs::spread::{Planned, Spread, What};
use jobs::version::BUILD;
use parts::{Folder, Plan, listed};
use report::parts::{PlanView, StatusView};

use crate::cli::PlanArguments;
use crate::one::set_up;
use crate::{output, progress};

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
    let check = Request {
        scope: (&arguments.scope).into(),
        recovery: (&arguments.recovery).into(),
        stop: (&arguments.stop).into(),
        run: (&arguments.run).into(),
        results: ResultOptions { history: arguments.history.clone(), ..ResultOptions::default() },
        keep_parts: arguments.keep_parts,
        part_pages: arguments.part_pages,
        ..Request::of_paths(named.clone())
    };
    set_up(&check, |check| {
        let choice = check.sets()?;
        let (paths, sets) = inventory::one("plan", &named, &choice, check.stop.until())?;
        let what = What { named: &named, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
        Folder::reserve(&folder)?;
        let plan = make(&folder, &check.of(paths), &what, arguments.task_size)?;
        let view = PlanView {
            plan: plan.plan.as_str(),
            folder: &folder.display().to_string(),
            database: &plan.database,
            tasks: plan.task_count(),
            bytes: bytes_of_plan(&plan),
            left_out: bytes_left_out(&plan),
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

pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
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

/// The number of bytes that all tasks read.
fn bytes_of_plan(plan: &Plan<Planned>) -> u64 {
    let left_out = plan.options.ledger.as_ref().and_then(|ledger| ledger.left_out.as_ref());
    left_out.map_or_else(|| plan.tasks.iter().map(bytes_of).sum(), |left_out| left_out.bytes_swept)
}

/// The number of bytes that no task reads, because their sums are in a ledger; `None` if the plan uses none.
fn bytes_left_out(plan: &Plan<Planned>) -> Option<u64> {
    let ledger = plan.options.ledger.as_ref()?;
    ledger.left_out.as_ref().map(|left_out| left_out.bytes_kept)
}

/// Makes a plan in `folder`, which is used only for this plan.
pub(super) fn make(folder: &Path, check: &Request, what: &What<'_>, task_bytes: u64) -> Result<Plan<Planned>, Failure> {
    planning::make(folder, check, what, task_bytes, progress::listener(check.run.progress, None))
}

/// Runs `mdfsck plan --status`.
fn status(path: &Path, only_missing: bool) -> Result<u8, Failure> {
    let (folder, plan, _) = Folder::open::<Planned>(path, &BUILD)?;
    let rounds = folder.rounds(&plan)?;
    let current = folder.current(&plan, &rounds)?;
    let (folder, plan) = current.map_or((&folder, &plan), |open| (&open.folder, &open.plan));
    let status = folder.status(plan)?;
    let left_out = bytes_left_out(plan).filter(|_| plan.round == 0);
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
                left_out,
            };
            report::parts::write_status_json(&view, out)
        }
    })?;
    Ok(0)
}
