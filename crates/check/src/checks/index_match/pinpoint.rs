//! Finds the rows of an index and of its table that have no counterpart: 8951 with 8955, 8952 with 8956.
//!
//! Reads the table and the index in passes, then reads the unmatched rows again for their values.

use std::collections::{BTreeMap, BTreeSet};

use catalog::Stored;
use findings::{FileRange, Finding, Owner, registry};
use format::record::Record;
use format::{RecordId, value};
use sums::hash::RowHash;
use sums::wire::{Output, SumsError};

use super::hash::{HashScratch, IndexedAs, standing};
use super::plan::{ComparedColumn, Plan, Plans, UnitPlan};
use super::{PlanSums, far};
use crate::basis::ledger::FindingCollector;
use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;
use crate::page::forwarding::locator_of;
use crate::sweep::Target;
use crate::sweep::context::Context;
use crate::sweep::pinpoint::{PageRange, Unread, each_row, rows_of_page};
use crate::sweep::rounds::{self, Of};
use crate::sweep::unmatched::{Bounds, Side, unmatched};

/// Limit on the unmatched rows that are listed for each side of an index. An index with more unmatched rows has to be
/// rebuilt anyway.
const MAX_LISTED: usize = 20_000;
/// Limit on the bytes of an off-row value that a message shows.
const MAX_SHOWN_BYTES: usize = 1 << 12;

