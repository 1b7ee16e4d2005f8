//! Message 8957: the line about a DBCC run in the error log and in the event log.

use findings::registry::Class;
use findings::{ErrorCounts, Report, Scope};

use crate::listing::Listing;
use crate::message::{self, Message};
use crate::not_verified;
use crate::text_table::printable;

/// Facts about the DBCC statement that the report does not contain.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// The user who ran the statement, as `DOMAIN\user`.
    pub who: &'a str,
    /// Whether the statement has WITH NO_INFOMSGS.
    pub no_infomsgs: bool,
    /// Whether the statement has WITH DATA_PURITY.
    pub data_purity: bool,
}

/// The lines about a run. For CHECKTABLE, there is one line for each table, because each table needs its own DBCC
/// statement.
pub fn lines(report: &Report, statement: Statement<'_>) -> Vec<String> {
    let messages = match report.options.scope {
        Scope::Tables(_) => {
            let listing = Listing::of(report);
            let of_none = listing.unattributed.counts;
            let line = |object: &crate::listing::ObjectListing<'_>| {
                let counts = object.findings.counts;
                let counts = ErrorCounts {
                    allocation: counts.allocation + of_none.allocation,
                    consistency: counts.consistency + of_none.consistency,
                };
                finished(report, statement, object.qualified_name().as_deref(), counts)
            };
            listing.objects.iter().map(line).collect()
        }
        _ => vec![finished(report, statement, None, report.counts())],
    };
    messages.into_iter().map(|message| printable(&message.text).into_owned()).collect()
}

/// Returns message 8957 about a run, or about one table of a CHECKTABLE run. In SQL Server, the text ends with facts
/// about the snapshot; here, it ends with the reasons why the run may have overlooked errors.
pub(crate) fn finished(report: &Report, statement: Statement<'_>, table: Option<&str>, counts: ErrorCounts) -> Message {
    let options = &report.options;
    let with = [
        (statement.no_infomsgs, "no_infomsgs"),
        (options.physical_only, "physical_only"),
        (statement.data_purity, "data_purity"),
        (options.extended_logical_checks, "extended_logical_checks"),
    ];
    let with: Vec<&str> = with.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect();
    let with = if with.is_empty() { String::new() } else { format!(" WITH {}", with.join(", ")) };
    let (command, target) = (options.scope.command(), message::target(report, table));
    let who = statement.who;
    // Errors that stop the check are counted neither as allocation nor as consistency errors.
    let uncounted = || report.findings.iter().filter(|finding| finding.check.class == Class::Uncounted).count() as u64;
    let errors = match counts.allocation + counts.consistency {
        0 if table.is_none() => uncounted(),
        errors => errors,
    };
    let seconds = report.statistics.seconds as u64;
    let mut text = format!(
        "DBCC {command} ({target}){with} executed by {who} found {errors} errors and repaired 0 errors. Elapsed time: {} hours \
         {} minutes {} seconds.",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    if !report.read_errors.is_empty() {
        text.push_str(&format!(" Reads that failed: {}.", report.read_errors.len()));
    }
    if !report.complete() {
        text.push(' ');
        text.push_str(&not_verified::headline(report));
    }
    Message { number: 8957, text }
}
