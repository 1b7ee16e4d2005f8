//! Each row must be in the partition that the partition function determines. The tests change the catalog in memory so
//! that a table has a second, empty partition.

use catalog::{AllocUnit, Boundary, Database, PartitionFunction, Partitioned, Rowset, UnitKind};
use findings::{Options, Report};
use format::types::{TypeInfo, xtype};
use format::{AllocUnitId, PageId};
use libtest_mimic::{Failed, Trial};

use crate::damage::ADVENTURE_WORKS;
use crate::subjects;

/// A test case: its name, the boundary, and the number of rows that must be reported in a wrong partition. The last
/// item is the reason with which rows must be listed as not verified, if any. The ProductIDs are 680 to 999.
type Case = (&'static str, i32, usize, Option<&'static str>);

const CASES: [Case; 5] = [
    ("partitions: all rows are below the boundary", 1_000, 0, None),
    ("partitions: a row equal to the boundary may be on its left", 999, 0, None),
    ("partitions: one row is above", 998, 1, None),
    ("partitions: nine rows are above", 990, 9, None),
    ("partitions: boundaries that most rows contradict are not believed", 700, 0, Some("most rows contradict")),
];

/// One test per case and subject.
pub fn trials() -> Vec<Trial> {
    let there = [ADVENTURE_WORKS, subjects::SHOP].into_iter().filter(|name| subjects::is_there(name));
    there.flat_map(trials_of).collect()
}

fn trials_of(subject: &'static str) -> Vec<Trial> {
    let case = |&(name, boundary, wrong, told): &Case| {
        Trial::test(format!("{name} ({})", subjects::short(subject)), move || {
            let image = subjects::image(subject);
            let change = |database: &mut Database| partition(database, boundary);
            let one = image.check_changed(&Options { max_threads: 1, ..Options::default() }, change);
            let many = image.check_changed(&Options { max_threads: 4, batches: 2, ..Options::default() }, change);
            if texts(&one) != texts(&many) {
                return Err("depends on the threads".into());
            }
            agree(&one, boundary, wrong, told)
        })
    };
    CASES.iter().map(case).collect()
}

fn texts(report: &Report) -> Vec<String> {
    report.findings.iter().map(|finding| finding.text(&report.names())).collect()
}

fn agree(report: &Report, boundary: i32, wrong: usize, told: Option<&str>) -> Result<(), Failed> {
    let texts = texts(report);
    if texts.len() != 2 * wrong {
        return Err(format!("{} findings: {:#?}", texts.len(), texts.iter().take(4).collect::<Vec<_>>()).into());
    }
    for pair in texts.chunks(2) {
        let head = pair[0].starts_with("Table error: object ID ")
            && pair[0].ends_with(
                ". A row should be on partition number 2 but was found in partition number 1. Possible extra or invalid \
                 keys for:",
            );
        let row = pair[1].strip_prefix("Row (1:").and_then(|text| text.split_once(") identified by (ProductID = "));
        let id = row.and_then(|(_, id)| id.strip_suffix(").")?.parse::<i32>().ok());
        if !head || id.is_none_or(|id| id <= boundary) {
            return Err(format!("{pair:#?}").into());
        }
    }
    let entries = || report.not_verified.iter().filter(|entry| entry.what == "partition of each row");
    match told {
        None if entries().count() > 0 => Err(format!("{:?}", entries().next()).into()),
        Some(reason) if !entries().any(|entry| entry.reason.contains(reason)) => Err("not reported".into()),
        _ => Ok(()),
    }
}

/// Divides the table Product into two partitions in the catalog. The table is clustered on ProductID. All its rows stay
/// in the first partition, and the second partition is empty.
pub fn partition(database: &mut Database, boundary: i32) {
    const FUNCTION: i32 = 65_536;
    let object = database.objects.values().find(|object| object.name == "Product" && object.type_code == "U");
    let object_id = object.expect("table").id;
    let first = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (object_id, 1));
    let first = first.expect("clustered index").clone();
    let (rowset, unit) = (u64::MAX >> 1, AllocUnitId(u64::MAX >> 2));
    database.units.push(AllocUnit {
        id: unit,
        kind: UnitKind::InRow,
        owner_id: rowset,
        rowset: Some(database.rowsets.len()),
        filegroup: 1,
        first_page: PageId::NONE,
        root: PageId::NONE,
        first_iam: PageId::NONE,
        used_pages: 0,
        data_pages: 0,
        reserved_pages: 0,
    });
    let units = vec![database.units.len() - 1];
    database.rowsets.push(Rowset { id: rowset, partition: 2, rows: 0, units, ..first });
    let value = Boundary { info: TypeInfo::from_ti(xtype::INT.into()), value: Some(boundary.to_le_bytes().into()) };
    let function = PartitionFunction { name: "by id".to_owned(), candidates: vec![vec![value]] };
    database.partition_functions.insert(FUNCTION, function);
    database.partitioned.insert((object_id, 1), Partitioned { function_id: FUNCTION, scheme_id: 1, column_id: 1 });
}
