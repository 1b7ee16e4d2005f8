//! Compares identity columns with their current identity value, as CHECKIDENT with NORESEED reports it (--identity).
//!
//! A row may legally have a value beyond the current identity value: SET IDENTITY_INSERT and RESEED cause this. The
//! value is reported, because the next inserted rows may receive values that other rows already have, but it is never a
//! finding.

use catalog::{Database, Identity, Rowset, Stored};
use findings::registry::limits::{self, Reason};
use findings::{Finding, IdentityResult};
use format::types::xtype;
use sums::spill::TempStore;
use sums::wire::wire;
use sums::{ByPlan, CheckSums, Merge, PerUnit, sums};

use crate::basis::meaning::Meaning;
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{UnitIndex, Units};
use crate::page::rowsets::{are_readable, units_of};
use crate::sweep::context::Context;
use crate::sweep::damage::{lacks_file, partly_known_units};
use crate::sweep::row_check::{Row, RowCheck, Stage};
use crate::values::{Column, is_sparse_and_padded};

/// How to check one identity column.
pub(crate) struct Plan {
    result: IdentityResult,
    units: Vec<UnitIndex>,
    /// Why the column cannot be checked; `None` if it can.
    obstacle: Option<Reason>,
}

/// The plans for all identity columns.
#[derive(Default)]
pub(crate) struct Plans {
    plans: Vec<Plan>,
    work: PerUnit<Option<(usize, Column)>>,
}

sums! {
    /// For each plan, the lowest and the highest value and the number of unreadable values: those of one thread, or of all
    /// threads after merging.
    #[derive(Default)]
    pub(crate) struct Sums {
        plans: ByPlan<Seen>,
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    range: Option<(i64, i64)>,
    unread: u64,
}

impl Seen {
    fn add(&mut self, (low, high): (i64, i64)) {
        let (lowest, highest) = self.range.unwrap_or((low, high));
        self.range = Some((lowest.min(low), highest.max(high)));
    }
}

impl Plans {
    /// Plans for the identity columns of all tables.
    pub(crate) fn new(database: &Database, units: &Units) -> Self {
        let mut plans = Self { work: PerUnit::new(units.list().len()), ..Self::default() };
        for identity in &database.identities {
            let table: Vec<&Rowset> = database.table_rowsets(identity.table_id).collect();
            if table.is_empty() {
                // Without rowsets, the object is a view or a type rather than a table.
                continue;
            }
            let units = units_of(database, &table);
            let columns = columns(&table, identity, units.len());
            let obstacle = match columns {
                Ok(columns) => {
                    for (unit, column) in units.iter().zip(columns) {
                        if let Some(work) = plans.work.get_mut(*unit as usize) {
                            *work = Some((plans.plans.len(), column));
                        }
                    }
                    None
                }
                Err(reason) => Some(reason),
            };
            plans.plans.push(Plan { result: result(database, identity), units, obstacle });
        }
        plans
    }
}

fn columns(table: &[&Rowset], identity: &Identity, units: usize) -> Result<Vec<Column>, Reason> {
    identity.mark.ok_or(&limits::IDENTITY_MARK)?;
    are_readable(table.iter().copied())?;
    if units != table.len() {
        return Err((&limits::ROWS_NOT_IN_FILES).into());
    }
    let column = |rowset: &&Rowset| {
        let column = rowset.layout.column(identity.column_id).ok_or(&limits::IDENTITY_COLUMN)?;
        if column.is_vardecimal() || is_sparse_and_padded(column) {
            return Err((&limits::IDENTITY_COLUMN_FORM).into());
        }
        Ok(Column::of_table(column))
    };
    table.iter().map(column).collect()
}

fn result(database: &Database, identity: &Identity) -> IdentityResult {
    let columns = database.columns.get(&identity.table_id);
    let column = columns.and_then(|columns| columns.iter().find(|column| column.id == identity.column_id));
    IdentityResult {
        table_id: identity.table_id,
        table: database.object_name(identity.table_id),
        column: column.map(|column| column.name.clone()).unwrap_or_default(),
        mark: identity.mark,
        ..IdentityResult::default()
    }
}

wire!(Seen { range, unread });

impl Merge for Seen {
    fn merge(&mut self, other: Self) {
        let Self { range, unread } = other;
        self.unread.merge(unread);
        range.into_iter().for_each(|range| self.add(range));
    }
}

impl CheckSums for Sums {
    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        &self.plans
    }
}

