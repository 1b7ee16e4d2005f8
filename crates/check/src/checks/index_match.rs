//! Compares nonclustered indexes with their table (messages 8951, 8952). For each live row of the table, a keyed hash
//! of the columns that the index has, locator included, is added to one sum. For each row of the index, the same hash
//! is added to another sum. If the sums are equal, the index is correct. Columns are hashed in place, without building
//! index rows.

mod far;
mod form;
mod hash;
mod pinpoint;
mod plan;
mod together;

use catalog::Database;
use findings::registry::limits;
use findings::{Finding, Owner, Place};
use sums::hash::Sum;
use sums::spill::TempStore;
use sums::{ByPlan, CheckSums, sums};

use crate::basis::meaning::{Meaning, PlanNames};
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{UnitIndex, Units};
use crate::sweep::context::Context;
use crate::sweep::damage::{damaged_units, named, why_partly_known};
use crate::sweep::row_check::{Done, Handled, Row, RowCheck, RowPage};
use crate::sweep::unmatched::Side;

use hash::{HashScratch, IndexedAs, standing};
pub(crate) use pinpoint::answer;
pub(crate) use plan::Plans;
use together::Together;

sums! {
    /// For each plan, the sums that one thread adds up, or the merged sums of all threads.
    #[derive(Default)]
    pub(crate) struct Sums {
        plans: ByPlan<PlanSums>,
        /// Bytes of off-row values that were read.
        bytes_read: u64,
    }
}

sums! {
    /// The sums of the table side and of the index side of one index.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
    pub(crate) struct PlanSums {
        table: Sum,
        index: Sum,
        /// Number of table rows that the index's filter does not exclude.
        pub(crate) table_rows: u64,
        /// Number of rows of the index.
        pub(crate) index_rows: u64,
        /// Number of rows that cannot be hashed, because a value cannot be read or the result of an expression is
        /// uncertain.
        unhashed: u64,
        /// Number of rows for which an expression needs more steps than allowed.
        too_expensive: u64,
        /// Number of rows with an off-row value.
        off_row: u64,
    }
}

/// One bit for each plan of a unit: whether the rows of the current page have already been added to the sums of the
/// plan.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Added(u64);

impl Added {
    fn has(self, work: usize) -> bool {
        work < 64 && self.0 & 1 << work != 0
    }
}

impl Sums {
    /// Whether any row has an indexed value off the row. Then the sums depend on the pages of these values, and on the
    /// total size of the files, which limits how much is read. A failed read counts too, although no byte was read.
    pub(crate) fn depend_on_other_pages(&self) -> bool {
        self.plans.iter().any(|plan| plan.off_row > 0)
    }
}

impl CheckSums for Sums {
    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        &self.plans
    }
}

impl RowCheck for Plans {
    type Sums = Sums;
    type Scratch = HashScratch;
    type Rest = Added;

    fn sums(&self, _units: usize) -> Sums {
        Sums::default()
    }

    fn wants(&self, _context: &Context<'_>, unit: UnitIndex) -> bool {
        !self.work(unit).is_empty()
    }

    fn names(&self, _: &Units, to: &mut PlanNames<'_>) {
        self.plans().iter().for_each(|plan| to.add(&(plan.object_id, &plan.index_name)));
    }

    fn meaning(&self, unit: UnitIndex, to: &mut Meaning<'_>) {
        self.work(unit).iter().for_each(|work| work.add_to(to));
    }

    fn page(
        &self,
        context: &Context<'_>,
        of_page: &RowPage<'_>,
        sums: &mut Sums,
        desk: &mut HashScratch,
    ) -> Handled<Added> {
        page(self, context, of_page, sums, desk)
    }

    fn row(
        &self,
        context: &Context<'_>,
        of_row: &Row<'_>,
        added: Added,
        (sums, desk): (&mut Sums, &mut HashScratch),
        _findings: &mut Vec<Finding>,
    ) {
        row(self, context, of_row, added, sums, desk);
    }

    fn settle(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Sums, to: &mut Results<'_>) {
        reckon(self, context, swept, sums, to);
    }
}

