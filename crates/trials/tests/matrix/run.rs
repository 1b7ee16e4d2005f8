//! Damages databases in memory, one field at a time, and checks each mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use check::registry::Class;
use check::{Options, Report, Silent};
use format::page::page_flags;
use format::protection::undo_torn_bits;
use format::{PAGE_BYTES, Page, PageId};
use source::{MemoryFiles, PageSource};
use trials::mutate::{Damage, PROTECTED_WORD, Pages, Site, Survey, Verb, damages, names_any, seal};

/// On a single bit a verb is a single flip, so this many times as many sites are damaged.
const BITS_PER_SITE: usize = 4;
/// The time limit of a mutant, as a multiple of the time for the sound database, plus a constant.
const SLOWER: u32 = 10;
const SLACK: Duration = Duration::from_secs(2);
/// How often a mutant that exceeded the limit is repeated.
const RETRIES: usize = 2;
/// Memory of the harness for its mutants and its log.
const HARNESS_BYTES: u64 = 256 << 20;

/// The outcome of one mutant.
pub struct Outcome {
    /// Names of structure and field.
    pub field: (String, String),
    /// Column of the table.
    pub column: Column,
    /// The checker's verdict.
    pub verdict: Verdict,
    /// Database, place and values, for people.
    pub story: String,
}

/// A column of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Column {
    /// Protection made right again.
    Verb(Verb),
    /// Any verb, protection left wrong.
    Stale,
}

/// The checker's verdict.
pub enum Verdict {
    /// Findings: the first finding's check, whether that finding names a damaged page and whether any does, the number
    /// of findings, and the number of damaged pages.
    Found { first: &'static str, first_names: bool, any_names: bool, count: usize, damaged: usize },
    /// Refused before anything was read.
    Refused,
    /// No finding, but more is listed as not verified than for the sound database.
    Told,
    /// No finding, and nothing more is listed as not verified.
    Nothing,
    /// Took too long.
    Slow(Duration),
    /// Panicked.
    Panicked,
}

/// A mutant that is not made yet.
pub struct Job {
    /// Names of structure and field.
    pub field: (String, String),
    column: Column,
    page: PageId,
    change: Change,
    story: String,
}

impl Job {
    /// Whether it changes a column of a base table and corrects the page's protection.
    pub fn is_of_the_catalog(&self) -> bool {
        let (structure, field) = &self.field;
        let is_sealed = matches!(self.change, Change::Sealed(..));
        is_sealed && structure.starts_with("sys.") && !field.starts_with("null bit") && field != "NULL"
    }
}

enum Change {
    /// A range of the page gets new bytes; the protection is corrected.
    Sealed(Range<usize>, Vec<u8>),
    /// A range of the page in its form on disk gets new bytes.
    Unsealed(Range<usize>, Vec<u8>),
    /// Whole pages, or the file.
    Structure(Damage),
}

/// A sound database, and the report of its check.
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Its files.
    pub files: MemoryFiles,
    /// The number of sites of each field that are damaged.
    sites: usize,
    /// Whether rows of the system tables are damaged too.
    system_rows: bool,
    /// An earlier copy of it.
    older: Option<MemoryFiles>,
    /// The report on the sound database.
    pub clean: Report,
    clean_time: Duration,
}

impl Subject {
    /// Reads and checks a data file of a database.
    pub fn load(folder: &Path, name: &str, older: Option<&str>, sites: usize, system_rows: bool) -> Self {
        let older = older.map(|older| open(vec![folder.join(older)]));
        Self { older, ..Self::new(name, open(vec![folder.join(name)]), sites, system_rows) }
    }

    /// Writes and checks a database of the lab.
    pub fn write(description: &lab::Description, sites: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let written = lab::write(description, folder.path()).expect("a database");
        Self::new(&description.name, open(written.files), sites, false)
    }

    /// Damages rows of the system tables too, this number of each.
    pub fn with_system_rows(self, sites: usize) -> Self {
        Self { sites, system_rows: true, ..self }
    }