impl RowCheck for Plans {
    type Sums = Sums;
    type Scratch = ();
    type Rest = ();
    const STAGE: Stage = Stage::Beyond;

    fn sums(&self, _units: usize) -> Sums {
        Sums::default()
    }

    fn wants(&self, _context: &Context<'_>, unit: UnitIndex) -> bool {
        matches!(self.work.get(unit as usize), Some(Some(_)))
    }

    fn meaning(&self, _: UnitIndex, _: &mut Meaning<'_>) {
        // The plans have no names, so the sums of a run with this check are never used again.
    }

    fn row(
        &self,
        _context: &Context<'_>,
        of_row: &Row<'_>,
        (): (),
        (sums, ()): (&mut Sums, &mut ()),
        _findings: &mut Vec<Finding>,
    ) {
        row(self, of_row, sums);
    }

    fn settle(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Sums, to: &mut Results<'_>) {
        to.outcome.beyond.identities = reckon(self, context, swept, sums, to);
    }
}

fn row(plans: &Plans, row: &Row<'_>, sums: &mut Sums) {
    let Row { unit, ref record, locator: Some(_), .. } = *row else { return };
    let Some(Some((plan, column))) = plans.work.get(unit as usize) else { return };
    let seen = sums.plans.get_mut(*plan);
    let value = match (column.value(record), column.column.info.xtype) {
        (Stored::Plain(bytes), xtype::DECIMAL | xtype::NUMERIC) => catalog::decimal(bytes),
        (Stored::Plain(bytes), kind) => Some(catalog::integer(bytes, kind != xtype::TINYINT)),
        _ => None,
    };
    match value {
        Some(value) => seen.add((value, value)),
        None => seen.unread += 1,
    }
}

/// Evaluates all identity columns in scope, after the sweep.
fn reckon(
    plans: &Plans,
    context: &Context<'_>,
    swept: &Tallies,
    sums: &mut Sums,
    Results { findings, coverage, .. }: &mut Results<'_>,
) -> Vec<IdentityResult> {
    if plans.plans.is_empty() {
        return Vec::new();
    }
    let damaged = partly_known_units(context, swept, findings);
    let mut results = Vec::new();
    for (at, plan) in plans.plans.iter().enumerate() {
        if !context.constraints_in_scope(&plan.units) {
            continue;
        }
        let Seen { range, unread } = sums.plans.get(at);
        let obstacle = match &plan.obstacle {
            Some(reason) => Some(reason.clone()),
            None if lacks_file(context, &plan.units) => Some((&limits::PAGES_FILE_NOT_GIVEN).into()),
            None if plan.units.iter().any(|unit| damaged.contains(unit)) => Some((&limits::IDENTITY_TABLE).into()),
            None if !context.is_clean() => Some((&limits::IDENTITY_LOG).into()),
            None if unread > 0 => Some((&limits::IDENTITY_VALUES).into()),
            None => None,
        };
        match obstacle {
            Some(reason) => {
                let scope = format!("{}.{}", plan.result.table, plan.result.column);
                coverage.note_as(limits::IDENTITY_VALUES.what, reason, context.place_in(&plan.units, scope), 1);
            }
            None => results.push(plan.result.clone().with(range)),
        }
    }
    results.sort_by(|a, b| (&a.table, &a.column).cmp(&(&b.table, &b.column)));
    results
}
