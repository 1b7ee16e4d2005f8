//! Columnstore indexes. No real file here has one, so the tests change the catalog in memory to declare an ordinary
//! index as a columnstore index.

use catalog::{Columnstore, Database, Dictionary, IndexType, RowGroup, Segment};
use findings::Options;
use libtest_mimic::{Failed, Trial};

use crate::damage::ADVENTURE_WORKS;
use crate::subjects;

type Change = fn(&mut Columnstore);

/// A test case: its name, the change, and the IDs of the checks that must report the change (`None` if no check must
/// report it). The first ID is for a clustered columnstore index, and the second is for a nonclustered one.
const CASES: [(&str, Change, [Option<&str>; 2]); 4] = [
    ("what servers write is sound", |_| {}, [None, None]),
    (
        "a segment with other rows than its group",
        |store| store.segments[0].rows += 1,
        [Some("columnstore.mismatch"), Some("columnstore.mismatch")],
    ),
    (
        "a segment is gone",
        |store| store.segments.truncate(3),
        [Some("columnstore.segment"), Some("columnstore.segment-nonclustered")],
    ),
    (
        "a dictionary is gone",
        |store| store.dictionaries.clear(),
        [Some("columnstore.dictionary"), Some("columnstore.dictionary-nonclustered")],
    ),
];

/// One test per case, kind of index and subject.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for subject in [ADVENTURE_WORKS, subjects::ORDERS].into_iter().filter(|name| subjects::is_there(name)) {
        for (name, change, expected) in CASES {
            let kinds = [IndexType::ClusteredColumnstore, IndexType::NonclusteredColumnstore];
            for (kind, expected) in kinds.into_iter().zip(expected) {
                let name = format!("columnstore: {name} ({}, {})", kind.name(), subjects::short(subject));
                trials.push(Trial::test(name, move || run(subject, kind, change, expected)));
            }
        }
    }
    trials
}

fn run(subject: &str, kind: IndexType, change: Change, expected: Option<&str>) -> Result<(), Failed> {
    let image = subjects::image(subject);
    let is_clustered = kind == IndexType::ClusteredColumnstore;
    let tree = image.tree(is_clustered);
    let report = image.check_changed(&Options::default(), |database| {
        let at = database.units.iter().find(|unit| unit.id == tree.unit.id).and_then(|unit| unit.rowset);
        make_columnstore(database, at.expect("a rowset"), kind);
        change(&mut database.columnstore);
    });
    let given = report.findings.iter().map(|finding| finding.check.id).filter(|id| id.starts_with("columnstore."));
    let given: Vec<&str> = given.collect();
    let wanted = match expected {
        Some(id) => !given.is_empty() && given.iter().all(|given| *given == id),
        None => given.is_empty(),
    };
    if wanted { Ok(()) } else { Err(format!("found {given:?}").into()) }
}

/// Declares a rowset as a columnstore index with two row groups of two columns: the integers 0 to 199,999, and strings
/// with a dictionary.
fn make_columnstore(database: &mut Database, at: usize, kind: IndexType) {
    let rowset = &mut database.rowsets[at];
    rowset.compression = 3;
    let rowset_id = rowset.id;
    database.indexes.get_mut(&(rowset.object_id, rowset.index_id)).expect("an index").index_type = kind;
    database.boot.as_mut().expect("a boot page").create_version = 904;
    let segment = |group_id: i32, column_id: i32| Segment {
        rowset_id,
        column_id,
        group_id,
        rows: 1000 + group_id,
        encoding: if column_id == 1 { 1 } else { 3 },
        base_id: if column_id == 1 { -3 } else { -1 },
        magnitude: if column_id == 1 { 1.0 } else { -1.0 },
        primary_dictionary: if column_id == 1 { -1 } else { 0 },
        secondary_dictionary: -1,
        min_data_id: 0,
        max_data_id: 199_999,
        blob: None,
    };
    let store = &mut database.columnstore;
    store.segments = vec![segment(0, 1), segment(0, 2), segment(1, 1), segment(1, 2)];
    store.dictionaries = vec![Dictionary { rowset_id, column_id: 2, id: 0, blob: None }];
    store.row_groups = [0, 1].map(|id| RowGroup { rowset_id, id, rows: 1000 + id, status: 3 }).to_vec();
}
