//! The pages of a unit in use, in the order of its IAM chain.

use std::collections::VecDeque;

use catalog::{AllocUnit, Fetched, fetch};
use format::allocation::{EXTENT_PAGES, IamHeader, bitmap, set_bits};
use format::{Page, PageId, PageType};
use source::PageSource;

use crate::counts::Why;
use crate::leaf::names;
use crate::maps::{InUse, Maps};
use crate::page_set::PageSet;

/// Walks the pages of a unit; each page comes once.
pub(crate) struct Allocated<'a> {
    source: &'a dyn PageSource,
    unit: &'a AllocUnit,
    /// The next IAM page.
    next_iam: PageId,
    /// Pages already delivered, including IAM pages.
    seen: PageSet,
    maps: Maps,
    /// Single pages of the present IAM page.
    singles: VecDeque<PageId>,
    /// The first page of its interval, and its extents in reverse order.
    start: PageId,
    extents: Vec<u32>,
    /// Pages of the present extent.
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

    /// The next page in use; `Err` for a page whose use is unknown or that is absent, and for an IAM page at which the
    /// chain breaks.
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
                // If the file was truncated, the remaining maps may show that the page was not in use.
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
                // A freed single page loses its entry on the IAM page, so this page is in use.
                InUse::Unknown if is_single => return Some(Ok(page)),
                InUse::Unknown => return Some(Err((page, Why::UseUnknown))),
            }
        }
    }

    /// The next page that the IAM page lists, and whether it is a single page.
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

    /// Whether the first of these pages that is in use and can be read is one of this unit. The chain leads to an IAM page that
    /// names another unit: either the pointer is wrong or the name, and the pages that it lists tell which.
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

/// The pages of an extent, by its bit on the IAM page whose interval starts at `start`.
fn extent_pages(start: PageId, extent: u32) -> std::ops::Range<u32> {
    let first = start.page.saturating_add(extent.saturating_mul(EXTENT_PAGES));
    first..first.saturating_add(EXTENT_PAGES)
}
