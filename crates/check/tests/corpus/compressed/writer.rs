//! Writes the rows of a real table or index with ROW or PAGE compression. The code follows only the published
//! description (docs/format/compression.md), because no compressed rows written by a server are available.

use std::collections::BTreeMap;

use catalog::{AllocUnit, Database, Level, Rowset, RowsetColumn, Stored as Plain, UnitKind, column_status};
use format::page::PAGE_BYTES;
use format::record::{Record, RecordKind};
use format::types::xtype;
use format::{AllocUnitId, Page, PageBytes, PageType};

use super::values::{Stored, encode};
use crate::image::{Image, get16, offset_of, put16, slot_at};

/// The number of columns in a cluster. A record stores one total length for the short values of each cluster.
const CLUSTER: usize = 30;

/// A kind of compression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Compressed records only.
    Row,
    /// Compressed records, with an anchor and a dictionary on every second page.
    Page,
}

/// A record to be written.
struct Row {
    status: u8,
    values: Vec<Stored>,
    tag: Vec<u8>,
}

/// The in-row unit of a rowset.
pub fn in_row_unit<'a>(database: &'a Database, rowset: &Rowset) -> Option<&'a AllocUnit> {
    rowset.units.iter().map(|unit| &database.units[*unit]).find(|unit| unit.kind == UnitKind::InRow)
}

/// The leaf pages of a unit.
pub fn leaf_pages(image: &Image, unit: &AllocUnit, index_id: i32) -> Vec<u32> {
    // Data pages written by SQL Server 2000 have index ID 0 in their headers, also for a clustered index.
    let of_2000 = AllocUnitId(if index_id == 1 { unit.id.0 & 0xFFFF_FFFF_FFFF } else { unit.id.0 });
    let is_leaf = |page: &u32| {
        let bytes = image.page(*page);
        let header = Page::new(&bytes).header();
        let in_use = image.page(1)[100 + *page as usize] & 0x40 != 0;
        let kind = if index_id > 1 { PageType::Index } else { PageType::Data };
        in_use
            && (header.alloc_unit() == unit.id || header.alloc_unit() == of_2000)
            && header.page_id().page == *page
            && header.kind() == Some(kind)
            && header.level == 0
    };
    (0..(image.bytes.len() / PAGE_BYTES).min(8088) as u32).filter(is_leaf).collect()
}

/// Compresses a rowset. If that is impossible, changes nothing and returns false.
pub fn compress(image: &mut Image, database: &Database, rowset: &Rowset, mode: Mode) -> bool {
    compress_changed(image, database, rowset, mode, &|_, _| {})
}

/// Like `compress`, but `change` may modify the values of each row before they are written. Its first argument is the
/// slot of the row.
pub fn compress_changed(
    image: &mut Image,
    database: &Database,
    rowset: &Rowset,
    mode: Mode,
    change: &dyn Fn(usize, &mut Vec<Stored>),
) -> bool {
    // Compression was introduced in SQL Server 2008, so older databases are not compressed.
    if database.boot.as_ref().is_none_or(|boot| boot.version < 655) {
        return false;
    }
    let Some(unit) = in_row_unit(database, rowset) else { return false };
    let columns = stored_order(rowset);
    let odd = column_status::SPARSE | column_status::FILESTREAM;
    let unfit = columns.iter().any(|column| column.status & odd != 0 || column.leaf_offset == 0);
    if unfit || columns.len() > 127 || columns.is_empty() {
        return false;
    }
    let mut written = Vec::new();
    for page in leaf_pages(image, unit, rowset.index_id) {
        let bytes = image.page(page);
        let with_info = mode == Mode::Page && !written.len().is_multiple_of(2);
        match compressed_page(
            &bytes,
            rowset.index_id,
            &columns,
            change,
            with_info || mode == Mode::Page && written.is_empty(),
        ) {
            Some(compressed) => written.push((page, compressed)),
            None => return false,
        }
    }
    for (page, compressed) in written {
        image.edit(page, |bytes| *bytes = compressed);
    }
    describe(image, rowset, &columns, mode);
    true
}

