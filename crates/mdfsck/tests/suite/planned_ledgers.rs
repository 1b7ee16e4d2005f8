//! Plans that use or make a ledger: whatever happens to the ledger, the backups and the parts between the plan and its
//! merge, the report is that of a whole check, or there is none and one line says why.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use check::Silent;
use check::change::{Ledger as _, differing_parts};
use findings::{ByChange, Change, Options, Report};
use jobs::failure::Failure;
use jobs::input::Input;
use jobs::prepare::{Prepared, open_hinted, prepare};
use jobs::request::{Request, RoomOptions};
use jobs::spread::{Before, Merge, Opened, Spread, What};
use jobs::tasks::Work;
use jobs::version::BUILD;
use jobs::{change, inventory, planning};
use lab::workload::{ChainOptions, SetKind, Spec, Workload};
use parts::{Folder, Ledger};
use serde_json::Value;
use source::backup::SetChoice;
use tempfile::TempDir;

use super::ledgers::{ledger_beside, said};

/// A full backup and two later ones, and the folder that has them.
struct Backups {
    folder: TempDir,
    full: PathBuf,
    differential: PathBuf,
    log: PathBuf,
}

const TASK_BYTES: u64 = 1 << 20;

impl Backups {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec { seed, transactions: 120, ..Spec::default() };
        let kinds = [SetKind::Full, SetKind::Differential, SetKind::Log];
        let chain = Workload::new(spec).unwrap().chain(&kinds, ChainOptions::default(), folder.path()).unwrap();
        let [full, differential, log] = [0, 1, 2].map(|set| chain.sets[set].files[0].clone());
        Self { folder, full, differential, log }
    }

    fn both(&self) -> [&Path; 2] {
        [&self.full, &self.differential]
    }

    fn all(&self) -> [&Path; 3] {
        [&self.full, &self.differential, &self.log]
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A plan for these files, all of whose tasks have run.
    fn done(&self, name: &str, files: &[&Path], history: Option<&str>) -> PathBuf {
        let plan = self.plan(name, files, history);
        carry_out(&plan, 1);
        plan
    }

    fn plan(&self, name: &str, files: &[&Path], history: Option<&str>) -> PathBuf {
        let folder = self.path(name);
        plan(files, &folder, history.map(|history| self.path(history)).as_deref(), TASK_BYTES).unwrap();
        folder
    }

    fn merge(&self, plan: &Path, history: &str) -> Result<Report, String> {
        merge(plan, Some(&self.path(history)), u64::MAX).map_err(|failure| {
            assert_eq!(failure.status, Failure::UNABLE, "{}", failure.text);
            assert!(!failure.text.is_empty() && !failure.text.contains('\n'), "{}", failure.text);
            failure.text
        })
    }
}

fn request(files: &[&Path], history: Option<&Path>) -> Request {
    let mut request = Request::of_paths(files.iter().map(|path| (*path).to_owned()).collect());
    request.run.maxdop = 2;
    request.results.history = history.map(Path::to_owned);
    (request.keep_parts, request.part_pages) = (history.map(|_| 1 << 30), Some(8));
    request
}

