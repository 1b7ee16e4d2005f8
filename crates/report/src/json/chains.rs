//! The JSON line of `mdfsck chain`. An LSN is a string with one decimal number, as RESTORE HEADERONLY prints it.

use serde::Serialize;

/// The kind of a [`Chains`] line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(inline))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChainsKind {
    Chains,
}

/// The backups of one database (`mdfsck chain`). Other fields refer to a set by its index in `sets`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Chains<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Always `chains`.
    pub(crate) kind: ChainsKind,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Name of the server.
    pub(crate) server: &'a str,
    /// All backup sets, ordered by first LSN.
    pub(crate) sets: Vec<ChainSet<'a>>,
    /// The chains: one for each complete full backup.
    pub(crate) chains: Vec<Chain<'a>>,
    /// Index in `chains` of the chain that reaches the latest point in time by the shortest path.
    pub(crate) newest: Option<usize>,
    /// The points in time that can be restored by any path, according to the backup labels.
    pub(crate) points: Vec<Span<'a>>,
    /// Points in time on recovery branches that the database left when it was restored.
    pub(crate) left_points: Vec<Span<'a>>,
    /// Sets that the newest chain does not need but that are needed to restore other points in time.
    pub(crate) beside: Vec<Beside<'a>>,
    /// Indexes in `sets` of the sets that no restore can use.
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

/// A backup set with all its stripes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChainSet<'a> {
    /// The files with the set's stripes.
    pub(crate) paths: Vec<String>,
    /// Position of the set in the files, from 1.
    pub(crate) position: u16,
    /// Type of the set in words.
    pub(crate) type_description: &'static str,
    /// Whether the backup was made WITH COPY_ONLY.
    pub(crate) copy_only: bool,
    /// Whether the backup is encrypted.
    pub(crate) encrypted: bool,
    /// When the backup was started.
    pub(crate) started: Option<&'a str>,
    /// When the backup was finished.
    pub(crate) finished: Option<&'a str>,
    /// LSN of the first log record in the backup.
    pub(crate) first_lsn: Option<String>,
    /// LSN of the log record after the last record in the backup.
    pub(crate) last_lsn: Option<String>,
    /// Number of stripes.
    pub(crate) stripes: u16,
    /// Number of stripes that were not found.
    pub(crate) missing_stripes: u16,
    /// The numbers of the first 64 missing stripes, from 1.
    pub(crate) missing: &'a [u16],
    /// Copies of the set's files under other names.
    pub(crate) copies: Vec<String>,
    /// Whether one of the set's files is damaged.
    pub(crate) damaged: bool,
}

/// A chain: a full backup, and the backups that can be restored after it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Chain<'a> {
    /// Index of the full backup in `sets`.
    pub(crate) full: usize,
    /// Indexes in `sets` of the differential backups based on the full backup, by time.
    pub(crate) differentials: &'a [usize],
    /// Indexes in `sets` of the sets to restore, in order, to reach the latest possible point in time.
    pub(crate) steps: &'a [usize],
    /// When the backup of the last step was finished.
    pub(crate) until: Option<&'a str>,
    /// The range of LSNs that no backup contains, if there are later log backups; otherwise null.
    pub(crate) gap: Option<[String; 2]>,
    /// Number of log backups that have to be restored before the last step but are not listed in `steps`, because the
    /// chain has too many log backups.
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
    /// The result: `sound`, `errors`, `incomplete` if not everything could be verified, or `failed` if the chain cannot
    /// be restored.
    pub(crate) state: &'static str,
    /// Number of findings in the restored database, in its backups and in the log of these backups.
    pub(crate) errors: u64,
    /// The text of the first finding.
    pub(crate) first_error: Option<&'a str>,
    /// The first thing that could not be verified, or why the chain cannot be restored.
    pub(crate) reason: Option<&'a str>,
    /// Number of allocated pages in the restored database.
    pub(crate) pages: u64,
    /// Number of pages that recovery changed.
    pub(crate) recovered_pages: u64,
    /// Number of log blocks in all backups of the chain. Each of these blocks was verified.
    pub(crate) log_blocks: u64,
    /// Number of transactions that were open at the end of the log and were rolled back.
    pub(crate) transactions_undone: u64,
}

/// A range of points in time without a gap, in the local time of the server.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Span<'a> {
    /// The first point in time of the range.
    pub(crate) from: &'a str,
    /// The last point in time of the range.
    pub(crate) to: &'a str,
}

/// A set that the newest chain does not need but that is needed to restore other points in time.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Beside<'a> {
    /// Index of this set in `sets`.
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
    /// The requested point in time.
    pub(crate) time: &'a str,
    /// Whether there is a path to the requested point in time, according to the backup labels.
    pub(crate) possible: bool,
    /// The path: indexes in `sets`, in the order of the restore.
    pub(crate) steps: &'a [usize],
    /// Whether the last log backup continues after the requested point in time, so that STOPAT is needed.
    pub(crate) stop_at: bool,
    /// Whether the requested point in time is on a recovery branch that the database left when it was restored.
    pub(crate) left: bool,
    /// The missing backups, if there is no path.
    pub(crate) missing: Option<String>,
    /// The range of LSNs that no backup contains. The second LSN is null if there is no later log.
    pub(crate) missing_lsns: Option<[Option<String>; 2]>,
    /// If there is no path: the last point in time before the requested one that can be restored.
    pub(crate) before: Option<&'a str>,
    /// If there is no path: the first point in time after the requested one that can be restored.
    pub(crate) after: Option<&'a str>,
    /// The result of a restore in memory to the requested point in time (`--verify`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<VerifiedChain<'a>>,
}

/// A path that avoids damaged backups.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Detour<'a> {
    /// Indexes in `sets` of the sets that the path avoids.
    pub(crate) avoided: &'a [usize],
    /// The path: indexes in `sets`, in the order of the restore.
    pub(crate) steps: &'a [usize],
    /// When the backup of the last step was finished.
    pub(crate) until: Option<&'a str>,
    /// The result of a restore in memory.
    pub(crate) verified: VerifiedChain<'a>,
}
