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
    /// Id of the database on the server that wrote the file.
    pub(crate) database_id: u32,
    /// Name of the database.
    pub(crate) name: &'a str,
    /// Target recovery time in seconds; null if checkpoints are automatic.
    pub(crate) target_recovery_seconds: Option<u32>,
    /// Whether checkpoints are automatic.
    pub(crate) automatic: bool,
}

/// The database and the source of a line about checkpoints.
#[derive(Serialize, Clone)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointsOf<'a> {
    /// The source: `events`, `error log` (trace flag 3502) or `log` (the transaction log).
    pub(crate) source: &'static str,
    /// Id of the database; null if only the transaction log of the database is known.
    pub(crate) database_id: Option<u32>,
    /// Name of the database; null if no data file of the database was given.
    pub(crate) database: Option<&'a str>,
    /// The log file, if the source is a transaction log.
    pub(crate) log: Option<&'a str>,
    /// Clock of the times: `utc`, or `local` for the server's local time with an unknown offset from UTC.
    pub(crate) clock: &'static str,
}

/// A checkpoint.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointPair<'a> {
    #[serde(flatten)]
    pub(crate) of: CheckpointsOf<'a>,
    /// When the checkpoint began.
    pub(crate) began: String,
    /// When the checkpoint ended.
    pub(crate) ended: String,
    /// Duration of the checkpoint in milliseconds; negative if the clock was set back.
    pub(crate) ms: f64,
    /// Activity id of the checkpoint; null if the event session does not track causality.
    pub(crate) activity: Option<String>,
}

/// Totals of the checkpoints of a database.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointTotals<'a> {
    #[serde(flatten)]
    pub(crate) of: CheckpointsOf<'a>,
    /// The checkpoints that are counted: `all`, or those `before` or `after` the change.
    pub(crate) period: &'static str,
    /// The time of the change (`--change`); null if the period is `all`.
    pub(crate) change: Option<String>,
    /// Number of checkpoints.
    pub(crate) count: u64,
    /// Average duration of the checkpoints in milliseconds; null if there are no checkpoints.
    pub(crate) avg_ms: Option<f64>,
    /// Longest duration of a checkpoint in milliseconds.
    pub(crate) max_ms: Option<f64>,
    /// Total duration of the checkpoints in milliseconds.
    pub(crate) total_ms: f64,
    /// Checkpoints per hour, from the first to the last checkpoint; null if there is only one checkpoint.
    pub(crate) per_hour: Option<f64>,
    /// When the first checkpoint began.
    pub(crate) first: Option<String>,
    /// When the last checkpoint began.
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
    /// Average duration of the checkpoints in milliseconds.
    pub(crate) avg_ms: f64,
    /// Longest duration of a checkpoint in milliseconds.
    pub(crate) max_ms: f64,
    /// Total duration of the checkpoints in milliseconds.
    pub(crate) total_ms: f64,
}

/// A slow checkpoint that the error log reports (FlushCache).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Flush<'a> {
    /// Id of the database; null in logs of SQL Server 2008.
    pub(crate) database_id: Option<u32>,
    /// Name of the database; null if no data file of the database was given.
    pub(crate) database: Option<&'a str>,
    /// When the error log reported the checkpoint. SQL Server reports a slow checkpoint when its writes have ended.
    pub(crate) at: Option<String>,
    /// Clock of the time: `utc`, or `local` if the error log does not contain the offset of its clock from UTC.
    pub(crate) clock: &'static str,
    /// Number of buffers written.
    pub(crate) bufs: u64,
    /// Number of writes. This figure and each figure after `ms` is null if the error log does not report it.
    pub(crate) writes: Option<u64>,
    /// Duration of the writes in milliseconds.
    pub(crate) ms: u64,
    /// Number of buffers that became dirty during the checkpoint and were not written.
    pub(crate) avoided: Option<u64>,
    /// Number of writes per second.
    pub(crate) writes_per_second: Option<f64>,
    /// Number of megabytes written per second.
    pub(crate) mb_per_second: Option<f64>,
    /// I/O saturation, as the error log reports it.
    pub(crate) io_saturation: Option<u64>,
    /// Number of context switches.
    pub(crate) context_switches: Option<u64>,
    /// Maximum number of outstanding writes that was allowed at the end of the checkpoint.
    pub(crate) last_target_outstanding: Option<u64>,
    /// Average latency of a write in milliseconds.
    pub(crate) avg_write_latency_ms: Option<u64>,
    /// When the matching checkpoint in the events began; null if the events contain no checkpoint that matches.
    pub(crate) checkpoint_began: Option<String>,
    /// Duration of the matching checkpoint in milliseconds.
    pub(crate) checkpoint_ms: Option<f64>,
}

/// The last line: totals.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointsSummary {
    /// Begin and end events that were read.
    pub(crate) events: u64,
    /// Number of checkpoints with a known begin and end.
    pub(crate) pairs: u64,
    /// Begin events without an end event.
    pub(crate) unpaired_begins: u64,
    /// End events without a begin event.
    pub(crate) unpaired_ends: u64,
    /// Begin and end events that were found more than once, for example in a file and in its export.
    pub(crate) repeated: u64,
    /// Checkpoint events without a time or a database.
    pub(crate) unusable: u64,
    /// Slow checkpoints that error logs report.
    pub(crate) flushes: u64,
    /// Number of lines in error logs that belong to a message about a checkpoint but could not be used. Either the
    /// first line of the message is missing, or the format of the line is unexpected.
    pub(crate) unclear_lines: u64,
    /// Events that ring buffers report as dropped.
    pub(crate) dropped_events: u64,
    /// Whether a ring buffer was truncated when it was read.
    pub(crate) truncated: bool,
    /// Whether all files were read to their end.
    pub(crate) complete: bool,
}
