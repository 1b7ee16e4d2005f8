//! Extents that no map assigns to an owner, although their pages name a table: the IAM page that covers them has lost
//! them. Links still lead to rows in key order, but not to rows of heaps and to off-row data.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{AllocUnit, Database, Fetched, UnitKind, fetch};
use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, IamHeader};
use format::{Page, PageId};
use source::PageSource;

/// Most extents whose pages are read.
const MOST_EXTENTS: usize = 4096;
/// Most IAM pages of a unit that are read.
const MOST_IAM_PAGES: usize = 4096;

/// The extents that a table has lost.
#[derive(Debug, Default)]
pub(crate) struct LostExtents {
    /// The IAM pages that lost extents without which rows or values are not found, and these extents.
    pub(crate) maps: BTreeMap<PageId, BTreeSet<PageId>>,
    /// Whether some of the extents have rows in key order.
    pub(crate) has_keys: bool,
}

/// The extents that tables have lost, by table.
pub(crate) fn of(
    source: &dyn PageSource,
    database: &Database,
    unowned: &BTreeSet<PageId>,
) -> BTreeMap<i32, LostExtents> {
    let mut lost: BTreeMap<i32, LostExtents> = BTreeMap::new();
    for &extent in unowned.iter().take(MOST_EXTENTS) {
        let pages = (extent.page..extent.page.saturating_add(EXTENT_PAGES)).map(|page| PageId::new(extent.file, page));
        for unit in pages.filter_map(|page| unit_of(source, database, page)) {
            let rowset = database.rowset_of(unit).filter(|rowset| !database.is_system_table(rowset.object_id));
            match rowset.map(|rowset| (rowset.object_id, rowset.index_id)) {
                Some((object_id, 1)) if unit.kind == UnitKind::InRow => {
                    lost.entry(object_id).or_default().has_keys = true;
                }
                Some((object_id, 0 | 1)) => {
                    if let Some(iam) = covering(source, unit, extent) {
                        lost.entry(object_id).or_default().maps.entry(iam).or_default().insert(extent);
                    }
                }
                _ => {}
            }
        }
    }
    lost
}

/// The unit that the header of a sound page names.
fn unit_of<'d>(source: &dyn PageSource, database: &'d Database, page: PageId) -> Option<&'d AllocUnit> {
    let Fetched::Sound(bytes) = fetch(source, page) else { return None };
    database.units.get(database.unit_index(Page::new(&bytes).header().alloc_unit())?)
}

/// The IAM page of a unit whose interval contains an extent.
fn covering(source: &dyn PageSource, unit: &AllocUnit, extent: PageId) -> Option<PageId> {
    let mut at = unit.first_iam;
    for _ in 0..MOST_IAM_PAGES {
        let Fetched::Sound(bytes) = fetch(source, at) else { return None };
        let page = Page::new(&bytes);
        let start = IamHeader::read(page).filter(|_| page.header().alloc_unit() == unit.id)?.start;
        if start.file == extent.file && extent.page.checked_sub(start.page).is_some_and(|at| at < INTERVAL_PAGES) {
            return Some(at);
        }
        at = page.header().next();
    }
    None
}
