//! Which columns of which rows are compared: derived from the catalog once, before the sweep.

use std::collections::HashMap;

use catalog::{Database, Index, IndexColumn, IndexType, Rowset, RowsetColumn, UnitKind, column_status};
use format::types::{TypeInfo, xtype};

use super::form::Normalization;
use super::together::BatchPlan;
use crate::budget;
use crate::per_unit::PerUnit;
use crate::registry::limits::{self, Reason};
use crate::rowsets::{are_readable, in_row_unit, may_be_paused, units_of};
use crate::survey::Survey;
use crate::units::{UnitIndex, Units};
use crate::unmatched::Side;
use crate::values::{Column, Expressions, Formula, is_sparse_and_padded};

/// A value that both sides have.
#[derive(Clone, Debug)]
pub(crate) enum ComparedColumn {
    /// A column.
    Column(Box<Column>),
    /// A computed column that the table does not store.
    Computed(Box<Formula>),
    /// The address of a heap row.
    Locator,
}

/// What to do with the rows of a unit for one plan.
#[derive(Clone, Debug)]
pub(crate) struct UnitPlan {
    /// Index of the plan.
    pub(crate) plan: usize,
    /// Which side the rows are on.
    pub(crate) side: Side,
    /// The values, in the order of the index.
    pub(crate) cells: Vec<ComparedColumn>,
    /// What of each value is hashed.
    pub(crate) forms: Vec<Normalization>,
    /// Which rows of the table are in the index; `None` for all.
    pub(crate) filter: Option<Formula>,
    /// The filter only requires that the first cell is not NULL, as filters of indexes on sparse columns do.
    pub(super) wants_first: bool,
    /// How the rows of a same-shape page are hashed together, if possible.
    pub(super) together: Option<BatchPlan>,
    /// Steps that its expressions may take per page; 0 if they take none.
    pub(super) share: u64,
}

impl UnitPlan {
    fn new(plan: usize, side: Side, cells: Vec<ComparedColumn>, filter: Option<Formula>) -> Self {
        let forms = vec![Normalization::AsStored; cells.len()];
        let wanted = filter.as_ref().and_then(|filter| filter.columns().nth(filter.selection()?.not_null()?));
        let wants_first = match (cells.first(), wanted) {
            (Some(ComparedColumn::Column(first)), Some((_, wanted))) => first.column.id == wanted.column.id,
            _ => false,
        };
        Self { plan, side, cells, forms, filter, wants_first, together: None, share: 0 }
    }

    /// Whether it has an expression that takes steps.
    fn takes_steps(&self) -> bool {
        let filter = self.filter.as_ref().filter(|_| !self.wants_first);
        let computed = self.cells.iter().filter_map(|cell| match cell {
            ComparedColumn::Computed(formula) => Some(&**formula),
            _ => None,
        });
        filter.into_iter().chain(computed).any(Formula::takes_steps)
    }

    /// Whether it reads the column with this null bit.
    pub(crate) fn reads(&self, null_bit: u16) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.reads(null_bit))
            || self.cells.iter().any(|cell| match cell {
                ComparedColumn::Column(column) => column.column.leaf_null_bit == null_bit,
                ComparedColumn::Computed(formula) => formula.reads(null_bit),
                ComparedColumn::Locator => false,
            })
    }

    /// Makes the hash of each value independent of how a rowset stores it. The address of a heap row, for which `types`
    /// has no type, is stored the same way in all rowsets.
    fn unify_forms(&mut self, types: &[Option<TypeInfo>]) {
        for ((form, cell), info) in self.forms.iter_mut().zip(&self.cells).zip(types) {
            *form = match cell {
                ComparedColumn::Column(column) if info.is_some() => Normalization::of(&column.column),
                ComparedColumn::Computed(formula) => Normalization::of_type(formula.target),
                _ => Normalization::AsStored,
            };
        }
    }
}

