//! Real databases with their logs. A copy of a database in use must be consistent after its recovery, and the log of
//! another database must be refused.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use log::Log;
use recovery::{Analysis, RecoveredPages, Recovery, Refusal, Settings};
use source::{DataFiles, PageSource};

/// Each data file of the corpus, paired with each log file in the same folder. The list is empty if there is no corpus.
fn pairs() -> Vec<(PathBuf, PathBuf)> {
    fn search(folder: &Path, found: &mut Vec<(PathBuf, PathBuf)>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let of = |wanted: &str| {
            let is_one = |path: &&PathBuf| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(wanted));
            paths.iter().filter(is_one).cloned().collect::<Vec<_>>()
        };
        for data in of("mdf") {
            found.extend(of("ldf").into_iter().map(|log| (data.clone(), log)));
        }
        paths.iter().filter(|path| path.is_dir()).for_each(|path| search(path, found));
    }
    let mut found = Vec::new();
    search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus"), &mut found);
    found.sort();
    found
}

#[test]
#[ignore = "full tier: real files"]
fn real_databases_in_use_are_recovered_without_a_contradiction() {
    let (mut belong, mut refused, mut changed, mut records) = (0, 0, 0, 0);
    let pairs = pairs();
    for (data, log) in &pairs {
        let name = data.display();
        // This test uses only databases with one data file; the tests of the command line cover databases with several
        // files.
        let (Ok(source), Ok(log)) = (DataFiles::open(std::slice::from_ref(data)), Log::open(std::slice::from_ref(log)))
        else {
            continue;
        };
        let settings = Settings { grant_bytes: 32 << 20, ..Settings::default() };
        let analysis = match Analysis::new(&source, &log, &settings) {
            Ok(analysis) => analysis,
            Err(Refusal::OtherDatabase | Refusal::OtherMoment { .. }) => {
                refused += 1;
                continue;
            }
            Err(refusal) => panic!("{name}: {refusal}"),
        };
        belong += 1;
        let recovery = Recovery::new(&source, &log, analysis, &settings).unwrap();
        let applied = recovery.applied.clone();
        assert!(applied.not_recovered.is_empty() && applied.transactions_not_undone == 0, "{name}: {applied:?}");
        if applied.pages == 0 {
            continue;
        }
        changed += 1;
        records += applied.records;
        let recovered = RecoveredPages::new(&source, recovery);
        let database = catalog::load(&recovered);
        assert!(recovered.in_flight().is_some_and(<[_]>::is_empty));
        let report = check::run(&recovered, &database, &findings::Options::default(), &check::Silent);
        assert_eq!((report.findings.len(), report.demoted.len()), (0, 0), "{name}");
    }
    if !pairs.is_empty() {
        assert!(
            belong > 200 && refused > 20 && changed >= 4 && records > 7000,
            "{belong} {refused} {changed} {records}"
        );
    }
}
