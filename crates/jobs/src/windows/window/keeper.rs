//! Records the progress of a window in the history, and holds the lease on the database.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use findings::RangeRead;
use history::windows::pace::Swept;
use history::windows::{Done, Known, Opening, Window};
use history::{History, HistoryError, Lease};

use super::Sweep;
use super::stored::remove_stale;
use crate::failure::Failure;
use crate::host::warn;

/// The interval at which the lease is renewed.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Records each range that a window has read. If the history cannot be written, the check continues without recording.
pub(super) struct Keeper {
    history: Option<History>,
    pub(super) window: Option<Window>,
    /// The ranges, ordered by file and page.
    pub(super) tiles: Vec<RangeRead>,
    /// The file and the first page of each range with pages that could not be read.
    pub(super) unread: Vec<(u16, u32)>,
    /// The exit-status bits that report what could not be recorded.
    pub(super) unkept: u8,
    pub(super) heart: Option<Heart>,
}

impl Keeper {
    /// Acquires the lease on the database for this window.
    ///
    /// # Errors
    /// If another process holds the lease.
    pub(super) fn open(sweep: &Sweep<'_>) -> Result<Self, Failure> {
        let mut keeper =
            Self { history: None, window: None, tiles: Vec::new(), unread: Vec::new(), unkept: 0, heart: None };
        let Some(path) = sweep.terms.history else { return Ok(keeper) };
        let prepared = sweep.subject.prepared;
        let opening = Opening {
            source: sweep.source,
            database: &prepared.database,
            naming: sweep.terms.naming,
            started: sweep.terms.started,
            allowed: sweep.terms.allowed,
            is_full: !prepared.options.physical_only,
        };
        let opened = History::open_or_create(path).and_then(|mut history| {
            let window = history.open_window(&opening)?;
            if let Some(left) = remove_stale(path) {
                history.keep_parts(&left)?;
            }
            Ok((history, window))
        });
        match opened {
            Ok((history, window)) => {
                keeper.heart = Heart::start(path, window.lease());
                (keeper.history, keeper.window) = (Some(history), Some(window));
            }
            Err(HistoryError::Leased { by, .. }) => {
                return Err(Failure::usage(format!(
                    "{}: {by} is checking this database; wait until this check ends, or use another history",
                    path.display()
                )));
            }
            Err(error) => keeper.failed(&error),
        }
        Ok(keeper)
    }

    /// Whether this process holds the lease on the database. A process may use the stored plan only while it holds the
    /// lease.
    pub(super) fn is_open(&self) -> bool {
        self.window.is_some()
    }

    /// Sets the ranges of the image. Returns what the history knows about these ranges.
    pub(super) fn tile(&mut self, tiles: Vec<RangeRead>) -> Option<Known> {
        self.tiles = tiles;
        let (history, window) = self.history.as_mut().zip(self.window.as_ref())?;
        match history.known_of(window, &self.tiles) {
            Ok(known) => Some(known),
            Err(error) => {
                self.history = None;
                self.failed(&error);
                None
            }
        }
    }

    /// Records a range. Returns whether the check may continue. It must stop if another process has taken the lease,
    /// which is possible if this machine was suspended.
    pub(super) fn done(&mut self, done: &Done<'_>) -> bool {
        let Some((history, window)) = self.history.as_mut().zip(self.window.as_ref()) else { return true };
        let Err(error) = history.range_done(window, done) else { return true };
        self.history = None;
        self.failed(&error);
        !matches!(error, HistoryError::Leased { .. })
    }

    /// Adds to the totals of the window.
    pub(super) fn went_on(&mut self, ranges: u64, swept: Swept) {
        let Some((history, window)) = self.history.as_mut().zip(self.window.as_ref()) else { return };
        if let Err(error) = history.window_went_on(window, ranges, swept) {
            self.history = None;
            self.failed(&error);
        }
    }

    fn failed(&mut self, error: &HistoryError) {
        let failure = Failure::from(error);
        warn(format!("{}; the pages that this window reads are not recorded", failure.text));
        self.unkept |= failure.status;
    }
}

/// If the check fails, ends the window, so that other processes may check the database.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.heart = None;
        if let Some((history, window)) = self.history.as_mut().zip(self.window.take()) {
            // An error is ignored, since the lease expires without further action.
            let _ = history.end_window(&window);
        }
    }
}

/// Renews the lease every 30 seconds until this value is dropped.
pub(super) struct Heart {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Heart {
    /// Starts the thread that renews the lease. Returns `None` if no thread can be started. In this case, the lease is
    /// renewed only after each range.
    fn start(path: &Path, lease: &Lease) -> Option<Self> {
        let (stop, stopped) = mpsc::channel();
        let (path, lease) = (path.to_owned(), lease.clone());
        let beat = move || {
            while stopped.recv_timeout(HEARTBEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
                // An error is ignored, since the check also uses the history and reports its errors.
                let _ = History::open_or_create(&path).and_then(|mut history| history.renew(&lease));
            }
        };
        let thread = thread::Builder::new().name("lease".to_owned()).spawn(beat).ok()?;
        Some(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.stop.take();
        self.thread.take().map(thread::JoinHandle::join);
    }
}
