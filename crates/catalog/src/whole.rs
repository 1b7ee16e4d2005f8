//! Checks that the leaf chain of a base table is complete. A chain that ends too early looks complete, and the row
//! count in the catalog may be stale. Therefore, the chain is compared with the tree above it and with the IAM chain.

use std::collections::HashSet;

use format::allocation::{EXTENT_PAGES, IamHeader, bitmap, pfs_bytes, pfs_page_of, set_bits};
use format::record::RecordKind;
use format::slots::SlotOrder;
use format::{AllocUnitId, Page, PageBytes, PageId, PageType};
use source::PageSource;

use crate::chain::{self, Fetched, MAX_DEPTH};
use crate::database::AllocUnit;

/// Whether the leaf chain that starts at `first` is complete. The chain must consist of exactly the leaves in the tree
/// of `unit`. The chain must also contain every leaf in use that is in an extent or a single-page slot of the unit's
/// IAM chain. Also `false` if any of these pages cannot be read.
pub(crate) fn is_whole(source: &dyn PageSource, unit: &AllocUnit, first: impl Into<chain::First>) -> bool {
    let mut chain = Vec::new();
    let walked = chain::walk(source, unit.id, first, |page| chain.push(page.header().page_id()));
    if walked.is_err() || leaves_of_tree(source, unit).as_ref() != Some(&chain) {
        return false;
    }
    let chain: HashSet<PageId> = chain.into_iter().collect();
    leaves_of_iam_chain(source, unit, |leaf| chain.contains(&leaf))
}

fn sound(source: &dyn PageSource, page: PageId) -> Option<Box<PageBytes>> {
    match chain::fetch(source, page) {
        Fetched::Sound(bytes) => Some(bytes),
        _ => None,
    }
}

/// Returns the leaves that the lowest non-leaf level lists, in the order of that level. If the root is a leaf, the list
/// contains only the root. `None` if a page cannot be read or has the wrong type.
fn leaves_of_tree(source: &dyn PageSource, unit: &AllocUnit) -> Option<Vec<PageId>> {
    let mut at = unit.root;
    for _ in 0..MAX_DEPTH {
        let bytes = sound(source, at)?;
        let page = Page::new(&bytes);
        match page.header().kind()? {
            PageType::Data => return Some(vec![at]),
            PageType::Index => {}
            _ => return None,
        }
        let child = children(page).into_iter().next()?;
        let below = sound(source, child)?;
        if Page::new(&below).header().kind() == Some(PageType::Data) {
            return children_of_level(source, unit.id, at);
        }
        at = child;
    }
    None
}

/// Returns the children of all pages of one level. `first` is the first page of that level. `None` if a page cannot be
/// read or does not belong to the level.
fn children_of_level(source: &dyn PageSource, unit: AllocUnitId, first: PageId) -> Option<Vec<PageId>> {
    let (mut seen, mut all, mut at) = (HashSet::new(), Vec::new(), first);
    while !at.is_none() {
        let bytes = sound(source, at).filter(|_| seen.insert(at))?;
        let page = Page::new(&bytes);
        let header = page.header();
        if header.kind() != Some(PageType::Index) || header.alloc_unit() != unit {
            return None;
        }
        all.extend(children(page));
        at = header.next();
    }
    Some(all)
}

/// The children of a non-leaf page. The last six bytes of each entry's fixed part are the page ID of a child
/// (docs/format/index-records.md#non-leaf-entries).
fn children(page: Page<'_>) -> Vec<PageId> {
    let mut order = SlotOrder::default();
    order.load(page);
    let place = usize::from(page.header().pminlen.get()).checked_sub(6);
    let child = |position: usize| {
        let entry = order.space(page, position);
        let is_live = entry.first().is_some_and(|status| !RecordKind::is_tag_alone(*status));
        PageId::read(entry, place?).filter(|_| is_live)
    };
    // Sorts the entries by slot, because slots are in key order.
    let mut children: Vec<_> = order.entries().iter().enumerate().map(|(at, entry)| (entry.slot, child(at))).collect();
    children.sort_by_key(|(slot, _)| *slot);
    children.into_iter().filter_map(|(_, child)| child).collect()
}

/// Whether `is_known` is true for each leaf in use that is in an extent or a single-page slot of the unit's IAM chain.
fn leaves_of_iam_chain(source: &dyn PageSource, unit: &AllocUnit, is_known: impl Fn(PageId) -> bool) -> bool {
    let (mut seen, mut at) = (HashSet::new(), unit.first_iam);
    while !at.is_none() {
        let Some(bytes) = sound(source, at).filter(|_| seen.insert(at)) else { return false };
        let page = Page::new(&bytes);
        let of_unit = page.header().kind() == Some(PageType::Iam) && page.header().alloc_unit() == unit.id;
        let (Some(iam), Some(map)) = (IamHeader::read(page).filter(|_| of_unit), bitmap(page)) else { return false };
        let first_of = |extent: u32| iam.start.page.saturating_add(extent.saturating_mul(EXTENT_PAGES));
        let in_extents = set_bits(map)
            .flat_map(|extent| (0..EXTENT_PAGES).map(move |page| first_of(extent).saturating_add(page)))
            .map(|page| PageId::new(iam.start.file, page));
        let singles = iam.slots.into_iter().filter(|page| !page.is_none());
        if in_extents.chain(singles).any(|page| !is_known(page) && may_be_leaf(source, unit.id, page)) {
            return false;
        }
        at = page.header().next();
    }
    true
}

/// Whether a page is a leaf of the unit and in use, or cannot be read.
fn may_be_leaf(source: &dyn PageSource, unit: AllocUnitId, page: PageId) -> bool {
    let map = sound(source, PageId::new(page.file, pfs_page_of(page.page)));
    let byte = map.as_deref().and_then(|bytes| {
        let at = page.page % format::allocation::PFS_PAGES;
        pfs_bytes(Page::new(bytes))?.get(at as usize).copied()
    });
    if byte.is_some_and(|byte| !format::allocation::PfsByte(byte).is_allocated()) {
        return false;
    }
    let Some(bytes) = sound(source, page) else { return true };
    let header = Page::new(&bytes).header();
    byte.is_none() || header.kind() == Some(PageType::Data) && header.alloc_unit() == unit
}
