//! A check keeps to its grant of memory whatever the damage, and finds the same with any.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;

use format::page::PAGE_BYTES;
use format::{Page, PageType};
use lab::mutate::seal;

/// Runs a check of `folder`: all that it prints before the statistics, its peak of memory and its grant, and what it
/// spilled, in bytes.
fn check(folder: &Path, arguments: &[&str]) -> (String, [u64; 3]) {
    let program = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
        .args(["check", "--format", "json", "--maxdop", "2"])
        .args(arguments)
        .arg(folder)
        .output()
        .unwrap();
    let text = String::from_utf8(program.stdout).unwrap();
    let statistics =
        text.find("{\"kind\":\"statistics\"").unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&program.stderr)));
    let line: serde_json::Value = serde_json::from_str(text[statistics..].lines().next().unwrap()).unwrap();
    let numbers = ["memory_peak", "memory_granted", "spilled_bytes"].map(|key| line[key].as_u64().unwrap());
    (text[..statistics].to_owned(), numbers)
}

/// The least grant, as the refusal of one that is too small names it.
fn least_grant(folder: &Path) -> String {
    let program = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
        .args(["check", "--maxdop", "2", "--memory", "1MB"])
        .arg(folder)
        .output()
        .unwrap();
    assert_eq!(program.status.code(), Some(8));
    let text = String::from_utf8(program.stderr).unwrap();
    let (_, number) = text.split_once("needs ").unwrap();
    number.split_whitespace().take(2).collect()
}

/// A database of order lines, in a folder of its own.
fn database(bytes: u64) -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().unwrap();
    let description = lab::orders::orders(lab::Version::V852, 7, bytes);
    lab::write(&description, folder.path()).unwrap();
    folder
}

/// Changes each page of the database that `change` changes, and makes its checksum right again. How many.
fn change(folder: &Path, mut change: impl FnMut(&mut [u8; PAGE_BYTES]) -> bool) -> u64 {
    let path = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let mut file: File = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let (mut page, mut changed) = ([0; PAGE_BYTES], 0);
    while file.read_exact(&mut page).is_ok() {
        if change(&mut page) {
            seal(&mut page);
            file.seek(SeekFrom::Current(-(PAGE_BYTES as i64))).unwrap();
            file.write_all(&page).unwrap();
            changed += 1;
        }
    }
    changed
}

/// Leaf pages of nonclustered indexes of user tables.
fn is_index_leaf(page: &[u8; PAGE_BYTES]) -> bool {
    let header = Page::new(page).header();
    header.kind() == Some(PageType::Index)
        && header.level == 0
        && header.alloc_unit().0 >> 48 > 1
        && header.slot_count.get() > 100
}

fn keeps_to_its_grant(folder: &Path, least_findings: usize) {
    let least = least_grant(folder);
    let (expected, [_, _, spilled]) = check(folder, &["--memory", "4GB"]);
    let findings = expected.matches("{\"kind\":\"finding\"").count();
    assert!(findings >= least_findings, "{findings} findings");
    for grant in [&["--memory", &least][..], &["--memory", "100MB"], &[]] {
        let (found, [peak, granted, also_spilled]) = check(folder, grant);
        assert!(found == expected, "{grant:?}: other findings");
        assert!(peak <= granted, "{grant:?}: {peak} bytes of {granted}");
        assert!(also_spilled >= spilled, "{grant:?}");
    }
    let (shown, [peak, granted, _]) = check(folder, &["--memory", &least, "--max-findings", "5"]);
    assert_eq!(shown.matches("{\"kind\":\"finding\"").count(), 5);
    assert!(peak <= granted, "{peak} bytes of {granted}");
}

#[test]
fn a_bad_value_in_every_row_of_a_table() {
    let folder = database(40 << 20);
    // The stored amount of each order line: 2537, and its index does not agree either.
    let changed = change(folder.path(), |page| {
        let header = Page::new(page).header();
        let is_line =
            header.kind() == Some(PageType::Data) && header.pminlen.get() == 40 && header.slot_count.get() > 50;
        if is_line {
            for slot in 0..usize::from(header.slot_count.get()) {
                let at = PAGE_BYTES - 2 * (slot + 1);
                let row = usize::from(u16::from_le_bytes([page[at], page[at + 1]]));
                page[row + 28] ^= 0x55;
            }
        }
        is_line
    });
    assert!(changed > 1500, "{changed} pages");
    keeps_to_its_grant(folder.path(), 150_000);
}

#[test]
fn a_wrong_neighbour_on_every_page_of_every_index() {
    let folder = database(200 << 20);
    let changed = change(folder.path(), |page| {
        let is_leaf = is_index_leaf(page);
        if is_leaf {
            page[8] ^= 0x55;
            page[16] ^= 0x2A;
        }
        is_leaf
    });
    assert!(changed > 5000, "{changed} pages");
    keeps_to_its_grant(folder.path(), 10_000);
}

#[test]
fn a_sound_database() {
    let folder = database(32 << 20);
    let least = least_grant(folder.path());
    let (expected, _) = check(folder.path(), &["--memory", "4GB"]);
    for grant in [&["--memory", &least][..], &[]] {
        let (found, [peak, granted, _]) = check(folder.path(), grant);
        assert!(found == expected, "{grant:?}");
        assert!(peak <= granted, "{grant:?}: {peak} bytes of {granted}");
    }
}
