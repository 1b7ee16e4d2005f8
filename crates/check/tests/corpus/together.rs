//! Rows of the same form are normally checked together, and all other rows one by one. If all rows are checked one by
//! one instead, the report must be the same, and all sums and other facts must be the same to the last bit. This must
//! hold for sound and for damaged databases.

mod decimals;
mod forms;
mod heads;

use std::path::Path;

use catalog::Database;
use check::{Silent, facts};
use findings::{Options, Scope};
use format::protection::undo_torn_bits;
use format::{PAGE_BYTES, Page, PageBytes, PageId};
use lab::Version;
use libtest_mimic::{Failed, Trial};
use source::{DataFiles, MemoryFiles, PageSource};
use trials::mutate::{Random, Survey, Verb, seal};

use crate::Corpus;
use crate::damage::REAL;

/// The number of changed copies that are compared per test.
const MUTANTS: usize = 300;

/// Tests with real databases, damaged databases, and lab databases.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let mut trials = Vec::new();
    for name in REAL {
        let path = corpus.files.join(name);
        trials.push(Trial::test(format!("together: fields of {name}"), move || fields(&memory(&path)?)));
        let path = corpus.files.join(name);
        trials.push(Trial::test(format!("together: noise in {name}"), move || noise(&memory(&path)?)));
    }
    for seed in 0..12 {
        let name = format!("together: lab, random shapes {seed}");
        trials.push(Trial::test(name, move || built(&lab::shapes::random(seed))));
    }
    // For a longer campaign, set the environment variable TOGETHER_SEEDS, for example TOGETHER_SEEDS=400.
    let seeds = std::env::var("TOGETHER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    for seed in 100..100 + seeds {
        trials.push(Trial::test(format!("together: noise in lab, random shapes {seed}"), move || {
            noise_in_built(&lab::shapes::random(seed))
        }));
    }
    for version in [Version::V611, Version::V852] {
        let name = format!("together: lab, orders of {version:?}");
        trials.push(Trial::test(name, move || built(&lab::orders::orders(version, 3, 24 << 20))));
    }
    for description in forms::descriptions() {
        let (name, copy) = (description.name.clone(), description.clone());
        trials.push(Trial::test(format!("together: lab, {name}"), move || built(&copy)));
        trials.push(Trial::test(format!("together: noise in lab, {name}"), move || noise_in_built(&description)));
    }
    trials.extend(heads::trials());
    trials.extend(decimals::trials());
    trials
}

/// Asserts that the result does not depend on whether rows are checked together or one by one. This is tested with all
/// checks, and with some of the checks disabled.
pub fn same(files: &dyn PageSource, database: &Database) -> Result<(), Failed> {
    let all = Options { hash_seed: Some(11), constraints: true, identities: true, ..Options::default() };
    same_facts(files, database, &Options { physical_only: true, ..all.clone() })?;
    same_facts(files, database, &Options { data_purity: Some(false), no_index: true, ..all.clone() })?;
    same_facts(files, database, &all)?;
    same_report(files, database, &all)
}

fn ways(options: &Options) -> [Options; 2] {
    [false, true].map(|row_by_row| Options { row_by_row, ..options.clone() })
}

fn same_facts(files: &dyn PageSource, database: &Database, options: &Options) -> Result<(), Failed> {
    let [together, one_by_one] = ways(options).map(|options| facts(files, database, &options));
    match together.lines().zip(one_by_one.lines()).find(|(a, b)| a != b) {
        Some((a, b)) => Err(format!("facts differ:\n{a}\n{b}").into()),
        None if together.len() != one_by_one.len() => Err("one way has more facts".into()),
        None => Ok(()),
    }
}

fn same_report(files: &dyn PageSource, database: &Database, options: &Options) -> Result<(), Failed> {
    let [together, one_by_one] = ways(options).map(|options| {
        let report = check::run(files, database, &options, &Silent);
        let texts: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
        let statistics = &report.statistics;
        let counts = (statistics.rows_checked, statistics.column_values_checked, statistics.index_rows_compared);
        format!("{texts:?}\n{:?}\n{:?}\n{counts:?}\n{:?}", report.not_verified, report.rowsets, report.beyond)
    });
    if together == one_by_one { Ok(()) } else { Err(format!("reports differ:\n{together}\n{one_by_one}").into()) }
}

