//! The columns and rows to compare. They are derived from the catalog once, before the sweep.

mod builder;

use catalog::{Database, Rowset};
use findings::registry::limits::Reason;
use format::types::TypeInfo;
use sums::PerUnit;

use super::form::Normalization;
use super::together::BatchPlan;
use crate::basis::meaning::meaning;
use crate::basis::units::{UnitIndex, Units};
use crate::page::rowsets::units_of;
use crate::survey::Survey;
use crate::sweep::unmatched::Side;
use crate::values::budget;
use crate::values::{Column, Formula};

use builder::Builder;

/// A value that the index stores and that the table stores or computes.
#[derive(Clone, Hash, Debug)]
pub(crate) enum ComparedColumn {
    /// A column.
    Column(Box<Column>),
    /// A computed column that the table does not store.
    Computed(Box<Formula>),
    /// The address of a heap row.
    Locator,
}

/// How to hash the rows of a unit for one plan.
#[derive(Clone, Debug)]
pub(crate) struct UnitPlan {
    /// Index of the plan.
    pub(crate) plan: usize,
    /// Whether the rows are rows of the table or of the index.
    pub(crate) side: Side,
    /// The values to hash, in the order of the index columns.
    pub(crate) cells: Vec<ComparedColumn>,
    /// For each value, which part of it is hashed, and in which form.
    pub(crate) forms: Vec<Normalization>,
    /// The filter of the index, for rows of the table; `None` if the index has all rows.
    pub(crate) filter: Option<Formula>,
    /// Whether the filter only requires that the first of the `cells` is not NULL. Indexes on sparse columns often have
    /// this filter.
    pub(super) wants_first: bool,
    /// How to hash all rows of a page together if they have the same layout; `None` if that is impossible.
    pub(super) together: Option<BatchPlan>,
    /// The limit on the steps that the plan's expressions may use per page; 0 if they use none.
    pub(super) share: u64,
}

meaning!(UnitPlan { side, cells, forms, filter, wants_first, share; plans plan; without together });

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

    /// Whether the plan has an expression whose evaluation counts steps.
    fn takes_steps(&self) -> bool {
        let filter = self.filter.as_ref().filter(|_| !self.wants_first);
        let computed = self.cells.iter().filter_map(|cell| match cell {
            ComparedColumn::Computed(formula) => Some(&**formula),
            _ => None,
        });
        filter.into_iter().chain(computed).any(Formula::takes_steps)
    }

    /// Whether the plan reads the column that has this null bit.
    pub(crate) fn reads(&self, null_bit: u16) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.reads(null_bit))
            || self.cells.iter().any(|cell| match cell {
                ComparedColumn::Column(column) => column.column.leaf_null_bit == null_bit,
                ComparedColumn::Computed(formula) => formula.reads(null_bit),
                ComparedColumn::Locator => false,
            })
    }

    /// Makes the hash of each value independent of how a rowset stores the value. The address of a heap row has no
    /// entry in `types`; all rowsets store it in the same way.
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
    /// Object ID of the table.
    pub(crate) object_id: i32,
    /// Full name for messages: `schema.table.index`.
    pub(crate) name: String,
    /// The index's own name.
    pub(crate) index_name: String,
    /// Units of the heap or clustered index, one per partition.
    pub(crate) table_units: Vec<UnitIndex>,
    /// Units of the index, one per partition.
    pub(crate) index_units: Vec<UnitIndex>,
    /// Names of the values that are compared.
    pub(crate) names: Vec<String>,
    /// Types of the values that are compared; `None` for the locator of a heap.
    pub(crate) types: Vec<Option<TypeInfo>>,
    /// Positions, in `names`, of the values that identify a row; empty for a heap.
    pub(crate) identity: Vec<usize>,
    /// Units of the table and of the index that store off-row values.
    pub(crate) text_units: Vec<UnitIndex>,
}

/// The name of an index, and the units of the index.
pub(crate) struct Named {
    /// The name shown to users.
    pub(crate) text: String,
    /// The units of the index.
    pub(crate) units: Vec<UnitIndex>,
}

/// An index that could be compared, but neither the index nor its table has pages, so there is nothing to compare.
pub(crate) struct Empty {
    /// Object ID of the table.
    pub(crate) object_id: i32,
    /// Index ID.
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
        let has_pages = table.iter().chain(index).any(has_pages);
        match (Builder { database, object_id, index_id, table, index, has_pages }).build(self.plans.len()) {
            Ok(None) => self.empty.push(Empty { object_id, index_id }),
            Ok(Some((plan, work))) => {
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

    /// How to hash the rows of a unit, with one entry per plan.
    pub(crate) fn work(&self, unit: UnitIndex) -> &[UnitPlan] {
        self.work.get(unit as usize).map_or(&[], Vec::as_slice)
    }

    /// Indexes that cannot be compared, and why.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (&Named, &Reason)> {
        self.left_out.iter().map(|(name, reason)| (name, reason))
    }
}

impl Empty {
    /// The display name: `schema.table.index`.
    pub(crate) fn name(&self, database: &Database) -> String {
        index_full_name(database, self.object_id, self.index_id)
    }

    /// The in-row units of the index, and those of its table.
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
