//! Partitions: checks that each row of a partitioned heap or index is in the partition that its partition function
//! determines (8984, 8988).
//!
//! For most rows, two comparisons with the boundaries of their own partition are enough. The rows themselves show
//! whether a boundary value belongs to the partition on its left or on its right: if all rows equal to a boundary are
//! on one side, the function is defined for this side. No real file was available to show how boundaries are stored, so
//! the rows must confirm the boundaries: if most rows contradict them, no row is reported.

mod plan;

use std::cmp::Ordering;

use catalog::{Boundary, Stored};
use findings::registry::{self, limits};
use findings::{Coverage, Finding, Value};
use format::key::compare_values;
use format::same_shape::Rows;
use sums::spill::TempStore;
use sums::{ByPlan, CheckSums, Merge, sums};

use crate::basis::meaning::{Meaning, PlanNames};
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{UnitIndex, Units};
use crate::sweep::context::Context;
use crate::sweep::row_check::{Handled, Row, RowCheck, RowPage, Stage};
use crate::values::Column;

pub(crate) use plan::Plans;
use plan::UnitPlan;

sums! {
    /// The results of one thread, or the merged results of all threads, for each partitioned heap or index.
    #[derive(Default)]
    pub(crate) struct Sums {
        plans: ByPlan<Seen>,
    }
}

sums! {
    #[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
    struct Seen {
        /// Rows whose value is between the boundaries of their partition.
        inside: u64,
        /// Rows whose value equals the lower boundary of their partition, as with RANGE RIGHT.
        on_low: u64,
        /// Rows whose value equals the upper boundary of their partition, as with RANGE LEFT.
        on_high: u64,
        /// Rows whose value is outside the boundaries of their partition.
        outside: u64,
        /// Rows whose value is not in the record, or whose value can be compared with a boundary only by the rules of a
        /// collation.
        undecided: u64,
    }
}

/// The position of a value relative to the boundaries of a partition function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Between two boundaries: the value belongs to this partition, counted from 1.
    Partition(usize),
    /// The value equals this boundary, counted from 1. It belongs to the partition with the same number or to the next
    /// partition, depending on the partition function.
    Boundary(usize),
}

/// The side of a boundary on which the rows equal to the boundary were found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Left,
    Right,
    /// No row was found that is equal to a boundary.
    NotSeen,
    /// Some rows equal to a boundary are on its left, others on its right.
    Both,
}

impl Seen {
    fn side(self) -> Side {
        match (self.on_low, self.on_high) {
            (0, 0) => Side::NotSeen,
            (0, _) => Side::Left,
            (_, 0) => Side::Right,
            _ => Side::Both,
        }
    }

    /// Whether most rows contradict the decoded boundaries, so that the boundaries must be wrong.
    fn is_contradicted(self) -> bool {
        self.outside > self.inside + self.on_low + self.on_high
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
        self.work(unit).is_some()
    }

    fn names(&self, _: &Units, to: &mut PlanNames<'_>) {
        self.plans().iter().for_each(|plan| to.add(&plan.name));
    }

    fn meaning(&self, unit: UnitIndex, to: &mut Meaning<'_>) {
        self.work(unit).iter().for_each(|work| work.add_to(to));
    }

    fn page(&self, _: &Context<'_>, page: &RowPage<'_>, sums: &mut Sums, (): &mut ()) -> Handled<()> {
        let Some(work) = self.work(page.unit) else { return Handled::ALL };
        match together(work, page.rows) {
            Some(seen) => {
                sums.plans.get_mut(work.plan).merge(seen);
                Handled::ALL
            }
            None => Handled::NOTHING,
        }
    }

    fn row(
        &self,
        context: &Context<'_>,
        of_row: &Row<'_>,
        (): (),
        (sums, ()): (&mut Sums, &mut ()),
        findings: &mut Vec<Finding>,
    ) {
        row(self, context, of_row, sums, findings);
    }

    fn settle(&self, context: &Context<'_>, _swept: &mut Tallies, sums: &mut Sums, to: &mut Results<'_>) {
        note(self, context, sums, to.coverage);
    }

