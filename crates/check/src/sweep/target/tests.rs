use catalog::Database;
use findings::{Coverage, Options, Scope};
use lab::Version;
use source::{MemoryFiles, PageSource};
use sums::spill::TempStore;

use super::*;
use crate::basis::ledger::FindingCollector;
use crate::basis::units::Units;
use crate::survey::survey;
use crate::test_pages::ids;

/// A database written by crate `lab`, in one file.
fn written() -> MemoryFiles {
    let folder = tempfile::tempdir().unwrap();
    let paths = lab::write(&lab::orders::orders(Version::V852, 3, 2 << 20), folder.path()).unwrap().files;
    MemoryFiles::open(paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()).unwrap()
}

/// Two leaf pages of a clustered index of a user table.
fn two_leaves(files: &MemoryFiles, database: &Database) -> [PageId; 2] {
    let leaves = (0..files.files()[0].pages).map(|page| PageId::new(1, page)).filter(|id| {
        let bytes = files.read_page(*id).unwrap();
        let header = Page::new(&bytes).header();
        let unit = database.unit_index(header.alloc_unit()).map(|at| &database.units[at]);
        let rowset = unit.and_then(|unit| database.rowset_of(unit));
        let is_user = |id: i32| database.objects.get(&id).is_some_and(|object| object.type_code == "U");
        header.kind() == Some(PageType::Data) && rowset.is_some_and(|rowset| is_user(rowset.object_id))
    });
    let leaves: Vec<PageId> = leaves.collect();
    [leaves[0], *leaves.last().unwrap()]
}

/// The verdict on a page after `change` was applied to its bytes, with the failed checks and the tallies.
fn judged(
    files: &MemoryFiles,
    (id, options): (PageId, &Options),
    change: impl FnOnce(&mut PageBytes),
) -> (Verdict, Vec<&'static str>, Tallies) {
    let (database, space) = (catalog::load(files), TempStore::new(None, 8 << 20));
    let (mut units, mut coverage) = (Units::of(&database), Coverage::default());
    let survey =
        survey((files, None), &database, &mut units, &mut FindingCollector::new(usize::MAX, &space), &mut coverage);
    let context = Context::new(files, &database, options, units, survey, &space);
    let mut bytes = files.read_page(id).unwrap();
    change(&mut bytes);
    let mut tallies = Tallies::new(context.units.list().len());
    let mut findings = Vec::new();
    let verdict = Target::default().judge(&context, id, &mut bytes, &mut tallies, &mut findings);
    (verdict, ids(&findings), tallies)
}

fn seal(page: &mut PageBytes) {
    let sum = format::protection::checksum(page);
    page[60..64].copy_from_slice(&sum.to_le_bytes());
}

fn bad_pages(tallies: &Tallies) -> u64 {
    tallies.units.iter().map(|tally| tally.bad_pages).sum()
}

#[test]
fn a_page_is_sound_bad_or_passed_by() {
    let files = written();
    let database = catalog::load(&files);
    let [first, last] = two_leaves(&files, &database);
    let all = Options::default();
    let (verdict, found, tallies) = judged(&files, (first, &all), |_| {});
    let Verdict::Sound(unit, content) = verdict else { panic!("{verdict:?}") };
    assert!(content.rows > 0 && found.is_empty());
    assert_eq!((tallies.pages_allocated, bad_pages(&tallies)), (1, 0));

    let (verdict, found, tallies) = judged(&files, (first, &all), |page| page[5000] ^= 1);
    assert_eq!((verdict, found), (Verdict::Bad(unit), vec![registry::PAGE_IO.id, registry::PAGE_UNPROCESSED.id]));
    assert_eq!(bad_pages(&tallies), 1);

    // A page that fails its audit is also reported for its unit, as 8928.
    let (verdict, found, _) = judged(&files, (first, &all), |page| {
        page[0] = 9;
        seal(page);
    });
    assert_eq!((verdict, found), (Verdict::Bad(unit), vec![registry::PAGE_HEADER.id, registry::PAGE_UNPROCESSED.id]));

    // The header of the page names a different unit than the IAM pages do.
    let other = *files.read_page(last).unwrap();
    let (verdict, found, tallies) = judged(&files, (first, &all), |page| {
        *page = other;
        page[32..36].copy_from_slice(&first.page.to_le_bytes());
        seal(page);
    });
    assert_eq!((verdict, bad_pages(&tallies)), (Verdict::Bad(unit), 1));
    assert!(!found.is_empty() && !found.contains(&registry::PAGE_IO.id), "{found:?}");

    // The page has the type of pages that a reorganize is working on.
    let (verdict, found, tallies) = judged(&files, (first, &all), |page| {
        page[1] = PageType::ReorgTemporary as u8;
        seal(page);
    });
    assert_eq!((verdict, found.len()), (Verdict::Passed, 0));
    assert_eq!(tallies.units.get(unit as usize).map(|tally| tally.pages_in_transit), Some(1));
}

#[test]
fn pages_out_of_scope_not_in_use_or_of_the_survey_are_passed_by_whatever_they_hold() {
    let files = written();
    let database = catalog::load(&files);
    let [first, _] = two_leaves(&files, &database);
    let pfs = files.read_page(PageId::new(1, 1)).unwrap();
    let of_kind = |mask: u8, byte: u8| {
        let mut pages = (0..files.files()[0].pages).rev().map(|page| PageId::new(1, page));
        pages.find(|id| pfs[100 + id.page as usize] & mask == byte).unwrap()
    };
    let elsewhere = Options { scope: Scope::Tables(vec![i32::MAX]), ..Options::default() };
    let all = Options::default();
    let (free, iam, gam) = (of_kind(0x40, 0), of_kind(0x50, 0x50), PageId::new(1, 2));
    for (id, options) in [(first, &elsewhere), (free, &all), (iam, &all), (gam, &all)] {
        let (verdict, found, _) = judged(&files, (id, options), |page| page.fill(0xA7));
        assert_eq!((verdict, found.len()), (Verdict::Passed, 0), "{id}");
    }
}