/// The columns in the order of compressed records: first the key columns of the index, then the others by column ID.
pub fn stored_order(rowset: &Rowset) -> Vec<RowsetColumn> {
    let mut columns = rowset.layout.columns.clone();
    columns
        .sort_by_key(|column| (if column.key_ordinal == 0 { u16::MAX } else { column.key_ordinal }, column.physical));
    columns
}

/// Changes the rows of the catalog so that they describe the rowset as compressed.
fn describe(image: &mut Image, rowset: &Rowset, columns: &[RowsetColumn], mode: Mode) {
    image.edit_each_row(5, |row| {
        if row[4..12] == rowset.id.to_le_bytes() {
            row[4 + 35] = if mode == Mode::Row { 1 } else { 2 };
        }
    });
    image.edit_each_row(3, |row| {
        let physical = u32::from_le_bytes(*row[16..].first_chunk().expect("a row of sysrscols"));
        let number = columns.iter().position(|column| column.physical == physical);
        if let Some(number) = number.filter(|_| row[4..12] == rowset.id.to_le_bytes()) {
            let place = (-(number as i16) - 1).to_le_bytes();
            row[44..46].copy_from_slice(&place);
            row[46..48].copy_from_slice(&place);
        }
    });
}

fn compressed_page(
    bytes: &PageBytes,
    index_id: i32,
    columns: &[RowsetColumn],
    change: &dyn Fn(usize, &mut Vec<Stored>),
    with_info: bool,
) -> Option<PageBytes> {
    let page = Page::new(bytes);
    let slots = page.header().slot_count.get();
    let mut rows = Vec::new();
    for slot in 0..slots {
        if offset_of(bytes, slot) == 0 {
            return None;
        }
        let space = &bytes[offset_of(bytes, slot)..];
        let record = if index_id > 1 { Record::index(space, page.header().pminlen.get()) } else { Record::data(space) };
        let mut row = row(&record.ok()?, columns)?;
        change(slot.into(), &mut row.values);
        rows.push(row);
    }
    let info = if with_info && !rows.is_empty() { share(&mut rows, columns) } else { Info::default() };
    let mut written = *bytes;
    written[96..slot_at(slots) + 2].fill(0);
    let mut at = 96;
    if let Some(head) = info.bytes() {
        written.get_mut(at..at + head.len())?.copy_from_slice(&head);
        written[2] |= 0x80;
        at += head.len();
    }
    for (slot, row) in rows.iter().enumerate() {
        let record = record(row, &info.symbols);
        let end = at + record.len();
        if end > slot_at(slots) + 2 {
            return None;
        }
        written[at..end].copy_from_slice(&record);
        put16(&mut written, slot_at(slot as u16), at as u16);
        at = end;
    }
    put16(&mut written, 30, at as u16);
    put16(&mut written, 28, (PAGE_BYTES - at - 2 * usize::from(slots)) as u16);
    Some(written)
}

