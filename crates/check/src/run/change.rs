//! Proof by change: a run that uses the sums of an earlier run for all ranges of pages that have not changed since, and
//! reads only the other ranges.
//!
//! The sums of a range are a function of its inputs: the bytes of its pages, their maps, and the meaning of the units that
//! own them (see `basis::meaning`). Where all inputs are the same as in the earlier run, so are the sums. What the
//! sweep has added up is then the same as in a whole run, and everything after the sweep is done as in a whole run, with
//! the present pages. Sums are never kept of ranges with findings, with pages that could not be read, or with system
//! tables, which are read anyway.

mod groups;
mod inputs;
mod kept;
mod ledger;
pub mod packed;
mod parted;
mod promise;
mod reuse;
mod standing;
mod states;
mod tables;
mod verify;
mod watched;
mod window;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use catalog::Database;
use findings::{FileRange, Options, Ranges, Report, Scope};
use format::PageId;
use source::PageSource;
use sums::wire::{Output, Wire};

use crate::basis::progress::Progress;
use crate::checks::{Checks, Sums};
use crate::run::{Run, run_with};
use crate::sweep::any_in_scope;
use crate::sweep::check_list::Swept;
use crate::sweep::context::Context;
use crate::sweep::rounds::Rounds;
use crate::sweep::settled::{Marks, Settled};

use groups::Keeping;
use inputs::Inputs;
use kept::{Kept, RUN, bounds_head, head_of};
pub use ledger::{Entry, KeptGroup, Ledger, Part, PartKey, Piece, read_seen, write_seen};
pub use parted::{Divided, LeftOut, Supply, merge_by_change};
pub(crate) use parted::{Groups, others, ranges_head, read_ranges_of, sweep_of_task};
use promise::Promises;
use reuse::oldest;
pub use reuse::{NotByChange, Reason, Reuse};
use standing::Standing;
use states::{State, States};
pub use tables::Turn;
#[doc(hidden)]
pub use verify::differing_parts;
pub(crate) use watched::Watched;
pub use window::{Schedule, WindowDone, left_for_windows, run_in_window};

/// Makes a run like [`crate::run`], but uses the parts in the ledger for all ranges that have not changed, and keeps the
/// parts of all other ranges. With an empty ledger, reads all pages.
///
/// # Errors
/// [`NotByChange`]; nothing was reported then.
pub fn run_by_change(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    progress: &dyn Progress,
    ledger: &dyn Ledger,
) -> Result<(Report, Reuse), NotByChange> {
    by_change((source, database), options, (progress, None), (ledger, &mut Here))
}

/// The sums of ranges, and the keys of those parts that the run keeps, by file and first page.
type Added = (Swept<Sums>, BTreeMap<(u16, u32), PartKey>);

/// Where the sums of the ranges come from that are not taken from earlier runs.
trait Others<E> {
    /// Called when the maps are read. Marks the ranges that are swept in any case.
    fn begin(&mut self, run: &mut Run<'_>, context: &Context<'_>, states: &mut States) -> Result<(), E>;

    /// Supplies the sums of the ranges with pages in scope that are not kept, and keeps their parts in the ledger.
    fn add(&mut self, run: &mut Run<'_>, change: &Change<'_>, kept: &Kept) -> Result<Added, E>;

    /// The ranges among which second looks can be divided.
    fn ranges(&mut self) -> Ranges {
        Ranges::default()
    }

    /// The pages of other ranges that were read besides, and were not sound.
    fn suspects(&mut self) -> Vec<PageId> {
        Vec::new()
    }
}

/// The run sweeps the ranges itself.
struct Here;

impl Others<NotByChange> for Here {
    fn begin(&mut self, _: &mut Run<'_>, _: &Context<'_>, _: &mut States) -> Result<(), NotByChange> {
        Ok(())
    }

    fn add(&mut self, run: &mut Run<'_>, change: &Change<'_>, kept: &Kept) -> Result<Added, NotByChange> {
        let missing = change.missing(kept);
        let keeping = Keeping::new(change, missing_in(&kept.states));
        run.progress.phase("sweep", missing.iter().map(|range| u64::from(range.pages)).sum());
        let mut swept = run.sweep_ranges((change.context, change.checks), &missing, &keeping);
        let (rest, new_keys) = keeping.finish();
        swept.merge(rest);
        Ok((swept, new_keys))
    }
}

