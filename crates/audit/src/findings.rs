//! Decides which suspects are proven damage.

use catalog::Database;
use findings::registry::{self, Check};
use findings::{Finding, LogAudit, LogAuditDoubt, LogAuditDoubtKind, Owner};
use format::{AllocUnitId, Lsn, PageId};
use recovery::Start;

use crate::suspects::{Stray, Suspect, Suspects, Why};

/// Judges each suspect. Proven damage becomes a finding. A contradiction that is not proven damage is only counted as a
/// doubt. All other suspects are dropped.
pub(crate) fn settle(database: &Database, start: &Start, mut suspects: Suspects, audit: &mut LogAudit) {
    let mut doubts: Vec<(LogAuditDoubtKind, PageId, u64)> = Vec::new();
    let strays = std::mem::take(&mut suspects.strays);
    for (page, suspect) in &suspects.pages {
        match judge(suspect, strays.get(&suspect.lsn)) {
            Verdict::Proof(check) => audit.findings.push(finding(database, check, *page, suspect, start)),
            Verdict::Doubt(kind) => doubts.push((kind, *page, 1)),
            Verdict::Nothing => {}
        }
    }
    for (lsn, stray) in &strays {
        // Skips the pages that are already suspects because of one of their own records.
        let pages = || stray.pages.iter().filter(|(page, _)| !suspects.pages.contains_key(page));
        let others = pages().filter(|(page, _)| stray.page != Some(*page));
        match judge_stray(stray) {
            Verdict::Proof(check) => {
                for (page, unit) in others {
                    audit.findings.push(stray_finding(database, check, (*page, *unit), *lsn));
                }
                suspects.more += stray.count - stray.pages.len() as u64;
            }
            Verdict::Doubt(kind) => doubts.extend(others.map(|(page, _)| (kind, *page, 1))),
            Verdict::Nothing => {}
        }
    }
    let mut kinds: Vec<LogAuditDoubtKind> = doubts.iter().map(|(kind, ..)| *kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let of_kind = || doubts.iter().filter(|(other, ..)| *other == kind);
        let first = of_kind().map(|(_, page, _)| *page).min().unwrap_or_default();
        let count: u64 = of_kind().map(|(.., count)| count).sum();
        let more = if count > 1 { ", ..." } else { "" };
        audit.doubts.push(LogAuditDoubt { kind, scope: format!("page {first}{more}"), count });
    }
    if suspects.more > 0 {
        let (kind, scope) = (LogAuditDoubtKind::More, "database".to_owned());
        audit.doubts.push(LogAuditDoubt { kind, scope, count: suspects.more });
    }
}

enum Verdict {
    Proof(&'static Check),
    Doubt(LogAuditDoubtKind),
    Nothing,
}

fn judge(suspect: &Suspect, stray: Option<&Stray>) -> Verdict {
    let proof = |check| match suspect.is_unprotected && !suspect.confirmed.is_linked {
        true => Verdict::Doubt(LogAuditDoubtKind::LogUnprotected),
        false => Verdict::Proof(check),
    };
    // A damaged record may name the wrong page, so a record without confirmation proves nothing about a page.
    let confirmed = |check| match suspect.confirmed.any() || suspect.is_unprotected {
        true => proof(check),
        false => Verdict::Doubt(LogAuditDoubtKind::LogRecord),
    };
    match suspect.why {
        Why::Newer => Verdict::Doubt(LogAuditDoubtKind::LogEnd),
        Why::Lost if suspect.record.is_some() => confirmed(&registry::LOG_LOST_WRITE),
        Why::Image(_) if suspect.record.is_some() => proof(&registry::LOG_IMAGE_DIFFERS),
        // In a block without a checksum, a single damaged field can make the chain of a page look broken.
        Why::Links if suspect.is_unprotected => Verdict::Doubt(LogAuditDoubtKind::LogUnprotected),
        Why::Links if suspect.record.is_some() => confirmed(&registry::LOG_CHAIN_BROKEN),
        Why::Apart if suspect.is_cleared => Verdict::Nothing,
        // The log has records of the page after the page's LSN. The first of these records states which LSN the page
        // had before, and this LSN differs from the page's LSN.
        Why::Apart if suspect.record.is_some() => confirmed(&registry::LOG_CHAIN_BROKEN),
        // The page's LSN is later than the LSNs of all its records.
        Why::Apart => match stray {
            Some(stray) => judge_stray(stray),
            None => Verdict::Nothing,
        },
        Why::Lost | Why::Image(_) | Why::Links => Verdict::Nothing,
    }
}

/// Judges pages whose LSN is not the LSN of one of their own records. If SQL Server writes the rows of a page without
/// logging them, the page gets the LSN of another record: usually a record of the same transaction or of the page's
/// allocation, sometimes a record about a row on another page.
fn judge_stray(stray: &Stray) -> Verdict {
    match stray {
        Stray { is_found: true, .. } => Verdict::Nothing,
        Stray { is_unprotected: true, .. } => Verdict::Doubt(LogAuditDoubtKind::LogUnprotected),
        _ => Verdict::Proof(&registry::LOG_CHAIN_BROKEN),
    }
}

fn finding(database: &Database, check: &'static Check, page: PageId, suspect: &Suspect, start: &Start) -> Finding {
    let base = Finding::new(check).owner(Owner::of(database, suspect.unit)).page(page);
    let base = base.text_value("page_lsn", text(suspect.lsn));
    let base = match suspect.why {
        Why::Image(slot) => base.at(page, slot),
        _ => base,
    };
    let Some(note) = suspect.record else {
        return base.text_value("contradiction", "The log has no record with this LSN.");
    };
    let base = base
        .text_value("lsn", text(note.lsn))
        .text_value("operation", note.operation.to_string())
        .text_value("transaction", note.transaction.to_string());
    match suspect.why {
        Why::Links | Why::Apart => {
            let (lsn, expected) = (text(note.lsn), text(suspect.expected));
            let contradiction = match suspect.why {
                Why::Links => format!(
                    "Log record {lsn} ({}, transaction {}) names {expected} as the previous LSN of the page, although another log record had already given the page a later LSN.",
                    note.operation, note.transaction
                ),
                _ => format!(
                    "Log record {lsn} ({}, transaction {}) names {expected} as the previous LSN of the page.",
                    note.operation, note.transaction
                ),
            };
            base.text_value("expected_lsn", expected).text_value("contradiction", contradiction)
        }
        Why::Lost => base
            .text_value("redo_lsn", text(start.redo_from))
            .number("missing_changes", suspect.missing.count().cast_signed())
            .text_value("missing", suspect.missing.text()),
        _ => base.text_value("missing", suspect.missing.text()),
    }
}

fn stray_finding(database: &Database, check: &'static Check, (page, unit): (PageId, AllocUnitId), lsn: Lsn) -> Finding {
    let base = Finding::new(check).owner(Owner::of(database, unit)).page(page).text_value("page_lsn", text(lsn));
    base.text_value("contradiction", "The log has no record with this LSN.")
}

/// Formats an LSN as SQL Server prints it.
fn text(lsn: Lsn) -> String {
    format!("{:08x}:{:08x}:{:04x}", lsn.vlf, lsn.block, lsn.slot)
}
