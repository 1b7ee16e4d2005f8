//! Audits real databases with their logs. No page may contradict the log, whether the database was shut down cleanly or
//! not.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use log::Log;
use recovery::Refusal;
use source::DataFiles;

/// Pairs of a data file and a log file in the same folder of the corpus; empty without the corpus.
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
fn no_page_of_a_real_database_contradicts_its_log() {
    let (mut belong, mut compared, mut images, mut older, mut without_records) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    for (data, log) in pairs() {
        let (Ok(source), Ok(log)) =
            (DataFiles::open(std::slice::from_ref(&data)), Log::open(std::slice::from_ref(&log)))
        else {
            continue;
        };
        let database = catalog::load(&source);
        let audit = match audit::audit(&source, &database, &log, 64 << 20) {
            Ok(audit) => audit,
            Err(Refusal::OtherDatabase | Refusal::OtherMoment { .. }) => continue,
            Err(refusal) => panic!("{}: {refusal}", data.display()),
        };
        belong += 1;
        compared += audit.pages_compared;
        images += audit.images_compared;
        older += audit.pages_older;
        without_records += audit.pages_without_records;
        let names = findings::Names { database: "d", database_id: 1, command: "CHECKDB" };
        wrong.extend(
            audit
                .findings
                .iter()
                .map(|finding| format!("{}: {} {}", data.display(), finding.check.id, finding.text(&names))),
        );
        // Ignores doubts about missing files, since this test opens the files of a database one by one.
        let doubts = audit.doubts.iter().filter(|doubt| doubt.kind != findings::LogAuditDoubtKind::FileNotGiven);
        wrong.extend(doubts.map(|doubt| format!("{}: {doubt:?}", data.display())));
    }
    println!(
        "{belong} pairs, {compared} pages compared, {images} images, {older} older, {without_records} without records"
    );
    assert_eq!(wrong, Vec::<String>::new());
    if belong > 0 {
        assert!(belong > 200 && compared > 15_000 && images > 8_000, "{belong} {compared} {images}");
    }
}
