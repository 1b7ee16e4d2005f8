//! The report: a table with one line per campaign.

use std::fmt::Write as _;

use crate::campaigns::Campaign;
use crate::outcome::Tally;

const HEADINGS: [&str; 18] = [
    "campaign",
    "tried",
    "load-bearing",
    "found, right page",
    "found elsewhere",
    "refused",
    "only not verified",
    "**silent**",
    "not load-bearing: noticed",
    "unnoticed",
    "kept",
    "false alarms",
    "panics, hangs",
    "differences, breaches",
    "found",
    "noticed",
    "right page",
    "worst time, peak",
];

/// The maximum number of kinds of damage for which the report shows all kinds. If a campaign has more kinds, the report
/// shows only the kinds with failures.
const FEW_KINDS: usize = 8;

/// The report in Markdown.
pub(crate) fn markdown(tallies: &[(Campaign, Tally)]) -> String {
    let mut text = format!("| {} |\n|{}\n", HEADINGS.join(" | "), "---|".repeat(HEADINGS.len()));
    let mut all = Tally::default();
    for (campaign, tally) in tallies {
        let _ = writeln!(text, "| {} |", cells(campaign.name(), tally).join(" | "));
        for (sum, part) in sums(&mut all).into_iter().zip(sums(&mut tally.clone())) {
            *sum += *part;
        }
        all.worst_time = all.worst_time.max(tally.worst_time);
        all.worst_peak = all.worst_peak.max(tally.worst_peak);
    }
    if tallies.len() > 1 {
        let _ = writeln!(text, "| {} |", cells("all", &all).join(" | "));
    }
    for (campaign, tally) in tallies {
        let rate = tally.tried as f64 / tally.seconds.max(1e-9);
        let _ = write!(
            text,
            "\n{}: {} trials in {:.0} s ({rate:.1} per second)",
            campaign.name(),
            tally.tried,
            tally.seconds
        );
        if tally.executions != tally.tried {
            let _ = write!(text, ", {} executions", tally.executions);
        }
        for (excuse, trials) in &tally.excuses {
            let _ = write!(text, "\n- excused in {trials} of what was kept: {excuse}");
        }
        for (name, count) in &tally.figures {
            let _ = write!(text, "\n- {name}: {count}");
        }
        let all_are_shown = tally.kinds.len() <= FEW_KINDS;
        let mut worst: Vec<_> = tally.kinds.iter().filter(|(_, (_, bad))| *bad > 0 || all_are_shown).collect();
        worst.sort_by_key(|(_, (_, bad))| std::cmp::Reverse(*bad));
        for (kind, (tried, bad)) in worst.into_iter().take(20) {
            let _ = write!(text, "\n- {kind}: {bad} of {tried} failed or found elsewhere");
        }
        text.push('\n');
    }
    text
}

fn cells(name: &str, tally: &Tally) -> Vec<String> {
    let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.2} %"));
    let ratio = |ratio: f64| if ratio > 0.0 { format!("{ratio:.2}") } else { "-".to_owned() };
    vec![
        name.to_owned(),
        tally.tried.to_string(),
        tally.load_bearing.to_string(),
        tally.right.to_string(),
        tally.elsewhere.to_string(),
        tally.refused.to_string(),
        tally.not_verified.to_string(),
        tally.silent.to_string(),
        tally.noticed_all_the_same.to_string(),
        tally.harmless.to_string(),
        tally.kept.to_string(),
        tally.false_alarms.to_string(),
        (tally.panics + tally.hangs).to_string(),
        (tally.differences + tally.exceeded + tally.broken).to_string(),
        percent(tally.found()),
        percent(tally.noticed()),
        percent(tally.right_page()),
        format!("{}, {}", ratio(tally.worst_time), ratio(tally.worst_peak)),
    ]
}

/// The counters that are added up for the total.
fn sums(tally: &mut Tally) -> [&mut u64; 19] {
    [
        &mut tally.tried,
        &mut tally.executions,
        &mut tally.load_bearing,
        &mut tally.right,
        &mut tally.elsewhere,
        &mut tally.refused,
        &mut tally.not_verified,
        &mut tally.silent,
        &mut tally.noticed_all_the_same,
        &mut tally.harmless,
        &mut tally.with_findings,
        &mut tally.named_elsewhere,
        &mut tally.kept,
        &mut tally.false_alarms,
        &mut tally.panics,
        &mut tally.hangs,
        &mut tally.exceeded,
        &mut tally.differences,
        &mut tally.broken,
    ]
}