/// Like [`run_by_change`], with the sums of all ranges that are not kept from `others`.
fn by_change<E: From<NotByChange>>(
    (source, database): (&dyn PageSource, &Database),
    options: &Options,
    (progress, rounds): (&dyn Progress, Option<&Rounds<'_>>),
    (ledger, others): (&dyn Ledger, &mut dyn Others<E>),
) -> Result<(Report, Reuse), E> {
    refused(database, options)?;
    let watched = Watched::new(source);
    let (mut reuse, mut in_use, mut states, mut noted) = (Reuse::default(), Vec::new(), None, None);
    let mut report = run_with(&watched, database, options, (progress, rounds), |run, context, checks| {
        let mut marked = States::of(context, ledger.range_pages());
        others.begin(run, context, &mut marked)?;
        let change = Change::new(context, checks, ledger)?;
        let mut kept = change.kept(run, marked)?;
        reuse = change.reuse(&kept);
        let ranges_kept = joined(kept.states.kept());
        watched.keep(ranges_kept.clone());
        in_use = ranges_kept;
        let (swept, new_keys) = others.add(run, &change, &kept)?;
        kept.swept.merge(swept);
        watched.suspect(others.suspects());
        kept.states.each_mut(|state| {
            if state.is_open() {
                *state = State::Swept;
            }
        });
        reuse.tables = change.tables(&kept.states, |_| false);
        let settled = change.settled(&kept);
        change.add_bounds(&mut kept, &settled)?;
        let mut standing = change.standing(&kept, new_keys);
        let values = Arc::clone(&settled.values_now);
        if context.survey.has_missed() {
            let text = context.space.error().unwrap_or_else(|| "a temporary file cannot be read".to_owned());
            return Err(NotByChange::Io(io::Error::other(text)).into());
        }
        context.settled = Some(settled);
        run.end_pass(context, checks, &mut kept.swept);
        context.ranges = others.ranges();
        standing.open = std::mem::take(&mut kept.swept.sums.trees.open);
        standing.is_void |= context.space.error().is_some();
        noted = Some((standing, values));
        states = Some(kept.states);
        Ok::<_, E>(kept.swept)
    })?;
    if let Some(page) = watched.rotten(&in_use) {
        return Err(NotByChange::Rotten(page).into());
    }
    if let Some((mut standing, values)) = noted {
        standing.values = std::mem::take(&mut *values.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(bytes) = standing.written(&options.fact_hash()) {
            ledger.stand(&bytes);
        }
    }
    reuse.oldest = states.map(|states| oldest(&report, &states)).unwrap_or_default();
    report.statistics.pages_read = report.statistics.pages_read.saturating_sub(reuse.pages_kept);
    Ok((report, reuse))
}

/// Refuses a run that needs all pages.
///
/// # Errors
/// [`NotByChange`] with the reason.
pub fn refused(database: &Database, options: &Options) -> Result<(), NotByChange> {
    if options.scope != Scope::Database {
        return Err(NotByChange::Options("a check of some tables only"));
    }
    refused_in_scope(database, options)
}

/// Like [`refused`], for a run that may be confined to some tables.
fn refused_in_scope(database: &Database, options: &Options) -> Result<(), NotByChange> {
    if let Some(option) = needs_all_pages(options) {
        return Err(NotByChange::Options(option));
    }
    if database.is_encrypted {
        return Err(NotByChange::Database("the database is encrypted"));
    }
    if !database.units_are_complete() || !database.layouts_are_complete() {
        return Err(NotByChange::Database("the catalog of the database cannot be read completely"));
    }
    Ok(())
}

/// Joins neighboring ranges. The ranges are ascending.
fn joined(ranges: impl Iterator<Item = FileRange>) -> Vec<FileRange> {
    let mut joined: Vec<FileRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.file_id == range.file_id && last.end() == range.first => last.pages += range.pages,
            _ => joined.push(range),
        }
    }
    joined
}

/// The option that makes a check need all pages; `None` if there is none.
fn needs_all_pages(options: &Options) -> Option<&'static str> {
    let needs = [
        (!options.scope.reads_pages(), "a check of the allocation or the catalog only"),
        (options.physical_only, "--physical-only"),
        (options.constraints, "--constraints"),
        (options.identities, "--identity"),
        (options.batches > 1, "--batches"),
        (options.row_by_row, "a check row by row"),
    ];
    needs.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, option)| option)
}

/// What the catalog, the maps and the ledger say about the ranges of the database.
struct Change<'c> {
    context: &'c Context<'c>,
    checks: &'c Checks,
    ledger: &'c dyn Ledger,
    inputs: Inputs,
    /// What the latest run has noted.
    standing: Option<Standing>,
    /// The ranges of which the ledger says already that something was found in them.
    found: Mutex<Marks>,
    promises: Promises,
    range_pages: u32,
}

impl<'c> Change<'c> {
    fn new(context: &'c Context<'c>, checks: &'c Checks, ledger: &'c dyn Ledger) -> Result<Self, NotByChange> {
        let change = Self::over(context, checks, ledger)?;
        let mut bytes = Vec::new();
        let mut to = Output::new(&context.hash, RUN, context.space, &mut bytes);
        (change.inputs.globals(context), change.inputs.names().clone()).write(&mut to)?;
        to.finish()?;
        ledger.begin(&bytes);
        Ok(change)
    }

