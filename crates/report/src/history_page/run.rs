//! The page of a run: its figures, the findings that appeared or disappeared in this run, and the things that the run
//! could not verify.

use std::collections::BTreeMap;

use findings::registry::limits::Limit;
use history::estate::NotVerifiedRow;
use history::query::RunRow;
use history::{History, Result};
use serde::Serialize;

use super::date;
use super::estate::TEXT_CHARS;
use super::findings::{Findings, findings};
use crate::html::{Budget, Cause, What, shown_to};
use crate::not_verified::heading;

/// Maximum number of entries to read from the history's list of things that the run could not verify.
const MOST_ENTRIES: u32 = 1000;
const MOST_CAUSES: usize = 100;
const MOST_PLACES: usize = 50;
/// Maximum number of characters of a place or reason.
const PLACE_CHARS: usize = 200;
/// Maximum number of new and gone findings that are shown.
const MOST_CHANGES: u32 = 1000;
const CHANGE_BYTES: usize = 1 << 20;

/// A run in a list.
#[derive(Serialize)]
pub(super) struct Run {
    id: i64,
    verdict: &'static str,
    command: String,
    started: String,
    ended: String,
    taken_at: Option<String>,
    host: String,
    paths: String,
    error: Option<String>,
    exit_status: u8,
    findings: u64,
    findings_new: u64,
    findings_gone: u64,
    not_verified: u64,
    pages: u64,
    rows: u64,
    bytes: u64,
    seconds: f64,
    cpu_seconds: Option<f64>,
    memory_peak: Option<u64>,
}

impl Run {
    pub(super) fn of(run: &RunRow, room: &mut Budget) -> Self {
        Self {
            id: run.id,
            verdict: run.verdict(),
            command: shown_to(&run.command, 40),
            started: date(&run.started),
            ended: date(&run.ended),
            taken_at: run.taken_at.as_deref().map(date),
            host: room.take_or_cut(&run.host, TEXT_CHARS),
            paths: room.take_or_cut(&run.paths, TEXT_CHARS),
            error: run.error.as_deref().map(|error| room.take_or_cut(error, TEXT_CHARS)),
            exit_status: run.exit_status,
            findings: run.findings,
            findings_new: run.findings_new,
            findings_gone: run.findings_gone,
            not_verified: run.not_verified,
            pages: run.pages_in_use,
            rows: run.rows,
            bytes: run.bytes_read,
            seconds: run.seconds,
            cpu_seconds: run.cpu_seconds,
            memory_peak: run.memory_peak,
        }
    }
}

/// The things that a run could not verify.
#[derive(Default, Serialize)]
pub(super) struct NotVerified {
    /// The number of entries in the list of what was not verified.
    count: u64,
    causes: Vec<Cause>,
    more_causes: usize,
    /// The number of entries that no shown cause lists or counts.
    more: u64,
}

/// The things that a run could not verify, by cause, with as much text as the text budget allows.
pub(super) fn not_verified(history: &History, run: &RunRow, room: &mut Budget) -> Result<NotVerified> {
    let rows = history.not_verified(run.id, MOST_ENTRIES)?;
    let mut causes: BTreeMap<(&str, &str), Vec<&NotVerifiedRow>> = BTreeMap::new();
    for row in &rows {
        causes.entry((&row.limit_id, &row.reason)).or_default().push(row);
    }
    let more_causes = causes.len().saturating_sub(MOST_CAUSES);
    let mut covered = 0;
    let mut shown: Vec<Cause> = causes
        .into_iter()
        .take(MOST_CAUSES)
        .map(|((id, reason), mut rows)| {
            rows.sort_by(|one, other| one.what.cmp(&other.what));
            let (cause, entries) = cause((id, reason), &rows, room);
            covered += entries as u64;
            cause
        })
        .collect();
    shown.sort_by_key(|cause| cause.kind);
    // If there are very many entries, the history keeps only the first entries and the number of all entries.
    let count = run.not_verified.max(rows.len() as u64);
    Ok(NotVerified { count, causes: shown, more_causes, more: count.saturating_sub(covered) })
}

/// Builds a cause from its entries in `rows`. Also returns the number of entries that the cause lists or counts.
fn cause((id, reason): (&str, &str), rows: &[&NotVerifiedRow], room: &mut Budget) -> (Cause, usize) {
    let limit = Limit::find(id);
    let (mut what, mut covered) = (Vec::new(), 0);
    for of_one_kind in rows.chunk_by(|one, other| one.what == other.what).take(MOST_PLACES) {
        let mut places = Vec::new();
        for row in of_one_kind.iter().take(MOST_PLACES) {
            let Some(scope) = room.take(&row.scope, PLACE_CHARS) else { break };
            places.push(if row.count == 0 { scope } else { format!("{scope} ({})", row.count) });
        }
        let name = of_one_kind.first().map_or_else(String::new, |row| room.take_or_cut(&row.what, PLACE_CHARS));
        covered += of_one_kind.len();
        what.push(What { what: name, more: of_one_kind.len() - places.len(), places });
    }
    let cause = Cause {
        kind: limit.map_or("For a reason that this release does not know", |limit| heading(limit)),
        reason: room.take_or_cut(reason, PLACE_CHARS),
        id: shown_to(id, PLACE_CHARS).into(),
        action: limit.map_or("", |limit| limit.action),
        is_allowed: false,
        what,
        follows: 0,
        demoted: Vec::new(),
        more_demoted: 0,
    };
    (cause, covered)
}

/// A run with its details.
#[derive(Serialize)]
pub(super) struct WholeRun {
    /// Number and name of the run's database.
    database: Option<(i64, String)>,
    run: Run,
    /// The findings that appeared in this run.
    came: Findings,
    went: Findings,
    not_verified: NotVerified,
}

/// The run with this number; `None` if there is no such run.
pub(super) fn of_number(history: &History, id: i64) -> Result<Option<WholeRun>> {
    let Some((run, database)) = history.run(id)? else { return Ok(None) };
    let mut room = Budget::new(CHANGE_BYTES);
    let (came, went): (Vec<_>, Vec<_>) =
        history.changes_of(id, MOST_CHANGES)?.into_iter().partition(|(_, life)| life == "new");
    let rows = |changes: Vec<(history::query::FindingRow, String)>| changes.into_iter().map(|(row, _)| row).collect();
    let name = shown_to(run.database.as_deref().unwrap_or_default(), TEXT_CHARS);
    Ok(Some(WholeRun {
        database: database.map(|id| (id, name)),
        came: findings(rows(came), run.findings_new, &mut room),
        went: findings(rows(went), run.findings_gone, &mut room),
        not_verified: not_verified(history, &run, &mut Budget::new(CHANGE_BYTES))?,
        run: Run::of(&run, &mut room),
    }))
}
