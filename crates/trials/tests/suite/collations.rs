//! Indexes on names in alphabets whose sort order differs from that of ASCII.
#![allow(clippy::unwrap_used)]

use check::Silent;
use findings::{Options, Report};
use format::collation::CollationId;
use format::{Page, PageId, PageType};
use lab::alphabet;

use crate::image::Image;

fn check(image: &Image) -> Report {
    let files = vec![("names.mdf".into(), image.bytes.clone())];
    let source = source::MemoryFiles::open(files).unwrap();
    let options = Options { extended_logical_checks: true, ..Options::default() };
    check::run(&source, &catalog::load(&source), &options, &Silent)
}

fn image(collation: u32) -> Image {
    let folder = tempfile::tempdir().unwrap();
    Image::write(&alphabet::names(collation, 4000, 3), folder.path())
}

/// Returns the leaf pages of both indexes on names. Each of these pages has more rows than any page of the table or of
/// the catalog, so the row count identifies them.
fn leaves(image: &Image) -> Vec<u32> {
    let is_leaf = |page: &u32| {
        let bytes = *image.page(*page);
        let page = Page::new(&bytes);
        page.header().kind() == Some(PageType::Index) && page.header().level == 0 && page.header().slot_count > 100
    };
    (0..image.pages()).filter(is_leaf).collect()
}

#[test]
fn the_order_of_alphabets_is_verified_whole() {
    for (collation, name) in alphabet::COLLATIONS {
        let known = CollationId(collation).name();
        assert_eq!(known.as_deref().map(|known| known.starts_with(name)), Some(true), "{known:?}");
        let report = check(&image(collation));
        assert!(report.findings.is_empty(), "{name}: {:#?}", report.findings.first());
        let limits: Vec<_> = report.not_verified.iter().map(|entry| entry.limit.id).collect();
        assert!(limits.is_empty(), "{name}: {limits:?}");
    }
}

#[test]
fn names_that_are_not_in_the_order_of_their_alphabet_are_found_on_their_page() {
    for (collation, name) in alphabet::COLLATIONS {
        let sound = image(collation);
        let leaves = leaves(&sound);
        assert!(leaves.len() > 10, "{name}: {}", leaves.len());
        for page in leaves.into_iter().step_by(3) {
            let mut changed = sound.clone();
            // Swaps the slot offsets of rows 20 and 21.
            changed.edit(page, |bytes| {
                let at = bytes.len() - 2 * 22;
                let (left, right) = bytes[at..at + 4].split_at_mut(2);
                left.swap_with_slice(right);
            });
            let report = check(&changed);
            let pages: Vec<PageId> = report.findings.iter().filter_map(|finding| finding.page).collect();
            assert!(pages.contains(&PageId::new(1, page)), "{name}: {page}: {:#?}", report.findings);
        }
    }
}
