//! Checks a database in several windows of time. Each window runs tasks of a plan until its time is over. The next
//! window continues the plan if the image is unchanged.

pub(super) mod changing;
mod keeper;
mod stored;
mod turns;
mod usable;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use check::part::{Sweeper, sweeper};
use findings::{FileRange, RangeRead, Report};
use history::windows::pace::{Pace, Swept};
use history::windows::promise::{Range, put_in_order};
use history::windows::{Done, Known, PartRow, Window};
use history::{History, HistoryError, InWindow, Naming};
use parts::Task;
use report::windows::ByTable;
use source::PageSource;

use self::keeper::{Heart, Keeper};
pub(crate) use self::stored::Stored;
use self::stored::{NewPlan, kept_paths, note, remove};
use self::usable::{differs, held, recorded, usable};
use crate::failure::Failure;
use crate::host::warn;
use crate::input::Input;
use crate::prepare::Prepared;
use crate::request::Request;
use crate::spread::evidence::{Before, Evidence};
use crate::spread::make::bytes_of;
use crate::spread::sweeping::sweep;
use crate::spread::{Merge, Opened, Planned, What, files_of};
use crate::throttle::throttled;

/// The settings under which a check in a window runs.
pub(crate) struct Terms<'a> {
    /// The path of the history; `None` if the history cannot be used.
    pub history: Option<&'a Path>,
    /// The name of this machine, and the settings that the history uses to identify the database.
    pub naming: &'a Naming,
    /// When the run began.
    pub started: SystemTime,
    /// When the window ends.
    pub ends: Instant,
    /// The length of time that the user has allowed for the window.
    pub allowed: Duration,
    /// Returns whether the window should end early.
    pub is_interrupted: &'a dyn Fn() -> bool,
}

/// The result of a check in a window.
pub struct Outcome {
    /// The report on the whole image of the database, or only on the ranges that the windows have read so far.
    pub report: Report,
    /// The amount of data that this window has read, and the time it needed for this.
    pub swept: Swept,
    /// The number of ranges that this window has read.
    pub ranges: u64,
    /// Total size of the image's ranges, in bytes.
    pub all_bytes: u64,
    /// Total size, in bytes, of the ranges that this window and earlier windows have read.
    pub done_bytes: u64,
    /// Whether the next window can continue the check of this image of the database.
    pub is_fixed: bool,
    /// The rate at which windows read this database.
    pub pace: Pace,
    /// The exit-status bits that report what could not be recorded.
    pub unkept: u8,
    /// The folder and the ID of the plan. The plan is deleted when the whole image is read.
    plan: Option<(PathBuf, String)>,
    /// When each range of the image was read. Keys are the file and the first page of a range.
    read: BTreeMap<(u16, u32), String>,
    /// The file and the first page of each range of the image that is still unread.
    pub left: Vec<(u16, u32)>,
    /// For each table, by object ID: when the oldest of its pages were read. Empty if the windows read an image that does
    /// not change.
    tables: BTreeMap<i32, String>,
    /// How many tables are closed; `None` if the windows read an image that does not change.
    pub by_table: Option<ByTable>,
    /// The point in time that the image shows; empty if unknown.
    pub taken_at: String,
    /// The entry of this window in the history. `None` if the history cannot be used.
    window: Option<Window>,
    /// The thread that renews the lease on the database until the run is recorded.
    heart: Option<Heart>,
}

impl Outcome {
    /// Whether all ranges of the image have been read, by this window and the earlier windows.
    pub fn is_closed(&self) -> bool {
        self.left.is_empty() && (self.by_table.is_none() || self.done_bytes == self.all_bytes)
    }

    /// Whether this is one of the tables that the windows close.
    pub(crate) fn has_table(&self, object_id: i32) -> bool {
        self.tables.contains_key(&object_id)
    }

