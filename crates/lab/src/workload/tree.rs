//! Changes rows of indexes: finds them by key, inserts them in key order, and makes and removes ghosts.

use super::engine::{By, Engine, Undo};
use super::entry::{Edit, Entry, OVER_GHOST, context};
use super::frame::{is_ghost, with_ghost};
use super::journal::Step;
use super::table::Rowset;
use crate::ids::PageId;
use crate::page::Lsn;

/// The maximum number of page splits to make space for one row.
const MOST_SPLITS: usize = 20;

/// The place of a key in an index, or the place where it must be inserted.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The pages from the root to the leaf, each with a slot. On a non-leaf page, this is the slot of the entry for the
    /// next page. On the leaf, it is the slot of the key.
    pub(super) path: Vec<(PageId, usize)>,
    pub(super) is_there: bool,
}

impl Place {
    pub(super) fn leaf(&self) -> (PageId, usize) {
        self.path.last().copied().unwrap_or_default()
    }
}

impl Rowset {
    /// The context that log records have for pages of this level.
    pub(super) fn context(&self, level: u8) -> u8 {
        match (level, self.is_base, self.is_heap) {
            _ if self.is_lob => context::TEXT_MIX,
            (_, _, true) => context::HEAP,
            (1.., ..) => context::INDEX_INTERIOR,
            (0, true, _) => context::CLUSTERED,
            _ => context::INDEX_LEAF,
        }
    }
}

