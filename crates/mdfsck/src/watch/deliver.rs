//! Passes events on to a program.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use history::History;
use history::outbox::Message;
use history::queue::Holder;

use super::TICK;
use crate::cli::WatchArguments;
use crate::failure::warn;
use crate::windows::signals;

/// How long the program may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How often it looks for events.
const PAUSE: Duration = Duration::from_secs(1);

/// What is needed to pass events on.
pub(super) struct Deliverer<'a> {
    arguments: &'a WatchArguments,
    program: &'a Path,
    holder: &'a Holder,
}

impl<'a> Deliverer<'a> {
    pub(super) fn new(arguments: &'a WatchArguments, program: &'a Path, holder: &'a Holder) -> Self {
        Self { arguments, program, holder }
    }

    /// Passes events on until the watcher has ended.
    pub(super) fn work(&self, has_ended: &AtomicBool) {
        let Some(mut history) = self.history(has_ended) else { return };
        // What an earlier run could not pass on is tried again at once.
        if let Err(error) = history.retry_events(self.holder) {
            warn(error);
        }
        loop {
            let is_last = has_ended.load(Ordering::Relaxed);
            if let Err(error) = self.pass_on(&mut history) {
                warn(error);
            }
            if is_last {
                return;
            }
            wait(PAUSE, has_ended);
        }
    }

    /// Opens the history; what is in the way of that may pass.
    fn history(&self, has_ended: &AtomicBool) -> Option<History> {
        loop {
            let is_last = has_ended.load(Ordering::Relaxed);
            match History::open_or_create(&self.arguments.history) {
                Ok(history) => return Some(history),
                Err(error) => warn(error),
            }
            if is_last {
                return None;
            }
            wait(LIMIT, has_ended);
        }
    }

    /// Passes on one event after another until one fails: the next one would fail, too.
    fn pass_on(&self, history: &mut History) -> history::Result<()> {
        while !signals::is_raised() {
            let Some(message) = history.take_event(self.holder)? else { return Ok(()) };
            let failed = self.call(&message).map_err(|cause| cause.to_string()).and_then(|done| done).err();
            history.passed_on(&message, failed.as_deref())?;
            if let Some(cause) = failed {
                let (program, event) = (self.program.display(), &message.event);
                warn(format!("{program}: event {event} of {}: {cause}; it is called again later", message.database));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Calls the program once; the inner error is why the call failed.
    fn call(&self, message: &Message) -> io::Result<Result<(), String>> {
        let mut command = Command::new(self.program);
        // Its child processes end with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .args(&self.arguments.event_argument)
            .env("MDFSCK_EVENT", &message.event)
            .env("MDFSCK_DATABASE", &message.database)
            .env("MDFSCK_COUNT", message.count.to_string())
            .stdin(input(&message.lines)?)
            // Standard output carries results only.
            .stdout(io::stderr())
            .spawn()?;
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) });
            }
            if begun.elapsed() >= LIMIT {
                end(&mut child)?;
                return Ok(Err(format!("it took more than {} seconds and was ended", LIMIT.as_secs())));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Kills a program, together with its child processes where the system keeps track of them.
fn end(child: &mut Child) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    child.kill()?;
    child.wait().map(drop)
}

/// The lines as a file without a name: whether and when they are read is up to the program.
fn input(lines: &str) -> io::Result<Stdio> {
    let mut file: File = tempfile::tempfile()?;
    file.write_all(lines.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Waits for `length`, or until the watcher has ended.
fn wait(length: Duration, has_ended: &AtomicBool) {
    let begun = Instant::now();
    while begun.elapsed() < length && !has_ended.load(Ordering::Relaxed) {
        thread::sleep(TICK);
    }
}
