//! Persisted computed columns (2537): the stored value must equal the result of the column's definition.
//!
//! CHECKDB makes this check only WITH EXTENDED_LOGICAL_CHECKS, because its evaluation is slow; here the check takes
//! about ten nanoseconds per row.

mod together;

use catalog::{Database, Stored, UnitKind};
use expr::Undecided;
use findings::registry::limits::{self, Reason};
use findings::{Coverage, Finding, registry};
use format::record::Record;
use sums::spill::TempStore;
use sums::{ByPlan, CheckSums, PerUnit, sums};

use crate::basis::meaning::{Meaning, PlanNames, meaning};
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{UnitIndex, Units};
use crate::survey::Survey;
use crate::sweep::context::Context;
use crate::sweep::row_check::{Handled, Row, RowCheck, RowPage};
use crate::values::budget::{self, Purse};
use crate::values::{Column, Expressions, Formula, ValueScratch, is_zero_decimal};

/// A persisted computed column of a rowset.
struct Persisted {
    /// Display name: `schema.table.column`.
    name: String,
    id: u32,
    column: Column,
    formula: Formula,
    /// How to compute the column for all rows of a page together; `None` if that is impossible.
    together: Option<together::BatchPlan>,
    /// Index of the column's counts in `Sums::values`.
    counter: usize,
    /// Evaluation steps that the column may use per page.
    share: u64,
}

meaning!(Persisted { id, column, formula, share; plans counter; without name, together });

/// The persisted computed columns of all tables.
#[derive(Default)]
pub(crate) struct Plans {
    /// The columns of each unit. Only units that have pages have entries.
    units: PerUnit<Vec<Persisted>>,
    counters: usize,
    /// Columns that cannot be computed, each with its unit and the reason.
    left_out: Vec<(String, UnitIndex, Reason)>,
}

sums! {
    /// The results of one thread, or the merged results of all threads.
    #[derive(Default)]
    pub(crate) struct Sums {
        /// Counts of values, by the counter of their column.
        values: ByPlan<Values>,
    }
}

/// Scratch space for computing values; reused from row to row.
#[derive(Default)]
pub(crate) struct Scratch {
    room: ValueScratch,
    purse: Purse,
    /// Scratch space for computing the values of all rows of a page together.
    page: together::BatchScratch,
}

sums! {
    /// Numbers of a column's values, by the outcome of their computation.
    #[derive(Clone, Copy, Default, Debug)]
    struct Values {
        known: u64,
        /// Values for which the result of the definition is uncertain.
        uncertain: u64,
        too_expensive: u64,
    }
}

impl Plans {
    /// Finds the persisted computed columns of all tables that have pages.
    pub(crate) fn new(database: &Database, units: &Units, survey: &Survey) -> Self {
        let mut plans = Self { units: PerUnit::new(units.list().len()), counters: 0, left_out: Vec::new() };
        for rowset in database.rowsets.iter().filter(|rowset| rowset.index_id <= 1) {
            let in_row = |unit: &&usize| database.units.get(**unit).is_some_and(|unit| unit.kind == UnitKind::InRow);
            let unit = rowset.units.iter().find(in_row).map(|unit| *unit as UnitIndex);
            let Some(unit) = unit.filter(|unit| survey.has_pages(*unit)) else { continue };
            let columns = database.columns.get(&rowset.object_id).into_iter().flatten();
            for computed in columns.filter(|column| column.is_computed()) {
                let Some(stored) = rowset.layout.column(computed.id) else { continue };
                let name = format!("{}.{}", database.object_name(rowset.object_id), computed.name);
                match (Expressions { database, rowset }).computed_column(computed.id, stored.info) {
                    Ok(formula) => {
                        let (column, counter) = (Column::of_table(stored), plans.counters);
                        plans.counters += 1;
                        let together = together::BatchPlan::of(&column, &formula);
                        if let Some(list) = plans.units.get_mut(unit as usize) {
                            let share = 0;
                            list.push(Persisted { name, id: computed.id, column, formula, together, counter, share });
                        }
                    }
                    Err(reason) => plans.left_out.push((name, unit, reason)),
                }
            }
        }
        for (_, columns) in plans.units.touched_mut() {
            let share = budget::share(columns.iter().filter(|column| column.formula.takes_steps()).count());
            columns.iter_mut().for_each(|column| column.share = share);
        }
        plans
    }

    fn of(&self, unit: UnitIndex) -> &[Persisted] {
        self.units.get(unit as usize).map_or(&[], Vec::as_slice)
    }
}

impl CheckSums for Sums {
    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        &self.values
    }
}

impl RowCheck for Plans {
    type Sums = Sums;
    type Scratch = Scratch;
    type Rest = ();

    fn sums(&self, _units: usize) -> Sums {
        Sums::default()
    }

    fn wants(&self, _context: &Context<'_>, unit: UnitIndex) -> bool {
        !self.of(unit).is_empty()
    }

