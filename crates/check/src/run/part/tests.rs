use findings::registry::{self, limits};
use findings::{Finding, Report};
use sums::HashKey;

use super::*;
use crate::basis::progress::Silent;
use crate::basis::tallies::UnreadPages;
use crate::run::facts::tests::{database_of_lab, said};
use crate::run::settle;
use crate::sweep::check_list::Swept;

const HEAD: &[u8] = b"head of the test";

fn all() -> Options {
    let hash_key = Some(HashKey::new([9; HashKey::BYTES]));
    Options { constraints: true, identities: true, hash_key, ..Options::default() }
}

/// The parts of a database, each with its range. Asserts that a process with the maps of all pages and a process with
/// only the maps of the range write the same parts.
fn parts(source: &dyn PageSource, database: &Database, options: &Options, pages: u64) -> Vec<(FileRange, Vec<u8>)> {
    let (parts, common, maps) = sweeper(source, database, options, &Silent, |sweeper| {
        let sweeper = sweeper.unwrap();
        let ranges = sweeper.ranges(pages);
        assert_eq!(sweeper.tile(&ranges), Ok(()));
        let (mut common, mut maps) = (Vec::new(), Vec::new());
        sweeper.write_common(HEAD, &mut common).unwrap();
        for (number, range) in ranges.iter().enumerate() {
            let mut of_range = Vec::new();
            sweeper.write_maps(*range, &head_of_maps(number), &mut of_range).unwrap();
            maps.push(of_range);
        }
        let part = |range: FileRange| {
            let mut bytes = Vec::new();
            sweeper.sweep(range, HEAD, &Silent, &mut bytes).unwrap();
            (range, bytes)
        };
        (ranges.into_iter().map(part).collect::<Vec<_>>(), common, maps)
    });
    let most = parts.iter().map(|(range, _)| u64::from(range.pages)).max();
    let options = Options { mapped_pages: most, ..options.clone() };
    sweeper_without_maps(source, database, &options, (HEAD, &mut common.as_slice()), |sweeper| {
        let sweeper = sweeper.unwrap();
        for (number, ((range, expected), maps)) in parts.iter().zip(&maps).enumerate() {
            sweeper.read_maps(*range, &head_of_maps(number), &mut maps.as_slice()).unwrap();
            let mut bytes = Vec::new();
            sweeper.sweep(*range, HEAD, &Silent, &mut bytes).unwrap();
            assert!(bytes == *expected, "{range:?}");
        }
    })
    .unwrap();
    parts
}

fn head_of_maps(number: usize) -> Vec<u8> {
    format!("maps {number}").into_bytes()
}

