//! A run by change that is divided among processes. A plan finds the ranges whose sums are not kept. Tasks sweep these
//! ranges, and write the part of each range into their own parts. One process then adds up what the ledger and the tasks
//! have, and adds the parts of the tasks to the ledger.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

use catalog::Database;
use findings::{FileRange, Options, Ranges, Report};
use format::PageId;
use source::PageSource;
use sums::CheckSums;
use sums::spill::TempStore;
use sums::wire::{Digest, Input, Output, SumsError, Wire};

use super::groups::Keeping;
use super::packed::{head, pieces, unpacked};
use super::states::{State, States};
use super::watched::contains;
use super::{
    Added, Change, Entry, Kept, Ledger, NotByChange, Others, Part, PartKey, Reason, Reuse, by_change, joined,
    most_stood,
};
use crate::basis::accounting::Meter;
use crate::basis::ledger::FindingCollector;
use crate::basis::progress::Progress;
use crate::checks::{Checks, Sums};
use crate::run::Run;
use crate::run::part::{Part as TaskPart, PartError, Surveyed, surveyed, take_part};
use crate::run::witness::Faulty;
use crate::sweep;
use crate::sweep::check_list::Swept;
use crate::sweep::context::Context;
use crate::sweep::keeping::range_of;
use crate::sweep::rounds::Rounds;

/// The ranges that the tasks of a plan must sweep. Those of all other ranges are in the ledger.
pub struct LeftOut {
    /// The ranges with pages in scope whose sums are not kept are marked as swept.
    states: States,
    range_pages: u32,
    /// The number of ranges with pages in use.
    pub ranges: u64,
    /// The number of ranges that are swept, by the reason.
    pub swept: BTreeMap<Reason, u64>,
    /// The number of pages in the ranges that are left out.
    pub pages_kept: u64,
}

impl LeftOut {
    pub(crate) fn find(
        (context, checks): (&Context<'_>, &Checks),
        ledger: &dyn Ledger,
        progress: &dyn Progress,
    ) -> Result<Self, NotByChange> {
        super::refused(context.database, context.options)?;
        let change = Change::new(context, checks, ledger)?;
        let found = change.find_kept(progress)?;
        let range_pages = ledger.range_pages();
        let (states, swept) = (States::of(context, range_pages), BTreeMap::new());
        let mut left_out = Self { states, range_pages, ranges: 0, swept, pages_kept: 0 };
        for (range, state) in change.in_scope(&found) {
            left_out.ranges += 1;
            if matches!(state, State::Kept(_)) {
                left_out.pages_kept += u64::from(range.pages);
            } else {
                *left_out.swept.entry(state.reason()).or_default() += 1;
                left_out.states.set(range, State::Swept);
            }
        }
        Ok(left_out)
    }

    /// The number of pages that must be swept, of these pages of a file.
    pub(crate) fn pages_swept(&self, file: u16, first: u32, pages: u32) -> u32 {
        let within = self.states.within(file, first, first.saturating_add(pages));
        within.filter(|(_, state)| *state == State::Swept).map(|(range, _)| range.pages).sum()
    }

    /// Writes which ranges of a task's pages must be swept.
    ///
    /// # Errors
    /// [`SumsError`] if that cannot be written.
    pub(crate) fn write(&self, task: FileRange, to: &mut Output<'_>) -> Result<(), SumsError> {
        let mut bits = vec![0_u8; (task.pages.div_ceil(self.range_pages) as usize).div_ceil(8)];
        for (range, state) in self.states.within(task.file_id, task.first, task.end()) {
            let at = (range.first.saturating_sub(task.first) / self.range_pages) as usize;
            if let (State::Swept, Some(byte)) = (state, bits.get_mut(at / 8)) {
                *byte |= 1 << (at % 8);
            }
        }
        bits.into_boxed_slice().write(to)
    }
}

/// The head with which the ranges that a task must sweep are encoded.
pub(crate) fn ranges_head(head: &[u8]) -> Vec<u8> {
    [head, b"ranges"].concat()
}

/// Reads the output of [`LeftOut::write`]: the ranges of a task's pages that must be swept. Neighboring ranges are
/// joined.
pub(crate) fn read_ranges_of(
    task: FileRange,
    range_pages: u32,
    from: &mut Input<'_>,
) -> Result<Vec<FileRange>, SumsError> {
    let bits = Box::<[u8]>::read(from)?;
    if bits.len() != (task.pages.div_ceil(range_pages.max(1)) as usize).div_ceil(8) {
        return Err(from.damaged("the ranges of a task"));
    }
    let firsts = (task.first..task.end()).step_by(range_pages.max(1) as usize);
    let marked = firsts.enumerate().filter(|(at, _)| bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 != 0));
    let pages = |first| range_pages.min(task.end() - first);
    Ok(joined(marked.map(|(_, first)| FileRange { file_id: task.file_id, first, pages: pages(first) })))
}

