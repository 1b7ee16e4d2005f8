//! Reads partition functions, and the heaps and indexes that they partition.
//!
//! The class numbers of partition functions in base tables are undocumented, and no partitioned database was available.
//! Therefore, this code assumes no class number. It uses the documentation of the catalog views over the base tables to
//! find related rows. A partition function has type R, and a partition scheme is a data space of type PS. Boundaries
//! are numbered from 1, and their values have the type of the partitioning column (which sys.index_columns lists). A
//! set of related rows is used only if it is complete and no other set matches.

use std::collections::{BTreeMap, BTreeSet};

use format::types::{TypeInfo, xtype};

use super::{Loader, variant_value};
use crate::database::{Boundary, Database, PartitionFunction, Partitioned};

/// The maximum number of boundaries of a partition function, which can have 15,000 partitions. A longer list comes from
/// a damaged catalog.
const MAX_BOUNDARIES: usize = 14_999;

/// The classes of sysobjvalues that certainly do not contain boundaries. Their rows are texts, settings, assembly
/// files, statistics, filters, triggers, spatial indexes, ledger data and others (docs/format/catalog.md#sysobjvalues).
const OTHER_CLASSES: [u64; 17] = [1, 2, 4, 7, 10, 60, 63, 66, 70, 92, 93, 94, 113, 119, 123, 145, 153];

/// A row of sysobjvalues that may contain a boundary: subobjid, valnum, and the boundary in `value`.
type Candidate = (i32, i32, Option<Boundary>);

/// Rows that may contain boundaries, by their class in sysobjvalues.
type Candidates = BTreeMap<u64, Vec<Candidate>>;

/// Reads the partition functions, and the heaps and indexes that they partition.
pub(super) fn load(loader: &Loader<'_>, database: &mut Database) {
    let (mut functions, mut schemes) = (BTreeMap::new(), BTreeSet::new());
    loader.scan(database, (64, "sysclsobjs"), |row| {
        match row.bytes("type") {
            Some(b"R " | b"R") => {
                functions.insert(row.int("id"), PartitionFunction { name: row.text("name"), ..Default::default() });
            }
            Some(b"PS") => {
                schemes.insert(row.int("id"));
            }
            _ => {}
        };
    });
    if functions.is_empty() || schemes.is_empty() {
        return;
    }
    load_boundaries(loader, database, &mut functions);
    let partitioned = partitioned(loader, database, &functions, &schemes);
    (database.partition_functions, database.partitioned) = (functions, partitioned);
}

fn load_boundaries(loader: &Loader<'_>, database: &mut Database, functions: &mut BTreeMap<i32, PartitionFunction>) {
    let mut candidates: BTreeMap<i32, Candidates> = BTreeMap::new();
    loader.scan(database, (60, "sysobjvalues"), |row| {
        let (id, class) = (row.int("objid"), row.number("valclass"));
        if functions.contains_key(&id) && !OTHER_CLASSES.contains(&class) {
            let boundary = match row.bytes("value") {
                None => Some(Boundary { info: TypeInfo::default(), value: None }),
                Some(variant) => boundary(variant),
            };
            let candidate = (row.int("subobjid"), row.int("valnum"), boundary);
            candidates.entry(id).or_default().entry(class).or_default().push(candidate);
        }
    });
    for (id, candidates) in candidates {
        if let Some(function) = functions.get_mut(&id) {
            function.candidates = candidates.into_values().filter_map(list).collect();
        }
    }
}

/// Converts the rows of a class to a list of boundaries. Each row has two numbers. One of them is the number of the
/// boundary and must count from 1. The other is the number of the function's parameter and must be the same in all
/// rows. All values must have one type, and only the first may be NULL. If the rows do not meet these conditions, the
/// result is `None`.
fn list(mut rows: Vec<Candidate>) -> Option<Vec<Boundary>> {
    rows.sort_by_key(|(sub_id, number, _)| (*sub_id, *number));
    let sub_ids = || rows.iter().map(|(sub_id, ..)| *sub_id);
    let numbers = || rows.iter().map(|(_, number, _)| *number);
    let (first_sub_id, first_number) = rows.first().map(|(sub_id, number, _)| (*sub_id, *number))?;
    let by_sub_id = counts_from_1(sub_ids()) && numbers().all(|number| number == first_number);
    let by_number = counts_from_1(numbers()) && sub_ids().all(|sub_id| sub_id == first_sub_id);
    if !by_sub_id && !by_number || rows.len() > MAX_BOUNDARIES {
        return None;
    }
    let boundaries: Vec<Boundary> = rows.into_iter().map(|(.., boundary)| boundary).collect::<Option<_>>()?;
    let values = || boundaries.iter().skip_while(|boundary| boundary.value.is_none());
    let first = values().next()?;
    let is_of_one_type = values().all(|boundary| boundary.value.is_some() && boundary.info == first.info);
    let nulls = boundaries.len() - values().count();
    (is_of_one_type && nulls <= 1).then_some(boundaries)
}

fn counts_from_1(numbers: impl Iterator<Item = i32>) -> bool {
    numbers.zip(1..).all(|(number, expected)| number == expected)
}

/// Reads a boundary from a sql_variant, which consists of the base type, the version, the properties and the value
/// (docs/format/types-and-keys.md#sql_variant). `None` if the value has the wrong length for the base type.
fn boundary(variant: &[u8]) -> Option<Boundary> {
    let (&kind, property) = (variant.first()?, |at: usize| variant.get(at).copied().unwrap_or_default());
    let mut info = TypeInfo { xtype: kind, ..TypeInfo::default() };
    match kind {
        xtype::DECIMAL | xtype::NUMERIC => (info.precision, info.scale) = (property(2), property(3)),
        xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => info.scale = property(2),
        _ => {}
    }
    let value = variant_value(variant)?;
    let expected = format::types::fixed_length(info).map(usize::from);
    expected.is_none_or(|length| length == value.len()).then(|| Boundary { info, value: Some(value.into()) })
}

