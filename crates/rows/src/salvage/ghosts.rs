//! Makes ghosts readable: deleted rows that are still on their page.

use catalog::Rowset;
use format::record::{Record, RecordKind};
use format::slots::SlotOrder;
use format::{Page, PageBytes};

/// A copy of a sound page that contains only its ghosts, marked as live rows; `None` if the page has no ghosts.
pub(super) fn ghosts_alone(mut bytes: Box<PageBytes>, rowset: &Rowset) -> Option<Box<PageBytes>> {
    /// The bits of a record's first byte that contain the kind of the record. `KIND` is for uncompressed records, and
    /// `COMPRESSED_KIND` is for compressed records.
    const KIND: u8 = 0x0E;
    const COMPRESSED_KIND: u8 = 0x1C;
    let mut order = SlotOrder::default();
    order.load(Page::new(&bytes));
    let mut found = false;
    let spans: Vec<(u16, u16, bool)> = order
        .entries()
        .iter()
        .enumerate()
        .map(|(position, entry)| {
            let space = order.space(Page::new(&bytes), position);
            let is_ghost = match rowset.is_row_compressed() {
                true => {
                    format::compressed::CdKind::of(space.first().copied().unwrap_or_default())
                        == format::compressed::CdKind::GhostData
                }
                false => Record::data(space)
                    .is_ok_and(|record| record.kind() == RecordKind::GhostData && !record.is_ghost_forwarded()),
            };
            (entry.slot, entry.offset, is_ghost)
        })
        .collect();
    for (slot, offset, is_ghost) in spans {
        found |= is_ghost;
        let at = match is_ghost {
            true => usize::from(offset)..usize::from(offset) + 1,
            false => format::PAGE_BYTES - 2 - 2 * usize::from(slot)..format::PAGE_BYTES - 2 * usize::from(slot),
        };
        for byte in bytes.get_mut(at)? {
            *byte = match (is_ghost, rowset.is_row_compressed()) {
                (true, true) => *byte & !COMPRESSED_KIND,
                (true, false) => *byte & !KIND,
                (false, _) => 0,
            };
        }
    }
    // The page now differs from the page in the file, so its page protection would fail and is removed.
    if let Some(flags) = bytes.get_mut(4..6) {
        flags.fill(0);
    }
    found.then_some(bytes)
}
