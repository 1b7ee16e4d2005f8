//! Whatever damage a database has, a check must keep to its memory grant. It must have the same findings with any
//! grant.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod export;
mod geometry;
mod huge;
mod pages;
mod recovery;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;

use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, PFS_PAGES};
use format::boot::status::CLEAN_SHUTDOWN;
use format::page::PAGE_BYTES;
use format::{Page, PageType};
use lab::SqlType;
use lab::description::{Column, Compression, Filter, Index, Table, Values};
use trials::mutate::seal;

use self::pages::Pages;

/// Runs a check of `folder`. Returns the part of the output before the statistics, and four numbers: peak memory in
/// bytes, memory grant in bytes, spilled data in bytes, and the number of findings.
fn check(folder: &Path, arguments: &[&str]) -> (String, [u64; 4]) {
    let program = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
        .args(["check", "--format", "json"])
        .args(with_threads(arguments))
        .arg(folder)
        .output()
        .unwrap();
    let text = String::from_utf8(program.stdout).unwrap();
    let statistics =
        text.find("{\"kind\":\"statistics\"").unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&program.stderr)));
    let line: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let numbers = ["memory_peak", "memory_granted", "spilled", "findings"].map(|key| line[key].as_u64().unwrap());
    (text[..statistics].to_owned(), numbers)
}

/// Adds `--maxdop 2`, unless the arguments contain `--maxdop`.
fn with_threads<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let threads: &[&str] = if arguments.contains(&"--maxdop") { &[] } else { &["--maxdop", "2"] };
    [threads, arguments].concat()
}

/// The minimum grant for a check of `folder`. It is read from the message that refuses a smaller grant.
fn least_grant(folder: &Path) -> String {
    least_grant_with(folder, &[])
}

fn least_grant_with(folder: &Path, arguments: &[&str]) -> String {
    let program = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
        .args(["check", "--memory", "1MB"])
        .args(with_threads(arguments))
        .arg(folder)
        .output()
        .unwrap();
    assert_eq!(program.status.code(), Some(8));
    let text = String::from_utf8(program.stderr).unwrap();
    let (_, number) = text.split_once("needs at least ").unwrap();
    number.split_whitespace().take(2).collect()
}

/// Writes a lab database with order lines to a new folder.
fn database(bytes: u64) -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().unwrap();
    let description = lab::orders::orders(lab::Version::V852, 7, bytes);
    lab::write(&description, folder.path()).unwrap();
    folder
}

/// Passes each page to `change`. Corrects the checksum of each changed page, and returns the number of changed pages.
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

/// Whether a page is a leaf page of a nonclustered index of a user table.
fn is_index_leaf(page: &[u8; PAGE_BYTES]) -> bool {
    let header = Page::new(page).header();
    header.kind() == Some(PageType::Index)
        && header.level == 0
        && header.alloc_unit().0 >> 48 > 1
        && header.slot_count.get() > 100
}

fn keeps_to_its_grant(folder: &Path, least_findings: u64) {
    keeps_to_its_grant_with(folder, &[], least_findings);
    let least = least_grant(folder);
    let (shown, [peak, granted, ..]) = check(folder, &["--memory", &least, "--max-findings", "5"]);
    assert_eq!(shown.matches("{\"kind\":\"finding\"").count(), 5);
    assert!(peak <= granted, "{peak} bytes of {granted}");
}

fn keeps_to_its_grant_with(folder: &Path, arguments: &[&str], least_findings: u64) {
    let least = least_grant(folder);
    let with = |grant: &[&str]| check(folder, &[grant, arguments].concat());
    let (expected, [.., spilled, findings]) = with(&["--memory", "4GB"]);
    assert!(findings >= least_findings, "{findings} findings");
    for grant in [&["--memory", &least][..], &["--memory", "100MB"], &[]] {
        let (found, [peak, granted, also_spilled, also_found]) = with(grant);
        assert!(found == expected && also_found == findings, "{grant:?}: other findings");
        assert!(peak <= granted, "{grant:?}: {peak} bytes of {granted}");
        assert!(also_spilled >= spilled, "{grant:?}");
    }
}

