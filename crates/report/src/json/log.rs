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
    /// LSN of the record.
    pub(crate) lsn: String,
    /// Operation of the record: SQL Server's name without `LOP_`.
    pub(crate) operation: String,
    /// Context of the record, as a number.
    pub(crate) context: u8,
    /// Id of the record's transaction; null if the record belongs to no transaction.
    pub(crate) transaction: Option<String>,
    /// LSN of the previous record of the transaction. For a compensation record, LSN of the next record to undo. Null
    /// if there is no such record.
    pub(crate) previous_lsn: Option<String>,
    /// Whether the record is a compensation record, which undoes another record.
    pub(crate) compensation: bool,
    /// Id of the file with the page that the record changes; null if the record changes no page.
    pub(crate) file: Option<u16>,
    /// Number of the page that the record changes.
    pub(crate) page: Option<u32>,
    /// Slot of the row that the record changes; null if the record is not about a row.
    pub(crate) slot: Option<u16>,
    /// LSN of the page before this change.
    pub(crate) page_lsn: Option<String>,
    /// Id of the page's allocation unit.
    pub(crate) alloc_unit_id: Option<String>,
    /// Size of the record in bytes.
    pub(crate) bytes: usize,
    /// Name of the transaction; only on its BEGIN_XACT record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'a str>,
    /// The table with the rows that the record changes, according to the present catalog; only if data files are given
    /// too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<&'a str>,
    /// The index with the rows that the record changes; absent for a heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<&'a str>,
    /// Rows that the record inserts or deletes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rows: Vec<LogRow<'a>>,
    /// Parts of a row that the record replaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pieces: Vec<LogPiece<'a>>,
}

/// A row that a record inserts or deletes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogRow<'a> {
    /// The action: `insert` or `delete`.
    pub(crate) action: &'static str,
    /// Columns of the row; empty if the row does not match the catalog.
    pub(crate) columns: Vec<LogColumn<'a>>,
}

/// A column of a row in a log record.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogColumn<'a> {
    /// Name of the column.
    pub(crate) name: &'a str,
    /// Value of the column as text.
    pub(crate) value: &'a str,
}

/// Bytes of a row that a record replaces.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogPiece<'a> {
    /// Offset of the first replaced byte in the row.
    pub(crate) offset: u16,
    /// The column if the bytes are its whole value; absent if they are a part of a column, or span several columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<&'a str>,
    /// The column that contains these bytes, if the bytes are only a part of its value and the catalog proves which
    /// column it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part_of: Option<&'a str>,
    /// The value before the change. Text if `column` is present, otherwise the bytes in hexadecimal.
    pub(crate) before: &'a str,
    /// The value after the change. Text if `column` is present, otherwise the bytes in hexadecimal.
    pub(crate) after: &'a str,
}

/// A transaction. Without `--transactions`, only transactions that had not ended at the end of the log are listed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogTransaction<'a> {
    /// Id of the transaction, as SQL Server prints it: `0000:000003a8`.
    pub(crate) id: String,
    /// Name of the transaction; empty if the log does not contain its first record.
    pub(crate) name: &'a str,
    /// State of the transaction: `committed`, `rolled back`, `open` or `in doubt`.
    pub(crate) state: &'static str,
    /// Number of records of the transaction in this log.
    pub(crate) records: u64,
    /// Size of these records in bytes.
    pub(crate) log_bytes: u64,
    /// LSN of the first record of the transaction; null if the log does not contain this record.
    pub(crate) begin_lsn: Option<String>,
    /// LSN of the transaction's last record.
    pub(crate) last_lsn: String,
    /// Id of the session that began the transaction; null if the log does not contain the first record of the
    /// transaction.
    pub(crate) session: Option<u16>,
    /// Security identifier of the login in hexadecimal; null if the log does not name a login.
    pub(crate) login_sid: Option<String>,
    /// Name of the database user or role with this security identifier, if data files are given too. `sa` is known
    /// without data files. Null if unknown.
    pub(crate) login: Option<&'a str>,
    /// When the transaction began, in the server's local time.
    pub(crate) began: Option<String>,
    /// When the transaction ended.
    pub(crate) ended: Option<String>,
}

