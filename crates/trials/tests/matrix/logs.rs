//! Changes every field of the log structures, in logs that recovery needs. With each changed log, the data files are
//! then recovered and checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use check::Silent;
use findings::{Options, Report};
use format::allocation::PfsByte;
use format::fields::{Field, Place, Structure, Width};
use format::instances::instances;
use format::log::{Block, Change, LogRecord, Operation, vlf};
use format::{PAGE_BYTES, Page, PageBytes, PageId};
use lab::workload::{Crashed, Flush, Spec, Stop};
use lab::{PageVerify, Version};
use libtest_mimic::{Failed, Trial};
use log::Log;
use recovery::Start;
use source::{MemoryFiles, PageSource};
use trials::in_use::{in_memory, live_rows, recover, workload};
use trials::log_layout::{Layout, Part, SECTOR_BYTES, seal};
use trials::mutate::exemptions::exemptions;
use trials::mutate::{Random, Verb};

use crate::run::threads;
use crate::table::WRITE;

/// The committed result. A run fails if its result is worse.
const BASELINE: &str = include_str!("logs.tsv");
/// The seed that decides which sites are damaged.
const SEED: u64 = 1;
/// An offset in a log record. In a record about a row, the description of the changed bytes starts here. In other
/// records, the fields that are specific to the operation start here.
const PIECE: u16 = 0x30;
/// The operations for whose records the fields of the general record header are changed. If recovery treats several
/// operations alike, only one of them is listed.
const COMMON: [Operation; 9] = [
    Operation::INSERT_ROWS,
    Operation::DELETE_ROWS,
    Operation::MODIFY_ROW,
    Operation::FORMAT_PAGE,
    Operation::BEGIN_XACT,
    Operation::COMMIT_XACT,
    Operation::ABORT_XACT,
    Operation::BEGIN_CKPT,
    Operation::END_CKPT,
];
const GRANT_BYTES: u64 = 8 << 20;
/// The maximum time for the recovery of a small database with a changed log.
const LIMIT: Duration = Duration::from_secs(20);

/// The results of changing one field.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Tally {
    /// Changes with corrected checksums.
    tried: u32,
    /// Changes that caused findings, or because of which the log was refused.
    found: u32,
    /// Changes after which something is listed as not verified.
    told: u32,
    /// Changes without any report, after which the recovered rows equal the truth.
    same: u32,
    /// Changes without any report, after which the recovered rows differ from the truth.
    other: u32,
    /// Changes with wrong checksums.
    stale: u32,
    /// Changes with wrong checksums that were found, refused or listed as not verified.
    stale_noticed: u32,
}

impl Tally {
    fn add(&mut self, verdict: Verdict, is_stale: bool) {
        if is_stale {
            self.stale += 1;
            self.stale_noticed += u32::from(matches!(verdict, Verdict::Found | Verdict::Told));
            return;
        }
        self.tried += 1;
        *match verdict {
            Verdict::Found => &mut self.found,
            Verdict::Told => &mut self.told,
            Verdict::Same => &mut self.same,
            Verdict::Other => &mut self.other,
        } += 1;
    }

    /// Whether every change was noticed.
    fn is_noticed(self) -> bool {
        self.found + self.told == self.tried && self.stale_noticed == self.stale
    }

    fn is_worse_than(self, before: Self) -> bool {
        self.tried < before.tried
            || self.stale < before.stale
            || self.found < before.found
            || self.found + self.told < before.found + before.told
            || self.other > before.other
            || self.stale_noticed < before.stale_noticed
    }
}

#[derive(Clone, Copy)]
enum Verdict {
    Found,
    Told,
    Same,
    Other,
}

/// Results by structure and field.
type Tallies = BTreeMap<(String, String), Tally>;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("matrix: changes of log fields are noticed as before", noticed_as_before),
        Trial::test("matrix: a log field that goes unnoticed has a reason", silence_has_a_reason),
    ]
}

