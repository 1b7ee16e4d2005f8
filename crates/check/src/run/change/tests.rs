mod parted;
mod promise;
mod windows;

use std::collections::BTreeSet;
use std::sync::Mutex;
use sums::wire::Digest;

use format::protection::seal;
use format::{PageBytes, PageHeader};
use source::{DataFile, MemoryFiles, ReadError};
use sums::HashKey;

use super::*;
use crate::basis::progress::Silent;
use crate::run::facts::tests::{database_of_lab, said};

/// What a run has kept.
#[derive(Clone, Default)]
struct KeptRun {
    names: Vec<u8>,
    groups: Vec<MemoryGroup>,
    standing: Option<Vec<u8>>,
}

/// Parts that were kept together.
#[derive(Clone)]
struct MemoryGroup {
    keys: Vec<PartKey>,
    parts: Vec<Part>,
    all: Vec<u8>,
    /// The pieces that were read.
    read: Vec<Piece>,
}

impl KeptGroup for MemoryGroup {
    fn keys(&self) -> &[PartKey] {
        &self.keys
    }

    fn read(&mut self, piece: Piece) -> io::Result<Vec<u8>> {
        self.read.push(piece);
        Ok(match piece {
            Piece::All => self.all.clone(),
            Piece::Sums(at) => self.parts[at].sums.clone(),
            Piece::Bounds(at) => self.parts[at].bounds.clone(),
            Piece::Extents(at) => self.parts[at].extents.clone(),
        })
    }
}

/// A ledger in memory.
struct Memory {
    runs: Mutex<Vec<KeptRun>>,
    /// The number of runs that are given back.
    given: usize,
    range_pages: u32,
    later: Option<Digest>,
    /// The pieces that were read.
    read: Mutex<Vec<Piece>>,
}

impl Memory {
    fn of(runs: Vec<KeptRun>, given: usize) -> Self {
        Self { runs: Mutex::new(runs), given, range_pages: 8, later: None, read: Mutex::default() }
    }

    fn new() -> Self {
        Self::of(Vec::new(), 0)
    }

    /// The ledger as the next run finds it.
    fn next(self) -> Self {
        let mut runs = self.runs.into_inner().unwrap();
        // A run without parts is not kept.
        runs.retain(|run| !run.groups.is_empty());
        let given = runs.len();
        Self { later: self.later, ..Self::of(runs, given) }
    }

    /// A copy, as the next run finds it.
    fn again(&self) -> Self {
        let runs = self.runs.lock().unwrap()[..self.given].to_vec();
        Self { later: self.later, ..Self::of(runs, self.given) }
    }
}

impl Ledger for Memory {
    fn range_pages(&self) -> u32 {
        self.range_pages
    }

    fn runs(&self) -> usize {
        self.given
    }

    fn each(&self, visit: &mut dyn FnMut(Entry<'_>) -> Result<(), NotByChange>) -> Result<(), NotByChange> {
        let runs = self.runs.lock().unwrap();
        for KeptRun { names, groups, .. } in runs.iter().take(self.given).rev() {
            visit(Entry::Run(names))?;
            for group in groups {
                let mut group = group.clone();
                visit(Entry::Group(&mut group))?;
                self.read.lock().unwrap().append(&mut group.read);
            }
        }
        Ok(())
    }

    fn standing(&self) -> Result<Option<Vec<u8>>, NotByChange> {
        let latest = self.given.checked_sub(1);
        Ok(latest.and_then(|latest| self.runs.lock().unwrap()[latest].standing.clone()))
    }

    fn later_sets(&self) -> Option<Digest> {
        self.later
    }

    fn begin(&self, names: &[u8]) {
        self.runs.lock().unwrap().push(KeptRun { names: names.to_vec(), ..KeptRun::default() });
    }

    fn keep(&self, parts: &[Part], all: &[u8]) {
        let keys = parts.iter().map(|part| part.key).collect();
        let group = MemoryGroup { keys, parts: parts.to_vec(), all: all.to_vec(), read: Vec::new() };
        self.runs.lock().unwrap().last_mut().unwrap().groups.push(group);
    }

    fn stand(&self, standing: &[u8]) {
        self.runs.lock().unwrap().last_mut().unwrap().standing = Some(standing.to_vec());
    }
}

/// A later state of files: some pages come from a later backup.
struct Later {
    files: MemoryFiles,
    above: BTreeSet<PageId>,
}

impl PageSource for Later {
    fn files(&self) -> &[DataFile] {
        self.files.files()
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.files.read(first, buffer)
    }

