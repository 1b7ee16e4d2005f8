//! Tests with a data file of four extents, whose pages are built by hand.

use catalog::{AllocUnit, UnitKind};
use findings::registry;
use format::AllocUnitId;
use sums::spill::TempStore;

use super::*;
use crate::test_file::{CLAIMED, FILE, FREE, IAM, MIXED, Maps, PAGES, TestFile};
use crate::test_pages::{UNIT, ids};

/// A catalog with these units, each with its first IAM page.
fn database(units: &[(AllocUnitId, u32)]) -> Database {
    let unit = |(id, first_iam): &(AllocUnitId, u32)| AllocUnit {
        id: *id,
        kind: UnitKind::InRow,
        owner_id: id.0,
        rowset: None,
        filegroup: 1,
        first_page: PageId::NONE,
        root: PageId::NONE,
        first_iam: PageId::new(FILE, *first_iam),
        used_pages: 0,
        data_pages: 0,
        reserved_pages: 0,
    };
    Database { units: units.iter().map(unit).collect(), ..Database::default() }
}

/// The survey, the IDs of the checks with findings, and the IDs of the noted limits.
fn surveyed(file: &TestFile, units: &[(AllocUnitId, u32)]) -> (Survey, BTreeSet<&'static str>, BTreeSet<&'static str>) {
    surveyed_as(file, database(units))
}

fn surveyed_as(file: &TestFile, database: Database) -> (Survey, BTreeSet<&'static str>, BTreeSet<&'static str>) {
    let (mut findings, mut coverage) =
        (FindingCollector::new(1 << 20, &TempStore::new(None, 1 << 20)), Coverage::default());
    let survey = survey((file, None), &database, &mut Units::of(&database), &mut findings, &mut coverage);
    let found: Vec<_> = findings.into_sorted().collect();
    let (not_verified, _) = coverage.into_lists();
    (survey, ids(&found).into_iter().collect(), not_verified.iter().map(|entry| entry.limit.id).collect())
}

const ONE: &[(AllocUnitId, u32)] = &[(UNIT, IAM)];

