//! Determines from the catalog, once before the sweep, which constraints can be checked and how.

use catalog::{Constraint, ConstraintKind, Database, Rowset};
use findings::ConstraintResult;
use findings::registry::limits::{self, Reason};
use format::types::{TypeInfo, fixed_length, xtype};
use sums::PerUnit;

use crate::basis::units::{UnitIndex, Units};
use crate::page::rowsets::{are_readable, units_of};
use crate::survey::Survey;
use crate::values::budget;
use crate::values::{Column, Expressions, Formula, is_sparse_and_padded};

/// The name of a column, and the column.
pub(crate) type Named = (String, Column);

/// What a constraint requires of rows.
pub(crate) enum RowRule {
    /// A condition that the sweep evaluates for each row.
    Condition,
    /// A matching row in another table, as a foreign key requires.
    KeyReference(KeyReference),
}

/// A foreign key.
pub(crate) struct KeyReference {
    /// For each unit of the referencing table, the referencing columns.
    pub(crate) from: Vec<(UnitIndex, Vec<Named>)>,
    /// For each unit of the referenced table, the referenced columns.
    pub(crate) to: Vec<(UnitIndex, Vec<Named>)>,
    /// The name of the referenced table.
    pub(crate) referenced: String,
}

/// A constraint that can be checked.
pub(crate) struct Plan {
    /// The result without counts: the constraint's table, name and status.
    pub(crate) result: ConstraintResult,
    /// Whether rows are checked: either the engine trusts the constraint, or the caller requested all constraints.
    pub(crate) is_wanted: bool,
    /// Units of the table that has the constraint.
    pub(crate) units: Vec<UnitIndex>,
    /// The rule for rows.
    pub(crate) demand: RowRule,
}

impl Plan {
    /// The units of all tables that the constraint involves.
    pub(crate) fn all_units(&self) -> impl Iterator<Item = UnitIndex> {
        let referenced = match &self.demand {
            RowRule::KeyReference(key) => key.to.as_slice(),
            RowRule::Condition => &[],
        };
        self.units.iter().copied().chain(referenced.iter().map(|(unit, _)| *unit))
    }
}

/// A condition to evaluate for the rows of a unit.
pub(crate) struct UnitPlan {
    /// Index of the constraint's plan.
    pub(crate) plan: usize,
    /// The condition.
    pub(crate) formula: Formula,
    /// The columns that the condition names, which are printed for a violating row.
    pub(crate) shown: Vec<Named>,
    /// Steps that the evaluation may use per page.
    pub(crate) share: u64,
}

/// A constraint that cannot be checked.
pub(crate) struct LeftOut {
    /// The result without counts: the constraint's table, name and status.
    pub(crate) result: ConstraintResult,
    /// Units of the constraint's table.
    pub(crate) units: Vec<UnitIndex>,
}

/// The plans for all constraints of a database.
#[derive(Default)]
pub(crate) struct Plans {
    plans: Vec<Plan>,
    work: PerUnit<Vec<UnitPlan>>,
    left_out: Vec<(LeftOut, Reason)>,
}

impl Plans {
    /// Makes the plans for all constraints. With `all`, the rows are also checked against constraints that the engine
    /// does not trust.
    pub(crate) fn new(database: &Database, units: &Units, survey: &Survey, all: bool) -> Self {
        let mut plans = Self { work: PerUnit::new(units.list().len()), ..Self::default() };
        for constraint in &database.constraints {
            let table = rowsets_of(database, constraint.table_id);
            let result = ConstraintResult {
                table: database.object_name(constraint.table_id),
                name: constraint.name.clone(),
                type_name: constraint.type_name(),
                is_trusted: constraint.is_trusted(),
                is_enabled: constraint.is_enabled(),
                ..ConstraintResult::default()
            };
            let units = units_of(database, &table);
            let is_wanted = all || constraint.is_trusted();
            match demand(database, constraint, &table, (plans.plans.len(), is_wanted)) {
                Ok((demand, work)) => {
                    // Units without pages are left out: a database may have a hundred thousand tables, most of them
                    // empty.
                    for (unit, work) in work.into_iter().filter(|(unit, _)| survey.has_pages(*unit)) {
                        if let Some(of_unit) = plans.work.get_mut(unit as usize) {
                            of_unit.push(work);
                        }
                    }
                    plans.plans.push(Plan { result, is_wanted, units, demand });
                }
                Err(reason) => plans.left_out.push((LeftOut { result, units }, reason)),
            }
        }
        for (_, work) in plans.work.touched_mut() {
            let share = budget::share(work.iter().filter(|work| work.formula.takes_steps()).count());
            work.iter_mut().for_each(|work| work.share = share);
        }
        plans
    }

    /// The plans.
    pub(crate) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// The conditions to evaluate for the rows of a unit.
    pub(crate) fn work(&self, unit: UnitIndex) -> &[UnitPlan] {
        self.work.get(unit as usize).map_or(&[], Vec::as_slice)
    }

    /// Constraints that cannot be checked, and why.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (&LeftOut, &Reason)> {
        self.left_out.iter().map(|(left_out, reason)| (left_out, reason))
    }
}

