//! Walks the used pages of an allocation unit in the order of its IAM chain.

use std::collections::VecDeque;

use catalog::{AllocUnit, Fetched, fetch};
use format::allocation::{EXTENT_PAGES, IamHeader, bitmap, set_bits};
use format::{PAGE_BYTES, Page, PageId, PageType};
use source::{PageSource, ReadError};

use crate::counts::Why;
use crate::leaf::names;
use crate::maps::{InUse, Maps};
use crate::page_set::PageSet;

/// Walks the pages of an allocation unit. Each page is delivered once.
pub(crate) struct Allocated<'a> {
    source: &'a dyn PageSource,
    unit: &'a AllocUnit,
    /// The next IAM page.
    next_iam: PageId,
    /// The pages that were already delivered or used, including IAM pages.
    seen: PageSet,
    maps: Maps,
    /// Single-page allocations of the current IAM page.
    singles: VecDeque<PageId>,
    /// `start` is the first page of the current IAM page's interval. `extents` has the extents that remain to be
    /// walked, in reverse order.
    start: PageId,
    extents: Vec<u32>,
    /// The remaining pages of the current extent.
    in_extent: std::ops::Range<u32>,
}

impl<'a> Allocated<'a> {
    pub(crate) fn of(source: &'a dyn PageSource, unit: &'a AllocUnit) -> Self {
        Self {
            source,
            unit,
            next_iam: unit.first_iam,
            seen: PageSet::of(source),
            maps: Maps::default(),
            singles: VecDeque::new(),
            start: PageId::NONE,
            extents: Vec::new(),
            in_extent: 0..0,
        }
    }

    /// The next page in use; `None` after the last page. `Err` names a listed page that is absent or that may have been
    /// freed, or the IAM page at which the chain breaks.
    pub(crate) fn next_page(&mut self) -> Option<Result<PageId, (PageId, Why)>> {
        loop {
            let (page, is_single) = match self.listed() {
                Some(listed) => listed,
                None if self.next_iam.is_none() => return None,
                None => match self.load() {
                    Ok(()) => continue,
                    Err(page) => {
                        self.next_iam = PageId::NONE;
                        let why = match (self.source.contains(page), self.source.file(page.file)) {
                            (true, _) if is_not_found(self.source, page) => Why::MapNotFound,
                            (true, _) => Why::AllocationMap,
                            (false, None) => Why::MapNotGiven,
                            (false, Some(_)) => Why::MapBeyondEnd,
                        };
                        return Some(Err((page, why)));
                    }
                },
            };
            if page.is_none() {
                continue;
            }
            if !self.source.contains(page) {
                // If the file was truncated, the PFS or GAM page may still exist and show that the missing page was not
                // in use.
                let has_file = self.source.file(page.file).is_some();
                if has_file && self.maps.in_use(self.source, page) == InUse::Freed {
                    continue;
                }
                return Some(Err((page, Why::absent(self.source, page))));
            }
            if !self.seen.insert(page) {
                continue;
            }
            match self.maps.in_use(self.source, page) {
                InUse::Yes => return Some(Ok(page)),
                InUse::Freed => {}
                // SQL Server removes a single-page allocation from the IAM page when it frees the page. A page that is
                // still listed there is therefore in use.
                InUse::Unknown if is_single => return Some(Ok(page)),
                InUse::Unknown => return Some(Err((page, Why::UseUnknown))),
            }
        }
    }

    /// The next page that the current IAM page lists, and whether it is a single-page allocation. `None` after the last
    /// page of this IAM page.
    fn listed(&mut self) -> Option<(PageId, bool)> {
        if let Some(page) = self.singles.pop_front() {
            return Some((page, true));
        }
        if self.in_extent.is_empty() {
            let extent = self.extents.pop()?;
            self.in_extent = extent_pages(self.start, extent);
        }
        self.in_extent.next().map(|page| (PageId::new(self.start.file, page), false))
    }

    /// Reads the next IAM page.
    fn load(&mut self) -> Result<(), PageId> {
        let at = self.next_iam;
        let Fetched::Sound(bytes) = fetch(self.source, at) else { return Err(at) };
        let page = Page::new(&bytes);
        let header = page.header();
        if header.kind() != Some(PageType::Iam) || !self.seen.insert(at) {
            return Err(at);
        }
        let (Some(head), Some(map)) = (IamHeader::read(page), bitmap(page)) else { return Err(at) };
        let singles: VecDeque<PageId> = head.slots.into_iter().filter(|slot| !slot.is_none()).collect();
        let pages = set_bits(map)
            .flat_map(|extent| extent_pages(head.start, extent).map(|page| PageId::new(head.start.file, page)));
        if !names(header, self.unit.id) && !self.own_first(singles.iter().copied().chain(pages)) {
            return Err(at);
        }
        self.next_iam = header.next();
        self.start = head.start;
        self.singles = singles;
        self.extents = set_bits(map).collect();
        self.extents.reverse();
        Ok(())
    }

    /// Finds the first listed page that is in use and can be read, and returns whether this page belongs to this unit.
    /// The check is needed when the IAM page names another unit in its header. Then either the pointer to the IAM page
    /// or the unit in its header is wrong; the listed pages show which of the two is wrong.
    fn own_first(&mut self, listed: impl Iterator<Item = PageId>) -> bool {
        for page in listed {
            if !self.source.contains(page) || self.maps.in_use(self.source, page) != InUse::Yes {
                continue;
            }
            if let Fetched::Sound(bytes) = fetch(self.source, page) {
                return names(Page::new(&bytes).header(), self.unit.id);
            }
        }
        false
    }
}

/// Whether a page is in none of the images from which the pages were carved.
fn is_not_found(source: &dyn PageSource, page: PageId) -> bool {
    source.carved().is_some() && matches!(source.read(page, &mut [0; PAGE_BYTES]), Err(ReadError::NotFound { .. }))
}

/// The pages of an extent. `extent` is the number of its bit on the IAM page whose interval starts at `start`.
fn extent_pages(start: PageId, extent: u32) -> std::ops::Range<u32> {
    let first = start.page.saturating_add(extent.saturating_mul(EXTENT_PAGES));
    first..first.saturating_add(EXTENT_PAGES)
}
