//! Tests the audit with lab databases that have lost writes, changed bytes, or a log from another point in time.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ops::Range;

use findings::{LogAudit, LogAuditDoubtKind};
use format::PageId;
use lab::PageVerify;
use lab::workload::{Flush, LostWrite, Spec, Stop, Workload};

use crate::common::{audit, audit_within, found, on_disk, texts};

const STOPS: [Stop; 3] = [Stop::WithOpen, Stop::WithoutOpen, Stop::ShutDown];

#[test]
#[ignore = "full tier: takes seconds"]
fn a_crash_is_no_contradiction() {
    let compared = pages_compared_after_a_crash(0..4);
    assert!(compared > 400, "{compared}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_crash_is_no_contradiction_in_many_databases() {
    let compared = pages_compared_after_a_crash(0..40);
    assert!(compared > 5_000, "{compared}");
}

fn pages_compared_after_a_crash(seeds: Range<u64>) -> u64 {
    let mut compared = 0;
    for seed in seeds {
        let workload = Workload::new(Spec { seed, ..Spec::default() }).unwrap();
        let stop = match seed % 4 {
            3 => Stop::After(workload.records() * (seed % 10) / 10),
            other => STOPS[other as usize],
        };
        for flush in [Flush::None, Flush::All, Flush::Some(seed)] {
            let audit = audit(&workload.crash(stop, flush));
            assert_eq!((texts(&audit), &audit.doubts), (Vec::new(), &Vec::new()), "{seed} {stop:?} {flush:?}");
            compared += audit.pages_compared;
        }
    }
    compared
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_log_in_several_files_is_no_contradiction_and_proves_lost_writes() {
    let (mut compared, mut in_log) = (0, 0);
    for seed in 0..60 {
        let spec = Spec { seed, log_files: 2 + (seed % 2) as u16, transactions: 120, ..Spec::default() };
        let workload = Workload::new(spec).unwrap();
        let audit_of_crash = audit(&workload.crash(STOPS[seed as usize % 3], Flush::Some(seed)));
        assert_eq!((texts(&audit_of_crash), &audit_of_crash.doubts), (Vec::new(), &Vec::new()), "{seed}");
        compared += audit_of_crash.pages_compared;
        let Some((crashed, lost)) = workload.with_lost_write(STOPS[seed as usize % 3], None, seed) else { continue };
        // The PFS page on disk may show the page as free although the deallocation is rolled back later. The audit does
        // not judge such a page.
        let is_allocated = crashed.files[0].1[8192 + 100 + lost.page.page as usize] & 0x40 != 0;
        if lost.is_in_log && is_allocated {
            let audit = audit(&crashed);
            in_log += u32::from(is_found(&audit, &lost));
        }
    }
    assert!(compared > 2_000 && in_log >= 20, "{compared} {in_log}");
}

fn page_of(lost: &LostWrite) -> PageId {
    PageId::new(lost.page.file, lost.page.page)
}

/// Whether the audit reports the lost write as a finding. If the log has only one record of the page, and that record
/// names a later LSN than the page has, no other record confirms the evidence. In this case the audit must report a
/// doubt instead.
fn is_found(audit: &LogAudit, lost: &LostWrite) -> bool {
    let page = page_of(lost);
    let doubts: Vec<_> = audit.doubts.iter().map(|doubt| (doubt.kind, doubt.scope.clone())).collect();
    let is_found = found(audit) == [(page, "log.lost-write")] && doubts.is_empty();
    let is_said = found(audit).is_empty() && doubts == [(LogAuditDoubtKind::LogRecord, format!("page {page}"))];
    assert!(is_found || is_said, "{lost:?} {:?} {doubts:?}", texts(audit));
    is_found
}

#[test]
fn a_lost_write_is_found_on_its_page() {
    let in_log = lost_writes_in_the_log(0..10);
    assert!(in_log >= 3, "{in_log}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_lost_write_is_found_on_its_page_in_many_databases() {
    let in_log = lost_writes_in_the_log(0..200);
    assert!(in_log >= 70, "{in_log}");
}

fn lost_writes_in_the_log(seeds: Range<u64>) -> u32 {
    let (mut in_log, mut older) = (0, 0);
    let mut kinds: BTreeMap<u8, u32> = BTreeMap::new();
    for seed in seeds {
        let workload = Workload::new(Spec { seed: seed % 80, ..Spec::default() }).unwrap();
        let wanted = [Some(1), Some(2), Some(3), Some(8), Some(9), Some(10), Some(11), Some(16), Some(17), None];
        let Some((crashed, lost)) =
            workload.with_lost_write(STOPS[seed as usize % 3], wanted[seed as usize % 10], seed)
        else {
            continue;
        };
        let page = page_of(&lost);
        let audit = audit(&crashed);
        if lost.is_in_log {
            if !is_found(&audit, &lost) {
                continue;
            }
            in_log += 1;
            *kinds.entry(lost.page_type).or_default() += 1;
        } else {
            assert!(found(&audit).iter().all(|(other, _)| *other == page), "{seed} {lost:?} {:?}", texts(&audit));
            older += 1;
        }
    }
    println!("{in_log} lost writes by page type {kinds:?}, {older} without a record in the log");
    in_log
}

#[test]
#[ignore = "full tier: takes seconds"]
fn memory_decides_how_often_the_log_is_read_not_what_is_found() {
    for seed in 0..10 {
        let workload = Workload::new(Spec { seed, rows: 3000, ..Spec::default() }).unwrap();
        let Some((crashed, _)) = workload.with_lost_write(Stop::WithOpen, None, seed) else { continue };
        let files = on_disk(&crashed);
        let all = audit_within(&files, 64 << 20).unwrap();
        assert_eq!(audit_within(&files, 0).unwrap(), all, "{seed}");
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn logs_without_checksums_prove_what_their_links_prove() {
    let (mut proven, mut doubted) = (0, 0);
    for seed in 0..60 {
        let workload = Workload::new(Spec { seed, verify: PageVerify::None, ..Spec::default() }).unwrap();
        let Some((crashed, lost)) = workload.with_lost_write(Stop::WithOpen, None, seed) else { continue };
        let audit = audit(&crashed);
        if lost.is_in_log {
            // In a block without a checksum, damage is not noticed, so a record may name the wrong page. Therefore a
            // doubt is permitted instead of the finding.
            match audit.doubts.as_slice() {
                [] => assert_eq!(found(&audit), [(page_of(&lost), "log.lost-write")], "{seed} {lost:?}"),
                [doubt] => assert_eq!(doubt.kind, LogAuditDoubtKind::LogUnprotected, "{seed} {lost:?}"),
                more => panic!("{seed} {lost:?} {more:?}"),
            }
            proven += usize::from(audit.doubts.is_empty());
            doubted += audit.doubts.len();
        }
    }
    assert!(proven > 20 && doubted < proven / 5, "{proven} {doubted}");
}
