//! Each kind of damage is seen, with a message that was expected, on the page that was damaged.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use std::borrow::Cow;

use check::{Finding, Options, Silent};
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
                // What a page lost nobody can see there, only where it is missed.
                assert!(named || matches!(kind, Kind::Truncated | Kind::LostWrite), "{}", done.what);
                // One damaged page gives no more than ten findings.
                assert!(
                    done.pages.len() > 1 || kind == Kind::Truncated || found.len() <= 10,
                    "{}: {messages:?}",
                    done.what
                );
            }
        }
    }
}

/// Fields of a page header that say where something lies: slots, free data; and the first slots.
#[test]
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
            // Whether a page was fit for it is another matter.
            drop(damage(&written.files, kind, 1));
        }
    }
}
