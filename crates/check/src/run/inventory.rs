//! Rows and pages of each rowset as counted by the run; counts in the catalog are never used.

use std::collections::BTreeMap;

use catalog::{Rowset, UnitKind};
use findings::{RowsetCounts, UnitFileTotals, UnitTotals};
use format::allocation::EXTENT_PAGES;

use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;
use crate::sweep::context::Context;

/// The rowsets in scope, sorted by object, index and partition.
pub(crate) fn rowsets(context: &Context<'_>, swept: &Tallies) -> Vec<RowsetCounts> {
    let database = context.database;
    let mut extents = match context.options.scope {
        findings::Scope::Allocation => extents_by_unit(context),
        // Only CHECKALLOC lists extents, so no other run counts them.
        _ => BTreeMap::new(),
    };
    let in_memory = database.memory_optimized_tables();
    let mut in_order: Vec<&Rowset> = database
        .rowsets
        .iter()
        .filter(|rowset| {
            let units = || rowset.units.iter().filter_map(|unit| context.units.get(*unit as UnitIndex));
            context.options.scope == findings::Scope::Allocation
                || units().any(|unit| context.in_scope(unit))
                || rowset.units.is_empty() && context.options.scope == findings::Scope::Database
        })
        .collect();
    in_order.sort_unstable_by_key(|rowset| (rowset.object_id, rowset.index_id, rowset.partition, rowset.id));
    in_order
        .into_iter()
        .map(|rowset| {
            let mut counts = RowsetCounts::named(database, rowset, &in_memory);
            for &at in &rowset.units {
                let (Some(tally), Some(unit)) = (swept.units.get(at), database.units.get(at)) else { continue };
                let iam = context.survey.iam_pages.get(at).copied().unwrap_or_default();
                counts.iam_pages += iam;
                counts.is_open |= tally.open_pages > 0;
                counts.lacks_file |= context.survey.partial_units.contains(&(at as UnitIndex));
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
                if context.options.scope != findings::Scope::Allocation {
                    continue;
                }
                let files = extents.remove(&(at as UnitIndex)).unwrap_or_default();
                counts.units.push(UnitTotals {
                    alloc_unit: unit.id,
                    type_name: unit.kind.message_name(),
                    first_iam: unit.first_iam,
                    root: unit.root,
                    data_pages: unit.data_pages,
                    used_pages: files.iter().map(|file| file.used_pages).sum(),
                    extents: files.iter().map(|file| file.extents).sum(),
                    files,
                });
            }
            // Counts would include only some of the rows and pages.
            if counts.is_open { counts.uncounted() } else { counts }
        })
        .collect()
}

/// For each unit, its extents in each file.
fn extents_by_unit(context: &Context<'_>) -> BTreeMap<UnitIndex, Vec<UnitFileTotals>> {
    let mut totals: BTreeMap<UnitIndex, Vec<UnitFileTotals>> = BTreeMap::new();
    for file in &context.survey.files {
        let mut of_file: BTreeMap<UnitIndex, UnitFileTotals> = BTreeMap::new();
        for extent in 0..file.extent_count() {
            if let Some(unit) = file.extent_owner(extent) {
                of_file.entry(unit).or_default().extents += 1;
            }
        }
        for page in file.claimed_pages(0..file.pages) {
            let used = matches!(file.allocation(page), crate::survey::Allocation::Used(_));
            if let (true, Some(unit)) = (used, file.owner(page)) {
                let unit = of_file.entry(unit).or_default();
                unit.used_pages += 1;
                unit.mixed_pages += u64::from(file.extent_owner(page / EXTENT_PAGES).is_none());
            }
        }
        for (unit, of_unit) in of_file {
            totals.entry(unit).or_default().push(UnitFileTotals { file_id: file.file_id, ..of_unit });
        }
    }
    totals
}
