//! Stores the objects of a database with their row and page counts. A count is stored only if it differs from the
//! object's last count.

use std::collections::HashSet;

use catalog::Database;
use findings::registry::limits::{WINDOW_OPEN, WINDOW_TABLE_OPEN};
use findings::{Report, RowsetCounts};
use rusqlite::{OptionalExtension, Transaction, params};

use crate::identity::{Ids, storable};
use crate::scope::Asked;
use crate::stored::stored;

/// Whether a report covers only some ranges of an image, because its check will continue in a later time window.
pub(crate) fn is_open(report: &Report) -> bool {
    report.not_verified.iter().any(|entry| entry.limit.id == WINDOW_OPEN.id)
}

/// Whether some tables of a report are left for later time windows.
pub(crate) fn is_partly_open(report: &Report) -> bool {
    is_open(report) || report.not_verified.iter().any(|entry| entry.limit.id == WINDOW_TABLE_OPEN.id)
}

/// The row IDs of objects.
pub(crate) struct Rows {
    /// The row IDs of the objects in a report, in the order of the report.
    pub(crate) of_report: Vec<i64>,
    /// The row IDs of all objects that the catalog lists, each with its index ID.
    pub(crate) listed: Vec<(i64, i32)>,
}

/// Writes the objects of a report, and the objects that the catalog lists but the check did not cover.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    (report, database): (&Report, &Database),
    asked: &Asked,
    (ids, run): (Ids, i64),
) -> rusqlite::Result<Rows> {
    let mut find = transaction.prepare(
        "SELECT id, type = ?5 AND schema_name = ?6 AND object_name = ?7 AND index_name = ?8 FROM object
         WHERE database = ?1 AND object_id = ?2 AND index_id = ?3 AND partition = ?4",
    )?;
    let mut add = transaction.prepare(
        "INSERT INTO object (database, object_id, index_id, partition, type, schema_name, object_name, index_name)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut rename = transaction.prepare(
        "UPDATE object SET type = ?5, schema_name = ?6, object_name = ?7, index_name = ?8
         WHERE database = ?1 AND object_id = ?2 AND index_id = ?3 AND partition = ?4",
    )?;
    let mut last = transaction
        .prepare("SELECT rows = ?2 AND pages = ?3 FROM object_count WHERE object = ?1 ORDER BY run DESC LIMIT 1")?;
    let mut count = transaction
        .prepare("INSERT OR REPLACE INTO object_count (object, run, rows, pages) VALUES (?1, ?2, ?3, ?4)")?;
    // A check that is spread over several time windows counts all rows only when it has read all pages. Its counts are
    // not stored before.
    let has_counts = report.options.scope.reads_pages() && asked.is_full() && !is_open(report);
    let key = |rowset: &RowsetCounts| (rowset.object_id, rowset.index_id, rowset.partition, rowset.partition_id);
    let reported: HashSet<_> = report.rowsets.iter().map(key).collect();
    let mut others = findings::listed(database);
    others.retain(|rowset| !reported.contains(&key(rowset)));
    let mut rows = Rows { of_report: Vec::with_capacity(report.rowsets.len()), listed: Vec::new() };
    for (at, rowset) in report.rowsets.iter().chain(&others).enumerate() {
        let (schema, name) = (storable(&rowset.schema), storable(&rowset.name));
        let (type_code, index) = (storable(&rowset.type_code), storable(&rowset.index_name));
        let values = params![
            ids.database,
            rowset.object_id,
            rowset.index_id,
            rowset.partition,
            type_code.trim_end(),
            schema,
            name,
            index
        ];
        let known: Option<(i64, bool)> = find.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let object = match known {
            Some((object, is_same)) => {
                if !is_same {
                    rename.execute(values)?;
                }
                object
            }
            None => {
                add.execute(values)?;
                transaction.last_insert_rowid()
            }
        };
        rows.listed.push((object, rowset.index_id));
        let is_reported = at < report.rowsets.len();
        if is_reported {
            rows.of_report.push(object);
        }
        if has_counts && is_reported && !rowset.is_open {
            let (seen, pages) = (stored(rowset.rows), stored(rowset.pages()));
            let is_counted = known.is_some()
                && last.query_row(params![object, seen, pages], |row| row.get(0)).optional()? == Some(true);
            if !is_counted {
                count.execute(params![object, run, seen, pages])?;
            }
        }
    }
    Ok(rows)
}
