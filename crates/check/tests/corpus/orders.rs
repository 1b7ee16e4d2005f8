//! Compares neighboring keys in all B-trees of the real files. Counts how many pairs are ordered by each rule for
//! strings, and asserts that no pair is in the wrong order.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{self, AtomicUsize};

use catalog::{Database, Level, RowLayout, Rowset};
use format::allocation::{PFS_PAGES, pfs_page_of};
use format::collation::{Comparison, Encoding, compare};
use format::key::{KeyColumn, KeyOrder, compare_values, each_value};
use format::protection::undo_torn_bits;
use format::record::Record;
use format::{Page, PageBytes, PageId, PageType};
use libtest_mimic::{Failed, Trial};
use source::PageSource;

use crate::Corpus;

/// One test over all files, which prints its counts.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let folder = corpus.files.clone();
    vec![Trial::test("orders: neighbouring strings are in the order of their collation", move || all_files(&folder))]
}

/// Numbers of neighboring pairs of keys, by the rule that orders the first string column in which the two keys differ.
#[derive(Clone, Copy, Default)]
struct Counts {
    first_level: u64,
    accents: u64,
    equal: u64,
    same_letters: u64,
    undecided: u64,
    against: u64,
}

/// The offset of the allocation bytes in a PFS page: one byte for each page.
const PFS_BYTES: usize = 100;
const IS_ALLOCATED: u8 = 0x40;

/// Whether a page is allocated. The keys of a freed page may be in the order of an earlier collation of the database.
pub fn is_allocated(map: &PageBytes, page: u32) -> bool {
    map[PFS_BYTES + (page % PFS_PAGES) as usize] & IS_ALLOCATED != 0
}

/// The counts, by collation and by whether the strings are nchar or nvarchar.
type ByCollation = BTreeMap<(u32, bool), Counts>;

/// The results for several files.
#[derive(Default)]
struct Found {
    pairs: ByCollation,
    files: u64,
    /// Files that have a pair whose order is undecided.
    undecided_files: Vec<String>,
    /// Number of neighboring pairs of keys in unique indexes that compare as equal although their bytes differ.
    duplicates: u64,
    wrong: Vec<String>,
}

fn all_files(folder: &Path) -> Result<(), Failed> {
    let mut paths = Vec::new();
    search(folder, &mut paths);
    paths.sort();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Found::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, atomic::Ordering::Relaxed)) {
                    file(path, &found);
                }
            });
        }
    });
    let found = found.into_inner().expect("no thread failed");
    println!("collation  type    first level    accents      equal  same letters  undecided  against");
    let mut sum = Counts::default();
    for ((id, wide), counts) in &found.pairs {
        print(&format!("{id:08X}   {}", if *wide { "nchar" } else { "char " }), counts);
        sum.add(counts);
    }
    print("all             ", &sum);
    println!(
        "{} files, {} with undecided pairs: {:?}; duplicates that are not the same bytes: {}",
        found.files,
        found.undecided_files.len(),
        found.undecided_files,
        found.duplicates
    );
    if found.wrong.is_empty() && found.duplicates == 0 { Ok(()) } else { Err(found.wrong.join("\n").into()) }
}

fn print(name: &str, counts: &Counts) {
    let Counts { first_level, accents, equal, same_letters, undecided, against } = counts;
    println!("{name} {first_level:12} {accents:10} {equal:10} {same_letters:13} {undecided:10} {against:8}");
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.first_level += other.first_level;
        self.accents += other.accents;
        self.equal += other.equal;
        self.same_letters += other.same_letters;
        self.undecided += other.undecided;
        self.against += other.against;
    }
}

pub fn search(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            search(&path, found);
        } else if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("mdf") || end.eq_ignore_ascii_case("bak"))
        {
            found.push(path);
        }
    }
}

fn file(path: &Path, found: &Mutex<Found>) {
    let Ok(source) = source::open(&[path.to_owned()], &[], false) else { return };
    let database = catalog::load(source.as_ref());
    let mut here = Found::default();
    for data in source.files() {
        for first in (0..data.pages).step_by(PFS_PAGES as usize) {
            let Some(map) = source.read_page(PageId::new(data.file_id, pfs_page_of(first))) else { continue };
            for number in first..data.pages.min(first + PFS_PAGES) {
                if is_allocated(&map, number) {
                    page(source.as_ref(), &database, PageId::new(data.file_id, number), &mut here);
                }
            }
        }
    }
    let undecided = here.pairs.values().map(|counts| counts.undecided + counts.same_letters).sum::<u64>();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut all = found.lock().expect("no thread failed");
    for (key, counts) in &here.pairs {
        all.pairs.entry(*key).or_default().add(counts);
    }
    all.files += 1;
    all.duplicates += here.duplicates;
    all.wrong.extend(here.wrong.iter().map(|what| format!("{}: {what}", path.display())));
    if undecided > 0 {
        all.undecided_files.push(format!("{name} ({undecided})"));
    }
}

