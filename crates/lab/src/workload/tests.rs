//! Checks that the log follows the rules of the format, and that redo turns the files on disk into the files that the
//! workload predicts.

mod read;
mod redo;
mod restore;

use std::collections::BTreeSet;

use super::*;
use crate::ids::PAGE;
use crate::space::ALLOCATED;
use redo::Pages;

fn spec(seed: u64) -> Spec {
    let versions = [Version::V706, Version::V852, Version::V904, Version::V957];
    Spec { version: versions[seed as usize % 4], seed, transactions: 30 + seed % 100, ..Spec::default() }
}

/// Redoes the log after a crash, and asserts that each page equals the page that the workload predicts after redo.
/// Returns the number of applied records.
fn prove_redo(spec: &Spec, crashed: &Crashed) -> u64 {
    let what = format!("{spec:?} {}", crashed.truth.records);
    let records = read::records(&crashed.log.1, spec.verify == PageVerify::Checksum);
    redo::assert_chains(&records);
    let boot = &crashed.files[0].1[9 * PAGE..10 * PAGE];
    let (checkpoint, start) = (read::lsn(boot, 0x1BC), read::lsn(boot, 0x1D4));
    let named = records.iter().find(|record| record.lsn == checkpoint);
    assert!(named.is_some_and(|record| record.operation() == (150, 0)), "{what}: the boot page names a checkpoint");
    assert!(start <= checkpoint);
    let mut pages = Pages::new(&crashed.files, spec.verify);
    records.iter().for_each(|record| pages.redo(record));
    for (page, truth) in (0..).zip(crashed.truth.redone[0].1.chunks_exact(PAGE)) {
        // The checkpoint LSNs and the status on the boot page (page 9) are not logged.
        if page != 9 {
            let same = pages.bytes(PageId::new(1, page))[..] == *truth;
            assert!(same, "{what}: page {page}");
        }
    }
    assert!(pages.first.is_none_or(|first| first >= start), "{what}: redo starts at the LSN of the boot page");
    pages.applied
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || Workload::new(Spec::default()).unwrap().crash(Stop::WithOpen, Flush::Some(3));
    let (first, again) = (run(), run());
    assert!(first.files == again.files && first.log == again.log);
    assert!(first.truth.files == again.truth.files && first.truth.records > 500, "{}", first.truth.records);
}

