//! Decides which reads of a local file are announced to the operating system, so that it can read ahead.
//!
//! An announcement costs a seventh of the time that it takes to copy the same bytes, because the system looks up every
//! page. If the file is already in the system's cache, the announcement is useless. This module therefore asks the
//! system whether the range to read is cached. This query has a cost too: if the file is not cached, the query triggers
//! a little read-ahead in an unfavorable pattern. The query is therefore repeated only rarely for such a file.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Reads of fewer bytes are always announced: they read single pages that are far apart.
const LEAST_BYTES: u64 = 256 << 10;

/// The number of announcements between two queries to the system. It starts at `FEWEST` and doubles, up to `MOST`,
/// after each query that shows that the file is not cached.
const FEWEST: u32 = 64;
const MOST: u32 = 4096;

/// The announcement state of one file. Its counters are only hints: races between threads may miscount.
#[derive(Debug)]
pub(crate) struct Announcements {
    /// The number of announcements to make before the system is queried again.
    left: AtomicU32,
    /// The number of announcements to make after the next query, if that query shows that the file is not cached.
    next: AtomicU32,
    /// The system's answer to the last query.
    is_in_memory: AtomicBool,
}

impl Default for Announcements {
    fn default() -> Self {
        Self { left: AtomicU32::new(0), next: AtomicU32::new(FEWEST), is_in_memory: AtomicBool::new(false) }
    }
}

impl Announcements {
    /// Whether a read of `bytes` bytes should be announced. `is_in_memory` asks the system whether the bytes to read
    /// are in its cache.
    pub(crate) fn is_due(&self, bytes: u64, is_in_memory: impl FnOnce() -> bool) -> bool {
        if bytes < LEAST_BYTES {
            return true;
        }
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            return true;
        }
        let is_in_memory = is_in_memory();
        self.is_in_memory.store(is_in_memory, Ordering::Relaxed);
        if is_in_memory {
            self.next.store(FEWEST, Ordering::Relaxed);
            return false;
        }
        let next = self.next.load(Ordering::Relaxed);
        self.left.store(next, Ordering::Relaxed);
        self.next.store((2 * next).min(MOST), Ordering::Relaxed);
        true
    }

    /// Whether the range of the last query was in the system's cache; false before the first query.
    pub(crate) fn is_in_memory(&self) -> bool {
        // If two threads query the system at the same time and get different answers, the answer "not cached" wins.
        self.is_in_memory.load(Ordering::Relaxed) && self.left.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    /// Counts the announcements made without a query.
    fn made(announcements: &Announcements) -> u32 {
        let mut asked = false;
        let ask = |asked: &mut bool| {
            *asked = true;
            true
        };
        (0..).find(|_| !announcements.is_due(MB, || ask(&mut asked)) && asked).unwrap()
    }

    #[test]
    fn a_file_in_memory_is_asked_about_each_time_and_never_announced() {
        let announcements = Announcements::default();
        let mut asked = 0;
        for _ in 0..1000 {
            let is_due = announcements.is_due(MB, || {
                asked += 1;
                true
            });
            assert!(!is_due);
        }
        assert_eq!(asked, 1000);
        assert!(announcements.is_in_memory());
    }

    #[test]
    fn a_file_on_a_disk_is_announced_whole_and_asked_about_more_and_more_rarely() {
        let announcements = Announcements::default();
        let mut asked = Vec::new();
        for read in 0..20_000 {
            let is_due = announcements.is_due(MB, || {
                asked.push(read);
                false
            });
            assert!(is_due, "read {read}");
        }
        let apart: Vec<u32> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(apart, [65, 129, 257, 513, 1025, 2049, 4097, 4097, 4097]);
    }

    #[test]
    fn a_file_half_of_which_is_in_memory_is_soon_announced_and_soon_not() {
        let announcements = Announcements::default();
        assert!(announcements.is_due(MB, || false));
        assert_eq!(made(&announcements), FEWEST);
        assert!(announcements.is_due(MB, || false));
        assert!(!announcements.is_in_memory());
        assert_eq!(made(&announcements), FEWEST, "as before, once it was in memory");
    }

    #[test]
    fn short_reads_are_always_announced() {
        let announcements = Announcements::default();
        assert!(announcements.is_due(8192, || panic!("not asked")));
    }
}
