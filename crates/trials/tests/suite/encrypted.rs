//! Databases that look like databases encrypted by TDE: page headers and checksums are right, and the bytes after the
//! headers are noise. Without a key, a check verifies page ID, protection, type, level and links. The unreadable bytes
//! must not cause findings.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use check::Silent;
use findings::{Options, Report};
use format::page::page_flags;
use format::protection::verify;
use format::{PAGE_BYTES, Page, PageBytes};
use lab::backup::{BackupOptions, Set, backup};
use lab::{Description, Version, orders};
use trials::mutate::seal;

use crate::image::Image;

/// The page flag of encrypted pages. SQL Server was observed to set it.
const ENCRYPTED: u16 = 0x800;

/// The description of the database before encryption.
fn sample() -> Description {
    orders::orders(Version::V957, 5, 3 << 20)
}

impl Image {
    fn plain(folder: &Path) -> Self {
        Self::write(&sample(), folder)
    }

    fn encrypted() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut image = Self::plain(folder.path());
        for page in 0..image.pages() {
            image.encrypt(page);
        }
        image
    }

    /// Encrypts a page, unless it is the file header, the boot page, or a page that was never written.
    fn encrypt(&mut self, page: u32) {
        if !matches!(page, 0 | 9) && self.page(page)[0] == 1 {
            self.edit(page, encrypt);
        }
    }

    /// A leaf page of a user index that has neighbors on both sides, and the page to its right.
    fn linked(&self) -> (u32, u32) {
        let header = |page: u32| Page::new(self.page(page)).header();
        let is_inner = |page: &u32| {
            let (this, next) = (header(*page), header(*page).next());
            let is_leaf = this.page_type == 1 && this.index_id.get() >= 256;
            is_leaf && !this.prev().is_none() && !next.is_none() && !header(next.page).next().is_none()
        };
        let page = (10..self.pages()).find(is_inner).unwrap();
        (page, header(page).next().page)
    }

    fn check(&self) -> Report {
        self.check_with(&Options::default())
    }

    fn check_with(&self, options: &Options) -> Report {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("orders.mdf");
        std::fs::write(&file, &self.bytes).unwrap();
        check_files(&[file], options)
    }
}

/// Turns the bytes after the page header into noise, and sets the flag for encryption.
fn encrypt(bytes: &mut PageBytes) {
    bytes[5] |= (ENCRYPTED >> 8) as u8;
    let mut state = 0x9E37_79B9_u32 ^ u32::from_le_bytes(*bytes[32..].first_chunk().unwrap());
    for byte in &mut bytes[96..] {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte ^= (state >> 24) as u8;
    }
}

fn check_files(files: &[PathBuf], options: &Options) -> Report {
    let source = source::open(files, &[], false).unwrap();
    let database = catalog::load(source.as_ref());
    check::run(source.as_ref(), &database, options, &Silent)
}

/// The message number and the page of each finding, ordered by page.
fn found(report: &Report) -> Vec<(u16, u32)> {
    let mut found: Vec<_> =
        report.findings.iter().map(|finding| (finding.check.msg, finding.page.map_or(0, |page| page.page))).collect();
    found.sort_unstable_by_key(|(msg, page)| (*page, *msg));
    found
}

fn note(report: &Report, what: &str, reason: &str) -> u64 {
    let is_it = |entry: &&findings::NotVerified| entry.what == what && entry.reason.contains(reason);
    report.not_verified.iter().filter(is_it).map(|entry| entry.count).sum()
}

#[test]
fn a_sound_encrypted_database_has_no_finding_and_says_what_is_not_verified() {
    let image = Image::encrypted();
    for options in [Options::default(), Options { physical_only: true, ..Options::default() }] {
        let report = image.check_with(&options);
        assert_eq!(found(&report), []);
        assert!(report.read_errors.is_empty() && note(&report, "pages", "without the key") > 300);
        assert!(note(&report, "allocation", "encrypted (TDE)") >= 5, "{:?}", report.not_verified);
        assert_eq!(note(&report, "links between pages", ""), 0);
    }
}