#[test]
fn maps_of_another_range_or_run_or_that_were_changed_are_refused_and_no_other_range_is_swept_with_them() {
    let files = database_of_lab(0, 4 << 20);
    let database = catalog::load(&files);
    let (common, ranges, maps) = sweeper(&files, &database, &all(), &Silent, |sweeper| {
        let sweeper = sweeper.unwrap();
        let (mut common, mut maps, ranges) = (Vec::new(), Vec::new(), sweeper.ranges(200));
        sweeper.write_common(HEAD, &mut common).unwrap();
        sweeper.write_maps(ranges[1], HEAD, &mut maps).unwrap();
        (common, ranges, maps)
    });
    let open = |common: &[u8], head: &[u8], options: &Options, act: &mut dyn FnMut(&mut Sweeper<'_, '_>)| {
        let mut common = common;
        sweeper_without_maps(&files, &database, options, (head, &mut common), |sweeper| act(sweeper.unwrap()))
    };
    open(&common, HEAD, &all(), &mut |sweeper| {
        let mut read = |range, head: &[u8], bytes: &[u8]| sweeper.read_maps(range, head, &mut &bytes[..]).is_ok();
        assert!(read(ranges[1], HEAD, &maps));
        assert!(!read(ranges[1], b"another", &maps));
        assert!(!read(FileRange { file_id: 99, ..ranges[1] }, HEAD, &maps));
        assert!(!read(FileRange { pages: u32::MAX, ..ranges[1] }, HEAD, &maps));
        assert!(!read(FileRange { pages: ranges[1].pages + 128, ..ranges[1] }, HEAD, &maps));
        for at in (0..maps.len()).step_by(37) {
            let mut changed = maps.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(!read(ranges[1], HEAD, &changed) && !read(ranges[1], HEAD, &maps[..at]), "at {at}");
        }
        assert!(read(ranges[1], HEAD, &maps));
        // The sweep must fail instead of guessing facts that are outside the maps of this range.
        let swept = sweeper.sweep(ranges[2], HEAD, &Silent, &mut Vec::new());
        assert!(matches!(swept, Err(PartError::Beyond(range)) if range == ranges[2]));
    })
    .unwrap();
    let other_key = Options { hash_key: Some(HashKey::new([8; HashKey::BYTES])), ..all() };
    for (common, head, options) in
        [(&common[..], &b"another"[..], &all()), (&common[..20], HEAD, &all()), (&common[..], HEAD, &other_key)]
    {
        assert!(open(common, head, options, &mut |_| panic!("no maps are known")).is_err());
    }
    // A page beyond the end of the maps must not count as free.
    let larger = database_of_lab(0, 24 << 20);
    assert!(larger.files()[0].pages > files.files()[0].pages);
    let opened =
        sweeper_without_maps(&larger, &database, &all(), (HEAD, &mut common.as_slice()), |sweeper| sweeper.is_some());
    assert!(opened.is_err());
}

fn merged(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    parts: &[(FileRange, Vec<u8>)],
) -> Result<Report, SumsError> {
    let ranges: Vec<FileRange> = parts.iter().map(|(range, _)| *range).collect();
    let mut left = parts.iter();
    let next = || left.next().map(|(_, bytes)| Ok(Part { head: HEAD.to_vec(), from: Box::new(bytes.as_slice()) }));
    let begin = |surveyed: Surveyed<'_>| {
        assert_eq!(surveyed.tile(&ranges), Ok(()));
        Ok(())
    };
    merge(source, database, options, &Silent, &ranges, begin, next)
}

#[test]
#[ignore = "full tier: takes seconds"]
fn parts_of_any_size_in_any_order_give_the_report_of_one_run() {
    for damaged in [0, 60] {
        let files = database_of_lab(damaged, 24 << 20);
        let database = catalog::load(&files);
        for options in [
            all(),
            Options { memory_bytes: Some(1), max_threads: 3, ..all() },
            Options { most_map_bytes: Some(1), max_threads: 2, ..all() },
            Options { physical_only: true, ..all() },
        ] {
            let expected = crate::run(&files, &database, &options, &Silent);
            assert_eq!(expected.findings.is_empty(), damaged == 0);
            for pages in [1, 300, 1500, u64::MAX] {
                let mut parts = parts(&files, &database, &options, pages);
                assert!(pages != 1 || parts.len() > 20, "{} parts", parts.len());
                parts.reverse();
                let middle = parts.len() / 3;
                parts.rotate_left(middle);
                let found = merged(&files, &database, &options, &parts).unwrap();
                assert_eq!(said(&found), said(&expected), "{pages} pages, {options:?}");
            }
        }
    }
}

#[test]
fn a_part_is_the_same_for_any_number_of_threads_and_any_grant() {
    let files = database_of_lab(60, 24 << 20);
    let database = catalog::load(&files);
    let expected = parts(&files, &database, &Options { max_threads: 1, ..all() }, 900);
    for options in [
        Options { max_threads: 3, ..all() },
        Options { max_threads: 8, memory_bytes: Some(1), ..all() },
        Options { max_threads: 3, most_map_bytes: Some(1), ..all() },
        Options { max_threads: 2, readers: findings::Readers::Count(2), row_by_row: true, ..all() },
    ] {
        let found = parts(&files, &database, &options, 900);
        for ((range, bytes), (_, same)) in found.iter().zip(&expected) {
            assert!(bytes == same, "{range:?}, {options:?}");
        }
    }
}