fn noticed_as_before() -> Result<(), Failed> {
    let (tallies, broken) = run();
    if !broken.is_empty() {
        return Err(broken.join("\n").into());
    }
    println!("{}", summary(&tallies));
    if std::env::var_os(WRITE).is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/matrix/logs.tsv");
        std::fs::write(path, print(&tallies))?;
    }
    let worse = |((structure, field), before): ((String, String), Tally)| {
        let now = tallies.get(&(structure.clone(), field.clone())).copied().unwrap_or_default();
        now.is_worse_than(before).then(|| format!("{structure}, {field}: {before:?} now {now:?}"))
    };
    let worse: Vec<String> = parse(BASELINE).into_iter().filter_map(worse).collect();
    if worse.is_empty() { Ok(()) } else { Err(worse.join("\n").into()) }
}

fn silence_has_a_reason() -> Result<(), Failed> {
    let exemptions = exemptions();
    let has_reason =
        |structure: &str, field: &str| exemptions.iter().any(|exemption| exemption.covers(structure, field));
    let without: Vec<_> = silent().into_iter().filter(|(structure, field)| !has_reason(structure, field)).collect();
    if without.is_empty() { Ok(()) } else { Err(format!("no reason: {without:?}").into()) }
}

/// Returns the fields for which at least one change went unnoticed.
pub fn silent() -> Vec<(String, String)> {
    parse(BASELINE).into_iter().filter(|(_, tally)| !tally.is_noticed()).map(|(name, _)| name).collect()
}

/// A field in a log.
struct Site {
    /// The bytes of the field in the file.
    bytes: Range<usize>,
    protection: Protection,
}

/// The checksum that covers a field.
#[derive(Clone)]
enum Protection {
    /// The checksum of its page.
    Page,
    /// The checksum of its log block.
    Block(Part),
    /// No checksum.
    None,
}

/// A database in use, and the fields of its log that recovery reads.
struct InUse {
    crashed: Crashed,
    source: MemoryFiles,
    rows: BTreeMap<(u32, u16), Vec<Vec<u8>>>,
    sites: BTreeMap<(String, String), Vec<Site>>,
}

impl InUse {
    /// Stops the database long after its last checkpoint, so that recovery needs records of most operations.
    fn new() -> Self {
        let spec = Spec {
            version: Version::V904,
            verify: PageVerify::Checksum,
            seed: 9,
            rows: 40,
            transactions: 60,
            ..Spec::default()
        };
        let crashed = workload(spec).crash(Stop::WithOpen, Flush::None);
        let source = in_memory(&crashed.files);
        let rows = live_rows(&in_memory(&crashed.truth.files));
        let folder = folder();
        let log = write(folder.path(), &crashed.log.1);
        let sites = sites(&Log::open(&[log]).expect("a log"), &source, &crashed);
        let used = Self { crashed, source, rows, sites };
        let verdict = used.judge(folder.path(), &used.crashed.log.1);
        assert!(matches!(verdict, Verdict::Same), "{spec:?}: as it is, it is recovered");
        used
    }

    /// The result of recovering the data files with this log.
    fn judge(&self, folder: &Path, log: &[u8]) -> Verdict {
        let Ok(recovered) = recover(&self.source, &write(folder, log), GRANT_BYTES) else { return Verdict::Found };
        let database = catalog::load(&recovered.pages);
        let options = Options { max_threads: 1, ..Options::default() };
        let report: Report = check::run(&recovered.pages, &database, &options, &Silent);
        let audit = &recovered.audit;
        if !audit.findings.is_empty() || !report.findings.is_empty() {
            return Verdict::Found;
        }
        if recovered.doubt().is_some() || !audit.doubts.is_empty() || !report.complete() {
            return Verdict::Told;
        }
        if live_rows(&recovered.pages) == self.rows { Verdict::Same } else { Verdict::Other }
    }
}

fn folder() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    let made = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() };
    made.expect("a temporary folder")
}

fn write(folder: &Path, log: &[u8]) -> std::path::PathBuf {
    let path = folder.join("log.ldf");
    std::fs::write(&path, log).expect("a file that can be written");
    path
}

