//! What is done with the columns of each rowset.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use catalog::{Database, ExpressionKind, Level, Rowset, RowsetColumn, TableColumn, UnitKind, column_status};
use format::types::{fixed_length, user_type, xtype};
use rows::{Origin, column_origins};

use crate::formula::names_in;
use crate::kept::{Kept, Why};
use crate::letters::Form;
use crate::numbers::{NumberKind, Scale};

mod system;

pub(crate) use system::{Definitions, Names};

/// What is done with the values of a column.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// The values stay, and are listed as kept. In base tables, they are structure.
    Keep,
    /// A column of the engine, without values of users: a uniquifier, or the address of a heap row.
    Hidden,
    /// The column was dropped: its bytes become zeros.
    Zero,
    Number(NumberKind),
    Text(Form),
    /// Values that no index orders.
    Value,
    /// sql_variant.
    Variant,
    /// A sql_variant of the catalog. It is listed if its value stays.
    Property,
    /// Names of the catalog, except those that stay.
    Name(NameKind, Names),
    /// Texts in the catalog that define an object, a column or a filter.
    Definition,
    /// The sql_variant next to a definition.
    DefinitionValue,
}

impl Action {
    /// Whether the values stay.
    pub(crate) fn stays(&self) -> bool {
        matches!(self, Self::Keep | Self::Hidden)
    }
}

/// Which names are compared with each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameKind {
    /// Names of objects, columns, indexes, types, schemas and users. Indexes of the catalog order them together with the
    /// names of the system, which stay.
    Object,
    /// All other names: of files, of the database, of properties. No index orders them together with names of the
    /// system.
    Other,
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
    pub(crate) index_id: i32,
    pub(crate) is_base_table: bool,
    /// The length of the fixed part of records on leaf pages and on the pages above them. For heaps and clustered
    /// indexes, records that were written before a column was added may be shorter.
    pub(crate) fixed_lengths: [u16; 2],
    /// The variable columns on leaf pages and on the pages above them, in ascending order, with those that were dropped.
    pub(crate) variables: [Vec<u16>; 2],
    pub(crate) columns: Vec<PlannedColumn>,
    /// The ranges of the fixed part that no column in use has, on leaf pages and on the pages above them. In records
    /// they may have values of dropped columns.
    pub(crate) unused: [Vec<Range<u16>>; 2],
    /// Whether rows may have a sparse vector.
    pub(crate) has_sparse: bool,
    /// Whether the rows stay, because they are compressed.
    pub(crate) keeps_rows: bool,
    /// Whether the off-row values stay.
    pub(crate) keeps_off_row: bool,
    /// The columns of sysobjvalues that tell what a definition is.
    pub(crate) definitions: Option<Definitions>,
}

impl RowsetPlan {
    /// The plan that changes nothing.
    pub(crate) fn of(rowset: &Rowset) -> Self {
        const STATUS_AND_LENGTH: u16 = 4;
        let [leaf, node] = LEVELS.map(|level| rowset.layout.index_fixed_length(level));
        let leaf = if rowset.index_id > 1 { leaf } else { leaf.max(STATUS_AND_LENGTH) };
        let fixed_lengths = [leaf, node];
        let variables = LEVELS.map(|level| {
            let offsets = rowset.layout.columns.iter().map(|column| column.place(level).0).filter(|offset| *offset < 0);
            offsets.map(i16::unsigned_abs).collect::<BTreeSet<u16>>().into_iter().collect()
        });
        let has_sparse = rowset.index_id <= 1 && rowset.layout.columns.iter().any(RowsetColumn::is_sparse);
        Self { index_id: rowset.index_id, fixed_lengths, variables, has_sparse, ..Self::default() }
    }

    /// The ranges of the fixed part that no column in use has.
    pub(crate) fn unused_at(&self, level: Level) -> &[Range<u16>] {
        let [leaf, node] = &self.unused;
        if level == Level::Leaf { leaf } else { node }
    }
}

