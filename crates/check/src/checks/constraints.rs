//! CHECK and FOREIGN KEY constraints. With --constraints, the rows are checked against the constraints that the engine
//! trusts. With --constraints=all, they are also checked against untrusted constraints.
//!
//! A CHECK constraint is evaluated when the sweep passes a row. The row violates it if the condition is certainly
//! FALSE, but not if it is UNKNOWN. A foreign key involves two tables, so it is checked after the sweep
//! ([`foreign_key`]).

mod foreign_key;
mod key;
mod plan;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use findings::registry::limits::{self, Limit};
use findings::{ConstraintResult, Coverage, Finding, Owner, registry};
use format::RecordId;
use sums::spill::TempStore;
use sums::wire::wire;
use sums::{ByPlan, CheckSums, Merge, sums};

use crate::basis::ledger::FindingCollector;
use crate::basis::meaning::Meaning;
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;
use crate::sweep::context::Context;
use crate::sweep::damage::{lacks_file, partly_known_units};
use crate::sweep::row_check::{Row, RowCheck, Stage};
use crate::values::ValueScratch;
use crate::values::budget::Purse;

pub(crate) use plan::Plans;
use plan::{Plan, RowRule};

/// Limit on the violating rows that are listed per constraint: the number that CHECKCONSTRAINTS returns without
/// ALL_ERRORMSGS. All violating rows are counted.
const MAX_LISTED: usize = 200;

sums! {
    /// The results of one thread, or the merged results of all threads, for each constraint.
    #[derive(Default)]
    pub(crate) struct Sums {
        plans: ByPlan<Verdict>,
    }
}

/// Scratch space for evaluating conditions; reused from row to row.
#[derive(Default)]
pub(crate) struct Scratch {
    room: ValueScratch,
    purse: Purse,
}

/// Why it is uncertain whether a row satisfies a constraint: a limit, and the value to insert into the limit's text.
type Undecided = (&'static Limit, Cow<'static, str>);

/// The result of checking rows against one constraint.
#[derive(Clone, Default, Debug)]
pub(crate) struct Verdict {
    /// Number of rows checked.
    rows: u64,
    /// Number of rows that violate the constraint.
    violations: u64,
    /// The first violating rows, each with the condition that CHECKCONSTRAINTS would print to find the row again.
    listed: BTreeMap<RecordId, String>,
    /// Rows with an uncertain result, by reason.
    undecided: BTreeMap<Undecided, u64>,
}

impl Verdict {
    fn violation(&mut self, at: RecordId, place: impl FnOnce() -> String) {
        self.violations += 1;
        let is_early = self.listed.last_key_value().is_none_or(|(last, _)| at < *last);
        if self.listed.len() < MAX_LISTED || is_early {
            self.listed.insert(at, place());
            self.truncate();
        }
    }

    fn truncate(&mut self) {
        while self.listed.len() > MAX_LISTED {
            self.listed.pop_last();
        }
    }
}

wire!(Verdict { rows, violations, listed, undecided });

impl Merge for Verdict {
    fn merge(&mut self, other: Self) {
        let Self { rows, violations, listed, undecided } = other;
        self.rows.merge(rows);
        self.violations.merge(violations);
        self.listed.extend(listed);
        self.truncate();
        Merge::merge(&mut self.undecided, undecided);
    }
}

impl CheckSums for Sums {
    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        &self.plans
    }
}

impl RowCheck for Plans {
    type Sums = Sums;
    type Scratch = Scratch;
    type Rest = ();
    const STAGE: Stage = Stage::Beyond;

    fn sums(&self, _units: usize) -> Sums {
        Sums::default()
    }

    fn wants(&self, _context: &Context<'_>, unit: UnitIndex) -> bool {
        !self.work(unit).is_empty()
    }

    fn meaning(&self, _: UnitIndex, _: &mut Meaning<'_>) {
        // The plans have no names, so the sums of a run with this check are never used again.
    }

    fn row(
        &self,
        _context: &Context<'_>,
        of_row: &Row<'_>,
        (): (),
        (sums, scratch): (&mut Sums, &mut Scratch),
        _findings: &mut Vec<Finding>,
    ) {
        row(self, of_row, sums, scratch);
    }

    fn settle(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Sums, to: &mut Results<'_>) {
        to.outcome.beyond.constraints = reckon(self, context, swept, sums, to);
    }
}

fn row(plans: &Plans, row: &Row<'_>, sums: &mut Sums, scratch: &mut Scratch) {
    let Row { unit, at, ref record, locator: Some(_), .. } = *row else { return };
    let work = plans.work(unit);
    for (place, work) in work.iter().enumerate() {
        scratch.room.allow(scratch.purse.left(at.page, place, work.share));
        let truth = work.formula.truth(record, &mut scratch.room);
        scratch.purse.put_back(place, work.share, scratch.room.allowed());
        let verdict = sums.plans.get_mut(work.plan);
        verdict.rows += 1;
        match truth {
            Ok(Some(false)) => verdict.violation(at, || key::place(&work.shown, record)),
            Ok(_) => {}
            Err(undecided) if undecided.is_too_expensive() => {
                *verdict.undecided.entry((&limits::EXPRESSION_TOO_EXPENSIVE, Cow::default())).or_default() += 1;
            }
            Err(undecided) => {
                *verdict.undecided.entry((&limits::CONSTRAINT_UNCERTAIN, undecided.reason.into())).or_default() += 1;
            }
        }
    }
}

