//! Checks several databases at the same time. Together, the checks use the resources of one run. Temporary files store
//! the results of each database until the results of all earlier databases are printed, so that the order of the output
//! does not depend on the number of threads.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, PoisonError, RwLock};
use std::thread;

use jobs::failure::Failure;
use jobs::request::Request;
use report::databases::Row;
use tempfile::SpooledTempFile;

use super::{Run, Stopped};
use crate::speaker::{keeping, to_stderr};

/// Maximum number of databases that may be started ahead of the database that is printed next.
const MOST_AHEAD: usize = 64;
/// Maximum size in memory of the stderr lines of one database, in bytes. If the lines are longer, all of them go to a
/// temporary file.
const KEPT_BYTES: usize = 64 << 10;

/// A database that was checked.
struct Finished {
    number: usize,
    row: Row,
    results: Box<dyn Read + Send>,
    lines: Option<SpooledTempFile>,
}

/// The positions in the list of databases: the next to check, and the next to print.
#[derive(Default)]
struct Turn {
    next: usize,
    emitted: usize,
    is_over: bool,
}

/// Checks all databases of `run`, and passes the results of each database to `emit`, in the order of the list.
///
/// # Errors
/// Errors of `emit`.
pub(super) fn side_by_side(
    run: &Run<'_>,
    mut emit: impl FnMut(usize, &mut dyn Read, Row) -> io::Result<()>,
) -> io::Result<()> {
    let most = run.arguments.databases.min(threads(run.arguments));
    let workers = usize::from(most).min(run.items.len()).max(1);
    let shared = Shared {
        run,
        share: share(run.arguments, workers),
        turn: Mutex::default(),
        moved: Condvar::new(),
        alone: RwLock::default(),
    };
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let mut started = 0;
        for _ in 0..workers {
            let (shared, sender) = (&shared, sender.clone());
            match thread::Builder::new().spawn_scoped(scope, move || shared.work(&sender)) {
                Ok(_) => started += 1,
                Err(cause) if started == 0 => return Err(cause),
                // If no further thread can be started, continues with the threads that already run.
                Err(_) => break,
            }
        }
        drop(sender);
        let (mut waiting, mut written) = (BTreeMap::new(), Ok(()));
        for finished in receiver {
            waiting.insert(finished.number, finished);
            while let Some(mut finished) = waiting.remove(&shared.emitted()) {
                if written.is_ok() {
                    if let Some(lines) = &mut finished.lines {
                        to_stderr(|out| io::copy(lines, &mut { out }).map(drop));
                    }
                    written = emit(finished.number, &mut finished.results, finished.row);
                }
                shared.advance(written.is_err());
            }
        }
        written
    })
}

/// The number of threads that a run may use.
fn threads(arguments: &Request) -> u16 {
    let processors = thread::available_parallelism().map_or(1, |count| u16::try_from(count.get()).unwrap_or(u16::MAX));
    if arguments.run.maxdop == 0 { processors } else { arguments.run.maxdop }
}

/// The arguments for the check of one database. The check gets its share of the resources of a run that checks
/// `workers` databases at the same time.
pub(crate) fn share(arguments: &Request, workers: usize) -> Request {
    let mut share = arguments.clone();
    let workers = u16::try_from(workers).unwrap_or(u16::MAX);
    share.run.maxdop = (threads(arguments) / workers).max(1);
    share.recovery.room.memory = arguments.recovery.room.memory.map(|memory| memory / u64::from(workers));
    share.run.io_limit = arguments.run.io_limit.map(|limit| (limit / u64::from(workers)).max(1));
    share
}

struct Shared<'r> {
    run: &'r Run<'r>,
    share: Request,
    turn: Mutex<Turn>,
    moved: Condvar,
    /// Every check holds this lock: for writing if it needs all the memory of the run, otherwise for reading. A check
    /// with the write lock therefore runs alone.
    alone: RwLock<()>,
}

impl Shared<'_> {
    fn emitted(&self) -> usize {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner).emitted
    }

    fn advance(&self, is_over: bool) {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        turn.emitted += 1;
        turn.is_over |= is_over;
        self.moved.notify_all();
    }

    /// Returns the number of the next database to check; `None` if no database is left or the run is over. Waits while
    /// too many checked databases are not printed yet.
    fn next(&self) -> Option<usize> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let must_wait = |turn: &mut Turn| !turn.is_over && turn.next >= turn.emitted.saturating_add(MOST_AHEAD);
        let mut turn = self.moved.wait_while(turn, must_wait).unwrap_or_else(PoisonError::into_inner);
        let number = turn.next;
        turn.next += 1;
        (!turn.is_over && number < self.run.items.len()).then_some(number)
    }

    fn work(&self, sender: &Sender<Finished>) {
        while let Some(number) = self.next() {
            let shared = {
                let _others = self.alone.read().unwrap_or_else(PoisonError::into_inner);
                self.check(number, &self.share, false)
            };
            let finished = shared.or_else(|| {
                let _alone = self.alone.write().unwrap_or_else(PoisonError::into_inner);
                self.check(number, self.run.arguments, true)
            });
            let Some(finished) = finished else { return };
            if sender.send(finished).is_err() {
                return;
            }
        }
    }

    /// Checks a database; `None` if the database needs more memory than its share.
    fn check(&self, number: usize, arguments: &Request, is_alone: bool) -> Option<Finished> {
        let folder = self.folder();
        let unkept = |cause: io::Error, status: u8| {
            let folder = folder.display();
            let failure = Failure::unable(format!(
                "{folder}: the results cannot be kept in this folder: {cause}; see --temp-dir"
            ));
            self.refused(number, &Failure { status: failure.status | status, ..failure })
        };
        let mut out = match tempfile::tempfile_in(&folder) {
            Ok(file) => BufWriter::new(file),
            Err(cause) => return unkept(cause, 0),
        };
        let lines = SpooledTempFile::new_in(KEPT_BYTES, folder.clone());
        let (checked, lines) = keeping(lines, || self.run.check(number, arguments, is_alone, &mut out));
        let lines = lines.and_then(|mut lines| lines.rewind().ok().map(|()| lines));
        let row = match checked {
            Ok(row) => row,
            Err(Stopped::NeedsMemory) => return None,
            Err(Stopped::Output(cause, status)) => return unkept(cause, status),
        };
        let status = row.status;
        let results = out.into_inner().map_err(io::IntoInnerError::into_error);
        match results.and_then(|mut file| file.rewind().map(|()| file)) {
            Ok(results) => Some(Finished { number, row, results: Box::new(results), lines }),
            Err(cause) => unkept(cause, status),
        }
    }

    fn folder(&self) -> PathBuf {
        self.run.arguments.recovery.room.temp_dir.as_deref().map_or_else(std::env::temp_dir, Path::to_owned)
    }

    /// The result of a database that cannot be checked.
    fn refused(&self, number: usize, failure: &Failure) -> Option<Finished> {
        let mut results = Vec::new();
        let lines = SpooledTempFile::new(KEPT_BYTES);
        let (row, lines) = keeping(lines, || self.run.refused(number, failure, &mut results));
        let lines = lines.and_then(|mut lines| lines.rewind().ok().map(|()| lines));
        Some(Finished { number, row: row.ok()?, results: Box::new(Cursor::new(results)), lines })
    }
}
