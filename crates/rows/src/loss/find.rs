//! Finds the rows that were on unreadable pages.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{AllocUnit, Database, Level, Rowset, RowsetColumn, Stored, column_status};
use format::record::Record;
use format::slots::MAX_SLOTS;
use format::types::xtype;
use format::{PAGE_BYTES, Page, PageHeader, PageId, PageType};
use source::PageSource;

use super::{ColumnSource, CountBasis, KeyBound, KeyValue, Loss, LostRows, RecoverableColumn, WhichRows};
use crate::index_columns::{Origin, key_columns, sources};
use crate::leaf::{LeafScratch, names};
use crate::owner::{Held, Owner, owners};
use crate::scan::in_row_unit;
use crate::table::Table;
use crate::tree::{by_links, each_leaf, edge_row};

/// Describes the loss from the unreadable `pages` of a table. Adjacent leaf pages count as one loss. `rows_read` has,
/// for each partition of the table, the number of rows that were read from all other pages; it is `None` if these rows
/// were not counted.
///
/// Pages that certainly held no rows of the table, for example IAM pages and pages above the leaves, are left out. This
/// function needs memory for the list of pages, for two keys per page in this list, and for one bit per page of the
/// files.
pub fn losses(
    source: &dyn PageSource,
    database: &Database,
    table: &Table,
    pages: &[PageId],
    rows_read: Option<&[u64]>,
) -> Vec<Loss> {
    let pages: BTreeSet<PageId> = pages.iter().copied().collect();
    let owners = owners(source, database, table, &pages);
    let recoverable = recoverable(database, table);
    let mut losses = Vec::new();
    for (at, &partition) in table.partitions.iter().enumerate() {
        let Some(place) = Partition::of(source, database, partition) else { continue };
        let of_partition = || owners.iter().filter(|(_, owner)| owner.partition == Some(at));
        let runs = place.runs(of_partition().map(|(page, owner)| (*page, owner.held)).collect());
        // The rows that were not read can be attributed to one run of pages only if this run contains all unreadable
        // pages of the partition.
        let is_all = runs.len() == 1 && runs.iter().all(|run| run.pages.len() == of_partition().count());
        let is_clear = is_all && owners.values().all(|owner| owner.partition.is_some() || owner.held == Held::None);
        let read = rows_read.and_then(|rows| rows.get(at)).copied().filter(|_| is_clear);
        losses.extend(runs.into_iter().map(|run| Loss {
            object_id: table.object_id,
            partition: Some(place.rowset.partition),
            rows: place.rows(&run.pages, read),
            pages: run.pages,
            which: run.which,
            recoverable: recoverable.clone(),
        }));
    }
    losses.extend(of_no_partition((source, database, table), &owners, &recoverable));
    losses
}

/// The losses from pages whose partition is unknown. Pages that certainly held no rows are left out.
fn of_no_partition(
    (source, database, table): (&dyn PageSource, &Database, &Table),
    owners: &BTreeMap<PageId, Owner>,
    recoverable: &[RecoverableColumn],
) -> Vec<Loss> {
    let is_open = |owner: &Owner| owner.partition.is_none() && owner.held != Held::None;
    let pages: Vec<PageId> = owners.iter().filter(|(_, owner)| is_open(owner)).map(|(page, _)| *page).collect();
    let any = table.partitions.iter().find_map(|partition| Partition::of(source, database, *partition));
    let Some(any) = any else { return Vec::new() };
    let loss = |pages: &[PageId]| Loss {
        object_id: table.object_id,
        partition: None,
        pages: pages.to_vec(),
        rows: any.rows(pages, None),
        which: WhichRows::Unknown,
        recoverable: recoverable.to_vec(),
    };
    pages.chunk_by(adjoin).map(loss).collect()
}

fn adjoin(a: &PageId, b: &PageId) -> bool {
    a.file == b.file && a.page.checked_add(1) == Some(b.page)
}

/// The columns that nonclustered indexes contain. If several indexes contain a column, an index without a filter is
/// preferred.
fn recoverable(database: &Database, table: &Table) -> Vec<RecoverableColumn> {
    let sources = sources(database, table.object_id);
    let mut all: Vec<RecoverableColumn> = Vec::new();
    for column in &table.columns {
        let has = |source: &&crate::index_columns::Source<'_>| {
            source.origins.iter().any(|(_, origin)| *origin == Origin::Column(column.id))
        };
        let best = sources.iter().filter(has).min_by_key(|source| (source.index.is_filtered(), source.index.index_id));
        all.extend(best.map(|best| RecoverableColumn {
            column_id: column.id,
            name: column.name.clone(),
            source: ColumnSource::Index {
                index_id: best.index.index_id,
                name: best.index.name.clone(),
                is_filtered: best.index.is_filtered(),
            },
        }));
    }
    all
}

/// Adjacent lost pages.
struct Run {
    pages: Vec<PageId>,
    which: WhichRows,
}