/// Returns the fields to change: those of the log's file header, of its VLFs, and of the blocks and records that
/// recovery needs. The last block is left out, because damage to this block only makes the log end earlier, as after a
/// crash. Records of pages that are free at the end of the log are also left out, because the content of these pages
/// does not matter.
fn sites(log: &Log, source: &MemoryFiles, crashed: &Crashed) -> BTreeMap<(String, String), Vec<Site>> {
    let (file, truth) = (&crashed.log.1, &crashed.truth.files[0].1);
    let mut sites: BTreeMap<(String, String), Vec<Site>> = BTreeMap::new();
    let page: &PageBytes = file.first_chunk::<PAGE_BYTES>().expect("a page");
    for instance in instances(page).into_iter().filter(|instance| instance.field.structure == Structure::FileHeader) {
        let name = (format!("log file, {}", instance.field.structure.name()), instance.field.name.to_owned());
        sites.entry(name).or_default().push(Site { bytes: instance.bytes, protection: Protection::Page });
    }
    let layout = Layout::of(log);
    let start = Start::of(source, log).expect("the log of the database");
    let used = log.run().iter().filter(|placed| placed.vlf.sequence >= start.redo_from.vlf);
    for placed in used {
        let at = placed.vlf.offset as usize;
        add(&mut sites, Structure::VlfHeader, "", at..at + vlf::USED_BYTES, &Protection::None);
    }
    let mut replaced = BTreeSet::new();
    for part in layout.blocks.iter().rev().skip(1) {
        let mut bytes = file[part.at..part.at + part.bytes].to_vec();
        let first = bytes.as_ptr() as usize;
        let block = Block::restore(&mut bytes).expect("a sound block");
        if block.first_lsn() < start.redo_from {
            continue;
        }
        let protection = Protection::Block(part.clone());
        add(&mut sites, Structure::LogBlock, "", part.at..part.at + SECTOR_BYTES, &protection);
        let mut records: Vec<_> = block.records().collect();
        records.reverse();
        for (lsn, record) in records {
            let stored = record.on_page().and_then(|change| source.read_page(change.page));
            if stored.is_some_and(|page| Page::new(&page).header().lsn() >= lsn) {
                continue;
            }
            if is_replaced(&record, &mut replaced) || record.on_page().is_some_and(|at| is_free(truth, at.page.page)) {
                continue;
            }
            let at = part.at + (record.bytes().as_ptr() as usize - first);
            let range = at..at + record.fixed_bytes().min(record.bytes().len());
            let operation = format!(", {}", record.operation().name().unwrap_or("unknown"));
            let is_common = COMMON.contains(&record.operation());
            for structure in structures(&record) {
                if *structure == Structure::LogRecord && !is_common {
                    continue;
                }
                let name = match structure {
                    Structure::LogRecord | Structure::LogPageRecord => &operation,
                    Structure::LogSetBits => map_of(&record),
                    _ => "",
                };
                add(&mut sites, *structure, name, range.clone(), &protection);
            }
        }
    }
    sites
}

/// Whether a page is free, in a file with a single PFS page.
fn is_free(file: &[u8], page: u32) -> bool {
    /// The offset of the first PFS byte in the file.
    const BYTES_AT: usize = PAGE_BYTES + 100;
    file.get(BYTES_AT + page as usize).is_some_and(|byte| !PfsByte(*byte).is_allocated())
}

