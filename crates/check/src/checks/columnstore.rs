//! Checks columnstore indexes by their description in the catalog (messages 7902, 7967, 7976, 5285, 7991): the segments
//! of a row group must have its row count, and the dictionaries and LOB values that they refer to must exist. No
//! segment is decoded.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Blob, Database, IndexType, Rowset, Segment};
use findings::registry::{self, Check, limits};
use findings::{Coverage, Finding, Owner};
use format::lob::Fragment;
use format::protection::undo_torn_bits;
use format::{Page, PageType};

use crate::basis::ledger::FindingCollector;
use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;
use crate::page::audit;
use crate::sweep::Target;
use crate::sweep::context::Context;
use crate::sweep::pinpoint::{Unread, note_unread, sound};

/// The most rows of a row group.
const MAX_ROWS: i32 = 1 << 20;
/// Internal version of SQL Server 2016.
const VERSION_2016: u16 = 852;
/// Internal version of SQL Server 2017, the oldest version for which the encodings are known.
const VERSION_2017: u16 = 869;
/// The dictionary ID of a segment without a dictionary.
const NONE: i32 = -1;
/// Integers up to this magnitude are exact in a float.
const EXACT: u64 = 1 << 52;

/// A fault of one column in a row group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    /// The segment contradicts its row group, or two of its fields contradict each other.
    Mismatch,
    /// The segment is missing.
    NoSegment,
    /// A dictionary is missing.
    NoDictionary,
}

impl Fault {
    fn check(self, index_type: IndexType) -> &'static Check {
        match (self, index_type) {
            (Self::Mismatch, _) => &registry::COLUMNSTORE_MISMATCH,
            (Self::NoSegment, IndexType::ClusteredColumnstore) => &registry::COLUMNSTORE_SEGMENT,
            (Self::NoSegment, _) => &registry::COLUMNSTORE_SEGMENT_NONCLUSTERED,
            (Self::NoDictionary, IndexType::ClusteredColumnstore) => &registry::COLUMNSTORE_DICTIONARY,
            (Self::NoDictionary, _) => &registry::COLUMNSTORE_DICTIONARY_NONCLUSTERED,
        }
    }
}

/// Checks all columnstore indexes in scope, after the sweep.
pub(crate) fn reckon(
    context: &Context<'_>,
    swept: &mut Tallies,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) {
    let database = context.database;
    let store = &database.columnstore;
    for table in &store.unread {
        coverage.note(&limits::COLUMNSTORE_CATALOG, format!("sys.{table}"), 0);
    }
    let is_complete = store.unread.is_empty() && [35, 62, 63].iter().all(|table| database.gap(*table).is_none());
    for rowset in database.rowsets.iter().filter(|rowset| rowset.compression > 2) {
        let Some(index) = database.indexes.get(&(rowset.object_id, rowset.index_id)) else { continue };
        let units = || rowset.units.iter().filter_map(|unit| context.units.list().get(*unit));
        if !index.index_type.is_columnstore() || !units().any(|unit| context.in_scope(unit)) {
            continue;
        }
        let table = database.object_name(rowset.object_id);
        let scope = format!("{table}.{}", index.name);
        coverage.note(&limits::COLUMNSTORE_SEGMENTS, &scope, 0);
        let mut faults = if is_complete { faults(database, rowset) } else { BTreeSet::new() };
        faults.extend(missing_blobs(context, rowset, swept, coverage));
        let unit = units().next().map_or(Owner::unknown(format::AllocUnitId(0)), |unit| unit.owner);
        for (group, column, fault) in faults {
            let finding = Finding::new(fault.check(index.index_type)).owner(unit).text_value("index", &index.name);
            let finding = finding.text_value("table", &table).number("column", column).number("group", group);
            findings.push(finding);
        }
    }
}