fn row(record: &Record<'_>, columns: &[RowsetColumn]) -> Option<Row> {
    let kind = match record.kind() {
        RecordKind::Primary => 0,
        RecordKind::GhostData => 3,
        RecordKind::Index => 6,
        RecordKind::GhostIndex => 7,
        _ => return None,
    };
    let mut values = Vec::new();
    for column in columns {
        let is_uniquifier = column.status & column_status::UNIQUIFIER != 0;
        values.push(match column.stored(Level::Leaf, record) {
            Plain::Null if !is_uniquifier => Some(Stored::Null),
            Plain::Plain(bytes) if column.info.xtype == xtype::BIT => {
                Some(Stored::Bit(bytes[0] >> column.leaf_bit & 1 != 0))
            }
            Plain::Plain(bytes) => Some(Stored::Bytes(encode(column.info, bytes))),
            Plain::Complex(bytes) => Some(Stored::Complex(bytes.to_vec())),
            Plain::Null => Some(Stored::Bytes(Vec::new())),
            Plain::Absent if column.info.xtype == xtype::BIT => {
                column.default.as_ref().map(|value| Stored::Bit(value.iter().any(|byte| *byte != 0)))
            }
            Plain::Absent => column.default.as_ref().map(|value| Stored::Bytes(encode(column.info, value))),
        });
    }
    // The row may lack columns that were added to the table later. Such columns are omitted if they are at the end of
    // the compressed record; elsewhere, they are written as NULL.
    let used = values.iter().rposition(Option::is_some)? + 1;
    let values = values.into_iter().take(used).map(|value| value.unwrap_or(Stored::Null)).collect();
    let tag = record.version_tag().map(|tag| tag.to_vec()).unwrap_or_default();
    Some(Row { status: 1 | kind << 2 | if tag.is_empty() { 0 } else { 2 }, values, tag })
}

/// The compression information of a page: anchor and dictionary.
#[derive(Default)]
struct Info {
    anchor: Vec<Stored>,
    symbols: BTreeMap<Vec<u8>, u8>,
}

impl Info {
    fn bytes(&self) -> Option<Vec<u8>> {
        if self.anchor.is_empty() {
            return None;
        }
        let anchor = record(&Row { status: 1, values: self.anchor.clone(), tag: Vec::new() }, &BTreeMap::new());
        let mut entries: Vec<(&u8, &Vec<u8>)> = self.symbols.iter().map(|(value, symbol)| (symbol, value)).collect();
        entries.sort();
        if entries.is_empty() {
            let size = (5 + anchor.len()) as u16;
            return Some([&[0x02, 3, 0][..], &size.to_le_bytes(), &anchor].concat());
        }
        let mut dictionary = (entries.len() as u16).to_le_bytes().to_vec();
        let mut end = 2 + 2 * entries.len();
        for (_, value) in &entries {
            end += value.len();
            dictionary.extend((end as u16).to_le_bytes());
        }
        dictionary.extend(entries.iter().flat_map(|(_, value)| value.iter()));
        let at = (7 + anchor.len()) as u16;
        let size = at + dictionary.len() as u16;
        Some([&[0x06, 3, 0][..], &at.to_le_bytes(), &size.to_le_bytes(), &anchor, &dictionary].concat())
    }
}

/// Replaces common prefixes and repeated values in the rows of a page with references to an anchor and a dictionary.
/// Returns the anchor and the dictionary.
fn share(rows: &mut [Row], columns: &[RowsetColumn]) -> Info {
    let mut info = Info { anchor: vec![Stored::Null; columns.len()], symbols: BTreeMap::new() };
    for (number, column) in columns.iter().enumerate() {
        let values = || rows.iter().filter_map(|row| row.values.get(number));
        if values().any(|value| matches!(value, Stored::Complex(_))) || column.info.xtype == xtype::TEXT {
            continue;
        }
        // For variety, every fourth column has no anchor, and one column has an empty anchor.
        info.anchor[number] = match number % 4 {
            3 => Stored::Null,
            _ if column.info.xtype == xtype::BIT => Stored::Bit(number.is_multiple_of(2)),
            2 if number == 6 => Stored::Bytes(Vec::new()),
            _ => {
                let bytes = values().filter_map(|value| match value {
                    Stored::Bytes(bytes) if bytes.len() < 256 => Some(bytes.clone()),
                    _ => None,
                });
                bytes.max_by_key(Vec::len).map_or(Stored::Null, Stored::Bytes)
            }
        };
    }
    for row in rows.iter_mut() {
        for (value, anchor) in row.values.iter_mut().zip(&info.anchor) {
            *value = relative(value, anchor);
        }
    }
    let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for value in rows.iter().flat_map(|row| &row.values) {
        if let Stored::Bytes(bytes) = value
            && bytes.len() > 1
        {
            *counts.entry(bytes.clone()).or_default() += 1;
        }
    }
    let repeated = counts.into_iter().filter(|(_, count)| *count > 2).map(|(value, _)| value).take(200);
    info.symbols = repeated.enumerate().map(|(symbol, value)| (value, symbol as u8)).collect();
    info
}