    /// Returns the dates at which ranges were read, and the lease of the window. The history needs both to record the
    /// run.
    pub fn in_window(&self) -> InWindow<'_> {
        let tables = Some(&self.tables).filter(|tables| !tables.is_empty());
        InWindow { read: &self.read, tables, lease: self.window.as_ref().map(Window::lease) }
    }

    /// Ends the window, so that other processes may check the database. If the whole image is read and the run is
    /// recorded, deletes the plan. If the run is not recorded, the next window merges the parts again.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub(crate) fn end(&mut self, history: &Path, is_recorded: bool) -> Result<(), HistoryError> {
        let closed = self.plan.take().filter(|_| is_recorded && self.left.is_empty());
        let mut history = History::open_or_create(history)?;
        let forgotten: Result<(), HistoryError> = closed.map_or(Ok(()), |(path, plan)| {
            history.forget_parts(&plan)?;
            // The folder is deleted while this process still holds the lease.
            remove(&path);
            Ok(())
        });
        drop(self.heart.take());
        let ended = self.window.take().map_or(Ok(()), |window| history.end_window(&window));
        forgotten.and(ended)
    }
}

/// The database that a window checks.
pub(crate) struct Subject<'a> {
    pub request: &'a Request,
    pub what: &'a What<'a>,
    pub input: &'a Input,
    /// The identities of the database's files before they were opened.
    pub before: &'a Before,
    pub prepared: &'a Prepared<'a>,
    pub listener: &'a dyn check::Progress,
}

/// How a window ended.
pub(crate) enum WindowEnd {
    /// The image differs from the image of the earlier plan, so its pages must be compared with the log again. The
    /// caller must run the window again without the earlier plan.
    Again,
    /// The check cannot be divided into ranges, because it reads no pages of tables. Such a check is short, so the
    /// caller can run the whole check in the window.
    NoRanges,
    /// The window has ended normally.
    Done(Box<Outcome>),
}

