//! Checks one page at a time: the target of the sweep.

use findings::{Content, Finding, Owner, registry};
use format::allocation::{FixedPage, PFS_PAGES};
use format::protection::undo_torn_bits;
use format::same_shape::{Exception, Rows};
use format::{Page, PageBytes, PageHeader, PageId, PageType, RecordId};

use crate::basis::tallies::{Tallies, UnitTally};
use crate::basis::units::{Shape, Unit, UnitIndex};
use crate::page::audit::{self, PageContent};
use crate::page::forwarding::{is_live, locator_of};
use crate::page::page_records::PageRecords;
use crate::survey::{Allocation, FileMap};
use crate::sweep::check_list::{CheckList, Swept};
use crate::sweep::context::Context;
use crate::sweep::page_check::SoundPage;
use crate::sweep::row_check::{Row, RowPage, TextPage};

/// Checks pages one after another and reuses its buffers.
#[derive(Default)]
pub(crate) struct Target {
    /// The records of the page that was checked last.
    pub(crate) records: PageRecords,
}

/// The maximum number of findings about rows that are listed per page. More findings would not be useful. Without a
/// limit, a wrong type in the catalog could cause a finding for every row of a table.
const MAX_ROW_FINDINGS_PER_PAGE: usize = 200;

/// The result of auditing a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// A sound page of this unit.
    Sound(UnitIndex, PageContent),
    /// A page of this unit that is damaged or whose header names another unit. The page adds nothing to the sums.
    Bad(UnitIndex),
    /// A page that the sweep does not check, because it is free, belongs to no unit in scope, or was already read by
    /// the survey.
    Passed,
    /// A page whose owner is unknown: several units claim its extent, and one of their IAM pages could not be read.
    Unread,
}

/// Whether a page may be in use and may belong to a unit in scope. If several units claim the page, the result is true,
/// because only its header shows the owner.
pub(crate) fn may_be_in_scope(context: &Context<'_>, id: PageId) -> bool {
    let allocation = context.survey.allocation(id);
    // Most pages of a large empty file are free; their owner does not matter.
    if allocation == Allocation::Free {
        return false;
    }
    let owner = context.survey.owner(id);
    if allocation == Allocation::Unknown && owner.is_none() {
        // A page that no unit claims is checked only if PFS says that it is in use.
        return false;
    }
    context.covers(owner) || context.survey.is_shared(id)
}

/// Whether any page of a range may be in scope. If not, the range need not be read.
pub(crate) fn any_in_scope(context: &Context<'_>, first: PageId, pages: u32) -> bool {
    let Some(file) = context.survey.file(first.file) else { return false };
    let range = first.page..first.page.saturating_add(pages).min(file.pages);
    // Most ranges of a large empty file are free.
    if !file.may_be_used(range.clone()) {
        return false;
    }
    let is_in_scope = |page| may_be_in_scope(context, PageId::new(first.file, page));
    // If the PFS page of an interval is damaged, only those pages of the interval that a unit claims can be in scope.
    let intervals = range.clone().step_by(PFS_PAGES as usize).chain(range.end.checked_sub(1));
    let has_pfs = intervals.into_iter().any(|page| file.pfs_is_known(page));
    if has_pfs { range.clone().any(is_in_scope) } else { file.claimed_pages(range).any(is_in_scope) }
}

impl Target {
    /// Checks a page and adds the results to `swept`. `bytes` contains the page as read from disk.
    pub(crate) fn page<C: CheckList>(
        &mut self,
        context: &Context<'_>,
        checks: &C,
        id: PageId,
        bytes: &mut PageBytes,
        swept: &mut Swept<C::Sums>,
        scratch: &mut C::Scratch,
    ) {
        let mut findings = std::mem::take(&mut swept.tallies.findings);
        let verdict = self.judge(context, id, bytes, &mut swept.tallies, &mut findings);
        swept.tallies.findings = findings;
        let Verdict::Sound(unit, content) = verdict else { return };
        let page = Page::new(bytes);
        let (Some(of), wanted) = (context.units.get(unit), checks.wanted(unit)) else { return };
        let sound = SoundPage { index: unit, unit: of, id, page, content: &content, records: &self.records };
        count(&sound, &mut swept.tallies);
        if !context.options.physical_only && content.records_are_audited {
            rows(context, checks, &sound, wanted.rows, swept, scratch);
        }
        if wanted.pages != 0 {
            let Swept { tallies, sums } = swept;
            checks.page(context, &sound, wanted.pages, (sums, scratch), &mut tallies.findings);
        }
    }

    /// The verdict on a page, without findings and totals. Used when pages are read a second time.
    pub(crate) fn look(&mut self, context: &Context<'_>, id: PageId, bytes: &mut PageBytes) -> Verdict {
        self.judge(context, id, bytes, &mut Tallies::new(0), &mut Vec::new())
    }

