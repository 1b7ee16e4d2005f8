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
pub mod packed;
mod parted;
mod promise;
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
use source::backup::FileSeen;
use sums::CheckSums;
use sums::names::{Names, Translation};
use sums::spill::{Run as FactRun, TempStore};
use sums::wire::{Digest, Input, Output, SumsError, Wire};
use thiserror::Error;

use crate::basis::progress::Progress;
use crate::checks::tree::PageBounds;
use crate::checks::{Checks, Sums};
use crate::run::part::seen;
use crate::run::{Run, run_with};
use crate::sweep::any_in_scope;
use crate::sweep::check_list::{CheckList, Swept};
use crate::sweep::context::Context;
use crate::sweep::rounds::Rounds;
use crate::sweep::settled::{Children, Marks, Settled};

use groups::Keeping;
use inputs::Inputs;
pub use parted::{Divided, LeftOut, Supply, merge_by_change};
pub(crate) use parted::{Groups, others, ranges_head, read_ranges_of, sweep_of_task};
use promise::Promises;
use standing::Standing;
use states::{State, States};
pub use tables::Turn;
#[doc(hidden)]
pub use verify::differing_parts;
pub(crate) use watched::Watched;
pub use window::{Schedule, WindowDone, left_for_windows, run_in_window};

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
    /// Stands in place of the digest of the bytes if the run has found something in the range, or has not read all of it.
    /// Such a part has no sums; no run may use the sums that an earlier run has kept of the range.
    pub const FOUND: Digest = [0xff; 16];
    /// Number of bytes of a key.
    pub const BYTES: usize = 10 + 3 * 16;

    /// The key as bytes.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let FileRange { file_id, first, pages } = self.range;
        let mut bytes = [0; Self::BYTES];
        let pieces: [&[u8]; 6] = [
            &file_id.to_le_bytes(),
            &first.to_le_bytes(),
            &pages.to_le_bytes(),
            &self.above,
            &self.maps,
            &self.meaning,
        ];
        let mut rest = &mut bytes[..];
        for piece in pieces {
            let Some((place, after)) = rest.split_at_mut_checked(piece.len()) else { break };
            place.copy_from_slice(piece);
            rest = after;
        }
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

/// The sums of a range, as bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The inputs of the sums.
    pub key: PartKey,
    /// The sums without the key bounds of pages.
    pub sums: Vec<u8>,
    /// The first and last key of each page of a B-tree. A later run needs them only where the page or its parent has
    /// changed.
    pub bounds: Vec<u8>,
    /// Digests of the extents that should never change, by which a later run tests the differential maps of data files.
    pub extents: Vec<u8>,
}

/// What a ledger gives back.
pub enum Entry<'e> {
    /// The beginning of the parts that one run has kept: what [`Ledger::begin`] received.
    Run(&'e [u8]),
    /// Parts that the run has kept together.
    Group(&'e mut dyn KeptGroup),
}

/// A group of parts that the ledger gives back, piece by piece.
pub trait KeptGroup {
    /// The keys of the parts.
    fn keys(&self) -> &[PartKey];

    /// Reads a piece.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    fn read(&mut self, piece: Piece) -> io::Result<Vec<u8>>;
}

/// A piece of a group of parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// The merged sums of all parts.
    All,
    /// The sums of the part at this index.
    Sums(usize),
    /// The key bounds of the part at this index.
    Bounds(usize),
    /// The digests of extents of the part at this index.
    Extents(usize),
}

/// The storage for the parts of earlier runs and of this run.
pub trait Ledger: Sync {
    /// The number of pages of a range: a power of two, at most 128.
    fn range_pages(&self) -> u32;

    /// The number of runs that have kept parts.
    fn runs(&self) -> usize;

    /// Whether what an earlier run, counted backwards, has read last must be read again.
    fn must_read_again(&self, run: usize) -> bool {
        let _ = run;
        false
    }

