//! Lists the columns of each rowset of a table, in physical order.

use crate::description::{Description, Index, Table};
use crate::layout::{Layout, Leaf, PhysicalColumn, Source};
use crate::types::SqlType;
use crate::version::Version;

/// The first column ID that is assigned to dropped columns in a rowset.
const FIRST_DROPPED: u32 = 0x0400_0001;
const FIRST_DROPPED_2005: u32 = 0x1_0000;

/// The row locator of nonclustered indexes.
#[derive(Clone, Debug)]
pub(crate) enum Locator {
    /// The address of a heap row.
    RowId,
    /// The columns of the clustering key, each with a flag for descending order, and whether the key has a uniquifier.
    Key(Vec<(usize, bool)>, bool),
}

/// The row locator of a table's nonclustered indexes.
pub(crate) fn locator(table: &Table) -> Locator {
    match &table.clustered {
        None => Locator::RowId,
        Some(index) => Locator::Key(index.keys.clone(), !index.unique),
    }
}

/// Returns the layout of a heap or clustered index. The result also contains the earlier layouts, for rows that were
/// written before columns were added.
pub(crate) fn base(table: &Table, collation: u32, version: Version) -> Layout {
    let mut layout = base_of(table, table.columns.len(), collation, version);
    if table.is_rebuilt {
        return layout;
    }
    let mut columns = 0;
    while let Some(next) = table.columns.get(columns..).and_then(|rest| rest.iter().position(|c| c.life.since > 0)) {
        columns += next;
        let since = table.columns[columns].life.since;
        layout.earlier.push((since, base_of(table, columns, collation, version)));
        columns += table.columns[columns..].iter().take_while(|column| column.life.since == since).count();
    }
    layout
}

/// The layout of a heap or clustered index that has only the first `count` columns of the table.
fn base_of(table: &Table, count: usize, collation: u32, version: Version) -> Layout {
    let keys = table.clustered.as_ref().map(|index| &index.keys[..]).unwrap_or_default();
    let mut columns = Vec::new();
    if table.clustered.as_ref().is_some_and(|index| !index.unique) {
        let mut uniquifier = uniquifier();
        (uniquifier.key_ordinal, uniquifier.in_inner) = (keys.len() as i16 + 1, true);
        columns.push(uniquifier);
    }
    for (ordinal, &(key, descending)) in keys.iter().enumerate() {
        let mut column = physical(table, key, key as u32 + 1, collation);
        (column.key_ordinal, column.in_inner, column.descending) = (ordinal as i16 + 1, true, descending);
        columns.push(column);
    }
    for (at, described) in table.columns.iter().enumerate().take(count) {
        if described.is_dropped() && (table.is_rebuilt || described.life.is_gone) {
            continue;
        }
        if !keys.iter().any(|&(key, _)| key == at) && described.is_stored() {
            columns.push(physical(table, at, id_of(table, at, version), collation));
        }
    }
    for at in 0..columns.len() {
        let Source::Column(own) = columns[at].source else { continue };
        let dropped = table.columns[own].life.in_place_of.map(Source::Column);
        columns[at].in_place_of =
            dropped.and_then(|dropped| columns.iter().position(|column| column.source == dropped));
        columns[at].at_end = table.columns[own].life.at_end;
        columns[at].alters = table.columns[own].life.alters;
    }
    if table.columns.iter().take(count).any(|column| column.sparse) {
        columns.push(PhysicalColumn::new(Source::SparseVector, 0, SqlType::varbinary(8000), 0, false));
    }
    let inner_nulls = version >= Version::V706 || columns.iter().any(|column| column.in_inner && !column.not_null);
    finish(Layout::new(Leaf::Data, columns, true, inner_nulls), table.compression)
}

/// The layout of a nonclustered index.
pub(crate) fn nonclustered(table: &Table, index: &Index, description: &Description) -> Layout {
    let collation = description.collation;
    let mut number = 0;
    let mut numbered = |at: usize, descending: bool| {
        number += 1;
        let mut column = physical(table, at, number, collation);
        (column.descending, column.sparse, column.default) = (descending, false, None);
        column
    };
    let keys: Vec<_> = index.keys.iter().map(|&(key, descending)| numbered(key, descending)).collect();
    let included = index.included.iter().map(|&at| numbered(at, false)).collect();
    let locator = match locator(table) {
        Locator::RowId => vec![row_id()],
        Locator::Key(parts, uniquified) => {
            let own = |part: usize| index.keys.iter().any(|&(key, _)| key == part);
            let parts = parts.into_iter().filter(|&(part, _)| !own(part));
            let parts =
                parts.map(|(part, descending)| PhysicalColumn { descending, ..physical(table, part, 0, collation) });
            parts.chain(uniquified.then(uniquifier)).collect()
        }
    };
    let columns = index_columns(keys, included, locator, index.unique);
    // Before SQL Server 2012, records have a null bitmap only if a column is nullable.
    let nulls = description.version >= Version::V706 || columns.iter().any(|column| !column.not_null);
    let inner_nulls =
        description.version >= Version::V706 || columns.iter().any(|column| column.in_inner && !column.not_null);
    finish(Layout::new(Leaf::Index, columns, nulls, inner_nulls), index.compression)
}

/// Returns the columns of a nonclustered index in physical order. In an index that is not unique, the row locator is
/// part of the key. In a unique index, the row locator follows the included columns.
pub(crate) fn index_columns(
    keys: Vec<PhysicalColumn>,
    included: Vec<PhysicalColumn>,
    mut locator: Vec<PhysicalColumn>,
    unique: bool,
) -> Vec<PhysicalColumn> {
    let mut number = (keys.len() + included.len()) as u32;
    for column in &mut locator {
        number += 1;
        column.id = number;
    }
    let (mut key, rest) =
        if unique { (keys, [included, locator].concat()) } else { ([keys, locator].concat(), included) };
    for (ordinal, column) in key.iter_mut().enumerate() {
        (column.key_ordinal, column.in_inner) = (ordinal as i16 + 1, true);
    }
    key.extend(rest);
    key
}

/// The uniquifier column, which distinguishes rows with the same clustering key.
pub(crate) fn uniquifier() -> PhysicalColumn {
    PhysicalColumn::new(Source::Uniquifier, 0, SqlType::INT, 0, true)
}

/// The column with the address of a heap row.
pub(crate) fn row_id() -> PhysicalColumn {
    PhysicalColumn::new(Source::RowId, 0, SqlType::binary(8), 0, true)
}

fn finish(layout: Layout, compression: crate::description::Compression) -> Layout {
    if compression == crate::description::Compression::None { layout } else { layout.compressed() }
}

/// The ID of a column in its rowset. IDs of dropped columns are from a separate sequence.
fn id_of(table: &Table, at: usize, version: Version) -> u32 {
    if !table.columns[at].is_dropped() {
        return at as u32 + 1;
    }
    let before = table.columns.iter().take(at).filter(|column| column.is_dropped()).count() as u32;
    before + if version == Version::V611 { FIRST_DROPPED_2005 } else { FIRST_DROPPED }
}

fn physical(table: &Table, at: usize, id: u32, collation: u32) -> PhysicalColumn {
    let described = &table.columns[at];
    let collation = if described.ty.is_string() { collation } else { 0 };
    let mut column = PhysicalColumn::new(Source::Column(at), id, described.ty, collation, !described.nullable);
    column.sparse = described.sparse;
    column.dropped = described.is_dropped();
    column.not_null &= !column.dropped;
    column.default = described.default.filter(|_| described.life.keeps_default && !table.is_rebuilt);
    column
}
