//! The JSON line about several databases, and the facts about backup sets in the lines of a check.

use serde::Serialize;

/// The last line if several databases were checked: the result of each database, in the order in which they were
/// checked. The line contains times, which differ from run to run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Databases<'a> {
    /// The results of the databases.
    pub(crate) databases: Vec<DatabaseRow<'a>>,
    /// Files that were skipped. They were found in a folder or by a pattern, and are not data files, logs or backups.
    pub(crate) passed_over: Vec<String>,
    /// The exit status, which combines the bits of all databases.
    pub(crate) exit_status: u8,
}

/// The result of the check of one database.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DatabaseRow<'a> {
    /// Name of the database; empty if unknown.
    pub(crate) database: &'a str,
    /// Data files or backups of the database.
    pub(crate) paths: Vec<String>,
    /// The backup sets that were restored; empty for data files.
    pub(crate) sets: Vec<SetLine<'a>>,
    /// The verdict: `sound`, `not-sound`, `incomplete` or `not-checked`.
    pub(crate) verdict: &'static str,
    /// Number of allocation and consistency errors.
    pub(crate) errors: u64,
    /// Number of things that could not be verified.
    pub(crate) not_verified: u64,
    /// Size of the data files in bytes; null if unknown.
    pub(crate) bytes: Option<u64>,
    /// Duration of the check in seconds; null if the database was not checked.
    pub(crate) seconds: Option<f64>,
    /// When CHECKDB last found no errors, in the local time of the server; null if the time is not recorded.
    pub(crate) last_good_check: Option<&'a str>,
    /// The exit status of the check.
    pub(crate) exit_status: u8,
    /// Why the database was not checked; null if it was checked.
    pub(crate) error: Option<&'a str>,
}

/// A backup set that was restored.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetLine<'a> {
    /// The files that hold the stripes of the set.
    pub(crate) paths: Vec<String>,
    /// Position of the set in the files. It is the same number as in RESTORE ... WITH FILE = n.
    pub(crate) position: u16,
    /// Type of the set, as RESTORE HEADERONLY names it: `Database`, `Database Differential`, `Transaction Log`, `File
    /// or Filegroup`, `Partial`.
    pub(crate) backup_type: &'static str,
    /// When the backup was finished, in the local time of the server.
    pub(crate) finished: Option<&'a str>,
}