#[test]
fn maps_in_a_temporary_file_give_the_same_plan_and_the_same_report() {
    let (files, shelved) = (database_of_lab(60, 24 << 20), Options { most_map_bytes: Some(1), ..all() });
    let database = catalog::load(&files);
    let plan = |options: &Options| {
        sweeper(&files, &database, options, &Silent, |sweeper| {
            let sweeper = sweeper.unwrap();
            let (ranges, mut maps) = (sweeper.ranges(300), Vec::new());
            sweeper.write_common(HEAD, &mut maps).unwrap();
            for range in &ranges {
                sweeper.write_maps(*range, HEAD, &mut maps).unwrap();
            }
            assert_eq!((sweeper.lost(), sweeper.tile(&ranges)), (None, Ok(())));
            let has_spilled = sweeper.context.space.spilled_bytes() > 0;
            (has_spilled, ranges, maps, sweeper.fingerprint)
        })
    };
    let ((has_spilled, ranges, maps, fingerprint), of_shelf) = (plan(&all()), plan(&shelved));
    assert!(!has_spilled && of_shelf.0 && ranges.len() > 5);
    assert!((ranges, maps, fingerprint) == (of_shelf.1, of_shelf.2, of_shelf.3));
    let parts = parts(&files, &database, &all(), 300);
    let [expected, found] = [all(), shelved].map(|options| merged(&files, &database, &options, &parts).unwrap());
    assert!(!expected.findings.is_empty() && found.statistics.spilled_bytes > 0);
    assert_eq!(said(&found), said(&expected));
}

#[test]
fn maps_that_cannot_be_written_stay_in_memory_and_with_maps_that_are_lost_nothing_is_a_proof() {
    let files = database_of_lab(0, 4 << 20);
    let database = catalog::load(&files);
    let nowhere = Some("/nowhere/at/all".into());
    let options = Options { most_map_bytes: Some(1), temp_dir: nowhere, ..all() };
    let lost = sweeper(&files, &database, &options, &Silent, |sweeper| sweeper.unwrap().lost());
    assert!(lost.is_some_and(|text| text.contains("/nowhere/at/all")));
    // The maps stay in memory, so the report is right, but says that something is wrong with the folder.
    let report = crate::run(&files, &database, &options, &Silent);
    let sound = crate::run(&files, &database, &all(), &Silent);
    assert_eq!((report.findings.is_empty(), report.demoted.is_empty(), report.read_errors.len()), (true, true, 1));
    assert_eq!(format!("{:?}", report.rowsets), format!("{:?}", sound.rowsets));
    // A lost entry is noticed in the same way as one outside the range of the maps.
    let is_demoted = |is_lost: bool| {
        sweeper(&files, &database, &all(), &Silent, |sweeper| {
            let sweeper = sweeper.unwrap();
            let (ranges, mut maps) = (sweeper.ranges(200), Vec::new());
            if is_lost {
                sweeper.write_maps(ranges[0], HEAD, &mut maps).unwrap();
                sweeper.read_maps(ranges[0], HEAD, &mut maps.as_slice()).unwrap();
                sweeper.context.survey.allocation(PageId::new(ranges[1].file_id, ranges[1].first));
            }
            let (context, checks) = (&*sweeper.context, sweeper.checks);
            let mut findings = FindingCollector::new(1 << 20, context.space);
            findings.push(Finding::new(&registry::PAGE_IO).page(PageId::new(1, 300)));
            let sums = Swept::new(checks, context.units.list().len()).sums;
            let mut coverage = Coverage::default();
            let settled = settle::settle(context, (checks, &sums), findings, &mut coverage);
            assert_eq!(context.survey.has_missed(), is_lost);
            // Pages in use may have been taken for free ones, so no range counts as read.
            let (not_verified, _) = coverage.into_lists();
            let is_said =
                not_verified.iter().any(|entry| entry.limit == &limits::DEMOTED_MAPS_LOST && entry.what == "pages");
            let are_read = read_ranges::read_ranges(context, &UnreadPages::default()).iter().any(|range| range.is_read);
            assert_eq!((is_said, are_read), (is_lost, !is_lost));
            let demoted = settled.demoted.into_iter().next();
            demoted.is_some_and(|finding| finding.demoted_by == Some(&limits::DEMOTED_MAPS_LOST))
        })
    };
    assert!(!is_demoted(false) && is_demoted(true));
}

