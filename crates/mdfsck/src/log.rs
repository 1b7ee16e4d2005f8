//! `mdfsck log`: shows the contents of a transaction log.

use std::io::Write;

use catalog::Database;
use jobs::failure::Failure;
use jobs::logs;
use log::{Event, History, Log, LogError, Outcome, Rate, Totals, Walk};
use report::log::{self as listing, LogReport, Logins};
use report::log_rows::row_changes;

use crate::cli::LogArguments;
use crate::log_filter::Filter;
use crate::output;
use crate::speaker::warn;

pub(crate) fn run(arguments: &LogArguments) -> Result<u8, Failure> {
    let log = logs::open(&arguments.paths)?;
    let database = logs::database(&arguments.paths, &log)?;
    let mut filter = Filter::new(arguments, database.as_ref().map(|(database, _)| database))?;
    let mut status = 0;
    for gap in log.gaps() {
        let (from, to) = (listing::lsn_text(gap.from), listing::lsn_text(gap.to));
        warn(format!(
            "log is missing between {from} and {to}, and the log before this gap is not shown; give the log backups that cover the gap"
        ));
        status = Failure::INCOMPLETE;
    }
    if log.is_empty() {
        output::print(|out| match (arguments.json, arguments.lists_records()) {
            (true, _) => listing::write_empty_json(&log, out),
            (false, true) => writeln!(out, "{}", listing::RECORD_HEAD),
            (false, false) => listing::write_empty_text(&log, out),
        })?;
        return Ok(status);
    }
    for (path, stripes) in log.missing_stripes() {
        warn(format!("{}: {stripes}: log that is only in missing stripes is not shown", path.display()));
    }
    output::print(|out| {
        match read(&log, arguments, (&mut filter, database.as_ref()), out) {
            Ok(fault) => {
                if let Some(text) = fault {
                    warn(text);
                    status |= Failure::INCOMPLETE;
                }
            }
            // The output written so far is kept, although it is incomplete.
            Err(Stop::Read(error)) => {
                warn(error);
                status |= Failure::UNABLE;
            }
            Err(Stop::Write(error)) => return Err(error),
        }
        Ok(())
    })?;
    Ok(status)
}

/// An error that ended the reading early.
enum Stop {
    Read(LogError),
    Write(std::io::Error),
}

/// Reads the log from start to end, and writes the requested output. If the log has a fault, returns a description of
/// it.
fn read(
    log: &Log,
    arguments: &LogArguments,
    (filter, database): (&mut Filter, Option<&(Database, Logins)>),
    out: &mut dyn Write,
) -> Result<Option<String>, Stop> {
    let (mut walk, mut history, mut totals) = (Walk::new(log), History::new(), Totals::default());
    let mut rate = Rate::default();
    let none = Logins::new();
    let logins = database.map_or(&none, |(_, logins)| logins);
    let catalog = database.map(|(database, _)| database);
    let mut blocks = vec![0; log.run().len()];
    let mut written = Ok(());
    let mut completed = |event: Event, out: &mut dyn Write| {
        totals.add(&event);
        let is_shown = match &event {
            Event::Transaction(transaction) => {
                arguments.transactions || matches!(transaction.outcome, Outcome::Open | Outcome::InDoubt)
            }
            Event::Checkpoint(_) => true,
        };
        if arguments.json && is_shown { listing::write_event(&event, logins, out) } else { Ok(()) }
    };
    if arguments.lists_records() && !arguments.json {
        writeln!(out, "{}", listing::RECORD_HEAD).map_err(Stop::Write)?;
    }
    while let Some(block) = walk.next_block().map_err(Stop::Read)? {
        if arguments.lists_records() {
            filter.enter(&block);
            for (lsn, record) in block.records() {
                if !filter.wants(lsn, &record, catalog) {
                    continue;
                }
                let rows = catalog.and_then(|catalog| row_changes(catalog, &record));
                match arguments.json {
                    true => listing::write_record(lsn, &record, rows.as_ref(), out),
                    false => listing::write_record_text(lsn, &record, rows.as_ref(), out),
                }
                .map_err(Stop::Write)?;
            }
        }
        rate.add(&block);
        history.block(&block, &mut |event| {
            if written.is_ok() {
                written = completed(event, out);
            }
        });
        if let Some(count) = blocks.get_mut(walk.position()) {
            *count += 1;
        }
    }
    let open = history.open_transactions();
    history.finish(&mut |event| {
        if written.is_ok() {
            written = completed(event, out);
        }
    });
    written.map_err(Stop::Write)?;
    let Some(end) = walk.end() else { return Ok(None) };
    let report = LogReport {
        log,
        end,
        history: &history,
        totals: &totals,
        open: &open,
        blocks: &blocks,
        lost_bytes: walk.lost_bytes(),
        rate: &rate,
        boot: database.and_then(|(database, _)| database.boot.as_ref()),
        logins,
    };
    match (arguments.json, arguments.lists_records()) {
        (true, _) => report.write_json(out),
        (false, true) => Ok(()),
        (false, false) => report.write_text(out),
    }
    .map_err(Stop::Write)?;
    Ok(report.fault())
}

impl LogArguments {
    /// Whether the options ask for a list of log records, either of all or of selected records.
    fn lists_records(&self) -> bool {
        self.records
            || self.page.is_some()
            || self.from.is_some()
            || self.to.is_some()
            || self.object.is_some()
            || self.transaction.is_some()
            || self.operation.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }
}
