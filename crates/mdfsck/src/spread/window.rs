//! A window of time: as many tasks of a plan as fit. The next window goes on with the same plan if it has the same image before it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use check::part::{Part as Sums, Sweeper, fingerprint_of, pages_with_findings, sweeper};
use check::{FileRange, RangeRead, Report};
use format::PageId;
use format::page::PAGE_BYTES;
use history::windows::pace::{Pace, Swept};
use history::windows::promise::{Range, put_in_order};
use history::windows::{Done, Known, Opening, PartRow, Window};
use history::{History, HistoryError, InWindow, Lease};
use parts::{Folder, Image, PlanId, SourceFile, Task, new_key};
use source::PageSource;
use tempfile::TempDir;

use super::evidence::{Before, Evidence};
use super::make::{plan_of, refuse_many};
use super::merging::Merge;
use super::sweeping::sweep;
use super::{Common, Opened, Planned, files_of};
use crate::check::{Prepared, What, throttled};
use crate::cli::{BUILD, CheckArguments};
use crate::failure::{Failure, warn};
use crate::input::Input;

/// How often the holder of a lease says that it works.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// Pages with findings of a part that are read again.
const MOST_PAGES: usize = 1 << 20;

/// The terms of a window.
pub(crate) struct Terms<'a> {
    /// The history, if it can be used.
    pub(crate) history: Option<&'a Path>,
    /// The machine.
    pub(crate) host: &'a str,
    /// When the run began.
    pub(crate) started: SystemTime,
    /// When the window ends.
    pub(crate) ends: Instant,
    /// How long it is.
    pub(crate) allowed: Duration,
    /// Whether somebody wants it to end.
    pub(crate) is_interrupted: &'a dyn Fn() -> bool,
}

/// The plan that a former window has left, or nothing.
pub(crate) struct Stored {
    /// Where plans of this check are kept; `None` without a history.
    path: Option<PathBuf>,
    opened: Option<Opened>,
    /// What a new plan begins with.
    fresh: Common,
}

impl Stored {
    /// Looks for the plan of a former window over the same paths with the same options. What cannot be used is removed. `is_again`
    /// uses none, even if it could not be removed.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub(crate) fn find(
        history: Option<&Path>,
        arguments: &CheckArguments,
        what: &What<'_>,
        is_again: bool,
    ) -> Result<Self, Failure> {
        let fresh = Common { key: new_key()?, audit: None };
        let path = history.and_then(|history| Some(folder_of(history, &absolute(arguments, what)?)));
        let opened = path.as_deref().filter(|path| !is_again && is_of_window(path)).and_then(|path| {
            let Ok(opened) = Opened::open(path) else {
                remove(path);
                return None;
            };
            // Known before anything is read: another image may need another comparison with its log.
            let Some(why) = opened.changed_file() else { return Some(opened) };
            note(&why);
            // Of files that are only away the parts are still of use.
            if opened.plan.options.evidence.as_ref().is_none_or(Evidence::is_stale) {
                remove(path);
            }
            None
        });
        Ok(Self { path, opened, fresh })
    }

    /// What this process has in common with those before it.
    pub(crate) fn common(&self) -> &Common {
        self.opened.as_ref().map_or(&self.fresh, |opened| &opened.common)
    }
}

/// What is checked, with paths that mean the same in every folder; `None` if it cannot be kept.
fn absolute(arguments: &CheckArguments, what: &What<'_>) -> Option<Planned> {
    let is_file = |path: &PathBuf| path.as_os_str() != "-" && source::storage::url(path).is_none();
    let absolute = |path: &PathBuf| std::path::absolute(path).ok().filter(|path| path.to_str().is_some());
    let paths = arguments.paths.iter().filter(|path| is_file(path)).filter_map(absolute).collect::<Vec<_>>();
    (paths.len() == arguments.paths.len()).then(|| Planned { paths, ..Planned::of(arguments, what) })
}

