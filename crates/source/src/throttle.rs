//! Limits the read speed to a rate that the user sets.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use format::PageId;

use crate::{PageSource, ReadError, ReadFaults};

/// A page source that reads the pages of another source at a limited rate. All threads together read at most the given
/// number of bytes per second.
pub struct Throttled<'a> {
    inner: &'a dyn PageSource,
    bytes_per_second: u64,
    /// The time from which the next read may start.
    free_at: Mutex<Instant>,
}

impl<'a> Throttled<'a> {
    /// Limits the reads of `inner`. A limit of 0 counts as 1.
    pub fn new(inner: &'a dyn PageSource, bytes_per_second: u64) -> Self {
        Self { inner, bytes_per_second: bytes_per_second.max(1), free_at: Mutex::new(Instant::now()) }
    }

    /// Waits until a read may start. Each read reserves its time slot under the lock. It then releases the lock before
    /// it sleeps, so that other threads can reserve their slots.
    fn wait(&self, bytes: usize) {
        let time = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let now = Instant::now();
        let turn = {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            let turn = (*free_at).max(now);
            *free_at = turn + time;
            turn
        };
        thread::sleep(turn.saturating_duration_since(now));
    }
}

impl PageSource for Throttled<'_> {
    crate::as_inner!();

    fn read_faults(&self) -> ReadFaults {
        self.inner.read_faults()
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.wait(buffer.len());
        self.inner.read(first, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataFile;

    struct Zeros;

    impl PageSource for Zeros {
        fn files(&self) -> &[DataFile] {
            &[]
        }

        fn read(&self, _first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
            Ok(buffer.len() / format::page::PAGE_BYTES)
        }
    }

    #[test]
    fn reads_of_all_threads_together_keep_to_the_limit() {
        let source = Throttled::new(&Zeros, 100 << 20);
        let start = Instant::now();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        assert!(source.read(PageId::new(1, 0), &mut vec![0; 1 << 20]).is_ok());
                    }
                });
            }
        });
        // Reading 20 MB at 100 MB per second takes 200 ms, but there is no wait after the last read.
        assert!(start.elapsed() >= Duration::from_millis(185), "{:?}", start.elapsed());
    }
}
