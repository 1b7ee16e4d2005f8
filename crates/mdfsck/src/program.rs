//! Programs of the user: called without a shell, and not for longer than they may take.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// How often to look whether a program has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// Time to end after it was asked to, and after it was made to.
const MERCY: Duration = Duration::from_secs(3);

/// How a program has ended.
pub(crate) enum Ended {
    /// By itself.
    By(ExitStatus),
    /// It took too long and was ended.
    TookTooLong,
    /// It was not to go on.
    Stopped,
    /// Either of these, but it is still there: a program that waits for a disk or a share cannot be ended.
    NotAtAll,
}

/// Runs a program until it ends, takes longer than `limit`, or `is_stopped`; then it is ended, together with its child processes
/// where the system keeps track of them. One that cannot be ended is left alone. If its standard input is a pipe, that stays
/// open until then.
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
        let reason =
            if begun.elapsed() >= limit { Some(Ended::TookTooLong) } else { is_stopped().then_some(Ended::Stopped) };
        if let Some(reason) = reason {
            if end(&mut child)? {
                return Ok(reason);
            }
            // Once it has ended after all, the system forgets it.
            let _ = thread::Builder::new().spawn(move || child.wait());
            return Ok(Ended::NotAtAll);
        }
        thread::sleep(PAUSE);
    }
}

/// Ends a program: it is asked first, where the system can do that. Returns whether it has ended.
fn end(child: &mut Child) -> io::Result<bool> {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        use rustix::process::{Signal, kill_process_group};
        let _ = kill_process_group(group, Signal::TERM);
        has_ended_soon(child)?;
        let _ = kill_process_group(group, Signal::KILL);
    }
    // It may have ended just now.
    let _ = child.kill();
    has_ended_soon(child)
}

/// Waits until a program has ended, but not for long.
fn has_ended_soon(child: &mut Child) -> io::Result<bool> {
    let begun = Instant::now();
    loop {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        if begun.elapsed() >= MERCY {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    #[ignore = "full tier: takes seconds"]
    fn a_program_that_cannot_be_ended_is_not_waited_for_for_long() {
        // Nothing ends it, as nothing ends a program that waits for a disk: it would be waited for until it has ended.
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let has_ended = has_ended_soon(&mut child);
        child.kill().unwrap();
        assert!(!has_ended.unwrap());
        assert!(has_ended_soon(&mut child).unwrap());
    }
}
