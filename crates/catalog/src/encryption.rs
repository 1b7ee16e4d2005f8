//! Detects transparent data encryption (TDE). The page headers of an encrypted database stay readable, but the rest of
//! each page is ciphertext (docs/format/other-features.md#encryption).

use format::page::{HEADER_BYTES, page_flags};
use format::protection::{undo_torn_bits, verify};
use format::{Page, PageId, PageType};
use source::PageSource;

/// The maximum number of valid pages to examine if the allocation maps of the primary file cannot be read.
const MOST_SAMPLES: u32 = 64;
/// The maximum number of pages to read while searching for [`MOST_SAMPLES`] valid pages.
const MOST_READ: u32 = 4096;

/// Whether the database is encrypted, or partly encrypted because an encryption scan is under way. The result depends
/// on the first PFS, GAM and SGAM page of the primary file. The database is encrypted if all three pages have a flag
/// for encryption, or if one of them has such a flag and an unreadable slot array. These flags have never been seen on
/// unencrypted pages of these three types. On pages of other types, the flag 0x08 has another meaning. If none of the
/// three pages can be read, as in a single stripe of a backup, the first valid pages are examined. The database is then
/// encrypted if most of these pages are.
pub(crate) fn is_encrypted(source: &dyn PageSource) -> bool {
    let maps = [(1, PageType::Pfs), (2, PageType::Gam), (3, PageType::Sgam)].map(|(page, kind)| {
        let id = PageId::new(PageId::BOOT.file, page);
        let mut bytes = source.read_page(id)?;
        let is_whole = verify(&bytes).is_ok();
        undo_torn_bits(&mut bytes);
        let page = Page::new(&bytes);
        let header = page.header();
        let is_flagged = header.page_id() == id
            && header.kind() == Some(kind)
            && header.flags.get() & (page_flags::ENCRYPTED | page_flags::ENCRYPTED_KEYS) != 0;
        Some((is_flagged, is_whole && page.slot_offset(0) != Some(HEADER_BYTES as u16)))
    });
    if maps.iter().all(Option::is_none) {
        return most_are_encrypted(source);
    }
    maps.iter().all(|map| map.is_some_and(|(is_flagged, _)| is_flagged))
        || maps.iter().flatten().any(|(is_flagged, is_unreadable)| *is_flagged && *is_unreadable)
}

fn most_are_encrypted(source: &dyn PageSource) -> bool {
    let (mut samples, mut encrypted) = (0, 0);
    let pages = source.files().iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)));
    for id in pages.take(MOST_READ as usize) {
        let Some(bytes) = source.read_page(id) else { continue };
        let header = Page::new(&bytes).header();
        if header.page_id() == id && verify(&bytes).is_ok() {
            samples += 1;
            encrypted += u32::from(header.is_encrypted());
        }
        if samples == MOST_SAMPLES {
            break;
        }
    }
    encrypted * 2 > samples
}
