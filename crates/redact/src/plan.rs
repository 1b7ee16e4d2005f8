//! What is done with the columns of each rowset.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Database, ExpressionKind, Rowset, RowsetColumn, TableColumn, UnitKind, column_status};
use format::types::{user_type, xtype};
use rows::{Origin, column_origins};

use crate::formula::names_in;
use crate::kept::{Kept, Why};
use crate::letters::Form;
use crate::numbers::{NumberKind, Scale};
use crate::system::{self, Names};

/// What is done with the values of a column.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// The values stay: they are structure, such as an address, or they are listed as kept.
    Keep,
    /// The column was dropped: its bytes become zeros.
    Zero,
    Number(NumberKind),
    Text(Form),
    /// Values that no index orders.
    Value,
    /// sql_variant.
    Variant,
    /// Names of the catalog, except those that stay.
    Name(NameKind, Names),
    /// Texts in the catalog that define an object, a column or a filter.
    Definition,
}

/// Which names are compared with each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameKind {
    /// Names of objects, columns, indexes, types, schemas and users. Indexes of the catalog order them together with the
    /// names of the system, which stay.
    Object,
    /// Names of files, of the database and of properties, which no index orders together with names of the system.
    File,
}

/// A column with what is done with it.
#[derive(Clone, Debug)]
pub(crate) struct PlannedColumn {
    pub(crate) column: RowsetColumn,
    pub(crate) action: Action,
}

/// What is done with the pages of a rowset.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowsetPlan {
    /// The name of the object.
    pub(crate) name: String,
    pub(crate) columns: Vec<PlannedColumn>,
    /// Whether the rows stay, because they are compressed.
    pub(crate) keeps_rows: bool,
    /// Whether the off-row values stay.
    pub(crate) keeps_off_row: bool,
    /// The columns of sysobjvalues that tell what a definition is.
    pub(crate) definitions: Option<system::Definitions>,
}

/// The plans of all rowsets, in the order of [`Database::rowsets`].
pub(crate) fn plans(database: &Database, kept: &mut Kept) -> Vec<RowsetPlan> {
    let fixed = system::fixed_objects(database);
    let mut of_objects: BTreeMap<i32, BTreeSet<u32>> = BTreeMap::new();
    let plan = |rowset: &Rowset| {
        let name = database.object_name(rowset.object_id);
        if database.is_system_table(rowset.object_id) {
            return system::plan(database, rowset, name, &fixed);
        }
        let computed =
            of_objects.entry(rowset.object_id).or_insert_with(|| columns_that_stay(database, rowset.object_id, kept));
        user_plan(database, rowset, name, computed, kept)
    };
    database.rowsets.iter().map(plan).collect()
}