    fn judge(
        &mut self,
        context: &Context<'_>,
        id: PageId,
        bytes: &mut PageBytes,
        partial: &mut Tallies,
        findings: &mut Vec<Finding>,
    ) -> Verdict {
        // These are checked:
        // 1. The checksum or the torn bits are right, and the page has its own ID (`identity`).
        // 2. The header names the unit that owns the page (`of_other_unit`).
        // 3. The header, the slots and the records are sound (`Audit::page`).
        // Nothing is checked of a page that is free, that no unit in scope owns, or that the survey has read. An encrypted
        // page, and a page whose type exists only while a page is changed, is checked no further than 2.
        let allocation = context.survey.allocation(id);
        let byte = match allocation {
            Allocation::Free => return Verdict::Passed,
            Allocation::Used(byte) => Some(byte),
            Allocation::Unknown => None,
        };
        let owner = context.survey.owner(id);
        let covers_owner = context.covers(owner);
        if !covers_owner && !context.survey.is_shared(id) {
            return Verdict::Passed;
        }
        if was_surveyed(context, id) {
            partial.pages_allocated += u64::from(covers_owner && byte.is_some());
            return Verdict::Passed;
        }
        let fault = audit::identity(bytes, id);
        let content = fault.and_then(|_| Content::of(bytes, id, |header| context.may_know(header)));
        undo_torn_bits(bytes);
        let page = Page::new(bytes);
        let header = page.header();
        // If several units claim the extent of the page, the unit that the page header names is the owner.
        let claimant = match fault {
            None => context.survey.claimant((context.source, &context.units), id, header),
            Some(_) => Some(None),
        };
        let Some(claimant) = claimant else {
            partial.has_unread_shared = true;
            return Verdict::Unread;
        };
        let named = claimant.or(owner);
        if !context.covers(named) {
            return Verdict::Passed;
        }
        partial.pages_allocated += u64::from(byte.is_some());
        let (Some(unit_index), Some(unit)) = (named, named.and_then(|unit| context.units.get(unit))) else {
            // No unit claims the page, and the survey has already reported this. The content of the page is not
            // checked, because the page may never have been written.
            partial.unclaimed_pages += u64::from(byte.is_some_and(|byte| !byte.is_iam()));
            return Verdict::Passed;
        };
        let mut tally = partial.units.get_mut(unit_index as usize);
        if named != owner {
            partial.taken.add(id, unit_index);
            tally.iter_mut().for_each(|tally| tally.taken_pages += 1);
        }
        if byte.is_none() && (fault.is_some() || !context.belongs(unit, header)) {
            // PFS does not show whether the page is in use, and its content does not look as if it belongs to the unit.
            if let Some(tally) = tally {
                tally.unknown_pages += 1;
            }
            return Verdict::Passed;
        }
        if let Some(fault) = fault {
            let complete = context.database.units_are_complete();
            let named = audit::named_owner(header, &context.units, complete);
            let is_told = |owner: &Owner| !context.ended.contains(owner);
            let named = named.filter(|named| is_told(named) && is_told(&unit.owner));
            findings.push(audit::identity_finding(&fault, id, header, named).content(content));
            findings.push(audit::unprocessed(unit.owner, id));
            return bad(unit_index, tally);
        }
        if !context.belongs(unit, header) {
            let content = (!context.may_know(header)).then_some(Content::Foreign);
            findings.extend(of_other_unit(context, unit, id, header).map(|finding| finding.content(content)));
            return bad(unit_index, tally);
        }
        let is_encrypted = header.is_encrypted();
        if header.kind().is_some_and(is_in_transit) && unit.shape.is_rows() || is_encrypted {
            if let Some(tally) = tally {
                tally.pages_in_transit += 1;
            }
            return Verdict::Passed;
        }
        match self.records.audit(page, id, unit, context.known(unit), findings) {
            Some(content) => Verdict::Sound(unit_index, content),
            None => {
                findings.push(audit::unprocessed(unit.owner, id));
                bad(unit_index, tally)
            }
        }
    }
}

/// Counts a sound page and its rows.
fn count(sound: &SoundPage<'_>, tallies: &mut Tallies) {
    let SoundPage { index, unit, page, content, records, .. } = *sound;
    let header = page.header();
    let is_leaf = unit.shape.is_leaf(page);
    let Some(tally) = tallies.units.get_mut(index as usize) else { return };
    match header.kind() {
        Some(PageType::Data) => tally.data_pages += 1,
        Some(PageType::Index) => tally.index_pages += 1,
        _ => tally.text_pages += 1,
    }
    if is_leaf {
        tally.rows += u64::from(content.rows);
        tally.ghosts += u64::from(content.ghosts);
        tally.forwarded += u64::from(content.forwarded);
    }
    let is_counted = content.lengths_are_known && content.ghosts_are_known;
    tally.uncounted_pages += u64::from(content.records_are_audited && !is_counted && !unit.compressed);
    match (content.records_are_audited, is_leaf || unit.shape == Shape::Unknown) {
        (false, true) => tally.unaudited_rows += u64::from(header.slot_count.get()),
        (false, false) => tally.unaudited_entries += u64::from(header.slot_count.get()),
        (true, _) => {
            tally.unaudited_rows += u64::from(content.undecided) + records.expanded().failed();
            tally.doubtful_rows += records.expanded().doubtful();
        }
    }
}

