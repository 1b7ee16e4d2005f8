//! Tests with real logs: every block of every log file is read, up to a valid end.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use format::Lsn;
use log::{EndReason, Event, History, Log, LogError, Outcome, Walk, duration_ms};
use source::backup::{self, BackupLog, SetKind};

/// Returns the files of the corpus for which `is_wanted` is true; empty if there is no corpus.
pub(crate) fn find(is_wanted: fn(&Path) -> bool) -> Vec<PathBuf> {
    fn search(folder: &Path, is_wanted: fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                search(&path, is_wanted, found);
            } else if is_wanted(&path) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus"), is_wanted, &mut found);
    found.sort();
    found
}

pub(crate) fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ldf"))
}

#[test]
#[ignore = "full tier: real files"]
fn every_real_log_is_read_to_its_end() {
    let (mut files, mut blocks, mut checkpoints, mut open) = (0, 0, 0, Vec::new());
    let logs = find(is_log);
    for path in &logs {
        let log = match Log::open(std::slice::from_ref(path)) {
            Ok(log) => log,
            Err(error) => panic!("{error}"),
        };
        let (mut walk, mut history) = (Walk::new(&log), History::new());
        let mut completed = |event| match event {
            Event::Checkpoint(checkpoint) => {
                checkpoints += u64::from(checkpoint.end.is_some());
                let ms = duration_ms(&checkpoint).unwrap_or_default();
                // One server's clock was once set back by 26 ms.
                assert!((-26..60_000).contains(&ms), "{}: {ms}", path.display());
            }
            Event::Transaction(transaction) if transaction.outcome == Outcome::Open => open.push(transaction.name),
            Event::Transaction(_) => {}
        };
        let end = loop {
            match walk.next_block() {
                Ok(Some(block)) => history.block(&block, &mut completed),
                Ok(None) => break walk.end(),
                Err(LogError::TooOld { .. }) => break None,
                Err(error) => panic!("{error}"),
            }
        };
        history.finish(&mut completed);
        let Some(end) = end else { continue };
        assert_eq!((end.reason, walk.lost_bytes()), (EndReason::Written, 0), "{}", path.display());
        files += 1;
        blocks += history.blocks();
    }
    if !logs.is_empty() {
        // Three logs explain the asserted numbers. One log is of SQL Server 2000, so it is among the logs but not among
        // the files that were read. Another log begins with blocks of SQL Server 2000. A third log was copied while a
        // transaction was open.
        assert_eq!((logs.len(), files, blocks, checkpoints), (316, 315, 162_482, 20_443));
        assert_eq!(open, ["Broker mapping db shutdown"]);
    }
}

/// The log of every backup set starts no later than the first LSN of the set, and ends exactly at the last LSN of the
/// set.
#[test]
#[ignore = "full tier: real files"]
fn the_log_of_every_real_backup_is_what_its_set_says() {
    let (mut logs, mut portions, mut records, mut empty) = (0, 0, 0, 0);
    for path in find(source::is_backup) {
        let Ok(media) = backup::media(&path) else { continue };
        for set in media.sets.iter().filter(|_| media.families == 1) {
            let name = format!("{} set {}", path.display(), set.position);
            let Ok(backups) = BackupLog::open(std::slice::from_ref(&path), &[set.position]) else { continue };
            assert_eq!(backups.unusable_parts(), 0, "{name}");
            let Ok(log) = Log::of_backups(backups) else { continue };
            assert_eq!(log.gaps(), [], "{name}");
            if log.is_empty() {
                empty += 1;
                continue;
            }
            let mut walk = Walk::new(&log);
            let mut first: Option<Lsn> = None;
            while let Some(block) = walk.next_block().unwrap_or_else(|error| panic!("{name}: {error}")) {
                first = first.or(Some(block.first_lsn()));
                records += block.records().count();
            }
            let end = walk.end().unwrap();
            assert_eq!((end.reason, walk.lost_bytes()), (EndReason::Written, 0), "{name}");
            let reached = Lsn { vlf: end.at.vlf.sequence, block: end.block, slot: 1 };
            let (from, to) = (set.config.first_lsn.unwrap(), set.config.last_lsn.unwrap());
            assert!(first.is_some_and(|first| first <= from), "{name}: {first:?} {from}");
            // If a VLF is full, the end may also be stated as the first block of the next VLF.
            let is_full = end.offset == end.at.vlf.end();
            let next = Lsn { vlf: reached.vlf + 1, block: 16, slot: 1 };
            assert!(reached == to || is_full && next == to, "{name}: {reached} {to}");
            if set.kind == SetKind::Log { logs += 1 } else { portions += 1 }
        }
    }
    if logs + portions > 0 {
        assert!(logs >= 25 && portions >= 166 && records > 25_000, "{logs} {portions} {records}");
        assert_eq!(empty, 6, "log backups of idle databases");
    }
}
