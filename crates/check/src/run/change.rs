//! Proof by change: a run that uses the sums of an earlier run for all ranges of pages that have not changed since, and
//! reads only the other ranges.
//!
//! The sums of a range are a function of its inputs: the bytes of its pages, their maps, and the meaning of the units that
//! own them (see `basis::meaning`). Where all inputs are the same as in the earlier run, so are the sums. What the
//! sweep has added up is then the same as in a whole run, and everything after the sweep is done as in a whole run, with
//! the present pages. Sums are never kept of ranges with findings, with pages that could not be read, or with system
//! tables, which are read anyway.

mod inputs;
mod verify;
mod watched;

use std::collections::BTreeMap;
use std::io;

use catalog::Database;
use findings::{FileRange, Options, Report, Scope};
use format::PageId;
use source::PageSource;
use source::backup::FileSeen;
use sums::CheckSums;
use sums::names::{Names, Translation};
use sums::spill::TempStore;
use sums::wire::{Digest, Input, Output, SumsError, Wire};
use thiserror::Error;

use crate::basis::progress::Progress;
use crate::checks::{Checks, Sums};
use crate::run::part::seen;
use crate::run::{Run, run_with};
use crate::sweep::any_in_scope;
use crate::sweep::check_list::{CheckList, Swept};
use crate::sweep::context::Context;
use crate::sweep::keeping::{Keeper, SweptRange, range_of};

use inputs::Inputs;
#[doc(hidden)]
pub use verify::differing_parts;
use watched::Watched;

/// The inputs of a range's sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartKey {
    /// The pages of the range.
    pub range: FileRange,
    /// A digest of the bytes that do not come from the first set of the backup; zero if there are none.
    pub above: Digest,
    /// A digest of the maps of the range.
    pub maps: Digest,
    /// A digest of the meaning of the units in the range.
    pub meaning: Digest,
}

impl PartKey {
    /// Number of bytes of a key.
    pub const BYTES: usize = 10 + 3 * 16;

    /// The key as bytes.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let FileRange { file_id, first, pages } = self.range;
        let numbers = file_id.to_le_bytes().into_iter().chain(first.to_le_bytes()).chain(pages.to_le_bytes());
        let digests = [self.above, self.maps, self.meaning].into_iter().flatten();
        let mut bytes = [0; Self::BYTES];
        bytes.iter_mut().zip(numbers.chain(digests)).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Reads the output of [`Self::to_bytes`]; `None` if there are too few bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let digest = |at: usize| bytes.get(at..)?.first_chunk::<16>().copied();
        let file_id = u16::from_le_bytes(*bytes.first_chunk()?);
        let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let range = FileRange { file_id, first: number(2)?, pages: number(6)? };
        Some(Self { range, above: digest(10)?, maps: digest(26)?, meaning: digest(42)? })
    }
}

