use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use format::page::PAGE_BYTES;
use format::protection::{Protection, seal, undo_torn_bits, verify};
use format::{Lsn, Page, PageBytes, PageId};
use lab::description::Filegroup;
use lab::{PageVerify, Version};
use tempfile::TempDir;

use super::page::may_begin;
use super::runs::{Run, resolve};
use super::*;
use crate::{MemoryFiles, OpenError, PageSource, ReadError, ReadFaults};

/// The data files of a lab database.
fn files(version: Version, verify: PageVerify, count: u16) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let mut description = lab::orders::orders(version, 5, 0);
    description.verify = verify;
    description.filegroups = vec![Filegroup { name: "PRIMARY".to_owned(), files: count }];
    let written = lab::write(&description, folder.path()).unwrap();
    written.files.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn sample() -> Vec<u8> {
    files(Version::V904, PageVerify::Checksum, 1).remove(0)
}

/// Bytes without pages.
fn junk(bytes: usize) -> Vec<u8> {
    let mut state = bytes as u32 | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn write(images: &[Vec<u8>]) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..images.len()).map(|number| folder.path().join(format!("{number}.img"))).collect();
    paths.iter().zip(images).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    (folder, paths)
}

fn carve(images: &[Vec<u8>]) -> Result<Carved, OpenError> {
    let (_folder, paths) = write(images);
    Carved::open(&paths, None, &|_| ())
}

fn page_of(bytes: &[u8], page: usize) -> PageBytes {
    bytes[page * PAGE_BYTES..][..PAGE_BYTES].try_into().unwrap()
}

/// The number of a page that is written and that has written pages behind it.
fn a_data_page(bytes: &[u8]) -> usize {
    let is_written = |page: usize| bytes.get(page * PAGE_BYTES..).is_some_and(may_begin);
    (24..).find(|page| (*page..page + 6).all(is_written)).unwrap()
}

/// A copy of a page with another ID, another LSN and another byte in its body.
fn changed(page: &PageBytes, id: PageId, lsn: Lsn, byte: u8) -> PageBytes {
    let mut page = *page;
    undo_torn_bits(&mut page);
    page[32..36].copy_from_slice(&id.page.to_le_bytes());
    page[36..38].copy_from_slice(&id.file.to_le_bytes());
    page[40..50].copy_from_slice(&lsn.bytes());
    page[4000] = byte;
    seal(&mut page);
    page
}

/// Requires that each page of the files is found with its bytes, unless it was never written.
fn ensure_found(carved: &Carved, files: &[Vec<u8>]) {
    for (file_id, bytes) in [1, 3, 4].into_iter().zip(files) {
        let pages = bytes.len() / PAGE_BYTES;
        for page in 0..pages {
            let id = PageId::new(file_id, page as u32);
            let expected = page_of(bytes, page);
            match may_begin(&expected) {
                true => assert!(carved.read_page(id).as_deref() == Some(&expected), "{id}"),
                false => {
                    let read = carved.read(id, &mut [0; PAGE_BYTES]);
                    assert!(matches!(read, Err(ReadError::NotFound { page }) if page == id) || matches!(read, Ok(0)));
                }
            }
        }
        assert!(carved.files().iter().any(|file| file.file_id == file_id && file.pages as usize >= pages));
    }
}

#[test]
fn pages_are_found_wherever_they_are_and_the_newest_copy_is_read() {
    let files = files(Version::V904, PageVerify::Checksum, 2);
    let pieces: Vec<&[u8]> = files[1].chunks(24 * PAGE_BYTES).collect();
    let second: Vec<u8> = pieces.iter().rev().flat_map(|piece| [piece, &junk(512 * 3)[..]].concat()).collect();
    let start = a_data_page(&files[0]);
    let pages = start..start + 6;
    let older = |page: usize| {
        let bytes = page_of(&files[0], page);
        let lsn = Lsn { slot: 0, ..Page::new(&bytes).header().lsn() };
        changed(&bytes, PageId::new(1, page as u32), Lsn { vlf: lsn.vlf.saturating_sub(1), ..lsn }, 7)
    };
    let old: Vec<u8> = pages.clone().flat_map(older).collect();
    let image = [&old[..], &junk(512 * 7), &files[0], &junk(512 * 5), &second, &page_of(&files[0], 9)].concat();
    let carved = carve(&[image]).unwrap();
    ensure_found(&carved, &files);
    assert_eq!((carved.double_pages(), carved.same_copies(), carved.has_one_moment()), (6, 1, false));
    let doubles: Vec<u32> = carved.doubles().iter().map(|double| double.page.page).collect();
    assert_eq!(doubles, pages.map(|page| page as u32).collect::<Vec<_>>());
    assert!(
        carved.doubles().iter().all(|double| double.used.lsn > double.other.lsn && double.other.at < double.used.at)
    );
    assert!(carved.read_faults().failed.is_empty());
    let bytes = files[0].len() / PAGE_BYTES - carved.not_found(1).map(|hole| hole.len()).sum::<usize>();
    assert_eq!(bytes as u64, carved.found(1));
}

