//! A redacted database has the same findings as before, and its old texts and numbers are gone.
#![allow(clippy::unwrap_used, clippy::panic)]

mod leftovers;

use std::path::{Path, PathBuf};
use std::time::Instant;

use catalog::Database;
use check::{Options, Report, Silent};
use format::protection::undo_torn_bits;
use format::{PAGE_BYTES, PageBytes, PageId};
use lab::{PageVerify, Version, orders, specimens};
use redact::{Kept, Key, Redaction, Why, differences};
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
fn redacted(files: &MemoryFiles, seed: u64) -> Result<(MemoryFiles, Kept), String> {
    let database = catalog::load(files);
    let mut redaction = Redaction::of(files, &database, Key::from_seed(seed)).map_err(|why| why.to_string())?;
    let ids: Vec<PageId> = redaction.pages().collect();
    let mut contents: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for id in ids {
        let page = redaction.page(id).map_err(|why| why.to_string())?;
        if id.page == 0 {
            contents.push((PathBuf::from(format!("{}.mdf", id.file)), Vec::new()));
        }
        contents.last_mut().unwrap().1.extend_from_slice(page.as_slice());
    }
    Ok((MemoryFiles::open(contents).map_err(|why| why.to_string())?, redaction.kept().clone()))
}

/// Changes a random field of a random structure. One of eight changes leaves the old checksum.
fn mutant(files: &MemoryFiles, survey: &Survey, random: &mut Random) -> Option<(MemoryFiles, String)> {
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
    Some((files.with_pages([(site.page, *page)]).ok()?, name))
}

/// Redacts a database and mutants of it. Adds a line for each difference. Returns the number of mutants, and how many of
/// them had findings.
fn compare(name: &str, files: &MemoryFiles, mutants: u64, failures: &mut Vec<String>) -> (u64, u64) {
    let database = catalog::load(files);
    let (new, kept) = match redacted(files, 1) {
        Ok(done) => done,
        Err(why) => {
            println!("{name}: {why}");
            return (0, 0);
        }
    };
    let before = check(files);
    let found = differences(&before, &check(&new));
    failures.extend(found.iter().take(3).map(|line| format!("{name}: {line}")));
    search(name, files, &new, &database, &kept, failures);
    let survey = Survey::of(files, &database, 1);
    let mut random = Random::new(name.len() as u64);
    let (mut done, mut damaged, mut tries) = (0, 0, 0);
    while done < mutants && tries < 20 * mutants {
        tries += 1;
        let Some((mutant, change)) = mutant(files, &survey, &mut random) else { continue };
        // The catalog of some mutants cannot be read. Such a database is refused.
        let Ok((new, _)) = redacted(&mutant, done) else { continue };
        let before = check(&mutant);
        let found = differences(&before, &check(&new));
        if !found.is_empty() {
            failures.push(format!("{name}: {change}: {} differences", found.len()));
            failures.extend(found.into_iter().take(4));
        }
        damaged += u64::from(!before.findings.is_empty());
        done += 1;
    }
    (done, damaged)
}

/// Adds a line for each old text and number that is still there and not listed as kept.
fn search(
    name: &str,
    old: &MemoryFiles,
    new: &MemoryFiles,
    database: &Database,
    kept: &Kept,
    failures: &mut Vec<String>,
) {
    let contents = |files: &MemoryFiles| -> Vec<u8> {
        let ids = files.files().iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)));
        let mut all = Vec::new();
        for id in ids {
            let mut page = files.read_page(id).unwrap_or_else(|| Box::new([0; PAGE_BYTES]));
            undo_torn_bits(&mut page);
            all.extend_from_slice(page.as_slice());
        }
        all
    };
    let needles = leftovers::needles(old, database, kept);
    let left = leftovers::left(&needles, &contents(old), &contents(new));
    println!("{name}: {} texts and numbers, {} left", needles.len(), left.len());
    for (why, place, count) in kept.iter() {
        println!("  kept: {place} ({count}): {}", why.text());
    }
    left.iter().take(5).for_each(|left| println!("  left: {left}"));
    // The specimens have columns of dense codes (0000003a, 0000003b ...). A few codes get their own value by chance.
    let by_chance = name.starts_with("specimen") && left.len() * 200 < needles.len();
    // Texts without another text of the same order are listed by table, not by column.
    if !by_chance && kept.iter().all(|(why, ..)| why != Why::Unchanged) {
        failures.extend(left.iter().take(3).map(|left| format!("{name}: left: {left}")));
    }
}

fn memory(paths: &[PathBuf]) -> Option<MemoryFiles> {
    let contents = paths.iter().map(|path| Some((path.clone(), std::fs::read(path).ok()?)));
    MemoryFiles::open(contents.collect::<Option<_>>()?).ok()
}

#[test]
fn a_redacted_lab_database_has_the_findings_of_its_original() {
    let mut failures = Vec::new();
    let folder = tempfile::tempdir().unwrap();
    let mut description = orders::orders(Version::V706, 11, 0);
    description.tables.iter_mut().for_each(|table| table.rows = table.rows.min(60));
    let written = lab::write(&description, folder.path()).unwrap();
    let (done, _) = compare("orders", &memory(&written.files).unwrap(), 3, &mut failures);
    assert_eq!(failures, [""; 0]);
    assert_eq!(done, 3);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn redacted_lab_databases_of_all_kinds_have_the_findings_of_their_originals() {
    let mut failures = Vec::new();
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&orders::orders(Version::V706, 11, 0), folder.path()).unwrap();
    compare("orders", &memory(&written.files).unwrap(), 12, &mut failures);
    for (version, verify) in [
        (Version::V611, PageVerify::Torn),
        (Version::V706, PageVerify::Checksum),
        (Version::V852, PageVerify::None),
        (Version::V957, PageVerify::Checksum),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let written = lab::write(&specimens::specimen(version, verify, 1), folder.path()).unwrap();
        compare(&format!("specimen {version:?}"), &memory(&written.files).unwrap(), 8, &mut failures);
        let folder = tempfile::tempdir().unwrap();
        let written = lab::write(&lab::every_type::types(version, 3), folder.path()).unwrap();
        compare(&format!("every type {version:?}"), &memory(&written.files).unwrap(), 8, &mut failures);
    }
    assert_eq!(failures, [""; 0]);
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
    failures.iter().for_each(|line| println!("{line}"));
    assert_eq!(failures.len(), 0, "lines of differences and of leftovers, above");
}
