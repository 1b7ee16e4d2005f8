//! DBCC's informational messages: number and text. The texts of findings are in the registry.

use findings::registry::{Repair, limits};
use findings::{BrokerCount, ErrorCounts, Finding, IdentityResult, Options, Report, Scope};

/// An informational message, level 10.
pub(crate) struct Message {
    pub(crate) number: u16,
    pub(crate) text: String,
}

fn message(number: u16, text: String) -> Message {
    Message { number, text }
}

/// The heading of the results of a database or object.
pub(crate) fn results_for(name: &str) -> Message {
    message(2536, format!("DBCC results for '{name}'."))
}

/// The message that says that NOINDEX was requested.
pub(crate) fn no_index(command: &str) -> Message {
    let command = command.to_lowercase();
    let text =
        format!("Warning: NO_INDEX option of {command} being used. Checks on non-system indexes will be skipped.");
    message(7966, text)
}

/// The message with the number of Service Broker objects of one kind. It is printed as an informational line, without
/// its own number 8997.
pub(crate) fn broker_count(kind: &BrokerCount) -> Message {
    message(8997, format!("Service Broker Msg {}, State 1: {} analyzed: {}.", kind.number, kind.name, kind.count))
}

/// Number, state and text of a finding's message. CHECKDB wraps messages of the catalog check in message 8992;
/// CHECKCATALOG prints them directly.
pub(crate) fn of_finding(report: &Report, finding: &Finding) -> (u16, u8, String) {
    let text = finding.text(&report.names());
    let whole = (finding.check.msg, finding.state);
    if report.options.scope == Scope::Catalog
        && let Some(((number, state), inner)) = text.strip_prefix("Check Catalog Msg ").and_then(unwrapped)
    {
        return (number, state, inner.to_owned());
    }
    (whole.0, whole.1, text)
}

/// Splits `3853, State 1: text` into number, state and text. `None` if `text` has another form.
fn unwrapped(text: &str) -> Option<((u16, u8), &str)> {
    let (number, rest) = text.split_once(", State ")?;
    let (state, inner) = rest.split_once(": ")?;
    Some(((number.parse().ok()?, state.parse().ok()?), inner))
}

/// The message with the numbers of rows and pages that the check counted for an object.
pub(crate) fn rows_in_pages((rows, pages): (u64, u64), object: &str) -> Message {
    message(2593, format!("There are {rows} rows in {pages} pages for object \"{object}\"."))
}

/// The message about a memory-optimized table, which cannot be checked because its rows are not in the data files.
pub(crate) fn memory_optimized(object_id: i32, object: &str) -> Message {
    let text = format!(
        "Object ID {object_id} (object '{object}'): The operation is not supported with memory optimized tables. This object \
         has been skipped and will not be processed."
    );
    message(5296, text)
}

fn found(command: &str, counts: ErrorCounts, rest: &str) -> String {
    let ErrorCounts { allocation, consistency } = counts;
    format!("{command} found {allocation} allocation errors and {consistency} consistency errors {rest}.")
}

/// The message with the number of errors that belong to no single object.
pub(crate) fn found_unattributed(command: &str, counts: ErrorCounts) -> Message {
    message(8954, found(command, counts, "not associated with any single object"))
}

/// The message with the number of errors in an object.
pub(crate) fn found_in_table(command: &str, counts: ErrorCounts, object: &str, object_id: i32) -> Message {
    message(8990, found(command, counts, &format!("in table '{object}' (object ID {object_id})")))
}

/// The message with the number of errors in the database.
pub(crate) fn found_in_database(report: &Report) -> Message {
    let command = report.options.scope.command();
    message(8989, found(command, report.counts(), &format!("in database '{}'", report.database.name)))
}

/// The message about the minimum repair level; `None` if no repair is possible. For CHECKTABLE, `table` is the name of
/// the checked table with its schema.
pub(crate) fn repair_level(report: &Report, repair: Repair, table: Option<&str>) -> Option<Message> {
    let level = repair.name()?;
    let (command, target) = (report.options.scope.command(), target(report, table));
    let text = format!("{level} is the minimum repair level for the errors found by DBCC {command} ({target}).");
    Some(message(8958, text))
}

/// The argument of the DBCC statement, as messages show it in parentheses: the database or one of its tables, then
/// `noindex` if NOINDEX was requested.
pub(crate) fn target(report: &Report, table: Option<&str>) -> String {
    let Options { scope, no_index, .. } = &report.options;
    let database = &report.database.name;
    let no_index = if *no_index { ", noindex" } else { "" };
    match (scope, table) {
        (Scope::Tables(_), Some(table)) => format!("{database}.{table}{no_index}"),
        _ => format!("{database}{no_index}"),
    }
}

