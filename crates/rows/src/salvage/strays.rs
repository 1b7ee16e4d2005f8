//! Finds leaf pages that name an allocation unit in their header, but to which no index page or IAM page points.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::io;

use catalog::Database;
use format::{AllocUnitId, PAGE_BYTES, Page, PageBytes, PageId, PageType};
use source::PageSource;

use crate::counts::Why;
use crate::leaf::names;
use crate::maps::{InUse, Maps};
use crate::page_set::PageSet;
use crate::scan::{Range, in_row_unit};
use crate::table::Table;

/// The number of pages per read.
const BATCH: u32 = 64;

/// A leaf page to which no index page or IAM page points.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stray {
    /// The allocation unit in the page header, as a position among the requested units.
    pub unit: usize,
    /// The address of the page.
    pub page: PageId,
    /// True if the PFS page marks the page as in use; false if this is unknown because the PFS page cannot be read.
    /// Pages that the allocation maps mark as freed are not listed.
    pub is_allocated: bool,
}

/// Unreachable leaf pages of several allocation units.
#[derive(Clone, Debug, Default)]
pub struct Strays {
    /// The first unreachable pages, ordered by unit and page.
    pub found: Vec<Stray>,
    /// Whether there are more unreachable pages after the last one in `found`.
    pub is_cut: bool,
    /// For each unit, the number of its leaf pages that the allocation maps mark as freed. Their rows are out of date
    /// and are not read.
    pub freed: Vec<u64>,
}

/// Unreachable leaf pages of several tables.
#[derive(Clone, Debug, Default)]
pub struct Unreached {
    /// The unreachable pages by partition; a partition is a position in [`Database::rowsets`].
    pub pages: BTreeMap<usize, Vec<Stray>>,
    /// The number of freed pages, by partition.
    pub freed: BTreeMap<usize, u64>,
    /// Whether there are more unreachable pages than fit into memory. The files must then be searched for each table
    /// separately.
    pub is_cut: bool,
}

impl Unreached {
    /// Searches the files once for the pages of all `tables` that are not in `reached`. Keeps at most `most` pages,
    /// which need about 40 bytes each.
    pub fn find(
        source: &dyn PageSource,
        database: &Database,
        tables: &[Table],
        reached: &PageSet,
        most: usize,
    ) -> Self {
        let (mut partitions, mut units) = (Vec::new(), Vec::new());
        for &partition in tables.iter().flat_map(|table| &table.partitions) {
            let rowset = database.rowsets.get(partition);
            if let Some(unit) = rowset.and_then(|rowset| in_row_unit(database, rowset)) {
                partitions.push(partition);
                units.push(unit.id);
            }
        }
        let strays = strays(source, &units, reached, None, most);
        let mut found = Self { is_cut: strays.is_cut, ..Self::default() };
        for stray in strays.found {
            if let Some(partition) = partitions.get(stray.unit) {
                found.pages.entry(*partition).or_default().push(stray);
            }
        }
        found.freed = partitions.into_iter().zip(strays.freed).filter(|(_, pages)| *pages > 0).collect();
        found
    }
}

/// The pages that the reading of a table left out because they belong to another table or partition.
pub fn foreign(left_out: &[(PageId, Why)]) -> BTreeSet<PageId> {
    let foreign = left_out.iter().filter(|(_, why)| matches!(why, Why::OtherUnit(_)));
    foreign.map(|(page, _)| *page).collect()
}

/// Adds the pages of a range to `reached`, including the lost pages of the range. Pages in `foreign` are left out,
/// because only the reading of their own table may mark them as reached. Returns false if a page was already in
/// `reached`.
pub fn reach(reached: &mut PageSet, range: &Range, foreign: &BTreeSet<PageId>) -> bool {
    let lost = range.lost.iter().map(|(page, _)| *page);
    let mut is_new = true;
    for page in range.pages.iter().copied().chain(lost).filter(|page| !foreign.contains(page)) {
        // `insert` also returns false for a page outside the files. Such a page was not reached before.
        is_new &= reached.insert(page) || !reached.contains(page);
    }
    is_new
}

