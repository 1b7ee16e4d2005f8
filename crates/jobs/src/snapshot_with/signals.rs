//! Handles Ctrl+C and SIGTERM while a snapshot exists.
//!
//! A snapshot that is mounted cannot be removed while this process has its files open. So a signal during the check
//! replaces the process by a new one, which has no files open and removes the snapshot.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::host;
use crate::host::warn;

/// The environment variables by which the new process learns the signal and the record of the snapshot.
const SIGNAL: &str = "MDFSCK_SNAPSHOT_SIGNAL";
const RECORD: &str = "MDFSCK_SNAPSHOT_RECORD";
/// The interval at which the thread looks for a signal.
const TICK: Duration = Duration::from_millis(50);

/// The signals, and whether each has arrived.
static RAISED: OnceLock<[(i32, Arc<AtomicBool>); 2]> = OnceLock::new();
/// The record of the snapshot that is being checked.
static CHECKED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Watches for signals. A second signal ends the process at once, and the next run removes the snapshot.
pub(super) fn watch() {
    RAISED.get_or_init(|| {
        host::leave_signals();
        let signals = [SIGINT, SIGTERM].map(|signal| (signal, Arc::new(AtomicBool::new(false))));
        // If the thread cannot be started, no handlers are installed, and a signal ends the process.
        if thread::Builder::new().name("signals".to_owned()).spawn(work).is_ok() {
            for (signal, raised) in &signals {
                let _ = flag::register_conditional_default(*signal, Arc::clone(raised));
                let _ = flag::register(*signal, Arc::clone(raised));
            }
        }
        signals
    });
}

/// The signal that has arrived.
fn raised() -> Option<i32> {
    let signals = RAISED.get()?;
    signals.iter().find(|(_, raised)| raised.load(Ordering::Relaxed)).map(|(signal, _)| *signal)
}

/// Whether a signal has arrived.
pub(super) fn is_raised() -> bool {
    raised().is_some()
}

/// Until this value is dropped, a signal replaces the process.
pub(super) struct Checking(());

pub(super) fn checking(record: &Path) -> Checking {
    // The new process may not find a relative path if the program is in another folder by then.
    let record = std::path::absolute(record).unwrap_or_else(|_| record.to_owned());
    *CHECKED.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    Checking(())
}

impl Drop for Checking {
    fn drop(&mut self) {
        *CHECKED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn work() {
    loop {
        thread::park_timeout(TICK);
        let Some(signal) = raised() else { continue };
        // The lock is held, so that the check cannot end meanwhile.
        let checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = checked.as_deref() {
            host::clear_display();
            let cause = replace(signal, record);
            warn(format!("{}: the snapshot is left for the next run: {cause}", record.display()));
            end(signal);
        }
    }
}

/// Replaces this process by a new one with the same arguments. Returns only if that fails. The system closes all files
/// of this process.
fn replace(signal: i32, record: &Path) -> std::io::Error {
    let program = match cfg!(target_os = "linux") {
        // This link leads to the program even if its file was replaced during the check.
        true => PathBuf::from("/proc/self/exe"),
        false => std::env::current_exe().unwrap_or_default(),
    };
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    Command::new(program).arg0(name).args(arguments).env(SIGNAL, signal.to_string()).env(RECORD, record).exec()
}

/// In the new process: the signal, and the record of the snapshot.
pub(super) fn ended_by() -> Option<(i32, PathBuf)> {
    let signal: i32 = std::env::var_os(SIGNAL).as_deref().and_then(OsStr::to_str)?.parse().ok()?;
    [SIGINT, SIGTERM].contains(&signal).then_some((signal, std::env::var_os(RECORD)?.into()))
}

/// Removes the variables of the new process from the environment of a program that it starts.
pub(super) fn hide_from(command: &mut Command) {
    command.env_remove(SIGNAL).env_remove(RECORD);
}

/// Ends the process by a signal, as if it had no handler.
pub(super) fn end(signal: i32) {
    host::clear_display();
    let _ = low_level::emulate_default_handler(signal);
}

/// If a signal has arrived, ends the process by it.
pub(super) fn end_if_raised() {
    if let Some(signal) = raised() {
        end(signal);
    }
}
