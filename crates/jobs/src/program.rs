//! Runs programs that the user names, without a shell and with a time limit.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// The interval at which the code tests whether a program has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest wait for a program to end, first after a request to end and then again after the program is killed.
pub const MERCY: Duration = Duration::from_secs(3);

/// How the run of a program ended.
pub enum Ended {
    /// The program exited with this status.
    By(ExitStatus),
    /// The program exceeded its time limit and was killed.
    TookTooLong,
    /// The caller asked to stop, and the program was killed.
    Stopped,
    /// The program exceeded its time limit or the caller asked to stop. The program was killed but is still running. A
    /// program cannot be killed while it waits for a disk or a network share.
    NotAtAll,
}

/// Runs a program until it exits, until it exceeds `limit`, or until `is_stopped` returns true. In the last two cases,
/// kills the program. If the operating system can group processes, also kills the program's child processes. Returns
/// even if the program cannot be killed. If the program's standard input is a pipe, the pipe stays open until this
/// function returns.
///
/// # Errors
///
/// If the program cannot be started.
pub fn run(command: &mut Command, limit: Duration, is_stopped: &dyn Fn() -> bool) -> io::Result<Ended> {
    // Starts the program in its own process group, so that its child processes can be killed too.
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
            // A thread waits for the process, so that the operating system can remove the process from its table when
            // it ends.
            let _ = thread::Builder::new().spawn(move || child.wait());
            return Ok(Ended::NotAtAll);
        }
        thread::sleep(PAUSE);
    }
}

/// Ends a program. On Unix, first asks it to end with SIGTERM. Returns whether the program has ended.
fn end(child: &mut Child) -> io::Result<bool> {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        use rustix::process::{Signal, kill_process_group};
        let _ = kill_process_group(group, Signal::TERM);
        has_ended_soon(child)?;
        let _ = kill_process_group(group, Signal::KILL);
    }
    // An error is ignored: the program may have ended just now.
    let _ = child.kill();
    has_ended_soon(child)
}

/// Waits at most [`MERCY`] for a program to end. Returns whether the program has ended.
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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "full tier: takes seconds"]
    fn a_program_that_cannot_be_ended_is_not_waited_for_for_long() {
        // Simulates a program that cannot be killed because it waits for a disk: the test calls `has_ended_soon`
        // without sending a signal.
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let has_ended = has_ended_soon(&mut child);
        child.kill().unwrap();
        assert!(!has_ended.unwrap());
        assert!(has_ended_soon(&mut child).unwrap());
    }
}
