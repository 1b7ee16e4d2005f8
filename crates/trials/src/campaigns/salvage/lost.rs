//! Requirements on the losses that salvage reports.

use std::collections::BTreeSet;

use format::{Page, PageId};
use rows::Why;
use rows::loss::{CountBasis, KeyBound, Loss, WhichRows};
use rows::salvage::Salvaged;
use source::{MemoryFiles, PageSource};

use super::damage::Damage;
use crate::sound::{IntegerKey, Read, Whole};

/// Judges the losses of a table. Returns an error that describes the first problem.
pub(super) fn judge(
    whole: &Whole,
    damage: &Damage,
    read: &Read,
    done: &Salvaged,
    files: &MemoryFiles,
) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for loss in &done.losses {
        let wrong = |text: String| Err(format!("{text}; {loss:?}"));
        if let Some(page) = loss.pages.iter().find(|page| !seen.insert(**page)) {
            return wrong(format!("page {page} is lost twice"));
        }
        let is_open = loss.which == WhichRows::Unknown;
        for page in &loss.pages {
            match (whole.leaves.get(page), loss.partition) {
                (Some(own), Some(said)) if *own != said => {
                    return wrong(format!("page {page} was of partition {own}"));
                }
                (None, _) if !is_open => return wrong(format!("page {page} had no rows of the table")),
                _ => {}
            }
        }
        rows(whole, loss, files)?;
        if let (WhichRows::Keys { from, to, .. }, Some(key)) = (&loss.which, whole.key) {
            keys(whole, loss, key, (from.as_ref(), to.as_ref()))?;
        }
    }
    // Each damaged leaf or heap page that the scan left out must be in the pages of some reported loss. This does not
    // apply to sealed pages, whose page protection was corrected after the damage.
    let may_be = |(page, why): &(PageId, Why)| {
        let is_met = matches!(why, Why::Damaged | Why::OtherPage(_));
        (is_met && whole.leaves.contains_key(page) && !damage.sealed.contains(page)).then_some(*page)
    };
    match read.left_out.iter().filter_map(may_be).find(|page| !seen.contains(page)) {
        Some(page) => Err(format!("the loss of page {page} is missing; {:?}", done.losses)),
        None => Ok(()),
    }
}

/// The row count of a loss must agree with the number of rows on its pages.
fn rows(whole: &Whole, loss: &Loss, files: &MemoryFiles) -> Result<(), String> {
    let on_page = |page: &PageId| {
        let first = format::RecordId { page: *page, slot: 0 };
        let last = format::RecordId { page: *page, slot: u16::MAX };
        whole.rows.range(first..=last).count() as u64
    };
    let rows: u64 = loss.pages.iter().map(on_page).sum();
    // The row count of a loss may come from a damaged page header, or from the catalog of an old database. Both counts
    // may be wrong.
    let is_trusted = match loss.rows.basis {
        CountBasis::StoredCount => whole.is_counted,
        CountBasis::PageHeader => {
            loss.pages.iter().all(|page| slots(files, *page).is_some_and(|slots| slots >= on_page(page)))
        }
        CountBasis::PageSize => true,
    };
    if is_trusted && (loss.rows.least > rows || loss.rows.most.is_some_and(|most| most < rows)) {
        return Err(format!("{rows} rows were on the pages; {loss:?}"));
    }
    Ok(())
}

fn slots(files: &MemoryFiles, page: PageId) -> Option<u64> {
    files.read_page(page).map(|bytes| Page::new(&bytes).header().slot_count.get().into())
}

/// The key range of a loss must contain the keys of all rows on the lost pages, and no key of another row.
fn keys(
    whole: &Whole,
    loss: &Loss,
    key: IntegerKey,
    (from, to): (Option<&KeyBound>, Option<&KeyBound>),
) -> Result<(), String> {
    let sign = if key.is_descending { -1 } else { 1 };
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i128>().ok()).map(|number| sign * number);
    let bound = |bound: Option<&KeyBound>| {
        bound.and_then(|bound| Some((number(bound.values.first()?.text.as_deref())?, bound.inclusive)))
    };
    let (lower, upper) = (bound(from), bound(to));
    for (place, row) in &whole.rows {
        let Some(own) = number(row.get(key.at).and_then(Option::as_deref)) else { continue };
        let is_in = lower.is_none_or(|(limit, inclusive)| own > limit || inclusive && own == limit)
            && upper.is_none_or(|(limit, inclusive)| own < limit || inclusive && own == limit);
        let is_lost = loss.pages.contains(&place.page);
        if is_lost && !is_in {
            return Err(format!("the key {own} of {place} is lost too; {loss:?}"));
        }
        // Rows of other partitions are not compared, because each partition has its own key ranges. If keys are not
        // unique, a key at a limit of the range may also occur on undamaged pages.
        let is_edge = key.has_equals && [lower, upper].into_iter().flatten().any(|(limit, _)| limit == own);
        let is_of_partition = whole.leaves.get(&place.page).copied() == loss.partition;
        if !is_lost && is_in && lower.is_some() && upper.is_some() && is_of_partition && !is_edge {
            return Err(format!("the key {own} of {place} is not lost; {loss:?}"));
        }
    }
    Ok(())
}
