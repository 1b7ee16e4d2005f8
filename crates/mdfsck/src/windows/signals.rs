//! Ctrl+C or SIGTERM ends a window after the range that is being read.

use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::sync::{Arc, OnceLock};

#[cfg(unix)]
static RAISED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// On this system a window cannot be ended early: the signal ends the process, and what was read is kept.
#[cfg(not(unix))]
static RAISED: AtomicBool = AtomicBool::new(false);

/// Watches for signals; the returned function says whether there was one. A second signal ends the process at once.
pub(crate) fn watch() -> impl Fn() -> bool {
    #[cfg(unix)]
    RAISED.get_or_init(|| {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let raised = Arc::new(AtomicBool::new(false));
        crate::progress::leave_signals();
        for signal in [SIGINT, SIGTERM] {
            // Without a handler the signal ends the process; ranges that were read are still kept.
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&raised));
            let _ = signal_hook::flag::register(signal, Arc::clone(&raised));
        }
        raised
    });
    is_raised
}

/// Whether there was a signal.
#[cfg(unix)]
pub(crate) fn is_raised() -> bool {
    RAISED.get().is_some_and(|raised| raised.load(Ordering::Relaxed))
}

/// Whether there was a signal.
#[cfg(not(unix))]
pub(crate) fn is_raised() -> bool {
    RAISED.load(Ordering::Relaxed)
}
