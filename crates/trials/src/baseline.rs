//! The result of checking a sound database, with which the results of trials are compared.

use std::time::{Duration, Instant};

use findings::{NotVerified, Report};

/// The result of checking the sound database.
pub(crate) struct Baseline {
    /// What the check could not verify.
    pub(crate) not_verified: Vec<NotVerified>,
    /// The duration of the check.
    pub(crate) time: Duration,
}

/// The "not verified" lines and the notes of a report.
pub(crate) fn told(report: &Report) -> Vec<NotVerified> {
    report.not_verified.iter().chain(&report.notes).cloned().collect()
}

/// Runs `action` and returns how long it took.
pub(crate) fn clocked<T>(action: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = action();
    (done, start.elapsed())
}
