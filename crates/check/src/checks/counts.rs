//! Row and page counts in the catalog. CHECKDB reports only negative counts. UPDATEUSAGE corrects stale counts, which
//! upgraded databases often have (docs/format/README.md#page-counts).
//!
//! In every sound file seen, however, the row count of each rowset is exact. So a row count that differs from the rows
//! found is noted: rows may be lost with a page that the PFS page no longer marks as allocated, and in a heap no other
//! check can detect this loss. The difference proves nothing, so it is not a finding.

use findings::registry::{self, limits};
use findings::{Coverage, Finding};

use crate::basis::ledger::FindingCollector;
use crate::basis::tallies::UnitTally;
use crate::basis::units::{Shape, Unit};
use crate::sweep::context::Context;

/// Notes that a row count differs from the number of rows found, unless bad pages or a stale catalog may explain the
/// difference.
pub(crate) fn note_rows(context: &Context<'_>, unit: &Unit, tally: &UnitTally, coverage: &mut Coverage) {
    let rowset = unit.rowset.and_then(|rowset| context.database.rowsets.get(rowset));
    let Some(rowset) = rowset.filter(|_| matches!(unit.shape, Shape::Heap | Shape::Clustered | Shape::Nonclustered))
    else {
        return;
    };
    let explained = tally.bad_pages > 0 || !context.counts_are_current() || rowset.rows < 0;
    if !explained && rowset.rows.unsigned_abs() != tally.rows {
        // If there are more rows than the catalog counts, only the count is wrong. If there are fewer, rows may be
        // lost.
        let has_more = tally.rows > rowset.rows.unsigned_abs();
        let limit = if has_more { &limits::COUNTS_ROWS_MORE } else { &limits::COUNTS_ROWS_FEWER };
        coverage.note(limit.with(&[&tally.rows, &rowset.rows]), context.place_of(unit), 0);
    }
}

/// Reports negative counts (message 2508).
pub(crate) fn check(context: &Context<'_>, findings: &mut FindingCollector) {
    for unit in context.units.list().iter().filter(|unit| context.in_scope(unit)) {
        let Some(row) = unit.row.and_then(|row| context.database.units.get(row)) else { continue };
        let kind = row.kind.message_name();
        let rowset = unit.rowset.and_then(|rowset| context.database.rowsets.get(rowset));
        let rows = rowset.filter(|_| row.kind == catalog::UnitKind::InRow).map_or(0, |rowset| rowset.rows);
        let pages =
            [(" USED page", row.used_pages), (" RSVD page", row.reserved_pages), (" DATA page", row.data_pages)];
        let counts = pages.map(|(what, count)| (kind, what, count)).into_iter().chain([("", "row", rows)]);
        for (kind, what, _) in counts.filter(|(.., count)| *count < 0) {
            let name = format!("{kind}{what}");
            findings.push(
                Finding::new(&registry::COUNT_INCORRECT)
                    .owner(unit.owner)
                    .text_value("count_name", name)
                    .text_value("object_name", context.database.object_name(unit.owner.object_id)),
            );
        }
    }
}