/// The folder of a plan beside the history, by what is checked.
fn folder_of(history: &Path, planned: &Planned) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(planned).unwrap_or_default().hash(&mut hasher);
    beside(history).join(format!("{:016x}", hasher.finish()))
}

/// The folder of all plans of a history.
fn beside(history: &Path) -> PathBuf {
    let mut name = history.as_os_str().to_owned();
    name.push(".parts");
    PathBuf::from(name)
}

/// Whether there is a folder, no link to one, that is called as those of windows are.
fn is_of_window(path: &Path) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 16 && name.bytes().all(is_digit) && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Removes the plan of a window, and nothing else.
fn remove(path: &Path) {
    if !is_of_window(path) {
        return;
    }
    // What is left is no plan.
    let _ = fs::remove_file(path.join("plan.json"));
    let _ = fs::remove_dir_all(path);
}

/// Plans of windows beside a history whose files are not what they were: nothing of them will be used. Another build's plan is left to
/// that build, which may work on it.
fn remove_stale(history: &Path) {
    for entry in fs::read_dir(beside(history)).into_iter().flatten().flatten() {
        let path = entry.path();
        if !is_of_window(&path) {
            continue;
        }
        if let Ok((_, plan, _)) = Folder::open::<Planned>(&path, &BUILD)
            && plan.options.evidence.is_some_and(|evidence| evidence.is_stale())
        {
            remove(&path);
        }
    }
}

fn note(why: &str) {
    warn(format!("window: {why}: this window starts over with a new image; the dates of earlier reads remain"));
}

/// What a window came to.
pub(crate) struct Outcome {
    /// What is known: of all of the image, or of the ranges that were read.
    pub(crate) report: Report,
    /// The ranges that this window has read.
    pub(crate) swept: Swept,
    pub(crate) ranges: u64,
    /// Bytes of the image, and of the ranges of it that are read.
    pub(crate) all_bytes: u64,
    pub(crate) done_bytes: u64,
    /// Whether the next window can go on.
    pub(crate) is_fixed: bool,
    /// How fast this database is read.
    pub(crate) pace: Pace,
    /// The bits of the exit status for what could not be recorded.
    pub(crate) unkept: u8,
    /// The plan, to be removed when its image is closed.
    plan: Option<(PathBuf, String)>,
    /// Places of ranges that this window has read.
    swept_places: BTreeSet<(u16, u32)>,
    /// Places of ranges that this image still needs.
    pub(crate) left: Vec<(u16, u32)>,
    /// The moment whose state the image is, as far as is known.
    pub(crate) taken_at: String,
    window: Option<Window>,
    /// Keeps the lease until the run is recorded.
    heart: Option<Heart>,
}

impl Outcome {
    /// Whether all of the image is read.
    pub(crate) fn is_closed(&self) -> bool {
        self.left.is_empty()
    }

    /// What the history has to know of the window.
    pub(crate) fn in_window(&self) -> InWindow<'_> {
        InWindow { swept: &self.swept_places, lease: self.window.as_ref().map(Window::lease) }
    }

    /// Ends the window: others may work on the database. The plan of an image that is closed is of no more use once its run is
    /// recorded; otherwise the next window merges its parts again.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub(crate) fn end(&mut self, history: &Path, is_recorded: bool) -> Result<(), HistoryError> {
        let closed = self.plan.take().filter(|_| is_recorded && self.left.is_empty());
        let mut history = History::open_or_create(history)?;
        let forgotten: Result<(), HistoryError> = closed.map_or(Ok(()), |(path, plan)| {
            history.forget_parts(&plan)?;
            // While nobody else may work on it.
            remove(&path);
            Ok(())
        });
        drop(self.heart.take());
        let ended = self.window.take().map_or(Ok(()), |window| history.end_window(&window));
        forgotten.and(ended)
    }
}

/// What is to be checked in a window.
pub(crate) struct Subject<'a> {
    pub(crate) arguments: &'a CheckArguments,
    pub(crate) what: &'a What<'a>,
    pub(crate) input: &'a Input,
    /// Its files before they were opened.
    pub(crate) before: &'a Before,
    pub(crate) prepared: &'a Prepared<'a>,
    pub(crate) listener: &'a dyn check::Progress,
}

