//! Reckon: do the sums agree? A healthy database ends here; where they differ, pinpoint names the culprits.

use std::collections::BTreeSet;

use crate::checks::{Checks, Sums};
use crate::context::Context;
use crate::coverage::Coverage;
use crate::ledger::Ledger;
use crate::pinpoint;
use crate::progress::Progress;
use crate::registry::limits;
use crate::row_check::{Results, Stage};
use crate::tallies::{Swept, Tallies, UnitTally};
use crate::units::{Shape, UnitIndex};
use crate::{columnstore, counts, extended, heap, tree};

/// Compares the key bounds of a batch, and gives back what they take.
pub(crate) fn bounds(context: &Context<'_>, swept: &mut Tallies, findings: &mut Ledger, progress: &dyn Progress) {
    progress.phase("reckon", 0);
    tree::join_neighbours(context, swept);
    if !context.options.physical_only {
        tree::check_bounds(context, swept, findings);
    }
}

/// Compares what the sweeps of all batches added up.
pub(crate) fn reckon(
    context: &Context<'_>,
    checks: &mut Checks,
    Swept { tallies: swept, sums }: &mut Swept<Sums>,
    to: &mut Results<'_>,
    progress: &dyn Progress,
) {
    progress.phase("reckon", 0);
    let mut suspects = BTreeSet::new();
    for unit in context.survey.sharing.iter().filter(|_| swept.has_unread_shared) {
        if let Some(tally) = swept.units.get_mut(*unit as usize) {
            tally.unread_pages += 1;
        }
    }
    for (at, unit) in context.units.list().iter().enumerate() {
        let index = at as UnitIndex;
        let Some(tally) = swept.units.get(at) else { continue };
        if !context.in_scope(unit) || !can_be_judged(context, index, tally, to.coverage) {
            continue;
        }
        counts::note_rows(context, unit, tally, to.coverage);
        if context.options.physical_only {
            continue;
        }
        let tree_differs = context.checks_tree(unit)
            && match unit.compressed {
                false => !tree::is_sound(context, index, tally),
                true => !tree::chains_agree(tally),
            };
        let forwards_are_known = !unit.compressed && tally.unexplained_forwards == 0;
        let heap_differs = unit.shape == Shape::Heap && forwards_are_known && tally.stubs != tally.forwards;
        if tree_differs || heap_differs {
            suspects.insert(index);
        }
    }
    if !context.options.physical_only {
        tree::note_lost_bounds(context, swept, to.coverage);
    }
    for (unit, stretch) in pinpoint::stretches(context, &suspects) {
        let looked = match context.units.get(unit).is_some_and(|unit| unit.shape == Shape::Heap) {
            true => heap::pinpoint(context, unit, stretch, to.findings),
            false => tree::pinpoint(context, unit, stretch, to.findings),
        };
        if looked.is_err() {
            pinpoint::note_unread(context, unit, swept, to.coverage);
        }
    }
    if !context.options.physical_only {
        counts::check(context, to.findings);
        // Late: what is damaged otherwise is not compared.
        checks.settle(Stage::Reckon, context, swept, sums, to);
        extended::reckon(context, swept, to.findings, to.coverage);
        columnstore::reckon(context, to.findings, to.coverage);
    }
}

/// Whether all pages of a unit were seen, or are known to be damaged: only then can a missing one be told.
fn can_be_judged(context: &Context<'_>, unit: UnitIndex, tally: &UnitTally, coverage: &mut Coverage) -> bool {
    let Some(row) = context.units.get(unit) else { return false };
    // Of many units; few have something to be noted.
    let name = || context.index_name(row);
    let mut judged = true;
    if context.survey.broken_chains.contains(&unit) {
        coverage.note(&limits::TREE_IAM_CHAIN, name(), 1);
        judged = false;
    }
    if context.survey.partial_units.contains(&unit) {
        coverage.note(&limits::PAGES_FILE_NOT_GIVEN, name(), 0);
        judged = false;
    }
    if tally.pages_in_transit > 0 {
        coverage.note(&limits::PAGES_IN_TRANSIT, name(), tally.pages_in_transit);
        judged = false;
    }
    if tally.unexplained_forwards > 0 {
        coverage.note(&limits::HEAP_FORWARDING, name(), tally.unexplained_forwards);
    }
    if tally.taken_pages > 0 {
        coverage.note(&limits::PAGES_SHARED, name(), tally.taken_pages);
        judged = false;
    }
    if tally.unread_pages > 0 {
        coverage.note(&limits::PAGES_UNREADABLE, name(), tally.unread_pages);
        judged = false;
    }
    if tally.unknown_pages > 0 {
        coverage.note(&limits::PAGES_PFS_DAMAGED, name(), tally.unknown_pages);
        judged = false;
    }
    judged
}
