//! What was asked for and could not be verified, gathered from all phases and threads.

use std::collections::BTreeMap;

use crate::report::NotVerified;

/// Collects; equal entries add up.
#[derive(Default)]
pub(crate) struct Coverage {
    entries: BTreeMap<(String, String, String), u64>,
}

impl Coverage {
    /// Notes that `count` of `what` in `scope` were not verified.
    pub(crate) fn note(&mut self, what: &str, scope: impl Into<String>, reason: impl Into<String>, count: u64) {
        *self.entries.entry((what.to_owned(), scope.into(), reason.into())).or_default() += count;
    }

    /// The entries, in order.
    pub(crate) fn into_list(self) -> Vec<NotVerified> {
        self.entries
            .into_iter()
            .map(|((what, scope, reason), count)| NotVerified { what, scope, reason, count })
            .collect()
    }
}