/// The plans of all rowsets, in the order of [`Database::rowsets`].
pub(crate) fn plans(database: &Database, kept: &mut Kept) -> Vec<RowsetPlan> {
    let fixed = system::fixed_objects(database);
    note_counters(database, kept);
    let mut of_objects: BTreeMap<i32, BTreeSet<u32>> = BTreeMap::new();
    let plan = |rowset: &Rowset| {
        let name = database.object_name(rowset.object_id);
        if database.is_system_table(rowset.object_id) {
            return system::plan(database, rowset, &fixed, kept);
        }
        let computed =
            of_objects.entry(rowset.object_id).or_insert_with(|| columns_that_stay(database, rowset.object_id, kept));
        user_plan(database, rowset, name, computed, kept)
    };
    let plans: Vec<RowsetPlan> = database.rowsets.iter().map(plan).collect();
    for (rowset, plan) in database.rowsets.iter().zip(&plans) {
        if !plan.keeps_rows && overlap(&rowset.layout.columns) {
            kept.note(Why::Damaged, &plan.name);
        }
    }
    plans
}

/// Whether columns in use share bytes, so that the catalog gives a wrong place for one of them. Only columns of type bit
/// share their bytes.
fn overlap(columns: &[RowsetColumn]) -> bool {
    let in_use = columns.iter().filter(|column| !column.is_dropped() && column.info.xtype != xtype::BIT);
    LEVELS.into_iter().any(|level| {
        let mut ranges: Vec<Range<u32>> = in_use.clone().filter_map(|column| fixed_range(column, level)).collect();
        ranges.sort_by_key(|range| range.start);
        ranges.iter().zip(ranges.iter().skip(1)).any(|(one, next)| next.start < one.end)
    })
}

/// Notes the identity columns and the sequences of users.
fn note_counters(database: &Database, kept: &mut Kept) {
    let is_user = |id: i32| database.objects.get(&id).is_some_and(|object| object.type_code == "U");
    for identity in database.identities.iter().filter(|identity| is_user(identity.table_id)) {
        let columns = database.columns.get(&identity.table_id).map(Vec::as_slice).unwrap_or_default();
        let name = columns.iter().find(|column| column.id == identity.column_id).map_or("", |column| &column.name);
        kept.note(Why::Counter, &format!("{}.{name}", database.object_name(identity.table_id)));
    }
    for sequence in database.objects.values().filter(|object| object.type_code == "SO") {
        kept.note(Why::Counter, &database.object_name(sequence.id));
    }
}

fn user_plan(database: &Database, rowset: &Rowset, name: String, stay: &BTreeSet<u32>, kept: &mut Kept) -> RowsetPlan {
    // An index that stays must find the rows of its table, and the other way round.
    if database.rowsets_of(rowset.object_id).any(|rowset| is_compressed(database, rowset)) {
        kept.note(Why::Compressed, &name);
        return RowsetPlan { name, keeps_rows: true, keeps_off_row: true, ..RowsetPlan::of(rowset) };
    }
    let origins = if rowset.index_id > 1 { column_origins(database, rowset) } else { None };
    let id_in_table = |column: &RowsetColumn| match (&origins, rowset.index_id) {
        (_, 0 | 1) if column.status & column_status::UNIQUIFIER != 0 => Some(Origin::Uniquifier),
        (_, 0 | 1) => Some(Origin::Column(column.id)),
        (Some(origins), _) => origins.iter().find(|(id, _)| *id == column.id).map(|(_, origin)| *origin),
        (None, _) => None,
    };
    let has_clustered = database.table_rowsets(rowset.object_id).any(|rowset| rowset.index_id == 1);
    let mut columns = Vec::with_capacity(rowset.layout.columns.len());
    let mut keeps_off_row = false;
    for column in rowset.layout.columns.iter().filter(|column| !column.is_dropped()) {
        let is_like_address = column.info.xtype == xtype::BINARY && column.info.length == 8;
        let action = match id_in_table(column) {
            Some(Origin::Uniquifier | Origin::RowId) => Action::Hidden,
            Some(Origin::Column(id)) if stay.contains(&id) => Action::Keep,
            // This may be the address of a heap row, or a value: the catalog has lost the columns of the index.
            None if is_like_address && !has_clustered => {
                kept.note(Why::Damaged, &name);
                Action::Keep
            }
            origin => {
                let id = match origin {
                    Some(Origin::Column(id)) => Some(id),
                    _ => None,
                };
                action(database, (rowset.object_id, id), column, &name, kept)
            }
        };
        keeps_off_row |= matches!(action, Action::Keep) && may_be_off_row(column);
        columns.push(PlannedColumn { column: column.clone(), action });
    }
    columns.extend(dropped_variable(&rowset.layout.columns));
    note_dropped(rowset, &name, kept);
    let has_off_row = |rowset: &Rowset| {
        let units = rowset.units.iter().filter_map(|unit| database.units.get(*unit));
        units
            .filter(|unit| !unit.first_iam.is_none())
            .any(|unit| matches!(unit.kind, UnitKind::Lob | UnitKind::Overflow))
    };
    if keeps_off_row && has_off_row(rowset) {
        kept.note(Why::OffRow, &name);
    }
    let unused = LEVELS.map(|level| unused(rowset, level));
    RowsetPlan { name, columns, keeps_off_row, unused, ..RowsetPlan::of(rowset) }
}

