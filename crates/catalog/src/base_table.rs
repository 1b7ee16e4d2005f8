//! Any base table, row by row, its columns found by name.

use format::RecordId;
use source::PageSource;

use crate::database::Database;
use crate::layout::{Level, RowsetColumn, Stored};
use crate::load::place_of_rowset;
use crate::rows::scan;

/// Why a base table, or part of it, is unavailable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unread {
    /// The version that wrote the database has no such table, or its row in the catalog is lost.
    NoTable,
    /// The table has no column with this name: another version has it.
    NoColumn(&'static str),
    /// Part of its rows could not be read.
    Incomplete,
}

/// Calls `visit` with each row of base table `object_id`: its place, and the values of `columns` in that order, `None`
/// if a value is NULL or stored off the row.
///
/// # Errors
/// [`Unread`]; `visit` may have been called with some of the rows.
pub fn read_base_table(
    source: &dyn PageSource,
    database: &Database,
    object_id: i32,
    columns: &[&'static str],
    mut visit: impl FnMut(RecordId, &[Option<&[u8]>]),
) -> Result<(), Unread> {
    read_base_table_stored(source, database, object_id, columns, |at, stored| {
        let values: Vec<Option<&[u8]>> = stored.iter().map(Stored::plain).collect();
        visit(at, &values);
    })
}

/// The same with what each row holds for the columns, so that values stored off the row can be followed
/// ([`crate::off_row_value`]).
///
/// # Errors
/// [`Unread`]; `visit` may have been called with some of the rows.
pub fn read_base_table_stored(
    source: &dyn PageSource,
    database: &Database,
    object_id: i32,
    columns: &[&'static str],
    mut visit: impl FnMut(RecordId, &[Stored<'_>]),
) -> Result<(), Unread> {
    let rowset = database.table_rowsets(object_id).next().ok_or(Unread::NoTable)?;
    let names = database.columns.get(&object_id).ok_or(Unread::NoTable)?;
    let place = |name: &&'static str| -> Result<&RowsetColumn, Unread> {
        let named = names.iter().find(|column| column.name == *name).ok_or(Unread::NoColumn(name))?;
        rowset.layout.column(named.id).ok_or(Unread::NoColumn(name))
    };
    let places = columns.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let is_readable = rowset.expansion.is_some() || !rowset.is_row_compressed();
    let place = place_of_rowset(database, rowset, rowset.expansion.as_ref());
    let place = place.filter(|place| is_readable || place.start.is_nowhere()).ok_or(Unread::Incomplete)?;
    let (bad_records, fault) = scan(source, place, |at, record| {
        let values: Vec<Stored<'_>> = places.iter().map(|column| column.stored(Level::Leaf, &record)).collect();
        visit(at, &values);
    });
    if bad_records > 0 || fault.is_some() { Err(Unread::Incomplete) } else { Ok(()) }
}
