//! A window of time over a database that changes: sweeps ranges until the window is over, and compares the sums of those
//! tables of which all ranges are known, from this window or from earlier ones.

use std::collections::BTreeMap;

use catalog::Database;
use findings::registry::limits;
use findings::{FileRange, Options, Report};
use format::PageId;
use format::allocation::EXTENT_PAGES;
use source::PageSource;
use sums::CheckSums;

use super::groups::Keeping;
use super::states::{State, States};
use super::tables::Turn;
use super::watched::Watched;
use super::{Change, Ledger, NotByChange, Reason, Reuse, joined, oldest, refused_in_scope};
use crate::basis::progress::Progress;
use crate::basis::tallies::Tallies;
use crate::checks::{Checks, Sums};
use crate::run::{Run, run_with};
use crate::sweep::check_list::Swept;
use crate::sweep::keeping::range_of;

/// Decides what a window reads, and for how long.
pub trait Schedule {
    /// Whether the window is over.
    fn is_over(&self) -> bool;

    /// Whether pages that were last read by this earlier run, counted backwards, should be read again in the turn of their
    /// table.
    fn is_old(&self, run: usize) -> bool;

    /// The number of pages that are swept before [`Self::is_over`] is asked again.
    fn batch_pages(&self) -> u64;

    /// Puts the tables into the order of their turns. Tables that are left out get no turn.
    fn order(&self, turns: Vec<Turn>) -> Vec<Turn>;

    /// This many ranges were swept, with this many pages in use. Those `of_system` tables are swept in any case.
    fn swept(&self, ranges: u64, pages: u64, of_system: bool);
}

/// What a window has read, and what is left.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WindowDone {
    /// What was read, and what was taken from earlier windows.
    pub reuse: Reuse,
    /// The number of ranges that this window has swept.
    pub ranges_swept: u64,
    /// The number of pages that this window has swept.
    pub pages_swept: u64,
    /// The number of pages in use.
    pub pages: u64,
    /// The number of pages in use that are left for later windows.
    pub open_pages: u64,
}

/// Sweeps ranges in the order of `schedule` until the window is over, keeps their sums in the ledger, and compares the
/// sums of all tables that have no open pages. Ranges with pages in `forced` are swept first.
///
/// # Errors
/// [`NotByChange`]; nothing was reported then, but parts may have been kept.
pub fn run_in_window(
    (source, database): (&dyn PageSource, &Database),
    options: &Options,
    progress: &dyn Progress,
    ledger: &dyn Ledger,
    (schedule, forced): (&dyn Schedule, &[PageId]),
) -> Result<(Report, WindowDone), NotByChange> {
    refused_in_scope(database, options)?;
    let watched = Watched::new(source);
    let (mut done, mut states) = (WindowDone::default(), None);
    let mut report = run_with(&watched, database, options, (progress, None), |run, context, checks| {
        let window = Window { change: Change::new(context, checks, ledger)?, schedule };
        let mut found = window.change.find_kept(run.progress)?;
        window.forget(&mut found, forced);
        // What was read before must be sound now, if it is read again: already while ranges are swept, whose rows may have
        // values in other ranges.
        watched.keep(joined(found.kept()));
        let mut swept = window.sweep((run, checks), &mut found, &mut done);
        done.reuse.pages_kept = window.change.merge_kept(run, &mut found, &mut swept)?;
        let of_no_table = window.end(&found, &mut swept.tallies, &mut done);
        if of_no_table > 0 {
            run.coverage.note(&limits::WINDOW_TABLE_OPEN, "database", of_no_table);
        }
        context.open =
            joined(window.change.in_scope(&found).filter(|(_, state)| state.is_open()).map(|(range, _)| range));
        states = Some(found);
        run.end_pass(context, checks, &mut swept);
        Ok::<_, NotByChange>(swept)
    })?;
    let in_use = states.as_ref().map(|states| joined(states.kept())).unwrap_or_default();
    if let Some(page) = watched.rotten(&in_use) {
        return Err(NotByChange::Rotten(page));
    }
    done.reuse.oldest = states.map(|states| oldest(&report, &states)).unwrap_or_default();
    report.statistics.pages_read = report.statistics.pages_read.saturating_sub(done.reuse.pages_kept);
    Ok((report, done))
}

