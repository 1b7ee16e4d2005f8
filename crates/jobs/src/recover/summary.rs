//! Describes the result of recovery for reports.

use std::collections::BTreeMap;

use findings::{RecoveryDoubt, RecoveryDoubtKind, RecoveryState, RecoverySummary};
use recovery::{Analysis, Applied, Misfit, Recovery};

use super::Outcome;
use crate::failure::Failure;
use crate::host::warn;

/// Maximum number of pages that a reason lists by their addresses.
const NAMED_PAGES: usize = 3;

/// A summary with a state and a reason, and no counts.
pub(super) fn summary_of(state: RecoveryState, reason: &str) -> RecoverySummary {
    RecoverySummary {
        state,
        reason: reason.to_owned(),
        range: None,
        log_bytes: 0,
        records: 0,
        pages: 0,
        transactions_undone: 0,
        in_doubt: 0,
        doubts: Vec::new(),
    }
}

/// The summary for a log that belongs or may belong to the database, but cannot be used. `kind` makes the doubt from the
/// reason.
pub(super) fn unusable(reason: &str, kind: fn(String) -> RecoveryDoubtKind) -> RecoverySummary {
    let doubt = RecoveryDoubt { kind: kind(reason.to_owned()), scope: "database".to_owned(), count: 0 };
    RecoverySummary { doubts: vec![doubt], ..summary_of(RecoveryState::Refused, reason) }
}

/// The summary for a database that was not shut down cleanly and whose log was not found in the input.
pub(super) fn not_given(what: String) -> RecoverySummary {
    let summary = summary_of(RecoveryState::Refused, &what);
    let doubt = RecoveryDoubt { kind: RecoveryDoubtKind::NotGiven(what), scope: "database".to_owned(), count: 0 };
    RecoverySummary { doubts: vec![doubt], ..summary }
}

/// The summary of a finished recovery.
pub(super) fn summarize(recovery: &Recovery, is_clean: bool) -> RecoverySummary {
    let (analysis, applied) = (&recovery.analysis, &recovery.applied);
    let doubts = doubts(analysis, applied);
    let state = match (doubts.is_empty(), applied.pages) {
        (false, _) => RecoveryState::Partial,
        (true, 0) if is_clean => RecoveryState::NotNeeded,
        (true, _) => RecoveryState::Done,
    };
    let reason = doubts.first().map(|doubt| doubt.kind.limit().id.to_owned()).unwrap_or_default();
    RecoverySummary {
        range: Some((analysis.redo_from, analysis.end)),
        log_bytes: analysis.log_bytes,
        records: analysis.records,
        pages: applied.pages,
        transactions_undone: applied.transactions_undone,
        in_doubt: applied.in_doubt,
        doubts,
        ..summary_of(state, &reason)
    }
}

fn doubts(analysis: &Analysis, applied: &Applied) -> Vec<RecoveryDoubt> {
    let doubt = |kind, scope: &str, count| RecoveryDoubt { kind, scope: scope.to_owned(), count };
    let mut doubts = Vec::new();
    let mut by_cause: BTreeMap<Misfit, Vec<String>> = BTreeMap::new();
    for entry in &applied.not_recovered {
        by_cause.entry(entry.why).or_default().push(entry.page.to_string());
    }
    for (why, pages) in by_cause {
        let more = if pages.len() > NAMED_PAGES { ", ..." } else { "" };
        let named: Vec<&str> = pages.iter().take(NAMED_PAGES).map(String::as_str).collect();
        doubts.push(RecoveryDoubt {
            kind: RecoveryDoubtKind::Pages(why.to_string()),
            scope: format!("{}{more}", named.join(", ")),
            count: pages.len() as u64,
        });
    }
    if applied.in_doubt > 0 {
        doubts.push(doubt(RecoveryDoubtKind::InDoubt, "transactions", applied.in_doubt));
    }
    if applied.transactions_not_undone > 0 {
        doubts.push(doubt(RecoveryDoubtKind::Transaction, "transactions", applied.transactions_not_undone));
    }
    if let Some(why) = analysis.contradiction() {
        doubts.push(doubt(RecoveryDoubtKind::Contradicted(why.to_owned()), "database", 0));
    }
    if analysis.blocks_after_the_end > 0 {
        doubts.push(doubt(
            RecoveryDoubtKind::LogEnd,
            &format!("after {}", analysis.end),
            analysis.blocks_after_the_end,
        ));
    }
    doubts
}

/// Warns that the command uses recovered pages, which differ from those in the files.
pub(super) fn report(summary: &RecoverySummary, applied: &Applied) {
    if matches!(summary.state, RecoveryState::Done | RecoveryState::Partial) {
        warn(format!(
            "recovered in memory from its log: {} pages, {} records, {} transactions rolled back; the files are unchanged{}",
            summary.pages,
            applied.records,
            summary.transactions_undone,
            if summary.state == RecoveryState::Partial {
                "; recovery is not complete, see the following lines"
            } else {
                ""
            }
        ));
    }
}

/// Reports on stderr what could not be recovered. Commands whose results have no place for this report call this
/// function. Returns the exit-status bits.
pub fn report_doubts(outcome: &Outcome<'_>) -> u8 {
    let Some(summary) = &outcome.summary else { return 0 };
    for doubt in &summary.doubts {
        let why = match &doubt.kind {
            RecoveryDoubtKind::Pages(why)
            | RecoveryDoubtKind::Log(why)
            | RecoveryDoubtKind::Unsupported(why)
            | RecoveryDoubtKind::NotGiven(why)
            | RecoveryDoubtKind::Contradicted(why) => why,
            kind => kind.limit().reason,
        };
        warn(format!("not recovered: {}: {why} ({})", doubt.scope, doubt.kind.limit().id));
    }
    let is_complete = summary.doubts.is_empty() && summary.state != RecoveryState::Refused;
    if is_complete { 0 } else { Failure::INCOMPLETE }
}
