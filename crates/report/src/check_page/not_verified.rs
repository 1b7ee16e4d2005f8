//! The list of what was not verified, by cause, as the page shows it.

use std::collections::BTreeMap;

use findings::registry::limits::{self, Limit};
use findings::{NotVerified as Entry, Report};
use serde::Serialize;

use crate::causes::{by_cause, split};
use crate::html::{Budget, Cause, What};
use crate::not_verified::{heading, headline, share};

/// Maximum number of causes that are shown.
const MOST_CAUSES: usize = 200;
/// Maximum number of kinds of places that are shown for a cause, and maximum number of places of each kind.
const MOST_PLACES: usize = 50;
/// Maximum number of characters of a name or reason.
const MOST_CHARS: usize = 200;
/// Maximum number of demoted findings (findings that the log may explain) that are shown for a cause.
const MOST_DEMOTED: usize = 50;

/// The things that were not verified, and notes.
#[derive(Serialize)]
pub(super) struct NotVerified {
    /// The headline about an incomplete run; `None` for a complete run.
    headline: Option<String>,
    share: Option<String>,
    causes: Vec<Cause>,
    more_causes: usize,
    notes: Vec<Cause>,
}

/// The things that a report could not verify, with as much text as the text budget allows.
pub(super) fn not_verified(report: &Report, room: &mut Budget) -> NotVerified {
    let (entries, follows) = split(report);
    let mut demoted: BTreeMap<&Limit, (Vec<String>, u64)> = BTreeMap::new();
    for finding in &report.demoted {
        let Some(limit) = finding.demoted_by else { continue };
        let (texts, more) = demoted.entry(limit).or_default();
        let text = match texts.len() < MOST_DEMOTED && !room.is_spent() {
            true => room.take(&format!("{}: {}", finding.check.msg, finding.text(&report.names())), MOST_CHARS),
            false => None,
        };
        match text {
            Some(text) => texts.push(text),
            None => *more += 1,
        }
    }
    let causes = by_cause(entries.into_iter());
    let more_causes = causes.len().saturating_sub(MOST_CAUSES);
    let causes = causes.into_iter().take(MOST_CAUSES).map(|(cause, entries)| {
        let (texts, more) = demoted.remove(cause.limit).unwrap_or_default();
        let follows = if cause.limit == &limits::BACKUP_STRIPES { follows.len() } else { 0 };
        Cause {
            is_allowed: report.is_allowed(cause.limit),
            follows,
            demoted: texts,
            more_demoted: more,
            ..of(cause.limit, cause.reason, &entries, room)
        }
    });
    let causes = causes.collect();
    let notes = by_cause(report.notes.iter()).into_iter().take(MOST_CAUSES);
    let notes = notes.map(|(cause, entries)| of(cause.limit, cause.reason, &entries, room)).collect();
    NotVerified {
        headline: (!report.complete()).then(|| headline(report)),
        share: share(report),
        causes,
        more_causes,
        notes,
    }
}

/// A cause with as many of its places as the text budget allows.
fn of(limit: &'static Limit, reason: &str, entries: &[&Entry], room: &mut Budget) -> Cause {
    let reason = room.take_or_cut(reason, MOST_CHARS);
    let mut what = Vec::new();
    for of_one_kind in entries.chunk_by(|a, b| a.what == b.what).take(MOST_PLACES) {
        let mut places = Vec::new();
        for entry in of_one_kind.iter().take(MOST_PLACES) {
            let Some(scope) = room.take(&entry.scope, MOST_CHARS) else { break };
            places.push(if entry.count == 0 { scope } else { format!("{scope} ({})", entry.count) });
        }
        let name = of_one_kind.first().map_or_else(String::new, |first| room.take_or_cut(&first.what, MOST_CHARS));
        what.push(What { what: name, more: of_one_kind.len() - places.len(), places });
    }
    Cause {
        kind: heading(limit),
        reason,
        id: limit.id.into(),
        action: limit.action,
        is_allowed: false,
        what,
        follows: 0,
        demoted: Vec::new(),
        more_demoted: 0,
    }
}
