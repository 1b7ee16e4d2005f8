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
    Table(HistoryTable<'a>),
    Difference(HistoryDifference<'a>),
    Throughput(HistoryThroughput<'a>),
    Baseline(HistoryBaseline<'a>),
    Ledger(HistoryLedger<'a>),
    Acknowledged(HistoryAcknowledged),
    Forgotten(HistoryForgotten),
}

/// The state of a database (`mdfsck history FILE`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryState<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Name of the database in its last run.
    pub(crate) database: &'a str,
    /// Family guid, which is the same for all databases restored from this database.
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
    /// When the last run began. All times of a history are in UTC.
    pub(crate) started: &'a str,
    /// Exit status of the last run.
    pub(crate) exit_status: u8,
    /// Number of open findings in all copies.
    pub(crate) findings_open: u64,
    /// When the least recently read page in use was read; null if a page was never read.
    pub(crate) oldest_read: Option<&'a str>,
    /// When the least recently verified cross-reference between pages and tables was verified; null if a
    /// cross-reference was never verified.
    pub(crate) oldest_closed: Option<&'a str>,
}

/// When the pages of a database were last read, and when its relations (links, keys and rows) were last
/// verified (`mdfsck history FILE coverage`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryCoverage<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Family guid of the database.
    pub(crate) family: &'a str,
    /// Server of the database; empty if the databases of a family count as one (`--replicas`).
    pub(crate) server: &'a str,
    /// Length of `--within` in seconds; null without `--within`.
    pub(crate) within_seconds: Option<u64>,
    /// Number of pages in use.
    pub(crate) pages_in_use: u64,
    /// Number of pages in use that were read and checked within the time span of `--within`. Without `--within`, the
    /// number of pages in use that were ever read and checked.
    pub(crate) pages_within: u64,
    /// Number of pages in use that were never read.
    pub(crate) never: u64,
    /// The least recently read range of pages; null if no page was read.
    pub(crate) oldest: Option<HistoryRange<'a>>,
    /// Totals of the relations (links, keys and rows).
    pub(crate) relations: HistoryRelations<'a>,
    /// Number of pages for each kind of evidence that they were read.
    pub(crate) evidence: HistoryEvidence,
    /// Whether, within the time span of `--within`, every page in use was read and all cross-references between pages
    /// and tables were verified.
    pub(crate) kept: bool,
}

/// A range of pages, and the time of its last read.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryRange<'a> {
    /// Id of the file.
    pub(crate) file: u16,
    /// Number of the first page.
    pub(crate) first: u32,
    /// Number of pages, in use or not.
    pub(crate) pages: u32,
    /// When the pages were read. For pages of a backup, the time is not later than the time of the backup.
    pub(crate) at: &'a str,
}

/// Totals of the relations (links, keys and rows). The structure of each heap or index counts as one
/// relation. The agreement of each nonclustered index with its table counts as another one.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryRelations<'a> {
    /// Number of cross-references.
    pub(crate) total: u64,
    /// Number of cross-references that were verified within the time span of `--within`.
    pub(crate) within: u64,
    /// When the least recently verified cross-reference was verified; null if a cross-reference was never verified.
    pub(crate) oldest_at: Option<&'a str>,
}

/// Number of pages for each kind of evidence that they were read.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryEvidence {
    /// Number of pages that mdfsck read.
    pub(crate) read: u64,
    /// Number of pages that belong to an object that was read before and has not changed since.
    pub(crate) object: u64,
    /// Number of pages that, according to the chain of backups, equal pages that were read before.
    pub(crate) chain: u64,
    /// Number of pages that, according to SQL Server, have not changed since they were read.
    pub(crate) vouched: u64,
}

/// A run (`mdfsck history FILE runs`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryRun<'a> {
    /// Number of the run.
    pub(crate) run: i64,
    /// Name of the database; null if the database could not be opened.
    pub(crate) database: Option<&'a str>,
    /// Family guid of the database.
    pub(crate) family: Option<&'a str>,
    /// Server of the database; empty if the databases of a family count as one (`--replicas`), null if the database
    /// could not be opened.
    pub(crate) server: Option<&'a str>,
    /// Source of the pages: `files` or `backup`; null if the database could not be opened.
    pub(crate) source: Option<&'a str>,
    /// The machine on which the run was made.
    pub(crate) host: &'a str,
    /// The checked files, without secrets.
    pub(crate) paths: &'a str,
    /// The DBCC command that corresponds to the options; empty if the database could not be opened.
    pub(crate) command: &'a str,
    /// When the run began.
    pub(crate) started: &'a str,
    /// When the run ended.
    pub(crate) ended: &'a str,
    /// The point in time of the checked database state: the time of the backup, or the time when the files were read.
    pub(crate) taken_at: Option<&'a str>,
    /// Verdict of the run: `sound`, `corrupt`, `unknown` (incomplete) or `failed`.
    pub(crate) verdict: &'static str,
    /// Exit status of the run.
    pub(crate) exit_status: u8,
    /// Why the run failed.
    pub(crate) error: Option<&'a str>,
    /// Number of findings.
    pub(crate) findings: u64,
    /// Number of findings that earlier runs did not have.
    pub(crate) findings_new: u64,
    /// Number of earlier findings that the run looked for and did not find.
    pub(crate) findings_gone: u64,
    /// Number of things that could not be verified.
    pub(crate) not_verified: u64,
    /// Number of pages in use.
    pub(crate) pages_in_use: u64,
    /// Number of rows that were seen.
    pub(crate) rows: u64,
    /// Number of bytes that were read.
    pub(crate) bytes_read: u64,
    /// Duration of the run in seconds.
    pub(crate) seconds: f64,
    /// Processor time in seconds; null if the system does not report it.
    pub(crate) cpu_seconds: Option<f64>,
    /// Peak memory in bytes; null if the system does not report it.
    pub(crate) memory_peak: Option<u64>,
}

