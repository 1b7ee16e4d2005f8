//! Tests with real backups. After log backups are applied to a full backup, its pages must equal the pages of a later
//! backup by SQL Server. At every earlier point in time, its rows must be correct.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::logical;
use format::log::{LogTime, Operation, TransactionId};
use format::record::{Record, RecordKind};
use format::{AllocUnitId, Lsn, Page, PageBytes, PageId, PageType};
use log::{Log, Walk};
use recovery::{Analysis, RecoveredPages, Recovery, Refusal, RestoreStart, Settings, Stop};
use source::backup::{self, BackupLog, BackupMedia, ChainSet, DatabaseChains, Restore, SetKind, Until};
use source::{BackupPages, OpenError, PageSource};

/// The labels of all backups in the corpus. The list is empty if there is no corpus.
fn media() -> Vec<BackupMedia> {
    fn search(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for path in entries.map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => search(&path, found),
                false if source::is_backup(&path) => found.push(path),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus"), &mut found);
    found.sort();
    let media = found.iter().filter_map(|path| backup::media(path).ok());
    // Files with several backup sets are left out, so that the backup set of each file is certain.
    media.filter(|media| media.sets.len() == 1).collect()
}

fn is_allocated(source: &dyn PageSource, page: PageId) -> bool {
    let pfs = PageId::new(page.file, (page.page / 8088 * 8088).max(1));
    source.read_page(pfs).is_some_and(|pfs| pfs[100 + page.page as usize % 8088] & 0x40 != 0)
}

/// The numbers of restores and of comparisons, and the numbers of compared pages by the result of the comparison.
#[derive(Default, Debug)]
struct Compared {
    restores: u32,
    log_backups: usize,
    comparisons: u32,
    /// Number of pages that log backups changed and that equal the pages of a later backup.
    changed: u32,
    /// Number of equal pages that no log backup changed.
    same: u32,
    /// Number of pages that changed again after the later backup.
    newer: u32,
}

/// The parts of a page that must be equal. The catalog's counts of rows, pages and changes are left out, because
/// checkpoints write these counts without a log record for the page.
fn without_counts(bytes: &PageBytes) -> (Vec<u64>, Vec<Option<Vec<u8>>>) {
    let counts = match Page::new(bytes).header().object_id.get() {
        3 => 20..28, // sysrscols: rcmodified
        5 => 31..39, // sysrowsets: rcrows
        7 => 45..69, // sysallocunits: pcused, pcdata, pcreserved
        _ => 0..0,
    };
    let (fields, mut rows) = logical(bytes, true);
    for row in rows.iter_mut().flatten() {
        if let Some(counts) = row.get_mut(counts.clone()) {
            counts.fill(0);
        }
    }
    (fields, rows)
}

impl Compared {
    /// Restores backups in memory. A check of the restored database must report no findings.
    fn restore(&mut self, name: &str, paths: &[PathBuf], then: impl FnOnce(&RecoveredPages<'_>, &mut Self)) {
        let restore = Restore::open(paths, &[], None, None, Until::End).unwrap_or_else(|error| panic!("{error}"));
        let start = RestoreStart { from: restore.from, redo_from: restore.redo_from, pages_to: restore.pages_to };
        self.restores += 1;
        self.log_backups += restore.log_backups;
        let log = Log::of_backups(restore.log).unwrap();
        assert_eq!(log.gaps(), [], "{name}");
        let settings = Settings { grant_bytes: 64 << 20, ..Settings::default() };
        let analysis = Analysis::of_restore(start, &log, None, &settings);
        let recovery = analysis.and_then(|analysis| Recovery::new(&restore.pages, &log, analysis, &settings));
        let recovery = recovery.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let applied = &recovery.applied;
        assert!(applied.not_recovered.is_empty() && applied.transactions_not_undone == 0, "{name}: {applied:?}");
        let restored = RecoveredPages::new(&restore.pages, recovery);
        let report = check::run(&restored, &catalog::load(&restored), &findings::Options::default(), &check::Silent);
        let names = report.names();
        let found: Vec<String> = report.findings.iter().map(|finding| finding.text(&names)).collect();
        assert_eq!((found, report.demoted.len()), (Vec::new(), 0), "{name}");
        then(&restored, self);
    }

    /// Compares the pages of a later backup with restored pages. The backups must have been restored at least to the
    /// end of the later backup.
    fn compare(&mut self, name: &str, later: &dyn PageSource, restored: &RecoveredPages<'_>) {
        self.comparisons += 1;
        for file in later.files() {
            for page in (0..file.pages).map(|number| PageId::new(file.file_id, number)) {
                let Some(expected) = later.read_page(page).filter(|_| later.contains(page)) else { continue };
                if page == PageId::BOOT || page.page == 0 || !is_allocated(later, page) {
                    continue;
                }
                let Some(found) = restored.read_page(page) else { panic!("{name}: {page} is not there") };
                let lsn = |bytes| Page::new(bytes).header().lsn();
                assert!(lsn(&found) >= lsn(&expected), "{name}: {page} is older: {} {}", lsn(&found), lsn(&expected));
                if lsn(&found) > lsn(&expected) {
                    self.newer += 1;
                    continue;
                }
                let is_changed = restored.work(page).is_some();
                assert!(without_counts(&found) == without_counts(&expected), "{name}: {page}");
                *(if is_changed { &mut self.changed } else { &mut self.same }) += 1;
            }
        }
    }
}

#[test]
#[ignore = "full tier: real files"]
fn pages_of_real_backups_brought_forward_are_those_of_later_backups() {
    let media = media();
    let mut compared = Compared::default();
    for database in backup::chains(&media) {
        let sets = &database.sets;
        for chain in &database.chains {
            let full = &sets[chain.full];
            // The shortest restore sequence to the end of the chain. It uses the last differential backup.
            let shortest: Vec<PathBuf> = chain.steps.iter().flat_map(|step| sets[*step].paths.clone()).collect();
            let is_of_it =
                |set: &&ChainSet| set.set.config.recovery_fork_id == full.set.config.recovery_fork_id && set.is_whole();
            let logs: Vec<&ChainSet> =
                sets.iter().filter(is_of_it).filter(|set| set.set.kind == SetKind::Log).collect();
            if logs.is_empty() {
                continue;
            }
            // Restore with log backups alone to the end of each later backup, and compare the pages.
            let is_later = |set: &&ChainSet| set.set.config.first_lsn > full.set.config.first_lsn;
            for set in sets.iter().filter(is_of_it).filter(is_later).filter(|set| set.set.kind != SetKind::Log) {
                let paths = match set.set.kind {
                    SetKind::Full => set.paths.clone(),
                    _ => [full.paths.clone(), set.paths.clone()].concat(),
                };
                let Ok(later) = BackupPages::open(&paths, &[]) else { continue };
                let name = format!("{} {:?}", database.database, set.paths);
                let needed = logs.iter().filter(|log| log.set.config.first_lsn < set.set.config.last_lsn);
                let paths: Vec<PathBuf> = full.paths.iter().chain(needed.flat_map(|log| &log.paths)).cloned().collect();
                compared.restore(&name, &paths, |restored, compared| {
                    if Some(restored.recovery().analysis.end) >= set.set.config.last_lsn {
                        compared.compare(&name, &later, restored);
                    }
                });
            }
            // The shortest restore sequence must produce the same pages as the sequence with log backups alone.
            let name = format!("{} {:?}", database.database, full.paths);
            let all: Vec<PathBuf> = full.paths.iter().chain(logs.iter().flat_map(|log| &log.paths)).cloned().collect();
            compared.restore(&name, &shortest, |restored, compared| {
                let (end, restored) = (restored.recovery().analysis.end, restored as &dyn PageSource);
                compared.restore(&name, &all, |by_log, compared| {
                    assert_eq!(by_log.recovery().analysis.end, end, "{name}");
                    compared.compare(&name, restored, by_log);
                });
            });
        }
    }
    if !media.is_empty() {
        assert!(compared.comparisons >= 20 && compared.changed > 200 && compared.newer < 30, "{compared:?}");
    }
}

/// Stored rows by allocation unit, sorted.
type Rows = BTreeMap<AllocUnitId, Vec<Vec<u8>>>;

/// Inserted rows, each with its allocation unit.
type Inserted = Vec<(AllocUnitId, Vec<u8>)>;

/// The rows of these allocation units, without version tags.
fn rows(source: &dyn PageSource, units: &BTreeSet<AllocUnitId>) -> Rows {
    let mut rows: Rows = units.iter().map(|unit| (*unit, Vec::new())).collect();
    let pages = source.files().iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)));
    for id in pages.filter(|page| is_allocated(source, *page)) {
        let Some(mut bytes) = source.read_page(id) else { continue };
        format::protection::undo_torn_bits(&mut bytes);
        let page = Page::new(&bytes);
        let header = page.header();
        let unit = AllocUnitId::from_header(header.index_id.get(), header.object_id.get());
        let Some(rows) = rows.get_mut(&unit).filter(|_| header.kind() == Some(PageType::Data)) else { continue };
        for at in (0..header.slot_count.get()).filter_map(|slot| page.slot_offset(slot)).map(usize::from) {
            if at > 0 && RecordKind::of(bytes[at]) == RecordKind::Primary {
                let record = Record::data(&bytes[at..]).unwrap();
                let length = record.bytes().len() - record.version_tag().map_or(0, |tag| tag.len());
                rows.push(bytes[at..at + length].to_vec());
            }
        }
    }
    rows.values_mut().for_each(|rows| rows.sort());
    rows
}

