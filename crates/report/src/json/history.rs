//! The JSON lines of `mdfsck history`, as types.

use serde::Serialize;

/// A line of `mdfsck history`; its first field, `kind`, says which.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum HistoryLine<'a> {
    State(HistoryState<'a>),
    Coverage(HistoryCoverage<'a>),
    Run(HistoryRun<'a>),
    Finding(HistoryFinding<'a>),
    Object(HistoryObject<'a>),
    Difference(HistoryDifference<'a>),
    Throughput(HistoryThroughput<'a>),
    Baseline(HistoryBaseline<'a>),
    Acknowledged(HistoryAcknowledged),
    Forgotten(HistoryForgotten),
}

/// What is known of a database (`mdfsck history FILE`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryState<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Name of the database, as its last run has it.
    pub(crate) database: &'a str,
    /// Family guid: that of the database and all that were restored from it.
    pub(crate) family: &'a str,
    /// Its server; empty if those of the family are one (`--replicas`).
    pub(crate) server: &'a str,
    /// `sound` if every copy was checked whole and nothing is open, `corrupt` if a copy has findings, else `unknown`.
    pub(crate) state: &'static str,
    /// Why it is unknown; else null.
    pub(crate) why: Option<&'a str>,
    /// Number of the last run.
    pub(crate) run: i64,
    /// When it began (UTC, as all times of a history).
    pub(crate) started: &'a str,
    /// Its exit status.
    pub(crate) exit_status: u8,
    /// Findings that are open, over all copies.
    pub(crate) findings_open: u64,
    /// When the page in use that was read longest ago was read; null if one never was.
    pub(crate) oldest_read: Option<&'a str>,
    /// When the relation was proven whose proof is oldest; null if one never was.
    pub(crate) oldest_closed: Option<&'a str>,
}

/// How old what was read and proven of a database is (`mdfsck history FILE coverage`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryCoverage<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Its family guid.
    pub(crate) family: &'a str,
    /// Its server; empty if those of the family are one (`--replicas`).
    pub(crate) server: &'a str,
    /// The span of `--within`; null without.
    pub(crate) within_seconds: Option<u64>,
    /// Pages in use.
    pub(crate) pages_in_use: u64,
    /// Those of them that were read and judged within the span; at all, without a span.
    pub(crate) pages_within: u64,
    /// Those of them that were never read.
    pub(crate) never: u64,
    /// The pages that were read longest ago; null if none was.
    pub(crate) oldest: Option<HistoryRange<'a>>,
    /// What ties pages and rows together.
    pub(crate) relations: HistoryRelations<'a>,
    /// On what it rests that the pages were read, in pages.
    pub(crate) evidence: HistoryEvidence,
    /// Whether every page in use was read within the span and every relation proven.
    pub(crate) kept: bool,
}

/// A range of pages and when it was read.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryRange<'a> {
    /// File id.
    pub(crate) file: u16,
    /// The first page.
    pub(crate) first: u32,
    /// How many pages, in use or not.
    pub(crate) pages: u32,
    /// When they were read; of a backup not later than the backup.
    pub(crate) at: &'a str,
}

/// Relations: an index or heap in itself, and an index with its table.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryRelations<'a> {
    /// How many there are.
    pub(crate) total: u64,
    /// Those that were proven within the span.
    pub(crate) within: u64,
    /// When the one was proven whose proof is oldest; null if one never was.
    pub(crate) oldest_at: Option<&'a str>,
}

/// On what it rests that pages were read, in pages.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryEvidence {
    /// They were read.
    pub(crate) read: u64,
    /// The same object was read before.
    pub(crate) object: u64,
    /// The chain of backups says that they are those that were read.
    pub(crate) chain: u64,
    /// SQL Server says that they have not changed since.
    pub(crate) vouched: u64,
}

/// A run (`mdfsck history FILE runs`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryRun<'a> {
    /// Its number.
    pub(crate) run: i64,
    /// Name of the database; null if it could not be opened.
    pub(crate) database: Option<&'a str>,
    /// Its family guid.
    pub(crate) family: Option<&'a str>,
    /// Its server; empty if those of the family are one (`--replicas`), null if it could not be opened.
    pub(crate) server: Option<&'a str>,
    /// `files` or `backup`; null if it could not be opened.
    pub(crate) source: Option<&'a str>,
    /// The machine that ran it.
    pub(crate) host: &'a str,
    /// The files, without secrets.
    pub(crate) paths: &'a str,
    /// The DBCC command that the options made of it; empty if it could not be opened.
    pub(crate) command: &'a str,
    /// When it began.
    pub(crate) started: &'a str,
    /// When it ended.
    pub(crate) ended: &'a str,
    /// The moment whose state was checked: that of a backup, or when the files were read.
    pub(crate) taken_at: Option<&'a str>,
    /// `sound`, `corrupt`, `unknown` (incomplete) or `failed`.
    pub(crate) verdict: &'static str,
    /// Exit status.
    pub(crate) exit_status: u8,
    /// Why it failed.
    pub(crate) error: Option<&'a str>,
    /// Findings.
    pub(crate) findings: u64,
    /// Those that were not there before.
    pub(crate) findings_new: u64,
    /// Findings that were looked for again and were gone.
    pub(crate) findings_gone: u64,
    /// How much was not verified.
    pub(crate) not_verified: u64,
    /// Pages in use.
    pub(crate) pages_in_use: u64,
    /// Rows that were seen.
    pub(crate) rows: u64,
    /// Bytes that were read.
    pub(crate) bytes_read: u64,
    /// Time.
    pub(crate) seconds: f64,
    /// Processor time, if the system reports it.
    pub(crate) cpu_seconds: Option<f64>,
    /// Largest resident memory in bytes, if the system reports it.
    pub(crate) memory_peak: Option<u64>,
}

/// A finding over all runs (`mdfsck history FILE findings`, `diff`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryFinding<'a> {
    /// Its key, for `ack`.
    pub(crate) key: i64,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Its family guid.
    pub(crate) family: &'a str,
    /// Its server; empty if those of the family are one (`--replicas`).
    pub(crate) server: &'a str,
    /// `files` or `backup`.
    pub(crate) source: &'a str,
    /// The machine or server of the copy.
    pub(crate) host: &'a str,
    /// Where the copy is; of a backup, the name of the database on its server.
    pub(crate) location: &'a str,
    /// `new`, `confirmed` (seen again by a later run) or `gone` (looked for again and not there).
    pub(crate) life: &'a str,
    /// Id of the check (docs/checks.md).
    pub(crate) id: &'a str,
    /// Number of the message.
    pub(crate) msg: u16,
    /// Its state.
    pub(crate) state: u8,
    /// The object, with its schema.
    pub(crate) object: Option<&'a str>,
    /// Id of the object.
    pub(crate) object_id: Option<i32>,
    /// Id of the index.
    pub(crate) index_id: Option<i32>,
    /// File.
    pub(crate) file: Option<u16>,
    /// Page.
    pub(crate) page: Option<u32>,
    /// Slot.
    pub(crate) slot: Option<u16>,
    /// The message, as it was seen last.
    pub(crate) text: &'a str,
    /// When a run saw it first.
    pub(crate) first_seen: &'a str,
    /// When a run saw it last.
    pub(crate) last_seen: &'a str,
    /// When a run looked for it last.
    pub(crate) last_looked: &'a str,
    /// How many runs saw it.
    pub(crate) seen: u64,
    /// Who knows of it; null if nobody said so.
    pub(crate) ack_by: Option<&'a str>,
    /// Why it may stay.
    pub(crate) ack_text: Option<&'a str>,
    /// Until when; null if for good.
    pub(crate) ack_until: Option<&'a str>,
}

