//! Compares the catalog with itself (CHECKCATALOG): references between base tables that are intact in every sound
//! database seen, and facts that these tables store twice. A finding is printed as message 8992, which contains one of
//! the messages 3852 to 3858. A finding about Service Broker is printed as message 8997.

mod evaluate;
mod listing;
mod rules;
mod table;
mod twice;

use std::collections::BTreeSet;

use catalog::{Database, Unread, read_base_table};
use findings::registry::limits::{self, Limit};
use findings::{Coverage, Finding, registry};
use source::PageSource;

use crate::basis::ledger::FindingCollector;
pub(crate) use evaluate::key_bytes;
pub use listing::{CatalogReference, catalog_references};

use evaluate::{KeySets, Tables, is_of_the_server};
use rules::Classes;

/// Checks all references. `findings` holds the findings so far. A dangling reference to a table that has findings
/// proves nothing, because the missing row may have been lost with the damage (docs/format/checkdb.md#phases).
pub(crate) fn check(
    source: &dyn PageSource,
    database: &Database,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) {
    if let Some(limit) = unusable(database) {
        coverage.note_as(limits::REFERENCES_CATALOG.what, limit, "database", 0);
        return;
    }
    let tables = Tables { source, database };
    let keys = KeySets::read(&tables, findings.objects(), coverage);
    evaluate::references(&tables, &keys, findings, coverage);
    if keys.has_indexes() {
        index_of_key(&tables, findings);
    }
    drop(keys);
    twice::check(&tables, findings, coverage);
    note_unknown_classes(&tables, coverage);
    for base in table::UNKNOWN {
        let mut rows = 0;
        if read_base_table(source, database, base.id, &[], |_, _| rows += 1).is_ok() && rows > 0 {
            coverage.note(&limits::REFERENCES_UNKNOWN, format!("sys.{}", base.name), rows);
        }
    }
}

/// The limit that says why base tables cannot be read reliably; `None` if they can be read reliably.
fn unusable(database: &Database) -> Option<&'static Limit> {
    const SYSCOLPARS: i32 = 41;
    if database.boot.is_none() {
        return Some(&limits::CATALOG_BOOT_PAGE);
    }
    let known = database.units_are_complete() && database.layouts_are_complete() && database.gap(SYSCOLPARS).is_none();
    (!known).then_some(&limits::REFERENCES_CATALOG)
}

/// Checks that the index of a primary key or unique constraint (class 93, versions 706 and later) belongs to the table
/// of the constraint. All 430 constraints seen have this property.
fn index_of_key(tables: &Tables<'_>, findings: &mut FindingCollector) {
    const SYSSINGLEOBJREFS: i32 = 74;
    const INDEX_OF_KEY: i64 = 93;
    // The rows of the table are judged only if the whole table can be read.
    if tables.each(SYSSINGLEOBJREFS, &["class", "depid", "indepid"], |_, _| {}).is_err() {
        return;
    }
    let read = tables.each(SYSSINGLEOBJREFS, &["class", "depid", "indepid"], |at, row| {
        let [Some(INDEX_OF_KEY), Some(key), Some(index)] = *row else { return };
        let (Ok(key), Ok(index)) = (i32::try_from(key), i32::try_from(index)) else { return };
        let Some(parent) = tables.database.objects.get(&key).map(|object| object.parent_id) else { return };
        let has_statistics = || tables.database.index_columns.contains_key(&(parent, index));
        if parent != 0 && !tables.database.indexes.contains_key(&(parent, index)) && !has_statistics() {
            findings.push(
                Finding::new(&registry::CATALOG_DANGLING)
                    .at_record(at)
                    .text_value("attribute", format!("unique_index_id={index}"))
                    .text_value("row", format!("object_id={key}"))
                    .text_value("table", "key_constraints")
                    .text_value("wanted", format!("object_id={parent},index_id={index}"))
                    .text_value("referenced", "indexes"),
            );
        }
    });
    let _: Result<(), Unread> = read;
}

/// Limit on the classes listed per table. Real tables have fewer classes.
const MOST_CLASSES: usize = 64;

/// Notes rows with a class that no rule covers, in one note for all tables.
fn note_unknown_classes(tables: &Tables<'_>, coverage: &mut Coverage) {
    let mut listed = Vec::new();
    let mut rows = 0;
    for classes in table::CLASSES {
        let unknown = unknown_classes(tables, classes, &mut rows);
        if !unknown.is_empty() {
            let classes_text: Vec<String> = unknown.iter().map(i64::to_string).collect();
            listed.push(format!("sys.{} ({} {})", classes.base.name, classes.column, classes_text.join(", ")));
        }
    }
    if rows > 0 {
        coverage.note(&limits::REFERENCES_UNKNOWN, listed.join("; "), rows);
    }
}

/// The classes in the rows of a table for which no rule exists. Adds the number of rows with such a class to `rows`.
fn unknown_classes(tables: &Tables<'_>, classes: &Classes, rows: &mut u64) -> BTreeSet<i64> {
    let mut unknown = BTreeSet::new();
    let is_of_the_server = is_of_the_server(tables.database);
    let read = tables.each(classes.base.id, &[classes.column], |_, row| {
        if let [Some(class)] = *row
            && !classes.has(class, is_of_the_server)
        {
            *rows += 1;
            unknown.insert(class);
            // Keeps the lowest classes, so that the result does not depend on the order of the rows.
            if unknown.len() > MOST_CLASSES {
                unknown.pop_last();
            }
        }
    });
    // The error is ignored, because the check of the references between base tables has already noted incomplete
    // tables.
    let _: Result<(), Unread> = read;
    unknown
}
