//! The column by which an online build of an index marks rows that were deleted meanwhile (5228, 5229). It is there while
//! the build runs. Since SQL Server 2017 a build can be paused, and nothing of the files tells a paused one.

use catalog::{Database, Level, Rowset, RowsetColumn, Stored, column_status};
use format::bytes::unsigned;
use format::types::xtype;

use super::RowCheck;
use crate::coverage::Coverage;
use crate::finding::{Finding, Owner};
use crate::ledger::Ledger;
use crate::registry::{self, limits};
use crate::units::Units;

/// Internal version of SQL Server 2017.
const VERSION_2017: u16 = 869;

fn column(rowset: &Rowset) -> Option<&RowsetColumn> {
    rowset.layout.columns.iter().find(|column| column.status & column_status::ANTI_MATTER != 0 && !column.is_dropped())
}

fn can_be_paused(database: &Database) -> bool {
    database.boot.as_ref().is_none_or(|boot| boot.version >= VERSION_2017)
}

/// Whether a rowset is perhaps one that a paused build goes on with: a key may have a row, and marks of those deleted.
pub(crate) fn may_be_paused(database: &Database, rowset: &Rowset) -> bool {
    can_be_paused(database) && column(rowset).is_some()
}

/// The column that must be zero in all rows of a nonclustered index.
pub(super) fn of_index(database: &Database, rowset: &Rowset) -> Option<RowsetColumn> {
    column(rowset).filter(|_| rowset.index_id > 1 && !can_be_paused(database)).cloned()
}

/// No table has the column, and no finished index.
pub(crate) fn metadata(database: &Database, units: &Units, findings: &mut Ledger, coverage: &mut Coverage) {
    for rowset in database.rowsets.iter().filter(|rowset| rowset.owner_type == 1 && column(rowset).is_some()) {
        let unit = rowset.units.iter().find_map(|unit| database.units.get(*unit));
        let owner = unit.map_or(Owner::unknown(format::AllocUnitId(0)), |unit| units.owner_of(unit.id));
        if can_be_paused(database) {
            let name = database.object_name(rowset.object_id);
            let scope = format!("{name}, index ID {}", rowset.index_id);
            coverage.note_as("anti-matter columns", &limits::INDEX_BUILD_PAUSED, scope, 0);
        } else if rowset.index_id <= 1 {
            findings.push(Finding::new(&registry::ANTI_MATTER_COLUMN).owner(owner));
        }
    }
}

impl RowCheck<'_, '_> {
    /// The index row is not one of those that only a running build may leave.
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
