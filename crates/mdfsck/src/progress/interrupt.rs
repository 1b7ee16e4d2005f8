//! Clears the progress bar on Ctrl+C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use super::{TICK, replace_bar};

static ONCE: Once = Once::new();

/// Prevents the handlers of this module from being installed, so that another part of the program can handle the
/// signals. Has no effect if the handlers are installed already.
pub(super) fn leave() {
    ONCE.call_once(|| {});
}

/// On SIGINT or SIGTERM, clears the bar, and then ends the process with the default effect of the signal. A second
/// signal ends the process immediately.
pub(super) fn clear_bar_on_signals() {
    ONCE.call_once(|| {
        let flags = [SIGINT, SIGTERM].map(|signal| (signal, Arc::new(AtomicBool::new(false))));
        let watched = flags.clone();
        // If the thread cannot be started, no handlers are installed, so that the signals keep their default effect.
        let watcher = thread::Builder::new().name("signals".to_owned()).spawn(move || {
            loop {
                thread::park_timeout(TICK);
                for (signal, is_raised) in &watched {
                    if is_raised.load(Ordering::Relaxed) {
                        replace_bar(None);
                        let _ = low_level::emulate_default_handler(*signal);
                    }
                }
            }
        });
        if watcher.is_ok() {
            for (signal, is_raised) in flags {
                let _ = flag::register_conditional_default(signal, Arc::clone(&is_raised));
                let _ = flag::register(signal, is_raised);
            }
        }
    });
}
