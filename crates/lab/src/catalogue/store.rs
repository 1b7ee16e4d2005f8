//! Encodes values of base tables, and writes the pages of base tables.

use super::rows::SystemRows;
use super::{Catalogue, Field, base};
use crate::build::{BuiltRowset, Ids, unit_kind};
use crate::description::Description;
use crate::disk::LabError;
use crate::facts::{ColumnFact, IndexColumnFact, IndexFact, ObjectFact};
use crate::fixed::CREATED;
use crate::ids::{PageId, UnitId};
use crate::layout::{Layout, Leaf, PhysicalColumn, Source};
use crate::order::push_sort_key;
use crate::page::{Page, page_type};
use crate::record;
use crate::row::{Extra, Kind, Row};
use crate::rowset;
use crate::space::{Space, Unit, fullness};
use crate::tree::Tree;
use crate::types::{SqlType, Storage};
use crate::version::Version;

/// `SYSFILES1_PAGE` is the only data page of sysfiles1, and `SYSFILES1_IAM` is its IAM page. Both pages have had these
/// page numbers since SQL Server 7.
const SYSFILES1_PAGE: u32 = 32;
const SYSFILES1_IAM: u32 = 12;
/// Base tables whose allocation units have IDs like those of user tables. For other base tables, the ID of an
/// allocation unit is computed from the object ID and the index ID.
const ORDINARY_IDS: [i32; 17] = [46, 58, 67, 68, 69, 71, 72, 73, 78, 90, 91, 92, 93, 94, 95, 96, 97];
/// Filegroup of the base tables.
const PRIMARY_GROUP: u16 = 1;
/// The number that is used instead of an index ID in the ID of the LOB unit of sysobjvalues.
const LOB_INDEX: u64 = 255;

/// The type of a column in a base table.
pub(super) fn column_type(column: &ColumnFact) -> SqlType {
    let length = if column.length < 0 { 0 } else { column.length as u16 };
    SqlType {
        xtype: column.xtype,
        length,
        precision: column.precision,
        scale: column.scale,
        user_type: column.utype.try_into().ok().filter(|utype| *utype > 0).unwrap_or(column.xtype),
    }
}

/// The bytes of a field.
pub(super) fn encode(ty: SqlType, field: &Field) -> Vec<u8> {
    let mut out = Vec::new();
    match field {
        Field::Number(number) => match ty.xtype {
            52 => out.extend((*number as i16).to_le_bytes()),
            48 => out.push(*number as u8),
            _ => ty.encode_number(*number, &mut out),
        },
        Field::Text(text) => push_text(ty, text, &mut out),
        Field::Bytes(bytes) => out.extend_from_slice(bytes),
        Field::Page(page) => out.extend(page.bytes()),
    }
    out
}

