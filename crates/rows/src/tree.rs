//! Reads the index levels above the leaves of a clustered index, and finds the neighbors of an unreadable leaf page.

mod leaves;

use std::collections::{BTreeMap, BTreeSet};

use catalog::{AllocUnit, Fetched, Rowset, fetch};
use format::record::Record;
use format::{Page, PageId};
use source::PageSource;

pub(crate) use self::leaves::Leaves;
use self::leaves::{MAX_DEPTH, child, is_compressed, leads_to_nodes, node};
use crate::leaf::{LeafScratch, Slot, each_slot, is_leaf_of, is_row};

/// The entry for a leaf page on the level above: the page that contains the entry, and the record with the lowest key
/// of the leaf.
pub(crate) type Entry<'e> = Option<(PageId, Record<'e>)>;

/// Calls `each` with the leaf pages of a B-tree in key order. Stops at the first damaged page above the leaves, and
/// then returns false.
pub(crate) fn each_leaf(source: &dyn PageSource, unit: &AllocUnit, each: &mut dyn FnMut(PageId, Entry<'_>)) -> bool {
    let mut leaves = Leaves::of(source, unit);
    while let Some(next) = leaves.next_leaf() {
        match next {
            Ok(leaf) => each(leaf, leaves.entry()),
            Err(_) => return false,
        }
    }
    true
}

/// Calls `each` with the pages above the leaves, except the root, that can be reached through sound pages.
///
/// The pages of a level form a doubly linked list, and the first page has no left neighbor. The walk follows a link
/// only if the next page links back, so it reaches no page twice.
pub(crate) fn each_node(source: &dyn PageSource, unit: &AllocUnit, each: &mut dyn FnMut(PageId)) {
    let mut first = unit.root;
    let mut level = None;
    for _ in 0..MAX_DEPTH {
        let Some(bytes) = node(source, unit.id, first, level) else { return };
        let page = Page::new(&bytes);
        let own = page.header().level;
        if is_compressed(page) || !leads_to_nodes(source, page) {
            return;
        }
        let below = child(page, 0);
        let (mut from, mut at, mut bytes) = (PageId::NONE, first, bytes);
        while Page::new(&bytes).header().prev() == from {
            let page = Page::new(&bytes);
            (0..page.header().slot_count.get()).filter_map(|slot| child(page, slot)).for_each(&mut *each);
            (from, at) = (at, page.header().next());
            let Some(next) = node(source, unit.id, at, Some(own)) else { break };
            bytes = next;
        }
        let Some(below) = below else { return };
        (first, level) = (below, own.checked_sub(1));
    }
}

/// The neighbors of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beside {
    /// The previous leaf page; `None` if this leaf is the first, or if its previous page is unknown.
    pub(crate) left: Option<PageId>,
    /// The next leaf page; `None` if this leaf is the last, or if its next page is unknown.
    pub(crate) right: Option<PageId>,
}

/// The neighbors that the header of a damaged leaf page names. A neighbor is used only if it links back.
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

/// The first or the last row of a leaf, as an uncompressed record. `None` if the leaf is damaged or has no rows.
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

/// The neighbors of each of `pages`: the nearest leaf pages that are not themselves in `pages`.
pub(crate) fn beside(source: &dyn PageSource, unit: &AllocUnit, pages: &BTreeSet<PageId>) -> BTreeMap<PageId, Beside> {
    let mut found: BTreeMap<PageId, Beside> = BTreeMap::new();
    let mut run: Vec<PageId> = Vec::new();
    let mut before = None;
    let is_whole = each_leaf(source, unit, &mut |child, _| {
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
    if !is_whole {
        for page in pages {
            found.entry(*page).or_insert_with(|| by_links(source, unit, *page));
        }
    }
    found
}