fn set(ids: &[&'static str]) -> BTreeSet<&'static str> {
    ids.iter().copied().collect()
}

#[test]
fn maps_that_agree_give_each_page_its_owner_and_no_finding() {
    let (survey, found, limits) = surveyed(&Maps::sound().file(), ONE);
    assert_eq!((found, limits), (set(&[]), set(&[])));
    let owners: Vec<u32> = (0..PAGES).filter(|page| survey.owner(PageId::new(FILE, *page)) == Some(0)).collect();
    assert_eq!(owners, [vec![IAM], (16..24).collect()].concat());
    let file = survey.file(FILE).unwrap();
    assert!(file.is_iam(IAM) && !file.is_iam(16));
    assert!(matches!(file.allocation(16), Allocation::Used(_)) && file.allocation(9) == Allocation::Free);
    assert_eq!(survey.iam_pages, [1]);
    let totals = &survey.totals[0];
    assert_eq!((totals.extents, totals.used_pages, totals.mixed_extents, totals.mixed_pages), (3, 15, 1, 1));
}

#[test]
fn an_extent_in_use_that_no_unit_claims_is_an_error() {
    let maps = Maps { gam_free: vec![], ..Maps::sound() };
    assert_eq!(surveyed(&maps.file(), ONE).1, set(&[registry::EXTENT_UNOWNED.id]));
}

#[test]
fn a_claimed_extent_that_the_gam_calls_free_has_several_owners() {
    let maps = Maps { gam_free: vec![CLAIMED, FREE], ..Maps::sound() };
    let expected = set(&[registry::EXTENT_SEVERAL_OWNERS.id, registry::EXTENT_OWNER.id]);
    assert_eq!(surveyed(&maps.file(), ONE).1, expected);
}

#[test]
fn an_extent_that_two_units_claim_is_shared() {
    let other = AllocUnitId(UNIT.0 + (1 << 16));
    let mut maps = Maps::sound();
    maps.pfs[9] = 0x70;
    maps.iam.insert(9, (other, vec![CLAIMED], None));
    let (survey, found, _) = surveyed(&maps.file(), &[(UNIT, IAM), (other, 9)]);
    assert_eq!(found, set(&[registry::EXTENT_SEVERAL_OWNERS.id, registry::EXTENT_OWNER.id]));
    assert!(survey.is_shared(PageId::new(FILE, 20)) && !survey.is_shared(PageId::new(FILE, 9)));
    assert_eq!(survey.sharing, BTreeSet::from([0, 1]));
}

#[test]
fn gam_and_sgam_cannot_both_have_an_extent() {
    let maps = Maps { sgam: vec![MIXED, FREE], ..Maps::sound() };
    assert_eq!(surveyed(&maps.file(), ONE).1, set(&[registry::EXTENT_GAM_AND_SGAM.id]));
}

#[test]
fn a_single_page_belongs_to_the_unit_whose_iam_page_lists_it() {
    let mut maps = Maps::sound();
    maps.iam.insert(IAM, (UNIT, vec![CLAIMED], Some(10)));
    maps.pfs[10] = 0x60;
    let (survey, found, _) = surveyed(&maps.file(), ONE);
    assert_eq!((found, survey.owner(PageId::new(FILE, 10))), (set(&[]), Some(0)));
    // It is an error if PFS does not mark the page as a page of a mixed extent.
    maps.pfs[10] = 0x40;
    assert_eq!(surveyed(&maps.file(), ONE).1, set(&[registry::PFS_WRONG_TYPE.id]));
    // The page is in use, but no chain lists it, so it belongs to no unit.
    maps.pfs[10] = 0x60;
    maps.iam.insert(IAM, (UNIT, vec![CLAIMED], None));
    assert_eq!(surveyed(&maps.file(), ONE).1, set(&[registry::PAGE_UNOWNED.id]));
}

#[test]
fn a_damaged_pfs_page_leaves_it_open_which_pages_are_in_use() {
    let mut file = Maps::sound().file();
    file.pages.get_mut(&1).unwrap()[200] ^= 1;
    let (survey, found, limits) = surveyed(&file, ONE);
    assert!(found.contains(registry::MAP_PAGE_INVALID.id) && found.contains(registry::INTERVAL_UNCHECKED.id));
    assert!(!found.contains(registry::PFS_WRONG_TYPE.id), "what it says is not believed: {found:?}");
    assert!(limits.contains(limits::ALLOCATION_INTERVAL_DAMAGED.id));
    assert_eq!(survey.allocation(PageId::new(FILE, 16)), Allocation::Unknown);
}

#[test]
fn a_map_that_cannot_be_read_is_no_finding() {
    for page in [1, 2, 3] {
        let mut file = Maps::sound().file();
        file.unread.insert(page);
        let (survey, found, limits) = surveyed(&file, ONE);
        assert_eq!(found, set(&[]), "page {page}");
        assert!(limits.contains(limits::ALLOCATION_UNREADABLE.id));
        assert_eq!(survey.unread, [PageId::new(FILE, page)]);
    }
}

#[test]
fn what_a_damaged_iam_page_listed_has_no_owner() {
    let mut file = Maps::sound().file();
    file.pages.get_mut(&IAM).unwrap()[5000] ^= 1;
    let (survey, found, limits) = surveyed(&file, ONE);
    assert_eq!(survey.broken_chains, BTreeSet::from([0]));
    assert!(found.contains(registry::EXTENT_UNOWNED.id) && found.contains(registry::PAGE_UNOWNED.id), "{found:?}");
    assert!(!limits.contains(limits::ALLOCATION_OWNER_UNKNOWN.id), "{limits:?}");
}

#[test]
fn what_a_damaged_iam_page_may_have_led_to_in_a_missing_file_is_not_called_unowned() {
    let mut file = Maps::sound().file();
    file.pages.get_mut(&IAM).unwrap()[5000] ^= 1;
    let other = catalog::FileRow {
        file_id: FILE + 1,
        filegroup: 1,
        file_type: 0,
        state: 0,
        logical_name: "other".to_owned(),
        physical_name: "other.ndf".to_owned(),
    };
    let (_, found, limits) = surveyed_as(&file, Database { files: vec![other], ..database(ONE) });
    assert!(!found.contains(registry::EXTENT_UNOWNED.id) && !found.contains(registry::PAGE_UNOWNED.id), "{found:?}");
    assert!(limits.contains(limits::ALLOCATION_OWNER_UNKNOWN.id), "{limits:?}");
}

#[test]
fn what_an_unread_iam_page_may_list_is_not_called_unowned() {
    let mut file = Maps::sound().file();
    file.unread.insert(IAM);
    let (survey, found, limits) = surveyed(&file, ONE);
    assert_eq!(survey.broken_chains, BTreeSet::from([0]));
    assert!(!found.contains(registry::EXTENT_UNOWNED.id) && !found.contains(registry::PAGE_UNOWNED.id), "{found:?}");
    assert!(limits.contains(limits::ALLOCATION_OWNER_UNKNOWN.id), "{limits:?}");
}

#[test]
fn what_an_iam_page_beyond_the_end_may_list_is_not_called_unowned() {
    let mut maps = Maps::sound();
    maps.iam.clear();
    let (survey, found, limits) = surveyed(&maps.file(), &[(UNIT, PAGES + 8)]);
    assert_eq!(survey.broken_chains, BTreeSet::from([0]));
    assert!(!found.contains(registry::EXTENT_UNOWNED.id), "{found:?}");
    assert!(limits.contains(limits::ALLOCATION_OWNER_UNKNOWN.id), "{limits:?}");
}

#[test]
fn a_chain_whose_head_is_no_iam_page_is_an_error_of_the_unit() {
    let (survey, found, _) = surveyed(&Maps::sound().file(), &[(UNIT, 10)]);
    assert!(!found.is_empty());
    assert_eq!(survey.owner(PageId::new(FILE, 16)), Some(0), "the page names its unit and is followed all the same");
}