/// What comes of trying to go on with a former window.
pub(crate) enum Tried {
    /// The image is another one, and what was compared with the log must be compared again: once more, without the former plan.
    Again,
    /// No page of a table is to be read: a whole check takes no longer.
    NoRanges,
    /// The window is over.
    Done(Box<Outcome>),
}

/// Sweeps as many ranges as fit into the window, and merges what is there.
///
/// # Errors
/// If something cannot be read or written, or has changed meanwhile.
pub(crate) fn check(terms: &Terms<'_>, subject: &Subject<'_>, stored: Stored) -> Result<Tried, Failure> {
    let Subject { arguments, what, input, before, prepared, listener } = *subject;
    let source = prepared.recovered.pages_or(input.pages());
    let key = stored.common().key.clone();
    let planned = absolute(arguments, what);
    let files = match &planned {
        Some(_) => files_of(arguments, what, input, &prepared.database)?,
        None => Vec::new(),
    };
    let evidence_now = || match &planned {
        Some(_) => {
            Evidence::of(input, (source, prepared.recovered.pages.is_some()), &prepared.database, (&key, &files))
        }
        None => Ok(None),
    };
    let evidence = evidence_now()?;
    // Then the catalog, and what was compared with the log, may be those of another file than the evidence.
    let replaced = evidence.as_ref().and_then(|evidence| before.changed_file(evidence));
    let (mut former, mut parts) = (stored.opened, BTreeMap::new());
    let other = match (&former, &replaced) {
        (_, Some(why)) => Some(why.clone()),
        (Some(opened), None) => differs(opened, evidence.as_ref(), (&files, prepared)).or_else(|| {
            let usable = usable(opened, source, recorded(terms.history, opened));
            usable.map(|usable| parts = usable).err()
        }),
        (None, None) => None,
    };
    if let Some(why) = other {
        note(&why);
        if let Some(opened) = former.take() {
            remove(opened.folder.path());
            if opened.plan.options.has_audit {
                return Ok(Tried::Again);
            }
        }
    }
    // Without evidence nothing is kept for the next window.
    let evidence = evidence.filter(|_| replaced.is_none());
    let place = stored.path.as_deref().filter(|_| evidence.is_some());
    let new = New {
        planned: planned.clone().unwrap_or_else(|| Planned::of(arguments, what)),
        evidence: evidence.clone(),
        files: if evidence.is_some() { files.clone() } else { Vec::new() },
        key: &key,
        place,
    };
    // Vanishes at the end.
    let mut listed = None;
    let swept = throttled(arguments, source, |source| {
        sweeper(source, &prepared.database, &prepared.options, listener, |sweeper| {
            let Some(sweeper) = sweeper else { return Ok(None) };
            let sweep = Sweep { terms, subject, source };
            let former_plan = former.as_ref().map(|former| former.plan.plan.as_str().to_owned());
            let (made, temporary) = new.plan(&sweep, sweeper, former)?;
            if former_plan.as_deref() != Some(made.plan.plan.as_str()) {
                parts.clear();
            }
            let is_kept = temporary.is_none();
            listed = temporary;
            sweep.run(sweeper, made, (&parts, is_kept)).map(Some)
        })
    })?;
    let Some(Sum { opened, done, swept_places, mut keeper, pace, ranges }) = swept else { return Ok(Tried::NoRanges) };
    // The boot page and the file header pages are what they were at the start, too.
    if evidence.is_some() && evidence_now()? != evidence {
        remove(opened.folder.path());
        return Err(Failure::unable(format!(
            "{}: was changed while it was read; the next window reads all of it again",
            arguments.paths.first().map(|path| path.display().to_string()).unwrap_or_default()
        )));
    }
    let is_kept = listed.is_none();
    let bytes = |task: &Task| u64::from(task.pages) * PAGE_BYTES as u64;
    let plan_id = opened.plan.plan.as_str().to_owned();
    let path = opened.folder.path().to_owned();
    let gathered = opened.folder.gather_some(&opened.plan, done.iter().copied())?;
    let is_missing = |task: &&Task| !gathered.parts.iter().any(|part| part.task.id == task.id);
    let left: Vec<_> = opened.plan.tasks.iter().filter(is_missing).map(|task| (task.file, task.first)).collect();
    if ranges == 0 && !left.is_empty() && !(terms.is_interrupted)() {
        warn("window: it was over before the first range was begun, so nothing was read; make it longer");
    }
    let all_bytes = opened.plan.tasks.iter().map(bytes).sum();
    let done_bytes = gathered.parts.iter().map(|part| bytes(&part.task)).sum();
    let tiles = keeper.tiles.clone();
    let read: Vec<(u16, u32)> = gathered.parts.iter().map(|part| (part.task.file, part.task.first)).collect();
    let first_of: Vec<(u16, u32)> = opened.plan.tasks.iter().map(|task| (task.file, task.first)).collect();
    let merge = Merge { opened, gathered, answers: Vec::new(), local_limit: None };
    let mut report =
        throttled(arguments, source, |source| merge.run(source, &prepared.database, &prepared.options, listener))?;
    // A range is read if its task is done and every page of it could be read. When the image closes, too, ranges are those of the
    // windows, each of which dates what it has read itself.
    let is_read = |(tile, place): (RangeRead, &(u16, u32))| {
        let is_unread = keeper.unread.contains(place) || !read.contains(place);
        RangeRead { is_read: tile.is_read && !is_unread, ..tile }
    };
    report.ranges = tiles.into_iter().zip(&first_of).map(is_read).collect();
    Ok(Tried::Done(Box::new(Outcome {
        report,
        swept: pace.now(),
        ranges,
        all_bytes,
        done_bytes,
        is_fixed: is_kept,
        pace,
        unkept: keeper.unkept,
        plan: is_kept.then_some((path, plan_id)),
        swept_places,
        left,
        taken_at: keeper.window.as_ref().map(|window| window.taken_at().to_owned()).unwrap_or_default(),
        window: keeper.window.take(),
        heart: keeper.heart.take(),
    })))
}

