//! The contents of a transaction log: `mdfsck log`.

use std::collections::BTreeMap;
use std::io;

use catalog::Boot;
use format::Lsn;
use format::log::{LogRecord, LogTime, PageChange, TransactionId};
use log::{
    Checkpoint, End, EndReason, Event, History, LaterBlocks, Log, Outcome, PlacedVlf, Rate, Step, Totals, Transaction,
    duration_ms,
};

use crate::json::{line, log as lines};
use crate::log_rows::{Replaced, RowChanges, RowImage};
pub use crate::server_text::{lsn_text, time_text};
use crate::text_table::printable;

mod hold;

pub use hold::{Held, Hold};

/// Maximum number of time steps that the text shows.
const MOST_STEPS: usize = 14;
/// Security identifier of sa, which is the same on every server.
const SA: [u8; 1] = [1];

/// A log that was read to its end, with the results.
#[derive(Debug)]
pub struct LogReport<'a> {
    /// The log.
    pub log: &'a Log,
    /// The end of the log, and the reason why it ends there.
    pub end: End,
    /// The totals of the records, and the last checkpoint.
    pub history: &'a History,
    /// Totals of the checkpoints, with the longest and the latest checkpoints, and the transactions that wrote the most
    /// log.
    pub totals: &'a Totals,
    /// Transactions that are open at the end of the log, oldest first.
    pub open: &'a [Transaction],
    /// Number of blocks in each VLF, by the position of the VLF in the log's sequence of VLFs.
    pub blocks: &'a [u64],
    /// Number of bytes in damaged blocks before the first block that could be read.
    pub lost_bytes: u64,
    /// Log bytes, records and transactions in each time step.
    pub rate: &'a Rate,
    /// The boot page of the database; `None` if no data files were given.
    pub boot: Option<&'a Boot>,
    /// Names of the database's principals by security identifier; empty if no data files were given.
    pub logins: &'a Logins,
}

/// Names of principals by security identifier.
pub type Logins = BTreeMap<Vec<u8>, String>;

/// The name of the login that began a transaction, or its security identifier in hexadecimal. `None` for system
/// transactions.
pub(crate) fn login_text(transaction: &Transaction, logins: &Logins) -> Option<String> {
    let sid = transaction.login.as_slice();
    match (login_name(transaction, logins), sid) {
        (_, []) => None,
        (Some(name), _) => Some(name.to_owned()),
        _ => Some(format!("0x{}", sid.iter().map(|byte| format!("{byte:02X}")).collect::<String>())),
    }
}

fn login_name<'l>(transaction: &Transaction, logins: &'l Logins) -> Option<&'l str> {
    let known = logins.get(&transaction.login).map(String::as_str);
    known.or((transaction.login == SA).then_some("sa"))
}

/// Writes a transaction or checkpoint as a line of JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_event(event: &Event, logins: &Logins, out: &mut dyn io::Write) -> io::Result<()> {
    match event {
        Event::Transaction(transaction) => {
            line(&lines::LogLine::Transaction(transaction_line(transaction, logins)), out)
        }
        Event::Checkpoint(checkpoint) => line(&lines::LogLine::Checkpoint(checkpoint_line(checkpoint)), out),
    }
}

/// Writes a record as a line of JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_record(
    lsn: Lsn,
    record: &LogRecord<'_>,
    rows: Option<&RowChanges>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let name = record.begin_transaction().map(|begin| begin.name());
    let change = record.on_page();
    let some = |lsn: Lsn| Some(lsn).filter(|lsn| *lsn != Lsn::default()).map(lsn_text);
    let value = lines::LogRecord {
        lsn: lsn_text(lsn),
        operation: record.operation().to_string(),
        context: record.context(),
        transaction: Some(record.transaction()).filter(|id| *id != TransactionId::NONE).map(|id| id.to_string()),
        previous_lsn: some(record.previous_lsn()),
        compensation: record.is_compensation(),
        file: change.map(|change| change.page.file),
        page: change.map(|change| change.page.page),
        slot: change.and_then(slot),
        page_lsn: change.and_then(|change| some(change.page_lsn)),
        alloc_unit_id: change.map(|change| unit(change).to_string()),
        bytes: record.bytes().len(),
        name: name.as_deref(),
        object: rows.map(|rows| rows.object.as_str()),
        index: rows.map(|rows| rows.index.as_str()).filter(|index| !index.is_empty()),
        rows: rows.map(|rows| rows.rows.iter().map(row_line).collect()).unwrap_or_default(),
        pieces: rows.map(|rows| rows.pieces.iter().map(piece_line).collect()).unwrap_or_default(),
    };
    line(&lines::LogLine::Record(value), out)
}

