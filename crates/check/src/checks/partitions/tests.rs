//! Tests of partitions with synthetic catalogs, because no real partitioned database was available.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{
    AllocUnit, Database, PartitionFunction, Partitioned, RowLayout, Rowset, RowsetColumn, TableColumn, UnitKind,
};
use findings::Options;
use format::collation::CollationId;
use format::key::KeyOrder;
use format::types::{TypeInfo, xtype};
use format::{AllocUnitId, PageId};

use super::*;
use crate::basis::units::Units;
use crate::values::Column;

const TABLE: i32 = 100;
const FUNCTION: i32 = 65_536;

fn int(value: i32) -> Boundary {
    let info = TypeInfo::from_ti(xtype::INT.into());
    Boundary { info, value: Some(value.to_le_bytes().into()) }
}

fn null() -> Boundary {
    Boundary { info: TypeInfo::default(), value: None }
}

fn rowset_column(id: u32, kind: u8) -> RowsetColumn {
    RowsetColumn {
        id,
        physical: id,
        info: TypeInfo::from_ti(kind.into()),
        collation: CollationId(0),
        status: 0,
        key_ordinal: id as u16,
        leaf_offset: 4,
        node_offset: 0,
        leaf_null_bit: id as u16,
        node_null_bit: 0,
        default: None,
        leaf_bit: 0,
        node_bit: 0,
    }
}

fn work(partition: usize, boundaries: &[Boundary]) -> UnitPlan {
    UnitPlan {
        plan: 0,
        partition,
        boundaries: boundaries.into(),
        column: Column::of_table(&rowset_column(1, xtype::INT)),
        order: KeyOrder::Signed,
        key: Arc::new([]),
    }
}

/// A heap with `partitions` partitions by an int column, and a partition function with these boundaries.
fn database(partitions: i32, boundaries: Vec<Boundary>) -> Database {
    let mut database = Database::default();
    database.columns.insert(TABLE, vec![TableColumn { id: 1, name: "Year".to_owned(), status: 0, user_type: 0 }]);
    for number in 1..=partitions {
        database.units.push(AllocUnit {
            id: AllocUnitId(1000 + number as u64),
            kind: UnitKind::InRow,
            owner_id: number as u64,
            rowset: Some(number as usize - 1),
            filegroup: 1,
            first_page: PageId::NONE,
            root: PageId::NONE,
            first_iam: PageId::NONE,
            used_pages: 0,
            data_pages: 0,
            reserved_pages: 0,
        });
        database.rowsets.push(Rowset {
            id: number as u64,
            object_id: TABLE,
            partition: number,
            owner_type: 1,
            units: vec![number as usize - 1],
            layout: RowLayout { columns: vec![rowset_column(1, xtype::INT)] },
            ..Rowset::default()
        });
    }
    let function = PartitionFunction { name: "pf".to_owned(), candidates: vec![boundaries] };
    database.partition_functions = BTreeMap::from([(FUNCTION, function)]);
    database.partitioned =
        BTreeMap::from([((TABLE, 0), Partitioned { function_id: FUNCTION, scheme_id: 1, column_id: 1 })]);
    database
}

fn reason(database: &Database) -> Option<String> {
    let plans = Plans::new(database, &Units::of(database), &Options::default());
    plans.left_out().next().map(|(_, _, reason)| reason.text.clone())
}

fn place_of(value: Option<i32>, boundaries: &[Boundary]) -> Place {
    place(&work(1, boundaries), value.map(i32::to_le_bytes).as_ref().map(<[u8; 4]>::as_slice)).expect("decided")
}

#[test]
fn a_value_lies_behind_all_boundaries_below_it() {
    let boundaries = [int(-5), int(10), int(20)];
    let places = [(-6, 1), (0, 2), (11, 3), (21, 4), (i32::MAX, 4)];
    for (value, partition) in places {
        assert_eq!(place_of(Some(value), &boundaries), Place::Partition(partition), "{value}");
    }
    assert_eq!(place_of(Some(-5), &boundaries), Place::Boundary(1));
    assert_eq!(place_of(Some(20), &boundaries), Place::Boundary(3));
}

#[test]
fn null_lies_in_the_first_partition() {
    assert_eq!(place_of(None, &[int(1)]), Place::Partition(1));
    assert_eq!(place_of(None, &[null(), int(1)]), Place::Boundary(1));
    assert_eq!(place_of(Some(i32::MIN), &[null(), int(1)]), Place::Partition(2));
}

