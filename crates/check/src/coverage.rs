//! What was asked for and could not be verified, gathered from all phases and threads.

use std::collections::BTreeMap;

use crate::registry::limits::{Limit, Reason};

/// Something that was asked for and could not be verified: not a finding, never silent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotVerified {
    /// What: "key order", "columns" ...
    pub what: String,
    /// Where: an object, index, file or "database".
    pub scope: String,
    /// Why.
    pub reason: String,
    /// How many (comparisons, pages, rows; 0 when it cannot be counted).
    pub count: u64,
    /// The limit that is the reason.
    pub limit: &'static Limit,
}

/// Collects; equal entries add up.
#[derive(Default)]
pub(crate) struct Coverage {
    /// Counts by what, scope and reason.
    entries: BTreeMap<(String, String, Reason), u64>,
}

impl Coverage {
    /// Notes that `count` of what the limit is about, in `scope`, were not verified; 0 where they cannot be counted.
    pub(crate) fn note(&mut self, reason: impl Into<Reason>, scope: impl Into<String>, count: u64) {
        let reason = reason.into();
        self.note_as(reason.limit.what, reason, scope, count);
    }

    /// The same, for a limit that keeps `what` from being verified among other things.
    pub(crate) fn note_as(&mut self, what: &str, reason: impl Into<Reason>, scope: impl Into<String>, count: u64) {
        *self.entries.entry((what.to_owned(), scope.into(), reason.into())).or_default() += count;
    }

    /// What was not verified, and what is merely worth knowing; in order.
    pub(crate) fn into_lists(self) -> (Vec<NotVerified>, Vec<NotVerified>) {
        let entries = self.entries.into_iter().map(|((what, scope, reason), count)| {
            let Reason { limit, text: reason } = reason;
            NotVerified { what, scope, reason, count, limit }
        });
        entries.partition(|entry| !entry.limit.is_note())
    }
}
