//! The list of what was not verified in a summary. Each cause has one paragraph, which names only a few places.

use std::collections::BTreeMap;
use std::io;

use findings::registry::limits::{self, Limit};
use findings::{Finding, NotVerified, Report};

use super::lines::Lines;
use crate::amounts::{counted, grouped};
use crate::causes::{by_cause, split};

/// Maximum number of causes that are shown.
const MOST_CAUSES: usize = 8;
/// Maximum number of lines for the places of each kind.
const MOST_LINES: usize = 2;
/// Maximum number of demoted findings that are shown for each cause.
const MOST_DEMOTED: usize = 5;

/// Writes the causes. Each limit is one cause, even if its entries have different reasons.
///
/// Returns the limit of the first cause.
pub(super) fn write(report: &Report, lines: &mut Lines<'_>) -> io::Result<Option<&'static Limit>> {
    if report.not_verified.is_empty() {
        return Ok(None);
    }
    let (shown, follows) = split(report);
    let mut causes: Vec<(&'static Limit, Vec<&NotVerified>)> = Vec::new();
    for (cause, entries) in by_cause(shown.into_iter()) {
        match causes.last_mut().filter(|(limit, _)| *limit == cause.limit) {
            Some((_, of_limit)) => of_limit.extend(entries),
            None => causes.push((cause.limit, entries)),
        }
    }
    lines.blank()?;
    lines.paragraph("Not verified   ", &counted(report.not_verified.len() as u64, "thing", "things"))?;
    for (limit, entries) in causes.iter().take(MOST_CAUSES) {
        write_cause(report, limit, entries, lines)?;
        if *limit == &limits::BACKUP_STRIPES && !follows.is_empty() {
            let follow = counted(follows.len() as u64, "thing depends", "things depend");
            lines.paragraph("    ", &format!("{follow} on these pages (--format json has all)"))?;
        }
    }
    if let more @ 1.. = causes.len().saturating_sub(MOST_CAUSES) as u64 {
        let more = counted(more, "more cause", "more causes");
        lines.paragraph("  ", &format!("... and {more} (--format json has all)"))?;
    }
    Ok(causes.first().map(|(limit, _)| *limit))
}

/// The limit for which a report without findings suggests `mdfsck explain` at its end; `None` if everything was
/// verified.
pub(crate) fn first_limit(report: &Report) -> Option<&'static Limit> {
    by_cause(split(report).0.into_iter()).keys().next().map(|cause| cause.limit)
}

fn write_cause(
    report: &Report,
    limit: &'static Limit,
    entries: &[&NotVerified],
    lines: &mut Lines<'_>,
) -> io::Result<()> {
    let allowed = if report.is_allowed(limit) { ", allowed" } else { "" };
    lines.paragraph("  ", &format!("{} ({}{allowed})", reason(report, limit, entries), limit.id))?;
    let mut demoted = report.demoted.iter().filter(|finding| finding.demoted_by == Some(limit)).peekable();
    if demoted.peek().is_some() {
        for finding in demoted.by_ref().take(MOST_DEMOTED) {
            lines.paragraph(&format!("    {}  ", finding.check.msg), &in_few_words(report, &finding))?;
        }
        if let more @ 1.. = demoted.count() as u64 {
            lines.paragraph("    ", &format!("... and {} more (--format text has all)", grouped(more)))?;
        }
        return Ok(());
    }
    let mut by_what: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.scope != "database" && entry.scope != "backup") {
        by_what.entry(&entry.what).or_default().push(entry.scope.clone());
    }
    for (what, places) in by_what.iter().filter(|_| limit != &limits::FILE_NOT_GIVEN) {
        lines.places("    ", &format!("{what}:"), places, MOST_LINES)?;
    }
    Ok(())
}

/// The reason to show. If input is missing, this is the text of the warning. Otherwise it is the reason that all
/// entries share, or the general reason of the limit if the entries have different reasons.
fn reason(report: &Report, limit: &'static Limit, entries: &[&NotVerified]) -> String {
    let warning = report.warnings.iter().find(|warning| limit.is_root() && warning.id == limit.id);
    let first = entries.first().map(|entry| entry.reason.as_str()).unwrap_or_default();
    match warning {
        Some(warning) => warning.text.clone(),
        None if entries.iter().all(|entry| entry.reason == first) => first.to_owned(),
        None => crate::limits::reason(limit),
    }
}

/// A short description of a demoted finding, with its object.
fn in_few_words(report: &Report, finding: &Finding) -> String {
    let object = finding.object_id().and_then(|id| report.rowsets.iter().find(|rowset| rowset.object_id == id));
    let object = object.map(|rowset| format!("{}.{}: ", rowset.schema, rowset.name)).unwrap_or_default();
    format!("{object}{}", finding.brief(&report.names()))
}