/// An index to be compared with its table.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Object.
    pub(crate) object_id: i32,
    /// Display name: `schema.table.index`.
    pub(crate) name: String,
    /// The index's own name.
    pub(crate) index_name: String,
    /// Units of the heap or clustered index, one per partition.
    pub(crate) table_units: Vec<UnitIndex>,
    /// Units of the index, one per partition.
    pub(crate) index_units: Vec<UnitIndex>,
    /// Names of the cells.
    pub(crate) names: Vec<String>,
    /// Types of the cells; `None` for the locator of a heap.
    pub(crate) types: Vec<Option<TypeInfo>>,
    /// Which cells identify the row: positions in `names`; empty for a heap.
    pub(crate) identity: Vec<usize>,
    /// Units with off-row values of the table and the index.
    pub(crate) text_units: Vec<UnitIndex>,
}

/// A name and its units.
pub(crate) struct Named {
    /// For people.
    pub(crate) text: String,
    /// Units.
    pub(crate) units: Vec<UnitIndex>,
}

/// An index that could be compared but has no pages, because its table has none: there is nothing to compare.
pub(crate) struct Empty {
    /// Object.
    pub(crate) object_id: i32,
    /// Index.
    pub(crate) index_id: i32,
}

/// All plans.
#[derive(Default)]
pub(crate) struct Plans {
    plans: Vec<Plan>,
    work: PerUnit<Vec<UnitPlan>>,
    empty: Vec<Empty>,
    left_out: Vec<(Named, Reason)>,
}

impl Plans {
    /// Plans for all nonclustered rowstore indexes in use.
    pub(crate) fn new(database: &Database, units: &Units, survey: &Survey) -> Self {
        let mut plans = Self { work: PerUnit::new(units.list().len()), ..Self::default() };
        let mut of_object: Vec<&Rowset> = database.rowsets.iter().collect();
        of_object.sort_by_key(|rowset| (rowset.object_id, rowset.index_id));
        for of_object in of_object.chunk_by(|a, b| a.object_id == b.object_id) {
            let (table, indexes) = of_object.split_at(of_object.partition_point(|rowset| rowset.index_id <= 1));
            let table = table.iter().copied().filter(|rowset| rowset.index_id >= 0).collect::<Vec<_>>();
            for index in indexes.chunk_by(|a, b| a.index_id == b.index_id) {
                plans.add(database, survey, &table, index);
            }
        }
        for (_, work) in plans.work.touched_mut() {
            let share = budget::share(work.iter().filter(|work| work.takes_steps()).count());
            work.iter_mut().filter(|work| work.takes_steps()).for_each(|work| work.share = share);
        }
        plans
    }

    fn add(&mut self, database: &Database, survey: &Survey, table: &[&Rowset], index: &[&Rowset]) {
        let Some(&Rowset { object_id, index_id, .. }) = index.first().copied() else { return };
        let name = || index_full_name(database, object_id, index_id);
        let has_pages = |rowset: &&Rowset| rowset.units.iter().any(|unit| survey.has_pages(*unit as UnitIndex));
        match (Builder { database, object_id, index_id, table, index }).build(self.plans.len()) {
            Ok(_) if !table.iter().chain(index).any(has_pages) => self.empty.push(Empty { object_id, index_id }),
            Ok((plan, work)) => {
                for (unit, work) in work {
                    if let Some(of_unit) = self.work.get_mut(unit as usize) {
                        of_unit.push(work);
                    }
                }
                self.plans.push(plan);
            }
            Err(reason) => {
                let named = Named { text: name(), units: units_of(database, index) };
                self.left_out.push((named, reason));
            }
        }
    }

    /// The plans.
    pub(crate) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Indexes without pages.
    pub(crate) fn empty(&self) -> &[Empty] {
        &self.empty
    }

    /// What to do with the rows of a unit.
    pub(crate) fn work(&self, unit: UnitIndex) -> &[UnitPlan] {
        self.work.get(unit as usize).map_or(&[], Vec::as_slice)
    }

    /// Indexes that cannot be compared, and why.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (&Named, &Reason)> {
        self.left_out.iter().map(|(name, reason)| (name, reason))
    }
}

