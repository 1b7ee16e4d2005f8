//! A damaged page with only those of its records that are proven whole.

use std::cmp::Ordering;

use catalog::{Level, Rowset, RowsetColumn, Stored, column_status};
use format::domain::Domain;
use format::fields::{Structure, offset};
use format::key::{KeyColumn, compare};
use format::lob::Pointer;
use format::page::{HEADER_BYTES, PAGE_BYTES};
use format::protection::undo_torn_bits;
use format::record::{Record, RecordKind};
use format::slots::MAX_SLOTS;
use format::types::{fixed_length, xtype};
use format::{AllocUnitId, Page, PageBytes, PageId, PageType};

use super::leaf::{LeafScratch, Slot, each_slot, is_row};

/// A page that can be read as if it were sound.
pub(crate) struct Mended {
    /// The page, without protection. The slots of records that are not proven are empty.
    pub(crate) bytes: Box<PageBytes>,
    /// Slots in use whose records are not.
    pub(crate) refused: u16,
}

/// Keys between which those of a page must be: data records of the leaves beside it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Between {
    /// The last record of the leaf before.
    pub(crate) after: Option<Vec<u8>>,
    /// The first record of the leaf after.
    pub(crate) before: Option<Vec<u8>>,
}

/// What of the header must say the same as the catalog: more than half of three.
const ENOUGH_OF_HEADER: usize = 2;

/// The damaged page `id` of a heap or clustered index; `None` if nothing on it is proven to be a row of it.
pub(crate) fn mend(
    raw: &PageBytes,
    (id, unit): (PageId, AllocUnitId),
    rowset: &Rowset,
    between: &Between,
    scratch: &mut LeafScratch,
) -> Option<Mended> {
    let mut bytes = Box::new(*raw);
    undo_torn_bits(&mut bytes);
    let header = Page::new(&bytes).header();
    let agrees = [
        header.page_id() == id,
        header.alloc_unit() == unit,
        header.kind() == Some(PageType::Data) && header.level == 0,
    ];
    let slots = header.slot_count.get();
    if agrees.iter().filter(|agrees| **agrees).count() < ENOUGH_OF_HEADER || usize::from(slots) > MAX_SLOTS {
        return None;
    }
    settle_header(&mut bytes, (id, unit), rowset, slots);
    let refused = refused_slots(Page::new(&bytes), rowset, between, scratch);
    for &slot in &refused.slots {
        let at = PAGE_BYTES - 2 - 2 * usize::from(slot);
        if let Some(entry) = bytes.get_mut(at..at + 2) {
            entry.fill(0);
        }
    }
    let (rows, refused) = (refused.rows, refused.slots.len() as u16);
    (rows > 0 || refused > 0).then_some(Mended { bytes, refused })
}

/// Makes the header say what the catalog says, and no protection.
fn settle_header(bytes: &mut PageBytes, (id, unit): (PageId, AllocUnitId), rowset: &Rowset, slots: u16) {
    const fn at(name: &str, length: u32) -> usize {
        offset(Structure::PageHeader, name, length)
    }
    let header = Page::new(bytes).header();
    let end = (PAGE_BYTES - 2 * usize::from(slots)) as u16;
    let free_data = header.free_data.get();
    let free_data = if (HEADER_BYTES as u16..=end).contains(&free_data) { free_data } else { end };
    let index_id = (unit.0 >> 48) as u16;
    let object_id = (unit.0 >> 16) as u32;
    let mut put = |at: usize, value: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    };
    put(const { at("m_headerVersion", 1) }, &[1]);
    put(const { at("m_type", 1) }, &[PageType::Data as u8]);
    put(const { at("m_level", 1) }, &[0]);
    put(const { at("m_flagBits", 2) }, &[0, 0]);
    put(const { at("m_indexId", 2) }, &index_id.to_le_bytes());
    put(const { at("m_objId", 4) }, &object_id.to_le_bytes());
    put(const { at("m_freeData", 2) }, &free_data.to_le_bytes());
    put(const { at("m_pageId", 6) }, &id.page.to_le_bytes());
    put(const { at("m_pageId", 6) } + 4, &id.file.to_le_bytes());
    if rowset.min_leaf > 0 {
        put(const { at("pminlen", 2) }, &rowset.min_leaf.to_le_bytes());
    }
}

/// The slots that are not proven.
#[derive(Default)]
struct Refused {
    slots: Vec<u16>,
    /// Rows that are proven.
    rows: u16,
}

