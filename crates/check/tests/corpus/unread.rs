//! A page that cannot be read is listed as not verified, no matter when its reads fail during a run and how many of its
//! reads fail. The page never counts as missing, and the failed reads cause no finding.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use check::Silent;
use findings::Options;
use format::{PAGE_BYTES, PageId};
use lab::description::{Column, Filegroup, Index, Table, Values};
use lab::{Description, PageVerify, SqlType, Version};
use libtest_mimic::{Failed, Trial};
use source::{DataFile, FailedReads, MemoryFiles, PageSource, ReadError, ReadFaults};
use trials::mutate::Random;

use crate::invariance::damaged::Subject;

/// The number of damaged copies of each database. The environment variable UNREAD sets this number, for example
/// UNREAD=200 for a longer campaign.
fn copies() -> u64 {
    std::env::var("UNREAD").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}
const FAILURES_PER_COPY: usize = 25;

/// Tests with failing reads on sound and damaged lab databases. Tests that take seconds run only in the full tier.
pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, run: fn(&Description) -> Result<(), Failed>, description: Description| {
        let name = format!("unread: {}: {name}", description.name);
        Trial::test(name, move || run(&description))
    };
    let sound = "each read of each page fails once, and from then on, and until then";
    let damaged = "damaged copies with reads that fail give no finding more";
    let in_parts = "a read that fails means the same, however many pages are read at once";
    vec![
        trial(in_parts, any_size_of_reads, tables(Version::V957, PageVerify::Checksum)).with_ignored_flag(true),
        trial(sound, every_read, tables(Version::V957, PageVerify::Checksum)).with_ignored_flag(true),
        trial(damaged, damaged_copies, tables(Version::V611, PageVerify::Torn)),
        trial(damaged, damaged_copies, tables(Version::V957, PageVerify::Checksum)).with_ignored_flag(true),
        trial(damaged, damaged_copies, lab::shapes::random(8)).with_ignored_flag(true),
        trial(damaged, damaged_copies, lab::shapes::random(21)).with_ignored_flag(true),
    ]
}

/// A database with two tables: a heap with forwarded rows, and a clustered table. Each has an index and off-row values.
fn tables(version: Version, verify: PageVerify) -> Description {
    let table = |name: &str, is_heap: bool| Table {
        name: name.to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("code", SqlType::char(200), Values::Scattered { per: 1 }),
            Column::new("notes", SqlType::varchar(300), Values::Text { least: 40, most: 300 }).nullable(10),
            Column::new("body", SqlType::VARCHAR_MAX, Values::Text { least: 10, most: 20_000 }).nullable(90),
        ],
        clustered: (!is_heap).then(|| Index::on("pk", &[0]).primary_key()),
        indexes: vec![Index::on("ix_code", &[1]).including(&[0])],
        rows: 120,
        moved_every: if is_heap { 23 } else { 0 },
        ..Table::default()
    };
    Description {
        name: format!("two tables {version:?}"),
        version,
        collation: lab::description::DEFAULT_COLLATION,
        verify,
        seed: 7,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: vec![table("heap", true), table("tree", false)],
        least_pages: 0,
    }
}

/// A page, and the range of its reads that fail. Reads of the page are counted from 0, and `until` is exclusive.
#[derive(Clone, Copy, Debug)]
struct Failure {
    page: PageId,
    from: u32,
    until: u32,
}

/// A special value of `pages_per_read`: the number of pages per read varies from read to read, as for a file that is
/// partly in the file cache.
const VARYING: u32 = 0;

/// A page source whose reads fail like the reads of a data file: a read of several pages fails if a read of one of
/// these pages would fail.
struct Failing<'a> {
    inner: &'a MemoryFiles,
    failure: Option<Failure>,
    pages_per_read: u32,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// The number of reads of each page so far.
    asked: BTreeMap<PageId, u32>,
    /// The number of reads of a single page that failed.
    failed: u32,
}

impl<'a> Failing<'a> {
    fn new(inner: &'a MemoryFiles, failure: Option<Failure>, pages_per_read: u32) -> Self {
        Self { inner, failure, pages_per_read, memory: Mutex::default() }
    }

