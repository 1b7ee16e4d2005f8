//! Failed reads. Each failure is recorded at once and reported at the end of the run, no matter which phase of the
//! check caused it and how this phase handled it. Reads that fail with a transient error are retried a limited number
//! of times.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::ReadError;

/// The pause before each retry.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];
/// The number of failed reads of a file after which reads of this file are no longer retried. Only reads that failed in
/// spite of retries are counted. A broken disk stays broken, and each attempt may take seconds.
const MAX_IN_VAIN: u32 = 16;
/// The most failed places to record per file; further places are only counted.
const MAX_PLACES: usize = 4096;

/// The failed reads of a page source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadFaults {
    /// The files with places that could not be read.
    pub failed: Vec<FailedReads>,
    /// One line for each file in which reads failed at first and succeeded when they were retried.
    pub healed: Vec<String>,
}

/// The reads of one file that failed in spite of retries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedReads {
    /// Path of the file.
    pub path: PathBuf,
    /// The error at each place, by offset in bytes.
    pub places: BTreeMap<u64, String>,
    /// Number of further failed places.
    pub unlisted: u64,
}

impl FailedReads {
    /// One line with the first failed place, its cause and the number of failed places.
    pub fn text(&self) -> String {
        let places = self.places.len() as u64 + self.unlisted;
        let first = self.places.first_key_value().map_or("", |(_, text)| text);
        if places > 1 { format!("{first} ({places} places in all)") } else { first.to_owned() }
    }
}

impl ReadFaults {
    /// Adds the failed reads of another process. A place that failed in both processes counts once.
    pub fn merge(&mut self, other: Self) {
        for failed in other.failed {
            match self.failed.iter_mut().find(|own| own.path == failed.path) {
                Some(own) => {
                    own.places.extend(failed.places);
                    while own.places.len() > MAX_PLACES {
                        own.places.pop_last();
                        own.unlisted += 1;
                    }
                    own.unlisted += failed.unlisted;
                }
                None => self.failed.push(failed),
            }
        }
        self.failed.sort_by(|one, other| one.path.cmp(&other.path));
        self.healed.extend(other.healed);
    }
}

/// Records the failed reads of one file.
#[derive(Debug, Default)]
pub(crate) struct Reads(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    /// The cause of each failure, by offset in bytes.
    failed: BTreeMap<u64, io::Error>,
    unlisted: u64,
    healed: u64,
    healed_cause: String,
    in_vain: u32,
}

impl Reads {
    /// Calls `read`, and calls it again if it fails and the cause may be transient.
    pub(crate) fn patiently<T>(&self, mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut outcome = read();
        for pause in PAUSES {
            let Err(cause) = &outcome else { break };
            if !may_pass(cause) || self.memory(|memory| memory.in_vain) >= MAX_IN_VAIN {
                return outcome;
            }
            let first = cause.to_string();
            thread::sleep(pause);
            outcome = read();
            if outcome.is_ok() {
                self.memory(|memory| {
                    memory.healed += 1;
                    memory.healed_cause = first;
                });
            }
        }
        if outcome.is_err() {
            self.memory(|memory| memory.in_vain += 1);
        }
        outcome
    }

    /// Records that the bytes at `offset` cannot be read.
    pub(crate) fn failed(&self, offset: u64, cause: &io::Error) {
        let cause = cause
            .raw_os_error()
            .map_or_else(|| io::Error::new(cause.kind(), cause.to_string()), io::Error::from_raw_os_error);
        self.memory(|memory| match memory.failed.len() < MAX_PLACES || memory.failed.contains_key(&offset) {
            true => _ = memory.failed.insert(offset, cause),
            false => memory.unlisted += 1,
        });
    }

    /// Adds the failed reads of the file at `path` to `faults`.
    pub(crate) fn add_to(&self, path: &Path, faults: &mut ReadFaults) {
        self.memory(|memory| {
            if !memory.failed.is_empty() {
                let text = |(&offset, cause): (&u64, &io::Error)| {
                    let cause = io::Error::new(cause.kind(), cause.to_string());
                    (offset, ReadError::Io { path: path.to_owned(), offset, cause }.to_string())
                };
                let places = memory.failed.iter().map(text).collect();
                faults.failed.push(FailedReads { path: path.to_owned(), places, unlisted: memory.unlisted });
            }
            if memory.healed > 0 {
                let (count, cause) = (memory.healed, &memory.healed_cause);
                let reads = if count == 1 { "read" } else { "reads" };
                let text = format!("{count} {reads} failed and succeeded when repeated ({cause}): check this storage");
                faults.healed.push(format!("{}: {text}", path.display()));
            }
        });
    }

    fn memory<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a read may succeed if it is soon repeated. This is the case if the medium or the connection caused the
/// error, but not if the request itself was wrong.
fn may_pass(cause: &io::Error) -> bool {
    const EIO: i32 = 5;
    let kinds =
        [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::ResourceBusy, ErrorKind::StaleNetworkFileHandle];
    kinds.contains(&cause.kind()) || cfg!(unix) && cause.raw_os_error() == Some(EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(reads: &Reads) -> ReadFaults {
        let mut faults = ReadFaults::default();
        reads.add_to(Path::new("a.mdf"), &mut faults);
        faults
    }

    #[test]
    fn a_read_that_succeeds_when_repeated_is_no_failure_but_is_mentioned() {
        let reads = Reads::default();
        let mut left = 2;
        let outcome = reads.patiently(|| {
            left -= 1;
            if left > 0 { Err(io::Error::from_raw_os_error(5)) } else { Ok(8192) }
        });
        assert_eq!(outcome.ok(), Some(8192));
        let faults = faults(&reads);
        assert!(faults.failed.is_empty(), "{faults:?}");
        assert!(faults.healed[0].starts_with("a.mdf: 1 read failed and succeeded when repeated (Input/output error"));
    }

    #[test]
    fn a_broken_disk_is_not_asked_again_and_again() {
        let reads = Reads::default();
        let mut attempts = 0;
        for place in 0..10_000 {
            let outcome: io::Result<()> = reads.patiently(|| {
                attempts += 1;
                Err(io::Error::from_raw_os_error(5))
            });
            reads.failed(place * 8192, &outcome.err().unwrap_or_else(|| io::Error::other("none")));
        }
        assert_eq!(attempts, 10_000 + 2 * MAX_IN_VAIN);
        let faults = faults(&reads);
        assert!(faults.failed[0].text().starts_with("a.mdf: cannot read at byte 0: Input/output error"), "{faults:?}");
        assert!(faults.failed[0].text().ends_with("(10000 places in all)"), "{faults:?}");
    }

    #[test]
    fn what_several_processes_met_is_what_one_would_have_met() {
        let met = |places: &[u64]| {
            let reads = Reads::default();
            places.iter().for_each(|place| reads.failed(place * 8192, &io::Error::from_raw_os_error(5)));
            faults(&reads)
        };
        let mut all = met(&[3, 7]);
        all.merge(met(&[7, 1]));
        assert_eq!(all, met(&[1, 3, 7]));
        assert!(all.failed[0].text().ends_with("(3 places in all)"), "{}", all.failed[0].text());
    }

    #[test]
    fn permanent_errors_are_not_retried() {
        let mut attempts = 0;
        let outcome: io::Result<()> = Reads::default().patiently(|| {
            attempts += 1;
            Err(ErrorKind::InvalidData.into())
        });
        assert!(outcome.is_err() && attempts == 1);
    }
}
