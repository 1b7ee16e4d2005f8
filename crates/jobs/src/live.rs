//! Records the progress of a check in the history while the check runs, so that `mdfsck serve` can show it.
//!
//! A separate thread writes to the history, so that the check never waits for the history. If progress cannot be
//! recorded, `mdfsck serve` does not show it.

mod map;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use catalog::Database;
use check::Progress;
use findings::Sample;
use format::PageId;
use history::progress::{Course, MOST_PHASES, MOST_SAMPLES, subject};
use history::{History, HistoryError, Naming};
use source::PageSource;

use crate::host::warn;
use crate::keep;
use crate::request::Request;

use map::Map;

/// The shortest interval between two updates. A check that takes less time records no progress.
const FIRST: Duration = Duration::from_secs(1);
/// The longest interval between two updates. The interval grows during a check.
const LONGEST: Duration = Duration::from_secs(10);
/// The interval between two updates is the elapsed time divided by this number, but at least [`FIRST`] and at most
/// [`LONGEST`].
const NOTES: u32 = 300;
/// Maximum number of consecutive updates that may fail because another program has locked the history. After that, the
/// check stops recording progress.
const TRIES: u32 = 20;
/// The longest time that a check, at its end, waits for the thread that records the progress.
const FAREWELL: Duration = Duration::from_secs(2);
/// Size of the thread's stack, in bytes.
const STACK_BYTES: usize = 512 << 10;

/// Records the progress of a check. Dropping this value ends the recording.
pub struct Live {
    course: Arc<Running>,
    /// Dropping this sender ends the thread.
    end: Option<Sender<()>>,
    /// Disconnects when the thread has ended.
    ended: Receiver<()>,
}

/// The progress of a check, shared between its threads.
struct Running {
    begun: Instant,
    naming: Naming,
    bytes: AtomicU64,
    spilled_bytes: AtomicU64,
    done: AtomicU64,
    phases: Mutex<Phases>,
    /// The database that is checked. It is known once the check begins.
    subject: OnceLock<Subject>,
    /// Whether the pages are read in several passes.
    has_batches: bool,
}

#[derive(Default)]
struct Phases {
    list: Vec<(&'static str, f64)>,
    /// The number of pages of the current phase; 0 if unknown.
    pages: u64,
}

struct Subject {
    identity: String,
    name: String,
    granted_bytes: u64,
    map: Map,
}

impl Live {
    /// Starts to record the progress of a check; `None` if there is no history, or no thread can be started.
    pub fn begin(request: &Request, started: SystemTime) -> Option<Self> {
        let path = request.results.history.clone().filter(|_| !request.estimate_only)?;
        let course = Arc::new(Running {
            begun: Instant::now(),
            naming: keep::naming(request),
            bytes: AtomicU64::new(0),
            spilled_bytes: AtomicU64::new(0),
            done: AtomicU64::new(0),
            phases: Mutex::default(),
            subject: OnceLock::new(),
            has_batches: request.batches > 1,
        });
        let (end, is_over) = mpsc::channel();
        let (has_ended, ended) = mpsc::channel::<()>();
        let writer = Writer {
            path,
            paths: request.originals(),
            started,
            course: Arc::clone(&course),
            samples: Vec::new(),
            step: FIRST,
        };
        let work = move || {
            writer.work(&is_over);
            drop(has_ended);
        };
        thread::Builder::new().name("progress".to_owned()).stack_size(STACK_BYTES).spawn(work).ok()?;
        Some(Self { course, end: Some(end), ended })
    }

    /// A listener that records progress. It also passes all progress on to the listener `shown`.
    pub fn beside<'a>(&'a self, shown: Box<dyn Progress + 'a>) -> Box<dyn Progress + 'a> {
        Box::new(Both { shown, course: &self.course })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end = None;
        // The thread never sends a message. It removes the progress from the history and ends, which disconnects the
        // channel.
        let _ = self.ended.recv_timeout(FAREWELL);
    }
}

/// A listener that records progress. It also passes all progress on to the listener `shown`.
struct Both<'a> {
    shown: Box<dyn Progress + 'a>,
    course: &'a Running,
}

impl Progress for Both<'_> {
    fn phase(&self, name: &'static str, pages: u64) {
        self.shown.phase(name, pages);
        self.course.phase(name, pages);
    }

    fn advance(&self, pages: u64) {
        self.shown.advance(pages);
        self.course.done.fetch_add(pages, Ordering::Relaxed);
    }

    fn begin(&self, source: &dyn PageSource, database: &Database, granted_bytes: u64) {
        self.shown.begin(source, database, granted_bytes);
        self.course.subject.get_or_init(|| {
            let (identity, name) = subject(source, database, &self.course.naming);
            Subject { identity, name, granted_bytes, map: Map::of(source.files()) }
        });
    }

    fn swept(&self, first: PageId, pages: u32) {
        self.shown.swept(first, pages);
        if let Some(subject) = self.course.subject.get() {
            subject.map.swept(first, pages);
        }
    }

    fn sample(&self, sample: &Sample) {
        self.shown.sample(sample);
        self.course.bytes.store(sample.bytes, Ordering::Relaxed);
        self.course.spilled_bytes.store(sample.spilled_bytes, Ordering::Relaxed);
    }
}