    fn memory<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PageSource for Failing<'_> {
    fn files(&self) -> &[DataFile] {
        self.inner.files()
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let pages = (buffer.len() / PAGE_BYTES) as u32;
        let fails = self.memory(|memory| {
            let mut fails = false;
            for page in (first.page..first.page + pages).map(|page| PageId::new(first.file, page)) {
                let asked = memory.asked.entry(page).or_default();
                fails |= self.failure.is_some_and(|at| at.page == page && (at.from..at.until).contains(asked));
                *asked += 1;
            }
            memory.failed += u32::from(fails && pages == 1);
            fails
        });
        if fails {
            let (path, offset) = (self.path(), u64::from(first.page) * PAGE_BYTES as u64);
            return Err(ReadError::Io { path, offset, cause: std::io::Error::from_raw_os_error(5) });
        }
        self.inner.read(first, buffer)
    }

    fn pages_per_read(&self, first: PageId) -> u32 {
        match self.pages_per_read {
            VARYING => 2 + first.page % 5,
            pages => pages,
        }
    }

    fn read_faults(&self) -> ReadFaults {
        let failed = self.memory(|memory| memory.failed);
        let fault = FailedReads {
            path: self.path(),
            places: BTreeMap::from([(0, "failed".to_owned())]),
            unlisted: failed.into(),
        };
        ReadFaults { failed: (failed > 0).then_some(fault).into_iter().collect(), healed: Vec::new() }
    }
}

impl Failing<'_> {
    fn path(&self) -> std::path::PathBuf {
        self.inner.files().first().map(|file| file.path.clone()).unwrap_or_default()
    }
}

/// The results of a run.
struct Answer {
    /// The texts of the findings, by message, page and slot. The owner is not part of the key, because it may be
    /// unknown if the catalog cannot be read.
    findings: BTreeMap<(u16, Option<PageId>, Option<u16>), String>,
    not_verified: BTreeSet<String>,
    read_errors: Vec<String>,
    /// The number of reads of a single page that failed.
    failed: u32,
    asked: BTreeMap<PageId, u32>,
}

fn answer(files: &MemoryFiles, failure: Option<Failure>) -> Answer {
    answer_to_reads(files, failure, u32::MAX)
}

fn answer_to_reads(files: &MemoryFiles, failure: Option<Failure>, pages_per_read: u32) -> Answer {
    let source = Failing::new(files, failure, pages_per_read);
    let database = catalog::load(&source);
    let options = Options { max_threads: 1, constraints: true, extended_logical_checks: true, ..Options::default() };
    let report = check::run(&source, &database, &options, &Silent);
    let names = report.names();
    let key = |finding: &findings::Finding| (finding.check.msg, finding.page, finding.slot);
    let findings = report.findings.iter().map(|finding| (key(&finding), finding.text(&names))).collect();
    let constraints = report.beyond.constraints.iter().map(|constraint| format!("{constraint:?}"));
    let not_verified = report.not_verified.iter().map(|entry| format!("{entry:?}")).chain(constraints).collect();
    let memory = source.memory.into_inner().unwrap_or_else(PoisonError::into_inner);
    Answer { findings, not_verified, read_errors: report.read_errors, failed: memory.failed, asked: memory.asked }
}

/// Describes what is wrong with the results of a run in which reads failed. `clean` contains the results of a run
/// without failed reads. `None` if nothing is wrong.
fn wrong(clean: &Answer, failing: &Answer) -> Option<String> {
    let more = failing.findings.iter().filter(|(key, _)| !clean.findings.contains_key(key));
    let more: Vec<&String> = more.map(|(_, text)| text).collect();
    if !more.is_empty() {
        return Some(format!("findings that are not there: {more:#?}"));
    }
    if failing.failed > 0 && failing.read_errors.is_empty() {
        return Some("no word of the read that failed".to_owned());
    }
    // If a finding of the run without failed reads is missing in the run with failed reads, the run with failed reads
    // must list an additional item as not verified.
    let is_less = clean.findings.keys().any(|key| !failing.findings.contains_key(key));
    let has_reason = failing.not_verified.difference(&clean.not_verified).next().is_some();
    (is_less && !has_reason).then(|| "a finding is gone, and nothing more is listed as not verified".to_owned())
}