/// Adds the rows of a leaf page to the sums of their plans. All rows of the page have the same layout, so they are
/// added together where possible.
fn page(
    plans: &Plans,
    context: &Context<'_>,
    &RowPage { unit, id, rows }: &RowPage<'_>,
    sums: &mut Sums,
    desk: &mut HashScratch,
) -> Handled<Added> {
    let mut handled = Handled::ALL;
    let (mut plain, mut complex) = (Added::default(), Added::default());
    for (at, work) in plans.work(unit).iter().enumerate() {
        let together = work.together.as_ref().filter(|_| at < 64);
        let sum = together.and_then(|together| together.sum(&context.hash, id, rows, desk));
        let Some(Together { sum, rows: indexed, has_complex }) = sum else {
            handled = Handled { plain: Done::Except(plain), complex: Done::Except(complex) };
            continue;
        };
        let sums = sums.plans.get_mut(work.plan);
        match work.side {
            Side::Table => {
                sums.table.add(sum);
                sums.table_rows += indexed;
            }
            Side::Index => {
                sums.index.add(sum);
                sums.index_rows += indexed;
            }
        }
        plain.0 |= 1 << at;
        match has_complex {
            true => complex.0 |= 1 << at,
            false => handled.complex = Done::Except(complex),
        }
    }
    // When a plan is skipped, `handled` records only the plans that were added before it. The result must also contain
    // the plans that were added after it.
    let rest = |done, added| if matches!(done, Done::All) { done } else { Done::Except(added) };
    Handled { plain: rest(handled.plain, plain), complex: rest(handled.complex, complex) }
}

/// Adds a row to the sums of its indexes, except the indexes in `added`, whose sums already include the row.
fn row(plans: &Plans, context: &Context<'_>, row: &Row<'_>, added: Added, sums: &mut Sums, desk: &mut HashScratch) {
    let Row { unit, at, ref record, locator: Some(locator), .. } = *row else { return };
    let work = plans.work(unit);
    let indexes = plans.plans().len();
    for (place, work) in work.iter().enumerate().filter(|(at, _)| !added.has(*at)) {
        let bytes_before = desk.reader.bytes_read;
        let standing = match row.doubts().any(|(null_bit, _)| work.reads(null_bit)) {
            true => {
                desk.has_off_row = false;
                IndexedAs::Unknown
            }
            false if work.share == 0 => standing(context, work, record, locator, (desk, indexes)),
            false => {
                desk.room.allow(desk.purse.left(at.page, place, work.share));
                let standing = standing(context, work, record, locator, (&mut *desk, indexes));
                desk.purse.put_back(place, work.share, desk.room.allowed());
                standing
            }
        };
        // The reader counts the bytes of its thread, which may add up several sums.
        sums.bytes_read += desk.reader.bytes_read - bytes_before;
        let off_row = u64::from(desk.has_off_row);
        let sums = sums.plans.get_mut(work.plan);
        sums.off_row += off_row;
        match (standing, work.side) {
            (IndexedAs::LeftOut, _) => continue,
            (IndexedAs::Unknown, _) => sums.unhashed += 1,
            (IndexedAs::TooExpensive, _) => sums.too_expensive += 1,
            (IndexedAs::Indexed(hash), Side::Table) => sums.table.add(hash.into()),
            (IndexedAs::Indexed(hash), Side::Index) => sums.index.add(hash.into()),
        }
        match work.side {
            Side::Table => sums.table_rows += 1,
            Side::Index => sums.index_rows += 1,
        }
    }
}

