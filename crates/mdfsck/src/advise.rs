//! `mdfsck advise`: lists the steps to recover from damage.

use std::fs;

use advise::backups::Backups;
use advise::{Plan, Request};
use jobs::failure::Failure;
use jobs::inventory;
use jobs::judge::judge;
use jobs::spool;
use jobs::spread::{Spread, What};
use script::{Definitions, Script};
use source::backup;

use crate::cli::AdviseArguments;
use crate::output::{self, Target};
use crate::speaker::warn;
use crate::{chain, nice, progress};

pub(crate) fn run(arguments: &AdviseArguments) -> Result<u8, Failure> {
    if arguments.run.nice
        && let Some(status) = nice::yield_to_others()
    {
        return Ok(status);
    }
    let target = script_target(arguments)?;
    let mut check = arguments.check();
    check.recovery.room.temp_dir.as_deref().map_or(Ok(()), spool::try_folder)?;
    let choice = check.sets()?;
    let named = check.paths.clone();
    let (paths, sets) = inventory::one("advise", &named, &choice, check.stop.until())?;
    check.paths = paths;
    let (backups, unread) = backups(arguments)?;
    let what = What { named: &named, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    let shown: Vec<String> = named.iter().map(|path| source::argument(path)).collect();
    let shown = shown.join(" ");
    let (status, (plan, report)) =
        judge(&check, &what, progress::listener(check.run.progress, None), |report, source, database| {
            let definitions = Definitions::load(source, database);
            let request = Request {
                report,
                source,
                database,
                script: Script::new(database, &definitions),
                backups: backups.as_ref(),
                paths: &shown,
            };
            let plan = advise::plan(&request);
            let mut text = Vec::new();
            let written = match arguments.json {
                true => report::advise::write_json(&plan, report, &mut text),
                false => report::advise::write(&plan, &mut text),
            };
            (plan, written.map(|()| text))
        })?;
    let text = report.map_err(|cause| Failure::unable(format!("cannot write the advice: {cause}")))?;
    let printed = output::print(|out| out.write_all(&text));
    let scripted = target.map_or(Ok(()), |target| write_script(&plan, target));
    Ok(status | unread | printed.map_or_else(Failure::report, |()| 0) | scripted.map_or_else(Failure::report, |()| 0))
}

fn write_script(plan: &Plan, target: Target) -> Result<(), Failure> {
    target.write(|out| report::advise::write_script(plan, out))
}

/// The target of the script. The target may be an existing pipe or terminal, but not an existing file.
fn script_target(arguments: &AdviseArguments) -> Result<Option<Target>, Failure> {
    let Some(path) = &arguments.script else { return Ok(None) };
    if path.as_os_str() == "-" {
        return Err(Failure::usage("--script: give a file; standard output is for the advice"));
    }
    if fs::metadata(path).is_ok_and(|found| found.is_file() || found.is_dir()) {
        return Err(Failure::file_exists(path));
    }
    Target::at_new(path).map(Some)
}

/// Opens the backups that the user named. Also returns the exit-status bits for backups that cannot be read.
fn backups(arguments: &AdviseArguments) -> Result<(Option<Backups>, u8), Failure> {
    if arguments.backups.is_empty() {
        return Ok((None, 0));
    }
    let (paths, _, status) = chain::find_all(&arguments.backups);
    let (media, unread) = chain::read_media(&paths);
    if paths.is_empty() {
        warn("--backups: the given paths contain no backup file");
    }
    let databases = backup::chains(&media);
    Ok((Some(Backups { databases, memory_bytes: arguments.database.recovery.room.memory }), status | unread))
}
