//! Verifies that the trials test every check and every limit of the registry in both directions. Damage must trigger
//! the check or limit. Sound databases must not trigger it, because they must give no finding.

use std::collections::BTreeSet;
use std::sync::Mutex;

use findings::{Report, registry};

/// IDs of the checks and limits that damage has triggered in this run.
static GIVEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Records the IDs of the checks and limits in a report.
pub fn record(report: &Report) {
    if let Ok(mut given) = GIVEN.lock() {
        given.extend(report.findings.iter().map(|finding| finding.check.id));
        given.extend(report.not_verified.iter().chain(&report.notes).map(|entry| entry.limit.id));
    }
}

/// Lists of checks and limits that the trials on lab databases do not trigger yet, each with a reason.
const OUT_OF_REACH: [(&str, &str); 2] = [
    ("out_of_reach.tsv", include_str!("out_of_reach.tsv")),
    ("limits_out_of_reach.tsv", include_str!("limits_out_of_reach.tsv")),
];

/// A reason may begin with these words and the path, within `crates`, of a test in another crate that triggers the
/// check or limit.
const SHOWN_BY: &str = "Shown by ";

/// Whether the test at `path` within `crates` contains the ID of the check or limit.
fn names(path: &str, id: &str) -> bool {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(path).is_ok_and(|test| test.contains(&format!("\"{id}\"")))
}

/// Returns the faults of the tests, after a run of all trials. A check or limit that no trial triggers is a fault,
/// unless a list gives a reason. With real files, a reason is accepted for a check only if it names a test in another
/// crate. Without real files, a check or limit that is in a list although a trial triggers it is also a fault. With
/// real files, this is no fault, because real files trigger more limits than lab databases.
pub fn wrong(has_real_files: bool) -> Vec<String> {
    let given = GIVEN.lock().map(|given| given.clone()).unwrap_or_default();
    let checks = registry::ALL.iter().map(|check| check.id).collect();
    let limits = registry::limits::ALL.iter().map(|limit| limit.id).collect();
    let mut wrong = Vec::new();
    for ((file, lines), ids) in OUT_OF_REACH.into_iter().zip([checks, limits]) {
        let ids: BTreeSet<&str> = ids;
        let mut listed = BTreeSet::new();
        let mut elsewhere = BTreeSet::new();
        for line in lines.lines() {
            let (id, reason) = line.split_once('\t').unwrap_or((line, ""));
            listed.insert(id);
            if reason.is_empty() {
                wrong.push(format!("{id}: {file} gives no reason"));
            }
            if let Some((_, test)) = reason.split_once(SHOWN_BY) {
                elsewhere.insert(id);
                if !names(test.trim_end_matches('.'), id) {
                    wrong.push(format!("{id}: {file} says that {test} shows it, which doesn't name it"));
                }
            }
            if !ids.contains(id) {
                wrong.push(format!("{id}: {file} names it, but there is none of that id"));
            }
            if !has_real_files && given.contains(id) {
                wrong.push(format!("{id}: a trial gives it, so its line in {file} must go"));
            }
        }
        let needs_trial = has_real_files && file == "out_of_reach.tsv";
        let may_be_missing = |id: &str| elsewhere.contains(id) || (listed.contains(id) && !needs_trial);
        let missing = ids.into_iter().filter(|id| !given.contains(id) && !may_be_missing(id));
        wrong.extend(missing.map(|id| format!("{id}: nothing gives it; a trial must, or {file} says why none does")));
    }
    wrong
}