/// Why a former window's parts cannot be used, in words.
fn differs(
    opened: &Opened,
    evidence: Option<&Evidence>,
    (files, prepared): (&[SourceFile], &Prepared<'_>),
) -> Option<String> {
    let Some(now) = evidence else { return Some("its files were not shut down cleanly, and may change".to_owned()) };
    match &opened.plan.options.evidence {
        None => Some("nothing shows that its files are the same".to_owned()),
        Some(then) => then.difference(now),
    }
    .or_else(|| opened.verify(files, prepared.catalog).err().map(|failure| failure.text))
}

/// The parts of a plan that the history knows; without them all of it is read.
fn recorded(history: Option<&Path>, opened: &Opened) -> BTreeMap<u32, PartRow> {
    let parts = |path| History::open_or_create(path)?.parts(opened.plan.plan.as_str());
    history.and_then(|path| parts(path).ok()).unwrap_or_default()
}

/// Which parts of earlier windows can be used: those that can be read, if their pages with findings hold what they held.
///
/// # Errors
/// Pages that do not, in words.
fn usable(
    opened: &Opened,
    source: &dyn PageSource,
    parts: BTreeMap<u32, PartRow>,
) -> Result<BTreeMap<u32, PartRow>, String> {
    let mut usable = BTreeMap::new();
    for (id, row) in parts {
        let Some(task) = opened.plan.tasks.get(id as usize) else { continue };
        let is_same = match &row.held {
            None => true,
            Some(then) => match held(opened, source, task) {
                Ok(Some(now)) if now.fingerprint != *then => return Err(now.differs(opened, source)),
                Ok(now) => now.is_some(),
                // Its range is swept again.
                Err(_) => false,
            },
        };
        if is_same {
            usable.insert(id, row);
        }
    }
    Ok(usable)
}

/// The pages with findings of a part, and what they hold now.
struct Held {
    first: PageId,
    last: PageId,
    fingerprint: String,
}

impl Held {
    /// They do not hold what they held.
    fn differs(&self, opened: &Opened, source: &dyn PageSource) -> String {
        // The files of a backup are those of the server.
        let path = match source.backup() {
            Some(_) => opened.plan.files.first().map(|file| &file.path),
            None => source.files().iter().find(|file| file.file_id == self.first.file).map(|file| &file.path),
        };
        let name = path.map_or_else(|| opened.plan.database.clone(), |path| path.display().to_string());
        let pages = match self.first == self.last {
            true => format!("page {} with findings does", self.first),
            false => format!("pages with findings from {} to {} do", self.first, self.last),
        };
        format!(
            "{name}: {pages} not read as in an earlier window, and nothing shows that anybody wrote to the file (storage that gives \
             something else each time, as a bad disk, controller or cable does, or a write whose time was put back; look for disk \
             errors in the log of the system, and check a copy on other storage)"
        )
    }
}

/// What the pages with findings of a part hold now; `None` if it has none.
///
/// # Errors
/// If the part is missing, damaged or cannot be read.
fn held(opened: &Opened, source: &dyn PageSource, task: &Task) -> Result<Option<Held>, Failure> {
    let part = parts::Part { task: task.clone(), path: opened.folder.part_path(&opened.plan, task) };
    let (head, from) = opened.folder.read(&opened.plan, &part)?;
    let pages = pages_with_findings(opened.folder.key(), &mut Sums { head, from }, MOST_PAGES);
    let pages = pages.map_err(Failure::unable)?;
    let Some((first, last)) = pages.first().copied().zip(pages.last().copied()) else { return Ok(None) };
    let fingerprint = fingerprint_of(source, opened.folder.key(), pages).to_string();
    Ok(Some(Held { first, last, fingerprint }))
}

/// What a new plan is made of.
struct New<'n> {
    planned: Planned,
    evidence: Option<Evidence>,
    files: Vec<SourceFile>,
    key: &'n check::HashKey,
    place: Option<&'n Path>,
}