impl Engine<'_> {
    /// Finds the place of a leaf record's key, or the place where it must be inserted.
    pub(super) fn find(&mut self, rowset: usize, record: &[u8]) -> Place {
        let key = self.rowsets[rowset].keys.sort_key(record, 0);
        self.find_key(rowset, &key)
    }

    fn find_key(&mut self, rowset: usize, key: &[u8]) -> Place {
        let keys = self.rowsets[rowset].keys.clone();
        let (mut page, mut path) = (self.rowsets[rowset].root, Vec::new());
        loop {
            let frame = self.pool.frame(page);
            let level = frame.level();
            let sort_key = |record: &Vec<u8>| keys.sort_key(record, level);
            if level == 0 {
                let slot = frame.records.partition_point(|record| sort_key(record).as_slice() < key);
                let is_there = frame.records.get(slot).is_some_and(|record| sort_key(record) == key);
                path.push((page, slot));
                return Place { path, is_there };
            }
            // The key of the first entry is ignored, because the first entry has no lower limit.
            let after = frame.records.iter().skip(1).take_while(|record| sort_key(record).as_slice() <= key).count();
            path.push((page, after));
            page = frame.records.get(after).map_or(PageId::NONE, |entry| keys.child(entry));
        }
    }

    /// Finds the place of a row, and splits pages until the leaf page has enough space for the row.
    fn find_with_room(&mut self, rowset: usize, record: &[u8]) -> Step<Place> {
        let mut place = self.find(rowset, record);
        for _ in 0..MOST_SPLITS {
            let (page, slot) = place.leaf();
            let frame = self.pool.frame(page);
            let own = frame.records.get(slot).filter(|_| place.is_there).map_or(0, |old| old.len() + 2);
            if frame.room() + own >= record.len() + 2 {
                break;
            }
            self.split(rowset, &place, record)?;
            place = self.find(rowset, record);
        }
        Ok(place)
    }

    /// Inserts a row. If a ghost has the same key, the row replaces the ghost.
    pub(super) fn insert_row(&mut self, by: By, rowset: usize, record: &[u8]) -> Step {
        if self.rowsets[rowset].root == PageId::NONE {
            self.add_first_page(by, rowset)?;
        }
        let place = self.find_with_room(rowset, record)?;
        let (page, slot) = place.leaf();
        let target = &self.rowsets[rowset];
        let (id, context, key) = (target.id, target.context(0), target.keys.sort_key(record, 0));
        let lock = self.lock(rowset, &key);
        let flags = if place.is_there { OVER_GHOST } else { 0 };
        let mut entry = Entry::insert(context, (page, slot as u16), id, flags, record, lock);
        if matches!(by, By::Rollback(..)) {
            entry = entry.compensating();
        }
        self.change(by, entry, Undo::Insert(rowset, record.to_vec()), |frame| match place.is_there {
            true => frame.records[slot] = record.to_vec(),
            false => frame.records.insert(slot, record.to_vec()),
        })?;
        self.rowsets[rowset].counts.rows += 1;
        self.owns_ghost(by, (rowset, key), false);
        self.set_ghost_bit(page)
    }

    /// Makes a row a ghost.
    pub(super) fn delete_row(&mut self, by: By, rowset: usize, record: &[u8]) -> Step {
        let place = self.find(rowset, record);
        let (page, slot) = place.leaf();
        let target = &self.rowsets[rowset];
        let (id, key) = (target.id, target.keys.sort_key(record, 0));
        let lock = self.lock(rowset, &key);
        let image = self.pool.frame(page).records[slot].clone();
        let mut entry = Entry::delete(context::MARK_AS_GHOST, (page, slot as u16), id, &image, lock);
        if matches!(by, By::Rollback(..)) {
            entry = entry.compensating();
        }
        self.change(by, entry, Undo::Delete(rowset, image.clone()), |frame| {
            frame.records[slot] = with_ghost(&image, true);
        })?;
        self.rowsets[rowset].counts.rows -= 1;
        self.owns_ghost(by, (rowset, key), true);
        self.set_ghost_bit(page)
    }

    /// Adds a ghost to the ghosts of a transaction, or removes it if `owns` is false. A transaction keeps its ghosts
    /// because a rollback makes them live rows again.
    fn owns_ghost(&mut self, by: By, ghost: (usize, Vec<u8>), owns: bool) {
        let (By::Transaction(number) | By::Rollback(number, _)) = by else { return };
        if let Some(transaction) = self.open.get_mut(&number) {
            match owns {
                true => transaction.ghosts.insert(ghost),
                false => transaction.ghosts.remove(&ghost),
            };
        }
    }

    /// Changes a row. The key must stay the same.
    pub(super) fn modify_row(&mut self, by: By, rowset: usize, new: &[u8]) -> Step {
        let (page, slot) = self.find_with_room(rowset, new)?.leaf();
        let old = self.pool.frame(page).records[slot].clone();
        let edit = self.edit(rowset, &old, new);
        if edit.is_empty() { Ok(()) } else { self.edit_row(by, rowset, (page, slot), edit) }
    }

    /// The change from one leaf row to another.
    pub(super) fn edit(&self, rowset: usize, old: &[u8], new: &[u8]) -> Edit {
        let keys = &self.rowsets[rowset].keys;
        Edit::between((old, keys.parts(old)), (new, keys.parts(new)))
    }

    fn edit_row(&mut self, by: By, rowset: usize, (page, slot): (PageId, usize), edit: Edit) -> Step {
        let old = self.pool.frame(page).records[slot].clone();
        let new = edit.apply(&old);
        let target = &self.rowsets[rowset];
        let (id, context, key) = (target.id, target.context(0), target.keys.sort_key(&new, 0));
        let alone = target.keys.alone(&new);
        let lock = self.lock(rowset, &key);
        let mut entry = edit.entry(context, (page, slot as u16), id, alone, lock);
        if matches!(by, By::Rollback(..)) {
            entry = entry.compensating();
        }
        let undo = Undo::Modify(rowset, new.clone(), edit);
        self.change(by, entry, undo, |frame| frame.records[slot] = new)?;
        Ok(())
    }

    /// Undoes one change of a transaction.
    pub(super) fn take_back(&mut self, number: u32, previous: Lsn, undo: Undo) -> Step {
        let by = By::Rollback(number, previous);
        match undo {
            Undo::Nothing => Ok(()),
            Undo::Insert(rowset, record) => self.delete_row(by, rowset, &record),
            Undo::Delete(rowset, record) => self.insert_row(by, rowset, &record),
            Undo::Modify(rowset, record, edit) => {
                let place = self.find_with_room(rowset, &edit.inverse().apply(&record))?.leaf();
                self.edit_row(by, rowset, place, edit.inverse())
            }
            Undo::Bit(context, map, owner, bit, value) => self.set_bit(by, context, (map, owner), bit, value),
            Undo::Pointer(rowset, at, page) => {
                // DDL of other transactions may have moved the catalog row.
                if self.system.is_some() {
                    self.find_catalog_rows();
                }
                self.change_pointer(by, rowset, at, page)
            }
            Undo::Pfs(rowset, page, value) => self.take_back_pfs(by, rowset, page, value),
            Undo::HeapInsert(rowset, page, slot) => self.remove_from_heap(by, rowset, (page, slot)),
            Undo::HeapDelete(rowset, page, slot, record) => {
                self.put_in_heap(by, rowset, (page, slot), &record).map(|_| ())
            }
            Undo::HeapModify(rowset, page, slot, edit) => self.edit_in_heap(by, rowset, (page, slot), edit.inverse()),
        }
    }

    /// Removes the ghosts of a page, except ghosts that a rollback may need. A page always keeps at least one record.
    pub(super) fn expunge(&mut self, page: PageId) -> Step {
        let unit = self.pool.frame(page).unit();
        let Some(rowset) =
            self.rowsets.iter().position(|rowset| rowset.unit == unit && !rowset.is_heap && !rowset.is_gone)
        else {
            return Ok(());
        };
        let context = self.rowsets[rowset].context(0);
        let mut slot = 0;
        while slot < self.pool.frame(page).records.len() {
            let frame = self.pool.frame(page);
            let (record, only) = (frame.records[slot].clone(), frame.records.len() == 1);
            let ghost = (rowset, self.rowsets[rowset].keys.sort_key(&record, 0));
            let is_needed = self.open.values().any(|transaction| transaction.ghosts.contains(&ghost));
            if !is_ghost(&record) || is_needed || only {
                slot += 1;
                continue;
            }
            let entry = Entry::expunge(context, page, slot as u16);
            self.change(By::Engine, entry, Undo::Nothing, |frame| drop(frame.records.remove(slot)))?;
        }
        self.set_ghost_bit(page)
    }
}