#[test]
fn what_a_page_says_against_itself_is_found_without_a_key() {
    let image = Image::encrypted();
    let (page, _) = image.linked();
    let found_after = |change: &dyn Fn(&mut Image)| {
        let mut damaged = image.clone();
        change(&mut damaged);
        found(&damaged.check())
    };
    let at = page as usize * PAGE_BYTES;
    assert_eq!(found_after(&|image| image.bytes[at + 4000] ^= 1), [(5233, page)], "checksum");
    assert_eq!(found_after(&|image| image.edit(page, |bytes| bytes[3] = 2)), [(8939, page)], "level of a data page");
    assert_eq!(
        found_after(&|image| image.edit(page, |bytes| bytes[1] = 8)),
        [(8938, page)],
        "a map where none belongs"
    );
    assert_eq!(found_after(&|image| image.edit(page, |bytes| bytes[1] = 200)), [(8938, page)], "no type at all");
    assert_eq!(found_after(&|image| image.edit(page, |bytes| bytes[0] = 7)), [(8939, page)], "header version");
    assert_eq!(found_after(&|image| image.edit(2, |bytes| bytes[1] = 9)), [(8998, 0), (8946, 2)], "GAM");
    let broken = found_after(&|image| image.bytes[PAGE_BYTES + 500] ^= 1);
    assert_eq!(broken, [(8998, 0), (8939, 1), (8946, 1)], "PFS");
}

#[test]
fn another_page_where_a_sound_page_links_to_is_found_and_is_doubtful_elsewhere() {
    let image = Image::encrypted();
    let (page, next) = image.linked();
    let mut damaged = image.clone();
    let other = *image.page(page);
    damaged.bytes[next as usize * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(&other);
    assert_eq!(found(&damaged.check()), [(5256, next)]);

    // The test writes another page over a heap page. Pages of a heap have no links, so nothing shows whether the heap
    // page is still in use.
    let is_heap = |page: &u32| {
        let header = Page::new(image.page(*page)).header();
        header.page_type == 1 && header.index_id.get() >= 256 && header.prev().is_none() && header.next().is_none()
    };
    let heap = (10..image.pages()).find(is_heap).unwrap();
    let mut damaged = image.clone();
    damaged.bytes[heap as usize * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(&other);
    let report = damaged.check();
    assert_eq!(found(&report), []);
    let named: Vec<_> = report.not_verified.iter().filter(|entry| entry.what == "page").collect();
    assert_eq!((named.len(), named[0].scope.as_str()), (1, format!("page (1:{heap})").as_str()));
}

#[test]
fn a_link_that_does_not_fit_is_a_proof_only_if_the_page_that_has_it_was_changed_long_after_the_other() {
    let image = Image::encrypted();
    let (page, next) = image.linked();
    let prev = Page::new(image.page(page)).header().prev().page;
    let unlink = |image: &mut Image| image.edit(next, |bytes| bytes[8..14].copy_from_slice(&[77, 0, 0, 0, 1, 0]));
    let mut damaged = image.clone();
    unlink(&mut damaged);
    // Nothing shows whether the page with the wrong link is still in use.
    let report = damaged.check();
    assert_eq!(found(&report), []);
    assert!(note(&report, "links between pages", "no longer in use") >= 1);
    let later = |bytes: &mut PageBytes| bytes[40..44].copy_from_slice(&9_000_000_u32.to_le_bytes());
    damaged.edit(page, later);
    assert_eq!(found(&damaged.check()), [(8936, next)]);
    // Now a page names a left neighbor that does not point back to the page.
    let mut damaged = image.clone();
    damaged.edit(prev, |bytes| bytes[16..22].copy_from_slice(&[77, 0, 0, 0, 1, 0]));
    damaged.edit(page, later);
    assert_eq!(found(&damaged.check()), [(8978, page)]);
    // If log records may explain the contradiction, it is not a finding.
    damaged.edit(9, |bytes| {
        let status = 96 + STATUS;
        bytes[status + 3] &= !0x40;
    });
    assert_eq!(found(&damaged.check()), []);
}

/// The offset of the status field in the boot page's record.
const STATUS: usize = 36;

#[test]
fn zeros_may_be_of_a_page_that_is_not_in_use() {
    let mut image = Image::encrypted();
    let before = note(&image.check(), "pages of zeros", "");
    let (page, _) = image.linked();
    image.bytes[page as usize * PAGE_BYTES..][..PAGE_BYTES].fill(0);
    let report = image.check();
    assert_eq!(found(&report), []);
    assert_eq!(note(&report, "pages of zeros", "allocation pages"), before + 1);
    assert_eq!(note(&report, "links between pages", ""), 2, "both neighbors still link to it");
    // Free pages contain only zeros. They get the form that an encryption scan would give them.
    for page in 0..image.pages() {
        if image.page(page).iter().all(|byte| *byte == 0) {
            image.edit(page, |bytes| {
                (bytes[0], bytes[1], bytes[5]) = (1, 21, 0x0A);
                bytes[32..36].copy_from_slice(&page.to_le_bytes());
                bytes[36] = 1;
                encrypt(bytes);
            });
        }
    }
    let report = image.check();
    assert_eq!((found(&report), note(&report, "pages of zeros", "")), (Vec::new(), 0));
}

#[test]
fn pages_that_a_scan_has_encrypted_already_are_not_verified_and_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let plain = Image::plain(folder.path());
    let header = |page: u32| *Page::new(plain.page(page)).header();
    // Selections of pages to encrypt: every other page of user tables, every third IAM page, all pages of base tables,
    // and the pages of the first base tables.
    let some: [&dyn Fn(u32) -> bool; 4] = [
        &|page| header(page).page_type < 3 && header(page).index_id.get() >= 256 && page % 2 == 0,
        &|page| header(page).page_type == 10 && page % 3 == 0,
        &|page| header(page).page_type < 3 && header(page).index_id.get() < 256,
        &|page| header(page).page_type < 3 && header(page).object_id.get() < 8,
    ];
    for (at, is_encrypted) in some.into_iter().enumerate() {
        let mut image = plain.clone();
        let pages: Vec<u32> = (10..plain.pages()).filter(|page| is_encrypted(*page)).collect();
        pages.iter().for_each(|page| image.encrypt(*page));
        let report = image.check();
        assert!(pages.len() > 2 && !report.not_verified.is_empty(), "{at}");
        assert_eq!(found(&report), [], "{at}: {:?}", report.not_verified);
    }
}

#[test]
fn flags_of_encryption_hide_no_damage_of_a_database_that_is_not_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let plain = Image::plain(folder.path());
    let flag = |bytes: &mut PageBytes| bytes[5] |= (ENCRYPTED >> 8) as u8;
    let is_iam = |page: &u32| Page::new(plain.page(*page)).header().page_type == 10;
    let iam_pages: Vec<u32> = (10..plain.pages()).filter(is_iam).collect();
    // First, an IAM page gets the encryption flag and an unknown page type. The check must report the damaged IAM
    // chain.
    let mut image = plain.clone();
    image.edit(iam_pages[0], |bytes| {
        flag(bytes);
        bytes[1] = 224;
    });
    assert!(found(&image.check()).contains(&(2575, iam_pages[0])), "{:?}", image.check().findings);
    // If an allocation page has the encryption flag but its content is not encrypted, the page is checked, and the
    // report lists the contradiction.
    for page in [2, iam_pages[1]] {
        let mut image = plain.clone();
        image.edit(page, flag);
        let report = image.check();
        assert_eq!(
            (found(&report), note(&report, "allocation", "but the page is not encrypted")),
            (Vec::new(), 1),
            "page {page}"
        );
        image.edit(page, |bytes| bytes[194 + 8] ^= 0xFF);
        assert_ne!(found(&image.check()), [], "page {page}");
    }
}

