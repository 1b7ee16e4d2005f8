//! Transactions and checkpoints, collected from the records of a log.

use std::collections::HashMap;

use format::Lsn;
use format::log::{Block, LogRecord, LogTime, Operation, TransactionId};

/// Open transactions that are tracked: far more than a server has sessions. Each uses some 150 bytes.
const MAX_OPEN: usize = 100_000;
/// Characters of a transaction's name to keep: SQL Server accepts 32.
const NAME_LETTERS: usize = 64;

/// Longest security identifier.
const LOGIN_BYTES: usize = 85;

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// COMMIT_XACT.
    Committed,
    /// ABORT_XACT: all its changes were undone.
    RolledBack,
    /// Still open at the end of the log, or when its ID was reused: recovery undoes it.
    Open,
    /// Prepared; another database or a coordinator decides.
    InDoubt,
}

/// A transaction, as far as the log has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// ID of the transaction.
    pub id: TransactionId,
    /// Name; empty if the log does not contain its begin.
    pub name: String,
    /// Session that began it; 0 if the log does not contain its begin.
    pub session: u16,
    /// Security identifier of the login that began it; empty for system transactions.
    pub login: Vec<u8>,
    /// When it began, in the server's local time.
    pub began: Option<LogTime>,
    /// When it ended.
    pub ended: Option<LogTime>,
    /// Its first record; `None` if the log does not contain its begin.
    pub begin: Option<Lsn>,
    /// Its last record.
    pub last: Lsn,
    /// Number of its records.
    pub records: u64,
    /// Bytes of its records.
    pub log_bytes: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// A checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Its BEGIN_CKPT.
    pub begin: Lsn,
    /// Its END_CKPT; `None` if the log ends before it.
    pub end: Option<Lsn>,
    /// The LSN from which recovery redoes after this checkpoint.
    pub redo: Option<Lsn>,
    /// When it began, in the server's local time.
    pub began: Option<LogTime>,
    /// When it ended.
    pub ended: Option<LogTime>,
    /// Bytes of log since the previous checkpoint began; for the first one, since the start of the log.
    pub log_bytes: u64,
    /// Number of open transactions at the checkpoint.
    pub open_transactions: u64,
    /// A lower bound for the start of the oldest of them.
    pub oldest: Option<Lsn>,
    /// Internal version of the database.
    pub version: u16,
}

/// A transaction or checkpoint that a record completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A transaction that ended, or was open at the end of the log.
    Transaction(Transaction),
    /// A checkpoint that ended, was incomplete at the end of the log, or was abandoned.
    Checkpoint(Checkpoint),
}

/// Collects transactions and checkpoints from a log, block by block.
#[derive(Debug, Default)]
pub struct History {
    open: HashMap<TransactionId, Transaction>,
    checkpoint: Option<Checkpoint>,
    last_checkpoint: Option<Checkpoint>,
    /// Bytes of the blocks so far, and how many of them precede the last checkpoint's begin.
    bytes: u64,
    checkpoint_at: u64,
    blocks: u64,
    records: u64,
    checkpoints: u64,
    encrypted_blocks: u64,
    not_followed: u64,
    last: Option<Lsn>,
    last_closed: Option<LogTime>,
}

impl History {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block; `event` receives the transactions and checkpoints that its records complete, in order.
    pub fn block(&mut self, block: &Block<'_>, event: &mut impl FnMut(Event)) {
        self.blocks += 1;
        self.records += block.record_count() as u64;
        self.encrypted_blocks += u64::from(block.is_encrypted());
        self.last_closed = block.closed().or(self.last_closed);
        if block.is_encrypted() && block.record_count() > 0 {
            let first = block.first_lsn();
            self.last = Some(Lsn { slot: first.slot.wrapping_add(block.record_count() as u16 - 1), ..first });
        }
        for (lsn, record) in block.records() {
            self.record(lsn, &record, event);
            self.last = Some(lsn);
        }
        self.bytes += block.size() as u64;
    }

    fn record(&mut self, lsn: Lsn, record: &LogRecord<'_>, event: &mut impl FnMut(Event)) {
        match record.operation() {
            Operation::BEGIN_CKPT => self.begin_checkpoint(lsn, record, event),
            Operation::XACT_CKPT => {
                if let Some(checkpoint) = &mut self.checkpoint {
                    checkpoint.open_transactions += record.open_transactions().count() as u64;
                }
            }
            Operation::END_CKPT => {
                if let Some(mut checkpoint) = self.checkpoint.take()
                    && let Some((ended, redo)) = record.end_checkpoint()
                {
                    (checkpoint.end, checkpoint.ended, checkpoint.redo) = (Some(lsn), ended, Some(redo));
                    self.last_checkpoint = Some(checkpoint);
                    event(Event::Checkpoint(checkpoint));
                }
            }
            _ => {}
        }
        let id = record.transaction();
        if id != TransactionId::NONE {
            self.transaction(id, lsn, record, event);
        }
    }

