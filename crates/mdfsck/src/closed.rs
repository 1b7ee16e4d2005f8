//! Detects whether standard output was closed when the program started. The standard library opens `/dev/null` in its place before
//! `main`: results would be lost without an error.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the caller has closed standard output (`>&-`), so that output would go nowhere.
pub(crate) fn is_stdout() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// Replaces a closed standard output: every write fails.
pub(crate) struct Closed;

impl io::Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() { Ok(0) } else { Err(io::Error::other("it is closed")) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod before_main {
    use std::io;
    use std::sync::atomic::Ordering;

    /// The loader calls the functions in this section before the standard library starts.
    #[expect(
        unsafe_code,
        reason = "the section holds such functions, and this one only asks the system about a number"
    )]
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        super::IS_CLOSED.store(rustix::io::fcntl_getfd(io::stdout()).is_err(), Ordering::Relaxed);
    }
}
