//! Passes events on to the program of `--on-event`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use history::History;
use history::outbox::Message;
use history::queue::Holder;

use crate::cli::{ListenerArguments, ResultArguments};
use crate::failure::{Failure, warn};
use crate::keep;
use crate::program::{self, Ended};

/// The most time that an ended run spends on the events that are left.
const FAREWELL: Duration = Duration::from_secs(120);
/// Time until a failed event is tried again.
const AGAIN: Duration = Duration::from_secs(60);
/// Time between two looks for events.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between two looks whether the run has ended.
const TICK: Duration = Duration::from_millis(100);

/// Passes events on while `act` runs, and the rest when it has ended. Also returns the exit-status bits for events that could not
/// be passed on.
pub(crate) fn beside<R>(results: &ResultArguments, act: impl FnOnce() -> R) -> (R, u8) {
    let (Some(path), Some(program)) = (&results.history, &results.listener.on_event) else { return (act(), 0) };
    let holder = Holder::new(&keep::host());
    // Events are passed on even if the run was interrupted.
    let deliverer =
        Deliverer { history: path, program, listener: &results.listener, holder: &holder, is_stopped: || false };
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = EndsWithRun(&has_ended);
        // Starts at once: an earlier run may have been killed before it could pass its events on, and these should not wait for the
        // end of this run.
        let begun = thread::Builder::new().name("events".to_owned()).spawn_scoped(scope, || deliverer.work(&has_ended));
        let done = act();
        drop(ends);
        let status = match begun {
            Ok(thread) => thread.join().unwrap_or(Failure::UNABLE),
            Err(_) => deliverer.work(&has_ended),
        };
        (done, status)
    })
}

/// Ends the thread that passes events on, however the run ends.
struct EndsWithRun<'a>(&'a AtomicBool);

impl Drop for EndsWithRun<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Warns how many events could not be passed on; returns the exit-status bits.
fn say_left(left: u64) -> u8 {
    if left == 0 {
        return 0;
    }
    let events = if left == 1 { "1 event" } else { &format!("{left} events") };
    warn(format!("{events} could not be passed on; the next run tries again"));
    Failure::UNABLE
}

/// Passes the events of a history on to a program.
pub(crate) struct Deliverer<'a> {
    pub(crate) history: &'a Path,
    pub(crate) program: &'a Path,
    pub(crate) listener: &'a ListenerArguments,
    /// This process.
    pub(crate) holder: &'a Holder,
    /// Returns true once no further event is to be passed on.
    pub(crate) is_stopped: fn() -> bool,
}

impl Deliverer<'_> {
    /// Passes events on until the run has ended, and then the rest. Returns the exit-status bits for events that this process could
    /// not pass on.
    pub(crate) fn work(&self, has_ended: &AtomicBool) -> u8 {
        let Some(mut history) = self.history(has_ended) else { return Failure::UNABLE };
        // Retries at once the events that an earlier run could not pass on.
        if let Err(error) = history.retry_events(self.holder) {
            warn(error);
        }
        let mut failed = BTreeSet::new();
        loop {
            let is_last = has_ended.load(Ordering::Relaxed);
            let until = is_last.then(|| Instant::now() + FAREWELL);
            let passed = self.pass_on(&mut history, &mut failed, (has_ended, until));
            let gave_up = !passed.unwrap_or_else(|error| {
                warn(error);
                false
            });
            if is_last {
                return match history.events_left(self.holder, (&failed, gave_up)) {
                    Ok(left) => say_left(left),
                    Err(error) => {
                        warn(error);
                        Failure::UNABLE
                    }
                };
            }
            wait(PAUSE, has_ended);
        }
    }

    /// Opens the history; retries, since the obstacle may pass.
    fn history(&self, has_ended: &AtomicBool) -> Option<History> {
        loop {
            let is_last = has_ended.load(Ordering::Relaxed);
            match History::open_or_create(self.history) {
                Ok(history) => return Some(history),
                Err(error) => warn(error),
            }
            if is_last {
                return None;
            }
            wait(AGAIN, has_ended);
        }
    }

    /// Passes on one event after another until one fails, since the next one would fail, too. Stops when the run ends, or at
    /// `until`; the next pass, or the next run, passes on the rest. Adds events to `failed` until they succeed, and returns whether
    /// no event is due.
    fn pass_on(
        &self,
        history: &mut History,
        failed: &mut BTreeSet<i64>,
        (has_ended, until): (&AtomicBool, Option<Instant>),
    ) -> history::Result<bool> {
        let is_over = || until.map_or_else(|| has_ended.load(Ordering::Relaxed), |until| Instant::now() >= until);
        // Taking an event writes to the history, so this looks first whether there is one.
        while history.has_event()? {
            if (self.is_stopped)() || is_over() {
                return Ok(false);
            }
            let Some(message) = history.take_event(self.holder)? else { return Ok(true) };
            // Counts as failed until its success is recorded.
            failed.insert(message.id);
            let cause = self.call(&message).map_err(|cause| cause.to_string()).and_then(|done| done).err();
            history.passed_on(&message, cause.as_deref())?;
            if let Some(cause) = cause {
                let (program, event) = (self.program.display(), &message.event);
                warn(format!("{program}: event {event} of {}: {cause}; it is called again later", message.database));
                return Ok(false);
            }
            failed.remove(&message.id);
        }
        Ok(true)
    }

    /// Calls the program once; the inner error is the reason why the call failed.
    fn call(&self, message: &Message) -> io::Result<Result<(), String>> {
        let mut command = Command::new(self.program);
        command
            .args(&self.listener.event_argument)
            .env("MDFSCK_EVENT", &message.event)
            .env("MDFSCK_DATABASE", &message.database)
            .env("MDFSCK_COUNT", message.count.to_string())
            .stdin(input(&message.lines)?)
            // Standard output carries results only.
            .stdout(io::stderr());
        let limit = self.listener.limit();
        Ok(match program::run(&mut command, limit, &|| false)? {
            Ended::By(status) if status.success() => Ok(()),
            Ended::By(status) => Err(format!("it ended with {status}")),
            Ended::TookTooLong | Ended::Stopped => {
                Err(format!("it took more than {} seconds and was ended", limit.as_secs()))
            }
            Ended::NotAtAll => {
                Err(format!("it took more than {} seconds, was killed and is still there", limit.as_secs()))
            }
        })
    }
}

/// Writes the lines to a file without a name: the program decides whether and when it reads them.
fn input(lines: &str) -> io::Result<Stdio> {
    let mut file: File = tempfile::tempfile()?;
    file.write_all(lines.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Waits for `length`, or until the run has ended.
fn wait(length: Duration, has_ended: &AtomicBool) {
    let begun = Instant::now();
    while begun.elapsed() < length && !has_ended.load(Ordering::Relaxed) {
        thread::sleep(TICK);
    }
}