/// The files of a backup of a small database in the form that `form` names: plain, striped, compressed or differential.
/// For a differential backup, the files of its base are included.
fn backed_up(form: &str, folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    use lab::backup::{BackupOptions, Base, Container, Set, backup};
    let write = |seed| {
        let folder = folder.join(format!("seed{seed}"));
        std::fs::create_dir(&folder).unwrap();
        lab::write(&lab::orders::orders(lab::Version::V852, seed, 4 << 20), &folder).unwrap().files
    };
    let files = write(3);
    let of = |files: &[std::path::PathBuf], step, options: BackupOptions<'_>, name| {
        backup(&[Set { files, step, options }], folder, name).unwrap().files
    };
    let plain = BackupOptions { checksum: true, stripes: 1, ..BackupOptions::default() };
    match form {
        "plain" => of(&files, 1, plain, "one"),
        "striped" => of(&files, 1, BackupOptions { stripes: 4, ..plain }, "one"),
        "compressed" => of(&files, 1, BackupOptions { container: Some(Container::Version2), ..plain }, "one"),
        _ => {
            let full = of(&files, 1, plain, "full");
            // The differential backup is made from copies of the data files, with the original files as its base.
            let changed = folder.join("changed");
            std::fs::create_dir(&changed).unwrap();
            let copy = |file: &std::path::PathBuf| {
                let to = changed.join(file.file_name().unwrap());
                std::fs::copy(file, &to).unwrap();
                to
            };
            let later: Vec<_> = files.iter().map(copy).collect();
            let options = BackupOptions { base: Some(Base { files: &files, step: 1 }), checksum: true, ..plain };
            [full, of(&later, 2, options, "differential")].concat()
        }
    }
}

#[test]
fn what_some_of_the_parts_show_is_among_what_all_of_them_show() {
    let files = database_of_lab(60, 24 << 20);
    let database = catalog::load(&files);
    let whole = crate::run(&files, &database, &all(), &Silent);
    let known: Vec<String> = whole.findings.iter().map(|finding| format!("{finding:?}")).collect();
    let parts = parts(&files, &database, &all(), 300);
    let ranges: Vec<FileRange> = parts.iter().map(|(range, _)| *range).collect();
    let mut before = 0;
    for done in [0, 1, parts.len() / 2, parts.len() - 1] {
        let mut some = parts.iter().rev().take(done);
        let next = || some.next().map(|(_, bytes)| Ok(Part { head: HEAD.to_vec(), from: Box::new(bytes.as_slice()) }));
        let left = (parts.len() - done) as u64;
        let begin = |_: Surveyed<'_>| Ok(());
        let open = so_far::<SumsError>((&files, &database), &all(), &Silent, (&ranges, left), begin, next).unwrap();
        assert!(open.not_verified.iter().any(|entry| entry.limit.id == "window.open" && entry.count == left));
        for finding in open.findings.iter() {
            assert!(known.contains(&format!("{finding:?}")), "{finding:?}");
        }
        assert!(open.findings.len() >= before && open.rowsets.iter().all(|rowset| rowset.pages() == 0));
        before = open.findings.len();
    }
    assert!(before > 0);
}