/// Returns the failures to try for each page: one read fails, two consecutive reads fail, all reads from a certain read
/// on fail, or all reads before a certain read fail.
fn failures(clean: &Answer) -> Vec<Failure> {
    let of_page = |(&page, &asked): (&PageId, &u32)| {
        let after = (0..asked).map(move |from| Failure { page, from, until: u32::MAX });
        let once = (0..asked).map(move |from| Failure { page, from, until: from + 1 });
        // If the first failing read is a read of several pages, the second failing read is the read of this page alone.
        let twice = (0..asked).filter(move |_| asked > 3).map(move |from| Failure { page, from, until: from + 2 });
        let before = (3..asked).map(move |until| Failure { page, from: 0, until });
        after.chain(once).chain(twice).chain(before)
    };
    clean.asked.iter().flat_map(of_page).collect()
}

fn every_read(description: &Description) -> Result<(), Failed> {
    let subject = Subject::new(description)?;
    let clean = answer(&subject.files, None);
    if !clean.findings.is_empty() {
        return Err(format!("not sound: {:?}", clean.findings).into());
    }
    let (mut wrongs, mut failed) = (Vec::new(), 0);
    let failures = failures(&clean);
    for failure in &failures {
        let failing = answer(&subject.files, Some(*failure));
        failed += u32::from(failing.failed > 0);
        wrongs.extend(wrong(&clean, &failing).map(|wrong| format!("{failure:?}: {wrong}")));
    }
    if failed < 500 {
        return Err(format!("only {failed} of {} runs had a read that failed", failures.len()).into());
    }
    done(failures.len(), &wrongs)
}

fn any_size_of_reads(description: &Description) -> Result<(), Failed> {
    let subject = Subject::new(description)?;
    let failures = failures(&answer(&subject.files, None));
    let (mut random, mut wrongs, mut failed) = (Random::new(7), Vec::new(), 0);
    for _ in 0..4 * FAILURES_PER_COPY {
        let Some(failure) = random.pick(&failures) else { continue };
        let expected = answer(&subject.files, Some(*failure));
        failed += u32::from(expected.failed > 0);
        for pages_per_read in [2, 3, 32, VARYING] {
            let found = answer_to_reads(&subject.files, Some(*failure), pages_per_read);
            let is_same = (&found.findings, &found.not_verified, &found.read_errors, found.failed)
                == (&expected.findings, &expected.not_verified, &expected.read_errors, expected.failed);
            if !is_same {
                wrongs.push(format!("{failure:?}, {pages_per_read} pages at once: not the same"));
            }
        }
    }
    if failed == 0 {
        return Err("no failure had an effect: the test does not test".into());
    }
    done(failures.len(), &wrongs)
}

fn damaged_copies(description: &Description) -> Result<(), Failed> {
    let subject = Subject::new(description)?;
    let (mut runs, mut wrongs, mut second_looks) = (0, Vec::new(), 0);
    for seed in 0..copies() {
        let changes = subject.damage(seed);
        let Some(files) = changes.of(&subject.files) else { continue };
        let clean = answer(&files, None);
        let failures = failures(&clean);
        let mut random = Random::new(seed);
        for _ in 0..FAILURES_PER_COPY {
            let Some(failure) = random.pick(&failures) else { continue };
            let failing = answer(&files, Some(*failure));
            runs += 1;
            second_looks += u32::from(failing.failed > 0 && failing.findings.len() < clean.findings.len());
            let wrong = wrong(&clean, &failing);
            wrongs.extend(wrong.map(|wrong| format!("seed {seed}, {:?}, {failure:?}: {wrong}", changes.what)));
        }
    }
    if second_looks == 0 {
        return Err("no failure had an effect: the test does not test".into());
    }
    done(runs, &wrongs)
}

fn done(runs: usize, wrongs: &[String]) -> Result<(), Failed> {
    match wrongs {
        [] => Ok(()),
        [first, ..] => {
            let shown: Vec<&str> = wrongs.iter().take(12).map(String::as_str).collect();
            Err(format!("{} of {runs} runs are wrong, the first: {first}\n{}", wrongs.len(), shown.join("\n")).into())
        }
    }
}
