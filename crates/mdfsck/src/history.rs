//! `mdfsck history`.

use history::History;
use history::query::Filter;
use report::history as show;

use crate::cli::{HistoryArguments, HistoryVerb};
use crate::failure::Failure;
use crate::{error_log, output};

pub(crate) fn run(arguments: &HistoryArguments) -> Result<u8, Failure> {
    let has_csv =
        matches!(arguments.verb, Some(HistoryVerb::Runs | HistoryVerb::Findings { .. } | HistoryVerb::Objects));
    if arguments.csv && !has_csv {
        return Err(Failure::usage("--csv is for runs, findings and objects; --json is for all"));
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
                (None, None) => return Err(Failure::usage("forget: name a database, or --older DATE")),
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

/// A line per database.
fn states(history: &History, filter: &Filter, is_json: bool) -> Result<(), Failure> {
    let read = || -> history::Result<Vec<show::State>> {
        let mut coverage = history.coverage(filter, None)?;
        let mut states = Vec::new();
        for run in history.last_runs(filter)? {
            let family = run.family.clone().unwrap_or_default();
            let open = history.open_findings(&family)?;
            let at = coverage.iter().position(|one| one.family == family);
            let coverage = at.map(|at| coverage.swap_remove(at)).unwrap_or_default();
            states.push(show::State { run, open, coverage });
        }
        Ok(states)
    };
    let states = read().map_err(|error| Failure::from(&error))?;
    output::print(|out| match is_json {
        true => show::write_states_json(&states, out),
        false => show::write_states(&states, out),
    })
}
