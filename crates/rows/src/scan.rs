//! Delivers the pages of a table in key order or in allocation order.

mod allocated;

use std::fmt;

use catalog::{AllocUnit, Database, Rowset, UnitKind};
use format::{AllocUnitId, Page, PageId, PageType};
use source::PageSource;

pub(crate) use self::allocated::Allocated;
use crate::Table;
use crate::counts::Why;
use crate::leaf::names;
use crate::page_set::PageSet;
use crate::tree::Leaves;

/// The most pages in a range.
pub const RANGE_PAGES: usize = 128;

/// Options for reading a table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ScanOptions {
    /// Whether pages are read in allocation order even if the clustered index is sound.
    pub by_allocation: bool,
}

/// The order of the rows of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The order of the clustering key.
    Key,
    /// The order in which the IAM chain lists the pages.
    Allocation(NoKeyOrder),
}

/// The reason why rows are not in the order of the clustering key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoKeyOrder {
    /// The table is a heap, which has no key.
    Heap,
    /// The index level above the leaves is damaged at this page.
    TreeDamaged(PageId),
    /// This leaf page is in use, but the clustered index has no entry for it.
    NotInTree(PageId),
    /// The caller requested allocation order.
    AsAsked,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("order of the clustered key"),
            Self::Allocation(NoKeyOrder::Heap) => f.write_str("order of allocation, as the table is a heap"),
            Self::Allocation(NoKeyOrder::TreeDamaged(page)) => {
                write!(f, "order of allocation, as the clustered index is damaged at page {page} above its leaves")
            }
            Self::Allocation(NoKeyOrder::NotInTree(page)) => {
                write!(f, "order of allocation, as the clustered index does not reach page {page}, which is in use")
            }
            Self::Allocation(NoKeyOrder::AsAsked) => f.write_str("order of allocation"),
        }
    }
}

/// A group of pages that are read together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// The position of the range in the scan, from 0.
    pub number: u64,
    /// The partition, as a position in [`Table::partitions`].
    pub partition: usize,
    /// The pages, in the order in which they are read.
    pub pages: Vec<PageId>,
    /// Pages that cannot be delivered, each with the reason. The scan found them before the pages of `pages` or between
    /// them. The reader counts them as left out.
    pub lost: Vec<(PageId, Why)>,
    /// Whether `pages` may include pages above the leaves, which happens in allocation order.
    pub(crate) has_nodes: bool,
}

/// Delivers the pages of a table in order, range by range.
///
/// Each page is delivered at most once. A scan needs memory for a few pages, and for one bit per page of the files.
pub struct Scan<'a> {
    source: &'a dyn PageSource,
    database: &'a Database,
    partitions: Vec<&'a Rowset>,
    options: ScanOptions,
    orders: Vec<Order>,
    at: usize,
    walk: Option<Walk<'a>>,
    number: u64,
}

enum Walk<'a> {
    Leaves(Leaves<'a>),
    Allocated(Allocated<'a>),
}

impl<'a> Scan<'a> {
    /// Starts a scan of `table`. Reads the index level above the leaves once to check that it is sound.
    pub fn new(source: &'a dyn PageSource, database: &'a Database, table: &'a Table, options: ScanOptions) -> Self {
        let partitions: Vec<&Rowset> =
            table.partitions.iter().filter_map(|partition| database.rowsets.get(*partition)).collect();
        let orders = partitions.iter().map(|rowset| order_of(source, database, rowset, options)).collect();
        Self { source, database, partitions, options, orders, at: 0, walk: None, number: 0 }
    }

    /// The order of the rows of the table. This is key order if all partitions have key order. Otherwise, it is the
    /// order of the first partition that does not have key order.
    pub fn order(&self) -> &Order {
        self.orders.iter().find(|order| **order != Order::Key).unwrap_or(&Order::Key)
    }

    /// The order of each partition.
    pub fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// The next range of pages; `None` after the last range.
    pub fn next_range(&mut self) -> Option<Range> {
        loop {
            let order = *self.orders.get(self.at)?;
            let rowset = self.partitions.get(self.at)?;
            let walk = match &mut self.walk {
                Some(walk) => walk,
                None => {
                    let Some(unit) = in_row_unit(self.database, rowset) else {
                        self.at += 1;
                        continue;
                    };
                    self.walk.insert(match order {
                        Order::Key => Walk::Leaves(Leaves::of(self.source, unit)),
                        Order::Allocation(_) => Walk::Allocated(Allocated::of(self.source, unit)),
                    })
                }
            };
            let (mut pages, mut lost) = (Vec::new(), Vec::new());
            while pages.len() < RANGE_PAGES && lost.len() < RANGE_PAGES {
                let next = match walk {
                    Walk::Leaves(leaves) => {
                        leaves.next_leaf().map(|next| next.map_err(|page| (page, Why::TreeDamaged)))
                    }
                    Walk::Allocated(allocated) => allocated.next_page(),
                };
                match next {
                    Some(Ok(page)) => pages.push(page),
                    Some(Err(fault)) => lost.push(fault),
                    None => break,
                }
            }
            if pages.is_empty() && lost.is_empty() {
                self.walk = None;
                self.at += 1;
                continue;
            }
            let number = self.number;
            self.number += 1;
            return Some(Range { number, partition: self.at, pages, lost, has_nodes: order != Order::Key });
        }
    }

    /// The options of the scan.
    pub fn options(&self) -> ScanOptions {
        self.options
    }
}

/// The order in which a partition can be read.
fn order_of(source: &dyn PageSource, database: &Database, rowset: &Rowset, options: ScanOptions) -> Order {
    if rowset.index_id == 0 {
        return Order::Allocation(NoKeyOrder::Heap);
    }
    if options.by_allocation {
        return Order::Allocation(NoKeyOrder::AsAsked);
    }
    let Some(unit) = in_row_unit(database, rowset) else { return Order::Key };
    let mut leaves = PageSet::of(source);
    let mut walk = Leaves::of(source, unit);
    loop {
        match walk.next_leaf() {
            Some(Ok(page)) if leaves.insert(page) => {}
            Some(Ok(page) | Err(page)) => return Order::Allocation(NoKeyOrder::TreeDamaged(page)),
            None => break,
        }
    }
    // If the B-tree has lost entries, some leaf pages that are in use cannot be reached from the root. Key order would
    // omit their rows.
    let mut allocated = Allocated::of(source, unit);
    while let Some(next) = allocated.next_page() {
        if let Ok(page) = next
            && !leaves.contains(page)
            && is_leaf(source, page, unit.id)
        {
            return Order::Allocation(NoKeyOrder::NotInTree(page));
        }
    }
    Order::Key
}

/// Whether a page is a sound leaf of the unit and has rows.
fn is_leaf(source: &dyn PageSource, page: PageId, unit: AllocUnitId) -> bool {
    let catalog::Fetched::Sound(bytes) = catalog::fetch(source, page) else { return false };
    let header = Page::new(&bytes).header();
    header.kind() == Some(PageType::Data) && names(header, unit) && header.slot_count.get() > 0
}

/// The allocation unit that holds the in-row data of a partition.
pub(crate) fn in_row_unit<'a>(database: &'a Database, rowset: &Rowset) -> Option<&'a AllocUnit> {
    let mut units = rowset.units.iter().filter_map(|at| database.units.get(*at));
    units.find(|unit| unit.kind == UnitKind::InRow)
}