impl Empty {
    /// `schema.table.index`.
    pub(crate) fn name(&self, database: &Database) -> String {
        index_full_name(database, self.object_id, self.index_id)
    }

    /// Its in-row units, and those of its table.
    pub(crate) fn units(&self, database: &Database) -> [Vec<UnitIndex>; 2] {
        let of_index: Vec<_> =
            database.rowsets_of(self.object_id).filter(|rowset| rowset.index_id == self.index_id).collect();
        let of_table: Vec<_> = database.table_rowsets(self.object_id).collect();
        [units_of(database, &of_index), units_of(database, &of_table)]
    }
}

fn index_full_name(database: &Database, object_id: i32, index_id: i32) -> String {
    format!("{}.{}", database.object_name(object_id), index_name(database, object_id, index_id))
}

fn index_name(database: &Database, object_id: i32, index_id: i32) -> String {
    let index = database.indexes.get(&(object_id, index_id));
    index.map_or_else(|| format!("index ID {index_id}"), |index| index.name.clone())
}

/// Whether two rowsets belong to the same partition.
fn has_partition_twice(rowsets: &[&Rowset]) -> bool {
    let mut partitions: Vec<i32> = rowsets.iter().map(|rowset| rowset.partition).collect();
    partitions.sort_unstable();
    partitions.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
}

/// Units with off-row values of these rowsets.
fn text_units<'a>(database: &Database, rowsets: impl Iterator<Item = &'a &'a Rowset>) -> Vec<UnitIndex> {
    let in_row = |unit: &usize| database.units.get(*unit).is_some_and(|unit| unit.kind == UnitKind::InRow);
    let units = rowsets.flat_map(|rowset| rowset.units.iter().copied());
    units.filter(|unit| !in_row(unit)).map(|unit| unit as UnitIndex).collect()
}

struct Builder<'a> {
    database: &'a Database,
    object_id: i32,
    index_id: i32,
    table: &'a [&'a Rowset],
    index: &'a [&'a Rowset],
}

/// Where a column of the index comes from.
#[derive(Clone, Copy)]
enum Origin {
    /// The column of the table with this id.
    Column(u32),
    /// The uniquifier.
    Uniquifier,
    /// The address of a heap row.
    Locator,
}