/// Finds out what is left for windows, without sweeping anything: all pages in use, and those that no earlier window has read
/// as they are now.
///
/// # Errors
/// [`NotByChange`].
pub fn left_for_windows(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    progress: &dyn Progress,
    ledger: &dyn Ledger,
) -> Result<WindowDone, NotByChange> {
    /// Ends the run when all is known.
    enum Ended {
        Known(WindowDone),
        Not(NotByChange),
    }
    impl From<NotByChange> for Ended {
        fn from(why: NotByChange) -> Self {
            Self::Not(why)
        }
    }
    refused_in_scope(database, options)?;
    let ended = run_with(source, database, options, (progress, None), |run, context, checks| {
        let window = Window { change: Change::over(context, checks, ledger)?, schedule: &NoTime };
        let found = window.change.find_kept(run.progress)?;
        let (mut done, mut swept) = (WindowDone::default(), window.change.nothing());
        window.end(&found, &mut swept.tallies, &mut done);
        Err(Ended::Known(done))
    });
    match ended {
        Err(Ended::Known(done)) => Ok(done),
        Err(Ended::Not(why)) => Err(why),
        Ok(_) => Err(NotByChange::Database("the database has no pages that can be read")),
    }
}

/// A window in which nothing is read.
struct NoTime;

impl Schedule for NoTime {
    fn is_over(&self) -> bool {
        true
    }

    fn is_old(&self, _: usize) -> bool {
        false
    }

    fn batch_pages(&self) -> u64 {
        0
    }

    fn order(&self, _: Vec<Turn>) -> Vec<Turn> {
        Vec::new()
    }

    fn swept(&self, _: u64, _: u64, _: bool) {}
}

struct Window<'c, 'w> {
    change: Change<'c>,
    schedule: &'w dyn Schedule,
}

/// What is left of a window.
struct Left {
    /// Whether its time is over.
    is_over: bool,
    /// Whether a batch of ranges is swept although the time is over.
    is_first: bool,
    /// Whether the ranges are those of system tables. They are swept even if the time is over, because other tables can only
    /// be compared if the catalog is known completely.
    of_system: bool,
}

/// The ranges of a table that a window may read.
#[derive(Default)]
struct Work {
    pages: u64,
    open_pages: u64,
    old_pages: u64,
    oldest: Option<usize>,
    /// Ranges that no window has read.
    new: Vec<FileRange>,
    /// Ranges that have changed.
    changed: Vec<FileRange>,
    /// Ranges whose last read is too long ago.
    old: Vec<FileRange>,
}

impl Window<'_, '_> {
    /// The sums of ranges with these pages are not used.
    fn forget(&self, states: &mut States, pages: &[PageId]) {
        for page in pages {
            let file_pages = self.change.context.survey.file(page.file).map_or(0, |file| file.pages);
            states.set(range_of(*page, self.change.range_pages, file_pages), State::Other(Reason::Findings));
        }
    }

