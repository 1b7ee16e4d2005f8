//! Reduces a damaged page to the records that are proven to be complete.

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

use crate::leaf::{LeafScratch, Slot, each_slot, is_row};

/// A page that can be read as if it were sound.
pub(crate) struct Mended {
    /// The page without page protection. The slots of unproven records are empty.
    pub(crate) bytes: Box<PageBytes>,
    /// The number of used slots whose records are unproven.
    pub(crate) refused: u16,
}

/// The limits for the keys of a page, as data records of the neighboring leaf pages. A limit is `None` if it is
/// unknown.
#[derive(Clone, Default, Debug)]
pub(crate) struct Between {
    /// The last record of the previous leaf page.
    pub(crate) after: Option<Vec<u8>>,
    /// The first record of the next leaf page.
    pub(crate) before: Option<Vec<u8>>,
}

/// Reduces the damaged page `id` of a heap or clustered index to its proven records. `None` if the page header does not
/// show that the page belongs to `unit`, or if the page has no rows.
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
    let names = [header.page_id() == id, header.alloc_unit() == unit];
    let is_own = match header.kind() {
        Some(PageType::Data) if header.level == 0 => names.contains(&true),
        // The records on a page of another type are not rows of the table.
        Some(_) => false,
        None => !names.contains(&false),
    };
    let slots = header.slot_count.get();
    if !is_own || usize::from(slots) > MAX_SLOTS {
        return None;
    }
    settle_header(&mut bytes, (id, unit), rowset, slots);
    let refused = refused_slots(Page::new(&bytes), rowset, between, scratch);
    let (rows, slots) = (refused.rows, refused.slots);
    let mut mended = Mended { bytes, refused: slots.len() as u16 };
    slots.iter().for_each(|slot| mended.leave_out(*slot));
    (rows > 0 || mended.refused > 0).then_some(mended)
}

impl Mended {
    /// Empties a slot.
    pub(crate) fn leave_out(&mut self, slot: u16) {
        let at = PAGE_BYTES.checked_sub(2 + 2 * usize::from(slot));
        if let Some(entry) = at.and_then(|at| self.bytes.get_mut(at..at + 2)) {
            entry.fill(0);
        }
    }
}

/// Sets header fields to the values that the catalog gives, and removes the page protection.
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

/// The slots with unproven records.
#[derive(Default)]
struct Refused {
    slots: Vec<u16>,
    /// The number of proven rows.
    rows: u16,
}

/// A slot and its record.
type SlotBytes = (u16, Vec<u8>);

fn refused_slots(page: Page<'_>, rowset: &Rowset, between: &Between, scratch: &mut LeafScratch) -> Refused {
    let key = if rowset.index_id > 0 { rowset.layout.key(Level::Leaf) } else { Vec::new() };
    let bound = |bytes: &Option<Vec<u8>>| bytes.clone().filter(|bytes| Record::data(bytes).is_ok());
    let (after, before) = (bound(&between.after), bound(&between.before));
    let contradicts = |record: &Record<'_>, bound: Option<&[u8]>, wrong: Ordering| {
        let bound = bound.and_then(|bytes| Record::data(bytes).ok());
        bound.is_some_and(|bound| is_order(record, &bound, &key, wrong))
    };
    let mut refused = Refused::default();
    // The last accepted record, and the accepted record before it.
    let (mut last, mut earlier): (Option<SlotBytes>, Option<SlotBytes>) = (None, None);
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
            // The keys of this record and of the last accepted record are in the wrong order. One of the two keys is
            // wrong, but it is unknown which one, so both records are refused.
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

/// Whether the record can be a record of its rowset, judged by its columns, their lengths and their values.
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
    // A record that has all columns of the rowset must also have the full fixed length.
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

#[cfg(test)]
mod tests {
    use catalog::RowLayout;
    use format::collation::CollationId;
    use format::types::TypeInfo;

    use super::*;

    const ID: PageId = PageId::new(1, 77);
    const UNIT: AllocUnitId = AllocUnitId::from_header(256, 5);

    /// A clustered index with two columns: an int column, which is the key, and a varchar(10) column.
    fn rowset(compression: u8) -> Rowset {
        let column = |id: u32, ti: u32, offset: i16, key_ordinal: u16| RowsetColumn {
            id,
            physical: id,
            info: TypeInfo::from_ti(ti),
            collation: CollationId(0),
            status: if key_ordinal > 0 { column_status::NOT_NULL } else { 0 },
            key_ordinal,
            leaf_offset: offset,
            node_offset: 0,
            leaf_null_bit: id as u16,
            node_null_bit: 0,
            default: None,
            leaf_bit: 0,
            node_bit: 0,
        };
        let mut int = column(1, 56, 4, 1);
        int.info.length = 4;
        let layout = RowLayout { columns: vec![int, column(2, 167 | 10 << 8, -1, 0)] };
        Rowset { index_id: 1, compression, max_null_bit: 2, min_leaf: 8, layout, ..Rowset::default() }
    }