/// Notes what stays of dropped columns: their values in sparse vectors, and their defaults in the catalog.
fn note_dropped(rowset: &Rowset, name: &str, kept: &mut Kept) {
    let dropped = || rowset.layout.columns.iter().filter(|column| column.is_dropped());
    if rowset.index_id <= 1 && dropped().any(RowsetColumn::is_sparse) {
        kept.note(Why::Sparse, name);
    }
    if dropped().any(|column| column.status & column_status::HAS_DEFAULT != 0) {
        kept.note(Why::Default, name);
    }
}

const LEVELS: [Level; 2] = [Level::Leaf, Level::Node];

/// The ranges of the fixed part of records that no column in use has. On leaf pages, this is everything else: columns
/// that were dropped in SQL Server 2000 are missing in the catalog. Above the leaf level, the pointer to the child
/// belongs to no column, so these are only the ranges of dropped columns.
fn unused(rowset: &Rowset, level: Level) -> Vec<Range<u16>> {
    let columns = &rowset.layout.columns;
    let ranges = |is_dropped: bool| {
        let columns = columns.iter().filter(move |column| column.is_dropped() == is_dropped);
        let ranges: Vec<Range<u32>> = columns.filter_map(|column| fixed_range(column, level)).collect();
        joined(ranges)
    };
    let start = if rowset.index_id > 1 { 1 } else { 4 };
    let all = match level {
        Level::Leaf => std::iter::once(start..u32::from(u16::MAX)).collect(),
        Level::Node => ranges(true),
    };
    let parts = without(&all, &ranges(false)).into_iter();
    parts.filter_map(|part| Some(part.start.try_into().ok()?..part.end.min(u16::MAX.into()) as u16)).collect()
}

/// The same bytes as disjoint ranges in ascending order.
fn joined(mut ranges: Vec<Range<u32>>) -> Vec<Range<u32>> {
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let joins = next.start <= before.end;
        if joins {
            before.end = before.end.max(next.end);
        }
        joins
    });
    ranges
}

/// The parts of ranges that other ranges do not have. Both lists are disjoint and ascend.
fn without(ranges: &[Range<u32>], others: &[Range<u32>]) -> Vec<Range<u32>> {
    let mut parts = Vec::new();
    let mut others = others.iter().peekable();
    for range in ranges {
        let mut from = range.start;
        while let Some(other) = others.peek().filter(|other| other.start < range.end) {
            if from < other.start {
                parts.push(from..other.start);
            }
            from = from.max(other.end);
            if other.end > range.end {
                break;
            }
            others.next();
        }
        if from < range.end {
            parts.push(from..range.end);
        }
    }
    parts
}

