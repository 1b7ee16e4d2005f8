//! Recovers databases of the lab that stopped while transactions were running. Compares them with the pages that the
//! lab recorded.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use crate::common::logical;
use format::page::PAGE_BYTES;
use format::{Page, PageBytes, PageId};
use lab::PageVerify;
use lab::workload::{Crashed, Flush, Spec, Stop, Workload};
use log::{Log, Walk};
use recovery::{Analysis, Misfit, RecoveredPages, Recovery, Refusal, Settings};
use source::{DataFiles, PageSource};

struct OnDisk {
    _folder: tempfile::TempDir,
    data: Vec<PathBuf>,
    log: PathBuf,
    more_logs: Vec<PathBuf>,
}

fn on_disk(crashed: &Crashed) -> OnDisk {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, bytes): &(String, Vec<u8>)| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let data = crashed.files.iter().map(write).collect();
    let more_logs = crashed.more_logs.iter().map(write).collect();
    OnDisk { data, log: write(&crashed.log), more_logs, _folder: folder }
}

fn recover(source: &dyn PageSource, log: &Log, grant_bytes: u64) -> Recovery {
    let settings = Settings { grant_bytes, ..Settings::default() };
    let analysis = Analysis::new(source, log, &settings).unwrap();
    Recovery::new(source, log, analysis, &settings).unwrap()
}

/// Compares all allocated pages with the pages that the lab recorded. Returns the pages that differ.
fn differences(source: &dyn PageSource, truth: &[(String, Vec<u8>)], with_lsn: bool) -> Vec<PageId> {
    let mut differ = Vec::new();
    for (file, (_, truth)) in source.files().iter().zip(truth) {
        for (number, expected) in truth.as_chunks::<PAGE_BYTES>().0.iter().enumerate() {
            let id = PageId::new(file.file_id, number as u32);
            let pfs = truth.as_chunks::<PAGE_BYTES>().0[(number / 8088 * 8088).max(1)];
            let is_allocated = pfs[100 + number % 8088] & 0x40 != 0;
            if !is_allocated || id == PageId::BOOT || number == 0 {
                continue;
            }
            let found = source.read_page(id).unwrap();
            if logical(&found, with_lsn) != logical(expected, with_lsn) {
                differ.push(id);
            }
        }
    }
    differ
}

