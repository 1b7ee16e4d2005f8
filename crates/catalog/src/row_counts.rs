//! Changes the row counts in sysrowsets. The server writes these counts at checkpoints, without log records
//! (docs/format/catalog.md#sysrowsets).

use std::collections::BTreeMap;

use format::record::Record;
use format::{AllocUnitId, Page, PageBytes, PageType};

use crate::load::{SYSROWSETS, fixed_id};

/// Offset of the rowset ID in a record of sysrowsets.
const ROWSET_ID: u16 = 4;
const ROWS: u16 = 4 + 27;

/// Sets the row counts on a page of sysrowsets. `rows` contains the new count for each rowset ID. Before the call, the
/// bits that torn-page protection replaced must already be restored. Returns whether the page has changed; if so, the
/// caller must renew its checksum. A page of another table is not changed.
pub fn set_row_counts(page: &mut PageBytes, rows: &BTreeMap<u64, u64>) -> bool {
    let view = Page::new(page);
    let header = view.header();
    let is_leaf = header.kind() == Some(PageType::Data) && header.level == 0;
    if !is_leaf || header.alloc_unit() != AllocUnitId(fixed_id(SYSROWSETS)) {
        return false;
    }
    let mut changes = Vec::new();
    for slot in 0..header.slot_count.get() {
        let (Some(bytes), Some(offset)) = (view.slot_bytes(slot), view.slot_offset(slot)) else { continue };
        let Ok(record) = Record::data(bytes) else { continue };
        let word = |at| record.fixed(at, 8)?.first_chunk::<8>().copied().map(u64::from_le_bytes);
        let (Some(rowset), Some(stored)) = (word(ROWSET_ID), word(ROWS)) else { continue };
        if let Some(counted) = rows.get(&rowset).filter(|counted| **counted != stored) {
            changes.push((usize::from(offset) + usize::from(ROWS), *counted));
        }
    }
    for (at, counted) in &changes {
        if let Some(place) = page.get_mut(*at..*at + 8) {
            place.copy_from_slice(&counted.to_le_bytes());
        }
    }
    !changes.is_empty()
}
