//! Objects, indexes and partitions as the catalog describes them: `mdfsck tables`.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;

use catalog::{Database, ExpressionKind, Index, Object, Rowset};
use format::PAGE_BYTES;

use crate::json::catalog as lines;
use crate::json::lines::Line;
use crate::text_table::{TextTable, printable};

/// The order of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// By name, index and partition.
    Name,
    /// By size, the most pages first.
    Size,
    /// By rows, the most rows first.
    Rows,
}

/// Writes the objects as text. System objects are included only if `all` is set.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(database: &Database, all: bool, order: Order, out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = TextTable::new(&[4, 5, 6, 7]);
    let heads = ["object", "index", "type", "properties", "partition", "rows", "pages", "MB", "key"];
    table.row(heads);
    let listed: Vec<Entry<'_>> = entries(database, all, order);
    for entry in &listed {
        table.row([
            entry.object_name(),
            entry.index_name().to_owned(),
            entry.type_name().to_owned(),
            entry.properties().join(", "),
            entry.rowset.partition.to_string(),
            entry.rowset.rows.to_string(),
            entry.used_pages().to_string(),
            megabytes(entry.used_pages()),
            entry.key().join(", "),
        ]);
    }
    // Rows of nonclustered indexes are not added, because they are copies of the table's rows.
    let rows = listed.iter().filter(|entry| entry.rowset.index_id <= 1).map(|entry| entry.rowset.rows);
    let pages = listed.iter().map(Entry::used_pages).fold(0, i64::saturating_add);
    let rows = rows.fold(0, i64::saturating_add).to_string();
    table.row(["total", "", "", "", "", &rows, &pages.to_string(), &megabytes(pages)]);
    table.write(0, out)?;
    writeln!(out)?;
    writeln!(
        out,
        "Row and page counts are from the catalog; 'mdfsck check' counts rows and pages in the files. Total rows \
         exclude indexes."
    )?;
    write_expressions(database, &listed, out)?;
    write_rests_on(database, &listed, out)
}

/// Says of each table what its columns rest on, if the catalog could not be read in the usual way.
fn write_rests_on(database: &Database, listed: &[Entry<'_>], out: &mut dyn io::Write) -> io::Result<()> {
    let objects: BTreeSet<i32> = listed.iter().map(|entry| entry.rowset.object_id).collect();
    let mut table = TextTable::new(&[]);
    for (object, rests_on) in database.rests_on.iter().filter(|(object, _)| objects.contains(object)) {
        table.row(["columns of", &database.object_name(*object), &rests_on.to_string()]);
    }
    if database.rests_on.keys().any(|object| objects.contains(object)) {
        writeln!(out)?;
    }
    table.write(0, out)
}

/// The size of pages in MB, with one decimal.
fn megabytes(pages: i64) -> String {
    format!("{:.1}", pages as f64 * PAGE_BYTES as f64 / f64::from(1 << 20))
}

fn write_expressions(database: &Database, listed: &[Entry<'_>], out: &mut dyn io::Write) -> io::Result<()> {
    let objects: BTreeSet<i32> = listed.iter().map(|entry| entry.rowset.object_id).collect();
    let is_listed = |id: i32| objects.contains(&id);
    let mut table = TextTable::new(&[]);
    let mut any = false;
    for expression in database.expressions.iter().filter(|expression| is_listed(expression.object_id)) {
        let object = database.object_name(expression.object_id);
        let (what, name) = match expression.kind {
            ExpressionKind::ComputedColumn => {
                ("computed column", column_name(database, expression.object_id, expression.sub_id.cast_unsigned()))
            }
            ExpressionKind::Filter => {
                let index = database.indexes.get(&(expression.object_id, expression.sub_id));
                ("filter of index", index.map_or_else(|| expression.sub_id.to_string(), |index| index.name.clone()))
            }
            // A CHECK constraint is an object of its own.
            ExpressionKind::Check => continue,
        };
        let text = expression.text.as_deref().unwrap_or("(stored off the row)");
        table.row([what, &format!("{object}.{name}"), text]);
        any = true;
    }
    if any {
        writeln!(out)?;
    }
    table.write(0, out)
}

/// Writes one JSON object for each partition of a heap or index.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(database: &Database, all: bool, order: Order, out: &mut dyn io::Write) -> io::Result<()> {
    for entry in entries(database, all, order) {
        let rowset = entry.rowset;
        let expression = |kind: ExpressionKind, sub_id: i32| {
            database.expression(rowset.object_id, kind, sub_id).and_then(|expression| expression.text.as_deref())
        };
        let columns = match rowset.index_id {
            0 | 1 => database.columns.get(&rowset.object_id).map(Vec::as_slice).unwrap_or_default(),
            _ => &[],
        };
        let computed = columns.iter().filter(|column| column.is_computed()).map(|column| lines::ComputedColumn {
            name: &column.name,
            definition: expression(ExpressionKind::ComputedColumn, column.id.cast_signed()),
        });
        let value = Line::Table(lines::Table {
            v: crate::json::VERSION,
            object_id: rowset.object_id,
            schema: entry.object.map(|object| database.schema_name(object)),
            name: entry.object.map(|object| object.name.as_str()),
            type_code: entry.object.map(|object| object.type_code.as_str()),
            index_id: rowset.index_id,
            index: entry.index_name(),
            index_type: entry.type_name(),
            properties: entry.properties(),
            partition: rowset.partition,
            partition_id: rowset.id.cast_signed().to_string(),
            rows_in_catalog: rowset.rows,
            pages_in_catalog: entry.used_pages(),
            key: entry.key(),
            filter: expression(ExpressionKind::Filter, rowset.index_id),
            computed_columns: computed.collect(),
            rests_on: database.rests_on.get(&rowset.object_id).map(ToString::to_string),
        });
        crate::json::line(&value, out)?;
    }
    Ok(())
}

/// A partition of a heap or index, with its object and index in the catalog.
struct Entry<'a> {
    database: &'a Database,
    rowset: &'a Rowset,
    object: Option<&'a Object>,
    index: Option<&'a Index>,
}