/// The pages of all files that are not in these ranges, which are ascending.
pub(crate) fn others(context: &Context<'_>, ranges: &[FileRange]) -> Vec<FileRange> {
    let mut others = Vec::new();
    for file in &context.survey.files {
        let mut first = 0;
        let end = FileRange { file_id: file.file_id, first: file.pages, pages: 0 };
        for range in ranges.iter().filter(|range| range.file_id == file.file_id).chain([&end]) {
            if first < range.first {
                others.push(FileRange { file_id: file.file_id, first, pages: range.first - first });
            }
            first = range.end();
        }
    }
    others
}

/// The parts that a task keeps, in a temporary file, because there may be many.
pub(crate) struct Groups {
    range_pages: u32,
    space: TempStore,
    spool: Mutex<Spool>,
}

#[derive(Default)]
struct Spool {
    file: Option<File>,
    end: u64,
    /// Where each group is: by the file and the first page of its first part, so that the order does not depend on the
    /// threads.
    places: BTreeMap<(u16, u32), (u64, usize)>,
    error: Option<io::Error>,
}

impl Spool {
    fn add(&mut self, space: &TempStore, parts: &[Part], all: &[u8]) -> io::Result<()> {
        let Some(range) = parts.first().map(|part| part.key.range) else { return Ok(()) };
        let head = head(parts, all);
        let bytes = pieces(&head, parts, all).collect::<Vec<_>>().concat();
        let file = match &mut self.file {
            Some(file) => file,
            file => file.insert(space.file()?),
        };
        file.seek(SeekFrom::Start(self.end))?;
        file.write_all(&bytes)?;
        space.wrote(bytes.len() as u64);
        self.places.insert((range.file_id, range.first), (self.end, bytes.len()));
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn read(&mut self, (at, length): (u64, usize)) -> io::Result<Box<[u8]>> {
        let mut bytes = vec![0; length];
        if let Some(file) = &mut self.file {
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut bytes)?;
        }
        Ok(bytes.into())
    }
}

impl Groups {
    pub(crate) fn new(range_pages: u32, space: &TempStore) -> Self {
        Self { range_pages, space: space.clone(), spool: Mutex::default() }
    }

    /// Writes all groups.
    pub(crate) fn put(self, to: &mut Output<'_>) -> Result<(), PartError> {
        let mut spool = self.spool.into_inner().unwrap_or_else(PoisonError::into_inner);
        let lost = |error: io::Error| {
            self.space.failed(&error);
            PartError::Lost(self.space.error().unwrap_or_else(|| error.to_string()))
        };
        if let Some(error) = spool.error.take() {
            return Err(lost(error));
        }
        for place in std::mem::take(&mut spool.places).into_values() {
            true.write(to)?;
            spool.read(place).map_err(lost)?.write(to)?;
        }
        Ok(false.write(to)?)
    }
}

