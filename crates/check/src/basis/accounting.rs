//! Records the cost of a run, by phase and as a time series, to show where a long run spent its time.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use findings::{PhaseStatistics, Sample};
use format::PageId;
use source::{PageSource, ReadError, ReadFaults};
use sums::spill::TempStore;

use crate::basis::system::{Cpu, peak_memory_bytes, resident_memory_bytes};

/// The time between two samples, in nanoseconds, until the list of samples is full for the first time.
const SAMPLE_NANOS: u64 = 100_000_000;
/// The maximum number of samples that a run keeps. When the list is full, every second sample is dropped and the
/// interval doubles.
const MAX_SAMPLES: usize = 4096;

/// The locks that threads may have to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lock {
    /// The lock on the merged sums. Each thread adds its own sums once.
    Merge,
    /// The lock on the shared list of findings.
    Findings,
}

/// Counters of a run, shared by all threads.
pub(crate) struct Meter {
    start: Instant,
    bytes: AtomicU64,
    reads: AtomicU64,
    read_nanos: AtomicU64,
    idle_nanos: AtomicU64,
    lock_nanos: [AtomicU64; 2],
    next_sample_nanos: AtomicU64,
    series: Mutex<Series>,
    shortage: Mutex<Option<String>>,
}

struct Series {
    samples: Vec<Sample>,
    step_nanos: u64,
}

/// A page source that counts its reads.
pub(crate) struct Metered<'a> {
    inner: &'a dyn PageSource,
    pub(crate) meter: Meter,
}

impl<'a> Metered<'a> {
    /// A page source that passes reads on to `inner` and counts them.
    pub(crate) fn new(inner: &'a dyn PageSource) -> Self {
        let meter = Meter {
            start: Instant::now(),
            bytes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            read_nanos: AtomicU64::new(0),
            idle_nanos: AtomicU64::new(0),
            lock_nanos: [const { AtomicU64::new(0) }; 2],
            next_sample_nanos: AtomicU64::new(SAMPLE_NANOS),
            series: Mutex::new(Series { samples: Vec::new(), step_nanos: SAMPLE_NANOS }),
            shortage: Mutex::new(None),
        };
        Self { inner, meter }
    }
}

impl PageSource for Metered<'_> {
    source::as_inner!();
    source::hints_as_inner!();

    fn read_faults(&self) -> ReadFaults {
        self.inner.read_faults()
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let start = Instant::now();
        let result = self.inner.read(first, buffer);
        add(&self.meter.read_nanos, start.elapsed());
        self.meter.reads.fetch_add(1, Ordering::Relaxed);
        if let Ok(pages) = result {
            self.meter.bytes.fetch_add((pages * format::page::PAGE_BYTES) as u64, Ordering::Relaxed);
        }
        result
    }
}

fn add(counter: &AtomicU64, time: Duration) {
    counter.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

impl Meter {
    /// Adds time in which a thread was idle while other threads worked.
    pub(crate) fn idle(&self, time: Duration) {
        add(&self.idle_nanos, time);
    }

    /// Adds time in which a thread waited for a lock.
    pub(crate) fn locked(&self, lock: Lock, time: Duration) {
        if let Some(nanos) = self.lock_nanos.get(lock as usize) {
            add(nanos, time);
        }
    }

    /// Notes that fewer threads were started than requested; `cause` says why.
    pub(crate) fn started_threads(&self, started: usize, wanted: usize, cause: Option<io::Error>) {
        let Some(cause) = cause else { return };
        let text = format!("only {started} of {wanted} threads could be started ({cause}); the results do not change");
        self.shortage.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
    }

    /// One line that says why fewer threads were started than requested; `None` if all were started.
    pub(crate) fn shortage(&self) -> Option<String> {
        self.shortage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Seconds since the run began.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Takes a sample if a sample is due, and returns it; `None` if no sample is due.
    pub(crate) fn sample(&self, space: &TempStore) -> Option<Sample> {
        let now = self.start.elapsed().as_nanos() as u64;
        let due = self.next_sample_nanos.load(Ordering::Relaxed);
        if now < due {
            return None;
        }
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let next = now + series.step_nanos;
        if self.next_sample_nanos.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return None;
        }
        if series.samples.len() >= MAX_SAMPLES {
            let mut keep = false;
            series.samples.retain(|_| {
                keep = !keep;
                keep
            });
            series.step_nanos *= 2;
        }
        let cpu = Cpu::now();
        let sample = Sample {
            seconds: seconds(now),
            bytes: self.bytes.load(Ordering::Relaxed),
            cpu_seconds: cpu.map(|cpu| cpu.user_seconds + cpu.system_seconds),
            memory_bytes: resident_memory_bytes(),
            spilled_bytes: space.spilled_bytes(),
        };
        series.samples.push(sample);
        Some(sample)
    }

    /// The samples taken so far.
    pub(crate) fn series(&self) -> Vec<Sample> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner).samples.clone()
    }
}

/// Measures the phases of a run.
pub(crate) struct Phases<'a> {
    meter: &'a Meter,
    last: Totals,
    list: Vec<PhaseStatistics>,
}

struct Totals {
    seconds: f64,
    cpu: Option<Cpu>,
    counters: [u64; 8],
}

impl Totals {
    fn now(meter: &Meter, space: &TempStore) -> Self {
        let [merge, findings] = &meter.lock_nanos;
        let counters = [&meter.bytes, &meter.reads, &meter.read_nanos, &meter.idle_nanos, merge, findings]
            .map(|counter| counter.load(Ordering::Relaxed));
        let [bytes, reads, read, idle, merge, findings] = counters;
        let counters = [bytes, reads, read, idle, merge, findings, space.spilled_bytes(), space.spill_nanos()];
        Self { seconds: meter.seconds(), cpu: Cpu::now(), counters }
    }
}

impl<'a> Phases<'a> {
    /// Begins the first phase now.
    pub(crate) fn new(meter: &'a Meter, space: &TempStore) -> Self {
        Self { meter, last: Totals::now(meter, space), list: Vec::new() }
    }

    /// Ends the current phase, records it as `name`, and begins the next one.
    pub(crate) fn end(&mut self, name: &'static str, space: &TempStore) {
        let now = Totals::now(self.meter, space);
        let mut counted = [0; 8];
        for ((counted, now), last) in counted.iter_mut().zip(now.counters).zip(self.last.counters) {
            *counted = now - last;
        }
        let [bytes, reads, read, idle, merge, findings, spilled_bytes, spill] = counted;
        let cpu = now.cpu.zip(self.last.cpu);
        self.list.push(PhaseStatistics {
            name,
            seconds: now.seconds - self.last.seconds,
            bytes,
            reads,
            read_wait_seconds: seconds(read),
            idle_seconds: seconds(idle),
            lock_waits: [("merge", seconds(merge)), ("findings", seconds(findings))],
            spilled_bytes,
            spill_wait_seconds: seconds(spill),
            cpu_user_seconds: cpu.map(|(now, last)| now.user_seconds - last.user_seconds),
            cpu_system_seconds: cpu.map(|(now, last)| now.system_seconds - last.system_seconds),
            memory_peak: peak_memory_bytes(),
        });
        self.last = now;
    }

    /// All phases.
    pub(crate) fn into_list(self) -> Vec<PhaseStatistics> {
        self.list
    }
}
