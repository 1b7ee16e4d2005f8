//! Reads any base table row by row, and finds its columns by name.

use format::RecordId;
use format::record::Record;
use source::PageSource;

use crate::database::Database;
use crate::layout::{Level, RowsetColumn, Stored};
use crate::load::place_of_rowset;
use crate::rows::{Place, scan};

/// The reason why a base table, or a part of it, cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unread {
    /// The release that wrote the database does not have this base table, or the table's row in the catalog is lost.
    NoTable,
    /// In the release that wrote the database, the table has no column with this name. In other releases, it has the
    /// column.
    NoColumn(&'static str),
    /// Part of the table's rows could not be read.
    Incomplete,
}

/// Calls `visit` with each row of base table `object_id`. `visit` gets the page and slot of the row, and the values of
/// `columns` in the order of that list. A value is `None` if it is NULL or stored off the row.
///
/// # Errors
///
/// [`Unread`] if the table, a column or some rows cannot be read. `visit` may already have been called with some of the
/// rows.
pub fn read_base_table(
    source: &dyn PageSource,
    database: &Database,
    object_id: i32,
    columns: &[&'static str],
    mut visit: impl FnMut(RecordId, &[Option<&[u8]>]),
) -> Result<(), Unread> {
    BaseTable::find(database, object_id, columns)?.each(source, |at, columns, record| {
        let values: Vec<Option<&[u8]>> = columns.iter().map(|column| column.leaf_bytes(record)).collect();
        visit(at, &values);
    })
}

/// Like [`read_base_table`], but `visit` gets the result of `convert` for each value. No memory is allocated per row.
///
/// # Errors
///
/// [`Unread`] if the table, a column or some rows cannot be read. `visit` may already have been called with some of the
/// rows.
pub fn read_base_table_as<T>(
    source: &dyn PageSource,
    database: &Database,
    object_id: i32,
    columns: &[&'static str],
    convert: impl Fn(&[u8]) -> T,
    mut visit: impl FnMut(RecordId, &[Option<T>]),
) -> Result<(), Unread> {
    let mut values = Vec::with_capacity(columns.len());
    BaseTable::find(database, object_id, columns)?.each(source, |at, columns, record| {
        values.clear();
        values.extend(columns.iter().map(|column| column.leaf_bytes(record).map(&convert)));
        visit(at, &values);
    })
}

/// Like [`read_base_table`], but `visit` gets the stored content of each column. The caller can then read values that
/// are stored off the row ([`crate::off_row_value`]).
///
/// # Errors
///
/// [`Unread`] if the table, a column or some rows cannot be read. `visit` may already have been called with some of the
/// rows.
pub fn read_base_table_stored(
    source: &dyn PageSource,
    database: &Database,
    object_id: i32,
    columns: &[&'static str],
    mut visit: impl FnMut(RecordId, &[Stored<'_>]),
) -> Result<(), Unread> {
    BaseTable::find(database, object_id, columns)?.each(source, |at, columns, record| {
        let values: Vec<Stored<'_>> = columns.iter().map(|column| column.stored(Level::Leaf, record)).collect();
        visit(at, &values);
    })
}

/// Where the rows of a base table are stored, and the requested columns.
struct BaseTable<'d> {
    place: Place<'d>,
    columns: Vec<&'d RowsetColumn>,
}

impl<'d> BaseTable<'d> {
    fn find(database: &'d Database, object_id: i32, columns: &[&'static str]) -> Result<Self, Unread> {
        let rowset = database.table_rowsets(object_id).next().ok_or(Unread::NoTable)?;
        let names = database.columns.get(&object_id).ok_or(Unread::NoTable)?;
        let stored = |name: &&'static str| -> Result<&RowsetColumn, Unread> {
            let named = names.iter().find(|column| column.name == *name).ok_or(Unread::NoColumn(name))?;
            rowset.layout.column(named.id).ok_or(Unread::NoColumn(name))
        };
        let columns = columns.iter().map(stored).collect::<Result<Vec<_>, _>>()?;
        let is_readable = rowset.expansion.is_some() || !rowset.is_row_compressed();
        let place = place_of_rowset(database, rowset, rowset.expansion.as_ref());
        let place = place.filter(|place| is_readable || place.start.is_nowhere()).ok_or(Unread::Incomplete)?;
        Ok(Self { place, columns })
    }

    /// Calls `visit` with each row: its page and slot, the columns, and the record that holds them.
    fn each(
        &self,
        source: &dyn PageSource,
        mut visit: impl FnMut(RecordId, &[&RowsetColumn], &Record<'_>),
    ) -> Result<(), Unread> {
        let (bad_records, fault) = scan(source, self.place, |at, record| visit(at, &self.columns, &record));
        if bad_records > 0 || fault.is_some() { Err(Unread::Incomplete) } else { Ok(()) }
    }
}