/// The kind of allocation map in which a record sets bits.
fn map_of(record: &LogRecord<'_>) -> &'static str {
    const PFS: u8 = 11;
    const DIFFERENTIAL: u8 = 24;
    match record.context() {
        PFS => " (PFS)",
        DIFFERENTIAL => " (differential)",
        _ => " (allocation)",
    }
}

/// Whether a later record completely replaces the effect of this record, because it formats the same page or sets the
/// same PFS byte. `replaced` contains the pages and PFS bytes of later records.
fn is_replaced(record: &LogRecord<'_>, replaced: &mut BTreeSet<(PageId, Option<u16>)>) -> bool {
    let Some(page) = record.on_page().map(|change| change.page) else { return false };
    let byte = match record.change() {
        Some(Change::SetFreeSpace { offset, .. }) => Some(offset),
        _ => None,
    };
    let is_replaced = replaced.contains(&(page, None)) || byte.is_some() && replaced.contains(&(page, byte));
    if byte.is_some() || record.operation() == Operation::FORMAT_PAGE {
        replaced.insert((page, byte));
    }
    is_replaced
}

/// The structures that a log record contains.
fn structures(record: &LogRecord<'_>) -> &'static [Structure] {
    use Structure::{LogPageRecord, LogRecord};
    match record.operation() {
        Operation::BEGIN_XACT => &[LogRecord, Structure::LogBeginTransaction],
        Operation::COMMIT_XACT | Operation::ABORT_XACT => &[LogRecord, Structure::LogEndTransaction],
        Operation::BEGIN_CKPT => &[LogRecord, Structure::LogBeginCheckpoint],
        Operation::END_CKPT => &[LogRecord, Structure::LogEndCheckpoint],
        Operation::FORMAT_PAGE => &[LogRecord, LogPageRecord, Structure::LogFormatPage],
        Operation::SET_BITS => &[LogRecord, LogPageRecord, Structure::LogSetBits],
        Operation::SET_FREE_SPACE => &[LogRecord, LogPageRecord, Structure::LogSetFreeSpace],
        Operation::DELETE_SPLIT => &[LogRecord, LogPageRecord, Structure::LogDeleteSplit],
        Operation::COUNT_DELTA => &[LogRecord, LogPageRecord, Structure::LogCountDelta],
        Operation::ROOT_CHANGE => &[LogRecord, LogPageRecord, Structure::LogRootChange],
        operation if operation.is_on_a_page() => &[LogRecord, LogPageRecord],
        _ => &[LogRecord],
    }
}

/// Adds the fields of a structure that end within `bytes`.
fn add(
    sites: &mut BTreeMap<(String, String), Vec<Site>>,
    structure: Structure,
    kind: &str,
    bytes: Range<usize>,
    protection: &Protection,
) {
    for field in structure.fields() {
        let Field { place: Place::At(at), width: Width::Bytes(width), .. } = *field else { continue };
        let start = bytes.start + usize::from(at);
        let range = start..start + usize::from(width);
        // On disk, a status byte replaces the first byte of each sector, and the replaced byte is stored at the end of
        // the block. Fields that contain such a byte are therefore left out, except at the start of the block.
        let has_status = |part: &Part| {
            range.clone().any(|byte| (byte - part.at).is_multiple_of(SECTOR_BYTES)) && range.start != part.at
        };
        let is_displaced = matches!(protection, Protection::Block(part) if has_status(part));
        if range.end <= bytes.end && !is_displaced {
            let has_piece = kind.contains("MODIFY_ROW") || kind.contains("_ROWS");
            if structure == Structure::LogPageRecord && at >= PIECE && !has_piece {
                continue;
            }
            let name = (format!("{}{kind}", structure.name()), field.name.to_owned());
            sites.entry(name).or_default().push(Site { bytes: range, protection: protection.clone() });
        }
    }
}

/// A change to a field of the log.
struct Job<'a> {
    name: &'a (String, String),
    used: &'a InUse,
    site: &'a Site,
    value: Vec<u8>,
    is_stale: bool,
}

impl Job<'_> {
    fn log(&self) -> Vec<u8> {
        let mut log = self.used.crashed.log.1.clone();
        log[self.site.bytes.clone()].copy_from_slice(&self.value);
        if self.is_stale {
            return log;
        }
        match &self.site.protection {
            Protection::Page => {
                let page = log.first_chunk_mut::<PAGE_BYTES>().expect("a page");
                trials::mutate::seal(page);
            }
            Protection::Block(part) => seal(&mut log[part.at..part.at + part.bytes]),
            Protection::None => {}
        }
        log
    }
}

/// Returns the changes to try. For each field, one site is chosen and changed by every verb. With one of these verbs,
/// the site is also changed without correcting the checksum.
fn jobs(used: &InUse) -> Vec<Job<'_>> {
    let mut random = Random::new(SEED);
    let mut jobs = Vec::new();
    let log = &used.crashed.log.1;
    for (name, sites) in &used.sites {
        let (Some(site), Some(other)) = (random.pick(sites), random.pick(sites)) else { continue };
        let (bytes, other) = (&log[site.bytes.clone()], &log[other.bytes.clone()]);
        let values = Verb::ALL.iter().filter_map(|verb| verb.apply(bytes, Some(other)));
        let first = jobs.len();
        jobs.extend(values.map(|value| Job { name, used, site, value, is_stale: false }));
        if let (Some(job), false) = (jobs.get(first), matches!(site.protection, Protection::None)) {
            let value = job.value.clone();
            jobs.push(Job { name, used, site, value, is_stale: true });
        }
    }
    jobs
}