impl Running {
    fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn phase(&self, name: &'static str, pages: u64) {
        let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = phases.list.last().is_some_and(|(last, _)| *last == name);
        // If the current phase is announced again without a number of pages, the phase continues.
        if is_same && pages == 0 {
            return;
        }
        phases.pages = pages;
        self.done.store(0, Ordering::Relaxed);
        if name == "sweep"
            && self.has_batches
            && let Some(subject) = self.subject.get()
        {
            subject.map.clear();
        }
        if !is_same {
            if phases.list.len() == MOST_PHASES {
                phases.list.remove(0);
            }
            phases.list.push((name, self.seconds()));
        }
    }
}

/// The thread that writes the progress to the history.
struct Writer {
    path: PathBuf,
    paths: Vec<PathBuf>,
    started: SystemTime,
    course: Arc<Running>,
    samples: Vec<Sample>,
    /// The interval between two samples.
    step: Duration,
}

impl Writer {
    fn work(mut self, is_over: &Receiver<()>) {
        let (mut note, mut failures) = (None, 0);
        while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(self.wait()) {
            match self.note(&mut note) {
                Ok(true) => failures = 0,
                // The history no longer has an entry for this check.
                Ok(false) => break,
                Err(HistoryError::Busy { .. }) if failures < TRIES => failures += 1,
                Err(error) => {
                    warn(format!("{error}; 'mdfsck serve' does not show the progress of this check"));
                    break;
                }
            }
        }
        // Waits until the check ends.
        while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(LONGEST) {}
        if let Some((mut history, id)) = note {
            // Removes the entry of this check. If the entry remained, the check would be shown as stopped until the
            // database is checked again. Retries the removal, since another process may lock the history for a while.
            let begun = Instant::now();
            while matches!(history.end_progress(id), Err(HistoryError::Busy { .. })) && begun.elapsed() < 6 * LONGEST {}
        }
    }

    fn wait(&self) -> Duration {
        (self.course.begun.elapsed() / NOTES).clamp(FIRST, LONGEST)
    }

    /// Writes the progress to the history. Returns whether the history still has the entry of this check.
    fn note(&mut self, note: &mut Option<(History, i64)>) -> history::Result<bool> {
        let (history, id) = match note {
            Some(note) => note,
            None => note.insert(begin(&self.path, &self.paths, &self.course.naming.host, self.started)?),
        };
        self.sample();
        let course = self.course();
        history.note_progress(*id, &course)
    }

    /// Adds a sample if one is due. If there are too many samples, drops every second sample and doubles the interval.
    fn sample(&mut self) {
        let seconds = self.course.seconds();
        if self.samples.last().is_some_and(|last| seconds - last.seconds < self.step.as_secs_f64() * 0.9) {
            return;
        }
        if self.samples.len() >= MOST_SAMPLES {
            let mut is_kept = false;
            self.samples.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.step *= 2;
        }
        let (cpu_seconds, memory_bytes) = check::process_usage();
        self.samples.push(Sample {
            seconds,
            bytes: self.course.bytes.load(Ordering::Relaxed),
            cpu_seconds,
            memory_bytes,
            spilled_bytes: self.course.spilled_bytes.load(Ordering::Relaxed),
        });
    }

    fn course(&self) -> Course {
        let (phases, pages) = {
            let phases = self.course.phases.lock().unwrap_or_else(PoisonError::into_inner);
            (phases.list.clone(), phases.pages)
        };
        let done = self.course.done.load(Ordering::Relaxed);
        let subject = self.course.subject.get();
        Course {
            identity: subject.map(|subject| subject.identity.clone()).unwrap_or_default(),
            name: subject.map(|subject| subject.name.clone()).unwrap_or_default(),
            phases,
            done: if pages > 0 { done.min(pages) } else { done },
            pages,
            granted_bytes: subject.map(|subject| subject.granted_bytes),
            samples: self.samples.clone(),
            files: subject.map(|subject| subject.map.files()).unwrap_or_default(),
        }
    }
}

fn begin(path: &Path, paths: &[PathBuf], host: &str, started: SystemTime) -> history::Result<(History, i64)> {
    let mut history = History::open_to_note(path)?;
    let id = history.begin_progress(paths, host, started)?;
    Ok((history, id))
}
