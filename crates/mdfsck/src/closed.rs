//! Whether standard output was closed when the program started. The standard library opens `/dev/null` in its place before `main`: results
//! would be lost, and nothing would say so.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether what is written to standard output goes nowhere because the caller has closed it (`>&-`).
pub(crate) fn is_stdout() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// What standard output is in its place.
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

    /// The loader calls what this section names before the standard library starts.
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
