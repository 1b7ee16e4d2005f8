//! Distributes work among threads and writes the results in order, with bounded memory.
//!
//! Each thread takes the next pages of the table, converts their rows to text or columns, and waits for its turn to
//! write. The thread with the earliest pages that are not yet written never waits, so it can write a row of any length
//! in pieces.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rows::{Range, Scan};

/// Decides which thread may write.
#[derive(Default)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    failure: Option<Option<io::Error>>,
}

impl Turns {
    /// Waits until all work with a lower number is written.
    ///
    /// # Errors
    /// If other work has failed.
    pub(crate) fn wait(&self, number: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        while state.next != number && state.failure.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // Only the first failure is reported, so no user sees this error.
        if state.failure.is_some() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    /// Marks the work `number` as written. The work with the next number may then write.
    pub(crate) fn done(&self, number: u64) {
        lock(&self.state).next = number + 1;
        self.changed.notify_all();
    }

    fn fail(&self, error: Option<io::Error>) {
        lock(&self.state).failure.get_or_insert(error);
        self.changed.notify_all();
    }

    fn result(self) -> io::Result<()> {
        match self.state.into_inner().unwrap_or_else(PoisonError::into_inner).failure {
            Some(error) => Err(error.unwrap_or_else(|| io::Error::other("a thread ended before its work was done"))),
            None => Ok(()),
        }
    }
}

/// Locks a mutex, even if another thread panicked while it held the lock. The data is still consistent, and the thread
/// that panicked records its failure.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Distributes the pages of a table among threads.
pub(crate) struct Jobs<'a> {
    scan: Mutex<(Scan<'a>, u64)>,
    /// The minimum number of pages in a job. The last job may have fewer.
    pages: usize,
}

impl<'a> Jobs<'a> {
    pub(crate) fn new(scan: Scan<'a>, pages: usize) -> Self {
        Self { scan: Mutex::new((scan, 0)), pages }
    }

    /// Returns the number of the next job, and the page ranges to read for it; `None` if no pages are left. The
    /// division into jobs does not depend on the number of threads.
    pub(crate) fn next(&self) -> Option<(u64, Vec<Range>)> {
        let mut guard = lock(&self.scan);
        let (scan, number) = &mut *guard;
        let (mut ranges, mut pages) = (Vec::new(), 0);
        while pages < self.pages {
            let Some(range) = scan.next_range() else { break };
            pages += range.pages.len().max(1);
            ranges.push(range);
        }
        if ranges.is_empty() {
            return None;
        }
        *number += 1;
        Some((*number - 1, ranges))
    }
}

/// Runs `work` in `threads` threads until no jobs are left.
///
/// # Errors
/// The first failure of any thread.
pub(crate) fn run(threads: usize, turns: Turns, work: &(dyn Fn(&Turns) -> io::Result<()> + Sync)) -> io::Result<()> {
    let each = || {
        let guard = Unfinished(&turns);
        match work(&turns) {
            Ok(()) => {}
            Err(error) => turns.fail(Some(error)),
        }
        std::mem::forget(guard);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            // If a thread cannot be started, the remaining threads do its work; the output does not change.
            let _ = std::thread::Builder::new().spawn_scoped(scope, each);
        }
        each();
    });
    turns.result()
}

/// Records a failure if a thread panics during its work, so that no other thread waits for its turn forever.
struct Unfinished<'t>(&'t Turns);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.fail(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn results_come_in_order_from_any_number_of_threads() {
        for threads in [1, 2, 7] {
            let (next, written) = (AtomicU64::new(0), Mutex::new(Vec::new()));
            run(threads, Turns::default(), &|turns| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= 200 {
                        return Ok(());
                    }
                    turns.wait(number)?;
                    lock(&written).push(number);
                    turns.done(number);
                }
            })
            .unwrap();
            assert_eq!(*lock(&written), (0..200).collect::<Vec<u64>>());
        }
    }

    #[test]
    fn a_failure_ends_all_threads_and_is_the_one_reported() {
        let next = AtomicU64::new(0);
        let failure = run(3, Turns::default(), &|turns| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                turns.wait(number)?;
                if number == 10 {
                    return Err(io::Error::other("the disk is full"));
                }
                turns.done(number);
            }
        });
        assert_eq!(failure.unwrap_err().to_string(), "the disk is full");
    }
}
