//! Builds the plan of one nonclustered index: where the table and the index store each value, or why the index cannot
//! be compared.

use catalog::{Database, Index, IndexColumn, IndexType, Rowset, RowsetColumn, UnitKind, column_status};
use findings::registry::limits::{self, Reason};
use format::types::{TypeInfo, xtype};

use super::{ComparedColumn, Plan, UnitPlan, index_full_name};
use crate::basis::units::UnitIndex;
use crate::checks::index_match::together::BatchPlan;
use crate::page::rowsets::{are_readable, in_row_unit, may_be_paused, units_of};
use crate::sweep::unmatched::Side;
use crate::values::{Column, Expressions, Formula, is_sparse_and_padded};

/// Whether two of the rowsets belong to the same partition.
fn has_partition_twice(rowsets: &[&Rowset]) -> bool {
    if rowsets.len() < 2 {
        return false;
    }
    let mut partitions: Vec<i32> = rowsets.iter().map(|rowset| rowset.partition).collect();
    partitions.sort_unstable();
    partitions.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
}

/// The units that store off-row values of these rowsets.
fn text_units<'a>(database: &Database, rowsets: impl Iterator<Item = &'a &'a Rowset>) -> Vec<UnitIndex> {
    let in_row = |unit: &usize| database.units.get(*unit).is_some_and(|unit| unit.kind == UnitKind::InRow);
    let units = rowsets.flat_map(|rowset| rowset.units.iter().copied());
    units.filter(|unit| !in_row(unit)).map(|unit| unit as UnitIndex).collect()
}

/// For each unit, how to hash its rows.
pub(super) type Work = Vec<(UnitIndex, UnitPlan)>;

/// The column at `position` in the rows of a nonclustered index.
fn column_at(rowset: &Rowset, position: u32) -> Option<&RowsetColumn> {
    rowset.layout.columns.iter().find(|column| column.id == position)
}

fn table_cell(column: TableColumn<'_>, origin: Origin) -> ComparedColumn {
    match column {
        TableColumn::Stored(column) => {
            let is_uniquifier = matches!(origin, Origin::Uniquifier);
            ComparedColumn::Column(Box::new(Column { is_uniquifier, ..Column::of_table(column) }))
        }
        TableColumn::Computed(formula) => ComparedColumn::Computed(Box::new(formula)),
        TableColumn::Locator => ComparedColumn::Locator,
    }
}

/// Builds the plan of one index.
pub(super) struct Builder<'a> {
    pub(super) database: &'a Database,
    pub(super) object_id: i32,
    pub(super) index_id: i32,
    /// The partitions of the heap or clustered index.
    pub(super) table: &'a [&'a Rowset],
    /// The partitions of the index.
    pub(super) index: &'a [&'a Rowset],
    /// Whether the table or the index has pages to compare.
    pub(super) has_pages: bool,
}

/// The value that a column of the index contains.
#[derive(Clone, Copy)]
enum Origin {
    /// A column of the table, with this ID.
    Column(u32),
    /// The uniquifier.
    Uniquifier,
    /// The address of a heap row.
    Locator,
}

/// How a row of the table provides the value of an index column.
enum TableColumn<'a> {
    Stored(&'a RowsetColumn),
    Computed(Formula),
    Locator,
}

/// The key and included columns of an index according to sysiscols, in the order of their positions.
#[derive(Clone, Copy)]
struct KnownColumns<'a>(&'a [IndexColumn]);

impl<'a> KnownColumns<'a> {
    /// The column at `position`. If sysiscols has several columns at this position, the last of them.
    fn at(self, position: u32) -> Option<&'a IndexColumn> {
        let end = self.0.partition_point(|column| column.position <= position);
        self.0.get(end.checked_sub(1)?).filter(|column| column.position == position)
    }

    /// Whether the column `id` of the table is one of these columns.
    fn has(self, id: u32) -> bool {
        self.0
            .iter()
            .any(|column| column.column_id == id && self.at(column.position).is_some_and(|last| last.column_id == id))
    }
}

