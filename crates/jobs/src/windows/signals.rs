//! Handles Ctrl+C and SIGTERM during a window. After a signal, the window ends when the present range is read.

use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::sync::{Arc, OnceLock};

#[cfg(unix)]
static RAISED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// This flag is never set on this system. A signal ends the process, and the ranges read so far are kept.
#[cfg(not(unix))]
static RAISED: AtomicBool = AtomicBool::new(false);

/// Watches for signals. The returned function returns whether a signal has arrived. A second signal ends the process
/// immediately.
pub fn watch() -> impl Fn() -> bool {
    #[cfg(unix)]
    RAISED.get_or_init(|| {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let raised = Arc::new(AtomicBool::new(false));
        crate::host::leave_signals();
        for signal in [SIGINT, SIGTERM] {
            // If no handler can be installed, a signal ends the process, and the ranges read so far are kept.
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&raised));
            let _ = signal_hook::flag::register(signal, Arc::clone(&raised));
        }
        raised
    });
    is_raised
}

/// Whether a signal has arrived.
#[cfg(unix)]
pub fn is_raised() -> bool {
    RAISED.get().is_some_and(|raised| raised.load(Ordering::Relaxed))
}

/// Whether a signal has arrived.
#[cfg(not(unix))]
pub fn is_raised() -> bool {
    RAISED.load(Ordering::Relaxed)
}
