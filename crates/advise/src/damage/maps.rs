//! Finds allocation maps with wrong entries for sound pages, and the objects that own these pages. No data page is
//! damaged, but a server that trusts a wrong map may reuse pages with live rows. Nothing may write to the database
//! until the maps are corrected.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Database, Fetched, UnitKind, fetch};
use findings::registry::damage::{Damage as Kind, Iam, Map};
use findings::{Finding, Owner, Value};
use format::allocation::{EXTENT_PAGES, FixedPage, IamHeader, PfsByte, bitmap, pfs_bytes, pfs_page_of, set_bits};
use format::{AllocUnitId, Page, PageBytes, PageId};
use source::PageSource;

use super::Ids;

/// The maximum number of pages or extents that are examined.
const MOST_PLACES: usize = 4096;

/// The maximum number of IAM pages that are read per allocation unit.
const MOST_MAPS: usize = 4096;

/// Wrong allocation maps, and the objects that own the pages with wrong entries.
#[derive(Debug, Default)]
pub(crate) struct WrongMaps {
    pub(crate) ids: Ids,
    /// GAM, SGAM, PFS and IAM pages with wrong entries.
    pub(crate) maps: BTreeSet<PageId>,
    /// The objects that own the pages with wrong entries, according to the page headers.
    pub(crate) objects: BTreeSet<i32>,
    /// Whether two objects claim the same pages. If so, dropping or rebuilding one object frees pages of the other
    /// object.
    pub(crate) is_shared: bool,
    /// Tables that seem to lack pages because PFS marks the pages as free.
    pub(crate) called_free: BTreeSet<i32>,
    pub(crate) ids_of_missing: Ids,
    /// Extents that several maps claim, each with the maps that claim it.
    claims: BTreeMap<PageId, BTreeSet<PageId>>,
    /// Pages with wrong PFS bytes.
    marks: BTreeSet<PageId>,
    /// Single pages that two allocation units claim, each with these units.
    singles: BTreeMap<PageId, BTreeSet<AllocUnitId>>,
}

impl WrongMaps {
    /// Adds a finding about a map with wrong entries. Returns false for any other finding.
    pub(crate) fn take(&mut self, finding: &Finding) -> bool {
        let Some(page) = finding.page else { return false };
        let is_taken = match finding.check.damage {
            Kind::Map(map) => self.take_entry(map, page, finding),
            // The IAM chain contains pages of two objects. If one of these objects is dropped, pages of the other
            // object are freed too.
            Kind::Iam(Iam::OfOther) if finding.owner.is_some_and(|owner| owner.index_id > 0) => {
                self.is_shared = true;
                self.maps.extend([Some(page), finding.ref_page].into_iter().flatten().filter(|page| !page.is_none()));
                let owners = [finding.owner, owner_of(finding)].into_iter().flatten();
                self.objects.extend(owners.map(|owner| owner.object_id).filter(|id| *id != 0));
                true
            }
            _ => false,
        };
        if is_taken {
            self.ids.insert(finding.check.id);
        }
        is_taken
    }

    /// Adds a finding about a wrong entry for `page`. Returns false if the entry endangers no page.
    fn take_entry(&mut self, map: Map, page: PageId, finding: &Finding) -> bool {
        let named = |name: &str| match finding.value(name) {
            Some(Value::Page(map)) => Some(*map),
            _ => None,
        };
        match map {
            Map::SharedExtent => {
                self.claims.entry(page).or_default().extend(finding.ref_page);
            }
            Map::GamAndSgam => {
                let maps = [named("gam_page"), named("sgam_page")];
                self.claims.entry(page).or_default().extend(maps.into_iter().flatten());
            }
            Map::PfsType => drop(self.marks.insert(page)),
            Map::SharedPage => {
                let owners = finding.owner.into_iter().chain(owner_of(finding)).map(|owner| owner.alloc_unit);
                self.singles.entry(page).or_default().extend(owners);
            }
            Map::FixedPage | Map::Interval | Map::UnownedExtent | Map::UnownedPage | Map::PfsFreeSpace => return false,
        }
        true
    }