#[test]
fn a_row_is_held_against_the_boundaries_of_its_partition() {
    let boundaries = [int(10), int(20)];
    let standing = |partition, value: i32| standing(&work(partition, &boundaries), Some(&value.to_le_bytes()));
    assert!(matches!(standing(1, 9), Some(Placement::Inside)));
    assert!(matches!(standing(1, 10), Some(Placement::OnHigh)), "RANGE LEFT");
    assert!(matches!(standing(2, 10), Some(Placement::OnLow)), "RANGE RIGHT");
    assert!(matches!(standing(2, 20), Some(Placement::OnHigh)));
    assert!(matches!(standing(3, 21), Some(Placement::Inside)));
    assert!(matches!(standing(3, 19), Some(Placement::Outside(Place::Partition(2)))));
    assert!(matches!(standing(3, 10), Some(Placement::Outside(Place::Boundary(1)))));
    assert!(matches!(standing(1, 21), Some(Placement::Outside(Place::Partition(3)))));
}

#[test]
fn the_side_of_boundaries_is_that_of_the_rows_equal_to_one() {
    let seen = |on_low, on_high| Seen { inside: 1, on_low, on_high, ..Seen::default() }.side();
    assert_eq!([seen(0, 0), seen(0, 3), seen(2, 0), seen(1, 1)], [Side::NotSeen, Side::Left, Side::Right, Side::Both]);
}

#[test]
fn partitions_are_numbered_without_gaps_one_more_than_boundaries() {
    assert_eq!(reason(&database(3, vec![int(1), int(2)])), None);
    assert!(reason(&database(2, vec![int(1), int(2)])).is_some());
    let mut gap = database(3, vec![int(1), int(2)]);
    gap.rowsets[2].partition = 4;
    assert!(reason(&gap).is_some());
}

#[test]
fn boundaries_that_are_not_understood_are_not_used() {
    let told = |boundaries| reason(&database(3, boundaries)).unwrap_or_default();
    assert!(told(vec![int(2), int(1)]).contains("order"));
    assert!(told(vec![int(2), int(2)]).contains("order"));
    let bigint = Boundary { info: TypeInfo::from_ti(xtype::BIGINT.into()), value: Some([0; 8].into()) };
    assert!(told(vec![bigint.clone(), bigint]).contains("type of the column, int"));
    let mut none = database(2, vec![int(1)]);
    none.partition_functions.entry(FUNCTION).or_default().candidates.clear();
    assert!(reason(&none).is_some_and(|reason| reason.contains("not in the catalog")));
    let mut unknown = database(2, vec![int(1)]);
    unknown.partitioned.clear();
    assert!(reason(&unknown).is_some_and(|reason| reason.contains("partition function")));
    let mut compressed = database(2, vec![int(1)]);
    compressed.rowsets[0].layout.columns.clear();
    assert!(reason(&compressed).is_some());
}

#[test]
fn of_two_lists_the_one_that_fits_is_used_if_only_one_does() {
    let mut database = database(2, vec![int(1)]);
    let candidates = &mut database.partition_functions.entry(FUNCTION).or_default().candidates;
    candidates.push(vec![int(1), int(2)]);
    assert_eq!(reason(&database), None);
    let candidates = &mut database.partition_functions.entry(FUNCTION).or_default().candidates;
    candidates.push(vec![int(5)]);
    assert!(reason(&database).is_some_and(|reason| reason.contains("several lists")));
}

#[test]
fn a_string_boundary_is_used_as_far_as_its_collation_is_certain() {
    let text = |text: &str| Boundary {
        info: TypeInfo { xtype: xtype::VARCHAR, ..TypeInfo::default() },
        value: Some(text.as_bytes().into()),
    };
    let with = |boundaries: Vec<Boundary>| {
        let mut database = database(3, boundaries);
        for rowset in &mut database.rowsets {
            let column = &mut rowset.layout.columns[0];
            (column.info, column.collation) =
                (TypeInfo::from_ti(20 << 8 | u32::from(xtype::VARCHAR)), CollationId(0xD008));
        }
        reason(&database)
    };
    assert_eq!(with(vec![text("G"), text("P")]), None);
    assert!(with(vec![text("co-op"), text("coop")]).is_some());
}
