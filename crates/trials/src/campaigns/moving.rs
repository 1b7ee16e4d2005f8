//! Databases that change while they are read. During the check, the files move from one sound state to another, page by
//! page and at random times; some pages are read while they are being written. The check may not blame the database for
//! contradictions between pages that it read at different times. Damage that stays must be found.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use check::Silent;
use findings::{Options, Report};
use format::page::PAGE_BYTES;
use format::{Page, PageBytes, PageId, PageType};
use lab::PageVerify;
use lab::workload::{Flush, Spec, Stop};
use source::{ChangeKind, DataFile, FileChange, MemoryFiles, PageSource, ReadError};
use trials::in_use::{self, in_memory, workload};
use trials::mutate::Random;

use super::Bench;
use crate::outcome::{Outcome, Verdict};

/// The maximum number of transactions in the earlier state, and after it.
const TRANSACTIONS: usize = 60;
/// The size of the parts that a disk writes at once.
const SECTOR_BYTES: usize = 512;
/// The limit that explains a finding in files that change.
const LIMIT: &str = "input.changed";

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let States { kind, what, then, now } = match random.below(3) {
        0 => of_subject(bench, seed),
        _ => of_workload(&mut random),
    };
    let damaged = random.below(3).eq(&0).then(|| place_for_damage(&then, &now, &mut random)).flatten();
    let (then, now) = match damaged {
        Some(page) => (with_damage(&then, page, seed), with_damage(&now, page, seed)),
        None => (then, now),
    };
    // The reads of a whole check show how long the move may take.
    let reads = Moving::new(&then, &now, Times { begin: u64::MAX, length: 1, seed, is_torn: false });
    let at_rest = check(&reads);
    let length = reads.reads.into_inner();
    if let (None, Some(finding)) = (damaged, at_rest.findings.first()) {
        return Outcome::new(kind, what, Verdict::FalseAlarm(format!("at rest: {}", finding.check.id)));
    }
    let begin = random.below(length as usize) as u64;
    let times = Times {
        begin,
        length: 1 + random.below((length - begin) as usize + 1) as u64,
        seed: random.number(),
        is_torn: random.below(2) == 0,
    };
    let moving = Moving::new(&then, &now, times);
    let report = check(&moving);
    let kind = if damaged.is_some() { format!("{kind}, damaged") } else { kind.to_owned() };
    Outcome::new(kind, format!("{what} {times:?} {damaged:?}"), judge(&report, damaged, moving.was_seen()))
}

fn judge(report: &Report, damaged: Option<PageId>, has_moved: bool) -> Verdict {
    let is_of_damage = |page: Option<PageId>| page.is_some() && page == damaged;
    let mut is_found = false;
    for finding in &report.findings {
        let of_damage = is_of_damage(finding.page) || is_of_damage(finding.ref_page);
        if !of_damage && (has_moved || damaged.is_none()) {
            return Verdict::FalseAlarm(format!("{} {}", finding.check.id, finding.text(&report.names())));
        }
        is_found |= is_of_damage(finding.page);
    }
    let is_told = report.not_verified.iter().any(|entry| entry.limit.id == LIMIT)
        && report.warnings.iter().any(|warning| warning.id == LIMIT);
    match (damaged, is_told) {
        _ if is_told != has_moved => Verdict::Broke(format!("told: {is_told}, changed: {has_moved}")),
        (Some(_), _) if is_found => Verdict::Right,
        (Some(page), _) => Verdict::Unrelated(format!("damage of page {page} is not found")),
        (None, _) => Verdict::Kept,
    }
}

fn check(source: &dyn PageSource) -> Report {
    let database = catalog::load(source);
    let options = Options {
        max_threads: 1,
        hash_seed: Some(1),
        // The states depend on the number of reads only, so no time has to pass.
        settle_page: Some(Duration::ZERO),
        ..Options::default()
    };
    check::run(source, &database, &options, &Silent)
}

/// Two sound states of a database that was shut down cleanly in both.
struct States {
    kind: &'static str,
    what: String,
    then: MemoryFiles,
    now: MemoryFiles,
}

/// A database before and after transactions. The later run begins like the earlier one.
fn of_workload(random: &mut Random) -> States {
    let spec = in_use::spec(random, TRANSACTIONS);
    let later = Spec { transactions: spec.transactions + 1 + random.below(TRANSACTIONS) as u64, ..spec };
    let shut_down = |spec: Spec| in_memory(&workload(spec).crash(Stop::ShutDown, Flush::All).files);
    let what = format!("{spec:?}, then {} transactions", later.transactions);
    States { kind: "transactions", what, then: shut_down(spec), now: shut_down(later) }
}

/// A database that was written anew with more rows, so that most pages of its tables move.
fn of_subject(bench: &Bench, seed: u64) -> States {
    let subject = bench.subjects.of(seed);
    let then = MemoryFiles::open(subject.earlier().to_vec()).unwrap_or_else(|error| panic!("{error}"));
    States { kind: "written anew", what: subject.name.clone(), then, now: subject.files.clone() }
}