    /// Like [`Self::new`], for a run that keeps nothing.
    fn over(context: &'c Context<'c>, checks: &'c Checks, ledger: &'c dyn Ledger) -> Result<Self, NotByChange> {
        let inputs = Inputs::of(context, checks);
        let range_pages = ledger.range_pages();
        let standing = ledger.standing()?.map(|bytes| Standing::read(context, &bytes)).transpose()?;
        let standing = standing.filter(|standing| standing.globals == inputs.globals(context));
        let found = Mutex::new(Marks::new(range_pages));
        Ok(Self { context, checks, ledger, inputs, standing, found, promises: Promises::default(), range_pages })
    }

    fn nothing(&self) -> Swept<Sums> {
        Swept::new(self.checks, self.context.units.list().len())
    }

    /// Which pages of a range come from later sets, if none comes from the log; `None` if one does.
    fn stored_mask(&self, range: FileRange) -> Option<u128> {
        let (source, first) = (self.context.source, PageId::new(range.file_id, range.first));
        let mask = source.above_base(first, range.pages)?;
        (source.above_base_as_stored(first, range.pages) == Some(mask)).then_some(mask)
    }

    /// The ranges with pages in scope whose sums are not kept. Neighboring ranges are joined. If no sums are kept, these
    /// are the whole files, which are then read like in a whole run.
    fn missing(&self, kept: &Kept) -> Vec<FileRange> {
        if kept.states.kept().next().is_none() {
            let files = &self.context.survey.files;
            return files.iter().map(|file| FileRange { file_id: file.file_id, first: 0, pages: file.pages }).collect();
        }
        let missing = self.in_scope(&kept.states).filter(|(_, state)| !matches!(state, State::Kept(_)));
        joined(missing.map(|(range, _)| range))
    }

    fn is_in_scope(&self, range: FileRange) -> bool {
        any_in_scope(self.context, PageId::new(range.file_id, range.first), range.pages)
    }

    fn in_scope<'s>(&'s self, states: &'s States) -> impl Iterator<Item = (FileRange, State)> + 's {
        states.each().filter(move |(range, _)| self.is_in_scope(*range))
    }

    fn reuse(&self, kept: &Kept) -> Reuse {
        let mut reuse = Reuse { pages_kept: kept.pages, ..Reuse::default() };
        for (_, state) in self.in_scope(&kept.states) {
            reuse.ranges += 1;
            let reason = match state {
                State::Kept(_) => continue,
                state => state.reason(),
            };
            *reuse.swept.entry(reason).or_default() += 1;
        }
        reuse
    }

    /// Which non-leaf pages the latest run has compared with their children, with the same pages as now.
    fn settled(&self, kept: &Kept) -> Settled {
        let mut changed = Marks::new(self.range_pages);
        let values_now = Arc::default();
        let Some(standing) = &self.standing else {
            let (open, values) = Default::default();
            return Settled { changed, open, values, values_now, is_first: true };
        };
        let first_run = self.ledger.runs().saturating_sub(1);
        for (range, state) in kept.states.each() {
            let is_same = match state {
                State::Kept(run) => match kept.keys.get(&(range.file_id, range.first)) {
                    Some(key) => standing.key(range) == Some(key),
                    None => usize::from(run) == first_run,
                },
                _ => false,
            };
            if !is_same && (matches!(state, State::Kept(_)) || self.is_in_scope(range)) {
                changed.mark(PageId::new(range.file_id, range.first));
            }
        }
        let (open, values) = (standing.open.clone(), standing.values.clone());
        Settled { changed, open, values, values_now, is_first: false }
    }

    /// What the next run must know about this one. `new_keys` are the keys of the parts that this run has kept.
    fn standing(&self, kept: &Kept, mut new_keys: BTreeMap<(u16, u32), PartKey>) -> Standing {
        let runs = self.ledger.runs();
        let mut standing = Standing::of(self.ledger.later_sets(), self.inputs.globals(self.context));
        if runs == 0 {
            return standing;
        }
        for (range, state) in self.in_scope(&kept.states) {
            let place = (range.file_id, range.first);
            let key = match state {
                State::Kept(run) if usize::from(run) + 1 == runs => continue,
                State::Kept(_) => kept.keys.get(&place).copied(),
                _ => new_keys.remove(&place),
            };
            standing.add(range, key, self.stored_mask(range));
            if standing.len() > most_stood(self.context) {
                standing.is_void = true;
                break;
            }
        }
        standing
    }
}

/// The most ranges that a run notes for the next, and keeps the keys of. With more, the next run compares everything.
fn most_stood(context: &Context<'_>) -> usize {
    (context.bytes_for_facts() / 256).clamp(1 << 12, 1 << 20)
}

/// Counts the ranges of a group that are swept because their sums are not kept.
fn missing_in<'s>(states: &'s States) -> impl Fn(&Change<'_>, u16, u32, u32) -> usize + Sync + 's {
    |change, file, first, end| states.missing_in(file, first, end).filter(|range| change.is_in_scope(*range)).count()
}

#[cfg(test)]
mod tests;
