//! The comparison phase, called reckon. It compares the sums that the sweep added up. If all sums agree, the database
//! is sound, and no page is read again. If sums differ, the module `pinpoint` reads pages again to find the damage.

use findings::Coverage;
use findings::registry::limits;

use crate::basis::outcome::Results;
use crate::basis::progress::Progress;
use crate::basis::tallies::UnitTally;
use crate::basis::units::UnitIndex;
use crate::checks::{Checks, Sums};
use crate::checks::{columnstore, counts, extended, statistics};
use crate::sweep::check_list::Swept;
use crate::sweep::context::Context;
use crate::sweep::row_check::Stage;

/// Compares the sums that the sweeps of all batches added up.
pub(crate) fn reckon(
    context: &Context<'_>,
    checks: &mut Checks,
    swept: &mut Swept<Sums>,
    to: &mut Results<'_>,
    progress: &dyn Progress,
) {
    progress.phase("compare", 0);
    for unit in context.survey.sharing.iter().filter(|_| swept.tallies.has_unread_shared) {
        if let Some(tally) = swept.tallies.units.get_mut(*unit as usize) {
            tally.unread_pages += 1;
        }
    }
    let mut judged = Vec::new();
    for (index, unit) in (0..).zip(context.units.list()) {
        let Some(tally) = swept.tallies.units.get(index as usize) else { continue };
        if context.in_scope(unit) && can_be_judged(context, index, tally, to.coverage) {
            counts::note_rows(context, unit, tally, to.coverage);
            judged.push(index);
        }
    }
    checks.settle_pages(context, &judged, swept, to);
    if !context.options.physical_only {
        counts::check(context, to.findings);
        // The following checks come last, because they skip all units in which earlier checks found damage.
        checks.settle(Stage::Reckon, context, swept, to);
        extended::reckon(context, &swept.tallies, to.findings, to.coverage);
        statistics::reckon(context, to.coverage);
        columnstore::reckon(context, &mut swept.tallies, to.findings, to.coverage);
    }
}

/// Returns whether each page of a unit was either seen or found to be damaged. If not, a page that seems to be missing
/// may be one of the pages that were not seen. If the result is `false`, every reason for it is noted in `coverage`.
fn can_be_judged(context: &Context<'_>, unit: UnitIndex, tally: &UnitTally, coverage: &mut Coverage) -> bool {
    let Some(row) = context.units.get(unit) else { return false };
    // The name of the unit is built only when it is needed: there may be many units, and few of them need their name.
    let name = || context.place_of(row);
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
    if tally.taken_pages > 0 {
        coverage.note(&limits::PAGES_SHARED, name(), tally.taken_pages);
        judged = false;
    }
    if tally.unread_pages > 0 {
        coverage.note(&limits::PAGES_UNREADABLE, name(), tally.unread_pages);
        judged = false;
    }
    if tally.open_pages > 0 {
        coverage.note(&limits::WINDOW_TABLE_OPEN, name(), tally.open_pages);
        judged = false;
    }
    if tally.unknown_pages > 0 {
        coverage.note(&limits::PAGES_PFS_DAMAGED, name(), tally.unknown_pages);
        judged = false;
    }
    judged
}

#[cfg(test)]
mod tests;
