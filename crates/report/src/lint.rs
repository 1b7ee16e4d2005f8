//! Schema features that make DBCC CHECKDB slow, or hide damage from CHECKDB: `mdfsck lint`, for users who still run
//! CHECKDB.
//!
//! A rule is one row of `RULES` and one function over the catalog. The reasons come from Microsoft's documentation of
//! DBCC CHECKDB and of its trace flags, and from published measurements (RhinoDBA's course notes, KB 2634571).

use std::io;

use catalog::{Database, Index, Rowset};

use crate::json::catalog as lines;
use crate::json::lines::Line;
use crate::text_table::TextTable;

/// A rule that looks for one schema feature.
struct Rule {
    id: &'static str,
    /// Why the feature makes CHECKDB slow, or hides damage.
    reason: &'static str,
    /// Advice for the user.
    remedy: &'static str,
    find: fn(&Database) -> Vec<Place>,
}

/// A place to which a rule applies.
struct Place {
    /// Name of an object or of an index, or "database".
    scope: String,
    /// The facts that the rule found at this place.
    seen: String,
}

const RULES: [Rule; 7] = [
    Rule {
        id: "computed-column-index",
        reason: "CHECKDB evaluates the expression again for every row, and its evaluator holds an exclusive latch: in a measurement, the check was 20 times slower",
        remedy: "run CHECKDB without EXTENDED_LOGICAL_CHECKS (2016 and later), or disable the index for the check",
        find: computed_column_indexes,
    },
    Rule {
        id: "filtered-index",
        reason: "CHECKDB evaluates the filter for every row of the table, and its evaluator holds an exclusive latch: \
                 with a filter on a sparse column, one check took 11.4 instead of 0.2 seconds",
        remedy: "run CHECKDB without EXTENDED_LOGICAL_CHECKS (2016 and later), or disable the index for the check",
        find: filtered_indexes,
    },
    Rule {
        id: "huge-table",
        reason: "CHECKDB checks at least one whole table with all its indexes per batch: this table determines the memory grant \
                 and the use of tempdb",
        remedy: "run CHECKTABLE for it separately, on another night",
        find: huge_tables,
    },
    Rule {
        id: "many-indexes",
        reason: "CHECKDB works in batches of at most 512 indexes or 32 MB of facts, one after another",
        remedy: "trace flag 2562 puts all indexes into one batch; tempdb then needs up to 5 % of the database, or more",
        find: many_indexes,
    },
    Rule {
        id: "off-row-data",
        reason: "CHECKDB sorts and matches each fragment of a value as a separate fact",
        remedy: "none; allow time for these values",
        find: off_row_data,
    },
    Rule {
        id: "page-verify",
        reason: "pages are not protected by checksums: CHECKDB cannot detect changes made by the disk",
        remedy: "ALTER DATABASE ... SET PAGE_VERIFY CHECKSUM, then rebuild the indexes",
        find: page_verify,
    },
    Rule {
        id: "disabled-index",
        reason: "SQL Server does not maintain the rows of a disabled index, so CHECKDB cannot check them",
        remedy: "rebuild or drop the index",
        find: disabled_indexes,
    },
];

/// Writes the places that the rules find as a table.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(database: &Database, out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = TextTable::new(&[]);
    table.row(["rule", "where", "what"]);
    let mut explained = Vec::new();
    for rule in &RULES {
        let places = (rule.find)(database);
        for place in &places {
            table.row([rule.id, &place.scope, &place.seen]);
        }
        if !places.is_empty() {
            explained.push(rule);
        }
    }
    if explained.is_empty() {
        return match database.gaps.is_empty() {
            true => {
                writeln!(out, "Nothing in this schema is known to slow DBCC CHECKDB down or to hide damage from it.")
            }
            false => writeln!(out, "No problem was found in the part of the catalog that can be read."),
        };
    }
    table.write(0, out)?;
    for rule in explained {
        writeln!(out)?;
        writeln!(out, "{}: {}.", rule.id, rule.reason)?;
        writeln!(out, "  {}.", rule.remedy)?;
    }
    Ok(())
}

/// Writes one JSON object for each place.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(database: &Database, out: &mut dyn io::Write) -> io::Result<()> {
    for rule in &RULES {
        for place in (rule.find)(database) {
            let value = Line::Lint(lines::Lint {
                v: crate::json::VERSION,
                rule: rule.id,
                scope: &place.scope,
                seen: &place.seen,
                reason: rule.reason,
                remedy: rule.remedy,
            });
            crate::json::line(&value, out)?;
        }
    }
    Ok(())
}

/// Heaps and indexes of user tables, ordered by object ID and index ID.
fn indexes(database: &Database) -> impl Iterator<Item = &Index> {
    let mut indexes: Vec<&Index> =
        database.indexes.values().filter(|index| !database.is_system_table(index.object_id)).collect();
    indexes.sort_by_key(|index| (index.object_id, index.index_id));
    indexes.into_iter()
}

fn index_name(database: &Database, index: &Index) -> String {
    format!("{}.{}", database.object_name(index.object_id), index.name)
}

