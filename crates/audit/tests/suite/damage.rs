//! Tests the audit with changed pages whose checksum is correct, with pages newer than the log, and with changed logs.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};

use findings::{LogAudit, LogAuditDoubtKind};
use format::log::{Block, LogRecord, Operation, SECTOR_BYTES, block};
use format::page::PAGE_BYTES;
use format::protection::{self, PROTECTION_WORD};
use format::{Lsn, Page, PageBytes, PageId};
use lab::PageVerify;
use lab::workload::{Crashed, Flush, Spec, Stop, Workload};
use log::{Log, Walk};

use crate::common::{OnDisk, audit, found, on_disk, texts};

/// A small random number generator for damage.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

fn dice(seed: u64) -> Dice {
    Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
}

/// A copy of the last log record of each page with its LSN, and the LSN of the last record of the log.
fn last_records(files: &OnDisk) -> (BTreeMap<PageId, (Lsn, Vec<u8>)>, Lsn) {
    let log = Log::open(std::slice::from_ref(&files.log)).unwrap();
    let (mut walk, mut last, mut end) = (Walk::new(&log), BTreeMap::new(), Lsn::default());
    while let Some(block) = walk.next_block().unwrap() {
        for (lsn, record) in block.records() {
            end = lsn;
            if let Some(place) = record.on_page() {
                last.insert(place.page, (lsn, record.bytes().to_vec()));
            }
        }
    }
    (last, end)
}

fn page_at(crashed: &mut Crashed, page: PageId) -> &mut PageBytes {
    // The lab's first data file has ID 1, and further data files have IDs from 3 on.
    let file = if page.file == 1 { 0 } else { usize::from(page.file) - 2 };
    let at = page.page as usize * PAGE_BYTES;
    crashed.files[file].1[at..].first_chunk_mut().unwrap()
}

/// Whether a page is allocated according to the first PFS page of its file.
fn is_allocated(crashed: &mut Crashed, page: PageId) -> bool {
    page_at(crashed, PageId::new(page.file, 1))[100 + page.page as usize] & 0x40 != 0
}

fn seal(bytes: &mut PageBytes) {
    let sum = protection::checksum(bytes);
    bytes[PROTECTION_WORD..PROTECTION_WORD + 4].copy_from_slice(&sum.to_le_bytes());
}

fn workload(seed: u64, verify: PageVerify) -> Workload {
    Workload::new(Spec { seed, verify, transactions: 40, ..Spec::default() }).unwrap()
}