/// What a ledger gives back.
pub enum Entry<'e> {
    /// The beginning of the parts that one run has kept: what [`Ledger::begin`] received.
    Run(&'e [u8]),
    /// A part of that run.
    Part(PartKey, &'e [u8]),
}

/// The storage for the parts of earlier runs and of this run.
pub trait Ledger: Sync {
    /// The number of pages of a range: a power of two, at most 128.
    fn range_pages(&self) -> u32;

    /// Calls `visit` with everything that earlier runs have kept, the latest run first.
    ///
    /// # Errors
    /// If the ledger cannot be read, or an error of `visit`.
    fn each(&self, visit: &mut dyn FnMut(Entry<'_>) -> Result<(), NotByChange>) -> Result<(), NotByChange>;

    /// Begins to keep the parts of this run. `names` must be given back with them.
    fn begin(&self, names: &[u8]);

    /// Keeps a part of this run. If that fails, the run goes on.
    fn keep(&self, key: PartKey, part: &[u8]);
}

/// Why a run cannot use the sums of an earlier run. The caller makes a whole run instead.
#[derive(Debug, Error)]
pub enum NotByChange {
    /// The options ask for something that needs all pages.
    #[error("{0} needs all pages")]
    Options(&'static str),
    /// The database has no pages to sweep, or its catalog cannot be read completely.
    #[error("{0}")]
    Database(&'static str),
    /// The ledger cannot be read.
    #[error("the ledger cannot be used: {0}")]
    Sums(#[from] SumsError),
    /// The ledger cannot be read.
    #[error("the ledger cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A page that was sound in the earlier run is not sound any more, although nothing has changed it.
    #[error("page {0} was sound when the earlier check read it, and is not sound now")]
    Rotten(PageId),
}

/// Why a range was swept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The bytes of its pages are others.
    Bytes,
    /// Its maps are others: which pages are in use, or which units own them.
    Maps,
    /// The catalog says something else about its units.
    Meaning,
    /// No earlier run has kept its sums.
    NotKept,
}

impl Reason {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Maps => "maps",
            Self::Meaning => "meaning",
            Self::NotKept => "not_kept",
        }
    }
}

/// What a run has read, and what it took from earlier runs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reuse {
    /// The number of ranges with pages in use.
    pub ranges: u64,
    /// The number of ranges that this run has swept, by the reason.
    pub swept: BTreeMap<Reason, u64>,
    /// The number of pages in the ranges that this run has not read.
    pub pages_kept: u64,
    /// For each range of the report: the earliest run from which sums were taken, counted backwards: 0 is the latest
    /// run. `None` if this run has read the whole range.
    pub oldest: Vec<Option<usize>>,
}

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
    if let Some(option) = needs_all_pages(options) {
        return Err(NotByChange::Options(option));
    }
    if database.is_encrypted {
        return Err(NotByChange::Database("the database is encrypted"));
    }
    if !database.units_are_complete() || !database.layouts_are_complete() {
        return Err(NotByChange::Database("the catalog of the database cannot be read completely"));
    }
    let watched = Watched::new(source);
    let (mut reuse, mut states) = (Reuse::default(), None);
    let mut report = run_with(&watched, database, options, (progress, None), |run, context, checks| {
        let change = Change::new(context, checks, ledger)?;
        let mut kept = change.kept(run)?;
        let missing = change.missing(&kept);
        reuse = change.reuse(&kept);
        watched.keep(joined(kept.states.kept()));
        let others = run.sweep_ranges((change.context, checks), &missing, &change);
        kept.swept.merge(others);
        states = Some(kept.states);
        run.end_pass(context, checks, &mut kept.swept);
        Ok::<_, NotByChange>(kept.swept)
    })?;
    if let Some(page) = watched.rotten() {
        return Err(NotByChange::Rotten(page));
    }
    reuse.oldest = states.map(|states| oldest(&report, &states)).unwrap_or_default();
    report.statistics.pages_read = report.statistics.pages_read.saturating_sub(reuse.pages_kept);
    Ok((report, reuse))
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
        (options.scope != Scope::Database, "a check of some tables only"),
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
    range_pages: u32,
}

/// Whether the sums of a range are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The ledger has no part for the range.
    Unknown,
    /// The ledger has parts, but none with the present inputs. The reason is that of the latest run.
    Other(Reason),
    /// The sums come from this run, counted backwards.
    Kept(u16),
}

/// The state of each range of the files.
struct States {
    files: Vec<(u16, u32, Vec<State>)>,
    range_pages: u32,
}

impl States {
    fn of(context: &Context<'_>, range_pages: u32) -> Self {
        let of_file = |file: &crate::survey::FileMap| {
            (file.file_id, file.pages, vec![State::Unknown; file.pages.div_ceil(range_pages) as usize])
        };
        Self { files: context.survey.files.iter().map(of_file).collect(), range_pages }
    }

    /// The state of a range; `None` if the files are not divided into such ranges.
    fn get_mut(&mut self, range: FileRange) -> Option<&mut State> {
        let (_, pages, states) = self.files.iter_mut().find(|(file, ..)| *file == range.file_id)?;
        let is_range = range == range_of(PageId::new(range.file_id, range.first), self.range_pages, *pages);
        states.get_mut((range.first / self.range_pages) as usize).filter(|_| is_range && range.pages > 0)
    }

    /// All ranges, in the order of the files.
    fn each(&self) -> impl Iterator<Item = (FileRange, State)> + '_ {
        self.files.iter().flat_map(|(file, pages, states)| {
            let with_first = states.iter().zip((0..).step_by(self.range_pages as usize));
            let range = |first| range_of(PageId::new(*file, first), self.range_pages, *pages);
            with_first.map(move |(state, first)| (range(first), *state))
        })
    }

    /// The ranges whose sums were taken from earlier runs, in the order of the files.
    fn kept(&self) -> impl Iterator<Item = FileRange> + '_ {
        self.each().filter(|(_, state)| matches!(state, State::Kept(_))).map(|(range, _)| range)
    }
}

