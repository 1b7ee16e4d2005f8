//! Windows of time over storage snapshots of a database in use: what the differential maps and the log say about changes,
//! and what happens if the maps are cleared, or have missed a change.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use check::Silent;
use format::allocation::{FixedPage, PfsByte, pfs_bytes};
use format::page::PAGE_BYTES;
use format::protection::seal;
use format::{Page, PageBytes, PageHeader, PageId};
use jobs::change;
use jobs::inventory;
use jobs::prepare::{open, prepare};
use jobs::request::Request;
use jobs::spread::{Spread, What};
use lab::workload::{ChainOptions, Event, Flush, SetKind, Spec, Stop, Workload};
use source::{ExtentSet, PageSource};
use tempfile::TempDir;

/// The ranges that a window reads if it reads everything.
const ALL: &str = "100000";

/// Storage snapshots in a folder.
struct Snapshots {
    folder: TempDir,
    files: Vec<Vec<PathBuf>>,
}

impl Snapshots {
    /// Snapshots with work before each of them. A full backup precedes those whose number is in `full`.
    fn new(seed: u64, count: usize, full: &[usize]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec { seed, transactions: 8 * full.len() as u64, rows: 3000, ..Spec::default() };
        let events = (0..count).flat_map(|number| {
            let full = full.contains(&number).then_some([Event::Work, Event::BackUp(SetKind::Full)]);
            full.into_iter().flatten().chain([Event::Work, Event::Snapshot])
        });
        let events: Vec<Event> = events.collect();
        let workload = Workload::new(spec).unwrap();
        let chain = workload.story(&events, ChainOptions::default(), folder.path()).unwrap();
        Self { folder, files: chain.snapshots.into_iter().map(|snapshot| snapshot.files).collect() }
    }

    fn data(&self, number: usize) -> &Path {
        self.files[number].iter().find(|path| !is_log(path)).unwrap()
    }

    fn page(&self, number: usize, page: u32) -> PageBytes {
        let bytes = fs::read(self.data(number)).unwrap();
        *bytes[page as usize * PAGE_BYTES..].first_chunk().unwrap()
    }

    /// Changes a page in the file of a snapshot and makes its checksum right.
    fn change(&self, number: usize, page: u32, change: impl FnOnce(&mut PageBytes)) {
        let path = self.data(number);
        let mut bytes = fs::read(path).unwrap();
        let place = bytes[page as usize * PAGE_BYTES..].first_chunk_mut().unwrap();
        change(place);
        seal(place);
        fs::write(path, bytes).unwrap();
    }

    fn run(&self, number: usize, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
        command.current_dir(self.folder.path()).arg("check").args(&self.files[number]);
        command.args(["--json", "--maxdop", "1"]).args(more).output().unwrap()
    }

