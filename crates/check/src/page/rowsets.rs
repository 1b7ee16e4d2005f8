//! Properties of the rowsets of a table or index that checks need to know before they read rows.

use catalog::{Database, Rowset, RowsetColumn, UnitKind, column_status};
use findings::registry::limits::{self, Reason};

use crate::basis::units::UnitIndex;

/// Returns an error with the reason if some columns cannot be located in the rows of these rowsets.
pub(crate) fn are_readable<'a>(mut rowsets: impl Iterator<Item = &'a Rowset> + Clone) -> Result<(), Reason> {
    if rowsets.clone().any(|rowset| rowset.compression > 2) {
        return Err((&limits::ROWS_COLUMNSTORE).into());
    }
    if rowsets.clone().any(|rowset| rowset.is_row_compressed() && rowset.expansion.is_none()) {
        return Err((&limits::ROWS_COMPRESSION).into());
    }
    if rowsets.any(|rowset| rowset.layout.columns.is_empty() || rowset.owner_type != 1) {
        return Err((&limits::ROWS_COLUMNS_UNKNOWN).into());
    }
    Ok(())
}

/// Whether rows of a rowset may have off-row values of one of these types.
pub(crate) fn may_have_off_row(rowset: &Rowset, types: &[u8]) -> bool {
    let has_type = || rowset.layout.columns.iter().any(|column| types.contains(&column.info.xtype));
    rowset.units.len() > 1 && rowset.rows > 0 && has_type()
}

/// The in-row units of these rowsets.
pub(crate) fn units_of(database: &Database, rowsets: &[&Rowset]) -> Vec<UnitIndex> {
    rowsets.iter().filter_map(|rowset| in_row_unit(database, rowset)).collect()
}

/// The in-row unit of a rowset.
pub(crate) fn in_row_unit(database: &Database, rowset: &Rowset) -> Option<UnitIndex> {
    let in_row = |unit: &&usize| database.units.get(**unit).is_some_and(|unit| unit.kind == UnitKind::InRow);
    rowset.units.iter().find(in_row).map(|unit| *unit as UnitIndex)
}

/// Internal version of SQL Server 2017.
const VERSION_2017: u16 = 869;

/// The column in which an online index build marks rows that were deleted during the build.
pub(crate) fn anti_matter_column(rowset: &Rowset) -> Option<&RowsetColumn> {
    rowset.layout.columns.iter().find(|column| column.status & column_status::ANTI_MATTER != 0 && !column.is_dropped())
}

/// Whether index builds can be paused, which is possible since SQL Server 2017.
pub(crate) fn can_be_paused(database: &Database) -> bool {
    database.boot.as_ref().is_none_or(|boot| boot.version >= VERSION_2017)
}

/// Returns whether a rowset may belong to a paused index build. Such a rowset may contain, for the same key, a live row
/// and also marks of deleted rows.
pub(crate) fn may_be_paused(database: &Database, rowset: &Rowset) -> bool {
    can_be_paused(database) && anti_matter_column(rowset).is_some()
}