impl New<'_> {
    /// The former plan if its maps are these, else a new one; with the folder in which it is, if that is to vanish.
    fn plan(
        &self,
        sweep: &Sweep<'_>,
        sweeper: &Sweeper<'_, '_>,
        former: Option<Opened>,
    ) -> Result<(Opened, Option<TempDir>), Failure> {
        if let Some(former) = former {
            let ranges: Vec<FileRange> = former.plan.tasks.iter().map(Task::range).collect();
            if former.verify_maps(sweeper.fingerprint).is_ok() && sweeper.tile(&ranges).is_ok() {
                return Ok((former, None));
            }
            note("its allocation maps are others");
            remove(former.folder.path());
        }
        let Subject { arguments, prepared, .. } = *sweep.subject;
        let bytes = arguments.windows.range.0;
        let ranges = sweeper.ranges((bytes / PAGE_BYTES as u64).max(1));
        refuse_many("--range", bytes, ranges.len())?;
        let audit = prepared.options.log_audit.as_deref();
        let bytes =
            audit.map(|audit| check::part::write_audit(self.key, audit)).transpose().map_err(Failure::unable)?;
        let options = Planned { has_audit: audit.is_some(), evidence: self.evidence.clone(), ..self.planned.clone() };
        let name = check::database_name(sweep.source, &prepared.database);
        let image = Image::new(prepared.catalog, Some(sweeper.fingerprint));
        let plan = plan_of(PlanId::new()?, options, name, (self.files.clone(), image), &ranges);
        let common = Common { key: self.key.clone(), audit: Some(prepared.options.log_audit.clone()) };
        if let Some(place) = self.place {
            let made =
                Folder::reserve(place).and_then(|()| Folder::create(place, &plan, self.key, bytes.as_deref(), None));
            match made {
                Ok(folder) => return Ok((Opened { folder, plan, rounds: Vec::new(), common }, None)),
                Err(error) => warn(format!("{error}; what this window reads is not kept for the next one")),
            }
        }
        let folder = match &arguments.recovery.room.temp_dir {
            Some(folder) => tempfile::Builder::new().prefix("mdfsck-window.").tempdir_in(folder),
            None => tempfile::Builder::new().prefix("mdfsck-window.").tempdir(),
        };
        let temporary = folder.map_err(|cause| {
            Failure::unable(format!("no temporary folder can be made for a window: {cause}; name one with --temp-dir"))
        })?;
        let folder = Folder::create(temporary.path(), &plan, self.key, bytes.as_deref(), None)?;
        Ok((Opened { folder, plan, rounds: Vec::new(), common }, Some(temporary)))
    }
}