    fn above_base(&self, first: PageId, pages: u32) -> Option<u128> {
        let is_above = |bit: &u32| self.above.contains(&PageId::new(first.file, first.page + bit));
        Some((0..pages).filter(is_above).fold(0, |mask, bit| mask | 1 << bit))
    }
}

fn options() -> Options {
    Options { hash_key: Some(HashKey::new([9; HashKey::BYTES])), ..Options::default() }
}

/// The files with changed pages, which are sealed again.
fn changed(files: &MemoryFiles, pages: &[u32], change: impl Fn(&mut PageBytes)) -> Later {
    let of_page = |page: &u32| {
        let id = PageId::new(1, *page);
        let mut bytes = *files.read_page(id).unwrap();
        change(&mut bytes);
        seal(&mut bytes);
        (id, bytes)
    };
    let pages: Vec<_> = pages.iter().map(of_page).collect();
    Later { above: pages.iter().map(|(id, _)| *id).collect(), files: files.with_pages(pages).unwrap() }
}

/// Gives a page an earlier LSN: sums of pages after the checkpoint are not kept.
fn with_other_lsn(bytes: &mut PageBytes) {
    bytes[std::mem::offset_of!(PageHeader, lsn)] -= 1;
}

/// The data pages of user tables, in page order.
fn data_pages(files: &MemoryFiles) -> Vec<u32> {
    let is_data = |page: &u32| {
        files
            .read_page(PageId::new(1, *page))
            .is_some_and(|bytes| bytes[1] == 1 && format::Page::new(&bytes).header().slot_count.get() > 0)
    };
    (200..files.files()[0].pages).filter(is_data).collect()
}

/// Checks the later state with the ledger, and asserts that the report is that of a whole check, and that each part is
/// what a sweep gives.
fn check(later: &Later, database: &Database, options: &Options, ledger: &Memory) -> Reuse {
    let whole = crate::run(later, database, options, &Silent);
    let (mut report, reuse) = run_by_change(later, database, options, &Silent, ledger).unwrap();
    let (count, differing) = differing_parts(later, database, options, &ledger.again()).unwrap();
    assert_eq!(differing, []);
    assert_eq!(count > 0, reuse.pages_kept > 0);
    let read = report.statistics.pages_read + reuse.pages_kept;
    assert!(if reuse.pages_kept == 0 {
        read == whole.statistics.pages_read
    } else {
        read <= whole.statistics.pages_read
    });
    report.statistics.pages_read = whole.statistics.pages_read;
    assert_eq!(said(&report), said(&whole));
    reuse
}

/// A database, and the ledger that a check of it has made.
fn base(damaged: usize) -> (Later, Database, Memory) {
    let files = Later { files: database_of_lab(damaged, 4 << 20), above: BTreeSet::new() };
    let database = catalog::load(&files);
    let ledger = Memory::new();
    let reuse = check(&files, &database, &options(), &ledger);
    assert_eq!((reuse.pages_kept, reuse.swept.keys().collect::<Vec<_>>()), (0, vec![&Reason::NotKept]));
    let ledger = ledger.next();
    (files, database, ledger)
}

#[test]
fn only_changed_ranges_are_swept_and_the_report_is_that_of_a_whole_check() {
    for damaged in [0, 60] {
        let (files, database, ledger) = base(damaged);
        let pages = data_pages(&files.files);
        let later = changed(&files.files, &[pages[3], pages[30]], with_other_lsn);
        for threads in [1, 3] {
            let options = Options { max_threads: threads, ..options() };
            let ledger = ledger.again();
            let reuse = check(&later, &database, &options, &ledger);
            assert_eq!(reuse.swept.get(&Reason::Bytes), Some(&2), "{reuse:?}");
            assert!(reuse.pages_kept > 100, "{reuse:?}");
            // The next state has the same changes and one more.
            let mut next = changed(&later.files, &[pages[50]], with_other_lsn);
            next.above.extend(&later.above);
            let reuse = check(&next, &database, &options, &ledger.next());
            assert_eq!(reuse.swept.get(&Reason::Bytes), Some(&1), "{reuse:?}");
        }
    }
}

#[test]
fn each_input_alone_lets_a_range_be_swept_again() {
    let (files, database, ledger) = base(0);
    let again = || ledger.again();
    let reasons = |later: &Later, database: &Database, options: &Options| {
        let mut swept = check(later, database, options, &again()).swept;
        swept.remove(&Reason::NotKept);
        swept
    };
    let none = BTreeMap::new();
    assert_eq!(reasons(&files, &database, &options()), none);
    // Maps: PFS claims ghost records on a page, which is a hint that no check needs.
    let pages = data_pages(&files.files);
    let map = changed(&files.files, &[1], |bytes| bytes[96 + 4 + pages[50] as usize] ^= 8);
    let map = Later { above: BTreeSet::new(), ..map };
    assert_eq!(reasons(&map, &database, &options()), BTreeMap::from([(Reason::Maps, 1)]));
    // Meaning: a column of a table may be longer.
    let mut other = catalog::load(&files);
    let user = other
        .rowsets
        .iter()
        .position(|rowset| rowset.object_id > 1000 && rowset.index_id <= 1 && rowset.rows > 500)
        .unwrap();
    let column = other.rowsets[user].layout.columns.iter_mut().find(|column| column.leaf_offset < 0).unwrap();
    column.info.length += 1;
    let swept = reasons(&files, &other, &options());
    assert!(swept.len() == 1 && swept[&Reason::Meaning] > 1, "{swept:?}");
    // Everything: another depth.
    let shallow = Options { data_purity: Some(false), ..options() };
    assert_eq!(check(&files, &database, &shallow, &again()).pages_kept, 0);
    for all_pages in [
        Options { physical_only: true, ..options() },
        Options { constraints: true, ..options() },
        Options { identities: true, ..options() },
        Options { batches: 2, ..options() },
        Options { scope: Scope::Tables(vec![5]), ..options() },
    ] {
        let refused = run_by_change(&files, &database, &all_pages, &Silent, &again());
        assert!(matches!(refused, Err(NotByChange::Options(_))));
    }
}

/// The first non-leaf page after page 400 with many children, and its children.
fn node_with_children(files: &MemoryFiles) -> (PageId, Vec<PageId>) {
    let children = |page: u32| {
        let bytes = files.read_page(PageId::new(1, page))?;
        let page = format::Page::new(&bytes);
        let is_node = page.header().page_type == 2 && page.header().level > 0 && page.header().slot_count.get() > 10;
        let at = usize::from(page.header().pminlen.get()).checked_sub(6)?;
        let child = |slot| PageId::read(page.slot_bytes(slot)?, at);
        is_node.then(|| (0..page.header().slot_count.get()).filter_map(child).collect::<Vec<_>>())
    };
    let found = (400..files.files()[0].pages).find_map(|page| Some((PageId::new(1, page), children(page)?)));
    found.unwrap()
}

/// A child of a page, in a range without the page and without any other non-leaf page.
fn lone_child(files: &MemoryFiles, node: PageId, children: &[PageId]) -> u32 {
    let is_node = |page: u32| {
        let bytes = files.read_page(PageId::new(1, page)).unwrap();
        let header = *format::Page::new(&bytes).header();
        header.page_type == 2 && header.level > 0
    };
    let is_lone = |page: &u32| page / 8 != node.page / 8 && !(page / 8 * 8..page / 8 * 8 + 8).any(is_node);
    children.iter().map(|child| child.page).find(is_lone).unwrap()
}

/// What a report says, but for the number of pages that were read.
fn said_of(mut report: Report, whole: &Report) -> bool {
    report.statistics.pages_read = whole.statistics.pages_read;
    said(&report) == said(whole)
}

fn with_rot(files: &MemoryFiles, page: PageId) -> MemoryFiles {
    let mut bytes = *files.read_page(page).unwrap();
    bytes[5000] ^= 1;
    files.with_pages([(page, bytes)]).unwrap()
}

/// The pieces that are key bounds.
fn bounds_read(ledger: &Memory) -> usize {
    ledger.read.lock().unwrap().iter().filter(|piece| matches!(piece, Piece::Bounds(_))).count()
}

#[test]
fn a_kept_page_that_is_read_again_and_is_not_sound_any_more_ends_the_proof() {
    let (files, database, ledger) = base(0);
    let (node, children) = node_with_children(&files.files);
    // A child has changed, so its parent is read again.
    let child = lone_child(&files.files, node, &children);
    let later = changed(&files.files, &[child], with_other_lsn);
    let rotten = Later { files: with_rot(&later.files, node), above: later.above.clone() };
    let refused = run_by_change(&rotten, &database, &options(), &Silent, &ledger.again());
    assert!(matches!(refused, Err(NotByChange::Rotten(page)) if page == node), "{:?}", refused.err());
    // Nothing has changed, so the parent is not read: what is not read does not show.
    let rotten = Later { files: with_rot(&files.files, node), above: BTreeSet::new() };
    let (report, reuse) = run_by_change(&rotten, &database, &options(), &Silent, &ledger.again()).unwrap();
    assert!(said_of(report, &crate::run(&files, &database, &options(), &Silent)));
    assert!(reuse.pages_kept > 100 && !reuse.swept.contains_key(&Reason::Bytes), "{reuse:?}");
}

#[test]
fn key_bounds_are_read_only_where_a_page_or_its_parent_has_changed() {
    let (files, database, ledger) = base(0);
    let (node, children) = node_with_children(&files.files);
    let read = |pages: &[u32]| {
        let later = changed(&files.files, pages, with_other_lsn);
        let ledger = ledger.again();
        check(&later, &database, &options(), &ledger);
        bounds_read(&ledger)
    };
    assert_eq!(read(&[]), 0);
    let child = lone_child(&files.files, node, &children);
    assert_eq!(read(&[child]), 0, "the parent is unchanged, and so are the other children");
    let of_node = read(&[node.page]);
    let ranges: BTreeSet<u32> = children.iter().map(|child| child.page / 8).collect();
    assert!((1..=2 * ranges.len()).contains(&of_node), "{of_node} of {}", ranges.len());
    // Without the notes of the run before, all are read.
    let ledger = ledger.again();
    ledger.runs.lock().unwrap().iter_mut().for_each(|run| run.standing = None);
    check(&files, &database, &options(), &ledger);
    assert!(bounds_read(&ledger) > of_node);
}

#[test]
fn a_wrong_order_of_keys_between_kept_pages_is_found_in_each_run() {
    let sound = database_of_lab(0, 4 << 20);
    let database = catalog::load(&sound);
    let (node, children) = node_with_children(&sound);
    // The entries of two children change their places in the parent: the keys of the children are out of their bounds.
    let mut bytes = *sound.read_page(node).unwrap();
    let at = usize::from(format::Page::new(&bytes).header().pminlen.get()) - 6;
    let slot = |bytes: &PageBytes, slot: usize| {
        let place = bytes.len() - 2 * (slot + 1);
        usize::from(u16::from_le_bytes([bytes[place], bytes[place + 1]])) + at
    };
    let (one, other) = (slot(&bytes, 4), slot(&bytes, 7));
    for byte in 0..6 {
        bytes.swap(one + byte, other + byte);
    }
    seal(&mut bytes);
    let files = Later { files: sound.with_pages([(node, bytes)]).unwrap(), above: BTreeSet::new() };
    let ledger = Memory::new();
    check(&files, &database, &options(), &ledger);
    let findings = crate::run(&files, &database, &options(), &Silent).findings.len();
    assert!(findings > 0);
    let mut ledger = ledger.next();
    for pages in [&[][..], &[children[5].page], &[]] {
        let later = changed(&files.files, pages, with_other_lsn);
        // `check` compares the report with that of a whole check.
        check(&later, &database, &options(), &ledger);
        ledger = ledger.next();
    }
}

#[test]
fn two_parts_that_no_run_has_compared_with_each_other_are_compared() {
    // Run 1 has node 1 and child 1, run 2 node 2 and child 1, run 3 node 1 and child 2; then node 2 meets child 2.
    let (files, database, ledger) = base(0);
    let (node, children) = node_with_children(&files.files);
    let child = lone_child(&files.files, node, &children);
    let mut ledger = ledger.again();
    let mut bounds = |pages: &[u32]| {
        let later = changed(&files.files, pages, with_other_lsn);
        ledger = ledger.again();
        check(&later, &database, &options(), &ledger);
        let read = bounds_read(&ledger);
        ledger = std::mem::replace(&mut ledger, Memory::new()).next();
        read
    };
    assert!(bounds(&[node.page]) > 0, "its children are in kept ranges");
    bounds(&[child]);
    assert_eq!(bounds(&[child]), 0, "all is as in the run before");
    // Both parts come from the ledger.
    assert!(bounds(&[node.page, child]) > 0, "node 2 meets child 2 for the first time");
    assert_eq!(ledger.given, 3, "there was no new part");
}

#[test]
fn pages_of_later_sets_are_compared_without_reading_them_only_if_their_files_are_the_same() {
    let (files, database, ledger) = base(0);
    let pages = data_pages(&files.files);
    let later = changed(&files.files, &[pages[3], pages[30]], with_other_lsn);
    let mut ledger = ledger.again();
    ledger.later = Some([1; 16]);
    assert_eq!(check(&later, &database, &options(), &ledger).swept[&Reason::Bytes], 2);
    let mut ledger = ledger.next();
    // The same files are not read again: a page that went bad does not show.
    let page = PageId::new(1, pages[3]);
    let rotten = Later { files: with_rot(&later.files, page), above: later.above.clone() };
    let read = |ledger: &Memory, source: &Later| {
        let (_, reuse) = run_by_change(source, &database, &options(), &Silent, &ledger.again()).unwrap();
        reuse.swept.get(&Reason::Bytes).copied().unwrap_or_default()
    };
    assert_eq!((read(&ledger, &later), read(&ledger, &rotten)), (0, 0));
    // Other files, and files without an identity, are read.
    for other in [Some([2; 16]), None] {
        ledger.later = other;
        assert_eq!((read(&ledger, &later), read(&ledger, &rotten)), (0, 1), "{other:?}");
    }
    // Another page of the range comes from the same files.
    ledger.later = Some([1; 16]);
    let mut more = changed(&later.files, &[pages[3] ^ 1], |_| {});
    more.above.extend(&later.above);
    assert_eq!(read(&ledger, &more), 1);
}

#[test]
fn a_group_with_another_part_or_an_altered_sum_is_refused() {
    let (files, database, ledger) = base(0);
    let refused = |change: &dyn Fn(&mut MemoryGroup)| {
        let ledger = ledger.again();
        let mut runs = ledger.runs.lock().unwrap();
        let group = runs.iter_mut().flat_map(|run| &mut run.groups).find(|group| group.keys.len() > 2).unwrap();
        change(group);
        drop(runs);
        match run_by_change(&files, &database, &options(), &Silent, &ledger) {
            Ok((report, _)) => {
                assert!(said_of(report, &crate::run(&files, &database, &options(), &Silent)));
                false
            }
            Err(NotByChange::Sums(_)) => true,
            Err(other) => panic!("{other}"),
        }
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|group| group.all[20] ^= 1));
    assert!(refused(&|group| group.all.truncate(30)));
    assert!(refused(&|group| {
        group.keys.pop();
    }));
    assert!(refused(&|group| group.keys.swap(0, 1)));
    // A part that is there twice counts once.
    assert!(!refused(&|group| {
        group.keys.push(group.keys[0]);
        group.parts.push(group.parts[0].clone());
    }));
    let mut runs = ledger.again();
    let standing = runs.runs.get_mut().unwrap()[0].standing.as_mut().unwrap();
    let at = standing.len() / 2;
    standing[at] ^= 1;
    assert!(matches!(run_by_change(&files, &database, &options(), &Silent, &runs), Err(NotByChange::Sums(_))));
}

