//! Compares what a window of time says about a state with what a whole check says.

use std::collections::BTreeSet;

use findings::registry::limits;
use findings::{Change, Finding, NotVerified, Report};

use super::Figures;
use super::night::{first_difference, said};
use crate::outcome::Verdict;

pub(super) const CLOSED: &str = "tables closed in windows, as a whole check says";
pub(super) const OPEN: &str = "tables open in windows";

/// A window may not know everything, but all that it says must be what a whole check says; of closed tables, it must say
/// all.
pub(super) fn compare(whole: &Report, window: &Report, figures: &mut Figures) -> Result<(), Verdict> {
    let mut count = |name: &str, count: usize| *figures.entry(name.to_owned()).or_default() += count as u64;
    let Some(Change::Proven(change)) = &window.change else {
        count("windows that read an image of their own", 1);
        return Ok(());
    };
    if change.bytes_open == 0 {
        count("windows that closed everything", 1);
        let difference = first_difference(&said(whole), &said(window));
        return difference.map_or(Ok(()), |line| Err(Verdict::Differs(line)));
    }
    let texts =
        |findings: &[Finding]| -> BTreeSet<String> { findings.iter().map(|finding| format!("{finding:?}")).collect() };
    let lists = |report: &Report| {
        [&report.findings, &report.demoted]
            .map(|list| list.iter().map(std::borrow::Cow::into_owned).collect::<Vec<_>>())
    };
    let [[all, all_demoted], [found, demoted]] = [lists(whole), lists(window)];
    let (known, known_demoted) = (texts(&all), texts(&all_demoted));
    if let Some(alarm) = texts(&found).difference(&known).next() {
        return Err(Verdict::FalseAlarm(alarm.clone()));
    }
    if let Some(alarm) = texts(&demoted).iter().find(|text| !known.contains(*text) && !known_demoted.contains(*text)) {
        return Err(Verdict::FalseAlarm(format!("demoted: {alarm}")));
    }
    // What is only left is not called damaged, or anything else.
    let is_of_window = |limit| [&limits::WINDOW_TABLE_OPEN, &limits::WINDOW_CONTAINER_OPEN].contains(&limit);
    let is_known = |entry: &NotVerified| {
        let is_same =
            |other: &NotVerified| (&other.what, &other.scope, other.limit) == (&entry.what, &entry.scope, entry.limit);
        is_of_window(entry.limit) || whole.not_verified.iter().any(is_same)
    };
    if let Some(entry) = window.not_verified.iter().find(|entry| !is_known(entry)) {
        return Err(Verdict::Differs(format!("only a window does not verify: {entry:?}")));
    }
    let open: BTreeSet<i32> =
        window.rowsets.iter().filter(|rowset| rowset.is_open).map(|rowset| rowset.object_id).collect();
    // What is left without an owner is noted as a whole.
    let is_left = |scope: &str| {
        window.not_verified.iter().any(|entry| entry.limit == &limits::WINDOW_TABLE_OPEN && entry.scope == scope)
    };
    if is_left("database") {
        count("windows with pages of no table left", 1);
        return Ok(());
    }
    for rowset in window.rowsets.iter().filter(|rowset| !open.contains(&rowset.object_id)) {
        if !whole.rowsets.contains(rowset) {
            return Err(Verdict::Differs(format!("a closed table is counted otherwise: {rowset:?}")));
        }
        count(CLOSED, 1);
    }
    count(OPEN, open.len());
    let is_of_closed = |finding: &&Finding| {
        finding.owner.is_some_and(|owner| owner.object_id != 0 && !open.contains(&owner.object_id))
    };
    let window_says = texts(&found);
    let missed =
        all.iter().filter(is_of_closed).map(|finding| format!("{finding:?}")).find(|text| !window_says.contains(text));
    missed.map_or(Ok(()), |text| Err(Verdict::Differs(format!("a window closed the table without saying: {text}"))))
}