#[test]
fn a_file_that_was_moved_is_the_same_file() {
    let sound = sample();
    for by in [0, 512, 836, 100_001] {
        let carved = carve(&[[&junk(by)[..], &sound].concat()]).unwrap();
        ensure_found(&carved, std::slice::from_ref(&sound));
        assert!(carved.has_one_moment(), "{by}");
        let original = MemoryFiles::open(vec![("a.mdf".into(), sound.clone())]).unwrap();
        let (file, given) = (&carved.files()[0], &original.files()[0]);
        assert_eq!((&file.logical_name, file.binding_guid), (&given.logical_name, given.binding_guid));
        assert_eq!((file.header_pages, file.tail_bytes, file.header_is_sound), (None, 0, true));
    }
    // Without its first bytes, the file lacks its first page only.
    let carved = carve(&[sound[836..].to_vec()]).unwrap();
    let first = carved.not_found(1).next();
    assert_eq!((first, carved.has_one_moment()), (Some(0..1), false));
    assert!(carved.read_page(PageId::BOOT).as_deref() == Some(&page_of(&sound, 9)));
}

#[test]
fn an_image_in_pieces_is_one_image() {
    let sound = sample();
    let image = [&junk(1024)[..], &sound].concat();
    let (first, second) = image.split_at(1024 + 50 * PAGE_BYTES);
    let carved = carve(&[first.to_vec(), second.to_vec()]).unwrap();
    ensure_found(&carved, std::slice::from_ref(&sound));
    assert!(carved.has_one_moment());
    let swapped = carve(&[second.to_vec(), first.to_vec()]).unwrap();
    ensure_found(&swapped, &[sound]);
    assert!(!swapped.has_one_moment());
}

#[test]
fn torn_bits_prove_a_page_and_without_protection_its_neighbours_do() {
    for version in [Version::V611, Version::V904] {
        let sound = files(version, PageVerify::Torn, 1).remove(0);
        ensure_found(&carve(&[[&junk(512 * 9)[..], &sound].concat()]).unwrap(), &[sound]);
    }
    let sound = files(Version::V904, PageVerify::None, 1).remove(0);
    let carved = carve(&[[&junk(512 * 9)[..], &sound].concat()]).unwrap();
    let is_page = |page: usize| sound.get(page * PAGE_BYTES..).is_some_and(may_begin);
    for page in (0..sound.len() / PAGE_BYTES).filter(|page| is_page(*page)) {
        let has_neighbour = page > 0 && is_page(page - 1) || is_page(page + 1);
        let found = carved.read_page(PageId::new(1, page as u32));
        assert_eq!(found.is_some(), has_neighbour, "page {page}");
    }
    let alone = [&junk(512)[..], &page_of(&sound, 9), &junk(512)].concat();
    assert!(matches!(carve(&[alone]), Err(OpenError::Carve(CarveError::NoPages { .. }))));
}

#[test]
fn of_copies_with_one_lsn_the_first_is_read() {
    let sound = sample();
    let id = PageId::new(1, a_data_page(&sound) as u32);
    let page = page_of(&sound, id.page as usize);
    let lsn = Page::new(&page).header().lsn();
    let copies: Vec<PageBytes> = (1..4).map(|byte| changed(&page, id, lsn, byte)).collect();
    let others: Vec<u8> = [1, 2, 0, 1].into_iter().flat_map(|copy: usize| copies[copy]).collect();
    let carved = carve(&[[&others[..], &sound].concat()]).unwrap();
    assert!(carved.read_page(id).as_deref() == Some(&copies[1]));
    let double = &carved.doubles()[0];
    assert_eq!((double.used.at, double.other.at, carved.same_copies()), (0, PAGE_BYTES as u64, 1));
}

