//! Tests each reason why the audit could not compare pages with the log. Also tests databases with several files.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use findings::registry::limits;
use findings::{LogAudit, LogAuditDoubtKind};
use format::page::PAGE_BYTES;
use format::protection::{self, PROTECTION_WORD};
use format::{Lsn, Page, PageBytes};
use lab::description::Filegroup;
use lab::in_use::leave_in_use;
use lab::workload::{Crashed, Flush, Spec, Stop, Workload};
use lab::{PageVerify, Version, orders};
use log::{Log, Walk};
use source::{DataFiles, ExtentSet, MemoryFiles, PageSource};

use crate::common::{OnDisk, audit_of, audit_within, on_disk, texts};

const GRANT: u64 = 64 << 20;
/// Offset of the LSN in a page.
const LSN: usize = 40;
/// Offset of the flags in the header of a log block.
const FLAGS: usize = 8;
const IS_ENCRYPTED: u8 = 4;
const HAS_CHECKSUM: u8 = 2;

/// A database that was in use: some changes are only in the log.
struct InUse {
    _folder: tempfile::TempDir,
    data: Vec<PathBuf>,
    log: PathBuf,
}

impl InUse {
    fn new(bytes: u64, files: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut description = orders::orders(Version::V904, 3, bytes);
        description.filegroups = vec![Filegroup { name: "PRIMARY".to_owned(), files }];
        let written = lab::write(&description, folder.path()).unwrap();
        let log = leave_in_use(&description, &written, 1, 1).unwrap().log;
        Self { _folder: folder, data: written.files, log }
    }

    fn audit(&self, data: &[PathBuf]) -> LogAudit {
        let source = DataFiles::open(data).unwrap();
        let log = Log::open(std::slice::from_ref(&self.log)).unwrap();
        audit::audit(&source, &catalog::load(&source), &log, GRANT).unwrap()
    }

    /// Copies the files in memory, applies `change` to the copies, and audits them.
    fn audit_changed(&self, change: impl FnOnce(&mut [Vec<u8>])) -> LogAudit {
        let mut bytes: Vec<Vec<u8>> = self.data.iter().map(|path| std::fs::read(path).unwrap()).collect();
        change(&mut bytes);
        let source = MemoryFiles::open(self.data.iter().cloned().zip(bytes).collect()).unwrap();
        let log = Log::open(std::slice::from_ref(&self.log)).unwrap();
        audit::audit(&source, &catalog::load(&source), &log, GRANT).unwrap()
    }
}

/// Gives a page an LSN after the end of the log.
fn set_in_the_future(file: &mut [u8], page: u32) {
    let bytes: &mut PageBytes = file[page as usize * PAGE_BYTES..].first_chunk_mut().unwrap();
    bytes[LSN..LSN + 10].copy_from_slice(&Lsn { vlf: 90_000, block: 16, slot: 1 }.bytes());
    let sum = protection::checksum(bytes);
    bytes[PROTECTION_WORD..PROTECTION_WORD + 4].copy_from_slice(&sum.to_le_bytes());
}

fn is_allocated(file: &[u8], page: u32) -> bool {
    const PFS_PAGES: u32 = 8088;
    let map = if page < PFS_PAGES { 1 } else { page / PFS_PAGES * PFS_PAGES };
    file[map as usize * PAGE_BYTES + 100 + (page % PFS_PAGES) as usize] & 0x40 != 0
}

fn doubts(audit: &LogAudit) -> Vec<(LogAuditDoubtKind, &str, u64)> {
    audit.doubts.iter().map(|doubt| (doubt.kind, doubt.scope.as_str(), doubt.count)).collect()
}

