//! The plans for partitioned heaps and indexes: which rows can be checked against their partition function, and how.
//! The plans are derived from the catalog once, before the sweep.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{Boundary, Database, Rowset, RowsetColumn, Stored, TableColumn};
use findings::Options;
use findings::registry::limits::{self, Reason};
use format::key::{KeyOrder, compare_values};
use format::record::Record;
use format::types::{TypeInfo, fixed_length, xtype};
use format::{RecordId, value};
use sums::PerUnit;

use crate::basis::meaning::meaning;
use crate::basis::units::{UnitIndex, Units};
use crate::page::rowsets::{are_readable, units_of};
use crate::values::column_names::table_columns;
use crate::values::{Column, is_sparse_and_padded};

/// A partitioned heap or index.
pub(crate) struct Plan {
    /// Display name: `schema.table.index`.
    pub(crate) name: String,
    /// The units of the heap or index, one per partition.
    pub(crate) units: Vec<UnitIndex>,
}

/// Everything needed to check the rows of a partition.
#[derive(Clone)]
pub(crate) struct UnitPlan {
    /// Index of the plan.
    pub(crate) plan: usize,
    /// The number of the partition, from 1.
    pub(crate) partition: usize,
    /// The boundaries of the partition function, in ascending order.
    pub(crate) boundaries: Arc<[Boundary]>,
    /// The partitioning column.
    pub(crate) column: Column,
    /// The sort order of the partitioning column.
    pub(crate) order: KeyOrder,
    /// The columns that identify a row; empty for a heap.
    pub(crate) key: Arc<[(String, Column)]>,
}

meaning!(UnitPlan { partition, boundaries, column, order; plans plan; without key });

impl UnitPlan {
    /// The text by which 8988 identifies a row.
    pub(super) fn identity(&self, record: &Record<'_>, locator: RecordId) -> String {
        if self.key.is_empty() {
            return format!("HEAP RID = {locator}");
        }
        let pair = |(name, column): &(String, Column)| {
            let text = match column.value(record) {
                Stored::Plain(bytes) => value::text(column.column.info, bytes, 0),
                _ => "NULL".to_owned(),
            };
            format!("{name} = {text}")
        };
        self.key.iter().map(pair).collect::<Vec<_>>().join(" and ")
    }
}

/// All plans.
#[derive(Default)]
pub(crate) struct Plans {
    plans: Vec<Plan>,
    work: PerUnit<Option<UnitPlan>>,
    left_out: Vec<(Plan, Reason)>,
}

impl Plans {
    /// Plans for all heaps and indexes with several partitions.
    pub(crate) fn new(database: &Database, units: &Units, options: &Options) -> Self {
        let mut plans = Self { work: PerUnit::new(units.list().len()), ..Self::default() };
        let several = database.rowsets.iter().filter(|rowset| rowset.partition > 1);
        let mut rowsets: BTreeMap<(i32, i32), Vec<&Rowset>> = BTreeMap::new();
        for (object, index) in several.map(|rowset| (rowset.object_id, rowset.index_id)) {
            let partitions = || database.rowsets_of(object).filter(|rowset| rowset.index_id == index).collect();
            rowsets.entry((object, index)).or_insert_with(partitions);
        }
        rowsets.retain(|index, _| !options.leaves_out(database, index.0, index.1));
        for (&index, rowsets) in &rowsets {
            let object = database.object_name(index.0);
            let name = match database.indexes.get(&index).filter(|index| !index.name.is_empty()) {
                Some(index) => format!("{object}.{}", index.name),
                None => object,
            };
            let plan = Plan { name, units: units_of(database, rowsets) };
            match work(database, index, rowsets, plans.plans.len()) {
                Ok(work) => {
                    for (unit, work) in work {
                        if let Some(of_unit) = plans.work.get_mut(unit as usize) {
                            *of_unit = Some(work);
                        }
                    }
                    plans.plans.push(plan);
                }
                Err(reason) => plans.left_out.push((plan, reason)),
            }
        }
        plans
    }

    /// The plans.
    pub(crate) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// How to check the rows of a unit.
    pub(crate) fn work(&self, unit: UnitIndex) -> Option<&UnitPlan> {
        self.work.get(unit as usize)?.as_ref()
    }

    /// Heaps and indexes that cannot be checked, and why.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (&str, &[UnitIndex], &Reason)> {
        self.left_out.iter().map(|(plan, reason)| (plan.name.as_str(), plan.units.as_slice(), reason))
    }
}

fn work(
    database: &Database,
    index: (i32, i32),
    rowsets: &[&Rowset],
    plan: usize,
) -> Result<Vec<(UnitIndex, UnitPlan)>, Reason> {
    are_readable(rowsets.iter().copied())?;
    let partitioned = database.partitioned.get(&index).ok_or(&limits::PARTITION_FUNCTION)?;
    let function = database.partition_functions.get(&partitioned.function_id).ok_or(&limits::PARTITION_FUNCTION)?;
    let column =
        partitioning_column(database, rowsets.first().ok_or(&limits::PARTITION_NO_ROWSET)?, partitioned.column_id)?;
    let boundaries: Arc<[Boundary]> = the_boundaries(&function.candidates, rowsets, column)?.into();
    let mut work = Vec::new();
    for rowset in rowsets {
        let column = partitioning_column(database, rowset, partitioned.column_id)?;
        let order = KeyOrder::of(column.info, column.collation, 0);
        let (Some(&unit), Ok(partition)) = (units_of(database, &[rowset]).first(), usize::try_from(rowset.partition))
        else {
            continue;
        };
        let column = Column { in_index: index.1 > 1, ..Column::of_table(column) };
        let key = identifying_columns(database, rowset);
        work.push((unit, UnitPlan { plan, partition, boundaries: boundaries.clone(), column, order, key }));
    }
    Ok(work)
}

