//! The program that uses this library: it shows messages, and it owns the terminal and the signals.

use std::fmt::Display;
use std::sync::OnceLock;

/// What a program does for this library.
pub trait Host: Sync {
    /// Shows a message to the user. Each call is one message about the work of the calling thread.
    fn warn(&self, text: &str);

    /// The command that the program runs, for examples in messages.
    fn command(&self) -> String {
        "check".to_owned()
    }

    /// Leaves SIGINT and SIGTERM to this library, which ends its work after one of them.
    fn leave_signals(&self) {}

    /// Removes a progress display, because the program is about to end or to run another program.
    fn clear_display(&self) {}
}

static HOST: OnceLock<&'static dyn Host> = OnceLock::new();

/// Sets the program that uses this library. Only the first call has an effect. Without a call, messages are dropped.
pub fn set(host: &'static dyn Host) {
    let _ = HOST.set(host);
}

/// Shows a message to the user.
pub fn warn(text: impl Display) {
    if let Some(host) = HOST.get() {
        host.warn(&text.to_string());
    }
}

pub(crate) fn command() -> String {
    HOST.get().map(|host| host.command()).unwrap_or_default()
}

#[cfg(unix)]
pub(crate) fn leave_signals() {
    HOST.get().iter().for_each(|host| host.leave_signals());
}

#[cfg(unix)]
pub(crate) fn clear_display() {
    HOST.get().iter().for_each(|host| host.clear_display());
}
