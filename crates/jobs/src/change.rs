//! Proof by change: a check of backups keeps the sums of small ranges of pages in a ledger beside the history, and checks
//! of later states that build on the same full backup sweep only the ranges that have changed.

mod planned;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::SystemTime;

use check::Progress;
use check::change::{NotByChange, Reuse, read_seen, run_by_change, write_seen};
use check::part::digest;
use findings::{ByChange, Change, Options, Report, Scope};
use format::page::PAGE_BYTES;
use parts::{KeptRun, Ledger, LedgerContent, PartsError};
use report::history::LedgerRow;
use source::backup::{FileSeen, Hints, SetKind, UsedSet};
use source::{BackupPages, PageSource, SinceBase, storage};

use crate::failure::Failure;
use crate::host::warn;
use crate::input::Input;
use crate::judge::check_pages;
use crate::ledgers::{ledgers, path_in_scope, path_of, redo_beside, remove_oldest, scope_name};
use crate::prepare::{Prepared, open, prepare};
use crate::request::Request;
use crate::size;
use crate::spread::evidence::FileIdentity;
use crate::spread::ledger::Base;
use crate::spread::{Before, Spread, What};
use crate::throttle::throttled;
use crate::version::BUILD;
pub(crate) use snapshot::{NoLedger, Snapshot};

pub use planned::ForPlan;

/// The number of pages in a range whose sums are kept apart: 256 KB. Smaller ranges need a larger ledger, larger ranges
/// are changed more often.
const RANGE_PAGES: u32 = 32;
/// The most bytes of what opening has found that are used if no memory was granted: enough for 8 TB.
const MOST_HINT_BYTES: u64 = 1 << 30;
/// A ledger is written anew without the parts that later parts have replaced if it has this many times the parts that the
/// database has ranges.
const MOST_KEPT: u64 = 3;

/// The identities of the files before they are opened, if the check may use or make a ledger.
pub fn before(request: &Request, what: &What<'_>) -> Option<Before> {
    let history = request.results.history.as_deref()?;
    if what.spread.opened().is_some_and(|opened| opened.plan.options.ledger.is_some()) {
        return Some(Before::of(request, what));
    }
    let is_divided = !matches!(what.spread, Spread::None) || request.windows.window.is_some();
    let is_asked = request.keep_parts.is_some() || !ledgers(history).is_empty();
    (is_asked && !is_divided && !request.estimate_only).then(|| Before::of(request, what))
}

/// What the check of the full backup has found when it opened the files, if some ledger has it and if the files are the
/// same. If nothing else is given, it is opened as if it were new, so that a second check of it finds what went bad since.
pub fn hints(request: &Request, what: &What<'_>, before: Option<&Before>) -> Hints {
    let (Some(history), Some(before)) = (request.results.history.as_deref(), before) else { return Hints::default() };
    // Such a check reads all pages, so it opens the files as if they were new.
    let scope = &request.scope;
    if scope.physical_only || scope.constraints.is_some() || scope.identity || request.batches > 1 {
        return Hints::default();
    }
    let of_sets = what.sets.into_iter().flatten().flat_map(|set| &set.paths);
    let named = request.paths.iter().chain(of_sets).map(PathBuf::as_path);
    let objects: BTreeSet<&Path> = named.filter(|path| storage::url(path).is_some()).collect();
    let most_bytes = most_hint_bytes(request);
    let of_ledger = |(_, path, _): (SystemTime, PathBuf, u64)| {
        // An object is asked for its identity only if it is one of those that are opened.
        let is_given = |path: &Path| storage::url(path).is_none() || objects.contains(&path);
        let is_same = |file: &FileIdentity| is_given(file.path()) && before.of_path(file.path()).as_ref() == Some(file);
        let has_more = |base: &Base| before.files() + objects.len() > base.files.len();
        let is_wanted = |base: &Base| has_more(base) && base.files.iter().all(is_same);
        Hints::read(&Ledger::<Base>::opened(&path, &BUILD, most_bytes, is_wanted)?)
    };
    ledgers(history).into_iter().find_map(of_ledger).unwrap_or_default()
}

/// The most bytes of what opening has found that are kept or used.
fn most_hint_bytes(request: &Request) -> u64 {
    request.recovery.room.memory.map_or(MOST_HINT_BYTES, |granted| granted / 8)
}

