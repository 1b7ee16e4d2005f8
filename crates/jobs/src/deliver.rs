//! Calls the program of `--on-event` for each event in the history.

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

use crate::failure::Failure;
use crate::host::warn;
use crate::keep;
use crate::program::{self, Ended};
use crate::request::{ListenerOptions, ResultOptions};

/// The time limit for passing on the remaining events after the run has ended.
const FAREWELL: Duration = Duration::from_secs(120);
/// After a failed attempt to open the history, the pause before the next attempt.
const AGAIN: Duration = Duration::from_secs(60);
/// The interval at which the history is searched for events.
const PAUSE: Duration = Duration::from_secs(1);
/// During a pause, the interval at which the thread tests whether the run has ended.
const TICK: Duration = Duration::from_millis(100);

/// Passes events on to the program while `act` runs. Passes on the remaining events afterwards. Also returns the
/// exit-status bits for events that could not be passed on.
pub fn beside<R>(results: &ResultOptions, act: impl FnOnce() -> R) -> (R, u8) {
    let (Some(path), Some(program)) = (&results.history, &results.listener.on_event) else { return (act(), 0) };
    let holder = Holder::new(&keep::host());
    // Events are passed on even after a signal has interrupted the run.
    let deliverer =
        Deliverer { history: path, program, listener: &results.listener, holder: &holder, is_stopped: || false };
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = EndsWithRun(&has_ended);
        // The thread starts before the run, since events of an earlier run may be waiting: a killed run leaves events
        // that were not passed on. These events should not have to wait until the present run ends.
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

/// Dropping this value signals the end of the run to the thread that passes events on. A run that panics drops this
/// value too.
struct EndsWithRun<'a>(&'a AtomicBool);

impl Drop for EndsWithRun<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Warns how many events could not be passed on. Returns the exit-status bits.
fn say_left(left: u64) -> u8 {
    if left == 0 {
        return 0;
    }
    let events = if left == 1 { "1 event" } else { &format!("{left} events") };
    warn(format!("{events} could not be passed on; the next run tries again"));
    Failure::UNABLE
}

/// Passes the events in a history on to a program.
pub struct Deliverer<'a> {
    /// The history with the events.
    pub history: &'a Path,
    /// The program that receives the events.
    pub program: &'a Path,
    /// The options of the program.
    pub listener: &'a ListenerOptions,
    /// Identifies this process.
    pub holder: &'a Holder,
    /// Returns true if no more events should be passed on.
    pub is_stopped: fn() -> bool,
}

impl Deliverer<'_> {
    /// Passes events on until the run has ended, and then passes on the remaining events. Returns the exit-status bits
    /// for events that this process could not pass on.
    pub fn work(&self, has_ended: &AtomicBool) -> u8 {
        let Some(mut history) = self.history(has_ended) else { return Failure::UNABLE };
        // Events that an earlier run could not pass on become due immediately.
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

    /// Opens the history. If this fails, retries until the run has ended, since the problem may be temporary.
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

    /// Passes on one event after another. Stops at the first failure, since the next event would probably fail too.
    /// Also stops when the run ends, and at `until`. The remaining events are passed on by a later call or by the next
    /// run. `failed` holds the IDs of events that have not succeeded yet. Returns whether no further event is due.
    fn pass_on(
        &self,
        history: &mut History,
        failed: &mut BTreeSet<i64>,
        (has_ended, until): (&AtomicBool, Option<Instant>),
    ) -> history::Result<bool> {
        let is_over = || until.map_or_else(|| has_ended.load(Ordering::Relaxed), |until| Instant::now() >= until);
        // First only reads whether an event is due, since `take_event` writes to the history.
        while history.has_event()? {
            if (self.is_stopped)() || is_over() {
                return Ok(false);
            }
            let Some(message) = history.take_event(self.holder)? else { return Ok(true) };
            // The event counts as failed until the history has recorded its success.
            failed.insert(message.id);
            let cause = self.call(&message).map_err(|cause| cause.to_string()).and_then(|done| done).err();
            history.passed_on(&message, cause.as_deref())?;
            if let Some(cause) = cause {
                let (program, event) = (self.program.display(), &message.event);
                warn(format!(
                    "{program}: event {event} of {}: {cause}; the program is called again later",
                    message.database
                ));
                return Ok(false);
            }
            failed.remove(&message.id);
        }
        Ok(true)
    }

    /// Calls the program once. The outer error means that the program could not be run. The inner error is the reason
    /// why the call failed.
    fn call(&self, message: &Message) -> io::Result<Result<(), String>> {
        let mut command = Command::new(self.program);
        command
            .args(&self.listener.event_argument)
            .env("MDFSCK_EVENT", &message.event)
            .env("MDFSCK_DATABASE", &message.database)
            .env("MDFSCK_COUNT", message.count.to_string())
            .stdin(input(&message.lines)?)
            // The program's output goes to stderr, since stdout is only for results.
            .stdout(io::stderr());
        let limit = self.listener.limit();
        Ok(match program::run(&mut command, limit, &|| false)? {
            Ended::By(status) if status.success() => Ok(()),
            Ended::By(status) => Err(format!("it ended with {status}")),
            Ended::TookTooLong | Ended::Stopped => {
                Err(format!("it took more than {} seconds and was stopped", limit.as_secs()))
            }
            Ended::NotAtAll => {
                Err(format!("it took more than {} seconds and was killed, but is still running", limit.as_secs()))
            }
        })
    }
}

/// Writes the lines to an unnamed temporary file, which becomes the program's standard input. Unlike with a pipe,
/// nothing waits if the program does not read the lines.
fn input(lines: &str) -> io::Result<Stdio> {
    let mut file: File = tempfile::tempfile()?;
    file.write_all(lines.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Pauses for `length`, or until the run has ended.
fn wait(length: Duration, has_ended: &AtomicBool) {
    let begun = Instant::now();
    while begun.elapsed() < length && !has_ended.load(Ordering::Relaxed) {
        thread::sleep(TICK);
    }
}
