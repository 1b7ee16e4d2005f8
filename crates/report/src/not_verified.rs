//! Writes, in every format, the list of requested things that could not be verified. Also writes the notes, which are
//! remarks that do not make a run incomplete.

use std::io;

use findings::registry::limits::{self, Limit, LimitKind};
use findings::{NotVerified, Report};

use crate::causes::by_cause;
pub use crate::causes::split;
use crate::text_table::{printable, width};
use crate::{View, message};

/// Width of the lines that list places.
const WIDTH: usize = 110;

/// Writes the blocks that end the text of a run. The first block lists what was not verified. Under each reason, it
/// also lists the demoted findings, which this reason may explain. The second block has the notes, unless informational
/// messages are suppressed. A complete run without notes has no blocks.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(report: &Report, view: View, out: &mut dyn io::Write) -> io::Result<()> {
    if !report.complete() {
        writeln!(out)?;
        writeln!(out, "{}", headline(report))?;
        if let Some(share) = share(report) {
            writeln!(out, "{share}")?;
        }
        let mut under = None;
        let (shown, follows) = split(report);
        for (cause, places) in by_cause(shown.into_iter()) {
            let limit = cause.limit;
            if under != Some(heading(limit)) {
                writeln!(out, "  {}:", heading(limit))?;
                under = Some(heading(limit));
            }
            let allowed = if report.is_allowed(limit) { ", allowed" } else { "" };
            writeln!(out, "    {} ({}{allowed})", printable(cause.reason), limit.id)?;
            write_places(&places, out)?;
            if limit == &limits::BACKUP_STRIPES && !follows.is_empty() {
                writeln!(
                    out,
                    "      other entries that depend on these pages: {} (--format json lists all)",
                    follows.len()
                )?;
            }
            write_demoted(report, (limit, view), out)?;
        }
    }
    if !report.notes.is_empty() && !view.no_infomsgs {
        writeln!(out)?;
        writeln!(out, "Notes:")?;
        for (cause, places) in by_cause(report.notes.iter()) {
            writeln!(out, "    {} ({})", printable(cause.reason), cause.limit.id)?;
            write_places(&places, out)?;
        }
    }
    Ok(())
}

/// One line that says how many rows, column values and indexes were verified; `None` if rows were not examined.
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
    let allowed = match report.not_verified.iter().filter(|entry| report.is_allowed(entry.limit)).count() {
        0 => String::new(),
        1 if report.not_verified.len() == 1 => " (--allow accepts it)".to_owned(),
        count if count == report.not_verified.len() => " (--allow accepts them)".to_owned(),
        count => format!(" (--allow accepts {count} of them)"),
    };
    format!("Incomplete: {what} asked for could not be verified{allowed}. 'mdfsck explain ID' says more.")
}

/// The heading under which a limit is listed: the kind of the limit, in words.
pub(crate) fn heading(limit: &Limit) -> &'static str {
    match limit.kind {
        // Under these limits, no input is missing: the time window of the check ended before all ranges of pages were
        // read.
        _ if [&limits::WINDOW_OPEN, &limits::WINDOW_TABLE_OPEN, &limits::WINDOW_CONTAINER_OPEN].contains(&limit) => {
            "Because the window ended"
        }
        LimitKind::Damaged => "Because of damage or contradictions",
        LimitKind::Unreadable => "Because reads failed",
        LimitKind::NotGiven => "Because something was not given",
        LimitKind::InFlight => "Because changes were under way",
        LimitKind::Undocumented => "Because the format is undocumented",
        LimitKind::Unsupported => "Because mdfsck does not make this check",
    }
}

/// Writes the demoted findings of a limit, that is the findings that the limit may explain. The lines do not look like
/// DBCC's lines, so that no script mistakes a demoted finding for a message of DBCC.
fn write_demoted(report: &Report, (limit, view): (&Limit, View), out: &mut dyn io::Write) -> io::Result<()> {
    let shown = view.max_findings.unwrap_or(usize::MAX);
    for finding in report.demoted.iter().filter(|finding| finding.demoted_by == Some(limit)).take(shown) {
        let (number, state, text) = message::of_finding(report, &finding);
        writeln!(out, "        {number}, state {state}: {}", printable(&text))?;
    }
    Ok(())
}

/// Writes what was not verified, and its places. Places of one kind form a paragraph.
fn write_places(entries: &[&NotVerified], out: &mut dyn io::Write) -> io::Result<()> {
    for of_one_kind in entries.chunk_by(|a, b| a.what == b.what) {
        let Some(first) = of_one_kind.first() else { continue };
        let mut line = format!("      {}:", printable(&first.what));
        for (at, entry) in of_one_kind.iter().enumerate() {
            let count = if entry.count == 0 { String::new() } else { format!(" ({})", entry.count) };
            let comma = if at + 1 < of_one_kind.len() { "," } else { "" };
            let place = format!(" {}{count}{comma}", printable(&entry.scope));
            if at > 0 && width(&line) + width(&place) > WIDTH {
                writeln!(out, "{line}")?;
                line = "       ".to_owned();
            }
            line.push_str(&place);
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_window_has_not_read_yet_was_given() {
        assert_eq!(heading(&limits::WINDOW_OPEN), "Because the window ended");
        assert_eq!(heading(&limits::PAGES_FILE_NOT_GIVEN), "Because something was not given");
    }
}
