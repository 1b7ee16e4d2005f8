//! Windows of time over a database that changes.

use std::sync::atomic::{AtomicU64, Ordering};

use findings::registry::limits;

use super::*;

/// A schedule that ends a window after some batches of pages, and lets tables take turns by their size.
pub(super) struct Batches {
    pages: u64,
    left: AtomicU64,
}

impl Batches {
    pub(super) fn new(batches: u64, pages: u64) -> Self {
        Self { pages, left: AtomicU64::new(batches) }
    }
}

impl Schedule for Batches {
    fn is_over(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }

    fn is_old(&self, _run: usize) -> bool {
        false
    }

    fn batch_pages(&self) -> u64 {
        self.pages
    }

    fn order(&self, mut turns: Vec<Turn>) -> Vec<Turn> {
        turns.sort_by_key(|turn| (turn.pages, turn.object_id));
        turns
    }

    fn swept(&self, _ranges: u64, _pages: u64, _of_system: bool) {}
}

fn window(later: &Later, database: &Database, ledger: &Memory, batches: &Batches) -> (Report, WindowDone) {
    run_in_window((later, database), &options(), &Silent, ledger, (batches, &[])).unwrap()
}

/// The lines of the findings of a report.
pub(super) fn findings(report: &Report) -> BTreeSet<String> {
    report.findings.iter().map(|finding| format!("{finding:?}")).collect()
}

/// Checks a database in windows until nothing is left. No window may report what a whole check does not report, and the
/// last report must be that of a whole check.
fn in_windows(later: &Later, database: &Database, (batches, pages): (u64, u64), mut ledger: Memory) -> (u64, Memory) {
    let whole = crate::run(later, database, &options(), &Silent);
    let all = findings(&whole);
    let mut windows = 0;
    loop {
        windows += 1;
        let (mut report, done) = window(later, database, &ledger, &Batches::new(batches, pages));
        let found = findings(&report);
        assert!(found.is_subset(&all), "{:?}", found.difference(&all).collect::<Vec<_>>());
        let open: BTreeSet<i32> =
            report.rowsets.iter().filter(|rowset| rowset.is_open).map(|it| it.object_id).collect();
        let is_noted = report.not_verified.iter().any(|entry| entry.limit == &limits::WINDOW_TABLE_OPEN);
        assert_eq!(done.open_pages > 0, is_noted);
        // What is only open is not called damaged.
        let is_of_window = |limit| [&limits::WINDOW_TABLE_OPEN, &limits::WINDOW_CONTAINER_OPEN].contains(&limit);
        for entry in report.not_verified.iter().filter(|entry| !is_of_window(entry.limit)) {
            let is_same = |other: &&findings::NotVerified| {
                (&other.what, &other.scope, &other.limit) == (&entry.what, &entry.scope, &entry.limit)
            };
            assert!(whole.not_verified.iter().any(|other| is_same(&other)), "{entry:?}");
        }
        let left: BTreeSet<i32> =
            done.reuse.tables.iter().filter(|turn| turn.open_pages > 0).map(|turn| turn.object_id).collect();
        assert!(open.is_subset(&left), "{open:?} {left:?}");
        for rowset in report.rowsets.iter().filter(|rowset| !left.contains(&rowset.object_id)) {
            assert!(whole.rowsets.contains(rowset), "a closed table is counted as in a whole check: {rowset:?}");
        }
        ledger = ledger.next();
        if done.open_pages == 0 {
            report.statistics.pages_read = whole.statistics.pages_read;
            assert_eq!(said(&report), said(&whole));
            return (windows, ledger);
        }
        assert!(windows < 200);
    }
}

#[test]
fn the_window_that_closes_everything_reports_what_a_whole_check_does() {
    for damaged in [0, 3, 60] {
        let files = Later { files: database_of_lab(damaged, 4 << 20), above: BTreeSet::new() };
        let database = catalog::load(&files);
        for (batches, pages) in [(1_000, 8), (12, 24), (4, 100)] {
            // Ranges with findings are swept in each window, so that windows must be long enough for them.
            let batches = if damaged > 10 { batches + 60 } else { batches };
            let (windows, _) = in_windows(&files, &database, (batches, pages), Memory::new());
            assert!(batches >= 1_000 || damaged > 10 || windows > 1, "{windows}");
        }
    }
}