#[test]
fn a_part_names_the_pages_of_its_findings() {
    let files = database_of_lab(60, 24 << 20);
    let database = catalog::load(&files);
    let key = HashKey::new([9; HashKey::BYTES]);
    let mut pages = BTreeSet::new();
    for (_, bytes) in parts(&files, &database, &all(), 300) {
        let mut part = Part { head: HEAD.to_vec(), from: Box::new(bytes.as_slice()) };
        pages.extend(pages_with_findings(&key, &mut part, usize::MAX).unwrap());
        let mut part = Part { head: HEAD.to_vec(), from: Box::new(bytes.as_slice()) };
        assert!(pages_with_findings(&key, &mut part, 1).unwrap().len() <= 1);
    }
    let report = crate::run(&files, &database, &all(), &Silent);
    let local = |finding: &Finding| finding.check.is_of_one_range().then_some(finding.page).flatten();
    assert!(report.findings.iter().filter_map(|finding| local(&finding)).all(|page| pages.contains(&page)));
    // Changing a page changes the fingerprint.
    let before = fingerprint_of(&files, &key, pages.iter().copied());
    assert_eq!(before, fingerprint_of(&files, &key, pages.iter().copied()));
    let fewer = pages.iter().copied().skip(1);
    assert_ne!(before, fingerprint_of(&files, &key, fewer));
}

#[test]
fn tiles_hold_all_pages_of_their_files_once() {
    let files = database_of_lab(0, 24 << 20);
    let database = catalog::load(&files);
    sweeper(&files, &database, &all(), &Silent, |sweeper| {
        let sweeper = sweeper.unwrap();
        for pages in [1, 300, u64::MAX] {
            let tiles = sweeper.tiles(&sweeper.ranges(pages));
            for file in files.files() {
                let mut next = 0;
                for tile in tiles.iter().filter(|tile| tile.file_id == file.file_id) {
                    assert_eq!(tile.first, next);
                    assert!(tile.in_use <= tile.pages && tile.is_read);
                    next += tile.pages;
                }
                assert_eq!(next, file.pages);
            }
            let in_use: u32 = tiles.iter().map(|tile| tile.in_use).sum();
            let whole = crate::run(&files, &database, &all(), &Silent);
            assert_eq!(in_use, whole.ranges.iter().map(|range| range.in_use).sum::<u32>());
        }
    });
}

#[test]
#[ignore = "full tier: takes seconds"]
fn parts_of_backups_know_what_was_read_of_the_container() {
    for form in ["plain", "striped", "compressed", "differential"] {
        let folder = tempfile::tempdir().unwrap();
        let paths = backed_up(form, folder.path());
        for damage in [None, Some(3), Some(2)] {
            // In the second round (`Some(3)`), changes a byte of the last file, 70,000 bytes before its end. In the
            // third round (`Some(2)`), also changes the byte in the middle of this file.
            if let Some(part) = damage {
                let path = paths.last().unwrap();
                let mut bytes = std::fs::read(path).unwrap();
                let at = if part == 3 { bytes.len() - 70_000 } else { bytes.len() / part };
                bytes[at] ^= 0x55;
                std::fs::write(path, bytes).unwrap();
            }
            let open = || source::open(&paths, &[], false).unwrap();
            let whole = open();
            let database = catalog::load(whole.as_ref());
            let expected = crate::run(whole.as_ref(), &database, &all(), &Silent);
            for pages in [1, 200, u64::MAX] {
                let parts = parts(open().as_ref(), &database, &all(), pages);
                let found = merged(open().as_ref(), &database, &all(), &parts).unwrap();
                assert_eq!(said(&found), said(&expected), "{form}, {damage:?}, {pages} pages");
            }
        }
    }
}

