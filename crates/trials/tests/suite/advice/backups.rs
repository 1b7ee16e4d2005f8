//! The databases of these tests have damaged pages, and backups contain copies of these pages. The plan must restore
//! exactly the damaged pages, and the copies in the backup must equal the original pages.

use std::collections::BTreeMap;

use advise::Action;
use format::Lsn;
use lab::backup::{BackupOptions, Base, Container, Set, backup};
use lab::damage::{Kind, damage};
use lab::workload::{ChainOptions, SetKind, Spec};
use lab::{PageVerify, Version, orders};
use source::backup::Restore;
use trials::mutate::Random;

use super::*;

/// The number of damaged databases for each form of backup (plain, compressed, striped and others).
const SEEDS: u64 = 50;
/// The number of backup chains to test. Each chain belongs to a different database in use, which then gets one damaged
/// page.
const CHAINS: u64 = 24;

/// The number of bytes that this thread has read so far; `None` if the system does not count them.
fn bytes_read() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok())
}

/// The pages that the script for a page restore names.
fn pages_of_script(step: &Step) -> BTreeSet<PageId> {
    let sql = step.sql.join("\n");
    let list = sql.split("PAGE = '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    let page = |text: &str| {
        let (file, page) = text.trim().split_once(':').unwrap();
        PageId::new(file.parse().unwrap(), page.parse().unwrap())
    };
    list.split(',').map(page).collect()
}

/// The damaged pages of tables, and the indexes with damaged pages.
fn hurt_places(
    sound: &MemoryFiles,
    hurt: &MemoryFiles,
    database: &catalog::Database,
) -> (BTreeSet<PageId>, BTreeSet<(i32, i32)>) {
    let (mut tables, mut indexes) = (BTreeSet::new(), BTreeSet::new());
    for page in (0..hurt.files()[0].pages).map(|page| PageId::new(1, page)) {
        if sound.read_page(page) != hurt.read_page(page) {
            match owner(sound, database, page) {
                Some((object_id, index_id)) if index_id > 1 => drop(indexes.insert((object_id, index_id))),
                _ => drop(tables.insert(page)),
            }
        }
    }
    (tables, indexes)
}

#[test]
#[ignore = "full tier: takes seconds"]
fn exactly_the_damaged_pages_are_restored_from_copies_that_equal_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&orders::orders(Version::V904, 7, 9 << 20), &folder.path().join("now"));
    let earlier = write(
        &{
            let mut description = orders::orders(Version::V904, 7, 9 << 20);
            description.tables.iter_mut().for_each(|table| table.rows = table.rows * 97 / 100);
            description
        },
        &folder.path().join("before"),
    );
    let compressed = BackupOptions { container: Some(Container::Version2), ..BackupOptions::default() };
    let forms: [(&str, BackupOptions<'_>); 5] = [
        ("plain", BackupOptions::default()),
        ("compressed", compressed),
        ("compressed, striped", BackupOptions { stripes: 2, ..compressed }),
        ("striped", BackupOptions { stripes: 3, checksum: true, ..BackupOptions::default() }),
        ("differential", BackupOptions { base: Some(Base { files: &earlier, step: 1 }), ..BackupOptions::default() }),
    ];
    let bytes = fs::read(&files[0]).unwrap();
    let sound = open(&files);
    let database = catalog::load(&sound);
    let mut done = BTreeMap::new();
    for (form, options) in forms {
        let here = folder.path().join(form);
        fs::create_dir_all(&here).unwrap();
        fs::write(&files[0], &bytes).unwrap();
        let mut made = Vec::new();
        if options.base.is_some() {
            let full = Set { files: &earlier, step: 1, options: BackupOptions::default() };
            made.extend(backup(&[full], &here, "full").unwrap().files);
        }
        made.extend(backup(&[Set { files: &files, step: 2, options }], &here, "newest").unwrap().files);
        let size: u64 = made.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
        let backups = backups(&made);
        for seed in 0..SEEDS {
            fs::write(&files[0], &bytes).unwrap();
            let kind = [Kind::BitRot, Kind::TornWrite, Kind::SwappedPages, Kind::ZeroedExtent][seed as usize % 4];
            let what = damage(&files, kind, seed).unwrap().what;
            let hurt = open(&files);
            let (tables, indexes) = hurt_places(&sound, &hurt, &database);
            let is_of_system = |page: &PageId| {
                owner(&sound, &database, *page).is_none_or(|(object_id, _)| database.is_system_table(object_id))
            };
            if tables.iter().any(is_of_system) {
                continue;
            }
            let before = bytes_read();
            let (_, plan) = advice(&hurt, Some(&backups));
            let read = bytes_read().zip(before).map(|(after, before)| after - before);
            let restores: Vec<&Step> = plan.steps.iter().filter(|step| step.action == Action::RestorePages).collect();
            let rebuilt = plan.steps.iter().filter(|step| step.action == Action::RebuildIndex).count();
            assert_eq!(rebuilt, indexes.len(), "{form} {seed} {what}: {plan:#?}");
            // A page restore starts with the page from the full backup. If a page was allocated only after the full
            // backup, it cannot be restored.
            if plan.steps.iter().any(|step| step.reason.contains("is not in the full backup")) {
                assert!(form == "differential" && restores.is_empty(), "{form} {seed} {what}: {plan:#?}");
                continue;
            }
            assert_eq!(restores.len(), usize::from(!tables.is_empty()), "{form} {seed} {what}: {plan:#?}");
            let Some(step) = restores.first() else { continue };
            assert_eq!(pages_of_script(step), tables, "{form} {seed} {what}");
            assert_eq!(step.pages, tables.iter().copied().collect::<Vec<_>>(), "{form} {seed} {what}");
            assert!(step.proven.as_deref().is_some_and(|proven| proven.contains("read and")), "{step:#?}");
            assert!(step.by_labels.is_some(), "{step:#?}");
            let used: Vec<PathBuf> = step.from.iter().map(PathBuf::from).collect();
            assert_eq!(used, made, "{form} {seed}");
            let restore = Restore::open(&used, &[], None, None, source::backup::Until::End).unwrap();
            for page in &tables {
                assert_eq!(restore.pages.read_page(*page), sound.read_page(*page), "{form} {seed} page {page}");
            }
            let entry: &mut (u64, u64, u64) = done.entry(form).or_insert((0, 0, size));
            entry.0 += 1;
            entry.1 = entry.1.max(read.unwrap_or_default());
        }
    }
    for (form, (count, read, size)) in &done {
        println!("{form}: {count} restores, at most {read} of {size} bytes of the backup read");
        // To locate the extents of a compressed or striped backup, mdfsck reads the whole backup: blocks of a
        // compressed backup, page headers of a striped backup. It then reads the needed pages again.
        let is_read_through = form.starts_with("compressed") || *form == "striped";
        let limit = if is_read_through { *size * 2 } else { *size / 10 };
        assert!(*count > SEEDS / 3 && *read < limit, "{form}: {read} of {size} bytes");
    }
}

