//! Tests whether each record of a log, from the checkpoint that the boot page names, continues the records before it.
//! All blocks of a log can be intact although some of them are from the log of another database, or from another copy
//! of this database.
//!
//! In 273 real logs, each of 19,402 checkpoints names the checkpoint before it, each of 571,946 records names the
//! previous record of its transaction, and each transaction begins in the log or is listed by a checkpoint.

use std::collections::BTreeSet;

use format::Lsn;
use format::log::{LogRecord, Operation, TransactionId};

/// The maximum number of open transactions to remember from the lists in checkpoints.
const MAX_LISTED: usize = 10_000;

/// What is known of a transaction before its next record.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    /// The LSN of the transaction's last record.
    pub(crate) last: Lsn,
    /// Whether the transaction's BEGIN_XACT was read.
    pub(crate) has_begin: bool,
}

/// Tests the order of the log records, starting at the checkpoint that the boot page names.
#[derive(Debug)]
pub(crate) struct LogOrder {
    /// The checkpoint that the boot page names.
    checkpoint: Lsn,
    /// The last BEGIN_CKPT.
    last_checkpoint: Option<Lsn>,
    /// The number of checkpoints after the checkpoint that the boot page names.
    later_checkpoints: u64,
    is_in_checkpoint: bool,
    /// The open transactions that checkpoints list.
    listed: BTreeSet<TransactionId>,
    has_contradiction: bool,
}

impl LogOrder {
    pub(crate) fn new(checkpoint: Lsn) -> Self {
        Self {
            checkpoint,
            last_checkpoint: None,
            later_checkpoints: 0,
            is_in_checkpoint: false,
            listed: BTreeSet::new(),
            has_contradiction: false,
        }
    }

    /// Adds the next record of the log. `known` describes the transaction of the record, if the transaction began
    /// before this record.
    pub(crate) fn add(&mut self, lsn: Lsn, record: &LogRecord<'_>, known: Option<Known>) {
        if lsn < self.checkpoint {
            return;
        }
        let operation = record.operation();
        let is_in_order = match operation {
            Operation::BEGIN_CKPT => {
                self.later_checkpoints += u64::from(lsn > self.checkpoint);
                self.is_in_checkpoint = true;
                self.last_checkpoint.replace(lsn).is_none_or(|last| record.previous_lsn() == last)
            }
            Operation::XACT_CKPT | Operation::END_CKPT => {
                for open in record.open_transactions().take(MAX_LISTED.saturating_sub(self.listed.len())) {
                    self.listed.insert(open.id);
                }
                std::mem::replace(&mut self.is_in_checkpoint, operation != Operation::END_CKPT)
            }
            _ => self.continues_its_transaction(record, known),
        };
        self.has_contradiction |= !is_in_order;
    }

    fn continues_its_transaction(&self, record: &LogRecord<'_>, known: Option<Known>) -> bool {
        let id = record.transaction();
        match record.operation() {
            _ if id == TransactionId::NONE => true,
            // For these operations, the LSN of the previous record is not tested: the record that ends a transaction
            // names the record that began the transaction, and FORGET_XACT follows the end.
            Operation::BEGIN_XACT | Operation::COMMIT_XACT | Operation::ABORT_XACT | Operation::FORGET_XACT => true,
            _ => match known {
                // A compensation record names the next record to undo.
                Some(known) => !known.has_begin || record.is_compensation() || record.previous_lsn() == known.last,
                None => self.listed.contains(&id) || self.listed.len() == MAX_LISTED,
            },
        }
    }

    /// The reason to doubt that the log and the data files belong together; `None` if there is no reason. One reason is
    /// that the log has several checkpoints after that of the boot page, because the server writes each checkpoint to
    /// the boot page before the next checkpoint begins. The other reason is that some records do not continue the
    /// records before them.
    pub(crate) fn doubt(&self) -> Option<&'static str> {
        if self.later_checkpoints > 1 {
            return Some("the log has several checkpoints that the boot page does not know");
        }
        self.has_contradiction.then_some("some records of the log do not continue the records before them")
    }
}
