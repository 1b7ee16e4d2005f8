//! `lab::damage` on real databases: at least 8 of its 9 kinds find a place on each, and a check finds the damage.
//!
//! The real files are not part of the repository; they are expected in `target/corpus`. The test uses the first
//! [`DATABASES`] files that have a leaf page with two neighbors; `MDFSCK_ALL_FILES=1` lets it use all of them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use check::Silent;
use findings::{Finding, Options, Report};
use format::protection::undo_torn_bits;
use format::{Page, PageId, PageType};
use lab::damage::{Kind, damage};
use source::{DataFiles, PageSource};
use trials::mutate::Pages;

/// The number of databases that are damaged.
const DATABASES: usize = 24;
/// The size of the largest file that is damaged, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// The number of kinds that each database must have a place for.
const LEAST_KINDS: usize = 8;
const SEED: u64 = 1;

/// The data files of the corpus, in the order of their paths.
fn data_files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_small = || entry.metadata().is_ok_and(|of| of.is_file() && of.len() <= MOST_BYTES);
            match path.extension().is_some_and(|of| of.eq_ignore_ascii_case("mdf")) {
                _ if path.is_dir() => folders.push(path),
                true if is_small() => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Whether some leaf page in use has a neighbor on both sides.
fn has_leaf_with_neighbors(source: &dyn PageSource) -> bool {
    let database = catalog::load(source);
    let pages = Pages::new(source, &database);
    let is_such = |id: PageId| {
        let Some(mut bytes) = source.read_page(id) else { return false };
        undo_torn_bits(&mut bytes);
        let header = Page::new(&bytes).header();
        let is_leaf =
            header.kind() == Some(PageType::Data) || header.kind() == Some(PageType::Index) && header.level == 0;
        is_leaf
            && header.page_id() == id
            && !header.prev().is_none()
            && !header.next().is_none()
            && pages.pfs(id).is_some_and(format::allocation::PfsByte::is_allocated)
    };
    pages.ids().any(is_such)
}

fn check(files: &[PathBuf]) -> Report {
    let source = DataFiles::open(files).unwrap();
    let database = catalog::load(&source);
    check::run(&source, &database, &Options::default(), &Silent)
}

/// What identifies a finding in the sound and in the damaged database.
fn places<'a>(findings: impl Iterator<Item = Cow<'a, Finding>>) -> BTreeSet<String> {
    findings.map(|it| format!("{} {:?} {:?} {:?}", it.check.msg, it.page, it.slot, it.ref_page)).collect()
}

/// What a check said about one damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    /// An expected message.
    Expected,
    /// Another message.
    Other,
    /// Only a finding that the missing log may explain.
    NotVerified,
    Nothing,
}

fn seen(path: &Path, kind: Kind, before: &Report) -> Option<Seen> {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("damaged.mdf");
    std::fs::copy(path, &copy).unwrap();
    let files = [copy];
    let done = match damage(&files, kind, SEED) {
        Ok(done) => done,
        Err(why) => {
            println!("  {}: {why}", kind.name());
            return None;
        }
    };
    let after = check(&files);
    let known = places(before.findings.iter());
    let new: Vec<u16> = after
        .findings
        .iter()
        .filter(|finding| !known.contains(&places(std::iter::once(Cow::Borrowed(&**finding))).pop_first().unwrap()))
        .map(|finding| finding.check.msg)
        .collect();
    let seen = if new.iter().any(|message| done.messages.contains(message)) {
        Seen::Expected
    } else if !new.is_empty() {
        Seen::Other
    } else if places(after.demoted.iter()) != places(before.demoted.iter()) {
        Seen::NotVerified
    } else {
        Seen::Nothing
    };
    if seen != Seen::Expected {
        println!("  {}: {seen:?} {new:?}, expected {:?}: {}", kind.name(), done.messages, done.what);
    }
    Some(seen)
}

#[test]
#[ignore = "full tier: real files"]
fn each_real_database_has_a_place_for_most_kinds_and_a_check_finds_the_damage() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    let most = if std::env::var_os("MDFSCK_ALL_FILES").is_some() { usize::MAX } else { DATABASES };
    let (mut databases, mut few, mut missed) = (0, Vec::new(), Vec::new());
    let mut tally: BTreeMap<&str, [u32; 5]> = BTreeMap::new();
    for path in data_files(&corpus) {
        let name = path.strip_prefix(&corpus).unwrap_or(&path).display().to_string();
        match DataFiles::open(std::slice::from_ref(&path)) {
            Ok(source) if has_leaf_with_neighbors(&source) => {}
            _ => continue,
        }
        println!("{name}");
        let before = check(std::slice::from_ref(&path));
        let mut offered = 0;
        for kind in Kind::ALL {
            let seen = seen(&path, kind, &before);
            offered += usize::from(seen.is_some());
            tally.entry(kind.name()).or_default()[seen.map_or(4, |seen| seen as usize)] += 1;
            if matches!(seen, Some(Seen::Nothing)) {
                missed.push(format!("{name}: {}", kind.name()));
            }
        }
        if offered < LEAST_KINDS {
            few.push(format!("{name}: {offered}"));
        }
        databases += 1;
        if databases == most {
            break;
        }
    }
    println!("{databases} databases; kind: expected message, other message, not verified, nothing, no place");
    for (kind, counts) in &tally {
        println!("  {kind:<14} {counts:?}");
    }
    if databases == 0 {
        println!("skipped: no real databases in target/corpus");
    }
    assert_eq!(few, [""; 0], "databases with a place for fewer kinds");
    assert_eq!(missed, [""; 0], "damage that the check did not find");
}
