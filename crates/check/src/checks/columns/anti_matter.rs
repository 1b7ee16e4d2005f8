//! The anti-matter column, in which an online index build marks rows that were deleted during the build (messages 5228,
//! 5229). The column exists only during the build. Since SQL Server 2017 a build can be paused, and nothing in the
//! files shows that a build is paused.

use catalog::{Database, Level, Rowset, RowsetColumn, Stored};
use findings::registry::{self, limits};
use findings::{Coverage, Finding, Owner, Place};
use format::bytes::unsigned;
use format::types::xtype;

use super::RowLook;
use crate::basis::ledger::FindingCollector;
use crate::basis::units::Units;
use crate::page::rowsets::{anti_matter_column, can_be_paused};

/// Returns the anti-matter column of a nonclustered index. `None` if there is no such column, or if its values need not
/// be zero because a build of the index can be paused.
pub(super) fn of_index(database: &Database, rowset: &Rowset) -> Option<RowsetColumn> {
    anti_matter_column(rowset).filter(|_| rowset.index_id > 1 && !can_be_paused(database)).cloned()
}

/// Checks that no heap or clustered index has an anti-matter column.
pub(crate) fn metadata(database: &Database, units: &Units, findings: &mut FindingCollector, coverage: &mut Coverage) {
    for rowset in
        database.rowsets.iter().filter(|rowset| rowset.owner_type == 1 && anti_matter_column(rowset).is_some())
    {
        let unit = rowset.units.iter().find_map(|unit| database.units.get(*unit));
        let owner = unit.map_or(Owner::unknown(format::AllocUnitId(0)), |unit| units.owner_of(unit.id));
        if can_be_paused(database) {
            let name = database.object_name(rowset.object_id);
            let scope = Place::of(rowset.object_id, format!("{name}, index ID {}", rowset.index_id));
            coverage.note_as("anti-matter columns", &limits::INDEX_BUILD_PAUSED, scope, 0);
        } else if rowset.index_id <= 1 {
            findings.push(Finding::new(&registry::ANTI_MATTER_COLUMN).owner(owner));
        }
    }
}

impl RowLook<'_, '_> {
    /// Checks that the index row is not marked as deleted, because only a running build may leave such a mark.
    pub(super) fn anti_matter(&mut self, column: &RowsetColumn) {
        let Stored::Plain(bytes) = column.stored(Level::Leaf, self.record) else { return };
        let value = match column.info.xtype {
            xtype::BIT => unsigned(bytes) >> column.leaf_bit.min(7) & 1,
            _ => unsigned(bytes),
        };
        if value != 0 {
            let finding = self.finding(&registry::ANTI_MATTER_ROW);
            self.findings.push(finding.number("value", value.cast_signed()));
        }
    }
}
