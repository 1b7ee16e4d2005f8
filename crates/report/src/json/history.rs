//! The JSON lines of `mdfsck history`, as types.

use serde::Serialize;

/// A line of `mdfsck history`. Its first field, `kind`, names the kind of line.
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

/// The state of a database (`mdfsck history FILE`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryState<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Name of the database in its last run.
    pub(crate) database: &'a str,
    /// Family guid, which the database shares with all databases restored from it.
    pub(crate) family: &'a str,
    /// Server of the database; empty if the databases of a family count as one (`--replicas`).
    pub(crate) server: &'a str,
    /// `sound` if every copy was checked completely and no finding is open, `corrupt` if a copy has findings, otherwise
    /// `unknown`.
    pub(crate) state: &'static str,
    /// Why the state is unknown; otherwise null.
    pub(crate) why: Option<&'a str>,
    /// Number of the last run.
    pub(crate) run: i64,
    /// When it began (UTC, as all times of a history).
    pub(crate) started: &'a str,
    /// Its exit status.
    pub(crate) exit_status: u8,
    /// Number of open findings in all copies.
    pub(crate) findings_open: u64,
    /// When the least recently read page in use was read; null if a page was never read.
    pub(crate) oldest_read: Option<&'a str>,
    /// When the relation with the oldest proof was proven; null if a relation was never proven.
    pub(crate) oldest_closed: Option<&'a str>,
}

/// How long ago the pages of a database were read and its relations proven (`mdfsck history FILE coverage`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryCoverage<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Its family guid.
    pub(crate) family: &'a str,
    /// Server of the database; empty if the databases of a family count as one (`--replicas`).
    pub(crate) server: &'a str,
    /// The span of `--within` in seconds; null without it.
    pub(crate) within_seconds: Option<u64>,
    /// Pages in use.
    pub(crate) pages_in_use: u64,
    /// Pages in use that were read and judged within the span; without a span, at any time.
    pub(crate) pages_within: u64,
    /// Pages in use that were never read.
    pub(crate) never: u64,
    /// The least recently read pages; null if no page was read.
    pub(crate) oldest: Option<HistoryRange<'a>>,
    /// The relations between pages and rows.
    pub(crate) relations: HistoryRelations<'a>,
    /// Number of pages by the evidence that they were read.
    pub(crate) evidence: HistoryEvidence,
    /// Whether every page in use was read and every relation was proven within the span.
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
    /// Number of pages, in use or not.
    pub(crate) pages: u32,
    /// When the pages were read; for a backup, at the latest when it was made.
    pub(crate) at: &'a str,
}

/// Relations: the structure of an index or heap, and the agreement of an index with its table.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryRelations<'a> {
    /// Number of relations.
    pub(crate) total: u64,
    /// Relations that were proven within the span.
    pub(crate) within: u64,
    /// When the relation with the oldest proof was proven; null if a relation was never proven.
    pub(crate) oldest_at: Option<&'a str>,
}

/// Number of pages by the evidence that they were read.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryEvidence {
    /// Pages that were read.
    pub(crate) read: u64,
    /// Pages of an object that was read before and is the same.
    pub(crate) object: u64,
    /// Pages that are the ones read before, according to the chain of backups.
    pub(crate) chain: u64,
    /// Pages that have not changed since they were read, according to SQL Server.
    pub(crate) vouched: u64,
}

/// A run (`mdfsck history FILE runs`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryRun<'a> {
    /// Number of the run.
    pub(crate) run: i64,
    /// Name of the database; null if it could not be opened.
    pub(crate) database: Option<&'a str>,
    /// Its family guid.
    pub(crate) family: Option<&'a str>,
    /// Server of the database; empty if the databases of a family count as one (`--replicas`), null if the database
    /// could not be opened.
    pub(crate) server: Option<&'a str>,
    /// `files` or `backup`; null if the database could not be opened.
    pub(crate) source: Option<&'a str>,
    /// The machine that ran it.
    pub(crate) host: &'a str,
    /// The files, without secrets.
    pub(crate) paths: &'a str,
    /// The DBCC command that corresponds to the options; empty if the database could not be opened.
    pub(crate) command: &'a str,
    /// When the run began.
    pub(crate) started: &'a str,
    /// When the run ended.
    pub(crate) ended: &'a str,
    /// The point in time whose state was checked: that of a backup, or when the files were read.
    pub(crate) taken_at: Option<&'a str>,
    /// `sound`, `corrupt`, `unknown` (incomplete) or `failed`.
    pub(crate) verdict: &'static str,
    /// Exit status.
    pub(crate) exit_status: u8,
    /// Why the run failed.
    pub(crate) error: Option<&'a str>,
    /// Number of findings.
    pub(crate) findings: u64,
    /// Findings that earlier runs did not have.
    pub(crate) findings_new: u64,
    /// Findings that were looked for again and are gone.
    pub(crate) findings_gone: u64,
    /// Number of things that could not be verified.
    pub(crate) not_verified: u64,
    /// Pages in use.
    pub(crate) pages_in_use: u64,
    /// Rows that were seen.
    pub(crate) rows: u64,
    /// Bytes that were read.
    pub(crate) bytes_read: u64,
    /// Duration of the run in seconds.
    pub(crate) seconds: f64,
    /// Processor time in seconds; null if the system does not report it.
    pub(crate) cpu_seconds: Option<f64>,
    /// Peak memory in bytes; null if the system does not report it.
    pub(crate) memory_peak: Option<u64>,
}

