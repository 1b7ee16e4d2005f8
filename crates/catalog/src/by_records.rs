//! Describes the tables that no catalog describes any more by the form of their records.

use std::collections::{BTreeMap, BTreeSet};

use format::types::{TypeInfo, xtype};
use format::{AllocUnitId, PageId};

use crate::complete::{LAYOUTS, link};
use crate::database::{AllocUnit, Compared, Database, Difference, Object, RestsOn, Rowset, TableColumn, UnitKind};
use crate::found::{Found, RecordForm};
use crate::known::stored;
use crate::layout::{RowLayout, RowsetColumn, column_status};

/// The base table that lists allocation units.
const SYSALLOCUNITS: i32 = 7;
/// The base table that names columns: syscolpars.
const NAMES: i32 = 41;
/// Set in the rowset IDs that stand for lost ones. IDs of rowsets and of units are counted separately, so the ID of a unit
/// may also be that of another unit's rowset.
const OWN_ROWSET: u64 = 1 << 63;

/// Describes the tables of `found` that the catalog does not describe, or that their records contradict: names that are
/// lost are replaced by IDs, and columns that are lost by the raw fields of the records.
pub fn complete_by_records(database: &mut Database, found: &Found) {
    let mut own_ids = i32::MIN..;
    add_unknown_units(database, found, &mut own_ids);
    let has_gap = |table: i32| database.gap(table).is_some();
    let (columns_are_lost, names_are_lost) = (LAYOUTS.into_iter().any(has_gap), has_gap(NAMES));
    let mut partitions: BTreeMap<i32, usize> = BTreeMap::new();
    for rowset in database.rowsets.iter().filter(|rowset| rowset.index_id <= 1) {
        *partitions.entry(rowset.object_id).or_default() += 1;
    }
    for (id, form) in &found.units {
        let at = database.unit_index(*id).and_then(|at| database.units.get(at)?.rowset);
        let Some(rowset) = at.and_then(|at| database.rowsets.get_mut(at)) else { continue };
        if rowset.index_id > 1 {
            continue;
        }
        let rests_on = match difference(rowset, form).or_else(|| lost_columns(rowset).filter(|_| columns_are_lost)) {
            _ if rowset.layout.columns.is_empty() => RestsOn::Records,
            Some(difference) => RestsOn::RecordsAgainst(difference),
            None => {
                name_columns(database, at, names_are_lost);
                continue;
            }
        };
        // The partitions of a table have the same columns, and these are only of this one.
        if partitions.get(&rowset.object_id).is_some_and(|count| *count > 1) {
            let (name, schema_id) = match database.objects.get(&rowset.object_id) {
                Some(object) => (object.name.clone(), object.schema_id),
                None => (format!("table_{}", rowset.object_id), 1),
            };
            rowset.object_id = own_ids.next().unwrap_or_default();
            let own = table(rowset.object_id, format!("{name}_partition_{}", rowset.partition));
            database.objects.insert(rowset.object_id, Object { schema_id, ..own });
        }
        let object_id = rowset.object_id;
        database.objects.entry(object_id).or_insert_with(|| table(object_id, format!("table_{object_id}")));
        // Compressed records cannot be cut into fields without their types.
        let (layout, columns) =
            if form.is_compressed || rowset.is_row_compressed() { Default::default() } else { raw(form) };
        (rowset.layout, rowset.expansion, rowset.rows) = (layout, None, rowset.rows.max(form.rows.cast_signed()));
        database.columns.insert(object_id, columns);
        database.rests_on.insert(object_id, rests_on);
    }
    lend_layouts(database, found, columns_are_lost);
    note_tables_without_pages(database);
    database.rowsets_by_object = crate::RowsetsByObject::default();
}

/// Notes the tables whose rows in sysallocunits are lost.
fn note_tables_without_pages(database: &mut Database) {
    if database.gap(SYSALLOCUNITS).is_none() {
        return;
    }
    let has_unit = |rowset: &&Rowset| {
        let mut units = rowset.units.iter().filter_map(|at| database.units.get(*at));
        units.any(|unit| unit.kind == UnitKind::InRow)
    };
    let base = database.rowsets.iter().filter(|rowset| rowset.index_id <= 1 && rowset.compression <= 2);
    let without: Vec<i32> = base.filter(|rowset| !has_unit(rowset)).map(|rowset| rowset.object_id).collect();
    let is_table = |id: &i32| database.objects.get(id).is_some_and(|object| object.type_code == "U");
    let without: Vec<i32> = without.into_iter().filter(is_table).collect();
    without.into_iter().for_each(|id| _ = database.rests_on.insert(id, RestsOn::NoPages));
}

