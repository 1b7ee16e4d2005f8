//! Selects the log records that `mdfsck log` lists.

use std::collections::HashSet;

use catalog::Database;
use format::log::{Block, LogRecord, LogTime, Operation, TransactionId};
use format::{Lsn, PageId};
use jobs::failure::Failure;
use jobs::scope;
use report::log_rows::rowset_of;

use crate::cli::LogArguments;

/// Maximum number of transaction IDs to remember. The filter remembers the IDs of open transactions that have the
/// requested name.
const MAX_NAMED: usize = 1_000_000;
/// The prefix of operation names in fn_dblog.
const PREFIX: &str = "LOP_";

/// Accepts log records that match all given options.
pub(crate) struct Filter {
    page: Option<PageId>,
    lsns: (Option<Lsn>, Option<Lsn>),
    times: (Option<LogTime>, Option<LogTime>),
    operations: Option<Vec<Operation>>,
    transaction: Option<String>,
    object_id: Option<i32>,
    /// IDs of the open transactions that have the requested name.
    named: HashSet<TransactionId>,
    /// The latest time found so far in a log record or in the header of a block.
    now: Option<LogTime>,
}

impl Filter {
    /// Makes a filter from the options.
    ///
    /// # Errors
    /// An operation or an object that does not exist; `--object` without data files.
    pub(crate) fn new(arguments: &LogArguments, database: Option<&Database>) -> Result<Self, Failure> {
        let object_id = match (&arguments.object, database) {
            (None, _) => None,
            (Some(name), Some(database)) => Some(scope::table(database, name)?),
            (Some(_), None) => {
                return Err(Failure::usage("--object: give the data files too, because they have the table names"));
            }
        };
        Ok(Self {
            page: arguments.page,
            lsns: (arguments.from, arguments.to),
            times: (arguments.since.map(|moment| moment.time), arguments.until.map(|moment| moment.time)),
            operations: arguments.operation.as_deref().map(operations).transpose()?,
            transaction: arguments.transaction.clone(),
            object_id,
            named: HashSet::new(),
            now: None,
        })
    }

    /// Stores the time at which a block was closed as the time of its first records. Only newer versions of SQL Server
    /// store this time; for other versions, the stored time stays unchanged.
    pub(crate) fn enter(&mut self, block: &Block<'_>) {
        self.now = block.closed().or(self.now);
    }

    /// Whether to list a log record. The caller must pass all log records, in the order of the log.
    pub(crate) fn wants(&mut self, lsn: Lsn, record: &LogRecord<'_>, database: Option<&Database>) -> bool {
        let began = record.begin_transaction().and_then(|begin| begin.began);
        let ended = record.end_transaction().and_then(|(ended, _)| ended);
        self.now = began.or(ended).or(self.now);
        let is_of_transaction = self.is_of_transaction(record);
        let (from, to) = self.lsns;
        let (since, until) = self.times;
        let is_in_time = (since.is_none() && until.is_none())
            || self
                .now
                .is_some_and(|now| since.is_none_or(|since| now >= since) && until.is_none_or(|until| now <= until));
        let place = record.on_page();
        let is_of_object = || {
            let rowset = place.zip(database).and_then(|(place, database)| rowset_of(database, &place));
            self.object_id.is_none_or(|id| rowset.is_some_and(|rowset| rowset.object_id == id))
        };
        is_of_transaction
            && is_in_time
            && from.is_none_or(|from| lsn >= from)
            && to.is_none_or(|to| lsn <= to)
            && self.page.is_none_or(|page| place.is_some_and(|place| place.page == page))
            && self.operations.as_ref().is_none_or(|wanted| wanted.contains(&record.operation()))
            && is_of_object()
    }

    fn is_of_transaction(&mut self, record: &LogRecord<'_>) -> bool {
        let Some(wanted) = &self.transaction else { return true };
        let id = record.transaction();
        if let Some(begin) = record.begin_transaction() {
            let is_named = begin.name().eq_ignore_ascii_case(wanted) && self.named.len() < MAX_NAMED;
            if is_named {
                self.named.insert(id);
            } else {
                self.named.remove(&id);
            }
        }
        let is_meant = id.to_string().eq_ignore_ascii_case(wanted) || self.named.contains(&id);
        if matches!(record.operation(), Operation::COMMIT_XACT | Operation::ABORT_XACT) {
            self.named.remove(&id);
        }
        id != TransactionId::NONE && is_meant
    }
}

/// The operation with this name. If no operation has this name, all operations whose names begin with it. The prefix
/// `LOP_` may be omitted.
fn operations(name: &str) -> Result<Vec<Operation>, Failure> {
    let upper = name.to_ascii_uppercase();
    let wanted = upper.strip_prefix(PREFIX).unwrap_or(&upper);
    let all = || (0..=u8::MAX).map(Operation).filter(|operation| operation.name().is_some());
    let exact: Vec<Operation> = all().filter(|operation| operation.name() == Some(wanted)).collect();
    let alike: Vec<Operation> =
        all().filter(|operation| operation.name().is_some_and(|name| name.starts_with(wanted))).collect();
    match (exact.is_empty(), alike.is_empty()) {
        (false, _) => Ok(exact),
        (true, false) => Ok(alike),
        (true, true) => {
            let names: Vec<&str> = all().filter_map(Operation::name).collect();
            Err(Failure::usage(format!(
                "--operation {name}: no such operation; the operations are {}",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_by_the_start_of_their_names() {
        assert_eq!(operations("LOP_INSERT_ROWS").unwrap(), [Operation::INSERT_ROWS]);
        assert_eq!(operations("modify_row").unwrap(), [Operation::MODIFY_ROW]);
        let modify = [Operation::MODIFY_ROW, Operation::MODIFY_HEADER, Operation::MODIFY_COLUMNS];
        assert_eq!(operations("modify").unwrap(), modify);
        assert!(operations("truncate").unwrap_err().text.contains("INSERT_ROWS"));
    }
}