/// Checks the pages of a database. If `before` is given, uses or makes a ledger where that is possible; the report says
/// so.
///
/// # Errors
/// If the database cannot be checked.
pub fn check(
    request: &Request,
    what: &What<'_>,
    (input, before): (&Input, Option<&Before>),
    (source, prepared): (&dyn PageSource, &Prepared<'_>),
    (listener, started): (&dyn Progress, SystemTime),
) -> Result<Report, Failure> {
    if let Spread::Merge(merge) = what.spread
        && let Some(planned) = &merge.opened.plan.options.ledger
    {
        let opened = (input, before.zip(request.results.history.as_deref()));
        return planned::merge(request, (merge, planned), opened, (source, prepared), listener);
    }
    // A whole check opens the files without hints, because opening finds damage too. It also applies all of the log.
    let whole = || match input {
        Input::Backups(backups) if backups.pages.is_hinted() || prepared.recovered.is_resumed => {
            let input = open(request, what, listener)?;
            let prepared = prepare(request, &input, listener, what)?;
            check_pages(request, what, prepared.recovered.pages_or(input.pages()), &prepared, listener)
        }
        _ => check_pages(request, what, source, prepared, listener),
    };
    // A watcher proves a log backup by change, or reads only its blocks.
    let refused = |why: &str| {
        let reason = request.only_by_change.as_ref()?;
        *reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
        Some(Failure::quiet())
    };
    let (Some(history), Some(before)) = (&request.results.history, before) else {
        return refused("there is no history").map_or_else(whole, Err);
    };
    let Input::Backups(backups) = input else {
        // Without a window, nothing must be left for later.
        let why = "--keep-parts keeps the sums of data files only with --window".to_owned();
        let why = request.keep_parts.map(|_| Change::Whole(why));
        return Ok(Report { change: why, ..whole()? });
    };
    let why = match Opened::of(request, (history, before), &backups.pages) {
        Ok(None) => return refused("there is no ledger of the full backup").map_or_else(whole, Err),
        Ok(Some(opened)) => match opened.check(request, (source, prepared), (listener, started)) {
            Ok(report) => return Ok(report),
            Err(why) => why,
        },
        Err(why) => why,
    };
    if let Some(failure) = refused(&why) {
        return Err(failure);
    }
    // What an attempt has noted about the container is of no use to a whole check.
    backups.pages.forget_seen();
    Ok(Report { change: Some(Change::Whole(why)), ..whole()? })
}

/// Which ledger a check of these backups uses or makes: its path, its base, and whether it is made. `None` if there is
/// none, and none was asked for. An error says why there can be none.
fn wanted(
    request: &Request,
    (history, before): (&Path, &Before),
    pages: &BackupPages,
) -> Result<Option<(PathBuf, Base, bool)>, String> {
    let asked = request.keep_parts;
    let full = pages.sets().first().filter(|set| set.kind == SetKind::Full);
    let Some((full, guid)) = full.and_then(|set| Some((set, set.guid.clone()?))) else {
        return asked
            .map_or(Ok(None), |_| Err("the backups do not begin with a full backup that has an ID".to_owned()));
    };
    let path = path_of(history, &guid);
    if request.only_by_change.is_some() && !path.exists() {
        return Ok(None);
    }
    let is_alone = pages.sets().len() == 1;
    // A full backup alone is always read whole, so that a second check of it finds pages that went bad since.
    let is_used = !is_alone && path.exists();
    if !is_used && asked.is_none() {
        return Ok(None);
    }
    Ok(Some((path, Base::of(full, before, (&guid, pages), (asked, &Scope::Database))?, !is_used)))
}

/// What was read of the container of the first set, what opening it has found, and what was read of the container of the
/// later sets.
type OfContainer<'a> = (Option<&'a [u8]>, Option<Vec<u8>>, Vec<u8>);

/// A ledger for the backups or the data files that are checked.
pub(crate) struct Opened<'a> {
    pub(crate) ledger: Ledger<Base>,
    is_new: bool,
    /// The files of the differential backup, as they were before they were opened.
    later: Vec<FileIdentity>,
    /// The state that is checked, for people.
    image: String,
    /// `None` for data files.
    pages: Option<&'a BackupPages>,
    history: &'a Path,
    /// The path of the ledger.
    path: PathBuf,
}