fn push_text(ty: SqlType, text: &str, out: &mut Vec<u8>) {
    if ty.is_unicode() {
        out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    } else {
        out.extend(text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')));
    }
    if let Storage::Fixed(size) = ty.storage() {
        let blank: &[u8] = if ty.is_unicode() { &[b' ', 0] } else { b" " };
        while out.len() < usize::from(size) {
            out.extend(blank);
        }
        out.truncate(usize::from(size));
    }
}

/// Returns the default of a NOT NULL column: the bytes of zero or of the empty value.
pub(super) fn zero(ty: SqlType) -> Vec<u8> {
    match ty.storage() {
        Storage::Fixed(_) if ty.is_string() => encode(ty, &Field::Text("")),
        Storage::Fixed(size) => vec![0; usize::from(size)],
        Storage::Bit => vec![0],
        _ => Vec::new(),
    }
}

/// Parses the text of a value in the facts file. `None` for NULL.
pub(super) fn parse_fact(ty: SqlType, text: &str, description: &Description) -> Option<Vec<u8>> {
    match text {
        "~" => None,
        "@" => Some(CREATED.to_vec()),
        "*" => Some(description.collation.to_le_bytes().to_vec()),
        "{0}" => Some(vec![0; 16]),
        _ if ty.is_string() && !text.starts_with("x00") => Some(encode(ty, &Field::Text(text))),
        _ => match (text.strip_prefix('x'), text.parse::<i64>()) {
            (_, Ok(number)) => Some(encode(ty, &Field::Number(number))),
            (Some(hex), _) => {
                let digit = |at: usize| u8::from_str_radix(hex.get(at..at + 2).unwrap_or_default(), 16);
                (0..hex.len() / 2).map(|byte| digit(2 * byte).ok()).collect()
            }
            _ => Some(zero(ty)),
        },
    }
}

/// Whether the allocation units of a base table have IDs like those of user tables, because the table was rebuilt when
/// the model database was upgraded.
fn has_ordinary_ids(object: i32, version: Version) -> bool {
    match object {
        // These two tables were page-compressed in SQL Server 2016, and rebuilt for SQL Server 2019.
        62 | 63 => version == Version::V852,
        35 => version >= Version::V904,
        _ => version != Version::V661 && ORDINARY_IDS.contains(&object),
    }
}

impl Catalogue<'_> {
    /// Returns the rowsets of all base tables, with their IDs and layouts. No pages are allocated to them yet.
    pub(super) fn plan_rowsets(&self, ids: &mut Ids) -> Vec<BuiltRowset> {
        let mut planned = Vec::new();
        for object in &self.objects {
            for index in &object.indexes {
                planned.push(self.plan_rowset(object, index, ids));
            }
        }
        planned
    }

    fn plan_rowset(&self, object: &ObjectFact, index: &IndexFact, ids: &mut Ids) -> BuiltRowset {
        let layout = self.layout(object, index);
        let fixed = (index.id as u64) << 48 | (object.id as u64) << 16;
        let bootstrap = matches!(object.id, 3 | 4 | 5 | 7 | 13 | 15) && index.id == 1;
        let internal = object.id >= 100;
        let id = if bootstrap {
            (object.id as u64) << 16
        } else if internal {
            ids.rowset()
        } else {
            fixed
        };
        let ordinary = internal || has_ordinary_ids(object.id, self.description.version);
        let mut units = Vec::new();
        let mut unit = |kind, id| {
            let mut unit = Unit::new(UnitId(id), PRIMARY_GROUP);
            (unit.system, unit.mixed_first) = (true, true);
            units.push((kind, unit));
        };
        unit(unit_kind::IN_ROW, if ordinary { ids.unit() } else { id });
        if index.id < 2 && object.columns.iter().any(|column| column_type(column).is_lob()) {
            let fixed_lob = LOB_INDEX << 48 | (object.id as u64) << 16;
            unit(unit_kind::LOB, if object.id == base::SYSOBJVALUES { fixed_lob } else { ids.unit() });
        }
        if internal && layout.can_overflow() {
            unit(unit_kind::OVERFLOW, ids.unit());
        }
        BuiltRowset {
            object: object.id,
            index: index.id,
            partition: 1,
            id,
            status: index.rowset_status,
            fill_factor: index.fill_factor,
            compression: index.compression,
            layout,
            units,
            rows: self.row_count(object.id) as u64,
        }
    }

    fn layout(&self, object: &ObjectFact, index: &IndexFact) -> Layout {
        let mut columns: Vec<PhysicalColumn> = Vec::new();
        let physical = |id: u32, number: u32| {
            let at = object.columns.iter().position(|column| column.id == id).unwrap_or_default();
            let fact = &object.columns[at];
            let ty = column_type(fact);
            let collation = if ty.is_string() { fact.collation.unwrap_or(self.description.collation) } else { 0 };
            let mut column = PhysicalColumn::new(Source::Column(at), number, ty, collation, fact.not_null);
            if ty.storage() == Storage::Max {
                column.max_in_row = fact.max_in_row as u16;
            }
            column
        };
        let mut keys: Vec<_> = index.columns.iter().filter(|column| column.ordinal > 0).collect();
        keys.sort_by_key(|column| column.ordinal);
        let unique = index.status & 8 != 0;
        if index.id < 2 {
            let is_key = |id: u32| keys.iter().any(|key| key.column == id);
            if index.id == 1 && !unique {
                let mut uniquifier = PhysicalColumn::new(Source::Uniquifier, 0, SqlType::INT, 0, true);
                (uniquifier.key_ordinal, uniquifier.in_inner) = (keys.len() as i16 + 1, true);
                columns.push(uniquifier);
            }
            if index.key_first {
                columns.extend(keys.iter().map(|key| physical(key.column, key.column)));
            }
            let rest = object.columns.iter().filter(|column| !(index.key_first && is_key(column.id)));
            columns.extend(rest.filter(|column| column.status & 0x10 == 0).map(|c| physical(c.id, c.id)));
            for column in columns.iter_mut().filter(|column| column.source != Source::Uniquifier) {
                if let Some(ordinal) = keys.iter().position(|key| key.column == column.id) {
                    (column.key_ordinal, column.in_inner) = (ordinal as i16 + 1, true);
                    column.descending = keys[ordinal].status & 4 != 0;
                }
            }
        } else {
            let clustered = object.indexes.iter().find(|other| other.id == 1);
            let mut parts: Vec<_> = clustered.map(|index| index.columns.clone()).unwrap_or_default();
            parts.retain(|part| part.ordinal > 0 && !keys.iter().any(|key| key.column == part.column));
            parts.sort_by_key(|part| part.ordinal);
            let placed = |part: &IndexColumnFact| PhysicalColumn {
                descending: part.status & 4 != 0,
                ..physical(part.column, part.number as u32)
            };
            let mut locator: Vec<PhysicalColumn> = parts.iter().map(placed).collect();
            match clustered {
                None => locator.push(rowset::row_id()),
                Some(index) if index.status & 8 == 0 => locator.push(rowset::uniquifier()),
                Some(_) => {}
            }
            let included = index.columns.iter().filter(|part| part.ordinal == 0).map(placed).collect();
            let keys = keys.iter().map(|key| placed(key)).collect();
            columns = rowset::index_columns(keys, included, locator, unique);
        }
        let layout = Layout::new(
            if index.id < 2 { Leaf::Data } else { Leaf::Index },
            columns,
            index.leaf_nulls,
            index.inner_nulls,
        );
        if index.compression > 0 { layout.compressed() } else { layout }
    }

    /// Writes one rowset of a base table.
    pub(super) fn write_rowset(&self, space: &mut Space, rowset: &mut BuiltRowset) -> Result<(), LabError> {
        let Some(rows) = self.rows.get(&rowset.object).filter(|rows| rows.len() > 0) else { return Ok(()) };
        let Some((_, unit)) = rowset.units.first() else { return Ok(()) };
        let mut fresh = Unit::new(unit.id, unit.group);
        (fresh.system, fresh.mixed_first) = (true, true);
        let unit = if rowset.object == base::SYSFILES1 {
            write_sysfiles1(space, &rowset.layout, rows, fresh)?
        } else {
            let mut tree = Tree::new(&rowset.layout, fresh, 0);
            let extra = Extra::default();
            let mut row = Row::default();
            for number in in_order(&rowset.layout, rows) {
                rows.read(number as usize, &mut row);
                tree.push(space, &row, &extra, Kind::Primary)?;
            }
            tree.finish(space)?
        };
        rowset.units[0].1 = unit;
        Ok(())
    }
}

