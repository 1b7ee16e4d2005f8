//! Compares heaps, indexes and statistics (sysidxstats) with their rowsets, and indexes with the constraints that they
//! enforce.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Index, IndexType};

use super::super::evaluate::Tables;
use super::{Rowsets, Verdicts};

const SYSIDXSTATS: i32 = 54;
const IS_INDEX: i64 = 0x1;
const UNIQUE_CONSTRAINT: u32 = 0x40;
/// Bit of sysrowsets.status that marks the rowset of a heap or clustered index, since SQL Server 2008.
const HOLDS_THE_TABLE: u32 = 0x200;
/// The lowest ID of an XML index. The next constant is the lowest ID of a spatial index.
const XML: i64 = 256_000;
const SPATIAL: i64 = 384_000;

pub(super) fn check(tables: &Tables<'_>, rowsets: &Rowsets<'_>, verdicts: &mut Verdicts<'_>) {
    let read = tables.each(SYSIDXSTATS, &["id", "indid", "status", "type", "rowset"], |_, row| {
        let &[Some(object), Some(index), Some(status), Some(kind), Some(rowset)] = row else { return };
        let Ok(object) = i32::try_from(object) else { return };
        let place = || format!("index {index} of {}", tables.database.object_name(object));
        kind_of_id(index, status, kind, place, verdicts);
        let Ok(index) = i32::try_from(index) else { return };
        against_rowsets(rowsets, (object, index), rowset.cast_unsigned(), place, verdicts);
    });
    // The error is ignored, because the check of the references between base tables has already noted incomplete
    // tables.
    let _: Result<(), catalog::Unread> = read;
    flags_of_rowsets(tables, verdicts);
    key_constraints(tables, verdicts);
}

/// Checks that the ID of an index matches its type.
fn kind_of_id(index: i64, status: i64, kind: i64, place: impl Fn() -> String, verdicts: &mut Verdicts<'_>) {
    let types: &[i64] = match (index, status & IS_INDEX != 0) {
        (0, _) => &[0],
        (1, _) => &[1, 5],
        (_, false) => &[0],
        (2..XML, true) => &[2, 6, 7],
        (XML..SPATIAL, true) => &[3],
        (SPATIAL.., true) => &[4],
        (i64::MIN..0, true) => return,
    };
    // Index types above 7 were added after SQL Server 2022, so it is unknown which IDs their indexes have.
    let is_known = kind <= 7;
    if is_known && !types.contains(&kind) {
        verdicts.doubt("sys.sysidxstats, type", || {
            format!("{} is of type {kind}, which no index with this ID has", place())
        });
    }
}

/// Checks that the rowset that an index names belongs to the index.
fn against_rowsets(
    rowsets: &Rowsets<'_>,
    (object, index): (i32, i32),
    named: u64,
    place: impl Fn() -> String,
    verdicts: &mut Verdicts<'_>,
) {
    let mut partitions = rowsets.partitions(object, index).peekable();
    let has_rowset = partitions.peek().is_some();
    let is_one_of_them = partitions.any(|rowset| rowset.id == named);
    // If an index has several partitions, its row in sysidxstats may name no rowset.
    if !is_one_of_them && (named != 0 || has_rowset && rowsets.partitions(object, index).count() == 1) {
        verdicts.doubt("sys.sysidxstats and sys.sysrowsets", || {
            format!("{} names rowset {named}, which is not its own", place())
        });
    }
}

/// Compares flags of an index with the status of its rowsets, which stores the same flags.
fn flags_of_rowsets(tables: &Tables<'_>, verdicts: &mut Verdicts<'_>) {
    let database = tables.database;
    let is_told = database.boot.as_ref().is_some_and(|boot| boot.version >= 655);
    for rowset in &database.rowsets {
        let Some(index) = database.indexes.get(&(rowset.object_id, rowset.index_id)) else { continue };
        let is_of_rows = matches!(index.index_type, IndexType::Heap | IndexType::Clustered | IndexType::Nonclustered);
        if !is_of_rows || rowset.compression > 2 {
            continue;
        }
        let place = || format!("index {} of {}", rowset.index_id, database.object_name(rowset.object_id));
        if rowset.is_unique() != index.is_unique() {
            verdicts.doubt("sys.sysidxstats and sys.sysrowsets, UNIQUE", || {
                let [index, rowset] = if rowset.is_unique() { ["not ", ""] } else { ["", "not "] };
                format!("{} is {index}unique, but its rowset is {rowset}unique", place())
            });
        }
        if is_told && (rowset.status & HOLDS_THE_TABLE != 0) != (rowset.index_id <= 1) {
            verdicts.doubt("sys.sysrowsets, status", || {
                format!("{}: the rowset's status {:#x} belongs to another kind of index", place(), rowset.status)
            });
        }
    }
}

/// Checks that a primary key or unique constraint has the same name as the index that enforces it.
fn key_constraints(tables: &Tables<'_>, verdicts: &mut Verdicts<'_>) {
    let database = tables.database;
    let mut keys: BTreeSet<(i32, &str, bool)> = BTreeSet::new();
    for object in database.objects.values() {
        if let "PK" | "UQ" = object.type_code.as_str() {
            keys.insert((object.parent_id, &object.name, object.type_code == "PK"));
        }
    }
    let is_unique_constraint = |index: &Index| index.status & UNIQUE_CONSTRAINT != 0;
    let enforcing: BTreeMap<(i32, &str, bool), i32> = database
        .indexes
        .values()
        .filter(|index| index.is_primary_key() || is_unique_constraint(index))
        .map(|index| ((index.object_id, index.name.as_str(), index.is_primary_key()), index.index_id))
        .collect();
    let kind = |is_primary| if is_primary { "primary key" } else { "unique constraint" };
    for &(table, name, is_primary) in &keys {
        if !enforcing.contains_key(&(table, name, is_primary)) {
            verdicts.doubt("sys.sysschobjs and sys.sysidxstats", || {
                format!("no index of {} enforces its {} {name}", database.object_name(table), kind(is_primary))
            });
        }
    }
    for (&(table, name, is_primary), index) in &enforcing {
        if !keys.contains(&(table, name, is_primary)) {
            verdicts.doubt("sys.sysidxstats and sys.sysschobjs", || {
                let table = database.object_name(table);
                format!("index {index} of {table} enforces the {} {name}, which does not exist", kind(is_primary))
            });
        }
    }
}
