//! Compares a recovered database with the truth.

use std::collections::BTreeMap;

use format::allocation::{PFS_PAGES, pfs_page_of};
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageId};
use source::PageSource;

use super::common::logical;

/// A page after its torn bits are undone. Torn bits depend on the last write of the page, not on its content.
fn read(source: &dyn PageSource, page: PageId) -> Option<Box<PageBytes>> {
    let mut bytes = source.read_page(page)?;
    undo_torn_bits(&mut bytes);
    Some(bytes)
}

/// Whether a page is allocated, according to its PFS page.
pub fn is_allocated(source: &dyn PageSource, page: PageId) -> bool {
    let pfs = read(source, PageId::new(page.file, pfs_page_of(page.page))).unwrap();
    pfs[100 + (page.page % PFS_PAGES) as usize] & 0x40 != 0
}

/// All pages of a database that are allocated.
fn allocated(source: &dyn PageSource) -> impl Iterator<Item = PageId> {
    let pages = |file: &source::DataFile| {
        let id = file.file_id;
        (0..file.pages).map(move |number| PageId::new(id, number))
    };
    source.files().iter().flat_map(pages).filter(|page| is_allocated(source, *page))
}

/// The allocated pages of `truth` that differ from the pages of `found`. A different LSN counts as a difference.
pub fn differences(found: &dyn PageSource, truth: &dyn PageSource) -> Vec<PageId> {
    let is_compared = |page: &PageId| *page != PageId::BOOT && page.page != 0;
    let differs = |page: &PageId| match (read(found, *page), read(truth, *page)) {
        (Some(found), Some(expected)) => logical(&found, true) != logical(&expected, true),
        _ => true,
    };
    allocated(truth).filter(is_compared).filter(differs).collect()
}

/// The page type of an index page.
const INDEX: u8 = 2;

/// The live rows of all allocation units, including the rows of allocation maps. The key is the object ID and the index
/// ID in the page headers.
pub fn live_rows(source: &dyn PageSource) -> BTreeMap<(u32, u16), Vec<Vec<u8>>> {
    let mut rows: BTreeMap<(u32, u16), Vec<Vec<u8>>> = BTreeMap::new();
    for page in allocated(source) {
        let bytes = read(source, page).unwrap();
        let header = *Page::new(&bytes).header();
        // The level field of a text page has no meaning.
        let is_inner = header.level != 0 && header.page_type == INDEX;
        if is_inner || !matches!(header.page_type, 1..=4) {
            continue;
        }
        let is_live =
            |row: &Vec<u8>| row.first().is_some_and(|status| !format::record::RecordKind::of(*status).is_ghost());
        let live = logical(&bytes, false).1.into_iter().flatten().filter(is_live);
        rows.entry((header.object_id.get(), header.index_id.get())).or_default().extend(live);
    }
    rows.values_mut().for_each(|rows| rows.sort());
    rows.retain(|_, rows| !rows.is_empty());
    rows
}