/// A partition of a table.
struct Partition<'a> {
    source: &'a dyn PageSource,
    rowset: &'a Rowset,
    unit: &'a AllocUnit,
    names: Vec<String>,
}

/// An unfinished run of lost pages: the page after the run is not known yet.
struct Open {
    pages: Vec<PageId>,
    left: Option<PageId>,
    from: Option<KeyBound>,
}

impl<'a> Partition<'a> {
    fn of(source: &'a dyn PageSource, database: &'a Database, partition: usize) -> Option<Self> {
        let rowset = database.rowsets.get(partition)?;
        let unit = in_row_unit(database, rowset)?;
        let columns = database.columns.get(&rowset.object_id);
        let name = |column: &RowsetColumn| {
            let own = columns.and_then(|columns| columns.iter().find(|own| own.id == column.id));
            own.map_or_else(|| format!("column {}", column.id), |own| own.name.clone())
        };
        let names = shown_key(rowset).into_iter().map(name).collect();
        Some(Self { source, rowset, unit, names })
    }

    /// The runs of pages that held rows or may have held rows: heap pages in the order of their addresses, leaf pages
    /// in key order.
    fn runs(&self, pages: BTreeMap<PageId, Held>) -> Vec<Run> {
        let lost: BTreeSet<PageId> =
            pages.iter().filter(|(_, held)| **held != Held::None).map(|(page, _)| *page).collect();
        let is_certain = |page: PageId| pages.get(&page) == Some(&Held::Rows);
        if self.rowset.index_id > 0 {
            return self.of_tree(lost, &is_certain);
        }
        let lost: Vec<(PageId, bool)> = lost.into_iter().map(|page| (page, is_certain(page))).collect();
        let runs = lost.chunk_by(|(a, of_a), (b, of_b)| adjoin(a, b) && of_a == of_b);
        let run = |pages: &[(PageId, bool)]| Run {
            which: if pages.iter().all(|(_, is_certain)| *is_certain) { WhichRows::Slots } else { WhichRows::Unknown },
            pages: pages.iter().map(|(page, _)| *page).collect(),
        };
        runs.map(run).collect()
    }

