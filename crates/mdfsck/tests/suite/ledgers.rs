//! Ledgers of a proof by change that are cut, changed, foreign, stale, or left by a killed process: the next check must
//! give the report of a whole check, and say why it has read all pages if it has.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Instant, SystemTime};

use check::Silent;
use check::part::digest;
use findings::{Change, Report};
use jobs::change;
use jobs::input::Input;
use jobs::inventory;
use jobs::prepare::{open_hinted, prepare};
use jobs::request::Request;
use jobs::spread::{Before, Spread, What};
use lab::workload::{ChainOptions, SetKind, Spec, Workload};
use source::PageSource;
use source::backup::{BackupPages, Hints, Restore, Until};
use sums::HashKey;
use tempfile::TempDir;

/// A full backup and a differential backup, and the folder that has them.
struct Backups {
    folder: TempDir,
    full: PathBuf,
    differential: PathBuf,
}

impl Backups {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec { seed, transactions: 40, ..Spec::default() };
        let kinds = [SetKind::Full, SetKind::Differential];
        let chain = Workload::new(spec).unwrap().chain(&kinds, ChainOptions::default(), folder.path()).unwrap();
        let [full, differential] = [0, 1].map(|set| chain.sets[set].files[0].clone());
        Self { folder, full, differential }
    }

    fn both(&self) -> [&Path; 2] {
        [&self.full, &self.differential]
    }

    /// Checks the full backup, which makes a ledger beside a history of this name. Returns the path of the ledger.
    fn with_ledger(&self, history: &str) -> PathBuf {
        let history = self.folder.path().join(history);
        let report = check(&[&self.full], Some(&history), true);
        assert_eq!(report.change, None);
        ledger_beside(&history)
    }
}

/// The only ledger beside a history.
pub(super) fn ledger_beside(history: &Path) -> PathBuf {
    let folder = PathBuf::from(format!("{}.parts", history.display()));
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "ledger"));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Checks backups in this process, as the program does.
fn check(files: &[&Path], history: Option<&Path>, keeps: bool) -> Report {
    let mut request = Request::of_paths(files.iter().map(|path| (*path).to_owned()).collect());
    request.run.maxdop = 1;
    request.results.history = history.map(Path::to_owned);
    (request.keep_parts, request.part_pages) = (keeps.then_some(1 << 30), Some(8));
    with_opened(&request, |request, what, input, before| {
        let prepared = prepare(request, input, &Silent, what).unwrap();
        let source = prepared.recovered.pages_or(input.pages());
        change::check(request, what, (input, before), (source, &prepared), (&Silent, SystemTime::now())).unwrap()
    })
}

/// Opens the files of a request as the program does.
pub(super) fn with_opened<R>(
    request: &Request,
    act: impl FnOnce(&Request, &What<'_>, &Input, Option<&Before>) -> R,
) -> R {
    let choice = request.sets().unwrap();
    let (paths, sets) = inventory::one("check", &request.paths, &choice, request.stop.until()).unwrap();
    let what =
        What { named: &request.paths, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    let request = request.of(paths);
    let before = change::before(&request, &what);
    let hints = change::hints(&request, &what, before.as_ref());
    let input = open_hinted(&request, &what, &Silent, hints).unwrap();
    act(&request, &what, &input, before.as_ref())
}

/// What a report says, without its cost.
pub(super) fn said(report: &Report) -> String {
    let Report {
        rowsets, findings, demoted, not_verified, notes, read_errors, file_totals, ranges, statistics, ..
    } = report;
    let counts = (statistics.rows, statistics.column_values_checked, statistics.index_rows_compared);
    format!(
        "{rowsets:?} {findings:?} {demoted:?} {not_verified:?} {notes:?} {read_errors:?} {file_totals:?} {ranges:?} {counts:?}"
    )
}

/// Whether a report says that it was proven by change, or why not. Requires that it says one of the two.
pub(super) fn was_proven(report: &Report) -> Result<u64, String> {
    match report.change.as_ref().unwrap() {
        Change::Proven(change) => Ok(change.bytes_kept),
        Change::Whole(why) => {
            assert!(!why.is_empty() && !why.contains('\n'), "{why}");
            Err(why.clone())
        }
    }
}

#[test]
fn a_ledger_that_is_cut_anywhere_gives_the_report_of_a_whole_check_and_the_reason() {
    let backups = Backups::new(1);
    let ledger = backups.with_ledger("h");
    let whole = said(&check(&backups.both(), None, false));
    let bytes = fs::read(&ledger).unwrap();
    let places = (0..42).map(|number| number * bytes.len() / 42);
    for length in places.chain([1, 15, 16, 511, 512, 4096, bytes.len() - 2, bytes.len() - 1]) {
        fs::write(&ledger, &bytes[..length]).unwrap();
        let report = check(&backups.both(), Some(&backups.folder.path().join("h")), false);
        assert_eq!(said(&report), whole, "{length}");
        assert!(was_proven(&report).is_err(), "{length}");
    }
}

#[test]
fn a_ledger_with_any_byte_changed_gives_the_report_of_a_whole_check() {
    let backups = Backups::new(1);
    let ledger = backups.with_ledger("h");
    let history = backups.folder.path().join("h");
    let whole = said(&check(&backups.both(), None, false));
    let bytes = fs::read(&ledger).unwrap();
    let (mut proven, mut refused) = (0, 0);
    let slots = (512..568).step_by(4).chain((1024..1080).step_by(4));
    for at in (0..172).map(|number| (number * bytes.len() + 7919) / 172 % bytes.len()).chain(slots) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&ledger, changed).unwrap();
        let report = check(&backups.both(), Some(&history), false);
        assert_eq!(said(&report), whole, "{at}");
        *match was_proven(&report) {
            Ok(_) => &mut proven,
            Err(_) => &mut refused,
        } += 1;
    }
    // Nothing depends on parts of ranges that have changed, or on a slot that was never written.
    assert!(proven > 0 && refused > 50 && proven + refused == 200, "{proven} proven, {refused} refused");
}