/// Returns the only list of `candidates` that fits these partitions. It is an error if no list fits or several lists
/// fit. If no list fits, the error says why the last list does not fit.
fn the_boundaries<'a>(
    candidates: &'a [Vec<Boundary>],
    rowsets: &[&Rowset],
    column: &RowsetColumn,
) -> Result<&'a [Boundary], Reason> {
    let mut numbers: Vec<i32> = rowsets.iter().map(|rowset| rowset.partition).collect();
    numbers.sort_unstable();
    let is_of_one_type = rowsets
        .iter()
        .all(|rowset| rowset.layout.columns.iter().any(|other| (other.id, other.info) == (column.id, column.info)));
    if !is_of_one_type {
        return Err((&limits::ROWS_COLUMNS_DIFFER).into());
    }
    let mut found = None;
    let mut reason = Reason::from(&limits::PARTITION_BOUNDARIES);
    for boundaries in candidates {
        let order = KeyOrder::of(column.info, column.collation, 0);
        let fits = are_of_type(boundaries, column.info).and_then(|()| ascend(boundaries, order)).and_then(|()| {
            let ok = numbers.iter().copied().eq((1..).take(boundaries.len() + 1));
            ok.then_some(()).ok_or_else(|| (&limits::PARTITION_BOUNDARIES_COUNT).into())
        });
        match fits {
            Ok(()) if found.is_some() => return Err((&limits::PARTITION_BOUNDARIES_SEVERAL).into()),
            Ok(()) => found = Some(boundaries.as_slice()),
            Err(why) => reason = why,
        }
    }
    found.ok_or(reason)
}

/// The partitioning column, as the rows of a partition store it.
fn partitioning_column<'a>(database: &Database, rowset: &'a Rowset, id: u32) -> Result<&'a RowsetColumn, Reason> {
    let names = table_columns(database, rowset);
    let is_it = |(column, known): &(&RowsetColumn, Option<&TableColumn>)| {
        !column.is_dropped() && known.is_some_and(|known| known.id == id)
    };
    let found = rowset.layout.columns.iter().zip(names).find(is_it);
    let (column, _) = found.ok_or(&limits::PARTITION_COLUMN)?;
    let is_vardecimal = fixed_length(column.info).is_some() && column.leaf_offset < 0 && !column.is_sparse();
    if is_vardecimal || is_sparse_and_padded(column) {
        return Err(limits::PARTITION_COLUMN_TYPE.with(&[&column.info.declaration()]));
    }
    Ok(column)
}

fn are_of_type(boundaries: &[Boundary], info: TypeInfo) -> Result<(), Reason> {
    let is_decimal = |kind: u8| matches!(kind, xtype::DECIMAL | xtype::NUMERIC);
    let is_of_type = |boundary: &Boundary| {
        let kinds = (boundary.info.xtype, info.xtype);
        boundary.value.is_none()
            || (kinds.0 == kinds.1 || is_decimal(kinds.0) && is_decimal(kinds.1)) && boundary.info.scale == info.scale
    };
    boundaries
        .iter()
        .all(is_of_type)
        .then_some(())
        .ok_or_else(|| limits::PARTITION_BOUNDARIES_TYPE.with(&[&info.declaration()]))
}

/// Checks that each boundary is certainly greater than the previous boundary.
fn ascend(boundaries: &[Boundary], order: KeyOrder) -> Result<(), Reason> {
    let is_above = |pair: &[Boundary]| match pair {
        [a, b] => match (a.value.as_deref(), b.value.as_deref()) {
            (None, Some(_)) => true,
            (Some(a), Some(b)) => compare_values(a, b, order) == Some(Ordering::Less),
            _ => false,
        },
        _ => true,
    };
    let ok = boundaries.windows(2).all(is_above);
    ok.then_some(()).ok_or_else(|| (&limits::PARTITION_BOUNDARIES_ORDER).into())
}

/// The key columns of an index, with their names.
fn identifying_columns(database: &Database, rowset: &Rowset) -> Arc<[(String, Column)]> {
    if rowset.index_id == 0 {
        return Arc::new([]);
    }
    let names = table_columns(database, rowset);
    let mut key: Vec<(&RowsetColumn, Option<&TableColumn>)> =
        rowset.layout.columns.iter().zip(names).filter(|(column, _)| column.key_ordinal > 0).collect();
    key.sort_by_key(|(column, _)| column.key_ordinal);
    let named = |(column, known): (&RowsetColumn, Option<&TableColumn>)| {
        let is_uniquifier = known.is_none() && column.info.xtype == xtype::INT;
        let hidden = if is_uniquifier { "UNIQUIFIER" } else { "HEAP RID" };
        let name = known.map_or_else(|| hidden.to_owned(), |known| known.name.clone());
        (name, Column { in_index: rowset.index_id > 1, is_uniquifier, ..Column::of_table(column) })
    };
    key.into_iter().map(named).collect()
}
