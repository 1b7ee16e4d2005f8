//! Which column of the table a column of a rowset is.

use catalog::{Database, Rowset, RowsetColumn, TableColumn, column_status};
use format::types::xtype;

/// For each column of the rowset's layout, the table's column; `None` for those that no table has: the uniquifier, the
/// locator of a heap, what the engine adds for itself, and what the catalogue does not explain.
pub(super) fn table_columns<'a>(database: &'a Database, rowset: &Rowset) -> Vec<Option<&'a TableColumn>> {
    let table = database.columns.get(&rowset.object_id).map(Vec::as_slice).unwrap_or_default();
    let find = |id: u32| Some(&table[table.binary_search_by_key(&id, |column| column.id).ok()?]);
    let columns = &rowset.layout.columns;
    if rowset.index_id <= 1 {
        return columns.iter().map(|column| find(column.id)).collect();
    }
    let indexed =
        database.index_columns.get(&(rowset.object_id, rowset.index_id)).map(Vec::as_slice).unwrap_or_default();
    let mut locators = locators(database, rowset).into_iter();
    let of = |column: &RowsetColumn| match indexed.iter().find(|indexed| indexed.position == column.id) {
        Some(indexed) => find(indexed.column_id),
        // Behind the key's own columns stands the clustering key, as far as it is not among them (format.md 7.2).
        None if is_uniquifier(column) || is_variable_int(column) => None,
        None => locators.next().filter(|key| key.info == column.info).and_then(|key| find(key.id)),
    };
    columns.iter().map(of).collect()
}

fn is_uniquifier(column: &RowsetColumn) -> bool {
    column.status & column_status::UNIQUIFIER != 0
}

/// An int among the variable columns of a nonclustered index is the uniquifier, which has no status bit there.
pub(super) fn is_variable_int(column: &RowsetColumn) -> bool {
    column.info.xtype == xtype::INT && column.leaf_offset < 0
}

/// The columns of the clustering key that a nonclustered index adds to its own, in their order.
fn locators<'a>(database: &'a Database, rowset: &Rowset) -> Vec<&'a RowsetColumn> {
    let clustered = |other: &&Rowset| other.object_id == rowset.object_id && other.index_id == 1;
    let Some(clustered) = database.rowsets.iter().find(clustered) else { return Vec::new() };
    let indexed = database.index_columns.get(&(rowset.object_id, rowset.index_id));
    let is_known = |id: u32| indexed.is_some_and(|indexed| indexed.iter().any(|own| own.column_id == id));
    let is_added = |column: &&RowsetColumn| column.key_ordinal > 0 && !is_uniquifier(column) && !is_known(column.id);
    let mut added: Vec<&RowsetColumn> = clustered.layout.columns.iter().filter(is_added).collect();
    added.sort_by_key(|column| column.key_ordinal);
    added
}
