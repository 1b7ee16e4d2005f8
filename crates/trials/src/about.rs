//! Finds the pages that a changed allocation page describes. A finding that names one of these pages names the right
//! place.

use std::collections::BTreeSet;

use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, IamHeader, PFS_PAGES, bitmap, pfs_bytes, set_bits};
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageId, PageType};
use source::PageSource;

/// The pages that `page`, an allocation page, describes differently in `damaged` than in `sound`.
pub(crate) fn pages_about(sound: &dyn PageSource, damaged: &dyn PageSource, page: PageId) -> BTreeSet<PageId> {
    let read = |source: &dyn PageSource| {
        let mut bytes = source.read_page(page)?;
        undo_torn_bits(&mut bytes);
        Some(bytes)
    };
    let (Some(then), Some(now)) = (read(sound), read(damaged)) else { return BTreeSet::new() };
    about(page, &then, &now).unwrap_or_default()
}

fn about(page: PageId, then: &PageBytes, now: &PageBytes) -> Option<BTreeSet<PageId>> {
    let (before, after) = (Page::new(then), Page::new(now));
    let at = |number: u32| PageId::new(page.file, number);
    Some(match before.header().kind()? {
        PageType::Pfs => {
            let first = page.page / PFS_PAGES * PFS_PAGES;
            let bytes = (first..).zip(pfs_bytes(before)?.iter().zip(pfs_bytes(after)?));
            bytes.filter(|(_, (then, now))| then != now).map(|(number, _)| at(number)).collect()
        }
        PageType::Gam | PageType::Sgam => {
            extents(page.file, page.page / INTERVAL_PAGES * INTERVAL_PAGES, before, after)?
        }
        PageType::Iam => {
            let (then, now) = (IamHeader::read(before)?, IamHeader::read(after)?);
            let slots = then.slots.iter().zip(&now.slots).filter(|(then, now)| then != now);
            let single: BTreeSet<PageId> = slots.flat_map(|(then, now)| [*then, *now]).collect();
            let claimed = extents(then.start.file, then.start.page, before, after).unwrap_or_default();
            single.into_iter().filter(|page| !page.is_none()).chain(claimed).collect()
        }
        _ => BTreeSet::new(),
    })
}

/// The pages of the extents whose bits differ between two versions of a bitmap page.
fn extents(file: u16, start: u32, then: Page<'_>, now: Page<'_>) -> Option<BTreeSet<PageId>> {
    let set = |page| bitmap(page).map(|bits| set_bits(bits).collect::<BTreeSet<u32>>());
    let (then, now) = (set(then)?, set(now)?);
    let pages = then.symmetric_difference(&now).flat_map(|extent| {
        let first = start.saturating_add(extent * EXTENT_PAGES);
        (first..first.saturating_add(EXTENT_PAGES)).map(move |number| PageId::new(file, number))
    });
    Some(pages.collect())
}
