//! Row and page counts in the catalog. CHECKDB reports them only when they are negative: UPDATEUSAGE corrects stale
//! ones, which upgraded databases often have (docs/format/README.md#page-counts).
//!
//! Yet in every sound file met the row count of each rowset was exact. So a differing count is noted: rows may be lost
//! with a page that the PFS page no longer shows, which no other check of a heap can notice. The difference proves
//! nothing, so it is not a finding.

use crate::context::Context;
use crate::coverage::Coverage;
use crate::finding::Finding;
use crate::ledger::FindingCollector;
use crate::registry::{self, limits};
use crate::tallies::UnitTally;
use crate::units::{Shape, Unit};

/// Notes a row count that differs from the number of rows seen, if nothing else explains the difference.
pub(crate) fn note_rows(context: &Context<'_>, unit: &Unit, tally: &UnitTally, coverage: &mut Coverage) {
    let rowset = unit.rowset.and_then(|rowset| context.database.rowsets.get(rowset));
    let Some(rowset) = rowset.filter(|_| matches!(unit.shape, Shape::Heap | Shape::Clustered | Shape::Nonclustered))
    else {
        return;
    };
    let explained = tally.bad_pages > 0 || !context.counts_are_current() || rowset.rows < 0;
    if !explained && rowset.rows.unsigned_abs() != tally.rows {
        // With more rows than counted, only the count is wrong. With fewer, rows may be lost.
        let has_more = tally.rows > rowset.rows.unsigned_abs();
        let limit = if has_more { &limits::COUNTS_ROWS_MORE } else { &limits::COUNTS_ROWS_FEWER };
        coverage.note(limit.with(&[&tally.rows, &rowset.rows]), context.place_of(unit), 0);
    }
}

/// Reports negative counts (2508).
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