/// A checkpoint.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogCheckpoint {
    /// LSN of the checkpoint's BEGIN_CKPT record.
    pub(crate) begin_lsn: String,
    /// LSN of the checkpoint's END_CKPT record; null if the checkpoint did not end.
    pub(crate) end_lsn: Option<String>,
    /// LSN at which redo starts in a recovery from this checkpoint.
    pub(crate) redo_lsn: Option<String>,
    /// When the checkpoint began, in the server's local time.
    pub(crate) began: Option<String>,
    /// When the checkpoint ended.
    pub(crate) ended: Option<String>,
    /// Duration of the checkpoint in milliseconds, accurate to 1/300 second; negative if the clock was set back.
    pub(crate) ms: Option<i64>,
    /// Bytes of log blocks since the previous checkpoint began.
    pub(crate) log_bytes: u64,
    /// Number of transactions that were open at the checkpoint.
    pub(crate) open_transactions: u64,
}

/// A virtual log file (VLF).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogVlf {
    /// Id of the log file that contains the VLF.
    pub(crate) file_id: u16,
    /// Sequence number of the VLF; 0 if it was never used.
    pub(crate) seq: u32,
    /// Offset of the VLF in its log file, in bytes.
    pub(crate) offset: u64,
    /// Size of the VLF in bytes.
    pub(crate) size: u64,
    /// Parity of the VLF: 64 or 128. It changes with each reuse.
    pub(crate) parity: u8,
    /// Number of log blocks in the VLF.
    pub(crate) blocks: u64,
    /// Whether a recovery would need the VLF, according to this log alone.
    pub(crate) active: bool,
}

/// The log that was written during one time step. A step without log has no line. A log block belongs to the step in
/// which it was closed. If the time of closing is unknown, the latest known time of a transaction or checkpoint in the
/// block, or before the block, is used instead.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogRate {
    /// Start of the step, in the server's local time.
    pub(crate) from: Option<String>,
    /// Length of the step in seconds.
    pub(crate) seconds: i64,
    /// Bytes of the log blocks in this step.
    pub(crate) log_bytes: u64,
    /// Number of records in this step.
    pub(crate) records: u64,
    /// Number of transactions that ended in this step.
    pub(crate) transactions: u64,
}

/// The last line: totals, and the end of the log.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogSummary<'a> {
    /// Number of log blocks.
    pub(crate) blocks: u64,
    /// Number of log records.
    pub(crate) records: u64,
    /// Bytes of the log blocks.
    pub(crate) log_bytes: u64,
    /// LSN of the last record; null if there are no records.
    pub(crate) end_lsn: Option<String>,
    /// Why the log ends: `written` (nothing follows), `under way` (blocks of unfinished writes follow, as after a
    /// crash), `damaged`, or `empty` (the backups contain no log).
    pub(crate) end: &'static str,
    /// Id of the log file in which the log ends.
    pub(crate) end_file_id: u16,
    /// Offset at which the next block would begin, in bytes from the start of that log file.
    pub(crate) end_offset: u64,
    /// Number of blocks after the end of the log. They are not part of the log.
    pub(crate) blocks_after_end: u64,
    /// Number of blocks with encrypted records, which were not read.
    pub(crate) encrypted_blocks: u64,
    /// Number of checkpoints that began.
    pub(crate) checkpoints: u64,
    /// Number of transactions that had not ended at the end of the log.
    pub(crate) open_transactions: u64,
    /// LSN from which a recovery would need the log; null if no checkpoint ended in the log.
    pub(crate) needed_from_lsn: Option<String>,
    /// The reason why the log cannot be reused, as in `log_reuse_wait_desc`: `NOTHING`, `CHECKPOINT`,
    /// `ACTIVE_TRANSACTION` or `LOG_BACKUP`. `LOG_BACKUP` can be reported only if data files are given too. mdfsck
    /// cannot tell whether replication still needs the log. Null if no checkpoint ended in the log, or if the log is
    /// damaged.
    pub(crate) held_by: Option<&'static str>,
    /// LSN of the oldest record that still prevents reuse of the log.
    pub(crate) held_from_lsn: Option<String>,
    /// Bytes of log from `held_from_lsn` to the end.
    pub(crate) held_bytes: Option<u64>,
    /// Whether the log was read to its end.
    pub(crate) complete: bool,
    /// Names of the log files.
    pub(crate) files: Vec<&'a str>,
}