/// The row changes in the log of a chain, read directly from the records and not by recovery.
#[derive(Default)]
struct Story {
    /// The commits in the order of the log: the LSN, the time, and the rows that the transaction inserted.
    commits: Vec<(Lsn, LogTime, Inserted)>,
    /// LSN ranges in which a transaction that cannot be undone is open. Either the transaction was prepared, so that
    /// only another database knows whether it is committed. Or it created an IAM chain, and no record names the extents
    /// of that chain.
    fixed: Vec<(Lsn, Lsn)>,
    /// Allocation units with rows that are never changed after their insert. The INSERT_ROWS records alone determine
    /// the content of these units.
    units: BTreeSet<AllocUnitId>,
}

impl Story {
    fn of(log: &Log) -> Self {
        const HEAP_OR_CLUSTERED: [u8; 2] = [1, 2];
        let (mut this, mut changed) = (Self::default(), BTreeSet::new());
        let mut open: HashMap<TransactionId, Inserted> = HashMap::new();
        let mut fixed: HashMap<TransactionId, Lsn> = HashMap::new();
        let mut walk = Walk::new(log);
        while let Some(block) = walk.next_block().unwrap() {
            for (lsn, record) in block.records() {
                let id = record.transaction();
                let unit = record.on_page().map(|on| AllocUnitId::from_header(on.index_id, on.object_id));
                match (record.operation(), unit) {
                    (Operation::BEGIN_XACT, _) => drop(open.insert(id, Vec::new())),
                    (Operation::PREP_XACT | Operation::CREATE_ALLOCCHAIN, _) => _ = fixed.entry(id).or_insert(lsn),
                    (Operation::ABORT_XACT, _) => {
                        this.fixed.extend(fixed.remove(&id).map(|at| (at, lsn)));
                        open.remove(&id);
                    }
                    (Operation::COMMIT_XACT, _) => {
                        let (ended, _) = record.end_transaction().unwrap();
                        this.fixed.extend(fixed.remove(&id).map(|at| (at, lsn)));
                        this.commits.push((lsn, ended.unwrap(), open.remove(&id).unwrap_or_default()));
                    }
                    (Operation::INSERT_ROWS, Some(unit)) if HEAP_OR_CLUSTERED.contains(&record.context()) => {
                        this.units.insert(unit);
                        let image = record.elements().next().unwrap().to_vec();
                        open.entry(id).or_default().push((unit, image));
                    }
                    (
                        Operation::DELETE_ROWS
                        | Operation::MODIFY_ROW
                        | Operation::MODIFY_COLUMNS
                        | Operation::DELETE_SPLIT
                        | Operation::EXPUNGE_ROWS,
                        Some(unit),
                    ) if ![10, 11].contains(&record.context()) => _ = changed.insert(unit),
                    _ => {}
                }
            }
        }
        this.units.retain(|unit| !changed.contains(unit));
        this
    }

