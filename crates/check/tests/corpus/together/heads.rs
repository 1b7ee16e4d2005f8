//! Changes slots, or the first bytes of records, in many ways, and corrects the checksum of the page. A change affects
//! one, some or all records of a page. Rows that are checked together must give the same facts as rows that are checked
//! one by one.

use std::collections::BTreeMap;

use catalog::Database;
use check::{Silent, facts_of_pages};
use findings::Options;
use format::bytes::u16_at;
use format::page::HEADER_BYTES;
use format::protection::undo_torn_bits;
use format::record::{RecordKind, status};
use format::{PAGE_BYTES, Page, PageBytes, PageId, PageType};
use lab::Version;
use libtest_mimic::{Failed, Trial};
use source::{MemoryFiles, PageSource};
use trials::mutate::{PageRole, Pages, Random, seal};

/// The total number of changed pages. The environment variable TOGETHER_FLIPS sets it, for example
/// TOGETHER_FLIPS=1000000.
fn flips() -> usize {
    std::env::var("TOGETHER_FLIPS").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

/// The number of changed pages whose facts are added up and then compared at once.
const PAGES_AT_ONCE: usize = 100;
/// The maximum number of pages that are changed for each unit and each role of a page in the unit, such as leaf page or
/// non-leaf page.
const PAGES_OF_A_KIND: usize = 3;

pub fn trials() -> Vec<Trial> {
    let mut descriptions: Vec<lab::Description> = [4, 9, 16, 25, 36, 49].map(lab::shapes::random).into();
    descriptions.extend(super::forms::descriptions());
    descriptions.extend([Version::V611, Version::V852].map(|version| lab::orders::orders(version, 3, 9 << 20)));
    let share = flips() / descriptions.len();
    let mut trials = Vec::new();
    for (seed, description) in (0..).zip(descriptions) {
        let name = format!("together: heads of records in {} {:?}", description.name, description.version);
        trials.push(Trial::test(name, move || flipped(&description, seed, share)));
    }
    trials.push(Trial::test("together: a data page of index records alone is damaged", index_records));
    trials
        .push(Trial::test("together: references to a base table with a page of index records are not followed", base));
    trials
}

pub(super) fn written(description: &lab::Description) -> Result<MemoryFiles, Failed> {
    let folder = tempfile::tempdir()?;
    let paths = lab::write(description, folder.path())?.files;
    let read = |path: &std::path::PathBuf| Ok((path.clone(), std::fs::read(path)?));
    Ok(MemoryFiles::open(paths.iter().map(read).collect::<std::io::Result<_>>()?)?)
}

fn read(files: &MemoryFiles, page: PageId) -> Option<PageBytes> {
    let mut bytes = *files.read_page(page)?;
    undo_torn_bits(&mut bytes);
    Some(bytes)
}

/// A few pages of each role in each unit.
fn pages_of_each_kind(files: &MemoryFiles, database: &Database) -> Vec<(PageId, PageBytes)> {
    let pages = Pages::new(files, database);
    let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
    let mut kept = Vec::new();
    for id in pages.ids() {
        let Some(bytes) = pages.read(id) else { continue };
        let role = pages.role(id, &bytes);
        let is_content =
            matches!(role, PageRole::Heap | PageRole::Clustered | PageRole::Node | PageRole::Leaf | PageRole::Text);
        let header = *Page::new(&bytes).header();
        if !is_content || header.slot_count.get() == 0 {
            continue;
        }
        let seen = kinds.entry((role, header.alloc_unit(), header.page_type)).or_default();
        *seen += 1;
        if *seen <= PAGES_OF_A_KIND {
            kept.push((id, *bytes));
        }
    }
    kept
}

fn flipped(description: &lab::Description, seed: u64, share: usize) -> Result<(), Failed> {
    let files = written(description)?;
    let database = catalog::load(&files);
    let pages = pages_of_each_kind(&files, &database);
    let mut random = Random::new(seed);
    let all = Options { hash_seed: Some(11), constraints: true, identities: true, ..Options::default() };
    let one_by_one = Options { row_by_row: true, ..all.clone() };
    let mut result = Ok(());
    facts_of_pages(&files, &database, &all, |together| {
        facts_of_pages(&files, &database, &one_by_one, |one_by_one| {
            for _ in 0..share.div_ceil(PAGES_AT_ONCE) {
                let changed: Vec<(PageId, PageBytes)> = (0..PAGES_AT_ONCE)
                    .filter_map(|_| {
                        let (id, bytes) = random.pick(&pages).copied()?;
                        Some((id, change(bytes, &mut random)))
                    })
                    .collect();
                if together(&changed) == one_by_one(&changed) {
                    continue;
                }
                let differs = |page: &&(PageId, PageBytes)| {
                    together(std::slice::from_ref(*page)) != one_by_one(std::slice::from_ref(*page))
                };
                let first = changed.iter().find(differs).map(|page| {
                    let (a, b) = (together(std::slice::from_ref(page)), one_by_one(std::slice::from_ref(page)));
                    let lines = a.lines().zip(b.lines()).find(|(a, b)| a != b);
                    let original = pages.iter().find(|(id, _)| *id == page.0).map(|(_, bytes)| bytes);
                    let bytes = original.into_iter().flat_map(|bytes| bytes.iter().zip(&page.1).enumerate());
                    let bytes: Vec<_> = bytes.filter(|(_, (a, b))| a != b).take(12).collect();
                    format!("{}: {bytes:02x?}\n{lines:?}", page.0)
                });
                result = Err(format!("facts differ: {first:?}").into());
                break;
            }
        });
    });
    result
}

/// Changes the first bytes of one, some or all records in the same way, or changes some slots. Most of the new values
/// are nearly valid.
fn change(mut bytes: PageBytes, random: &mut Random) -> PageBytes {
    let view = Page::new(&bytes);
    let is_data = view.header().kind() == Some(PageType::Data);
    let fixed_end = view.header().pminlen.get();
    let slots = view.header().slot_count.get();
    let offsets: Vec<usize> = (0..slots).filter_map(|slot| view.slot_offset(slot)).map(usize::from).collect();
    let chosen: Vec<usize> = match random.below(3) {
        0 => random.pick(&offsets).copied().into_iter().collect(),
        1 => offsets.iter().copied().filter(|_| random.below(2) == 0).collect(),
        _ => offsets.clone(),
    };
    let (kind, noise, bit) = (random.below(8) as u8, random.number(), random.below(8));
    let what = random.below(10);
    if what == 9 {
        slot(&mut bytes, slots, random);
        seal(&mut bytes);
        return bytes;
    }
    for at in chosen.into_iter().filter(|at| (HEADER_BYTES..PAGE_BYTES - 64).contains(at)) {
        let end = if is_data { u16_at(&bytes, at + 2).unwrap_or_default() } else { fixed_end };
        let bitmap = (at + usize::from(end)).min(PAGE_BYTES - 16);
        let columns = usize::from(u16_at(&bytes, bitmap).unwrap_or_default());
        let variable = (bitmap + 2 + columns.div_ceil(8)).min(PAGE_BYTES - 8);
        match what {
            0 | 1 => bytes[at] = bytes[at] & !status::TYPE_MASK | kind << 1,
            2 => bytes[at] ^= 1 << bit,
            3 => bytes[at + 1] = [0, 1, 2, noise as u8][bit % 4],
            4 => bytes[at + 2] = bytes[at + 2].wrapping_add([1, 255, 4, noise as u8][bit % 4]),
            5 => bytes[bitmap] = bytes[bitmap].wrapping_add([1, 255, 8, noise as u8][bit % 4]),
            6 => bytes[bitmap + 2 + bit % 3] ^= 1 << (noise % 8),
            7 => bytes[variable] = bytes[variable].wrapping_add([1, 255, 2, noise as u8][bit % 4]),
            _ => bytes[(variable + 2 + bit).min(PAGE_BYTES - 1)] ^= 1 << (noise % 8),
        }
    }
    seal(&mut bytes);
    bytes
}

/// Changes slots: makes a slot empty, lets two slots share a record, moves or reorders slots, adds or removes a slot,
/// or moves the end of the used space.
fn slot(bytes: &mut PageBytes, slots: u16, random: &mut Random) {
    let at = |slot: usize| PAGE_BYTES - 2 * (slot + 1);
    let (a, b) = (at(random.below(slots.into())), at(random.below(slots.into())));
    match random.below(7) {
        0 => bytes[a..a + 2].fill(0),
        1 => bytes.copy_within(b..b + 2, a),
        2 => (0..2).for_each(|byte| bytes.swap(a + byte, b + byte)),
        3 => bytes[a] ^= 1 << random.below(8),
        4 => bytes[22] = bytes[22].wrapping_add(1),
        5 => bytes[22] = bytes[22].wrapping_sub(1),
        _ => bytes[30] ^= 1 << random.below(8),
    }
}

/// Changes the kind of each record on a page to `kind`.
fn with_kind(mut bytes: PageBytes, kind: RecordKind) -> PageBytes {
    let view = Page::new(&bytes);
    let slots = view.header().slot_count.get();
    let offsets: Vec<u16> = (0..slots).filter_map(|slot| view.slot_offset(slot)).filter(|at| *at > 0).collect();
    for at in offsets {
        bytes[usize::from(at)] = bytes[usize::from(at)] & !status::TYPE_MASK | (kind as u8) << 1;
    }
    seal(&mut bytes);
    bytes
}

fn index_records() -> Result<(), Failed> {
    let files = written(&lab::orders::orders(Version::V852, 3, 9 << 20))?;
    let database = catalog::load(&files);
    for (id, bytes) in pages_of_each_kind(&files, &database) {
        let header = *Page::new(&bytes).header();
        let unit = database.units.iter().find(|unit| unit.id == header.alloc_unit());
        let is_compressed = unit.and_then(|unit| database.rowset_of(unit)).is_none_or(|rowset| rowset.compression > 0);
        if header.kind() != Some(PageType::Data) || is_compressed {
            continue;
        }
        for kind in [RecordKind::Index, RecordKind::GhostIndex] {
            let damaged = files.with_pages([(id, with_kind(bytes, kind))])?;
            let report = check::run(&damaged, &database, &Options::default(), &Silent);
            if !report.findings.iter().any(|finding| finding.check.msg == 8944 && finding.page == Some(id)) {
                return Err(format!("{kind:?} records on data page {id} are skipped in silence").into());
            }
        }
    }
    Ok(())
}

/// Changes leaf pages of base tables, one after another.
fn base() -> Result<(), Failed> {
    let files = written(&lab::orders::orders(Version::V852, 3, 9 << 20))?;
    let database = catalog::load(&files);
    let pages = Pages::new(&files, &database);
    let mut seen = 0;
    for id in pages.ids() {
        let Some(bytes) = read(&files, id).filter(|bytes| pages.role(id, bytes) == PageRole::Clustered) else {
            continue;
        };
        let Some(rowset) = pages.rowset(Page::new(&bytes).header().alloc_unit()) else { continue };
        if !database.is_system_table(rowset.object_id) || rowset.object_id > 100 {
            continue;
        }
        seen += 1;
        let damaged = files.with_pages([(id, with_kind(bytes, RecordKind::Index))])?;
        let report = check::run(&damaged, &catalog::load(&damaged), &Options::default(), &Silent);
        let follows = report.findings.iter().find(|finding| finding.check.msg == 8992);
        if let Some(finding) = follows {
            let text = finding.text(&report.names());
            return Err(format!("page {id} of base table {}: {text}", rowset.object_id).into());
        }
        if report.findings.is_empty() {
            return Err(format!("page {id} of base table {}: nothing is said", rowset.object_id).into());
        }
    }
    if seen < 20 { Err(format!("only {seen} pages of base tables").into()) } else { Ok(()) }
}