#[test]
fn a_ledger_of_another_build_or_another_base_is_not_used() {
    let (backups, other) = (Backups::new(1), Backups::new(2));
    let ledger = backups.with_ledger("h");
    let history = backups.folder.path().join("h");
    let whole = said(&check(&backups.both(), None, false));
    let bytes = fs::read(&ledger).unwrap();
    let whole_again = |bytes: &[u8], reason: &str| {
        fs::write(&ledger, bytes).unwrap();
        let report = check(&backups.both(), Some(&history), false);
        assert_eq!(said(&report), whole, "{reason}");
        let why = was_proven(&report).unwrap_err();
        assert!(why.contains(reason), "{why}");
    };
    whole_again(&with_build(&bytes), "another build of mdfsck");
    whole_again(&fs::read(other.with_ledger("h")).unwrap(), "the ledger is that of ");
    // The ledger as it was is used.
    fs::write(&ledger, bytes).unwrap();
    let report = check(&backups.both(), Some(&history), false);
    assert_eq!(said(&report), whole);
    assert!(was_proven(&report).unwrap() > 0);
}

/// The ledger with another build in its list of contents, and with digests that fit.
fn with_build(bytes: &[u8]) -> Vec<u8> {
    const SLOT: usize = 512;
    let mut changed = bytes.to_vec();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let slot = [SLOT, 1024].into_iter().max_by_key(|slot| number(*slot)).unwrap();
    let (at, length) = (number(slot + 8), number(slot + 16));
    let list = &mut changed[at..at + length];
    let build = b"\"build\":\"";
    let found = list.windows(build.len()).position(|window| window == build).unwrap();
    list[found + build.len()] ^= 1;
    let of_list = digest_of(list);
    changed[slot + 24..slot + 40].copy_from_slice(&of_list);
    let of_slot = digest_of(&changed[slot..slot + 40]);
    changed[slot + 40..slot + 56].copy_from_slice(&of_slot);
    changed
}

fn digest_of(bytes: &[u8]) -> [u8; 16] {
    digest(&HashKey::new([0; HashKey::BYTES]), bytes)
}

