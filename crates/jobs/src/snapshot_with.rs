//! `mdfsck check --snapshot-with`: a program makes a snapshot of the paths, mdfsck checks the snapshot, and the program
//! removes it.
//!
//! A record of the snapshot is on disk from before the program is called until the program has removed the snapshot. So
//! if mdfsck is killed, or a step of the program outlives the program, the next run can have the snapshot removed.

mod places;
mod record;
#[cfg(unix)]
mod signals;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use history::Originals;
use source::storage;

use crate::failure::{Failure, unreadable};
use crate::host::warn;
use crate::keep;
use crate::patterns;
use crate::program::{self, Ended, MERCY};
use crate::request::Request;
use places::Own;
use record::{Content, Record};

/// The most bytes that the program may print.
const MOST_PRINTED_BYTES: u64 = 64 << 10;
/// The program has no time limit: a snapshot of a large volume may take long. Ctrl+C ends the program.
const WITHOUT_LIMIT: Duration = Duration::MAX;
/// The interval at which the code tests whether a step of a stopped program has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs `act` on a snapshot of the paths, if the arguments name a program that makes snapshots. Otherwise runs `act` on
/// the paths themselves. The snapshot is removed when `act` returns or panics, and on Unix after Ctrl+C and SIGTERM.
///
/// # Errors
/// If no snapshot can be made, or if `act` fails.
pub fn around(request: &Request, act: impl FnOnce(&Request) -> Result<u8, Failure>) -> Result<u8, Failure> {
    let Some(program) = Program::of(request) else { return act(request) };
    let begun = SystemTime::now();
    let mut more = 0;
    let made = originals(&request.paths).and_then(|originals| {
        let folders = record::folders(request.results.history.as_deref())?;
        #[cfg(unix)]
        signals::watch();
        more |= folders.iter().fold(0, |bits, folder| bits | remove_left(program, folder));
        let folder = folders.into_iter().next().unwrap_or_default();
        Snapshot::make(program, &folder, originals)
    });
    let done = match made {
        Ok(mut snapshot) => {
            let done = snapshot.check(request, act);
            more |= snapshot.remove();
            done
        }
        Err(failure) => {
            more |= keep::failed(request, begun, &failure);
            Err(failure)
        }
    };
    #[cfg(unix)]
    signals::end_if_raised();
    done.map(|status| status | more).map_err(|failure| Failure { status: failure.status | more, ..failure })
}

/// If a signal has ended a check of a snapshot, this process has taken the place of the check: it removes the snapshot,
/// and then ends by the same signal. Returns `None` in any other process.
#[cfg(unix)]
pub fn after_signal(request: &Request) -> Option<u8> {
    let (signal, record) = signals::ended_by()?;
    // If the record is gone or locked, another run removes the snapshot.
    if let (Some(program), Ok(Some(record))) = (Program::of(request), Record::take(&record)) {
        Snapshot::of(program, record, Vec::new()).remove();
    }
    signals::end(signal);
    Some(Failure::UNABLE)
}

/// Systems other than Unix end a process on Ctrl+C at once, and the next run removes its snapshot.
#[cfg(not(unix))]
pub fn after_signal(_: &Request) -> Option<u8> {
    None
}

/// The absolute paths to make a snapshot of. Patterns are replaced by the files that match.
fn originals(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut originals = Vec::new();
    for path in paths {
        let what = if path.as_os_str() == "-" { Some("standard input") } else { storage::url(path).map(|_| "a URL") };
        if let Some(what) = what {
            let text =
                "--snapshot-with makes a snapshot of local files; leave this option out, or give files and folders";
            return Err(Failure::usage(format!("{}: is {what}, and {text}", path.display())));
        }
        match patterns::expand(path)? {
            Some(expanded) => originals.extend(expanded.paths),
            None => originals.push(path.clone()),
        }
    }
    for path in &mut originals {
        std::fs::metadata(&*path).map_err(|cause| unreadable(path, &cause))?;
        *path = std::path::absolute(&*path).map_err(|cause| unreadable(path, &cause))?;
    }
    Ok(originals)
}

/// The program that makes and removes snapshots, with its first arguments.
#[derive(Clone, Copy)]
struct Program<'a> {
    path: &'a Path,
    arguments: &'a [OsString],
}