fn user_plan(database: &Database, rowset: &Rowset, name: String, stay: &BTreeSet<u32>, kept: &mut Kept) -> RowsetPlan {
    // An index that stays must find the rows of its table, and the other way round.
    if database.rowsets_of(rowset.object_id).any(|rowset| is_compressed(database, rowset)) {
        kept.add(Why::Compressed, &name, 1);
        return RowsetPlan { name, keeps_rows: true, keeps_off_row: true, ..RowsetPlan::default() };
    }
    let origins = if rowset.index_id > 1 { column_origins(database, rowset) } else { None };
    let id_in_table = |column: &RowsetColumn| match (&origins, rowset.index_id) {
        (_, 0 | 1) if column.status & column_status::UNIQUIFIER != 0 => Some(Origin::Uniquifier),
        (_, 0 | 1) => Some(Origin::Column(column.id)),
        (Some(origins), _) => origins.iter().find(|(id, _)| *id == column.id).map(|(_, origin)| *origin),
        (None, _) => None,
    };
    let mut columns = Vec::with_capacity(rowset.layout.columns.len());
    let mut keeps_off_row = false;
    for column in &rowset.layout.columns {
        let action = match id_in_table(column) {
            Some(Origin::Uniquifier | Origin::RowId) => Action::Keep,
            Some(Origin::Column(id)) if stay.contains(&id) => Action::Keep,
            _ if column.is_dropped() && is_covered(&rowset.layout.columns, column) => Action::Keep,
            // An address of a heap row has this type and length.
            None if column.info.xtype == xtype::BINARY && column.info.length == 8 => Action::Keep,
            origin => {
                let id = match origin {
                    Some(Origin::Column(id)) => Some(id),
                    _ => None,
                };
                action(database, (rowset.object_id, id), column, &name, kept)
            }
        };
        keeps_off_row |= matches!(action, Action::Keep) && !column.is_dropped() && may_be_off_row(column);
        columns.push(PlannedColumn { column: column.clone(), action });
    }
    let has_off_row = |rowset: &Rowset| {
        let units = rowset.units.iter().filter_map(|unit| database.units.get(*unit));
        units
            .filter(|unit| !unit.first_iam.is_none())
            .any(|unit| matches!(unit.kind, UnitKind::Lob | UnitKind::Overflow))
    };
    if keeps_off_row && has_off_row(rowset) {
        kept.add(Why::OffRow, &name, 1);
    }
    RowsetPlan { name, columns, keeps_off_row, ..RowsetPlan::default() }
}

/// Whether another column has bytes of a dropped column: a change of a column's type leaves a dropped column at the same
/// place.
fn is_covered(columns: &[RowsetColumn], dropped: &RowsetColumn) -> bool {
    let place = |column: &RowsetColumn| match u16::try_from(column.leaf_offset) {
        Ok(from) => i32::from(from)..i32::from(from) + i32::from(column.info.length),
        Err(_) => i32::from(column.leaf_offset)..i32::from(column.leaf_offset) + 1,
    };
    let own = place(dropped);
    columns.iter().filter(|column| !column.is_dropped()).any(|column| {
        let other = place(column);
        other.start < own.end && own.start < other.end
    })
}

fn is_compressed(database: &Database, rowset: &Rowset) -> bool {
    let index = database.indexes.get(&(rowset.object_id, rowset.index_id));
    rowset.compression > 0 || index.is_some_and(|index| index.index_type.is_columnstore())
}

fn may_be_off_row(column: &RowsetColumn) -> bool {
    column.leaf_offset < 0
}

/// What is done with a column of a user table or of an index on it.
fn action(
    database: &Database,
    (object_id, id): (i32, Option<u32>),
    column: &RowsetColumn,
    table: &str,
    kept: &mut Kept,
) -> Action {
    let known = database.columns.get(&object_id).and_then(|columns| columns.iter().find(|known| Some(known.id) == id));
    let mut keep = |why: Why| {
        kept.add(why, &known.map_or_else(|| table.to_owned(), |known| format!("{table}.{}", known.name)), 1);
        Action::Keep
    };
    if column.is_dropped() {
        return Action::Zero;
    }
    if column.status & column_status::ANTI_MATTER != 0 {
        return Action::Keep;
    }
    if let Some(why) = form_that_stays(column, known) {
        return keep(why);
    }
    let is_long = matches!(column.info.length, 0 | 0xFFFF);
    match column.info.xtype {
        xtype::BIT => Action::Keep,
        xtype::VARCHAR | xtype::NVARCHAR | xtype::VARBINARY if is_long => Action::Value,
        xtype::CHAR | xtype::VARCHAR => Action::Text(Form::Ansi(column.collation)),
        xtype::NCHAR | xtype::NVARCHAR => Action::Text(Form::Unicode(column.collation)),
        xtype::BINARY | xtype::VARBINARY => Action::Text(Form::Bytes),
        xtype::TEXT | xtype::NTEXT | xtype::IMAGE | xtype::XML => Action::Value,
        xtype::SQL_VARIANT => {
            keep(Why::VariantNumbers);
            Action::Variant
        }
        _ => Scale::kind(column.info).map_or(Action::Keep, Action::Number),
    }
}

