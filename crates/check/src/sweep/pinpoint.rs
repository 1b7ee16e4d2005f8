//! Pinpoint: takes a second look at each unit whose sums differ. It reads the pages of the unit again, to determine the
//! page, slot and message of each fault.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use findings::registry::limits;
use findings::{Coverage, FileRange};
use format::record::Record;
use format::{Page, PageBytes, PageId, RecordId};
use sums::wire::{Input, SumsError, Wire};

use crate::basis::ledger::FindingCollector;
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;
use crate::page::audit::PageContent;
use crate::page::page_records::PageRecords;
use crate::survey::Allocation;
use crate::sweep::context::Context;
use crate::sweep::rounds::{Asked, Of, Open, Question, Rounds, Wanted};
use crate::sweep::{Target, Verdict};

/// The range from the first to the last page of a unit, in file order. A range has a constant size, whereas a list of
/// the pages would grow with the database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRange {
    first: PageId,
    last: PageId,
}

impl PageRange {
    /// The empty range, for a unit that has lost all its pages. Only the pointer to its root shows that the unit had
    /// pages.
    const EMPTY: Self = Self { first: PageId::new(u16::MAX, u32::MAX), last: PageId::NONE };

    /// All pages.
    pub(crate) const ALL: Self = Self { first: PageId::NONE, last: PageId::new(u16::MAX, u32::MAX) };

    /// The pages of a range.
    pub(crate) fn of_range(range: FileRange) -> Self {
        let page = |page| PageId::new(range.file_id, page);
        Self { first: page(range.first), last: page(range.end().saturating_sub(1)) }
    }

    /// The smallest range that contains all these ranges.
    pub(crate) fn around(stretches: impl Iterator<Item = Self>) -> Self {
        let join = |all: Self, own: Self| Self { first: all.first.min(own.first), last: all.last.max(own.last) };
        stretches.fold(Self::EMPTY, join)
    }

    /// The part of the range that is in one file, given the number of pages in the file.
    fn of(self, file: u16, pages: u32) -> Range<u32> {
        let start = if file < self.first.file {
            pages
        } else if file == self.first.file {
            self.first.page
        } else {
            0
        };
        let end = if file > self.last.file {
            0
        } else if file == self.last.file {
            self.last.page.saturating_add(1).min(pages)
        } else {
            pages
        };
        start..end
    }
}

/// The page range of each of these units, found in one pass over the maps.
pub(crate) fn stretches(context: &Context<'_>, units: &BTreeSet<UnitIndex>) -> BTreeMap<UnitIndex, PageRange> {
    let mut stretches: BTreeMap<UnitIndex, PageRange> = units.iter().map(|unit| (*unit, PageRange::EMPTY)).collect();
    for file in context.survey.files.iter().filter(|_| !units.is_empty()) {
        for page in file.claimed_pages(0..file.pages) {
            let id = PageId::new(file.file_id, page);
            if let Some(stretch) = context.unit_of(id).and_then(|unit| stretches.get_mut(&unit)) {
                *stretch = PageRange { first: stretch.first.min(id), last: id };
            }
        }
    }
    stretches
}

/// The error of a second look in which a page could not be read, or had changed since the sweep. The results of this
/// second look prove nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread;

/// Notes that a page of a unit could not be read in a second look. From now on, the unit counts as only partly read, so
/// what its unread pages contain is unknown.
pub(crate) fn note_unread(context: &Context<'_>, unit: UnitIndex, swept: &mut Tallies, coverage: &mut Coverage) {
    if let Some(tally) = swept.units.get_mut(unit as usize) {
        tally.unread_pages += 1;
    }
    if let Some(unit) = context.units.get(unit) {
        coverage.note(&limits::PAGES_UNREADABLE, context.place_of(unit), 1);
    }
}

