//! A redacted database has the same findings as before, and its old texts and numbers are gone.
#![allow(clippy::unwrap_used, clippy::panic)]

mod leftovers;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use catalog::Database;
use check::Silent;
use findings::{Options, Report};
use format::protection::undo_torn_bits;
use format::{PAGE_BYTES, Page, PageBytes, PageId, PageType};
use lab::{PageVerify, Version, orders, specimens};
use redact::{Kept, Key, Redaction, Refused, Why, differences};
use source::{DataFiles, MemoryFiles, PageSource};
use trials::mutate::{Random, Survey, Verb, seal};

/// The number of real databases, the mutants of each, and the size of the largest one in bytes.
const DATABASES: usize = 25;
const MUTANTS: u64 = 20;
const MOST_BYTES: u64 = 5 << 20;

fn check(source: &dyn PageSource) -> Report {
    let database = catalog::load(source);
    let options = Options { max_threads: 1, hash_seed: Some(1), ..Options::default() };
    check::run(source, &database, &options, &Silent)
}

/// The redacted database, and what was kept.
fn redacted(files: &MemoryFiles, seed: u64) -> Result<(MemoryFiles, Kept), Refused> {
    let database = catalog::load(files);
    let mut redaction = Redaction::of(files, &database, Key::from_seed(seed))?;
    let ids: Vec<PageId> = redaction.pages().collect();
    let mut contents: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for id in ids {
        let page = redaction.page(id)?;
        if id.page == 0 {
            contents.push((PathBuf::from(format!("{}.mdf", id.file)), Vec::new()));
        }
        contents.last_mut().unwrap().1.extend_from_slice(page.as_slice());
    }
    Ok((MemoryFiles::open(contents).unwrap(), redaction.kept().clone()))
}

/// Whether a database must be refused: it is encrypted, or its catalog cannot be read.
fn may_be_refused(database: &Database, why: &Refused) -> bool {
    match why {
        Refused::Encrypted => database.is_encrypted,
        Refused::NoCatalog => {
            let is_empty = database.rowsets.iter().all(|rowset| rowset.layout.columns.is_empty());
            is_empty || !database.units_are_complete() || !database.layouts_are_complete()
        }
        Refused::Unread(_) | Refused::TooLarge => false,
    }
}

/// Changes a random field of a random structure. One of eight changes leaves the old checksum.
fn mutant(files: &MemoryFiles, survey: &Survey, random: &mut Random) -> Option<(MemoryFiles, PageId, String)> {
    let fields: Vec<_> = survey.fields().collect();
    let (structure, field, sites) = *random.pick(&fields)?;
    let sites: Vec<_> = sites.drawn().collect();
    let (site, other) = (*random.pick(&sites)?, *random.pick(&sites)?);
    let verb = *random.pick(&Verb::ALL)?;
    let read = |page: PageId| {
        let mut bytes = files.read_page(page)?;
        undo_torn_bits(&mut bytes);
        Some(bytes)
    };
    let mut page: Box<PageBytes> = read(site.page)?;
    let other = read(other.page).map(|page| other.value(&page).to_vec());
    if !site.apply(&mut page, verb, other.as_deref()) {
        return None;
    }
    let is_sealed = random.below(8) > 0;
    if is_sealed {
        seal(&mut page);
    }
    let name = format!("{structure}: {field}, {}, page {}, sealed {is_sealed}", verb.name(), site.page);
    // A file header that says that the file is of another database cannot be opened.
    Some((files.with_pages([(site.page, *page)]).ok()?, site.page, name))
}