/// The form in which a value is stored if its column has this anchor.
fn relative(value: &Stored, anchor: &Stored) -> Stored {
    match (value, anchor) {
        (Stored::Bit(false), Stored::Bit(true)) => Stored::Bytes(vec![0]),
        (Stored::Bytes(bytes), Stored::Bytes(anchor)) if bytes != anchor => {
            let shared = bytes.iter().zip(anchor).take_while(|(a, b)| a == b).count();
            let mut stored = if shared < 128 { vec![shared as u8] } else { vec![0x80, shared as u8] };
            stored.extend(&bytes[shared..]);
            Stored::Bytes(stored)
        }
        (Stored::Bytes(_), Stored::Bytes(_)) => Stored::Bytes(Vec::new()),
        _ => value.clone(),
    }
}

/// Encodes a CD record.
fn record(row: &Row, symbols: &BTreeMap<Vec<u8>, u8>) -> Vec<u8> {
    let mut descriptors = Vec::new();
    let mut short: Vec<Vec<u8>> = Vec::new();
    let mut long: Vec<Option<(&[u8], bool)>> = Vec::new();
    for value in &row.values {
        let (descriptor, in_short, in_long) = match value {
            Stored::Null => (0, &[][..], None),
            Stored::Bit(false) => (1, &[][..], None),
            Stored::Bit(true) => (0xB, &[][..], None),
            Stored::Complex(bytes) => (0xA, &[][..], Some((bytes.as_slice(), true))),
            Stored::Bytes(bytes) => match (symbols.get(bytes), bytes.len()) {
                (Some(symbol), _) => (0xC, std::slice::from_ref(symbol), None),
                (None, length @ 0..=8) => (length as u8 + 1, bytes.as_slice(), None),
                _ => (0xA, &[][..], Some((bytes.as_slice(), false))),
            },
        };
        descriptors.push(descriptor);
        short.push(in_short.to_vec());
        long.push(in_long);
    }
    let leading = row.values.len().saturating_sub(1) / CLUSTER;
    let has_long = long.iter().any(Option::is_some);
    let mut bytes = vec![row.status | if has_long { 0x20 } else { 0 }, row.values.len() as u8];
    bytes.extend(descriptors.chunks(2).map(|pair| pair[0] | pair.get(1).copied().unwrap_or(1) << 4));
    bytes.extend(short.chunks(CLUSTER).take(leading).map(|cluster| cluster.iter().map(Vec::len).sum::<usize>() as u8));
    bytes.extend(short.concat());
    if has_long {
        let values: Vec<(&[u8], bool)> = long.iter().flatten().copied().collect();
        bytes.push(if values.iter().any(|(_, complex)| *complex) { 3 } else { 1 });
        bytes.extend((values.len() as u16).to_le_bytes());
        let mut end = 0u16;
        for (value, complex) in &values {
            end += value.len() as u16;
            bytes.extend((end | if *complex { 0x8000 } else { 0 }).to_le_bytes());
        }
        bytes.extend(long.chunks(CLUSTER).take(leading).map(|cluster| cluster.iter().flatten().count() as u8));
        bytes.extend(values.iter().flat_map(|(value, _)| *value));
    }
    bytes.extend(&row.tag);
    bytes
}

/// Offset of the first record on a page.
pub fn first_record(bytes: &PageBytes) -> usize {
    (0..get16(bytes, 22)).map(|slot| offset_of(bytes, slot)).min().unwrap_or(96)
}
