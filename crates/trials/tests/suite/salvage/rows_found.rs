use std::collections::BTreeSet;

use catalog::{Database, UnitKind};
use format::{PAGE_BYTES, Page, PageId};
use lab::{Version, orders};
use rows::salvage::Doubtful;
use rows::{RangeCounts, Reader, Scan, ScanOptions, Table, Why};
use source::PageSource;

use super::found::{by_column, leaf_pages, salvaged, salvaged_of};
use super::losses::{orders_database, table};

const MEMORY: usize = 8 << 20;

fn slots(files: &dyn PageSource, pages: &[PageId]) -> u64 {
    pages.iter().map(|page| u64::from(Page::new(&files.read_page(*page).unwrap()).header().slot_count.get())).sum()
}

#[test]
#[ignore = "full tier: takes seconds"]
fn whole_records_of_damaged_pages_are_doubtful_and_the_rest_comes_from_indexes() {
    for version in Version::ALL {
        let description = orders::orders(version, 7, 10 << 20);
        let (files, database) = orders_database(version);
        let orders = table(&database, "orders");
        let truth = by_column(&description, "orders", 0);
        let pages = leaf_pages(&files, &database, &orders);
        // In one page, a byte within the text of a record is wrong. Another page becomes all zeros.
        let (flipped, zero) = (pages[5], pages[6]);
        let mut bytes = *files.read_page(flipped).unwrap();
        let (at, _) = (2000..).map(|at| (at, bytes[at])).find(|(_, byte)| byte.is_ascii_lowercase()).unwrap();
        bytes[at] ^= 0x20;
        let damaged = files.with_pages([(flipped, bytes), (zero, [0; PAGE_BYTES])]).unwrap();
        let lost = slots(&files, &[flipped, zero]);
        let read = truth.len() as u64 - lost;
        let input = (&pages[..], &[flipped, zero][..], &[][..]);
        let (found, done) = salvaged((&damaged, &database, &orders), input, (read, false, MEMORY));
        assert_eq!(found.doubtful.len() as u64, slots(&files, &[flipped]), "{version:?}");
        let mut differ = 0;
        for (place, why, row) in &found.doubtful {
            assert_eq!((place.page, why.text()), (flipped, "wrong page checksum, record whole"));
            let whole =
                truth.get(row[0].as_ref().unwrap()).unwrap_or_else(|| panic!("{version:?} {place} {row:?} at {at}"));
            differ += usize::from(whole != row);
        }
        assert_eq!(differ, 1, "the row with the wrong byte");
        assert_eq!(found.rebuilt.len() as u64, slots(&files, &[zero]), "{:?}", done.rebuilt);
        for (indexes, row) in &found.rebuilt {
            assert_eq!(indexes, "ix_orders_customer, ix_orders_ordered_at");
            let whole = &truth[row[0].as_ref().unwrap()];
            for (column, value) in row.iter().enumerate() {
                match column {
                    5 => assert_eq!(value.as_deref(), Some("<NotInAnyIndex>")),
                    _ => assert_eq!(value, &whole[column], "column {column}"),
                }
            }
        }
        assert_eq!((done.known_lost, done.unproven), (0, 0));
        // With memory for only a few rows, salvage must rebuild the same rows.
        let (again, _) = salvaged((&damaged, &database, &orders), input, (read, false, 64 << 10));
        assert_eq!(again.rebuilt, found.rebuilt);
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn rows_that_no_iam_page_leads_to_are_doubtful() {
    let description = orders::orders(Version::V852, 7, 10 << 20);
    let (files, database) = orders_database(Version::V852);
    let products = table(&database, "products");
    let truth = by_column(&description, "products", 0);
    let pages = leaf_pages(&files, &database, &products);
    let missed = &pages[2..4];
    let (found, done) = salvaged((&files, &database, &products), (&pages, &[], missed), (0, false, MEMORY));
    assert_eq!(done.strays, 2);
    assert!(!found.doubtful.is_empty() && found.rebuilt.is_empty());
    for (place, why, row) in &found.doubtful {
        assert!(missed.contains(&place.page));
        assert_eq!(*why, Doubtful::NotReached { is_allocated: true });
        assert_eq!(&truth[row[0].as_ref().unwrap()], row);
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn lost_rows_of_a_heap_come_from_its_indexes_by_their_address() {
    let description = orders::orders(Version::V957, 7, 10 << 20);
    let (files, database) = orders_database(Version::V957);
    let products = table(&database, "products");
    let truth = by_column(&description, "products", 0);
    let pages = leaf_pages(&files, &database, &products);
    let zero = pages[1];
    let damaged = files.with_pages([(zero, [0; PAGE_BYTES])]).unwrap();
    let (found, _) = salvaged((&damaged, &database, &products), (&pages, &[zero], &[]), (0, false, MEMORY));
    assert!(found.rebuilt.len() > 5, "{}", found.rebuilt.len());
    for (_, row) in &found.rebuilt {
        let whole = &truth[row[0].as_ref().unwrap()];
        assert_eq!((&row[1], &row[3]), (&whole[1], &whole[3]));
        assert_eq!(row[2].as_deref(), Some("<NotInAnyIndex>"));
    }
}

#[test]
fn deleted_rows_are_found_only_where_they_are_asked_for() {
    let (files, database) = orders_database(Version::V852);
    let customers = table(&database, "customers");
    let pages = leaf_pages(&files, &database, &customers);
    let (found, done) = salvaged((&files, &database, &customers), (&pages, &[], &[]), (u64::MAX, false, MEMORY));
    assert!(found.doubtful.is_empty() && done.deleted == 0);
    let (found, done) = salvaged((&files, &database, &customers), (&pages, &[], &[]), (u64::MAX, true, MEMORY));
    assert!(done.deleted > 0 && found.doubtful.iter().all(|(_, why, _)| *why == Doubtful::Deleted));
    for (_, _, row) in &found.doubtful {
        let id: u64 = row[0].as_ref().unwrap().parse().unwrap();
        assert_eq!((id - 1) % 97, 96, "every 97th row of the lab is deleted");
    }
}

/// The pages from which the normal scan returns rows, and the pages that it leaves out.
fn read(files: &dyn PageSource, database: &Database, table: &Table) -> (BTreeSet<PageId>, Vec<(PageId, Why)>) {
    let mut scan = Scan::new(files, database, table, ScanOptions::default());
    let mut reader = Reader::new(files, database, table, ScanOptions::default());
    let (mut pages, mut counts) = (BTreeSet::new(), RangeCounts::default());
    while let Some(range) = scan.next_range() {
        let read = reader.read(&range, &mut |row| {
            pages.insert(row.place.page);
            Ok(())
        });
        counts.add(&read.unwrap());
    }
    (pages, counts.damaged_pages)
}

#[test]
#[ignore = "full tier: takes seconds"]
fn rows_of_a_page_that_was_freed_are_never_proven_whatever_map_is_damaged() {
    let description = orders::orders(Version::V852, 7, 10 << 20);
    let (files, database) = orders_database(Version::V852);
    let products = table(&database, "products");
    let truth = by_column(&description, "products", 0);
    let pages = leaf_pages(&files, &database, &products);
    assert_eq!(read(&files, &database, &products), (pages.iter().copied().collect(), Vec::new()));
    // Marks a heap page as free in the PFS page. Its rows remain on the page, and its extent still belongs to the
    // table.
    let freed = *pages.last().unwrap();
    let map = PageId::new(freed.file, 1);
    let mut bytes = *files.read_page(map).unwrap();
    bytes[100 + freed.page as usize] &= !0x40;
    format::protection::seal(&mut bytes);
    let sound = files.with_pages([(map, bytes)]).unwrap();
    let (proven, left_out) = read(&sound, &database, &products);
    assert!(left_out.is_empty() && !proven.contains(&freed) && proven.len() + 1 == pages.len());
    // Now the PFS page itself is damaged, so nothing shows that the heap page is free.
    bytes[5000] ^= 1;
    let damaged = files.with_pages([(map, bytes)]).unwrap();
    let (proven, left_out) = read(&damaged, &database, &products);
    assert!(left_out.iter().all(|(_, why)| *why == Why::UseUnknown) && left_out.iter().any(|(page, _)| *page == freed));
    assert!(pages.iter().all(|page| proven.contains(page) != left_out.iter().any(|(other, _)| other == page)));
    let (found, done) = salvaged_of((&damaged, &database, &products), (&pages, &left_out), (0, false, MEMORY));
    assert_eq!((done.strays, done.unproven, done.foreign), (0, 0, 0));
    let places: BTreeSet<PageId> = found.doubtful.iter().map(|(place, ..)| place.page).collect();
    assert!(places.contains(&freed));
    assert_eq!(places, pages.iter().copied().filter(|page| !proven.contains(page)).collect());
    for (_, why, row) in &found.doubtful {
        assert_eq!(why.text(), "the PFS page of the page is damaged: it may have been freed");
        assert_eq!(&truth[row[0].as_ref().unwrap()], row);
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn an_iam_page_that_names_another_unit_counts_for_the_unit_whose_pages_it_lists() {
    let (files, mut database) = orders_database(Version::V852);
    let products = table(&database, "products");
    let pages: BTreeSet<PageId> = leaf_pages(&files, &database, &products).into_iter().collect();
    let of_table = &database.rowsets[products.partitions[0]].units;
    let unit = *of_table.iter().find(|unit| database.units[**unit].kind == UnitKind::InRow).unwrap();
    let first_iam = database.units[unit].first_iam;
    // The header of the IAM page now has the ID of another allocation unit. Two facts show that the header is wrong:
    // the catalog's pointer to the IAM page, and the pages that the IAM page lists.
    let mut bytes = *files.read_page(first_iam).unwrap();
    bytes[24] += 1;
    format::protection::seal(&mut bytes);
    let renamed = files.with_pages([(first_iam, bytes)]).unwrap();
    assert_eq!(read(&renamed, &database, &products), (pages, Vec::new()));
    // The pointer in the catalog now leads to the IAM page of another allocation unit, which has pages. The pages that
    // this IAM page lists show that the pointer is wrong.
    let other = table(&database, "customers");
    let of_other = &database.rowsets[other.partitions[0]].units;
    let wrong = database.units[of_other[0]].first_iam;
    database.units[unit].first_iam = wrong;
    assert_eq!(read(&files, &database, &products), (BTreeSet::new(), vec![(wrong, Why::AllocationMap)]));
}
