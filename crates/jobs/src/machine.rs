//! This machine.

#[cfg(not(unix))]
use std::env;

/// The name of this machine.
#[cfg(unix)]
pub fn name() -> Option<String> {
    Some(rustix::system::uname().nodename().to_string_lossy().into_owned()).filter(|name| !name.is_empty())
}

/// The name of this machine.
#[cfg(not(unix))]
pub fn name() -> Option<String> {
    env::var("COMPUTERNAME").ok().filter(|name| !name.is_empty())
}
