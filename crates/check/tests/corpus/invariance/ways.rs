//! Damaged databases are checked several times, each time with other options. The findings, the items not verified, all
//! counts and the exit status must be the same each time, byte for byte.

use std::fmt::Write;
use std::path::PathBuf;

use check::{Silent, minimum_memory_bytes};
use findings::registry::Phase;
use findings::{Options, Readers, Report, Scope};
use lab::backup::{BackupOptions, Container, Set, backup};
use lab::description::{Column, Filegroup, Index, Table, Values};
use lab::{Description, PageVerify, SqlType, Version};
use libtest_mimic::{Failed, Trial};
use source::PageSource;
use trials::mutate::Random;

use super::damaged::{Changes, Subject};

/// The number of damaged copies of each database. The environment variable WAYS sets it, for example WAYS=200 for a
/// longer campaign.
fn copies() -> u64 {
    std::env::var("WAYS").ok().and_then(|text| text.parse().ok()).unwrap_or(8)
}

/// The number of combinations of options with which each copy is checked. There are more combinations, and each copy is
/// checked with only some of them.
const WAYS_PER_COPY: usize = 9;

/// The index of the database that the quick tier tests.
const QUICK: usize = 5;

/// One test per lab database, each with several damaged copies, and some special tests.
pub fn trials() -> Vec<Trial> {
    let trial = |(number, description): (usize, Description)| {
        let name = format!("invariance: damaged copies of {} ({number}), every way", description.name);
        Trial::test(name, move || every_way(&description, number as u64)).with_ignored_flag(number != QUICK)
    };
    let backups = |(number, description): (usize, Description)| {
        let name = format!("invariance: damaged copies of {} ({number}), every form of backup", description.name);
        Trial::test(name, move || every_form(&description, number as u64)).with_ignored_flag(number != QUICK)
    };
    let mut trials: Vec<Trial> = descriptions().into_iter().enumerate().map(trial).collect();
    trials.extend(descriptions().into_iter().enumerate().map(backups));
    let name = "invariance: damaged copies of large trees, with any number of threads";
    trials.push(Trial::test(name, large_trees).with_ignored_flag(true));
    let name = "invariance: a page that names another table damages that table in whichever batch it is read";
    trials.push(Trial::test(name, named_in_another_batch).with_ignored_flag(true));
    let name =
        "invariance: an extent that a second unit claims changes nothing of what is said of the first one's tree";
    trials.push(Trial::test(name, claimed_twice));
    trials
}

fn descriptions() -> Vec<Description> {
    let mut all: Vec<Description> = [3, 8, 14, 21, 33].into_iter().map(lab::shapes::random).collect();
    all.extend([(Version::V611, PageVerify::Torn, 1), (Version::V957, PageVerify::Checksum, 2)].map(many_tables));
    all
}

/// Returns a database with several tables and indexes of only a few extents each. The extents of different tables are
/// next to each other, so that adjacent extents belong to different batches.
fn many_tables((version, verify, files): (Version, PageVerify, u16)) -> Description {
    let table = |number: usize| Table {
        name: format!("table_{number}"),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("code", SqlType::char(30), Values::Scattered { per: 1 }),
            Column::new("notes", SqlType::varchar(300), Values::Text { least: 40, most: 300 }).nullable(10),
            Column::new("body", SqlType::VARCHAR_MAX, Values::Text { least: 10, most: 9_000 }).nullable(80),
        ],
        clustered: (!number.is_multiple_of(3)).then(|| Index::on("pk", &[0]).primary_key()),
        indexes: vec![Index::on("ix_code", &[1]).including(&[0])],
        rows: 500,
        moved_every: if number.is_multiple_of(3) { 23 } else { 0 },
        ..Table::default()
    };
    Description {
        name: format!("many tables {version:?}"),
        version,
        collation: lab::description::DEFAULT_COLLATION,
        verify,
        seed: 7,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files }],
        tables: (0..7).map(table).collect(),
        least_pages: 0,
    }
}

/// Returns one set of options for each combination of batches, threads and memory grants. The readers and the other
/// options vary from one set to the next.
fn ways(source: &dyn PageSource, database: &catalog::Database) -> Vec<Options> {
    let least = minimum_memory_bytes(source, database, &Options { max_threads: 5, ..all_checks() });
    let mut ways = Vec::new();
    for batches in [1, 2, 3, 7, 16] {
        for max_threads in [1, 2, 5] {
            for memory_bytes in [Some(1), Some(least + (1 << 20)), None, Some(u64::MAX)] {
                let readers = match ways.len() % 4 {
                    0 => Readers::PerFile,
                    1 => Readers::Count(2),
                    _ => Readers::Own,
                };
                // With this memory grant, no temporary file is needed, so the folder for temporary files need not
                // exist.
                let temp_dir = (memory_bytes == Some(u64::MAX)).then(|| PathBuf::from("/nowhere/at/all"));
                let row_by_row = ways.len() % 5 == 1;
                // The maps of most copies are larger than this. So some of their blocks are in a temporary file.
                let most_map_bytes = (ways.len() % 3 == 1 && temp_dir.is_none()).then_some(100);
                ways.push(Options {
                    batches,
                    max_threads,
                    memory_bytes,
                    readers,
                    row_by_row,
                    temp_dir,
                    most_map_bytes,
                    ..all_checks()
                });
            }
        }
    }
    ways
}