/// Sweeps as many ranges as fit into the window, and merges all existing parts.
///
/// # Errors
/// If something cannot be read or written, or a file has changed during the window.
#[expect(clippy::too_many_lines, reason = "each step needs what the steps before it have found")]
pub(crate) fn check(terms: &Terms<'_>, subject: &Subject<'_>, stored: Stored) -> Result<WindowEnd, Failure> {
    let Subject { request, what, input, before, prepared, listener } = *subject;
    let source = prepared.recovered.pages_or(input.pages());
    let key = stored.common().key.clone();
    let planned = kept_paths(request, what);
    let files = match &planned {
        Some(_) => files_of(request, what, input, &prepared.database)?,
        None => Vec::new(),
    };
    let evidence_now = || match &planned {
        Some(_) => {
            let (is_recovered, image) = (prepared.recovered.pages.is_some(), request.windows.image.as_deref());
            Evidence::of(input, (source, is_recovered), (&prepared.database, image), (&key, &files))
        }
        None => Ok(None),
    };
    let evidence = evidence_now()?;
    // If a file was replaced after it was opened, the catalog and the audit describe the old file, but the evidence
    // describes the new file.
    let replaced = evidence.as_ref().and_then(|evidence| before.changed_file(evidence));
    let mut former = stored.opened;
    let other = match (&former, &replaced) {
        (_, Some(why)) => Some(why.clone()),
        (Some(opened), None) => differs(opened, evidence.as_ref(), (&files, prepared)),
        (None, None) => None,
    };
    if let Some(why) = other {
        note(&why);
        if former.take().is_some_and(|former| former.plan.options.has_audit) {
            return Ok(WindowEnd::Again);
        }
    }
    // The plan is stored only with evidence, since the next window cannot use a plan without evidence.
    let evidence = evidence.filter(|_| replaced.is_none());
    let place = stored.path.as_deref().filter(|_| evidence.is_some());
    // The temporary folder of a plan that is not stored. It is deleted at the end of this function.
    let mut listed = None;
    let swept = throttled(request, source, |source| {
        sweeper(source, &prepared.database, &prepared.options, listener, |sweeper| {
            let Some(sweeper) = sweeper else { return Ok(Err(WindowEnd::NoRanges)) };
            let sweep = Sweep { terms, subject, source };
            let keeper = Keeper::open(&sweep)?;
            // Uses the stored plan only if this process holds the lease. Without the lease, another process may be
            // using the plan.
            let mut former = former.filter(|_| keeper.is_open());
            let of_former = former.as_ref().map(|former| usable(former, source, recorded(terms.history, former)));
            let mut parts = match of_former {
                Some(Ok(parts)) => parts,
                Some(Err(why)) => {
                    note(&why);
                    if former.take().is_some_and(|former| former.plan.options.has_audit) {
                        return Ok(Err(WindowEnd::Again));
                    }
                    BTreeMap::new()
                }
                None => BTreeMap::new(),
            };
            let new = NewPlan {
                planned: planned.clone().unwrap_or_else(|| Planned::of(request, what)),
                evidence: evidence.clone(),
                files: if evidence.is_some() { files.clone() } else { Vec::new() },
                key: &key,
                place: place.filter(|_| keeper.is_open()),
            };
            let former_plan = former.as_ref().map(|former| former.plan.plan.as_str().to_owned());
            let (made, temporary) = new.plan(&sweep, sweeper, former)?;
            if former_plan.as_deref() != Some(made.plan.plan.as_str()) {
                parts.clear();
            }
            let is_kept = temporary.is_none();
            listed = temporary;
            sweep.run(sweeper, (made, keeper), (&parts, is_kept)).map(Ok)
        })
    })?;
    let RangesDone { opened, done, read, mut keeper, pace, ranges } = match swept {
        Ok(done) => done,
        Err(end) => return Ok(end),
    };
    // Requires that the boot page and the file header pages have not changed during the window.
    if evidence.is_some() && evidence_now()? != evidence {
        remove(opened.folder.path());
        return Err(Failure::unable(format!(
            "{}: was changed while it was read; the next window reads the whole database again",
            request.paths.first().map(|path| path.display().to_string()).unwrap_or_default()
        )));
    }
    let is_kept = listed.is_none();
    let plan_id = opened.plan.plan.as_str().to_owned();
    let path = opened.folder.path().to_owned();
    let (done, left): (Vec<&Task>, Vec<&Task>) = opened.plan.tasks.iter().partition(|task| done.contains(&task.id));
    let left: Vec<(u16, u32)> = left.into_iter().map(|task| (task.file, task.first)).collect();
    if ranges == 0 && !left.is_empty() && !(terms.is_interrupted)() {
        warn("the window ended before the first range began, so nothing was read; use a longer --window");
    }
    let all_bytes = opened.plan.tasks.iter().map(bytes_of).sum();
    let done_bytes = done.iter().copied().map(bytes_of).sum();
    let gathered = opened.folder.gather_some(&opened.plan, done.into_iter().cloned());
    let tiles = keeper.tiles.clone();
    let first_of: Vec<(u16, u32)> = opened.plan.tasks.iter().map(|task| (task.file, task.first)).collect();
    let merge = Merge { opened, gathered, answers: Vec::new(), local_limit: None, on_round: None };
    let mut report =
        throttled(request, source, |source| merge.run(source, &prepared.database, &prepared.options, listener))?;
    // A range counts as read if its task is done and if all pages of the range could be read. The ranges are listed
    // even if the whole image is read, since each range has its own date.
    let is_read = |(tile, place): (RangeRead, &(u16, u32))| {
        let is_unread = keeper.unread.contains(place) || !read.contains_key(place);
        RangeRead { is_read: tile.is_read && !is_unread, ..tile }
    };
    report.ranges = tiles.into_iter().zip(&first_of).map(is_read).collect();
    Ok(WindowEnd::Done(Box::new(Outcome {
        report,
        swept: pace.now(),
        ranges,
        all_bytes,
        done_bytes,
        is_fixed: is_kept,
        pace,
        unkept: keeper.unkept,
        plan: is_kept.then_some((path, plan_id)),
        read,
        left,
        tables: BTreeMap::new(),
        by_table: None,
        taken_at: keeper.window.as_ref().map(|window| window.taken_at().to_owned()).unwrap_or_default(),
        window: keeper.window.take(),
        heart: keeper.heart.take(),
    })))
}