/// What the ranges of a window came to.
struct Sum {
    opened: Opened,
    /// The tasks that have parts.
    done: Vec<u32>,
    /// Places of the ranges that were read now.
    swept_places: BTreeSet<(u16, u32)>,
    keeper: Keeper,
    pace: Pace,
    ranges: u64,
}

/// The ranges of a window.
struct Sweep<'s> {
    terms: &'s Terms<'s>,
    subject: &'s Subject<'s>,
    source: &'s dyn PageSource,
}

impl Sweep<'_> {
    /// `former` are the parts of earlier windows that can be used.
    fn run(
        &self,
        sweeper: &mut Sweeper<'_, '_>,
        opened: Opened,
        (former, is_kept): (&BTreeMap<u32, PartRow>, bool),
    ) -> Result<Sum, Failure> {
        let ranges: Vec<FileRange> = opened.plan.tasks.iter().map(Task::range).collect();
        let tiles = sweeper.tiles(&ranges);
        let (mut keeper, known) = Keeper::open(self, tiles)?;
        let mut pace = known.as_ref().map(|known| Pace::of(&known.windows)).unwrap_or_default();
        let plan = opened.plan.plan.as_str().to_owned();
        let mut done = Vec::new();
        for (task, row) in former {
            let Some(task) = opened.plan.tasks.get(*task as usize) else { continue };
            // One that cannot be read is swept again.
            if matches!(opened.folder.has(&opened.plan, task), Ok(true)) {
                done.push(task.id);
                if !row.is_read {
                    keeper.unread.push((task.file, task.first));
                }
            }
        }
        let mut swept_places = BTreeSet::new();
        let mut count = 0;
        for id in self.order(&keeper.tiles, known.as_ref(), &done) {
            let Some((task, tile)) = opened.plan.tasks.get(id as usize).zip(keeper.tiles.get(id as usize).copied())
            else {
                continue;
            };
            let left = self.terms.ends.saturating_duration_since(Instant::now());
            let bytes = u64::from(task.pages) * PAGE_BYTES as u64;
            let is_over = self.subject.arguments.windows.most_ranges.is_some_and(|most| count >= most);
            if is_over || (self.terms.is_interrupted)() || !pace.fits(bytes, left) {
                break;
            }
            let begun = Instant::now();
            let result = sweep(&opened, sweeper, task, self.subject.listener)?;
            let held = if result.findings > 0 { held(&opened, self.source, task) } else { Ok(None) };
            let swept = Swept { bytes, seconds: begun.elapsed().as_secs_f64() };
            pace.add(swept);
            let is_read = result.is_read && tile.is_read;
            if !is_read {
                keeper.unread.push((task.file, task.first));
            }
            // What cannot be read is of no use to the next window.
            let part = (is_kept && held.is_ok()).then_some((plan.as_str(), task.id));
            let held = held.ok().flatten().map(|held| held.fingerprint);
            let has_findings = result.findings > 0;
            keeper.done(&Done { range: &tile, is_read, has_findings, part, held: held.as_deref(), swept });
            done.push(task.id);
            swept_places.insert((tile.file_id, tile.first));
            count += 1;
        }
        done.sort_unstable();
        Ok(Sum { opened, done, swept_places, keeper, pace, ranges: count })
    }

    /// The tasks that are left, in the order in which they are to be carried out.
    fn order(&self, tiles: &[RangeRead], known: Option<&Known>, done: &[u32]) -> Vec<u32> {
        let tasks: BTreeMap<(u16, u32), u32> =
            tiles.iter().zip(0..).map(|(tile, id)| ((tile.file_id, tile.first), id)).collect();
        let mut left: Vec<Range> = match known {
            Some(known) => {
                let of = |(range, (file, first, _)): (&Range, &(u16, u32, u32))| {
                    Some(Range { id: *tasks.get(&(*file, *first))?, ..*range })
                };
                known.ranges.iter().zip(&known.places).filter_map(of).collect()
            }
            None => tasks.values().map(|id| unknown(*id)).collect(),
        };
        put_in_order(&mut left);
        let done: BTreeSet<u32> = done.iter().copied().collect();
        left.into_iter().map(|range| range.id).filter(|id| !done.contains(id)).collect()
    }
}