#[test]
#[ignore = "full tier: takes seconds"]
fn changed_bytes_of_the_last_record_are_found_on_their_page() {
    let (mut trials, mut kinds) = (0, BTreeMap::<u8, u32>::new());
    for seed in 0..30 {
        let crashed = workload(seed, PageVerify::Checksum).crash(Stop::WithOpen, Flush::All);
        let (last, _) = last_records(&on_disk(&crashed));
        let mut dice = dice(seed);
        let on_page = last.iter().filter_map(|(page, (lsn, bytes))| {
            let record = LogRecord::new(bytes);
            let place = record.on_page()?;
            let mut copy = crashed.clone();
            let header = *Page::new(page_at(&mut copy, *page)).header();
            let image = record.elements().nth(usize::from(record.operation() == Operation::MODIFY_ROW))?;
            let offset = match record.operation() {
                Operation::INSERT_ROWS if place.rowset != 0 => 0,
                Operation::MODIFY_ROW => usize::from(u16::from_le_bytes([bytes[0x38], bytes[0x39]])),
                _ => return None,
            };
            let is_kept = header.lsn() == *lsn
                && is_allocated(&mut copy, *page)
                && !image.is_empty()
                && (1..=6).contains(&record.context());
            is_kept.then_some((*page, header.page_type, place.slot, offset, image.len()))
        });
        let on_page: Vec<_> = on_page.collect();
        for _ in 0..5 {
            let (page, kind, slot, offset, length) = on_page[dice.below(on_page.len())];
            let mut changed = crashed.clone();
            let bytes = page_at(&mut changed, page);
            let start = usize::from(Page::new(bytes).slot_offset(slot).unwrap()) + offset;
            // The audit does not compare the status of a row, the length of a LOB row, or the padding for a forwarding
            // stub.
            let from = 4usize.saturating_sub(offset);
            if from >= length || offset == 0 && length <= 9 {
                continue;
            }
            bytes[start + from + dice.below(length - from)] ^= 1 << dice.below(8);
            seal(bytes);
            let audit = audit(&changed);
            assert_eq!(
                found(&audit),
                [(page, "log.image-differs")],
                "{seed} {kind} {:?} {:?}",
                texts(&audit),
                audit.doubts
            );
            trials += 1;
            *kinds.entry(kind).or_default() += 1;
        }
    }
    println!("{trials} changed images by page type {kinds:?}");
    assert!(trials >= 100, "{trials}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn pages_of_the_future_leave_the_end_of_the_log_in_doubt() {
    let mut trials = 0;
    for seed in 0..40 {
        let crashed = workload(seed, PageVerify::Checksum).crash(Stop::ShutDown, Flush::All);
        let (last, end) = last_records(&on_disk(&crashed));
        let mut dice = dice(seed);
        let pages: Vec<PageId> = last.keys().copied().filter(|page| *page != PageId::BOOT && page.page != 0).collect();
        for _ in 0..3 {
            let page = pages[dice.below(pages.len())];
            let mut changed = crashed.clone();
            let is_allocated = is_allocated(&mut changed, page);
            let bytes = page_at(&mut changed, page);
            let future =
                Lsn { vlf: end.vlf + dice.below(2) as u32, block: end.block + 8 + dice.below(1000) as u32, slot: 3 };
            bytes[40..44].copy_from_slice(&future.vlf.to_le_bytes());
            bytes[44..48].copy_from_slice(&future.block.to_le_bytes());
            bytes[48..50].copy_from_slice(&future.slot.to_le_bytes());
            seal(bytes);
            let audit = audit(&changed);
            if is_allocated || page.page < 8 {
                // The end of the log may be missing, so a page that is newer than the log may still be sound.
                let doubts: Vec<_> = audit.doubts.iter().map(|doubt| (doubt.kind, doubt.scope.clone())).collect();
                let expected = [(LogAuditDoubtKind::LogEnd, format!("page {page}"))];
                assert_eq!((found(&audit), doubts.as_slice()), (Vec::new(), expected.as_slice()), "{seed}");
                trials += 1;
            }
        }
    }
    assert!(trials >= 80, "{trials}");
}

/// Gives a page an LSN that belongs to no record: an LSN between two records of the page, or after its last record. The
/// audit must report that the chain of the page is broken.
#[test]
#[ignore = "full tier: takes seconds"]
fn pages_whose_lsn_no_record_has_break_their_chain() {
    let mut trials = 0;
    for seed in 0..20 {
        let crashed = workload(seed, PageVerify::Checksum).crash(Stop::ShutDown, Flush::All);
        let (last, end) = last_records(&on_disk(&crashed));
        let mut dice = dice(seed);
        let is_plain = |page: &PageId| page.page > 9 && is_allocated(&mut crashed.clone(), *page);
        let pages: Vec<PageId> = last.keys().copied().filter(is_plain).collect();
        let page = pages[dice.below(pages.len())];
        let mut changed = crashed.clone();
        let bytes = page_at(&mut changed, page);
        let lsn = last[&page].0;
        // No log block has that many records, so no record has the changed LSN.
        let slot: u16 = 60_000;
        bytes[48..50].copy_from_slice(&slot.to_le_bytes());
        seal(bytes);
        if (Lsn { slot, ..lsn }) >= end {
            continue;
        }
        let audit = audit(&changed);
        assert_eq!(found(&audit), [(page, "log.chain-broken")], "{seed} {:?} {:?}", texts(&audit), audit.doubts);
        trials += 1;
    }
    assert!(trials >= 15, "{trials}");
}

/// The audit does not compare damaged pages: it reports only their number, because the check reports the damage.
#[test]
fn damaged_pages_that_the_log_changes_are_not_compared() {
    let crashed = workload(1, PageVerify::Checksum).crash(Stop::ShutDown, Flush::All);
    let (last, _) = last_records(&on_disk(&crashed));
    let page = *last.keys().find(|page| page.page > 9 && is_allocated(&mut crashed.clone(), **page)).unwrap();
    let mut changed = crashed;
    page_at(&mut changed, page)[5000] ^= 1;
    let audit = audit(&changed);
    let doubts: Vec<_> = audit.doubts.iter().map(|doubt| (doubt.kind, doubt.count)).collect();
    assert_eq!((texts(&audit), doubts), (Vec::new(), vec![(LogAuditDoubtKind::Pages, 1)]));
}

/// Changes bytes of the log, but of no page. If the changed block has a checksum, the checksum is then wrong, and the
/// audit does not read the block. In a block without a checksum, a record counts as evidence against a page only if
/// another record confirms it.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_damaged_log_accuses_no_page() {
    let (mut refused, mut doubted, mut sound) = (0, 0, 0);
    for (seed, verify) in
        [(1, PageVerify::None), (2, PageVerify::None), (3, PageVerify::Checksum), (4, PageVerify::Checksum)]
    {
        for stop in [Stop::WithOpen, Stop::ShutDown] {
            let crashed = workload(seed, verify).crash(stop, Flush::Some(seed));
            let files = on_disk(&crashed);
            let used = crashed.log.1.iter().rposition(|byte| *byte != 0).unwrap();
            let mut dice = dice(seed);
            for round in 0..60 {
                let mut bytes = crashed.log.1.clone();
                for _ in 0..=round % 3 {
                    let at = 0x2000 + dice.below(used - 0x2000);
                    match round % 4 {
                        0 | 1 => bytes[at] ^= 1 << dice.below(8),
                        2 => bytes[at] = dice.below(256) as u8,
                        _ => bytes[at / 512 * 512..][..512].fill(dice.below(256) as u8),
                    }
                }
                if round % 11 == 0 {
                    bytes.truncate(0x4000 + dice.below(used - 0x4000));
                }
                std::fs::write(&files.log, &bytes).unwrap();
                match crate::common::audit_within(&files, 64 << 20) {
                    Err(_) => refused += 1,
                    Ok(audit) => {
                        assert_eq!(texts(&audit), Vec::<String>::new(), "{seed} {stop:?} {round} {:?}", audit.doubts);
                        if audit.doubts.is_empty() { sound += 1 } else { doubted += 1 }
                    }
                }
            }
        }
    }
    println!("{refused} refused, {doubted} with doubts, {sound} without");
    assert!(refused > 20 && doubted > 100 && sound > 50, "{refused} {doubted} {sound}");
}