#[test]
fn pages_of_several_files_are_compared_and_found_each_in_its_file() {
    let database = InUse::new(9 << 20, 3);
    let all = database.audit(&database.data);
    assert_eq!((texts(&all), doubts(&all)), (Vec::new(), Vec::new()));
    let reversed: Vec<PathBuf> = database.data.iter().rev().cloned().collect();
    assert_eq!(database.audit(&reversed), all);
    // The lab's files have the IDs 1, 3 and 4, so `files[2]` is file 4.
    let changed = database.audit_changed(|files| {
        let page = (20..).find(|page| is_allocated(&files[2], *page)).unwrap();
        assert_eq!(page, 20, "extents are used from the front");
        set_in_the_future(&mut files[2], page);
    });
    assert_eq!((texts(&changed), doubts(&changed)), (Vec::new(), vec![(LogAuditDoubtKind::LogEnd, "page (4:20)", 1)]));
    // A missing file does not change the results for the other files.
    let without = database.audit(&database.data[..2]);
    let expected = [(LogAuditDoubtKind::FileNotGiven, "file 4", 0)];
    assert_eq!((texts(&without), doubts(&without).as_slice()), (Vec::new(), expected.as_slice()));
    assert!(without.pages_compared > 100 && without.pages_compared < all.pages_compared);
    let only_primary = database.audit(&database.data[..1]);
    assert_eq!(doubts(&only_primary).iter().map(|doubt| doubt.1).collect::<Vec<_>>(), ["file 3", "file 4"]);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn more_pages_than_are_listed_are_counted() {
    /// The number of suspects that the audit keeps.
    const LISTED: usize = 10_000;
    let database = InUse::new(90 << 20, 1);
    let mut changed_pages = 0;
    let audit = database.audit_changed(|files| {
        let pages = (files[0].len() / PAGE_BYTES) as u32;
        let is_plain = |page: &u32| page % 8088 > 8 && page % 511_232 > 9 && is_allocated(&files[0], *page);
        let pages: Vec<u32> = (24..pages).filter(is_plain).take(LISTED + 7).collect();
        changed_pages = pages.len();
        pages.into_iter().for_each(|page| set_in_the_future(&mut files[0], page));
    });
    assert_eq!(changed_pages, LISTED + 7, "the database is large enough");
    assert_eq!(texts(&audit), Vec::<String>::new());
    let listed = (LogAuditDoubtKind::LogEnd, "page (1:24), ...", LISTED as u64);
    assert_eq!(doubts(&audit), [listed, (LogAuditDoubtKind::More, "database", 7)]);
}

fn workload(verify: PageVerify) -> Crashed {
    Workload::new(Spec { seed: 5, verify, ..Spec::default() }).unwrap().crash(Stop::WithOpen, Flush::All)
}

/// Offsets and sizes of the blocks of a log file, oldest first.
fn blocks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.ldf");
    std::fs::write(&path, bytes).unwrap();
    let log = Log::open(&[path]).unwrap();
    let mut walk = Walk::new(&log);
    let mut found = Vec::new();
    while let Some(block) = walk.next_block().unwrap() {
        let (lsn, size, is_empty) = (block.first_lsn(), block.size(), block.record_count() == 0);
        let placed = log.run()[walk.position()];
        if !is_empty {
            found.push((placed.vlf.block_offset(lsn.block).unwrap() as usize, size));
        }
    }
    found
}

/// Audits a lab database after a change of its log or of a page. Returns the doubts, and requires that there are no
/// findings.
fn doubts_after(crashed: &Crashed) -> Vec<LogAuditDoubtKind> {
    let audit = audit_within(&on_disk(crashed), GRANT).unwrap();
    assert_eq!(texts(&audit), Vec::<String>::new());
    audit.doubts.iter().map(|doubt| doubt.kind).collect()
}

#[test]
fn encrypted_records_accuse_no_page_and_are_said() {
    let mut crashed = workload(PageVerify::Checksum);
    let (first, _) = blocks(&crashed.log.1)[0];
    crashed.log.1[first + FLAGS] = crashed.log.1[first + FLAGS] & !HAS_CHECKSUM | IS_ENCRYPTED;
    assert_eq!(doubts_after(&crashed), [LogAuditDoubtKind::LogEncrypted]);
}

/// A crashed database with a lost write, and what a whole audit finds.
fn crash_with_lost_write() -> (Crashed, LogAudit) {
    let found = (0..60).find_map(|seed| {
        let workload = Workload::new(Spec { seed, ..Spec::default() }).unwrap();
        let (crashed, _) = workload.with_lost_write(Stop::WithOpen, None, seed)?;
        let audit = audit_within(&on_disk(&crashed), GRANT).unwrap();
        (!audit.findings.is_empty()).then_some((crashed, audit))
    });
    found.unwrap()
}

