//! Which rows were on pages that cannot be read.

use std::collections::BTreeSet;

use catalog::{AllocUnit, Database, Level, Rowset, RowsetColumn, Stored, UnitKind, column_status};
use format::record::Record;
use format::slots::MAX_SLOTS;
use format::types::xtype;
use format::{PAGE_BYTES, Page, PageId, PageType};
use source::PageSource;

use super::{ColumnSource, CountBasis, KeyBound, KeyValue, Loss, LostRows, RecoverableColumn, WhichRows};
use crate::index_columns::{Origin, key_columns, sources};
use crate::leaf::LeafScratch;
use crate::table::Table;
use crate::tree::{by_links, each_leaf, edge_row};

/// What the loss of these leaf pages of a table costs; pages that lie side by side are one loss. `rows_read` are the rows of
/// each of the table's partitions that the other pages have, if they were counted.
///
/// Pages that are not leaves of the table, as far as anything says, are left out. Memory: the pages that are asked for, and
/// two keys for each.
pub fn losses(
    source: &dyn PageSource,
    database: &Database,
    table: &Table,
    pages: &[PageId],
    rows_read: Option<&[u64]>,
) -> Vec<Loss> {
    let recoverable = recoverable(database, table);
    let mut left: BTreeSet<PageId> = pages.iter().copied().collect();
    let mut losses = Vec::new();
    for (at, &partition) in table.partitions.iter().enumerate() {
        let Some(place) = Partition::of(source, database, partition) else { continue };
        let read = rows_read.and_then(|rows| rows.get(at)).copied();
        let own = if place.rowset.index_id == 0 { place.of_heap(&mut left) } else { place.of_tree(&mut left) };
        let is_one = own.len() == 1;
        losses.extend(own.into_iter().map(|run| Loss {
            object_id: table.object_id,
            partition: place.rowset.partition,
            rows: place.rows(&run.pages, read.filter(|_| is_one)),
            pages: run.pages,
            which: run.which,
            recoverable: recoverable.clone(),
        }));
    }
    losses
}

/// The columns that nonclustered indexes have; of two that have one, that without a filter.
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

/// Lost pages side by side.
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

/// A run whose right end is not yet known.
struct Open {
    pages: Vec<PageId>,
    left: Option<PageId>,
    from: Option<KeyBound>,
}

impl<'a> Partition<'a> {
    fn of(source: &'a dyn PageSource, database: &'a Database, partition: usize) -> Option<Self> {
        let rowset = database.rowsets.get(partition)?;
        let mut units = rowset.units.iter().filter_map(|unit| database.units.get(*unit));
        let unit = units.find(|unit| unit.kind == UnitKind::InRow)?;
        let columns = database.columns.get(&rowset.object_id);
        let name = |column: &RowsetColumn| {
            let own = columns.and_then(|columns| columns.iter().find(|own| own.id == column.id));
            own.map_or_else(|| format!("column {}", column.id), |own| own.name.clone())
        };
        let names = shown_key(rowset).into_iter().map(name).collect();
        Some(Self { source, rowset, unit, names })
    }

    /// Pages of a heap: those that name it, or that name nothing.
    fn of_heap(&self, left: &mut BTreeSet<PageId>) -> Vec<Run> {
        let own: Vec<PageId> = left.iter().copied().filter(|page| self.may_be_own(*page)).collect();
        left.retain(|page| own.binary_search(page).is_err());
        let adjoin = |a: &PageId, b: &PageId| a.file == b.file && a.page.checked_add(1) == Some(b.page);
        own.chunk_by(adjoin).map(|pages| Run { pages: pages.to_vec(), which: WhichRows::Slots }).collect()
    }

    fn may_be_own(&self, page: PageId) -> bool {
        let Some(bytes) = self.source.read_page(page) else { return true };
        let header = Page::new(&bytes).header();
        header.alloc_unit() == self.unit.id || header.page_id() != page
    }

    /// Leaves of a tree, by the level above; where that is damaged, by the links of the leaves.
    fn of_tree(&self, left: &mut BTreeSet<PageId>) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut open: Option<Open> = None;
        let mut before = None;
        let walked = each_leaf(self.source, self.unit, &mut |parent, child, entry| {
            let key = || entry.and_then(|entry| self.bound(entry, Level::Node, parent, true));
            if left.remove(&child) {
                // What the first entry of a level has for a key is below all keys.
                let from = before.and_then(|_| key());
                open.get_or_insert_with(|| Open { pages: Vec::new(), left: before, from }).pages.push(child);
            } else if let Some(run) = open.take() {
                let to = key().map(|bound| KeyBound { inclusive: false, ..bound });
                runs.push(self.close(run, Some(child), to));
            }
            before = Some(child);
        });
        runs.extend(open.map(|run| self.close(run, None, None)));
        if walked.is_err() {
            let rest: Vec<PageId> = left.iter().copied().filter(|page| self.may_be_own(*page)).collect();
            for page in rest {
                left.remove(&page);
                let beside = by_links(self.source, self.unit, page);
                let run = Open { pages: vec![page], left: beside.left, from: None };
                runs.push(self.close(run, beside.right, None));
            }
        }
        runs
    }

    /// Limits that the level above does not give are the keys of the rows on the leaves beside.
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

    /// Whether the tree is one leaf, with all keys.
    fn is_only_leaf(&self, pages: &[PageId]) -> bool {
        pages == [self.unit.root]
    }

    /// The key that a record has.
    fn bound(&self, record: &Record<'_>, level: Level, from_page: PageId, inclusive: bool) -> Option<KeyBound> {
        let key = shown_key(self.rowset);
        let values: Option<Vec<KeyValue>> = key.into_iter().map(|column| key_value(column, level, record)).collect();
        Some(KeyBound { values: values.filter(|values| !values.is_empty())?, inclusive, from_page })
    }

    fn rows(&self, pages: &[PageId], read: Option<u64>) -> LostRows {
        if let (Some(read), Ok(stored)) = (read, u64::try_from(self.rowset.rows))
            && let Some(lost) = stored.checked_sub(read)
        {
            return LostRows { least: lost, most: Some(lost), basis: CountBasis::StoredCount };
        }
        let stated: Option<u64> = pages.iter().map(|page| self.stated(*page)).sum();
        if let Some(most) = stated {
            return LostRows { least: 0, most: Some(most), basis: CountBasis::PageHeader };
        }
        // A row takes its fixed part, at least, and an entry of the slot array.
        let row = u64::from(self.rowset.min_leaf.max(7)) + 2;
        let most = pages.len() as u64 * ((PAGE_BYTES - format::page::HEADER_BYTES) as u64 / row);
        let most = (!self.rowset.is_row_compressed()).then_some(most);
        LostRows { least: 0, most, basis: CountBasis::PageSize }
    }

    /// Slots that the header of a damaged page says, if the header is that of a leaf of this unit.
    fn stated(&self, page: PageId) -> Option<u64> {
        let bytes = self.source.read_page(page)?;
        let header = Page::new(&bytes).header();
        let is_own = header.page_id() == page
            && header.alloc_unit() == self.unit.id
            && header.kind() == Some(PageType::Data)
            && header.level == 0;
        let slots = header.slot_count.get();
        (is_own && usize::from(slots) <= MAX_SLOTS).then_some(slots.into())
    }
}

/// The columns of the key that a user named: all but the uniquifier.
fn shown_key(rowset: &Rowset) -> Vec<&RowsetColumn> {
    key_columns(rowset).into_iter().filter(|column| column.status & column_status::UNIQUIFIER == 0).collect()
}

/// The value of a key column; `None` if the record does not show it.
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
