//! Real logs: every block of every log file is read, to an end that is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use log::{End, EndReason, Event, History, Log, LogError, Walk};

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

fn read(path: &Path) -> Result<(History, End, Vec<Event>), LogError> {
    let log = Log::open(&[path.to_owned()])?;
    let (mut walk, mut history, mut events) = (Walk::new(&log), History::new(), Vec::new());
    while let Some(block) = walk.next_block()? {
        history.block(&block, &mut |event| events.push(event));
    }
    history.finish(&mut |event| events.push(event));
    Ok((history, walk.end().unwrap(), events))
}

#[test]
fn every_real_log_is_read_to_its_end() {
    let (mut files, mut blocks, mut records, mut pairs, mut open) = (0, 0, 0, 0, 0);
    let logs = logs();
    for path in &logs {
        let (history, end, events) = match read(path) {
            Ok(read) => read,
            Err(error) => {
                println!("{error}");
                continue;
            }
        };
        if end.reason != EndReason::Written {
            println!("{}: {:?} at {:x}", path.display(), end.reason, end.offset);
        }
        files += 1;
        blocks += history.blocks();
        records += history.records();
        for event in events {
            match event {
                Event::Checkpoint(checkpoint) => {
                    pairs += u64::from(checkpoint.end.is_some());
                    if let (Some(began), Some(ended)) = (checkpoint.began, checkpoint.ended) {
                        let ms = ended.ms_since(began);
                        assert!((-1_000..60_000).contains(&ms), "{}: {ms}", path.display());
                    }
                }
                Event::Transaction(transaction) => open += u64::from(transaction.outcome == log::Outcome::Open),
            }
        }
    }
    println!("{files} files, {blocks} blocks, {records} records, {pairs} checkpoints, {open} open transactions");
}