/// The sums that were taken from earlier runs.
struct Kept {
    swept: Swept<Sums>,
    states: States,
    pages: u64,
}

impl<'c> Change<'c> {
    fn new(context: &'c Context<'c>, checks: &'c Checks, ledger: &'c dyn Ledger) -> Result<Self, NotByChange> {
        let inputs = Inputs::of(context, checks);
        let range_pages = ledger.range_pages();
        let mut bytes = Vec::new();
        let mut to = Output::new(&context.hash, RUN, context.space, &mut bytes);
        (inputs.globals(context), inputs.names().clone()).write(&mut to)?;
        to.finish()?;
        ledger.begin(&bytes);
        Ok(Self { context, checks, ledger, inputs, range_pages })
    }

    /// Adds up the parts of earlier runs whose inputs are the same now.
    fn kept(&self, run: &Run<'_>) -> Result<Kept, NotByChange> {
        let context = self.context;
        let (mut all, mut pages) = (Swept::new(self.checks, context.units.list().len()), 0);
        let states = self.each_kept(run, |_, swept| {
            pages += swept.tallies.pages_read;
            all.merge(swept);
            all.sums.gather(context.space);
            self.checks.bound(context, &mut all.sums);
        })?;
        Ok(Kept { swept: all, states, pages })
    }

    /// Calls `visit` with each part of an earlier run whose inputs are the same now, once for each range.
    fn each_kept(&self, run: &Run<'_>, mut visit: impl FnMut(&PartKey, Swept<Sums>)) -> Result<States, NotByChange> {
        let mut states = States::of(self.context, self.range_pages);
        let (mut runs, mut translation) = (0_u16, None);
        run.progress.phase("merge", 0);
        self.ledger.each(&mut |entry| {
            match entry {
                Entry::Run(names) => {
                    runs = runs.saturating_add(1);
                    translation = self.translation(names)?;
                }
                Entry::Part(key, part) => {
                    let (Some(translation), Some(state)) = (&translation, states.get_mut(key.range)) else {
                        return Ok(());
                    };
                    if matches!(state, State::Kept(_)) {
                        return Ok(());
                    }
                    match self.sums_of(&key, translation, part)? {
                        Ok(swept) => {
                            *state = State::Kept(runs.saturating_sub(1));
                            visit(&key, swept);
                        }
                        Err(reason) if *state == State::Unknown => *state = State::Other(reason),
                        Err(_) => {}
                    }
                }
            }
            Ok(())
        })?;
        Ok(states)
    }

    /// The sums of a part, or the reason why they are not those of the range now.
    fn sums_of(
        &self,
        key: &PartKey,
        translation: &Translation,
        mut part: &[u8],
    ) -> Result<Result<Swept<Sums>, Reason>, SumsError> {
        if let Some(reason) = self.inputs.compare(self.context, self.checks, key) {
            return Ok(Err(reason));
        }
        let swept = self.read(key, translation, &mut part)?;
        let has_all = self.checks.last_checkpoint.has_all(&swept.sums.last_checkpoint);
        Ok(if has_all { Ok(swept) } else { Err(Reason::Meaning) })
    }

    /// How to translate the numbers of an earlier run; `None` if the run was made under other conditions.
    fn translation(&self, mut names: &[u8]) -> Result<Option<Translation>, NotByChange> {
        let context = self.context;
        let mut from = Input::new(&context.hash, RUN, (context.space, 0), &mut names);
        let (globals, names): (Digest, Names) = Wire::read(&mut from)?;
        from.finish()?;
        let is_same = globals == self.inputs.globals(context);
        Ok(is_same.then(|| Translation::new(&names, self.inputs.names())))
    }

