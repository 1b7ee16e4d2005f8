//! Checks one backup that is ready.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use history::queue::{Claim, Item, Kind, Verdict};
use history::{FailedRun, History};
use jobs::failure::Failure;
use jobs::request::{ProgressKind, Request, Watch};
use jobs::spread::Spread;
use jobs::spread::What;
use jobs::{keep, ledgers};
use log::{EndReason, Log, Walk};
use parts::MOST_ROUNDS;
use report::log::lsn_text;
use source::backup::{self, BackupLog, ChainSet, SetChoice, Until};

use super::engine::{self, Engine};
use super::find;
use super::mark::{self, Mark};
use super::work::Shared;
use crate::cli::WatchArguments;
use crate::many::side_by_side;
use crate::one::{self, Out};
use crate::parted::HandedOut;
use crate::speaker::{About, speaking_of, warn};

/// The most files of a restore that a watcher opens to prove a log backup.
const MOST_FILES: usize = 1000;

/// The options and limits that apply to all checks of a watcher.
pub(super) struct Checker<'a> {
    watch: &'a WatchArguments,
    /// The options of a check that may use the resources of all checks together.
    whole: Request,
    /// The options of a check that may use only its share of the resources.
    share: Request,
    /// A check that needs all the memory of the watcher holds the write lock while it runs.
    alone: RwLock<()>,
    /// The program that runs the checks of large backups.
    engine: Option<Engine<'a>>,
    shared: &'a Shared,
}

impl<'a> Checker<'a> {
    pub(super) fn new(watch: &'a WatchArguments, engine: Option<Engine<'a>>, shared: &'a Shared) -> Self {
        let mut whole = Request::of_paths(Vec::new());
        whole.run.maxdop = watch.maxdop;
        whole.run.io_limit = watch.io_limit;
        whole.run.progress = ProgressKind::None;
        (whole.keep_parts, whole.reread) = (watch.keep_parts, watch.reread);
        whole.recovery.room.memory = watch.memory;
        whole.recovery.room.temp_dir.clone_from(&watch.temp_dir);
        whole.results.history = Some(watch.history.clone());
        whole.results.listener = (&watch.listener).into();
        whole.results.naming = (&watch.naming).into();
        whole.results.allow.clone_from(&watch.allow);
        let several = Request { databases: watch.jobs, ..whole.clone() };
        let share = side_by_side::share(&several, usize::from(watch.jobs));
        Self { watch, share, whole, alone: RwLock::default(), engine, shared }
    }

    /// Deletes the plans of backups that are no longer in the queue.
    pub(super) fn tidy(&self, history: &History) -> history::Result<()> {
        self.engine.as_ref().map_or(Ok(()), |engine| engine.tidy(history))
    }