#[test]
fn the_answer_for_a_backup_of_an_encrypted_database_is_that_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let files = lab::write(&sample(), folder.path()).unwrap().files;
    let set = Set { files: &files, step: 1, options: BackupOptions::default() };
    let written = backup(&[set], folder.path(), "orders").unwrap().files;
    // The backup stores pages unchanged, at multiples of 512 bytes.
    let mut bytes = std::fs::read(&written[0]).unwrap();
    let mut encrypted = 0;
    for at in (0..bytes.len() - PAGE_BYTES).step_by(512) {
        let page: &mut PageBytes = bytes[at..].first_chunk_mut().unwrap();
        let flags = u16::from_le_bytes([page[4], page[5]]);
        let id = Page::new(page).header().page_id();
        let is_page = page[0] == 1 && flags & page_flags::CHECKSUM != 0 && verify(page).is_ok() && id.file == 1;
        if is_page && !matches!(id.page, 0 | 9) {
            encrypt(page);
            seal(page);
            encrypted += 1;
        }
    }
    assert!(encrypted > 300);
    std::fs::write(&written[0], &bytes).unwrap();
    let report = check_files(&written, &Options::default());
    assert_eq!(found(&report), [], "{:?}", report.not_verified);
    assert!(note(&report, "pages", "without the key") > 300);
    // Damages one of the encrypted pages.
    let at = (0..bytes.len() - PAGE_BYTES).step_by(512).find(|&at| {
        let page: &PageBytes = bytes[at..].first_chunk().unwrap();
        page[1] == 2 && u16::from_le_bytes([page[4], page[5]]) & ENCRYPTED != 0 && verify(page).is_ok()
    });
    let at = at.unwrap();
    let page = Page::new(bytes[at..].first_chunk().unwrap()).header().page_id().page;
    bytes[at + 5000] ^= 0x10;
    std::fs::write(&written[0], &bytes).unwrap();
    assert_eq!(found(&check_files(&written, &Options::default())), [(5233, page)]);
}
