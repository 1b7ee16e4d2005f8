//! Runs programs of the user: without a shell, and with a limit on their time.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks whether a program has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// Time that a program has to end after it was asked to, and again after it was killed.
const MERCY: Duration = Duration::from_secs(3);

/// How a program has ended.
pub(crate) enum Ended {
    /// The program ended by itself, with this status.
    By(ExitStatus),
    /// The program took too long and was ended.
    TookTooLong,
    /// The caller asked to stop, and the program was ended.
    Stopped,
    /// The program should have ended for one of these reasons but is still running: one that waits for a disk or a share cannot be
    /// ended.
    NotAtAll,
}

/// Runs a program until it ends, takes longer than `limit`, or `is_stopped`; then ends it, together with its child processes where
/// the system keeps track of them. Leaves a program alone that cannot be ended. If its standard input is a pipe, the pipe stays
/// open until then.
///
/// # Errors
/// If the program cannot be started.
pub(crate) fn run(command: &mut Command, limit: Duration, is_stopped: &dyn Fn() -> bool) -> io::Result<Ended> {
    // Its own process group, so that its child processes end with it.
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
            // Waits in a thread, so that the system can drop the process once it ends.
            let _ = thread::Builder::new().spawn(move || child.wait());
            return Ok(Ended::NotAtAll);
        }
        thread::sleep(PAUSE);
    }
}

/// Ends a program; asks it first, where the system can do that. Returns whether it has ended.
fn end(child: &mut Child) -> io::Result<bool> {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        use rustix::process::{Signal, kill_process_group};
        let _ = kill_process_group(group, Signal::TERM);
        has_ended_soon(child)?;
        let _ = kill_process_group(group, Signal::KILL);
    }
    // Fails if the program has ended just now.
    let _ = child.kill();
    has_ended_soon(child)
}

/// Waits for at most [`MERCY`] for a program to end; returns whether it has ended.
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
        // Stands for a program that waits for a disk: no signal ends it while the test waits.
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let has_ended = has_ended_soon(&mut child);
        child.kill().unwrap();
        assert!(!has_ended.unwrap());
        assert!(has_ended_soon(&mut child).unwrap());
    }
}
