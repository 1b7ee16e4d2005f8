//! `mdfsck history`: shows the runs and findings that a history contains.

use std::path::Path;
use std::time::SystemTime;

use history::History;
use history::query::Filter;
use jobs::failure::Failure;
use report::history as show;
use report::history_page::HistoryPages;

use crate::cli::{HistoryArguments, HistoryVerb};
use crate::error_log;
use crate::output::{self, Target, place};
use crate::version::VERSION;

#[expect(clippy::too_many_lines, reason = "a branch for each verb")]
pub(crate) fn run(arguments: &HistoryArguments) -> Result<u8, Failure> {
    let has_csv =
        matches!(arguments.verb, Some(HistoryVerb::Runs | HistoryVerb::Findings { .. } | HistoryVerb::Objects));
    if arguments.csv && !has_csv {
        return Err(Failure::usage(
            "--csv works only with runs, findings and objects; --json works with all subcommands",
        ));
    }
    if matches!(arguments.verb, Some(HistoryVerb::Html { .. })) && (arguments.json || arguments.since.is_some()) {
        return Err(Failure::usage("html cannot be combined with --json or --since"));
    }
    let mut history = History::open(&arguments.file).map_err(|error| Failure::from(&error))?;
    let filter = Filter { database: arguments.database.clone(), since: arguments.since.clone() };
    history.database_names(&filter).map_err(|error| Failure::from(&error))?;
    let is_json = arguments.json;
    let said = match &arguments.verb {
        None => states(&history, &filter, is_json),
        Some(HistoryVerb::Coverage { within }) => {
            let all = history.coverage(&filter, *within).map_err(|error| Failure::from(&error))?;
            output::print(|out| match is_json {
                true => show::write_coverage_json(&all, out),
                false => show::write_coverage(&all, out),
            })?;
            let is_kept = !all.is_empty() && all.iter().all(history::coverage::Coverage::is_kept);
            return Ok(if within.is_none() || is_kept { 0 } else { Failure::INCOMPLETE });
        }
        Some(HistoryVerb::Runs) => {
            let runs = history.runs(&filter).map_err(|error| Failure::from(&error))?;
            output::print(|out| match (is_json, arguments.csv) {
                (true, _) => show::write_runs_json(&runs, out),
                (false, true) => show::write_runs_csv(&runs, out),
                (false, false) => show::write_runs(&runs, out),
            })
        }
        Some(HistoryVerb::Findings { all }) => {
            let found = history.findings(&filter, *all).map_err(|error| Failure::from(&error))?;
            output::print(|out| match (is_json, arguments.csv) {
                (true, _) => show::write_findings_json(&found, out),
                (false, true) => show::write_findings_csv(&found, out),
                (false, false) => show::write_findings(&found, out),
            })
        }
        Some(HistoryVerb::Objects) => {
            let objects = history.objects(&filter).map_err(|error| Failure::from(&error))?;
            output::print(|out| match (is_json, arguments.csv) {
                (true, _) => show::write_objects_json(&objects, out),
                (false, true) => show::write_objects_csv(&objects, out),
                (false, false) => show::write_objects(&objects, out),
            })
        }
        Some(HistoryVerb::Tables) => {
            let tables = history.tables(&filter).map_err(|error| Failure::from(&error))?;
            output::print(|out| match is_json {
                true => show::write_tables_json(&tables, out),
                false => show::write_tables(&tables, out),
            })
        }
        Some(HistoryVerb::Diff { runs }) => {
            let runs = runs.first().copied().zip(runs.get(1).copied());
            let difference = history.difference(&filter, runs).map_err(|error| Failure::from(&error))?;
            output::print(|out| match is_json {
                true => show::write_difference_json(&difference, out),
                false => show::write_difference(&difference, out),
            })
        }
        Some(HistoryVerb::Baselines) => {
            let throughput = show::Throughput::of(&history.runs(&filter).map_err(|error| Failure::from(&error))?);
            let saved = history.baselines().map_err(|error| Failure::from(&error))?;
            output::print(|out| match is_json {
                true => show::write_baselines_json(&throughput, &saved, out),
                false => show::write_baselines(&throughput, &saved, out),
            })
        }
        Some(HistoryVerb::Ledgers) => {
            let rows = jobs::change::listed(&arguments.file);
            output::print(|out| match is_json {
                true => show::write_ledgers_json(&rows, out),
                false => show::write_ledgers(&rows, out),
            })
        }
        Some(HistoryVerb::Html { output }) => write_page("--output", output, (&history, &filter)),
        Some(HistoryVerb::Ack { key, because, until }) => {
            let acknowledged = history.acknowledge(*key, &error_log::who(), because, until.as_deref());
            acknowledged.map_err(|error| Failure::from(&error))?;
            output::print(|out| match is_json {
                true => show::write_acknowledged_json(*key, out),
                false => writeln!(out, "Finding {key} is acknowledged."),
            })
        }
        Some(HistoryVerb::Forget { name, older }) => {
            let forgotten = match (name, older) {
                (Some(name), _) => history.forget_database(name),
                (None, Some(moment)) => history.forget_older(moment),
                (None, None) => return Err(Failure::usage("forget: give a database, or --older DATE")),
            };
            let forgotten = forgotten.map_err(|error| Failure::from(&error))?;
            output::print(|out| match is_json {
                true => show::write_forgotten_json(forgotten, out),
                false => show::write_forgotten(forgotten, out),
            })
        }
    };
    said.map(|()| 0)
}

/// Opens the target of a history page. `option` is the option that names the path.
///
/// # Errors
/// If the target is the history itself or standard output, or cannot be written.
pub(crate) fn target(option: &str, path: &Path, history: &History) -> Result<Target, Failure> {
    output::refuse_standard_output(option, path)?;
    if place(path) == place(history.path()) {
        return Err(Failure::usage(format!("{option} {}: is the history; give another file", path.display())));
    }
    Target::at(path)
}

/// Writes an HTML page about all databases or about one database.
///
/// # Errors
/// If the history cannot be read or the page cannot be written. Then an existing file is unchanged.
pub(crate) fn write_page(option: &str, path: &Path, (history, filter): (&History, &Filter)) -> Result<(), Failure> {
    let target = target(option, path, history)?;
    let now = history::time::text(SystemTime::now());
    let file = history.path().file_name().unwrap_or_default().to_string_lossy();
    let pages = HistoryPages { history, file: &file, version: VERSION, now: &now, host: &jobs::keep::host() };
    let page = pages.file(filter).map_err(|error| Failure::from(&error))?;
    target.write(|out| out.write_all(&page))
}

/// Prints one line per database.
fn states(history: &History, filter: &Filter, is_json: bool) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let read = history.estate(filter, 0, |row| {
        rows.push(row);
        true
    });
    read.map_err(|error| Failure::from(&error))?;
    rows.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
    let with_run = |row: history::estate::DatabaseRow| {
        let open = row.open.all();
        Some(show::State { run: row.run?, state: row.state, open, coverage: row.coverage })
    };
    let states: Vec<show::State> = rows.into_iter().filter_map(with_run).collect();
    output::print(|out| match is_json {
        true => show::write_states_json(&states, out),
        false => show::write_states(&states, out),
    })
}