    /// The rows at the point in time `moment`. These are the rows of a full backup, and the rows that were committed
    /// between the end of the backup and `moment`.
    fn rows_at(&self, base: &Rows, ends_at: Lsn, moment: LogTime) -> Rows {
        let mut rows = base.clone();
        for (.., inserted) in self.commits.iter().filter(|(lsn, time, _)| *lsn >= ends_at && *time <= moment) {
            for (unit, image) in inserted {
                if let Some(rows) = rows.get_mut(unit) {
                    rows.push(image.clone());
                }
            }
        }
        rows.values_mut().for_each(|rows| rows.sort());
        rows
    }
}

/// Restores in memory to a point in time, with a memory grant of `grant_bytes`. If the pages of the backup are already
/// newer than this point in time, returns the message of the refusal.
fn stopped<T>(
    paths: &[PathBuf],
    moment: LogTime,
    grant_bytes: u64,
    then: impl FnOnce(&RecoveredPages<'_>) -> T,
) -> Result<T, String> {
    let text = text(moment);
    let restore = match Restore::open(paths, &[], None, None, Until::Time(&text)) {
        Err(error @ OpenError::EndsLater { .. }) => return Err(error.to_string()),
        opened => opened.unwrap(),
    };
    let start = RestoreStart { from: restore.from, redo_from: restore.redo_from, pages_to: restore.pages_to };
    let log = Log::of_backups(restore.log).unwrap();
    let settings = Settings { grant_bytes, ..Settings::default() };
    let analysis = match Analysis::of_restore(start, &log, Some(&Stop::At(moment)), &settings) {
        Err(error @ Refusal::StopTooEarly { .. }) => return Err(error.to_string()),
        analysis => analysis.unwrap(),
    };
    let recovery = Recovery::new(&restore.pages, &log, analysis, &settings).unwrap();
    let applied = &recovery.applied;
    let is_whole = applied.in_doubt == 0 && applied.transactions_not_undone == 0;
    assert!(!is_whole || applied.not_recovered.is_empty(), "{text}: {applied:?}");
    Ok(then(&RecoveredPages::new(&restore.pages, recovery)))
}

/// A point in time as text in the form of backup sets: `2017-06-01 13:14:13`.
fn text(moment: LogTime) -> String {
    // Days are counted from 0000-03-01, so that the leap day is the last day of a year.
    let days = i64::from(moment.days) + 693_901;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (400 * era + year + month / 10, (month + 2) % 12 + 1);
    let seconds = moment.ticks / 300;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{of_month:02} {hour:02}:{minute:02}:{second:02}")
}

/// The point in time one tick after `moment`, and the point in time one tick before it.
fn neighbours(moment: LogTime) -> (LogTime, LogTime) {
    const LAST: u32 = 86_400 * 300 - 1;
    let next = match moment.ticks {
        LAST => LogTime { days: moment.days + 1, ticks: 0 },
        ticks => LogTime { ticks: ticks + 1, ..moment },
    };
    let before = match moment.ticks {
        0 => LogTime { days: moment.days - 1, ticks: LAST },
        ticks => LogTime { ticks: ticks - 1, ..moment },
    };
    (next, before)
}

/// The ID and the content of all allocated pages.
fn pages(source: &dyn PageSource) -> Vec<(PageId, Option<Box<PageBytes>>)> {
    let pages = source.files().iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)));
    pages.filter(|page| is_allocated(source, *page)).map(|page| (page, source.read_page(page))).collect()
}