#[test]
fn the_log_leads_to_the_truth_whichever_pages_are_on_disk() {
    let applied = records_applied(0..2);
    assert!(applied > 80, "{applied}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_log_leads_to_the_truth_whichever_pages_of_many_databases_are_on_disk() {
    let applied = records_applied(0..24);
    assert!(applied > 1000, "{applied}");
}

fn records_applied(seeds: std::ops::Range<u64>) -> u64 {
    let mut applied = 0;
    for seed in seeds {
        let workload = Workload::new(spec(seed)).unwrap();
        for flush in [Flush::None, Flush::Some(seed), Flush::All] {
            let crashed = workload.crash(Stop::WithoutOpen, flush);
            let redone = prove_redo(&workload.spec, &crashed);
            assert_eq!(redone == 0, crashed.truth.missing.is_empty(), "{seed} {flush:?}");
            applied += redone;
        }
    }
    applied
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_log_leads_to_the_truth_at_any_moment() {
    let mut in_structure_changes = 0;
    for seed in 0..6 {
        let workload = Workload::new(Spec { transactions: 20, ..spec(seed) }).unwrap();
        for records in (10..workload.records()).step_by(47) {
            let crashed = workload.crash(Stop::After(records), Flush::Some(seed + records));
            prove_redo(&workload.spec, &crashed);
            in_structure_changes += u32::from(crashed.truth.open.iter().any(|open| open.is_system));
        }
    }
    assert!(in_structure_changes > 0);
}

/// A lost write leaves one page in an older version, with an LSN before the start of redo. All other pages must be the
/// same as without the lost write.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_lost_write_is_older_than_the_start_of_redo() {
    let mut kinds = BTreeSet::new();
    let page_types = [1, 2, 3, 8, 10, 11, 16];
    for seed in 0..14 {
        let workload = Workload::new(Spec { transactions: 200, rows: 60, ..spec(seed) }).unwrap();
        let stop = [Stop::ShutDown, Stop::WithoutOpen][seed as usize / 7];
        let page_type = page_types[seed as usize % 7];
        let Some((crashed, lost)) = workload.with_lost_write(stop, Some(page_type), seed) else { continue };
        assert_eq!(lost.page_type, page_type);
        let sound = workload.crash(stop, Flush::Some(seed));
        let boot = &crashed.files[0].1[9 * PAGE..10 * PAGE];
        assert!(lost.on_disk < lost.last && lost.last < read::lsn(boot, 0x1D4).to_string());
        for (page, (now, before)) in
            (0..).zip(crashed.files[0].1.chunks_exact(PAGE).zip(sound.files[0].1.chunks_exact(PAGE)))
        {
            assert_eq!(now != before, lost.page == PageId::new(1, page), "{lost:?} {page}");
            if now != before {
                assert_eq!(
                    (read::lsn(now, 40).to_string(), read::lsn(before, 40).to_string()),
                    (lost.on_disk.clone(), lost.last.clone())
                );
            }
        }
        kinds.insert(lost.page_type);
    }
    assert_eq!(kinds, BTreeSet::from(page_types));
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_log_ends_before_a_block_that_is_missing() {
    for seed in 0..10 {
        let spec = spec(seed);
        let workload = Workload::new(spec).unwrap();
        let Some(crashed) = workload.with_blocks_under_way(workload.records() * 9 / 10, seed) else { continue };
        let before = workload.crash(Stop::After(crashed.truth.records), Flush::None);
        let records = read::records(&crashed.log.1, true);
        assert_eq!(records.len(), read::records(&before.log.1, true).len());
        prove_redo(&spec, &crashed);
    }
}

/// The initial rows with all commits up to the end of a backup must give the rows at the end of this backup.
fn assert_commits(chain: &Chain) {
    let mut rows: Vec<BTreeSet<Values>> =
        chain.tables.iter().map(|table| table.rows.iter().cloned().collect()).collect();
    let mut commits = chain.commits.iter().peekable();
    assert!(chain.commits.is_sorted_by_key(|commit| (&commit.time, &commit.lsn)));
    for set in &chain.sets {
        while let Some(commit) = commits.next_if(|commit| commit.lsn < set.lsns.1) {
            for change in &commit.changes {
                assert!(change.before.as_ref().is_none_or(|row| rows[change.table].remove(row)));
                assert!(change.after.clone().is_none_or(|row| rows[change.table].insert(row)));
            }
        }
        for table in &set.truth.tables {
            let number = chain.tables.iter().position(|other| other.name == table.name).unwrap();
            let at_end: BTreeSet<Values> = table.rows.iter().cloned().collect();
            assert!(rows[number] == at_end, "{:?}: {}", set.files, table.name);
        }
    }
}

#[test]
fn virtual_log_files_without_room_for_the_largest_block_are_refused() {
    for vlf_bytes in [0, 0x2000, 0x10000, 0x10E00, 0x11001] {
        let refused = Workload::new(Spec { vlf_bytes, ..spec(1) }).map(|_| ());
        assert!(matches!(refused, Err(crate::LabError::Description(_))), "{vlf_bytes}");
    }
    let chain = Workload::new(Spec { vlf_bytes: 0x11000, ..spec(1) }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    chain.chain(&[SetKind::Full, SetKind::Log], ChainOptions::default(), folder.path()).unwrap();
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_chain_of_backups_leads_to_the_truth_at_the_end_of_each() {
    for seed in 0..8 {
        prove_chain(Spec { transactions: 200, vlf_bytes: 0x22000, ..spec(seed) });
    }
}

#[test]
fn a_chain_with_ddl_leads_to_the_truth_at_the_end_of_each_backup() {
    prove_chain(Spec { transactions: 100, ddl_each: 3, ..spec(2) });
}

#[test]
#[ignore = "full tier: takes seconds"]
fn many_chains_with_ddl_lead_to_the_truth_at_the_end_of_each_backup() {
    for seed in 0..16 {
        prove_chain(Spec { transactions: 200, ddl_each: 1 + seed % 6, vlf_bytes: 0x22000, ..spec(seed) });
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_log_of_ddl_leads_to_the_truth_at_any_moment() {
    for seed in 0..6 {
        let workload = Workload::new(Spec { transactions: 20, ddl_each: 3, ..spec(seed) }).unwrap();
        for records in (10..workload.records()).step_by(97) {
            let crashed = workload.crash(Stop::After(records), Flush::Some(seed + records));
            prove_redo(&workload.spec, &crashed);
        }
    }
}

/// A restore up to any backup gives the true state at the end of this backup. The restore uses the pages of the newest
/// full backup and of the newest differential backup after it, and the log records of all sets from the checkpoint on.
fn prove_chain(spec: Spec) {
    use SetKind::{Differential, Full, Log};
    let seed = spec.seed;
    let folder = tempfile::tempdir().unwrap();
    let kinds = [Full, Log, Log, Differential, Log, Full, Log, Differential, Log];
    let options = ChainOptions { checksum: seed.is_multiple_of(2), ..ChainOptions::default() };
    let chain = Workload::new(spec).unwrap().chain(&kinds, options, folder.path()).unwrap();
    assert_commits(&chain);
    let chain = chain.sets;
    let sets: Vec<_> = chain.iter().map(|set| restore::open(&set.files[0])).collect();
    let mut reached = None;
    for (at, (set, made)) in sets.iter().zip(&chain).enumerate() {
        let letter = [b'D', b'I', b'L'][made.kind as usize];
        assert_eq!((set.letter, set.lsns[2].to_string()), (letter, made.lsns.1.clone()));
        if made.kind == Log {
            assert!(reached.is_none_or(|reached| reached == set.lsns[0]), "log backups follow each other");
            reached = Some(set.lsns[2]);
        }
        let full = kinds[..=at].iter().rposition(|&kind| kind == Full).unwrap();
        let newest = (full..=at).rev().find(|&number| kinds[number] != Log).unwrap();
        let blank = vec![("pages".to_owned(), vec![0; made.truth.redone[0].1.len()])];
        let mut pages = Pages::new(&blank, spec.verify);
        for (id, page) in sets[full].pages.iter().chain(&sets[newest].pages) {
            pages.put(*id, page);
        }
        let start = sets[newest].lsns[1];
        let mut records: Vec<_> = sets[..=at].iter().flat_map(|set| &set.records).collect();
        records.sort_by_key(|record| record.lsn);
        records.dedup_by_key(|record| record.lsn);
        records.into_iter().filter(|record| record.lsn >= start).for_each(|record| pages.redo(record));
        let truth = &made.truth.redone[0].1;
        for (page, truth_of_page) in (0..).zip(truth.chunks_exact(PAGE)) {
            // Two differences are allowed. Backups do not contain the content of free pages, and the checkpoint on
            // the boot page (page 9) is not logged.
            let is_allocated = truth[PAGE + 100 + page as usize] & ALLOCATED != 0;
            let same = || pages.bytes(PageId::new(1, page))[..] == *truth_of_page;
            assert!(page == 9 || !is_allocated || same(), "seed {seed} set {at}: page {page}");
        }
    }
}

/// When the log does not fit into its VLFs, the VLFs are used again from the first one on, with the other parity.
#[test]
#[ignore = "full tier: takes seconds"]
fn virtual_log_files_are_used_again() {
    let spec = Spec { transactions: 2_500, vlf_bytes: 0x22000, rows: 60, ..Spec::default() };
    let crashed = Workload::new(spec).unwrap().crash(Stop::WithoutOpen, Flush::None);
    let log = &crashed.log.1;
    let parities: BTreeSet<u8> = (8192..log.len()).step_by(0x22000).map(|at| log[at + 1]).collect();
    assert!(parities.contains(&0x80), "{parities:?}");
    prove_redo(&spec, &crashed);
}

/// A lost write counts as "in the log" exactly if reading the log finds the last record of the page. VLFs are not
/// always used again in order, and log in VLFs before a gap in the sequence numbers no longer belongs to the current
/// log.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_lost_write_is_in_the_log_if_the_log_has_its_record() {
    let (mut inside, mut gone, mut before_a_gap) = (0, 0, 0);
    for seed in 0..120 {
        let spec = Spec { seed: seed % 80, ..Spec::default() };
        let Some((crashed, lost)) = Workload::new(spec).unwrap().with_lost_write(Stop::WithOpen, None, seed) else {
            continue;
        };
        let records = read::records(&crashed.log.1, true);
        let page = |record: &read::Record| {
            let (page, file) = (read::long(&record.bytes, 0x18), read::word(&record.bytes, 0x1C));
            PageId::new(file, page)
        };
        let has_it = records.iter().any(|record| record.lsn.to_string() == lost.last && page(record) == lost.page);
        assert_eq!(lost.is_in_log, has_it, "{seed} {lost:?}");
        if has_it {
            inside += 1
        } else {
            gone += 1
        }
        let oldest_on_disk = (8192..crashed.log.1.len()).step_by(0x3E000).map(|at| read::long(&crashed.log.1, at + 4));
        let oldest_on_disk = oldest_on_disk.filter(|&sequence| sequence > 0).min();
        before_a_gap += u32::from(oldest_on_disk.is_some_and(|oldest| oldest < records[0].lsn.0));
    }
    assert!(inside > 20 && gone > 20 && before_a_gap > 0, "{inside} {gone} {before_a_gap}");
}

/// The log contains each operation that the format documentation describes, several times.
#[test]
#[ignore = "full tier: takes seconds"]
fn the_log_has_records_of_each_kind() {
    let mut kinds = BTreeSet::new();
    for seed in 0..6 {
        let spec = Spec { transactions: 500, rows: [20, 300][seed as usize % 2], vlfs: 80, ..spec(seed) };
        let crashed = Workload::new(spec).unwrap().crash(Stop::WithoutOpen, Flush::Some(seed));
        for record in read::records(&crashed.log.1, true) {
            kinds.insert((record.operation(), read::word(&record.bytes, 0x0E) & 1 == 1));
        }
    }
    let (forward, back) = (false, true);
    let wanted = [
        ((1, 1), forward),
        ((1, 2), forward),
        ((1, 3), forward),
        ((2, 1), forward),
        ((2, 2), forward),
        ((2, 2), back),
        ((2, 3), forward),
        ((2, 3), back),
        ((2, 4), forward),
        ((3, 1), forward),
        ((3, 1), back),
        ((3, 19), forward),
        ((3, 19), back),
        ((4, 1), forward),
        ((4, 1), back),
        ((4, 2), forward),
        ((4, 2), back),
        ((4, 11), forward),
        ((4, 11), back),
        ((1, 5), forward),
        ((2, 5), forward),
        ((3, 5), forward),
        ((3, 5), back),
        ((4, 5), forward),
        ((4, 5), back),
        ((7, 8), back),
        ((7, 10), back),
        ((5, 1), forward),
        ((5, 3), forward),
        ((6, 1), forward),
        ((6, 2), forward),
        ((6, 2), back),
        ((7, 8), forward),
        ((7, 10), forward),
        ((7, 11), forward),
        ((7, 24), forward),
        ((10, 11), forward),
        ((11, 2), forward),
        ((13, 2), forward),
        ((13, 3), forward),
        ((1, 4), forward),
        ((1, 6), forward),
        ((1, 10), forward),
        ((2, 6), forward),
        ((3, 6), back),
        ((4, 6), forward),
        ((4, 6), back),
        ((18, 2), forward),
        ((19, 2), forward),
        ((22, 2), forward),
        ((128, 0), forward),
        ((129, 0), forward),
        ((130, 0), forward),
        ((131, 0), forward),
        ((150, 0), forward),
        ((176, 0), forward),
        ((152, 0), forward),
        ((152, 23), forward),
        ((153, 0), forward),
    ];
    let missing: Vec<_> = wanted.iter().filter(|kind| !kinds.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
