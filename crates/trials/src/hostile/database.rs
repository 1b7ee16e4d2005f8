//! Loads and checks whole databases.

use std::path::PathBuf;

use check::Silent;
use findings::Options;
use format::PageId;
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use source::{MemoryFiles, PageSource};

use crate::mutate::seal;

/// Loads the catalog of a database with the changes in `bytes`.
pub fn bootstrap(base: Option<&MemoryFiles>, bytes: &[u8]) {
    if let Some(files) = changed(base, bytes) {
        let _ = catalog::load(&files);
    }
}

/// Checks a small database with the changes in `bytes`, and prints every message.
pub fn database(base: Option<&MemoryFiles>, bytes: &[u8]) {
    if let Some(files) = changed(base, bytes) {
        let database = catalog::load(&files);
        let options = Options { max_threads: 1, ..Options::default() };
        let report = check::run(&files, &database, &options, &Silent);
        let names = report.names();
        assert!(report.findings.iter().all(|finding| !finding.text(&names).is_empty()));
    }
}

/// The number of pages of the minimal file.
const EMPTY_PAGES: usize = 32;
/// The number of bytes before the data of each change: the page number (2 bytes), the offset (2 bytes) and the length
/// of the data (1 byte).
const CHANGE_HEADER: usize = 5;

/// Applies changes to `base`, or to a minimal file. Each change is u16 page, u16 offset, u8 length, and that number of
/// bytes. The protection of each changed page is corrected, because the reader rejects a page with wrong protection.
fn changed(base: Option<&MemoryFiles>, bytes: &[u8]) -> Option<MemoryFiles> {
    let empty;
    let base = match base {
        Some(base) => base,
        None => {
            empty = almost_nothing()?;
            &empty
        }
    };
    let pages = base.files().first()?.pages.max(1);
    let mut changes = std::collections::BTreeMap::new();
    let mut rest = bytes;
    while let Some((header, behind)) = rest.split_first_chunk::<CHANGE_HEADER>() {
        let [a, b, c, d, length] = *header;
        let id = PageId::new(1, u32::from(u16::from_le_bytes([a, b])) % pages);
        let at = usize::from(u16::from_le_bytes([c, d])) % PAGE_BYTES;
        let (value, next) = behind.split_at(usize::from(length).min(behind.len()));
        rest = next;
        let page = match changes.entry(id) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let mut page = base.read_page(id)?;
                undo_torn_bits(&mut page);
                entry.insert(page)
            }
        };
        for (place, byte) in page.iter_mut().skip(at).zip(value) {
            *place = *byte;
        }
    }
    base.with_pages(changes.into_iter().map(|(id, mut page)| {
        seal(&mut page);
        (id, *page)
    }))
    .ok()
}

/// A minimal file. The reader accepts it as a data file because it has the pages with fixed page numbers, such as the
/// file header, the boot page and the allocation maps. These pages have no records.
fn almost_nothing() -> Option<MemoryFiles> {
    let mut bytes = vec![0; EMPTY_PAGES * PAGE_BYTES];
    for (number, kind) in [(0u8, 15u8), (1, 11), (2, 8), (3, 9), (6, 16), (7, 17), (9, 13)] {
        let page = bytes.get_mut(usize::from(number) * PAGE_BYTES..)?.first_chunk_mut::<PAGE_BYTES>()?;
        // Sets five bytes of the page header: header version, page type, allocation unit ID (99, that of system pages),
        // page number and file ID.
        [page[0], page[1], page[24], page[32], page[36]] = [1, kind, 99, number, 1];
    }
    MemoryFiles::open(vec![(PathBuf::from("nothing.mdf"), bytes)]).ok()
}