/// The oldest full backup of each recovery fork. Forks are distinguished because a restored database keeps its family
/// ID.
fn oldest_of_each_fork(database: &DatabaseChains) -> Vec<(&DatabaseChains, &ChainSet)> {
    let mut forks = BTreeSet::new();
    let fulls = database.chains.iter().map(|chain| &database.sets[chain.full]);
    fulls.filter(|full| forks.insert(&full.set.config.recovery_fork_id)).map(|full| (database, full)).collect()
}

/// The time of a commit, the moment after it, and the moment before the time of the next commit.
fn moments_between(time: LogTime, next: Option<LogTime>) -> BTreeSet<LogTime> {
    let between =
        next.into_iter().flat_map(|next| [neighbours(time).0, neighbours(next).1].map(|moment| (moment, next)));
    let between = between.filter(|(moment, next)| moment < next).map(|(moment, _)| moment);
    between.chain([time]).collect()
}

/// Asserts that a check of the restored database has no findings. If all transactions were undone, the check must have
/// put no finding aside either.
fn has_no_findings(restored: &RecoveredPages<'_>, is_whole: bool, name: &str) {
    let options = findings::Options { max_threads: 1, ..findings::Options::default() };
    let report = check::run(restored, &catalog::load(restored), &options, &check::Silent);
    let names = report.names();
    let found: Vec<_> = report.findings.iter().map(|finding| finding.text(&names)).collect();
    assert_eq!(found, Vec::<String>::new(), "{name}");
    assert!(!is_whole || report.demoted.is_empty(), "{name}");
}

