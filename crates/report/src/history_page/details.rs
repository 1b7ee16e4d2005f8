//! The details of a database: the times of the last reads of its pages, its findings, its runs, and the things that its
//! last run could not verify.

use history::state::DatabaseState;
use history::{History, Result};
use serde::Serialize;

use super::estate::{Row, TEXT_CHARS};
use super::findings::{Findings, findings};
use super::ranges::{self, File};
use super::run::{NotVerified, Run, not_verified};
use crate::html::{Budget, shown_to};

/// Limits on how much of a database a page shows.
pub(super) struct Limits {
    findings: u32,
    runs: u32,
    ranges: usize,
    /// Maximum number of bytes of text from the database.
    text_bytes: usize,
}

impl Limits {
    /// The limits for a page with one database.
    pub(super) const ONE: Self = Self { findings: 2000, runs: 400, ranges: 20_000, text_bytes: 2 << 20 };
    /// The limits for a page with several databases.
    pub(super) const MANY: Self = Self { findings: 300, runs: 60, ranges: 2000, text_bytes: 1 << 18 };
}

/// Maximum number of copies of the database that are listed.
const MOST_SOURCES: u32 = 50;
/// Maximum number of runs in the trend.
const TREND_RUNS: u32 = 120;

#[derive(Serialize)]
pub(super) struct Details {
    #[serde(skip)]
    identity: String,
    row: Row,
    sources: Vec<Source>,
    files: Vec<File>,
    more_files: u64,
    findings: Findings,
    runs: Vec<Run>,
    more_runs: u64,
    not_verified: NotVerified,
}

#[derive(Serialize)]
struct Source {
    kind: String,
    host: String,
    location: String,
}

impl Details {
    /// The text that identifies the database.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }
}

/// The details of a database; `None` if no database has this number. The caller passes `state` if it already knows the
/// state.
pub(super) fn details(
    history: &History,
    (id, state): (i64, Option<DatabaseState>),
    limits: &Limits,
) -> Result<Option<Details>> {
    let row = match state {
        Some(state) => history.database_row_with(id, TREND_RUNS, state)?,
        None => history.database_row(id, TREND_RUNS)?,
    };
    let Some(row) = row else { return Ok(None) };
    let mut room = Budget::new(limits.text_bytes);
    let mut room_of_runs = Budget::new(limits.text_bytes / 4);
    let (run_count, finding_count) = history.counts(id)?;
    let last = row.run.clone();
    let found = findings(history.findings_of(id, limits.findings)?, finding_count, &mut room);
    let runs: Vec<Run> = history.runs_of(id, limits.runs)?.iter().map(|run| Run::of(run, &mut room_of_runs)).collect();
    let sources = history.sources(id, MOST_SOURCES)?.into_iter().map(|source| Source {
        kind: shown_to(&source.kind, TEXT_CHARS),
        host: shown_to(&source.host, TEXT_CHARS),
        location: shown_to(&source.location, TEXT_CHARS),
    });
    let (files, more_files) = ranges::files(history, id, limits.ranges)?;
    Ok(Some(Details {
        identity: row.identity(),
        sources: sources.collect(),
        files,
        more_files,
        findings: found,
        more_runs: run_count.saturating_sub(runs.len() as u64),
        runs,
        not_verified: match &last {
            Some(run) => not_verified(history, run, &mut Budget::new(limits.text_bytes / 4))?,
            None => NotVerified::default(),
        },
        row: Row::of(row),
    }))
}
