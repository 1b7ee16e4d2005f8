//! Every check of the registry is seen to speak and to be silent: damage of the other trials gives it, and the sound
//! databases, which all of them read, do not.

use std::collections::BTreeSet;
use std::sync::Mutex;

use check::{Report, registry};

/// Ids that damage gave in this run.
static GIVEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Remembers what a check of a damaged database gave.
pub fn record(report: &Report) {
    if let Ok(mut given) = GIVEN.lock() {
        given.extend(report.findings.iter().map(|finding| finding.check.id));
        given.extend(report.not_verified.iter().chain(&report.notes).map(|entry| entry.limit.id));
    }
}

/// Limits that no trial of this run met: for whoever adds the next trial, as some need a failing disk or a release to come.
pub fn unseen_limits() -> Vec<&'static str> {
    let given = GIVEN.lock().map(|given| given.clone()).unwrap_or_default();
    registry::limits::ALL.iter().map(|limit| limit.id).filter(|id| !given.contains(id)).collect()
}

/// Checks that trials on databases of the lab do not show yet, and why.
const OUT_OF_REACH: &str = include_str!("out_of_reach.tsv");

/// What is wrong after a run of all trials: checks that nothing gave. Without real files, those may be missing that the list
/// names, and no others.
pub fn missing(has_real_files: bool) -> Vec<String> {
    let given = GIVEN.lock().map(|given| given.clone()).unwrap_or_default();
    let mut wrong = Vec::new();
    let lines = OUT_OF_REACH.lines().filter_map(|line| line.split_once('\t'));
    let listed: BTreeSet<&str> = lines.filter(|(_, reason)| !reason.is_empty()).map(|(id, _)| id).collect();
    for id in listed.iter().filter(|id| registry::ALL.iter().all(|check| check.id != **id)) {
        wrong.push(format!("{id}: no such check, yet out_of_reach.tsv names it"));
    }
    for check in registry::ALL {
        let is_listed = !has_real_files && listed.contains(check.id);
        if !is_listed && !given.contains(check.id) {
            wrong.push(format!("{} ({}): no damage gives it; a trial must", check.id, check.msg));
        }
    }
    wrong
}
