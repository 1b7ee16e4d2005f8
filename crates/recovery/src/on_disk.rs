//! Pages as they are in the files, before recovery.

use format::page::HEADER_BYTES;
use format::protection::undo_torn_bits;
use format::{Lsn, Page, PageBytes, PageId};
use source::PageSource;

use crate::misfit::Misfit;
use crate::page::WorkingPage;

/// Reads a page and restores the bits that torn-page protection replaced. Returns `None` if the page cannot be read or
/// its protection (checksum or torn bits) does not match.
pub(crate) fn readable(source: &dyn PageSource, page: PageId) -> Option<Box<PageBytes>> {
    let (mut bytes, verified) = source::read_settled(source, page)?;
    verified.ok()?;
    undo_torn_bits(&mut bytes);
    Some(bytes)
}

/// The LSN of a stored page; zero if the page is damaged.
pub(crate) fn lsn_on_disk(page: PageId, stored: &PageBytes) -> Lsn {
    let header = *Page::new(stored).header();
    let is_sound = header.page_id() == page && format::protection::verify(stored).is_ok();
    if is_sound { header.lsn() } else { Lsn::default() }
}

/// Loads the stored page so that records can be applied to it. Returns an error if the page is damaged.
pub(crate) fn on_disk(id: PageId, stored: &PageBytes) -> Result<WorkingPage, Misfit> {
    if format::protection::verify(stored).is_err() {
        return Err(Misfit::PageDamaged);
    }
    let mut bytes = Box::new(*stored);
    undo_torn_bits(&mut bytes);
    let header = Page::new(&bytes).header();
    let is_blank = bytes.iter().take(HEADER_BYTES).all(|byte| *byte == 0);
    if header.page_id() != id && !is_blank {
        return Err(Misfit::PageDamaged);
    }
    WorkingPage::load(&bytes)
}