/// Redacts a database and mutants of it. Adds a line for each difference. Returns the number of mutants, and how many of
/// them had findings.
fn compare(name: &str, files: &MemoryFiles, mutants: u64, failures: &mut Vec<String>) -> (u64, u64) {
    let database = catalog::load(files);
    let (new, kept) = match redacted(files, 1) {
        Ok(done) => done,
        Err(why) => {
            println!("{name}: {why}");
            if !may_be_refused(&database, &why) {
                failures.push(format!("{name}: refused: {why}"));
            }
            return (0, 0);
        }
    };
    let before = check(files);
    let found = differences(&before, &check(&new));
    failures.extend(found.iter().take(3).map(|line| format!("{name}: {line}")));
    for (why, place, count) in kept.iter() {
        println!("  kept: {place} ({count}): {}", why.text());
    }
    search(name, (files, &new), &kept, None, failures);
    let survey = Survey::of(files, &database, 1);
    let mut random = Random::new(name.len() as u64);
    let (mut done, mut damaged, mut tries) = (0, 0, 0);
    while done < mutants && tries < 20 * mutants {
        tries += 1;
        let Some((mutant, page, change)) = mutant(files, &survey, &mut random) else { continue };
        let (new, kept) = match redacted(&mutant, done) {
            Ok(done) => done,
            Err(why) => {
                if !may_be_refused(&catalog::load(&mutant), &why) {
                    failures.push(format!("{name}: {change}: refused: {why}"));
                }
                continue;
            }
        };
        search(&format!("{name}: {change}"), (&mutant, &new), &kept, Some(page), failures);
        let before = check(&mutant);
        let mut found = differences(&before, &check(&new));
        // Where a damaged record has a text in the place of lengths, the numbers in its finding follow from the text.
        if kept.iter().any(|(why, ..)| why == Why::Damaged) {
            let place = format!("page {:?}", Some(page));
            found.retain(|line| !line[2..].starts_with("record.audit") || !line.contains(&place));
        }
        if !found.is_empty() {
            failures.push(format!("{name}: {change}: {} differences", found.len()));
            failures.extend(found.into_iter().take(4));
        }
        damaged += u64::from(!before.findings.is_empty());
        done += 1;
    }
    (done, damaged)
}

/// The bytes of all pages, and the position of one page among them.
fn contents(files: &MemoryFiles, page: Option<PageId>) -> (Vec<u8>, Option<usize>) {
    let ids = files.files().iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)));
    let (mut all, mut position) = (Vec::new(), None);
    for id in ids {
        if Some(id) == page {
            position = Some(all.len() / PAGE_BYTES);
        }
        let mut bytes = files.read_page(id).unwrap_or_else(|| Box::new([0; PAGE_BYTES]));
        undo_torn_bits(&mut bytes);
        all.extend_from_slice(bytes.as_slice());
    }
    (all, position)
}

/// Adds a line for each old text and number that is still there and not listed as kept. `changed` is the page on which
/// a field was changed before: values may stay there if the page is listed.
fn search(
    name: &str,
    (old, new): (&MemoryFiles, &MemoryFiles),
    kept: &Kept,
    changed: Option<PageId>,
    failures: &mut Vec<String>,
) {
    let needles = leftovers::needles(old, &catalog::load(old), kept);
    let ((old, changed), (new, _)) = (contents(old, changed), contents(new, None));
    let mut left = leftovers::left(&needles, &old, &new);
    if kept.iter().any(|(why, ..)| matches!(why, Why::Damaged | Why::UnknownPages | Why::Compressed)) {
        left.retain(|left| Some(left.place.0) != changed);
    }
    // With a wrong layout of a base table, names in it stay, and values that are equal to them.
    if kept.iter().any(|(why, place, _)| why == Why::Damaged && place.starts_with("sys.")) {
        left.retain(|left| !leftovers::is_of_base_table(&old, left.place.0));
    }
    // Each table may keep as many texts as the command lists for it. For base tables, the command lists names.
    let listed = |table: &str| match table {
        leftovers::NAMES => kept.iter().filter(|(why, ..)| *why == Why::NameOfSystem).map(|(.., count)| count).sum(),
        table => leftovers::count(kept, Why::Unchanged, table),
    };
    let mut of_table: BTreeMap<String, u64> = BTreeMap::new();
    left.retain(|left| {
        let count = of_table.entry(left.table.clone()).or_default();
        *count += 1;
        *count > listed(&left.table)
    });
    if changed.is_none() {
        println!("{name}: {} texts and numbers, {} left", needles.len(), left.len());
        left.iter().take(5).for_each(|left| println!("  left: {:?} of {} at {:?}", left.text, left.table, left.place));
    }
    // The specimens have columns of dense codes (0000003a, 0000003b ...). A few codes get their own value by chance.
    let by_chance = name.starts_with("specimen") && left.len() * 200 < needles.len();
    if !by_chance {
        let line =
            |left: &leftovers::Left| format!("{name}: left: {:?} of {} at {:?}", left.text, left.table, left.place);
        failures.extend(left.iter().take(3).map(line));
    }
}

