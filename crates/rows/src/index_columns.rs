//! The columns of a table that the rows of a nonclustered index contain.

use catalog::{Database, Index, IndexType, Rowset, RowsetColumn, column_status};

/// The source of an index column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The column of the table with this id.
    Column(u32),
    /// The uniquifier: the number of the row among those of equal clustering key.
    Uniquifier,
    /// The address of the heap row.
    RowId,
}

/// A nonclustered index that has a row for each row of its table, or for each row that its filter accepts.
#[derive(Clone, Debug)]
pub(crate) struct Source<'a> {
    /// The index.
    pub(crate) index: &'a Index,
    /// Its partitions: indexes into [`Database::rowsets`].
    pub(crate) partitions: Vec<usize>,
    /// The IDs of its columns and their sources, in the order of the IDs.
    pub(crate) origins: Vec<(u32, Origin)>,
}

/// sysidxstats.status: statistics only, without rows.
const HYPOTHETICAL: u32 = 0x100;

/// The indexes of a table whose columns are known, in the order of the index IDs.
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
            // The rows of an unfinished index build are not rows of the table.
            if first.layout.columns.iter().any(has_anti_matter) {
                return None;
            }
            Some(Source { index, partitions, origins: origins(database, base, first, index.index_id)? })
        })
        .collect()
}

/// Key and included columns by sysiscols, then the locator (docs/format/index-records.md#what-an-index-row-holds).
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

/// The hidden columns after the index's own: the address of a heap row, or the clustering key columns that the index
/// lacks.
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

/// The columns of a clustered index's key in order, the uniquifier last.
pub(crate) fn key_columns(base: &Rowset) -> Vec<&RowsetColumn> {
    let mut key: Vec<&RowsetColumn> = base.layout.columns.iter().filter(|column| column.key_ordinal > 0).collect();
    key.sort_by_key(|column| column.key_ordinal);
    key
}