#[test]
fn a_database_without_open_transactions_is_as_of_its_last_records() {
    as_of_the_last_records(0..4);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn many_databases_without_open_transactions_are_as_of_their_last_records() {
    as_of_the_last_records(0..40);
}

fn as_of_the_last_records(seeds: Range<u64>) {
    for seed in seeds {
        let workload = Workload::new(Spec { seed, ..Spec::default() }).unwrap();
        let crashed = workload.crash(Stop::WithoutOpen, Flush::Some(seed));
        let files = on_disk(&crashed);
        let source = DataFiles::open(&files.data).unwrap();
        let log = Log::open(std::slice::from_ref(&files.log)).unwrap();
        let recovery = recover(&source, &log, 64 << 20);
        let applied = recovery.applied.clone();
        assert_eq!((applied.not_recovered.len(), applied.transactions_undone), (0, 0), "{seed}: {applied:?}");
        let recovered = RecoveredPages::new(&source, recovery);
        assert_eq!(differences(&recovered, &crashed.truth.redone, true), [], "{seed}: {applied:?}");
        assert_sound(&recovered, seed);
    }
}

/// The server writes VLFs of the log files alternately, so the log switches back and forth between the files.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_log_in_several_files_in_any_order_recovers_as_that_in_one() {
    let (mut pages, mut turns) = (0, 0);
    for seed in 0..24 {
        let log_files = 2 + (seed % 2) as u16;
        let spec = Spec { seed, log_files, vlfs: 2 + seed as u32 % 6, vlf_bytes: 0x20000, ..Spec::default() };
        let crashed = Workload::new(spec).unwrap().crash(Stop::WithoutOpen, Flush::Some(seed));
        let files = on_disk(&crashed);
        let source = DataFiles::open(&files.data).unwrap();
        let mut logs: Vec<PathBuf> = std::iter::once(&files.log).chain(&files.more_logs).cloned().collect();
        assert_eq!(logs.len(), usize::from(log_files));
        let mut found = Vec::new();
        for _ in 0..logs.len() {
            logs.rotate_left(1);
            let log = Log::open(&logs).unwrap();
            turns += log.run().windows(2).filter(|pair| pair[0].file != pair[1].file).count();
            let recovery = recover(&source, &log, 64 << 20);
            let applied = recovery.applied.clone();
            assert_eq!((applied.not_recovered.len(), applied.transactions_undone), (0, 0), "{seed}: {applied:?}");
            let recovered = RecoveredPages::new(&source, recovery);
            assert_eq!(differences(&recovered, &crashed.truth.redone, true), [], "{seed}: {applied:?}");
            pages += applied.pages;
            let all = (0..source.files()[0].pages).map(|page| recovered.read_page(PageId::new(1, page)));
            found.push(all.collect::<Vec<_>>());
            if found.len() == 1 {
                assert_sound(&recovered, seed);
            }
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{seed}");
    }
    assert!(pages > 500 && turns > 50, "{pages} {turns}");
}

/// Asserts that a check of the recovered database reports no findings.
fn assert_sound(source: &dyn PageSource, seed: u64) {
    let database = catalog::load(source);
    let options = findings::Options { max_threads: 1, constraints: true, ..findings::Options::default() };
    let report = check::run(source, &database, &options, &check::Silent);
    let names = report.names();
    let found: Vec<String> = report.findings.iter().map(|finding| finding.text(&names)).collect();
    assert_eq!(found, Vec::<String>::new(), "{seed}");
    let doubts: Vec<_> = report.not_verified.iter().map(|entry| (&entry.what, &entry.scope, &entry.reason)).collect();
    assert!(report.demoted.is_empty() && doubts.is_empty(), "{seed}: {doubts:?}");
}

/// The allocation maps, and the rows of every rowset. Ghosts are left out.
fn live_rows(
    read: impl Fn(PageId) -> Option<Box<PageBytes>>,
    files: &[(u16, u32)],
) -> BTreeMap<(u32, u16), Vec<Vec<u8>>> {
    let mut rows: BTreeMap<(u32, u16), Vec<Vec<u8>>> = BTreeMap::new();
    for (file, pages) in files {
        for number in 0..*pages {
            let pfs = read(PageId::new(*file, (number / 8088 * 8088).max(1))).unwrap();
            let bytes = read(PageId::new(*file, number)).unwrap();
            let header = *Page::new(&bytes).header();
            let is_leaf = header.level == 0 && matches!(header.page_type, 1..=4);
            if pfs[100 + number as usize % 8088] & 0x40 == 0 || !is_leaf {
                continue;
            }
            let is_live = |row: &Vec<u8>| !format::record::RecordKind::of(row[0]).is_ghost();
            let live = logical(&bytes, false).1.into_iter().flatten().filter(is_live);
            rows.entry((header.object_id.get(), header.index_id.get())).or_default().extend(live);
        }
    }
    rows.values_mut().for_each(|rows| rows.sort());
    rows.retain(|_, rows| !rows.is_empty());
    rows
}

#[test]
#[ignore = "full tier: takes seconds"]
fn transactions_that_had_not_ended_are_taken_back() {
    let whole = recovered_whole(0..8);
    assert!(whole >= 6, "{whole}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn transactions_that_had_not_ended_are_taken_back_in_many_databases() {
    let whole = recovered_whole(0..120);
    assert!(whole >= 100, "{whole}");
}

fn recovered_whole(seeds: Range<u64>) -> u32 {
    let (mut recovered_whole, mut refused, mut wrong) = (0, 0, Vec::new());
    for seed in seeds {
        let workload = Workload::new(Spec { seed, ..Spec::default() }).unwrap();
        let stop = if seed % 2 == 0 { Stop::WithOpen } else { Stop::After(workload.records() * (seed % 10) / 10) };
        let crashed = workload.crash(stop, Flush::Some(seed));
        let files = on_disk(&crashed);
        let source = DataFiles::open(&files.data).unwrap();
        let log = Log::open(std::slice::from_ref(&files.log)).unwrap();
        let recovery = recover(&source, &log, 64 << 20);
        let applied = recovery.applied.clone();
        let in_doubt = crashed.truth.open.iter().any(|open| open.is_prepared);
        if !applied.not_recovered.is_empty() || applied.transactions_not_undone > 0 {
            refused += 1;
            if !in_doubt {
                println!("{seed} {applied:?}");
            }
            continue;
        }
        let recovered = RecoveredPages::new(&source, recovery);
        let sizes: Vec<(u16, u32)> = source.files().iter().map(|file| (file.file_id, file.pages)).collect();
        let found = live_rows(|page| recovered.read_page(page), &sizes);
        let truth = |page: PageId| {
            let position = source.files().iter().position(|file| file.file_id == page.file)?;
            let bytes = &crashed.truth.files[position].1;
            Some(Box::new(bytes.as_chunks::<PAGE_BYTES>().0[page.page as usize]))
        };
        let sizes: Vec<(u16, u32)> = sizes
            .iter()
            .zip(&crashed.truth.files)
            .map(|((id, _), (_, bytes))| (*id, (bytes.len() / PAGE_BYTES) as u32))
            .collect();
        let expected = live_rows(truth, &sizes);
        if found == expected {
            assert_sound(&recovered, seed);
            recovered_whole += 1;
        } else {
            let units: Vec<_> = expected
                .iter()
                .filter(|(unit, rows)| found.get(unit) != Some(rows))
                .map(|(unit, rows)| (*unit, rows.len(), found.get(unit).map(Vec::len)))
                .collect();
            let extra: Vec<_> = found.keys().filter(|unit| !expected.contains_key(unit)).collect();
            println!("wrong {seed} {units:?} {extra:?} {applied:?} {:?}", crashed.truth.open);
            wrong.push(seed);
        }
    }
    println!("{recovered_whole} whole, {refused} refused");
    assert_eq!(wrong, []);
    recovered_whole
}

#[test]
#[ignore = "full tier: takes seconds"]
fn pages_newer_than_the_end_of_the_log_are_refused() {
    let mut refused = 0;
    for seed in 0..10 {
        let workload = Workload::new(Spec { seed, ..Spec::default() }).unwrap();
        let crashed = workload.crash(Stop::WithOpen, Flush::All);
        let files = on_disk(&crashed);
        let source = DataFiles::open(&files.data).unwrap();
        // Cut off the end of the log, as if the log had been copied shortly before the data files.
        let whole = Log::open(std::slice::from_ref(&files.log)).unwrap();
        let mut walk = Walk::new(&whole);
        while walk.next_block().unwrap().is_some() {}
        let end = walk.end().unwrap();
        let last = end.offset.saturating_sub(4 * 512).max(end.at.from);
        let mut bytes = crashed.log.1.clone();
        bytes[last as usize..end.at.to as usize].fill(0);
        std::fs::write(&files.log, &bytes).unwrap();
        let log = Log::open(std::slice::from_ref(&files.log)).unwrap();
        // A grant of 4 KB leaves no memory for the table of pages that the log changes.
        let outcomes = [64 << 20, 4096].map(|grant_bytes| {
            let settings = Settings { grant_bytes, ..Settings::default() };
            // The shortened log may end before the checkpoint that the boot page names. The analysis then refuses the
            // log.
            let analysis = Analysis::new(&source, &log, &settings).ok()?;
            match Recovery::new(&source, &log, analysis, &settings).map(|recovery| recovery.applied) {
                Err(Refusal::FilesNewer { lsn, end, .. }) => {
                    assert!(lsn > end, "{seed}");
                    Some(true)
                }
                // No page that the shortened log changes was changed again after the end of the shortened log.
                Ok(_) => Some(false),
                Err(other) => panic!("{seed}: {other}"),
            }
        });
        assert_eq!(outcomes[0], outcomes[1], "{seed}");
        refused += u32::from(outcomes[0] == Some(true));
    }
    assert!(refused >= 5, "{refused}");
}

#[test]
fn with_row_versions_of_accelerated_recovery_open_transactions_are_not_taken_back() {
    let workload = Workload::new(Spec { seed: 2, ..Spec::default() }).unwrap();
    let crashed = workload.crash(Stop::WithOpen, Flush::Some(2));
    let files = on_disk(&crashed);
    let source = DataFiles::open(&files.data).unwrap();
    let log = Log::open(std::slice::from_ref(&files.log)).unwrap();
    let settings = Settings { grant_bytes: 64 << 20, has_version_store: true, ..Settings::default() };
    let analysis = Analysis::new(&source, &log, &settings).unwrap();
    let applied = Recovery::new(&source, &log, analysis, &settings).unwrap().applied;
    let by_versions = applied.not_recovered.iter().filter(|entry| entry.why == Misfit::Versions).count();
    assert!(by_versions > 0 && applied.transactions_not_undone > 0 && applied.transactions_undone == 0, "{applied:?}");
}

/// Changes bytes of a log. Without block checksums, recovery reads the changed records. With block checksums, the log
/// ends before the changed bytes.
#[test]
#[ignore = "full tier: takes seconds"]
fn any_log_is_applied_or_refused() {
    let (mut refused, mut partial, mut done) = (0, 0, 0);
    for (seed, verify) in [(3, PageVerify::None), (4, PageVerify::None), (5, PageVerify::Checksum)] {
        let workload = Workload::new(Spec { seed, verify, transactions: 30, ..Spec::default() }).unwrap();
        let crashed = workload.crash(Stop::WithOpen, Flush::Some(seed));
        let files = on_disk(&crashed);
        let source = DataFiles::open(&files.data).unwrap();
        let mut random = seed | 1;
        let mut next = |below: usize| {
            random = (random ^ (random << 13)) ^ ((random ^ (random << 13)) >> 7);
            random ^= random << 17;
            (random % below as u64) as usize
        };
        for round in 0..150 {
            let mut bytes = crashed.log.1.clone();
            let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
            for _ in 0..=round % 4 {
                let at = 0x2000 + next(used - 0x2000);
                bytes[at] = match round % 3 {
                    0 => bytes[at] ^ (1 << next(8)),
                    1 => 0xFF,
                    _ => next(256) as u8,
                };
            }
            if round % 7 == 0 {
                bytes.truncate(0x4000 + next(used - 0x4000));
            }
            std::fs::write(&files.log, &bytes).unwrap();
            let Ok(log) = Log::open(std::slice::from_ref(&files.log)) else {
                refused += 1;
                continue;
            };
            let settings = Settings { grant_bytes: 8 << 20, ..Settings::default() };
            let Ok(analysis) = Analysis::new(&source, &log, &settings) else {
                refused += 1;
                continue;
            };
            let recovery = match Recovery::new(&source, &log, analysis, &settings) {
                Ok(recovery) => recovery,
                Err(Refusal::FilesNewer { .. }) => {
                    refused += 1;
                    continue;
                }
                Err(other) => panic!("{other}"),
            };
            match recovery.applied.not_recovered.len() {
                0 => done += 1,
                _ => partial += 1,
            }
            let recovered = RecoveredPages::new(&source, recovery);
            let database = catalog::load(&recovered);
            let options = findings::Options { max_threads: 1, ..findings::Options::default() };
            drop(check::run(&recovered, &database, &options, &check::Silent));
        }
    }
    assert!(refused > 20 && partial >= 5 && done > 20, "{refused} {partial} {done}");
}
