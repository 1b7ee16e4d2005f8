//! What was not verified, grouped by cause. Causes that explain others come first; their mere consequences are counted.

use std::collections::BTreeMap;

use check::registry::limits::{self, ALL, Limit, LimitKind};
use check::{NotVerified, Report};

/// The entries to show, and the entries that only follow from a missing stripe. If there are findings, an entry that
/// damage may explain is shown as well.
pub fn split(report: &Report) -> (Vec<&NotVerified>, Vec<&NotVerified>) {
    let lacks_stripes = report.not_verified.iter().any(|entry| entry.limit == &limits::BACKUP_STRIPES);
    let is_shown = |limit: &Limit| {
        !lacks_stripes || !limit.may_follow() || limit.kind == LimitKind::Damaged && !report.findings.is_empty()
    };
    report.not_verified.iter().partition(|entry| is_shown(entry.limit))
}

/// A cause that several places share. Causes sort in the order in which they are listed.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cause<'a> {
    rank: (bool, LimitKind, bool, usize),
    /// Why the places were not verified.
    pub(crate) reason: &'a str,
    /// The limit in the registry.
    pub(crate) limit: &'static Limit,
}

/// The entries of each cause, in the order of the report.
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
