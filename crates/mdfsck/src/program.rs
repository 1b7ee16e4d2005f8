//! Programs of the user: called without a shell, and not for longer than they may take.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// How often to look whether a program has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// Time to end by itself after it was asked to.
#[cfg(unix)]
const MERCY: Duration = Duration::from_secs(3);

/// How a program has ended.
pub(crate) enum Ended {
    /// By itself.
    By(ExitStatus),
    /// It took too long and was ended.
    TookTooLong,
    /// It was not to go on.
    Stopped,
}

/// Runs a program until it ends, takes longer than `limit`, or `is_stopped`; then it is ended, together with its child processes
/// where the system keeps track of them. If its standard input is a pipe, that stays open until then.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn run(command: &mut Command, limit: Duration, is_stopped: &dyn Fn() -> bool) -> io::Result<Ended> {
    // Its child processes end with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn()?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::By(status));
        }
        if begun.elapsed() >= limit {
            end(&mut child)?;
            return Ok(Ended::TookTooLong);
        }
        if is_stopped() {
            end(&mut child)?;
            return Ok(Ended::Stopped);
        }
        thread::sleep(PAUSE);
    }
}

/// Ends a program: it is asked first, where the system can do that.
fn end(child: &mut Child) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        use rustix::process::{Signal, kill_process_group};
        let _ = kill_process_group(group, Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < MERCY && child.try_wait()?.is_none() {
            thread::sleep(PAUSE);
        }
        let _ = kill_process_group(group, Signal::KILL);
    }
    // It may have ended just now.
    let _ = child.kill();
    child.wait().map(drop)
}
