//! Any base table, row by row, its columns found by name.

use source::PageSource;

use crate::database::{Database, UnitKind};
use crate::layout::RowsetColumn;
use crate::rows::{Start, scan};

/// Why a base table, or all of it, could not be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unread {
    /// The version that wrote the database has no such table, or the catalogue has lost it.
    NoTable,
    /// The table has no column with this name: another version's.
    NoColumn(&'static str),
    /// Part of its rows could not be read.
    Incomplete,
}

/// Calls `visit` with each row of base table `object_id`: the values of `columns` in that order, `None` where a value is
/// NULL or kept off the row.
///
/// # Errors
/// [`Unread`]; `visit` may have been called with some of the rows.
pub fn read_base_table(
    source: &dyn PageSource,
    database: &Database,
    object_id: i32,
    columns: &[&'static str],
    mut visit: impl FnMut(&[Option<&[u8]>]),
) -> Result<(), Unread> {
    let base = |rowset: &&crate::Rowset| rowset.object_id == object_id && rowset.index_id <= 1;
    let rowset = database.rowsets.iter().find(base).ok_or(Unread::NoTable)?;
    let names = database.columns.get(&object_id).ok_or(Unread::NoTable)?;
    let place = |name: &&'static str| -> Result<&RowsetColumn, Unread> {
        let named = names.iter().find(|column| column.name == *name).ok_or(Unread::NoColumn(name))?;
        rowset.layout.column(named.id).ok_or(Unread::NoColumn(name))
    };
    let places = columns.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let units = rowset.units.iter().filter_map(|unit| database.units.get(*unit));
    let unit = units.into_iter().find(|unit| unit.kind == UnitKind::InRow).ok_or(Unread::Incomplete)?;
    // Nobody has described a base table with compressed rows; empty ones are marked as compressed (format.md 12).
    if rowset.compression != 0 && !unit.root.is_none() {
        return Err(Unread::Incomplete);
    }
    let (bad_records, fault) = scan(source, unit.id, Start::Root(unit.root), |record| {
        let values: Vec<Option<&[u8]>> = places.iter().map(|column| column.leaf_bytes(&record)).collect();
        visit(&values);
    });
    if bad_records > 0 || fault.is_some() { Err(Unread::Incomplete) } else { Ok(()) }
}
