//! Tests which parts of an earlier window are used. Some parts must not be used although the files seem to be
//! unchanged.

use std::fs;

use check::Silent;
use findings::Options;
use format::PageId;
use format::page::PAGE_BYTES;
use parts::{Folder, Image, PlanId, new_key};
use source::DataFiles;
use tempfile::TempDir;

use super::*;
use crate::spread::Common;
use crate::spread::make::Division;
use crate::spread::make::plan_of;

/// A damaged lab database, and a plan with all tasks done.
struct Made {
    _folder: TempDir,
    path: PathBuf,
    opened: Opened,
    parts: BTreeMap<u32, PartRow>,
    options: Options,
}

impl Made {
    fn usable(&self) -> Result<BTreeMap<u32, PartRow>, String> {
        usable(&self.opened, &open(&self.path), self.parts.clone())
    }
}

fn open(path: &Path) -> DataFiles {
    DataFiles::open(&[path.to_owned()]).unwrap()
}

fn made() -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = lab::write(&lab::orders::orders(lab::Version::V904, 3, 4 << 20), folder.path()).unwrap().files.remove(0);
    let mut bytes = fs::read(&path).unwrap();
    // Damages a data page, so that its checksum is wrong.
    let page = (200..).find(|page| bytes[page * PAGE_BYTES + 1] == 1).unwrap();
    bytes[page * PAGE_BYTES + 4000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let key = new_key().unwrap();
    let options = Options { hash_key: Some(key.clone()), ..Options::default() };
    let source = open(&path);
    let (database, catalog) = check::part::load(&source, &key);
    let (opened, parts) = sweeper(&source, &database, &options, &Silent, |sweeper| {
        let sweeper = sweeper.unwrap();
        let request = Request::of_paths(vec![path.clone()]);
        let choice = source::backup::SetChoice::Newest;
        let what = What { named: &[], choice: &choice, sets: None, place: None, spread: super::super::Spread::None };
        let image = Image::new(catalog, Some(sweeper.fingerprint));
        let division = Division::of(sweeper, None, 128);
        let plan = plan_of(
            PlanId::new().unwrap(),
            Planned::of(&request, &what),
            "d".to_owned(),
            (Vec::new(), image),
            &division,
        );
        let place = folder.path().join("plan");
        Folder::reserve(&place).unwrap();
        let folder = Folder::create(&place, &plan, &key, None, None).unwrap();
        let opened = Opened { folder, plan, rounds: Vec::new(), common: Common { key: key.clone(), audit: None } };
        let mut parts = BTreeMap::new();
        for task in &opened.plan.tasks {
            let done = sweep(&opened, sweeper, task, &Silent).unwrap();
            let held = held(&opened, &source, task).unwrap();
            assert_eq!(held.is_some(), done.findings > 0);
            parts.insert(
                task.id,
                PartRow { is_read: true, held: held.map(|held| held.fingerprint), started: String::new() },
            );
        }
        (opened, parts)
    });
    assert_eq!(parts.values().filter(|row| row.held.is_some()).count(), 1);
    Made { _folder: folder, path, opened, parts, options }
}

fn flip(path: &Path, page: u32, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[page as usize * PAGE_BYTES + at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_page_with_a_finding_that_holds_something_else_now_is_noticed() {
    let made = made();
    assert_eq!(made.usable(), Ok(made.parts.clone()));
    let bytes = fs::read(&made.path).unwrap();
    let page = (200..).find(|page| bytes[*page as usize * PAGE_BYTES + 1] == 1).unwrap();
    // Repairs the damage. The size of the file does not change, but the recorded finding is now wrong, so no part may
    // be used again.
    flip(&made.path, page, 4000);
    let why = made.usable().unwrap_err();
    assert!(why.starts_with(&format!("{}: page", made.path.display())), "{why}");
    assert!(
        why.contains(&PageId::new(1, page).to_string())
            && why.contains("not have the content that an earlier window read"),
        "{why}"
    );
}

#[test]
fn a_part_that_is_missing_or_damaged_is_not_done_and_no_reason_for_a_new_image() {
    let made = made();
    let (id, _) = made.parts.iter().find(|(_, row)| row.held.is_some()).unwrap();
    let path = made.opened.folder.part_path(&made.opened.plan, &made.opened.plan.tasks[*id as usize]);
    let part = fs::read(&path).unwrap();
    let mut others = made.parts.clone();
    others.remove(id);
    // First damages the format version in the part. Then damages the frame with the findings, which follows the head of
    // the part. In both cases, the part must count as missing.
    let head = u32::from_le_bytes(part[12..16].try_into().unwrap()) as usize;
    for at in [9, 16 + head + 8] {
        let mut damaged = part.clone();
        damaged[at] ^= 1;
        fs::write(&path, damaged).unwrap();
        assert_eq!(made.usable().as_ref(), Ok(&others), "byte {at}");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(made.usable(), Ok(others));
}

#[test]
fn other_maps_are_another_image() {
    let made = made();
    let fingerprint = |path: &Path| {
        let source = open(path);
        let (database, catalog) = check::part::load(&source, made.opened.folder.key());
        let maps = sweeper(&source, &database, &made.options, &Silent, |sweeper| sweeper.unwrap().fingerprint);
        (catalog, maps)
    };
    let (catalog, maps) = fingerprint(&made.path);
    assert!(made.opened.verify_maps(maps).is_ok() && made.opened.verify(&[], catalog).is_ok());
    // Changes one byte at a time: of the PFS page, of an IAM page (which determines the owner of an extent), of the
    // boot page, and of a row in a base table. Each change must make the plan unusable.
    let bytes = fs::read(&made.path).unwrap();
    let iam = (10..).find(|page| bytes[page * PAGE_BYTES + 1] == 10).unwrap() as u32;
    for page in [1, iam] {
        flip(&made.path, page, 300);
        let (_, maps) = fingerprint(&made.path);
        assert!(made.opened.verify_maps(maps).is_err(), "page {page}");
        flip(&made.path, page, 300);
    }
    let sysallocunits = (10..).find(|page| bytes[page * PAGE_BYTES + 1] == 1).unwrap() as u32;
    for (page, at) in [(9, 3000), (sysallocunits, 110)] {
        flip(&made.path, page, at);
        let (catalog, _) = fingerprint(&made.path);
        assert!(made.opened.verify(&[], catalog).is_err(), "page {page}");
        flip(&made.path, page, at);
    }
}

#[test]
fn a_part_without_findings_holds_nothing_to_be_read_again() {
    let made = made();
    let sound = made.opened.plan.tasks.iter().find(|task| made.parts[&task.id].held.is_none()).unwrap();
    flip(&made.path, sound.first + 9, 5000);
    assert_eq!(made.usable(), Ok(made.parts.clone()), "bit rot since shows in the next cycle");
}

#[test]
fn nothing_is_removed_but_folders_of_windows() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str| folder.path().join(name);
    let own = named("0123456789abcdef");
    let others = ["0123456789ABCDEE", "0123456789abcde", "0123456789abcdeff", "notes"].map(named);
    for path in others.iter().chain([&own]) {
        fs::create_dir(path).unwrap();
        fs::write(path.join("plan.json"), "{}").unwrap();
        remove(path);
    }
    assert!(!own.exists());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&others[3], &own).unwrap();
        remove(&own);
    }
    for path in &others {
        assert!(path.join("plan.json").exists(), "{}", path.display());
    }
}