#[test]
fn a_window_over_a_later_state_keeps_what_has_not_changed() {
    let (files, database, ledger) = base(0);
    let pages = data_pages(&files.files);
    let later = changed(&files.files, &[pages[3], pages[30], pages[60]], with_other_lsn);
    // The first window only reads what every window reads, and one range more. The tables that have not changed are closed.
    let (report, done) = window(&later, &database, &ledger, &Batches::new(18, 8));
    assert!(done.open_pages > 0 && done.open_pages <= 2 * 8, "{done:?}");
    assert!(report.findings.is_empty());
    let closed = done.reuse.tables.iter().filter(|table| table.open_pages == 0).count();
    assert!(closed + 3 >= done.reuse.tables.len() && closed < done.reuse.tables.len());
    let (windows, _) = in_windows(&later, &database, (30, 8), ledger.next());
    assert!(windows <= 2, "{windows}");
}

#[test]
fn what_a_later_window_finds_is_not_hidden_by_sums_of_an_earlier_one() {
    let (files, database, ledger) = base(0);
    let page = PageId::new(1, data_pages(&files.files)[40]);
    let mut bytes = *files.read_page(page).unwrap();
    bytes[5000] ^= 1;
    let rotten = Later { files: files.files.with_pages([(page, bytes)]).unwrap(), above: BTreeSet::new() };
    let all = findings(&crate::run(&rotten, &database, &options(), &Silent));
    assert!(!all.is_empty());
    // A short window does not read the page, and says what earlier windows have proven.
    let (report, done) = window(&rotten, &database, &ledger, &Batches::new(1, u64::MAX));
    assert_eq!((report.findings.len(), done.open_pages), (0, 0));
    // A long one reads all pages once more.
    let (report, done) = window(&rotten, &database, &ledger, &Batches::new(u64::MAX, 64));
    assert_eq!((findings(&report), done.open_pages), (all.clone(), 0));
    assert!(done.reuse.swept[&Reason::Again] > 50 && done.reuse.pages_kept == 0, "{done:?}");
    // From then on, each window reads the page right after the system tables.
    let ledger = ledger.next();
    let (report, done) = window(&rotten, &database, &ledger, &Batches::new(2, u64::MAX));
    assert_eq!((findings(&report), done.reuse.swept.get(&Reason::Findings)), (all, Some(&1)));
}

#[test]
fn what_a_run_under_other_options_finds_is_not_hidden_either_and_is_noted_once() {
    let (files, database, ledger) = base(0);
    let page = PageId::new(1, data_pages(&files.files)[40]);
    let mut bytes = *files.read_page(page).unwrap();
    bytes[5000] ^= 1;
    let rotten = Later { files: files.files.with_pages([(page, bytes)]).unwrap(), above: BTreeSet::from([page]) };
    let other = Options { no_index: true, ..options() };
    let (report, _) = run_by_change(&rotten, &database, &other, &Silent, &ledger).unwrap();
    assert!(!report.findings.is_empty());
    let ledger = ledger.next();
    // The page is as it was when the base was checked, as far as its inputs say: only its bytes are others.
    let rotten = Later { above: BTreeSet::new(), ..rotten };
    let (report, reuse) = run_by_change(&rotten, &database, &options(), &Silent, &ledger).unwrap();
    assert!(!report.findings.is_empty());
    assert_eq!((reuse.swept.get(&Reason::Findings), reuse.pages_kept > 100), (Some(&1), true), "{reuse:?}");
    let last = ledger.runs.lock().unwrap().last().unwrap().clone();
    assert!(last.groups.iter().flat_map(|group| &group.parts).all(|part| part.key.above != PartKey::FOUND));
}

#[test]
fn a_page_that_went_bad_and_is_read_again_is_named_so_that_its_range_is_swept() {
    let (files, database, ledger) = base(0);
    let is_node = |page: &u32| {
        let header = *format::Page::new(&files.read_page(PageId::new(1, *page)).unwrap()).header();
        header.page_type == 2 && header.level > 0 && header.slot_count.get() > 10
    };
    let id = PageId::new(1, (400..files.files()[0].pages).find(is_node).unwrap());
    let mut bytes = *files.read_page(id).unwrap();
    bytes[5000] ^= 1;
    let rotten = Later { files: files.files.with_pages([(id, bytes)]).unwrap(), above: BTreeSet::new() };
    let all = findings(&crate::run(&rotten, &database, &options(), &Silent));
    let once = |forced: &[PageId]| {
        // The system tables are one batch.
        let batches = Batches::new(1 + forced.len() as u64, u64::MAX);
        run_in_window((&rotten, &database), &options(), &Silent, &ledger, (&batches, forced))
    };
    assert!(matches!(once(&[]), Err(NotByChange::Rotten(page)) if page == id));
    assert_eq!(findings(&once(&[id]).unwrap().0), all);
}