/// Reports the unmatched rows of `plan`, which is at position `plan_index` in the list of plans. Returns whether there
/// are more unmatched rows than are listed.
///
/// # Errors
///
/// [`Unread`] if a page cannot be read. In this case, nothing is reported about rows whose pages could not be read.
pub(crate) fn index_rows(
    (context, plans): (&Context<'_>, &Plans),
    plan: &Plan,
    plan_index: usize,
    (sums, swept): (PlanSums, &Tallies),
    findings: &mut FindingCollector,
) -> Result<bool, Unread> {
    let look = Look::of((context, plans), plan, plan_index);
    let bounds = Bounds::within(context.bytes_for_facts(), sums.table_rows + sums.index_rows, MAX_LISTED);
    // The comparison reads the pages twice, so it reads twice as many bytes.
    let bytes = rounds::bytes_of(swept, plan.table_units.iter().chain(&plan.index_units));
    let unmatched = match context.rounds.filter(|rounds| rounds.are_for(2 * bytes)) {
        None => unmatched(bounds, |visit| look.each(PageRange::ALL, visit))?,
        Some(rounds) => match far::find((rounds, context), plan_index, (&look.units(), bytes), bounds)? {
            Some(unmatched) => unmatched,
            // The tasks must answer first. Until they have answered, the report is not printed.
            None => return Ok(false),
        },
    };
    look.findings(&unmatched.rows, findings)?;
    Ok(unmatched.has_more)
}

/// Answers a question about a plan for one range.
pub(crate) fn answer(
    (context, plans): (&Context<'_>, &Plans),
    of: &Of,
    range: FileRange,
    to: &mut Output<'_>,
) -> Result<bool, SumsError> {
    let (Of::Cells { plan: at } | Of::Rows { plan: at, .. }) = of;
    let Some(plan) = plans.plans().get(*at) else { return Ok(false) };
    far::answer(&Look::of((context, plans), plan, *at), of, PageRange::of_range(range), to).map(|()| true)
}

/// The table and the index of one plan, with the data needed to hash their rows again.
pub(super) struct Look<'a> {
    context: &'a Context<'a>,
    plan: &'a Plan,
    /// Number of indexes that the run compares.
    indexes: usize,
    work: BTreeMap<UnitIndex, &'a UnitPlan>,
}

impl<'a> Look<'a> {
    fn of((context, plans): (&'a Context<'_>, &'a Plans), plan: &'a Plan, plan_index: usize) -> Self {
        let units = plan.table_units.iter().chain(&plan.index_units);
        let work = |unit| plans.work(unit).iter().find(|work| work.plan == plan_index);
        let work = units.filter_map(|unit| Some((*unit, work(*unit)?))).collect();
        Self { context, plan, indexes: plans.plans().len(), work }
    }
}

impl Look<'_> {
    fn units(&self) -> BTreeSet<UnitIndex> {
        self.work.keys().copied().collect()
    }

    /// Calls `visit` with the hash of each row of the table and of the index in a range, in page order.
    pub(super) fn each(&self, range: PageRange, visit: &mut dyn FnMut(Side, RecordId, RowHash)) -> Result<(), Unread> {
        let units = self.units();
        let mut desk = HashScratch::default();
        let mut read = Ok(());
        each_row(self.context, &units, range, |unit, at, record| {
            let (Some(work), Some(locator)) = (self.work.get(&unit), locator_of(at, record)) else { return };
            match standing(self.context, work, record, locator, (&mut desk, self.indexes)) {
                IndexedAs::Indexed(hash) => visit(work.side, at, hash),
                // The sweep was able to hash all rows. So the reason must be an off-row value that the sweep read and
                // that cannot be read now.
                IndexedAs::Unknown => read = Err(Unread),
                IndexedAs::LeftOut | IndexedAs::TooExpensive => {}
            }
        })?;
        read
    }

    /// Creates the findings about the unmatched rows, with the values of these rows.
    fn findings(&self, rows: &[Vec<RecordId>; 2], findings: &mut FindingCollector) -> Result<(), Unread> {
        let mut read = Ok(());
        let (mut target, mut desk) = (Target::default(), HashScratch::default());
        let owner = self.plan.index_units.first().and_then(|unit| self.context.units.get(*unit));
        let owner = owner.map_or(Owner::unknown(format::AllocUnitId(0)), |unit| unit.owner);
        let table = self.context.database.object_name(self.plan.object_id);
        for of_page in rows.iter().flat_map(|rows| rows.chunk_by(|a, b| a.page == b.page)) {
            let Some((page, unit)) = of_page.first().and_then(|at| Some((at.page, self.context.unit_of(at.page)?)))
            else {
                continue;
            };
            let Some(work) = self.work.get(&unit) else { continue };
            let of_rows = rows_of_page(self.context, &mut target, unit, page, &mut |at, record| {
                if of_page.binary_search(&at).is_err() {
                    return;
                }
                let Some(locator) = locator_of(at, record) else { return };
                let (head, detail) = match work.side {
                    Side::Table => (&registry::INDEX_ROW_MISSING, &registry::INDEX_ROW_MISSING_DETAIL),
                    Side::Index => (&registry::INDEX_ROW_SURPLUS, &registry::INDEX_ROW_SURPLUS_DETAIL),
                };
                let (identity, values) = self.texts(work, record, locator, &mut desk);
                let head = Finding::new(head).owner(owner).at_record(at).text_value("table", &table);
                let detail = Finding::new(detail).owner(owner).at_record(at).text_value("record", at.to_string());
                findings.push(head.text_value("index", &self.plan.index_name));
                findings.push(detail.text_value("identity", identity).text_value("values", values));
            });
            read = read.and(of_rows);
        }
        read
    }

    /// The identifying columns of a row and all its values, as messages print them: `a = 1 and b = 'x'`.
    fn texts(
        &self,
        work: &UnitPlan,
        record: &Record<'_>,
        locator: RecordId,
        desk: &mut HashScratch,
    ) -> (String, String) {
        let plan = self.plan;
        let cells = work.cells.iter().zip(&plan.types);
        let values: Vec<String> =
            cells.map(|(cell, info)| self.text(cell, info.is_none(), record, locator, desk)).collect();
        let list = |positions: &mut dyn Iterator<Item = usize>| {
            let pair = |at: usize| Some(format!("{} = {}", plan.names.get(at)?, values.get(at)?));
            positions.filter_map(pair).collect::<Vec<_>>().join(" and ")
        };
        let identity = match plan.identity.is_empty() {
            true => list(&mut (0..plan.types.len()).filter(|at| matches!(plan.types.get(*at), Some(None)))),
            false => list(&mut plan.identity.iter().copied()),
        };
        (identity, list(&mut (0..plan.names.len())))
    }

    fn text(
        &self,
        cell: &ComparedColumn,
        is_locator: bool,
        record: &Record<'_>,
        locator: RecordId,
        desk: &mut HashScratch,
    ) -> String {
        let null = || "NULL".to_owned();
        match cell {
            ComparedColumn::Column(column) => match column.value(record) {
                Stored::Plain(bytes) if is_locator => {
                    RecordId::read(bytes, 0).map_or_else(|| "?".to_owned(), |rid| rid.to_string())
                }
                Stored::Plain(bytes) => value::text(column.column.info, bytes, 0),
                Stored::Complex(pointer) => {
                    let mut shown = Vec::new();
                    let read = desk.reader.read(self.context.source, pointer, u64::MAX, |piece| {
                        shown.extend(piece.iter().take(MAX_SHOWN_BYTES - shown.len()));
                        shown.len() < MAX_SHOWN_BYTES
                    });
                    read.map_or_else(|| "?".to_owned(), |()| value::text(column.column.info, &shown, 0))
                }
                Stored::Null | Stored::Absent => null(),
            },
            ComparedColumn::Computed(formula) => match formula.value(record, &mut desk.room) {
                Ok(Some(bytes)) => value::text(formula.target, bytes, 0),
                _ => null(),
            },
            ComparedColumn::Locator => locator.to_string(),
        }
    }
}