    /// A page with rows of 20 bytes each that have these keys.
    fn page(keys: &[i32]) -> PageBytes {
        let mut bytes = [0; PAGE_BYTES];
        bytes[..4].copy_from_slice(&[1, 1, 0, 0]);
        bytes[6..8].copy_from_slice(&256u16.to_le_bytes());
        bytes[24..28].copy_from_slice(&5u32.to_le_bytes());
        bytes[14..16].copy_from_slice(&8u16.to_le_bytes());
        bytes[22..24].copy_from_slice(&(keys.len() as u16).to_le_bytes());
        bytes[30..32].copy_from_slice(&(96 + 20 * keys.len() as u16).to_le_bytes());
        bytes[32..36].copy_from_slice(&77u32.to_le_bytes());
        bytes[36..38].copy_from_slice(&1u16.to_le_bytes());
        for (slot, key) in keys.iter().enumerate() {
            let at = 96 + 20 * slot;
            bytes[at..at + 4].copy_from_slice(&[0x30, 0, 8, 0]);
            bytes[at + 4..at + 8].copy_from_slice(&key.to_le_bytes());
            bytes[at + 8..at + 20].copy_from_slice(&[2, 0, 0, 1, 0, 20, 0, b'h', b'e', b'l', b'l', b'o']);
            let entry = PAGE_BYTES - 2 - 2 * slot;
            bytes[entry..entry + 2].copy_from_slice(&(at as u16).to_le_bytes());
        }
        bytes
    }

    fn kept(raw: &PageBytes, between: &Between) -> Option<Vec<u16>> {
        let mended = mend(raw, (ID, UNIT), &rowset(0), between, &mut LeafScratch::default())?;
        let page = Page::new(&mended.bytes);
        Some((0..page.header().slot_count.get()).filter(|slot| page.slot_offset(*slot) != Some(0)).collect())
    }

    #[test]
    fn a_record_is_kept_only_where_its_parts_and_its_key_agree() {
        let bytes = page(&[10, 20, 30, 40, 50]);
        let anywhere = Between::default();
        assert_eq!(kept(&bytes, &anywhere), Some(vec![0, 1, 2, 3, 4]));
        let mut wrong_end = bytes;
        wrong_end[96 + 20 + 13] = 90;
        assert_eq!(kept(&wrong_end, &anywhere), Some(vec![0, 2, 3, 4]), "a column ends beyond the record");
        let mut null_key = bytes;
        null_key[96 + 40 + 10] = 1;
        assert_eq!(kept(&null_key, &anywhere), Some(vec![0, 1, 3, 4]), "NULL in a column that has none");
        let mut too_long = bytes;
        too_long[96 + 60 + 8] = 3;
        assert_eq!(kept(&too_long, &anywhere), Some(vec![0, 1, 2, 4]), "more columns than the table");
        assert_eq!(kept(&page(&[10, 20, 15, 40]), &anywhere), Some(vec![0, 3]), "one of two keys is wrong");
        let record = |key: i32| Some(page(&[key])[96..116].to_vec());
        let between = Between { after: record(10), before: record(45) };
        assert_eq!(kept(&page(&[5, 20, 30, 50]), &between), Some(vec![1, 2]), "keys of the leaves beside");
    }

    #[test]
    fn a_page_that_names_another_place_is_left_alone() {
        let anywhere = Between::default();
        let mut other = page(&[1]);
        other[32] = 78;
        other[24] = 6;
        assert_eq!(kept(&other, &anywhere), None);
        let mut iam = page(&[1]);
        iam[1] = 10;
        assert_eq!(kept(&iam, &anywhere), None);
        assert_eq!(kept(&[0; PAGE_BYTES], &anywhere), None);
    }

    #[test]
    fn any_bytes_are_taken() {
        let mut word = 1u64;
        let mut random = move || {
            word = super::super::difference::mix(word.wrapping_add(0x9E37_79B9));
            word
        };
        for round in 0..3_000 {
            let mut bytes = page(&[10, 20, 30, 40, 50]);
            for _ in 0..1 + random() % 40 {
                let at = match random() % 3 {
                    0 => random() as usize % 220,
                    1 => PAGE_BYTES - 1 - random() as usize % 12,
                    _ => random() as usize % PAGE_BYTES,
                };
                bytes[at] = random() as u8;
            }
            let rowset = rowset((round % 3) as u8);
            let between = Between { after: Some(bytes[96..116].to_vec()), before: None };
            drop(mend(&bytes, (ID, UNIT), &rowset, &between, &mut LeafScratch::default()));
        }
    }
}