/// Finds leaf pages of heaps and clustered indexes that are not in `reached` and whose headers name one of `units`. The
/// search continues after `from`, in the order of unit and page, and keeps at most `most` pages.
pub fn strays(
    source: &dyn PageSource,
    units: &[AllocUnitId],
    reached: &PageSet,
    from: Option<Stray>,
    most: usize,
) -> Strays {
    let mut found = BinaryHeap::new();
    let mut strays = Strays { freed: vec![0; units.len()], ..Strays::default() };
    let mut maps = Maps::default();
    let scanned = each_leaf_page(source, units, &|page| !reached.contains(page), &mut |unit, page, bytes| {
        if Page::new(bytes).header().kind() != Some(PageType::Data) {
            return Ok(());
        }
        let is_allocated = match maps.in_use(source, page) {
            InUse::Freed => {
                strays.freed.iter_mut().skip(unit).take(1).for_each(|freed| *freed += 1);
                return Ok(());
            }
            InUse::Yes => true,
            InUse::Unknown => false,
        };
        let stray = Stray { unit, page, is_allocated };
        if from.is_none_or(|from| (stray.unit, stray.page) > (from.unit, from.page)) {
            found.push(stray);
        }
        if found.len() > most {
            found.pop();
            strays.is_cut = true;
        }
        Ok(())
    });
    // The closure never returns an error, so the result can be ignored.
    drop(scanned);
    strays.found = found.into_sorted_vec();
    strays
}

/// Calls `each` with the leaf pages, sound or damaged, whose headers contain one of `units` and the page's own address,
/// in file order. `each` receives the position of the unit, the page address, and the bytes as stored. Pages that are
/// not `wanted` are skipped. An unreadable page is skipped too, because its unit is unknown.
///
/// # Errors
///
/// Errors of `each`.
pub(crate) fn each_leaf_page(
    source: &dyn PageSource,
    units: &[AllocUnitId],
    wanted: &dyn Fn(PageId) -> bool,
    each: &mut dyn FnMut(usize, PageId, &PageBytes) -> io::Result<()>,
) -> io::Result<()> {
    let mut by_id: Vec<(AllocUnitId, usize)> = units.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    by_id.sort_unstable_by_key(|(id, _)| id.0);
    let mut buffer = vec![0; BATCH as usize * PAGE_BYTES];
    for file in source.files() {
        let mut at = 0;
        while at < file.pages {
            let first = PageId::new(file.file_id, at);
            let count = BATCH.min(file.pages - at);
            at += count;
            let Some(room) = buffer.get_mut(..count as usize * PAGE_BYTES) else { continue };
            if !(0..count).any(|offset| wanted(PageId::new(first.file, first.page + offset))) {
                continue;
            }
            let read = source.read(first, room).unwrap_or_else(|_| one_by_one(source, first, room));
            for (offset, bytes) in (0..).zip(room.chunks_exact_mut(PAGE_BYTES).take(read)) {
                let page = PageId::new(first.file, first.page + offset);
                if let Some(bytes) = bytes.first_chunk_mut::<PAGE_BYTES>().filter(|_| wanted(page))
                    && let Some(unit) = named(bytes, page, &by_id)
                {
                    each(unit, page, bytes)?;
                }
            }
        }
    }
    Ok(())
}

/// The position of the unit in the header of a leaf page with rows; `None` if `by_id` does not contain the unit.
fn named(bytes: &PageBytes, page: PageId, by_id: &[(AllocUnitId, usize)]) -> Option<usize> {
    let header = Page::new(bytes).header();
    let is_leaf = matches!(header.kind(), Some(PageType::Data | PageType::Index)) && header.level == 0;
    if !is_leaf || header.page_id() != page || header.slot_count.get() == 0 {
        return None;
    }
    let position = |id: AllocUnitId| {
        let at = by_id.binary_search_by_key(&id.0, |(id, _)| id.0).ok()?;
        by_id.get(at).map(|(_, unit)| *unit)
    };
    let of_2000 = || header.alloc_unit().clustered_of_2000().filter(|unit| names(header, *unit));
    position(header.alloc_unit()).or_else(|| position(of_2000()?))
}

/// Reads page by page after a larger read has failed. A page that cannot be read is filled with zeros.
fn one_by_one(source: &dyn PageSource, first: PageId, room: &mut [u8]) -> usize {
    let mut pages = 0;
    for (offset, bytes) in (0..).zip(room.chunks_exact_mut(PAGE_BYTES)) {
        match source.read_page(PageId::new(first.file, first.page + offset)) {
            Some(read) => bytes.copy_from_slice(read.as_slice()),
            None => bytes.fill(0),
        }
        pages += 1;
    }
    pages
}
