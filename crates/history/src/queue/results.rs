//! Stores the result of checking a backup, in the same transaction as the run that checked it.

use std::time::SystemTime;

use findings::Report;
use rusqlite::{Connection, Transaction, params};

use super::claim::{Claim, backoff};
use super::finding::read_list;
use crate::error::{HistoryError, Result};
use crate::file::History;
use crate::identity::storable;
use crate::outbox::{self, About};
use crate::time;

/// The number of failed attempts from which on the stored reason also states the number of attempts.
const FEW_TRIES: u32 = 3;
/// The maximum length of a stored reason, in characters.
const MOST_LETTERS: usize = 500;

/// The text that error messages use for another process, if this process has lost its claim on a backup and the other
/// process has taken over the backup.
pub(crate) const ANOTHER: &str = "another watcher, which now checks this backup";

/// The backup in a watcher's queue that a run checks.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The claim on the backup.
    pub claim: &'a Claim,
    /// The reason for which the verdict is unknown even if the run verifies everything and finds nothing; `None` if
    /// there is no such reason.
    pub doubt: Option<&'a str>,
}

/// The verdict on a backup.
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
    /// The word that the history stores for the verdict.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Corrupt => "corrupt",
            Self::Unknown => "unknown",
        }
    }
}

/// The result of checking a backup.
#[derive(Debug)]
pub(crate) struct Outcome {
    verdict: Verdict,
    message: String,
    findings: u64,
    not_verified: u64,
    /// Whether the cause may be temporary: a later attempt may be able to read pages that this attempt could not read.
    is_passing: bool,
}

impl Outcome {
    /// The result of checking a backup, from the report of the check.
    pub(crate) fn of(report: &Report, doubt: Option<&str>) -> Self {
        let findings = report.findings.len() as u64;
        let not_verified = (report.not_verified.len() + report.demoted.len()) as u64;
        let first = report.findings.iter().next();
        let (verdict, message) = match (first, doubt) {
            // Every finding counts as corruption, even if its stored text can no longer be read.
            (None, _) if findings > 0 => {
                (Verdict::Corrupt, format!("{findings} findings, which cannot be read back from the history"))
            }
            (Some(finding), _) => {
                let text = format!("{}, state {}: {}", finding.check.msg, finding.state, finding.text(&report.names()));
                (Verdict::Corrupt, text)
            }
            (None, Some(doubt)) => (Verdict::Unknown, doubt.to_owned()),
            (None, None) if report.complete_as_allowed() => (Verdict::Sound, String::new()),
            (None, None) => (Verdict::Unknown, why_incomplete(report)),
        };
        // Read errors may be temporary. But if a read error has the same text as a warning, the file ends too early,
        // and a later attempt could not read more of it.
        let is_new = |error: &String| report.warnings.iter().all(|warning| warning.text != *error);
        let is_passing = verdict == Verdict::Unknown && report.read_errors.iter().any(is_new);
        Self { verdict, message, findings, not_verified, is_passing }
    }
}

/// Why the verdict on the database of a report is unknown; `None` if the verdict is known.
pub(crate) fn why_unknown(report: &Report) -> Option<String> {
    let Outcome { verdict, message, .. } = Outcome::of(report, None);
    (verdict == Verdict::Unknown).then(|| report.read_errors.first().cloned().unwrap_or(message))
}

fn why_incomplete(report: &Report) -> String {
    let entry = report.not_verified.iter().find(|entry| !report.is_allowed(entry.limit));
    let of_entry = entry.map(|entry| format!("not verified: {}, {}: {}", entry.what, entry.scope, entry.reason));
    let read_error = || report.read_errors.first().cloned();
    of_entry.or_else(read_error).unwrap_or_else(|| "not everything could be verified".to_owned())
}

impl History {
    /// Records the verdict on a backup that was not checked by a run. If `has_listener` is set, an unknown verdict is
    /// also recorded as an event.
    ///
    /// # Errors
    ///
    /// If the claim has ended, or the history cannot be written.
    pub fn finish(&mut self, claim: &Claim, verdict: Verdict, message: &str, has_listener: bool) -> Result<()> {
        let outcome = Outcome { verdict, message: message.to_owned(), findings: 0, not_verified: 0, is_passing: false };
        let now = time::now();
        let done = self.transaction(|transaction| finish(transaction, claim, None, &outcome, (has_listener, &now)))?;
        if done { Ok(()) } else { Err(HistoryError::Leased { path: self.path().to_owned(), by: ANOTHER.to_owned() }) }
    }
}

impl History {
    /// Whether this process still holds the claim on a backup.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn is_claimed(&self, claim: &Claim) -> Result<bool> {
        holds(self.connection(), claim).map_err(|error| self.failed(&error))
    }
}

/// Whether the process that made the claim still holds it.
pub(crate) fn holds(connection: &Connection, claim: &Claim) -> rusqlite::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM backup WHERE id = ?1 AND holder = ?2 AND state = 'running')";
    connection.query_row(query, params![claim.id, claim.token], |row| row.get(0))
}

/// Stores the result of checking a backup. Returns `false` if the claim has ended.
pub(crate) fn finish(
    transaction: &Transaction<'_>,
    claim: &Claim,
    run: Option<i64>,
    outcome: &Outcome,
    (has_listener, now): (bool, &str),
) -> rusqlite::Result<bool> {
    if outcome.is_passing {
        let tries = fail(transaction, claim, run, &outcome.message)?;
        // Only the first failed attempt to check a backup is recorded as an event.
        if has_listener && tries == Some(1) {
            tell(transaction, claim.id, &outcome.message, now)?;
        }
        return Ok(tries.is_some());
    }
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
    if done == 1 && has_listener && outcome.verdict == Verdict::Unknown {
        tell(transaction, claim.id, &outcome.message, now)?;
    }
    Ok(done == 1)
}

/// Records the event that the verdict on a backup is unknown.
pub(super) fn tell(transaction: &Transaction<'_>, id: i64, message: &str, now: &str) -> rusqlite::Result<()> {
    let query = "SELECT name, family, paths FROM backup WHERE id = ?1";
    let (database, family, paths): (String, String, String) =
        transaction.query_row(query, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let paths = read_list(&paths).join(", ");
    outbox::failed(transaction, About { database: &database, family: &family, paths: &paths }, message, now)
}

/// Records that a backup could not be checked, and when the next attempt may begin. Returns the number of failed
/// attempts; `None` if the claim has ended.
pub(crate) fn fail(
    transaction: &Transaction<'_>,
    claim: &Claim,
    run: Option<i64>,
    error: &str,
) -> rusqlite::Result<Option<u32>> {
    let now = SystemTime::now();
    let known = transaction.execute(
        "UPDATE backup SET tries = tries + 1, holder = NULL, ended = ?3, run = ?4, reported_at = NULL
         WHERE id = ?1 AND holder = ?2 AND state = 'running'",
        params![claim.id, claim.token, time::text(now), run],
    )?;
    if known == 0 {
        return Ok(None);
    }
    let tries: u32 = transaction.query_row("SELECT tries FROM backup WHERE id = ?1", [claim.id], |row| row.get(0))?;
    let reason = if tries < FEW_TRIES { short(error) } else { short(&format!("tried {tries} times: {error}")) };
    let again = now.checked_add(backoff(tries)).unwrap_or(now);
    let later = "UPDATE backup SET state = 'ready', reason = ?2, not_before = ?3 WHERE id = ?1";
    transaction.execute(later, params![claim.id, reason, time::text(again)])?;
    Ok(Some(tries))
}

fn short(text: &str) -> String {
    let text = storable(text);
    match text.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
