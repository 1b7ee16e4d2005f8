//! Values that do not fit in their rows: fragments on pages of their own, which a root in the row leads to.

use super::engine::{By, Engine};
use super::entry::Edit;
use super::journal::Step;
use super::key::row_id;
use crate::ids::{PageId, RowId};
use crate::lob::{DATA, FRAGMENT, ROOT_POINTER, header, pointer};
use crate::space::{MIXED, fullness};

/// Bytes of a root in front of its links, and of a link: the end of what it leads to, and where that is.
const ROOT_HEADER: usize = 12;
const LINK: usize = 12;

impl Engine<'_> {
    /// Stores a value, and returns the root for its row.
    pub(super) fn store_value(&mut self, by: By, rowset: usize, value: &[u8]) -> Step<Vec<u8>> {
        let blob = self.next_blob << 16;
        self.next_blob += 1;
        let (mut links, mut end) = (Vec::new(), 0);
        for fragment in value.chunks(FRAGMENT) {
            end += fragment.len() as u64;
            links.push((end, self.store_fragment(by, rowset, blob, fragment)?));
        }
        Ok(pointer(ROOT_POINTER, 0, blob, &links))
    }

    /// Its header comes first and then grows. Pages are allocated by the user's transaction itself.
    fn store_fragment(&mut self, by: By, rowset: usize, blob: u64, fragment: &[u8]) -> Step<RowId> {
        let mut start = header(blob, DATA);
        let bytes = start.len() + fragment.len();
        let length = start.len() as u16;
        start[2..4].copy_from_slice(&length.to_le_bytes());
        let pages = self.rowsets[rowset].pages.clone();
        let mut found = None;
        for page in pages.into_iter().rev() {
            if found.is_none() && self.room(page) >= bytes + 2 && !self.is_page_held(by, page) {
                found = Some(page);
            }
        }
        let page = match found {
            Some(page) => page,
            None => self.add_page(by, rowset, bytes)?,
        };
        let slot = self.free_slot(page);
        self.put_in_heap(by, rowset, (page, slot), &start)?;
        self.edit_in_heap(by, rowset, (page, slot), Edit::addition(start.len(), fragment))?;
        Ok(RowId { page, slot })
    }

    fn add_page(&mut self, by: By, rowset: usize, bytes: usize) -> Step<PageId> {
        // The last fragment of a value gets its fullness later.
        let full = fullness(bytes + 2);
        let page = self.allocate(by, rowset, if full == 4 { full } else { 0 })?;
        self.format(by, rowset, page, 0, Default::default())?;
        self.rowsets[rowset].pages.push(page);
        Ok(page)
    }

    /// Frees a value: pages that have nothing else, and fragments of others.
    pub(super) fn free_value(&mut self, by: By, rowset: usize, root: &[u8]) -> Step {
        for link in root[ROOT_HEADER..].chunks_exact(LINK) {
            let at = row_id(&link[4..]);
            let others = self.pool.frame(at.page).records.iter().filter(|record| !record.is_empty()).count() - 1;
            // A page of a mixed extent stays, as its IAM page names it.
            let can_go =
                self.pfs(at.page) & MIXED == 0 && !self.is_page_held(by, at.page) && self.nobody_needs(at.page);
            if others == 0 && can_go {
                self.free(by, rowset, at.page)?;
            } else {
                self.remove_from_heap(by, rowset, (at.page, at.slot))?;
            }
        }
        Ok(())
    }

    /// Whether no open transaction may bring a fragment back to a page.
    fn nobody_needs(&self, page: PageId) -> bool {
        !self.open.values().any(|transaction| transaction.reserved.get(&page).is_some_and(|&bytes| bytes > 0))
    }
}
