//! Tests how well a check notices changes to the catalog, column by column. Each column of each base table is changed,
//! and the page protection is corrected. The result says for each column whether a check notices the changes: once with
//! and once without the comparison of facts that base tables store twice.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use findings::Report;
use lab::description::{Filegroup, Table};
use lab::specimens::specimen;
use lab::{Description, PageVerify, Version};
use libtest_mimic::{Failed, Trial};
use trials::mutate::exemptions::exemptions;

use crate::run::{Subject, check, threads};
use crate::table::WRITE;

/// The committed result. A run fails if its result is worse.
const BASELINE: &str = include_str!("catalog.tsv");
/// The number of rows in which each column is damaged, per database. The variable [`SITES`] overrides it.
const FEW: usize = 1;
/// The environment variable for a long run. Its value is the number of rows in which each column is damaged.
const SITES: &str = "MDFSCK_CATALOG_SITES";
/// The seed that decides which rows are damaged.
const SEED: u64 = 1;
/// The check ID of the comparison of facts that base tables store twice.
const CHECK: &str = "catalog.invalid-value";
const NOTES: &str = "catalog values";

/// The results of changing one column.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Tally {
    tried: u32,
    found: u32,
    told: u32,
    /// The results without the comparison of facts that base tables store twice.
    found_without: u32,
    told_without: u32,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.tried += other.tried;
        self.found += other.found;
        self.told += other.told;
        self.found_without += other.found_without;
        self.told_without += other.told_without;
    }

    fn silent(self) -> u32 {
        self.tried - self.found - self.told
    }
}

/// Results by base table and column.
type Tallies = BTreeMap<(String, String), Tally>;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("matrix: changes of catalog columns are noticed as before", noticed_as_before),
        Trial::test("matrix: a catalog column that goes unnoticed has a reason", silence_has_a_reason),
    ]
}

fn noticed_as_before() -> Result<(), Failed> {
    let sites = std::env::var(SITES).ok().and_then(|sites| sites.parse().ok());
    let tallies = run(sites.unwrap_or(FEW));
    println!("{}", summary(&tallies));
    if sites.is_some() {
        println!("{}", section(&tallies));
        return Ok(());
    }
    if std::env::var_os(WRITE).is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/matrix/catalog.tsv");
        std::fs::write(path, print(&tallies))?;
    }
    let mut worse = Vec::new();
    for ((table, column), before) in parse(BASELINE) {
        let now = tallies.get(&(table.clone(), column.clone())).copied().unwrap_or_default();
        if now.silent() > before.silent() || now.found < before.found || now.tried < before.tried {
            worse.push(format!("{table}, {column}: {before:?} now {now:?}"));
        }
    }
    if worse.is_empty() { Ok(()) } else { Err(worse.join("\n").into()) }
}

fn silence_has_a_reason() -> Result<(), Failed> {
    let exemptions = exemptions();
    let has_reason = |table: &str, column: &str| exemptions.iter().any(|exemption| exemption.covers(table, column));
    let without: Vec<_> = silent().into_iter().filter(|(table, column)| !has_reason(table, column)).collect();
    if without.is_empty() { Ok(()) } else { Err(format!("no reason: {without:?}").into()) }
}

/// Returns the columns in which at least one change went unnoticed.
pub fn silent() -> Vec<(String, String)> {
    parse(BASELINE).into_iter().filter(|(_, tally)| tally.silent() > 0).map(|(name, _)| name).collect()
}

/// Small databases of SQL Server 2005, 2012 and 2022. They contain little data, but their catalogs are as large as
/// those of large databases.
fn subjects() -> Vec<Subject> {
    let small = |version| {
        let specimen = specimen(version, PageVerify::Checksum, 1);
        let tables = specimen.tables.into_iter().map(|table| Table { rows: 12, ..table }).collect();
        let filegroups = specimen.filegroups.into_iter().map(|group| Filegroup { files: 1, ..group }).collect();
        Description { tables, filegroups, ..specimen }
    };
    [Version::V611, Version::V706, Version::V957].map(|version| Subject::write(&small(version), 1)).into()
}

