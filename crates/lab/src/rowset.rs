//! The rowsets of a table: which columns each has, in which physical order.

use crate::description::{Description, Index, Table};
use crate::layout::{Layout, Leaf, PhysicalColumn, Source};
use crate::types::SqlType;
use crate::version::Version;

/// Position of the rows' locator: what nonclustered indexes point with.
#[derive(Clone, Debug)]
pub(crate) enum Locator {
    /// Address of a heap row.
    RowId,
    /// The clustering key, and the uniquifier if rows can have the same key.
    Key(Vec<(usize, bool)>, bool),
}

/// How nonclustered indexes of a table find its rows.
pub(crate) fn locator(table: &Table) -> Locator {
    match &table.clustered {
        None => Locator::RowId,
        Some(index) => Locator::Key(index.keys.clone(), !index.unique),
    }
}

/// Rows of the table itself: heap or clustered index.
pub(crate) fn base(table: &Table, collation: u32, version: Version) -> Layout {
    let keys = table.clustered.as_ref().map(|index| &index.keys[..]).unwrap_or_default();
    let mut columns = Vec::new();
    if table.clustered.as_ref().is_some_and(|index| !index.unique) {
        let mut uniquifier = PhysicalColumn::new(Source::Uniquifier, 0, SqlType::INT, 0, true);
        (uniquifier.key_ordinal, uniquifier.in_inner) = (keys.len() as i16 + 1, true);
        columns.push(uniquifier);
    }
    for (ordinal, &(key, descending)) in keys.iter().enumerate() {
        let mut column = physical(table, key, key as u32 + 1, collation);
        (column.key_ordinal, column.in_inner, column.descending) = (ordinal as i16 + 1, true, descending);
        columns.push(column);
    }
    for (at, described) in table.columns.iter().enumerate() {
        if !keys.iter().any(|&(key, _)| key == at) && described.is_stored() {
            columns.push(physical(table, at, at as u32 + 1, collation));
        }
    }
    if table.columns.iter().any(|column| column.sparse) {
        columns.push(PhysicalColumn::new(Source::SparseVector, 0, SqlType::varbinary(8000), 0, false));
    }
    let inner_nulls = version >= Version::V706 || columns.iter().any(|column| column.in_inner && !column.not_null);
    finish(Layout::new(Leaf::Data, columns, true, inner_nulls), table.compression)
}

/// Rows of a nonclustered index.
pub(crate) fn nonclustered(table: &Table, index: &Index, description: &Description) -> Layout {
    let collation = description.collation;
    let mut columns = Vec::new();
    for (at, &(key, descending)) in index.keys.iter().enumerate() {
        let mut column = physical(table, key, at as u32 + 1, collation);
        (column.key_ordinal, column.in_inner, column.descending) = (at as i16 + 1, true, descending);
        columns.push(column);
    }
    let mut id = (index.keys.len() + index.included.len()) as u32;
    let mut ordinal = index.keys.len() as i16;
    let mut locate = |mut column: PhysicalColumn, descending: bool| {
        id += 1;
        column.id = id;
        column.in_inner = !index.unique;
        column.descending = descending;
        if !index.unique {
            ordinal += 1;
            column.key_ordinal = ordinal;
        }
        columns.push(column);
    };
    match locator(table) {
        Locator::RowId => locate(PhysicalColumn::new(Source::RowId, 0, SqlType::binary(8), 0, true), false),
        Locator::Key(keys, uniquified) => {
            for (key, descending) in keys {
                if !index.keys.iter().any(|&(own, _)| own == key) {
                    locate(physical(table, key, 0, collation), descending);
                }
            }
            if uniquified {
                locate(PhysicalColumn::new(Source::Uniquifier, 0, SqlType::INT, 0, true), false);
            }
        }
    }
    for (at, &included) in index.included.iter().enumerate() {
        columns.push(physical(table, included, (index.keys.len() + at) as u32 + 1, collation));
    }
    // Before 2012 a bitmap is there only if something can be NULL.
    let nulls = description.version >= Version::V706 || columns.iter().any(|column| !column.not_null);
    let inner_nulls =
        description.version >= Version::V706 || columns.iter().any(|column| column.in_inner && !column.not_null);
    for column in &mut columns {
        column.sparse = false;
    }
    finish(Layout::new(Leaf::Index, columns, nulls, inner_nulls), index.compression)
}

fn finish(layout: Layout, compression: crate::description::Compression) -> Layout {
    if compression == crate::description::Compression::None { layout } else { layout.compressed() }
}

fn physical(table: &Table, at: usize, id: u32, collation: u32) -> PhysicalColumn {
    let described = &table.columns[at];
    let collation = if described.ty.is_string() { collation } else { 0 };
    let mut column = PhysicalColumn::new(Source::Column(at), id, described.ty, collation, !described.nullable);
    column.sparse = described.sparse;
    column
}