/// Changes the stored amount of each order line. A check then reports message 2537, and errors in the index on the
/// amount.
fn miscalculate(folder: &Path) {
    let changed = change(folder, |page| {
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
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_bad_value_in_every_row_of_a_table() {
    let folder = database(40 << 20);
    miscalculate(folder.path());
    keeps_to_its_grant(folder.path(), 150_000);
}

/// Even if the log may explain findings, the check stores and lists them like other findings.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_bad_value_in_every_row_of_a_table_that_was_not_shut_down_cleanly() {
    let folder = database(40 << 20);
    miscalculate(folder.path());
    let boot_pages = change(folder.path(), |page| {
        let is_boot = Page::new(page).header().kind() == Some(PageType::Boot);
        if is_boot {
            let status = u32::from_le_bytes([page[132], page[133], page[134], page[135]]) & !CLEAN_SHUTDOWN;
            page[132..136].copy_from_slice(&status.to_le_bytes());
        }
        is_boot
    });
    assert_eq!(boot_pages, 1);
    let least = least_grant(folder.path());
    let (expected, [.., findings]) = check(folder.path(), &["--memory", "4GB"]);
    let demoted = expected.matches("{\"kind\":\"demoted\"").count();
    assert!(findings == 0 && demoted > 150_000, "{findings} findings, {demoted} demoted");
    for grant in [&["--memory", &least][..], &["--memory", "100MB"], &[]] {
        let (found, [peak, granted, ..]) = check(folder.path(), grant);
        assert!(found == expected, "{grant:?}: other lines");
        assert!(peak <= granted, "{grant:?}: {peak} bytes of {granted}");
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
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

/// Checks a sound database. Requires that the checks have no findings and keep to their grants. With the minimum grant,
/// the check must spill at least `least_spilled` bytes.
fn is_sound_within_its_grant(folder: &Path, least_spilled: u64) {
    let least = least_grant(folder);
    let (expected, [.., findings]) = check(folder, &["--memory", "4GB"]);
    assert_eq!(findings, 0);
    for (grant, least_spilled) in [(&["--memory", &least][..], least_spilled), (&[], 0)] {
        let (found, [peak, granted, spilled, _]) = check(folder, grant);
        assert!(found == expected, "{grant:?}");
        assert!(peak <= granted, "{grant:?}: {peak} bytes of {granted}");
        assert!(spilled >= least_spilled, "{grant:?}: {spilled} bytes");
    }
}

#[test]
#[ignore = "full tier: memory"]
fn a_sound_database() {
    is_sound_within_its_grant(database(32 << 20).path(), 0);
}

/// The index key has 800 bytes. The locator, which is the clustered key of the table, also has 800 bytes. An index page
/// therefore has only five entries on every level.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_deep_tree_of_long_keys() {
    let rows = 160_000;
    let key = || SqlType::nchar(400);
    let mut description = lab::orders::orders(lab::Version::V852, 7, 0);
    description.tables = vec![Table {
        name: "long_keys".to_owned(),
        columns: vec![
            Column::new("a", key(), Values::Serial { start: 1, step: 1 }),
            Column::new("b", key(), Values::Scattered { per: 1 }),
        ],
        clustered: Some(Index::on("pk", &[0]).primary_key()),
        indexes: vec![Index::on("ix", &[1])],
        rows,
        ..Table::default()
    }];
    let folder = tempfile::TempDir::new().unwrap();
    lab::write(&description, folder.path()).unwrap();
    // About 15,000 of the 60,000 pages are above the leaf level. The data that the check stores about all these pages
    // does not fit into the minimum grant.
    is_sound_within_its_grant(folder.path(), 1 << 17);
}

/// A row has 7 bytes on its page, but the check expands it to 8,011 bytes. A page has 1,150 rows, and each thread
/// expands the rows of one page at a time.
#[test]
#[ignore = "full tier: memory"]
fn pages_whose_rows_take_a_thousand_times_their_bytes_when_they_are_expanded() {
    let mut description = lab::orders::orders(lab::Version::V852, 7, 0);
    description.tables = vec![Table {
        name: "wide".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("notes", SqlType::char(8000), Values::Text { least: 1, most: 1 }).nullable(100),
        ],
        compression: Compression::Row,
        rows: 800_000,
        ..Table::default()
    }];
    let folder = tempfile::TempDir::new().unwrap();
    lab::write(&description, folder.path()).unwrap();
    let threads = ["--maxdop", "4"];
    let least = least_grant_with(folder.path(), &threads);
    let (_, [peak, granted, _, findings]) = check(folder.path(), &[&threads[..], &["--memory", &least]].concat());
    assert_eq!(findings, 0);
    assert!((36 << 20..=granted).contains(&peak), "{peak} bytes of {granted}");
}

/// The check of this database needs most of its memory for the catalog.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_catalogue_of_many_tables() {
    let mut description = lab::orders::orders(lab::Version::V852, 7, 0);
    let column = |number| {
        let name = format!("a column with a name of its own {number}");
        Column::new(&name, SqlType::INT, Values::Serial { start: 1, step: 1 })
    };
    let table = |number| Table {
        name: format!("a table with a name of its own {number}"),
        columns: (0..50).map(column).collect(),
        clustered: Some(Index::on(&format!("pk_{number}"), &[0]).primary_key()),
        indexes: vec![Index::on("ix_1", &[1]), Index::on("ix_2", &[2]).including(&[3, 4, 5])],
        rows: 1,
        ..Table::default()
    };
    description.tables = (0..1500).map(table).collect();
    let folder = tempfile::TempDir::new().unwrap();
    lab::write(&description, folder.path()).unwrap();
    is_sound_within_its_grant(folder.path(), 0);
}

/// The number of bytes by which the estimate may exceed the peak memory. The estimate includes buffers, and memory for
/// stored page data and findings that a small database does not have.
const ROOM: u64 = 16 << 20;

fn estimate_is_right(tables: u32, indexes: u16) {
    let folder = tempfile::TempDir::new().unwrap();
    let description = lab::many_tables::many_tables(lab::Version::V852, 7, tables, indexes, 100);
    lab::write(&description, folder.path()).unwrap();
    let (_, [peak, granted, _, findings]) = check(folder.path(), &["--memory", &least_grant(folder.path())]);
    assert_eq!(findings, 0);
    assert!(peak <= granted, "{tables} tables, {indexes} indexes: {peak} bytes of {granted}");
    let most = peak / 20 * 21 + ROOM;
    assert!(granted <= most, "{tables} tables, {indexes} indexes: {granted} bytes granted, {peak} needed");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_estimate_follows_from_the_number_of_tables_and_indexes() {
    for tables in [1, 100, 1000, 10_000] {
        for indexes in [0, 5] {
            estimate_is_right(tables, indexes);
        }
    }
}

/// While a check runs, the compiled conditions of all tables with rows are in memory at the same time. The compiled
/// form of a condition is many times larger than its text.
#[test]
#[ignore = "full tier: takes seconds"]
fn conditions_are_in_the_estimate() {
    let texts = [
        "([a]>=(0))".to_owned(),
        format!("({})", vec!["[a]>=(0)"; 100].join(" OR ")),
        format!("([a] in ({}0,1))", "1,".repeat(400)),
        format!("(case [a] {} else 1 end=1)", "when 5 then 2 ".repeat(100)),
    ];
    for text in texts {
        let folder = tempfile::TempDir::new().unwrap();
        let mut description = lab::orders::orders(lab::Version::V852, 7, 0);
        let table = |number| Table {
            name: format!("table {number}"),
            columns: vec![
                Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
                Column::new("a", SqlType::INT, Values::Uniform { low: 0, high: 1 }),
            ],
            clustered: Some(Index::on(&format!("pk_{number}"), &[0]).primary_key()),
            rows: 1,
            checks: (0..4).map(|at| (format!("ck_{number}_{at}"), Filter::Written(1, text.clone()))).collect(),
            ..Table::default()
        };
        description.tables = (0..1000).map(table).collect();
        lab::write(&description, folder.path()).unwrap();
        let least = least_grant_with(folder.path(), &["--constraints"]);
        let (_, [peak, granted, ..]) = check(folder.path(), &["--memory", &least, "--constraints"]);
        let shown = text.get(..30).unwrap_or(&text);
        assert!(peak <= granted, "{shown}: {peak} bytes of {granted}");
        assert!(granted <= peak / 20 * 21 + ROOM, "{shown}: {granted} bytes granted, {peak} needed");
    }
}

/// This test needs a minute and 1.4 GB of disk space. It runs only if the environment variable MDFSCK_MANY_TABLES is
/// set.
#[test]
#[ignore = "full tier: memory"]
fn the_estimate_is_right_for_100_000_tables() {
    if std::env::var_os("MDFSCK_MANY_TABLES").is_some() {
        estimate_is_right(100_000, 0);
        estimate_is_right(100_000, 5);
    }
}

/// The check reads the parts of the 60 MB value repeatedly, and never keeps them in memory.
#[test]
#[ignore = "full tier: memory"]
fn a_value_of_60_mb_off_the_row() {
    let folder = tempfile::TempDir::new().unwrap();
    let first = geometry::write(folder.path());
    // The value is valid if its header contains the number of points for which the value has space. It is doubtful if
    // the header contains one point more.
    let is_doubtful = |points| {
        geometry::write_points(folder.path(), first, points);
        check(folder.path(), &[]).0.contains("\"column.value-off-row\"")
    };
    assert!(is_doubtful(geometry::POINTS + 1) && !is_doubtful(geometry::POINTS));
    keeps_to_its_grant_with(folder.path(), &[], 1);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn every_extent_claimed_by_several_units() {
    let folder = database(16 << 20);
    let file = Pages::of(folder.path());
    let mut claimants = file.user_pages(PageType::Iam);
    claimants.truncate(3);
    let intervals = 4;
    file.grow(intervals * INTERVAL_PAGES);
    for interval in 1..intervals {
        let start = interval * INTERVAL_PAGES;
        for (page, like) in (start + 2 * EXTENT_PAGES..).zip(&claimants) {
            file.write_iam(page, like, start, true);
        }
    }
    keeps_to_its_grant_with(folder.path(), &["--max-findings", "2000"], 500_000);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn an_iam_page_of_another_unknown_unit_wherever_one_looks() {
    let folder = database(16 << 20);
    let file = Pages::of(folder.path());
    let mut iam = file.user_pages(PageType::Iam).remove(0);
    let (first, pages) = (file.count().next_multiple_of(PFS_PAGES), 24_000);
    file.grow(first + pages);
    for page in (first..first + pages).filter(|page| !page.is_multiple_of(PFS_PAGES)) {
        // The allocation unit ID is computed from two header fields. It is at least 1 << 48.
        iam[6..8].copy_from_slice(&0x100_u16.to_le_bytes());
        iam[24..28].copy_from_slice(&page.to_le_bytes());
        file.write_iam(page, &iam, 0, false);
    }
    keeps_to_its_grant_with(folder.path(), &["--max-findings", "2000"], 4000);
}