/// The row numbers, sorted by the key of a layout.
fn in_order(layout: &Layout, rows: &SystemRows) -> Vec<u32> {
    let mut key_columns: Vec<&PhysicalColumn> = layout.columns.iter().filter(|column| column.key_ordinal > 0).collect();
    key_columns.sort_by_key(|column| column.key_ordinal);
    let (mut row, mut key) = (Row::default(), Vec::new());
    let mut keyed: Vec<(Box<[u8]>, u32)> = (0..rows.len())
        .map(|number| {
            rows.read(number, &mut row);
            key.clear();
            for column in &key_columns {
                if let Source::Column(at) = column.source {
                    push_sort_key((column.ty, column.collation), row.value(at), column.descending, &mut key);
                }
            }
            (Box::from(key.as_slice()), number as u32)
        })
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.into_iter().map(|(_, number)| number).collect()
}

/// Writes sysfiles1, a heap whose first page has a fixed address. The offsets of its records are multiples of four. One page
/// has room for nine files. No database with more files was measured: the lab links further pages as those of other base
/// tables are linked.
fn write_sysfiles1(space: &mut Space, layout: &Layout, rows: &SystemRows, mut unit: Unit) -> Result<Unit, LabError> {
    space.fixed_unit(&mut unit, SYSFILES1_IAM, SYSFILES1_PAGE);
    let new = |unit: &Unit| {
        let mut page = Page::new(page_type::DATA, 0, unit.id, layout.leaf_fixed);
        page.set_flags(6);
        page
    };
    let (mut page, mut id, mut before) = (new(&unit), PageId::new(1, SYSFILES1_PAGE), PageId::NONE);
    let mut bytes = Vec::new();
    let mut row = Row::default();
    for number in 0..rows.len() {
        rows.read(number, &mut row);
        record::leaf(layout, &row, &Extra::default(), Kind::Primary, &mut bytes);
        if page.room() < bytes.len() + 4 {
            let next = space.page(&mut unit, 0)?;
            unit.data += 1;
            space.mark(id, fullness(page.filled()))?;
            space.disk.write(&mut page, id, (before, next))?;
            (page, before, id) = (new(&unit), id, next);
        }
        page.push_padded(&bytes, 4);
    }
    space.mark(id, fullness(page.filled()))?;
    space.disk.write(&mut page, id, (before, PageId::NONE))?;
    space.close(&mut unit)?;
    Ok(unit)
}