    fn new(name: &str, files: MemoryFiles, sites: usize, system_rows: bool) -> Self {
        let start = Instant::now();
        let clean = check(&files);
        let clean_time = start.elapsed();
        assert!(clean.findings.is_empty(), "{name} is sound");
        Self { name: name.to_owned(), files, sites, system_rows, older: None, clean, clean_time }
    }

    /// The checker's verdict on `files`, in which the `damaged` pages changed.
    pub fn judge(&self, files: Result<MemoryFiles, source::OpenError>, damaged: &BTreeSet<PageId>) -> Verdict {
        let Ok(files) = files else { return Verdict::Refused };
        let timed = || {
            let start = Instant::now();
            catch_unwind(AssertUnwindSafe(|| check(&files))).map(|report| (report, start.elapsed()))
        };
        let limit = self.clean_time * SLOWER + SLACK;
        let Ok((report, mut elapsed)) = timed() else { return Verdict::Panicked };
        for _ in 0..RETRIES {
            // The machine may have been busy.
            if elapsed > limit {
                elapsed = timed().map_or(elapsed, |(_, again)| again);
            }
        }
        if elapsed > limit {
            return Verdict::Slow(elapsed);
        }
        if let Some(first) = report.findings.first() {
            let names = |finding: &check::Finding| names_any(finding, &report, damaged);
            // Lines that no summary counts belong to the line before them; some messages name no place.
            let places = || report.findings.iter().skip_while(|finding| finding.page.is_none());
            let rest = places().skip(1).take_while(|finding| finding.class() == Class::Uncounted);
            let first_names = places().take(1).chain(rest).any(|finding| names(&finding));
            return Verdict::Found {
                first: first.check.id,
                first_names,
                any_names: report.findings.iter().any(|finding| names(&finding)),
                count: report.findings.len(),
                damaged: damaged.len(),
            };
        }
        let is_same = (&report.not_verified, &report.notes) == (&self.clean.not_verified, &self.clean.notes);
        match is_same && report.read_errors.is_empty() {
            true => Verdict::Nothing,
            false => Verdict::Told,
        }
    }

    /// All damage, decided by `seed`.
    pub fn jobs(&self, seed: u64) -> Vec<Job> {
        let database = catalog::load(&self.files);
        let pages = Pages::new(&self.files, &database);
        let survey = Survey::of(&self.files, &database, seed);
        let mut jobs = Vec::new();
        for (structure, field, sites) in survey.fields() {
            if structure.starts_with("sys.") && !self.system_rows {
                continue;
            }
            self.field_jobs((structure, field), &pages, &sites.drawn().collect::<Vec<_>>(), &mut jobs);
        }
        let older = self.older.as_ref().map(|older| older as &dyn PageSource);
        for damage in damages(&self.files, &database, older, seed) {
            jobs.push(Job {
                field: ("pages and extents".to_owned(), damage.kind.clone()),
                column: Column::Verb(Verb::Other),
                page: damage.page,
                story: format!("{} {} {:?}", self.name, damage.page, damage.cut),
                change: Change::Structure(damage),
            });
        }
        jobs
    }