    /// Calls `visit` with everything that earlier runs have kept, the latest run first.
    ///
    /// # Errors
    /// If the ledger cannot be read, or an error of `visit`.
    fn each(&self, visit: &mut dyn FnMut(Entry<'_>) -> Result<(), NotByChange>) -> Result<(), NotByChange>;

    /// What the latest run has passed to [`Self::stand`]; `None` if it has passed nothing.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    fn standing(&self) -> Result<Option<Vec<u8>>, NotByChange>;

    /// A digest of what identifies the files of the later sets of the backup; `None` if they have no identity. If it is the
    /// same as in the latest run, pages that come from these sets are not read to compare them.
    fn later_sets(&self) -> Option<Digest>;

    /// Begins to keep the parts of this run. `names` must be given back with them.
    fn begin(&self, names: &[u8]);

    /// Keeps parts of this run, and their merged sums; the merged sums are empty if there is only one part. If that fails,
    /// the run goes on.
    fn keep(&self, parts: &[Part], all: &[u8]);

    /// Keeps what the next run must know about this run, if it keeps any parts.
    fn stand(&self, standing: &[u8]);
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
    /// The plan has left out a range whose sums are not kept.
    #[error(
        "it does not have the sums of {count} ranges any more, which the plan has left out; the first begins at page {first}"
    )]
    LeftOut {
        /// The number of ranges.
        count: u64,
        /// The first page of the first of these ranges.
        first: PageId,
    },
    /// A page that was sound in the earlier run is not sound any more, although nothing has changed it.
    #[error("page {0} was sound when the earlier check read it, and is not sound now")]
    Rotten(PageId),
    /// Extents, given by their first pages, have other bytes than before, although the differential maps of the data files
    /// do not mark them.
    #[error("the differential maps of the data files have missed a change")]
    Promise(Vec<PageId>),
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
    /// The last run that has read it has found something in it, or could not read all of it.
    Findings,
    /// It was read once more, to find pages that went bad.
    Again,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 6] = [Self::Bytes, Self::Maps, Self::Meaning, Self::NotKept, Self::Findings, Self::Again];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Maps => "maps",
            Self::Meaning => "meaning",
            Self::NotKept => "not_kept",
            Self::Findings => "findings",
            Self::Again => "again",
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
    /// All tables with pages, by ID.
    pub tables: Vec<Turn>,
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

/// The sums that were taken from earlier runs.
struct Kept {
    swept: Swept<Sums>,
    states: States,
    /// The keys of the parts in use, of ranges that do not have a part of the first run in use now and at the latest run.
    keys: BTreeMap<(u16, u32), PartKey>,
    pages: u64,
}

/// Sums of an earlier run that are those of a sweep now.
struct Found<'f> {
    /// The run, counted backwards.
    run: usize,
    fitting: Fitting<'f>,
    /// The group of which the parts are.
    group: &'f mut dyn KeptGroup,
    translation: &'f Translation,
    swept: Swept<Sums>,
}