fn refused_slots(page: Page<'_>, rowset: &Rowset, between: &Between, scratch: &mut LeafScratch) -> Refused {
    let key = if rowset.index_id > 0 { rowset.layout.key(Level::Leaf) } else { Vec::new() };
    let bound = |bytes: &Option<Vec<u8>>| bytes.clone().filter(|bytes| Record::data(bytes).is_ok());
    let (after, before) = (bound(&between.after), bound(&between.before));
    let contradicts = |record: &Record<'_>, bound: Option<&[u8]>, wrong: Ordering| {
        let bound = bound.and_then(|bytes| Record::data(bytes).ok());
        bound.is_some_and(|bound| is_order(record, &bound, &key, wrong))
    };
    let mut refused = Refused::default();
    // The record accepted last, and the one before it.
    let (mut last, mut earlier): (Option<(u16, Vec<u8>)>, Option<(u16, Vec<u8>)>) = (None, None);
    each_slot(page, rowset, scratch, &mut |slot, content| {
        let Slot::Record(record) = content else { return refused.slots.push(slot) };
        if matches!(record.kind(), RecordKind::ForwardingStub) && rowset.index_id == 0 {
            return;
        }
        let is_whole = fits(&record, rowset)
            && !contradicts(&record, after.as_deref(), Ordering::Less)
            && !contradicts(&record, before.as_deref(), Ordering::Greater);
        if !is_whole {
            return refused.slots.push(slot);
        }
        if !is_row(&record) {
            return;
        }
        if rowset.index_id == 0 {
            refused.rows += 1;
            return;
        }
        if let Some((culprit, bytes)) = &last
            && contradicts(&record, Some(bytes), Ordering::Less)
        {
            // One of the two has a wrong key, and nothing says which.
            refused.slots.push(slot);
            refused.slots.push(*culprit);
            refused.rows = refused.rows.saturating_sub(1);
            last = earlier.take();
            return;
        }
        refused.rows += 1;
        earlier = last.take();
        last = Some((slot, record.bytes().to_vec()));
    });
    refused
}

fn is_order(a: &Record<'_>, b: &Record<'_>, key: &[KeyColumn], order: Ordering) -> bool {
    !key.is_empty() && compare(a, b, key) == Some(order)
}

/// Whether a record is one that its rowset can have: its columns, their lengths, their values.
fn fits(record: &Record<'_>, rowset: &Rowset) -> bool {
    if !matches!(
        record.kind(),
        RecordKind::Primary | RecordKind::Forwarded | RecordKind::GhostData | RecordKind::GhostVersion
    ) {
        return false;
    }
    if !is_row(record) {
        return true;
    }
    let is_compressed = rowset.is_row_compressed();
    let columns = record.column_count();
    let most = if is_compressed { u16::MAX } else { rowset.max_null_bit };
    let fixed = if is_compressed || rowset.min_leaf == 0 { u16::MAX } else { rowset.min_leaf };
    if columns == 0 || most > 0 && columns > most || record.fixed_end() > fixed {
        return false;
    }
    // With all of its columns, it has all of their places too.
    if !is_compressed && most > 0 && columns == most && rowset.min_leaf > 0 && record.fixed_end() != fixed {
        return false;
    }
    let stored = rowset.layout.columns.iter().filter(|column| column.leaf_offset != 0 || column.is_sparse());
    stored.filter(|column| !column.is_dropped()).all(|column| can_be(column, record))
}

fn can_be(column: &RowsetColumn, record: &Record<'_>) -> bool {
    match column.stored(Level::Leaf, record) {
        Stored::Null => column.status & column_status::NOT_NULL == 0,
        Stored::Absent => true,
        Stored::Plain(bytes) => {
            let is_uniquifier = column.status & column_status::UNIQUIFIER != 0;
            let room = usize::from(column.info.length);
            let is_limited = fixed_length(column.info).is_none() && room > 0 && column.info.xtype != xtype::SQL_VARIANT;
            let is_plain = fixed_length(column.info).is_some() && !column.is_stored_shorter() && !is_uniquifier;
            (!is_limited || bytes.len() <= room)
                && (!is_uniquifier || matches!(bytes.len(), 0 | 4))
                && (!is_plain || Domain::of(column.info).and_then(|domain| domain.contains(bytes)) != Some(false))
                && (fixed_length(column.info).is_some()
                    || Domain::of(column.info).and_then(|domain| domain.contains(bytes)) != Some(false))
        }
        Stored::Complex(_) if column.is_sparse() => true,
        Stored::Complex(bytes) => !matches!(Pointer::read(bytes), Pointer::Malformed | Pointer::Undescribed),
    }
}