    /// The mutants of one field.
    fn field_jobs(&self, name: (&str, &str), pages: &Pages<'_>, drawn: &[&Site], jobs: &mut Vec<Job>) {
        let values: Vec<Vec<u8>> =
            drawn.iter().filter_map(|site| Some(site.value(&*pages.read(site.page)?).to_vec())).collect();
        let most = if drawn.iter().any(|site| site.bit.is_some()) { BITS_PER_SITE } else { 1 };
        for (number, site) in drawn.iter().take(most * self.sites).enumerate() {
            let Some(bytes) = pages.read(site.page) else { continue };
            let old = site.value(&bytes).to_vec();
            let other = values.iter().cycle().skip(number + 1).take(values.len());
            let other = other.clone().find(|value| value.len() == old.len() && **value != old);
            let has_checksum = Page::new(&bytes).header().flags.get() & page_flags::CHECKSUM != 0;
            let is_protection = site.bytes == PROTECTED_WORD;
            let mut images = BTreeSet::new();
            for verb in Verb::ALL {
                let mut mutant = bytes.clone();
                if !site.apply(&mut mutant, verb, other.map(Vec::as_slice)) {
                    continue;
                }
                let new = site.value(&mutant).to_vec();
                if !images.insert(new.clone()) {
                    continue;
                }
                let story = format!(
                    "{} {} slot {:?} bytes {:?}: {} -> {}",
                    self.name,
                    site.page,
                    site.slot,
                    site.bytes,
                    format::fields::hex(&old, 16),
                    format::fields::hex(&new, 16),
                );
                let mut put = |column, change| {
                    let field = (name.0.to_owned(), name.1.to_owned());
                    jobs.push(Job { field, column, page: site.page, change, story: story.clone() });
                };
                if has_checksum && number == 0 && self.sites > 1 {
                    put(Column::Stale, Change::Unsealed(site.bytes.clone(), new.clone()));
                }
                match (is_protection, has_checksum) {
                    (false, _) => put(Column::Verb(verb), Change::Sealed(site.bytes.clone(), new)),
                    // The sectors keep the bits of their write.
                    (true, false) => put(Column::Verb(verb), Change::Unsealed(site.bytes.clone(), new)),
                    (true, true) => {}
                }
            }
        }
    }

    /// The database with the damage of a job.
    pub fn mutant(&self, job: &Job) -> Result<MemoryFiles, source::OpenError> {
        let raw = || self.files.read_page(job.page).expect("a page that was read before");
        let page = match &job.change {
            Change::Sealed(place, value) => {
                let mut page = raw();
                undo_torn_bits(&mut page);
                page[place.clone()].copy_from_slice(value);
                seal(&mut page);
                page
            }
            Change::Unsealed(place, value) => {
                let mut page = raw();
                page[place.clone()].copy_from_slice(value);
                page
            }
            Change::Structure(damage) => {
                let changed = self.files.with_pages(damage.changes.iter().copied())?;
                return match damage.cut {
                    Some((file, length)) => changed.cut(file, length),
                    None => Ok(changed),
                };
            }
        };
        self.files.with_pages([(job.page, *page)])
    }

    /// The pages that a job damages.
    fn damaged(&self, job: &Job) -> BTreeSet<PageId> {
        let Change::Structure(damage) = &job.change else { return BTreeSet::from([job.page]) };
        let is_changed = |(page, bytes): &&(PageId, format::PageBytes)| {
            self.files.read_page(*page).is_some_and(|old| *old != *bytes)
        };
        let changed = damage.changes.iter().filter(is_changed).map(|(page, _)| *page);
        let lost = damage.cut.into_iter().flat_map(|(file, length)| {
            let pages = self.files.file(file).map_or(0, |file| file.pages);
            ((length / PAGE_BYTES) as u32..pages).map(move |page| PageId::new(file, page))
        });
        changed.chain(lost).collect()
    }

    /// Damages every field; `done` receives each outcome, in no particular order.
    pub fn mutate(&self, seed: u64, done: &(dyn Fn(Outcome) + Sync)) {
        let jobs = self.jobs(seed);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads() {
                scope.spawn(|| {
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let verdict = self.judge(self.mutant(job), &self.damaged(job));
                        done(Outcome {
                            field: job.field.clone(),
                            column: job.column,
                            verdict,
                            story: job.story.clone(),
                        });
                    }
                });
            }
        });
    }
}

fn open(paths: Vec<PathBuf>) -> MemoryFiles {
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, bytes)
    };
    MemoryFiles::open(paths.into_iter().map(read).collect()).unwrap_or_else(|error| panic!("{error}"))
}

