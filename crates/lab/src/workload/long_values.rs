//! Stores values that do not fit in their rows. Such a value is split into fragments on separate pages. The row stores
//! a root with links to these fragments.

use super::engine::{By, Engine};
use super::entry::Edit;
use super::first_page::{FIRST_PAGE, ROOT_PAGE};
use super::journal::Step;
use super::key::row_id;
use crate::ids::{PageId, RowId};
use crate::lob::{DATA, FRAGMENT, NODE, NODE_LINKS, ROOT_LINKS, ROOT_POINTER, header, pointer};
use crate::page::page_type;
use crate::space::{MIXED, fullness};

/// The PFS fullness class of a full page.
const FULL: u8 = 4;
/// `ROOT_HEADER` is the size in bytes of a root before its links, `ROOT_LEVEL` is the offset of its level, and `LINK`
/// is the size of a link. A link points to a part of the value. It contains the end offset of this part and the address
/// of this part.
const ROOT_HEADER: usize = 12;
const ROOT_LEVEL: usize = 2;
const LINK: usize = 12;

/// `NODE_HEADER` is the size in bytes of a tree node before its links, `NODE_COUNT` is the offset of the number of
/// links, and `NODE_LINK` is the size of a link.
const NODE_HEADER: usize = 20;
const NODE_COUNT: usize = 16;
const NODE_LINK: usize = 16;

impl Engine<'_> {
    /// Stores a value, and returns the root that its row must store.
    pub(super) fn store_value(&mut self, by: By, rowset: usize, value: &[u8]) -> Step<Vec<u8>> {
        let blob = self.next_blob << 16;
        self.next_blob += 1;
        let (mut links, mut end) = (Vec::new(), 0);
        for fragment in value.chunks(FRAGMENT) {
            end += fragment.len() as u64;
            links.push((end, self.store_fragment(by, rowset, blob, fragment)?));
        }
        if links.len() <= ROOT_LINKS {
            return Ok(pointer(ROOT_POINTER, 0, blob, &links));
        }
        let node = self.store_node(by, rowset, blob, &links)?;
        Ok(pointer(ROOT_POINTER, 1, blob, &[(end, node)]))
    }

    /// Stores a fragment in two changes: the first inserts its header, the second adds the data.
    fn store_fragment(&mut self, by: By, rowset: usize, blob: u64, fragment: &[u8]) -> Step<RowId> {
        let start = with_length(header(blob, DATA));
        let bytes = start.len() + fragment.len();
        let page = self.text_page(by, rowset, page_type::TEXT_MIX, bytes)?;
        let slot = self.free_slot(page);
        self.put_in_heap(by, rowset, (page, slot), &start)?;
        self.edit_in_heap(by, rowset, (page, slot), Edit::addition(start.len(), fragment))?;
        Ok(RowId { page, slot })
    }

    /// Stores a tree node. The node is first inserted with at most the number of links that a root can have. Each
    /// further link needs two changes: one changes the link count, and one adds the link.
    fn store_node(&mut self, by: By, rowset: usize, blob: u64, links: &[(u64, RowId)]) -> Step<RowId> {
        let link = |(end, at): &(u64, RowId)| [end.to_le_bytes(), at.bytes()].concat();
        let (first, rest) = links.split_at(ROOT_LINKS);
        let mut node = header(blob, NODE);
        node.extend((NODE_LINKS as u16).to_le_bytes());
        node.extend((first.len() as u16).to_le_bytes());
        node.extend(0u16.to_le_bytes());
        node.extend(first.iter().flat_map(link));
        let node = with_length(node);
        let page = self.text_page(by, rowset, page_type::TEXT_TREE, NODE_HEADER + links.len() * NODE_LINK)?;
        let slot = self.free_slot(page);
        self.put_in_heap(by, rowset, (page, slot), &node)?;
        for (number, further) in (first.len()..).zip(rest) {
            let (old, new) = ((number as u16).to_le_bytes(), (number as u16 + 1).to_le_bytes());
            self.edit_in_heap(by, rowset, (page, slot), Edit::bytes(NODE_COUNT, &old, &new))?;
            let end = NODE_HEADER + number * NODE_LINK;
            self.edit_in_heap(by, rowset, (page, slot), Edit::addition(end, &link(further)))?;
        }
        Ok(RowId { page, slot })
    }

    /// Returns a page of the type `kind` with at least `bytes` free bytes. If a page must be allocated, the allocation
    /// belongs to the user's transaction and not to a system transaction.
    fn text_page(&mut self, by: By, rowset: usize, kind: u8, bytes: usize) -> Step<PageId> {
        let pages = self.rowsets[rowset].pages.clone();
        let fits = |page: &PageId| {
            let has_room = self.pool.frame(*page).kind() == kind && self.room(*page) >= bytes + 2;
            has_room && !self.is_page_held(by, *page)
        };
        if let Some(page) = pages.into_iter().rev().find(fits) {
            return Ok(page);
        }
        // A tree page always counts as full. A page that the fragment does not fill gets its fullness later.
        let is_full = kind == page_type::TEXT_TREE || fullness(bytes + 2) == FULL;
        let is_first = self.rowsets[rowset].iam == PageId::NONE;
        if is_first {
            self.add_chain(by, rowset)?;
        }
        let page = self.allocate(by, rowset, if is_full { FULL } else { 0 })?;
        self.format_as(by, rowset, page, (kind, 0), Default::default())?;
        if is_first {
            self.change_pointer(by, rowset, FIRST_PAGE, page)?;
            self.change_pointer(by, rowset, ROOT_PAGE, page)?;
        }
        self.rowsets[rowset].pages.push(page);
        Ok(page)
    }

    /// Frees a value: its fragments, and the pages on which no other records remain.
    pub(super) fn free_value(&mut self, by: By, rowset: usize, root: &[u8]) -> Step {
        let is_tree = root[ROOT_LEVEL] > 0;
        for link in root[ROOT_HEADER..].chunks_exact(LINK) {
            let at = row_id(&link[4..]);
            if is_tree {
                let node = self.pool.frame(at.page).records[usize::from(at.slot)].clone();
                for link in node[NODE_HEADER..].chunks_exact(NODE_LINK) {
                    self.free_fragment(by, rowset, row_id(&link[8..]))?;
                }
            }
            self.free_fragment(by, rowset, at)?;
        }
        Ok(())
    }

    fn free_fragment(&mut self, by: By, rowset: usize, at: RowId) -> Step {
        let others = self.pool.frame(at.page).records.iter().filter(|record| !record.is_empty()).count() - 1;
        // A page of a mixed extent is not freed, because the IAM page lists it as a single-page allocation.
        let can_go = self.pfs(at.page) & MIXED == 0 && !self.is_page_held(by, at.page) && self.is_unneeded(at.page);
        if others == 0 && can_go {
            return self.free(by, rowset, at.page);
        }
        self.remove_from_heap(by, rowset, (at.page, at.slot))
    }

    /// Whether the rollbacks of all open transactions need no space on the page.
    fn is_unneeded(&self, page: PageId) -> bool {
        !self.open.values().any(|transaction| transaction.reserved.get(&page).is_some_and(|&bytes| bytes > 0))
    }
}

/// Sets the length field of a fragment.
fn with_length(mut record: Vec<u8>) -> Vec<u8> {
    let length = record.len() as u16;
    record[2..4].copy_from_slice(&length.to_le_bytes());
    record
}