/// A finding over all runs (`mdfsck history FILE findings`, `diff`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryFinding<'a> {
    /// Key of the finding, for `ack`.
    pub(crate) key: i64,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Its family guid.
    pub(crate) family: &'a str,
    /// Server of the database; empty if the databases of a family count as one (`--replicas`).
    pub(crate) server: &'a str,
    /// `files` or `backup`.
    pub(crate) source: &'a str,
    /// The machine or server of the copy.
    pub(crate) host: &'a str,
    /// Path of the copy; for a backup, the name of the database on its server.
    pub(crate) location: &'a str,
    /// `new`, `confirmed` (a later run saw it again) or `gone` (a later run looked for it and did not find it).
    pub(crate) life: &'a str,
    /// Id of the check (docs/checks.md).
    pub(crate) id: &'a str,
    /// Number of the message.
    pub(crate) msg: u16,
    /// State of the message.
    pub(crate) state: u8,
    /// The object, with its schema.
    pub(crate) object: Option<&'a str>,
    /// Id of the object.
    pub(crate) object_id: Option<i32>,
    /// Id of the index.
    pub(crate) index_id: Option<i32>,
    /// File id of the page.
    pub(crate) file: Option<u16>,
    /// Number of the page in its file.
    pub(crate) page: Option<u32>,
    /// The slot on the page.
    pub(crate) slot: Option<u16>,
    /// The text of the message when the finding was last seen.
    pub(crate) text: &'a str,
    /// When a run first saw it.
    pub(crate) first_seen: &'a str,
    /// When a run last saw it.
    pub(crate) last_seen: &'a str,
    /// When a run last looked for it.
    pub(crate) last_looked: &'a str,
    /// Number of runs that saw it.
    pub(crate) seen: u64,
    /// Who acknowledged the finding; null if it is not acknowledged.
    pub(crate) ack_by: Option<&'a str>,
    /// The reason given for the acknowledgment.
    pub(crate) ack_text: Option<&'a str>,
    /// When the acknowledgment ends; null if it has no end.
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
    /// Id of the object.
    pub(crate) object_id: i32,
    /// Id of the index.
    pub(crate) index_id: i32,
    /// Name of the index; empty for a heap.
    pub(crate) index: &'a str,
    /// Partition, from 1.
    pub(crate) partition: i32,
    /// When it was first counted (since `--since`).
    pub(crate) first_at: &'a str,
    /// Rows at that time.
    pub(crate) first_rows: u64,
    /// Pages at that time.
    pub(crate) first_pages: u64,
    /// When a run last found other numbers than before.
    pub(crate) last_at: &'a str,
    /// Rows since then.
    pub(crate) last_rows: u64,
    /// Pages since then.
    pub(crate) last_pages: u64,
    /// When its relations were last proven; null if one was never proven.
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
    /// Findings that only the later run has.
    pub(crate) new: u64,
    /// Findings that only the earlier run has.
    pub(crate) gone: u64,
    /// Findings that both runs have.
    pub(crate) open: u64,
}

/// Speed of the runs of a copy (`mdfsck history FILE baselines`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryThroughput<'a> {
    /// Name of the database.
    pub(crate) database: &'a str,
    /// `files` or `backup`.
    pub(crate) source: &'a str,
    /// The machine on which the runs were made.
    pub(crate) host: &'a str,
    /// The DBCC command.
    pub(crate) command: &'a str,
    /// Number of runs.
    pub(crate) runs: usize,
    /// Median speed in bytes per second.
    pub(crate) bytes_per_second: f64,
    /// Speed of the slowest run.
    pub(crate) slowest: f64,
    /// Speed of the fastest run.
    pub(crate) fastest: f64,
}

/// Results of `mdfsck bench` (`mdfsck history FILE baselines`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryBaseline<'a> {
    /// Name of the results.
    pub(crate) name: &'a str,
    /// When the results were saved.
    pub(crate) saved_at: &'a str,
}

/// An acknowledged finding (`mdfsck history FILE ack`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryAcknowledged {
    /// Key of the finding.
    pub(crate) key: i64,
}

/// What was removed from the history (`mdfsck history FILE forget`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryForgotten {
    /// Number of databases.
    pub(crate) databases: u64,
    /// Number of runs.
    pub(crate) runs: u64,
}