fn plan(files: &[&Path], folder: &Path, history: Option<&Path>, task_bytes: u64) -> Result<(), Failure> {
    let request = request(files, history);
    let (paths, sets) = inventory::one("plan", &request.paths, &SetChoice::Newest, request.stop.until())?;
    let choice = SetChoice::Newest;
    let what =
        What { named: &request.paths, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    Folder::reserve(folder)?;
    planning::make(folder, &request.of(paths), &what, task_bytes, Box::new(Silent)).map(drop)
}

/// Runs all tasks that have no part, with this number of threads, the last first.
fn carry_out(plan: &Path, threads: u16) {
    let opened = Opened::open(plan).unwrap();
    let work = Work::of(&opened).unwrap();
    let run = jobs::request::RunOptions { maxdop: threads, ..Default::default() };
    let check = opened.request(&RoomOptions::default(), &run);
    for task in work.plan.tasks.iter().rev() {
        work.run(&check, std::slice::from_ref(task), Box::new(Silent)).unwrap();
    }
}

fn merge(plan: &Path, history: Option<&Path>, local_limit: u64) -> Result<Report, Failure> {
    let opened = Opened::open(plan)?;
    let (choice, sets) = (opened.choice(), opened.sets()?);
    let mut check = opened.request(&RoomOptions::default(), &jobs::request::RunOptions::default());
    check.results.history = history.map(Path::to_owned);
    let merge = Merge::gather(opened, local_limit, None)?;
    let spread = Spread::Merge(&merge);
    let what = What { named: &check.paths, choice: &choice, sets: sets.as_deref(), place: None, spread };
    judged(&check, &what)
}

fn judged(check: &Request, what: &What<'_>) -> Result<Report, Failure> {
    with_input(check, what, |input, prepared, before| {
        let source = prepared.recovered.pages_or(input.pages());
        change::check(check, what, (input, before), (source, prepared), (&Silent, SystemTime::now()))
    })
}

fn with_input<R>(
    check: &Request,
    what: &What<'_>,
    act: impl FnOnce(&Input, &Prepared<'_>, Option<&Before>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let before = change::before(check, what);
    let input = open_hinted(check, what, &Silent, change::hints(check, what, before.as_ref()))?;
    let prepared = prepare(check, &input, &Silent, what)?;
    act(&input, &prepared, before.as_ref())
}

fn check(files: &[&Path], history: Option<&Path>) -> Report {
    let request = request(files, history);
    let choice = SetChoice::Newest;
    let (paths, sets) = inventory::one("check", &request.paths, &choice, request.stop.until()).unwrap();
    let what =
        What { named: &request.paths, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    judged(&request.of(paths), &what).unwrap()
}

fn proven(report: &Report) -> &ByChange {
    match report.change.as_ref().unwrap() {
        Change::Proven(change) => change,
        Change::Whole(why) => panic!("{why}"),
    }
}

/// The number of parts in the ledger of a history that fit these files, each of which is what a sweep gives now.
fn parts_that_fit(files: &[&Path], history: &Path) -> u64 {
    let ledger: Ledger<Value> = Ledger::open(&ledger_beside(history), &BUILD).unwrap();
    let request = request(files, None);
    let choice = SetChoice::Newest;
    let (paths, sets) = inventory::one("check", &request.paths, &choice, request.stop.until()).unwrap();
    let what =
        What { named: &request.paths, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    let counted = with_input(&request.of(paths), &what, |input, prepared, _| {
        let source = prepared.recovered.pages_or(input.pages());
        let options = Options { hash_key: Some(ledger.key()), ..prepared.options.clone() };
        Ok(differing_parts(source, &prepared.database, &options, &ledger).unwrap())
    });
    let (count, differing) = counted.unwrap();
    assert_eq!(differing, [], "{count} parts");
    count
}

#[test]
fn a_plan_makes_the_ledger_that_a_check_makes() {
    let backups = Backups::new(1);
    let whole = check(&[&backups.full], Some(&backups.path("check")));
    let plan = backups.done("plan", &[&backups.full], Some("plans"));
    let merged = backups.merge(&plan, "plans").unwrap();
    assert_eq!((said(&merged), merged.change), (said(&whole), None));
    let [of_check, of_plan] = ["check", "plans"].map(|history| {
        let ledger: Ledger<Value> = Ledger::open(&ledger_beside(&backups.path(history)), &BUILD).unwrap();
        assert_eq!(ledger.runs().count(), 1);
        parts_of(&ledger)
    });
    assert!(of_check == of_plan && !of_plan.is_empty(), "{of_check:?} {of_plan:?}");
    let both = backups.both();
    let [of_check, of_plan] = ["check", "plans"].map(|history| parts_that_fit(&both, &backups.path(history)));
    assert!(of_check == of_plan && of_plan > 5, "{of_check} {of_plan}");
    // Both are used by checks in the same way.
    let [one, other] = ["check", "plans"].map(|history| check(&both, Some(&backups.path(history))));
    assert_eq!(said(&one), said(&other));
    assert_eq!(proven(&one).reasons, proven(&other).reasons);
}

/// The ranges of the parts in a ledger, with the lengths of their sums and key bounds.
fn parts_of(ledger: &Ledger<Value>) -> Vec<(u16, u32, usize, usize)> {
    use check::change::{Entry, Piece};
    let mut parts = Vec::new();
    ledger
        .each(&mut |entry| {
            let Entry::Group(group) = entry else { return Ok(()) };
            for (at, key) in group.keys().to_vec().into_iter().enumerate() {
                let (sums, bounds) = (group.read(Piece::Sums(at))?.len(), group.read(Piece::Bounds(at))?.len());
                parts.push((key.range.file_id, key.range.first, sums, bounds));
            }
            Ok(())
        })
        .unwrap();
    parts.sort_unstable();
    parts
}

#[test]
fn tasks_of_any_size_and_with_any_threads_give_the_report_and_the_parts_of_a_check() {
    let backups = Backups::new(2);
    let full = backups.done("full", &[&backups.full], Some("h"));
    backups.merge(&full, "h").unwrap();
    let ledger = ledger_beside(&backups.path("h"));
    let of_full = fs::read(&ledger).unwrap();
    for (state, files) in [backups.both().to_vec(), backups.all().to_vec()].into_iter().enumerate() {
        let whole = check(&files, None);
        let by_change = check(&files, Some(&backups.path("h")));
        let parts = parts_that_fit(&files, &backups.path("h"));
        let mut first = None;
        for (number, (task_bytes, threads)) in
            [(1 << 20, 1), (1 << 20, 3), (2 << 20, 2), (1 << 40, 2)].into_iter().enumerate()
        {
            fs::write(&ledger, &of_full).unwrap();
            let folder = backups.path(&format!("plan-{state}-{number}"));
            plan(&files, &folder, Some(&backups.path("h")), task_bytes).unwrap();
            carry_out(&folder, threads);
            let merged = backups.merge(&folder, "h").unwrap();
            assert_eq!(said(&merged), said(&whole), "{task_bytes}");
            let (plan, check) = (proven(&merged), proven(&by_change));
            assert_eq!((&plan.reasons, plan.ranges, plan.bytes_kept), (&check.reasons, check.ranges, check.bytes_kept));
            assert!(plan.bytes_kept > 0);
            assert_eq!(parts_that_fit(&files, &backups.path("h")), parts, "{task_bytes}");
            // The number of threads does not show in the parts of the tasks.
            let sums = |folder: &Path| fs::metadata(folder.join("parts/0-00000.part")).unwrap().len();
            if task_bytes == 1 << 20 {
                assert_eq!(*first.get_or_insert(sums(&folder)), sums(&folder), "{threads} threads");
            }
        }
        fs::write(&ledger, &of_full).unwrap();
        check(&files, Some(&backups.path("h")));
        // The next plan of the same state reads nothing that was kept.
        let again = backups.done(&format!("again-{state}"), &files, Some("h"));
        let merged = backups.merge(&again, "h").unwrap();
        assert_eq!(said(&merged), said(&whole));
        assert!(proven(&merged).bytes_kept > proven(&by_change).bytes_kept);
        fs::write(&ledger, &of_full).unwrap();
    }
}

#[test]
fn a_ledger_that_is_gone_or_another_one_ends_the_merge_and_a_new_plan_helps() {
    let (backups, other) = (Backups::new(1), Backups::new(3));
    let both = backups.both();
    check(&[&backups.full], Some(&backups.path("h")));
    check(&[&other.full], Some(&backups.path("other")));
    let ledger = ledger_beside(&backups.path("h"));
    let kept = fs::read(&ledger).unwrap();
    let whole = said(&check(&both, None));
    let plan = backups.done("plan", &both, Some("h"));
    let refused = |what: &str| {
        let why = backups.merge(&plan, "h").unwrap_err();
        assert!(why.ends_with("; make a new plan"), "{what}: {why}");
        why
    };
    fs::remove_file(&ledger).unwrap();
    refused("removed");
    fs::write(&ledger, fs::read(ledger_beside(&backups.path("other"))).unwrap()).unwrap();
    assert!(refused("swapped").contains("the ledger is that of "));
    for at in [0, kept.len() / 2, kept.len() - 10] {
        fs::write(&ledger, &kept[..at]).unwrap();
        refused("cut");
    }
    fs::remove_file(&ledger).unwrap();
    check(&[&backups.full], Some(&backups.path("h")));
    assert!(refused("made anew").contains("made anew"), "another key");
    let new = backups.done("new", &both, Some("h"));
    assert_eq!(said(&backups.merge(&new, "h").unwrap()), whole);
    // With the ledger that it rests on, the first plan can still be merged.
    fs::write(&ledger, kept).unwrap();
    assert_eq!(said(&backups.merge(&plan, "h").unwrap()), whole);
}

#[test]
fn a_ledger_with_any_byte_changed_ends_the_merge_or_does_not_show() {
    let backups = Backups::new(1);
    let both = backups.both();
    check(&[&backups.full], Some(&backups.path("h")));
    let ledger = ledger_beside(&backups.path("h"));
    let kept = fs::read(&ledger).unwrap();
    let whole = said(&check(&both, None));
    let plan = backups.done("plan", &both, Some("h"));
    let (mut merged, mut refused) = (0, 0);
    for number in 0..60 {
        let mut changed = kept.clone();
        let at = (number * kept.len() + 7919) / 60 % kept.len();
        changed[at] ^= 1 << (at % 8);
        fs::write(&ledger, changed).unwrap();
        match backups.merge(&plan, "h") {
            Ok(report) => {
                assert_eq!(said(&report), whole, "{at}");
                merged += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(merged > 0 && refused > 10, "{merged} merged, {refused} refused");
}

#[test]
fn a_ledger_that_has_grown_or_was_written_anew_since_the_plan_still_serves() {
    let backups = Backups::new(1);
    let both = backups.both();
    check(&[&backups.full], Some(&backups.path("h")));
    let whole = said(&check(&both, None));
    let plan = backups.done("plan", &both, Some("h"));
    let left_out = proven(&backups.merge(&plan, "h").unwrap()).bytes_kept;
    // Now the ledger has the parts of the tasks too, and those of a later state.
    check(&backups.all(), Some(&backups.path("h")));
    let again = backups.merge(&plan, "h").unwrap();
    assert_eq!((said(&again), proven(&again).bytes_kept), (whole.clone(), left_out), "nothing is counted twice");
    Ledger::<Value>::compact(&ledger_beside(&backups.path("h")), &BUILD).unwrap();
    match backups.merge(&plan, "h") {
        Ok(report) => assert_eq!(said(&report), whole),
        // Only the latest part of each range is left, which may be that of the later state.
        Err(why) => {
            assert!(why.contains("ranges any more, which the plan has left out; the first begins at page ("), "{why}")
        }
    }
    let new = backups.done("new", &both, Some("h"));
    assert_eq!(said(&backups.merge(&new, "h").unwrap()), whole);
}

#[test]
fn backups_that_change_and_parts_of_another_plan_are_refused() {
    let backups = Backups::new(1);
    let both = backups.both();
    check(&[&backups.full], Some(&backups.path("h")));
    let plan = backups.done("plan", &both, Some("h"));
    let whole_plan = backups.done("whole", &both, None);
    let part = plan.join("parts/0-00000.part");
    let own = fs::read(&part).unwrap();
    fs::copy(whole_plan.join("parts/0-00000.part"), &part).unwrap();
    assert!(merge(&plan, Some(&backups.path("h")), 0).err().unwrap().text.contains("is a part of another plan"));
    fs::write(&part, &own).unwrap();
    // A part of the same plan for other ranges is refused too.
    let modified = fs::metadata(&backups.full).unwrap().modified().unwrap();
    let mut bytes = fs::read(&backups.full).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&backups.full, bytes).unwrap();
    fs::File::options().write(true).open(&backups.full).unwrap().set_modified(modified).unwrap();
    if cfg!(unix) {
        let why = backups.merge(&plan, "h").unwrap_err();
        assert!(why.contains("was changed or replaced") && why.ends_with("make a new plan"), "{why}");
    }
}

#[test]
fn a_plan_without_a_ledger_that_fits_divides_everything() {
    let backups = Backups::new(1);
    let both = backups.both();
    let whole = said(&check(&both, None));
    // The history has a ledger of another backup only, and the parts of this check are not kept.
    let folder = backups.path("plain");
    let mut request = request(&both, Some(&backups.path("h")));
    request.keep_parts = None;
    let (paths, sets) = inventory::one("plan", &request.paths, &SetChoice::Newest, request.stop.until()).unwrap();
    let choice = SetChoice::Newest;
    let named = request.paths.clone();
    let what = What { named: &named, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    Folder::reserve(&folder).unwrap();
    let plan = planning::make(&folder, &request.of(paths.clone()), &what, TASK_BYTES, Box::new(Silent)).unwrap();
    assert!(plan.options.ledger.is_none() && plan.rest.is_empty());
    carry_out(&folder, 2);
    let report = merge(&folder, None, u64::MAX).unwrap();
    assert_eq!((said(&report), report.change), (whole, None));
    // An option that needs all pages: one line says why, and the tasks read all pages.
    check(&[&backups.full], Some(&backups.path("h")));
    request.scope.physical_only = true;
    let folder = backups.path("physical");
    Folder::reserve(&folder).unwrap();
    let plan = planning::make(&folder, &request.of(paths), &what, TASK_BYTES, Box::new(Silent)).unwrap();
    assert!(plan.options.ledger.is_none());
}