impl Builder<'_> {
    /// Builds the plan, which will have index `at` in the list of plans, and for each unit a description of how to hash
    /// its rows. `None` if the index could be compared but has no pages.
    pub(super) fn build(&self, at: usize) -> Result<Option<(Plan, Work)>, Reason> {
        if !self.database.indexes_are_complete() {
            return Err((&limits::INDEX_DESCRIPTION_UNREADABLE).into());
        }
        let index = self.index_row()?;
        let all = || self.table.iter().chain(self.index);
        if self.table.is_empty() {
            return Err((&limits::INDEX_NO_TABLE).into());
        }
        are_readable(all().copied())?;
        // If a partition has two rowsets, one may be the unfinished result of a paused rebuild.
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
        let mut work = Work::new();
        for rowset in self.index {
            let columns = origins.iter().map(|(id, ..)| column_at(rowset, *id)).collect::<Option<Vec<_>>>();
            let columns = columns.ok_or(&limits::ROWS_COLUMNS_DIFFER)?;
            if let Some(unit) = in_row_unit(self.database, rowset).filter(|_| self.has_pages) {
                let cells = columns.into_iter().zip(&origins);
                let cells = cells.map(|(column, (_, origin, _))| self.index_cell(column, *origin)).collect();
                work.push((unit, UnitPlan::new(at, Side::Index, cells, None)));
            }
        }
        for rowset in self.table {
            let columns = origins
                .iter()
                .map(|(_, origin, info)| self.table_column(rowset, *origin, *info))
                .collect::<Result<Vec<_>, _>>()?;
            let filter = match index.is_filtered() {
                true => Some(Expressions { database: self.database, rowset }.filter(self.index_id)?),
                false => None,
            };
            if let Some(unit) = in_row_unit(self.database, rowset).filter(|_| self.has_pages) {
                let cells = columns.into_iter().zip(&origins);
                let cells = cells.map(|(column, (_, origin, _))| table_cell(column, *origin)).collect();
                work.push((unit, UnitPlan::new(at, Side::Table, cells, filter)));
            }
        }
        if !self.has_pages {
            return Ok(None);
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
        Ok(Some((plan, work)))
    }

    /// The catalog's row for the index. An error if indexes of this kind do not have one row for each row of the table.
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

    /// The columns of the index in order, each with its origin: first the key and included columns according to
    /// sysiscols, then the locator (docs/format/index-records.md#what-an-index-row-holds).
    fn origins<'r>(&self, rowset: &'r Rowset) -> Result<Vec<(&'r RowsetColumn, Origin)>, Reason> {
        let known = self.database.index_columns.get(&(self.object_id, self.index_id));
        let known = KnownColumns(known.map(Vec::as_slice).unwrap_or_default());
        let mut columns: Vec<&RowsetColumn> = rowset.layout.columns.iter().collect();
        columns.sort_by_key(|column| column.id);
        let mut locators = self.locators(known).into_iter();
        let mut origins = Vec::new();
        for column in columns {
            let origin = match known.at(column.id) {
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

    /// The locator columns after the index's own columns. For a heap, the address of the row. For a table with a
    /// clustered index, the columns of the clustering key, uniquifier included, that the nonclustered index does not
    /// already have.
    fn locators(&self, known: KnownColumns<'_>) -> Vec<Origin> {
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
                Origin::Column(id) => !known.has(*id),
                _ => true,
            })
            .collect()
    }

    fn index_cell(&self, column: &RowsetColumn, origin: Origin) -> ComparedColumn {
        let is_stored = |id| self.table.first().is_some_and(|table| table.layout.column(id).is_some());
        ComparedColumn::Column(Box::new(Column {
            is_uniquifier: matches!(origin, Origin::Uniquifier),
            is_computed: matches!(origin, Origin::Column(id) if !is_stored(id)),
            ..Column::of_index(column)
        }))
    }

    fn table_column<'r>(&self, rowset: &'r Rowset, origin: Origin, info: TypeInfo) -> Result<TableColumn<'r>, Reason> {
        let column = match origin {
            Origin::Locator => return Ok(TableColumn::Locator),
            Origin::Uniquifier => {
                rowset.layout.columns.iter().find(|column| column.status & column_status::UNIQUIFIER != 0)
            }
            Origin::Column(id) => rowset.layout.column(id),
        };
        let name = || self.column_name(origin);
        let Some(column) = column else {
            return Ok(TableColumn::Computed(self.formula(rowset, origin, info)?));
        };
        if is_sparse_and_padded(column) {
            return Err(limits::INDEX_SPARSE_PADDING.with(&[&name()]));
        }
        if column.info.xtype != info.xtype {
            return Err(limits::INDEX_TYPES_DIFFER.with(&[&name()]));
        }
        Ok(TableColumn::Stored(column))
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

    /// Positions, in `origins`, of the values that identify the table row in 8955 and 8956: the columns of the
    /// clustering key.
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
