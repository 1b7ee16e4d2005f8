//! Processes that check backups, and pass events on.

use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::lease;

/// A process that checks backups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// A text that distinguishes the process from all others, including an earlier process with the same ID.
    pub(crate) token: String,
    host: String,
    pid: u32,
}

impl Holder {
    /// The holder for this process. `host` is the name of this machine.
    pub fn new(host: &str) -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_nanos());
        let pid = process::id();
        Self { token: format!("{host} {pid} {started}"), host: host.to_owned(), pid }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process with this token has ended, as far as this process can see.
    pub(crate) fn outlives(&self, token: &str) -> bool {
        let mut words = token.rsplitn(3, ' ');
        let (_, pid, host) = (words.next(), words.next(), words.next().unwrap_or_default());
        let Some(pid) = pid.and_then(|pid| pid.parse().ok()) else { return true };
        let is_former = host == self.host() && pid == self.pid() && token != self.token;
        is_former || lease::has_ended(host, pid, self.host())
    }
}