    /// Adds pages of a table that PFS marks as free, and the IDs of the findings that follow from the wrong marks.
    pub(crate) fn mark(&mut self, object_id: i32, pages: BTreeSet<PageId>, ids: &Ids) {
        self.marks.extend(pages);
        self.called_free.insert(object_id);
        self.ids.extend(ids);
        self.ids_of_missing.extend(ids);
    }

    /// Decides from the page headers which maps are wrong, after all findings are added.
    pub(crate) fn settle(&mut self, source: &dyn PageSource, database: &Database) {
        let look = Look { source, database };
        let mut misled = BTreeSet::new();
        for (extent, maps) in std::mem::take(&mut self.claims).into_iter().take(MOST_PLACES) {
            let owners = look.owners(extent);
            self.objects.extend(owners.iter().filter_map(|unit| look.object(*unit)));
            let (fixed, of_units): (Vec<PageId>, Vec<PageId>) =
                maps.into_iter().partition(|map| FixedPage::at(*map).is_some());
            let (right, wrong): (Vec<PageId>, Vec<PageId>) =
                of_units.into_iter().partition(|map| look.unit(*map).is_some_and(|unit| owners.contains(&unit)));
            self.is_shared |= right.len() + wrong.len() > 1;
            self.objects.extend(wrong.iter().filter_map(|map| look.object(look.unit(*map)?)));
            misled.extend(wrong.iter().map(|_| extent));
            // If a unit claims the extent, and the pages of the extent belong to this unit, a GAM or SGAM page that
            // contradicts the claim is wrong.
            match fixed.as_slice() {
                // No unit that has pages in the extent claims it, and GAM and SGAM disagree. If some pages are in use,
                // the extent is mixed and GAM is wrong; otherwise the extent is free and SGAM is wrong.
                [gam, sgam] if right.is_empty() => drop(self.maps.insert(if owners.is_empty() { *sgam } else { *gam })),
                _ if !right.is_empty() || wrong.is_empty() => self.maps.extend(fixed),
                _ => {}
            }
            self.maps.extend(wrong);
            // If two units have pages in the extent, one of their maps is wrong, but nothing shows which map.
            if right.len() > 1 {
                self.maps.extend(right);
            }
        }
        for (number, page) in std::mem::take(&mut self.marks).into_iter().enumerate() {
            let unit = (number < MOST_PLACES).then(|| look.unit(page)).flatten();
            self.objects.extend(unit.and_then(|unit| look.object(unit)));
            // If an IAM page has a wrong entry for the extent, the PFS bytes are right. Otherwise, the PFS page is
            // wrong.
            if !misled.contains(&first_of_extent(page)) {
                self.maps.insert(PageId::new(page.file, pfs_page_of(page.page)));
            }
        }
        for (page, units) in std::mem::take(&mut self.singles).into_iter().take(MOST_PLACES) {
            self.is_shared = true;
            let owner = look.unit(page);
            self.objects.extend(units.iter().filter_map(|unit| look.object(*unit)));
            let strangers = units.iter().filter(|unit| owner != Some(**unit));
            self.maps.extend(strangers.flat_map(|unit| look.maps_with(*unit, page)));
        }
    }
}

/// Returns the second owner that a finding names; `None` if the finding names only one owner.
fn owner_of(finding: &Finding) -> Option<Owner> {
    match finding.value("other_owner") {
        Some(Value::Owner(owner)) => Some(*owner),
        _ => None,
    }
}

/// Whether `page` is a sound page of the object with this ID, although the PFS page marks `page` as free.
pub(crate) fn is_called_free(source: &dyn PageSource, database: &Database, page: PageId, object_id: i32) -> bool {
    let look = Look { source, database };
    !look.is_in_use(page) && look.unit(page).and_then(|unit| look.object(unit)) == Some(object_id)
}