    /// Sweeps ranges until the window is over.
    fn sweep(&self, (run, checks): (&mut Run<'_>, &Checks), states: &mut States, done: &mut WindowDone) -> Swept<Sums> {
        let mut swept = Swept::new(checks, self.change.context.units.list().len());
        let (system, first, mut tables) = self.work(states);
        let old = self.oldest_first(states);
        let pages = tables.values().map(|work| work.open_pages + work.old_pages).sum();
        run.progress.phase("sweep", pages);
        let mut left = Left { is_over: false, is_first: false, of_system: true };
        self.sweep_ranges((run, checks), system, states, (&mut swept, done, &mut left));
        left.of_system = false;
        self.sweep_ranges((run, checks), first, states, (&mut swept, done, &mut left));
        // Even the shortest window reads something that no window has read.
        left.is_first = true;
        let turns = tables.iter().map(|(object_id, work)| work.turn(*object_id)).collect();
        let turns = self.schedule.order(turns).into_iter().filter_map(|turn| tables.remove(&turn.object_id));
        let ranges = turns.flat_map(|Work { new, changed, old, .. }| [new, changed, old]).flatten().collect();
        self.sweep_ranges((run, checks), ranges, states, (&mut swept, done, &mut left));
        // The rest of the window finds pages that went bad.
        left.is_first = false;
        self.sweep_ranges((run, checks), old, states, (&mut swept, done, &mut left));
        swept
    }

    /// Sweeps ranges that this window has not swept yet, until the window is over.
    fn sweep_ranges(
        &self,
        (run, checks): (&mut Run<'_>, &Checks),
        ranges: Vec<FileRange>,
        states: &mut States,
        (swept, done, left): (&mut Swept<Sums>, &mut WindowDone, &mut Left),
    ) {
        let context = self.change.context;
        let mut ranges = ranges.into_iter().peekable();
        while ranges.peek().is_some() {
            left.is_over = left.is_over || self.schedule.is_over();
            if left.is_over && !left.is_first && !left.of_system {
                return;
            }
            let (mut batch, mut pages, most_pages) = (Vec::new(), 0, self.schedule.batch_pages());
            while let Some(range) = ranges.next_if(|range| pages == 0 || pages + u64::from(range.pages) <= most_pages) {
                let Some(state) = states.get(range).filter(|state| *state != State::Swept) else { continue };
                *done.reuse.swept.entry(state.reason()).or_default() += 1;
                states.set(range, State::Swept);
                pages += u64::from(range.pages);
                batch.push(range);
            }
            if batch.is_empty() {
                continue;
            }
            left.is_first = false;
            batch.sort_unstable_by_key(|range| (range.file_id, range.first));
            let ranges_swept = batch.len() as u64;
            done.ranges_swept += ranges_swept;
            let count = |_: &Change<'_>, file, first, end| {
                let at = |page| batch.partition_point(|range| (range.file_id, range.first) < (file, page));
                at(end) - at(first)
            };
            let keeping = Keeping::new(&self.change, count);
            let mut part = run.sweep_ranges((context, checks), &joined(batch.iter().copied()), &keeping);
            part.merge(keeping.finish().0);
            done.pages_swept += part.tallies.pages_allocated;
            let in_use = part.tallies.pages_allocated;
            swept.merge(part);
            swept.sums.gather(context.space);
            self.schedule.swept(ranges_swept, in_use, left.of_system);
        }
    }

    /// The ranges with pages of system tables; those that are read next in any case: those whose sums cannot be kept, those in
    /// which the last read has found something, and those without pages of tables; and what each table needs.
    fn work(&self, states: &States) -> (Vec<FileRange>, Vec<FileRange>, BTreeMap<i32, Work>) {
        let (mut system, mut first, mut tables) = (Vec::new(), Vec::new(), BTreeMap::<i32, Work>::new());
        let mut owners = Vec::new();
        for (range, state) in self.change.in_scope(states) {
            self.change.owners(range, &mut owners);
            let objects = self.change.by_object(&owners);
            let is_first = match state {
                State::Other(Reason::Findings) => true,
                State::Kept(_) => false,
                _ => objects.is_empty() || !self.change.may_keep(range),
            };
            let database = self.change.context.database;
            if is_first && objects.iter().any(|(object_id, _)| database.is_system_table(*object_id)) {
                system.push(range);
            } else if is_first {
                first.push(range);
            }
            let is_old = matches!(state, State::Kept(run) if self.schedule.is_old(run.into()));
            for (object_id, pages) in objects {
                let work = tables.entry(object_id).or_default();
                work.pages += pages;
                if let State::Kept(run) = state {
                    work.oldest = Some(usize::from(run)).max(work.oldest);
                }
                match state {
                    _ if is_first => continue,
                    State::Unknown => work.new.push(range),
                    State::Other(_) => work.changed.push(range),
                    State::Kept(_) if is_old => work.old.push(range),
                    _ => continue,
                }
                if is_old { work.old_pages += pages } else { work.open_pages += pages }
            }
        }
        (system, first, tables)
    }

    /// All ranges whose sums are kept, the least recently read first.
    fn oldest_first(&self, states: &States) -> Vec<FileRange> {
        let kept = states.each().filter_map(|(range, state)| match state {
            State::Kept(run) => Some((std::cmp::Reverse(run), range)),
            _ => None,
        });
        let mut kept: Vec<_> = kept.collect();
        kept.sort_by_key(|(run, range)| (*run, range.file_id, range.first));
        kept.into_iter().map(|(_, range)| range).collect()
    }

    /// Counts what is left, and marks the units of which some pages were not read. Returns the number of pages that are
    /// left in ranges without pages of tables.
    fn end(&self, states: &States, tallies: &mut Tallies, done: &mut WindowDone) -> u64 {
        let (mut owners, mut of_no_table) = (Vec::new(), 0);
        for (range, state) in self.change.in_scope(states) {
            done.reuse.ranges += 1;
            self.change.owners(range, &mut owners);
            let pages = owners.iter().map(|(_, pages)| pages).sum::<u64>();
            done.pages += pages;
            if !state.is_open() {
                continue;
            }
            done.open_pages += pages;
            if self.change.by_object(&owners).is_empty() {
                of_no_table += pages;
            }
            let file = self.change.context.survey.file(range.file_id);
            let mut extents = (range.first..range.end()).step_by(EXTENT_PAGES as usize).map(|page| page / EXTENT_PAGES);
            // The header of a page decides which unit of a shared extent it belongs to, so any of them may lack it.
            tallies.has_unread_shared |= file.is_some_and(|file| extents.any(|extent| file.is_shared(extent)));
            for (unit, pages) in owners.iter().filter_map(|(unit, pages)| Some(((*unit)?, *pages))) {
                if let Some(tally) = tallies.units.get_mut(unit as usize) {
                    tally.open_pages += pages;
                }
            }
        }
        done.reuse.tables = self.change.tables(states, |run| self.schedule.is_old(run));
        of_no_table
    }
}

impl Work {
    fn turn(&self, object_id: i32) -> Turn {
        Turn {
            object_id,
            pages: self.pages,
            open_pages: self.open_pages,
            old_pages: self.old_pages,
            oldest: self.oldest,
        }
    }
}