#[test]
fn pages_far_beyond_all_others_make_no_large_file() {
    let sound = sample();
    let page = page_of(&sound, a_data_page(&sound));
    let wild = |file: u16, number: u32| changed(&page, PageId::new(file, number), Lsn::default(), 0);
    let far = [(1, (1 << 31) - 1), (1, 1 << 30), (5, (1 << 31) - 2), (6, 100)].map(|(file, page)| wild(file, page));
    let carved = carve(&[[&sound[..], far.as_flattened()].concat()]).unwrap();
    let pages: Vec<(u16, u32)> = carved.files().iter().map(|file| (file.file_id, file.pages)).collect();
    let header = (sound.len() / PAGE_BYTES).next_multiple_of(8) as u32;
    assert_eq!(pages, [(1, header), (6, 104)]);
    let left_out: Vec<(PageId, u64)> = carved.left_out().iter().map(|beyond| (beyond.first, beyond.pages)).collect();
    assert_eq!(left_out, [(PageId::new(1, 1 << 30), 2), (PageId::new(5, (1 << 31) - 2), 1)]);
    assert!(!carved.has_one_moment());
    // A header page cannot enlarge the file without evidence either, but many pages can.
    let run = |first, pages| Run { file: 1, image: 0, first, pages, at: 0 };
    let of = |runs: &[Run], claimed| extent::of_file(runs, 1, claimed).0;
    assert_eq!(of(&[run(0, 8)], Some(u32::MAX)), extent::Extent { pages: 8, is_known: false });
    assert_eq!(of(&[run(0, 8)], Some(80)), extent::Extent { pages: 80, is_known: true });
    assert_eq!(of(&[run(0, 8)], Some(1 << 30)), extent::Extent { pages: 8, is_known: false });
    assert_eq!(of(&[run(1 << 29, 1 << 22)], None).pages, (1 << 29) + (1 << 22));
}

#[test]
fn inputs_without_a_database_are_refused_with_the_cause() {
    let sound = sample();
    let text = |images: &[Vec<u8>]| carve(images).map(|_| ()).unwrap_err().to_string();
    assert!(text(&[junk(1 << 20)]).contains("no page of a SQL Server database in 1048576 bytes"));
    assert!(text(&[Vec::new()]).contains("in 0 bytes"));
    let second = changed(&page_of(&sound, a_data_page(&sound)), PageId::new(3, 20), Lsn::default(), 0);
    assert!(text(&[second.to_vec()]).contains("pages of file 3 of a database were found, but none of file 1"));
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: PathBuf| Carved::open(&[path], None, &|_| ()).map(|_| ()).unwrap_err().to_string();
    assert!(refused(folder.path().to_owned()).contains("is a folder"));
    assert!(refused("-".into()).contains("standard input"));
    assert!(refused(folder.path().join("missing")).contains("cannot be opened"));
    // Each page a piece of its own.
    let pieces: Vec<u8> = (0..40).flat_map(|page| [&page_of(&sound, page)[..], &junk(512)].concat()).collect();
    let (_folder, paths) = write(&[pieces]);
    let granted = PROGRAM_BYTES + 10 * BYTES_PER_RUN;
    let error = Carved::open(&paths, Some(granted), &|_| ()).map(|_| ()).unwrap_err().to_string();
    // Alone, a page without a checksum is not found.
    let mut written = (0..40).filter(|page| verify(&page_of(&sound, *page)) == Ok(Protection::Checksum));
    let at = written.nth(10).unwrap() * (PAGE_BYTES + 512);
    assert!(
        error.contains(&format!("at byte {at}: the list of the pages found needs more than 0 MB")),
        "{at}: {error}"
    );
    assert!(Carved::open(&paths, Some(PROGRAM_BYTES + 50 * BYTES_PER_RUN), &|_| ()).is_ok());
}

#[test]
fn each_page_is_read_from_its_newest_copy_whatever_the_runs_are() {
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..150 {
        let count = 1 + random(12);
        let runs: Vec<Run> = (0..count)
            .map(|number| Run {
                file: 1 + random(2) as u16,
                image: random(2) as u16,
                first: random(40) as u32,
                pages: 1 + random(70) as u32,
                at: number << 40,
            })
            .collect();
        let kinds = 1 + random(4);
        let kind =
            move |image: u16, at: u64| (at / PAGE_BYTES as u64 * 31 + at / (1 << 40) * 7 + u64::from(image)) % kinds;
        // For each page, the best copy: the newest, then the first.
        let mut best: BTreeMap<PageId, (u64, u16, u64)> = BTreeMap::new();
        let mut copies: BTreeMap<PageId, Vec<u64>> = BTreeMap::new();
        for run in &runs {
            for page in run.first..run.end() {
                let at = run.at(page);
                let copy = (kind(run.image, at), run.image, at);
                let id = PageId::new(run.file, page);
                copies.entry(id).or_default().push(copy.0);
                let known = best.entry(id).or_insert(copy);
                let is_better = copy.0 > known.0 || copy.0 == known.0 && (copy.1, copy.2) < (known.1, known.2);
                if is_better {
                    *known = copy;
                }
            }
        }
        let read = |image: u16, at: u64, bytes: &mut [u8]| {
            for (number, page) in bytes.chunks_mut(PAGE_BYTES).enumerate() {
                page.fill(0);
                page[40] = kind(image, at + (number * PAGE_BYTES) as u64) as u8;
            }
            true
        };
        let (resolved, doubles) = resolve(runs, usize::MAX, read).unwrap();
        let found: Vec<(PageId, (u16, u64))> = resolved
            .iter()
            .flat_map(|run| (run.first..run.end()).map(|page| (PageId::new(run.file, page), (run.image, run.at(page)))))
            .collect();
        let expected: Vec<(PageId, (u16, u64))> =
            best.iter().map(|(id, (_, image, at))| (*id, (*image, *at))).collect();
        assert_eq!(found, expected);
        let differ = copies.values().filter(|kinds| kinds.iter().any(|kind| *kind != kinds[0])).count();
        assert_eq!(doubles.pages, differ as u64);
    }
}

