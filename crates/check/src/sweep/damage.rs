//! Finds units that are damaged or only partly known. Comparing their rows with other rows would prove nothing.

use std::collections::HashSet;

use findings::registry::limits::{self, Limit};

use crate::basis::ledger::{FindingCollector, UnitDamage};
use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;
use crate::sweep::context::Context;

/// Units that are damaged or have rows that could not be decoded.
pub(crate) fn partly_known_units(
    context: &Context<'_>,
    swept: &Tallies,
    findings: &FindingCollector,
) -> HashSet<UnitIndex> {
    let mut units = damaged_units(context, swept, findings);
    let doubtful = swept.units.touched().filter(|(_, tally)| tally.unaudited_rows + tally.doubtful_rows > 0);
    units.extend(doubtful.map(|(at, _)| at as UnitIndex));
    units
}

/// Units with pages that could not be read, or with structural damage.
pub(crate) fn damaged_units(context: &Context<'_>, swept: &Tallies, findings: &FindingCollector) -> HashSet<UnitIndex> {
    let mut damaged: HashSet<UnitIndex> = named(context, findings, |damage| damage.hides_rows).collect();
    damaged.extend(context.survey.partial_units.iter().chain(&context.survey.broken_chains));
    let lost = swept.units.touched().filter(|(_, tally)| tally.lost_pages() + tally.unexplained_forwards > 0);
    damaged.extend(lost.map(|(at, _)| at as UnitIndex));
    damaged
}

/// The limit that says why these units are only partly known: pages in a data file that was not given, pages that a window
/// of time has left, or damage.
pub(crate) fn why_partly_known<'u>(
    context: &Context<'_>,
    swept: &Tallies,
    units: impl IntoIterator<Item = &'u UnitIndex> + Clone,
) -> &'static Limit {
    let is_open = |unit: &UnitIndex| swept.units.get(*unit as usize).is_some_and(|tally| tally.open_pages > 0);
    if lacks_file(context, units.clone()) {
        &limits::INDEX_FILE_NOT_GIVEN
    } else if units.into_iter().any(is_open) {
        &limits::WINDOW_TABLE_OPEN
    } else {
        &limits::INDEX_DAMAGED
    }
}

/// Whether any of these units has pages in a data file that was not given.
pub(crate) fn lacks_file<'u>(context: &Context<'_>, units: impl IntoIterator<Item = &'u UnitIndex>) -> bool {
    units.into_iter().any(|unit| context.survey.partial_units.contains(unit))
}

/// Units of the catalog whose findings are of the kind that `asked` selects.
pub(crate) fn named(
    context: &Context<'_>,
    findings: &FindingCollector,
    asked: fn(UnitDamage) -> bool,
) -> impl Iterator<Item = UnitIndex> {
    findings.units(asked).filter_map(|unit| context.units.index_of(unit))
}
