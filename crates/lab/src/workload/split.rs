//! Splits full pages. Each split is a system transaction of its own, independent of the transaction that needs the
//! space.

use super::engine::{By, Engine, Undo};
use super::entry::{Entry, context};
use super::first_page::ROOT_PAGE;
use super::frame::{NEXT, PREVIOUS};
use super::journal::Step;
use super::tree::Place;
use crate::ids::PageId;

/// The number of free bytes that a non-leaf page must have before a page below it splits: the longest entry must fit.
const ENTRY_ROOM: usize = 120;

impl Engine<'_> {
    /// Makes one split so that `record` can be inserted: splits the first full page above the leaf, or the leaf itself
    /// if no page above it is full.
    pub(super) fn split(&mut self, rowset: usize, place: &Place, record: &[u8]) -> Step {
        let path = &place.path;
        // The pages are checked from the root down. After one split, the path is out of date and the caller must search
        // again.
        for depth in 0..path.len() {
            let is_leaf = depth + 1 == path.len();
            let page = path[depth].0;
            let is_full = is_leaf || self.pool.frame(page).room() < ENTRY_ROOM;
            if !is_full {
                continue;
            }
            if depth == 0 {
                return self.split_root(rowset, page);
            }
            return self.split_page(rowset, path[depth - 1], path[depth], record);
        }
        Ok(())
    }

    /// Adds a new root above the old root. The old root can then be split like any other page.
    fn split_root(&mut self, rowset: usize, old: PageId) -> Step {
        let number = self.begin("BTreeMgr::SplitRoot", true)?;
        let by = By::Transaction(number);
        let page = self.allocate(by, rowset, 0)?;
        let level = self.pool.frame(old).level() + 1;
        self.format(by, rowset, page, level, Default::default())?;
        self.change(by, Entry::bracket(context::INDEX_INTERIOR, page, true), Undo::Nothing, |_| ())?;
        let first = self.pool.frame(old).records[0].clone();
        let target = &self.rowsets[rowset];
        let entry = target.keys.entry(&first, level - 1, old);
        let insert = Entry::insert(context::INDEX_INTERIOR, (page, 0), target.id, 0, &entry, Vec::new());
        self.change(by, insert, Undo::Nothing, |frame| frame.records.push(entry))?;
        self.change_pointer(by, rowset, ROOT_PAGE, page)?;
        self.change(by, Entry::bracket(context::INDEX_INTERIOR, page, false), Undo::Nothing, |_| ())?;
        self.commit(number)?;
        self.rowsets[rowset].root = page;
        Ok(())
    }

    /// Moves the second half of a page to a new page. If the new row belongs at the end of the last leaf page, no rows
    /// are moved, and the new page is empty until the new row is inserted.
    fn split_page(
        &mut self,
        rowset: usize,
        (parent, entry_slot): (PageId, usize),
        (page, slot): (PageId, usize),
        record: &[u8],
    ) -> Step {
        let frame = self.pool.frame(page).clone();
        let (level, (_, next)) = (frame.level(), frame.links());
        let at_end = slot >= frame.records.len() && next == PageId::NONE && level == 0;
        let from = if at_end { frame.records.len() } else { middle(&frame.records, slot) };
        let (own, interior) = (self.rowsets[rowset].context(level), context::INDEX_INTERIOR);
        let number = self.begin("SplitPage", true)?;
        let by = By::Transaction(number);
        let mut bracketed = vec![(interior, parent), (own, page)];
        if next != PageId::NONE {
            bracketed.push((own, next));
        }
        for &(context, page) in &bracketed {
            self.change(by, Entry::bracket(context, page, true), Undo::Nothing, |_| ())?;
        }
        let fresh = self.allocate(by, rowset, 0)?;
        self.format(by, rowset, fresh, level, (page, next))?;
        self.change(by, Entry::bracket(own, fresh, true), Undo::Nothing, |_| ())?;
        bracketed.push((own, fresh));
        let moved = frame.records[from..].to_vec();
        if !moved.is_empty() {
            self.move_rows(by, own, (page, from), fresh, &moved)?;
        }
        // Records that change the links of leaf pages in a clustered index have the context of heaps.
        let links = if own == context::CLUSTERED { context::HEAP } else { own };
        self.link(by, links, page, NEXT, fresh)?;
        if next != PageId::NONE {
            self.link(by, links, next, PREVIOUS, fresh)?;
        }
        let first = moved.first().map_or(record, Vec::as_slice);
        let entry = self.rowsets[rowset].keys.entry(first, level, fresh);
        let insert =
            Entry::insert(interior, (parent, entry_slot as u16 + 1), self.rowsets[rowset].id, 0, &entry, Vec::new());
        self.change(by, insert, Undo::Nothing, |frame| frame.records.insert(entry_slot + 1, entry))?;
        for &(context, page) in &bracketed {
            self.change(by, Entry::bracket(context, page, false), Undo::Nothing, |_| ())?;
        }
        self.commit(number)?;
        self.rowsets[rowset].counts.data += i64::from(level == 0);
        if level == 0 {
            self.set_ghost_bit(page)?;
            self.set_ghost_bit(fresh)?;
        }
        Ok(())
    }

    fn move_rows(&mut self, by: By, context: u8, (page, from): (PageId, usize), to: PageId, moved: &[Vec<u8>]) -> Step {
        let insert = Entry::insert_all(context, to, moved.to_vec());
        self.change(by, insert, Undo::Nothing, |frame| frame.records.extend(moved.iter().cloned()))?;
        let bytes: usize = moved.iter().map(|row| row.len() + 2).sum();
        let delete = Entry::delete_split(context, (page, from as u16), to, moved.len() as u16, bytes as u16);
        self.change(by, delete, Undo::Nothing, |frame| frame.records.truncate(from))?;
        Ok(())
    }

    fn link(&mut self, by: By, context: u8, page: PageId, at: usize, to: PageId) -> Step {
        let old = self.pool.frame(page).header(at, 6);
        let entry = Entry::header(context, page, at, old, &to.bytes());
        self.change(by, entry, Undo::Nothing, |frame| frame.set_header(at, &to.bytes()))?;
        Ok(())
    }
}

/// The slot at which the second half of the bytes starts. If the page has several rows, at least one row moves and at
/// least one row stays. If the page has a single row, this row moves if the new row belongs before it. Otherwise, the
/// row stays and the new page is empty.
fn middle(records: &[Vec<u8>], slot: usize) -> usize {
    if records.len() < 2 {
        return slot.min(records.len());
    }
    let total: usize = records.iter().map(Vec::len).sum();
    let mut sum = 0;
    let half = records.iter().take_while(|record| {
        sum += record.len();
        2 * sum <= total
    });
    half.count().clamp(1, records.len() - 1)
}