/// A partition of a heap or index over time (`mdfsck history FILE objects`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryObject<'a> {
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The object, with its schema.
    pub(crate) object: &'a str,
    /// Its id.
    pub(crate) object_id: i32,
    /// Id of the index.
    pub(crate) index_id: i32,
    /// Name of the index; empty for a heap.
    pub(crate) index: &'a str,
    /// Partition, from 1.
    pub(crate) partition: i32,
    /// When it was counted first (since `--since`).
    pub(crate) first_at: &'a str,
    /// Rows then.
    pub(crate) first_rows: u64,
    /// Pages then.
    pub(crate) first_pages: u64,
    /// When a run saw other numbers last.
    pub(crate) last_at: &'a str,
    /// Rows since then.
    pub(crate) last_rows: u64,
    /// Pages since then.
    pub(crate) last_pages: u64,
    /// When its relations were proven last; null if one never was.
    pub(crate) closed_at: Option<&'a str>,
}

/// What changed between two runs; the findings come before it (`mdfsck history FILE diff`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryDifference<'a> {
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The earlier run.
    pub(crate) from: i64,
    /// The later run.
    pub(crate) to: i64,
    /// Findings that came.
    pub(crate) new: u64,
    /// Findings that went.
    pub(crate) gone: u64,
    /// Findings that stayed.
    pub(crate) open: u64,
}

/// How fast the runs of a copy were (`mdfsck history FILE baselines`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryThroughput<'a> {
    /// Name of the database.
    pub(crate) database: &'a str,
    /// `files` or `backup`.
    pub(crate) source: &'a str,
    /// The machine that ran them.
    pub(crate) host: &'a str,
    /// The DBCC command.
    pub(crate) command: &'a str,
    /// How many runs.
    pub(crate) runs: usize,
    /// Bytes per second, the median.
    pub(crate) bytes_per_second: f64,
    /// Of the slowest run.
    pub(crate) slowest: f64,
    /// Of the fastest run.
    pub(crate) fastest: f64,
}

/// Results of `mdfsck bench` (`mdfsck history FILE baselines`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryBaseline<'a> {
    /// Their name.
    pub(crate) name: &'a str,
    /// When they were saved.
    pub(crate) saved_at: &'a str,
}

/// A finding that somebody knows of (`mdfsck history FILE ack`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryAcknowledged {
    /// Its key.
    pub(crate) key: i64,
}

/// What was forgotten (`mdfsck history FILE forget`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryForgotten {
    /// Databases.
    pub(crate) databases: u64,
    /// Runs.
    pub(crate) runs: u64,
}
