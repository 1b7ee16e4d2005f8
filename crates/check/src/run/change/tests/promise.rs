//! The differential maps of data files: what they promise is used, and tested.

use source::{ExtentSet, SinceBase};

use super::windows::{Batches, findings};
use super::*;

/// Checks files of which the maps mark these pages, in one window. It has time for this number of batches; a single batch
/// has all ranges that each window reads.
fn window(
    files: &MemoryFiles,
    marked: &[PageId],
    ledger: &Memory,
    batches: u64,
) -> Result<(Report, WindowDone), NotByChange> {
    let mut changed = ExtentSet::of(files.files());
    marked.iter().for_each(|page| changed.insert(*page));
    let since = SinceBase::new(files, changed);
    let database = catalog::load(&since);
    run_in_window(
        (&since, &database),
        &options(),
        &Silent,
        ledger,
        (&Batches::new(batches, if batches == 1 { u64::MAX } else { 64 }), &[]),
    )
}

/// A database, and the ledger of the window that has read all of it.
fn read_once() -> (MemoryFiles, Vec<u32>, Memory) {
    let files = database_of_lab(0, 4 << 20);
    let pages = data_pages(&files);
    let ledger = Memory::new();
    let (_, done) = window(&files, &[], &ledger, u64::MAX).unwrap();
    assert_eq!(done.open_pages, 0);
    (files, pages, ledger.next())
}

/// The page with other bytes, and a right checksum if it `is_sealed`.
fn with_other_bytes(files: &MemoryFiles, page: u32, is_sealed: bool) -> MemoryFiles {
    let id = PageId::new(1, page);
    let mut bytes = *files.read_page(id).unwrap();
    with_other_lsn(&mut bytes);
    if is_sealed {
        seal(&mut bytes);
    }
    files.with_pages([(id, bytes)]).unwrap()
}

#[test]
fn extents_without_a_mark_are_not_read_again_and_marked_ones_only_if_their_bytes_are_others() {
    let (files, pages, ledger) = read_once();
    let (_, done) = window(&files, &[], &ledger.again(), 1).unwrap();
    assert!(done.open_pages == 0 && done.reuse.pages_kept > 100, "{done:?}");
    let marked = [PageId::new(1, pages[40])];
    let later = with_other_bytes(&files, pages[40], true);
    let ledger = ledger.again();
    let (_, done) = window(&later, &marked, &ledger, u64::MAX).unwrap();
    assert_eq!((done.open_pages, done.reuse.swept.get(&Reason::Bytes)), (0, Some(&1)), "{done:?}");
    let (_, done) = window(&later, &marked, &ledger.next(), 1).unwrap();
    assert_eq!((done.open_pages, done.reuse.swept.get(&Reason::Bytes)), (0, None), "{done:?}");
}

#[test]
fn a_change_without_a_mark_is_found_when_its_range_is_read_again() {
    let (files, pages, ledger) = read_once();
    let later = with_other_bytes(&files, pages[40], true);
    // A window that does not read the range cannot know it.
    assert!(window(&later, &[], &ledger.again(), 1).is_ok());
    let extent = PageId::new(1, pages[40] / 8 * 8);
    match window(&later, &[], &ledger.again(), u64::MAX) {
        Err(NotByChange::Promise(pages)) => assert_eq!(pages, [extent]),
        other => panic!("{other:?}"),
    }
    // A page that is read for another reason tells it too: another extent of its range has changed.
    let wide = |ledger: Memory| Memory { range_pages: 32, ..ledger };
    let ledger = wide(Memory::new());
    window(&files, &[], &ledger, u64::MAX).unwrap();
    let ledger = wide(ledger.next());
    let beside = |page: u32| pages.iter().copied().find(|other| other / 32 == page / 32 && other / 8 != page / 8);
    let (page, other) = pages.iter().rev().find_map(|page| Some((*page, beside(*page)?))).unwrap();
    let later = with_other_bytes(&with_other_bytes(&files, page, true), other, true);
    let found = window(&later, &[PageId::new(1, other)], &ledger, 30);
    assert!(
        matches!(&found, Err(NotByChange::Promise(pages)) if *pages == [PageId::new(1, page / 8 * 8)]),
        "{found:?}"
    );
}

#[test]
fn a_page_that_fails_its_checksum_is_a_finding_and_says_nothing_about_the_maps() {
    let (files, pages, ledger) = read_once();
    let rotten = with_other_bytes(&files, pages[40], false);
    let (report, done) = window(&rotten, &[], &ledger, u64::MAX).unwrap();
    assert_eq!(done.open_pages, 0);
    assert!(!findings(&report).is_empty());
}

#[test]
fn a_free_page_or_a_map_page_with_other_bytes_breaks_no_promise() {
    let (files, _, ledger) = read_once();
    let header = PageId::new(1, 0);
    let mut bytes = *files.read_page(header).unwrap();
    with_other_lsn(&mut bytes);
    seal(&mut bytes);
    let free = (200..files.files()[0].pages)
        .rev()
        .find(|page| files.read_page(PageId::new(1, *page)).is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)));
    let mut changed = vec![(header, bytes)];
    changed.extend(free.map(|page| (PageId::new(1, page), [7; 8192])));
    assert_eq!(changed.len(), 2);
    let later = files.with_pages(changed).unwrap();
    let (_, done) = window(&later, &[], &ledger, u64::MAX).unwrap();
    assert_eq!(done.open_pages, 0);
}