/// A data or index page of the same allocation unit in both states, protected by a checksum or torn bits.
fn place_for_damage(then: &MemoryFiles, now: &MemoryFiles, random: &mut Random) -> Option<PageId> {
    let of = |source: &MemoryFiles, page: PageId| {
        let bytes = source.read_page(page)?;
        let header = Page::new(&bytes).header();
        let is_row_page = matches!(header.kind(), Some(PageType::Data | PageType::Index));
        let is_protected = protection(&bytes) != PageVerify::None;
        (is_row_page && is_protected && header.page_id() == page).then(|| (header.alloc_unit(), header.kind()))
    };
    let database = catalog::load(now);
    let is_live = |page: PageId| {
        let unit = of(now, page).filter(|unit| of(then, page).as_ref() == Some(unit));
        // Pages of base tables are left alone: without them, the other tables are unknown.
        unit.is_some_and(|(unit, _)| {
            let row = database.unit_index(unit).and_then(|at| database.units.get(at));
            row.and_then(|row| database.rowset_of(row))
                .is_some_and(|rowset| !database.is_system_table(rowset.object_id))
        })
    };
    let pages: Vec<PageId> = now
        .files()
        .iter()
        .flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)))
        .filter(|page| is_live(*page))
        .collect();
    random.pick(&pages).copied()
}

fn protection(bytes: &PageBytes) -> PageVerify {
    match Page::new(bytes).header().flags.get() & 0x300 {
        0x200 => PageVerify::Checksum,
        0x100 => PageVerify::Torn,
        _ => PageVerify::None,
    }
}

/// The files with a page that contradicts its checksum or its torn bits.
fn with_damage(files: &MemoryFiles, page: PageId, seed: u64) -> MemoryFiles {
    let mut bytes = files.read_page(page).unwrap_or_else(|| panic!("no page {page}"));
    let at = SECTOR_BYTES + (seed as usize) % (PAGE_BYTES - 2 * SECTOR_BYTES);
    match protection(&bytes) {
        // The last two bits of a sector show to which write it belongs.
        PageVerify::Torn => bytes[2 * SECTOR_BYTES - 1] ^= 3,
        _ => bytes[at] ^= 0x10,
    }
    files.with_pages([(page, *bytes)]).unwrap_or_else(|error| panic!("{error}"))
}

/// When the files move, in reads since the start of the check.
#[derive(Clone, Copy, Debug)]
struct Times {
    begin: u64,
    length: u64,
    seed: u64,
    /// Whether the first read of a page after its move finds it partly written.
    is_torn: bool,
}

/// Files that move from one state to another while they are read.
struct Moving<'a> {
    then: &'a MemoryFiles,
    now: &'a MemoryFiles,
    times: Times,
    reads: AtomicU64,
    /// The pages that were read after their move.
    written: Mutex<BTreeSet<PageId>>,
    /// Whether the move had begun when the check last compared the files with their earlier state. Later reads change
    /// no verdict.
    seen: AtomicBool,
}

impl<'a> Moving<'a> {
    fn new(then: &'a MemoryFiles, now: &'a MemoryFiles, times: Times) -> Self {
        let (reads, seen) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { then, now, times, reads, written: Mutex::default(), seen }
    }

    fn has_begun(&self) -> bool {
        self.reads.load(Ordering::Relaxed) > self.times.begin
    }

    fn was_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// Replaces the bytes of a page of the earlier state by those that this read finds.
    fn settle(&self, page: PageId, read: u64, bytes: &mut [u8]) {
        let Times { begin, length, seed, is_torn } = self.times;
        let mut random = Random::new(seed ^ u64::from(page.file) << 32 ^ u64::from(page.page));
        let moves_at = begin.saturating_add(random.below(length as usize) as u64);
        let Some(later) = self.now.read_page(page).filter(|_| read >= moves_at) else { return };
        let is_first = self.written.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(page);
        for (number, sector) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
            let is_written = !is_torn || !is_first || random.below(2) == 0;
            if let Some(new) = later.get(number * SECTOR_BYTES..).and_then(|rest| rest.get(..sector.len()))
                && is_written
            {
                sector.copy_from_slice(new);
            }
        }
    }
}

impl PageSource for Moving<'_> {
    fn files(&self) -> &[DataFile] {
        self.then.files()
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        let pages = self.then.read(first, buffer)?;
        for (page, bytes) in (first.page..).zip(buffer.chunks_mut(PAGE_BYTES)).take(pages) {
            self.settle(PageId::new(first.file, page), read, bytes);
        }
        Ok(pages)
    }

    fn changes(&self) -> Vec<FileChange> {
        let has_begun = self.has_begun();
        self.seen.store(has_begun, Ordering::Relaxed);
        let files = self.files().iter().filter(|_| has_begun);
        files.map(|file| FileChange { path: file.path.clone(), kind: ChangeKind::Written }).collect()
    }
}
