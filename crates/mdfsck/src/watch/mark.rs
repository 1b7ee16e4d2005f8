//! What a check of a watcher carries with it: which backup it is, and how its files were before.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use history::queue::{Claim, Seen, Watched};

use super::find;

/// The backup that a check is of.
#[derive(Debug)]
pub(crate) struct Mark {
    /// The right to check it.
    pub(crate) claim: Claim,
    /// Why it is unknown whether it is sound, although nothing was found.
    pub(crate) doubt: Option<String>,
    /// Somebody is to be told what became of findings.
    pub(crate) has_listener: bool,
    /// Its files as they were before.
    pub(crate) files: Vec<Seen>,
    /// How long files must stand still.
    pub(crate) settle: Duration,
    /// They have changed.
    pub(crate) has_changed: AtomicBool,
}

impl Mark {
    /// What the history is to note.
    pub(crate) fn watched(&self) -> Watched<'_> {
        Watched { claim: &self.claim, doubt: self.doubt.as_deref() }
    }

    /// Whether the files are as they were before the check. What was found counts only if they stand still once more: then nothing of it
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
        self.files.iter().all(|seen| find::seen(Path::new(&seen.path)).is_ok_and(|now| now.as_ref() == Some(seen)))
    }
}