impl<'a> Program<'a> {
    fn of(request: &'a Request) -> Option<Self> {
        let named = &request.snapshot;
        Some(Self { path: named.snapshot_with.as_deref()?, arguments: &named.snapshot_argument })
    }

    /// The program, to be called with `verb`. It cannot read from the terminal.
    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(self.path);
        command.args(self.arguments).arg(verb).stdin(Stdio::null());
        #[cfg(unix)]
        signals::hide_from(&mut command);
        command
    }

    /// The beginning of a message about a call.
    fn call(&self, verb: &str) -> String {
        format!("{} {verb}", self.path.display())
    }
}

/// Why a program did not end with status 0; `None` if it did.
fn problem(ended: &io::Result<Ended>) -> Option<String> {
    match ended {
        Ok(Ended::By(status)) if status.success() => None,
        Ok(Ended::By(status)) => Some(format!("it ended with {status}")),
        Ok(Ended::TookTooLong | Ended::Stopped | Ended::NotAtAll) => Some("it was stopped".to_owned()),
        Err(cause) => Some(format!("it cannot be started: {cause}")),
    }
}

/// A snapshot. Dropping this value removes it.
struct Snapshot<'a> {
    program: Program<'a>,
    /// The record of the snapshot; `None` if the snapshot is removed.
    record: Option<Record>,
    /// The paths in the snapshot, in the order of the originals.
    copies: Vec<PathBuf>,
    originals: Vec<PathBuf>,
}

impl<'a> Snapshot<'a> {
    fn of(program: Program<'a>, record: Record, originals: Vec<PathBuf>) -> Self {
        Self { program, record: Some(record), copies: Vec::new(), originals }
    }

    /// Calls the program to make a snapshot.
    fn make(program: Program<'a>, folder: &Path, originals: Vec<PathBuf>) -> Result<Self, Failure> {
        let record = Record::create(folder, Content::of(program, &originals))?;
        let out = record.output();
        // From here on, each return removes what the program has made.
        let mut made = Self::of(program, record, originals);
        // The signal may have arrived while snapshots of earlier runs were removed. A program that is not started need not be
        // stopped half-way.
        if is_stopped() {
            return Err(Failure::quiet());
        }
        let ended = made.call_create(out?);
        let copies = made.printed_copies(&ended);
        let has_exited = matches!(ended, Ok(Ended::By(status)) if status.code().is_some());
        if copies.is_err() && !has_exited {
            made.leave_if_being_made();
        }
        made.copies = copies?;
        Ok(made)
    }

    /// Calls the program to make the snapshot, with `out` as its stdout. On return, this process has closed `out`.
    fn call_create(&self, out: File) -> io::Result<Ended> {
        let mut command = self.program.command("create");
        command.args(&self.originals).stdout(out);
        program::run(&mut command, WITHOUT_LIMIT, &|| is_stopped() || self.has_printed_too_much())
    }