/// Passes the rows of a leaf page, or the fragments of a text page, to the checks.
fn rows<C: CheckList>(
    context: &Context<'_>,
    checks: &C,
    sound: &SoundPage<'_>,
    wanted: u32,
    swept: &mut Swept<C::Sums>,
    scratch: &mut C::Scratch,
) {
    let SoundPage { index: unit, id, page, records, .. } = *sound;
    let spans = records.spans();
    let (sums, findings) = (&mut swept.sums, &mut swept.tallies.findings);
    if matches!(page.header().kind(), Some(PageType::TextMix | PageType::TextTree)) {
        return checks.text_page(context, &TextPage { unit, page, spans }, sums, findings);
    }
    if wanted == 0 || !sound.unit.shape.is_leaf(page) {
        return;
    }
    let before = findings.len();
    // Checking rows together is faster only if most rows of the page have the same form.
    let same_shape = records.same_shape(page).filter(|rows| 2 * rows.live_count() > spans.len());
    let batch = same_shape.map(|rows| {
        let page = RowPage { unit, id, rows };
        let (handled, are_done) = checks.rows(context, &page, wanted, (&mut *sums, &mut *scratch));
        (rows, handled, are_done)
    });
    let mut look = |slot: u16, handled: Option<(&C::Handled, bool)>| {
        let at = RecordId { page: id, slot };
        let Some(record) = records.record(page, usize::from(slot)).filter(is_live) else { return };
        let row = Row { unit, at, locator: locator_of(at, &record), record, expanded: records.expanded() };
        checks.row(context, &row, (wanted, handled), (&mut *sums, &mut *scratch), findings);
    };
    match &batch {
        Some((rows, handled, [true, is_complex_done])) => {
            for exception in rows.exceptions().iter().filter(|exception| !(exception.is_complex && *is_complex_done)) {
                look(exception.slot, exception.is_complex.then_some((handled, true)));
            }
        }
        _ => {
            for slot in 0..spans.len() as u16 {
                let handled = batch.as_ref().and_then(|(rows, handled, _)| match exception(rows, slot) {
                    None => Some((handled, false)),
                    Some(exception) => exception.is_complex.then_some((handled, true)),
                });
                look(slot, handled);
            }
        }
    }
    findings.truncate(before + MAX_ROW_FINDINGS_PER_PAGE);
}

/// Returns the entry for a slot in the list of exceptions; `None` if the slot contains a live row of the common form
/// without a complex column.
fn exception(rows: &Rows<'_>, slot: u16) -> Option<Exception> {
    let at = rows.exceptions().binary_search_by_key(&slot, |exception| exception.slot).ok()?;
    rows.exceptions().get(at).copied()
}

/// Returns whether the survey has already read a page. The survey reads allocation maps, other pages at fixed
/// addresses, and IAM pages.
fn was_surveyed(context: &Context<'_>, id: PageId) -> bool {
    let is_apart = |file: &FileMap| file.is_iam(id.page) || file.is_fixed(id.page) && file.owner(id.page).is_none();
    FixedPage::at(id).is_some() || context.survey.file(id.file).is_some_and(is_apart)
}

/// The findings for a page of a unit whose header names another unit.
fn of_other_unit(context: &Context<'_>, unit: &Unit, id: PageId, header: &PageHeader) -> impl Iterator<Item = Finding> {
    let named = Some(context.units.owner_named_by(header)).filter(|named| named.object_id != 0);
    let of_other = named.map(|named| Finding::new(&registry::PAGE_OF_OTHER_UNIT).owner(named).page(id));
    [Finding::new(&registry::PAGE_UNSEEN).owner(unit.owner).page(id)].into_iter().chain(of_other)
}

fn bad(unit: UnitIndex, tally: Option<&mut UnitTally>) -> Verdict {
    if let Some(tally) = tally {
        tally.bad_pages += 1;
    }
    Verdict::Bad(unit)
}

/// Whether a page has one of the types that exist only while a repair, reorganize, bulk load or sort is running. No
/// rules are known for these pages.
fn is_in_transit(kind: PageType) -> bool {
    matches!(kind, PageType::RepairDeallocated | PageType::ReorgTemporary | PageType::BulkPreallocated | PageType::Sort)
}

#[cfg(test)]
mod tests;
