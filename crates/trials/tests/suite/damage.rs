//! A check must find each kind of damage, and report it by an expected message that names the damaged page.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;
use std::path::PathBuf;

use check::Silent;
use findings::{Finding, Options};
use lab::backup::{BackupOptions, Base, Set, backup};
use lab::damage::{Damage, Kind, damage};
use lab::{PageVerify, Version, orders};

fn findings(files: &[PathBuf]) -> Vec<Finding> {
    let source = source::DataFiles::open(files).unwrap();
    let database = catalog::load(&source);
    let report = check::run(&source, &database, &Options::default(), &Silent);
    report.findings.iter().map(Cow::into_owned).collect()
}

fn names_the_page(finding: &Finding, done: &Damage) -> bool {
    let named = [finding.page, finding.ref_page].into_iter().flatten();
    named
        .into_iter()
        .any(|page| done.pages.iter().any(|damaged| (damaged.file, damaged.page) == (page.file, page.page)))
}

#[test]
#[ignore = "full tier: takes seconds"]
fn every_kind_of_damage_is_seen_where_it_is() {
    for (version, verify) in [(Version::V706, PageVerify::Checksum), (Version::V957, PageVerify::Torn)] {
        let folder = tempfile::tempdir().unwrap();
        let mut description = orders::orders(version, 11, 9 << 20);
        description.verify = verify;
        let written = lab::write(&description, folder.path()).unwrap();
        let sound = std::fs::read(&written.files[0]).unwrap();
        for kind in Kind::ALL.into_iter().filter(|&kind| verify == PageVerify::Checksum || kind != Kind::BitRot) {
            for seed in 0..4 {
                std::fs::write(&written.files[0], &sound).unwrap();
                let done = damage(&written.files, kind, seed).unwrap();
                let found = findings(&written.files);
                let messages: Vec<u16> = found.iter().map(|finding| finding.check.msg).collect();
                let expected = messages.iter().any(|message| done.messages.contains(message));
                assert!(expected, "{}: {messages:?}", done.what);
                let named = found.iter().any(|finding| names_the_page(finding, &done));
                // The finding must name the damaged page, except after a truncation or a lost write: then only other
                // pages reveal the damage.
                assert!(named || matches!(kind, Kind::Truncated | Kind::LostWrite), "{}", done.what);
                // A single damaged page causes at most ten findings.
                assert!(
                    done.pages.len() > 1 || kind == Kind::Truncated || found.len() <= 10,
                    "{}: {messages:?}",
                    done.what
                );
            }
        }
    }
}

#[test]
fn a_file_of_one_page_is_not_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut description = orders::orders(Version::V706, 11, 0);
    description.filegroups[0].files = 2;
    let written = lab::write(&description, folder.path()).unwrap();
    let cut = |file: &PathBuf| std::fs::File::options().write(true).open(file).unwrap().set_len(8192).unwrap();
    let length = |file: &PathBuf| std::fs::metadata(file).unwrap().len();
    cut(&written.files[1]);
    let before = length(&written.files[0]);
    let done = damage(&written.files, Kind::Truncated, 1).unwrap();
    assert_eq!((done.pages[0].file, length(&written.files[1])), (1, 8192));
    assert!(length(&written.files[0]) < before);
    cut(&written.files[0]);
    let refused = damage(&written.files, Kind::Truncated, 1).unwrap_err().to_string();
    assert!(refused.contains("no place for the damage truncated"), "{refused}");
}

/// Writes wrong values into page headers (slot count and free data offset) and into the first slots. The lab must
/// damage such a file further, or refuse it.
#[test]
#[ignore = "full tier: takes seconds"]
fn files_whose_headers_lie_are_damaged_further_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(&orders::orders(Version::V706, 11, 9 << 20), folder.path()).unwrap();
    let sound = std::fs::read(&written.files[0]).unwrap();
    for (at, value) in [(22, 0xFFFFu16), (22, 0), (30, 0xFFFF), (30, 0), (28, 0xFFFF), (8190, 0xFFFF), (8188, 0xFFFF)] {
        let mut bytes = sound.clone();
        for page in bytes.chunks_exact_mut(8192) {
            page[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        for kind in Kind::ALL {
            std::fs::write(&written.files[0], &bytes).unwrap();
            // The page may be unsuitable for this kind of damage, so the lab may return an error. It must not panic.
            drop(damage(&written.files, kind, 1));
        }
    }
}

/// Backs up files with wrong values. The wrong values are in page headers and slots, or in the record of the file
/// header, the boot page or an allocation map. The lab must write a backup or refuse the files.
#[test]
#[ignore = "full tier: takes seconds"]
fn files_whose_headers_lie_are_backed_up_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let base_folder = tempfile::tempdir().unwrap();
    let description = orders::orders(Version::V706, 11, 9 << 20);
    let base = lab::write(&description, base_folder.path()).unwrap();
    let written = lab::write(&description, folder.path()).unwrap();
    let sound = std::fs::read(&written.files[0]).unwrap();
    let in_page = |page: usize, at: usize| page * 8192 + at..page * 8192 + at + 2;
    let everywhere = [6, 22, 28, 30, 32, 36, 8190, 8188];
    let lies = everywhere.map(|at| (0..sound.len() / 8192).map(|page| in_page(page, at)).collect::<Vec<_>>());
    let header = (96..200).step_by(2).map(|at| vec![in_page(0, at)]);
    // Places in fields of the boot page's record: record length, version, name (start and end), compatibility level,
    // checkpoint LSN (four places), and family GUID.
    let boot = [2, 4, 0x34, 0x132, 0x13A, 0x15C, 0x15E, 0x160, 0x164, 0x198].map(|at| vec![in_page(9, 96 + at)]);
    let maps = [2, 3, 6].map(|page| (96..8190).step_by(2).map(|at| in_page(page, at)).collect());
    let mut refused = 0;
    for lie in lies.into_iter().chain(header).chain(boot).chain(maps) {
        for byte in [0xFF, 0] {
            let mut bytes = sound.clone();
            lie.iter().for_each(|place| bytes[place.clone()].fill(byte));
            std::fs::write(&written.files[0], &bytes).unwrap();
            let to = tempfile::tempdir().unwrap();
            let full = BackupOptions { in_flight: 5, checksum: true, ..BackupOptions::default() };
            let differential = BackupOptions { base: Some(Base { files: &base.files, step: 1 }), ..full };
            for (name, options) in [("full", full), ("differential", differential)] {
                match backup(&[Set { files: &written.files, step: 2, options }], to.path(), name) {
                    // If the lab writes a backup, the reader must open it or refuse it.
                    Ok(done) => drop(source::open(&done.files, &[], false)),
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(refused > 20, "{refused} of them refused");
}
