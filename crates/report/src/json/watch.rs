//! The JSON lines of `mdfsck watch`, as types.

use serde::Serialize;

/// A line of `mdfsck watch`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum WatchLine<'a> {
    Watched(Watched<'a>),
    Alarm(WatchAlarm<'a>),
    WatchSummary(WatchSummary),
}

/// The result for a backup, or for the data files of a database.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Watched<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// The server of the database.
    pub(crate) server: &'a str,
    /// Name of the database; empty if the name is not known yet.
    pub(crate) database: &'a str,
    /// Family guid according to the labels, which is the same for all copies of the database.
    pub(crate) family: &'a str,
    /// Paths of the files.
    pub(crate) paths: &'a [String],
    /// Position of the backup set in its files.
    pub(crate) position: u16,
    /// Type of the backup: `full`, `differential`, `log`, `files`, `other`, `data` (data files), or `unknown`.
    pub(crate) r#type: &'static str,
    /// When the backup was finished (UTC).
    pub(crate) taken_at: Option<&'a str>,
    /// When the check began (UTC).
    pub(crate) started: Option<&'a str>,
    /// When the check ended (UTC).
    pub(crate) ended: Option<&'a str>,
    /// Status of the backup: `sound`, `corrupt`, `unknown` (not fully verified, not readable, or still incomplete after
    /// `--patience`), `skipped`, or `waiting` (not yet complete at the end of `--once`).
    pub(crate) status: &'static str,
    /// State in the queue: `waiting`, `ready` (to be tried again), `done` or `skipped`.
    pub(crate) state: &'a str,
    /// Number of findings.
    pub(crate) findings: u64,
    /// Number of things that could not be verified.
    pub(crate) not_verified: u64,
    /// The first finding, or why the status is `unknown` or `skipped`.
    pub(crate) message: &'a str,
    /// Number of the run in the history; null if the backup was not read completely.
    pub(crate) run: Option<i64>,
}

/// An alarm: no backup of a database is recent enough, or pages and cross-references were not checked within the
/// promised time.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WatchAlarm<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// The event: `backup-missing` or `promise-broken`.
    pub(crate) event: &'static str,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Family guid, which is the same for all copies of the database.
    pub(crate) family: &'a str,
    /// A description of the problem.
    pub(crate) text: &'a str,
}

/// The last line of `mdfsck watch --once`: number of lines by status, and number of backups that remain.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WatchSummary {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Number of backups that are sound.
    pub(crate) sound: u64,
    /// Number of backups with corruption.
    pub(crate) corrupt: u64,
    /// Number of backups with the status `unknown`.
    pub(crate) unknown: u64,
    /// Number of backups that were skipped.
    pub(crate) skipped: u64,
    /// Number of backups that are not yet complete.
    pub(crate) waiting: u64,
    /// Number of backups that will be checked later.
    pub(crate) ready: u64,
    /// Exit status.
    pub(crate) exit_status: u8,
}