/// Checks the foreign keys and reports the results of all constraints, after the sweep.
fn reckon(
    plans: &Plans,
    context: &Context<'_>,
    swept: &Tallies,
    sums: &mut Sums,
    Results { findings, coverage, .. }: &mut Results<'_>,
) -> Vec<ConstraintResult> {
    let mut results = Vec::new();
    for (named, reason) in plans.left_out() {
        if context.constraints_in_scope(&named.units) {
            results.push(named.result.not_verified(reason.clone(), coverage, 1));
        }
    }
    if plans.plans().is_empty() {
        return results;
    }
    let damaged = partly_known_units(context, swept, findings);
    let places = foreign_key::Places::of(context, swept, plans.plans().iter());
    for (at, plan) in plans.plans().iter().enumerate() {
        if !context.constraints_in_scope(&plan.units) {
            continue;
        }
        if !plan.is_wanted {
            results.push(plan.result.clone());
            continue;
        }
        let verdict = match obstacle(context, plan, &damaged) {
            Some(reason) => {
                results.push(plan.result.not_verified(reason, coverage, 1));
                continue;
            }
            None => match &plan.demand {
                RowRule::Condition => std::mem::take(sums.plans.get_mut(at)),
                RowRule::KeyReference(key) => foreign_key::verdict(context, swept, plan, key, &places),
            },
        };
        results.push(settle(context, plan, verdict, findings, coverage));
    }
    results.sort_by(|a, b| (&a.table, &a.name).cmp(&(&b.table, &b.name)));
    results
}

/// The limit that prevents a verdict on a constraint although its rows are readable; `None` if there is no obstacle.
fn obstacle(context: &Context<'_>, plan: &Plan, damaged: &HashSet<UnitIndex>) -> Option<&'static Limit> {
    let database = context.database;
    if !database.units_are_complete() || !database.layouts_are_complete() {
        return Some(&limits::CONSTRAINT_CATALOG);
    }
    if plan.all_units().any(|unit| lacks_file(context, [&unit])) {
        return Some(&limits::PAGES_FILE_NOT_GIVEN);
    }
    if plan.all_units().any(|unit| damaged.contains(&unit)) {
        return Some(&limits::CONSTRAINT_TABLE);
    }
    let is_in_scope = |unit| context.units.get(unit).is_some_and(|unit| context.in_scope(unit));
    (!plan.all_units().all(is_in_scope)).then_some(&limits::CONSTRAINT_OUT_OF_SCOPE)
}

fn settle(
    context: &Context<'_>,
    plan: &Plan,
    verdict: Verdict,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) -> ConstraintResult {
    let check = match plan.demand {
        RowRule::Condition => &registry::CHECK_VIOLATED,
        RowRule::KeyReference(_) => &registry::FOREIGN_KEY_VIOLATED,
    };
    let unit = plan.units.first().and_then(|unit| context.units.get(*unit));
    let owner = unit.map_or(Owner::unknown(format::AllocUnitId(0)), |unit| unit.owner);
    findings.extend(verdict.listed.into_iter().map(|(at, place)| {
        let finding = Finding::new(check)
            .owner(owner)
            .at_record(at)
            .text_value("table", &plan.result.table)
            .text_value("constraint", &plan.result.name)
            .text_value("standing", plan.result.standing())
            .text_value("record", at.to_string())
            .text_value("where", place)
            .number("rows", verdict.violations.cast_signed());
        match &plan.demand {
            RowRule::KeyReference(key) => finding.text_value("referenced", &key.referenced),
            RowRule::Condition => finding,
        }
    }));
    let mut result = plan.result.clone();
    (result.rows, result.violations, result.is_verified) = (verdict.rows, verdict.violations, true);
    for ((limit, detail), count) in verdict.undecided {
        result = result.not_verified(limit.with(&[&detail]), coverage, count);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::PageId;

    #[test]
    fn the_first_violations_are_listed_whatever_thread_saw_them() {
        let at = |page: u32| RecordId { page: PageId::new(1, page), slot: 0 };
        let violations = |pages: &mut dyn Iterator<Item = u32>| {
            let mut verdict = Verdict::default();
            pages.for_each(|page| verdict.violation(at(page), || page.to_string()));
            verdict
        };
        let mut odd = violations(&mut (0..1000).filter(|page| page % 2 == 1));
        odd.merge(violations(&mut (0..1000).rev().filter(|page| page % 2 == 0)));
        assert_eq!(odd.violations, 1000);
        let expected: Vec<RecordId> = (0..MAX_LISTED as u32).map(at).collect();
        assert_eq!(odd.listed.into_keys().collect::<Vec<_>>(), expected);
    }
}
