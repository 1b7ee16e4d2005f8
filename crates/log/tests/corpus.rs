//! Real logs: every block of every log file is read, to an end that is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use log::{EndReason, Event, History, Log, LogError, Outcome, Walk, duration_ms};

/// Log files of the corpus; none without it.
fn logs() -> Vec<PathBuf> {
    fn search(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                search(&path, found);
            } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ldf")) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus"), &mut found);
    found.sort();
    found
}

#[test]
fn every_real_log_is_read_to_its_end() {
    let (mut files, mut blocks, mut checkpoints, mut open) = (0, 0, 0, Vec::new());
    let logs = logs();
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
                // A clock was set back once, by 26 ms.
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
        // Two are of SQL Server 2000; one was copied with a transaction open.
        assert_eq!((logs.len(), files, blocks, checkpoints), (316, 314, 162_165, 20_418));
        assert_eq!(open, ["Broker mapping db shutdown"]);
    }
}
