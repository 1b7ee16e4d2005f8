//! Finds lost extents: extents that no map assigns to an owner, although the page headers name a table. The IAM page
//! for the interval of such an extent no longer lists the extent. Rows of a clustered index can still be found by page
//! links. Rows of heaps and off-row values can no longer be found.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{AllocUnit, Database, Fetched, UnitKind, fetch};
use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, IamHeader};
use format::{Page, PageId};
use source::PageSource;

/// The maximum number of extents whose pages are read.
const MOST_EXTENTS: usize = 4096;
/// The maximum number of IAM pages that are read per allocation unit.
const MOST_IAM_PAGES: usize = 4096;

/// The extents that a table has lost.
#[derive(Debug, Default)]
pub(crate) struct LostExtents {
    /// The IAM pages that no longer list some of their extents. The value for each IAM page is the set of these
    /// extents, which contain heap rows or off-row values.
    pub(crate) maps: BTreeMap<PageId, BTreeSet<PageId>>,
    /// Whether some of the lost extents belong to the clustered index.
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

/// The allocation unit that the page header names; `None` if the page is not sound.
fn unit_of<'d>(source: &dyn PageSource, database: &'d Database, page: PageId) -> Option<&'d AllocUnit> {
    let Fetched::Sound(bytes) = fetch(source, page) else { return None };
    database.units.get(database.unit_index(Page::new(&bytes).header().alloc_unit())?)
}

/// Finds the IAM page of an allocation unit whose interval contains an extent. `None` if the IAM chain has no such page
/// or cannot be read that far.
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