/// All log records that concern pages, in the VLF that starts at offset `vlf`. For each record: the offset and size of
/// its block, its offset in the block, and the page.
fn page_records(log: &[u8], vlf: usize) -> Vec<(usize, usize, usize, PageId)> {
    let (mut at, mut all) = (vlf + PAGE_BYTES, Vec::new());
    while let Some(size) = block::size_on_disk(&log[at..]).filter(|size| at + size <= log.len()) {
        let mut restored = log[at..at + size].to_vec();
        let base = restored.as_ptr() as usize;
        let Ok(block) = Block::restore(&mut restored) else { break };
        for (_, record) in block.records() {
            // Skips records that format a page: they need no confirmation.
            if let Some(place) = record.on_page().filter(|_| record.operation() != Operation::FORMAT_PAGE) {
                all.push((at, size, record.bytes().as_ptr() as usize - base, place.page));
            }
        }
        at += size;
    }
    all
}

/// Changes the page that a log record names, and recomputes the block's checksum. Returns `false` if the page number
/// overlaps a status byte of a sector.
fn forge(log: &mut [u8], (at, size, record, _): (usize, usize, usize, PageId), page: PageId) -> bool {
    /// Offset of the page address in a log record.
    const PAGE: usize = 0x18;
    const CHECKSUM: usize = 0x18;
    let block = &mut log[at..at + size];
    let (start, end) = (record + PAGE, record + PAGE + 6);
    if (start..end).any(|at| at % SECTOR_BYTES == 0) {
        return false;
    }
    block[start..start + 4].copy_from_slice(&page.page.to_le_bytes());
    block[start + 4..end].copy_from_slice(&page.file.to_le_bytes());
    block[CHECKSUM..CHECKSUM + 4].fill(0);
    let sum = protection::sectors_sum(0, block);
    block[CHECKSUM..CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
    true
}

/// Changes one record so that the record names a page that it does not concern. The checksum of the changed block is
/// correct. The audit must not report a finding about the named page.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_record_that_names_another_page_accuses_none() {
    let (mut trials, mut doubted) = (0, 0);
    for seed in 0..12 {
        let crashed = workload(seed, PageVerify::Checksum).crash(Stop::ShutDown, Flush::All);
        let files = on_disk(&crashed);
        let mut dice = dice(seed);
        let records: Vec<_> = page_records(&crashed.log.1, PAGE_BYTES);
        let pages: Vec<PageId> = records.iter().map(|(.., page)| *page).filter(|page| page.page > 9).collect();
        for _ in 0..12 {
            let record = records[dice.below(records.len())];
            let page = pages[dice.below(pages.len())];
            let mut log = crashed.log.1.clone();
            if record.3 == page || record.3.page <= 9 || !forge(&mut log, record, page) {
                continue;
            }
            std::fs::write(&files.log, &log).unwrap();
            let audit = crate::common::audit_within(&files, 64 << 20).unwrap();
            let accused: Vec<_> = found(&audit).into_iter().filter(|(found, _)| *found == page).collect();
            assert_eq!(accused, [], "{seed} {record:?} {page} {:?}", texts(&audit));
            trials += 1;
            doubted += u32::from(!audit.doubts.is_empty());
        }
    }
    println!("{trials} records that name another page, {doubted} with doubts");
    assert!(trials > 60 && doubted > 10, "{trials} {doubted}");
}

