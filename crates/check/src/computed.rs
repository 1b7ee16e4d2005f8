//! Persisted computed columns (2537): the value that a row stores is the one that the column's definition gives for it.
//!
//! CHECKDB makes this check WITH EXTENDED_LOGICAL_CHECKS only, as its evaluation is slow; here it costs some ten
//! nanoseconds a row.

mod together;

use catalog::{Database, Stored, UnitKind};
use format::RecordId;
use format::record::{Record, RecordKind};

use crate::context::Context;
use crate::coverage::Coverage;
use crate::expanded::ColumnDoubt;
use crate::finding::Finding;
use crate::registry;
use crate::sweep::Partial;
use crate::units::{UnitIndex, Units};
use crate::values::{Column, Expressions, Formula, Room, is_zero_decimal};

pub(crate) use together::page;

/// A persisted computed column of a rowset.
struct Persisted {
    /// `schema.table.column`, for people.
    name: String,
    id: u32,
    column: Column,
    formula: Formula,
    /// How it is computed for all rows of a page, if it can be.
    together: Option<together::Together>,
    /// Place among the counters.
    counter: usize,
}

/// The persisted computed columns of all tables.
pub(crate) struct Plans {
    /// By unit ordinal.
    units: Vec<Vec<Persisted>>,
    counters: usize,
    /// Columns that cannot be computed, their unit and why.
    left_out: Vec<(String, UnitIndex, String)>,
}

/// What one thread, or all, saw.
#[derive(Default)]
pub(crate) struct Sums {
    /// Values that were computed, and those that could not be, by counter.
    values: Vec<(u64, u64)>,
    room: Room,
    /// Of the rows of a page.
    page: together::Room,
}

impl Sums {
    /// What it holds, for people and tests.
    pub(crate) fn facts(&self) -> impl std::fmt::Debug + '_ {
        &self.values
    }

    /// Adds what another thread has.
    pub(crate) fn merge(&mut self, other: Self) {
        if self.values.len() < other.values.len() {
            self.values.resize(other.values.len(), (0, 0));
        }
        for (mine, theirs) in self.values.iter_mut().zip(other.values) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
    }
}

impl Plans {
    /// Finds the columns: computed, and stored in the rows of their table.
    pub(crate) fn new(database: &Database, units: &Units) -> Self {
        let mut plans = Self { units: Vec::new(), counters: 0, left_out: Vec::new() };
        plans.units.resize_with(units.list().len(), Vec::new);
        for rowset in database.rowsets.iter().filter(|rowset| rowset.index_id <= 1) {
            let in_row = |unit: &&usize| database.units.get(**unit).is_some_and(|unit| unit.kind == UnitKind::InRow);
            let Some(unit) = rowset.units.iter().find(in_row).map(|unit| *unit as UnitIndex) else { continue };
            let columns = database.columns.get(&rowset.object_id).into_iter().flatten();
            for computed in columns.filter(|column| column.is_computed()) {
                let Some(stored) = rowset.layout.column(computed.id) else { continue };
                let name = format!("{}.{}", database.object_name(rowset.object_id), computed.name);
                match (Expressions { database, rowset }).computed_column(computed.id, stored.info) {
                    Ok(formula) => {
                        let (column, counter) = (Column::of_table(stored), plans.counters);
                        plans.counters += 1;
                        let together = together::Together::of(&column, &formula);
                        if let Some(list) = plans.units.get_mut(unit as usize) {
                            list.push(Persisted { name, id: computed.id, column, formula, together, counter });
                        }
                    }
                    Err(reason) => plans.left_out.push((name, unit, reason)),
                }
            }
        }
        plans
    }

    fn of(&self, unit: UnitIndex) -> &[Persisted] {
        self.units.get(unit as usize).map_or(&[], Vec::as_slice)
    }
}

/// A record of the leaf level of a heap or index, ghosts included, audited.
pub(crate) fn row(
    context: &Context<'_>,
    unit: UnitIndex,
    at: RecordId,
    record: &Record<'_>,
    doubts: impl Iterator<Item = ColumnDoubt> + Clone,
    sums: &mut Sums,
    findings: &mut Vec<Finding>,
) {
    let columns = context.computed.of(unit);
    if columns.is_empty() || !matches!(record.kind(), RecordKind::Primary | RecordKind::Forwarded) {
        return;
    }
    sums.values.resize(context.computed.counters, (0, 0));
    for column in columns {
        let reads = |null_bit| column.formula.reads(null_bit) || column.column.column.leaf_null_bit == null_bit;
        let verdict = match doubts.clone().any(|(null_bit, _)| reads(null_bit)) {
            true => None,
            false => column.holds(record, &mut sums.room),
        };
        if let Some(values) = sums.values.get_mut(column.counter) {
            values.0 += u64::from(verdict.is_some());
            values.1 += u64::from(verdict.is_none());
        }
        if let (Some(false), Some(unit)) = (verdict, context.units.get(unit)) {
            let finding = Finding::new(&registry::COMPUTED_VALUE).owner(unit.owner).at_record(at);
            findings.push(finding.number("column", column.id));
        }
    }
}

impl Persisted {
    /// Whether the row stores what the definition gives; `None` when that is not certain.
    fn holds(&self, record: &Record<'_>, room: &mut Room) -> Option<bool> {
        let computed = self.formula.value(record, room)?;
        match (self.column.value(record), computed) {
            (Stored::Null, computed) => Some(computed.is_none()),
            (Stored::Plain(_), None) => Some(false),
            (Stored::Plain(stored), Some(computed)) => {
                let info = self.formula.target;
                let both_are_zero = is_zero_decimal(info, stored) && is_zero_decimal(info, computed);
                Some(stored == computed || both_are_zero)
            }
            (Stored::Absent | Stored::Complex(_), _) => None,
        }
    }
}

/// After the sweep: what was not verified.
pub(crate) fn reckon(context: &Context<'_>, swept: &Partial, coverage: &mut Coverage) {
    let what = "persisted computed columns";
    let in_scope = |unit: UnitIndex| context.units.get(unit).is_some_and(|unit| context.in_scope(unit));
    for (name, unit, reason) in context.computed.left_out.iter().filter(|(_, unit, _)| in_scope(*unit)) {
        let rows = swept.units.get(*unit as usize).map_or(0, |tally| tally.rows);
        if rows > 0 {
            coverage.note(what, name, reason, rows);
        }
    }
    for column in context.computed.units.iter().flatten() {
        let uncertain = swept.computed.values.get(column.counter).map_or(0, |values| values.1);
        if uncertain > 0 {
            coverage.note(what, &column.name, "rows for which the value is not certain", uncertain);
        }
    }
}
