//! Reads the records of a leaf page of a heap or clustered index. Compressed records are delivered in uncompressed
//! form.

use catalog::Rowset;
use format::compressed::{CdRecord, CompressionInfo, Scratch};
use format::record::{Record, RecordKind};
use format::slots::{MAX_SLOTS, SlotOrder};
use format::{AllocUnitId, Page, PageBytes, PageHeader, PageId, PageType};

/// Buffers that are reused for each page.
#[derive(Default)]
pub(crate) struct LeafScratch {
    order: SlotOrder,
    by_slot: Vec<(u16, u16)>,
    expanded: Scratch,
}

/// The content of a slot of a leaf page.
pub(crate) enum Slot<'a> {
    /// A complete record.
    Record(Record<'a>),
    /// A record that is not proven to be complete.
    Broken,
}

/// Calls `each` with the used slots of a page, in ascending order. Records of a compressed rowset are expanded.
pub(crate) fn each_slot(
    page: Page<'_>,
    rowset: &Rowset,
    scratch: &mut LeafScratch,
    each: &mut dyn FnMut(u16, Slot<'_>),
) {
    let LeafScratch { order, by_slot, expanded } = scratch;
    order.load(page);
    by_slot.clear();
    by_slot.extend(order.entries().iter().enumerate().map(|(position, entry)| (entry.slot, position as u16)));
    by_slot.sort_unstable();
    if !rowset.is_row_compressed() {
        for &(slot, position) in by_slot.iter() {
            match Record::data(order.space(page, position.into())) {
                Ok(record) if is_inside(page, order, position) => each(slot, Slot::Record(record)),
                _ => each(slot, Slot::Broken),
            }
        }
        return;
    }
    let first = order.entries().first().map_or(0, |entry| usize::from(entry.offset));
    let expansion = rowset.expansion.as_ref();
    let info = expansion.and_then(|expansion| CompressionInfo::of(page, first, expansion.columns()).ok());
    for &(slot, position) in by_slot.iter() {
        let space = order.space(page, position.into());
        let row = expansion.zip(info.as_ref()).and_then(|(expansion, info)| {
            let record = CdRecord::read(space, expansion.columns()).ok()?;
            expansion.audit(&record, info.as_ref()).ok()?;
            let row = expansion.expand(&record, info.as_ref(), expanded).ok()?;
            (row.doubts.is_empty() && is_inside(page, order, position)).then_some(row.record)
        });
        each(slot, row.map_or(Slot::Broken, Slot::Record));
    }
}

/// Whether a record is completely between the page header and the slot array.
fn is_inside(page: Page<'_>, order: &SlotOrder, position: u16) -> bool {
    let slots = usize::from(page.header().slot_count.get()).min(MAX_SLOTS);
    let end = format::PAGE_BYTES - 2 * slots;
    let Some(entry) = order.entries().get(usize::from(position)) else { return false };
    let start = usize::from(entry.offset);
    start >= format::page::HEADER_BYTES && start < end && order.space(page, position.into()).len() <= end - start
}

/// Whether a record is a current row, as opposed to a ghost or a forwarding stub.
pub(crate) fn is_row(record: &Record<'_>) -> bool {
    matches!(record.kind(), RecordKind::Primary | RecordKind::Forwarded)
}

/// Whether a page is a leaf page with rows of this allocation unit.
pub(crate) fn is_leaf_of(bytes: &PageBytes, page: PageId, unit: AllocUnitId) -> bool {
    let header = Page::new(bytes).header();
    header.kind() == Some(PageType::Data) && header.level == 0 && names(header, unit) && header.page_id() == page
}

/// Whether a page header names this allocation unit. A data page that SQL Server 2000 wrote last names its unit in an
/// older form, which also counts (docs/format/README.md#index-id-0-on-data-pages).
pub(crate) fn names(header: &PageHeader, unit: AllocUnitId) -> bool {
    let named = header.alloc_unit();
    named == unit || header.kind() != Some(PageType::Index) && named.clustered_of_2000() == Some(unit)
}
