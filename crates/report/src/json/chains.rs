//! The JSON line of `mdfsck chain`. LSNs are decimal numbers, as RESTORE HEADERONLY prints them, and strings.

use serde::Serialize;

/// The kind of a [`Chains`] line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(inline))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChainsKind {
    Chains,
}

/// The backups of one database (`mdfsck chain`). All fields refer to sets by their index in `sets`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Chains<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// `chains`.
    pub(crate) kind: ChainsKind,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The server.
    pub(crate) server: &'a str,
    /// All sets, ordered by first LSN.
    pub(crate) sets: Vec<ChainSet<'a>>,
    /// One chain per complete full backup.
    pub(crate) chains: Vec<Chain<'a>>,
    /// Index in `chains` of the chain that reaches the latest point by the shortest path.
    pub(crate) newest: Option<usize>,
    /// The points in time that can be restored over all paths, according to the backup labels.
    pub(crate) points: Vec<Span<'a>>,
    /// Points in time on recovery branches that the database left when it was restored.
    pub(crate) left_points: Vec<Span<'a>>,
    /// Sets that the newest chain does not need, but other points in time do.
    pub(crate) beside: Vec<Beside<'a>>,
    /// Sets that no restore can use.
    pub(crate) unused: &'a [usize],
    /// The reason for each set in `unused`, in the same order.
    pub(crate) reasons: Vec<String>,
    /// The requested point in time (`--at`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Moment<'a>>,
    /// Another path, if `--verify` found damage on the path to the latest or to the requested point in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detour: Option<Detour<'a>>,
}

/// A backup set of a chain, all its stripes together.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChainSet<'a> {
    /// The files that hold its stripes.
    pub(crate) paths: Vec<String>,
    /// Its position in the files, from 1.
    pub(crate) position: u16,
    /// Its type in words.
    pub(crate) type_description: &'static str,
    /// Whether it was made WITH COPY_ONLY.
    pub(crate) copy_only: bool,
    /// Whether it is encrypted.
    pub(crate) encrypted: bool,
    /// When the backup was started.
    pub(crate) started: Option<&'a str>,
    /// When it was finished.
    pub(crate) finished: Option<&'a str>,
    /// LSN of the first log record in it.
    pub(crate) first_lsn: Option<String>,
    /// LSN of the next log record after it.
    pub(crate) last_lsn: Option<String>,
    /// Number of stripes.
    pub(crate) stripes: u16,
    /// Number of stripes that were not found.
    pub(crate) missing_stripes: u16,
    /// The numbers of the first 64 missing stripes, from 1.
    pub(crate) missing: &'a [u16],
    /// Copies of its files under other names.
    pub(crate) copies: Vec<String>,
    /// Whether one of its files is damaged.
    pub(crate) damaged: bool,
}

/// What can be restored from one full backup.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Chain<'a> {
    /// The full backup.
    pub(crate) full: usize,
    /// Its differentials, by time.
    pub(crate) differentials: &'a [usize],
    /// The sets to restore, in order, to reach the latest point possible.
    pub(crate) steps: &'a [usize],
    /// When the last step was finished.
    pub(crate) until: Option<&'a str>,
    /// The missing log, from LSN to LSN, if there are later log backups.
    pub(crate) gap: Option<[String; 2]>,
    /// Number of log backups before the last step that are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) omitted: Option<usize>,
    /// The result of a restore in memory (`--verify`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<VerifiedChain<'a>>,
}

/// The result of restoring a chain in memory and checking the restored database.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VerifiedChain<'a> {
    /// `sound`; `errors`; `incomplete` if not everything could be verified; `failed` if it cannot be restored.
    pub(crate) state: &'static str,
    /// Findings in the restored database, its backups and their log.
    pub(crate) errors: u64,
    /// The first finding.
    pub(crate) first_error: Option<&'a str>,
    /// The first thing that could not be verified, or why the chain cannot be restored.
    pub(crate) reason: Option<&'a str>,
    /// Allocated pages of the restored database.
    pub(crate) pages: u64,
    /// Pages that recovery from the log changed.
    pub(crate) recovered_pages: u64,
    /// Verified blocks of log in all backups of the chain.
    pub(crate) log_blocks: u64,
    /// Transactions that were open at the end and were rolled back.
    pub(crate) transactions_undone: u64,
}

/// A range of points in time without a gap, in the local time of the server.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Span<'a> {
    /// The first point in time.
    pub(crate) from: &'a str,
    /// The last point in time.
    pub(crate) to: &'a str,
}

/// A set that the newest chain does not need, but other points in time do.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Beside<'a> {
    /// Index of the set in `sets`.
    pub(crate) set: usize,
    /// The first point in time that needs the set.
    pub(crate) from: Option<&'a str>,
    /// The last point in time that needs the set.
    pub(crate) to: Option<&'a str>,
    /// Whether these points in time are on a recovery branch that the database left when it was restored.
    pub(crate) left: bool,
}

/// The requested point in time (`--at`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Moment<'a> {
    /// The point in time.
    pub(crate) time: &'a str,
    /// Whether there is a path to this point, according to the backup labels.
    pub(crate) possible: bool,
    /// The path: sets in the order of their restore.
    pub(crate) steps: &'a [usize],
    /// Whether the last log goes beyond this point, so that STOPAT is needed.
    pub(crate) stop_at: bool,
    /// Whether this point is on a recovery branch that the database left when it was restored.
    pub(crate) left: bool,
    /// What is missing, if there is no path.
    pub(crate) missing: Option<String>,
    /// The missing log, from LSN to LSN. The second is null if there is no later log.
    pub(crate) missing_lsns: Option<[Option<String>; 2]>,
    /// The last point before it that can be restored, if there is no path.
    pub(crate) before: Option<&'a str>,
    /// The first point after it that can be restored, if there is no path.
    pub(crate) after: Option<&'a str>,
    /// The result of a restore to this point in memory (`--verify`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<VerifiedChain<'a>>,
}

/// A path that avoids damaged backups.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Detour<'a> {
    /// The sets that the path avoids.
    pub(crate) avoided: &'a [usize],
    /// The path: sets in the order of their restore.
    pub(crate) steps: &'a [usize],
    /// When the last step was finished.
    pub(crate) until: Option<&'a str>,
    /// The result of a restore in memory.
    pub(crate) verified: VerifiedChain<'a>,
}