    fn begin_checkpoint(&mut self, lsn: Lsn, record: &LogRecord<'_>, event: &mut impl FnMut(Event)) {
        let Some(begin) = record.begin_checkpoint() else { return };
        if let Some(given_up) = self.checkpoint.take() {
            event(Event::Checkpoint(given_up));
        }
        self.checkpoints += 1;
        self.checkpoint = Some(Checkpoint {
            begin: lsn,
            end: None,
            redo: None,
            began: begin.began,
            ended: None,
            log_bytes: self.bytes - self.checkpoint_at,
            open_transactions: 0,
            oldest: begin.oldest,
            version: begin.version,
        });
        self.checkpoint_at = self.bytes;
    }

    fn transaction(&mut self, id: TransactionId, lsn: Lsn, record: &LogRecord<'_>, event: &mut impl FnMut(Event)) {
        // FORGET_XACT comes after the end of a transaction.
        if record.operation() == Operation::FORGET_XACT && !self.open.contains_key(&id) {
            return;
        }
        let begin = record.begin_transaction();
        if begin.is_some()
            && let Some(before) = self.open.remove(&id)
        {
            // The ID is in use again: the end of the earlier transaction is not in this log.
            event(Event::Transaction(before));
        }
        if !self.open.contains_key(&id) && self.open.len() == MAX_OPEN {
            self.not_followed += 1;
            return;
        }
        let transaction = self.open.entry(id).or_insert_with(|| Transaction {
            id,
            name: begin.map(|begin| begin.name().chars().take(NAME_LETTERS).collect()).unwrap_or_default(),
            session: begin.map_or(0, |begin| begin.session),
            login: begin.map(|begin| begin.login.iter().take(LOGIN_BYTES).copied().collect()).unwrap_or_default(),
            began: begin.and_then(|begin| begin.began),
            ended: None,
            begin: begin.map(|_| lsn),
            last: lsn,
            records: 0,
            log_bytes: 0,
            outcome: Outcome::Open,
        });
        transaction.records += 1;
        transaction.log_bytes += record.bytes().len() as u64;
        transaction.last = lsn;
        let outcome = match record.operation() {
            Operation::COMMIT_XACT => Outcome::Committed,
            Operation::ABORT_XACT => Outcome::RolledBack,
            Operation::PREP_XACT => {
                transaction.outcome = Outcome::InDoubt;
                return;
            }
            _ => return,
        };
        if let Some(mut transaction) = self.open.remove(&id) {
            transaction.outcome = outcome;
            transaction.ended = record.end_transaction().and_then(|(ended, _)| ended);
            transaction.begin = transaction.begin.or(record.end_transaction().map(|(_, begin)| begin));
            event(Event::Transaction(transaction));
        }
    }

    /// Ends the log: `event` receives the transactions and checkpoints still open, transactions by their last record.
    pub fn finish(&mut self, event: &mut impl FnMut(Event)) {
        if let Some(checkpoint) = self.checkpoint.take() {
            event(Event::Checkpoint(checkpoint));
        }
        for transaction in self.open_transactions() {
            event(Event::Transaction(transaction));
        }
        self.open.clear();
    }

    /// The transactions open at this point, oldest first.
    pub fn open_transactions(&self) -> Vec<Transaction> {
        let mut open: Vec<_> = self.open.values().cloned().collect();
        open.sort_by_key(|transaction| (transaction.begin.unwrap_or_default(), transaction.last));
        open
    }

    /// The last checkpoint that ended.
    pub fn last_checkpoint(&self) -> Option<Checkpoint> {
        self.last_checkpoint
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Number of records, including those of encrypted blocks.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Number of checkpoints that began.
    pub fn checkpoints(&self) -> u64 {
        self.checkpoints
    }

    /// Number of blocks whose records are encrypted and were not read.
    pub fn encrypted_blocks(&self) -> u64 {
        self.encrypted_blocks
    }

    /// Records of transactions that were not tracked, because too many were open.
    pub fn not_followed(&self) -> u64 {
        self.not_followed
    }

    /// The last record.
    pub fn last(&self) -> Option<Lsn> {
        self.last
    }

    /// When the last block with a time was closed, in the server's local time.
    pub fn last_closed(&self) -> Option<LogTime> {
        self.last_closed
    }

    /// Bytes of all blocks so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
