//! What came of the check of a backup, in the transaction of its run.

use std::time::SystemTime;

use check::Report;
use rusqlite::{Connection, Transaction, params};

use super::claim::{Claim, backoff};
use crate::error::{HistoryError, Result};
use crate::file::History;
use crate::identity::storable;
use crate::time;

/// How often a backup is tried that cannot be checked.
const MOST_TRIES: u32 = 3;
/// Letters of a reason that are kept.
const MOST_LETTERS: usize = 500;

/// Who uses the history if a claim has ended.
pub(crate) const ANOTHER: &str = "another watcher, which has taken this backup";

/// What a run means to a watcher.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The backup that is done with this run.
    pub claim: &'a Claim,
    /// Why it is unknown whether it is sound, although nothing was found.
    pub doubt: Option<&'a str>,
}

/// What came of the check of a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing was found, and everything was verified.
    Sound,
    /// Corruption was found.
    Corrupt,
    /// Nothing was found, but not everything could be verified.
    Unknown,
}

impl Verdict {
    /// As the history has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Corrupt => "corrupt",
            Self::Unknown => "unknown",
        }
    }
}

/// The result of a backup.
#[derive(Debug)]
pub(crate) struct Outcome {
    verdict: Verdict,
    message: String,
    findings: u64,
    not_verified: u64,
}

impl Outcome {
    /// Of a report.
    pub(crate) fn of(report: &Report, doubt: Option<&str>) -> Self {
        let findings = report.findings.len() as u64;
        let not_verified = (report.not_verified.len() + report.demoted.len()) as u64;
        let first = report.findings.iter().next();
        let (verdict, message) = match (first, doubt) {
            // What was found is corruption, even where it cannot be read again.
            (None, _) if findings > 0 => (Verdict::Corrupt, format!("{findings} findings, which cannot be read again")),
            (Some(finding), _) => {
                let text = format!("{}, state {}: {}", finding.check.msg, finding.state, finding.text(&report.names()));
                (Verdict::Corrupt, text)
            }
            (None, Some(doubt)) => (Verdict::Unknown, doubt.to_owned()),
            (None, None) if report.complete() => (Verdict::Sound, String::new()),
            (None, None) => (Verdict::Unknown, why_incomplete(report)),
        };
        Self { verdict, message, findings, not_verified }
    }
}

fn why_incomplete(report: &Report) -> String {
    let entry = report.not_verified.iter().find(|entry| !report.is_allowed(entry.limit));
    let of_entry = entry.map(|entry| format!("not verified: {}, {}: {}", entry.what, entry.scope, entry.reason));
    let read_error = || report.read_errors.first().cloned();
    of_entry.or_else(read_error).unwrap_or_else(|| "not everything could be verified".to_owned())
}

impl History {
    /// Notes the result of a backup that has no run of its own.
    ///
    /// # Errors
    /// If it is not claimed any more, or the history cannot be written.
    pub fn finish(&mut self, claim: &Claim, verdict: Verdict, message: &str) -> Result<()> {
        let outcome = Outcome { verdict, message: message.to_owned(), findings: 0, not_verified: 0 };
        let now = time::now();
        let done = self.transaction(|transaction| finish(transaction, claim, None, &outcome, &now))?;
        if done { Ok(()) } else { Err(HistoryError::Leased { path: self.path().to_owned(), by: ANOTHER.to_owned() }) }
    }
}

impl History {
    /// Whether a backup is still claimed.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn is_claimed(&self, claim: &Claim) -> Result<bool> {
        holds(self.connection(), claim).map_err(|error| self.failed(&error))
    }
}

/// Whether a backup is still claimed.
pub(crate) fn holds(connection: &Connection, claim: &Claim) -> rusqlite::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM backup WHERE id = ?1 AND holder = ?2 AND state = 'running')";
    connection.query_row(query, params![claim.id, claim.token], |row| row.get(0))
}

/// Notes the result of a backup; `false` if it is not claimed any more.
pub(crate) fn finish(
    transaction: &Transaction<'_>,
    claim: &Claim,
    run: Option<i64>,
    outcome: &Outcome,
    now: &str,
) -> rusqlite::Result<bool> {
    let done = transaction.execute(
        "UPDATE backup SET state = 'done', holder = NULL, ended = ?3, verdict = ?4, reason = ?5, findings = ?6, not_verified = ?7,
         run = ?8, reported_at = NULL WHERE id = ?1 AND holder = ?2 AND state = 'running'",
        params![
            claim.id,
            claim.token,
            now,
            outcome.verdict.name(),
            short(&outcome.message),
            outcome.findings.cast_signed(),
            outcome.not_verified.cast_signed(),
            run
        ],
    )?;
    Ok(done == 1)
}

/// Notes that a backup could not be checked: it is tried again later, or was tried often enough. Returns how often it was tried; `None` if
/// it is not claimed any more.
pub(crate) fn fail(transaction: &Transaction<'_>, claim: &Claim, error: &str) -> rusqlite::Result<Option<u32>> {
    let now = SystemTime::now();
    let known = transaction.execute(
        "UPDATE backup SET tries = tries + 1, holder = NULL, ended = ?3, reason = ?4, reported_at = NULL
         WHERE id = ?1 AND holder = ?2 AND state = 'running'",
        params![claim.id, claim.token, time::text(now), short(error)],
    )?;
    if known == 0 {
        return Ok(None);
    }
    let tries: u32 = transaction.query_row("SELECT tries FROM backup WHERE id = ?1", [claim.id], |row| row.get(0))?;
    if tries >= MOST_TRIES {
        transaction.execute(
            "UPDATE backup SET state = 'skipped', verdict = 'unknown', reason = ?2 WHERE id = ?1",
            params![claim.id, short(&format!("tried {tries} times: {error}"))],
        )?;
    } else {
        let again = now.checked_add(backoff(tries)).unwrap_or(now);
        let later = "UPDATE backup SET state = 'ready', not_before = ?2 WHERE id = ?1";
        transaction.execute(later, params![claim.id, time::text(again)])?;
    }
    Ok(Some(tries))
}

fn short(text: &str) -> String {
    let text = storable(text);
    match text.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