/// The partitions of a table's heap or clustered index.
fn rowsets_of(database: &Database, object_id: i32) -> Vec<&Rowset> {
    database.table_rowsets(object_id).collect()
}

type Demanded = (RowRule, Vec<(UnitIndex, UnitPlan)>);

fn demand(
    database: &Database,
    constraint: &Constraint,
    table: &[&Rowset],
    (plan, is_wanted): (usize, bool),
) -> Result<Demanded, Reason> {
    if constraint.has_unknown_status() {
        return Err(limits::CONSTRAINT_STATUS.with(&[&format_args!("{:x}", constraint.status)]));
    }
    if !is_wanted {
        return Ok((RowRule::Condition, Vec::new()));
    }
    rows_are_at_hand(database, table)?;
    match &constraint.kind {
        ConstraintKind::Check => {
            let mut work = Vec::new();
            for rowset in table {
                let unit = units_of(database, &[rowset]);
                let condition = condition(database, constraint, rowset, plan)?;
                work.extend(unit.into_iter().zip([condition]));
            }
            Ok((RowRule::Condition, work))
        }
        ConstraintKind::ForeignKey { referenced_id, columns } => {
            let referenced = rowsets_of(database, *referenced_id);
            if columns.is_empty() {
                return Err((&limits::CONSTRAINT_COLUMNS).into());
            }
            rows_are_at_hand(database, &referenced).map_err(|reason| reason.about("the table that it refers to"))?;
            let (from, to): (Vec<u32>, Vec<u32>) = columns.iter().copied().unzip();
            let key = KeyReference {
                from: key_columns(database, table, &from)?,
                to: key_columns(database, &referenced, &to)?,
                referenced: database.object_name(*referenced_id),
            };
            have_equal_types(&key)?;
            Ok((RowRule::KeyReference(key), Vec::new()))
        }
    }
}

/// Checks that the rows of a table are in the data files and in a form that can be decoded.
fn rows_are_at_hand(database: &Database, table: &[&Rowset]) -> Result<(), Reason> {
    are_readable(table.iter().copied())?;
    if table.is_empty() || units_of(database, table).len() != table.len() {
        return Err((&limits::ROWS_NOT_IN_FILES).into());
    }
    Ok(())
}

fn condition(database: &Database, constraint: &Constraint, rowset: &Rowset, plan: usize) -> Result<UnitPlan, Reason> {
    let formula = Expressions { database, rowset }.check(constraint.id)?;
    let shown = formula.columns().map(|(name, column)| (name.to_owned(), column.clone())).collect();
    Ok(UnitPlan { plan, formula, shown, share: 0 })
}

fn key_columns(database: &Database, table: &[&Rowset], ids: &[u32]) -> Result<Vec<(UnitIndex, Vec<Named>)>, Reason> {
    let mut found = Vec::new();
    for rowset in table {
        let columns = ids.iter().map(|id| key_column(database, rowset, *id)).collect::<Result<Vec<_>, _>>()?;
        found.extend(units_of(database, &[rowset]).into_iter().zip([columns]));
    }
    Ok(found)
}

fn key_column(database: &Database, rowset: &Rowset, id: u32) -> Result<Named, Reason> {
    let known = database.columns.get(&rowset.object_id).and_then(|columns| columns.iter().find(|known| known.id == id));
    let name = known.map_or_else(|| format!("column ID {id}"), |known| known.name.clone());
    let column = rowset.layout.column(id).ok_or_else(|| limits::CONSTRAINT_COLUMN_NOT_STORED.with(&[&name]))?;
    let is_vardecimal = fixed_length(column.info).is_some() && column.leaf_offset < 0 && !column.is_sparse();
    if !is_comparable(column.info) || is_vardecimal || is_sparse_and_padded(column) {
        return Err(limits::CONSTRAINT_COLUMN_TYPE.with(&[&name, &column.info.declaration()]));
    }
    Ok((name, Column::of_table(column)))
}

/// Whether values of the type are stored in the row and can be compared for equality.
fn is_comparable(info: TypeInfo) -> bool {
    match info.xtype {
        xtype::VARCHAR | xtype::NVARCHAR | xtype::VARBINARY => !matches!(info.length, 0 | 0xFFFF),
        xtype::CHAR | xtype::NCHAR | xtype::BINARY | xtype::TIMESTAMP => true,
        _ => fixed_length(info).is_some(),
    }
}

/// Checks that the columns on both sides have equal types, as SQL Server requires. If they differ, the constraint is
/// not checked.
fn have_equal_types(key: &KeyReference) -> Result<(), Reason> {
    let kind = |column: &Column| {
        let info = column.column.info;
        let xtype = if info.xtype == xtype::NUMERIC { xtype::DECIMAL } else { info.xtype };
        (xtype, info.precision, info.scale, column.column.collation)
    };
    let sides = || key.from.iter().chain(&key.to).map(|(_, columns)| columns);
    let Some(first) = sides().next() else { return Ok(()) };
    for columns in sides() {
        for ((name, expected), (_, column)) in first.iter().zip(columns) {
            if kind(expected) != kind(column) {
                return Err(limits::CONSTRAINT_TYPES_DIFFER.with(&[name]));
            }
        }
    }
    Ok(())
}