    /// Checks a backup. When this function returns, the history has the result, or the reason why there is no result.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub(super) fn check(&self, history: &mut History, item: &Item, claim: &Claim) -> history::Result<()> {
        let paths: Vec<PathBuf> = item.found.paths.iter().map(PathBuf::from).collect();
        let base: Vec<PathBuf> = item.found.base.iter().map(PathBuf::from).collect();
        let mut files = Vec::new();
        for path in paths.iter().chain(&base) {
            match find::seen(path) {
                Ok(Some(seen)) => files.push(seen),
                // The file does not exist any more. If it was renamed, the watcher finds it under its new name the next
                // time that it lists the files.
                Ok(None) if paths.contains(path) => return history.is_gone(claim),
                Ok(None) => return history.give_back(claim, "waits for the full backup that it is based on"),
                Err(cause) => {
                    return self.failed(history, item, claim, &Failure::unable(format!("{}: {cause}", path.display())));
                }
            }
        }
        // If the files have changed, they no longer contain the backup that the queue lists, so this check ends. The
        // watcher finds the new content of the files the next time that it lists them.
        if !item.is_as_found(files.get(..paths.len()).unwrap_or_default()) {
            return history.give_back(claim, "its files have changed since they were found");
        }
        let has_no_checksums = self.watch.require_checksum && !item.found.has_checksums;
        let doubt = has_no_checksums.then(|| "taken without WITH CHECKSUM (--require-checksum)".to_owned());
        let mark = Arc::new(Mark {
            claim: claim.clone(),
            doubt,
            fingerprints: mark::fingerprints(&files),
            files,
            settle: self.watch.settle,
            has_changed: AtomicBool::new(false),
        });
        let about = About { name: item.found.name.clone(), path: paths.first().cloned().unwrap_or_default() };
        let work = || match item.found.kind {
            Kind::Log => self.log(history, item, &mark),
            _ => self.pages(history, item, (&paths, &base), &mark),
        };
        let ended = speaking_of(about, || panic::catch_unwind(AssertUnwindSafe(work)));
        let failed = match ended {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some(Failure::unable("the check ended unexpectedly; see the preceding lines")),
        };
        // If the watcher is ending, it releases its claims, so no result is recorded.
        if self.shared.is_stopped() {
            return Ok(());
        }
        if mark.has_changed.load(Ordering::Relaxed) {
            return history.give_back(claim, "its files changed while they were read");
        }
        // If this process still has a claim on the backup, neither a result nor a failure was recorded.
        match failed {
            Some(failure) => self.failed(history, item, claim, &failure),
            None if history.is_claimed(claim)? => {
                self.failed(history, item, claim, &Failure::unable("its run could not be recorded"))
            }
            None => Ok(()),
        }
    }

    /// Checks a backup that contains pages: a full, differential or file backup, or data files.
    fn pages(
        &self,
        history: &mut History,
        item: &Item,
        (paths, base): (&[PathBuf], &[PathBuf]),
        mark: &Arc<Mark>,
    ) -> Result<(), Failure> {
        let (choice, sets) = match item.found.kind {
            Kind::Data => (SetChoice::Newest, None),
            _ => match restore(item, paths, base)? {
                Ok(sets) => (SetChoice::All, Some(sets)),
                Err(refused) => return self.finish(history, mark, Verdict::Unknown, &refused),
            },
        };
        let mut named = paths.to_vec();
        named.extend(base.iter().cloned());
        let what = What { named: &named, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
        let bytes = mark.files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size));
        let engine = self.engine.as_ref().filter(|engine| engine.takes(bytes));
        let by_engine =
            engine.map_or(Ok(false), |engine| self.by_engine(engine, history, (item, mark), (&what, bytes)));
        let here = || {
            self.within_share(mark, &what, |arguments| {
                let (mut sink, mut unwritten) = (io::sink(), None);
                one::check(arguments, &what, |_| Ok(Out::Among(&mut sink, &mut unwritten))).map(drop)
            })
        };
        let done = by_engine.and_then(|is_done| if is_done { Ok(()) } else { here() });
        // If this process has no claim on the backup any more, the check has already recorded its failure.
        done.or_else(|failure| if history.is_claimed(&mark.claim).unwrap_or(true) { Err(failure) } else { Ok(()) })
    }

    /// Runs the tasks of a check with the program that the user has named. Returns false if the check has no tasks, or if a
    /// ledger does not have what the tasks have left out any more; then this process must run the check.
    fn by_engine(
        &self,
        engine: &Engine<'_>,
        history: &History,
        (item, mark): (&Item, &Arc<Mark>),
        (what, bytes): (&What<'_>, u64),
    ) -> Result<bool, Failure> {
        let folder = engine.plan_of(item.id);
        let make = |arguments: &Request| HandedOut::make(&folder, arguments, what, engine::task_bytes(bytes));
        let Some(plan) = self.within_share(mark, what, make)? else { return Ok(false) };
        for _ in 0..=MOST_ROUNDS {
            let said = if plan.has_all()? { None } else { engine.call(&folder, self.shared)? };
            if self.shared.is_stopped() {
                return Ok(true);
            }
            let merge = |arguments: &Request| plan.merge(arguments, what, engine::local_limit(bytes));
            // Merges the parts even if the program reported a failure, since only the parts count.
            match self.within_share(mark, what, merge) {
                Ok(true) => {
                    // Keeps the plan if the history still shows the backup as running. Either the run could not be
                    // recorded, so that the plan will be needed again, or another process has claimed the backup and is
                    // using the plan.
                    let is_running = |one: &Item| one.id == item.id && one.state == "running";
                    if history.queued().is_ok_and(|all| !all.iter().any(is_running)) {
                        plan.remove();
                    }
                    return Ok(true);
                }
                Ok(false) => {}
                // A ledger that cannot be used any more does not concern this process: it checks the backup itself.
                Err(failure) if !failure.needs_memory && plan.uses_ledger() && plan.has_all().unwrap_or(false) => {
                    plan.remove();
                    return Ok(false);
                }
                Err(failure) => {
                    // If a second or later attempt fails although all parts exist, deletes the plan, so that the next
                    // attempt makes a new plan.
                    if item.tries > 0 && !failure.needs_memory && plan.has_all().unwrap_or(false) {
                        plan.remove();
                    }
                    let text = said.map(|said| format!("{said}; {}", failure.text)).unwrap_or(failure.text);
                    return Err(Failure { text, ..failure });
                }
            }
        }
        Err(Failure::unable(format!("{}: the plan needs too many rounds of tasks", folder.display())))
    }

    /// Calls `run` with the share of the resources that one check may use. If the memory of this share is too small,
    /// waits until no other check runs, and calls `run` again with the resources of all checks. With `--jobs 1`, the
    /// share already includes all resources.
    fn within_share<T>(
        &self,
        mark: &Arc<Mark>,
        what: &What<'_>,
        run: impl Fn(&Request) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let run = |arguments: &Request| {
            let mut arguments = arguments.of(what.named.to_vec());
            arguments.results.watched = Some(Arc::clone(mark) as Arc<dyn Watch>);
            run(&arguments)
        };
        let shared = {
            let _others = self.alone.read().unwrap_or_else(PoisonError::into_inner);
            run(&self.share)
        };
        match shared {
            Err(failure) if failure.needs_memory && self.watch.jobs > 1 => {
                let _alone = self.alone.write().unwrap_or_else(PoisonError::into_inner);
                run(&self.whole)
            }
            done => done,
        }
    }

    /// Checks a log backup by reading all its blocks.
    fn log(&self, history: &mut History, item: &Item, mark: &Arc<Mark>) -> Result<(), Failure> {
        let paths: Vec<PathBuf> = item.found.paths.iter().map(PathBuf::from).collect();
        let backups = BackupLog::open(&paths, &[item.found.position])?;
        if let Some(failed) = backups.read_faults().failed.first() {
            return Err(Failure::unable(failed.text()));
        }
        let unplaced = backups.unusable_parts();
        let bulk = backups.sets().iter().any(|set| set.has_bulk_extents);
        let bulk = bulk.then(|| "it has extents that a bulk operation wrote, which cannot be read".to_owned());
        let log = Log::of_backups(backups)?;
        let mut walk = Walk::new(&log);
        while walk.next_block()?.is_some() {}
        let damaged = walk
            .end()
            .filter(|end| matches!(end.reason, EndReason::Damaged { .. }))
            .map(|end| format!("its log cannot be read after {}", lsn_text(end.lsn())));
        // A log backup in which a part of the log is missing is not sound.
        let gap = log.gaps().first();
        let gap = gap.map(|gap| format!("log is missing between {} and {}", lsn_text(gap.from), lsn_text(gap.to)));
        let unplaced = (unplaced > 0).then(|| format!("{unplaced} parts of its log cannot be put in order"));
        let short = walk.end().zip(log.ends_at()).filter(|(end, ends_at)| !end.reaches(*ends_at));
        let short = short.map(|(_, ends_at)| format!("its log ends before {}", lsn_text(ends_at)));
        let lost =
            (walk.lost_bytes() > 0).then(|| format!("{} bytes of log before its first block", walk.lost_bytes()));
        let labels = item.found.is_damaged.then(|| "its labels are damaged".to_owned());
        if !mark.stands(false) {
            return Ok(());
        }
        match damaged.or(gap).or(unplaced).or(short).or(lost).or(labels).or(bulk).or_else(|| mark.doubt.clone()) {
            Some(doubt) => self.finish(history, mark, Verdict::Unknown, &doubt),
            None if self.is_proven(history, item, mark)? => Ok(()),
            None => self.finish(history, mark, Verdict::Sound, ""),
        }
    }

    /// Proves the state of the database at the end of a log backup, if a ledger of its full backup exists: only what has
    /// changed is read. Returns whether the check has recorded its result. If the state cannot be proven in this way,
    /// only the blocks of the log backup count, as without a ledger.
    fn is_proven(&self, history: &History, item: &Item, mark: &Arc<Mark>) -> Result<bool, Failure> {
        let Some(paths) = self.restored_by(history, item)? else { return Ok(false) };
        let mut media = Vec::new();
        for path in &paths {
            // A file that is gone or cannot be read is no fault of this log backup.
            let Ok(read) = backup::media(path) else { return Ok(false) };
            media.push(read);
        }
        let plans = backup::plan(&media, &SetChoice::Newest, Until::End, &|_: &Path| false);
        let is_last = |sets: &Vec<ChainSet>| sets.last().is_some_and(|last| last.set.guid == item.found.set_guid);
        let Some(sets) = plans.into_iter().flat_map(|plan| plan.restores).find(is_last) else { return Ok(false) };
        let choice = SetChoice::All;
        let what = What { named: &paths, choice: &choice, sets: Some(&sets), place: None, spread: Spread::None };
        let why = Arc::new(Mutex::new(None));
        let done = self.within_share(mark, &what, |arguments| {
            let (mut sink, mut unwritten) = (io::sink(), None);
            let arguments = Request { only_by_change: Some(Arc::clone(&why)), ..arguments.clone() };
            one::check(&arguments, &what, |_| Ok(Out::Among(&mut sink, &mut unwritten))).map(drop)
        });
        let why = why.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (done, why) {
            (Ok(()), _) => Ok(true),
            (Err(_), Some(why)) => {
                warn(format!("only the blocks of this log backup were read: {why}"));
                Ok(false)
            }
            (Err(failure), None) => Err(failure),
        }
    }

    /// The files of the newest full backup with a ledger, of its newest differential backup, and of the log backups up
    /// to this one. `None` if there is no such full backup.
    fn restored_by(&self, history: &History, item: &Item) -> Result<Option<Vec<PathBuf>>, Failure> {
        if self.watch.keep_parts.is_none() {
            return Ok(None);
        }
        let all = history.backups().map_err(|error| Failure::from(&error))?;
        let replicas = self.watch.naming.replicas;
        let is_before = |one: &&Item| {
            one.database(replicas) == item.database(replicas)
                && !one.is_lost()
                && (one.id == item.id || one.found.taken_at <= item.found.taken_at)
        };
        let before: Vec<&Item> = all.iter().filter(is_before).collect();
        let has_ledger = |one: &Item| {
            let set = one.found.set_guid.as_deref();
            set.is_some_and(|set| ledgers::has_ledger(&self.watch.history, set))
        };
        let full = before.iter().rev().find(|one| one.found.kind == Kind::Full && has_ledger(one));
        let Some(full) = full else { return Ok(None) };
        let is_on_it = |one: &&&Item| one.found.kind == Kind::Differential && one.found.base == full.found.paths;
        let differential = before.iter().rev().find(is_on_it);
        let from = differential.unwrap_or(full);
        let logs = before.iter().filter(|one| one.found.kind == Kind::Log && one.found.taken_at >= from.found.taken_at);
        let sets = std::iter::once(full).chain(differential).chain(logs);
        let mut paths: Vec<PathBuf> = sets.flat_map(|set| &set.found.paths).map(PathBuf::from).collect();
        paths.sort();
        paths.dedup();
        Ok(Some(paths).filter(|paths| paths.len() <= MOST_FILES))
    }

    fn failed(&self, history: &mut History, item: &Item, claim: &Claim, failure: &Failure) -> history::Result<()> {
        warn(&failure.text);
        self.note_failure(history, item, claim, failure)
    }

    /// Records that a backup could not be checked.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub(super) fn note_failure(
        &self,
        history: &mut History,
        item: &Item,
        claim: &Claim,
        failure: &Failure,
    ) -> history::Result<()> {
        let paths: Vec<PathBuf> = item.found.paths.iter().map(PathBuf::from).collect();
        let host = keep::host();
        let started = SystemTime::now();
        history.record_failure(&FailedRun {
            paths: &paths,
            host: &host,
            started,
            exit_status: failure.status,
            error: &failure.text,
            watched: Some(claim),
            has_listener: self.whole.results.listener.is_there(),
        })
    }

    fn finish(&self, history: &mut History, mark: &Mark, verdict: Verdict, message: &str) -> Result<(), Failure> {
        let has_listener = self.whole.results.listener.is_there();
        history.finish(&mark.claim, verdict, message, has_listener).map_err(|error| Failure::from(&error))
    }
}