/// The faults in a rowset's segments that the catalog alone shows, each as row group, column and fault.
fn faults(database: &Database, rowset: &Rowset) -> BTreeSet<(i32, i32, Fault)> {
    let store = &database.columnstore;
    let segments = of_rowset(&store.segments, rowset, |segment| segment.rowset_id);
    let groups = of_rowset(&store.row_groups, rowset, |group| group.rowset_id);
    let compressed = groups.iter().filter(|group| group.is_compressed());
    let groups: BTreeMap<i32, i32> = compressed.map(|group| (group.id, group.rows)).collect();
    // An upgrade of the database keeps the segments of the older release. So the checks depend on the release that
    // created the database.
    let made_by = |version| database.boot.as_ref().is_some_and(|boot| boot.create_version >= version);
    let encodings_are_known = made_by(VERSION_2017);
    let mut rows: BTreeMap<i32, i32> = groups.clone();
    let mut faults = BTreeSet::new();
    for segment in segments {
        let at = |fault| (segment.group_id, segment.column_id, fault);
        // If the catalog has no row for the row group, the first segment gives the row count.
        let agrees = *rows.entry(segment.group_id).or_insert(segment.rows) == segment.rows;
        let is_possible = (0..=MAX_ROWS).contains(&segment.rows);
        if !agrees || !is_possible || encodings_are_known && !(is_range_ordered(segment) && is_encoding_sound(segment))
        {
            faults.insert(at(Fault::Mismatch));
        }
        let is_there = |id: i32| {
            let key = (rowset.id, segment.column_id, id);
            let of = |dictionary: &catalog::Dictionary| (dictionary.rowset_id, dictionary.column_id, dictionary.id);
            id == NONE || store.dictionaries.binary_search_by_key(&key, of).is_ok()
        };
        if !is_there(segment.primary_dictionary) || !is_there(segment.secondary_dictionary) {
            faults.insert(at(Fault::NoDictionary));
        }
    }
    // A column may have been added after a row group was made, and the segments of dropped columns remain. Until SQL
    // Server 2014, a row group kept its number when it was compressed. So a row group with a new column may have a
    // lower number than row groups without the column. In such databases, missing segments are therefore not reported.
    if rowset.layout.columns.iter().any(catalog::RowsetColumn::is_dropped) || !made_by(VERSION_2016) {
        return faults;
    }
    let mut since: BTreeMap<i32, i32> = BTreeMap::new();
    for segment in segments {
        since.entry(segment.column_id).or_insert(segment.group_id);
    }
    let present: BTreeSet<(i32, i32)> = segments.iter().map(|segment| (segment.group_id, segment.column_id)).collect();
    let all: BTreeSet<i32> = groups.into_keys().chain(segments.iter().map(|segment| segment.group_id)).collect();
    for group in all {
        let older = since.iter().filter(|(_, first)| **first < group).map(|(column, _)| *column);
        let missing = older.filter(|column| !present.contains(&(group, *column)));
        faults.extend(missing.map(|column| (group, column, Fault::NoSegment)));
    }
    faults
}

/// The part of a list that belongs to a rowset. The list is sorted by rowset.
fn of_rowset<'a, T>(list: &'a [T], rowset: &Rowset, id: impl Fn(&T) -> u64) -> &'a [T] {
    let start = list.partition_point(|row| id(row) < rowset.id);
    let end = list.partition_point(|row| id(row) <= rowset.id);
    list.get(start..end).unwrap_or_default()
}

/// Whether the minimum of a segment is not above its maximum. For a float column, minimum and maximum are floats whose
/// bits are stored as integers, so the integers of negative floats are in reverse order.
fn is_range_ordered(segment: &Segment) -> bool {
    let [min, max] = [segment.min_data_id, segment.max_data_id];
    let as_float = |id: i64| f64::from_bits(id.cast_unsigned());
    min <= max || as_float(min) <= as_float(max)
}

/// Checks the base and the magnitude of a segment against the rules that held for all 1,309 segments seen
/// (docs/format/columnstore.md#invariants).
fn is_encoding_sound(segment: &Segment) -> bool {
    let min = segment.min_data_id;
    match segment.encoding {
        1 if segment.magnitude.is_normal() && min.unsigned_abs() < EXACT && segment.base_id.unsigned_abs() < EXACT => {
            // Encoded values start at 3, because the codes 0 to 2 are reserved.
            (min as f64 / segment.magnitude - 3.0 - segment.base_id as f64).abs() < 1.0
        }
        2 | 3 => segment.base_id == -1 && segment.magnitude == -1.0,
        _ => true,
    }
}

