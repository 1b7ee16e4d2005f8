//! Tests with headers that claim more pages than the file contains.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use format::page::PAGE_BYTES;
use format::protection::checksum;

use super::{data_file, ends, folder_with_database, mdfsck, shell, stdout};

/// Changes the header of the only data file so that it claims `pages` pages. Extends the file to `pages` pages with a
/// hole.
fn claim(folder: &Path, pages: u32) -> PathBuf {
    let path = data_file(folder);
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let mut header = [0; PAGE_BYTES];
    file.read_exact_at(&mut header, 0).unwrap();
    let held = (file.metadata().unwrap().len() / PAGE_BYTES as u64) as u32;
    let at = (96..8000).find(|at| header[*at..*at + 4] == held.to_le_bytes()).unwrap();
    header[at..at + 4].copy_from_slice(&pages.to_le_bytes());
    let sum = checksum(&header);
    header[60..64].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&header, 0).unwrap();
    file.set_len(u64::from(pages) * PAGE_BYTES as u64).unwrap();
    path
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_header_that_claims_a_terabyte_costs_what_the_file_holds() {
    let folder = folder_with_database();
    let here = folder.path();
    claim(here, 1 << 27);
    // The limit applies to processor time, so that other programs on the machine do not affect the result.
    for arguments in
        ["check", "check --physical-only", "check --alloc", "check --estimate-only --max-findings 1", "info", "tables"]
    {
        let run = |grant: &str| shell(here, &format!("ulimit -t 2; exec $mdfsck {arguments} {grant} db"));
        if arguments.starts_with("check") {
            ends(&run("--memory 20MB --maxdop 2"), 8, &["--memory 20 MB", "needs", "at least"]);
            // The maps of a terabyte are in a temporary file.
            let status = if arguments.contains("--estimate-only") { 0 } else { 17 };
            assert_eq!(run("--memory 64MB --maxdop 2").status.code(), Some(status), "{arguments}");
        } else {
            assert_eq!(run("").status.code(), Some(0), "{arguments}");
        }
    }
    // The program must not read the missing pages, and must not look them up one by one.
    let output = shell(here, "ulimit -t 2; exec $mdfsck check --maxdop 2 --max-findings 20 db");
    assert_eq!(output.status.code(), Some(17));
    let text = stdout(&output);
    assert!(text.contains("Allocation page (1:8088) has invalid PFS_PAGE page header values"));
    // Thousands of allocation pages are missing. The program reports them in a single line with two ranges: one of PFS
    // pages, and one of GAM and SGAM pages.
    let unverified: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("allocation: ")).collect();
    assert_eq!(unverified.len(), 1, "{unverified:?}");
    assert_eq!(unverified[0].matches("pages (1:").count(), 2, "{unverified:?}");
    assert!(unverified[0].contains("pages (1:8088) to (1:134217727)"), "{unverified:?}");
}

#[test]
fn a_hole_and_zeros_that_were_written_give_the_same_answer() {
    let folder = folder_with_database();
    let here = folder.path();
    let path = claim(here, 20_000);
    let hole = mdfsck(here, &["check", "db"]);
    assert_eq!(hole.status.code(), Some(17));
    let blocks = |path: &Path| std::os::unix::fs::MetadataExt::blocks(&fs::metadata(path).unwrap());
    let before = blocks(&path);
    let copy = shell(here, "cp --sparse=never db/* copy && cp --sparse=never copy db/$(ls db)");
    assert!(copy.status.success() && blocks(&path) > before);
    assert_eq!(stdout(&mdfsck(here, &["check", "db"])), stdout(&hole));
}
