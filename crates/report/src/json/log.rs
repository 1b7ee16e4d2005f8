//! The JSON lines of `mdfsck log`, as types.

use serde::Serialize;

use super::lines::ErrorText;

/// A line of `mdfsck log`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum LogLine<'a> {
    Record(LogRecord<'a>),
    Transaction(LogTransaction<'a>),
    Checkpoint(LogCheckpoint),
    Vlf(LogVlf),
    Rate(LogRate),
    Error(ErrorText<'a>),
    Summary(LogSummary<'a>),
}

/// A log record (`--records`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogRecord<'a> {
    /// Its LSN.
    pub(crate) lsn: String,
    /// The operation: SQL Server's name without `LOP_`.
    pub(crate) operation: String,
    /// Its context, as a number.
    pub(crate) context: u8,
    /// The transaction that it belongs to; null if it belongs to none.
    pub(crate) transaction: Option<String>,
    /// LSN of the previous record of the transaction; for a compensation record, of the next record to undo; null if
    /// there is none.
    pub(crate) previous_lsn: Option<String>,
    /// Whether it undoes another record.
    pub(crate) compensation: bool,
    /// File of the page that it changes; null if it changes none.
    pub(crate) file: Option<u16>,
    /// Number of the page that it changes.
    pub(crate) page: Option<u32>,
    /// The slot; null if the record is not about a row.
    pub(crate) slot: Option<u16>,
    /// LSN that the page has before this record.
    pub(crate) page_lsn: Option<String>,
    /// Allocation unit of the page.
    pub(crate) alloc_unit_id: Option<String>,
    /// Size of the record in bytes.
    pub(crate) bytes: usize,
    /// Name of the transaction, on its BEGIN_XACT record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'a str>,
    /// The table whose rows it changes, according to the present catalog; only if data files are named too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<&'a str>,
    /// The index whose rows it changes; absent for a heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<&'a str>,
    /// Rows that it inserts or deletes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rows: Vec<LogRow<'a>>,
    /// Parts of a row that it replaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pieces: Vec<LogPiece<'a>>,
}

/// A row that a record inserts or deletes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogRow<'a> {
    /// `insert` or `delete`.
    pub(crate) action: &'static str,
    /// Columns of the row; empty if the row does not match the catalog.
    pub(crate) columns: Vec<LogColumn<'a>>,
}

/// A column of a row in a record.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogColumn<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its value as text.
    pub(crate) value: &'a str,
}

/// Bytes of a row that a record replaces.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogPiece<'a> {
    /// Where they start in the row, in bytes.
    pub(crate) offset: u16,
    /// The column that these bytes fill exactly; absent if they are part of a column, or span several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<&'a str>,
    /// The column that these bytes are part of, if the catalog proves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part_of: Option<&'a str>,
    /// The value of the column before the change; without a column, the bytes in hexadecimal.
    pub(crate) before: &'a str,
    /// The value of the column after the change; without a column, the bytes in hexadecimal.
    pub(crate) after: &'a str,
}

/// A transaction. Without `--transactions`, only transactions that had not ended are listed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogTransaction<'a> {
    /// Its id, as SQL Server prints it: `0000:000003a8`.
    pub(crate) id: String,
    /// Name of the transaction; empty if the log does not contain its begin.
    pub(crate) name: &'a str,
    /// `committed`, `rolled back`, `open` or `in doubt`.
    pub(crate) state: &'static str,
    /// Number of its records in this log.
    pub(crate) records: u64,
    /// Bytes of these records.
    pub(crate) log_bytes: u64,
    /// LSN of its begin; null if the log does not contain it.
    pub(crate) begin_lsn: Option<String>,
    /// LSN of its last record.
    pub(crate) last_lsn: String,
    /// Session that began it; null if the log does not contain its begin.
    pub(crate) session: Option<u16>,
    /// Security identifier of the login in hexadecimal; null if the log names none.
    pub(crate) login_sid: Option<String>,
    /// Name of the database user or role with this identifier, if data files are named too; `sa` is known without them;
    /// null if unknown.
    pub(crate) login: Option<&'a str>,
    /// When it began, in the server's local time.
    pub(crate) began: Option<String>,
    /// When it ended.
    pub(crate) ended: Option<String>,
}