/// Adds rowsets for the units without a row in sysallocunits, and for those whose rowset has none in sysrowsets.
fn add_unknown_units(database: &mut Database, found: &Found, own_ids: &mut impl Iterator<Item = i32>) {
    let (mut unknown, mut new_units) = (Vec::new(), Vec::new());
    for (id, form) in &found.units {
        let at = database.unit_index(*id);
        match at.and_then(|at| database.units.get(at)) {
            Some(unit) if unit.rowset.is_some() => {}
            Some(unit) => unknown.push((*id, unit.owner_id)),
            None => {
                unknown.push((*id, id.0 | OWN_ROWSET));
                new_units.push(unknown_unit(*id, form));
            }
        }
    }
    database.units.append(&mut new_units);
    for ((id, owner), object_id) in unknown.into_iter().zip(own_ids) {
        database.rowsets.push(Rowset { id: owner, object_id, partition: 1, owner_type: 1, ..Rowset::default() });
        database.objects.insert(object_id, table(object_id, format!("unit_{id}")));
    }
    link(database);
}

/// Names the columns of a described rowset whose names are lost, and its object.
fn name_columns(database: &mut Database, at: Option<usize>, names_are_lost: bool) {
    let Some(rowset) = at.and_then(|at| database.rowsets.get(at)) else { return };
    let object_id = rowset.object_id;
    let columns = database.columns.entry(object_id).or_default();
    let known: BTreeSet<u32> = columns.iter().map(|column| column.id).collect();
    let lacks_name = |column: &&RowsetColumn| {
        let is_column = !column.is_dropped() && column.id > 0 && column.status & column_status::UNIQUIFIER == 0;
        is_column && !known.contains(&column.id) && (names_are_lost || known.is_empty())
    };
    let by_id = |column: &RowsetColumn| named(column.id, format!("column_{}", column.id), column.info.xtype);
    let unnamed: Vec<TableColumn> = rowset.layout.columns.iter().filter(lacks_name).map(by_id).collect();
    let is_named = unnamed.is_empty() && database.objects.contains_key(&object_id);
    columns.extend(unnamed);
    columns.sort_by_key(|column| column.id);
    database.objects.entry(object_id).or_insert_with(|| table(object_id, format!("table_{object_id}")));
    let rests_on = database.rests_on.entry(object_id).or_insert(RestsOn::OwnPages);
    if !is_named {
        *rests_on = RestsOn::OwnPagesWithoutNames;
    }
}

/// Gives partitions without a whole description the layout of another partition, if no page with rows of them was found.
/// Otherwise, the whole table could not be read.
fn lend_layouts(database: &mut Database, found: &Found, columns_are_lost: bool) {
    let lacks_columns =
        |rowset: &Rowset| rowset.layout.columns.is_empty() || columns_are_lost && lost_columns(rowset).is_some();
    let mut layouts: BTreeMap<i32, usize> = BTreeMap::new();
    for (at, rowset) in database.rowsets.iter().enumerate() {
        if rowset.index_id <= 1 && !lacks_columns(rowset) {
            layouts.insert(rowset.object_id, at);
        }
    }
    for at in 0..database.rowsets.len() {
        let Some(rowset) = database.rowsets.get(at) else { continue };
        let mut units = rowset.units.iter().filter_map(|at| database.units.get(*at));
        let has_pages = units.any(|unit| found.units.contains_key(&unit.id));
        let is_bare = rowset.index_id <= 1 && lacks_columns(rowset) && !has_pages;
        let lender = layouts.get(&rowset.object_id).filter(|_| is_bare).and_then(|at| database.rowsets.get(*at));
        let Some(lent) = lender.map(|lender| (lender.layout.clone(), lender.expansion.clone(), lender.compression))
        else {
            continue;
        };
        if let Some(rowset) = database.rowsets.get_mut(at) {
            (rowset.layout, rowset.expansion, rowset.compression) = lent;
        }
    }
}

fn named(id: u32, name: String, xtype: u8) -> TableColumn {
    // The built-in types have the same number in sysscalartypes.
    TableColumn { id, name, user_type: xtype.into(), status: 0 }
}

fn table(id: i32, name: String) -> Object {
    Object { id, name, schema_id: 1, type_code: "U".to_owned(), parent_id: 0, number: 0 }
}