/// Marks a database as cleanly shut down at the LSN `end`.
fn at_rest(bytes: &mut [u8], end: &str) {
    let mut parts = end.split(':').map(|part| u32::from_str_radix(part, 16).unwrap());
    let mut part = || parts.next().unwrap();
    let end = Lsn { vlf: part(), block: part(), slot: part() as u16 };
    let page: &mut PageBytes = (&mut bytes[9 * PAGE_BYTES..][..PAGE_BYTES]).try_into().unwrap();
    assert!(format::boot::shut_down(page, end));
    seal(page);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_chain_of_logs_is_used_in_the_order_of_its_lsns() {
    let (mut random, mut restored) = (Random::new(16), 0);
    for seed in 0..CHAINS {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec { verify: PageVerify::Checksum, ..trials::in_use::spec(&mut random, 60) };
        let kinds: &[SetKind] = match seed % 3 {
            0 => &[SetKind::Full, SetKind::Log, SetKind::Log],
            1 => &[SetKind::Full, SetKind::Log, SetKind::Differential, SetKind::Log, SetKind::Log],
            _ => &[SetKind::Full, SetKind::Log, SetKind::Full, SetKind::Log],
        };
        let options =
            ChainOptions { compressed: seed % 2 == 1, stripes: 1 + (seed % 4 == 3) as u16, ..ChainOptions::default() };
        let chain = trials::in_use::workload(spec).chain(kinds, options, folder.path()).unwrap();
        let truth = &chain.sets.last().unwrap().truth;
        let mut files: Vec<(PathBuf, Vec<u8>)> =
            truth.redone.iter().map(|(name, bytes)| (PathBuf::from(name), bytes.clone())).collect();
        at_rest(&mut files[0].1, &truth.end);
        in_full_recovery(&mut files[0].1);
        let sound = MemoryFiles::open(files).unwrap();
        let database = catalog::load(&sound);
        // Damages a page of a user table.
        let pages: Vec<PageId> = (10..sound.files()[0].pages)
            .map(|page| PageId::new(1, page))
            .filter(|page| {
                owner(&sound, &database, *page)
                    .is_some_and(|(object, index)| index <= 1 && !database.is_system_table(object))
            })
            .collect();
        let page = *random.pick(&pages).unwrap();
        let mut bytes = *sound.read_page(page).unwrap();
        bytes[200..700].fill(0xEE);
        let hurt = sound.with_pages(vec![(page, bytes)]).unwrap();
        let mut all: Vec<PathBuf> = chain.sets.iter().flat_map(|set| set.files.clone()).collect();
        // The order of the backup files must not matter.
        all.reverse();
        let (_, plan) = advice(&hurt, Some(&backups(&all)));
        let Some(step) = plan.steps.iter().find(|step| step.action == Action::RestorePages) else {
            // The last full backup does not contain this page yet.
            assert!(plan.rejected.iter().any(|(_, why)| why.contains("no copy")), "{seed} {page}: {plan:#?}");
            continue;
        };
        restored += 1;
        assert!(step.pages.contains(&page), "{seed} {page}: {step:#?}");
        let last_full = kinds.iter().rposition(|kind| *kind == SetKind::Full).unwrap();
        let from = kinds.iter().rposition(|kind| *kind == SetKind::Differential).unwrap_or(last_full);
        let used = chain.sets.iter().enumerate().filter(|(at, _)| *at == last_full || *at >= from);
        let expected: Vec<String> =
            used.flat_map(|(_, set)| &set.files).map(|path| path.display().to_string()).collect();
        assert_eq!(step.from, expected, "{seed}: {step:#?}");
        let sql = step.sql.join("\n");
        let places: Vec<usize> = expected.iter().map(|file| sql.find(file.as_str()).unwrap()).collect();
        assert!(places.is_sorted(), "{sql}");
        assert!(sql.contains("RESTORE LOG") && sql.ends_with("ALL_ERRORMSGS;"), "{sql}");
    }
    assert!(restored > CHAINS / 2, "{restored} of {CHAINS}");
}
