//! Starts threads. If the operating system refuses to start a thread because of its limits on processes or memory, the
//! run continues with fewer threads.

use std::io;
use std::thread::{Builder, Scope};

/// Starts one thread per job, in order, until a thread cannot be started. Returns the number of threads started, and
/// the reason why the next thread could not be started.
pub(crate) fn start<'scope, F: FnOnce() + Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    jobs: impl Iterator<Item = F>,
) -> (usize, Option<io::Error>) {
    let mut started = 0;
    for job in jobs {
        if let Err(cause) = Builder::new().spawn_scoped(scope, job) {
            return (started, Some(cause));
        }
        started += 1;
    }
    (started, None)
}