/// Compares the sums after the sweep. If the sums of an index differ, the index and its table are read again to find
/// the rows that cause the difference.
fn reckon(plans: &Plans, context: &Context<'_>, swept: &Tallies, of_rows: &Sums, to: &mut Results<'_>) {
    let Results { findings, coverage, outcome } = to;
    let what = limits::INDEX_DAMAGED.what;
    for (name, reason) in plans.left_out() {
        if in_scope(context, &name.units) {
            outcome.indexes_in_scope += 1;
            coverage.note_as(what, reason.clone(), context.place_in(&name.units, &name.text), 1);
        }
    }
    let damaged = damaged_units(context, swept, findings);
    // Damage in the fragments of an off-row value also prevents a comparison.
    let mut damaged_off_row = damaged.clone();
    damaged_off_row.extend(named(context, findings, |damage| damage.is_off_row));
    let describes_indexes =
        |owner: Owner| owner.index_id <= 1 && Database::TABLES_OF_INDEXES.contains(&owner.object_id);
    let damaged_owners = damaged.iter().filter_map(|unit| Some(context.units.get(*unit)?.owner));
    let description_is_damaged = damaged_owners.into_iter().any(describes_indexes);
    for empty in plans.empty() {
        let [index, table] = empty.units(context.database);
        if !in_scope(context, &index) {
            continue;
        }
        outcome.indexes_in_scope += 1;
        // A broken IAM chain may hide pages of the index or of the table, so damaged units do not count as compared.
        match index.iter().chain(&table).any(|unit| damaged.contains(unit)) {
            true => {
                let limit = why_partly_known(context, swept, index.iter().chain(&table));
                coverage.note_as(what, limit, Place::of(empty.object_id, empty.name(context.database)), 1);
            }
            false => outcome.indexes_compared += 1,
        }
    }
    let is_endless = of_rows.bytes_read > hash::most_bytes_off_row(context, plans.plans().len());
    let mut differing = Vec::new();
    for (at, plan) in plans.plans().iter().enumerate() {
        let units = || plan.table_units.iter().chain(&plan.index_units);
        if !in_scope(context, &plan.index_units) {
            continue;
        }
        let sums = of_rows.plans.get(at);
        let place = || context.place_in(&plan.index_units, &plan.name);
        outcome.indexes_in_scope += 1;
        let off_row_is_damaged = sums.off_row > 0 && plan.text_units.iter().any(|unit| damaged_off_row.contains(unit));
        if let rows @ 1.. = unread_rows(swept, units()) {
            coverage.note(&limits::INDEX_ROWS_FORM, place(), rows);
        } else if units().any(|unit| damaged.contains(unit)) || off_row_is_damaged {
            // Like CHECKDB, reports only the root cause: no 8951 for rows that a damaged page has lost.
            let off_row = plan.text_units.iter().filter(|_| off_row_is_damaged);
            coverage.note_as(what, why_partly_known(context, swept, units().chain(off_row)), place(), 1);
        } else if sums.off_row > 0 && is_endless {
            coverage.note(&limits::INDEX_OFF_ROW_ENDLESS, place(), 0);
        } else if sums.too_expensive > 0 {
            coverage.note_as(what, &limits::EXPRESSION_TOO_EXPENSIVE, place(), sums.too_expensive);
        } else if sums.unhashed > 0 {
            coverage.note(&limits::INDEX_ROWS_UNCERTAIN, place(), sums.unhashed);
        } else {
            outcome.indexes_compared += 1;
            outcome.index_rows_compared += sums.index_rows;
            if sums.table != sums.index && description_is_damaged {
                coverage.note(&limits::INDEX_DESCRIPTION_DAMAGED, place(), 1);
            } else if sums.table != sums.index {
                differing.push(at);
            }
        }
    }
    for at in differing {
        let Some(plan) = plans.plans().get(at) else { continue };
        match pinpoint::index_rows((context, plans), plan, at, (of_rows.plans.get(at), swept), findings) {
            Ok(true) => {
                coverage.note(&limits::INDEX_MORE_UNMATCHED, context.place_in(&plan.index_units, &plan.name), 0)
            }
            Ok(false) => {}
            Err(_) => {
                coverage.note_as(what, &limits::PAGES_UNREADABLE, context.place_in(&plan.index_units, &plan.name), 1)
            }
        }
    }
}

fn in_scope(context: &Context<'_>, units: &[UnitIndex]) -> bool {
    units.iter().filter_map(|unit| context.units.get(*unit)).any(|unit| {
        let left_out = context.leaves_out(unit);
        context.in_scope(unit) && !left_out
    })
}

/// The number of rows whose content is unknown.
fn unread_rows<'u>(swept: &Tallies, units: impl Iterator<Item = &'u UnitIndex>) -> u64 {
    units.filter_map(|unit| swept.units.get(*unit as usize)).map(|tally| tally.unaudited_rows).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_depend_on_other_pages_if_any_row_has_an_indexed_value_off_the_row() {
        let mut sums = Sums::default();
        sums.plans.get_mut(3).table_rows = 9;
        assert!(!sums.depend_on_other_pages());
        sums.plans.get_mut(70_000).off_row = 1;
        assert!(sums.depend_on_other_pages(), "even if no byte could be read");
    }
}
