//! The JSON lines of `mdfsck checkpoints`, as types.

use serde::Serialize;

use super::lines::ErrorText;

/// A line of `mdfsck checkpoints`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CheckpointsLine<'a> {
    Database(DatabaseTarget<'a>),
    Checkpoint(CheckpointPair<'a>),
    CheckpointTotals(CheckpointTotals<'a>),
    CheckpointHour(CheckpointHour<'a>),
    Flush(Flush<'a>),
    Error(ErrorText<'a>),
    Summary(CheckpointsSummary),
}

/// The checkpoint settings in the boot page of a database.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DatabaseTarget<'a> {
    /// Its id on the server that wrote the file.
    pub(crate) database_id: u32,
    /// Its name.
    pub(crate) name: &'a str,
    /// Target recovery time in seconds; null if checkpoints are automatic.
    pub(crate) target_recovery_seconds: Option<u32>,
    /// Whether checkpoints are automatic.
    pub(crate) automatic: bool,
}

/// The database whose checkpoints a line is about, and the source.
#[derive(Serialize, Clone)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointsOf<'a> {
    /// `events`, `error log` (trace flag 3502) or `log` (the transaction log).
    pub(crate) source: &'static str,
    /// Id of the database; null if only its log is known.
    pub(crate) database_id: Option<u32>,
    /// Name of the database; null if no data file of it was given.
    pub(crate) database: Option<&'a str>,
    /// The log file, if the source is a transaction log.
    pub(crate) log: Option<&'a str>,
    /// `utc`, or `local` for the server's local time with an unknown offset from UTC.
    pub(crate) clock: &'static str,
}

/// A checkpoint.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointPair<'a> {
    #[serde(flatten)]
    pub(crate) of: CheckpointsOf<'a>,
    /// When it began.
    pub(crate) began: String,
    /// When it ended.
    pub(crate) ended: String,
    /// Its duration in milliseconds; negative if the clock was set back.
    pub(crate) ms: f64,
    /// Its activity; null if the session does not track causality.
    pub(crate) activity: Option<String>,
}

/// Totals of the checkpoints of a database.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointTotals<'a> {
    #[serde(flatten)]
    pub(crate) of: CheckpointsOf<'a>,
    /// `all`, or `before` or `after` the change.
    pub(crate) period: &'static str,
    /// The time of the change (`--change`); null for all.
    pub(crate) change: Option<String>,
    /// Number of checkpoints.
    pub(crate) count: u64,
    /// Their average duration in milliseconds; null if there are none.
    pub(crate) avg_ms: Option<f64>,
    /// The longest duration in milliseconds.
    pub(crate) max_ms: Option<f64>,
    /// The total duration in milliseconds.
    pub(crate) total_ms: f64,
    /// Checkpoints per hour, from the first to the last one; null if there is only one.
    pub(crate) per_hour: Option<f64>,
    /// When the first began.
    pub(crate) first: Option<String>,
    /// When the last began.
    pub(crate) last: Option<String>,
}

/// The checkpoints of a database that began in one hour.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointHour<'a> {
    #[serde(flatten)]
    pub(crate) of: CheckpointsOf<'a>,
    /// When the hour began.
    pub(crate) hour: String,
    /// Number of checkpoints.
    pub(crate) count: u64,
    /// Their average duration in milliseconds.
    pub(crate) avg_ms: f64,
    /// The longest duration in milliseconds.
    pub(crate) max_ms: f64,
    /// The total duration in milliseconds.
    pub(crate) total_ms: f64,
}

/// A slow checkpoint that the error log reports (FlushCache).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Flush<'a> {
    /// Id of the database; null in logs of SQL Server 2008.
    pub(crate) database_id: Option<u32>,
    /// Name of the database; null if no data file of it was given.
    pub(crate) database: Option<&'a str>,
    /// When it was reported, at the end of the writes.
    pub(crate) at: Option<String>,
    /// `utc`, or `local` if the log does not contain its offset from UTC.
    pub(crate) clock: &'static str,
    /// Number of buffers written.
    pub(crate) bufs: u64,
    /// Number of writes. This and the figures below that may be null are null if the log does not report them.
    pub(crate) writes: Option<u64>,
    /// Duration of the writes in milliseconds.
    pub(crate) ms: u64,
    /// Buffers that became dirty meanwhile and were not written.
    pub(crate) avoided: Option<u64>,
    /// Writes per second.
    pub(crate) writes_per_second: Option<f64>,
    /// Megabytes per second.
    pub(crate) mb_per_second: Option<f64>,
    /// I/O saturation.
    pub(crate) io_saturation: Option<u64>,
    /// Context switches.
    pub(crate) context_switches: Option<u64>,
    /// Writes that were allowed to be in progress at the end.
    pub(crate) last_target_outstanding: Option<u64>,
    /// Average latency of a write in milliseconds.
    pub(crate) avg_write_latency_ms: Option<u64>,
    /// When the checkpoint of the events at this time began; null if the events have none.
    pub(crate) checkpoint_began: Option<String>,
    /// Duration of this checkpoint in milliseconds.
    pub(crate) checkpoint_ms: Option<f64>,
}

/// The last line: totals.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointsSummary {
    /// Begin and end events that were read.
    pub(crate) events: u64,
    /// Checkpoints whose begin and end are known.
    pub(crate) pairs: u64,
    /// Begins without an end.
    pub(crate) unpaired_begins: u64,
    /// Ends without a begin.
    pub(crate) unpaired_ends: u64,
    /// Begin and end events that were read more than once, for example from a file and from its export.
    pub(crate) repeated: u64,
    /// Checkpoint events without a time or a database.
    pub(crate) unusable: u64,
    /// Slow checkpoints that error logs report.
    pub(crate) flushes: u64,
    /// Lines of error logs about checkpoints whose first line is missing.
    pub(crate) unclear_lines: u64,
    /// Events that ring buffers say were dropped.
    pub(crate) dropped_events: u64,
    /// Whether a ring buffer was truncated when it was read.
    pub(crate) truncated: bool,
    /// Whether all files were read to their end.
    pub(crate) complete: bool,
}
