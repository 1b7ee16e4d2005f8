//! The leaves beside a leaf that cannot be read, by the level above and by the links of the leaves.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{AllocUnit, Fetched, Rowset, fetch};
use format::record::Record;
use format::{Page, PageBytes, PageId, PageType};
use source::PageSource;

use crate::leaf::{LeafScratch, Slot, each_slot, is_leaf_of, is_row};

/// No B-tree is deeper: one of 8 KB pages over 2^31 pages stays far below.
const MAX_DEPTH: usize = 32;
/// The child pointer of an entry, the last part of its fixed part (docs/format/index-records.md#non-leaf-entries).
const CHILD_BYTES: usize = 6;

/// Why the level above the leaves could not be followed to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    /// The page that cannot be used, or none if the tree has no level above the leaves.
    pub(crate) page: PageId,
}

/// Calls `each` with the leaves below a tree's level 1, in key order: parent, leaf, and the record with the leaf's least key.
///
/// Pages are linked both ways, and the first of a level has nothing to its left: a walk that follows only links that are
/// mirrored meets no page twice.
pub(crate) fn each_leaf(
    source: &dyn PageSource,
    unit: &AllocUnit,
    each: &mut dyn FnMut(PageId, PageId, Option<&Record<'_>>),
) -> Result<(), Cut> {
    let (mut at, mut bytes) = first_above_leaves(source, unit)?;
    let mut from = PageId::NONE;
    loop {
        let page = Page::new(&bytes);
        let header = page.header();
        if header.prev() != from {
            return Err(Cut { page: at });
        }
        let fixed = header.pminlen.get();
        for slot in 0..header.slot_count.get() {
            let space = page.slot_bytes(slot).unwrap_or_default();
            let child = usize::from(fixed).checked_sub(CHILD_BYTES).and_then(|offset| PageId::read(space, offset));
            let Some(child) = child.filter(|child| source.contains(*child)) else { return Err(Cut { page: at }) };
            each(at, child, Record::index(space, fixed).ok().as_ref());
        }
        let next = header.next();
        if next.is_none() {
            return Ok(());
        }
        let followed = index_page(source, unit, next, Some(1))?;
        (from, at, bytes) = (at, next, followed);
    }
}

/// The leftmost page of level 1.
fn first_above_leaves(source: &dyn PageSource, unit: &AllocUnit) -> Result<(PageId, Box<PageBytes>), Cut> {
    let mut at = unit.root;
    let mut level = None;
    for _ in 0..MAX_DEPTH {
        let bytes = index_page(source, unit, at, level)?;
        let page = Page::new(&bytes);
        let own = page.header().level;
        if own == 1 {
            return Ok((at, bytes));
        }
        let child = usize::from(page.header().pminlen.get())
            .checked_sub(CHILD_BYTES)
            .and_then(|offset| PageId::read(page.slot_bytes(0)?, offset));
        level = own.checked_sub(1);
        at = child.filter(|_| level.is_some()).ok_or(Cut { page: at })?;
    }
    Err(Cut { page: at })
}

/// A sound page above the leaves of `unit`; of this level, if one is named.
fn index_page(
    source: &dyn PageSource,
    unit: &AllocUnit,
    page: PageId,
    level: Option<u8>,
) -> Result<Box<PageBytes>, Cut> {
    let Fetched::Sound(bytes) = fetch(source, page) else { return Err(Cut { page }) };
    let header = Page::new(&bytes).header();
    let names_unit = header.alloc_unit() == unit.id || unit.id.clustered_of_2000() == Some(header.alloc_unit());
    let is_of_level = header.level > 0 && level.is_none_or(|level| header.level == level);
    if header.kind() == Some(PageType::Index) && names_unit && is_of_level { Ok(bytes) } else { Err(Cut { page }) }
}

/// The leaves on both sides of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beside {
    /// None if the leaf is the first, or nothing says which it is.
    pub(crate) left: Option<PageId>,
    /// None if the leaf is the last, or nothing says which it is.
    pub(crate) right: Option<PageId>,
}

/// The leaves beside a damaged one, by the links in its own header, as far as the leaves there link back.
pub(crate) fn by_links(source: &dyn PageSource, unit: &AllocUnit, page: PageId) -> Beside {
    let Some(bytes) = source.read_page(page) else { return Beside { left: None, right: None } };
    let header = Page::new(&bytes).header();
    let links_back = |other: PageId, back: fn(&format::PageHeader) -> PageId| {
        let Fetched::Sound(bytes) = fetch(source, other) else { return false };
        is_leaf_of(&bytes, other, unit.id) && back(Page::new(&bytes).header()) == page
    };
    let left = Some(header.prev()).filter(|other| !other.is_none() && links_back(*other, format::PageHeader::next));
    let right = Some(header.next()).filter(|other| !other.is_none() && links_back(*other, format::PageHeader::prev));
    Beside { left, right }
}

/// The first or the last row of a sound leaf, as an uncompressed record.
pub(crate) fn edge_row(
    source: &dyn PageSource,
    (unit, rowset): (&AllocUnit, &Rowset),
    page: PageId,
    last: bool,
    scratch: &mut LeafScratch,
) -> Option<Vec<u8>> {
    let Fetched::Sound(bytes) = fetch(source, page) else { return None };
    if !is_leaf_of(&bytes, page, unit.id) {
        return None;
    }
    let mut edge: Option<Vec<u8>> = None;
    each_slot(Page::new(&bytes), rowset, scratch, &mut |_, content| {
        if let Slot::Record(record) = content
            && is_row(&record)
            && (last || edge.is_none())
        {
            edge = Some(record.bytes().to_vec());
        }
    });
    edge
}

/// The leaves beside each of `pages`, the nearest of those that are not in `pages` themselves.
pub(crate) fn beside(source: &dyn PageSource, unit: &AllocUnit, pages: &BTreeSet<PageId>) -> BTreeMap<PageId, Beside> {
    let mut found: BTreeMap<PageId, Beside> = BTreeMap::new();
    let mut run: Vec<PageId> = Vec::new();
    let mut before = None;
    let walked = each_leaf(source, unit, &mut |_, child, _| {
        if pages.contains(&child) {
            found.entry(child).or_insert(Beside { left: before, right: None });
            run.push(child);
            return;
        }
        for page in run.drain(..) {
            found.entry(page).and_modify(|beside| beside.right = Some(child));
        }
        before = Some(child);
    });
    if walked.is_err() {
        for page in pages {
            found.entry(*page).or_insert_with(|| by_links(source, unit, *page));
        }
    }
    found
}
