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

/// The backups of one database (`mdfsck chain`). Sets are named by their index in `sets`.
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
    /// All sets, by first LSN.
    pub(crate) sets: Vec<ChainSet<'a>>,
    /// One chain per full backup that is whole.
    pub(crate) chains: Vec<Chain<'a>>,
    /// The chain to the latest point, by the shortest path: its index in `chains`.
    pub(crate) newest: Option<usize>,
    /// The moments that can be restored, over all paths, by the labels of the backups.
    pub(crate) points: Vec<Span<'a>>,
    /// Moments of what the database left behind when it was restored.
    pub(crate) left_points: Vec<Span<'a>>,
    /// Sets that the newest chain does not need, and other moments do.
    pub(crate) beside: Vec<Beside<'a>>,
    /// Sets that no restore can use.
    pub(crate) unused: &'a [usize],
    /// For each of these, why.
    pub(crate) reasons: Vec<String>,
    /// The moment that was asked for (`--at`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Moment<'a>>,
    /// Another path, if `--verify` found damage on the one to the latest point or to the moment that was asked for.
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
    /// Stripes that were not found.
    pub(crate) missing_stripes: u16,
    /// The numbers of the first 64 of these, from 1.
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
    /// What to restore to come as far as possible, in order.
    pub(crate) steps: &'a [usize],
    /// When the last step was finished.
    pub(crate) until: Option<&'a str>,
    /// Log from one LSN to another that is missing although there are later log backups.
    pub(crate) gap: Option<[String; 2]>,
    /// Log backups before the last step that are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) omitted: Option<usize>,
    /// What came of a restore in memory (`--verify`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<VerifiedChain<'a>>,
}

/// What came of a restore of a chain in memory, and of a check of the result.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VerifiedChain<'a> {
    /// `sound`; `errors`; `incomplete` if not everything could be verified; `failed` if it cannot be restored.
    pub(crate) state: &'static str,
    /// Findings in the restored database, its backups and their log.
    pub(crate) errors: u64,
    /// The first of them.
    pub(crate) first_error: Option<&'a str>,
    /// What could not be verified, first of all; why it cannot be restored.
    pub(crate) reason: Option<&'a str>,
    /// Allocated pages of the restored database.
    pub(crate) pages: u64,
    /// Pages that were made from the log.
    pub(crate) recovered_pages: u64,
    /// Blocks of log in all backups of the chain, each verified.
    pub(crate) log_blocks: u64,
    /// Transactions that were open at the end, and taken back.
    pub(crate) transactions_undone: u64,
}

/// Moments without gap, in the local time of the server.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Span<'a> {
    /// The first.
    pub(crate) from: &'a str,
    /// The last.
    pub(crate) to: &'a str,
}

/// A set that the newest chain does not need, and other moments do.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Beside<'a> {
    /// Its index in `sets`.
    pub(crate) set: usize,
    /// The first moment that it is needed for.
    pub(crate) from: Option<&'a str>,
    /// The last one.
    pub(crate) to: Option<&'a str>,
    /// Whether these are moments of what the database left behind when it was restored.
    pub(crate) left: bool,
}

/// The moment that was asked for (`--at`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Moment<'a> {
    /// The moment.
    pub(crate) time: &'a str,
    /// Whether there is a path to it, by the labels of the backups.
    pub(crate) possible: bool,
    /// The path: sets in the order of their restore.
    pub(crate) steps: &'a [usize],
    /// Whether the last log goes beyond the moment, so that STOPAT is needed.
    pub(crate) stop_at: bool,
    /// Whether it is a moment of what the database left behind when it was restored.
    pub(crate) left: bool,
    /// What is missing, if there is no path.
    pub(crate) missing: Option<String>,
    /// The missing log: from LSN, to LSN, which is null if there is no later log.
    pub(crate) missing_lsns: Option<[Option<String>; 2]>,
    /// The last moment before that can be restored, if there is no path.
    pub(crate) before: Option<&'a str>,
    /// The first moment after that can be restored, if there is no path.
    pub(crate) after: Option<&'a str>,
    /// What came of a restore to it in memory (`--verify`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<VerifiedChain<'a>>,
}

/// A path round backups that are damaged.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Detour<'a> {
    /// The sets that it avoids.
    pub(crate) avoided: &'a [usize],
    /// The path: sets in the order of their restore.
    pub(crate) steps: &'a [usize],
    /// When the last step was finished.
    pub(crate) until: Option<&'a str>,
    /// What came of a restore in memory.
    pub(crate) verified: VerifiedChain<'a>,
}