/// The backup sets that must be restored to check this backup. The inner error is the reason why these sets can never
/// be restored.
fn restore(item: &Item, paths: &[PathBuf], base: &[PathBuf]) -> Result<Result<Vec<ChainSet>, String>, Failure> {
    let mut media = Vec::new();
    for path in base.iter().chain(paths) {
        let read = backup::media(path)?;
        if let Some(failed) = read.read_faults.failed.first()
            && (read.sets.is_empty() || !read.damage.is_empty())
        {
            return Err(Failure::unable(failed.text()));
        }
        media.push(read);
    }
    let plans = backup::plan(&media, &SetChoice::All, Until::End, &|_: &Path| false);
    let is_it = |sets: &Vec<ChainSet>| {
        sets.last().is_some_and(|last| {
            last.set.position == item.found.position
                && last.set.guid == item.found.set_guid
                && last.paths.iter().all(|path| paths.contains(path))
        })
    };
    let mut refused = None;
    for plan in plans {
        if let Some(sets) = plan.restores.into_iter().find(is_it) {
            return Ok(Ok(sets));
        }
        let concerns = |(path, _): &&(PathBuf, source::OpenError)| paths.contains(path);
        refused = refused.or(plan.refused.iter().find(concerns).map(|(_, error)| error.to_string()));
    }
    Ok(Err(refused.unwrap_or_else(|| "no restore uses this backup set alone".to_owned())))
}