/// A page as it is in memory, and its rowset; `None` if the page does not belong to an uncompressed B-tree.
pub fn read<'d>(source: &dyn PageSource, database: &'d Database, id: PageId) -> Option<(Box<PageBytes>, &'d Rowset)> {
    let mut bytes = source.read_page(id)?;
    undo_torn_bits(&mut bytes);
    let header = Page::new(&bytes).header();
    let is_of_tree = matches!(header.kind(), Some(PageType::Data | PageType::Index));
    let unit = database.units.get(database.unit_index(header.alloc_unit())?)?;
    let rowset = database.rowset_of(unit).filter(|rowset| rowset.compression == 0 && rowset.index_id != 0)?;
    (is_of_tree && header.page_id() == id).then_some((bytes, rowset))
}

fn page(source: &dyn PageSource, database: &Database, id: PageId, found: &mut Found) {
    let Some((bytes, rowset)) = read(source, database, id) else { return };
    let page = Page::new(&bytes);
    let columns = columns(&rowset.layout, page);
    let is_leaf = page.header().level == 0;
    let index = database.indexes.get(&(rowset.object_id, rowset.index_id));
    let is_unique = is_leaf && index.is_some_and(catalog::Index::is_unique);
    let mut prior = None;
    for slot in usize::from(!is_leaf)..usize::from(page.header().slot_count.get()) {
        let Some(record) = record(page, slot as u16) else { continue };
        if let Some(prior) = prior {
            pair((&prior, &record), &columns, is_unique, found, &format!("{id} slot {slot}"));
        }
        prior = Some(record);
    }
    // Compares the last record of this page with the first record of the next page.
    if let Some(prior) = prior.filter(|_| is_leaf)
        && let Some((bytes, other)) = read(source, database, page.header().next())
        && other.id == rowset.id
        && let Some(first) = record(Page::new(&bytes), 0)
    {
        pair((&prior, &first), &columns, is_unique, found, &format!("{id} and the next"));
    }
}

/// Returns the key columns of the records on a page; empty if the fixed length of the records differs from the fixed
/// length in the catalog.
pub fn columns(layout: &RowLayout, page: Page<'_>) -> Vec<KeyColumn> {
    let level = if page.header().level == 0 { Level::Leaf } else { Level::Node };
    let is_index = page.header().kind() == Some(PageType::Index);
    let is_known = !is_index || page.header().pminlen.get() == layout.index_fixed_length(level);
    if is_known { layout.key(level) } else { Vec::new() }
}

pub fn record(page: Page<'_>, slot: u16) -> Option<Record<'_>> {
    let bytes = page.slot_bytes(slot)?;
    let record = match page.header().kind()? {
        PageType::Data => Record::data(bytes),
        _ => Record::index(bytes, page.header().pminlen.get()),
    };
    record.ok().filter(|record| !record.kind().is_ghost())
}

pub fn values(record: &Record<'_>, columns: &[KeyColumn]) -> Option<Vec<Option<Vec<u8>>>> {
    let mut values = Vec::new();
    each_value(record, columns, |value| values.push(value.map(<[u8]>::to_vec))).then_some(values)
}

fn pair((a, b): (&Record<'_>, &Record<'_>), columns: &[KeyColumn], is_unique: bool, found: &mut Found, place: &str) {
    let (Some(left), Some(right)) = (values(a, columns), values(b, columns)) else { return };
    let mut is_same = true;
    for ((left, right), column) in left.iter().zip(&right).zip(columns) {
        let (Some(left), Some(right)) = (left, right) else {
            if left.is_some() != right.is_some() {
                return;
            }
            continue;
        };
        if left == right {
            continue;
        }
        let (id, encoding) = match column.order {
            KeyOrder::Ansi(id) => (id, Encoding::Ansi),
            KeyOrder::Unicode(id) => (id, Encoding::Unicode),
            order => match compare_values(left, right, order) {
                Some(Ordering::Equal) => continue,
                _ => return,
            },
        };
        if id.is_bin() || id.is_bin2() {
            return;
        }
        let comparison = compare(left, right, id, encoding);
        let comparison = if column.descending { comparison.reverse() } else { comparison };
        let counts = found.pairs.entry((id.0, encoding == Encoding::Unicode)).or_default();
        match comparison {
            Comparison::Decided(_) => counts.first_level += 1,
            Comparison::ByAccents(_) => counts.accents += 1,
            Comparison::Equal => counts.equal += 1,
            Comparison::SameLetters => counts.same_letters += 1,
            Comparison::Undecided => counts.undecided += 1,
        }
        match comparison.order() {
            Some(Ordering::Greater) => {
                counts.against += 1;
                found.wrong.push(format!("{place}: {} before {} in {:08X}", text(left), text(right), id.0));
                return;
            }
            Some(Ordering::Equal) => is_same = false,
            Some(Ordering::Less) => return,
            None => {
                if std::env::var_os("MDFSCK_SHOW_UNDECIDED").is_some() {
                    println!("{place}: {:08X} {comparison:?} {} {}", id.0, text(left), text(right));
                }
                return;
            }
        }
    }
    if is_unique && !is_same {
        found.duplicates += 1;
        found.wrong.push(format!("{place}: twice the same key"));
    }
}

fn text(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    format!("{:?} ({})", String::from_utf16_lossy(&units), String::from_utf8_lossy(bytes).escape_debug())
}
