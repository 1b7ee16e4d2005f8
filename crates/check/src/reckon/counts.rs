//! Counts that the catalogue keeps. CHECKDB reports them only when they are negative: merely stale ones are what
//! UPDATEUSAGE is for, and upgraded databases have many (format.md 0, rule 7).

use crate::context::Context;
use crate::finding::Finding;
use crate::registry;

/// 2508 for negative counts.
pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for unit in context.units.list().iter().filter(|unit| context.in_scope(unit)) {
        let Some(row) = unit.row.and_then(|row| context.database.units.get(row)) else { continue };
        let kind = row.kind.message_name();
        let mut counts = vec![
            (format!("{kind} USED page"), row.used_pages),
            (format!("{kind} RSVD page"), row.reserved_pages),
            (format!("{kind} DATA page"), row.data_pages),
        ];
        if row.kind == catalog::UnitKind::InRow
            && let Some(rowset) = unit.rowset.and_then(|rowset| context.database.rowsets.get(rowset))
        {
            counts.push(("row".to_owned(), rowset.rows));
        }
        for (name, _) in counts.into_iter().filter(|(_, count)| *count < 0) {
            findings.push(
                Finding::new(&registry::COUNT_INCORRECT)
                    .owner(unit.owner)
                    .text_value("count_name", name)
                    .text_value("object_name", context.database.object_name(unit.owner.object_id)),
            );
        }
    }
}
