//! Finds the table's column for each column of a rowset.

use catalog::{Database, Rowset, RowsetColumn, TableColumn, column_status};
use format::types::xtype;

/// The table's column for each column of the rowset's layout. `None` for a column that the table does not have: the
/// uniquifier, the locator of a heap row, an internal column of the engine, or a column that the catalog does not
/// explain.
pub(crate) fn table_columns<'a>(database: &'a Database, rowset: &Rowset) -> Vec<Option<&'a TableColumn>> {
    let table = database.columns.get(&rowset.object_id).map(Vec::as_slice).unwrap_or_default();
    let find = |id: u32| table.get(table.binary_search_by_key(&id, |column| column.id).ok()?);
    let columns = &rowset.layout.columns;
    if rowset.index_id <= 1 {
        return columns.iter().map(|column| find(column.id)).collect();
    }
    let indexed =
        database.index_columns.get(&(rowset.object_id, rowset.index_id)).map(Vec::as_slice).unwrap_or_default();
    let mut locators = locators(database, rowset).into_iter();
    let of = |column: &RowsetColumn| match indexed.iter().find(|indexed| indexed.position == column.id) {
        Some(indexed) => find(indexed.column_id),
        // After the index's own columns come the columns of the clustering key that the index does not have already
        // (docs/format/index-records.md#what-an-index-row-holds).
        None if is_uniquifier(column) || is_variable_int(column) => None,
        None => locators.next().filter(|key| key.info == column.info).and_then(|key| find(key.id)),
    };
    columns.iter().map(of).collect()
}

fn is_uniquifier(column: &RowsetColumn) -> bool {
    column.status & column_status::UNIQUIFIER != 0
}

/// Whether the column is an int of variable length. In a nonclustered index, this is the uniquifier, which has no
/// status bit there.
pub(crate) fn is_variable_int(column: &RowsetColumn) -> bool {
    column.info.xtype == xtype::INT && column.leaf_offset < 0
}

/// The columns of the clustering key that a nonclustered index adds to its own columns, in key order.
fn locators<'a>(database: &'a Database, rowset: &Rowset) -> Vec<&'a RowsetColumn> {
    let Some(clustered) = database.rowsets_of(rowset.object_id).find(|other| other.index_id == 1) else {
        return Vec::new();
    };
    let indexed = database.index_columns.get(&(rowset.object_id, rowset.index_id));
    let is_known = |id: u32| indexed.is_some_and(|indexed| indexed.iter().any(|own| own.column_id == id));
    let is_added = |column: &&RowsetColumn| column.key_ordinal > 0 && !is_uniquifier(column) && !is_known(column.id);
    let mut added: Vec<&RowsetColumn> = clustered.layout.columns.iter().filter(is_added).collect();
    added.sort_by_key(|column| column.key_ordinal);
    added
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::RowLayout;
    use format::collation::CollationId;
    use format::types::TypeInfo;

    fn column(id: u32, kind: u8, place: i16, key_ordinal: u16, status: u32) -> RowsetColumn {
        RowsetColumn {
            id,
            physical: id,
            info: TypeInfo::from_ti(kind.into()),
            collation: CollationId(0),
            status,
            key_ordinal,
            leaf_offset: place,
            node_offset: 0,
            leaf_null_bit: 0,
            node_null_bit: 0,
            default: None,
            leaf_bit: 0,
            node_bit: 0,
        }
    }

    fn rowset(index_id: i32, columns: Vec<RowsetColumn>) -> Rowset {
        Rowset {
            id: index_id as u64,
            object_id: 100,
            index_id,
            partition: 1,
            owner_type: 1,
            layout: RowLayout { columns },
            ..Rowset::default()
        }
    }

    fn named(names: &[Option<&TableColumn>]) -> Vec<String> {
        names.iter().map(|name| name.map_or_else(|| "-".to_owned(), |column| column.name.clone())).collect()
    }

    #[test]
    fn columns_of_an_index_have_the_names_of_the_table() {
        let mut database = Database::default();
        let table = [(1, "Id"), (2, "Day"), (3, "Price"), (5, "Stamp")];
        let table = table.map(|(id, name)| TableColumn { id, name: name.to_owned(), user_type: 0, status: 1 });
        database.columns.insert(100, table.to_vec());
        let uniquifier = column(0, xtype::INT, -1, 3, column_status::UNIQUIFIER);
        // The clustered index is on Day and Id and not unique; column 4 was dropped.
        database.rowsets.push(rowset(
            1,
            vec![
                column(2, xtype::DATE, 4, 1, 0),
                column(1, xtype::INT, 7, 2, 0),
                uniquifier,
                column(3, xtype::MONEY, 11, 0, 0),
                column(4, xtype::INT, 19, 0, column_status::DROPPED),
            ],
        ));
        assert_eq!(named(&table_columns(&database, &database.rowsets[0])), ["Day", "Id", "-", "Price", "-"]);
        // The nonclustered index is on Price and Id and includes Stamp.
        let own = [(1, 3, false), (2, 1, false), (3, 5, true)];
        let own = own.map(|(position, column_id, included)| catalog::IndexColumn {
            position,
            column_id,
            included,
            descending: false,
        });
        database.index_columns.insert((100, 2), own.to_vec());
        let index = rowset(
            2,
            vec![
                column(1, xtype::MONEY, 1, 1, 0),
                column(2, xtype::INT, 9, 2, 0),
                column(4, xtype::DATE, 13, 3, 0),
                column(5, xtype::INT, -1, 4, 0),
                column(3, xtype::DATETIME, 16, 0, 0),
            ],
        );
        assert_eq!(named(&table_columns(&database, &index)), ["Price", "Id", "Day", "-", "Stamp"]);
    }
}
