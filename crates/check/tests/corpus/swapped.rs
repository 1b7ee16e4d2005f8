//! Swaps neighboring keys in copies of real files. Only keys are swapped whose order depends on collation weights or on
//! the alphabet of a locale. The check must report each swap on its page.
//!
//! The environment variable `MDFSCK_SWAPS` sets the number of swaps.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;

use findings::registry;
use format::allocation::{PFS_PAGES, pfs_page_of};
use format::collation::{CollationId, Comparison, Encoding, compare};
use format::key::KeyOrder;
use format::page::PAGE_BYTES;
use format::{Page, PageId};
use libtest_mimic::{Failed, Trial};
use source::{DataFiles, PageSource};

use crate::Corpus;
use crate::image::Image;
use crate::orders::{columns, is_allocated, read, record, search, values};

/// The size, in bytes, of the largest file that is used.
const MAX_BYTES: u64 = 24 << 20;
/// The maximum number of swaps in one copy. Each swap is on a page of its own.
const MAX_SWAPS: usize = 400;

/// One test over all files.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let folder = corpus.files.clone();
    vec![Trial::test("orders: swapped neighbours are found on their page", move || all_files(&folder))]
}

fn all_files(folder: &Path) -> Result<(), Failed> {
    let wanted = std::env::var("MDFSCK_SWAPS").ok().and_then(|swaps| swaps.parse().ok()).unwrap_or(300);
    let mut paths = Vec::new();
    search(folder, &mut paths);
    paths.sort();
    let is_fit = |path: &Path| {
        path.extension().is_some_and(|end| end.eq_ignore_ascii_case("mdf"))
            && std::fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_BYTES)
    };
    paths.retain(|path| is_fit(path));
    // This arbitrary order mixes the folders, so that the first files have many different collations.
    paths.sort_by_key(|path| path.as_os_str().len() % 7);
    let (mut swapped, mut found, mut missed) = (0, 0, Vec::new());
    for round in 0.. {
        let before = swapped;
        for path in &paths {
            if swapped >= wanted {
                break;
            }
            let (pages, names) = file(path, round, wanted - swapped);
            swapped += pages;
            found += pages - names.len();
            missed.extend(names);
        }
        if swapped >= wanted || swapped == before {
            break;
        }
    }
    println!(
        "{swapped} neighbours swapped, {found} found on their page; not: {:?}",
        missed.iter().take(20).collect::<Vec<_>>()
    );
    if found * 100 >= swapped * 99 && swapped > 0 { Ok(()) } else { Err("too few were found".into()) }
}

/// On each page, swaps one pair of keys: pair number `round` of the pairs that [`needs_more`] accepts. Returns the
/// number of swaps, and descriptions of the swaps that the check missed.
fn file(path: &Path, round: usize, most: usize) -> (usize, Vec<String>) {
    let Ok(files) = DataFiles::open(&[path.to_owned()]) else { return (0, Vec::new()) };
    let database = catalog::load(&files);
    let mut image = Image::load(path);
    let mut pages = BTreeSet::new();
    for number in 0..files.files().first().map_or(0, |file| file.pages) {
        let id = PageId::new(1, number);
        let Some(map) = files.read_page(PageId::new(1, pfs_page_of(number))) else { break };
        if pages.len() >= most.min(MAX_SWAPS) || number % PFS_PAGES == 0 || !is_allocated(&map, number) {
            continue;
        }
        let Some((bytes, rowset)) = read(&files, &database, id) else { continue };
        let page = Page::new(&bytes);
        let columns = columns(&rowset.layout, page);
        if page.header().level != 0 {
            continue;
        }
        let slots = 1..page.header().slot_count.get();
        let keys: Vec<_> = (0..page.header().slot_count.get())
            .map(|slot| record(page, slot).and_then(|record| values(&record, &columns)))
            .collect();
        let fits = |slot: &u16| {
            let pair = keys[usize::from(*slot) - 1].as_ref().zip(keys[usize::from(*slot)].as_ref());
            pair.is_some_and(|(a, b)| needs_more(a, b, &columns))
        };
        let Some(slot) = slots.filter(fits).nth(round) else { continue };
        image.edit(number, |bytes| {
            let at = |slot: u16| PAGE_BYTES - 2 * (usize::from(slot) + 1);
            let (one, other) = (at(slot - 1), at(slot));
            (0..2).for_each(|byte| bytes.swap(one + byte, other + byte));
        });
        pages.insert(number);
    }
    if pages.is_empty() {
        return (0, Vec::new());
    }
    let report = image.check();
    let told: BTreeSet<u32> = report
        .findings
        .iter()
        .filter(|finding| finding.check == &registry::KEY_ORDER)
        .filter_map(|finding| finding.page.map(|page| page.page))
        .collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let missed = pages.difference(&told).map(|page| format!("{name} page {page} round {round}")).collect();
    (pages.len(), missed)
}

/// Returns whether key `a` sorts before key `b`, and the first column in which the keys differ is a string column for
/// which the order of English letters and digits is not enough.
fn needs_more(a: &[Option<Vec<u8>>], b: &[Option<Vec<u8>>], columns: &[format::key::KeyColumn]) -> bool {
    let differs = a.iter().zip(b).zip(columns).find(|((a, b), _)| a != b);
    let Some(((Some(left), Some(right)), column)) = differs else { return false };
    let (id, encoding) = match column.order {
        KeyOrder::Ansi(id) => (id, Encoding::Ansi),
        KeyOrder::Unicode(id) => (id, Encoding::Unicode),
        _ => return false,
    };
    let comparison = compare(left, right, id, encoding);
    let comparison = if column.descending { comparison.reverse() } else { comparison };
    matches!(comparison, Comparison::Decided(Ordering::Less) | Comparison::ByAccents(Ordering::Less))
        && !is_english(left, right, id, encoding)
}

/// Returns whether the order of English letters and digits is enough to compare the two strings: the collation is
/// binary, or both strings are ASCII and the locale orders ASCII like English. The result is false if the first
/// difference is between two symbols.
fn is_english(a: &[u8], b: &[u8], id: CollationId, encoding: Encoding) -> bool {
    const LOCALES: [u8; 11] = [0x01, 0x03, 0x07, 0x08, 0x0B, 0x0C, 0x10, 0x11, 0x15, 0x19, 0x24];
    let width = if encoding == Encoding::Ansi { 1 } else { 2 };
    let units = |text: &[u8]| -> Vec<u16> {
        text.chunks_exact(width).map(|unit| u16::from_le_bytes([unit[0], unit.get(1).copied().unwrap_or(0)])).collect()
    };
    let (a, b) = (units(a), units(b));
    if id.is_bin() || id.is_bin2() || a.iter().chain(&b).all(|unit| *unit < 0x80) && LOCALES.contains(&id.locale()) {
        let is_symbol = |unit: Option<&u16>| {
            unit.is_some_and(|unit| u8::try_from(*unit).is_ok_and(|byte| byte.is_ascii_punctuation()))
        };
        let at = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or_else(|| a.len().min(b.len()));
        return !(is_symbol(a.get(at)) && is_symbol(b.get(at)));
    }
    false
}
