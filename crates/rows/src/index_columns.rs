//! Finds out which columns of a table the rows of a nonclustered index contain.

use catalog::{Database, Index, IndexType, Rowset, RowsetColumn, column_status};

/// The origin of the values in an index column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The table column with this ID.
    Column(u32),
    /// The uniquifier, which numbers the rows with the same clustering key.
    Uniquifier,
    /// The address of the heap row.
    RowId,
}

/// A nonclustered index that has one row for each row of its table, or for each row that its filter accepts.
#[derive(Clone, Debug)]
pub(crate) struct Source<'a> {
    /// The index.
    pub(crate) index: &'a Index,
    /// The partitions of the index, as positions in [`Database::rowsets`].
    pub(crate) partitions: Vec<usize>,
    /// The columns of the index, in the order of their IDs: each ID with the origin of the column's values.
    pub(crate) origins: Vec<(u32, Origin)>,
}

/// Bit of sysidxstats.status: the index has only statistics and no rows.
const HYPOTHETICAL: u32 = 0x100;

/// The usable nonclustered indexes of a table, in the order of their IDs. An index is left out if the origins of its
/// columns are unknown.
pub(crate) fn sources(database: &Database, object_id: i32) -> Vec<Source<'_>> {
    if !database.indexes_are_complete() {
        return Vec::new();
    }
    let of_table = |index_id: i32| {
        let rowsets = database.rowsets.iter().enumerate();
        rowsets.filter(move |(_, rowset)| rowset.object_id == object_id && rowset.index_id == index_id)
    };
    let base = of_table(1).next().or_else(|| of_table(0).next()).map(|(_, rowset)| rowset);
    let Some(base) = base else { return Vec::new() };
    let indexes = database.indexes.range((object_id, 2)..=(object_id, i32::MAX));
    let usable = indexes.map(|(_, index)| index).filter(|index| {
        index.index_type == IndexType::Nonclustered && !index.is_disabled() && index.status & HYPOTHETICAL == 0
    });
    usable
        .filter_map(|index| {
            let partitions: Vec<usize> = of_table(index.index_id).map(|(at, _)| at).collect();
            let first = database.rowsets.get(*partitions.first()?)?;
            let has_anti_matter =
                |column: &RowsetColumn| column.status & column_status::ANTI_MATTER != 0 && !column.is_dropped();
            // An anti-matter column shows that the index build is unfinished. This index may contain rows that match no
            // row of the table.
            if first.layout.columns.iter().any(has_anti_matter) {
                return None;
            }
            Some(Source { index, partitions, origins: origins(database, base, first, index.index_id)? })
        })
        .collect()
}

/// The columns of a nonclustered index with one of its rowsets, in the order of their IDs: each ID with the origin of the
/// column's values. `None` if the catalog does not tell the origins.
pub fn column_origins(database: &Database, rowset: &Rowset) -> Option<Vec<(u32, Origin)>> {
    let base = |index_id: i32| database.table_rowsets(rowset.object_id).find(|base| base.index_id == index_id);
    origins(database, base(1).or_else(|| base(0))?, rowset, rowset.index_id)
}

/// The columns of an index: first the key and included columns that sysiscols lists, then the locator
/// (docs/format/index-records.md#what-an-index-row-holds).
fn origins(database: &Database, base: &Rowset, rowset: &Rowset, index_id: i32) -> Option<Vec<(u32, Origin)>> {
    let known = database.index_columns.get(&(base.object_id, index_id))?;
    let mut columns: Vec<&RowsetColumn> = rowset.layout.columns.iter().collect();
    columns.sort_by_key(|column| column.id);
    let mut locators = locators(base, |id| known.iter().any(|column| column.column_id == id)).into_iter();
    let mut origins = Vec::new();
    for column in columns {
        let own = known.iter().find(|known| known.position == column.id);
        let origin = own.map(|known| Origin::Column(known.column_id)).or_else(|| locators.next())?;
        origins.push((column.id, origin));
    }
    locators.next().is_none().then_some(origins)
}

/// The hidden columns that follow the index's own columns: the address of a heap row, or the clustering key columns
/// that the index does not already have.
fn locators(base: &Rowset, has: impl Fn(u32) -> bool) -> Vec<Origin> {
    if base.index_id == 0 {
        return vec![Origin::RowId];
    }
    key_columns(base)
        .into_iter()
        .map(|column| match column.status & column_status::UNIQUIFIER {
            0 => Origin::Column(column.id),
            _ => Origin::Uniquifier,
        })
        .filter(|origin| !matches!(origin, Origin::Column(id) if has(*id)))
        .collect()
}

/// The key columns of a clustered index in key order. The uniquifier, if there is one, is last.
pub(crate) fn key_columns(base: &Rowset) -> Vec<&RowsetColumn> {
    let mut key: Vec<&RowsetColumn> = base.layout.columns.iter().filter(|column| column.key_ordinal > 0).collect();
    key.sort_by_key(|column| column.key_ordinal);
    key
}
