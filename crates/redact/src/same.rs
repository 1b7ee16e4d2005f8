//! Compares the reports of a database and of its redacted copy.

use findings::{Finding, Report, Value};

/// A finding without its names and values, and whether it is proven.
fn finding(finding: &Finding, is_proven: bool) -> String {
    let owner = finding.owner;
    // A checksum depends on all values of its page. A wrong one must be wrong by the same bits.
    let number = |wanted: &str| {
        finding.evidence.iter().find(|(name, _)| *name == wanted).and_then(|(_, value)| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
    };
    let wrong_bits = number("stored_checksum").zip(number("computed_checksum")).map(|(stored, own)| stored ^ own);
    let evidence = finding.evidence.iter().map(|(name, value)| match value {
        Value::Text(_) => format!("{name}: text"),
        // The stored torn bits are bits of values; the found ones tell which sectors are torn.
        _ if *name == "stored_torn_bits" => format!("{name}: bits"),
        _ if name.ends_with("_checksum") => format!("{name}: {wrong_bits:?}"),
        value => format!("{name}: {value:?}"),
    });
    let evidence: Vec<String> = evidence.collect();
    format!(
        "{} state {} owner {owner:?} page {:?}:{:?} ref {:?}:{:?} {evidence:?} proven {is_proven} limit {:?}",
        finding.check.id,
        finding.state,
        finding.page,
        finding.slot,
        finding.ref_page,
        finding.ref_slot,
        finding.demoted_by.map(|limit| limit.id)
    )
}

/// Everything that a report says, without names and values, sorted.
fn facts(report: &Report) -> Vec<String> {
    let findings = report.findings.iter().map(|it| finding(&it, true));
    let demoted = report.demoted.iter().map(|it| finding(&it, false));
    let not_verified = report.not_verified.iter().chain(&report.notes);
    let not_verified =
        not_verified.map(|it| format!("not verified {} of {:?}: {} ({})", it.what, it.objects, it.count, it.limit.id));
    let mut facts: Vec<String> = findings.chain(demoted).chain(not_verified).collect();
    facts.sort();
    facts
}

/// What only one of two reports says: lines with `-` for the first, with `+` for the second. Empty if both say the same
/// except for names and values.
pub fn differences(before: &Report, after: &Report) -> Vec<String> {
    let (mut before, mut after) = (facts(before).into_iter().peekable(), facts(after).into_iter().peekable());
    let mut differences = Vec::new();
    loop {
        match (before.peek(), after.peek()) {
            (Some(one), Some(other)) if one == other => {
                before.next();
                after.next();
            }
            (Some(one), other) if other.is_none_or(|other| one < other) => {
                differences.extend(before.next().map(|one| format!("- {one}")));
            }
            (_, Some(_)) => differences.extend(after.next().map(|other| format!("+ {other}"))),
            _ => return differences,
        }
    }
}