/// The dropped variable columns whose numbers no column in use has, each number once.
fn dropped_variable(columns: &[RowsetColumn]) -> Vec<PlannedColumn> {
    let mut planned = Vec::new();
    for level in LEVELS {
        let number = |column: &RowsetColumn| column.place(level).0;
        let in_use = columns.iter().filter(|column| !column.is_dropped());
        let mut taken: BTreeSet<i16> = in_use.map(number).collect();
        for dropped in columns.iter().filter(|column| column.is_dropped() && number(column) < 0) {
            if taken.insert(number(dropped)) {
                let mut column = dropped.clone();
                match level {
                    Level::Leaf => column.node_offset = 0,
                    Level::Node => column.leaf_offset = 0,
                }
                planned.push(PlannedColumn { column, action: Action::Zero });
            }
        }
    }
    planned
}

/// The bytes of a column in the fixed part of records; `None` for other columns.
fn fixed_range(column: &RowsetColumn, level: Level) -> Option<Range<u32>> {
    let start = u32::try_from(column.place(level).0).ok().filter(|start| *start > 0)?;
    Some(start..start + u32::from(column.info.length))
}

fn is_compressed(database: &Database, rowset: &Rowset) -> bool {
    let index = database.indexes.get(&(rowset.object_id, rowset.index_id));
    rowset.compression > 0 || index.is_some_and(|index| index.index_type.is_columnstore())
}

/// Whether a column may have off-row values. The uniquifier is a variable column of a type of fixed length.
fn may_be_off_row(column: &RowsetColumn) -> bool {
    let is_pointer = matches!(column.info.xtype, xtype::TEXT | xtype::NTEXT | xtype::IMAGE);
    column.leaf_offset < 0 && (is_pointer || fixed_length(column.info).is_none())
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
        kept.note(why, &known.map_or_else(|| table.to_owned(), |known| format!("{table}.{}", known.name)));
        Action::Keep
    };
    if column.status & column_status::ANTI_MATTER != 0 {
        return Action::Hidden;
    }
    if column.status & column_status::HAS_DEFAULT != 0 && column.default.is_none() {
        // The default stays in the catalog, in a form that was not read.
        keep(Why::Default);
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
    let by_id: BTreeMap<u32, &TableColumn> = columns.iter().map(|column| (column.id, column)).collect();
    let base = database.table_rowsets(object_id).next();
    let of_object = database.index_columns.range((object_id, i32::MIN)..=(object_id, i32::MAX));
    let mut stored: BTreeSet<u32> = of_object.flat_map(|(_, columns)| columns).map(|column| column.column_id).collect();
    let in_rows = base.into_iter().flat_map(|base| &base.layout.columns).filter(|column| !column.is_dropped());
    stored.extend(in_rows.map(|column| column.id));
    let computed = columns.iter().filter(|column| column.is_computed() && stored.contains(&column.id));
    let mut waiting: BTreeSet<u32> = computed.map(|column| column.id).collect();
    let names = ColumnsByName::of(columns);
    texts(database, object_id, ExpressionKind::Filter, None).for_each(|text| names.add_named(text, &mut waiting));
    let partitioned = database.partitioned.range((object_id, i32::MIN)..=(object_id, i32::MAX));
    let by_partition: Vec<u32> = partitioned.map(|(_, of)| of.column_id).collect();
    let mut stay = BTreeSet::new();
    while let Some(id) = waiting.pop_first() {
        if stay.insert(id) {
            // Both IDs are the same 32 bits of the catalog.
            texts(database, object_id, ExpressionKind::ComputedColumn, Some(id.cast_signed()))
                .for_each(|text| names.add_named(text, &mut waiting));
        }
    }
    let table = database.object_name(object_id);
    let own = database.table_rowsets(object_id).flat_map(|rowset| &rowset.layout.columns);
    let by_form: Vec<(u32, Why)> = own
        .filter(|column| !column.is_dropped())
        .filter_map(|column| form_that_stays(column, by_id.get(&column.id).copied()).map(|why| (column.id, why)))
        .collect();
    let name_of = |id: u32| by_id.get(&id).map_or("", |column| column.name.as_str());
    stay.iter().for_each(|id| kept.note(Why::Expression, &format!("{table}.{}", name_of(*id))));
    for (id, why) in by_partition.into_iter().map(|id| (id, Why::Partition)).chain(by_form) {
        if stay.insert(id) {
            kept.note(why, &format!("{table}.{}", name_of(id)));
        }
    }
    stay
}

