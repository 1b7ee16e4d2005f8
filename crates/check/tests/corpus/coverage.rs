//! Every check of the registry is seen to speak and to be silent: damage of the other trials gives it, and the sound
//! databases, which all of them read, do not.

use std::collections::BTreeSet;
use std::sync::Mutex;

use check::{Report, registry};

/// Checks that no damage here gives, and why.
const EXEMPT: &[(&str, &str)] = &[
    ("backup.block-checksum", "damage to a backup's container is shown where containers are read"),
    ("columnstore.mismatch", COLUMNSTORE),
    ("columnstore.segment", COLUMNSTORE),
    ("columnstore.segment-nonclustered", COLUMNSTORE),
    ("columnstore.dictionary", COLUMNSTORE),
    ("columnstore.dictionary-nonclustered", COLUMNSTORE),
];
const COLUMNSTORE: &str = "no real file here has a columnstore index; the tests of the module make the rows up";

/// Ids that damage gave in this run.
static GIVEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Remembers what a check of a damaged database gave.
pub fn record(report: &Report) {
    if let Ok(mut given) = GIVEN.lock() {
        given.extend(report.findings.iter().map(|finding| finding.check.id));
    }
}

/// What is wrong after a run of all trials: checks that nothing gave, and exemptions that are idle.
pub fn missing() -> Vec<String> {
    let given = GIVEN.lock().map(|given| given.clone()).unwrap_or_default();
    let is_exempt = |id: &str| EXEMPT.iter().any(|(exempt, _)| *exempt == id);
    let mut wrong = Vec::new();
    for check in registry::ALL {
        if !given.contains(check.id) && !is_exempt(check.id) {
            wrong.push(format!("{} ({}): no damage gives it; a trial must", check.id, check.msg));
        }
    }
    for (id, reason) in EXEMPT {
        if given.contains(id) || registry::ALL.iter().all(|check| check.id != *id) {
            wrong.push(format!("{id}: idle exemption ({reason})"));
        }
    }
    wrong
}
