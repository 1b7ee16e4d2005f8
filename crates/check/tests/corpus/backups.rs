//! Backups: a sound backup must give the same result as its data files, and a damaged backup must be reported as
//! damaged.

mod damage;
mod fields;
mod in_flight;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use check::Silent;
use findings::{Options, Report};
use libtest_mimic::{Failed, Trial};
use source::backup::{self, SetKind};
use source::{BackupPages, PageSource};

use crate::Corpus;
use crate::sound::{counts_agree, expected, no_findings};

const LAB: &str = "dataplat__appveyor-lab";

/// Pairs of a full backup and a differential backup based on it.
const DIFFERENTIALS: [(&str, &str); 4] = [
    ("@4d3d8b37/sql2008-backups/SimpleBackTest.bak", "@4d3d8b37/sql2008-backups/SimpleBackTest_2.bak"),
    ("DoubleDiffing/difftest-full.bak", "DoubleDiffing/difftest-diff1.bak"),
    ("RestoreTimeClean/RestoreTimeClean.bak", "RestoreTimeClean/RestoreTimeClean2.bak"),
    ("restoretimeclean2016/RestoreTimeClean.bak", "restoretimeclean2016/RestoreTimeClean2.bak"),
];

/// Pairs of stripes of one media set.
const STRIPES: [(&str, &str); 2] = [
    (
        "sql2008-backups/RestoreTimeStripe/Stripe1/RestoreTimeStripe.bak",
        "sql2008-backups/RestoreTimeStripe/Stripe2/RestoreTimeStripe1.bak",
    ),
    (
        "@d419d023/sql2008-backups/RestoreTimeStripe/Stripe1/restoretime.bak",
        "@d419d023/sql2008-backups/RestoreTimeStripe/Stripe2/restoretime1.bak",
    ),
];

/// Tests that damage backups written by the lab.
pub fn lab_trials() -> Vec<Trial> {
    fields::trials()
}

/// One test per backup file, and one per group of files that belong together.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let inventory = fs::read_to_string(corpus.lists.join("inventory.tsv")).expect("inventory.tsv");
    let expected = expected(corpus, "expected-backups.tsv.gz");
    let mut trials = Vec::new();
    for line in inventory.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [path, _, _, kind, version, _, _, name, state, ..] = columns[..] else { continue };
        if !kind.starts_with("bak") {
            continue;
        }
        let full = corpus.files.join(path);
        let rows = expected.get(path).cloned().unwrap_or_default();
        let (version, name, state) = (version.to_owned(), name.to_owned(), state.to_owned());
        trials.push(Trial::test(format!("backups: {path}"), move || {
            labels_agree(&full, &version, &name, &state)?;
            match state.as_str() {
                "log" => refused(&[full], "transaction log backup"),
                state if state.starts_with("diff") => refused(&[full], "name the full backup"),
                _ if is_lone_stripe(&full)? => lone_stripe(full),
                _ => {
                    let report = sound(&[full])?;
                    counts_agree(&report, &rows)
                }
            }
        }));
    }
    let lab = corpus.files.join(LAB);
    for (full, differential) in DIFFERENTIALS {
        let files = [lab.join(full), lab.join(differential)];
        trials.push(Trial::test(format!("backups: {differential} over its full backup"), move || {
            let both = sound(&files)?;
            let [full, differential] = files;
            let reversed = sound(&[differential, full.clone()])?;
            same(&both, &reversed)?;
            if pages(&both) == 0 || both.database.files[0].pages < sound(&[full])?.database.files[0].pages {
                return Err("the differential made the database smaller".into());
            }
            Ok(())
        }));
    }
    for (one, two) in STRIPES {
        let (one, two) = (lab.join(one), lab.join(two));
        trials.push(Trial::test(format!("backups: stripes in any order ({})", two.display()), move || {
            same(&sound(&[one.clone(), two.clone()])?, &sound(&[two.clone(), one.clone()])?)?;
            refused(&[one.clone(), one], "given twice")
        }));
    }
    let corpus = corpus.clone();
    trials.push(Trial::test("backups: what does not belong together is refused", {
        let corpus = corpus.clone();
        move || strangers(&corpus)
    }));
    trials.push(Trial::test("backups: a chosen set is the one that is checked", {
        let corpus = corpus.clone();
        move || chosen_sets(&corpus)
    }));
    trials.extend(damage::trials(&corpus));
    trials.extend(in_flight::trials(&corpus));
    trials
}

pub fn check(files: &[PathBuf]) -> Result<Report, Failed> {
    let pages = BackupPages::open(files, &[]).map_err(|error| error.to_string())?;
    Ok(run(&pages))
}

fn run(pages: &BackupPages) -> Report {
    let report = check::run(pages, &catalog::load(pages), &Options::default(), &Silent);
    crate::coverage::record(&report);
    report
}

/// Asserts that a backup is sound and has no pages in flight: the check is complete and has no finding.
fn sound(files: &[PathBuf]) -> Result<Report, Failed> {
    let pages = BackupPages::open(files, &[]).map_err(|error| error.to_string())?;
    if pages.in_flight() != Some(&[]) {
        return Err(format!("in flight: {:?}", pages.in_flight()).into());
    }
    let report = run(&pages);
    no_findings(&report)?;
    match report.read_errors.first() {
        Some(error) => Err(error.as_str().into()),
        None => Ok(report),
    }
}

