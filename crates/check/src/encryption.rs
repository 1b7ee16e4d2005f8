//! Transparent data encryption: page headers stay readable, all else is ciphertext (format-rare.md 12).

use format::page::page_flags;
use format::{Page, PageId, PageType};
use source::PageSource;

/// Whether the database is encrypted: PFS, GAM and SGAM page of the primary file all carry a flag that says so. On plain
/// pages of these types none of these flags was ever met; on others 0x08 has another meaning.
pub(crate) fn is_encrypted(source: &dyn PageSource) -> bool {
    [(1, PageType::Pfs), (2, PageType::Gam), (3, PageType::Sgam)].into_iter().all(|(page, kind)| {
        let id = PageId::new(PageId::BOOT.file, page);
        source.read_page(id).is_some_and(|bytes| {
            let header = Page::new(&bytes).header();
            header.page_id() == id
                && header.kind() == Some(kind)
                && header.flags.get() & (page_flags::ENCRYPTED | page_flags::ENCRYPTED_KEYS) != 0
        })
    })
}
