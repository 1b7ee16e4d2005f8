//! Steps for things that were not verified. These steps ask the user to look at something; they never repair.

use std::collections::{BTreeMap, BTreeSet};

use findings::Report;
use findings::registry::limits::{Limit, LimitKind};

use crate::step::{Action, Step};

/// The maximum number of places that are named per limit.
const MOST_NAMED: usize = 3;

/// The step that repeats the check, for things that were not verified because of damage. It comes last, because the
/// findings already describe the damage.
fn again(entries: usize, paths: &str) -> Step {
    let mut step = Step::new(Action::Inspect, "Check again");
    let things = if entries == 1 { "1 thing" } else { &format!("{entries} things") };
    step.reason =
        format!("{things} could not be verified because of the damage. A check after the repair can verify them.");
    step.risk = "None: nothing is changed.".to_owned();
    step.command = Some(format!("mdfsck check {paths}"));
    step
}

/// Returns a step for each reason why something was not verified, the most important first, and a last step for
/// everything that was not verified because of damage.
pub(crate) fn steps(report: &Report, paths: &str) -> (Vec<Step>, Option<Step>) {
    let mut by_limit: BTreeMap<(bool, LimitKind, &'static str), (&'static Limit, Vec<String>)> = BTreeMap::new();
    let entries = report.not_verified.iter().filter(|entry| !report.is_allowed(entry.limit));
    // If a part of the input is missing, other things are not verified for this reason. In this case a single step
    // names the missing part and comes first.
    let has_root = entries.clone().any(|entry| entry.limit.is_root());
    let follows = |limit: &Limit| {
        has_root && limit.may_follow() && (limit.kind != LimitKind::Damaged || report.findings.is_empty())
    };
    let mut following = 0;
    for entry in entries {
        if follows(entry.limit) {
            following += 1;
            continue;
        }
        let (_, scopes) = by_limit
            .entry((!entry.limit.is_root(), entry.limit.kind, entry.limit.id))
            .or_insert_with(|| (entry.limit, Vec::new()));
        scopes.push(match entry.scope.starts_with(entry.what.as_str()) {
            true => format!("{}: {}", entry.scope, entry.reason),
            false => format!("{}, {}: {}", entry.what, entry.scope, entry.reason),
        });
    }
    for finding in report.demoted.iter() {
        if let Some(limit) = finding.demoted_by.filter(|limit| !report.is_allowed(limit)) {
            if follows(limit) {
                following += 1;
                continue;
            }
            let (_, scopes) =
                by_limit.entry((!limit.is_root(), limit.kind, limit.id)).or_insert_with(|| (limit, Vec::new()));
            scopes.push(format!("limit {} may be the cause of message {}", limit.id, finding.check.msg));
        }
    }
    let (mut steps, mut follow) = (Vec::new(), None);
    for ((_, kind, id), (limit, scopes)) in &by_limit {
        if *kind == LimitKind::Damaged && !report.findings.is_empty() {
            let step = follow.get_or_insert_with(|| (0, BTreeSet::new()));
            step.0 += scopes.len();
            step.1.insert(*id);
            continue;
        }
        let what = match limit.is_root() {
            true => format!("Provide the missing {}", limit.what),
            false => format!("Read why this was not verified: {}", limit.what),
        };
        let mut step = Step::new(Action::Inspect, what);
        let more = scopes.len().saturating_sub(MOST_NAMED);
        let mut reason: Vec<&str> = scopes.iter().take(MOST_NAMED).map(String::as_str).collect();
        let rest = format!("{more} more ('mdfsck check' lists all)");
        if more > 0 {
            reason.push(&rest);
        }
        step.reason = reason.join("; ");
        step.reason.push('.');
        if limit.is_root() && following > 0 {
            let things = if following == 1 { "1 more thing" } else { &format!("{following} more things") };
            step.reason.push_str(&format!(" Because of this, {things} could not be verified."));
        }
        step.risk =
            "None: nothing is changed. Data that was not verified may be sound, so no step repairs it.".to_owned();
        step.command = Some(format!("mdfsck explain {id}"));
        step.cannot_restore = None;
        step.sql = vec![format!("-- {}", limit.action)];
        step.rests_on.insert(id);
        steps.push(step);
    }
    (steps, follow.map(|(entries, ids)| Step { rests_on: ids, ..again(entries, paths) }))
}

/// Whether some pages could not be judged because input such as the log or a file is missing, or because pages could
/// not be read or were being changed. In this case the findings may be incomplete.
pub(crate) fn is_partly_unseen(report: &Report) -> bool {
    let weighty = |kind| matches!(kind, LimitKind::NotGiven | LimitKind::Unreadable | LimitKind::InFlight);
    report.not_verified.iter().any(|entry| weighty(entry.limit.kind) && !report.is_allowed(entry.limit))
        || report.demoted.iter().any(|finding| finding.demoted_by.is_some_and(|limit| weighty(limit.kind)))
}