/// Damages each column in `sites` rows of each base table, by every verb.
fn run(sites: usize) -> Tallies {
    let tallies = Mutex::new(Tallies::new());
    for subject in subjects() {
        let subject = subject.with_system_rows(sites);
        let jobs: Vec<_> = subject.jobs(SEED).into_iter().filter(|job| job.is_of_the_catalog()).collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads() {
                scope.spawn(|| {
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = subject.mutant(job).map(|files| outcome(&subject.clean, &check(&files)));
                        let refused = Tally { tried: 1, found: 1, found_without: 1, ..Tally::default() };
                        let mut tallies = tallies.lock().expect("no panic in here");
                        tallies.entry(job.field.clone()).or_default().add(outcome.unwrap_or(refused));
                    }
                });
            }
        });
    }
    tallies.into_inner().expect("no panic in here")
}

fn outcome(clean: &Report, report: &Report) -> Tally {
    let doubts = |report: &Report, all: bool| -> Vec<_> {
        report.not_verified.iter().chain(&report.notes).filter(|entry| all || entry.what != NOTES).cloned().collect()
    };
    let found = !report.findings.is_empty();
    let found_without = report.findings.iter().any(|finding| finding.check.id != CHECK);
    let told = doubts(report, true) != doubts(clean, true) || !report.read_errors.is_empty();
    let told_without = doubts(report, false) != doubts(clean, false) || !report.read_errors.is_empty();
    Tally {
        tried: 1,
        found: found.into(),
        told: (told && !found).into(),
        found_without: found_without.into(),
        told_without: (told_without && !found_without).into(),
    }
}

fn sum<'a>(tallies: impl IntoIterator<Item = &'a Tally>) -> Tally {
    tallies.into_iter().fold(Tally::default(), |mut all, tally| {
        all.add(*tally);
        all
    })
}

fn summary(tallies: &Tallies) -> String {
    let all = sum(tallies.values());
    format!(
        "{} changes of {} columns: {} gave findings, {} were listed as not verified, of {} nothing was said. Without the \
         comparison of what base tables say twice: {}, {} and {}.",
        all.tried,
        tallies.len(),
        all.found,
        all.told,
        all.silent(),
        all.found_without,
        all.told_without,
        all.tried - all.found_without - all.told_without
    )
}

fn print(tallies: &Tallies) -> String {
    let mut lines = String::from("table\tcolumn\ttried\tfound\ttold\tfound without\ttold without\n");
    for ((table, column), tally) in tallies {
        let Tally { tried, found, told, found_without, told_without } = tally;
        let _ = writeln!(lines, "{table}\t{column}\t{tried}\t{found}\t{told}\t{found_without}\t{told_without}");
    }
    lines
}

fn parse(text: &str) -> Tallies {
    let of_line = |line: &str| {
        let parts: Vec<&str> = line.split('\t').collect();
        let [table, column, numbers @ ..] = parts.as_slice() else { panic!("{line}") };
        let numbers: Vec<u32> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
        let [tried, found, told, found_without, told_without] = numbers[..] else { panic!("{line}") };
        let tally = Tally { tried, found, told, found_without, told_without };
        (((*table).to_owned(), (*column).to_owned()), tally)
    };
    text.lines().skip(1).map(of_line).collect()
}

/// The committed result, in the form for docs/sensitivity.md.
pub fn document() -> String {
    section(&parse(BASELINE))
}

fn section(tallies: &Tallies) -> String {
    let mut text = String::from(
        "\n## The catalog's own rows\n\nEvery column of every base table's rows, in databases that the lab wrote for 2005, 2012 \
         and 2022, changed by the same verbs with the\npage's protection made right. `found+listed/tried` as below, with and \
         without the comparison of what base tables say twice;\n`MDFSCK_CATALOG_SITES=8` damages eight rows of each instead \
         of one and prints the same table. Null bits and what needs no row\nare left out of it.\n\n",
    );
    let _ = writeln!(text, "{}\n", summary(tallies));
    text.push_str("| base table | without | with | silent columns |\n|---|---|---|---|\n");
    let mut tables: BTreeMap<&str, Vec<(&str, Tally)>> = BTreeMap::new();
    for ((table, column), tally) in tallies {
        tables.entry(table).or_default().push((column, *tally));
    }
    for (table, columns) in tables {
        let all = sum(columns.iter().map(|(_, tally)| tally));
        let silent = columns.iter().filter(|(_, tally)| tally.silent() > 0);
        let silent: Vec<String> =
            silent.map(|(column, tally)| format!("{column} {}/{}", tally.silent(), tally.tried)).collect();
        let _ = writeln!(
            text,
            "| {table} | {}+{}/{} | {}+{}/{} | {} |",
            all.found_without,
            all.told_without,
            all.tried,
            all.found,
            all.told,
            all.tried,
            silent.join(", ")
        );
    }
    text
}