fn all_checks() -> Options {
    Options { constraints: true, identities: true, extended_logical_checks: true, ..Options::default() }
}

/// The content of a report, without the time and memory that the run took.
fn answer(source: &dyn PageSource, options: &Options) -> String {
    let database = catalog::load(source);
    text(&check::run(source, &database, options, &Silent))
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut put = |what: &str, value: &dyn std::fmt::Debug| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{what} {value:?}");
    };
    for finding in &report.findings {
        put("finding", &finding.text(&report.names()));
        put("evidence", &finding);
    }
    report.not_verified.iter().for_each(|entry| put("not verified", entry));
    report.read_errors.iter().for_each(|error| put("read error", error));
    report.rowsets.iter().for_each(|rowset| put("rowset", rowset));
    put("files", &report.file_totals);
    put("broker", &report.service_broker);
    put("beyond", &report.beyond);
    put("status", &(report.findings.is_empty(), report.complete(), report.read_errors.is_empty()));
    let statistics = &report.statistics;
    let rows = (statistics.rows, statistics.rows_checked, statistics.pages_allocated);
    let values = (statistics.column_values_checked, statistics.column_values_not_verified);
    put("counts", &(rows, values));
    put("indexes", &(statistics.indexes_in_scope, statistics.indexes_compared, statistics.index_rows_compared));
    text
}

/// The first lines that are in only one of the two texts.
fn difference(a: &str, b: &str) -> String {
    let lines = a.lines().filter(|line| !b.lines().any(|other| other == *line)).map(|line| format!("- {line}"));
    let others = b.lines().filter(|line| !a.lines().any(|other| other == *line)).map(|line| format!("+ {line}"));
    let cut = |line: String| line.chars().take(300).collect::<String>();
    lines.take(5).chain(others.take(5)).map(cut).collect::<Vec<_>>().join("\n")
}

fn every_way(description: &Description, number: u64) -> Result<(), Failed> {
    let subject = Subject::new(description)?;
    let (mut seen, mut failures) = (0, Vec::new());
    for copy in 0..copies() {
        let seed = number << 32 | copy;
        let changes = subject.damage(seed);
        let Some(damaged) = changes.of(&subject.files) else { continue };
        seen += 1;
        if let Err(failed) = same_answers(&damaged, &changes, seed) {
            failures.push(failed);
        }
    }
    if seen == 0 {
        return Err("no damaged copy was taken: the test does not test".into());
    }
    match failures.first() {
        Some(first) => Err(format!("{} of {seen} damaged copies differ; the first: {first}", failures.len()).into()),
        None => Ok(()),
    }
}

fn same_answers(damaged: &dyn PageSource, changes: &Changes, seed: u64) -> Result<(), String> {
    let ways = ways(damaged, &catalog::load(damaged));
    let expected = answer(damaged, &Options { max_threads: 1, ..all_checks() });
    let mut random = Random::new(seed);
    for at in 0..WAYS_PER_COPY {
        // The first four sets of options have 2, 3, 7 and 16 batches; the other sets are chosen at random.
        let way = match at {
            0..4 => ways.get(12 * (at + 1) + random.below(12)),
            _ => random.pick(&ways),
        };
        let Some(way) = way else { continue };
        let found = answer(damaged, way);
        if found != expected {
            return Err(format!("seed {seed:#x}, {:?}\n{way:?}\n{}", changes.what, difference(&expected, &found)));
        }
    }
    Ok(())
}

/// The backup options to test: one entry for each form of a backup.
fn backup_options() -> Vec<BackupOptions<'static>> {
    let plain = BackupOptions::default();
    vec![
        plain,
        BackupOptions { checksum: true, ..plain },
        BackupOptions { stripes: 3, ..plain },
        BackupOptions { container: Some(Container::Version1), ..plain },
        BackupOptions { container: Some(Container::Version2), checksum: true, stripes: 2, ..plain },
    ]
}