/// Tries all changes. Returns the results, and the changes that caused a panic or a hang.
fn run() -> (Tallies, Vec<String>) {
    let used = InUse::new();
    let jobs = jobs(&used);
    let (tallies, broken) = (Mutex::new(Tallies::new()), Mutex::new(Vec::new()));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                let folder = folder();
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let verdict = catch_unwind(AssertUnwindSafe(|| job.used.judge(folder.path(), &job.log())));
                    let story = || {
                        format!("{:?} at {:?}: {:02X?}, stale {}", job.name, job.site.bytes, job.value, job.is_stale)
                    };
                    match verdict {
                        Ok(verdict) if start.elapsed() < LIMIT => {
                            if matches!(verdict, Verdict::Other) && std::env::var_os("MDFSCK_MATRIX_LOG").is_some() {
                                println!("other rows: {}", story());
                            }
                            let mut tallies = tallies.lock().expect("no panic in here");
                            tallies.entry(job.name.clone()).or_default().add(verdict, job.is_stale);
                        }
                        _ => broken.lock().expect("no panic in here").push(story()),
                    }
                }
            });
        }
    });
    (tallies.into_inner().expect("no panic in here"), broken.into_inner().expect("no panic in here"))
}

fn summary(tallies: &Tallies) -> String {
    let sum = |part: fn(&Tally) -> u32| tallies.values().map(part).sum::<u32>();
    format!(
        "{} changes of {} fields with the checksum made right: {} were refused or gave findings, {} were listed as not \
         verified; of {} nothing was said, and the recovered rows were those of the truth; of {} nothing was said, and they \
         were others. {} changes with the checksum left wrong: {} noticed.",
        sum(|tally| tally.tried),
        tallies.len(),
        sum(|tally| tally.found),
        sum(|tally| tally.told),
        sum(|tally| tally.same),
        sum(|tally| tally.other),
        sum(|tally| tally.stale),
        sum(|tally| tally.stale_noticed),
    )
}

fn print(tallies: &Tallies) -> String {
    let mut lines =
        String::from("structure\tfield\ttried\tfound\ttold\tsame rows\tother rows\tchecksum wrong\tnoticed\n");
    for ((structure, field), tally) in tallies {
        let Tally { tried, found, told, same, other, stale, stale_noticed } = tally;
        let _ = writeln!(
            lines,
            "{structure}\t{field}\t{tried}\t{found}\t{told}\t{same}\t{other}\t{stale}\t{stale_noticed}"
        );
    }
    lines
}

fn parse(text: &str) -> Tallies {
    let of_line = |line: &str| {
        let parts: Vec<&str> = line.split('\t').collect();
        let [structure, field, numbers @ ..] = parts.as_slice() else { panic!("{line}") };
        let numbers: Vec<u32> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
        let [tried, found, told, same, other, stale, stale_noticed] = numbers[..] else { panic!("{line}") };
        let tally = Tally { tried, found, told, same, other, stale, stale_noticed };
        (((*structure).to_owned(), (*field).to_owned()), tally)
    };
    text.lines().skip(1).map(of_line).collect()
}

/// The committed result, in the form for docs/sensitivity.md.
pub fn document() -> String {
    let tallies = parse(BASELINE);
    let mut text = String::from(
        "\n## The log\n\nEvery field of the structures of the log, in a database of the lab that was in use, stopped with open \
         transactions and none\nof the changed pages on disk. The fields lie where recovery needs the log; they are changed \
         by the same verbs with the checksum\nof the page or block made right, and once with it left wrong. The data files are \
         then checked with that log. Headers of virtual\nlog files have no checksum.\n\n",
    );
    let _ = writeln!(text, "{}\n", summary(&tallies));
    text.push_str(
        "| structure | field | tried | found or refused | not verified | silent, rows right | silent, other rows | \
         checksum wrong: noticed |\n|---|---|---|---|---|---|---|---|\n",
    );
    for ((structure, field), tally) in &tallies {
        let Tally { tried, found, told, same, other, stale, stale_noticed } = tally;
        let _ = writeln!(
            text,
            "| {structure} | {field} | {tried} | {found} | {told} | {same} | {other} | {stale_noticed}/{stale} |"
        );
    }
    text
}
