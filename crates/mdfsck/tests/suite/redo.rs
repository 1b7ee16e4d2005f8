//! Proofs of log backups whose redo goes on from the last proof: the report and all pages must be those of a whole check,
//! whatever happens to what was kept, to the backups, or to the process.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;
use std::time::{Instant, SystemTime};

use check::Silent;
use findings::Report;
use format::PageId;
use jobs::change;
use jobs::prepare::prepare_with;
use jobs::redo::Redo;
use jobs::request::Request;
use lab::workload::SetKind::{Differential, Full, Log};
use lab::workload::{Chain, ChainOptions, Event, SetKind, Spec, Workload};
use source::PageSource;
use tempfile::TempDir;

use super::ledgers::{ledger_beside, lines, program, said, was_proven, with_opened};

/// A chain of backups in a folder.
struct Backups {
    folder: TempDir,
    chain: Chain,
}

/// What a check has found, and how it applied the log.
struct Checked {
    report: Report,
    pages: u64,
    is_resumed: bool,
}

impl Backups {
    fn new(spec: Spec, kinds: &[SetKind]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let chain = Workload::new(spec).unwrap().chain(kinds, ChainOptions::default(), folder.path()).unwrap();
        Self { folder, chain }
    }

    /// The file of a set.
    fn file(&self, set: usize) -> &Path {
        &self.chain.sets[set].files[0]
    }

    /// Checks these sets, with the history or without.
    fn check(&self, sets: &[usize], has_history: bool) -> Checked {
        let files: Vec<PathBuf> = sets.iter().map(|set| self.file(*set).to_owned()).collect();
        check(&files, has_history.then(|| self.folder.path().join("h")).as_deref(), None)
    }

    /// Checks these sets with the history and without it, and requires the same. Returns whether redo went on from the
    /// last proof.
    fn prove(&self, sets: &[usize], what: &str) -> bool {
        let (whole, proven) = (self.check(sets, false), self.check(sets, true));
        assert_same(&whole, &proven, what);
        assert!(was_proven(&proven.report).is_ok(), "{what}: {:?}", proven.report.change);
        proven.is_resumed
    }

    fn kept(&self) -> PathBuf {
        ledger_beside(&self.folder.path().join("h")).with_extension("redo")
    }
}

fn assert_same(whole: &Checked, proven: &Checked, what: &str) {
    assert_eq!(said(&whole.report), said(&proven.report), "{what}");
    let recovery = |checked: &Checked| format!("{:?}", checked.report.options.recovery);
    assert_eq!(recovery(whole), recovery(proven), "{what}");
    assert_eq!(whole.pages, proven.pages, "{what}");
}

fn check(files: &[PathBuf], history: Option<&Path>, memory: Option<u64>) -> Checked {
    let mut request = Request::of_paths(files.to_vec());
    request.run.maxdop = 1;
    request.recovery.room.memory = memory;
    request.results.history = history.map(Path::to_owned);
    (request.keep_parts, request.part_pages) = (history.map(|_| 1 << 30), Some(8));
    with_opened(&request, |request, what, input, before| {
        let mut redo = Redo::of(request, before, input);
        let prepared = prepare_with(request, input, &Silent, what, redo.as_mut().map(Redo::going_on)).unwrap();
        let source = prepared.recovered.pages_or(input.pages());
        let (pages, is_resumed) = (digest_of(source), prepared.recovered.is_resumed);
        let report =
            change::check(request, what, (input, before), (source, &prepared), (&Silent, SystemTime::now())).unwrap();
        redo.filter(|_| was_proven_or_none(&report)).into_iter().for_each(Redo::commit);
        Checked { report, pages, is_resumed }
    })
}

fn was_proven_or_none(report: &Report) -> bool {
    report.change.is_some() && was_proven(report).is_ok()
}