#[test]
#[ignore = "full tier: real files"]
fn every_stop_between_two_commits_of_a_real_chain_has_the_rows_of_that_moment() {
    assert_eq!(text(LogTime { days: 42_885, ticks: 300 * (13 * 3600 + 14 * 60 + 13) + 299 }), "2017-06-01 13:14:13");
    let media = media();
    let (mut stops, mut too_early, mut partial, mut growths, mut with_differential) = (0, 0, 0, 0, 0);
    let databases = backup::chains(&media);
    for (database, full) in databases.iter().flat_map(oldest_of_each_fork) {
        if database.sets.iter().all(|set| set.set.kind != SetKind::Log) {
            continue;
        }
        let fork = &full.set.config.recovery_fork_id;
        let is_of_it = |set: &&ChainSet| set.set.config.recovery_fork_id == *fork && set.is_whole();
        let of = |kinds: &[SetKind]| -> Vec<PathBuf> {
            let sets = database.sets.iter().filter(is_of_it).filter(|set| kinds.contains(&set.set.kind));
            sets.flat_map(|set| set.paths.clone()).collect()
        };
        let all = of(&[SetKind::Full, SetKind::Differential, SetKind::Log]);
        let by_log = [full.paths.clone(), of(&[SetKind::Log])].concat();
        let log = Log::of_backups(BackupLog::open(&by_log, &[]).unwrap()).unwrap();
        if !log.gaps().is_empty() {
            continue;
        }
        let story = Story::of(&log);
        let is_in_order = story.commits.windows(2).all(|pair| pair[0].1 <= pair[1].1);
        if !is_in_order {
            continue;
        }
        let ends_at = full.set.config.last_lsn.unwrap();
        let base = rows(&BackupPages::open(&full.paths, &[]).unwrap(), &story.units);
        let mut last: Option<Rows> = None;
        for (number, (_, time, _)) in story.commits.iter().enumerate() {
            let next = story.commits.get(number + 1);
            if next.is_some_and(|(_, next, _)| next == time) {
                continue;
            }
            for moment in moments_between(*time, next.map(|(_, next, _)| *next)) {
                let name = format!("{} {:?} {}.{}", database.database, full.paths, text(moment), moment.ticks % 300);
                let expected = story.rows_at(&base, ends_at, moment);
                for paths in [&by_log, &all] {
                    let found = stopped(paths, moment, 64 << 20, |restored| {
                        let applied = &restored.recovery().applied;
                        let is_whole = applied.in_doubt == 0 && applied.transactions_not_undone == 0;
                        if is_whole {
                            assert!(rows(restored, &story.units) == expected, "{name}: the rows of another moment");
                        }
                        // The check runs once for each pair of consecutive commits, because all points in time between
                        // two commits use the same log.
                        if moment == *time {
                            has_no_findings(restored, is_whole, &name);
                            let pages_now = pages(restored);
                            let again = stopped(paths, moment, 1, |restored| pages(restored) == pages_now);
                            assert_eq!(again, Ok(true), "{name}: with less memory");
                        }
                        (restored.recovery().analysis.redo_from, is_whole)
                    });
                    let (redo_from, is_whole) = match found {
                        Ok(found) => found,
                        Err(error) => {
                            // The refusal is right if the backup ended after the requested time, or if its checkpoint
                            // is later than that time.
                            let finished = full.set.config.finished.clone().unwrap();
                            let has_more = next.is_some_and(|(lsn, ..)| *lsn < ends_at);
                            assert!(has_more || finished >= text(moment), "{name}: {error}");
                            too_early += 1;
                            continue;
                        }
                    };
                    if !is_whole {
                        let until = next.unwrap().0;
                        let is_fixed = story.fixed.iter().any(|(at, end)| *at < until && until <= *end);
                        assert!(is_fixed, "{name}: partial up to {until}");
                        partial += 1;
                    }
                    with_differential += u32::from(redo_from > full.set.config.checkpoint_lsn.unwrap());
                    stops += 1;
                }
                growths += u32::from(last.is_some_and(|last| last != expected));
                last = Some(expected);
            }
        }
    }
    if !media.is_empty() {
        let counts = (stops, too_early, partial, growths, with_differential);
        assert!(stops > 1_500 && partial * 8 < stops && growths > 170 && with_differential > 100, "{counts:?}");
    }
}
