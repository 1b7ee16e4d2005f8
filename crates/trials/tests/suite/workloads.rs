//! Databases of lab workloads must be sound: after a shutdown without recovery, and after a crash with recovery. The
//! log of each database can be read to its last record.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use check::Silent;
use findings::{Options, Report};
use lab::workload::{Crashed, Flush, Spec, Stop, Workload};
use lab::{PageVerify, Version};
use log::{Event, History, Log, Outcome, Walk};
use source::MemoryFiles;
use trials::in_use;
use trials::mutate::Random;

/// The number of seeds for each kind of run; MDFSCK_WORKLOADS overrides it.
fn seeds() -> u64 {
    std::env::var("MDFSCK_WORKLOADS").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

fn spec(seed: u64) -> Spec {
    let versions = [Version::V706, Version::V852, Version::V904, Version::V957];
    let verify = [PageVerify::Checksum, PageVerify::Checksum, PageVerify::Torn, PageVerify::None];
    Spec {
        version: versions[seed as usize % 4],
        verify: verify[seed as usize / 4 % 4],
        seed,
        rows: [300, 20, 900, 60][seed as usize / 3 % 4],
        transactions: 20 + seed % 150,
        ..Spec::default()
    }
}

fn check(files: &[(String, Vec<u8>)]) -> Report {
    let files = files.iter().map(|(name, bytes)| (PathBuf::from(name), bytes.clone())).collect();
    let source = MemoryFiles::open(files).unwrap();
    let database = catalog::load(&source);
    assert!(database.gaps.is_empty(), "{:?}", database.gaps);
    check::run(&source, &database, &Options { max_threads: 1, ..Options::default() }, &Silent)
}

fn prove_sound(files: &[(String, Vec<u8>)], crashed: &Crashed, what: &str) {
    let report = check(files);
    let findings: Vec<String> = report.findings.iter().take(5).map(|finding| finding.text(&report.names())).collect();
    assert!(findings.is_empty(), "{what}: {findings:#?}");
    for table in &crashed.truth.tables {
        let parts = report.rowsets.iter().filter(|rowset| rowset.name == table.name && rowset.index_id < 2);
        assert_eq!(parts.map(|rowset| rowset.rows).sum::<u64>(), table.rows.len() as u64, "{what}: {}", table.name);
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_database_that_was_shut_down_is_sound() {
    for seed in 0..seeds() {
        let crashed = Workload::new(spec(seed)).unwrap().crash(Stop::ShutDown, Flush::None);
        assert!(
            crashed.files == crashed.truth.files && crashed.truth.open.is_empty() && crashed.truth.missing.is_empty()
        );
        prove_sound(&crashed.files, &crashed, &format!("{:?}", spec(seed)));
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_truth_after_a_crash_is_sound_wherever_it_happens() {
    for seed in 0..seeds() {
        let workload = Workload::new(spec(seed)).unwrap();
        let records = workload.records();
        for part in 1..6 {
            let stop = Stop::After(records * part / 6 + seed % 7);
            let crashed = workload.crash(stop, Flush::Some(seed + part));
            assert_eq!(Stop::After(crashed.truth.records), stop);
            prove_sound(&crashed.truth.files, &crashed, &format!("{:?} {stop:?} {:?}", spec(seed), crashed.truth.open));
        }
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_truth_is_sound_where_the_creator_of_an_allocation_chain_is_taken_back() {
    let mut found = 0;
    for seed in 0..4 {
        let workload = Workload::new(spec(seed)).unwrap();
        for records in (20..500).step_by(20) {
            let crashed = workload.crash(Stop::After(records), Flush::All);
            if crashed.truth.open.iter().any(|open| open.creates_chain) {
                prove_sound(&crashed.truth.files, &crashed, &format!("{:?} {records}", spec(seed)));
                found += 1;
            }
        }
    }
    assert!(found > 0);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_log_is_read_to_the_last_record() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..seeds() {
        let workload = Workload::new(spec(seed)).unwrap();
        let stop = Stop::After(workload.records() * (1 + seed % 5) / 5);
        let crashed = workload.crash(stop, Flush::Some(seed));
        let path = folder.path().join(format!("{seed}.ldf"));
        std::fs::write(&path, &crashed.log.1).unwrap();
        let log = Log::open(&[path]).unwrap();
        let (mut walk, mut history, mut open) = (Walk::new(&log), History::new(), Vec::new());
        let mut note = |event: Event| {
            if let Event::Transaction(transaction) = event
                && transaction.outcome == Outcome::Open
            {
                open.push(transaction.id);
            }
        };
        while let Some(block) = walk.next_block().unwrap() {
            history.block(&block, &mut note);
        }
        history.finish(&mut note);
        let end = walk.end().unwrap();
        let lsn = format!("{:08x}:{:08x}:0001", end.at.vlf.sequence, end.block);
        assert_eq!(lsn, crashed.truth.end, "{seed}: {end:?}");
        assert_eq!(open.len(), crashed.truth.open.len(), "{seed}: {open:?} {:?}", crashed.truth.open);
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_page_that_an_older_log_gives_back_and_that_was_used_again_later_keeps_that_log_out() {
    // With this seed, an open transaction has freed page (1:658) at the end of the older log. In the data files,
    // another transaction has used the page again.
    let mut random = Random::new(73_147);
    let workload = in_use::workload(in_use::spec(&mut random, 120));
    assert!(random.below(4) == 2 && random.below(6) == 0);
    let crashed = workload.crash(Stop::WithOpen, Flush::None);
    let stop = Stop::After(1 + random.below(workload.records() as usize) as u64);
    let older = workload.crash(stop, Flush::None).log.1;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("older.ldf");
    std::fs::write(&path, older).unwrap();
    let source = in_use::in_memory(&crashed.files);
    for grant in [64 << 20, 1 << 12] {
        let refusal = in_use::recover(&source, &path, grant).err().unwrap();
        assert!(refusal.starts_with("page (1:658) is newer than the log"), "{refusal}");
    }
}

/// Returns a crashed database, and the log of another database with the same LSNs. The campaign `logs` uses this
/// database and this log in the trial with this number.
fn crashed_and_foreign(number: u64) -> (Crashed, Vec<u8>) {
    let mut random = Random::new(number);
    let spec = in_use::spec(&mut random, 40);
    let workload = in_use::workload(spec);
    let stop = if random.below(2) == 0 { Stop::WithOpen } else { Stop::WithoutOpen };
    let crashed = workload.crash(stop, Flush::Some(random.number()));
    let other = in_use::workload(Spec { seed: spec.seed.wrapping_add(50), ..spec });
    let foreign = other.crash(Stop::WithOpen, Flush::None).log.1;
    (crashed, foreign)
}

/// Recovers a crashed database with the log `log`. Returns two results: the reason why recovery is in doubt or was
/// refused, and the findings of a check of the recovered database.
fn recovered_with(crashed: &Crashed, log: &[u8]) -> (Option<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.ldf");
    std::fs::write(&path, log).unwrap();
    let source = in_use::in_memory(&crashed.files);
    let recovered = match in_use::recover(&source, &path, 64 << 20) {
        Ok(recovered) => recovered,
        Err(refusal) => return (Some(refusal), Vec::new()),
    };
    let report = check::run(&recovered.pages, &catalog::load(&recovered.pages), &Options::default(), &Silent);
    (recovered.doubt(), report.findings.iter().map(|finding| finding.text(&report.names())).collect())
}

/// The test keeps only the header page of a log, and replaces everything after it by the log of another database. Both
/// logs have the same LSNs.
#[test]
#[ignore = "full tier: takes seconds"]
fn pages_that_a_log_of_another_copy_changes_prove_nothing() {
    let (crashed, foreign) = crashed_and_foreign(203_572);
    let mixed = [&crashed.log.1[..8192], &foreign[8192..]].concat();
    let (doubt, findings) = recovered_with(&crashed, &mixed);
    assert!(doubt.as_ref().is_some_and(|doubt| doubt.contains("does not belong to these files")), "{doubt:?}");
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn checkpoints_that_the_boot_page_does_not_know_leave_recovery_in_doubt() {
    let mut doubtful = 0;
    for seed in 0..seeds() {
        let mut random = Random::new(seed);
        let spec = Spec { has_checkpoints: true, ..in_use::spec(&mut random, 120) };
        let workload = in_use::workload(spec);
        let at = |parts: u64| workload.crash(Stop::After(workload.records() * parts / 8), Flush::All);
        let (early, late) = (at(2), at(8));
        assert_eq!(recovered_with(&late, &late.log.1), (None, Vec::new()), "{spec:?}");
        // Recovers the data files of the earlier point in time with the log of the later point in time.
        let (doubt, findings) = recovered_with(&early, &late.log.1);
        assert!(findings.is_empty(), "{spec:?}: {findings:#?}");
        doubtful += u64::from(doubt.is_some_and(|doubt| doubt.contains("several checkpoints")));
    }
    assert!(doubtful > 0);
}

/// The test replaces some blocks of a log by blocks from the log of another database. The replaced blocks and the new
/// blocks have the same LSNs.
#[test]
#[ignore = "full tier: takes seconds"]
fn records_that_do_not_continue_those_before_them_leave_recovery_in_doubt() {
    for (number, at) in [(400_094, 28_160), (400_279, 369_664)] {
        let (crashed, foreign) = crashed_and_foreign(number);
        let mut doubtful = 0;
        for end in (at..foreign.len()).step_by(512).skip(1).take(200) {
            let mixed = [&crashed.log.1[..at], &foreign[at..end], &crashed.log.1[end..]].concat();
            let (doubt, findings) = recovered_with(&crashed, &mixed);
            assert!(findings.is_empty(), "{number}: {end}: {findings:#?}");
            doubtful += u64::from(doubt.is_some_and(|doubt| doubt.contains("do not continue")));
        }
        assert!(doubtful > 0, "{number}");
    }
}

/// The log has a gap between the start of a transaction and the checkpoint that the boot page names. At this
/// checkpoint, the transaction was the oldest open transaction, so recovery reads the log from the start of this
/// transaction. Because of the gap, no record can be read.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_gap_between_the_oldest_open_transaction_and_the_checkpoint_keeps_the_log_out() {
    let (crashed, foreign) = crashed_and_foreign(500_479);
    let mut damaged = crashed.log.1.clone();
    damaged[139_264..241_664].copy_from_slice(&foreign[139_264..241_664]);
    let (doubt, findings) = recovered_with(&crashed, &damaged);
    assert!(doubt.as_ref().is_some_and(|doubt| doubt.contains("damaged")), "{doubt:?}");
    assert!(findings.is_empty(), "{findings:#?}");
}