/// The definitions of one kind that an object has: those of one column or index, or all of them.
fn texts(database: &Database, object_id: i32, kind: ExpressionKind, sub_id: Option<i32>) -> impl Iterator<Item = &str> {
    let key = move |of: &catalog::Expression| (of.object_id, of.kind, of.sub_id);
    let (first, last) = sub_id.map_or((i32::MIN, i32::MAX), |sub_id| (sub_id, sub_id));
    let from = database.expressions.partition_point(|of| key(of) < (object_id, kind, first));
    let of_object = database.expressions.get(from..).unwrap_or_default().iter();
    of_object.take_while(move |of| key(of) <= (object_id, kind, last)).filter_map(|of| of.text.as_deref())
}

/// The columns of a table by their names, without the case of ASCII letters.
struct ColumnsByName(BTreeMap<String, Vec<u32>>);

impl ColumnsByName {
    fn of(columns: &[TableColumn]) -> Self {
        let mut by_name: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for column in columns {
            by_name.entry(column.name.to_ascii_lowercase()).or_default().push(column.id);
        }
        Self(by_name)
    }

    /// Adds the columns that a definition names.
    fn add_named(&self, text: &str, ids: &mut BTreeSet<u32>) {
        let names: BTreeSet<String> = names_in(text).iter().map(|name| name.to_ascii_lowercase()).collect();
        ids.extend(names.iter().filter_map(|name| self.0.get(name)).flatten());
    }
}

#[cfg(test)]
mod tests {
    use catalog::RowLayout;
    use format::collation::CollationId;
    use format::types::TypeInfo;

    use super::*;

    fn column(kind: u8, place: (i16, i16), length: u16, status: u32) -> RowsetColumn {
        RowsetColumn {
            id: 1,
            physical: 1,
            info: TypeInfo { length, ..TypeInfo::from_ti(kind.into()) },
            collation: CollationId(0),
            status,
            key_ordinal: 0,
            leaf_offset: place.0,
            node_offset: place.1,
            leaf_null_bit: 1,
            node_null_bit: 1,
            default: None,
            leaf_bit: 0,
            node_bit: 0,
        }
    }

    fn rowset(index_id: i32, columns: &[RowsetColumn]) -> Rowset {
        Rowset { index_id, layout: RowLayout { columns: columns.to_vec() }, ..Rowset::default() }
    }

    const DROPPED: u32 = column_status::DROPPED;