/// Why the values of a column stay, if they have a form that is not rewritten.
fn form_that_stays(column: &RowsetColumn, known: Option<&TableColumn>) -> Option<Why> {
    if column.is_sparse() {
        return Some(Why::Sparse);
    }
    if column.default.is_some() {
        return Some(Why::Default);
    }
    if column.is_vardecimal() {
        return Some(Why::Vardecimal);
    }
    let is_vector = known.is_some_and(|known| known.user_type == user_type::VECTOR);
    let is_known = Scale::kind(column.info).is_some()
        || matches!(column.info.xtype, xtype::BIT | xtype::SQL_VARIANT | xtype::XML)
        || matches!(column.info.xtype, xtype::CHAR | xtype::VARCHAR | xtype::NCHAR | xtype::NVARCHAR)
        || matches!(column.info.xtype, xtype::BINARY | xtype::VARBINARY)
        || matches!(column.info.xtype, xtype::TEXT | xtype::NTEXT | xtype::IMAGE);
    (is_vector || !is_known).then_some(Why::Type)
}

/// The columns of a table whose values stay: those from which the check computes other values, and those that decide in
/// which partition a row is.
fn columns_that_stay(database: &Database, object_id: i32, kept: &mut Kept) -> BTreeSet<u32> {
    let Some(columns) = database.columns.get(&object_id) else { return BTreeSet::new() };
    let name_of = |id: u32| columns.iter().find(|column| column.id == id).map_or("", |column| column.name.as_str());
    let base = database.table_rowsets(object_id).next();
    let is_indexed = |id: u32| {
        let of_object = database.index_columns.range((object_id, i32::MIN)..=(object_id, i32::MAX));
        of_object.flat_map(|(_, columns)| columns).any(|column| column.column_id == id)
    };
    let is_stored = |id: u32| base.is_some_and(|base| base.layout.column(id).is_some()) || is_indexed(id);
    let mut waiting: Vec<u32> =
        columns.iter().filter(|column| column.is_computed() && is_stored(column.id)).map(|column| column.id).collect();
    let texts = |kind: ExpressionKind, id: Option<u32>| {
        let of_object = database.expressions.iter().filter(move |of| of.object_id == object_id && of.kind == kind);
        of_object
            .filter(move |of| id.is_none_or(|id| i64::from(of.sub_id) == i64::from(id)))
            .filter_map(|of| of.text.as_deref())
    };
    let named = |text: &str| -> Vec<u32> {
        let names = names_in(text);
        let is_named = |name: &str| names.iter().any(|named| named.eq_ignore_ascii_case(name));
        columns.iter().filter(|column| is_named(&column.name)).map(|column| column.id).collect()
    };
    texts(ExpressionKind::Filter, None).for_each(|text| waiting.extend(named(text)));
    let partitioned = database.partitioned.range((object_id, i32::MIN)..=(object_id, i32::MAX));
    let by_partition: Vec<u32> = partitioned.map(|(_, of)| of.column_id).collect();
    let mut stay = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if stay.insert(id) {
            texts(ExpressionKind::ComputedColumn, Some(id)).for_each(|text| waiting.extend(named(text)));
        }
    }
    let table = database.object_name(object_id);
    let own = database.table_rowsets(object_id).flat_map(|rowset| &rowset.layout.columns);
    let by_form: Vec<(u32, Why)> = own
        .filter(|column| !column.is_dropped())
        .filter_map(|column| {
            let known = columns.iter().find(|known| known.id == column.id);
            form_that_stays(column, known).map(|why| (column.id, why))
        })
        .collect();
    stay.iter().for_each(|id| kept.add(Why::Expression, &format!("{table}.{}", name_of(*id)), 1));
    for (id, why) in by_partition.into_iter().map(|id| (id, Why::Partition)).chain(by_form) {
        if stay.insert(id) {
            kept.add(why, &format!("{table}.{}", name_of(id)), 1);
        }
    }
    stay
}
