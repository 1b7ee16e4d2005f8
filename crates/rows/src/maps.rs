//! Finds out from the allocation maps whether a page is in use.

use format::allocation::{
    EXTENT_PAGES, INTERVAL_PAGES, PFS_PAGES, PfsByte, bit, bitmap, gam_page_of, pfs_bytes, pfs_page_of,
};
use format::{Page, PageBytes, PageId, PageType};
use source::PageSource;

use catalog::{Fetched, fetch};

/// The state of a page according to the allocation maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InUse {
    /// The page is allocated.
    Yes,
    /// The page was freed, so its content is out of date.
    Freed,
    /// The PFS page that describes the page cannot be read, so the page may have been freed. A freed page keeps its
    /// content, and its extent may still belong to the same allocation unit.
    Unknown,
}

/// Reads allocation maps. Keeps the most recently read PFS page and the most recently read GAM page in memory.
#[derive(Default)]
pub(crate) struct Maps {
    pfs: Option<(PageId, Option<Box<PageBytes>>)>,
    gam: Option<(PageId, Option<Box<PageBytes>>)>,
}

impl Maps {
    /// Whether a page is in use, according to its PFS page. The GAM page is used only if the PFS page cannot be read.
    /// If the PFS page marks a page as allocated but the GAM page marks its extent as free, one of the two maps is
    /// wrong; the page then counts as in use, so that no rows are lost.
    pub(crate) fn in_use(&mut self, source: &dyn PageSource, page: PageId) -> InUse {
        let by_page = self.pfs(source, page).map(PfsByte::is_allocated);
        let by_extent = self.gam(source, page);
        match (by_page, by_extent) {
            (Some(true), _) => InUse::Yes,
            (Some(false), _) | (None, Some(false)) => InUse::Freed,
            (None, _) => InUse::Unknown,
        }
    }

    /// The PFS byte of a page; `None` if the PFS page cannot be read.
    pub(crate) fn pfs(&mut self, source: &dyn PageSource, page: PageId) -> Option<PfsByte> {
        let map = PageId::new(page.file, pfs_page_of(page.page));
        let bytes = kept(&mut self.pfs, source, map, PageType::Pfs)?;
        pfs_bytes(Page::new(bytes))?.get((page.page % PFS_PAGES) as usize).copied().map(PfsByte)
    }

    fn gam(&mut self, source: &dyn PageSource, page: PageId) -> Option<bool> {
        let map = PageId::new(page.file, gam_page_of(page.page));
        let bytes = kept(&mut self.gam, source, map, PageType::Gam)?;
        // A set bit marks a free extent.
        Some(!bit(bitmap(Page::new(bytes))?, page.page % INTERVAL_PAGES / EXTENT_PAGES))
    }
}

fn kept<'a>(
    place: &'a mut Option<(PageId, Option<Box<PageBytes>>)>,
    source: &dyn PageSource,
    map: PageId,
    kind: PageType,
) -> Option<&'a PageBytes> {
    if place.as_ref().is_none_or(|(at, _)| *at != map) {
        let read = match fetch(source, map) {
            Fetched::Sound(bytes) if Page::new(&bytes).header().kind() == Some(kind) => Some(bytes),
            _ => None,
        };
        *place = Some((map, read));
    }
    place.as_ref().and_then(|(_, bytes)| bytes.as_deref())
}
