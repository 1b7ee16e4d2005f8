//! Collects transactions and checkpoints from the records of a log.

use std::collections::HashMap;

use format::Lsn;
use format::log::{Block, LogRecord, LogTime, Operation, TransactionId};

/// The maximum number of open transactions to track. A server has far fewer sessions. Each tracked transaction uses
/// about 150 bytes.
const MAX_OPEN: usize = 100_000;
/// The maximum number of characters to keep of a transaction's name. SQL Server accepts 32.
const NAME_LETTERS: usize = 64;

/// The length of the longest security identifier in bytes.
const LOGIN_BYTES: usize = 85;

/// The way in which a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The transaction was committed (COMMIT_XACT).
    Committed,
    /// The transaction was rolled back (ABORT_XACT); all its changes were undone.
    RolledBack,
    /// The transaction was still open at the end of the log, or when its ID was reused. Recovery undoes it.
    Open,
    /// The transaction was prepared. Another database or a transaction coordinator decides its outcome.
    InDoubt,
}

/// A transaction, as far as the log contains it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// The ID of the transaction.
    pub id: TransactionId,
    /// The name; empty if the log does not contain the start of the transaction.
    pub name: String,
    /// The ID of the session that began the transaction; 0 if the log does not contain the start of the transaction.
    pub session: u16,
    /// The security identifier of the login that began the transaction; empty for system transactions.
    pub login: Vec<u8>,
    /// The time at which the transaction began, in the server's local time.
    pub began: Option<LogTime>,
    /// The time at which the transaction ended, in the server's local time.
    pub ended: Option<LogTime>,
    /// The LSN of the first record; `None` if the log contains neither the start nor the end of the transaction.
    pub begin: Option<Lsn>,
    /// The LSN of the last record.
    pub last: Lsn,
    /// The number of records.
    pub records: u64,
    /// The total size of the records in bytes.
    pub log_bytes: u64,
    /// The way in which the transaction ended.
    pub outcome: Outcome,
}

/// A checkpoint of the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// The LSN of the BEGIN_CKPT record.
    pub begin: Lsn,
    /// The LSN of the END_CKPT record; `None` if the log does not contain it.
    pub end: Option<Lsn>,
    /// The LSN at which redo starts after this checkpoint.
    pub redo: Option<Lsn>,
    /// The time at which the checkpoint began, in the server's local time.
    pub began: Option<LogTime>,
    /// The time at which the checkpoint ended, in the server's local time.
    pub ended: Option<LogTime>,
    /// The bytes of log since the previous checkpoint began; for the first checkpoint, since the start of the log.
    pub log_bytes: u64,
    /// The number of transactions that were open at the checkpoint.
    pub open_transactions: u64,
    /// A lower bound for the LSN at which the oldest open transaction began.
    pub oldest: Option<Lsn>,
    /// The internal version of the database.
    pub version: u16,
}

/// A transaction or checkpoint to which the log adds no further record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A transaction that ended, or was open at the end of the log.
    Transaction(Transaction),
    /// A checkpoint that ended, was still incomplete at the end of the log, or was abandoned.
    Checkpoint(Checkpoint),
}

/// Collects transactions and checkpoints from a log, block by block.
#[derive(Debug, Default)]
pub struct History {
    open: HashMap<TransactionId, Transaction>,
    checkpoint: Option<Checkpoint>,
    last_checkpoint: Option<Checkpoint>,
    /// The size of all blocks so far, in bytes. The next field has the value that this field had when the last
    /// checkpoint began.
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

    /// Adds a block. `event` receives the transactions and checkpoints that end with a record of this block, in the
    /// order of the log.
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
        // A FORGET_XACT record comes after the end of its transaction, so it does not start a new transaction.
        if record.operation() == Operation::FORGET_XACT && !self.open.contains_key(&id) {
            return;
        }
        let begin = record.begin_transaction();
        if begin.is_some()
            && let Some(before) = self.open.remove(&id)
        {
            // Another transaction uses the ID again, and this log does not contain the end of the earlier transaction.
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

    /// Ends the history at the end of the log. `event` receives the checkpoint that has not ended, if there is one, and
    /// then the open transactions, oldest first.
    pub fn finish(&mut self, event: &mut impl FnMut(Event)) {
        if let Some(checkpoint) = self.checkpoint.take() {
            event(Event::Checkpoint(checkpoint));
        }
        for transaction in self.open_transactions() {
            event(Event::Transaction(transaction));
        }
        self.open.clear();
    }

    /// The transactions that are open after the last added block, oldest first.
    pub fn open_transactions(&self) -> Vec<Transaction> {
        let mut open: Vec<_> = self.open.values().cloned().collect();
        open.sort_by_key(|transaction| (transaction.begin.unwrap_or_default(), transaction.last));
        open
    }

    /// The last checkpoint that ended.
    pub fn last_checkpoint(&self) -> Option<Checkpoint> {
        self.last_checkpoint
    }

    /// The number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The number of records, including those in encrypted blocks.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The number of checkpoints that began.
    pub fn checkpoints(&self) -> u64 {
        self.checkpoints
    }

    /// The number of encrypted blocks. Their records were not read.
    pub fn encrypted_blocks(&self) -> u64 {
        self.encrypted_blocks
    }

    /// The number of records of transactions that were not tracked, because too many transactions were open.
    pub fn not_followed(&self) -> u64 {
        self.not_followed
    }

    /// The LSN of the last record.
    pub fn last(&self) -> Option<Lsn> {
        self.last
    }

    /// The latest known closing time of a block, in the server's local time.
    pub fn last_closed(&self) -> Option<LogTime> {
        self.last_closed
    }

    /// The total size of all blocks so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
