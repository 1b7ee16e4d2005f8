//! `mdfsck watch`: finds new backups, waits until each backup is complete, and checks each backup once.

mod check;
mod engine;
mod find;
mod labels;
mod mark;
mod metrics;
mod ready;
mod roots;
mod work;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use check::Checker;
use history::History;
use history::outbox::{Event, Judge, Promise, Raised};
use history::query::Filter;
use history::queue::{FileState, Holder, Item, Looked};
use jobs::deliver::Deliverer;
use jobs::failure::Failure;
use jobs::request::ListenerOptions;
use jobs::{fingerprint, keep, spool, windows};
use report::watch::{self as lines, Counts, Status, WatchFormat};

use crate::cli::WatchArguments;
use crate::speaker::warn;
use crate::{history as show, nice, output};
use work::{Shared, beat, work};

/// The interval at which the watcher tests whether it has results to report.
const TICK: Duration = Duration::from_millis(100);
/// The interval after which the watcher reads the history even if its version is unchanged.
const AGAIN: Duration = Duration::from_secs(2);
/// The minimum time between two comparisons of the fingerprint of one file.
const COMPARED: Duration = Duration::from_secs(3600);
/// A text that sorts after every time in the history, so that every report in the history counts as older.
const ALWAYS: &str = "9999";
/// Maximum number of consecutive failures. After that, a watcher that runs as a service ends.
const MOST_FAILURES: u32 = 10;

pub(crate) fn run(arguments: &WatchArguments) -> Result<u8, Failure> {
    if arguments.nice
        && let Some(status) = nice::yield_to_others()
    {
        return Ok(status);
    }
    if arguments.paths.iter().any(|path| path.as_os_str() == "-") {
        return Err(Failure::usage("-: watch cannot read standard input; give a folder, a pattern or a URL"));
    }
    arguments.temp_dir.as_deref().map_or(Ok(()), spool::try_folder)?;
    let engine = engine::Engine::of(arguments)?;
    let history = open(arguments)?;
    arguments.html.as_deref().map_or(Ok(()), |page| try_page(page, arguments, &history))?;
    let is_stopped = windows::signals::watch();
    let holder = Holder::new(&keep::host());
    let shared = Shared::default();
    // Set when all checks have ended.
    let has_ended = AtomicBool::new(false);
    let checker = Checker::new(arguments, engine, &shared);
    let mut watcher = Watcher {
        arguments,
        history,
        checker: &checker,
        holder: &holder,
        shared: &shared,
        format: format(arguments),
        warned: BTreeSet::new(),
        said: HashSet::new(),
        printed: HashSet::new(),
        counts: Counts::default(),
        status: 0,
        seen: None,
        compared: HashMap::new(),
    };
    output::print(|out| lines::write_heading(watcher.format, out))?;
    let listener = &ListenerOptions::from(&arguments.listener);
    let deliverer = listener.on_event.as_deref().map(|program| Deliverer {
        history: &arguments.history,
        program,
        listener,
        holder: &holder,
        is_stopped: windows::signals::is_raised,
    });
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..arguments.jobs).map(|_| scope.spawn(|| work(arguments, &checker, (&holder, &shared)))).collect();
        let beating = scope.spawn(|| beat(arguments, (&holder, &shared), &has_ended));
        let delivering = deliverer.as_ref().map(|deliverer| scope.spawn(|| deliverer.work(&has_ended)));
        let ended = if arguments.once { watcher.once(&workers) } else { watcher.serve(&is_stopped) };
        // After a signal, the watcher does not wait for running checks. It releases its claims on the backups, so that
        // other watchers or a later run can check these backups.
        if is_stopped() || ended.is_err() {
            shared.stop();
            let _ = watcher.history.release_all(&holder);
            let status = match ended {
                Err(failure) => failure.report(),
                Ok(()) if arguments.once => watcher.status | Failure::INCOMPLETE,
                Ok(()) => 0,
            };
            std::process::exit(status.into());
        }
        has_ended.store(true, Ordering::Relaxed);
        let _ = beating.join();
        watcher.status |= delivering.map_or(0, |thread| thread.join().unwrap_or(Failure::UNABLE));
    });
    watcher.end(arguments)
}