/// Reads the output of [`Groups::put`], one group at a time.
fn take_groups(from: &mut Input<'_>, mut visit: impl FnMut(&[Part], &[u8])) -> Result<(), SumsError> {
    while bool::read(from)? {
        let bytes = Box::<[u8]>::read(from)?;
        let (parts, all) = unpacked(&bytes).ok_or_else(|| from.damaged("a group of parts"))?;
        visit(&parts, &all);
    }
    Ok(())
}

impl Ledger for Groups {
    fn range_pages(&self) -> u32 {
        self.range_pages
    }

    fn runs(&self) -> usize {
        0
    }

    fn each(&self, _: &mut dyn FnMut(Entry<'_>) -> Result<(), NotByChange>) -> Result<(), NotByChange> {
        Ok(())
    }

    fn standing(&self) -> Result<Option<Vec<u8>>, NotByChange> {
        Ok(None)
    }

    fn later_sets(&self) -> Option<Digest> {
        None
    }

    fn begin(&self, _: &[u8]) {}

    fn keep(&self, parts: &[Part], all: &[u8]) {
        let mut spool = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
        if spool.error.is_none()
            && let Err(error) = spool.add(&self.space, parts, all)
        {
            spool.error = Some(error);
        }
    }

    fn stand(&self, _: &[u8]) {}
}

/// Sweeps the ranges of a task, and puts the part of each range into `groups`. The ranges are ascending, and neighboring
/// ranges are joined.
pub(crate) fn sweep_of_task(
    (context, checks): (&Context<'_>, &Checks),
    groups: &Groups,
    ranges: &[FileRange],
    findings: &mut FindingCollector,
    (meter, progress): (&Meter, &dyn Progress),
) -> Result<Swept<Sums>, NotByChange> {
    let change = Change::new(context, checks, groups)?;
    let missing_in = |change: &Change<'_>, file: u16, first: u32, end: u32| {
        let file_pages = change.context.survey.file(file).map_or(0, |file| file.pages);
        let pages =
            (first..end.min(file_pages)).step_by(change.range_pages as usize).map(|page| PageId::new(file, page));
        let own = pages.filter(|page| contains(ranges, *page));
        own.filter(|page| change.is_in_scope(range_of(*page, change.range_pages, file_pages))).count()
    };
    let keeping = Keeping::new(&change, missing_in);
    progress.phase("sweep", ranges.iter().map(|range| u64::from(range.pages)).sum());
    let mut swept = sweep::sweep_ranges((context, checks), ranges, &keeping, findings, (meter, progress));
    let (rest, _) = keeping.finish();
    swept.merge(rest);
    swept.sums.gather(context.space);
    Ok(swept)
}

/// Supplies one value after another, or an error.
pub type Supply<'p, T, E> = &'p mut dyn FnMut() -> Option<Result<T, E>>;

/// What the tasks of a plan have swept.
pub struct Divided<'d, 'p, E> {
    /// The ranges of pages among which second looks can be divided.
    pub ranges: Vec<FileRange>,
    /// The ranges that each task has swept.
    pub swept: Supply<'d, Vec<FileRange>, E>,
    /// Called after the maps are read; may stop the run by an error.
    pub begin: &'d mut dyn FnMut(Surveyed<'_>) -> Result<(), E>,
    /// The parts of the tasks, in any order.
    pub parts: Supply<'d, TaskPart<'p>, E>,
}

