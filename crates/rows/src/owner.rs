//! Collects evidence about an unreadable page: the partition to which it belongs, and whether it held rows.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{AllocUnit, Database, Rowset};
use format::allocation::PfsByte;
use format::{Page, PageId, PageType};
use source::PageSource;

use crate::counts::Why;
use crate::leaf::names;
use crate::maps::Maps;
use crate::scan::{Allocated, in_row_unit};
use crate::table::Table;
use crate::tree::{each_leaf, each_node};

/// The owner and former content of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// The position of the owner among the table's partitions; `None` if unknown.
    pub(crate) partition: Option<usize>,
    /// The former content of the page.
    pub(crate) held: Held,
}

/// The former content of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// The page held rows of the table: it was a leaf page of an index or a page of a heap.
    Rows,
    /// The page held no rows: it was an IAM page, a page above the leaves, or not a page of the table.
    None,
    /// The former content is unknown.
    Unknown,
}

/// A partition with the evidence about it.
struct Partition<'a> {
    unit: &'a AllocUnit,
    rowset: &'a Rowset,
    /// Whether all leaf pages can be reached from the root of the partition's B-tree.
    is_tree_whole: bool,
    /// The number of pages that the IAM chain lists and that may be in use (`listed`), and the number of listed pages
    /// that the PFS pages mark as in use (`in_use`).
    listed: u64,
    in_use: u64,
    /// Whether the IAM chain is damaged, so that the partition may have more pages than the chain lists.
    is_cut: bool,
}

/// The owners of `pages`, which are pages of one table. The evidence is used in this order: entries on sound pages
/// above the leaves, then the IAM chain, then the page's own header. This function needs memory for the list of pages,
/// and for one bit per page of the files.
pub(crate) fn owners(
    source: &dyn PageSource,
    database: &Database,
    table: &Table,
    pages: &BTreeSet<PageId>,
) -> BTreeMap<PageId, Owner> {
    let mut owners: BTreeMap<PageId, Owner> = BTreeMap::new();
    let mut listed: BTreeMap<PageId, usize> = BTreeMap::new();
    let mut partitions: Vec<Option<Partition<'_>>> = Vec::new();
    if pages.is_empty() {
        return owners;
    }
    let mut maps = Maps::default();
    for (at, partition) in table.partitions.iter().enumerate() {
        let place = database.rowsets.get(*partition);
        let place = place.and_then(|rowset| Some((rowset, in_row_unit(database, rowset)?)));
        partitions.push(place.map(|(rowset, unit)| {
            let mut partition = Partition { unit, rowset, is_tree_whole: true, listed: 0, in_use: 0, is_cut: false };
            let mut own = |page: PageId, held: Held| {
                if pages.contains(&page) {
                    owners.entry(page).or_insert(Owner { partition: Some(at), held });
                }
            };
            if rowset.index_id > 0 {
                each_node(source, unit, &mut |page| own(page, Held::None));
                partition.is_tree_whole = each_leaf(source, unit, &mut |page, _| own(page, Held::Rows));
            }
            let mut allocated = Allocated::of(source, unit);
            while let Some(next) = allocated.next_page() {
                let (page, why) = next.map_or_else(|(page, why)| (page, Some(why)), |page| (page, None));
                let is_map =
                    |why| matches!(why, Why::AllocationMap | Why::MapNotGiven | Why::MapNotFound | Why::MapBeyondEnd);
                if why.is_some_and(is_map) {
                    partition.is_cut = true;
                    own(page, Held::None);
                    continue;
                }
                partition.listed += 1;
                partition.in_use += u64::from(maps.pfs(source, page).is_some_and(PfsByte::is_allocated));
                if pages.contains(&page) {
                    listed.entry(page).or_insert(at);
                }
            }
            partition
        }));
    }
    for page in pages.iter().filter(|page| !owners.contains_key(*page)).copied().collect::<Vec<_>>() {
        let pfs = maps.pfs(source, page);
        let listed = listed.get(&page).map(|at| (*at, pfs.is_some_and(PfsByte::is_allocated)));
        let owner = by_maps_and_header(source, page, &partitions, listed);
        let is_iam = pfs.is_some_and(PfsByte::is_iam);
        owners.insert(page, if is_iam { Owner { held: Held::None, ..owner } } else { owner });
    }
    owners
}

/// The owner of a page to which no index entry points, from the IAM chains and the page's own header. `listed` has the
/// partition whose IAM chain lists the page, and whether the PFS page marks the page as in use. The mark in the PFS
/// page matters because an extent can be allocated before all its pages have been used.
fn by_maps_and_header(
    source: &dyn PageSource,
    page: PageId,
    partitions: &[Option<Partition<'_>>],
    listed: Option<(usize, bool)>,
) -> Owner {
    let raw = source.read_page(page);
    // The page's own header is evidence only if it contains the address of this page.
    let header = raw.as_ref().map(|bytes| *Page::new(bytes).header()).filter(|header| header.page_id() == page);
    let named = header.and_then(|header| {
        partitions.iter().position(|own| own.as_ref().is_some_and(|own| names(&header, own.unit.id)))
    });
    let cut: Vec<usize> = (0..partitions.len())
        .filter(|at| partitions.get(*at).and_then(Option::as_ref).is_some_and(|own| own.is_cut))
        .collect();
    let only = match cut.as_slice() {
        [only] => Some(*only),
        _ => None,
    };
    let Some(at) = listed.map(|(at, _)| at).or(named).or(only) else {
        // If no IAM chain is damaged, all pages of the partitions are known, and this page is not one of them.
        let held = if cut.is_empty() { Held::None } else { Held::Unknown };
        return Owner { partition: None, held };
    };
    let Some(Some(own)) = partitions.get(at) else { return Owner { partition: Some(at), held: Held::Unknown } };
    let is_certain = listed.is_some_and(|(_, in_use)| in_use) || named == Some(at);
    let held = match header.filter(|_| named == Some(at)).and_then(|header| Some((header.kind()?, header.level))) {
        Some((PageType::Data, 0)) => Held::Rows,
        Some((PageType::Index | PageType::Iam, _)) => Held::None,
        _ if own.rowset.index_id == 0 => {
            if is_certain {
                Held::Rows
            } else {
                Held::Unknown
            }
        }
        // All leaf pages can be reached from the root, but this page cannot.
        _ if own.is_tree_whole => Held::None,
        // The root of a B-tree is a leaf page only if the tree has no other page.
        _ if page == own.unit.root && own.in_use > 1 => Held::None,
        _ if page == own.unit.root && own.listed <= 1 && !own.is_cut => Held::Rows,
        _ => Held::Unknown,
    };
    Owner { partition: Some(at), held }
}