/// Takes a second look at units whose sums differ. Calls `name` for each unit, to report the damaged places. If `name`
/// cannot read a page, notes that the unit was not read completely.
pub(crate) fn second_look(
    context: &Context<'_>,
    suspects: &BTreeSet<UnitIndex>,
    swept: &mut Tallies,
    to: &mut Results<'_>,
    name: impl Fn(&Context<'_>, UnitIndex, PageRange, &mut FindingCollector) -> Result<(), Unread>,
) {
    for (unit, stretch) in stretches(context, suspects) {
        if name(context, unit, stretch, to.findings).is_err() {
            note_unread(context, unit, swept, to.coverage);
        }
    }
}

/// Calls `visit` with each sound page of `unit`, in page order; `stretch` is the page range of the unit.
pub(crate) fn for_each_sound(
    context: &Context<'_>,
    unit: UnitIndex,
    stretch: PageRange,
    mut visit: impl FnMut(PageId, Page<'_>, &PageRecords),
) -> Result<(), Unread> {
    let mut target = Target::default();
    for file in &context.survey.files {
        for page in file.claimed_pages(stretch.of(file.file_id, file.pages)) {
            let id = PageId::new(file.file_id, page);
            if context.unit_of(id) != Some(unit) {
                continue;
            }
            if let Some(bytes) = sound(context, &mut target, unit, id)? {
                visit(id, Page::new(&bytes), &target.records);
            }
        }
    }
    Ok(())
}

/// If a page is a sound page of `unit`, returns the page and loads its records into `target`.
pub(crate) fn sound(
    context: &Context<'_>,
    target: &mut Target,
    unit: UnitIndex,
    id: PageId,
) -> Result<Option<Box<PageBytes>>, Unread> {
    let found = look(context, target, id)?;
    Ok(found.filter(|(found, _)| *found == unit).map(|(_, bytes)| bytes))
}

/// If a page is sound, returns its unit and the page.
pub(crate) fn look(
    context: &Context<'_>,
    target: &mut Target,
    id: PageId,
) -> Result<Option<(UnitIndex, Box<PageBytes>)>, Unread> {
    Ok(look_at_content(context, target, id)?.map(|(unit, _, bytes)| (unit, bytes)))
}

/// Like `look`, and also returns what the audit learned about the content of the page.
pub(crate) fn look_at_content(
    context: &Context<'_>,
    target: &mut Target,
    id: PageId,
) -> Result<Option<(UnitIndex, PageContent, Box<PageBytes>)>, Unread> {
    if !context.source.contains(id) {
        return Ok(None);
    }
    let Some(mut bytes) = context.source.read_page(id) else {
        // It does not matter whether an unused page can be read. In an image, unused pages are not found.
        return if context.survey.allocation(id) == Allocation::Free { Ok(None) } else { Err(Unread) };
    };
    match target.look(context, id, &mut bytes) {
        Verdict::Sound(unit, content) => Ok(Some((unit, content, bytes))),
        Verdict::Unread => Err(Unread),
        // The sweep found this page sound, so the page has changed since the sweep.
        Verdict::Bad(unit) if !context.bad_units.contains(&unit) => Err(Unread),
        Verdict::Bad(_) | Verdict::Passed => Ok(None),
    }
}

/// Calls `visit` with each record, including ghosts, of the sound leaf pages of `units`, in page order; `stretch` is a
/// page range that contains the pages of these units.
pub(crate) fn each_row(
    context: &Context<'_>,
    units: &BTreeSet<UnitIndex>,
    stretch: PageRange,
    mut visit: impl FnMut(UnitIndex, RecordId, &Record<'_>),
) -> Result<(), Unread> {
    let mut target = Target::default();
    for file in &context.survey.files {
        for page in file.claimed_pages(stretch.of(file.file_id, file.pages)) {
            let id = PageId::new(file.file_id, page);
            let Some(unit) = context.unit_of(id).filter(|unit| units.contains(unit)) else { continue };
            rows_of_page(context, &mut target, unit, id, &mut |at, record| visit(unit, at, record))?;
        }
    }
    Ok(())
}

/// Calls `visit` with each record of a page, if it is a sound leaf page of `unit`.
pub(crate) fn rows_of_page(
    context: &Context<'_>,
    target: &mut Target,
    unit: UnitIndex,
    id: PageId,
    visit: &mut dyn FnMut(RecordId, &Record<'_>),
) -> Result<(), Unread> {
    let Some(bytes) = sound(context, target, unit, id)? else { return Ok(()) };
    let page = Page::new(&bytes);
    if !context.is_leaf(unit, page) {
        return Ok(());
    }
    for slot in 0..target.records.spans().len() {
        if let Some(record) = target.records.record(page, slot) {
            visit(RecordId { page: id, slot: slot as u16 }, &record);
        }
    }
    Ok(())
}

/// Adds a question about these units to the next round. The tasks of the round will answer it. If the round has no room
/// for another question, does nothing: the question is asked again in a later round.
pub(crate) fn ask(context: &Context<'_>, rounds: &Rounds<'_>, of: Of, (units, bytes): (&BTreeSet<UnitIndex>, u64)) {
    if !rounds.has_room() {
        return;
    }
    let has_any = |range: &&FileRange| {
        let file = context.survey.file(range.file_id);
        let mut pages = file.into_iter().flat_map(|file| file.claimed_pages(range.first..range.end()));
        pages.any(|page| {
            let unit = context.unit_of(PageId::new(range.file_id, page));
            unit.is_some_and(|unit| units.contains(&unit))
        })
    };
    let ranges = context.ranges.list().iter().filter(has_any).copied().collect();
    rounds.ask(Wanted { question: Question::new(of, &context.taken, &context.bad_units), ranges, bytes });
}

/// Calls `read` with each answer to a question.
///
/// # Errors
/// [`Unread`] if a task could not read a page, or if an answer cannot be read; in the second case, there will be no
/// report.
pub(crate) fn each_answer(
    context: &Context<'_>,
    (rounds, asked): (&Rounds<'_>, &Asked<'_>),
    mut read: impl FnMut(&mut Input<'_>) -> Result<(), SumsError>,
) -> Result<(), Unread> {
    let mut one = |open: &Open<'_>| {
        let (head, mut from) = open()?;
        let units = context.units.list().len();
        let mut from = Input::new(&context.hash, &head, (context.space, units), &mut from);
        read(&mut from)?;
        let is_unread = bool::read(&mut from)?;
        from.finish()?;
        Ok(is_unread)
    };
    for open in &asked.answers {
        match one(open) {
            Ok(false) => {}
            Ok(true) => return Err(Unread),
            Err(error) => {
                rounds.fail(error);
                return Err(Unread);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_around_several_stretches_are_theirs_and_those_between() {
        let stretch = |first: (u16, u32), last: (u16, u32)| PageRange {
            first: PageId::new(first.0, first.1),
            last: PageId::new(last.0, last.1),
        };
        let around = PageRange::around([stretch((3, 9), (3, 20)), stretch((1, 50), (1, 60))].into_iter());
        assert_eq!([1, 2, 3, 4].map(|file| around.of(file, 100)), [50..100, 0..100, 0..21, 0..0].map(|range| range));
        assert!(PageRange::around(std::iter::empty()).of(1, 100).is_empty());
        assert_eq!(PageRange::ALL.of(7, 100), 0..100);
    }
}