#[test]
fn a_base_that_was_touched_replaced_or_copied_is_read_again() {
    let backups = Backups::new(1);
    let history = backups.folder.path().join("h");
    let ledger = backups.with_ledger("h");
    let kept = fs::read(&ledger).unwrap();
    let (full, sound) = (&backups.full, fs::read(&backups.full).unwrap());
    let modified = fs::metadata(full).unwrap().modified().unwrap();
    let read_again = |paths: &[&Path], what: &str| {
        fs::write(&ledger, &kept).unwrap();
        let (report, whole) = (check(paths, Some(&history), false), check(paths, None, false));
        assert_eq!(said(&report), said(&whole), "{what}");
        assert!(was_proven(&report).is_err(), "{what}");
        report.findings.len()
    };
    assert!(was_proven(&check(&backups.both(), Some(&history), false)).is_ok());
    let copy = backups.folder.path().join("copy.bak");
    fs::copy(full, &copy).unwrap();
    assert_eq!(read_again(&[&copy, &backups.differential], "a copy of the base"), 0);
    fs::remove_file(&copy).unwrap();
    let put_back = |path: &Path| File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    let put = |bytes: &[u8]| {
        // The file keeps its number, and gets its old time back.
        fs::write(full, bytes).unwrap();
        put_back(full);
    };
    put(&sound);
    assert_eq!(read_again(&backups.both(), "written again"), 0);
    let mut rotten = sound.clone();
    let page = page_with_rows(&backups);
    let at = sound.windows(page.len()).position(|window| window == page).unwrap();
    rotten[at + 4000] ^= 1;
    put(&rotten);
    assert!(read_again(&backups.both(), "rotten, with its old time") > 0);
    put(&sound);
    let beside = full.with_extension("new");
    fs::write(&beside, &sound).unwrap();
    put_back(&beside);
    fs::rename(&beside, full).unwrap();
    assert_eq!(read_again(&backups.both(), "another file of the same name"), 0);
    File::options().write(true).open(full).unwrap().set_modified(SystemTime::now()).unwrap();
    assert_eq!(read_again(&backups.both(), "touched"), 0);
}

/// The backups of a chain in compressed files or in stripes: those of the full and those of the differential backup.
fn costly(folder: &Path, options: ChainOptions) -> [Vec<PathBuf>; 2] {
    let spec = Spec { seed: 5, transactions: 40, ..Spec::default() };
    let kinds = [SetKind::Full, SetKind::Differential];
    let chain = Workload::new(spec).unwrap().chain(&kinds, options, folder).unwrap();
    [0, 1].map(|set| chain.sets[set].files.clone())
}

const COSTLY: [ChainOptions; 3] = [
    ChainOptions { checksum: true, compressed: true, stripes: 0 },
    ChainOptions { checksum: true, compressed: false, stripes: 3 },
    ChainOptions { checksum: false, compressed: true, stripes: 2 },
];

/// Opens backups with hints.
fn opened(files: &[PathBuf], hints: &[u8]) -> Option<BackupPages> {
    let hints = Hints::read(hints)?;
    Some(Restore::open_hinted(files, &[], None, None, (Until::End, &hints)).unwrap().pages)
}

/// What opening has found, as a check keeps it after it has read everything.
fn hints_of(pages: &BackupPages) -> Option<Vec<u8>> {
    let mut damage = 0;
    pages.container_damage(|_| damage += 1);
    assert_eq!(damage, 0);
    pages.hints(u64::MAX)
}

#[test]
fn what_opening_found_is_used_and_changes_nothing() {
    for options in COSTLY {
        let folder = tempfile::tempdir().unwrap();
        let [full, differential] = costly(folder.path(), options);
        let hints = hints_of(&BackupPages::open(&full, &[]).unwrap()).unwrap();
        // The order of the files does not matter.
        let files: Vec<PathBuf> = differential.iter().chain(full.iter().rev()).cloned().collect();
        let (fresh, hinted) = (BackupPages::open(&files, &[]).unwrap(), opened(&files, &hints).unwrap());
        assert!(hinted.is_hinted() && !fresh.is_hinted());
        assert_eq!(hints_of(&fresh), None, "only a full backup alone gives hints");
        for file in fresh.files() {
            for page in (0..file.pages).map(|page| format::PageId::new(file.file_id, page)) {
                assert_eq!(hinted.read_page(page), fresh.read_page(page), "{page}");
                assert_eq!(hinted.above_base(page, 1), fresh.above_base(page, 1));
            }
        }
        assert!(!hinted.hint_failed());
        // As the program uses them.
        let history = folder.path().join("h");
        let (base, both): (Vec<&Path>, Vec<&Path>) =
            (full.iter().map(PathBuf::as_path).collect(), files.iter().map(PathBuf::as_path).collect());
        assert_eq!(check(&base, Some(&history), true).change, None);
        let report = check(&both, Some(&history), false);
        assert!(was_proven(&report).unwrap() > 0);
        assert_eq!(said(&report), said(&check(&both, None, false)));
    }
}