fn partitioned(
    loader: &Loader<'_>,
    database: &mut Database,
    functions: &BTreeMap<i32, PartitionFunction>,
    schemes: &BTreeSet<i32>,
) -> BTreeMap<(i32, i32), Partitioned> {
    /// The classes for the data spaces of a table's LOB values and FILESTREAM files (sys.tables).
    const OTHER_DATA_SPACES: [u64; 2] = [8, 42];
    let (mut function_of, mut scheme_of) = (BTreeMap::new(), BTreeMap::new());
    loader.scan(database, (74, "syssingleobjrefs"), |row| {
        let (from, to) = (row.int("depid"), row.int("indepid"));
        if schemes.contains(&from) && functions.contains_key(&to) {
            only(&mut function_of, from, to);
        } else if schemes.contains(&to) && !OTHER_DATA_SPACES.contains(&row.number("class")) {
            only(&mut scheme_of, (from, row.int("depsubid")), to);
        }
    });
    // Up to SQL Server 2008 R2, the data space of an index is stored in the index's row of sysidxstats
    // (docs/format/catalog.md#sysidxstats).
    loader.scan(database, (54, "sysidxstats"), |row| {
        let scheme = row.int("dataspace");
        if schemes.contains(&scheme) {
            only(&mut scheme_of, (row.int("id"), row.int("indid")), scheme);
        }
    });
    let mut columns = BTreeMap::new();
    loader.scan(database, (55, "sysiscols"), |row| {
        const INDEX_COLUMN: u64 = 0x2;
        if row.number("status") & INDEX_COLUMN != 0 && row.number("tinyprop2") != 0 {
            only(&mut columns, (row.int("idmajor"), row.int("idminor")), row.number("intprop") as u32);
        }
    });
    let of = |(index, scheme): (&(i32, i32), &Option<i32>)| {
        let scheme_id = (*scheme)?;
        let function_id = (*function_of.get(&scheme_id)?)?;
        let column_id = (*columns.get(index)?)?;
        Some((*index, Partitioned { function_id, scheme_id, column_id }))
    };
    scheme_of.iter().filter_map(of).collect()
}

/// Records the value for a key. If a key gets different values, its value becomes `None`.
fn only<K: Ord, V: PartialEq>(map: &mut BTreeMap<K, Option<V>>, key: K, value: V) {
    match map.get_mut(&key) {
        None => drop(map.insert(key, Some(value))),
        Some(known) if known.as_ref() != Some(&value) => *known = None,
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i32) -> Option<Boundary> {
        let mut variant = vec![xtype::INT, 1];
        variant.extend(value.to_le_bytes());
        boundary(&variant)
    }

    #[test]
    fn boundaries_are_one_numbered_list_of_one_type() {
        let numbers = |found: Option<Vec<Boundary>>| -> Option<Vec<Option<i64>>> {
            let number = |boundary: Boundary| boundary.value.map(|bytes| crate::integer(&bytes, true));
            Some(found?.into_iter().map(number).collect())
        };
        let expected = Some(vec![Some(10), Some(20), Some(30)]);
        assert_eq!(numbers(list(vec![(2, 1, int(20)), (1, 1, int(10)), (3, 1, int(30))])), expected);
        assert_eq!(numbers(list(vec![(1, 2, int(20)), (1, 1, int(10)), (1, 3, int(30))])), expected);
        assert_eq!(numbers(list(vec![(1, 1, int(7))])), Some(vec![Some(7)]));
        assert!(list(vec![(1, 1, int(1)), (3, 1, int(3))]).is_none(), "a gap");
        assert!(list(vec![(1, 1, int(1)), (2, 2, int(3))]).is_none(), "two parameters");
        assert!(list(vec![(0, 0, int(1))]).is_none(), "not numbered from 1");
        let null = Some(Boundary { info: TypeInfo::default(), value: None });
        assert_eq!(numbers(list(vec![(1, 1, null.clone()), (2, 1, int(2))])), Some(vec![None, Some(2)]));
        assert!(list(vec![(1, 1, int(2)), (2, 1, null)]).is_none(), "NULL sorts first");
        let other = boundary(&[xtype::BIGINT, 1, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert!(list(vec![(1, 1, int(1)), (2, 1, other)]).is_none(), "two types");
    }

    #[test]
    fn a_value_has_the_scale_of_its_variant() {
        let decimal = boundary(&[xtype::DECIMAL, 1, 9, 2, 1, 0xE8, 3, 0, 0]).unwrap();
        assert_eq!((decimal.info.precision, decimal.info.scale), (9, 2));
        assert_eq!(decimal.value.as_deref(), Some(&[1, 0xE8, 3, 0, 0][..]));
        assert!(boundary(&[xtype::DATETIME2, 1, 7, 1, 2, 3]).is_none(), "too short");
    }

    #[test]
    fn two_values_for_one_key_are_none() {
        let mut map = BTreeMap::new();
        only(&mut map, 1, 'a');
        only(&mut map, 1, 'a');
        assert_eq!(map.get(&1), Some(&Some('a')));
        only(&mut map, 1, 'b');
        only(&mut map, 1, 'a');
        assert_eq!(map.get(&1), Some(&None));
    }
}
