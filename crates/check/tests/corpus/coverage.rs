//! Verifies that every check and every limit of the registry is seen both triggered and not triggered: damage in the
//! other trials triggers it, and the sound databases of all trials give no finding.

use std::collections::BTreeSet;
use std::sync::Mutex;

use check::{Report, registry};

/// Ids of checks and limits that damage triggered in this run.
static GIVEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Records the ids in the report of a damaged database.
pub fn record(report: &Report) {
    if let Ok(mut given) = GIVEN.lock() {
        given.extend(report.findings.iter().map(|finding| finding.check.id));
        given.extend(report.not_verified.iter().chain(&report.notes).map(|entry| entry.limit.id));
    }
}

/// Checks and limits that trials on databases of the lab do not trigger yet, and why.
const OUT_OF_REACH: [(&str, &str); 2] = [
    ("out_of_reach.tsv", include_str!("out_of_reach.tsv")),
    ("limits_out_of_reach.tsv", include_str!("limits_out_of_reach.tsv")),
];

/// Begins a reason that names a test of another crate; the path within `crates` follows.
const SHOWN_BY: &str = "Shown by ";

/// Whether the test at `path` within `crates` expects the check or limit `id`.
fn names(path: &str, id: &str) -> bool {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(path).is_ok_and(|test| test.contains(&format!("\"{id}\"")))
}

/// The faults after a run of all trials: checks and limits that no trial triggered and no list names. With real files,
/// all checks and more limits than the lists assume are triggered; without them, a line that is no longer needed is a
/// fault too.
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