#[test]
fn forged_hints_are_ignored_or_give_no_wrong_page() {
    let (mut used, mut ignored) = (0, 0);
    for options in COSTLY {
        let folder = tempfile::tempdir().unwrap();
        let [full, _] = costly(folder.path(), options);
        let fresh = BackupPages::open(&full, &[]).unwrap();
        let hints = hints_of(&fresh).unwrap();
        assert!((0..hints.len()).step_by(hints.len() / 50).all(|length| Hints::read(&hints[..length]).is_none()));
        for at in (0..hints.len()).step_by(hints.len() / 40) {
            for bit in [0, 3, 7] {
                let mut forged = hints.clone();
                forged[at] ^= 1 << bit;
                let Some(forged) = opened(&full, &forged) else { continue };
                *if forged.is_hinted() { &mut used } else { &mut ignored } += 1;
                for page in (0..fresh.files()[0].pages).map(|page| format::PageId::new(1, page)) {
                    let Some(bytes) = forged.read_page(page) else { continue };
                    let is_sound = format::protection::verify(&bytes).is_ok();
                    let names_itself = format::Page::new(&bytes).header().page_id() == page;
                    if is_sound && names_itself {
                        assert_eq!(fresh.read_page(page).as_deref(), Some(&*bytes), "{page}, byte {at}");
                    }
                }
            }
        }
    }
    assert!(used > 0 && ignored > 50, "{used} used, {ignored} ignored");
}

#[test]
fn a_record_that_went_bad_lets_all_pages_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let [full, differential] = costly(folder.path(), COSTLY[0]);
    let both = [full[0].as_path(), &differential[0]];
    let history = folder.path().join("h");
    check(&[&full[0]], Some(&history), true);
    let hints = hints_of(&BackupPages::open(&full, &[]).unwrap()).unwrap();
    let sound = fs::read(&full[0]).unwrap();
    let mut failed = 0;
    for at in (5000..sound.len()).step_by(sound.len() / 10) {
        let mut rotten = sound.clone();
        rotten[at] ^= 0x10;
        fs::write(&full[0], &rotten).unwrap();
        let hinted = opened(&full, &hints).unwrap();
        let found = hinted
            .files()
            .iter()
            .flat_map(|file| (0..file.pages).map(|page| format::PageId::new(file.file_id, page)).collect::<Vec<_>>());
        found.for_each(|page| _ = hinted.read_page(page));
        let _ = hinted.container_damage(|_| {});
        failed += usize::from(hinted.hint_failed());
        // The file is not that of the ledger any more, so it is opened without hints.
        let report = check(&both, Some(&history), false);
        assert!(was_proven(&report).is_err());
        assert_eq!(said(&report), said(&check(&both, None, false)), "byte {at}");
    }
    assert!(failed > 6, "{failed} of 10");
}

/// A page with rows of the full backup that the differential backup does not replace.
fn page_with_rows(backups: &Backups) -> Vec<u8> {
    let open = |paths: &[&Path]| {
        source::open(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>(), &[], false).unwrap()
    };
    let (base, later) = (open(&[&backups.full]), open(&backups.both()));
    let is_data = |bytes: &format::PageBytes| {
        let header = format::Page::new(bytes).header();
        matches!(header.page_type, 1 | 2) && header.slot_count.get() > 3
    };
    let pages = (10..base.files()[0].pages).map(|page| format::PageId::new(1, page));
    let same = pages.filter(|page| later.above_base(*page, 1) == Some(0));
    let page = same.filter_map(|page| base.read_page(page)).find(|bytes| is_data(bytes));
    page.unwrap().to_vec()
}

/// Starts the program.
pub(super) fn program(folder: &Path, arguments: &[&str]) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The lines of a report that do not say what the run has cost.
pub(super) fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let is_cost = |line: &&str| line.starts_with(r#"{"kind":"statistics""#) || line.starts_with(r#"{"kind":"summary""#);
    text.lines().filter(|line| !is_cost(line)).map(str::to_owned).collect()
}

/// Checks both backups with the program and the history `h`. Requires the report of a whole check.
fn as_whole(folder: &Path, whole: &Output, what: &str) -> bool {
    let arguments = ["check", "01_full.bak", "02_diff.bak", "--json", "--maxdop", "1", "--history", "h"];
    let output = program(folder, &arguments).wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), whole.status.code(), "{what}: {stderr}");
    assert_eq!(lines(&output), lines(whole), "{what}: {stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("all pages were read"), "{what}: {stderr}");
    stderr.contains("proven by change")
}