/// A digest of all pages.
fn digest_of(source: &dyn PageSource) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in source.files() {
        for page in (0..file.pages).map(|page| PageId::new(file.file_id, page)) {
            source.read_page(page).map(|bytes| bytes.to_vec()).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn spec(seed: u64) -> Spec {
    Spec { seed, transactions: 150, ..Spec::default() }
}

const KINDS: [SetKind; 12] = [Full, Differential, Log, Log, Log, Log, Log, Log, Log, Log, Log, Log];

#[test]
fn each_log_backup_goes_on_from_the_proof_of_the_one_before_and_gives_the_pages_of_a_whole_check() {
    for (seed, ddl_each) in [(1, 0), (2, 3), (3, 1)] {
        let backups = Backups::new(Spec { ddl_each, ..spec(seed) }, &KINDS);
        backups.check(&[0], true);
        let mut resumed = 0;
        for last in 1..KINDS.len() {
            let sets: Vec<usize> = (0..=last).collect();
            resumed += usize::from(backups.prove(&sets, &format!("seed {seed}, set {last}")));
        }
        // The first log backup has nothing to go on from.
        assert_eq!(resumed, KINDS.len() - 3, "seed {seed}");
        // Again, with nothing new.
        let all: Vec<usize> = (0..KINDS.len()).collect();
        let before = fs::read(backups.kept()).unwrap();
        assert!(backups.prove(&all, "again") && fs::read(backups.kept()).unwrap() == before);
        // An earlier moment is proven without it, and leaves it.
        assert!(!backups.prove(&all[..5], "an earlier moment") && fs::read(backups.kept()).unwrap() == before);
        assert!(backups.prove(&all, "the newest again"));
    }
}

#[test]
fn transactions_that_are_open_across_many_log_backups_are_undone_as_in_a_whole_check() {
    // Few transactions for each of many backups: most are open at the end of several of them.
    let kinds: Vec<SetKind> = [Full].into_iter().chain([Log; 18]).collect();
    let (mut undone, mut resumed) = (0, 0);
    for seed in 20..24 {
        let backups = Backups::new(Spec { transactions: 60, ddl_each: 4, ..spec(seed) }, &kinds);
        backups.check(&[0], true);
        for last in 1..kinds.len() {
            let sets: Vec<usize> = (0..=last).collect();
            resumed += usize::from(backups.prove(&sets, &format!("seed {seed}, set {last}")));
            let report = backups.check(&sets, true).report;
            undone += report.options.recovery.map_or(0, |recovery| recovery.transactions_undone);
        }
    }
    // A bulk load lets redo begin anew.
    assert!(resumed > 60 && undone > 20, "{resumed} resumed, {undone} undone");
}

#[test]
fn kept_pages_with_any_byte_changed_or_cut_give_the_pages_of_a_whole_check() {
    let backups = Backups::new(Spec { transactions: 20, ..spec(5) }, &[Full, Log, Log, Log]);
    backups.check(&[0], true);
    backups.prove(&[0, 1], "first");
    backups.prove(&[0, 1, 2], "second");
    let kept = backups.kept();
    let bytes = fs::read(&kept).unwrap();
    let all = [0, 1, 2, 3];
    let whole = backups.check(&all, false);
    let (mut resumed, mut refused) = (0, 0);
    let slots = (0..16).chain(512..568).chain(1024..1080);
    let places = (0..120).map(|number| (number * bytes.len() + 6121) / 120 % bytes.len());
    let flips = slots.chain(places).map(|at| {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        (format!("byte {at}"), changed)
    });
    let cuts = (0..30).map(|number| number * bytes.len() / 30).chain([bytes.len() - 1]);
    for (what, changed) in flips.chain(cuts.map(|length| (format!("cut at {length}"), bytes[..length].to_vec()))) {
        fs::write(&kept, changed).unwrap();
        let proven = check_files(&backups, &all);
        assert_same(&whole, &proven, &what);
        *if proven.is_resumed { &mut resumed } else { &mut refused } += 1;
    }
    println!("{resumed} went on, {refused} began at the full backup");
    assert!(resumed > 10 && refused > 100, "{resumed} {refused}");
    // Those of another chain are as good as none.
    let other = Backups::new(Spec { transactions: 20, ..spec(6) }, &[Full, Log, Log, Log]);
    other.check(&[0], true);
    other.prove(&[0, 1], "other");
    fs::copy(other.kept(), &kept).unwrap();
    let proven = check_files(&backups, &all);
    assert_same(&whole, &proven, "foreign");
    assert!(!proven.is_resumed);
}

fn check_files(backups: &Backups, sets: &[usize]) -> Checked {
    let checked = backups.check(sets, true);
    assert!(was_proven(&checked.report).is_ok());
    checked
}

#[test]
fn a_log_backup_that_was_touched_or_a_newer_differential_lets_redo_begin_anew() {
    let backups = Backups::new(spec(7), &[Full, Differential, Log, Log, Differential, Log, Log]);
    backups.check(&[0], true);
    assert!(!backups.prove(&[0, 1, 2], "first"));
    assert!(backups.prove(&[0, 1, 2, 3], "second"));
    let put_back = fs::read(backups.file(2)).unwrap();
    fs::write(backups.file(2), put_back).unwrap();
    assert!(!backups.prove(&[0, 1, 2, 3], "written again"));
    assert!(backups.prove(&[0, 1, 2, 3], "as it is now"));
    File::options().write(true).open(backups.file(3)).unwrap().set_modified(SystemTime::now()).unwrap();
    assert!(!backups.prove(&[0, 1, 2, 3], "touched"));
    assert!(!backups.prove(&[0, 4, 5], "a newer differential"));
    assert!(backups.prove(&[0, 4, 5, 6], "after the newer differential"));
    // Without the differential backup, the log goes back to the full backup.
    assert!(!backups.prove(&[0, 2, 3, 5], "without a differential"));
    // With less memory than the log has needed, it might be refused.
    let files: Vec<PathBuf> = [0, 2, 3, 5, 6].iter().map(|set| backups.file(*set).to_owned()).collect();
    let history = backups.folder.path().join("h");
    let less = check(&files, Some(&history), Some(100 << 20));
    assert!(!less.is_resumed);
    assert_same(&backups.check(&[0, 2, 3, 5, 6], false), &less, "less memory");
}

#[test]
fn a_fork_of_the_chain_does_not_go_on_from_the_branch_that_was_left() {
    let backup = |kind| [Event::Work, Event::BackUp(kind)];
    let mut events: Vec<Event> = [backup(Full), backup(Log)].concat();
    events.extend([Event::Settle, Event::Remember]);
    events.extend([backup(Log), backup(Log)].concat());
    events.push(Event::Restore);
    events.extend([backup(Log), backup(Log)].concat());
    let folder = tempfile::tempdir().unwrap();
    let chain = Workload::new(spec(8)).unwrap().story(&events, ChainOptions::default(), folder.path()).unwrap();
    let backups = Backups { folder, chain };
    backups.check(&[0], true);
    for sets in [&[0, 1][..], &[0, 1, 2], &[0, 1, 2, 3]] {
        backups.prove(sets, "before the fork");
    }
    let (whole, proven) = (backups.check(&[0, 1, 4], false), backups.check(&[0, 1, 4], true));
    assert_same(&whole, &proven, "the fork");
    assert!(!proven.is_resumed);
    assert!(backups.prove(&[0, 1, 4, 5], "on the fork"));
}

/// The arguments of a check of the first sets.
fn arguments(backups: &Backups, sets: usize, more: &[&str]) -> Vec<String> {
    let files = (0..sets).map(|set| backups.file(set).file_name().unwrap().to_str().unwrap().to_owned());
    let fixed = ["--json", "--maxdop", "1"].into_iter().chain(more.iter().copied()).map(str::to_owned);
    ["check".to_owned()].into_iter().chain(files).chain(fixed).collect()
}

fn run(folder: &Path, arguments: &[String]) -> Output {
    program(folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>()).wait_with_output().unwrap()
}

#[test]
fn a_proof_that_is_killed_while_it_keeps_pages_leaves_them_as_they_were() {
    let backups = Backups::new(spec(9), &[Full, Log, Log, Log, Log]);
    let folder = backups.folder.path();
    let history = ["--history", "h", "--keep-parts", "1GB", "--part-pages", "8"];
    for sets in 1..=3 {
        assert!(run(folder, &arguments(&backups, sets, &history)).status.success());
    }
    let (kept, ledger) = (backups.kept(), ledger_beside(&folder.join("h")));
    let before = [fs::read(&kept).unwrap(), fs::read(&ledger).unwrap()];
    let whole = run(folder, &arguments(&backups, 5, &[]));
    let started = Instant::now();
    assert!(run(folder, &arguments(&backups, 4, &history)).status.success());
    let length = started.elapsed();
    for round in 0..40_u32 {
        fs::write(&kept, &before[0]).unwrap();
        fs::write(&ledger, &before[1]).unwrap();
        let killed = arguments(&backups, 4, &history);
        let mut child = program(folder, &killed.iter().map(String::as_str).collect::<Vec<_>>());
        thread::sleep(length * (round * 7 % 40) / 36);
        child.kill().unwrap();
        child.wait().unwrap();
        let after = run(folder, &arguments(&backups, 5, &history));
        let stderr = String::from_utf8_lossy(&after.stderr).into_owned();
        assert_eq!((after.status.code(), lines(&after)), (whole.status.code(), lines(&whole)), "{round}: {stderr}");
        assert!(stderr.contains("proven by change") && !stderr.contains("panicked"), "{round}: {stderr}");
    }
}

#[test]
fn chain_says_the_same_with_a_ledger_and_reads_only_what_has_changed() {
    let backups = Backups::new(spec(10), &[Full, Differential, Log, Log]);
    let folder = backups.folder.path();
    let chain = |more: &[&str]| {
        let arguments = [&["chain", ".", "--verify", "--json"][..], more].concat();
        let output = program(folder, &arguments).wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        ((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()), stderr)
    };
    let (whole, stderr) = chain(&[]);
    assert!(whole.0 == Some(0) && !stderr.contains("by change"), "{stderr}");
    let (first, stderr) = chain(&["--history", "h", "--keep-parts", "1GB"]);
    assert_eq!(first, whole, "{stderr}");
    for _ in 0..2 {
        let (proven, stderr) = chain(&["--history", "h"]);
        assert_eq!(proven, whole, "{stderr}");
        assert!(stderr.contains("proven by change: Transaction Log of ") && stderr.contains("base: "), "{stderr}");
    }
    // A ledger that cannot be used changes nothing.
    let ledger = ledger_beside(&folder.join("h"));
    let sound = fs::read(&ledger).unwrap();
    fs::write(&ledger, &sound[..sound.len() / 2]).unwrap();
    let (proven, stderr) = chain(&["--history", "h"]);
    assert_eq!(proven, whole, "{stderr}");
    assert!(stderr.contains("all pages were read: "), "{stderr}");
    fs::write(&ledger, sound).unwrap();
    // A damaged page of the differential backup is found as without a ledger.
    let differential = backups.file(1);
    let mut bytes = fs::read(differential).unwrap();
    let pages = bytes.windows(4).position(|tag| tag == b"MQDA").unwrap() + 24;
    let at = pages + (bytes.len() - pages) / 3;
    bytes[at..at + 4096].iter_mut().for_each(|byte| *byte ^= 0x55);
    fs::write(differential, bytes).unwrap();
    assert_eq!(chain(&["--history", "h"]).0, chain(&[]).0);
}

#[test]
fn a_log_backup_with_extents_of_a_bulk_operation_is_not_verified_by_name_in_every_way() {
    let spec = Spec { bulk_extents: 3, ..spec(11) };
    let backups = Backups::new(spec, &[Full, Log, Log]);
    let folder = backups.folder.path();
    let ran = |arguments: &[&str]| {
        let output = program(folder, arguments).wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let reason = "has extents that a bulk operation wrote";
    for history in [&[][..], &["--history", "h", "--keep-parts", "1GB"]] {
        let check = ["check", "01_full.bak", "02_log.trn", "03_log.trn"];
        let (status, said) = ran(&[&["check", "01_full.bak"][..], history].concat());
        assert_eq!(status, Some(0), "{said}");
        let (status, said) = ran(&[&check[..], history].concat());
        assert_eq!(status, Some(16), "{said}");
        assert!(said.contains(reason), "{said}");
        let (status, said) = ran(&[&["chain", ".", "--verify"][..], history].concat());
        assert_eq!(status, Some(16), "{said}");
        assert!(said.contains(reason), "{said}");
    }
    let extract = ["extract", "01_full.bak", "02_log.trn", "03_log.trn", "--recovered", "-o", "out"];
    let (status, said) = ran(&extract);
    assert_eq!(status, Some(16), "{said}");
    assert!(said.contains(reason), "{said}");
    let (status, said) = ran(&["watch", ".", "--history", "w", "--once", "--settle", "1s", "--json"]);
    assert_eq!(status, Some(16), "{said}");
    assert!(said.contains("it has extents that a bulk operation wrote"), "{said}");
}