/// Compares the reports about damaged data files with the reports about their backups. Each damaged copy is backed up
/// in another form. Allocation pages stay undamaged, because they determine the pages that a backup contains.
fn every_form(description: &Description, number: u64) -> Result<(), Failed> {
    let subject = Subject::new(description)?;
    let mut forms = backup_options().into_iter().cycle().skip(number as usize);
    let mut seen = 0;
    for copy in 0..copies().div_ceil(4) {
        let changes = subject.damage_to_content(number << 32 | copy);
        let Some(damaged) = changes.of(&subject.files).filter(|_| !changes.is_of_allocation) else { continue };
        let Some(options) = forms.next() else { continue };
        seen += 1;
        let folder = tempfile::tempdir()?;
        let copied = |path: &PathBuf| -> std::io::Result<PathBuf> {
            let copy = folder.path().join(path.file_name().unwrap_or_default());
            std::fs::copy(path, &copy).map(|_| copy)
        };
        let files = subject.written.iter().map(copied).collect::<std::io::Result<Vec<_>>>()?;
        changes.write(&subject.files, &files)?;
        let taken = backup(&[Set { files: &files, step: 1, options }], folder.path(), "backup")?;
        let expected = answer(&damaged, &all_checks());
        for (what, paths, is_direct) in
            [("data files", &files, false), ("read directly", &files, true), ("backup", &taken.files, false)]
        {
            let source = match source::open(paths, &[], is_direct) {
                // Some file systems do not support direct reads, so these options are skipped there.
                Err(source::OpenError::Direct { .. }) => continue,
                source => source?,
            };
            let found = answer(source.as_ref(), &all_checks());
            if found != expected {
                let difference = difference(&expected, &found);
                return Err(format!("copy {copy}, {:?}\n{what}: {options:?}\n{difference}", changes.what).into());
            }
        }
    }
    if seen == 0 { Err("no copy was backed up: the test does not test".into()) } else { Ok(()) }
}

/// Tests trees with enough non-leaf pages for several threads to compare the key bounds.
fn large_trees() -> Result<(), Failed> {
    let mut description = many_tables((Version::V957, PageVerify::Checksum, 1));
    description.tables = vec![Table {
        name: "wide_keys".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("code", SqlType::char(880), Values::Scattered { per: 1 }),
        ],
        clustered: Some(Index::on("pk", &[0]).primary_key()),
        indexes: vec![Index::on("ix_code", &[1]), Index::on("ix_code_again", &[1, 0])],
        rows: 12_000,
        ..Table::default()
    }];
    let subject = Subject::new(&description)?;
    let mut damaging = 0;
    for seed in 0..copies() {
        let changes = subject.damage(seed);
        let Some(damaged) = changes.of(&subject.files) else { continue };
        let expected = answer(&damaged, &Options { max_threads: 1, ..all_checks() });
        damaging += u32::from(expected.contains("finding"));
        for max_threads in [2, 3, 8] {
            let found = answer(&damaged, &Options { max_threads, ..all_checks() });
            if found != expected {
                let difference = difference(&expected, &found);
                return Err(format!("{:?}, {max_threads} threads\n{difference}", changes.what).into());
            }
        }
    }
    if damaging == 0 { Err("no damage was found: the test does not test".into()) } else { Ok(()) }
}

fn many() -> Result<Subject, Failed> {
    Subject::new(&many_tables((Version::V957, PageVerify::Checksum, 1)))
}

fn named_in_another_batch() -> Result<(), Failed> {
    let subject = many()?;
    let mut damaging = 0;
    for seed in 0..20 {
        let changes = subject.renamed(seed);
        let Some(damaged) = changes.of(&subject.files) else { continue };
        let expected = answer(&damaged, &all_checks());
        damaging += u32::from(expected.contains(findings::registry::limits::INDEX_DAMAGED.reason));
        for batches in [2, 7] {
            let found = answer(&damaged, &Options { batches, ..all_checks() });
            if found != expected {
                return Err(format!("{:?}, {batches} batches\n{}", changes.what, difference(&expected, &found)).into());
            }
        }
    }
    if damaging < 5 { Err("too few tables are damaged: the test does not test".into()) } else { Ok(()) }
}

/// Tests a tree with a broken link, for which the check takes a second look at the pages. The findings about pages must
/// not change if the IAM page of another unit also claims an extent of the tree.
fn claimed_twice() -> Result<(), Failed> {
    let subject = many()?;
    let database = catalog::load(&subject.files);
    let (object, broken, claimed) = subject.broken_and_claimed(&database).ok_or("no tree of some extents")?;
    let [broken, claimed] = [broken.of(&subject.files), claimed.of(&subject.files)];
    let (Some(broken), Some(claimed)) = (broken, claimed) else { return Err("the files are refused".into()) };
    for scope in [Scope::Database, Scope::Tables(vec![object])] {
        for batches in [1, 2, 7] {
            let options = Options { scope: scope.clone(), batches, ..Options::default() };
            let of_pages = |source: &dyn PageSource| {
                let report = check::run(source, &database, &options, &Silent);
                let of_pages = |finding: &findings::Finding| finding.check.phase != Phase::Allocation;
                let texts = report.findings.iter().filter(|finding| of_pages(finding));
                texts.map(|finding| finding.text(&report.names())).collect::<Vec<_>>()
            };
            let (expected, found) = (of_pages(&broken), of_pages(&claimed));
            if expected.is_empty() || found != expected {
                return Err(format!("{scope:?}, {batches} batches:\n{expected:#?}\n{found:#?}").into());
            }
        }
    }
    Ok(())
}