fn slot(change: PageChange) -> Option<u16> {
    Some(change.slot).filter(|slot| *slot != u16::MAX)
}

fn unit(change: PageChange) -> format::AllocUnitId {
    format::AllocUnitId::from_header(change.index_id, change.object_id)
}

/// The heading of the table of records; [`write_record_text`] writes its lines.
pub const RECORD_HEAD: &str =
    "LSN                     operation         context  transaction    page:slot               bytes  unit or name";

/// Writes a record as a line of text.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_record_text(
    lsn: Lsn,
    record: &LogRecord<'_>,
    rows: Option<&RowChanges>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let place = record.on_page().map_or_else(String::new, |change| match slot(change) {
        Some(slot) => format::RecordId { page: change.page, slot }.to_string(),
        None => change.page.to_string(),
    });
    let transaction = record.transaction();
    let transaction = if transaction == TransactionId::NONE { String::new() } else { transaction.to_string() };
    let about = match (record.on_page(), record.begin_transaction()) {
        (Some(change), _) => unit(change).to_string(),
        (_, Some(begin)) => printable(&begin.name()).into_owned(),
        _ => String::new(),
    };
    let mark = if record.is_compensation() { "undo " } else { "" };
    let text = format!(
        "{}  {:<16}  {:>7}  {transaction:<13}  {place:<20}  {:>7}  {mark}{about}",
        lsn_text(lsn),
        record.operation().to_string(),
        record.context(),
        record.bytes().len(),
    );
    writeln!(out, "{}", text.trim_end())?;
    let Some(rows) = rows else { return Ok(()) };
    let table = match rows.index.as_str() {
        "" => printable(&rows.object).into_owned(),
        index => printable(&format!("{}, {index}", rows.object)).into_owned(),
    };
    for row in &rows.rows {
        let columns: Vec<String> = row.columns.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let columns = if columns.is_empty() { "not decoded".to_owned() } else { columns.join(", ") };
        writeln!(out, "    {} {table}: {}", row.action, printable(&columns))?;
    }
    for piece in &rows.pieces {
        let what = match piece.column.as_str() {
            "" if piece.part_of.is_empty() => format!("bytes from {} on", piece.offset),
            "" => format!("part of {}, bytes from {} on", piece.part_of, piece.offset),
            column => column.to_owned(),
        };
        writeln!(
            out,
            "    modify {table}: {}: {} -> {}",
            printable(&what),
            printable(&piece.before),
            printable(&piece.after)
        )?;
    }
    Ok(())
}

fn row_line(row: &RowImage) -> lines::LogRow<'_> {
    let columns = row.columns.iter().map(|(name, value)| lines::LogColumn { name, value });
    lines::LogRow { action: row.action, columns: columns.collect() }
}

fn piece_line(piece: &Replaced) -> lines::LogPiece<'_> {
    let column = Some(piece.column.as_str()).filter(|column| !column.is_empty());
    let part_of = Some(piece.part_of.as_str()).filter(|column| !column.is_empty());
    lines::LogPiece { offset: piece.offset, column, part_of, before: &piece.before, after: &piece.after }
}

pub(crate) fn state(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Committed => "committed",
        Outcome::RolledBack => "rolled back",
        Outcome::Open => "open",
        Outcome::InDoubt => "in doubt",
    }
}

