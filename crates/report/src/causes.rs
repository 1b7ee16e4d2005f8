//! What was not verified, by its causes: what explains others comes first, and what only follows from it is counted.

use std::collections::BTreeMap;

use check::registry::limits::{self, ALL, Limit, LimitKind};
use check::{NotVerified, Report};

/// Parts of the input that are missing as a whole: whatever else is not verified may follow from them.
static ROOTS: [&Limit; 3] = [&limits::FILE_NOT_GIVEN, &limits::BACKUP_STRIPES, &limits::PAGES_BEYOND_END];

/// Whether a limit is such a part.
pub(crate) fn is_root(limit: &Limit) -> bool {
    ROOTS.contains(&limit)
}

/// Not given, and not because of a stripe: no file of the backup would help.
static OTHERWISE_MISSING: [&Limit; 8] = [
    &limits::CATALOG_ENCRYPTED,
    &limits::TABLE_MEMORY_OPTIMIZED,
    &limits::FILESTREAM_FILES,
    &limits::ROWS_NOT_IN_FILES,
    &limits::TREE_KEY_BOUNDS_LOST,
    &limits::LOB_OUT_OF_SCOPE,
    &limits::CONSTRAINT_OUT_OF_SCOPE,
    &limits::ENCRYPTED_PAGES,
];

/// What was not verified: what is to be shown, and what only follows from a stripe that is missing. Where there are findings,
/// damage may be the cause as well.
pub fn split(report: &Report) -> (Vec<&NotVerified>, Vec<&NotVerified>) {
    let lacks_stripes = report.not_verified.iter().any(|entry| entry.limit == &limits::BACKUP_STRIPES);
    report.not_verified.iter().partition(|entry| match entry.limit.kind {
        _ if !lacks_stripes || is_root(entry.limit) || OTHERWISE_MISSING.contains(&entry.limit) => true,
        LimitKind::Damaged => !report.findings.is_empty(),
        LimitKind::Unreadable | LimitKind::NotGiven => false,
        LimitKind::InFlight | LimitKind::Undocumented | LimitKind::Unsupported => true,
    })
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
    let has_root = entries.clone().any(|entry| is_root(entry.limit));
    let mut causes: BTreeMap<Cause<'_>, Vec<&NotVerified>> = BTreeMap::new();
    for entry in entries {
        let limit = entry.limit;
        let position = ALL.iter().position(|other| *other == limit).unwrap_or(ALL.len());
        let is_first = has_root && limit.kind == LimitKind::NotGiven;
        let cause = Cause { rank: (!is_first, limit.kind, !is_root(limit), position), reason: &entry.reason, limit };
        causes.entry(cause).or_default().push(entry);
    }
    causes
}
