//! Sorts the list of what was not verified into groups, one for each cause. Causes that explain other causes come
//! first.

use std::collections::BTreeMap;

use findings::registry::limits::{self, ALL, Limit, LimitKind};
use findings::{NotVerified, Report};

/// Splits the list of what was not verified in two: the things to show, and the things that are only consequences of a
/// missing stripe. If there are findings, a thing that damage may explain is always shown.
pub fn split(report: &Report) -> (Vec<&NotVerified>, Vec<&NotVerified>) {
    let lacks_stripes = report.not_verified.iter().any(|entry| entry.limit == &limits::BACKUP_STRIPES);
    let is_shown = |limit: &Limit| {
        !lacks_stripes || !limit.may_follow() || limit.kind == LimitKind::Damaged && !report.findings.is_empty()
    };
    report.not_verified.iter().partition(|entry| is_shown(entry.limit))
}

/// A cause for which things were not verified. Causes are sorted in the order in which reports list them.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cause<'a> {
    rank: (bool, LimitKind, bool, usize),
    /// The reason why things were not verified.
    pub(crate) reason: &'a str,
    /// The limit in the registry of limits that is the cause.
    pub(crate) limit: &'static Limit,
}

/// Groups `entries`, which are things that were not verified, by cause. The entries of one cause stay in the order of
/// the report.
pub(crate) fn by_cause<'a>(
    entries: impl Iterator<Item = &'a NotVerified> + Clone,
) -> BTreeMap<Cause<'a>, Vec<&'a NotVerified>> {
    let has_root = entries.clone().any(|entry| entry.limit.is_root());
    let mut causes: BTreeMap<Cause<'_>, Vec<&NotVerified>> = BTreeMap::new();
    for entry in entries {
        let limit = entry.limit;
        let position = ALL.iter().position(|other| *other == limit).unwrap_or(ALL.len());
        let is_first = has_root && limit.kind == LimitKind::NotGiven;
        let cause = Cause { rank: (!is_first, limit.kind, !limit.is_root(), position), reason: &entry.reason, limit };
        causes.entry(cause).or_default().push(entry);
    }
    causes
}