/// Like [`super::run_by_change`], but other processes have swept the ranges whose sums are not kept, with
/// [`crate::part::Sweeper::sweep_ranges`].
///
/// # Errors
/// [`NotByChange`], [`SumsError`] for a part that cannot be read, and the errors of `divided`.
pub fn merge_by_change<E: From<NotByChange> + From<SumsError>>(
    (source, database): (&dyn PageSource, &Database),
    options: &Options,
    (progress, rounds): (&dyn Progress, Option<&Rounds<'_>>),
    ledger: &dyn Ledger,
    divided: Divided<'_, '_, E>,
) -> Result<(Report, Reuse), E> {
    let source = Faulty::new(source);
    let mut of_tasks = OfTasks { source: &source, divided, range_pages: ledger.range_pages(), suspects: Vec::new() };
    by_change((&source, database), options, (progress, rounds), (ledger, &mut of_tasks))
}

/// Tasks have swept the ranges.
struct OfTasks<'t, 'd, 'p, E> {
    source: &'t Faulty<'t>,
    divided: Divided<'d, 'p, E>,
    range_pages: u32,
    suspects: Vec<PageId>,
}

impl<E: From<NotByChange> + From<SumsError>> Others<E> for OfTasks<'_, '_, '_, E> {
    fn begin(&mut self, run: &mut Run<'_>, context: &Context<'_>, states: &mut States) -> Result<(), E> {
        surveyed(run, context, |surveyed| (self.divided.begin)(surveyed))?;
        while let Some(ranges) = (self.divided.swept)() {
            for range in ranges? {
                let file_pages = context.survey.file(range.file_id).map_or(0, |file| file.pages);
                for first in (range.first..range.end()).step_by(self.range_pages as usize) {
                    states.set(range_of(PageId::new(range.file_id, first), self.range_pages, file_pages), State::Swept);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, run: &mut Run<'_>, change: &Change<'_>, kept: &Kept) -> Result<Added, E> {
        let open = || change.in_scope(&kept.states).filter(|(_, state)| state.is_open());
        if let Some((range, _)) = open().next() {
            let first = PageId::new(range.file_id, range.first);
            return Err(NotByChange::LeftOut { count: open().count() as u64, first }.into());
        }
        let (mut swept, mut keys) = (change.nothing(), BTreeMap::new());
        run.progress.phase("merge", 0);
        while let Some(part) = (self.divided.parts)() {
            let suspects = &mut self.suspects;
            take_part(
                (run, change.context, change.checks),
                (self.source, part?),
                &mut swept,
                |_| true,
                |from| {
                    let of_part: Vec<PageId> = Wire::read(from)?;
                    // A page in a range that another task has swept is that task's.
                    suspects.extend(of_part.into_iter().filter(|page| change.is_kept(kept, *page)));
                    take_groups(from, |parts, all| keep(change, (parts, all), &mut keys))
                },
            )?;
        }
        Ok((swept, keys))
    }

    fn ranges(&mut self) -> Ranges {
        Ranges::new(std::mem::take(&mut self.divided.ranges))
    }

    fn suspects(&mut self) -> Vec<PageId> {
        std::mem::take(&mut self.suspects)
    }
}

/// Adds the parts of a task to the ledger, as a run keeps its own.
fn keep(change: &Change<'_>, (parts, all): (&[Part], &[u8]), keys: &mut BTreeMap<(u16, u32), PartKey>) {
    let found = change.found.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = |part: &Part| {
        let range = part.key.range;
        part.key.above == PartKey::FOUND && found.contains(PageId::new(range.file_id, range.first))
    };
    if parts.iter().all(is_known) {
        return;
    }
    change.ledger.keep(parts, all);
    if change.ledger.runs() == 0 {
        return;
    }
    for key in parts.iter().map(|part| part.key).filter(|key| key.above != PartKey::FOUND) {
        if keys.len() < most_stood(change.context) {
            keys.insert((key.range.file_id, key.range.first), key);
        }
    }
}

impl Change<'_> {
    /// Whether the sums of the range of a page come from an earlier run.
    fn is_kept(&self, kept: &Kept, page: PageId) -> bool {
        let file_pages = self.context.survey.file(page.file).map_or(0, |file| file.pages);
        let state = kept.states.get(range_of(page, self.range_pages, file_pages));
        matches!(state, Some(State::Kept(_)))
    }
}