    fn proven(&self, context: &Context<'_>, sums: &Sums, finding: Finding, coverage: &mut Coverage) -> Option<Finding> {
        proven(self, context, sums, finding, coverage)
    }
}

/// Counts the live rows of a page by the position of their values relative to the boundaries of the partition. Returns
/// `None`, so that the rows are checked one by one, in three cases: the column is not in the fixed part, the column is
/// NULL in some row, or some row is not certainly in its partition.
fn together(work: &UnitPlan, rows: Rows<'_>) -> Option<Seen> {
    let Column { column, fixed_length, .. } = &work.column;
    let (offset, length, null_bit) = (column.leaf_offset.unsigned_abs(), (*fixed_length)?, column.leaf_null_bit);
    let has_column = rows.has_column(null_bit) && rows.has_fixed(offset, length);
    if !has_column || rows.nulls_of(null_bit).is_some() {
        return None;
    }
    let mut seen = Seen::default();
    let are_live = rows.are_live().into_iter().flatten().copied().chain(std::iter::repeat(true));
    for (value, _) in rows.slices(offset, length).zip(are_live).filter(|(_, is_live)| *is_live) {
        match standing(work, Some(value))? {
            Placement::Inside => seen.inside += 1,
            Placement::OnLow => seen.on_low += 1,
            Placement::OnHigh => seen.on_high += 1,
            Placement::Outside(_) => return None,
        }
    }
    Some(seen)
}

fn row(plans: &Plans, context: &Context<'_>, row: &Row<'_>, sums: &mut Sums, findings: &mut Vec<Finding>) {
    let Row { unit, at, ref record, locator: Some(locator), .. } = *row else { return };
    let Some(work) = plans.work(unit) else { return };
    let seen = sums.plans.get_mut(work.plan);
    let null_bit = work.column.column.leaf_null_bit;
    let value = match work.column.value(record) {
        _ if row.doubts().any(|(of, _)| of == null_bit) => {
            seen.undecided += 1;
            return;
        }
        Stored::Null => None,
        Stored::Plain(bytes) => Some(bytes),
        Stored::Absent | Stored::Complex(_) => {
            seen.undecided += 1;
            return;
        }
    };
    match standing(work, value) {
        None => seen.undecided += 1,
        Some(Placement::Inside) => seen.inside += 1,
        Some(Placement::OnLow) => seen.on_low += 1,
        Some(Placement::OnHigh) => seen.on_high += 1,
        Some(Placement::Outside(place)) => {
            seen.outside += 1;
            let unit = context.units.get(unit);
            findings.extend(unit.into_iter().flat_map(|unit| {
                let head = Finding::new(&registry::PARTITION_WRONG).owner(unit.owner).at_record(at);
                let head = match place {
                    Place::Partition(number) => head.number("expected", number as i64),
                    Place::Boundary(number) => head.number(BOUNDARY, number as i64),
                };
                let detail = Finding::new(&registry::PARTITION_WRONG_DETAIL).owner(unit.owner).at_record(at);
                let detail = match place {
                    Place::Partition(_) => detail,
                    Place::Boundary(number) => detail.number(BOUNDARY, number as i64),
                };
                let identity = work.identity(record, locator);
                [
                    head.number("partition", work.partition as i64),
                    detail.text_value("record", at.to_string()).text_value("identity", identity),
                ]
            }));
        }
    }
}

/// The name under which a finding about a row stores the number of the boundary that the row's value equals. The number
/// is removed when it is known to which side of a boundary equal values belong.
const BOUNDARY: &str = "boundary";

/// The place of a row relative to the boundaries of its partition.
enum Placement {
    Inside,
    OnLow,
    OnHigh,
    Outside(Place),
}