/// A checkpoint.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogCheckpoint {
    /// LSN of its BEGIN_CKPT.
    pub(crate) begin_lsn: String,
    /// LSN of its END_CKPT; null if it did not end.
    pub(crate) end_lsn: Option<String>,
    /// LSN from which a recovery after it redoes.
    pub(crate) redo_lsn: Option<String>,
    /// When it began, in the server's local time.
    pub(crate) began: Option<String>,
    /// When it ended.
    pub(crate) ended: Option<String>,
    /// Its duration in milliseconds, to 1/300 second; negative if the clock was set back.
    pub(crate) ms: Option<i64>,
    /// Bytes of log blocks since the previous checkpoint began.
    pub(crate) log_bytes: u64,
    /// Transactions that were open.
    pub(crate) open_transactions: u64,
}

/// A virtual log file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogVlf {
    /// Id of the log file that contains it.
    pub(crate) file_id: u16,
    /// Its sequence number; 0 if it was never used.
    pub(crate) seq: u32,
    /// Where it starts in its file, in bytes.
    pub(crate) offset: u64,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// 64 or 128; it changes with each reuse.
    pub(crate) parity: u8,
    /// Number of log blocks in it.
    pub(crate) blocks: u64,
    /// Whether a recovery would need it, judged by this log alone.
    pub(crate) active: bool,
}

/// The log written during one time step. Steps in which nothing was written have no line. A block belongs to the time
/// at which it was closed; if that is unknown, to the time of the last begin or end of a transaction or checkpoint up
/// to it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogRate {
    /// When the step starts, in the server's local time.
    pub(crate) from: Option<String>,
    /// Length of the step in seconds.
    pub(crate) seconds: i64,
    /// Bytes of log blocks.
    pub(crate) log_bytes: u64,
    /// Records.
    pub(crate) records: u64,
    /// Transactions that ended.
    pub(crate) transactions: u64,
}

/// The last line: totals, and where the log ends.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogSummary<'a> {
    /// Number of blocks.
    pub(crate) blocks: u64,
    /// Number of records.
    pub(crate) records: u64,
    /// Bytes of the blocks.
    pub(crate) log_bytes: u64,
    /// LSN of the last record; null if there is none.
    pub(crate) end_lsn: Option<String>,
    /// Why the log ends there: `written` (nothing follows), `under way` (blocks of unfinished writes follow, as after a
    /// crash), `damaged`, or `empty` for backups that contain no log.
    pub(crate) end: &'static str,
    /// Id of the log file in which the log ends.
    pub(crate) end_file_id: u16,
    /// Where the next block would begin in that file, in bytes.
    pub(crate) end_offset: u64,
    /// Blocks after the end, which are not part of the log.
    pub(crate) blocks_after_end: u64,
    /// Blocks whose records are encrypted and were not read.
    pub(crate) encrypted_blocks: u64,
    /// Checkpoints that began.
    pub(crate) checkpoints: u64,
    /// Transactions that had not ended.
    pub(crate) open_transactions: u64,
    /// LSN from which a recovery would need the log; null if no checkpoint ended in it.
    pub(crate) needed_from_lsn: Option<String>,
    /// What prevents reuse of the log, as in `log_reuse_wait_desc`: `NOTHING`, `CHECKPOINT`, `ACTIVE_TRANSACTION`, or
    /// `LOG_BACKUP`, which is known only if data files are named too. Whether replication needs log is unknown. Null if
    /// no checkpoint ended in the log.
    pub(crate) held_by: Option<&'static str>,
    /// LSN from which the log cannot be reused.
    pub(crate) held_from_lsn: Option<String>,
    /// Bytes of log from that LSN on.
    pub(crate) held_bytes: Option<u64>,
    /// Whether the log was read to its end.
    pub(crate) complete: bool,
    /// Names of the log files.
    pub(crate) files: Vec<&'a str>,
}