#[test]
fn a_map_that_was_damaged_before_does_not_end_the_proof() {
    let sound = database_of_lab(0, 4 << 20);
    let database = catalog::load(&sound);
    for map in [1, 2, 3, 6] {
        let id = PageId::new(1, map);
        let mut bytes = *sound.read_page(id).unwrap();
        bytes[5000] ^= 1;
        let files = Later { files: sound.with_pages([(id, bytes)]).unwrap(), above: BTreeSet::new() };
        let ledger = Memory::new();
        check(&files, &database, &options(), &ledger);
        let ledger = ledger.next();
        let reuse = check(&files, &database, &options(), &ledger);
        // Without PFS it is unknown which pages are in use.
        assert_eq!(reuse.pages_kept > 0, map != 1, "{reuse:?}");
    }
}

#[test]
fn a_page_that_no_unit_claims_is_in_no_kept_range() {
    let sound = database_of_lab(0, 4 << 20);
    let database = catalog::load(&sound);
    let is_iam_of_user = |page: &u32| {
        let bytes = sound.read_page(PageId::new(1, *page)).unwrap();
        let header = *format::Page::new(&bytes).header();
        let unit = database.unit_index(header.alloc_unit()).and_then(|at| database.rowset_of(&database.units[at]));
        header.page_type == 10 && unit.is_some_and(|rowset| !database.is_system_table(rowset.object_id))
    };
    let iam = (0..sound.files()[0].pages).rfind(is_iam_of_user).unwrap();
    let id = PageId::new(1, iam);
    let mut bytes = *sound.read_page(id).unwrap();
    bytes[5000] ^= 1;
    // PFS says that the damaged page is an IAM page, but no chain leads to it any more.
    let files = Later { files: sound.with_pages([(id, bytes)]).unwrap(), above: BTreeSet::new() };
    let ledger = Memory::new();
    assert_eq!(check(&files, &database, &options(), &ledger).pages_kept, 0);
    let ledger = ledger.next();
    assert!(check(&files, &database, &options(), &ledger).pages_kept > 0);
}

#[test]
fn a_key_comes_back_whole() {
    let range = FileRange { file_id: 3, first: 70_000, pages: 32 };
    let key = PartKey { range, above: [1; 16], maps: [2; 16], meaning: [3; 16] };
    assert_eq!(PartKey::from_bytes(&key.to_bytes()), Some(key));
    assert_eq!(PartKey::from_bytes(&key.to_bytes()[1..]), None);
}

#[test]
fn parts_of_another_key_are_refused() {
    let (files, database, ledger) = base(0);
    let other = Options { hash_key: Some(HashKey::new([8; HashKey::BYTES])), ..Options::default() };
    assert!(matches!(run_by_change(&files, &database, &other, &Silent, &ledger), Err(NotByChange::Sums(_))));
}
