//! What a check has not read, because it has not changed since earlier checks: lines for people.

use findings::{ByChange, Change, Report};

use crate::amounts::grouped;
use crate::databases::size;

/// The lines, or none if the check had no parts of earlier checks to use.
pub fn lines(report: &Report) -> Vec<String> {
    match &report.change {
        Some(Change::Proven(change)) => proven(change),
        Some(Change::Whole(why)) => vec![format!("all pages were read: {why}")],
        None => Vec::new(),
    }
}

/// A size that may be small.
fn bytes(bytes: u64) -> String {
    if bytes < 10 << 20 { format!("{} KB", grouped(bytes.div_ceil(1 << 10))) } else { size(bytes) }
}

fn proven(change: &ByChange) -> Vec<String> {
    let ByChange { base, base_read_at, image, bytes_read, bytes_kept, ranges, .. } = change;
    let (partly, open) = match change.bytes_open {
        0 => ("", String::new()),
        open => ("partly ", format!("; {} are left for later windows", bytes(open))),
    };
    let mut lines = vec![format!(
        "{partly}proven by change: {image}. {} were read, {} were not, because they have not changed since they were checked{open}",
        bytes(*bytes_read),
        bytes(*bytes_kept)
    )];
    lines.push(format!(
        "base: {base}, checked {base_read_at}. Bytes that went bad since, in pages that were not read, do not show"
    ));
    let reasons = change.reasons.iter().map(|(reason, count)| {
        let what = match *reason {
            "bytes" => "changed bytes",
            "maps" => "changed allocation",
            "meaning" => "changed definitions",
            "findings" => "with findings before",
            "again" => "once more",
            _ => "not kept",
        };
        format!("{} {what}", grouped(*count))
    });
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    if !reasons.is_empty() {
        let (swept, ranges) = (grouped(change.ranges_swept()), grouped(*ranges));
        lines.push(format!("swept: {swept} of {ranges} ranges of {}: {reasons}", bytes(change.range_bytes)));
    }
    lines
}
