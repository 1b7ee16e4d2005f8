//! Reported losses must agree with the rows that the lab wrote on the lost pages.

use std::collections::BTreeMap;

use catalog::{AllocUnit, Database, RowsetColumn, UnitKind, column_status};
use format::types::TypeInfo;
use format::{PAGE_BYTES, Page, PageId, PageType};
use lab::description::{Column, Filegroup, Index, Table as LabTable, Values};
use lab::{Description, PageVerify, SqlType, Version, orders, specimens};
use rows::loss::{KeyBound, Loss, WhichRows, losses};
use rows::{Reader, Scan, ScanOptions, Table};
use source::{MemoryFiles, PageSource};
use trials::plain::plain;

use super::found::{leaf_pages, opened, salvaged};

/// The approximate size of the `orders` database, in bytes.
const SIZE: u64 = 10 << 20;

fn table(database: &Database, name: &str) -> Table {
    let id = Table::list(database).into_iter().find(|id| database.objects[id].name == name).unwrap();
    Table::of(database, id).unwrap()
}

/// All allocation units of one kind that belong to the partitions of a table.
fn units<'a>(database: &'a Database, table: &Table, kind: UnitKind) -> Vec<&'a AllocUnit> {
    let rowsets = table.partitions.iter().map(|at| &database.rowsets[*at]);
    let units = rowsets.flat_map(|rowset| rowset.units.iter().map(|unit| &database.units[*unit]));
    units.filter(|unit| unit.kind == kind).collect()
}

/// The pages of one type whose headers name an allocation unit.
fn pages_of(files: &MemoryFiles, unit: &AllocUnit, kind: PageType) -> Vec<PageId> {
    let pages = files.files().iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)));
    let is_own = |page: &PageId| {
        let bytes = files.read_page(*page).unwrap();
        let header = Page::new(&bytes).header();
        header.kind() == Some(kind) && header.page_id() == *page && header.alloc_unit() == unit.id
    };
    pages.filter(is_own).collect()
}

fn slots(files: &MemoryFiles, pages: &[PageId]) -> u64 {
    pages.iter().map(|page| u64::from(Page::new(&files.read_page(*page).unwrap()).header().slot_count.get())).sum()
}

fn zeroed(files: &MemoryFiles, pages: &[PageId]) -> MemoryFiles {
    files.with_pages(pages.iter().map(|page| (*page, [0; PAGE_BYTES]))).unwrap()
}

/// Replaces some pages of a table by zeros, and returns the reported losses.
fn lost(files: &MemoryFiles, database: &Database, table: &Table, pages: &[PageId]) -> Vec<Loss> {
    losses(&zeroed(files, pages), database, table, pages, None)
}

/// The values that the lab wrote into an integer column.
fn keys(description: &Description, table: &str, column: &str) -> Vec<i64> {
    let truth = lab::truth::truth(description).into_iter().find(|truth| truth.table == table).unwrap();
    let at = truth.columns.iter().position(|own| own == column).unwrap();
    truth.rows.iter().map(|row| row[at].as_ref().unwrap().parse().unwrap()).collect()
}

/// The number of keys in the key range of a loss; 0 if the loss has no key range.
fn keys_in(keys: &[i64], loss: &Loss) -> u64 {
    let (from, to) = match &loss.which {
        WhichRows::Keys { from, to, .. } => (from, to),
        _ => return 0,
    };
    let limit = |bound: &KeyBound| bound.text().parse::<i64>().unwrap();
    let above = |key: i64, bound: &KeyBound| key > limit(bound) || bound.inclusive && key == limit(bound);
    let below = |key: i64, bound: &KeyBound| key < limit(bound) || bound.inclusive && key == limit(bound);
    let is_in = |key: i64| {
        from.as_ref().is_none_or(|bound| above(key, bound)) && to.as_ref().is_none_or(|bound| below(key, bound))
    };
    keys.iter().filter(|key| is_in(**key)).count() as u64
}