    /// Checks a snapshot in a window that reads at most some ranges. Returns its lines and what it says on stderr.
    fn window(&self, number: usize, most_ranges: &str) -> Window {
        let kept = ["--history", "h", "--keep-parts", "1GB", "--part-pages", "8", "--window", "1h"];
        let output = self.run(number, &[&kept[..], &["--most-ranges", most_ranges]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Window { lines: lines(&output), all: String::from_utf8_lossy(&output.stdout).into_owned(), stderr }
    }

    /// Requires that a window over a snapshot that reads everything gives the report of a whole check.
    fn closes(&self, number: usize) -> Window {
        let window = self.window(number, ALL);
        let whole = self.run(number, &[]);
        assert_eq!(window.lines, lines(&whole), "{}", window.stderr);
        window
    }

    fn ledger(&self) -> PathBuf {
        let entries = fs::read_dir(self.folder.path().join("h.parts")).unwrap();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        found.retain(|path| path.extension().is_some_and(|extension| extension == "ledger"));
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    /// The extents that the maps mark in the files, and those that a window takes for changed.
    fn extents(&self, number: usize) -> (ExtentSet, Vec<u32>) {
        let request = Request::of_paths(self.files[number].clone());
        let choice = request.sets().unwrap();
        let (paths, sets) = inventory::one("check", &request.paths, &choice, request.stop.until()).unwrap();
        let what =
            What { named: &request.paths, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
        let request = request.of(paths);
        let input = open(&request, &what, &Silent).unwrap();
        let prepared = prepare(&request, &input, &Silent, &what).unwrap();
        let marked = ExtentSet::marked(input.pages()).unwrap();
        let (since, _) = change::in_window(input.pages(), &prepared, &self.folder.path().join("h")).unwrap();
        let firsts = (0..since.files()[0].pages).step_by(8);
        (marked, firsts.filter(|page| since.above_base(PageId::new(1, *page), 1) == Some(1)).collect())
    }

    /// Data pages in use, in extents that a window does not take for changed.
    fn unchanged(&self, number: usize) -> Vec<u32> {
        let (_, changed) = self.extents(number);
        let pfs = self.page(number, 1);
        let is_in_use = |page: u32| PfsByte(pfs_bytes(Page::new(&pfs)).unwrap()[page as usize]).is_allocated();
        let is_wanted = |page: &u32| {
            let bytes = self.page(number, *page);
            let header = *Page::new(&bytes).header();
            // Each window reads the pages of system tables.
            let is_user = header.alloc_unit().0 >> 48 >= 0x100;
            let is_data = is_user && header.page_type == 1 && header.level == 0 && header.slot_count.get() > 2;
            is_data
                && is_in_use(*page)
                && !changed.contains(&(page / 8 * 8))
                && FixedPage::at(PageId::new(1, *page)).is_none()
        };
        let pages = fs::metadata(self.data(number)).unwrap().len() / PAGE_BYTES as u64;
        (16..pages as u32).filter(is_wanted).collect()
    }
}

fn middle(pages: &[u32]) -> u32 {
    pages[pages.len() / 2]
}

struct Window {
    /// The lines that say neither what the window has cost nor what is left.
    lines: Vec<String>,
    all: String,
    stderr: String,
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ldf")
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let is_of_run = |line: &&str| {
        let kinds = ["statistics", "summary", "window"];
        kinds.iter().any(|kind| line.starts_with(&format!(r#"{{"kind":"{kind}""#)))
            || line.contains("audit.unchanged")
            || line.contains("change.untrusted")
    };
    text.lines().filter(|line| !is_of_run(line)).map(str::to_owned).collect()
}

/// Gives a page an earlier LSN: other bytes, in which no check finds anything.
fn with_other_lsn(bytes: &mut PageBytes) {
    bytes[std::mem::offset_of!(PageHeader, lsn)] ^= 1;
}

#[test]
fn windows_over_snapshots_keep_what_has_not_changed_and_close_with_the_report_of_a_whole_check() {
    let snapshots = Snapshots::new(11, 4, &[0]);
    let first = snapshots.window(0, "20");
    assert!(first.all.contains("window.table-open"), "{}", first.stderr);
    snapshots.closes(0);
    for number in 1..4 {
        // A window that reads little closes nearly everything, because little has changed.
        let window = snapshots.window(number, "1");
        assert!(window.stderr.contains("proven by change: data files, checkpoint"), "{}", window.stderr);
        assert!(!window.stderr.contains("begin again") && !window.stderr.contains("one image"), "{}", window.stderr);
        assert!(window.all.contains("audit.unchanged"), "the audit was confined, and that is said");
        snapshots.closes(number);
    }
}

#[test]
fn a_change_whose_mark_is_not_on_disk_yet_is_seen_through_the_log() {
    let mut unmarked = 0;
    for seed in 1..=4 {
        let snapshots = Snapshots::new(seed, 3, &[0]);
        for number in 0..3 {
            let (marked, changed) = snapshots.extents(number);
            unmarked += changed.iter().filter(|page| !marked.contains(PageId::new(1, **page))).count();
            snapshots.window(number, "15");
            snapshots.closes(number);
        }
    }
    assert!(unmarked > 5, "{unmarked}");
}

#[test]
fn a_new_full_backup_begins_the_windows_again() {
    let snapshots = Snapshots::new(5, 2, &[0, 1]);
    snapshots.closes(0);
    let window = snapshots.closes(1);
    assert!(window.stderr.contains("there is a new full backup; the windows begin again"), "{}", window.stderr);
}

#[test]
fn cleared_maps_without_a_new_full_backup_begin_the_windows_again() {
    let snapshots = Snapshots::new(6, 3, &[0]);
    snapshots.closes(0);
    snapshots.closes(1);
    // The log was read to its end, but the marks of earlier nights are only in the map.
    snapshots.change(2, 6, |bytes| {
        let start = Page::new(bytes).slot_offset(1).unwrap() as usize + 4;
        bytes[start..start + 200].fill(0);
    });
    let window = snapshots.closes(2);
    assert!(window.stderr.contains("were cleared") && window.stderr.contains("begin again"), "{}", window.stderr);
}

#[test]
fn a_map_that_has_missed_a_change_is_not_trusted_until_the_next_full_backup() {
    let snapshots = Snapshots::new(7, 4, &[0, 3]);
    snapshots.closes(0);
    let page = middle(&snapshots.unchanged(1));
    for number in [1, 2] {
        snapshots.change(number, page, with_other_lsn);
    }
    let extent = format!("1:{}", page / 8 * 8);
    for number in [1, 2] {
        let window = snapshots.window(number, ALL);
        assert!(window.stderr.contains("one image after another"), "{}", window.stderr);
        let note = window.all.lines().find(|line| line.contains("change.untrusted")).unwrap();
        assert!(note.contains(&extent), "{note}");
        assert_eq!(window.lines, lines(&snapshots.run(number, &[])));
    }
    let listed = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
        .current_dir(snapshots.folder.path())
        .args(["history", "h", "ledgers"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("missed a change"), "{listed:?}");
    let window = snapshots.closes(3);
    assert!(!window.all.contains("change.untrusted"), "{}", window.stderr);
    assert!(window.stderr.contains("begin again") && !window.stderr.contains("one image"), "{}", window.stderr);
}

#[test]
fn a_page_that_went_bad_is_a_finding_of_the_window_that_reads_it_and_the_maps_are_trusted() {
    let snapshots = Snapshots::new(8, 2, &[0]);
    snapshots.closes(0);
    let page = middle(&snapshots.unchanged(1)) as usize;
    let mut bytes = fs::read(snapshots.data(1)).unwrap();
    bytes[page * PAGE_BYTES + 4000] ^= 1;
    fs::write(snapshots.data(1), bytes).unwrap();
    let window = snapshots.closes(1);
    assert!(window.lines.iter().any(|line| line.contains(r#""kind":"finding""#)), "{}", window.all);
    assert!(!window.all.contains("change.untrusted"));
    assert!(!window.stderr.contains("one image"), "{}", window.stderr);
}

#[test]
fn a_snapshot_in_use_without_its_log_is_an_image_of_its_own() {
    let mut snapshots = Snapshots::new(9, 2, &[0]);
    snapshots.closes(0);
    let log = snapshots.files[1].iter().position(|path| is_log(path)).unwrap();
    fs::remove_file(snapshots.files[1].remove(log)).unwrap();
    let window = snapshots.closes(1);
    assert!(
        window.stderr.contains("its log was not applied") && window.stderr.contains("one image"),
        "{}",
        window.stderr
    );
}

/// Two copies, at different paths, of a database that was shut down.
fn shut_down(seed: u64) -> Snapshots {
    let folder = tempfile::tempdir().unwrap();
    let workload = Workload::new(Spec { seed, transactions: 20, ..Spec::default() }).unwrap();
    let (name, bytes) = workload.crash(Stop::ShutDown, Flush::All).files.remove(0);
    let files = ["a", "b"].map(|night| {
        let path = folder.path().join(night).join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &bytes).unwrap();
        vec![path]
    });
    Snapshots { files: files.into(), folder }
}

#[test]
fn a_copy_of_a_database_that_was_shut_down_needs_no_log_and_is_known_at_any_path() {
    let snapshots = shut_down(3);
    snapshots.closes(0);
    let window = snapshots.window(1, "30");
    assert!(window.stderr.contains("proven by change") && !window.all.contains("table-open"), "{}", window.stderr);
    assert!(!window.stderr.contains("changed bytes"), "only what every window reads was read: {}", window.stderr);
    assert!(!window.stderr.contains("begin again"), "{}", window.stderr);
}

#[test]
fn a_change_that_the_maps_mark_is_seen_in_a_database_that_was_shut_down() {
    let snapshots = shut_down(4);
    // Only what every window reads, and nothing else, is marked on the first night.
    let page = middle(&snapshots.unchanged(0));
    snapshots.closes(0);
    let extent = page as usize / 8;
    snapshots.change(1, 6, |bytes| {
        let bits = Page::new(bytes).slot_offset(1).unwrap() as usize + 4;
        bytes[bits + extent / 8] |= 1 << (extent % 8);
    });
    let mut changed = fs::read(snapshots.data(1)).unwrap();
    changed[page as usize * PAGE_BYTES + 4000] ^= 1;
    fs::write(snapshots.data(1), changed).unwrap();
    let window = snapshots.window(1, "1");
    assert!(window.stderr.contains("changed bytes"), "{}", window.stderr);
    let window = snapshots.closes(1);
    assert!(window.lines.iter().any(|line| line.contains(r#""kind":"finding""#)), "{}", window.all);
    assert!(!window.stderr.contains("begin again"), "{}", window.stderr);
}

#[test]
fn damaged_and_foreign_ledgers_begin_the_windows_again() {
    let snapshots = Snapshots::new(10, 2, &[0]);
    snapshots.closes(0);
    let ledger = snapshots.ledger();
    let bytes = fs::read(&ledger).unwrap();
    for at in [3, 530, 4200, bytes.len() / 3, bytes.len() / 2, bytes.len() - 2000, bytes.len() - 300] {
        let mut changed = bytes.clone();
        changed[at] ^= 0x55;
        changed.truncate(bytes.len() - usize::from(at == 4200) * 100);
        fs::write(&ledger, changed).unwrap();
        let window = snapshots.closes(1);
        assert!(!window.stderr.contains("one image"), "{at}: {}", window.stderr);
    }
    let foreign = Snapshots::new(12, 1, &[0]);
    foreign.closes(0);
    fs::copy(foreign.ledger(), &ledger).unwrap();
    let window = snapshots.closes(1);
    assert!(window.stderr.contains("begin again"), "{}", window.stderr);
}
