//! Changes rows of heaps. Rows are inserted where there is space, and forwarded to another page when they no longer
//! fit.

use std::collections::BTreeSet;

use super::engine::{By, Engine, Undo};
use super::entry::{Edit, Entry, context};
use super::journal::Step;
use super::key::row_id;
use crate::ids::{PageId, RowId};
use crate::page::page_type;
use crate::record;
use crate::row::{Extra, Kind, Row};

/// The minimum length of a heap row. A row of this length can be replaced by a forwarding stub.
const LEAST_BYTES: usize = 9;
/// Record type of a forwarding stub.
const STUB: u8 = 2;

fn is_stub(record: &[u8]) -> bool {
    record.first().is_some_and(|status| status >> 1 & 7 == STUB)
}

/// A forwarding stub that points to `target`.
fn stub(target: RowId) -> Vec<u8> {
    let mut record = vec![STUB << 1];
    record.extend(target.bytes());
    record
}

impl Engine<'_> {
    /// The record of a row in a heap.
    pub(super) fn heap_record(&self, rowset: usize, row: &Row, kind: Kind) -> Vec<u8> {
        let mut record = Vec::new();
        record::leaf(&self.rowsets[rowset].keys.layout, row, &Extra::default(), kind, &mut record);
        record.resize(record.len().max(LEAST_BYTES), 0);
        record
    }

    /// Inserts a row on a page with enough space, but not on the page `without`.
    pub(super) fn insert_in_heap(&mut self, by: By, rowset: usize, record: &[u8], without: PageId) -> Step<RowId> {
        let pages = self.rowsets[rowset].pages.clone();
        let mut found = None;
        for page in pages.into_iter().rev().filter(|&page| page != without) {
            // The row may need two more bytes for a new slot.
            if self.room(page) >= record.len() + 2 && !self.is_page_held(by, page) {
                found = Some(page);
                break;
            }
        }
        let page = match found {
            Some(page) => page,
            None if self.rowsets[rowset].iam == PageId::NONE => self.add_first_page(by, rowset)?,
            None => self.add_heap_page(rowset)?,
        };
        let slot = self.free_slot(page);
        self.put_in_heap(by, rowset, (page, slot), record)?;
        Ok(RowId { page, slot })
    }

    /// The first empty slot of a page. Slots that the rollback of an open transaction may need are skipped.
    pub(super) fn free_slot(&mut self, page: PageId) -> u16 {
        let undo = self.open.values().flat_map(|transaction| &transaction.undo);
        let needed: BTreeSet<u16> = undo
            .filter_map(|(.., undo)| match undo {
                Undo::HeapDelete(_, at, slot, _) if *at == page => Some(*slot),
                _ => None,
            })
            .collect();
        let records = &self.pool.frame(page).records;
        let is_empty = |slot: &u16| records.get(usize::from(*slot)).is_none_or(Vec::is_empty);
        (0..=u16::MAX).find(|slot| is_empty(slot) && !needed.contains(slot)).unwrap_or_default()
    }

    fn add_heap_page(&mut self, rowset: usize) -> Step<PageId> {
        let number = self.begin("AllocHeapPageSimpleXactDML", true)?;
        let by = By::Transaction(number);
        let page = self.allocate(by, rowset, 0)?;
        self.format(by, rowset, page, 0, Default::default())?;
        self.commit(number)?;
        self.rowsets[rowset].counts.data += 1;
        self.rowsets[rowset].pages.push(page);
        Ok(page)
    }

    pub(super) fn put_in_heap(&mut self, by: By, rowset: usize, (page, slot): (PageId, u16), record: &[u8]) -> Step {
        let lock = self.lock(rowset, &[]);
        let (id, context) = (self.rowsets[rowset].id, self.heap_context(rowset, page));
        let mut entry = Entry::insert(context, (page, slot), id, 0, record, lock);
        if matches!(by, By::Rollback(..)) {
            entry = entry.compensating();
        }
        self.change(by, entry, Undo::HeapInsert(rowset, page, slot), |frame| {
            let slot = usize::from(slot);
            frame.records.resize(frame.records.len().max(slot + 1), Vec::new());
            frame.records[slot] = record.to_vec();
        })?;
        self.count_rows(rowset, i64::from(!is_stub(record)));
        self.set_fullness(page)
    }

    pub(super) fn remove_from_heap(&mut self, by: By, rowset: usize, (page, slot): (PageId, u16)) -> Step {
        let image = self.pool.frame(page).records[usize::from(slot)].clone();
        let lock = self.lock(rowset, &[]);
        let (id, context) = (self.rowsets[rowset].id, self.heap_context(rowset, page));
        let mut entry = Entry::delete(context, (page, slot), id, &image, lock);
        if matches!(by, By::Rollback(..)) {
            entry = entry.compensating();
        }
        let bytes = image.len() + 2;
        let rows = i64::from(!is_stub(&image));
        self.change(by, entry, Undo::HeapDelete(rowset, page, slot, image), |frame| {
            frame.records[usize::from(slot)] = Vec::new();
        })?;
        self.count_rows(rowset, -rows);
        self.reserve(by, page, bytes);
        self.set_fullness(page)
    }

    pub(super) fn edit_in_heap(&mut self, by: By, rowset: usize, (page, slot): (PageId, u16), edit: Edit) -> Step {
        let old = self.pool.frame(page).records[usize::from(slot)].clone();
        let mut new = edit.apply(&old);
        if self.rowsets[rowset].is_lob {
            // The length field of the record is adjusted here, because the change does not include it.
            let length = new.len() as u16;
            new[2..4].copy_from_slice(&length.to_le_bytes());
        }
        let lock = self.lock(rowset, &[]);
        let (id, context) = (self.rowsets[rowset].id, self.heap_context(rowset, page));
        let mut entry = edit.entry(context, (page, slot), id, Vec::new(), lock);
        if matches!(by, By::Rollback(..)) {
            entry = entry.compensating();
        }
        let freed = old.len().saturating_sub(new.len());
        let rows = i64::from(!is_stub(&new)) - i64::from(!is_stub(&old));
        self.change(by, entry, Undo::HeapModify(rowset, page, slot, edit), |frame| {
            frame.records[usize::from(slot)] = new;
        })?;
        self.count_rows(rowset, rows);
        self.reserve(by, page, freed);
        self.set_fullness(page)
    }

    fn heap_context(&mut self, rowset: usize, page: PageId) -> u8 {
        let is_tree = self.pool.frame(page).kind() == page_type::TEXT_TREE;
        if is_tree { context::TEXT_TREE } else { self.rowsets[rowset].context(0) }
    }

    /// Adds `rows` to the row count of a rowset. Does nothing for a LOB unit, since its records are fragments of long
    /// values and not rows.
    fn count_rows(&mut self, rowset: usize, rows: i64) {
        let rowset = &mut self.rowsets[rowset];
        rowset.counts.rows += if rowset.is_lob { 0 } else { rows };
    }

    /// Follows a forwarding stub: returns the address where the row is stored, and its record.
    fn resolve(&mut self, at: RowId) -> (RowId, Vec<u8>) {
        let record = self.pool.frame(at.page).records[usize::from(at.slot)].clone();
        if !is_stub(&record) {
            return (at, record);
        }
        let target = row_id(&record[1..9]);
        let record = self.pool.frame(target.page).records[usize::from(target.slot)].clone();
        (target, record)
    }

    /// Changes a row. If the row no longer fits on its page, moves it to another page and leaves a forwarding stub.
    /// Returns false, without a change, if the row was already forwarded and does not fit on its current page.
    pub(super) fn update_in_heap(&mut self, by: By, rowset: usize, at: RowId, row: &Row) -> Step<bool> {
        let (target, old) = self.resolve(at);
        let is_moved = target != at;
        let new = self.heap_record(rowset, row, if is_moved { Kind::Forwarded(at) } else { Kind::Primary });
        if self.room(target.page) + old.len() >= new.len() {
            let edit = self.edit(rowset, &old, &new);
            if !edit.is_empty() {
                self.edit_in_heap(by, rowset, (target.page, target.slot), edit)?;
            }
            return Ok(true);
        }
        if is_moved {
            return Ok(false);
        }
        let forwarded = self.heap_record(rowset, row, Kind::Forwarded(at));
        let target = self.insert_in_heap(by, rowset, &forwarded, at.page)?;
        self.edit_in_heap(by, rowset, (at.page, at.slot), Edit::whole(&old, &stub(target)))?;
        Ok(true)
    }

    /// Deletes a row. If the row was forwarded, its stub is deleted too.
    pub(super) fn delete_from_heap(&mut self, by: By, rowset: usize, at: RowId) -> Step {
        let (target, _) = self.resolve(at);
        self.remove_from_heap(by, rowset, (at.page, at.slot))?;
        if target != at {
            self.remove_from_heap(by, rowset, (target.page, target.slot))?;
        }
        Ok(())
    }
}
