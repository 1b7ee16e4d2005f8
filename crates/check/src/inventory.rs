//! What was seen of each rowset: rows and pages as counted, never as the catalog says.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Database, UnitKind};

use crate::context::Context;
use crate::report::{RowsetCounts, UnitTotals};
use crate::tallies::Tallies;
use crate::units::UnitIndex;

/// The rowsets in scope, by object, index and partition.
pub(crate) fn rowsets(context: &Context<'_>, swept: &Tallies) -> Vec<RowsetCounts> {
    let database = context.database;
    let extents = extents_by_unit(context);
    let in_memory = database.memory_optimized_tables();
    let mut list: Vec<RowsetCounts> = database
        .rowsets
        .iter()
        .filter(|rowset| {
            let units = || rowset.units.iter().filter_map(|unit| context.units.get(*unit as UnitIndex));
            context.options.scope == crate::Scope::Allocation
                || units().any(|unit| context.in_scope(unit))
                || rowset.units.is_empty() && context.options.scope == crate::Scope::Database
        })
        .map(|rowset| {
            let mut counts = names(database, rowset, &in_memory);
            for &at in &rowset.units {
                let (Some(tally), Some(unit)) = (swept.units.get(at), database.units.get(at)) else { continue };
                let iam = context.survey.iam_pages.get(at).copied().unwrap_or_default();
                counts.iam_pages += iam;
                match unit.kind {
                    UnitKind::Lob => counts.lob_pages += tally.pages(),
                    UnitKind::Overflow => counts.overflow_pages += tally.pages(),
                    _ => {
                        counts.data_pages += tally.data_pages;
                        counts.index_pages += tally.index_pages;
                        counts.rows += tally.rows;
                        counts.ghost_rows += tally.ghosts;
                        counts.forwarded_rows += tally.forwarded;
                    }
                }
                // CHECKALLOC's listing alone shows them.
                if context.options.scope != crate::Scope::Allocation {
                    continue;
                }
                let (extents, singles) = extents.get(&(at as UnitIndex)).copied().unwrap_or_default();
                counts.units.push(UnitTotals {
                    alloc_unit: unit.id,
                    type_name: unit.kind.message_name(),
                    first_iam: unit.first_iam,
                    root: unit.root,
                    data_pages: unit.data_pages,
                    used_pages: singles,
                    extents,
                });
            }
            counts
        })
        .collect();
    list.sort_by_key(|counts| (counts.object_id, counts.index_id, counts.partition, counts.partition_id));
    list
}

fn names(database: &Database, rowset: &catalog::Rowset, in_memory: &BTreeSet<i32>) -> RowsetCounts {
    let object = database.objects.get(&rowset.object_id);
    let index = database.indexes.get(&(rowset.object_id, rowset.index_id));
    RowsetCounts {
        object_id: rowset.object_id,
        schema: object.map_or_else(|| "dbo".to_owned(), |object| database.schema_name(object).to_owned()),
        name: object.map_or_else(|| format!("object ID {}", rowset.object_id), |object| object.name.clone()),
        type_code: object.map(|object| object.type_code.clone()).unwrap_or_default(),
        index_id: rowset.index_id,
        index_name: index.map(|index| index.name.clone()).unwrap_or_default(),
        partition: rowset.partition,
        partition_id: rowset.id,
        memory_optimized: in_memory.contains(&rowset.object_id),
        ..RowsetCounts::default()
    }
}

/// Dedicated extents, and pages in use (IAM pages included), by unit.
fn extents_by_unit(context: &Context<'_>) -> BTreeMap<UnitIndex, (u64, u64)> {
    let mut totals: BTreeMap<UnitIndex, (u64, u64)> = BTreeMap::new();
    for file in &context.survey.files {
        for extent in 0..file.extent_count() {
            if let Some(unit) = file.extent_owner(extent) {
                totals.entry(unit).or_default().0 += 1;
            }
        }
        for page in file.claimed_pages(0..file.pages) {
            let used = matches!(file.allocation(page), crate::survey::Allocation::Used(_));
            if let (true, Some(unit)) = (used, file.owner(page)) {
                totals.entry(unit).or_default().1 += 1;
            }
        }
    }
    totals
}
