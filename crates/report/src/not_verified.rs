//! What was asked for and could not be verified: told by every format, never silent.

use std::io;

use check::{NotVerified, Report};

use crate::text_table::TextTable;

/// Writes the block that ends the text of an incomplete run; nothing for a complete one.
///
/// # Errors
/// Those of `out`.
pub fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    if report.complete() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(out, "{}", headline(report))?;
    if let Some(share) = share(report) {
        writeln!(out, "{share}")?;
    }
    let mut table = TextTable::new(&[2]);
    table.row(["what", "where", "count", "why"]);
    for NotVerified { what, scope, reason, count } in &report.not_verified {
        let count = if *count == 0 { "-".to_owned() } else { count.to_string() };
        table.row([what.as_str(), scope, &count, reason]);
    }
    table.write(2, out)
}

/// One line that says how much was verified of what can be counted; `None` when rows were not looked into.
pub fn share(report: &Report) -> Option<String> {
    let statistics = &report.statistics;
    let values = statistics.column_values_checked + statistics.column_values_not_verified;
    if values == 0 {
        return None;
    }
    Some(format!(
        "Verified: {} rows of tables and indexes, {} of {values} column values, {} of {} nonclustered indexes row by row.",
        statistics.rows_checked,
        statistics.column_values_checked,
        statistics.indexes_compared,
        statistics.indexes_in_scope
    ))
}

/// One line that says that the run is incomplete.
pub fn headline(report: &Report) -> String {
    let what = match report.not_verified.len() {
        1 => "one thing".to_owned(),
        count => format!("{count} things"),
    };
    format!("Incomplete: {what} asked for could not be verified.")
}
