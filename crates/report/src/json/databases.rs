//! The line about several databases, and what lines of a check say about backups.

use serde::Serialize;

/// The last line if several databases were checked: the result of each, in the order of their lines. It contains times,
/// which differ from run to run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Databases<'a> {
    /// The databases.
    pub(crate) databases: Vec<DatabaseRow<'a>>,
    /// Skipped files: files in folders, or found by a pattern, that are neither data files, logs nor backups.
    pub(crate) passed_over: Vec<String>,
    /// The exit status: the bits of all databases, combined.
    pub(crate) exit_status: u8,
}

/// The result of the check of one database.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DatabaseRow<'a> {
    /// Name of the database; empty if unknown.
    pub(crate) database: &'a str,
    /// Its data files or backups.
    pub(crate) paths: Vec<String>,
    /// The backup sets that were restored; empty for data files.
    pub(crate) sets: Vec<SetLine<'a>>,
    /// `sound`, `not-sound`, `incomplete`, `not-checked`.
    pub(crate) verdict: &'static str,
    /// Number of allocation and consistency errors.
    pub(crate) errors: u64,
    /// Number of things that could not be verified.
    pub(crate) not_verified: u64,
    /// Size of its data files in bytes; null if unknown.
    pub(crate) bytes: Option<u64>,
    /// Duration of the check in seconds; null if there was none.
    pub(crate) seconds: Option<f64>,
    /// When CHECKDB last found no errors, in the local time of the server; null if that is not recorded.
    pub(crate) last_good_check: Option<&'a str>,
    /// The exit status of its check.
    pub(crate) exit_status: u8,
    /// Why the database was not checked; null if it was.
    pub(crate) error: Option<&'a str>,
}

/// A backup set that was restored.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetLine<'a> {
    /// The files that hold its stripes.
    pub(crate) paths: Vec<String>,
    /// Position of the set in the files: FILE = n of RESTORE.
    pub(crate) position: u16,
    /// Type of the set, as RESTORE HEADERONLY names it: `Database`, `Database Differential`, `Transaction Log`, `File
    /// or Filegroup`, `Partial`.
    pub(crate) backup_type: &'static str,
    /// When the backup was finished, in the local time of the server.
    pub(crate) finished: Option<&'a str>,
}
