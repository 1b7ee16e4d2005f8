//! Which reads of a file are announced to the system. To announce a megabyte takes the system a seventh of the time that copying it
//! takes, since it looks for every page; where the file is in its memory already, that is for nothing. But where it is not, the
//! question has the system read ahead a little in a way of its own: so a file that was not in memory is asked about again only now
//! and then.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Shorter reads are of pages that lie far apart.
const LEAST_BYTES: u64 = 256 << 10;

/// Announcements before the system is asked again: twice as many each time, up to the most.
const FEWEST: u32 = 64;
const MOST: u32 = 4096;

/// What is known of one file. Hints only: threads may count past each other.
#[derive(Debug)]
pub(crate) struct Announcements {
    /// To be made before the system is asked again.
    left: AtomicU32,
    /// How many will be made if it says no.
    next: AtomicU32,
    /// What it said.
    is_in_memory: AtomicBool,
}

impl Default for Announcements {
    fn default() -> Self {
        Self { left: AtomicU32::new(0), next: AtomicU32::new(FEWEST), is_in_memory: AtomicBool::new(false) }
    }
}

impl Announcements {
    /// Whether a read of this many bytes is to be announced; `is_in_memory` asks the system about them.
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

    /// Whether what the system was asked about last was in its memory; false until then.
    pub(crate) fn is_in_memory(&self) -> bool {
        // Of two threads that asked at once, the one that says no counts.
        self.is_in_memory.load(Ordering::Relaxed) && self.left.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    /// Announcements that are made without asking.
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
