//! The comparison of pages with their log records: `mdfsck audit`.

use std::io;

use findings::registry::LEVEL;
use findings::{LogAudit, Report};

use crate::json::audit as lines;
use crate::json::lines::{ErrorText, Line};
use crate::json::{Names, demoted, finding_line, line, not_verified_line};
use crate::server_text::lsn_text;
use crate::text_table::printable;
use crate::{View, not_verified};

/// Writes the audit as lines of JSON: the findings, then the totals of the comparison of pages with their log records.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(report: &Report, audit: &LogAudit, out: &mut dyn io::Write) -> io::Result<()> {
    let names = Names::of(report);
    for found in &report.findings {
        line(&Line::Finding(finding_line(report, &found, &names)), out)?;
    }
    for found in &report.demoted {
        line(&Line::Demoted(demoted(report, &found, &names)), out)?;
    }
    for text in &report.read_errors {
        line(&Line::Error(ErrorText::of(text)), out)?;
    }
    for entry in &report.not_verified {
        line(&Line::NotVerified(not_verified_line(report, entry)), out)?;
    }
    let summary = lines::AuditSummary {
        findings: report.findings.len(),
        pages_compared: audit.pages_compared,
        images_compared: audit.images_compared,
        pages_older: audit.pages_older,
        pages_without_records: audit.pages_without_records,
        from_lsn: audit.range.map(|(from, _)| lsn_text(from)),
        redo_lsn: audit.redo_from.map(lsn_text),
        to_lsn: audit.range.map(|(_, to)| lsn_text(to)),
        complete: report.complete(),
    };
    line(&lines::AuditLine::Summary(summary), out)
}

/// Writes the audit for people: one line for each finding, then one line with the totals of the comparison of pages
/// with their log records.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_text(report: &Report, audit: &LogAudit, out: &mut dyn io::Write) -> io::Result<()> {
    for found in &report.findings {
        let (number, state) = (found.check.msg, found.state);
        let text = found.text(&report.names());
        writeln!(out, "Msg {number}, Level {LEVEL}, State {state}, Line 1")?;
        writeln!(out, "{}", printable(text.trim_end()))?;
    }
    let found = match report.findings.len() {
        0 => "no page contradicts the log".to_owned(),
        1 => "1 page contradicts the log".to_owned(),
        count => format!("{count} pages contradict the log"),
    };
    let range = match audit.range {
        Some((from, to)) => format!(" from {} to {}", lsn_text(from), lsn_text(to)),
        None => String::new(),
    };
    writeln!(
        out,
        "{} pages of database '{}' were compared with the log{range}: {found}. The bytes that the last change wrote were \
         compared on {} of these pages. {} pages were last changed before this log begins; {} pages have no record of \
         their own in the log.",
        audit.pages_compared,
        printable(&report.database.name),
        audit.images_compared,
        audit.pages_older,
        audit.pages_without_records
    )?;
    not_verified::write(report, View::default(), out)
}