/// An audit of only those pages that the log names.
fn without_unchanged(files: &OnDisk) -> LogAudit {
    let nothing = ExtentSet::of(DataFiles::open(&files.data).unwrap().files());
    audit_of(files, GRANT, Some(&nothing)).unwrap()
}

#[test]
fn an_audit_that_leaves_out_unchanged_pages_finds_what_the_log_names_and_says_how_many_it_has_left_out() {
    let (crashed, whole) = crash_with_lost_write();
    let audit = without_unchanged(&on_disk(&crashed));
    assert_eq!(texts(&audit), texts(&whole), "the log names the page whose write was lost");
    let left_out = audit.doubts.iter().find(|doubt| doubt.kind == LogAuditDoubtKind::Unchanged);
    assert!(left_out.is_some_and(|doubt| doubt.count > 0), "{:?}", audit.doubts);
    assert!(whole.doubts.iter().all(|doubt| doubt.kind != LogAuditDoubtKind::Unchanged));
}

/// Tests the reasons that the other tests of this file leave out, so that every reason why the audit could not compare
/// pages is tested.
#[test]
#[ignore = "full tier: takes seconds"]
fn every_limit_of_the_audit_is_met() {
    let mut met = BTreeSet::from([
        LogAuditDoubtKind::FileNotGiven.limit().id,
        LogAuditDoubtKind::More.limit().id,
        LogAuditDoubtKind::LogEncrypted.limit().id,
    ]);
    let sound = workload(PageVerify::Checksum);
    let at = blocks(&sound.log.1);
    // Damages a block in the middle of the part of the log that recovery does not need.
    let mut damaged = sound.clone();
    damaged.log.1[at[at.len() / 4].0 + 100] ^= 1;
    met.extend(doubts_after(&damaged).into_iter().map(|kind| kind.limit().id));
    // Damages the last block, which has changes that are already on the pages.
    let mut ended = sound.clone();
    ended.log.1[at[at.len() - 1].0 + 100] ^= 1;
    met.extend(doubts_after(&ended).into_iter().map(|kind| kind.limit().id));
    // Damages a page that the log changes.
    let mut page = sound.clone();
    let lsn = |bytes: &[u8]| Page::new(bytes.first_chunk().unwrap()).header().lsn();
    let pages = page.files[0].1.chunks_exact(PAGE_BYTES).enumerate().filter(|(number, _)| *number > 9);
    let (number, _) = pages.max_by_key(|(_, bytes)| lsn(bytes)).unwrap();
    page.files[0].1[number * PAGE_BYTES + 5000] ^= 1;
    met.extend(doubts_after(&page).into_iter().map(|kind| kind.limit().id));
    // Tests a record that no other record confirms: the page is older than the LSN that this record names.
    for seed in 0..60 {
        let workload = Workload::new(Spec { seed, ..Spec::default() }).unwrap();
        let Some((crashed, _)) = workload.with_lost_write(Stop::WithOpen, None, seed) else { continue };
        let audit = audit_within(&on_disk(&crashed), GRANT).unwrap();
        met.extend(audit.doubts.iter().map(|doubt| doubt.kind.limit().id));
        if met.contains(LogAuditDoubtKind::LogRecord.limit().id) {
            break;
        }
    }
    // Tests log blocks without checksums in which a single record contradicts a page.
    for seed in 0..60 {
        let workload = Workload::new(Spec { seed, verify: PageVerify::None, ..Spec::default() }).unwrap();
        let Some((crashed, _)) = workload.with_lost_write(Stop::WithOpen, None, seed) else { continue };
        let audit = audit_within(&on_disk(&crashed), GRANT).unwrap();
        met.extend(audit.doubts.iter().map(|doubt| doubt.kind.limit().id));
        if met.contains(LogAuditDoubtKind::LogUnprotected.limit().id) {
            break;
        }
    }
    // Leaves out the pages that the log does not name.
    let audit = without_unchanged(&on_disk(&crash_with_lost_write().0));
    met.extend(audit.doubts.iter().map(|doubt| doubt.kind.limit().id));
    let all: BTreeSet<&str> = limits::ALL.iter().map(|limit| limit.id).filter(|id| id.starts_with("audit.")).collect();
    assert_eq!(met, all);
}
