//! Tests with real event files. The reader must read every event of each file, and decode every value.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use events::xel::Reader;

/// Event files of the corpus; empty without the corpus.
fn event_files() -> Vec<PathBuf> {
    fn search(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                search(&path, found);
            } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xel")) {
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
#[ignore = "full tier: real files"]
fn every_real_event_file_is_read_to_its_last_event() {
    let (mut names, mut values) = (BTreeMap::<String, u64>::new(), 0);
    let files = event_files();
    for path in &files {
        let mut last = None;
        for event in Reader::new(BufReader::new(File::open(path).unwrap())).unwrap() {
            let event = event.unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
            assert_eq!(event.undecoded(), 0, "{}: {event:?}", path.display());
            // The clock of a server may be set back a little, but not by five minutes or more.
            let at = event.at.unwrap();
            assert!(last.is_none_or(|last| at > events::Moment::plus_minutes(last, -5)), "{}: {at}", path.display());
            last = Some(at);
            values += event.fields.len() + event.actions.len();
            *names.entry(event.name.to_string()).or_default() += 1;
        }
    }
    if !files.is_empty() {
        println!("{} files, {values} values, {names:?}", files.len());
        assert_eq!((files.len(), names.values().sum::<u64>(), values), (64, 7815, 157_423));
    }
}
