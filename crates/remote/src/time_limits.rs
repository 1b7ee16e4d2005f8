//! The time limits of requests to all storages.

use std::time::Duration;

/// The longest time to wait for a connection. After that, the server counts as unreachable.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest time in which a connection may deliver nothing. After that, it counts as broken.
const SILENCE: Duration = Duration::from_secs(30);
/// The longest time for one request, which is enough for a large piece over a slow line.
pub(crate) const REQUEST: Duration = Duration::from_secs(15 * 60);
/// The time limits for connecting, for a pause in an answer, and for a whole request.
pub(crate) const TIMEOUTS: [Duration; 3] = [CONNECT, SILENCE, REQUEST];