/// The message with the estimated space for a run. SQL Server needs this space in tempdb; this program needs it for
/// temporary files.
pub(crate) fn estimated(command: &str, database: &str, kilobytes: u64) -> Message {
    message(5281, format!("Estimated TEMPDB space (in KB) needed for {command} on database {database} = {kilobytes}."))
}

/// The message of CHECKIDENT with two values: the current identity value, and the value of the identity column that is
/// farthest in the direction of the increment among all rows.
pub(crate) fn identity(result: &IdentityResult) -> Message {
    let value = |value: Option<i64>| value.map_or_else(|| "NULL".to_owned(), |value| value.to_string());
    let (current, farthest) = (value(result.current()), value(result.farthest));
    let text = format!(
        "Checking identity information: current identity value '{current}', current column value '{farthest}'."
    );
    message(7998, text)
}

/// A warning that rows already have values beyond the current identity value of their column. CHECKIDENT has no text
/// for this warning.
pub fn identity_behind(result: &IdentityResult) -> String {
    let IdentityResult { table, column, .. } = result;
    format!(
        "Warning: table '{table}' already has values of identity column '{column}' beyond the current identity value; reseed \
         the table with DBCC CHECKIDENT."
    )
}

/// A line with the number of constraints that hold for all rows; `None` if constraints were not requested.
pub(crate) fn constraints(report: &Report) -> Option<String> {
    let all = &report.beyond.constraints;
    let verified = |kind: &str| {
        all.iter().filter(|result| result.type_name == kind && result.is_verified && result.violations == 0).count()
    };
    let claims_nothing = all.iter().filter(|result| !result.is_trusted).count();
    report.options.constraints.then(|| {
        format!(
            "{} CHECK and {} FOREIGN KEY constraints hold for all rows; {claims_nothing} are disabled or not trusted.",
            verified("CHECK"),
            verified("FOREIGN KEY"),
        )
    })
}

/// Warning 3859: system tables were updated by hand. The warning is not counted as an error. `None` if system tables
/// were not updated by hand, or if the run does not check the catalog.
pub(crate) fn catalog_updated(report: &Report) -> Option<Message> {
    let Options { scope, physical_only, .. } = &report.options;
    let database = &report.database;
    let time = database.catalog_updated.as_ref().filter(|_| scope.checks_catalog() && !physical_only)?;
    let (id, time) = (database.id, date(time)?);
    let text =
        format!("Warning: The system catalog was updated directly in database ID {id}, most recently at {time}.");
    Some(match scope {
        Scope::Catalog => message(3859, text),
        _ => message(8992, format!("Check Catalog Msg 3859, State 1: {text}")),
    })
}

/// Message 8921, which says that facts were lost because temporary files failed; `None` if no facts were lost. The
/// message is not a finding: the list of what was not verified has the lost facts, and stderr reports the failure.
pub(crate) fn facts_lost(report: &Report) -> Option<Message> {
    let is_lost = report.not_verified.iter().any(|entry| entry.limit.id == limits::TREE_KEY_BOUNDS_LOST.id);
    let text = "Check terminated. A failure was detected while collecting facts. Possibly tempdb out of space or a system table \
                is inconsistent. Check previous errors.";
    is_lost.then(|| message(8921, text.to_owned()))
}

/// A time as messages print it: `Mar 10 2011  8:09AM` for `2011-03-10 08:09:00.000`. `None` if `time` has another form.
fn date(time: &str) -> Option<String> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let part = |at: std::ops::Range<usize>| time.get(at)?.parse::<usize>().ok();
    let (year, month, day) = (part(0..4)?, MONTHS.get(part(5..7)?.checked_sub(1)?)?, part(8..10)?);
    let (hour, minute) = (part(11..13)?, part(14..16)?);
    let half = if hour < 12 { "AM" } else { "PM" };
    let hour = if hour % 12 == 0 { 12 } else { hour % 12 };
    Some(format!("{month} {day:>2} {year} {hour:>2}:{minute:02}{half}"))
}

/// The last message of a run.
pub(crate) fn completed() -> Message {
    let text = "DBCC execution completed. If DBCC printed error messages, contact your system administrator.";
    message(2528, text.to_owned())
}