/// Names of those columns of an index for which `wanted` is true.
fn columns_of(database: &Database, index: &Index, wanted: impl Fn(&catalog::TableColumn) -> bool) -> Vec<String> {
    let table = database.columns.get(&index.object_id).map(Vec::as_slice).unwrap_or_default();
    let of_index =
        database.index_columns.get(&(index.object_id, index.index_id)).map(Vec::as_slice).unwrap_or_default();
    let column = |id: u32| table.iter().find(|column| column.id == id);
    of_index.iter().filter_map(|entry| column(entry.column_id)).filter(|c| wanted(c)).map(|c| c.name.clone()).collect()
}

fn computed_column_indexes(database: &Database) -> Vec<Place> {
    let place = |index: &Index| {
        let computed = columns_of(database, index, catalog::TableColumn::is_computed);
        let seen = format!("computed: {}", computed.join(", "));
        (!computed.is_empty()).then(|| Place { scope: index_name(database, index), seen })
    };
    indexes(database).filter_map(place).collect()
}

fn filtered_indexes(database: &Database) -> Vec<Place> {
    let place = |index: &Index| {
        let sparse = columns_of(database, index, catalog::TableColumn::is_sparse);
        let seen = match sparse.is_empty() {
            true => "filtered".to_owned(),
            false => format!("filtered, sparse: {}", sparse.join(", ")),
        };
        Place { scope: index_name(database, index), seen }
    };
    indexes(database).filter(|index| index.is_filtered()).map(place).collect()
}

fn disabled_indexes(database: &Database) -> Vec<Place> {
    let place = |index: &Index| Place { scope: index_name(database, index), seen: "disabled".to_owned() };
    indexes(database).filter(|index| index.is_disabled()).map(place).collect()
}

/// Number of pages of rowsets, according to the engine's counts.
fn pages_of<'a>(database: &Database, rowsets: impl Iterator<Item = &'a Rowset>) -> i64 {
    let units = rowsets.flat_map(|rowset| &rowset.units).filter_map(|unit| database.units.get(*unit));
    units.map(|unit| unit.used_pages).fold(0, i64::saturating_add)
}

/// User objects and their numbers of pages according to the engine's counts, largest first.
fn objects_by_pages(database: &Database, wanted: impl Fn(&Rowset) -> bool) -> Vec<(i64, i32)> {
    let mut ids: Vec<i32> = database.rowsets.iter().map(|rowset| rowset.object_id).collect();
    ids.retain(|id| !database.is_system_table(*id));
    ids.sort_unstable();
    ids.dedup();
    let pages = |id: i32| {
        let rowsets = database.rowsets_of(id).filter(|rowset| wanted(rowset));
        (pages_of(database, rowsets), id)
    };
    let mut objects: Vec<(i64, i32)> = ids.into_iter().map(pages).collect();
    objects.sort_by_key(|(pages, id)| (-pages, *id));
    objects
}

/// The minimum number of pages (1 GB) of a table that is reported as huge. Smaller tables do not delay a check.
const HUGE_PAGES: i64 = 1 << 17;
const INDEXES_PER_BATCH: usize = 512;

fn huge_tables(database: &Database) -> Vec<Place> {
    let all = pages_of(database, database.rowsets.iter()).max(1);
    let place = |(pages, id): (i64, i32)| {
        let share = pages.saturating_mul(100) / all;
        Place { scope: database.object_name(id), seen: format!("{} MB, {share} % of the database", pages / 128) }
    };
    let huge = |(pages, _): &(i64, i32)| *pages >= HUGE_PAGES && pages.saturating_mul(4) >= all;
    objects_by_pages(database, |_| true).into_iter().filter(huge).map(place).collect()
}

fn many_indexes(database: &Database) -> Vec<Place> {
    let count = indexes(database).count();
    let seen = format!("{count} heaps and indexes");
    (count > INDEXES_PER_BATCH).then(|| Place { scope: "database".to_owned(), seen }).into_iter().collect()
}

fn off_row_data(database: &Database) -> Vec<Place> {
    let is_off_row = |unit: &catalog::AllocUnit| unit.kind != catalog::UnitKind::InRow;
    let pages: i64 =
        database.units.iter().filter(|unit| is_off_row(unit)).map(|unit| unit.used_pages).fold(0, i64::saturating_add);
    let all = pages_of(database, database.rowsets.iter()).max(1);
    let share = pages.saturating_mul(100) / all;
    let seen = format!("{} MB of off-row data, {share} % of the database", pages / 128);
    let is_much = pages >= HUGE_PAGES && share >= 25;
    is_much.then(|| Place { scope: "database".to_owned(), seen }).into_iter().collect()
}

fn page_verify(database: &Database) -> Vec<Place> {
    let verify = database.boot.as_ref().map(crate::info::page_verify).filter(|verify| *verify != "checksum");
    let place = |verify: &str| Place { scope: "database".to_owned(), seen: format!("PAGE_VERIFY {verify}") };
    verify.map(place).into_iter().collect()
}
