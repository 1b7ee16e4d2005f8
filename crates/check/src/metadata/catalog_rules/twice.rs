//! Facts that base tables store twice. A value that is impossible within its own row is a finding (message 3858). If
//! two rows disagree, nothing shows which row is right, so the pair is listed as not verified, with both values. Each
//! rule holds for all rows of 368 real databases of versions 611 to 998, unless the comment on the rule gives an
//! exception.

mod codes;
mod columns;
mod files;
mod index_columns;
mod indexes;
mod layouts;
mod objects;
mod storage;
mod types;

use std::cell::Cell;
use std::collections::BTreeMap;

use catalog::{Database, Rowset, RowsetColumn};
use findings::registry::limits::{self, Reason};
use findings::{Coverage, Finding};
use format::collation::CollationId;

use super::evaluate::{Tables, is_of_the_server};
use crate::basis::ledger::FindingCollector;
use crate::metadata::near::partition_point_near;

/// Limit on the disagreements of one kind that are listed with their values. Further disagreements are only counted.
const LISTED: u64 = 10;

/// Compares all facts that are stored twice.
pub(super) fn check(tables: &Tables<'_>, findings: &mut FindingCollector, coverage: &mut Coverage) {
    let rowsets = Rowsets::of(tables.database);
    let is_of_the_server = is_of_the_server(tables.database);
    let mut verdicts = Verdicts { findings, coverage, is_of_the_server, listed: BTreeMap::new() };
    let types = types::check(tables, &mut verdicts);
    columns::check(tables, &rowsets, &types, &mut verdicts);
    index_columns::check(tables, &rowsets, &mut verdicts);
    indexes::check(tables, &rowsets, &mut verdicts);
    layouts::check(tables.database, &mut verdicts);
    codes::check(tables, &mut verdicts);
    objects::check(tables, &mut verdicts);
    storage::check(tables, &mut verdicts);
    files::check(tables, &mut verdicts);
}

/// Collects the results of the comparisons.
struct Verdicts<'a> {
    findings: &'a mut FindingCollector,
    coverage: &'a mut Coverage,
    /// Whether the database is master. Its catalog also describes the server and may contain types and objects that
    /// only master has.
    is_of_the_server: bool,
    /// Numbers of disagreements so far, by kind.
    listed: BTreeMap<&'static str, u64>,
}

impl Verdicts<'_> {
    /// Reports a value that is impossible in its row.
    fn impossible(&mut self, scope: &'static str, finding: impl FnOnce() -> Finding) {
        match self.is_of_the_server {
            true => self.note(scope, || (&limits::CATALOG_VALUE_OF_SERVER).into()),
            false => self.findings.push(finding()),
        }
    }

    /// Notes that two rows disagree, with both values.
    fn doubt(&mut self, scope: &'static str, values: impl FnOnce() -> String) {
        self.note(scope, || limits::CATALOG_VALUES_DISAGREE.with(&[&values()]));
    }

    /// Notes a row with an unknown value.
    fn unknown(&mut self, scope: &'static str, value: impl FnOnce() -> String) {
        self.note(scope, || limits::CATALOG_VALUE_UNKNOWN.with(&[&value()]));
    }

    fn note(&mut self, scope: &'static str, reason: impl FnOnce() -> Reason) {
        let listed = self.listed.entry(scope).or_default();
        *listed += 1;
        match *listed <= LISTED {
            true => self.coverage.note(reason(), scope, 1),
            false => self.coverage.note(&limits::CATALOG_VALUES_MORE, scope, 1),
        }
    }
}

/// The rowsets by object, index and partition.
struct Rowsets<'a> {
    database: &'a Database,
    /// Indexes into [`Database::rowsets`], sorted by object, index and partition.
    order: Vec<u32>,
    /// Position in `order` of the rowset that was looked up last.
    near: Cell<usize>,
}

impl<'a> Rowsets<'a> {
    fn of(database: &'a Database) -> Self {
        let mut order: Vec<u32> = (0..database.rowsets.len() as u32).collect();
        order.sort_unstable_by_key(|&at| {
            database.rowsets.get(at as usize).map(|rowset| (rowset.object_id, rowset.index_id, rowset.partition))
        });
        Self { database, order, near: Cell::new(0) }
    }

    /// The partitions of a heap or index.
    fn partitions(&self, object_id: i32, index_id: i32) -> impl Iterator<Item = &'a Rowset> {
        let database = self.database;
        let key = |rowset: &Rowset| (rowset.object_id, rowset.index_id);
        let start = partition_point_near(&self.order, self.near.get(), |at| {
            database.rowsets.get(*at as usize).is_none_or(|rowset| key(rowset) < (object_id, index_id))
        });
        self.near.set(start);
        let from_there = self.order.get(start..).unwrap_or_default();
        let rowsets = from_there.iter().filter_map(|at| database.rowsets.get(*at as usize));
        rowsets.take_while(move |rowset| key(rowset) == (object_id, index_id))
    }

    /// The partitions of the heap or clustered index of a table.
    fn of_table(&self, object_id: i32) -> impl Iterator<Item = &'a Rowset> {
        self.partitions(object_id, 0).chain(self.partitions(object_id, 1))
    }
}

/// The columns of a rowset, by column ID. If several columns have the same ID, the list contains the last of them. The
/// list is filled again for each rowset.
#[derive(Default)]
struct ColumnsById<'a>(Vec<(u32, &'a RowsetColumn)>);

impl<'a> ColumnsById<'a> {
    fn fill(&mut self, columns: impl Iterator<Item = &'a RowsetColumn>) {
        self.0.clear();
        self.0.extend(columns.map(|column| (column.id, column)));
        self.0.sort_by_key(|(id, _)| *id);
    }

    fn get(&self, id: u32) -> Option<&'a RowsetColumn> {
        let end = self.0.partition_point(|(known, _)| *known <= id);
        self.0.get(end.checked_sub(1)?).filter(|(known, _)| *known == id).map(|(_, column)| *column)
    }
}

/// Whether two rows that store these collations for the same column may both be right. System tables have a collation
/// of their own, but some rows about their columns name the collation of the database instead.
fn is_same_collation(database: &Database, object_id: i32, collations: [CollationId; 2]) -> bool {
    const SYSTEM_TYPES: [&str; 2] = ["S", "IT"];
    let [one, other] = collations;
    let default = CollationId(database.boot.as_ref().map_or(0, |boot| boot.collation));
    let object = || database.objects.get(&object_id);
    let is_of_the_system = || object().is_none_or(|object| SYSTEM_TYPES.contains(&object.type_code.as_str()));
    one == other || collations.contains(&default) && is_of_the_system()
}
