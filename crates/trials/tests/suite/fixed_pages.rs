//! Wrong fields in the boot page and in file headers. If such a field contradicts other pages, a finding must name the
//! page that contains the field.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use check::Silent;
use findings::{Options, Report};
use format::{PAGE_BYTES, Page, PageBytes, PageId};
use lab::specimens::specimen;
use lab::{PageVerify, Version};
use trials::mutate::seal;

const FIRST_SYSALLOCUNITS: usize = 0x204;
const VERSION: usize = 4;

/// Changes page number `page` in file number `file` of a specimen, and checks the database.
fn check(version: Version, file: usize, page: usize, change: impl FnOnce(&mut PageBytes)) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = lab::write(&specimen(version, PageVerify::Checksum, 1), folder.path()).unwrap().files;
    let mut bytes = std::fs::read(&files[file]).unwrap();
    let at = bytes[page * PAGE_BYTES..].first_chunk_mut().unwrap();
    change(at);
    seal(at);
    std::fs::write(&files[file], &bytes).unwrap();
    let source = source::DataFiles::open(&files).unwrap();
    let database = catalog::load(&source);
    check::run(&source, &database, &Options::default(), &Silent)
}

/// The message numbers of findings that name a page.
fn about(report: &Report, page: PageId) -> Vec<u16> {
    let names = |finding: &findings::Finding| [finding.page, finding.ref_page].contains(&Some(page));
    report.findings.iter().filter(|finding| names(finding)).map(|finding| finding.check.msg).collect()
}

fn record(page: &PageBytes) -> usize {
    Page::new(page).slot_offset(0).unwrap().into()
}

#[test]
fn a_boot_page_that_leads_to_no_page_of_sysallocunits_is_named() {
    // Tries a PFS page, a page after the end of the file, and the root page of another table.
    for first in [1u32, 900_000, 32] {
        let report = check(Version::V904, 0, 9, |page| {
            let at = record(page) + FIRST_SYSALLOCUNITS;
            page[at..at + 4].copy_from_slice(&first.to_le_bytes());
        });
        let found = about(&report, PageId::BOOT);
        assert!(matches!(found[..], [7984..=7987]), "{first}: {found:?}");
        let is_told = |entry: &findings::NotVerified| entry.reason.contains("dbi_firstSysIndexes in boot page (1:9)");
        assert!(report.not_verified.iter().any(is_told), "{first}");
    }
}

#[test]
fn a_boot_page_whose_version_is_not_that_of_the_catalog_is_named() {
    for (version, other) in [(Version::V904, 611u16), (Version::V611, 904)] {
        let report = check(version, 0, 9, |page| {
            let at = record(page) + VERSION;
            page[at..at + 2].copy_from_slice(&other.to_le_bytes());
        });
        assert_eq!(about(&report, PageId::BOOT), [8930], "{other}");
        let is_told = |entry: &findings::NotVerified| entry.scope == "boot page (1:9), dbi_version";
        assert!(report.not_verified.iter().any(is_told), "{other}");
    }
}

#[test]
fn a_file_header_whose_filegroup_no_unit_has_is_named() {
    for version in [Version::V611, Version::V904] {
        let report = check(version, 1, 0, |page| {
            let record = format::record::Record::data(Page::new(page).slot_bytes(0).unwrap()).unwrap();
            let (group, _) = record.variable(4).unwrap();
            let at = group.as_ptr() as usize - page.as_ptr() as usize;
            page[at] ^= 7;
        });
        let file = report.database.files[1].file_id;
        assert_eq!(about(&report, PageId::new(file, 0)).first(), Some(&5250), "{version:?}");
    }
}
