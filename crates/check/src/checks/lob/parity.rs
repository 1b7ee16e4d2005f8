//! Values of ntext columns must have an even number of bytes (message 2570). For an off-row value, only the row shows
//! the column, and only the root fragment shows the length. So the roots that ntext columns point to are matched with
//! the roots of odd length.

use std::collections::BTreeSet;

use catalog::Database;
use findings::registry::limits;
use findings::{Coverage, Place};
use format::RecordId;
use format::types::{TypeInfo, xtype};
use sums::wire::wire;
use sums::{Merge, sums};

use super::facts::{Expects, InRow};
use super::plan::{Plans, RowsetPlan};
use crate::basis::ledger::FindingCollector;
use crate::page::forwarding::is_live;
use crate::sweep::context::Context;
use crate::sweep::pinpoint::{self, Unread};
use crate::values::purity::impure;

/// Limit on the addresses that a run keeps in each of the two lists. Above this limit, the rows are read a second time.
const MOST: usize = 1 << 17;
/// The most bytes that both lists need per thread.
pub(super) const BYTES_PER_THREAD: u64 = (2 * MOST * size_of::<RecordId>()) as u64;

/// The type of the columns that are checked.
const NTEXT: TypeInfo = TypeInfo { xtype: xtype::NTEXT, length: 16, precision: 0, scale: 0 };

sums! {
    /// The two lists of roots, for units of tables with ntext columns.
    #[derive(Default)]
    pub(super) struct Parity {
        /// Roots that ntext columns point to.
        ntext: Addresses,
        /// Roots of values with an odd number of bytes.
        odd: Addresses,
    }
}

/// A list of addresses. It is kept only if all threads together have at most [`MOST`] addresses, no matter how these
/// are distributed over the threads.
#[derive(Default)]
struct Addresses {
    kept: Vec<RecordId>,
    seen: u64,
}

impl Addresses {
    fn add(&mut self, at: RecordId) {
        self.seen += 1;
        if self.kept.len() < MOST {
            self.kept.push(at);
        }
    }

    fn put_in_order(&mut self) {
        if self.all().is_none() {
            self.kept.clear();
        }
        self.kept.sort_unstable();
    }

    /// All addresses, if all were kept.
    fn all(&self) -> Option<&[RecordId]> {
        (self.seen <= MOST as u64).then_some(&self.kept)
    }
}

wire!(Addresses { kept, seen });

impl Merge for Addresses {
    fn merge(&mut self, other: Self) {
        let Self { kept, seen } = other;
        self.seen.merge(seen);
        if self.all().is_some() {
            self.kept.extend(kept);
        }
    }
}

impl Parity {
    /// Adds a root that an ntext column points to.
    pub(super) fn ntext(&mut self, root: RecordId) {
        self.ntext.add(root);
    }

    /// Adds the root of a value with an odd number of bytes.
    pub(super) fn odd(&mut self, root: RecordId) {
        self.odd.add(root);
    }

    /// Sorts the addresses.
    pub(super) fn put_in_order(&mut self) {
        self.ntext.put_in_order();
        self.odd.put_in_order();
    }

    /// The roots of odd length that an ntext column may point to, in ascending order; `None` if there are too many.
    pub(super) fn suspects(&self) -> Option<Vec<RecordId>> {
        let mut odd = self.odd.all()?.to_vec();
        odd.sort_unstable();
        let Some(ntext) = self.ntext.all() else { return Some(odd) };
        let mut found: Vec<RecordId> = ntext.iter().filter(|root| odd.binary_search(root).is_ok()).copied().collect();
        found.sort_unstable();
        Some(found)
    }
}

/// Reports ntext values of odd length after the sweep, in a rowset whose off-row values are complete.
pub(super) fn reckon(
    context: &Context<'_>,
    (plans, plan): (&Plans, &RowsetPlan),
    suspects: Option<&[RecordId]>,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) -> Result<(), Unread> {
    let Some(unit) = context.units.get(plan.in_row) else { return Ok(()) };
    let Some(rows) = plans.rows(plan.in_row).filter(|rows| rows.has_ntext && context.options.checks_purity()) else {
        return Ok(());
    };
    let Some(suspects) = suspects else {
        let scope = Place::of(unit.owner.object_id, format!("{}: ntext", context.index_name(unit)));
        coverage.note(&limits::COLUMN_NTEXT_TOO_MANY, scope, 0);
        return Ok(());
    };
    if suspects.is_empty() {
        return Ok(());
    }
    pinpoint::each_row(context, &BTreeSet::from([plan.in_row]), pinpoint::PageRange::ALL, |_, at, record| {
        if !is_live(record) {
            return;
        }
        rows.each(record, |seen| {
            if let InRow::Reference(reference) = seen
                && let Expects::Root { ntext: Some(column) } = reference.expects
                && suspects.binary_search(&reference.target).is_ok()
            {
                let column = column_name(context.database, unit.owner.object_id, column);
                findings.push(impure(&column, NTEXT).owner(unit.owner).at_record(at));
            }
        });
    })
}

/// Notes that ntext lengths are not checked in a rowset whose off-row values are damaged.
pub(super) fn note_damaged(context: &Context<'_>, plans: &Plans, plan: &RowsetPlan, coverage: &mut Coverage) {
    let has_ntext = plans.rows(plan.in_row).is_some_and(|rows| rows.has_ntext);
    if let Some(unit) = context.units.get(plan.in_row).filter(|_| has_ntext && context.options.checks_purity()) {
        let scope = Place::of(unit.owner.object_id, format!("{}: ntext", context.index_name(unit)));
        coverage.note(&limits::COLUMN_NTEXT_DAMAGED, scope, 0);
    }
}

fn column_name(database: &Database, object_id: i32, id: u32) -> String {
    let columns = database.columns.get(&object_id).map_or(&[][..], Vec::as_slice);
    let column = columns.iter().find(|column| column.id == id);
    column.map_or_else(|| format!("(column {id})"), |column| column.name.clone())
}
