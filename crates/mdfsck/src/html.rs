//! `mdfsck check --html`: writes the report as an HTML page, in addition to the results.

use std::fs;
use std::path::Path;

use jobs::carve;
use jobs::ended::Ended;
use jobs::failure::Failure;
use jobs::request::Request;
use report::check_page::CheckPage;
use source::PageSource;

use crate::output::{self, Target, place};
use crate::terminal::Repeated;
use crate::version::VERSION;

/// Requires that the HTML page has a file of its own.
///
/// # Errors
///
/// If the page is to be written to standard output, or to the file of the results, of the error log or of the history.
/// Also with `--window`, since such a check reads only a part of the database.
pub(super) fn refuse_results(arguments: &Request) -> Result<(), Failure> {
    let results = &arguments.results;
    let Some(page) = &results.html else { return Ok(()) };
    output::refuse_standard_output("--html", page)?;
    if arguments.windows.window.is_some() {
        return Err(Failure::usage(
            "--html: a window checks only a part of the database; leave out --window, or use 'mdfsck history FILE html'",
        ));
    }
    for (option, path) in
        [("--output", &results.output), ("--errorlog-line", &results.errorlog_line), ("--history", &results.history)]
    {
        if path.as_deref().is_some_and(|path| place(path) == place(page)) {
            return Err(Failure::usage(format!(
                "--html {}: is the file of {option}; give another file",
                page.display()
            )));
        }
    }
    Ok(())
}

/// Refuses an HTML page in the folder of a plan.
///
/// # Errors
/// If the page is in that folder.
pub(crate) fn refuse_plan(page: Option<&Path>, plan: &Path) -> Result<(), Failure> {
    match (page, fs::canonicalize(plan)) {
        (Some(page), Ok(plan)) if place(page).starts_with(&plan) => Err(Failure::usage(format!(
            "--html {}: this file is in the folder of the plan, where only its parts may be; give a file elsewhere",
            page.display()
        ))),
        _ => Ok(()),
    }
}

/// Refuses an HTML page for several databases, since a page has the report of one database.
///
/// # Errors
/// If a page is requested.
pub(crate) fn refuse_several(arguments: &Request, databases: usize) -> Result<(), Failure> {
    match &arguments.results.html {
        None => Ok(()),
        Some(page) => Err(Failure::usage(format!(
            "--html {}: a page holds the report of one database, but {databases} would be checked; check each database separately, or use --format summary",
            page.display()
        ))),
    }
}

/// Opens the target of the HTML page. Tests before the run that the target can be written.
///
/// # Errors
/// If the target is one of the checked files or any SQL Server file, or cannot be written.
pub(super) fn target(arguments: &Request, source: &dyn PageSource) -> Result<Option<Target>, Failure> {
    let Some(path) = &arguments.results.html else { return Ok(None) };
    output::refuse_database_files("--html", path, &carve::inputs(source))?;
    Target::at(path).map(Some)
}

/// Writes the HTML page. If the page cannot be written, returns exit-status bits that say so. The results of the check
/// are not affected.
pub(super) fn write(target: Target, arguments: &Request, ended: &Ended<'_>, status: u8) -> u8 {
    let Ended { report, source, database, started } = *ended;
    let repeated = Repeated::of(arguments);
    let command_line = repeated.command_line();
    let started = history::time::text(started).replace('T', " ").replace('Z', "");
    let page = CheckPage {
        report,
        database,
        source,
        command_line: &command_line,
        commands: repeated.commands(status),
        version: VERSION,
        started: &started,
    };
    target.write(|out| page.write(out)).map_or_else(Failure::report, |()| 0)
}