/// The result of sweeping the ranges of a window.
struct RangesDone {
    opened: Opened,
    /// The IDs of the tasks that have parts.
    done: BTreeSet<u32>,
    /// When each range was read. Keys are the file and the first page of a range.
    read: BTreeMap<(u16, u32), String>,
    keeper: Keeper,
    pace: Pace,
    ranges: u64,
}

/// The data that is needed to sweep the ranges of a window.
struct Sweep<'s> {
    terms: &'s Terms<'s>,
    subject: &'s Subject<'s>,
    source: &'s dyn PageSource,
}

impl Sweep<'_> {
    /// Sweeps ranges until the window ends. `former` contains the usable parts of earlier windows, by task ID.
    fn run(
        &self,
        sweeper: &mut Sweeper<'_, '_>,
        (opened, mut keeper): (Opened, Keeper),
        (former, is_kept): (&BTreeMap<u32, PartRow>, bool),
    ) -> Result<RangesDone, Failure> {
        let ranges: Vec<FileRange> = opened.plan.tasks.iter().map(Task::range).collect();
        let known = keeper.tile(sweeper.tiles(&ranges));
        let mut pace = known.as_ref().map(|known| Pace::of(&known.windows)).unwrap_or_default();
        let plan = opened.plan.plan.as_str().to_owned();
        let (mut done, mut read) = (BTreeSet::new(), BTreeMap::new());
        for (task, row) in former {
            let Some(task) = opened.plan.tasks.get(*task as usize) else { continue };
            // If the part of a task cannot be read, the range of the task is swept again.
            if matches!(opened.folder.has(&opened.plan, task), Ok(true)) {
                done.insert(task.id);
                read.insert((task.file, task.first), row.started.clone());
                if !row.is_read {
                    keeper.unread.push((task.file, task.first));
                }
            }
        }
        let started = history::time::text(self.terms.started);
        let mut count = 0;
        for id in self.order(&keeper.tiles, known.as_ref(), &done) {
            let Some((task, tile)) = opened.plan.tasks.get(id as usize).zip(keeper.tiles.get(id as usize).copied())
            else {
                continue;
            };
            let left = self.terms.ends.saturating_duration_since(Instant::now());
            let bytes = bytes_of(task);
            let is_over = self.subject.request.windows.most_ranges.is_some_and(|most| count >= most);
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
            // A part that cannot be read after it was written is not recorded, since the next window could not use it.
            let part = (is_kept && held.is_ok()).then_some((plan.as_str(), task.id));
            let held = held.ok().flatten().map(|held| held.fingerprint);
            let has_findings = result.findings > 0;
            let goes_on =
                keeper.done(&Done { range: &tile, is_read, has_findings, part, held: held.as_deref(), swept });
            done.insert(task.id);
            read.insert((tile.file_id, tile.first), started.clone());
            count += 1;
            if !goes_on {
                break;
            }
        }
        Ok(RangesDone { opened, done, read, keeper, pace, ranges: count })
    }

    /// The remaining tasks, in the order in which they will run.
    fn order(&self, tiles: &[RangeRead], known: Option<&Known>, done: &BTreeSet<u32>) -> Vec<u32> {
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
        left.into_iter().map(|range| range.id).filter(|id| !done.contains(id)).collect()
    }
}

/// The entry for a range that the history does not know.
fn unknown(id: u32) -> Range {
    Range { id, bytes: 0, is_in_use: true, read_at: None, known_since: 0, is_doubted: false }
}

#[cfg(test)]
mod tests;