    #[test]
    fn bytes_that_no_column_in_use_has_are_known() {
        const END: u16 = u16::MAX;
        let of = |index_id: i32, level: Level, columns: &[RowsetColumn]| {
            let unused = unused(&rowset(index_id, columns), level);
            unused.into_iter().map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        let leaf = |columns: &[RowsetColumn]| of(0, Level::Leaf, columns);
        let int = column(xtype::INT, (4, 1), 4, 0);
        assert_eq!(leaf(&[]), [(4, END)]);
        assert_eq!(leaf(&[int.clone(), column(xtype::INT, (14, 0), 4, 0)]), [(8, 14), (18, END)]);
        assert_eq!(leaf(&[int.clone(), column(xtype::CHAR, (6, 0), 20, DROPPED)]), [(8, END)]);
        assert_eq!(of(2, Level::Leaf, &[column(xtype::INT, (1, 1), 4, 0)]), [(5, END)]);
        // Above the leaf level, the child pointer follows the columns.
        let node = |columns: &[RowsetColumn]| of(1, Level::Node, columns);
        let dropped = || column(xtype::CHAR, (10, 5), 20, DROPPED);
        assert_eq!(node(&[int]), []);
        assert_eq!(node(&[dropped(), column(xtype::INT, (14, 5), 4, 0)]), [(9, 25)]);
        let overlapping = [column(xtype::INT, (8, 1), 4, 0), column(xtype::BIGINT, (11, 8), 8, 0)];
        assert_eq!(node(&[&overlapping[..], &[dropped()]].concat()), [(5, 8), (16, 25)]);
        assert_eq!(node(&[dropped(), column(xtype::CHAR, (10, 5), 20, 0)]), []);
    }

    #[test]
    fn many_dropped_columns_at_one_place_are_planned_once() {
        let in_use = (0..500).map(|at| column(xtype::INT, (4 + 8 * at, 1 + 8 * at), 4, 0));
        let fixed = in_use.chain(vec![column(xtype::CHAR, (4, 1), 8000, DROPPED); 500]).collect::<Vec<_>>();
        assert_eq!(LEVELS.map(|level| unused(&rowset(1, &fixed), level).len()), [500, 500]);
        let variable = vec![column(xtype::VARCHAR, (-1, -1), 20, DROPPED); 500];
        assert_eq!(dropped_variable(&variable).len(), 2);
        assert_eq!(dropped_variable(&[&variable[..], &[column(xtype::VARCHAR, (-1, -2), 50, 0)]].concat()).len(), 1);
    }

    #[test]
    fn what_stays_of_dropped_columns_is_listed() {
        let reasons = |columns: &[RowsetColumn]| {
            let mut kept = Kept::default();
            note_dropped(&rowset(0, columns), "t", &mut kept);
            kept.iter().map(|(why, ..)| why).collect::<Vec<_>>()
        };
        let of = |status| column(xtype::INT, (4, 0), 4, status);
        assert_eq!(reasons(&[of(0), of(DROPPED), of(column_status::SPARSE), of(column_status::HAS_DEFAULT)]), []);
        assert_eq!(reasons(&[of(DROPPED | column_status::SPARSE)]), [Why::Sparse]);
        assert_eq!(reasons(&[of(DROPPED | column_status::HAS_DEFAULT)]), [Why::Default]);
    }

    #[test]
    fn columns_that_a_definition_names_often_wait_once() {
        let column = |id: u32| TableColumn { id, name: "x".to_owned(), user_type: 0, status: 0 };
        let names = ColumnsByName::of(&[column(1), column(u32::MAX)]);
        let mut waiting = BTreeSet::new();
        (0..1000).for_each(|_| names.add_named("([X]+[x])", &mut waiting));
        assert_eq!(waiting, BTreeSet::from([1, u32::MAX]));
    }

    #[test]
    fn columns_that_share_bytes_are_known() {
        let of = |places: [i16; 2], kind| overlap(&places.map(|place| column(kind, (place, 0), 4, 0)));
        assert!(of([4, 7], xtype::INT) && of([4, 4], xtype::INT));
        assert!(!of([4, 8], xtype::INT) && !of([0, 0], xtype::INT) && !of([4, 4], xtype::BIT));
        assert!(overlap(&[column(xtype::INT, (4, 1), 4, 0), column(xtype::INT, (8, 2), 4, 0)]), "above the leaf level");
    }

    #[test]
    fn only_columns_of_variable_length_have_off_row_values() {
        assert!(may_be_off_row(&column(xtype::VARCHAR, (-1, 0), 8000, 0)));
        assert!(may_be_off_row(&column(xtype::NTEXT, (-1, 0), 16, 0)));
        assert!(!may_be_off_row(&column(xtype::INT, (-1, 0), 4, column_status::UNIQUIFIER)));
        assert!(!may_be_off_row(&column(xtype::INT, (4, 0), 4, 0)));
    }
}
