//! What a watcher's check carries with it: which backup it is, and the state of its files before.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use history::queue::{Claim, Seen, Watched};

use super::find;
use crate::fingerprint;

/// The backup that is being checked.
#[derive(Debug)]
pub(crate) struct Mark {
    /// The right to check it.
    pub(crate) claim: Claim,
    /// Why the backup is unknown although nothing was found.
    pub(crate) doubt: Option<String>,
    /// Its files before the check.
    pub(crate) files: Vec<Seen>,
    /// What a few places of each held before the check.
    pub(crate) fingerprints: Vec<Option<String>>,
    /// How long files must not change before they count as whole.
    pub(crate) settle: Duration,
    /// Whether the files have changed.
    pub(crate) has_changed: AtomicBool,
}

impl Mark {
    /// What the history is to record.
    pub(crate) fn watched(&self) -> Watched<'_> {
        Watched { claim: &self.claim, doubt: self.doubt.as_deref() }
    }

    /// Whether the files are the same as before the check. If anything was found, they must settle once more: then no finding
    /// comes from a file that was being written.
    pub(crate) fn stands(&self, has_findings: bool) -> bool {
        let is_settled = |seen: &Seen| source::storage::url(Path::new(&seen.path)).is_some();
        if has_findings && self.are_same() && !self.files.iter().all(is_settled) {
            thread::sleep(self.settle);
        }
        let stands = self.are_same();
        self.has_changed.fetch_or(!stands, Ordering::Relaxed);
        stands
    }

    fn are_same(&self) -> bool {
        let is_same = |seen: &Seen| find::seen(Path::new(&seen.path)).is_ok_and(|now| now.as_ref() == Some(seen));
        self.files.iter().all(is_same) && fingerprints(&self.files) == self.fingerprints
    }
}

/// What a few places of each file hold, as far as that can be read.
pub(super) fn fingerprints(files: &[Seen]) -> Vec<Option<String>> {
    files.iter().map(|seen| fingerprint::of(Path::new(&seen.path)).ok().flatten()).collect()
}