fn transaction_line<'t>(transaction: &'t Transaction, logins: &'t Logins) -> lines::LogTransaction<'t> {
    let sid = transaction.login.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    lines::LogTransaction {
        id: transaction.id.to_string(),
        name: &transaction.name,
        state: state(transaction.outcome),
        records: transaction.records,
        log_bytes: transaction.log_bytes,
        begin_lsn: transaction.begin.map(lsn_text),
        last_lsn: lsn_text(transaction.last),
        session: Some(transaction.session).filter(|session| *session != 0),
        login_sid: Some(sid).filter(|sid| !sid.is_empty()).map(|sid| format!("0x{sid}")),
        login: login_name(transaction, logins),
        began: transaction.began.and_then(time_text),
        ended: transaction.ended.and_then(time_text),
    }
}

fn checkpoint_line(checkpoint: &Checkpoint) -> lines::LogCheckpoint {
    lines::LogCheckpoint {
        begin_lsn: lsn_text(checkpoint.begin),
        end_lsn: checkpoint.end.map(lsn_text),
        redo_lsn: checkpoint.redo.map(lsn_text),
        began: checkpoint.began.and_then(time_text),
        ended: checkpoint.ended.and_then(time_text),
        ms: duration_ms(checkpoint),
        log_bytes: checkpoint.log_bytes,
        open_transactions: checkpoint.open_transactions,
    }
}

/// Writes a text that says that the backups contain no log.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_empty_text(log: &Log, out: &mut dyn io::Write) -> io::Result<()> {
    for set in log.sets() {
        let at = lsn_text(set.first_lsn.unwrap_or_default());
        let (path, position) = (set.path.display().to_string(), set.position);
        writeln!(
            out,
            "{}: set {position} holds no log: it starts and ends at {at}, because nothing was logged since the \
             previous log backup",
            printable(&path)
        )?;
    }
    Ok(())
}

/// Writes the JSON for backups that contain no log: only the summary.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_empty_json(log: &Log, out: &mut dyn io::Write) -> io::Result<()> {
    let summary = lines::LogSummary { end: "empty", complete: log.gaps().is_empty(), ..lines::LogSummary::default() };
    line(&lines::LogLine::Summary(summary), out)
}