/// A range of which nothing is known.
fn unknown(id: u32) -> Range {
    Range { id, bytes: 0, is_in_use: true, read_at: None, known_since: 0, is_doubted: false }
}

/// Who records what was done; a history that fails keeps no window from going on.
struct Keeper {
    history: Option<History>,
    window: Option<Window>,
    tiles: Vec<RangeRead>,
    /// Ranges in which a page could not be read.
    unread: Vec<(u16, u32)>,
    unkept: u8,
    heart: Option<Heart>,
}

impl Keeper {
    fn open(sweep: &Sweep<'_>, tiles: Vec<RangeRead>) -> Result<(Self, Option<Known>), Failure> {
        let mut keeper = Self { history: None, window: None, tiles, unread: Vec::new(), unkept: 0, heart: None };
        let Some(path) = sweep.terms.history else { return Ok((keeper, None)) };
        let prepared = sweep.subject.prepared;
        let opening = Opening {
            source: sweep.source,
            database: &prepared.database,
            host: sweep.terms.host,
            started: sweep.terms.started,
            allowed: sweep.terms.allowed,
            is_full: !prepared.options.physical_only,
        };
        let opened = History::open_or_create(path).and_then(|mut history| {
            let (window, known) = history.open_window(&opening, &keeper.tiles)?;
            Ok((history, window, known))
        });
        match opened {
            Ok((history, window, known)) => {
                remove_stale(path);
                keeper.heart = Heart::start(path, window.lease());
                (keeper.history, keeper.window) = (Some(history), Some(window));
                Ok((keeper, Some(known)))
            }
            Err(HistoryError::Busy { by, .. }) if by.starts_with("process ") => Err(Failure::usage(format!(
                "{}: {by} works on this database; let it end, or use another history",
                path.display()
            ))),
            Err(error) => {
                keeper.failed(&error);
                Ok((keeper, None))
            }
        }
    }

    fn done(&mut self, done: &Done<'_>) {
        let Some((history, window)) = self.history.as_mut().zip(self.window.as_ref()) else { return };
        if let Err(error) = history.range_done(window, done) {
            self.history = None;
            self.failed(&error);
        }
    }

    fn failed(&mut self, error: &HistoryError) {
        let failure = Failure::from(error);
        warn(format!("{}; what this window reads is not recorded", failure.text));
        self.unkept |= failure.status;
    }
}

/// A window that fails leaves its database to others.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.heart = None;
        if let Some((history, window)) = self.history.as_mut().zip(self.window.take()) {
            // Otherwise the lease ends by itself.
            let _ = history.end_window(&window);
        }
    }
}

/// Says every 30 seconds that the window is still under way, until it is dropped.
struct Heart {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Heart {
    /// `None` if no thread can be had: then the lease is renewed after each range only.
    fn start(path: &Path, lease: &Lease) -> Option<Self> {
        let (stop, stopped) = mpsc::channel();
        let (path, lease) = (path.to_owned(), lease.clone());
        let beat = move || {
            while stopped.recv_timeout(HEARTBEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
                // What is wrong with the history is said elsewhere.
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

#[cfg(test)]
mod tests;
