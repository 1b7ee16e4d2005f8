//! Forwarding stubs against forwarded rows of one heap: 8971, 8972, 8993, 8994.

use std::collections::{BTreeMap, BTreeSet};

use format::{PageId, RecordId};

use super::for_each_sound;
use crate::context::Context;
use crate::finding::Finding;
use crate::registry;
use crate::sweep::{Forwarding, forwarding as forwarding_of};
use crate::units::UnitIndex;

/// Names the pairs that do not match.
pub(crate) fn forwarding(context: &Context<'_>, unit: UnitIndex, pages: &[PageId]) -> Vec<Finding> {
    let Some(owner) = context.units.get(unit).map(|unit| unit.owner) else { return Vec::new() };
    let mut stubs: BTreeMap<RecordId, RecordId> = BTreeMap::new();
    let mut rows: BTreeMap<RecordId, RecordId> = BTreeMap::new();
    for_each_sound(context, unit, pages, |id, page, target| {
        for (slot, span) in target.spans().iter().enumerate() {
            let here = RecordId { page: id, slot: slot as u16 };
            match forwarding_of(span.of(page)) {
                Some(Forwarding::Stub(row)) => stubs.insert(here, row),
                Some(Forwarding::Row(stub)) => rows.insert(here, stub),
                None => None,
            };
        }
    });
    let mut findings = Vec::new();
    let named_rows: BTreeSet<RecordId> = stubs.values().copied().collect();
    for (&stub, &row) in &stubs {
        let at = |check| Finding::new(check).owner(owner).at_record(stub).ref_at(row.page, row.slot);
        match rows.get(&row) {
            None => findings.push(at(&registry::HEAP_STUB_WITHOUT_ROW)),
            Some(&back) if back == stub => {}
            Some(&back) => {
                let shared = stubs.get(&back) == Some(&row);
                let check = if shared { &registry::HEAP_FORWARD_SHARED } else { &registry::HEAP_FORWARD_MISMATCH };
                findings.push(at(check).page_value("back_page", back.page).number("back_slot", back.slot));
            }
        }
    }
    for (&row, &back) in &rows {
        if stubs.get(&back) != Some(&row) && !named_rows.contains(&row) {
            let finding = Finding::new(&registry::HEAP_ROW_WITHOUT_STUB).owner(owner);
            findings.push(finding.at_record(row).ref_at(back.page, back.slot));
        }
    }
    findings
}
