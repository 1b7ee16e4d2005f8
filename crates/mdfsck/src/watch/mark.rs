//! The backup that a watcher is checking, and the state of its files before the check.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use history::queue::{Claim, Seen, Watched};
use jobs::fingerprint;
use jobs::request::Watch;

use super::find;

/// A backup that is being checked.
#[derive(Debug)]
pub(crate) struct Mark {
    /// The claim that allows this process to check the backup.
    pub(crate) claim: Claim,
    /// The reason why the verdict is unknown even if the check finds nothing.
    pub(crate) doubt: Option<String>,
    /// The state of the backup's files before the check.
    pub(crate) files: Vec<Seen>,
    /// The fingerprints of the backup's files before the check.
    pub(crate) fingerprints: Vec<Option<String>>,
    /// The settle time: a file counts as complete after it has been unchanged for this time.
    pub(crate) settle: Duration,
    /// Whether the files have changed since the check began.
    pub(crate) has_changed: AtomicBool,
}

impl Watch for Mark {
    fn watched(&self) -> Watched<'_> {
        Watched { claim: &self.claim, doubt: self.doubt.as_deref() }
    }

    fn stands(&self, has_findings: bool) -> bool {
        let is_settled = |seen: &Seen| source::storage::url(Path::new(&seen.path)).is_some();
        if has_findings && self.are_same() && !self.files.iter().all(is_settled) {
            thread::sleep(self.settle);
        }
        let stands = self.are_same();
        self.has_changed.fetch_or(!stands, Ordering::Relaxed);
        stands
    }
}

impl Mark {
    fn are_same(&self) -> bool {
        let is_same = |seen: &Seen| find::seen(Path::new(&seen.path)).is_ok_and(|now| now.as_ref() == Some(seen));
        self.files.iter().all(is_same) && fingerprints(&self.files) == self.fingerprints
    }
}

/// The fingerprints of files; `None` for a file that cannot be read.
pub(super) fn fingerprints(files: &[Seen]) -> Vec<Option<String>> {
    files.iter().map(|seen| fingerprint::of(Path::new(&seen.path)).ok().flatten()).collect()
}
