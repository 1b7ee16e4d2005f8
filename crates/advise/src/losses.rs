//! The rows that are lost with damaged pages, if the undamaged parts of the database show which rows these were.

use std::collections::BTreeSet;

use catalog::Database;
use format::PageId;
use rows::loss::{ColumnSource, Loss, WhichRows, losses};
use rows::{Column, Place, Table};
use source::PageSource;

use crate::step::LossSummary;

/// The rows that a table loses with `pages`. Empty if the pages contain no rows of the table, for example if they
/// contain only off-row values.
pub(crate) fn of_table(
    source: &dyn PageSource,
    database: &Database,
    object_id: i32,
    pages: &BTreeSet<PageId>,
) -> Vec<LossSummary> {
    let Some(table) = table(database, object_id) else { return Vec::new() };
    let pages: Vec<PageId> = pages.iter().copied().collect();
    losses(source, database, &table, &pages, None).iter().map(|loss| summary(&table, loss)).collect()
}

/// The table with its columns; `None` if the catalog does not contain the table.
fn table(database: &Database, object_id: i32) -> Option<Table> {
    let object = database.objects.get(&object_id)?;
    let rowsets = database.rowsets.iter().enumerate();
    let mut partitions: Vec<usize> =
        rowsets.filter(|(_, rowset)| rowset.object_id == object_id && rowset.index_id <= 1).map(|(at, _)| at).collect();
    partitions.sort_by_key(|&at| database.rowsets.get(at).map(|rowset| rowset.partition));
    let first = partitions.first().and_then(|&at| database.rowsets.get(at))?;
    let columns = database.columns.get(&object_id)?.iter().map(|column| {
        let stored = first.layout.column(column.id);
        Column {
            id: column.id,
            name: column.name.clone(),
            info: stored.map(|stored| stored.info).unwrap_or_default(),
            user_type: column.user_type,
            collation: stored.map(|stored| stored.collation).unwrap_or_default(),
            is_nullable: !column.is_not_null(),
            place: match (stored.is_some(), column.is_computed()) {
                (true, true) => Place::Persisted,
                (true, false) => Place::Stored,
                (false, _) => Place::Computed,
            },
        }
    });
    let columns = columns.collect();
    let (schema, name) = (database.schema_name(object).to_owned(), object.name.clone());
    Some(Table { object_id, schema, name, columns, partitions })
}

fn summary(table: &Table, loss: &Loss) -> LossSummary {
    let recoverable = loss.recoverable.iter().map(|column| {
        let ColumnSource::Index { name, is_filtered, .. } = &column.source;
        let only = if *is_filtered { " (only rows that meet its filter)" } else { "" };
        (column.name.clone(), format!("{name}{only}"))
    });
    LossSummary {
        object: table.full_name(),
        pages: loss.pages.clone(),
        least_rows: loss.rows.least,
        most_rows: loss.rows.most,
        first_key: loss.which.first_key(),
        last_key: loss.which.last_key(),
        which: which(&loss.which),
        recoverable: recoverable.collect(),
    }
}

fn which(rows: &WhichRows) -> String {
    match rows {
        WhichRows::Keys { columns, from, to } => {
            let name = columns.join(", ");
            let from = from
                .as_ref()
                .map(|bound| format!("{} {}", if bound.inclusive { "from" } else { "after" }, bound.text()));
            let to = to
                .as_ref()
                .map(|bound| format!("{} {}", if bound.inclusive { "up to" } else { "before" }, bound.text()));
            match (from, to) {
                (Some(from), Some(to)) => format!("{name} {from} and {to}"),
                (Some(limit), None) | (None, Some(limit)) => format!("{name} {limit}"),
                (None, None) => format!("any value of {name}: neither neighboring page can be read"),
            }
        }
        WhichRows::Slots => "all rows of the heap on these pages".to_owned(),
        WhichRows::Unknown => "not known: the levels above these pages are damaged too".to_owned(),
    }
}