impl Builder<'_> {
    fn build(&self, at: usize) -> Result<(Plan, Vec<(UnitIndex, UnitPlan)>), Reason> {
        if !self.database.indexes_are_complete() {
            return Err((&limits::INDEX_DESCRIPTION_UNREADABLE).into());
        }
        let index = self.index_row()?;
        let all = || self.table.iter().chain(self.index);
        if self.table.is_empty() {
            return Err((&limits::INDEX_NO_TABLE).into());
        }
        are_readable(all().copied())?;
        // If a partition has two rowsets, one may be the unfinished work of a paused rebuild.
        if all().any(|rowset| may_be_paused(self.database, rowset))
            || [self.table, self.index].into_iter().any(has_partition_twice)
        {
            return Err((&limits::INDEX_BUILD_PAUSED).into());
        }
        let first = self.index.first().ok_or(&limits::INDEX_NO_ROWSET)?;
        let mut origins = Vec::new();
        for (column, origin) in self.origins(first)? {
            if matches!(column.info.xtype, xtype::XML | xtype::TEXT | xtype::NTEXT | xtype::IMAGE | xtype::JSON) {
                return Err(limits::INDEX_COLUMN_TYPE.with(&[&self.column_name(origin)]));
            }
            origins.push((column.id, origin, column.info));
        }
        let mut work = Vec::new();
        for rowset in self.index {
            let cells =
                origins.iter().map(|(id, origin, _)| self.index_cell(rowset, *id, *origin)).collect::<Option<Vec<_>>>();
            let cells = cells.ok_or(&limits::ROWS_COLUMNS_DIFFER)?;
            let work_of = |unit| (unit, UnitPlan::new(at, Side::Index, cells, None));
            work.extend(in_row_unit(self.database, rowset).map(work_of));
        }
        for rowset in self.table {
            let cells = origins
                .iter()
                .map(|(_, origin, info)| self.table_cell(rowset, *origin, *info))
                .collect::<Result<_, _>>()?;
            let filter = match index.is_filtered() {
                true => Some(Expressions { database: self.database, rowset }.filter(self.index_id)?),
                false => None,
            };
            let work_of = |unit| (unit, UnitPlan::new(at, Side::Table, cells, filter));
            work.extend(in_row_unit(self.database, rowset).map(work_of));
        }
        let identity = self.identity(&origins);
        let types: Vec<Option<TypeInfo>> =
            origins.iter().map(|(_, origin, info)| (!matches!(origin, Origin::Locator)).then_some(*info)).collect();
        let has_own_forms = |rowset: &&Rowset| {
            rowset.is_row_compressed() || rowset.layout.columns.iter().any(RowsetColumn::is_stored_shorter)
        };
        if all().any(has_own_forms) {
            work.iter_mut().for_each(|(_, work)| work.unify_forms(&types));
        }
        work.iter_mut().for_each(|(_, work)| work.together = BatchPlan::of(work));
        let plan = Plan {
            object_id: self.object_id,
            name: index_full_name(self.database, self.object_id, self.index_id),
            index_name: index.name.clone(),
            table_units: units_of(self.database, self.table),
            index_units: units_of(self.database, self.index),
            names: origins.iter().map(|(_, origin, _)| self.column_name(*origin)).collect(),
            types,
            identity,
            text_units: text_units(self.database, self.table.iter().chain(self.index)),
        };
        Ok((plan, work))
    }

    /// The catalog's row for the index, if the index is of a kind that has a row for each row of the table.
    fn index_row(&self) -> Result<&Index, Reason> {
        const HYPOTHETICAL: u32 = 0x100;
        let index = self.database.indexes.get(&(self.object_id, self.index_id)).ok_or(&limits::INDEX_UNKNOWN)?;
        match index.index_type {
            IndexType::Nonclustered => {}
            other => return Err(limits::INDEX_KIND.with(&[&other.name()])),
        }
        if index.is_disabled() || index.status & HYPOTHETICAL != 0 {
            return Err((&limits::INDEX_DISABLED).into());
        }
        Ok(index)
    }

    /// The columns of the index in order, each with its origin: key and included columns by sysiscols, then the locator
    /// (docs/format/index-records.md#what-an-index-row-holds).
    fn origins<'r>(&self, rowset: &'r Rowset) -> Result<Vec<(&'r RowsetColumn, Origin)>, Reason> {
        let known: HashMap<u32, IndexColumn> = self
            .database
            .index_columns
            .get(&(self.object_id, self.index_id))
            .map(|columns| columns.iter().map(|column| (column.position, *column)).collect())
            .unwrap_or_default();
        let mut columns: Vec<&RowsetColumn> = rowset.layout.columns.iter().collect();
        columns.sort_by_key(|column| column.id);
        let mut locators = self.locators(&known).into_iter();
        let mut origins = Vec::new();
        for column in columns {
            let origin = match known.get(&column.id) {
                Some(known) => Origin::Column(known.column_id),
                None => locators.next().ok_or(&limits::INDEX_COLUMNS_UNEXPLAINED)?,
            };
            origins.push((column, origin));
        }
        if locators.next().is_some() {
            return Err((&limits::INDEX_KEY_COLUMNS).into());
        }
        Ok(origins)
    }

    /// The hidden columns after the index's own: the row's address in a heap, or those clustering key columns,
    /// uniquifier included, that the index does not already have.
    fn locators(&self, known: &HashMap<u32, IndexColumn>) -> Vec<Origin> {
        let Some(table) = self.table.first() else { return Vec::new() };
        if table.index_id == 0 {
            return vec![Origin::Locator];
        }
        let mut key: Vec<&RowsetColumn> = table.layout.columns.iter().filter(|column| column.key_ordinal > 0).collect();
        key.sort_by_key(|column| column.key_ordinal);
        key.into_iter()
            .map(|column| match column.status & column_status::UNIQUIFIER {
                0 => Origin::Column(column.id),
                _ => Origin::Uniquifier,
            })
            .filter(|origin| match origin {
                Origin::Column(id) => !known.values().any(|column| column.column_id == *id),
                _ => true,
            })
            .collect()
    }

    fn index_cell(&self, rowset: &Rowset, id: u32, origin: Origin) -> Option<ComparedColumn> {
        let column = rowset.layout.columns.iter().find(|column| column.id == id)?;
        let table = self.table.first()?;
        Some(ComparedColumn::Column(Box::new(Column {
            is_uniquifier: matches!(origin, Origin::Uniquifier),
            is_computed: matches!(origin, Origin::Column(id) if table.layout.column(id).is_none()),
            ..Column::of_index(column)
        })))
    }

    fn table_cell(&self, rowset: &Rowset, origin: Origin, info: TypeInfo) -> Result<ComparedColumn, Reason> {
        let column = match origin {
            Origin::Locator => return Ok(ComparedColumn::Locator),
            Origin::Uniquifier => {
                rowset.layout.columns.iter().find(|column| column.status & column_status::UNIQUIFIER != 0)
            }
            Origin::Column(id) => rowset.layout.column(id),
        };
        let name = || self.column_name(origin);
        let Some(column) = column else {
            return Ok(ComparedColumn::Computed(Box::new(self.formula(rowset, origin, info)?)));
        };
        if is_sparse_and_padded(column) {
            return Err(limits::INDEX_SPARSE_PADDING.with(&[&name()]));
        }
        if column.info.xtype != info.xtype {
            return Err(limits::INDEX_TYPES_DIFFER.with(&[&name()]));
        }
        let is_uniquifier = matches!(origin, Origin::Uniquifier);
        Ok(ComparedColumn::Column(Box::new(Column { is_uniquifier, ..Column::of_table(column) })))
    }

    /// The definition of a computed column that the table does not store.
    fn formula(&self, rowset: &Rowset, origin: Origin, info: TypeInfo) -> Result<Formula, Reason> {
        match origin {
            Origin::Column(id) => Expressions { database: self.database, rowset }
                .computed_column(id, info)
                .map_err(|reason| reason.about(format_args!("column {}", self.column_name(origin)))),
            _ => Err(limits::INDEX_COLUMN_MISSING.with(&[&self.column_name(origin)])),
        }
    }

    fn column_name(&self, origin: Origin) -> String {
        let id = match origin {
            Origin::Locator => return "HEAP RID".to_owned(),
            Origin::Uniquifier => return "UNIQUIFIER".to_owned(),
            Origin::Column(id) => id,
        };
        let columns = self.database.columns.get(&self.object_id);
        columns
            .and_then(|columns| columns.iter().find(|column| column.id == id))
            .map_or_else(|| format!("column ID {id}"), |column| column.name.clone())
    }

    /// The cells by which 8955 and 8956 identify the row of the table: its clustering key.
    fn identity(&self, origins: &[(u32, Origin, TypeInfo)]) -> Vec<usize> {
        let Some(table) = self.table.first().filter(|table| table.index_id == 1) else { return Vec::new() };
        let mut key: Vec<&RowsetColumn> = table.layout.columns.iter().filter(|column| column.key_ordinal > 0).collect();
        key.sort_by_key(|column| column.key_ordinal);
        let is = |origin: &Origin, column: &RowsetColumn| match origin {
            Origin::Column(id) => *id == column.id && column.status & column_status::UNIQUIFIER == 0,
            Origin::Uniquifier => column.status & column_status::UNIQUIFIER != 0,
            Origin::Locator => false,
        };
        key.into_iter().filter_map(|column| origins.iter().position(|(_, origin, _)| is(origin, column))).collect()
    }
}