fn entries(database: &Database, all: bool, order: Order) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = database
        .rowsets
        .iter()
        .map(|rowset| Entry {
            database,
            rowset,
            object: database.objects.get(&rowset.object_id),
            index: database.indexes.get(&(rowset.object_id, rowset.index_id)),
        })
        .filter(|entry| all || entry.object.is_some_and(|object| matches!(object.type_code.as_str(), "U" | "V")))
        .collect();
    entries.sort_by_cached_key(|entry| {
        let Rowset { object_id, index_id, partition, .. } = *entry.rowset;
        (entry.object_name(), object_id, index_id, partition)
    });
    // Sorting is stable: entries with equal keys stay ordered by name.
    match order {
        Order::Name => {}
        Order::Size => entries.sort_by_cached_key(|entry| Reverse(entry.used_pages())),
        Order::Rows => entries.sort_by_key(|entry| Reverse(entry.rowset.rows)),
    }
    entries
}

impl Entry<'_> {
    fn object_name(&self) -> String {
        match self.object {
            Some(object) => format!("{}.{}", self.database.schema_name(object), object.name),
            None => format!("object ID {}", self.rowset.object_id),
        }
    }

    fn index_name(&self) -> &str {
        self.index.map_or("", |index| &index.name)
    }

    fn type_name(&self) -> &'static str {
        match (self.index, self.rowset.index_id) {
            (Some(index), _) => index.index_type.name(),
            (None, 0) => "heap",
            (None, _) => "unknown",
        }
    }

    fn used_pages(&self) -> i64 {
        let pages = |&unit: &usize| self.database.units.get(unit).map_or(0, |unit| unit.used_pages);
        self.rowset.units.iter().map(pages).fold(0, i64::wrapping_add)
    }

    fn properties(&self) -> Vec<&'static str> {
        let mut properties = Vec::new();
        if let Some(index) = self.index {
            let flags = [
                (index.is_primary_key(), "primary key"),
                (index.is_unique() && !index.is_primary_key(), "unique"),
                (index.is_filtered(), "filtered"),
                (index.is_disabled(), "disabled"),
            ];
            properties.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name));
        }
        match self.rowset.compression {
            0 => {}
            1 => properties.push("row compression"),
            2 => properties.push("page compression"),
            3 => properties.push("columnstore"),
            4 => properties.push("columnstore archive"),
            _ => properties.push("unknown compression"),
        }
        properties
    }

    /// Key columns in order, with `desc` after a descending column; then included columns in parentheses.
    fn key(&self) -> Vec<String> {
        let Rowset { object_id, index_id, .. } = *self.rowset;
        let columns = self.database.index_columns.get(&(object_id, index_id)).map(Vec::as_slice).unwrap_or_default();
        let name = |column_id| column_name(self.database, object_id, column_id);
        let keys = columns.iter().filter(|column| !column.included).map(|column| {
            let direction = if column.descending { " desc" } else { "" };
            format!("{}{direction}", name(column.column_id))
        });
        let included =
            columns.iter().filter(|column| column.included).map(|column| format!("({})", name(column.column_id)));
        keys.chain(included).collect()
    }
}

fn column_name(database: &Database, object_id: i32, column_id: u32) -> String {
    let named = database.columns.get(&object_id).and_then(|columns| columns.iter().find(|c| c.id == column_id));
    named.map_or_else(|| format!("column {column_id}"), |column| printable(&column.name).into_owned())
}