fn open(arguments: &WatchArguments) -> Result<History, Failure> {
    History::open_or_create(&arguments.history).map_err(|error| Failure::from(&error))
}

/// Returns an error if the HTML page of all databases cannot be written to this path.
fn try_page(page: &Path, arguments: &WatchArguments, history: &History) -> Result<(), Failure> {
    // `show::target` already refuses the path of the history, so the history is skipped here.
    let beside = beside_history(arguments).into_iter().skip(1);
    let mut others = beside.chain(arguments.metrics.clone()).chain(arguments.paths.iter().cloned());
    if others.any(|other| output::place(&other) == output::place(page)) {
        let text = "is also the file of another option; give a different file for the page";
        return Err(Failure::usage(format!("--html {}: {text}", page.display())));
    }
    show::target("--html", page, history).map(drop)
}

/// The paths of the history and of the files that SQLite creates next to it.
fn beside_history(arguments: &WatchArguments) -> Vec<PathBuf> {
    let beside = |suffix: &str| {
        let mut name = arguments.history.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    ["", "-wal", "-shm", "-journal"].into_iter().map(beside).collect()
}

/// The paths of the files that the watcher writes.
fn own(arguments: &WatchArguments) -> Vec<PathBuf> {
    let mut own = beside_history(arguments);
    own.extend([&arguments.metrics, &arguments.html].into_iter().flatten().cloned());
    own
}

fn format(arguments: &WatchArguments) -> WatchFormat {
    match (arguments.json, arguments.csv) {
        (true, _) => WatchFormat::Json,
        (_, true) => WatchFormat::Csv,
        _ => WatchFormat::Text,
    }
}

/// The present time, in milliseconds since 1970.
fn milliseconds() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(passed.as_millis()).unwrap_or(i64::MAX)
}

/// Tolerates a limited number of consecutive failures, since the disk with the history may be full for a while. Returns
/// whether `done` was a success.
fn bear(done: Result<(), Failure>, failures: &mut u32) -> Result<bool, Failure> {
    match done {
        Ok(()) => *failures = 0,
        Err(failure) if *failures < MOST_FAILURES => {
            *failures += 1;
            warn(failure.text);
        }
        Err(failure) => return Err(failure),
    }
    Ok(*failures == 0)
}

/// Whether the history may have changed since it was last read, at the version and time in `seen`. Returns true if the
/// version is different, or if the time [`AGAIN`] has passed. The time matters because some states change only because
/// time passes.
fn has_changed(history: &History, seen: &mut Option<(i64, Instant)>) -> bool {
    let version = history.data_version().ok();
    let is_same = |(known, at): (i64, Instant)| Some(known) == version && at.elapsed() < AGAIN;
    if seen.is_some_and(is_same) {
        return false;
    }
    *seen = version.map(|version| (version, Instant::now()));
    true
}

/// The main loop of the watcher, which finds backups and reports results.
struct Watcher<'a> {
    arguments: &'a WatchArguments,
    history: History,
    checker: &'a Checker<'a>,
    holder: &'a Holder,
    shared: &'a Shared,
    format: WatchFormat,
    /// Problems that were reported already.
    warned: BTreeSet<String>,
    /// Backups whose failed checks were reported. Each entry has the ID of the backup and the number of failed
    /// attempts.
    said: HashSet<(i64, u32)>,
    /// IDs of the backups for which a line was printed.
    printed: HashSet<i64>,
    counts: Counts,
    status: u8,
    /// The version of the history when the watcher last read it, and the time of this reading.
    seen: Option<(i64, Instant)>,
    /// For each file, by path, the time when its fingerprint was last compared.
    compared: HashMap<String, Instant>,
}

