//! The JSON lines of `mdfsck watch`, as types.

use serde::Serialize;

/// A line of `mdfsck watch`; its first field, `kind`, says which.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum WatchLine<'a> {
    Watched(Watched<'a>),
    Alarm(WatchAlarm<'a>),
    WatchSummary(WatchSummary),
}

/// What came of a backup, or of the data files of a database.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Watched<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// The server that made it.
    pub(crate) server: &'a str,
    /// Name of the database; empty if it is not known yet.
    pub(crate) database: &'a str,
    /// The database with all its copies, as far as the labels say.
    pub(crate) family: &'a str,
    /// Its files.
    pub(crate) paths: &'a [String],
    /// Position of the set in its files.
    pub(crate) position: u16,
    /// `full`, `differential`, `log`, `files`, `other`, `data` (data files), or `unknown`.
    pub(crate) r#type: &'static str,
    /// When the backup was finished (UTC).
    pub(crate) taken_at: Option<&'a str>,
    /// When its check began (UTC).
    pub(crate) started: Option<&'a str>,
    /// When it ended (UTC).
    pub(crate) ended: Option<&'a str>,
    /// `sound`, `corrupt`, `unknown` (not verified in full, not readable, or still not whole after `--patience`), `skipped`, or
    /// `waiting` (not whole yet; at the end of `--once`).
    pub(crate) status: &'static str,
    /// `waiting`, `ready` (it is tried again), `done`, `skipped`.
    pub(crate) state: &'a str,
    /// Findings.
    pub(crate) findings: u64,
    /// What could not be verified.
    pub(crate) not_verified: u64,
    /// The first finding; why it is unknown, or was skipped.
    pub(crate) message: &'a str,
    /// Number of the run in the history; null if it was not read whole.
    pub(crate) run: Option<i64>,
}

/// Something of a database is not as it was promised.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WatchAlarm<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// `backup-missing` or `promise-broken`.
    pub(crate) event: &'static str,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The database with all its copies.
    pub(crate) family: &'a str,
    /// What is wrong.
    pub(crate) text: &'a str,
}

/// The last line of `mdfsck watch --once`: counts of the lines before, and of the backups that are left.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WatchSummary {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Backups that are sound.
    pub(crate) sound: u64,
    /// Backups with corruption.
    pub(crate) corrupt: u64,
    /// Backups of which that is not known.
    pub(crate) unknown: u64,
    /// Backups that were left out.
    pub(crate) skipped: u64,
    /// Backups that are not whole yet.
    pub(crate) waiting: u64,
    /// Backups that are to be checked, but not now.
    pub(crate) ready: u64,
    /// Exit status.
    pub(crate) exit_status: u8,
}