    fn names(&self, units: &Units, to: &mut PlanNames<'_>) {
        let named = |(at, columns): (usize, &Vec<Persisted>)| {
            let unit = units.get(at as UnitIndex).map(|unit| unit.id);
            columns.iter().map(|column| (column.counter, (unit, column.id))).collect::<Vec<_>>()
        };
        let mut names: Vec<_> = self.units.touched().flat_map(named).collect();
        names.sort_unstable_by_key(|(counter, _)| *counter);
        names.iter().for_each(|(_, name)| to.add(name));
    }

    fn meaning(&self, unit: UnitIndex, to: &mut Meaning<'_>) {
        self.of(unit).iter().for_each(|column| column.add_to(to));
    }

    fn page(&self, _: &Context<'_>, page: &RowPage<'_>, sums: &mut Sums, scratch: &mut Scratch) -> Handled<()> {
        if together::page(self, page.unit, page.rows, sums, scratch) { Handled::ALL } else { Handled::NOTHING }
    }

    fn row(
        &self,
        context: &Context<'_>,
        of_row: &Row<'_>,
        (): (),
        (sums, scratch): (&mut Sums, &mut Scratch),
        findings: &mut Vec<Finding>,
    ) {
        row(self, context, of_row, (sums, scratch), findings);
    }

    fn settle(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Sums, to: &mut Results<'_>) {
        note(self, context, swept, sums, to.coverage);
    }
}

fn row(
    plans: &Plans,
    context: &Context<'_>,
    row: &Row<'_>,
    (sums, scratch): (&mut Sums, &mut Scratch),
    findings: &mut Vec<Finding>,
) {
    let Row { unit, at, ref record, .. } = *row;
    let columns = plans.of(unit);
    for (place, column) in columns.iter().enumerate() {
        let reads = |null_bit| column.formula.reads(null_bit) || column.column.column.leaf_null_bit == null_bit;
        let verdict = match row.doubts().any(|(null_bit, _)| reads(null_bit)) {
            true => Ok(None),
            false => {
                scratch.room.allow(scratch.purse.left(at.page, place, column.share));
                let verdict = column.holds(record, &mut scratch.room);
                scratch.purse.put_back(place, column.share, scratch.room.allowed());
                verdict
            }
        };
        let values = sums.values.get_mut(column.counter);
        match verdict {
            Ok(Some(_)) => values.known += 1,
            Err(undecided) if undecided.is_too_expensive() => values.too_expensive += 1,
            Ok(None) | Err(_) => values.uncertain += 1,
        }
        if let (Ok(Some(false)), Some(unit)) = (verdict, context.units.get(unit)) {
            let finding = Finding::new(&registry::COMPUTED_VALUE).owner(unit.owner).at_record(at);
            findings.push(finding.number("column", column.id));
        }
    }
}

impl Persisted {
    /// Whether the value that the row stores equals the result of the definition. `None` if the stored value is
    /// unknown; an error if the result of the definition is uncertain.
    fn holds(&self, record: &Record<'_>, room: &mut ValueScratch) -> Result<Option<bool>, Undecided> {
        let computed = self.formula.value(record, room)?;
        Ok(match (self.column.value(record), computed) {
            (Stored::Null, computed) => Some(computed.is_none()),
            (Stored::Plain(_), None) => Some(false),
            (Stored::Plain(stored), Some(computed)) => {
                let info = self.formula.target;
                let both_are_zero = is_zero_decimal(info, stored) && is_zero_decimal(info, computed);
                Some(stored == computed || both_are_zero)
            }
            (Stored::Absent | Stored::Complex(_), _) => None,
        })
    }
}

/// Notes, after the sweep, which columns and values were not verified.
fn note(plans: &Plans, context: &Context<'_>, swept: &Tallies, sums: &Sums, coverage: &mut Coverage) {
    let what = limits::COMPUTED_UNCERTAIN.what;
    let in_scope = |unit: UnitIndex| context.units.get(unit).is_some_and(|unit| context.in_scope(unit));
    for (name, unit, reason) in plans.left_out.iter().filter(|(_, unit, _)| in_scope(*unit)) {
        let rows = swept.units.get(*unit as usize).map_or(0, |tally| tally.rows);
        if rows > 0 {
            coverage.note_as(what, reason.clone(), context.place_in(&[*unit], name), rows);
        }
    }
    for (unit, column) in
        plans.units.touched().flat_map(|(unit, columns)| columns.iter().map(move |column| (unit, column)))
    {
        let place = || context.place_in(&[unit as UnitIndex], &column.name);
        let values = sums.values.get(column.counter);
        if values.uncertain > 0 {
            coverage.note(&limits::COMPUTED_UNCERTAIN, place(), values.uncertain);
        }
        if values.too_expensive > 0 {
            coverage.note_as(what, &limits::EXPRESSION_TOO_EXPENSIVE, place(), values.too_expensive);
        }
    }
}