impl<'a> Opened<'a> {
    /// Opens the ledger of the base, or makes one if that was asked for. `None` if there is none. An error says why the
    /// ledger cannot be used.
    fn of(
        request: &Request,
        (history, before): (&'a Path, &Before),
        pages: &'a BackupPages,
    ) -> Result<Option<Self>, String> {
        let Some((path, base, is_new)) = wanted(request, (history, before), pages)? else { return Ok(None) };
        let ledger = match is_new {
            false => former(&path, &base, request.keep_parts)?,
            true => fresh(request, &path, base)?,
        };
        Ok(Some(Self::with((ledger, is_new, path), before, pages, history)))
    }

    /// Opens the ledger of the base for a window of time, or makes one. An error says why there can be none.
    pub(crate) fn in_window(
        request: &Request,
        (history, before): (&'a Path, &Before),
        (input, scope, snapshot): (&'a Input, &Scope, Option<&Snapshot>),
    ) -> Result<Self, NoLedger> {
        let pages = match (input, snapshot) {
            (Input::Backups(backups), _) => &backups.pages,
            (Input::Files(_), Some(snapshot)) => return Self::of_files(request, history, (snapshot, scope)),
            (Input::Files(_), None) => return Err("nothing tells what has changed".to_owned().into()),
        };
        let full = pages.sets().first().filter(|set| set.kind == SetKind::Full);
        let full = full.and_then(|set| Some((set, set.guid.clone()?)));
        let missing = || "the backups do not begin with a full backup that has an ID".to_owned();
        let (full, guid) = full.ok_or_else(missing)?;
        let path = path_in_scope(history, &guid, scope);
        let base = Base::of(full, before, (&guid, pages), (request.keep_parts, scope))?;
        let kept = if path.exists() { Some(former(&path, &base, request.keep_parts)) } else { None };
        let (ledger, is_new) = or_fresh(request, &path, base, kept)?;
        Ok(Self::with((ledger, is_new, path), before, pages, history))
    }

    fn with(
        (mut ledger, is_new, path): (Ledger<Base>, bool, PathBuf),
        before: &Before,
        pages: &'a BackupPages,
        history: &'a Path,
    ) -> Self {
        let later = later_sets(pages, before);
        let digest_of = |files: &Vec<FileIdentity>| {
            Some(digest(&ledger.key(), &serde_json::to_vec(&(names_of_later(pages), files)).ok()?))
        };
        let later_sets = later.as_ref().and_then(digest_of);
        ledger.of_later_sets(later_sets);
        let image = pages.sets().last().map(label).unwrap_or_default();
        Self { ledger, is_new, later: later.unwrap_or_default(), image, pages: Some(pages), history, path }
    }

    /// Whether nothing was kept before.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Removes the ledger, which cannot be used. Returns its path.
    pub(crate) fn remove(self) -> io::Result<PathBuf> {
        let path = self.path.clone();
        // On Windows, a file that is open cannot be removed.
        drop(self);
        let _ = fs::remove_file(redo_beside(&path));
        fs::remove_file(&path).map(|()| path)
    }

    /// Takes over what earlier windows have read of the container of the full backup.
    pub(crate) fn put_seen(&self) -> Result<(), String> {
        let Some(pages) = self.pages.filter(|_| !self.is_new) else { return Ok(()) };
        let seen = self.ledger.seen().map_err(|error| error.to_string())?;
        if !seen.is_empty() {
            pages.put_seen_of_base(&read_seen(&self.ledger.key(), &seen).map_err(|error| error.to_string())?);
        }
        if let Some(seen) = self.ledger.later_seen().map_err(|error| error.to_string())? {
            pages.put_seen_of_later(&read_seen(&self.ledger.key(), &seen).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Whether the ledger identifies the files that are read.
    pub(crate) fn has_identity(&self) -> bool {
        self.pages.is_some()
    }

    /// A file that was changed while it was read.
    pub(crate) fn changed_file(&self) -> Option<&Path> {
        let files = self.ledger.base().files.iter().chain(&self.later);
        files.into_iter().find(|file| file.has_changed()).map(FileIdentity::path)
    }

    /// Checks the pages with the ledger. An error says why all pages must be read.
    fn check(
        mut self,
        request: &Request,
        (source, prepared): (&dyn PageSource, &Prepared<'_>),
        (listener, started): (&dyn Progress, SystemTime),
    ) -> Result<Report, String> {
        let key = self.ledger.key();
        self.put_seen()?;
        if let Some(before) = request.reread.and_then(|reread| started.checked_sub(reread)) {
            self.ledger.read_again_before(history::time::text(before));
        }
        let ledger = &self.ledger;
        let options = Options { hash_key: Some(key), ..prepared.options.clone() };
        let done =
            throttled(request, source, |source| run_by_change(source, &prepared.database, &options, listener, ledger));
        let done = done.map_err(|error: NotByChange| error.to_string())?;
        self.end(request, prepared, done, started)
    }

    /// Completes the report, and keeps the parts of this run. An error says why the report must not be used.
    fn end(
        self,
        request: &Request,
        prepared: &Prepared<'_>,
        (mut report, reuse): (Report, Reuse),
        started: SystemTime,
    ) -> Result<Report, String> {
        let (key, is_new, pages) = (self.ledger.key(), self.is_new, self.pages);
        if let Some(path) = self.changed_file() {
            return Err(format!("{} was changed while it was read", path.display()));
        }
        if pages.is_some_and(BackupPages::hint_failed) {
            return Err("a record of the full backup is not what it was when it was checked".to_owned());
        }
        report.options.hash_key = prepared.options.hash_key.clone();
        if !is_new {
            report.change = Some(Change::Proven(self.by_change(&report, (&reuse, 0), started)));
        }
        let of_base = pages.filter(|_| is_new);
        let opened = of_base.and_then(|pages| pages.hints(most_hint_bytes(request)));
        let written = |seen: Vec<FileSeen>| write_seen(&key, &seen).map_err(|error| error.to_string());
        let seen = of_base.map(|pages| written(pages.seen_of_base())).transpose()?;
        let later = pages.map_or_else(|| Ok(Vec::new()), |pages| written(pages.seen_of_later()))?;
        self.keep(request, started, (seen.as_deref(), opened, later));
        Ok(report)
    }

    /// The state that is checked, for people.
    pub(crate) fn image(&self) -> String {
        self.image.clone()
    }

    /// What was read, and what was not. `open_pages` is the number of pages that are left for later windows.
    pub(crate) fn by_change(
        &self,
        report: &Report,
        (reuse, open_pages): (&Reuse, u64),
        started: SystemTime,
    ) -> ByChange {
        let base = self.ledger.base();
        let runs: Vec<&KeptRun> = self.ledger.runs().collect();
        let read_at = |run: &Option<usize>| run.and_then(|run| runs.get(run)).map(|run| run.read_at.clone());
        ByChange {
            base_set: base.set.clone(),
            base: base.label.clone(),
            base_read_at: runs.last().map_or_else(|| history::time::text(started), |run| run.read_at.clone()),
            image: self.image(),
            bytes_read: report.statistics.phases.iter().map(|phase| phase.bytes).sum(),
            bytes_kept: reuse.pages_kept * PAGE_BYTES as u64,
            bytes_open: open_pages * PAGE_BYTES as u64,
            ranges: reuse.ranges,
            reasons: reuse.swept.iter().map(|(reason, count)| (reason.name(), *count)).collect(),
            range_bytes: u64::from(check::change::Ledger::range_pages(&self.ledger)) * PAGE_BYTES as u64,
            read_at: reuse.oldest.iter().map(read_at).collect(),
            tables_read_at: reuse
                .tables
                .iter()
                .filter_map(|table| Some((table.object_id, read_at(&table.oldest)?)))
                .collect(),
        }
    }

    /// Keeps the parts of a window. `ranges` is the number of ranges with pages in use.
    pub(crate) fn keep_window(self, request: &Request, started: SystemTime, ranges: u64) {
        let key = self.ledger.key();
        // Without anything seen, the window is kept too.
        let of_base = |pages: &BackupPages| write_seen(&key, &pages.seen_of_base()).ok();
        let seen = self.pages.map_or_else(|| Some(Vec::new()), of_base);
        let kept = self.ledger.runs().fold(0, |kept: u64, run| kept.saturating_add(run.parts));
        let most_kept = |times: u64| kept > ranges.saturating_mul(times);
        let path = self.path.clone();
        let of_later = |pages: &BackupPages| write_seen(&key, &pages.seen_of_later()).unwrap_or_default();
        let later = self.pages.map(of_later).unwrap_or_default();
        let had_room = self.keep(request, started, (seen.as_deref(), None, later));
        if (most_kept(MOST_KEPT) || !had_room && most_kept(1))
            && let Err(error) = Ledger::<Base>::compact(&path, &BUILD)
        {
            warn(format!("{error}; the ledger remains larger than it must be"));
        }
    }

    /// Keeps the parts of this run. The report does not depend on it, so a failure is a warning. Returns whether all parts
    /// found room.
    fn keep(mut self, request: &Request, started: SystemTime, (seen, opened, later): OfContainer<'_>) -> bool {
        if opened.is_some() {
            self.ledger.keep_opened(opened);
        }
        if !later.is_empty() {
            self.ledger.keep_later_seen(later);
        }
        let image = self.image();
        let most_bytes = request.keep_parts.unwrap_or(self.ledger.base().most_bytes);
        let kept = self.ledger.commit(image, history::time::text(started), seen);
        match &kept {
            Ok(true) => {}
            Ok(false) => warn(format!(
                "{}: {} hold only a part of the sums; later checks read the other pages again. Give --keep-parts more",
                self.path.display(),
                size::text(most_bytes)
            )),
            Err(error) => warn(format!("{error}; the next check reads all pages again")),
        }
        if let Some(most_bytes) = request.keep_parts {
            remove_oldest(self.history, &self.path, most_bytes);
        }
        !matches!(kept, Ok(false))
    }
}

impl Base {
    /// Identifies the full backup. An error says why it cannot be identified.
    pub(crate) fn of(
        full: &UsedSet,
        before: &Before,
        (guid, pages): (&str, &BackupPages),
        (most_bytes, scope): (Option<u64>, &Scope),
    ) -> Result<Self, String> {
        let files = full.paths.iter().map(|path| before.of_path(path).ok_or_else(|| changed(path)));
        let mut files = files.collect::<Result<Vec<_>, _>>()?;
        // The stripes may be given in any order.
        files.sort_by(|one, other| one.path().cmp(other.path()));
        Ok(Self {
            set: guid.to_owned(),
            database: pages.set().database.clone(),
            label: label(full),
            scope: scope_name(scope),
            files,
            most_bytes: most_bytes.unwrap_or(u64::MAX),
            bases: Vec::new(),
            missed: Vec::new(),
        })
    }
}

fn changed(path: &Path) -> String {
    format!("{} was changed or replaced", path.display())
}

/// Opens the ledger of a base that was checked before. An error says why it cannot be used.
pub(crate) fn former(path: &Path, base: &Base, asked: Option<u64>) -> Result<Ledger<Base>, String> {
    let mut ledger: Ledger<Base> = Ledger::open(path, &BUILD).map_err(|error| why(&error))?;
    ledger.hold_at_most(asked.unwrap_or(ledger.base().most_bytes));
    let other = ledger.base().files.iter().zip(&base.files).find(|(then, now)| then != now);
    if let Some((then, now)) = other {
        return Err(match then.path() == now.path() {
            true => format!("{} since its check", changed(then.path())),
            false => format!("the ledger is that of {}, not of {}", then.path().display(), now.path().display()),
        });
    }
    if ledger.base().bases != base.bases {
        let is_same_files = ledger.base().bases.len() == base.bases.len();
        let why = if is_same_files { "there is a new full backup" } else { "there are other data files" };
        return Err(why.to_owned());
    }
    let is_same = |of: fn(&Base) -> &String| of(ledger.base()) == of(base);
    let are_same = is_same(|base| &base.set) && is_same(|base| &base.database) && is_same(|base| &base.scope);
    if ledger.base().files.len() != base.files.len() || !are_same {
        return Err("the ledger is that of another backup".to_owned());
    }
    Ok(ledger)
}

fn fresh(request: &Request, path: &Path, base: Base) -> Result<Ledger<Base>, String> {
    let most_bytes = base.most_bytes;
    Ledger::create(path, &BUILD, request.part_pages.unwrap_or(RANGE_PAGES), base, most_bytes)
        .map_err(|error| error.to_string())
}

/// The ledger that a window continues, or a new one; the second value says whether it is new.
fn or_fresh(
    request: &Request,
    path: &Path,
    base: Base,
    kept: Option<Result<Ledger<Base>, String>>,
) -> Result<(Ledger<Base>, bool), String> {
    let why = match kept {
        Some(Ok(ledger)) => return Ok((ledger, false)),
        Some(Err(why)) => Some(why),
        None => None,
    };
    if let Some(why) = why {
        warn(format!("{why}; the windows begin again"));
    }
    fresh(request, path, base).map(|ledger| (ledger, true))
}

/// All sets but the first and the log backups.
fn without_log(pages: &BackupPages) -> impl Iterator<Item = &UsedSet> {
    pages.sets().iter().skip(1).filter(|set| set.kind != SetKind::Log)
}

/// What identifies these sets in their files.
fn names_of_later(pages: &BackupPages) -> Vec<(&Option<String>, u16)> {
    without_log(pages).map(|set| (&set.guid, set.position)).collect()
}

/// The files of all sets but the first and the log backups, as they were before they were opened; `None` if one of them
/// has no identity, or if there are no such sets. What recovery makes of the log is compared page by page.
fn later_sets(pages: &BackupPages, before: &Before) -> Option<Vec<FileIdentity>> {
    let files: Option<Vec<_>> =
        without_log(pages).flat_map(|set| &set.paths).map(|path| before.of_path(path)).collect();
    files.filter(|files| !files.is_empty())
}

/// The ranges of the report that this run has read completely, by file and first page, with the time of the read. `None`
/// if the run has read all ranges. The history keeps the dates of all other ranges: the pages in them are as old as
/// their last read.
pub fn read_at(report: &Report, started: SystemTime) -> Option<BTreeMap<(u16, u32), String>> {
    let Some(Change::Proven(change)) = &report.change else { return None };
    let now = history::time::text(started);
    let ranges = report.ranges.iter().zip(&change.read_at).filter(|(_, read_at)| read_at.is_none());
    Some(ranges.map(|(range, _)| ((range.file_id, range.first), now.clone())).collect())
}

/// For each table of which not all pages were read, by object ID: the oldest read of its pages. `None` if the run has read
/// all ranges.
pub fn tables_read_at(report: &Report) -> Option<BTreeMap<i32, String>> {
    let Some(Change::Proven(change)) = &report.change else { return None };
    Some(change.tables_read_at.iter().cloned().collect())
}

/// The kind of a set, and when it finished.
pub(crate) fn label(set: &UsedSet) -> String {
    match &set.finished {
        Some(finished) => format!("{} of {finished}", set.kind.name()),
        None => set.kind.name().to_owned(),
    }
}

/// Why a ledger cannot be used.
fn why(error: &PartsError) -> String {
    match error {
        PartsError::OtherBuild { theirs, .. } => {
            format!("another build of mdfsck ({theirs}) has checked the full backup; check the full backup again")
        }
        error => error.to_string(),
    }
}

/// For tests: the pages of data files as a window of time reads them, and the path of their ledger.
///
/// # Errors
/// The reason why it is unknown what has changed.
#[doc(hidden)]
pub fn in_window<'a>(
    stored: &'a dyn PageSource,
    prepared: &'a Prepared<'_>,
    history: &Path,
) -> Result<(SinceBase<'a>, PathBuf), String> {
    let Snapshot { set, changed, .. } = Snapshot::of(stored, prepared)?;
    Ok((SinceBase::new(prepared.recovered.pages_or(stored), changed), path_of(history, &set)))
}

/// The ledgers beside a history. A file that is no ledger is left out.
pub fn listed(history: &Path) -> Vec<LedgerRow> {
    let row = |(_, path, _): (SystemTime, PathBuf, u64)| {
        let LedgerContent { build, base, runs, bytes } = Ledger::<Base>::look(&path).ok()?;
        let changed = base.files.iter().find(|file| file.has_changed());
        let why_not = match changed {
            _ if build != *BUILD => Some("made by another build of mdfsck".to_owned()),
            Some(file) => Some(format!("{} was changed, replaced or removed", file.path().display())),
            None if !base.missed.is_empty() => {
                Some("the differential maps have missed a change; used again after the next full backup".to_owned())
            }
            None => None,
        };
        Some(LedgerRow {
            database: base.database,
            set: base.set,
            base: if base.scope.is_empty() { base.label } else { format!("{}, {}", base.label, base.scope) },
            bytes,
            runs: runs.into_iter().map(|run| (run.image, run.read_at)).collect(),
            why_not,
        })
    };
    let mut rows: Vec<LedgerRow> = ledgers(history).into_iter().filter_map(row).collect();
    rows.sort_by(|one, other| (&one.database, &one.runs, &one.set).cmp(&(&other.database, &other.runs, &other.set)));
    rows
}