fn memory(paths: &[PathBuf]) -> Option<MemoryFiles> {
    let contents = paths.iter().map(|path| Some((path.clone(), std::fs::read(path).ok()?)));
    MemoryFiles::open(contents.collect::<Option<_>>()?).ok()
}

#[test]
fn a_redacted_lab_database_has_the_findings_of_its_original() {
    let mut failures = Vec::new();
    let (done, _) = compare("orders", &sample(), 3, &mut failures);
    assert_eq!(failures, [""; 0]);
    assert_eq!(done, 3);
}

/// A small lab database in memory.
fn sample() -> MemoryFiles {
    let folder = tempfile::tempdir().unwrap();
    let mut description = orders::orders(Version::V706, 11, 0);
    description.tables.iter_mut().for_each(|table| table.rows = table.rows.min(60));
    memory(&lab::write(&description, folder.path()).unwrap().files).unwrap()
}

/// The first page of rows of a table.
fn page_of(files: &MemoryFiles, table: &str) -> PageId {
    let database = catalog::load(files);
    let is_its = |id: &PageId| {
        let bytes = files.read_page(*id).unwrap();
        let header = Page::new(&bytes).header();
        let unit = database.unit_index(header.alloc_unit()).map(|at| &database.units[at]);
        let rowset = unit.and_then(|unit| database.rowset_of(unit));
        header.kind() == Some(PageType::Data)
            && header.slot_count.get() > 3
            && rowset.is_some_and(|rowset| database.object_name(rowset.object_id) == table)
    };
    (10..files.files()[0].pages).map(|page| PageId::new(1, page)).find(is_its).unwrap()
}

/// The places of texts in UTF-16 of eight or more ASCII letters.
fn texts_on(page: &PageBytes) -> Vec<Range<usize>> {
    let is_letter = |at: usize| page[at].is_ascii_alphabetic() && page[at + 1] == 0;
    let (mut texts, mut at) = (Vec::new(), 96);
    while at + 2 <= PAGE_BYTES {
        let letters = (at..PAGE_BYTES - 1).step_by(2).take_while(|at| is_letter(*at)).count();
        if letters >= 8 {
            texts.push(at..at + 2 * letters);
        }
        at += (2 * letters).max(1);
    }
    texts
}

/// The sample with a change of one page, and its redacted copy.
fn with_change(page: PageId, change: impl Fn(&mut PageBytes)) -> Result<(MemoryFiles, MemoryFiles, Kept), Refused> {
    let files = sample();
    let mut bytes = files.read_page(page).unwrap();
    change(&mut bytes);
    seal(&mut bytes);
    let changed = files.with_pages([(page, *bytes)]).unwrap();
    let (new, kept) = redacted(&changed, 1)?;
    Ok((changed, new, kept))
}

#[test]
fn rows_on_a_page_of_a_wrong_type_do_not_stay() {
    let page = page_of(&sample(), "customers");
    assert!(texts_on(&sample().read_page(page).unwrap()).len() > 10);
    for kind in [2, 3, 7, 8, 9, 10, 11, 13, 15, 16, 99] {
        let (old, new, kept) = with_change(page, |bytes| bytes[1] = kind).unwrap();
        // A check reads the bytes of rows as entries of an index, so that it says something else of other bytes.
        if kind != PageType::Index as u8 {
            assert_eq!(differences(&check(&old), &check(&new)), [""; 0], "type {kind}");
        }
        assert!(leftovers::count(&kept, Why::Damaged, "customers") > 0, "type {kind}");
        let [old, new] = [old, new].map(|files| files.read_page(page).unwrap());
        for at in texts_on(&old) {
            assert_ne!(old[at.clone()], new[at], "type {kind}");
        }
    }
}