impl LogReport<'_> {
    /// The oldest LSN in this log that recovery would need. This is the LSN at which redo would start after the last
    /// checkpoint, or the first LSN of the oldest open transaction if that LSN is lower. `None` if no checkpoint ended
    /// in the log.
    pub fn needed_from(&self) -> Option<Lsn> {
        let redo = self.history.last_checkpoint()?.redo?;
        Some(self.open.iter().filter_map(|transaction| transaction.begin).fold(redo, Lsn::min))
    }

    pub(crate) fn is_active(&self, placed: &PlacedVlf) -> bool {
        let needed = self.needed_from().unwrap_or_default();
        (needed.vlf..=self.end.at.vlf.sequence).contains(&placed.vlf.sequence)
    }

    /// The number of log blocks in a VLF, and whether recovery would need the VLF.
    pub(crate) fn use_of(&self, file: usize, offset: u64) -> (u64, bool) {
        let run = self.log.run();
        match run.iter().position(|placed| placed.file == file && placed.vlf.offset == offset) {
            Some(at) => {
                let blocks = self.blocks.get(at).copied().unwrap_or_default();
                (blocks, run.get(at).is_some_and(|placed| self.is_active(placed)))
            }
            None => (0, false),
        }
    }

    /// The log over time: the length of a step in seconds, and the contents of each step.
    pub(crate) fn steps(&self) -> (i64, Vec<(LogTime, Step)>) {
        self.rate.steps(MOST_STEPS)
    }

    /// The reason why the log cannot be followed further, and the number of blocks after this point that were written
    /// since the VLFs were last reused.
    pub(crate) fn end_words(&self) -> (&'static str, u64) {
        match self.end.reason {
            EndReason::Written => ("written", 0),
            EndReason::UnderWay(later) => ("under way", later.count),
            EndReason::Damaged { later, .. } => ("damaged", later.count),
        }
    }

    /// A sentence that says that the log is damaged or that records could not be read; `None` if there is no fault.
    pub fn fault(&self) -> Option<String> {
        let path =
            || self.log.files().get(self.end.at.file).map(|file| file.path.display().to_string()).unwrap_or_default();
        match (self.end.reason, self.log.cut_at(&self.end)) {
            (EndReason::Damaged { damage, later }, _) => {
                let name = |file: usize| {
                    self.log.files().get(file).map(|file| file.path.display().to_string()).unwrap_or_default()
                };
                let what = damage.words(name);
                let after = match later {
                    LaterBlocks { count: 0, .. } => String::new(),
                    LaterBlocks { count: 1, reach_bytes } => format!(
                        "; 1 more block of the log follows within {reach_bytes} bytes, and cannot be put in order without \
                        the missing blocks"
                    ),
                    LaterBlocks { count, reach_bytes } => format!(
                        "; {count} more blocks of the log follow within {reach_bytes} bytes, and cannot be put in order \
                        without the missing blocks"
                    ),
                };
                Some(format!("{}: the log cannot be read beyond byte {}: {what}{after}", path(), self.end.offset))
            }
            (_, None) if self.log.ends_at().is_some_and(|ends_at| !self.end.reaches(ends_at)) => Some(format!(
                "{}: the log can be read only to {}, but its backup says that it continues to {}",
                path(),
                lsn_text(self.end.lsn()),
                lsn_text(self.log.ends_at().unwrap_or_default())
            )),
            (_, Some(at)) => {
                Some(format!("{}: the log is cut off at byte {at}: the rest is missing; copy the file again", path()))
            }
            _ if self.lost_bytes > 0 => Some(format!(
                "{}: the oldest virtual log file starts with {} bytes of damaged blocks: the log could be read only after them",
                path(),
                self.lost_bytes
            )),
            _ if self.history.encrypted_blocks() > 0 => Some(format!(
                "{}: the records of {} blocks are encrypted (TDE): their checksums were verified, their contents are unknown",
                path(),
                self.history.encrypted_blocks()
            )),
            _ if self.history.not_followed() > 0 => Some(format!(
                "{}: {} records belong to transactions that were not followed, because too many are open at the same \
                 time",
                path(),
                self.history.not_followed()
            )),
            _ => None,
        }
    }

    /// Writes the last lines as JSON: a line for each VLF, then a line with the totals.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        for (file, log) in self.log.files().iter().enumerate() {
            for vlf in &log.vlfs {
                let (blocks, active) = self.use_of(file, vlf.offset);
                let value = lines::LogVlf {
                    file_id: log.file_id,
                    seq: vlf.sequence,
                    offset: vlf.offset,
                    size: vlf.bytes,
                    parity: vlf.parity,
                    blocks,
                    active,
                };
                line(&lines::LogLine::Vlf(value), out)?;
            }
        }
        let (seconds, steps) = self.steps();
        for (from, step) in steps {
            let value = lines::LogRate {
                from: time_text(from),
                seconds,
                log_bytes: step.log_bytes,
                records: step.records,
                transactions: step.transactions,
            };
            line(&lines::LogLine::Rate(value), out)?;
        }
        if let Some(text) = &self.fault() {
            line(&lines::LogLine::Error(crate::json::lines::ErrorText::of(text)), out)?;
        }
        let (end, blocks_after_end) = self.end_words();
        let held = self.held();
        let summary = lines::LogSummary {
            blocks: self.history.blocks(),
            records: self.history.records(),
            log_bytes: self.history.bytes(),
            end_lsn: self.history.last().map(lsn_text),
            end,
            end_file_id: self.log.files().get(self.end.at.file).map_or(0, |file| file.file_id),
            end_offset: self.end.offset,
            blocks_after_end,
            encrypted_blocks: self.history.encrypted_blocks(),
            checkpoints: self.history.checkpoints(),
            open_transactions: self.open.len() as u64,
            needed_from_lsn: self.needed_from().map(lsn_text),
            held_by: held.map(|held| held.by.name()),
            held_from_lsn: held.map(|held| lsn_text(held.from)),
            held_bytes: held.map(|held| held.bytes),
            complete: self.fault().is_none(),
            files: self.log.files().iter().map(|file| file.logical_name.as_str()).collect(),
        };
        line(&lines::LogLine::Summary(summary), out)
    }
}