fn is_lone_stripe(file: &Path) -> Result<bool, Failed> {
    Ok(backup::media(file).map_err(|error| error.to_string())?.families > 1)
}

fn lone_stripe(file: PathBuf) -> Result<(), Failed> {
    let report = check(&[file])?;
    no_findings(&report)?;
    let is_told = report.not_verified.iter().any(|entry| entry.what == "stripes" && entry.count == 1);
    if is_told { Ok(()) } else { Err("the missing stripe is not reported".into()) }
}

fn refused(files: &[PathBuf], words: &str) -> Result<(), Failed> {
    match BackupPages::open(files, &[]) {
        Ok(_) => Err(format!("not refused: {words}").into()),
        Err(error) if error.to_string().contains(words) => Ok(()),
        Err(error) => Err(error.to_string().into()),
    }
}

fn pages(report: &Report) -> u64 {
    report.rowsets.iter().map(findings::RowsetCounts::pages).sum()
}

fn same(one: &Report, two: &Report) -> Result<(), Failed> {
    let is_same = one.rowsets == two.rowsets && one.not_verified == two.not_verified;
    if is_same { Ok(()) } else { Err("the order of the files makes a difference".into()) }
}

/// Compares sets, names and versions with the inventory, which was made by an independent program.
fn labels_agree(path: &Path, version: &str, name: &str, state: &str) -> Result<(), Failed> {
    let media = backup::media(path).map_err(|error| error.to_string())?;
    if !media.damage.is_empty() {
        return Err(format!("damage: {:?}", media.damage).into());
    }
    let kinds: Vec<&str> = media
        .sets
        .iter()
        .map(|set| match set.kind {
            SetKind::Full => "full",
            SetKind::Differential => "diff",
            SetKind::Log => "log",
            SetKind::Files | SetKind::Partial | SetKind::Other(_) => "other",
        })
        .collect();
    let wanted = state.split([' ', '(']).next().unwrap_or_default();
    if !state.is_empty() && kinds.join("+") != wanted {
        return Err(format!("sets {kinds:?} instead of {state}").into());
    }
    let Some(set) = media.sets.first() else { return Err("no set".into()) };
    if !version.is_empty() && set.config.version.to_string() != version {
        return Err(format!("version {} instead of {version}", set.config.version).into());
    }
    // The inventory takes the name from the boot page, which may still contain the name from before a rename or a
    // restore under another name.
    if !name.to_lowercase().starts_with(&set.config.database.to_lowercase()) && !name.is_empty() {
        return Err(format!("database {} instead of {name}", set.config.database).into());
    }
    let lsns = (set.config.first_lsn, set.config.last_lsn, set.config.checkpoint_lsn);
    let (Some(first), Some(last), Some(_)) = lsns else { return Err(format!("LSNs {lsns:?}").into()) };
    let is_dated = set.config.started.is_some() && set.config.started <= set.config.finished;
    if first > last || !is_dated || state.contains("stripe") && media.families < 2 {
        return Err(format!("{first} to {last}, {:?} to {:?}", set.config.started, set.config.finished).into());
    }
    Ok(())
}

fn strangers(corpus: &Corpus) -> Result<(), Failed> {
    let lab = |name: &str| corpus.files.join(LAB).join(name);
    let full = lab("DoubleDiffing/difftest-full.bak");
    refused(&[full.clone(), lab("RestoreTimeClean/RestoreTimeClean2.bak")], "is not based on the full backup")?;
    refused(&[full.clone(), lab("RestoreTimeClean/RestoreTimeClean.bak")], "neither a stripe")?;
    refused(&[lab(STRIPES[0].0), lab(STRIPES[1].1)], "neither a stripe")?;
    let data_file = corpus.files.join(crate::damage::REAL[0]);
    match source::open(&[full, data_file], &[], false) {
        Err(error) if error.to_string().contains("not both") => Ok(()),
        _ => Err("a data file among backups is not refused".into()),
    }
}

fn chosen_sets(corpus: &Corpus) -> Result<(), Failed> {
    let file = [corpus.files.join("engkhkh__POS/DB.rar.d/pos.bak")];
    let mut rows = BTreeMap::new();
    for (positions, others) in [(vec![], vec![2]), (vec![1], vec![2]), (vec![2], vec![1])] {
        let pages = BackupPages::open(&file, &positions).map_err(|error| error.to_string())?;
        if pages.other_sets() != others || pages.files().len() != 1 {
            return Err(format!("{positions:?}: others {:?}", pages.other_sets()).into());
        }
        let report = run(&pages);
        no_findings(&report)?;
        rows.insert(positions, report.statistics.rows);
    }
    if rows[&vec![]] != rows[&vec![1]] || rows[&vec![1]] == rows[&vec![2]] {
        return Err(format!("rows {rows:?}").into());
    }
    match BackupPages::open(&file, &[3]) {
        Err(error) if error.to_string().contains("the file contains 2") => Ok(()),
        _ => Err("set 3 is not refused".into()),
    }
}
