//! The rows of an index and its table that have no counterpart: 8951 with 8955, 8952 with 8956.
//!
//! Two passes over the table and the index only. The first spreads all rows over cells by their hash: what both sides have
//! cancels, so that only cells with a surplus or a missing row stay. The second keeps the rows of those cells, a small
//! share of the table however large it is, and compares them one by one.

use std::collections::{BTreeMap, BTreeSet};

use catalog::Stored;
use format::record::Record;
use format::{RecordId, value};

use super::{for_each_sound, pages_of};
use crate::context::Context;
use crate::finding::{Finding, Owner};
use crate::hash::Sum;
use crate::index_match::{Cell, Plan, PlanSums, RowHash, Side, Standing, Work, locator_of, standing};
use crate::registry;
use crate::sweep::record;
use crate::units::UnitIndex;
use crate::values::Room;

/// Rows a cell holds on average, at most while the number of cells is within its bounds.
const ROWS_A_CELL: u64 = 64;
/// Bounds of the number of cells; a cell takes 32 bytes.
const CELLS: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 20;

/// A row of a cell that does not cancel.
struct Suspect {
    at: RecordId,
    side: Side,
    identity: String,
    values: String,
}

/// Names the rows without counterpart.
pub(crate) fn index_rows(context: &Context<'_>, plan_index: usize, sums: PlanSums) -> Vec<Finding> {
    let Some(plan) = context.indexes.plans().get(plan_index) else { return Vec::new() };
    let rows = sums.table_rows + sums.index_rows;
    let wanted = (rows / ROWS_A_CELL).clamp(*CELLS.start(), *CELLS.end()).next_power_of_two();
    let units: BTreeSet<UnitIndex> = plan.table_units.iter().chain(&plan.index_units).copied().collect();
    let pages = pages_of(context, &units);
    let each = |visit: &mut dyn FnMut(&Work, RecordId, &Record<'_>, RecordId, RowHash)| {
        for (&unit, pages) in &pages {
            let work: Vec<&Work> = context.indexes.work(unit).iter().filter(|work| work.plan == plan_index).collect();
            for_each_sound(context, unit, pages, |id, page, target| {
                if !crate::sweep::is_leaf_of(context, unit, page) {
                    return;
                }
                for (slot, span) in target.spans().iter().enumerate() {
                    let Some(record) = record(page, *span) else { continue };
                    let at = RecordId { page: id, slot: slot as u16 };
                    let Some(locator) = locator_of(at, &record) else { continue };
                    for work in &work {
                        let standing = standing(&context.hash, work, &record, locator, &mut Room::default());
                        if let Standing::Indexed(hash) = standing {
                            visit(work, at, &record, locator, hash);
                        }
                    }
                }
            });
        }
    };
    let cell_of = |hash: RowHash| (hash.0 & (wanted - 1)) as usize;
    let mut cells = vec![(Sum::default(), Sum::default()); wanted as usize];
    each(&mut |work, _, _, _, hash| {
        if let Some(cell) = cells.get_mut(cell_of(hash)) {
            match work.side {
                Side::Table => cell.0.add(hash.into()),
                Side::Index => cell.1.add(hash.into()),
            }
        }
    });
    let mut suspects: BTreeMap<RowHash, Vec<Suspect>> = BTreeMap::new();
    each(&mut |work, at, record, locator, hash| {
        if cells.get(cell_of(hash)).is_some_and(|(table, index)| table != index) {
            let (identity, values) = texts(plan, work, record, locator);
            suspects.entry(hash).or_default().push(Suspect { at, side: work.side, identity, values });
        }
    });
    let owner = owner(context, plan);
    let table = context.database.object_name(plan.object_id);
    suspects.into_values().flat_map(|group| unmatched(plan, owner, &table, group)).collect()
}

/// Of rows with one hash, those that one side has more of.
fn unmatched(plan: &Plan, owner: Owner, table: &str, group: Vec<Suspect>) -> Vec<Finding> {
    let (mut rows, mut entries): (Vec<_>, Vec<_>) = group.into_iter().partition(|row| row.side == Side::Table);
    let matched = rows.len().min(entries.len());
    rows.sort_by_key(|row| row.at);
    entries.sort_by_key(|row| row.at);
    let surplus = rows.into_iter().skip(matched).chain(entries.into_iter().skip(matched));
    surplus
        .flat_map(|row| {
            let (head, detail) = match row.side {
                Side::Table => (&registry::INDEX_ROW_MISSING, &registry::INDEX_ROW_MISSING_DETAIL),
                Side::Index => (&registry::INDEX_ROW_SURPLUS, &registry::INDEX_ROW_SURPLUS_DETAIL),
            };
            let head = Finding::new(head)
                .owner(owner)
                .at_record(row.at)
                .text_value("table", table)
                .text_value("index", &plan.index_name);
            let detail = Finding::new(detail)
                .owner(owner)
                .at_record(row.at)
                .text_value("record", row.at.to_string())
                .text_value("identity", row.identity)
                .text_value("values", row.values);
            [head, detail]
        })
        .collect()
}

/// The index, by its first partition.
fn owner(context: &Context<'_>, plan: &Plan) -> Owner {
    let unit = plan.index_units.first().and_then(|unit| context.units.get(*unit));
    unit.map_or(Owner::unknown(format::AllocUnitId(0)), |unit| unit.owner)
}

/// How messages print the row's identity and its values: `a = 1 and b = 'x'`.
fn texts(plan: &Plan, work: &Work, record: &Record<'_>, locator: RecordId) -> (String, String) {
    let value = |at: usize| match (work.cells.get(at), plan.types.get(at)) {
        (Some(Cell::Column(column)), Some(info)) => match column.value(record) {
            Stored::Plain(bytes) if column.in_index && info.is_none() => {
                RecordId::read(bytes, 0).map_or_else(|| "?".to_owned(), |rid| rid.to_string())
            }
            Stored::Plain(bytes) => value::text(column.column.info, bytes, 0),
            _ => "NULL".to_owned(),
        },
        (Some(Cell::Computed(formula)), _) => match formula.value(record, &mut Room::default()) {
            Some(Some(bytes)) => value::text(formula.target, bytes, 0),
            _ => "NULL".to_owned(),
        },
        _ => locator.to_string(),
    };
    let list = |positions: &mut dyn Iterator<Item = usize>| {
        let pairs: Vec<String> =
            positions.filter_map(|at| Some(format!("{} = {}", plan.names.get(at)?, value(at)))).collect();
        pairs.join(" and ")
    };
    let values = list(&mut (0..plan.names.len()));
    let identity = match plan.identity.is_empty() {
        true => list(&mut (0..plan.types.len()).filter(|at| matches!(plan.types.get(*at), Some(None)))),
        false => list(&mut plan.identity.iter().copied()),
    };
    (identity, values)
}