fn memory(path: &Path) -> Result<MemoryFiles, Failed> {
    Ok(MemoryFiles::open(vec![(path.to_owned(), std::fs::read(path)?)])?)
}

fn read(files: &MemoryFiles, page: PageId) -> Result<PageBytes, Failed> {
    let mut bytes = [0; PAGE_BYTES];
    files.read(page, &mut bytes)?;
    undo_torn_bits(&mut bytes);
    Ok(bytes)
}

/// Changes one page, but keeps the catalog of the sound database. Asserts that the facts about the page's table do not
/// depend on whether rows are checked together or one by one.
fn judge(files: &MemoryFiles, database: &Database, page: PageId, mut bytes: PageBytes) -> Result<(), Failed> {
    let unit = Page::new(&read(files, page)?).header().alloc_unit();
    let rowset = database.units.iter().find(|known| known.id == unit).and_then(|unit| database.rowset_of(unit));
    let Some(table) = rowset.map(|rowset| rowset.object_id) else { return Ok(()) };
    seal(&mut bytes);
    let Ok(changed) = files.with_pages([(page, bytes)]) else { return Ok(()) };
    let scope = Scope::Tables(vec![table]);
    same_facts(&changed, database, &Options { scope, hash_seed: Some(11), max_threads: 1, ..Options::default() })
}

/// Checks copies in which one field of a page or record is changed. The kind of change is random.
fn fields(files: &MemoryFiles) -> Result<(), Failed> {
    let database = catalog::load(files);
    let survey = Survey::of(files, &database, 1);
    let fields = survey.fields().filter(|(structure, ..)| !structure.starts_with("sys."));
    let sites: Vec<_> = fields.flat_map(|(_, _, sites)| sites.drawn()).collect();
    let mut random = Random::new(3);
    for _ in 0..MUTANTS {
        let (Some(site), Some(&verb)) = (random.pick(&sites), random.pick(&Verb::ALL)) else { continue };
        let mut bytes = read(files, site.page)?;
        if site.apply(&mut bytes, verb, None) {
            judge(files, &database, site.page, bytes)?;
        }
    }
    Ok(())
}

/// Checks copies in which random bytes of a page are changed. The bytes are in the header, in the slot array, near the
/// first record, or anywhere.
fn noise(files: &MemoryFiles) -> Result<(), Failed> {
    let database = catalog::load(files);
    let mut random = Random::new(5);
    let pages = files.files().first().map_or(0, |file| file.pages) as usize;
    for _ in 0..MUTANTS {
        let page = PageId::new(1, random.below(pages) as u32);
        let mut bytes = read(files, page)?;
        for _ in 0..=random.below(3) {
            let at = match random.below(4) {
                0 => random.below(60),
                1 => PAGE_BYTES - 1 - random.below(60),
                2 => 96 + random.below(80),
                _ => 96 + random.below(PAGE_BYTES - 96),
            };
            let few = [0, 1, 2, 0x10, 0x20, 0x40, 0x80, 0xFF];
            bytes[at] = match random.below(3) {
                0 => bytes[at] ^ 1 << random.below(8),
                1 => few[random.below(few.len())],
                _ => random.number() as u8,
            };
        }
        judge(files, &database, page, bytes)?;
    }
    Ok(())
}

/// Changes random bytes in a lab database, which has rows of all kinds, including compressed and deleted ones.
fn noise_in_built(description: &lab::Description) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let written = lab::write(description, folder.path())?;
    let read = |path: &std::path::PathBuf| Ok((path.clone(), std::fs::read(path)?));
    let files = written.files.iter().map(read).collect::<std::io::Result<Vec<_>>>()?;
    noise(&MemoryFiles::open(files)?)
}

fn built(description: &lab::Description) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let written = lab::write(description, folder.path())?;
    let files = DataFiles::open(&written.files)?;
    same(&files, &catalog::load(&files))
}