    fn has_printed_too_much(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.printed_bytes() > MOST_PRINTED_BYTES)
    }

    /// The paths in the snapshot, as the program has printed them.
    fn printed_copies(&self, ended: &io::Result<Ended>) -> Result<Vec<PathBuf>, Failure> {
        let Some(record) = &self.record else { return Ok(Vec::new()) };
        let cannot =
            |cause: String| Failure::unable(format!("{}: {cause}; nothing was checked", self.program.call("create")));
        if is_stopped() {
            return Err(Failure::quiet());
        }
        if self.has_printed_too_much() {
            let most = MOST_PRINTED_BYTES >> 10;
            return Err(cannot(format!("it printed more than {most} KB, and was stopped; it must print only paths")));
        }
        if let Some(problem) = problem(ended) {
            return Err(cannot(problem));
        }
        places::of(&self.originals, &record.printed()?).map_err(cannot)
    }

    /// Leaves the snapshot to a later run if the program was killed, and a step of it still makes the snapshot. The
    /// program would now find nothing to remove, and the snapshot would appear later.
    fn leave_if_being_made(&mut self) {
        let begun = Instant::now();
        while self.record.as_ref().is_some_and(Record::is_being_made) {
            // What was killed needs a moment to end.
            if begun.elapsed() < MERCY {
                thread::sleep(PAUSE);
            } else if let Some(record) = self.record.take() {
                let text = "it was stopped, but a step of it still runs; a later run with --snapshot-with removes the \
                            snapshot, as long as this file exists";
                warn(format!("{}: {text}: {}", self.program.call("create"), record.path().display()));
            }
        }
    }

    /// Runs `act` with the paths in the snapshot.
    fn check(&self, request: &Request, act: impl FnOnce(&Request) -> Result<u8, Failure>) -> Result<u8, Failure> {
        #[cfg(unix)]
        let _checking = self.record.as_ref().map(|record| signals::checking(record.path()));
        let mut request = request.of(self.copies.clone());
        request.snapshot.originals = Originals::new(self.pairs());
        act(&request)
    }

    /// Pairs of a path in the snapshot and its original. The folder of a named file is included, since mdfsck also
    /// looks there for logs.
    fn pairs(&self) -> Vec<(PathBuf, PathBuf)> {
        let exact = self.copies.iter().cloned().zip(self.originals.iter().cloned());
        let named = self.copies.iter().zip(&self.originals).filter(|(copy, _)| copy.is_file());
        let folders = named.filter_map(|(copy, of)| Some((copy.parent()?.to_owned(), of.parent()?.to_owned())));
        exact.chain(folders).collect()
    }

    /// Calls the program to remove the snapshot, unless the snapshot is already removed. If that fails, keeps the
    /// record, so that the next run tries again. Returns the exit-status bits.
    fn remove(&mut self) -> u8 {
        let Some(record) = self.record.take() else { return 0 };
        let Some(problem) = self.removal_problem(&record) else { return record.delete() };
        let text =
            "the snapshot may still exist; the next run with --snapshot-with tries again, as long as this file exists";
        warn(format!("{}: {problem}; {text}: {}", self.program.call("remove"), record.path().display()));
        Failure::UNABLE
    }

    fn removal_problem(&self, record: &Record) -> Option<String> {
        let mut lines = match record.printed() {
            Ok(printed) => places::lines(&printed),
            Err(failure) => return Some(failure.text),
        };
        // A program may have printed a path of the database itself. No program is asked to remove that.
        let originals = record.content().paths.iter().map(Path::new).chain(self.originals.iter().map(PathBuf::as_path));
        let own = Own::of(originals);
        lines.retain(|line| own.at(Path::new(line)).is_none());
        // A program that has printed nothing has made nothing, or nothing that could be named.
        if lines.is_empty() {
            return None;
        }
        let mut command = self.program.command("remove");
        // stdout is only for results.
        command.args(lines).stdout(io::stderr());
        problem(&program::run(&mut command, WITHOUT_LIMIT, &|| false))
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Whether a signal has asked this process to end.
#[cfg(unix)]
fn is_stopped() -> bool {
    signals::is_raised()
}

/// On other systems, signals end the process at once.
#[cfg(not(unix))]
fn is_stopped() -> bool {
    false
}

/// Removes the snapshots that earlier runs have left, if they were made by the same program with the same arguments. No
/// other program is ever called, since another user may have written the record. Returns the exit-status bits.
fn remove_left(program: Program<'_>, folder: &Path) -> u8 {
    let left = match record::left(folder) {
        Ok(left) => left,
        Err(failure) => return failure.report(),
    };
    left.into_iter().fold(0, |bits, record| bits | remove_one_left(program, record))
}

fn remove_one_left(program: Program<'_>, record: Record) -> u8 {
    let (of, place) = (record.content().paths.join(", "), record.path().display().to_string());
    let left = format!("an earlier run has left a snapshot of {of}");
    if !record.content().is_of_this_host() {
        warn(format!("{left} on machine {}: only a run there removes it; record: {place}", record.content().host));
        return 0;
    }
    if !record.content().is_of(program) {
        let call = record.content().call();
        warn(format!("{left}, made by another program: only a run with '{call}' removes it; record: {place}"));
        return 0;
    }
    if record.is_being_made() {
        warn(format!("{left}: the program that makes it is still running; a later run removes the snapshot"));
        return 0;
    }
    let is_named = record.printed().is_ok_and(|printed| !places::lines(&printed).is_empty());
    let bits = Snapshot::of(program, record, Vec::new()).remove();
    match (bits, is_named) {
        (0, true) => warn(format!("{left}: removed")),
        (0, false) => warn(format!(
            "an earlier run was making a snapshot of {of}, and {} printed no path: if the snapshot exists, remove it",
            program.path.display()
        )),
        _ => {}
    }
    bits
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
