//! Pinpoint: a second look at one unit whose sums differ, to name page, slot and message.

mod forwarding;
mod index_rows;
mod lob;
mod tree;
mod unmatched;

use std::collections::{BTreeMap, BTreeSet};

use format::record::Record;
use format::{Page, PageId, RecordId};

use crate::context::Context;
use crate::sweep::{self, Target, Verdict};
use crate::units::UnitIndex;

pub(crate) use forwarding::forwarding;
pub(crate) use index_rows::index_rows;
pub(crate) use lob::lob;
pub(crate) use tree::tree;

/// The pages that `units` own, in page order, gathered in one walk over the maps.
pub(crate) fn pages_of(context: &Context<'_>, units: &BTreeSet<UnitIndex>) -> BTreeMap<UnitIndex, Vec<PageId>> {
    let mut pages: BTreeMap<UnitIndex, Vec<PageId>> = units.iter().map(|unit| (*unit, Vec::new())).collect();
    if units.is_empty() {
        return pages;
    }
    for file in &context.survey.files {
        for page in 0..file.pages {
            if let Some(list) = file.owner(page).and_then(|unit| pages.get_mut(&unit)) {
                list.push(PageId::new(file.file_id, page));
            }
        }
    }
    pages
}

/// Calls `visit` with each of `pages` that is a sound page of `unit`.
fn for_each_sound(
    context: &Context<'_>,
    unit: UnitIndex,
    pages: &[PageId],
    mut visit: impl FnMut(PageId, Page<'_>, &Target),
) {
    let mut target = Target::default();
    for &id in pages {
        let Some(mut bytes) = context.source.read_page(id) else { continue };
        if let Verdict::Sound(found, _) = target.look(context, id, &mut bytes)
            && found == unit
        {
            visit(id, Page::new(&bytes), &target);
        }
    }
}

/// Calls `visit` with each record of the sound leaf pages of `units`, ghosts included, in the order of pages.
pub(crate) fn each_row(
    context: &Context<'_>,
    units: &BTreeSet<UnitIndex>,
    mut visit: impl FnMut(UnitIndex, RecordId, &Record<'_>),
) {
    let mut target = Target::default();
    for file in &context.survey.files {
        for page in 0..file.pages {
            let Some(unit) = file.owner(page).filter(|unit| units.contains(unit)) else { continue };
            let id = PageId::new(file.file_id, page);
            rows_of_page(context, &mut target, unit, id, &mut |at, record| visit(unit, at, record));
        }
    }
}

/// Calls `visit` with each record of a page, if it is a sound leaf page of `unit`.
fn rows_of_page(
    context: &Context<'_>,
    target: &mut Target,
    unit: UnitIndex,
    id: PageId,
    visit: &mut dyn FnMut(RecordId, &Record<'_>),
) {
    let Some(mut bytes) = context.source.read_page(id) else { return };
    if !matches!(target.look(context, id, &mut bytes), Verdict::Sound(found, _) if found == unit) {
        return;
    }
    let page = Page::new(&bytes);
    if !sweep::is_leaf_of(context, unit, page) {
        return;
    }
    for slot in 0..target.spans().len() {
        if let Some(record) = target.record(page, slot) {
            visit(RecordId { page: id, slot: slot as u16 }, &record);
        }
    }
}