/// Segments and dictionaries whose LOB root is missing at the address in the catalog, although the page can be read. If
/// a page was sound in the sweep and cannot be read now, its unit is noted.
fn missing_blobs(
    context: &Context<'_>,
    rowset: &Rowset,
    swept: &mut Tallies,
    coverage: &mut Coverage,
) -> Vec<(i32, i32, Fault)> {
    let store = &context.database.columnstore;
    let segments = of_rowset(&store.segments, rowset, |segment| segment.rowset_id).iter();
    let segments = segments.map(|segment| (segment.group_id, segment.column_id, Fault::NoSegment, segment.blob));
    let dictionaries = of_rowset(&store.dictionaries, rowset, |dictionary| dictionary.rowset_id).iter();
    let dictionaries =
        dictionaries.map(|dictionary| (dictionary.id, dictionary.column_id, Fault::NoDictionary, dictionary.blob));
    let (mut target, mut missing) = (Target::default(), Vec::new());
    for (group, column, fault, blob) in segments.chain(dictionaries) {
        let Some((blob, unit)) = blob.and_then(|blob| Some((blob, context.unit_of(blob.root.page)?))) else { continue };
        // Pages that the sweep has not read are already noted.
        if swept.units.get(unit as usize).is_some_and(|tally| tally.unseen_pages() > 0) {
            continue;
        }
        match is_missing(context, &mut target, rowset, (unit, blob)) {
            Ok(true) => missing.push((group, column, fault)),
            Ok(false) => {}
            Err(Unread) => note_unread(context, unit, swept, coverage),
        }
    }
    missing
}

fn is_missing(
    context: &Context<'_>,
    target: &mut Target,
    rowset: &Rowset,
    (unit, blob): (UnitIndex, Blob),
) -> Result<bool, Unread> {
    if !rowset.units.contains(&(unit as usize)) {
        // The page does not belong to the rowset. If all allocation maps could be read, another unit owns the page, so
        // the root is missing.
        return Ok(context.survey.unread.is_empty() && context.source.read_page(blob.root.page).is_some());
    }
    let bytes = match sound(context, target, unit, blob.root.page)? {
        Some(bytes) => bytes,
        // The page was not sound in the sweep: it may be a free page, which the sweep skips, or a bad page, which is
        // already reported.
        None => {
            let mut bytes = context.source.read_page(blob.root.page).ok_or(Unread)?;
            if audit::identity(&bytes, blob.root.page).is_some() {
                return Ok(false);
            }
            undo_torn_bits(&mut bytes);
            bytes
        }
    };
    let page = Page::new(&bytes);
    let offset = page.slot_offset(blob.root.slot).filter(|offset| *offset > 0);
    let record = offset.and_then(|offset| Fragment::read(page.bytes().get(usize::from(offset)..)?).ok());
    let is_text = matches!(page.header().kind(), Some(PageType::TextMix | PageType::TextTree));
    Ok(is_text && !record.is_some_and(|fragment| fragment.is_live() && fragment.blob_id() == blob.id))
}

#[cfg(test)]
mod tests {
    use catalog::{Boot, Columnstore, Dictionary, RowGroup};

    use super::*;

    /// Two row groups of two columns: the integers 0 to 199,999, and strings with a dictionary.
    fn database() -> Database {
        let mut database = Database {
            boot: Some(Boot { version: 904, create_version: 904, ..Boot::default() }),
            ..Database::default()
        };
        let segment = |group_id: i32, column_id: i32| Segment {
            rowset_id: 7,
            column_id,
            group_id,
            rows: 1000 + group_id,
            encoding: if column_id == 1 { 1 } else { 3 },
            base_id: if column_id == 1 { -3 } else { -1 },
            magnitude: if column_id == 1 { 1.0 } else { -1.0 },
            primary_dictionary: if column_id == 1 { NONE } else { 0 },
            secondary_dictionary: NONE,
            min_data_id: 0,
            max_data_id: 199_999,
            blob: None,
        };
        let store = &mut database.columnstore;
        store.segments = vec![segment(0, 1), segment(0, 2), segment(1, 1), segment(1, 2)];
        store.dictionaries = vec![Dictionary { rowset_id: 7, column_id: 2, id: 0, blob: None }];
        store.row_groups = [0, 1, 2]
            .map(|id| RowGroup { rowset_id: 7, id, rows: 1000 + id, status: if id < 2 { 3 } else { 1 } })
            .to_vec();
        database.rowsets.push(Rowset {
            id: 7,
            object_id: 100,
            index_id: 1,
            partition: 1,
            owner_type: 1,
            rows: 2001,
            compression: 3,
            ..Rowset::default()
        });
        database
    }

