//! Damages databases in memory, one field at a time, and checks each mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use check::Silent;
use findings::registry::Class;
use findings::{Options, Report};
use format::page::page_flags;
use format::protection::undo_torn_bits;
use format::{PAGE_BYTES, Page, PageId};
use source::{MemoryFiles, PageSource};
use trials::mutate::{Damage, PROTECTED_WORD, Pages, Site, Survey, Verb, damages, names_any, seal};

/// The factor by which the number of damaged sites is multiplied for a field of a single bit. Such a field needs more
/// sites, because a verb can only set or clear the bit.
const BITS_PER_SITE: usize = 4;
/// The time limit for a mutant is the time for the sound database, multiplied by this factor, plus `SLACK`.
const SLOWER: u32 = 10;
const SLACK: Duration = Duration::from_secs(2);
/// How often the check of a mutant is repeated if it exceeds the time limit.
const RETRIES: usize = 2;
/// The memory that the test itself needs for mutants and for its own log, in bytes.
const HARNESS_BYTES: u64 = 256 << 20;

/// The outcome of one mutant.
pub struct Outcome {
    /// The names of the structure and the field.
    pub field: (String, String),
    /// The column of the matrix.
    pub column: Column,
    /// The verdict on the report.
    pub verdict: Verdict,
    /// The database, and the place and values of the damage, for human readers.
    pub story: String,
}

/// A column of the matrix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Column {
    /// This verb, with the page protection corrected.
    Verb(Verb),
    /// Any verb, without correcting the page protection.
    Stale,
}

/// The verdict on the report of a check.
pub enum Verdict {
    /// The report has findings. `first` is the check ID of the first finding. `first_names` says whether the first
    /// finding names a damaged page, and `any_names` whether any finding does. The last two fields are the number of
    /// findings and the number of damaged pages.
    Found { first: &'static str, first_names: bool, any_names: bool, count: usize, damaged: usize },
    /// The database was refused before any page was checked.
    Refused,
    /// The report has no findings, but lists more as not verified than the report on the sound database.
    Told,
    /// The report has no findings, and lists nothing more as not verified than the report on the sound database.
    Nothing,
    /// The check took too long.
    Slow(Duration),
    /// The check panicked.
    Panicked,
}

/// A mutant that has not been made yet.
pub struct Job {
    /// The names of the structure and the field.
    pub field: (String, String),
    column: Column,
    page: PageId,
    change: Change,
    story: String,
}

impl Job {
    /// Whether the job changes a column of a base table and corrects the page protection.
    pub fn is_of_the_catalog(&self) -> bool {
        let (structure, field) = &self.field;
        let is_sealed = matches!(self.change, Change::Sealed(..));
        is_sealed && structure.starts_with("sys.") && !field.starts_with("null bit") && field != "NULL"
    }
}

enum Change {
    /// New bytes for a range of the page, with the page protection corrected.
    Sealed(Range<usize>, Vec<u8>),
    /// New bytes for a range of the page in its form on disk.
    Unsealed(Range<usize>, Vec<u8>),
    /// Damage to whole pages, or to the file.
    Structure(Damage),
}

/// A sound database, and the report of its check.
pub struct Subject {
    /// The name of the database.
    pub name: String,
    /// The files of the database.
    pub files: MemoryFiles,
    /// The number of sites to damage per field.
    sites: usize,
    /// Whether to damage rows of system tables as well.
    system_rows: bool,
    /// An earlier copy of the database.
    older: Option<MemoryFiles>,
    /// The report of a check of the sound database.
    pub clean: Report,
    clean_time: Duration,
}

impl Subject {
    /// Reads and checks a database with one data file.
    pub fn load(folder: &Path, name: &str, older: Option<&str>, sites: usize, system_rows: bool) -> Self {
        let older = older.map(|older| open(vec![folder.join(older)]));
        Self { older, ..Self::new(name, open(vec![folder.join(name)]), sites, system_rows) }
    }

    /// Writes and checks a lab database.
    pub fn write(description: &lab::Description, sites: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let written = lab::write(description, folder.path()).expect("a database");
        Self::new(&description.name, open(written.files), sites, false)
    }

    /// Also damages rows of system tables, `sites` of each table.
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

    /// Checks `files` and judges the report. `damaged` are the pages that were changed.
    pub fn judge(&self, files: Result<MemoryFiles, source::OpenError>, damaged: &BTreeSet<PageId>) -> Verdict {
        let Ok(files) = files else { return Verdict::Refused };
        let timed = || {
            let start = Instant::now();
            catch_unwind(AssertUnwindSafe(|| check(&files))).map(|report| (report, start.elapsed()))
        };
        let limit = self.clean_time * SLOWER + SLACK;
        let Ok((report, mut elapsed)) = timed() else { return Verdict::Panicked };
        for _ in 0..RETRIES {
            // The time of the first run may be long because the machine was busy.
            if elapsed > limit {
                elapsed = timed().map_or(elapsed, |(_, again)| again);
            }
        }
        if elapsed > limit {
            return Verdict::Slow(elapsed);
        }
        if let Some(first) = report.findings.first() {
            let names = |finding: &findings::Finding| names_any(finding, &report, damaged);
            // The first finding with a page is judged, because some messages name no place. A finding of the class
            // `Uncounted` only continues the finding before it, so both are judged together.
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

    /// The jobs for all mutants of the database. `seed` decides which sites are damaged.
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

    /// Adds the mutants of one field.
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
                    format::render::hex(&old, 16),
                    format::render::hex(&new, 16),
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
                    // Changes the page in its form on disk, so that its sectors keep their torn bits.
                    (true, false) => put(Column::Verb(verb), Change::Unsealed(site.bytes.clone(), new)),
                    (true, true) => {}
                }
            }
        }
    }

    /// Makes the mutant of a job.
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

    /// Damages every field. Calls `done` with each outcome, in any order.
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

/// The number of mutants that are checked at the same time.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The value of a line of /proc/self/status, in bytes.
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

/// Outcomes by field and column, and the totals over all mutants.
#[derive(Default)]
pub struct Matrix {
    /// Outcomes by structure and field.
    pub rows: BTreeMap<(String, String), Row>,
    /// The number of mutants.
    pub mutants: u64,
    /// The number of mutants with findings.
    pub found: u64,
    /// The number of mutants for which the first finding names a damaged page.
    pub named: u64,
    /// The number of mutants for which any finding names a damaged page.
    pub named_at_all: u64,
    /// For each mutant with findings, the number of findings per damaged page, in ascending order.
    pub findings: Vec<f64>,
    /// Descriptions of mutants for which the check panicked or took too long.
    pub broken: Vec<String>,
    /// The number of mutants for which the report only lists more as not verified.
    pub told: u64,
    /// Two numbers of bytes: the memory that the run needed in addition to the databases, and the limit for this
    /// memory. `None` if the system does not report memory.
    pub memory: Option<(u64, u64)>,
    /// Descriptions of mutants that a person should review: the damage was not found or not named, or caused many
    /// findings.
    pub log: Vec<String>,
}

/// The outcomes for a field.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Row {
    /// Outcomes by column of the matrix.
    pub cells: BTreeMap<Column, Cell>,
    /// For each check ID, the number of mutants whose first finding has this ID.
    pub ids: BTreeMap<String, u32>,
}

/// The outcomes for a field and a column.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Cell {
    /// The number of mutants.
    pub tried: u32,
    /// The number of mutants that were refused or have findings.
    pub found: u32,
    /// The number of mutants for which the report only lists more as not verified.
    pub told: u32,
}

impl Matrix {
    /// Runs the matrix for all fields of all subjects.
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