/// The number of mutants that are checked at once.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A line of Linux's report on the memory of the process.
fn resident_bytes(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes: u64 =
        status.lines().find(|found| found.starts_with(line))?.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

/// Checks a database in memory, with one thread.
pub fn check(files: &MemoryFiles) -> Report {
    let database = catalog::load(files);
    check::run(files, &database, &Options { max_threads: 1, ..Options::default() }, &Silent)
}

/// Outcomes by field and column, and their totals.
#[derive(Default)]
pub struct Matrix {
    /// By structure and field.
    pub rows: BTreeMap<(String, String), Row>,
    /// Mutants tried.
    pub mutants: u64,
    /// Mutants with findings.
    pub found: u64,
    /// Mutants whose first finding names the page.
    pub named: u64,
    /// Mutants of which any finding names the page.
    pub named_at_all: u64,
    /// Findings of each mutant that has some, by damaged page, ascending.
    pub findings: Vec<f64>,
    /// Panics, and mutants that took too long.
    pub broken: Vec<String>,
    /// Mutants listed as not verified.
    pub told: u64,
    /// Bytes of memory that the runs needed in addition to the databases, and the limit, if the system reports them.
    pub memory: Option<(u64, u64)>,
    /// Mutants that deserve a look: not found, not named, or with many findings.
    pub log: Vec<String>,
}

/// The outcomes of a field.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Row {
    /// By column.
    pub cells: BTreeMap<Column, Cell>,
    /// First findings, by id.
    pub ids: BTreeMap<String, u32>,
}

/// The outcomes of a column of a field.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Cell {
    /// Mutants.
    pub tried: u32,
    /// Those with findings, or refused.
    pub found: u32,
    /// Those listed as not verified.
    pub told: u32,
}

impl Matrix {
    /// All fields of all subjects.
    pub fn of(subjects: &[Subject], seed: u64) -> Self {
        let matrix = Mutex::new(Self::default());
        let before = resident_bytes("VmRSS:");
        for subject in subjects {
            let start = Instant::now();
            subject.mutate(seed, &|outcome| matrix.lock().expect("no panic in here").add(outcome));
            let mutants = matrix.lock().expect("no panic in here").mutants;
            eprintln!(
                "{}: {:.1} s, clean {:.1} ms; {mutants} mutants so far",
                subject.name,
                start.elapsed().as_secs_f64(),
                subject.clean_time.as_secs_f64() * 1e3
            );
        }
        let mut matrix = matrix.into_inner().expect("no panic in here");
        let grant = subjects.iter().map(|subject| subject.clean.statistics.memory_granted).max().unwrap_or_default();
        let most = grant * threads() as u64 + HARNESS_BYTES;
        matrix.memory = before.zip(resident_bytes("VmHWM:")).map(|(before, peak)| (peak.saturating_sub(before), most));
        matrix.log.sort();
        matrix.findings.sort_by(f64::total_cmp);
        matrix.broken.sort();
        matrix
    }

    fn add(&mut self, outcome: Outcome) {
        let (structure, field) = outcome.field.clone();
        let row = self.rows.entry(outcome.field).or_default();
        let cell = row.cells.entry(outcome.column).or_default();
        cell.tried += 1;
        self.mutants += 1;
        let story = |what: &str| format!("{structure}\t{field}\t{:?}\t{what}\t{}", outcome.column, outcome.story);
        match outcome.verdict {
            Verdict::Found { first, first_names, any_names, count, damaged } => {
                cell.found += 1;
                self.found += 1;
                self.named += u64::from(first_names);
                self.named_at_all += u64::from(any_names);
                self.findings.push(count as f64 / damaged.max(1) as f64);
                if matches!(outcome.column, Column::Verb(_)) {
                    *row.ids.entry(first.to_owned()).or_default() += 1;
                }
                if !first_names {
                    self.log.push(story(&format!("unnamed {any_names} {first} {count}")));
                } else if count > 10 * damaged {
                    self.log.push(story(&format!("many {first} {count}")));
                }
            }
            Verdict::Refused => {
                cell.found += 1;
                if matches!(outcome.column, Column::Verb(_)) {
                    *row.ids.entry("refused".to_owned()).or_default() += 1;
                }
            }
            Verdict::Told => {
                cell.told += 1;
                self.told += 1;
                self.log.push(story("told"));
            }
            Verdict::Nothing => self.log.push(story("silent")),
            Verdict::Slow(time) => self.broken.push(story(&format!("slow {time:?}"))),
            Verdict::Panicked => self.broken.push(story("panic")),
        }
    }
}