#[test]
fn hostile_images_are_read_in_bounds() {
    let sound = sample();
    let pages: Vec<PageBytes> = (0..12).map(|page| page_of(&sound, page)).collect();
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("a.img")];
    let mut file = fs::File::create(&paths[0]).unwrap();
    let mut state = 11u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut opened = 0;
    for _ in 0..2000 {
        let mut image: Vec<u8> = junk(random(3) * 512 + random(2) * random(512));
        for _ in 0..2 + random(4) {
            let mut page = pages[if random(3) == 0 { random(4) } else { random(pages.len()) }];
            for _ in 0..random(4) {
                // Half of the changes hit the header, which names the page.
                let at = if random(2) == 0 { random(96) } else { random(PAGE_BYTES) };
                page[at] = if random(2) == 0 { page[at] ^ 1 << random(8) } else { random(256) as u8 };
            }
            if random(2) == 0 {
                seal(&mut page);
            }
            let length = if random(8) == 0 { random(PAGE_BYTES) } else { PAGE_BYTES };
            image.extend(&page[..length]);
        }
        // A file that is truncated to nothing and written again is written to the disk at once, which takes long.
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(&image).unwrap();
        file.set_len(image.len() as u64).unwrap();
        let Ok(carved) = Carved::open(&paths, None, &|_| ()) else { continue };
        opened += 1;
        let found: u64 = carved.files().iter().map(|file| carved.found(file.file_id)).sum();
        assert!(found <= (image.len() / PAGE_BYTES) as u64);
        for file in carved.files() {
            assert!(u64::from(file.pages) <= (1 << 24) + 256 * 12);
            let missing: usize = carved.not_found(file.file_id).map(|hole| hole.len()).sum();
            assert_eq!(missing as u64 + carved.found(file.file_id), u64::from(file.pages));
            for page in 0..file.pages.min(16) {
                let id = PageId::new(file.file_id, page);
                if let Some(bytes) = carved.read_page(id) {
                    assert!(verify(&bytes).is_ok() && Page::new(&bytes).header().page_id() == id);
                }
            }
        }
    }
    assert!(opened > 500, "{opened}");
}

#[cfg(unix)]
#[test]
fn a_place_that_cannot_be_read_is_a_failed_read_and_has_no_page() {
    // The system opens a folder, but each read of it fails.
    let folder = tempfile::tempdir().unwrap();
    let file = SharedFile::from(fs::File::open(folder.path()).unwrap());
    let reads = Reads::default();
    let found = |_: &pass::Found<'_>| Err(());
    assert!(pass::pass((&file, &reads), &[0, 161], &|_| (), found).is_ok());
    let mut faults = ReadFaults::default();
    reads.add_to(folder.path(), &mut faults);
    assert_eq!(faults.failed[0].places.len(), 1, "{faults:?}");
}

#[test]
fn an_image_full_of_headers_and_copies_costs_a_bounded_factor() {
    let sound = sample();
    // Each sector begins like a page with a checksum.
    let mut sector = [0xA5; 512];
    sector[..96].copy_from_slice(&sound[9 * PAGE_BYTES..][..96]);
    let headers: Vec<u8> = std::iter::repeat_n(sector, 8 << 10).flatten().collect();
    assert!(matches!(carve(&[headers]), Err(OpenError::Carve(CarveError::NoPages { .. }))));
    // Each copy overlaps all others, and each begins with another page.
    let copies: Vec<u8> = (0..24).flat_map(|first| sound[first * PAGE_BYTES..64 * PAGE_BYTES].to_vec()).collect();
    let carved = carve(&[copies]).unwrap();
    let written = (0..64).filter(|page| may_begin(&page_of(&sound, *page)));
    assert_eq!(carved.found(1), written.clone().count() as u64);
    assert_eq!(carved.same_copies(), written.map(|page| page.min(23) as u64).sum::<u64>());
    assert_eq!(carved.double_pages(), 0);
}
