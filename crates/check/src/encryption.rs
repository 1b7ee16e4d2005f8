//! Transparent data encryption: page headers stay readable, all else is ciphertext (format-rare.md 12).

use format::page::{HEADER_BYTES, page_flags};
use format::protection::undo_torn_bits;
use format::{Page, PageId, PageType};
use source::PageSource;

/// Whether the database is encrypted, or a part of it while a scan encrypts or decrypts it: PFS, GAM and SGAM page of the
/// primary file all carry a flag that says so, or one does and its slot array cannot be read. On plain pages of these types
/// none of these flags was ever met; on others 0x08 has another meaning.
pub(crate) fn is_encrypted(source: &dyn PageSource) -> bool {
    let maps = [(1, PageType::Pfs), (2, PageType::Gam), (3, PageType::Sgam)].map(|(page, kind)| {
        let id = PageId::new(PageId::BOOT.file, page);
        let Some(mut bytes) = source.read_page(id) else { return (false, false) };
        undo_torn_bits(&mut bytes);
        let page = Page::new(&bytes);
        let header = page.header();
        let is_flagged = header.page_id() == id
            && header.kind() == Some(kind)
            && header.flags.get() & (page_flags::ENCRYPTED | page_flags::ENCRYPTED_KEYS) != 0;
        (is_flagged, page.slot_offset(0) != Some(HEADER_BYTES as u16))
    });
    maps.iter().all(|(is_flagged, _)| *is_flagged)
        || maps.iter().any(|(is_flagged, is_unreadable)| *is_flagged && *is_unreadable)
}