/// The parts from which the sums come.
#[derive(Clone, Copy)]
enum Fitting<'f> {
    /// The merged sums of a group, of which all parts fit.
    Group(&'f [PartKey]),
    /// The sums of one part.
    Part(&'f PartKey),
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

    /// Adds up the parts of earlier runs whose inputs are the same now, without their key bounds.
    fn kept(&self, run: &Run<'_>, states: States) -> Result<Kept, NotByChange> {
        let context = self.context;
        let (mut all, mut pages, mut keys) = (self.nothing(), 0, BTreeMap::new());
        let later_runs = self.ledger.runs().saturating_sub(1);
        let states = self.each_fitting(run.progress, states, |Found { run, fitting, swept, .. }| {
            pages += swept.tallies.pages_read;
            all.merge(swept);
            all.sums.gather(context.space);
            self.checks.bound(context, &mut all.sums);
            let of_parts = match fitting {
                Fitting::Group(keys) => keys,
                Fitting::Part(key) => std::slice::from_ref(key),
            };
            for key in of_parts {
                let stood = self.standing.as_ref().is_some_and(|standing| standing.has(key.range));
                // Without its key, a part of a later run counts as changed, which a part of the first run must not.
                if stood || run < later_runs && keys.len() < most_stood(context) {
                    keys.insert((key.range.file_id, key.range.first), *key);
                }
            }
            Ok(())
        })?;
        Ok(Kept { swept: all, states, keys, pages })
    }

    fn nothing(&self) -> Swept<Sums> {
        Swept::new(self.checks, self.context.units.list().len())
    }

    /// Calls `visit` with the sums of earlier runs whose inputs are the same now, once for each range.
    fn each_fitting(
        &self,
        progress: &dyn Progress,
        mut states: States,
        mut visit: impl FnMut(Found<'_>) -> Result<(), NotByChange>,
    ) -> Result<States, NotByChange> {
        progress.phase("merge", 0);
        self.each_group(|run, translation, group| {
            let keys = group.keys().to_vec();
            let fitting = self.fitting(&keys, (run, translation.is_some()), &mut states);
            let Some(translation) = translation else { return Ok(()) };
            if fitting.len() == keys.len() && keys.len() > 1 {
                let swept = self.read(&head_of(&keys), translation, &group.read(Piece::All)?)?;
                if self.checks.last_checkpoint.has_all(&swept.sums.last_checkpoint) {
                    return visit(Found { run, fitting: Fitting::Group(&keys), group, translation, swept });
                }
            }
            for (at, key) in fitting {
                let swept = self.read(&key.to_bytes(), translation, &group.read(Piece::Sums(at))?)?;
                if self.checks.last_checkpoint.has_all(&swept.sums.last_checkpoint) {
                    visit(Found { run, fitting: Fitting::Part(&key), group: &mut *group, translation, swept })?;
                } else {
                    states.set(key.range, State::Other(Reason::Meaning));
                }
            }
            Ok(())
        })?;
        Ok(states)
    }

    /// The parts of a group whose inputs are the same now, of ranges for which no later run has such a part. Notes the
    /// states of their ranges. If the run was made under other conditions, none of its parts fits, but what it has found
    /// counts.
    fn fitting(&self, keys: &[PartKey], (run, is_alike): (usize, bool), states: &mut States) -> Vec<(usize, PartKey)> {
        let mut fitting = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let Some(before) = states.get(key.range) else { continue };
            let mut state = before;
            // A range that is swept in any case is judged like one whose parts do not fit.
            if key.above == PartKey::FOUND && (state.may_be_kept() || state == State::Swept) {
                state.is_other(Reason::Findings);
                let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                found.mark(PageId::new(key.range.file_id, key.range.first));
            } else if self.ledger.must_read_again(run) {
                state.is_other(Reason::Again);
            }
            if is_alike && state.may_be_kept() {
                match self.inputs.compare(self.context, self.checks, key, |range| self.above(range)) {
                    None => {
                        state = State::Kept(u16::try_from(run).unwrap_or(u16::MAX));
                        fitting.push((at, *key));
                    }
                    Some(reason) => state.is_other(reason),
                }
            }
            if state != before {
                states.set(key.range, state);
            }
        }
        fitting
    }

    /// Finds the parts whose inputs are the same now, without reading their sums.
    fn find_kept(&self, progress: &dyn Progress) -> Result<States, NotByChange> {
        let mut states = States::of(self.context, self.range_pages);
        progress.phase("merge", 0);
        self.each_group(|of_run, translation, group| {
            self.fitting(group.keys(), (of_run, translation.is_some()), &mut states);
            Ok(())
        })?;
        Ok(states)
    }

    /// Adds up the sums of all parts that were found, with their key bounds. Returns the number of their pages.
    fn merge_kept(&self, run: &Run<'_>, states: &mut States, all: &mut Swept<Sums>) -> Result<u64, NotByChange> {
        let mut pages = 0;
        run.progress.phase("merge", 0);
        self.each_group(|of_run, translation, group| {
            self.test_promises(group)?;
            let Some(translation) = translation else { return Ok(()) };
            let keys = group.keys().to_vec();
            let mut found = Vec::new();
            for (at, key) in keys.iter().enumerate() {
                // A run has swept each range once, so this is the part that was found.
                let state = states.get(key.range);
                let is_found = state.is_some_and(|state| matches!(state, State::Kept(of) if usize::from(of) == of_run));
                if is_found && self.inputs.compare_maps(self.context, self.checks, key).is_none() {
                    found.push((at, *key));
                }
            }
            let mut add = |mut swept: Swept<Sums>, of: &[(usize, PartKey)], group: &mut dyn KeptGroup| {
                if !self.checks.last_checkpoint.has_all(&swept.sums.last_checkpoint) {
                    return Ok::<_, NotByChange>(false);
                }
                for (at, key) in of {
                    let bounds = self.read_bounds(key, translation, &group.read(Piece::Bounds(*at))?)?;
                    swept.sums.trees.add_bounds(vec![bounds]);
                    states.set(key.range, State::Merged(u16::try_from(of_run).unwrap_or(u16::MAX)));
                }
                pages += swept.tallies.pages_read;
                all.merge(swept);
                all.sums.gather(self.context.space);
                self.checks.bound(self.context, &mut all.sums);
                Ok(true)
            };
            if found.len() == keys.len() && keys.len() > 1 {
                let swept = self.read(&head_of(&keys), translation, &group.read(Piece::All)?)?;
                if add(swept, &found, group)? {
                    return Ok(());
                }
            }
            for (at, key) in found {
                let swept = self.read(&key.to_bytes(), translation, &group.read(Piece::Sums(at))?)?;
                add(swept, &[(at, key)], group)?;
            }
            Ok(())
        })?;
        states.each_mut(|state| match *state {
            State::Merged(run) => *state = State::Kept(run),
            State::Kept(_) => *state = State::Other(Reason::Meaning),
            _ => {}
        });
        let broken = self.promises.broken();
        if broken.is_empty() { Ok(pages) } else { Err(NotByChange::Promise(broken)) }
    }

    /// Compares what this run has read again with what earlier runs have read.
    fn test_promises(&self, group: &mut dyn KeptGroup) -> Result<(), NotByChange> {
        for at in 0..group.keys().len() {
            let key = group.keys().get(at).copied().filter(|key| self.promises.is_of(key));
            if let Some(key) = key {
                self.promises.compare(&key, &group.read(Piece::Extents(at))?);
            }
        }
        Ok(())
    }

    /// Calls `visit` with each group that earlier runs have kept, the latest run first, and with the translation of its
    /// numbers, if the run was made under the same conditions.
    fn each_group(
        &self,
        mut visit: impl FnMut(usize, Option<&Translation>, &mut dyn KeptGroup) -> Result<(), NotByChange>,
    ) -> Result<(), NotByChange> {
        let (mut runs, mut translation) = (0_usize, None);
        self.ledger.each(&mut |entry| {
            let group = match entry {
                Entry::Run(names) => {
                    runs += 1;
                    translation = self.translation(names)?;
                    return Ok(());
                }
                Entry::Group(group) => group,
            };
            // No part of a run that a state cannot name is used.
            let is_named = |run: usize| run < usize::from(states::MOST_RUNS);
            let of_run = |run| visit(run, translation.as_ref().filter(|_| is_named(run)), group);
            runs.checked_sub(1).map_or(Ok(()), of_run)
        })
    }

    /// The digest of the bytes of a range that do not come from the first set, if the latest run has read the same files.
    fn above(&self, range: FileRange) -> Option<Digest> {
        let standing = self.standing.as_ref().filter(|standing| standing.later.is_some())?;
        (standing.later == self.ledger.later_sets()).then(|| standing.above(range, self.stored_mask(range)?)).flatten()
    }

    /// Which pages of a range come from later sets, if none comes from the log; `None` if one does.
    fn stored_mask(&self, range: FileRange) -> Option<u128> {
        let (source, first) = (self.context.source, PageId::new(range.file_id, range.first));
        let mask = source.above_base(first, range.pages)?;
        (source.above_base_as_stored(first, range.pages) == Some(mask)).then_some(mask)
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

    fn read(&self, head: &[u8], translation: &Translation, mut part: &[u8]) -> Result<Swept<Sums>, SumsError> {
        let context = self.context;
        let space = (context.space, context.units.list().len());
        let mut from = Input::new(&context.hash, head, space, &mut part).translated(translation);
        let swept = Swept::take(&mut from)?;
        from.finish()?;
        Ok(swept)
    }

    fn read_bounds(
        &self,
        key: &PartKey,
        translation: &Translation,
        mut bounds: &[u8],
    ) -> Result<FactRun<PageBounds>, SumsError> {
        let (context, head) = (self.context, bounds_head(key));
        let space = (context.space, context.units.list().len());
        let mut from = Input::new(&context.hash, &head, space, &mut bounds).translated(translation);
        let bounds = Wire::read(&mut from)?;
        from.finish()?;
        Ok(bounds)
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

    /// Adds the key bounds of the pages that must be compared with their parents or children.
    fn add_bounds(&self, kept: &mut Kept, settled: &Settled) -> Result<(), NotByChange> {
        let context = self.context;
        let mut wanted = Marks::new(self.range_pages);
        kept.swept.sums.trees.each_reach(context.space, |page, reach| {
            if !settled.is_first && settled.children(page, reach.stretches()) == Children::All {
                let files = || context.survey.files.iter().map(|file| (file.file_id, file.pages));
                reach.stretches().for_each(|extents| wanted.mark_extents(extents, files()));
            }
        });
        let has_changed = |range: FileRange| settled.changed.contains(PageId::new(range.file_id, range.first));
        if !settled.is_first && wanted.is_empty() && !kept.states.kept().any(has_changed) {
            return Ok(());
        }
        self.each_group(|run, translation, group| {
            let Some(translation) = translation else { return Ok(()) };
            for at in 0..group.keys().len() {
                let Some(key) = group.keys().get(at).copied() else { break };
                let state = kept.states.get(key.range);
                let is_used = matches!(state, Some(State::Kept(of)) if usize::from(of) == run);
                let first = PageId::new(key.range.file_id, key.range.first);
                if is_used && (settled.is_first || wanted.contains(first) || settled.changed.contains(first)) {
                    let bounds = self.read_bounds(&key, translation, &group.read(Piece::Bounds(at))?)?;
                    let sums = &mut kept.swept.sums;
                    sums.trees.add_bounds(vec![bounds]);
                    sums.gather(context.space);
                    self.checks.bound(context, sums);
                }
            }
            Ok(())
        })
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

/// The head with which the names of a run are encoded.
const RUN: &[u8] = b"names of a run";

/// The head with which the merged sums of a group are encoded: they belong to exactly these parts.
fn head_of(keys: &[PartKey]) -> Vec<u8> {
    let mut head = Vec::with_capacity(keys.len() * PartKey::BYTES);
    keys.iter().for_each(|key| head.extend_from_slice(&key.to_bytes()));
    head
}

/// The head with which the key bounds of a part are encoded.
fn bounds_head(key: &PartKey) -> Vec<u8> {
    [&key.to_bytes()[..], b"bounds"].concat()
}

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