fn unknown_unit(id: AllocUnitId, form: &RecordForm) -> AllocUnit {
    AllocUnit {
        id,
        kind: UnitKind::InRow,
        owner_id: id.0 | OWN_ROWSET,
        rowset: None,
        filegroup: 1,
        first_page: PageId::NONE,
        root: PageId::NONE,
        first_iam: PageId::NONE,
        used_pages: form.pages.cast_signed(),
        data_pages: form.pages.cast_signed(),
        reserved_pages: form.pages.cast_signed(),
    }
}

/// The first way in which records contradict the description of their rowset. Records may have fewer columns than
/// described, because older records lack columns that were added later; they cannot have more.
fn difference(rowset: &Rowset, form: &RecordForm) -> Option<Difference> {
    if rowset.is_row_compressed() || form.is_compressed {
        return None;
    }
    let columns = &rowset.layout.columns;
    let highest = columns.iter().map(|column| column.leaf_null_bit).max().unwrap_or_default();
    let variable = columns.iter().filter(|column| column.leaf_offset < 0);
    let end = |column: &RowsetColumn| match column.leaf_offset {
        offset @ 1.. => offset.unsigned_abs().saturating_add(column.info.length),
        _ => 4,
    };
    // The sparse vector, which holds all sparse columns, follows the other variable-length columns.
    let vector = u16::from(columns.iter().any(RowsetColumn::is_sparse));
    let variables = variable.map(|column| column.leaf_offset.unsigned_abs()).max().unwrap_or_default() + vector;
    let fixed = columns.iter().map(end).max().unwrap_or_default();
    [
        (Compared::Columns, form.columns, rowset.max_null_bit.max(highest)),
        (Compared::VariableColumns, form.variables, variables),
        (Compared::FixedBytes, form.ends.last().copied().unwrap_or_default(), rowset.min_leaf.max(fixed)),
    ]
    .into_iter()
    .find(|(_, in_records, described)| in_records > described)
    .map(|(what, in_records, described)| Difference { what, in_records, described })
}

/// Columns without a description, if rows of the table that describes them may be lost: null bits are numbered without
/// holes.
fn lost_columns(rowset: &Rowset) -> Option<Difference> {
    let is_known = |column: &&RowsetColumn| column.id > 0 || column.status & column_status::UNIQUIFIER != 0;
    let known = rowset.layout.columns.iter().filter(is_known);
    let bits: BTreeSet<u16> = known.map(|column| column.leaf_null_bit).filter(|bit| *bit > 0).collect();
    let all = rowset.layout.columns.iter().map(|column| column.leaf_null_bit);
    let highest = all.max().unwrap_or_default().max(rowset.max_null_bit);
    let described = bits.len() as u16;
    (!rowset.layout.columns.is_empty() && described < highest).then_some(Difference {
        what: Compared::DescribedColumns,
        in_records: highest,
        described,
    })
}

/// The fields of records that have this form: the fixed part, cut where some records end, the variable-length columns,
/// and the null bitmap.
fn raw(form: &RecordForm) -> (RowLayout, Vec<TableColumn>) {
    /// Status bytes and the offset of the null bitmap come before the fixed part.
    const FIXED_START: u16 = 4;
    let (mut layout, mut columns) = (Vec::new(), Vec::new());
    let mut add = |name: String, xtype: u8, length: u16, (offset, status): (i16, u32)| {
        let id = columns.len() as u32 + 1;
        let info = TypeInfo { xtype, length, precision: 0, scale: 0 };
        layout.push(RowsetColumn { status, ..stored(id, info, offset) });
        columns.push(named(id, name, xtype));
    };
    let starts = std::iter::once(FIXED_START).chain(form.ends.iter().copied());
    let parts = starts.zip(form.ends.iter().copied()).filter(|(start, end)| start < end);
    for (number, (start, end)) in (1..).zip(parts) {
        let offset = i16::try_from(start).unwrap_or_default();
        add(format!("fixed_{number}"), xtype::BINARY, end - start, (offset, 0));
    }
    for number in 1..=form.variables.min(i16::MAX.unsigned_abs()) {
        add(format!("variable_{number}"), xtype::VARBINARY, 0, (-number.cast_signed(), 0));
    }
    if form.columns > 0 {
        add("null_bits".to_owned(), xtype::VARBINARY, 0, (0, column_status::NULL_BITS));
    }
    (RowLayout { columns: layout }, columns)
}
