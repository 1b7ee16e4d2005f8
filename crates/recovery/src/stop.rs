//! Finds the point at which a restore stops: a point in time, or a marked transaction.

use std::collections::HashSet;

use format::Lsn;
use format::log::{LogRecord, LogTime, Operation, TransactionId};

use crate::refusal::Refusal;

/// The most marked transactions with the requested name that may be open at the same time.
const MAX_MARKED: usize = 10_000;

/// The point at which a restore stops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A point in time, in the local time of the server. The restore stops before the first commit after this time.
    At(LogTime),
    /// A mark (STOPATMARK). The restore stops after the commit of the first transaction with this name.
    AtMark(String),
    /// A mark (STOPBEFOREMARK). The restore stops before the commit of the first transaction with this name.
    BeforeMark(String),
}

/// Searches the log for the point at which a restore stops.
pub(crate) struct Search<'a> {
    stop: &'a Stop,
    /// The first LSN after the backup's own log. No page of the backup has this LSN or a later one.
    pages_to: Lsn,
    marked: HashSet<TransactionId>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(stop: &'a Stop, pages_to: Lsn) -> Self {
        Self { stop, pages_to, marked: HashSet::new() }
    }

    /// Examines the next record of the log. Returns the LSN of the first record to leave out, if this record determines
    /// where the restore stops.
    pub(crate) fn decide(&mut self, lsn: Lsn, record: &LogRecord<'_>) -> Result<Option<Lsn>, Refusal> {
        let next = Lsn { slot: lsn.slot.saturating_add(1), ..lsn };
        match (self.stop, record.operation()) {
            (Stop::At(moment), Operation::COMMIT_XACT) => {
                let ended = record.end_transaction().and_then(|(ended, _)| ended);
                Ok(ended.filter(|ended| ended > moment).map(|_| lsn))
            }
            // The pages of the backup contain everything that was committed before the backup's checkpoint. If this
            // checkpoint is later than the requested time, the pages are already newer than the requested state.
            (Stop::At(moment), Operation::BEGIN_CKPT) if lsn < self.pages_to => {
                let began = record.begin_checkpoint().and_then(|begin| begin.began);
                Ok(began.filter(|began| began > moment).map(|_| lsn))
            }
            (Stop::AtMark(name) | Stop::BeforeMark(name), Operation::BEGIN_XACT) => {
                // Names are compared without regard to case, as on most servers.
                let is_marked = record.begin_transaction().is_some_and(|begin| same(&begin.name(), name));
                if is_marked && self.marked.len() == MAX_MARKED {
                    return Err(Refusal::TooManyTransactions);
                }
                if is_marked {
                    self.marked.insert(record.transaction());
                } else {
                    self.marked.remove(&record.transaction());
                }
                Ok(None)
            }
            (Stop::AtMark(_), Operation::COMMIT_XACT) if self.marked.contains(&record.transaction()) => Ok(Some(next)),
            (Stop::BeforeMark(_), Operation::COMMIT_XACT) if self.marked.contains(&record.transaction()) => {
                Ok(Some(lsn))
            }
            (Stop::AtMark(_) | Stop::BeforeMark(_), Operation::ABORT_XACT) => {
                self.marked.remove(&record.transaction());
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}

fn same(name: &str, wanted: &str) -> bool {
    name.chars().flat_map(char::to_lowercase).eq(wanted.chars().flat_map(char::to_lowercase))
}