    /// The runs of lost leaf pages of a B-tree. Their order comes from the level above, or from the links between leaf
    /// pages if the level above is damaged.
    fn of_tree(&self, mut left: BTreeSet<PageId>, is_leaf: &dyn Fn(PageId) -> bool) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut open: Option<Open> = None;
        let mut before = None;
        let is_whole = each_leaf(self.source, self.unit, &mut |child, entry| {
            let key = || entry.as_ref().and_then(|(parent, entry)| self.bound(entry, Level::Node, *parent, true));
            if left.remove(&child) {
                // The first entry of a level has no lower limit, so its key is not used.
                let from = before.and_then(|_| key());
                open.get_or_insert_with(|| Open { pages: Vec::new(), left: before, from }).pages.push(child);
            } else if let Some(run) = open.take() {
                let to = key().map(|bound| KeyBound { inclusive: self.has_equal_keys(), ..bound });
                runs.push(self.close(run, Some(child), to));
            }
            before = Some(child);
        });
        // If the walk ended early, only the link in the last page of the run can name the leaf page after the run.
        runs.extend(open.map(|run| {
            let right = run.pages.last().filter(|_| !is_whole);
            let right = right.and_then(|last| by_links(self.source, self.unit, *last).right);
            self.close(run, right, None)
        }));
        while let Some(page) = left.pop_first() {
            if !is_leaf(page) {
                runs.push(Run { pages: vec![page], which: WhichRows::Unknown });
                continue;
            }
            let mut pages = vec![page];
            self.extend(&mut pages, &mut left, PageHeader::next, PageHeader::prev);
            pages.reverse();
            self.extend(&mut pages, &mut left, PageHeader::prev, PageHeader::next);
            pages.reverse();
            let beside = |page: Option<&PageId>| page.map(|page| by_links(self.source, self.unit, *page));
            let (first, last) = (beside(pages.first()), beside(pages.last()));
            let run = Open { left: first.and_then(|beside| beside.left), pages, from: None };
            runs.push(self.close(run, last.and_then(|beside| beside.right), None));
        }
        runs
    }

    /// Adds the damaged leaf pages that follow in one direction. Stops at a page that does not link back to the page
    /// before it.
    fn extend(
        &self,
        pages: &mut Vec<PageId>,
        left: &mut BTreeSet<PageId>,
        forward: fn(&PageHeader) -> PageId,
        back: fn(&PageHeader) -> PageId,
    ) {
        while let Some(&last) = pages.last() {
            let follows = |page: &PageId| {
                left.contains(page) && self.own_header(*page).is_some_and(|header| back(&header) == last)
            };
            let next = self.own_header(last).map(|header| forward(&header)).filter(follows);
            let Some(next) = next else { return };
            left.remove(&next);
            pages.push(next);
        }
    }

    /// The header of a damaged page; `None` if the header is not that of a leaf page of this unit at this address.
    fn own_header(&self, page: PageId) -> Option<PageHeader> {
        let bytes = self.source.read_page(page)?;
        let header = *Page::new(&bytes).header();
        let is_leaf = header.kind() == Some(PageType::Data) && header.level == 0;
        (header.page_id() == page && names(&header, self.unit.id) && is_leaf).then_some(header)
    }

    /// Completes a run with the limits of its keys. A limit that the level above does not give is the nearest key on
    /// the neighboring page.
    fn close(&self, run: Open, right: Option<PageId>, to: Option<KeyBound>) -> Run {
        let mut scratch = LeafScratch::default();
        let mut edge = |page: Option<PageId>, last: bool| {
            let row = edge_row(self.source, (self.unit, self.rowset), page?, last, &mut scratch)?;
            self.bound(&Record::data(&row).ok()?, Level::Leaf, page?, false)
        };
        let is_unknown = run.left.is_none() && right.is_none() && run.from.is_none() && to.is_none();
        let from = run.from.or_else(|| edge(run.left, true));
        let to = to.or_else(|| edge(right, false));
        let which = match is_unknown && !self.is_only_leaf(&run.pages) {
            true => WhichRows::Unknown,
            false => WhichRows::Keys { columns: self.names.clone(), from, to },
        };
        Run { pages: run.pages, which }
    }

    /// Whether `pages` contains only the root of the tree. The root is then the only leaf page of the tree, so it held
    /// all keys.
    fn is_only_leaf(&self, pages: &[PageId]) -> bool {
        pages == [self.unit.root]
    }

    /// The key of a record as a limit. The limit is always inclusive if several rows may have the same key.
    fn bound(&self, record: &Record<'_>, level: Level, from_page: PageId, inclusive: bool) -> Option<KeyBound> {
        let key = shown_key(self.rowset);
        let values: Option<Vec<KeyValue>> = key.into_iter().map(|column| key_value(column, level, record)).collect();
        let inclusive = inclusive || self.has_equal_keys();
        Some(KeyBound { values: values.filter(|values| !values.is_empty())?, inclusive, from_page })
    }

    fn rows(&self, pages: &[PageId], read: Option<u64>) -> LostRows {
        // A row needs at least the space for its fixed-length part and for a slot array entry.
        let row = u64::from(self.rowset.min_leaf.max(7)) + 2;
        let room = pages.len() as u64 * ((PAGE_BYTES - format::page::HEADER_BYTES) as u64 / row);
        let room = (!self.rowset.is_row_compressed()).then_some(room);
        if let (Some(read), Ok(stored)) = (read, u64::try_from(self.rowset.rows))
            && let Some(lost) = stored.checked_sub(read)
            // The catalog's row count may be wrong; it often is in old databases. The count is not used if it would
            // mean that more rows are lost than fit on the pages.
            && room.is_none_or(|room| lost <= room)
        {
            return LostRows { least: lost, most: Some(lost), basis: CountBasis::StoredCount };
        }
        let stated: Option<u64> = pages.iter().map(|page| self.stated(*page)).sum();
        if let Some(most) = stated {
            return LostRows { least: 0, most: Some(most), basis: CountBasis::PageHeader };
        }
        LostRows { least: 0, most: room, basis: CountBasis::PageSize }
    }

    /// The slot count in the header of a damaged page; `None` if the header is not that of a leaf page of this unit, or
    /// if the count is impossible.
    fn stated(&self, page: PageId) -> Option<u64> {
        let slots = self.own_header(page)?.slot_count.get();
        (usize::from(slots) <= MAX_SLOTS).then_some(slots.into())
    }

    /// Whether rows with the same key may be on several leaf pages.
    fn has_equal_keys(&self) -> bool {
        key_columns(self.rowset).iter().any(|column| column.status & column_status::UNIQUIFIER != 0)
    }
}

/// The key columns that the user declared, which are all key columns except the uniquifier.
fn shown_key(rowset: &Rowset) -> Vec<&RowsetColumn> {
    key_columns(rowset).into_iter().filter(|column| column.status & column_status::UNIQUIFIER == 0).collect()
}

/// The value of a key column; `None` if the record does not have it in readable form.
fn key_value(column: &RowsetColumn, level: Level, record: &Record<'_>) -> Option<KeyValue> {
    let bytes = match column.stored(level, record) {
        Stored::Null => return Some(KeyValue { text: None, literal: "NULL".to_owned() }),
        Stored::Plain(bytes) => bytes,
        Stored::Absent | Stored::Complex(_) => return None,
    };
    let (_, _, bit) = column.place(level);
    let shown = format::value::text(column.info, bytes, bit);
    let text = shown.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(&shown);
    let literal = match column.info.xtype {
        xtype::NCHAR | xtype::NVARCHAR => format!("N'{}'", text.replace('\'', "''")),
        _ if shown.starts_with('\'') => format!("'{}'", text.replace('\'', "''")),
        _ => shown.clone(),
    };
    Some(KeyValue { text: Some(text.to_owned()), literal })
}
