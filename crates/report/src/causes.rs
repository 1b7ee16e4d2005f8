//! What was not verified, by its causes: what explains others comes first, and what only follows from it is counted.

use std::collections::BTreeMap;

use check::registry::limits::{self, ALL, Limit, LimitKind};
use check::{NotVerified, Report};

/// What was not verified: what is to be shown, and what only follows from a stripe that is missing. Where there are findings,
/// damage may be the cause as well.
pub fn split(report: &Report) -> (Vec<&NotVerified>, Vec<&NotVerified>) {
    let lacks_stripes = report.not_verified.iter().any(|entry| entry.limit == &limits::BACKUP_STRIPES);
    let is_shown = |limit: &Limit| {
        !lacks_stripes || !limit.may_follow() || limit.kind == LimitKind::Damaged && !report.findings.is_empty()
    };
    report.not_verified.iter().partition(|entry| is_shown(entry.limit))
}

/// The common cause of several places, in the order in which causes are listed.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cause<'a> {
    rank: (bool, LimitKind, bool, usize),
    /// Why.
    pub(crate) reason: &'a str,
    /// The limit.
    pub(crate) limit: &'static Limit,
}

/// The entries of each cause, in their order.
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