/// Even with a damaged log, the audit finds a page that lost a write, or reports the damage of the log.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_damaged_log_is_never_silent_about_a_lost_write() {
    let (mut found_again, mut said) = (0, 0);
    for seed in 0..20 {
        let Some((crashed, lost)) = workload(seed, PageVerify::Checksum).with_lost_write(Stop::ShutDown, None, seed)
        else {
            continue;
        };
        let whole: BTreeSet<_> = found(&audit(&crashed)).into_iter().collect();
        if whole.is_empty() {
            continue;
        }
        let files = on_disk(&crashed);
        let used = crashed.log.1.iter().rposition(|byte| *byte != 0).unwrap();
        let mut dice = dice(seed);
        for _ in 0..5 {
            let mut bytes = crashed.log.1.clone();
            bytes[0x4000 + dice.below(used - 0x4000)] ^= 0x11;
            std::fs::write(&files.log, &bytes).unwrap();
            let Ok(audit) = crate::common::audit_within(&files, 64 << 20) else { continue };
            let again: BTreeSet<_> = found(&audit).into_iter().collect();
            assert!(again.is_subset(&whole), "{seed} {lost:?} {:?}", texts(&audit));
            match again == whole {
                true => found_again += 1,
                false => {
                    assert!(is_said(&audit), "{seed} {lost:?}");
                    said += 1;
                }
            }
        }
    }
    assert!(found_again > 10 && said > 0, "{found_again} {said}");
}

fn is_said(audit: &LogAudit) -> bool {
    !audit.doubts.is_empty()
}