impl Watcher<'_> {
    /// Looks for backups repeatedly, until a signal arrives.
    fn serve(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<(), Failure> {
        let mut failures = 0;
        while !is_stopped() {
            let looked = Instant::now();
            let done = self.look().and_then(|_| self.report(true));
            let mut has_worked = bear(done, &mut failures)?;
            while looked.elapsed() < self.arguments.every && !is_stopped() {
                thread::sleep(TICK);
                if has_worked && self.has_news() {
                    has_worked = bear(self.report(false), &mut failures)?;
                }
            }
        }
        Ok(())
    }

    /// Looks for backups once, and waits until all are checked.
    fn once(&mut self, workers: &[thread::ScopedJoinHandle<'_, ()>]) -> Result<(), Failure> {
        let is_stopped = windows::signals::is_raised;
        // If files have not settled yet, waits and looks a second time.
        if let Some(left) = self.look()? {
            let begun = Instant::now();
            while begun.elapsed() < left && !is_stopped() {
                thread::sleep(TICK);
                if self.has_news() {
                    self.report(false)?;
                }
            }
            self.look()?;
        }
        self.shared.closing.store(true, Ordering::Relaxed);
        while workers.iter().any(|worker| !worker.is_finished()) && !is_stopped() {
            thread::sleep(TICK);
            if self.has_news() {
                self.report(false)?;
            }
        }
        // If the result of a backup could not be recorded, the backup becomes ready again.
        self.reclaim().map_err(|error| Failure::from(&error))?;
        self.report(true)
    }

    /// Lists the files, and adds their backups to the queue. Returns the time until all files count as complete because
    /// they have not changed for the settle time. Returns `None` if all files count as complete already.
    fn look(&mut self) -> Result<Option<Duration>, Failure> {
        let failed = |error: history::HistoryError| Failure::from(&error);
        self.reclaim().map_err(failed)?;
        let mut listed = find::list(&self.arguments.paths, &own(self.arguments));
        let mut all: Vec<_> = listed.files.values().cloned().collect();
        all.extend(listed.data_files.iter().cloned());
        self.shared.roots.write().unwrap_or_else(PoisonError::into_inner).clone_from(&listed.roots);
        let is_all = listed.problems.is_empty();
        let is_listed = |path: &str| is_all && listed.roots.has(path);
        let now = milliseconds();
        let states = self.history.see(&all, now, &is_listed).map_err(failed)?;
        let (mut files, mut data_files) = {
            let mut states = states;
            let data_files = states.split_off(listed.files.len());
            (states, data_files)
        };
        let settle = self.arguments.settle;
        for state in files.iter_mut().filter(|state| state.labels.is_none() && ready::is_settled(state, settle, now)) {
            if let Err(cause) = self.read_labels(state) {
                listed.problems.push(format!("{}: cannot be read: {cause}", state.seen.path));
            }
        }
        let compared = files.iter_mut().filter(|state| state.labels.as_deref().is_some_and(labels::may_be_backup));
        for state in compared.chain(&mut data_files).filter(|state| ready::is_settled(state, settle, now)) {
            self.compare(state, now)?;
        }
        self.compared
            .retain(|path, _| listed.files.contains_key(path) || data_files.iter().any(|file| file.seen.path == *path));
        let mut found = ready::found(&files, settle, now);
        found.extend(ready::data(&listed.data, &data_files, settle, now));
        // Makes the state of a file for the queue. Data files have no labels, so their content counts as known even if
        // no labels were read.
        let looked = |state: &FileState, has_labels: bool| {
            let is_known = has_labels && ready::is_settled(state, settle, now);
            (
                state.seen.path.clone(),
                Looked { seen: state.seen.clone(), is_known, fingerprint: state.fingerprint.clone() },
            )
        };
        let mut known: HashMap<String, Looked> = data_files.iter().map(|state| looked(state, true)).collect();
        known.extend(files.iter().map(|state| looked(state, state.labels.is_some())));
        let has_read_all = listed.problems.is_empty();
        let is_gone = |path: &str| has_read_all && listed.roots.has(path);
        self.history.enqueue(&found, &known, &is_gone).map_err(failed)?;
        self.checker.tidy(&self.history).map_err(failed)?;
        let has_problems = !listed.problems.is_empty();
        let problems: BTreeSet<String> = listed.problems.into_iter().chain(listed.warnings).collect();
        problems.difference(&self.warned).for_each(warn);
        self.warned = problems;
        if has_problems || listed.is_unable {
            self.status |= Failure::UNABLE;
        }
        let unsettled = files.iter().chain(&data_files).filter(|state| !ready::is_settled(state, settle, now));
        let since = unsettled.map(|state| state.since).max();
        let passed =
            |since: i64| Duration::from_millis(u64::try_from(milliseconds().saturating_sub(since)).unwrap_or_default());
        Ok(since.map(|since| settle.saturating_sub(passed(since))))
    }

    /// If the check of a backup has ended without a result, makes the backup ready again.
    fn reclaim(&mut self) -> history::Result<usize> {
        let working = self.shared.working();
        self.history.reclaim(self.holder, &working)
    }

    /// Whether the watcher has results to report. This test costs almost nothing while the history does not change.
    fn has_news(&mut self) -> bool {
        if !has_changed(&self.history, &mut self.seen) {
            return false;
        }
        let is_own = |items: Vec<Item>| items.iter().any(|item| self.shared.is_own(item));
        self.history.has_unreported().unwrap_or(false) && self.history.unreported("", "").is_ok_and(is_own)
    }

    /// Reads the labels of a file, and stores them in the history. If the file changes while its labels are read, they
    /// are read again after the file has been unchanged for the settle time.
    fn read_labels(&mut self, state: &mut FileState) -> io::Result<()> {
        let path = Path::new(&state.seen.path);
        let labels = labels::read(path)?;
        if find::seen(path)?.as_ref() != Some(&state.seen) {
            return Ok(());
        }
        let text = serde_json::to_string(&labels)?;
        self.history.keep_labels(&state.seen, &text).map_err(io::Error::other)?;
        state.labels = Some(text);
        Ok(())
    }

    /// Compares the fingerprint of a file with the stored fingerprint, since a program may have written to the file and
    /// reset its times. A watcher that runs as a service compares each file at most once per [`COMPARED`]. If a file
    /// cannot be read now, this function reports nothing, since the check of the file will report the problem.
    fn compare(&mut self, state: &mut FileState, now: i64) -> Result<(), Failure> {
        let path = Path::new(&state.seen.path);
        let is_recent = self.compared.get(&state.seen.path).is_some_and(|at| at.elapsed() < COMPARED);
        if is_recent && state.fingerprint.is_some() {
            return Ok(());
        }
        let Ok(Some(fingerprint)) = fingerprint::of(path) else { return Ok(()) };
        self.compared.insert(state.seen.path.clone(), Instant::now());
        if !find::seen(path).is_ok_and(|now| now.as_ref() == Some(&state.seen)) {
            return Ok(());
        }
        if state.fingerprint.as_ref() == Some(&fingerprint) {
            return Ok(());
        }
        self.history.keep_fingerprint(state, &fingerprint, now).map_err(|error| Failure::from(&error))
    }

    /// Reports the checks that have ended, and writes the HTML page and the metrics. If `is_whole`, also reports
    /// backups that are waiting, and databases for which the promise of `--max-age` or `--within` is broken.
    fn report(&mut self, is_whole: bool) -> Result<(), Failure> {
        let failed = |error: history::HistoryError| Failure::from(&error);
        self.note_unable();
        let ago = |span: Duration| {
            let now = SystemTime::now();
            history::time::text(now.checked_sub(span).unwrap_or(UNIX_EPOCH))
        };
        let patience = ago(self.arguments.patience);
        // A scheduler may run the watcher with `--once`. Each of these runs repeats all reports. A watcher that runs as
        // a service repeats a report once per `patience`.
        let reminded = if self.arguments.once { ALWAYS.to_owned() } else { patience.clone() };
        let (patience, reminded) = if is_whole { (patience.as_str(), reminded.as_str()) } else { ("", "") };
        let reported = self.history.unreported(patience, reminded);
        let mut reported = reported.map_err(failed)?;
        reported.retain(|item| self.shared.is_own(item));
        if self.arguments.once {
            // Removes failures that this run has already reported when they happened.
            reported.retain(|item| item.state != "ready" || self.said.insert((item.id, item.tries)));
        }
        let format = self.format;
        output::print(|out| reported.iter().try_for_each(|item| lines::write(item, Status::of(item), format, out)))?;
        self.history.reported(&reported, self.arguments.listener.on_event.is_some()).map_err(failed)?;
        for item in &reported {
            let status = Status::of(item);
            self.counts.add(status);
            self.status |= match (status, item.state.as_str()) {
                (Status::Corrupt, _) => Failure::CORRUPT,
                (Status::Unknown, "ready" | "skipped") => Failure::UNABLE,
                (Status::Unknown, _) if self.arguments.exit_zero_on_incomplete => 0,
                (Status::Unknown, _) => Failure::INCOMPLETE,
                (Status::Sound | Status::Skipped | Status::Waiting, _) => 0,
            };
            self.printed.insert(item.id);
        }
        if is_whole {
            self.alarms()?;
        }
        if let Some(path) = &self.arguments.html
            && let Err(failure) = show::write_page("--html", path, (&self.history, &Filter::default()))
        {
            warn(failure.text);
            self.status |= Failure::UNABLE;
        }
        if let Some(path) = &self.arguments.metrics
            && let Err(cause) = metrics::write(path, &self.history, self.status)
        {
            warn(format!("{}: metrics cannot be written: {cause}", path.display()));
            self.status |= Failure::UNABLE;
        }
        Ok(())
    }

    /// If a worker could not use the history, sets the bit `Failure::UNABLE` of the exit status.
    fn note_unable(&mut self) {
        if self.shared.is_unable.load(Ordering::Relaxed) {
            self.status |= Failure::UNABLE;
        }
    }

    /// Reports each database for which the promise of `--max-age` (a recent backup) or `--within` (a recent check) is
    /// broken.
    fn alarms(&mut self) -> Result<(), Failure> {
        let failed = |error: history::HistoryError| Failure::from(&error);
        let mut all = Vec::new();
        if let Some(most) = self.arguments.max_age {
            let raised = self.history.families_without_backup(most, self.arguments.naming.replicas).map_err(failed)?;
            all.push((Event::BackupMissing, most, raised));
        }
        if let Some(within) = self.arguments.within {
            let coverage = self.history.coverage(&Filter::default(), Some(within)).map_err(failed)?;
            let broken = coverage.iter().filter(|one| !one.is_kept()).map(|one| Raised {
                family: one.family.clone(),
                server: one.server.clone(),
                name: one.database.clone(),
                text: "not every page was read, or not every index and heap verified, within the promised time"
                    .to_owned(),
            });
            all.push((Event::PromiseBroken, within, broken.collect()));
        }
        for (event, span, raised) in all {
            let promise = Promise { broken: event, judge: Judge::Watch, span };
            let has_listener = self.arguments.listener.on_event.is_some();
            let new = self.history.raise(&promise, &raised, None, has_listener).map_err(failed)?;
            let shown = |one: &&Raised| self.arguments.once || new.contains(&one.key());
            let format = self.format;
            output::print(|out| {
                raised.iter().filter(shown).try_for_each(|one| lines::write_alarm(event, one, format, out))
            })?;
            if !raised.is_empty() {
                self.status |= Failure::INCOMPLETE;
            }
        }
        Ok(())
    }

    /// Prints the backups that are still incomplete, and the last line. Returns the exit status.
    fn end(&mut self, arguments: &WatchArguments) -> Result<u8, Failure> {
        let failed = |error: history::HistoryError| Failure::from(&error);
        self.note_unable();
        let mut queued = self.history.queued().map_err(failed)?;
        queued.retain(|item| self.shared.is_own(item));
        self.counts.ready = queued.iter().filter(|item| item.state == "ready").count() as u64;
        queued.retain(|item| item.state == "waiting");
        self.counts.waiting = queued.len() as u64;
        // Removes backups for which a line was already printed.
        queued.retain(|item| !self.printed.contains(&item.id));
        output::print(|out| {
            queued.iter().try_for_each(|item| lines::write(item, Status::Waiting, self.format, out))?;
            lines::write_counts(self.counts, self.status, self.format, out)
        })?;
        if let Some(path) = &arguments.metrics {
            let _ = metrics::write(path, &self.history, self.status);
        }
        Ok(self.status)
    }
}
