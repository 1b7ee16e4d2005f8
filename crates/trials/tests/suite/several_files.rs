//! A database with several files. The order of the files on the command line must have no effect. A check must notice a
//! file from another point in time.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use check::Silent;
use findings::{Options, Report};
use format::PAGE_BYTES;
use lab::description::Filegroup;
use lab::{Version, orders};
use source::MemoryFiles;
use trials::mutate::damages;

type Files = Vec<(PathBuf, Vec<u8>)>;

/// Writes the `orders` schema in three files.
fn write(seed: u64, bytes: u64) -> Files {
    write_in(3, seed, bytes)
}

fn write_in(files: u16, seed: u64, bytes: u64) -> Files {
    let mut description = orders::orders(Version::V904, seed, bytes);
    description.filegroups = vec![Filegroup { name: "PRIMARY".to_owned(), files }];
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&description, folder.path()).unwrap();
    written.files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn run(files: &MemoryFiles) -> Report {
    check::run(files, &catalog::load(files), &Options { max_threads: 1, ..Options::default() }, &Silent)
}

fn texts(report: &Report) -> Vec<String> {
    report.findings.iter().map(|finding| finding.text(&report.names())).collect()
}

#[test]
#[ignore = "full tier: takes seconds"]
fn findings_are_the_same_in_every_order_of_the_files() {
    let mut files = write(3, 10 << 20);
    assert!(texts(&run(&MemoryFiles::open(files.clone()).unwrap())).is_empty());
    for (_, bytes) in &mut files {
        for page in bytes.chunks_exact_mut(PAGE_BYTES).skip(16).step_by(23) {
            page[4000] ^= 0x10;
        }
    }
    let first = texts(&run(&MemoryFiles::open(files.clone()).unwrap()));
    assert!(first.len() > 20, "the damage shows");
    for _ in 0..files.len() {
        files.rotate_left(1);
        assert_eq!(texts(&run(&MemoryFiles::open(files.clone()).unwrap())), first);
        files.swap(0, 1);
        assert_eq!(texts(&run(&MemoryFiles::open(files.clone()).unwrap())), first);
        files.swap(0, 1);
    }
}

#[test]
fn a_database_may_have_more_files_than_one_page_of_sysfiles1_lists() {
    let files = MemoryFiles::open(write_in(40, 3, 1 << 20)).unwrap();
    let report = run(&files);
    assert_eq!((texts(&report), report.file_totals.len()), (Vec::new(), 40));
}

#[test]
fn one_file_of_another_time_is_noticed() {
    let (now, then) = (write(3, 10 << 20), write(3, 9 << 20));
    for odd in 0..now.len() {
        let mut files = now.clone();
        files[odd].1.clone_from(&then[odd].1);
        match MemoryFiles::open(files) {
            // The reader refuses the files, because the binding ID shows that one file belongs to another database.
            Err(_) => {}
            Ok(files) => assert!(!texts(&run(&files)).is_empty(), "file {} is of another time", odd + 1),
        }
    }
}

#[test]
fn damage_to_structures_is_noticed() {
    let files = MemoryFiles::open(write(5, 0)).unwrap();
    let database = catalog::load(&files);
    let clean = run(&files);
    assert!(clean.findings.is_empty());
    let (mut tried, mut missed) = (0, Vec::new());
    // There are many pieces of damage, so only every twentieth piece is tried. Damage to maps that only backups use is
    // left out, because a check does not compare these maps with other pages.
    let is_read = |kind: &str| !kind.contains("differential map") && !kind.contains("minimally logged map");
    let made = damages(&files, &database, None, 1).into_iter().filter(|damage| is_read(&damage.kind));
    for damage in made.step_by(20) {
        tried += 1;
        let changed = files.with_pages(damage.changes).and_then(|files| match damage.cut {
            Some((file, length)) => files.cut(file, length),
            None => Ok(files),
        });
        let Ok(changed) = changed else { continue };
        let report = run(&changed);
        if report.findings.is_empty() && report.read_errors.is_empty() && report.not_verified == clean.not_verified {
            missed.push(format!("{}, {}", damage.kind, damage.page));
        }
    }
    assert!(tried > 20, "only {tried} pieces");
    assert!(missed.is_empty(), "of {tried}: {missed:#?}");
}