/// A finding, with its history over all runs (`mdfsck history FILE findings`, `diff`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryFinding<'a> {
    /// Key of the finding, which `ack` takes as argument.
    pub(crate) key: i64,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Family guid of the database.
    pub(crate) family: &'a str,
    /// Server of the database; empty if the databases of a family count as one (`--replicas`).
    pub(crate) server: &'a str,
    /// Source of the pages: `files` or `backup`.
    pub(crate) source: &'a str,
    /// The machine or server on which the checked copy is.
    pub(crate) host: &'a str,
    /// Path of the checked copy; for a backup, the name of the database on its server.
    pub(crate) location: &'a str,
    /// State of the finding: `new`, `confirmed` (a later run saw it again) or `gone` (a later run looked for it and did
    /// not find it).
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
    /// The text of the message when a run last saw the finding.
    pub(crate) text: &'a str,
    /// When a run first saw the finding.
    pub(crate) first_seen: &'a str,
    /// When a run last saw the finding.
    pub(crate) last_seen: &'a str,
    /// When a run last looked for the finding.
    pub(crate) last_looked: &'a str,
    /// Number of runs that saw the finding.
    pub(crate) seen: u64,
    /// Who acknowledged the finding; null if it is not acknowledged.
    pub(crate) ack_by: Option<&'a str>,
    /// The reason given for the acknowledgment.
    pub(crate) ack_text: Option<&'a str>,
    /// When the acknowledgment expires; null if it does not expire.
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
    /// Number of the partition, from 1.
    pub(crate) partition: i32,
    /// When rows and pages were first counted. With `--since`, only counts since that time are considered.
    pub(crate) first_at: &'a str,
    /// Number of rows at the time `first_at`.
    pub(crate) first_rows: u64,
    /// Number of pages at the time `first_at`.
    pub(crate) first_pages: u64,
    /// When a run last counted a number of rows or pages that differed from the previous count.
    pub(crate) last_at: &'a str,
    /// Number of rows at the time `last_at`. Later runs counted the same number.
    pub(crate) last_rows: u64,
    /// Number of pages at the time `last_at`. Later runs counted the same number.
    pub(crate) last_pages: u64,
    /// When the structure of the partition, and its agreement with the table, were last verified; null if one of these
    /// was never verified.
    pub(crate) closed_at: Option<&'a str>,
}

/// When a table was last proven to be sound (`mdfsck history FILE tables`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryTable<'a> {
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The table, with its schema.
    pub(crate) table: &'a str,
    /// Id of the table.
    pub(crate) object_id: i32,
    /// The time of the oldest of the table's proofs: of the structure of its heap and indexes, and of their agreement. Null
    /// if one of them was never verified.
    pub(crate) proven_at: Option<&'a str>,
    /// When the pages were read on which these proofs rest: the oldest of these reads. Null if there is none.
    pub(crate) read_at: Option<&'a str>,
    /// Whether the last check found all of it sound.
    pub(crate) is_sound: bool,
}

/// The number of findings that changed between two runs. The lines before this line contain the findings (`mdfsck
/// history FILE diff`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryDifference<'a> {
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Number of the earlier run.
    pub(crate) from: i64,
    /// Number of the later run.
    pub(crate) to: i64,
    /// Number of findings that only the later run has.
    pub(crate) new: u64,
    /// Number of findings that only the earlier run has.
    pub(crate) gone: u64,
    /// Number of findings that both runs have.
    pub(crate) open: u64,
}

/// Read speed of all runs that checked the same copy of a database (`mdfsck history FILE baselines`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryThroughput<'a> {
    /// Name of the database.
    pub(crate) database: &'a str,
    /// Source of the pages: `files` or `backup`.
    pub(crate) source: &'a str,
    /// The machine on which the runs were made.
    pub(crate) host: &'a str,
    /// The DBCC command that corresponds to the options of the runs.
    pub(crate) command: &'a str,
    /// Number of runs.
    pub(crate) runs: usize,
    /// Median read speed in bytes per second.
    pub(crate) bytes_per_second: f64,
    /// Read speed of the slowest run in bytes per second.
    pub(crate) slowest: f64,
    /// Read speed of the fastest run in bytes per second.
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

/// What checks have kept of a full backup and of later states that build on it (`mdfsck history FILE ledgers`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryLedger<'a> {
    /// Name of the database.
    pub(crate) database: &'a str,
    /// GUID of the full backup.
    pub(crate) base_set: &'a str,
    /// The full backup: its kind, and when it finished.
    pub(crate) base: &'a str,
    /// Size of the ledger in bytes.
    pub(crate) bytes: u64,
    /// The checks whose sums are kept, the earliest first.
    pub(crate) checks: Vec<HistoryLedgerRun>,
    /// Why the ledger cannot be used any more; null if it can.
    pub(crate) not_usable: Option<&'a str>,
}

/// A check whose sums are kept.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryLedgerRun {
    /// The checked state: the last backup set, and when it finished.
    pub(crate) image: String,
    /// When the check began, in UTC.
    pub(crate) read_at: String,
}

/// Confirms that a finding is acknowledged (`mdfsck history FILE ack`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryAcknowledged {
    /// Key of the finding.
    pub(crate) key: i64,
}

/// The data that was removed from the history (`mdfsck history FILE forget`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryForgotten {
    /// Number of databases that were removed.
    pub(crate) databases: u64,
    /// Number of runs that were removed.
    pub(crate) runs: u64,
}
