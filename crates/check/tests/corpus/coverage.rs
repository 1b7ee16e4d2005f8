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

/// What is wrong after a run of all trials: checks that nothing gave.
pub fn missing() -> Vec<String> {
    let given = GIVEN.lock().map(|given| given.clone()).unwrap_or_default();
    let mut wrong = Vec::new();
    for check in registry::ALL {
        if !given.contains(check.id) {
            wrong.push(format!("{} ({}): no damage gives it; a trial must", check.id, check.msg));
        }
    }
    wrong
}