    fn after(change: impl FnOnce(&mut Columnstore)) -> Vec<(i32, i32, Fault)> {
        let mut database = database();
        change(&mut database.columnstore);
        faults(&database, &database.rowsets[0]).into_iter().collect()
    }

    #[test]
    fn what_live_servers_write_is_sound() {
        assert_eq!(after(|_| {}), []);
        // The published example with the values 10, 20 ... 12000.
        let tens = |store: &mut Columnstore| {
            let segment = &mut store.segments[0];
            (segment.base_id, segment.magnitude, segment.min_data_id, segment.max_data_id) = (-2, 10.0, 10, 12_000);
        };
        assert_eq!(after(tens), []);
        assert_eq!(after(|store| store.row_groups.clear()), [], "SQL Server 2012 has no row groups");
        let column_added_later = |store: &mut Columnstore| {
            store.segments.remove(1);
        };
        assert_eq!(after(column_added_later), []);
        // The first pair has the lowest and the highest float seen. The second, -5 and -1, is a valid range of floats
        // too.
        for (min, max) in [
            (-4_503_599_627_370_497, 9_218_868_437_227_405_311),
            ((-5f64).to_bits().cast_signed(), (-1f64).to_bits().cast_signed()),
        ] {
            let floats = |store: &mut Columnstore| {
                let segment = &mut store.segments[0];
                (segment.encoding, segment.base_id, segment.magnitude) = (4, 0, 1.0);
                (segment.min_data_id, segment.max_data_id) = (min, max);
            };
            assert_eq!(after(floats), []);
        }
        // A tombstone row group keeps its segments, and its row count has no meaning.
        assert_eq!(after(|store| (store.row_groups[0].status, store.row_groups[0].rows) = (4, 0)), []);
    }

    #[test]
    fn what_older_servers_wrote_is_known_less_well() {
        let mut database = database();
        database.boot.as_mut().unwrap().create_version = 782;
        // An older server may have compressed a row group whose delta store it made before the column was added. So a
        // missing segment is no fault.
        database.columnstore.segments.remove(3);
        assert!(faults(&database, &database.rowsets[0]).is_empty());
        database.columnstore.segments[0].base_id = 7;
        assert!(faults(&database, &database.rowsets[0]).is_empty());
        database.columnstore.segments[0].rows += 1;
        assert!(!faults(&database, &database.rowsets[0]).is_empty());
    }

    #[test]
    fn each_contradiction_is_told_with_column_and_row_group() {
        assert_eq!(after(|store| store.segments[2].rows -= 1), [(1, 1, Fault::Mismatch)]);
        assert_eq!(after(|store| store.segments[2].min_data_id = 200_000), [(1, 1, Fault::Mismatch)]);
        assert_eq!(after(|store| store.segments[0].base_id = 7), [(0, 1, Fault::Mismatch)]);
        assert_eq!(after(|store| store.segments[1].magnitude = 1.0), [(0, 2, Fault::Mismatch)]);
        assert_eq!(after(|store| store.segments[3].secondary_dictionary = 5), [(1, 2, Fault::NoDictionary)]);
        let no_dictionary = [(0, 2, Fault::NoDictionary), (1, 2, Fault::NoDictionary)];
        assert_eq!(after(|store| store.dictionaries.clear()), no_dictionary);
        assert_eq!(after(|store| _ = store.segments.remove(3)), [(1, 2, Fault::NoSegment)]);
        let both = [(1, 1, Fault::NoSegment), (1, 2, Fault::NoSegment)];
        assert_eq!(after(|store| store.segments.truncate(2)), both);
    }

    #[test]
    fn the_kind_of_index_decides_the_message() {
        let numbers = |fault: Fault| {
            [IndexType::ClusteredColumnstore, IndexType::NonclusteredColumnstore].map(|kind| fault.check(kind).msg)
        };
        assert_eq!(numbers(Fault::Mismatch), [7902, 7902]);
        assert_eq!(numbers(Fault::NoSegment), [7967, 7976]);
        assert_eq!(numbers(Fault::NoDictionary), [7991, 5285]);
    }
}