#[test]
fn a_part_that_was_cut_or_changed_or_has_another_head_or_key_is_refused() {
    let files = database_of_lab(0, 4 << 20);
    let database = catalog::load(&files);
    let parts = parts(&files, &database, &all(), 300);
    let whole = &parts[0].1;
    let verified = |bytes: &[u8], head: &[u8], key: u8| {
        let mut rest = bytes;
        verify(&HashKey::new([key; HashKey::BYTES]), head, &mut rest).map(|_| rest.len())
    };
    assert_eq!(verified(whole, HEAD, 9).unwrap(), 0);
    assert!(verified(whole, b"another head", 9).is_err() && verified(whole, HEAD, 8).is_err());
    for at in (0..whole.len()).step_by(97) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        for bytes in [&whole[..at], &changed] {
            assert!(verified(bytes, HEAD, 9).is_err(), "at {at}");
        }
        if at % (97 * 16) == 0 {
            let mut parts = parts.clone();
            parts[0].1 = changed;
            assert!(merged(&files, &database, &all(), &parts).is_err(), "at {at}");
        }
    }
    // A part that is composed of the first frame of one part and the later frames of another part must be refused, even
    // if both parts have the same key.
    let after_first = |bytes: &[u8]| 4 + u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize + 16;
    let of_other = &parts[1].1;
    let spliced = [&whole[..after_first(whole)], &of_other[after_first(of_other)..]].concat();
    assert!(verified(&spliced, HEAD, 9).is_err());
}

#[test]
fn a_comparison_with_the_log_comes_back_whole_and_under_its_key_only() {
    use findings::{LogAuditDoubt, LogAuditDoubtKind};
    let doubt = |kind| LogAuditDoubt { kind, scope: "page (1:7)".to_owned(), count: 3 };
    let audit = LogAudit {
        findings: vec![findings::Finding::new(&findings::registry::LOG_LOST_WRITE)],
        pages_compared: 5,
        range: Some((format::Lsn { vlf: 1, block: 2, slot: 3 }, format::Lsn { vlf: 4, block: 5, slot: 6 })),
        doubts: [LogAuditDoubtKind::LogEnd, LogAuditDoubtKind::More, LogAuditDoubtKind::Pages].map(doubt).into(),
        ..LogAudit::default()
    };
    let key = HashKey::new([1; HashKey::BYTES]);
    let bytes = write_audit(&key, &audit).unwrap();
    let back = read_audit(&key, &bytes).unwrap();
    assert_eq!(back, audit);
    assert!(back.has_newer_pages());
    assert!(read_audit(&HashKey::new([2; HashKey::BYTES]), &bytes).is_err());
    assert!((0..bytes.len()).all(|length| read_audit(&key, &bytes[..length]).is_err()));
}

#[test]
fn ranges_that_leave_pages_out_or_hold_them_twice_are_no_tiling() {
    let files = database_of_lab(0, 4 << 20);
    let database = catalog::load(&files);
    sweeper(&files, &database, &all(), &Silent, |sweeper| {
        let sweeper = sweeper.unwrap();
        let ranges = sweeper.ranges(200);
        let what = |ranges: &[FileRange]| sweeper.tile(ranges).map_err(|untiled| untiled.what);
        assert!(ranges.len() > 2 && what(&ranges).is_ok());
        assert_eq!(what(&ranges[1..]), Err("no range contains it"));
        assert_eq!(what(&[ranges.clone(), ranges[..1].to_vec()].concat()), Err("two ranges contain it"));
        let with = |change: fn(&mut FileRange)| {
            let mut ranges = ranges.clone();
            change(&mut ranges[0]);
            ranges
        };
        assert_eq!(what(&with(|range| range.pages -= 1)), Err("no whole range begins there"));
        assert_eq!(what(&with(|range| range.pages = u32::MAX)), Err("no whole range begins there"));
        assert_eq!(what(&with(|range| range.file_id = 99)), Err("no range contains it"));
        assert_eq!(
            what(&[ranges.clone(), vec![FileRange { file_id: 99, first: 0, pages: 128 }]].concat()),
            Err("no file contains it")
        );
    });
}