#[test]
#[ignore = "full tier: takes seconds"]
fn leaves_side_by_side_are_one_range_with_the_keys_of_their_rows_and_of_no_others() {
    let description = orders::orders(Version::V852, 7, SIZE);
    let (files, database) = opened(&description);
    let orders = table(&database, "orders");
    let leaves = leaf_pages(&files, &database, &orders);
    let keys = keys(&description, "orders", "order_id");
    let damaged = [&leaves[4..7], &leaves[9..10]].concat();
    let found = lost(&files, &database, &orders, &damaged);
    assert_eq!(found.iter().map(|loss| loss.pages.as_slice()).collect::<Vec<_>>(), [&leaves[4..7], &leaves[9..10]]);
    for loss in &found {
        assert_eq!(keys_in(&keys, loss), slots(&files, &loss.pages));
        assert_eq!(loss.partition, Some(1));
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_range_of_the_first_leaf_and_that_of_the_last_are_open() {
    let description = orders::orders(Version::V852, 7, SIZE);
    let (files, database) = opened(&description);
    let orders = table(&database, "orders");
    let leaves = leaf_pages(&files, &database, &orders);
    let keys = keys(&description, "orders", "order_id");
    let (first, last) = (leaves[0], *leaves.last().unwrap());
    let found = lost(&files, &database, &orders, &[first, last]);
    assert_eq!(found.len(), 2);
    assert!(found[0].which.first_key().is_none() && found[0].which.last_key().is_some(), "{found:?}");
    assert!(found[1].which.first_key().is_some() && found[1].which.last_key().is_none(), "{found:?}");
    for loss in &found {
        assert_eq!(keys_in(&keys, loss), slots(&files, &loss.pages));
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn rows_of_equal_key_may_lie_on_both_sides_of_a_limit() {
    let description = specimens::specimen(Version::V957, PageVerify::Checksum, 1);
    let (files, database) = opened(&description);
    let computed = table(&database, "computed");
    let leaves = leaf_pages(&files, &database, &computed);
    let keys = keys(&description, "computed", "run");
    for lost_page in &leaves[1..leaves.len() - 1] {
        let found = lost(&files, &database, &computed, &[*lost_page]);
        let WhichRows::Keys { from: Some(from), to: Some(to), .. } = &found[0].which else { panic!("{found:?}") };
        assert!(from.inclusive && to.inclusive);
        // Each group of four successive rows has the same key. One group may begin on the previous leaf page, and
        // another group may continue on the next leaf page.
        let most = slots(&files, &[*lost_page]) + 3 + 4;
        assert!((slots(&files, &[*lost_page])..=most).contains(&keys_in(&keys, &found[0])));
    }
}

/// A heap and a clustered index, each with three partitions.
fn partitioned() -> Description {
    let columns = || {
        vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("text", SqlType::char(200), Values::Text { least: 10, most: 200 }),
        ]
    };
    let heap =
        LabTable { name: "heap".to_owned(), columns: columns(), rows: 900, partitions: 3, ..LabTable::default() };
    let clustered = Some(Index::on("pk", &[0]).primary_key());
    let tree = LabTable { name: "tree".to_owned(), clustered, ..LabTable { columns: columns(), ..heap.clone() } };
    Description {
        name: "partitions".to_owned(),
        version: Version::V904,
        collation: lab::description::DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed: 5,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: vec![heap, tree],
        least_pages: 0,
    }
}

#[test]
fn a_lost_page_is_of_the_partition_whose_pages_lead_to_it() {
    let (files, database) = opened(&partitioned());
    for name in ["heap", "tree"] {
        let table = table(&database, name);
        let units = units(&database, &table, UnitKind::InRow);
        assert_eq!(units.len(), 3);
        for (number, unit) in (1..).zip(&units) {
            let pages = pages_of(&files, unit, PageType::Data);
            let found = lost(&files, &database, &table, &pages[1..3]);
            assert_eq!(found.iter().map(|loss| loss.partition).collect::<Vec<_>>(), [Some(number)], "{name} {found:?}");
            assert_eq!(found[0].pages, pages[1..3], "{name}");
        }
        // Also damages both IAM pages that could list the page.
        let page = pages_of(&files, units[1], PageType::Data)[1];
        let damaged = [page, units[1].first_iam, units[2].first_iam];
        let found = lost(&files, &database, &table, &damaged);
        let said: Vec<_> = found.iter().map(|loss| (loss.partition, loss.rows.least)).collect();
        assert_eq!(
            said,
            if name == "heap" { [(None, 0)] } else { [(Some(2), 0)] },
            "the tree still leads to it: {found:?}"
        );
    }
}

#[test]
fn pages_without_rows_of_the_table_cost_no_rows() {
    let description = orders::orders(Version::V957, 7, SIZE);
    let (files, database) = opened(&description);
    let orders = table(&database, "orders");
    let unit = units(&database, &orders, UnitKind::InRow)[0];
    let nodes = pages_of(&files, unit, PageType::Index);
    assert!(nodes.contains(&unit.root));
    let index =
        database.rowsets.iter().find(|rowset| rowset.object_id == orders.object_id && rowset.index_id > 1).unwrap();
    let of_index = pages_of(&files, &database.units[index.units[0]], PageType::Index);
    let below_root: Vec<PageId> = nodes.iter().copied().filter(|page| *page != unit.root).collect();
    for damaged in [&below_root[..], &[unit.root], &[unit.first_iam], &of_index[..2]] {
        assert_eq!(lost(&files, &database, &orders, damaged), [], "{damaged:?}");
        // If a leaf page is also damaged, the leaf page is the only loss.
        let leaf = *leaf_pages(&files, &database, &orders).last().unwrap();
        let found = lost(&files, &database, &orders, &[damaged, &[leaf]].concat());
        assert_eq!(found.iter().map(|loss| loss.pages.as_slice()).collect::<Vec<_>>(), [&[leaf]], "{damaged:?}");
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_page_of_long_values_costs_its_values_and_no_row() {
    let description = specimens::specimen(Version::V957, PageVerify::Checksum, 1);
    let (files, database) = opened(&description);
    let moving = table(&database, "moving");
    let unit = units(&database, &moving, UnitKind::Lob)[0];
    let text = pages_of(&files, unit, PageType::TextMix)[2];
    assert_eq!(lost(&files, &database, &moving, &[text]), []);
    let damaged = zeroed(&files, &[text]);
    let truth = lab::truth::truth(&description).into_iter().find(|truth| truth.table == "moving").unwrap();
    let truth: BTreeMap<_, _> = truth.rows.into_iter().map(|row| (row[0].clone(), row)).collect();
    let mut scan = Scan::new(&damaged, &database, &moving, ScanOptions::default());
    let mut reader = Reader::new(&damaged, &database, &moving, ScanOptions::default());
    let (mut rows, mut values) = (0, 0);
    while let Some(range) = scan.next_range() {
        let read = reader.read(&range, &mut |row| {
            let row: Vec<_> = row.values.iter().map(plain).collect();
            let before = &truth[&row[0]];
            rows += 1;
            for (at, (now, then)) in row.iter().zip(before).enumerate() {
                let is_lost = at == 2 && now.as_ref().is_some_and(|text| text.starts_with("<Lost("));
                values += usize::from(is_lost);
                assert!(is_lost || now == then, "column {at} of {:?}", row[0]);
            }
            Ok(())
        });
        assert!(read.unwrap().damaged_pages.is_empty());
    }
    assert_eq!(rows, truth.len());
    assert!((1..rows).contains(&values), "{values} values are lost");
}

#[test]
fn rows_older_than_a_column_keep_its_default_when_their_page_is_damaged() {
    let description = partitioned();
    let (files, mut database) = opened(&description);
    let object = table(&database, "heap").object_id;
    // Makes the same change as ALTER TABLE heap ADD added int NOT NULL DEFAULT 42, which changes no stored row.
    let mut added = database.columns[&object][0].clone();
    (added.id, added.name) = (3, "added".to_owned());
    database.columns.get_mut(&object).unwrap().push(added);
    for rowset in database.rowsets.iter_mut().filter(|rowset| rowset.object_id == object) {
        let mut info = TypeInfo::from_ti(56);
        info.length = 4;
        let place = rowset.min_leaf as i16;
        rowset.layout.columns.push(RowsetColumn {
            id: 3,
            physical: 3,
            info,
            status: column_status::NOT_NULL | column_status::HAS_DEFAULT,
            leaf_offset: place,
            leaf_null_bit: 3,
            default: Some(42i32.to_le_bytes().into()),
            key_ordinal: 0,
            ..rowset.layout.columns[0].clone()
        });
        (rowset.min_leaf, rowset.max_null_bit) = (rowset.min_leaf + 4, 3);
    }
    let heap = table(&database, "heap");
    let pages = leaf_pages(&files, &database, &heap);
    let mut bytes = *files.read_page(pages[2]).unwrap();
    bytes[PAGE_BYTES / 2] ^= 0x20;
    let damaged = files.with_pages([(pages[2], bytes)]).unwrap();
    let (found, _) = salvaged((&damaged, &database, &heap), (&pages, &pages[2..3], &[]), (0, false, 1 << 20));
    assert!(found.doubtful.len() > 20);
    assert!(found.doubtful.iter().all(|(_, _, row)| row[2].as_deref() == Some("42")), "{:?}", found.doubtful[0]);
}
