//! `--nice`: runs the program with the lowest priority of the operating system.

use crate::speaker::warn;

/// Lowers the priority of this process, so that all other programs take precedence. On Windows, the whole command is
/// run by another process with low priority, and its exit status is returned.
#[cfg(unix)]
pub(crate) fn yield_to_others() -> Option<u8> {
    if let Err(error) = rustix::process::nice(19) {
        warn(format!("--nice: {error}"));
    }
    None
}

/// Starts this program a second time with low priority, since a process cannot lower its own priority without unsafe
/// code.
#[cfg(windows)]
pub(crate) fn yield_to_others() -> Option<u8> {
    use std::os::windows::process::CommandExt;
    const IDLE_PRIORITY_CLASS: u32 = 0x40;
    /// Environment variable that marks the second process.
    const STARTED_AGAIN: &str = "MDFSCK_STARTED_AGAIN";
    if std::env::var_os(STARTED_AGAIN).is_some() {
        return None;
    }
    let status = std::env::current_exe().and_then(|program| {
        let mut command = std::process::Command::new(program);
        command.args(std::env::args_os().skip(1)).env(STARTED_AGAIN, "1");
        command.creation_flags(IDLE_PRIORITY_CLASS).status()
    });
    match status {
        // The exit status of a process that crashed may be too large for a byte.
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            Some(code.unwrap_or(jobs::failure::Failure::UNABLE))
        }
        Err(error) => {
            warn(format!("--nice: {error}"));
            None
        }
    }
}

/// Warns that priorities are not supported on this system.
#[cfg(not(any(unix, windows)))]
pub(crate) fn yield_to_others() -> Option<u8> {
    warn("--nice: not supported on this system; start the program with a lower priority instead");
    None
}