/// Kills checks at 30 instants, and checks after each of them that the ledger is as before or complete. `again` are the
/// arguments of the check that is killed. Returns after how many kills there was a ledger.
fn killed(folder: &Path, again: &[&str], what: &str) -> usize {
    let whole = ["check", "01_full.bak", "02_diff.bak", "--json", "--maxdop", "1"];
    let whole = program(folder, &whole).wait_with_output().unwrap();
    let started = Instant::now();
    assert!(program(folder, again).wait_with_output().unwrap().status.code().is_some());
    let length = started.elapsed();
    let kept = ledger_beside(&folder.join("h"));
    let before = fs::read(&kept).unwrap();
    let mut proven = 0;
    for round in 0..30_u32 {
        let is_new = again.contains(&"--keep-parts");
        if is_new {
            fs::remove_file(&kept).unwrap_or_default();
        } else {
            fs::write(&kept, &before).unwrap();
        }
        let mut child = program(folder, again);
        thread::sleep(length * (round * 7 % 30) / 28);
        child.kill().unwrap();
        child.wait().unwrap();
        proven += usize::from(as_whole(folder, &whole, &format!("{what}, round {round}")));
    }
    println!("{what}: {proven} of 30 later checks had a ledger");
    proven
}

#[test]
fn a_check_that_is_killed_while_it_makes_its_ledger_leaves_none_or_a_whole_one() {
    let backups = Backups::new(3);
    let arguments = [
        "check",
        "01_full.bak",
        "--json",
        "--maxdop",
        "1",
        "--history",
        "h",
        "--keep-parts",
        "1GB",
        "--part-pages",
        "8",
    ];
    let proven = killed(backups.folder.path(), &arguments, "made");
    assert!(proven < 30, "some checks were killed before they had a ledger");
}

#[test]
fn a_window_that_is_killed_leaves_what_it_has_kept_and_the_next_one_goes_on() {
    let backups = Backups::new(3);
    let folder = backups.folder.path();
    let whole = ["check", "01_full.bak", "02_diff.bak", "--json", "--maxdop", "1"];
    let whole = program(folder, &whole).wait_with_output().unwrap();
    let window = |most: &'static str| {
        let kept = ["--history", "h", "--keep-parts", "1GB", "--part-pages", "8", "--json", "--maxdop", "1"];
        let window = ["check", "01_full.bak", "02_diff.bak", "--window", "2s", "--most-ranges", most];
        program(folder, &[&window[..], &kept].concat())
    };
    let started = Instant::now();
    assert!(window("1").wait_with_output().unwrap().status.code().is_some());
    let length = started.elapsed();
    for round in 0..40_u32 {
        let mut child = window(["7", "1000"][round as usize % 2]);
        thread::sleep(length * (round * 7 % 40) / 30);
        child.kill().unwrap();
        child.wait().unwrap();
        as_whole(folder, &whole, &format!("a window, round {round}"));
    }
    let closes = |what: &str| {
        let last = window("1000").wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&last.stderr).into_owned();
        assert_eq!(last.status.code(), whole.status.code(), "{what}: {stderr}");
        let of_check = |line: &String| !line.starts_with(r#"{"kind":"window""#);
        assert_eq!(lines(&last).into_iter().filter(of_check).collect::<Vec<_>>(), lines(&whole), "{what}");
        stderr
    };
    closes("after the kills");
    // A ledger that went bad is made anew.
    let ledger = ledger_beside(&folder.join("h"));
    let length = fs::read(&ledger).unwrap().len();
    for at in [700, 5000, length / 3, length / 2, length - 300] {
        let mut bytes = fs::read(&ledger).unwrap();
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 0x55;
        bytes.truncate(bytes.len() - usize::from(at == 5000) * 100);
        fs::write(&ledger, bytes).unwrap();
        let stderr = closes(&format!("byte {at}"));
        assert!(!stderr.contains("panicked") && !stderr.contains("one image after another"), "{at}: {stderr}");
    }
}

#[test]
fn a_check_that_is_killed_while_it_adds_to_a_ledger_leaves_it_as_it_was() {
    let backups = Backups::new(3);
    let folder = backups.folder.path();
    let made = [
        "check",
        "01_full.bak",
        "--json",
        "--maxdop",
        "1",
        "--history",
        "h",
        "--keep-parts",
        "1GB",
        "--part-pages",
        "8",
    ];
    assert!(program(folder, &made).wait_with_output().unwrap().status.success());
    let arguments = ["check", "01_full.bak", "02_diff.bak", "--json", "--maxdop", "1", "--history", "h"];
    assert_eq!(killed(folder, &arguments, "added"), 30, "each later check had a ledger");
}
