//! The catalogue against itself (CHECKCATALOG): references between base tables that hold in every sound database met.
//! Printed through 8992 as message 3853.

use std::collections::BTreeSet;

use catalog::Database;

use crate::finding::Finding;
use crate::registry;

/// A reference that leads nowhere, in the words of message 3853.
struct Dangling {
    attribute: String,
    row: String,
    table: &'static str,
    wanted: String,
    referenced: &'static str,
}

/// Checks all references. Nothing can be said when a part of the catalogue could not be read.
pub(crate) fn check(database: &Database, findings: &mut Vec<Finding>) {
    if database.boot.is_none() || !database.gaps.is_empty() {
        return;
    }
    let rules: [fn(&Database) -> Vec<Dangling>; 6] = [
        schema_of_object,
        parent_of_object,
        object_of_column,
        object_of_index,
        column_of_index_column,
        index_of_rowset,
    ];
    for dangling in rules.iter().flat_map(|rule| rule(database)) {
        findings.push(
            Finding::new(&registry::CATALOG_DANGLING)
                .text_value("attribute", dangling.attribute)
                .text_value("row", dangling.row)
                .text_value("table", dangling.table)
                .text_value("wanted", dangling.wanted)
                .text_value("referenced", dangling.referenced),
        );
    }
}

fn schema_of_object(database: &Database) -> Vec<Dangling> {
    let objects = database.objects.values().filter(|object| !database.schemas.contains_key(&object.schema_id));
    objects
        .map(|object| Dangling {
            attribute: format!("schema_id={}", object.schema_id),
            row: format!("object_id={}", object.id),
            table: "objects",
            wanted: format!("schema_id={}", object.schema_id),
            referenced: "schemas",
        })
        .collect()
}

fn parent_of_object(database: &Database) -> Vec<Dangling> {
    let known = |id: i32| id == 0 || database.object_ids.contains(&id);
    database
        .objects
        .values()
        .filter(|object| !known(object.parent_id))
        .map(|object| Dangling {
            attribute: format!("parent_object_id={}", object.parent_id),
            row: format!("object_id={}", object.id),
            table: "objects",
            wanted: format!("object_id={}", object.parent_id),
            referenced: "objects",
        })
        .collect()
}

fn object_of_column(database: &Database) -> Vec<Dangling> {
    let orphans = database.columns.iter().filter(|(object, _)| !database.object_ids.contains(object));
    orphans
        .flat_map(|(object, columns)| columns.iter().map(move |column| (object, column)))
        .map(|(object, column)| Dangling {
            attribute: format!("object_id={object}"),
            row: format!("object_id={object},column_id={}", column.id),
            table: "columns",
            wanted: format!("object_id={object}"),
            referenced: "objects",
        })
        .collect()
}

fn object_of_index(database: &Database) -> Vec<Dangling> {
    let orphans = database.indexes.keys().filter(|(object, _)| !database.object_ids.contains(object));
    orphans
        .map(|(object, index)| Dangling {
            attribute: format!("object_id={object}"),
            row: format!("object_id={object},index_id={index}"),
            table: "indexes",
            wanted: format!("object_id={object}"),
            referenced: "objects",
        })
        .collect()
}

fn column_of_index_column(database: &Database) -> Vec<Dangling> {
    let mut dangling = Vec::new();
    for ((object, index), columns) in &database.index_columns {
        let known: BTreeSet<u32> = database
            .columns
            .get(object)
            .map(|columns| columns.iter().map(|column| column.id).collect())
            .unwrap_or_default();
        for column in columns.iter().filter(|column| !known.contains(&column.column_id)) {
            dangling.push(Dangling {
                attribute: format!("column_id={}", column.column_id),
                row: format!("object_id={object},index_id={index},index_column_id={}", column.position),
                table: "index_columns",
                wanted: format!("object_id={object},column_id={}", column.column_id),
                referenced: "columns",
            });
        }
    }
    dangling
}

fn index_of_rowset(database: &Database) -> Vec<Dangling> {
    let known = |rowset: &catalog::Rowset| database.indexes.contains_key(&(rowset.object_id, rowset.index_id));
    let orphans = database.rowsets.iter().filter(|rowset| rowset.owner_type == 1 && !known(rowset));
    orphans
        .map(|rowset| Dangling {
            attribute: format!("object_id={},index_id={}", rowset.object_id, rowset.index_id),
            row: format!("rowset_id={}", rowset.id),
            table: "sysrowsets",
            wanted: format!("object_id={},index_id={}", rowset.object_id, rowset.index_id),
            referenced: "indexes",
        })
        .collect()
}
