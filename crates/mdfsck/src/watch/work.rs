//! The threads that check ready backups, and the data that they share with the thread that finds backups.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use history::History;
use history::queue::{Claim, Holder, Item};
use jobs::failure::Failure;
use jobs::windows;

use super::check::Checker;
use super::roots::Roots;
use super::{TICK, has_changed, open};
use crate::cli::WatchArguments;
use crate::policy::{self, Policy};
use crate::speaker::warn;

/// The interval at which this process renews its claims.
const BEAT: Duration = Duration::from_secs(20);
/// The pause between two attempts to write to the history. `MOST_NOTES` is the maximum number of attempts.
const PAUSE: Duration = Duration::from_secs(2);
/// The time for which a watcher that is stopping waits until the user's programs end.
const FAREWELL: Duration = Duration::from_secs(5);
const MOST_NOTES: u32 = 15;

/// Data that the threads of a watcher share.
#[derive(Default)]
pub(super) struct Shared {
    /// The paths that this watcher searches. They are empty until the files are listed for the first time. Until then,
    /// no backup counts as a backup of this watcher.
    pub(super) roots: RwLock<Roots>,
    /// The IDs of the backups that are being checked. A thread also holds this lock while it claims a backup.
    working: Mutex<BTreeSet<i64>>,
    /// Whether a thread could not use the history.
    pub(super) is_unable: AtomicBool,
    /// Set when the watcher will find no further backups.
    pub(super) closing: AtomicBool,
    /// Set when the watcher ends without waiting for running checks.
    is_stopped: AtomicBool,
    /// The number of running processes of the user's program, which run tasks of checks.
    pub(super) engines: AtomicUsize,
}

impl Shared {
    pub(super) fn working(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a backup belongs to this watcher. It may also belong to another watcher that uses the same history.
    pub(super) fn is_own(&self, item: &Item) -> bool {
        self.roots.read().unwrap_or_else(PoisonError::into_inner).have_any(&item.found.paths)
    }

    /// Whether the watcher ends without waiting for running checks.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || windows::signals::is_raised()
    }

    /// Stops the checks, and waits for a short time until the user's programs end. Afterwards, the caller ends this
    /// process.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        while self.engines.load(Ordering::Relaxed) > 0 && begun.elapsed() < FAREWELL {
            thread::sleep(TICK);
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Pauses for `pause`, or until the watcher is closing.
    fn pause(&self, pause: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < pause && !self.is_closing() && !windows::signals::is_raised() {
            thread::sleep(TICK);
        }
    }

    /// Sets `is_unable`, and reports the reason why the history cannot be used.
    fn unable(&self, cause: impl std::fmt::Display) {
        self.is_unable.store(true, Ordering::Relaxed);
        warn(cause);
    }
}

/// Checks one ready backup after another, until the watcher is closing and no ready backup is left.
pub(super) fn work(arguments: &WatchArguments, checker: &Checker<'_>, (holder, shared): (&Holder, &Shared)) {
    let mut history = loop {
        let was_closing = shared.is_closing();
        match open(arguments) {
            Ok(history) => break history,
            Err(failure) => shared.unable(failure.text),
        }
        if was_closing {
            return;
        }
        shared.pause(BEAT);
    };
    let mut idle = None;
    while !shared.is_stopped() {
        let was_closing = shared.is_closing();
        // If there was nothing to do, waits until the history changes.
        if !was_closing && !has_changed(&history, &mut idle) {
            thread::sleep(TICK);
            continue;
        }
        match next(arguments, &mut history, (holder, shared)) {
            Ok(Some((item, claim))) => {
                if let Err(error) = checker.check(&mut history, &item, &claim) {
                    let failure = Failure::from(&error);
                    shared.unable(error);
                    note_failure(checker, &mut history, (&item, &claim), &failure);
                }
                shared.working().remove(&claim.id);
                idle = None;
            }
            Ok(None) if was_closing => return,
            Ok(None) => thread::sleep(TICK),
            Err(error) if was_closing => return shared.unable(error),
            Err(error) => {
                shared.unable(error);
                shared.pause(BEAT);
            }
        }
    }
}

/// Records that a backup could not be checked. If the history cannot be written, tries again. If all attempts fail, the
/// claim on the backup remains, and the watcher later treats it as abandoned.
fn note_failure(checker: &Checker<'_>, history: &mut History, (item, claim): (&Item, &Claim), failure: &Failure) {
    for _ in 0..MOST_NOTES {
        let is_noted = match history.is_claimed(claim) {
            Ok(true) => checker.note_failure(history, item, claim, failure).is_ok(),
            Ok(false) => true,
            Err(_) => false,
        };
        if is_noted || windows::signals::is_raised() {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Claims the next backup to check. Returns `None` if no backup is ready.
fn next(
    arguments: &WatchArguments,
    history: &mut History,
    (holder, shared): (&Holder, &Shared),
) -> history::Result<Option<(Item, Claim)>> {
    if let Some(during) = arguments.during
        && !during.has(history.minute_of_day()?)
    {
        return Ok(None);
    }
    if !history.has_ready()? {
        return Ok(None);
    }
    let (now, checked) = (history::time::now(), history.last_checked(arguments.naming.replicas)?);
    let mut queued = history.queued()?;
    queued.retain(|item| shared.is_own(item));
    let known = if arguments.policy == Policy::Newest { history.backups()? } else { Vec::new() };
    let left_out = policy::left_out((arguments.policy, arguments.naming.replicas), &queued, &known, &checked, &now);
    if !left_out.is_empty() {
        history.skip(&left_out)?;
        let skipped: HashSet<i64> = left_out.iter().map(|(id, _)| *id).collect();
        queued.retain(|item| !skipped.contains(&item.id));
    }
    for id in policy::order(&queued, arguments.naming.replicas, &checked, &now) {
        let mut working = shared.working();
        let Some(claim) = history.claim(id, holder)? else { continue };
        working.insert(id);
        let at = queued.iter().position(|item| item.id == id);
        return Ok(at.map(|at| (queued.swap_remove(at), claim)));
    }
    Ok(None)
}

/// Renews the claims of this process at regular intervals until `has_ended` is set.
pub(super) fn beat(arguments: &WatchArguments, (holder, shared): (&Holder, &Shared), has_ended: &AtomicBool) {
    let mut last = Instant::now();
    while !has_ended.load(Ordering::Relaxed) {
        thread::sleep(TICK);
        if last.elapsed() >= BEAT {
            last = Instant::now();
            let working = shared.working().clone();
            if let Err(error) =
                History::open_or_create(&arguments.history).and_then(|mut history| history.beat(holder, &working))
            {
                warn(error);
            }
        }
    }
}