/// Pages of a heap that contain rows and are listed in the IAM pages of the heap, although PFS marks them as free.
pub(crate) fn called_free(source: &dyn PageSource, database: &Database, object_id: i32) -> BTreeSet<PageId> {
    let look = Look { source, database };
    let units =
        database.table_rowsets(object_id).flat_map(|rowset| &rowset.units).filter_map(|at| database.units.get(*at));
    let mut pages = BTreeSet::new();
    for unit in units.filter(|unit| unit.kind == UnitKind::InRow) {
        for (_, header, bytes) in look.chain(unit.id) {
            let singles = header.slots.into_iter().filter(|slot| !slot.is_none());
            let extents = bitmap(Page::new(&bytes)).into_iter().flat_map(set_bits);
            let first = |extent: u32| header.start.page.saturating_add(extent.saturating_mul(EXTENT_PAGES));
            let listed = extents.flat_map(|extent| first(extent)..first(extent).saturating_add(EXTENT_PAGES));
            let listed = listed.map(|page| PageId::new(header.start.file, page));
            let has_rows = |page: &PageId| {
                let bytes = look.sound(*page);
                let is_of_it = |bytes: &PageBytes| {
                    let header = Page::new(bytes).header();
                    header.alloc_unit() == unit.id && header.slot_count.get() > 0
                };
                !look.is_in_use(*page) && bytes.is_some_and(|bytes| is_of_it(&bytes))
            };
            pages.extend(singles.chain(listed).take(MOST_PLACES).filter(has_rows));
        }
    }
    pages
}

/// Reads from a page header who owns the page, and from the allocation maps whether the page is in use.
#[derive(Clone, Copy)]
struct Look<'a> {
    source: &'a dyn PageSource,
    database: &'a Database,
}

impl Look<'_> {
    fn sound(self, page: PageId) -> Option<Box<PageBytes>> {
        match fetch(self.source, page) {
            Fetched::Sound(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The allocation unit that the page header names; `None` if the page is not sound.
    fn unit(self, page: PageId) -> Option<AllocUnitId> {
        Some(Page::new(&*self.sound(page)?).header().alloc_unit())
    }

    /// The object to which an allocation unit belongs.
    fn object(self, unit: AllocUnitId) -> Option<i32> {
        let unit = self.database.units.get(self.database.unit_index(unit)?)?;
        Some(self.database.rowset_of(unit)?.object_id)
    }

    /// The IAM pages of an allocation unit, with their headers and bytes.
    fn chain(self, unit: AllocUnitId) -> Vec<(PageId, IamHeader, Box<PageBytes>)> {
        let unit = self.database.unit_index(unit).and_then(|at| self.database.units.get(at));
        let (mut chain, mut at) = (Vec::new(), unit.map_or(PageId::NONE, |unit| unit.first_iam));
        while let Some(bytes) = self.sound(at).filter(|_| chain.len() < MOST_MAPS) {
            let Some(header) = IamHeader::read(Page::new(&bytes)) else { break };
            let next = Page::new(&bytes).header().next();
            chain.push((at, header, bytes));
            at = next;
        }
        chain
    }

    /// The IAM pages of an allocation unit that list `page` as a single page.
    fn maps_with(self, unit: AllocUnitId, page: PageId) -> Vec<PageId> {
        let chain = self.chain(unit);
        chain.into_iter().filter(|(_, header, _)| header.slots.contains(&page)).map(|(at, ..)| at).collect()
    }

    /// Whether PFS marks the page as allocated.
    fn is_in_use(self, page: PageId) -> bool {
        let first = page.page / format::allocation::PFS_PAGES * format::allocation::PFS_PAGES;
        let map = self.sound(PageId::new(page.file, pfs_page_of(page.page)));
        let byte = map.and_then(|bytes| Some(*pfs_bytes(Page::new(&bytes))?.get((page.page - first) as usize)?));
        byte.is_some_and(|byte| PfsByte(byte).is_allocated())
    }

    /// The allocation units that have allocated pages in an extent.
    fn owners(self, extent: PageId) -> BTreeSet<AllocUnitId> {
        let pages = (extent.page..extent.page.saturating_add(EXTENT_PAGES)).map(|page| PageId::new(extent.file, page));
        pages.filter(|page| self.is_in_use(*page)).filter_map(|page| self.unit(page)).collect()
    }
}

fn first_of_extent(page: PageId) -> PageId {
    PageId::new(page.file, page.page / EXTENT_PAGES * EXTENT_PAGES)
}