#[test]
fn a_damaged_record_is_listed() {
    let page = page_of(&sample(), "customers");
    let (.., kept) = with_change(page, |_| {}).unwrap();
    assert_eq!(leftovers::count(&kept, Why::Damaged, "customers"), 0);
    for (at, value) in [(0, 0xFF), (2, 0), (2, 5), (3, 0x70)] {
        let change = |bytes: &mut PageBytes| {
            let slot = usize::from(Page::new(bytes).slot_offset(1).unwrap());
            bytes[slot + at] = value;
        };
        let (.., kept) = with_change(page, change).unwrap();
        assert_eq!(leftovers::count(&kept, Why::Damaged, "customers"), 1, "byte {at}");
    }
}

#[test]
fn a_database_whose_catalog_is_incomplete_is_refused() {
    const SYSRSCOLS: u32 = 3;
    let files = sample();
    let is_leaf = |id: &PageId| {
        let bytes = files.read_page(*id).unwrap();
        let header = Page::new(&bytes).header();
        header.kind() == Some(PageType::Data) && header.object_id.get() == SYSRSCOLS && header.index_id.get() < 2
    };
    let leaves: Vec<PageId> = (10..files.files()[0].pages).map(|page| PageId::new(1, page)).filter(is_leaf).collect();
    let refused = with_change(*leaves.last().unwrap(), |bytes| bytes.fill(0));
    assert!(matches!(refused.err(), Some(Refused::NoCatalog)));
}

#[test]
#[ignore = "full tier: takes seconds"]
fn redacted_lab_databases_of_all_kinds_have_the_findings_of_their_originals() {
    let mut failures = Vec::new();
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&orders::orders(Version::V706, 11, 0), folder.path()).unwrap();
    let (mut done, _) = compare("orders", &memory(&written.files).unwrap(), 12, &mut failures);
    for (version, verify) in [
        (Version::V611, PageVerify::Torn),
        (Version::V706, PageVerify::Checksum),
        (Version::V852, PageVerify::None),
        (Version::V957, PageVerify::Checksum),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let written = lab::write(&specimens::specimen(version, verify, 1), folder.path()).unwrap();
        done += compare(&format!("specimen {version:?}"), &memory(&written.files).unwrap(), 8, &mut failures).0;
        let folder = tempfile::tempdir().unwrap();
        let written = lab::write(&lab::every_type::types(version, 3), folder.path()).unwrap();
        done += compare(&format!("every type {version:?}"), &memory(&written.files).unwrap(), 8, &mut failures).0;
    }
    assert_eq!(failures, [""; 0]);
    assert_eq!(done, 12 + 4 * (8 + 8), "databases that were not refused");
}

/// The data files of the corpus, in the order of their paths.
fn data_files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|of| of.eq_ignore_ascii_case("mdf"))
                && entry.metadata().is_ok_and(|of| of.len() <= MOST_BYTES)
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
#[ignore = "full tier: real files"]
fn redacted_mutants_of_real_files_have_the_findings_of_their_originals() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    let (mut failures, mut done, mut damaged, mut databases) = (Vec::new(), 0, 0, 0);
    let most = if std::env::var_os("MDFSCK_ALL_FILES").is_some() { usize::MAX } else { DATABASES };
    let start = Instant::now();
    // Every fourth file, because files of one repository are alike.
    for path in data_files(&corpus).into_iter().step_by(4) {
        let one = [path.clone()];
        if DataFiles::open(&one).is_err() {
            continue;
        }
        let Some(files) = memory(&one) else { continue };
        let name = path.strip_prefix(&corpus).unwrap_or(&path).display().to_string();
        let (of_file, with_findings) = compare(&name, &files, MUTANTS, &mut failures);
        done += of_file;
        damaged += with_findings;
        databases += usize::from(of_file > 0);
        if databases == most {
            break;
        }
    }
    println!("{done} mutants of {databases} databases, {damaged} with findings, {:?}", start.elapsed());
    if databases == 0 {
        println!("skipped: no real databases in target/corpus");
    }
    assert_eq!(done, MUTANTS * databases as u64, "the number of mutants that were not refused");
    failures.iter().for_each(|line| println!("{line}"));
    assert_eq!(failures.len(), 0, "lines of differences and of leftovers, above");
}
