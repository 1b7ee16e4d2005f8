//! The estate, which is all databases of a history: a row for each database, worst first.

use history::estate::{DatabaseRow, States};
use history::progress::Which;
use history::query::Filter;
use history::state::DatabaseState;
use history::{History, Result};
use serde::Serialize;

use super::date;
use super::live::{self, Running};
use crate::html::shown_to;

/// Maximum number of runs in a trend.
const TREND_RUNS: u32 = 30;
/// Maximum number of running checks that are shown.
const MOST_RUNNING: u32 = 100;
/// Maximum number of failed runs that are shown.
const MOST_FAILED: u32 = 20;
/// Maximum number of characters of a name.
pub(super) const NAME_CHARS: usize = 128;
/// Maximum number of characters of an error, of paths and of other texts of a run.
pub(super) const TEXT_CHARS: usize = 400;

/// All databases of a history, as the page shows them.
#[derive(Serialize)]
pub(super) struct Estate {
    sound: u64,
    corrupt: u64,
    unknown: u64,
    rows: Vec<Row>,
    /// The number of databases for which `rows` has no row.
    more: u64,
    /// The newest failed runs.
    failed: Vec<Failed>,
    /// Running checks.
    running: Vec<Running>,
}

/// The row of a database. The fields `server` and `path` tell where the database was first seen. The fields `why` and
/// `copy` belong to `state`.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) name: String,
    family: String,
    /// The machine on which the database was first seen; for a backup, the server of the database.
    server: String,
    path: String,
    more_places: u64,
    /// State of the database: `sound`, `corrupt` or `unknown`. If it is unknown, `why` has the reason. If the database
    /// has several copies, `copy` is the copy with this state.
    state: &'static str,
    why: Option<String>,
    copy: Option<String>,
    /// The start of the last run of the database.
    last_run: Option<String>,
    pages: u64,
    new: u64,
    confirmed: u64,
    acknowledged: u64,
    /// When the least recently read page in use was read; `None` if a page in use was never read.
    oldest_read: Option<String>,
    never_read: u64,
    /// When the least recently verified cross-reference between pages and tables was verified; `None` if a
    /// cross-reference was never verified.
    oldest_closed: Option<String>,
    relations: u64,
    /// Number of findings in each of the last runs; -1 for an incomplete run that found nothing.
    trend: Vec<i64>,
    under_way: Option<UnderWay>,
}

#[derive(Serialize)]
struct UnderWay {
    host: String,
    started: String,
    /// The length of the window in seconds, the number of page ranges that the check has read, and the number of bytes
    /// in these ranges. `None` if the check does not run in a window of time.
    window: Option<(f64, u64, u64)>,
}

/// A failed run.
#[derive(Serialize)]
struct Failed {
    id: i64,
    started: String,
    host: String,
    paths: String,
    error: String,
}

/// The rows of the databases that `filter` selects, the worst first. Only as many rows are returned as fit into `bytes`
/// bytes. Also returns the number of databases in each state.
pub(super) fn rows(history: &History, filter: &Filter, bytes: usize) -> Result<(Vec<(Row, DatabaseState)>, States)> {
    let (mut rows, mut left) = (Vec::new(), bytes);
    let states = history.estate(filter, TREND_RUNS, |row| {
        let state = row.state.clone();
        let row = Row::of(row);
        let length = serde_json::to_string(&row).map_or(0, |json| json.len() + 5 * json.matches('<').count() + 1);
        let has_room = length <= left;
        left = left.saturating_sub(length);
        if has_room {
            rows.push((row, state));
        }
        has_room
    })?;
    Ok((rows, states))
}

impl Estate {
    /// The estate with these rows, the newest failed runs, and the running checks. `host` is the name of this machine.
    pub(super) fn new((history, host): (&History, &str), rows: Vec<Row>, states: States) -> Result<Self> {
        let States { sound, corrupt, unknown } = states;
        let more = (sound + corrupt + unknown).saturating_sub(rows.len() as u64);
        let failed = history.failed_runs(MOST_FAILED)?.into_iter().map(|run| Failed {
            id: run.id,
            started: date(&run.started),
            host: shown_to(&run.host, NAME_CHARS),
            paths: shown_to(&run.paths, TEXT_CHARS),
            error: shown_to(run.error.as_deref().unwrap_or_default(), TEXT_CHARS),
        });
        let (running, _) = live::checks(history, Which::All, (host, MOST_RUNNING))?;
        Ok(Self { sound, corrupt, unknown, rows, more, failed: failed.collect(), running })
    }
}

impl Row {
    pub(super) fn of(row: DatabaseRow) -> Self {
        let DatabaseRow { id, name, family, server, source, sources, state, run, open, coverage, trend, under_way } =
            row;
        // For a backup whose label names a server, the location in the history is the name of its database, so the path
        // comes from the last run.
        let path = match (&source, &run) {
            (Some(source), _) if source.kind == "files" => source.location.as_str(),
            (_, Some(run)) => run.paths.as_str(),
            (Some(source), None) => source.location.as_str(),
            (None, None) => "",
        };
        let path = shown_to(path, NAME_CHARS);
        let host = source.as_ref().map(|source| source.host.as_str()).or(run.as_ref().map(|run| run.host.as_str()));
        let server = if server.is_empty() { host.unwrap_or_default() } else { &server };
        let pages = run.as_ref().map_or(0, |run| run.pages_in_use).max(coverage.pages_in_use);
        Self {
            id,
            name: shown_to(&name, NAME_CHARS),
            family: shown_to(&family, NAME_CHARS),
            server: shown_to(server, NAME_CHARS),
            path,
            more_places: sources.saturating_sub(1),
            state: state.word,
            why: state.why.as_deref().map(|why| shown_to(why, TEXT_CHARS)),
            copy: state.copy.map(|copy| shown_to(&format!("{}: {}", copy.host, copy.location), NAME_CHARS)),
            last_run: run.map(|run| date(&run.started)),
            pages,
            new: open.new,
            confirmed: open.confirmed,
            acknowledged: open.acknowledged,
            oldest_read: coverage.oldest.filter(|_| coverage.never == 0).map(|(.., at)| date(&at)),
            never_read: coverage.never,
            oldest_closed: coverage.oldest_closed.map(|at| date(&at)),
            relations: coverage.relations,
            trend: trend
                .iter()
                .map(|run| match (run.findings, run.complete) {
                    (0, false) => -1,
                    (findings, _) => i64::try_from(findings).unwrap_or(i64::MAX),
                })
                .collect(),
            under_way: under_way.map(|under_way| UnderWay {
                host: shown_to(&under_way.host, NAME_CHARS),
                started: date(&under_way.started),
                window: under_way.window,
            }),
        }
    }
}
