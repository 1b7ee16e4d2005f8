//! Detects whether standard output was closed when the program started. Before `main` runs, the standard library
//! replaces a closed standard output by `/dev/null`. Results would then be lost without an error.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed by the caller (`>&-`), so that results would be lost.
pub(crate) fn is_stdout() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// A replacement for a closed standard output. Every write to it returns an error.
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

    /// The loader of the operating system calls the functions in the section `.init_array` before the standard library
    /// starts.
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