    fn read(&self, key: &PartKey, translation: &Translation, part: &mut &[u8]) -> Result<Swept<Sums>, SumsError> {
        let (context, head) = (self.context, key.to_bytes());
        let space = (context.space, context.units.list().len());
        let mut from = Input::new(&context.hash, &head, space, part).translated(translation);
        let swept = Swept::take(&mut from)?;
        from.finish()?;
        Ok(swept)
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

    fn in_scope<'s>(&'s self, states: &'s States) -> impl Iterator<Item = (FileRange, State)> + 's {
        let has_any =
            |range: &FileRange| any_in_scope(self.context, PageId::new(range.file_id, range.first), range.pages);
        states.each().filter(move |(range, _)| has_any(range))
    }

    fn reuse(&self, kept: &Kept) -> Reuse {
        let mut reuse = Reuse { pages_kept: kept.pages, ..Reuse::default() };
        for (_, state) in self.in_scope(&kept.states) {
            reuse.ranges += 1;
            let reason = match state {
                State::Kept(_) => continue,
                State::Other(reason) => reason,
                State::Unknown => Reason::NotKept,
            };
            *reuse.swept.entry(reason).or_default() += 1;
        }
        reuse
    }

    /// Whether the sums contain everything about their pages, and follow from these pages alone.
    fn is_complete(&self, Swept { tallies, sums }: &Swept<Sums>) -> bool {
        tallies.pages_allocated > 0
            && !self.context.survey.has_missed()
            && tallies.unclaimed_pages == 0
            && !tallies.has_unread_shared
            && tallies.unread.is_empty()
            && tallies.taken.is_empty()
            && tallies.units.touched().all(|(_, tally)| tally.lost_pages() == 0)
            && !sums.indexes.depend_on_other_pages()
            && self.checks.last_checkpoint.has_all(&sums.last_checkpoint)
    }

    /// Writes the part of a range, if a later run may use it.
    fn part(&self, done: &mut SweptRange<Sums>) -> Option<(PartKey, Vec<u8>)> {
        let context = self.context;
        let above = done.above.filter(|_| !done.has_findings && self.is_complete(&done.swept))?;
        let (maps, meaning) = self.inputs.of_range(context, self.checks, done.range)?;
        let key = PartKey { range: done.range, above, maps, meaning };
        done.swept.put_in_order(context);
        let (mut bytes, head) = (Vec::new(), key.to_bytes());
        let mut to = Output::new(&context.hash, &head, context.space, &mut bytes);
        done.swept.put(&mut to).and_then(|()| to.finish()).ok()?;
        Some((key, bytes))
    }
}

impl Keeper<Sums> for Change<'_> {
    fn range_pages(&self) -> u32 {
        self.range_pages
    }

    fn keep(&self, _: &Context<'_>, done: &mut SweptRange<Sums>) {
        if let Some((key, part)) = self.part(done) {
            self.ledger.keep(key, &part);
        }
    }
}

/// The head with which the names of a run are encoded.
const RUN: &[u8] = b"names of a run";

/// For each range of a report: the earliest run from which sums were taken.
fn oldest(report: &Report, states: &States) -> Vec<Option<usize>> {
    let mut oldest = vec![None; report.ranges.len()];
    let mut at = 0;
    for (range, state) in states.each() {
        let is_before = |tile: &findings::RangeRead| {
            (tile.file_id, tile.first.saturating_add(tile.pages)) <= (range.file_id, range.first)
        };
        while report.ranges.get(at).is_some_and(is_before) {
            at += 1;
        }
        if let (State::Kept(run), Some(place)) = (state, oldest.get_mut(at)) {
            *place = Some(usize::from(run)).max(*place);
        }
    }
    oldest
}

/// Encodes what was read of the first set of a backup.
///
/// # Errors
/// Fails only if memory cannot be allocated.
pub fn write_seen(key: &sums::HashKey, seen: &[FileSeen]) -> Result<Vec<u8>, SumsError> {
    let (hash, space, mut bytes) = (sums::hash::FactHash::of_key(key), TempStore::default(), Vec::new());
    let mut to = Output::new(&hash, RUN, &space, &mut bytes);
    seen::put_files(seen, &mut to)?;
    to.finish()?;
    Ok(bytes)
}

/// Reads the output of [`write_seen`].
///
/// # Errors
/// [`SumsError`] if the bytes were not written by [`write_seen`] with the same key.
pub fn read_seen(key: &sums::HashKey, mut bytes: &[u8]) -> Result<Vec<FileSeen>, SumsError> {
    let (hash, space) = (sums::hash::FactHash::of_key(key), TempStore::default());
    let mut from = Input::new(&hash, RUN, (&space, 0), &mut bytes);
    let seen = seen::take_files(&mut from)?;
    from.finish()?;
    Ok(seen)
}

#[cfg(test)]
mod tests;