/// The position of a value relative to the boundaries of the partition in which its row was found; `None` if the
/// comparison with a boundary gives no certain result.
fn standing(work: &UnitPlan, value: Option<&[u8]>) -> Option<Placement> {
    let low = work.partition.checked_sub(2).and_then(|at| work.boundaries.get(at));
    let high = work.boundaries.get(work.partition - 1);
    let to_low = low.map_or(Some(Ordering::Greater), |low| compare(work, value, low))?;
    let to_high = high.map_or(Some(Ordering::Less), |high| compare(work, value, high))?;
    Some(match (to_low, to_high) {
        (Ordering::Greater, Ordering::Less) => Placement::Inside,
        (Ordering::Equal, _) => Placement::OnLow,
        (_, Ordering::Equal) => Placement::OnHigh,
        _ => Placement::Outside(place(work, value)?),
    })
}

fn compare(work: &UnitPlan, value: Option<&[u8]>, boundary: &Boundary) -> Option<Ordering> {
    Some(match (value, boundary.value.as_deref()) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(value), Some(boundary)) => compare_values(value, boundary, work.order)?,
    })
}

/// Finds the position of a value among all boundaries. `None` if the comparison with a boundary gives no certain
/// result.
fn place(work: &UnitPlan, value: Option<&[u8]>) -> Option<Place> {
    let (mut low, mut high) = (0, work.boundaries.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match compare(work, value, work.boundaries.get(middle)?)? {
            Ordering::Equal => return Some(Place::Boundary(middle + 1)),
            Ordering::Greater => low = middle + 1,
            Ordering::Less => high = middle,
        }
    }
    Some(Place::Partition(low + 1))
}

/// The subject of notes about rows whose partition is not verified.
const WHAT: &str = limits::PARTITION_ORDER.what;

/// Reports, after the sweep, what could not be verified.
fn note(plans: &Plans, context: &Context<'_>, sums: &mut Sums, coverage: &mut Coverage) {
    for (name, units, reason) in plans.left_out() {
        if units.iter().filter_map(|unit| context.units.get(*unit)).any(|unit| context.in_scope(unit)) {
            coverage.note_as(WHAT, reason.clone(), context.place_in(units, name), units.len() as u64);
        }
    }
    for (at, plan) in plans.plans().iter().enumerate() {
        let seen = sums.plans.get(at);
        if seen.undecided > 0 {
            coverage.note(&limits::PARTITION_ORDER, &plan.name, seen.undecided);
        }
        if seen.side() == Side::Both {
            coverage.note(&limits::PARTITION_SIDE, &plan.name, seen.on_low + seen.on_high);
        }
        if seen.is_contradicted() {
            coverage.note(&limits::PARTITION_CONTRADICTED, &plan.name, seen.outside);
        }
    }
}

/// Decides, once all rows have been seen, whether a finding of the sweep is proven. Returns the finding in its final
/// form; `None` if it is not proven.
fn proven(
    plans: &Plans,
    context: &Context<'_>,
    sums: &Sums,
    mut finding: Finding,
    coverage: &mut Coverage,
) -> Option<Finding> {
    let is_head = finding.check == &registry::PARTITION_WRONG;
    if !is_head && finding.check != &registry::PARTITION_WRONG_DETAIL {
        return Some(finding);
    }
    let unit = finding.owner.and_then(|owner| context.units.index_of(owner.alloc_unit))?;
    let plan = plans.work(unit)?.plan;
    let seen = Some(sums.plans.get(plan)).filter(|seen| !seen.is_contradicted())?;
    let Some(at) = finding.evidence.iter().position(|(name, _)| *name == BOUNDARY) else { return Some(finding) };
    let (_, value) = finding.evidence.remove(at);
    let next = match seen.side() {
        Side::Left => 0,
        Side::Right => 1,
        Side::NotSeen | Side::Both => {
            let name = plans.plans().get(plan).map_or("", |plan| plan.name.as_str());
            coverage.note(&limits::PARTITION_WRONG_OR_SIDE, name, u64::from(is_head));
            return None;
        }
    };
    if let (true, Value::Number(number)) = (is_head, value) {
        finding.evidence.insert(at, ("expected", Value::Number(number + next)));
    }
    Some(finding)
}

#[cfg(test)]
mod tests;
