//! Reads the rows of base tables, and finds their columns by name.

use format::bytes::{unsigned, utf16};
use format::compressed::{CdKind, CdRecord, CompressionInfo, Expansion, Scratch};
use format::record::{Record, RecordKind};
use format::slots::{SlotEntry, SlotOrder};
use format::{AllocUnitId, PAGE_BYTES, Page};
use format::{PageId, RecordId};
use source::PageSource;

use crate::chain::{self, ChainFault};
use crate::layout::RowsetColumn;

/// A row of a base table.
pub(crate) struct Row<'a> {
    record: Record<'a>,
    columns: &'a [(String, RowsetColumn)],
}

impl<'a> Row<'a> {
    /// The bytes of a column. `None` if the column is NULL or missing in the row, or if this version of the table does
    /// not have it.
    pub(crate) fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        // Base tables have few columns, so a linear search is faster than hashing the name.
        let (_, column) = self.columns.iter().rev().find(|(known, _)| known == name)?;
        column.leaf_bytes(&self.record)
    }

    /// The value of an integer column as an unsigned number; 0 if the column is NULL.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.bytes(name).map(unsigned).unwrap_or_default()
    }

    /// The value of an int column.
    pub(crate) fn int(&self, name: &str) -> i32 {
        (self.number(name) as u32).cast_signed()
    }

    /// The value of an nvarchar column; empty if NULL.
    pub(crate) fn text(&self, name: &str) -> String {
        self.bytes(name).map(utf16).unwrap_or_default()
    }
}

/// Where the rows of a table are stored.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The allocation unit that stores the rows.
    pub(crate) unit: AllocUnitId,
    /// Where the scan starts.
    pub(crate) start: Start<'a>,
    /// How compressed rows are expanded; `None` if the rows are not compressed.
    pub(crate) expansion: Option<&'a Expansion>,
}

/// The page at which a scan starts.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// The scan starts at this leaf page.
    FirstPage(PageId),
    /// The scan starts at the leftmost leaf below `root`. If the pointers below `root` do not point to that leaf, the
    /// scan starts at `first`, which is the first page according to the catalog. The page `first` is used only if it is
    /// the leftmost leaf.
    Root { root: PageId, first: PageId },
    /// The scan starts at this page, if it is a leaf without a left neighbor. This is used for trees with non-leaf
    /// pages that cannot be read.
    Leftmost(PageId),
    /// The scan reads these leaves in this order, and does not follow their links.
    Leaves(&'a [PageId]),
}

impl Start<'_> {
    /// Whether the table has no pages.
    pub(crate) fn is_nowhere(self) -> bool {
        match self {
            Self::FirstPage(page) | Self::Root { root: page, .. } | Self::Leftmost(page) => page.is_none(),
            Self::Leaves(pages) => pages.is_empty(),
        }
    }
}

/// Calls `visit` with each live row of the clustered index at `place`. Returns the number of slots without a readable
/// record, and the fault if reading ended too early.
pub(crate) fn scan(
    source: &dyn PageSource,
    place: Place<'_>,
    mut visit: impl FnMut(RecordId, Record<'_>),
) -> (u32, Option<ChainFault>) {
    let mut order = SlotOrder::default();
    let mut scratch = Scratch::default();
    let mut bad_records = 0;
    let mut page_rows = |page: Page<'_>| {
        order.load(page);
        if let Some(expansion) = place.expansion {
            bad_records += compressed_rows(page, &order, expansion, &mut scratch, &mut visit);
            return;
        }
        for (position, entry) in order.entries().iter().enumerate() {
            let Ok(record) = Record::data(order.space(page, position)) else {
                bad_records += 1;
                continue;
            };
            // The leaves of a clustered index contain neither forwarded rows nor index rows. If the type of a record is
            // one of these two, the record is damaged, so its row is lost, not deleted.
            match RecordKind::of(record.status()) {
                RecordKind::Primary => visit(place_of(page, entry), record),
                RecordKind::GhostData | RecordKind::GhostVersion => {}
                _ => bad_records += 1,
            }
        }
    };
    let walked = match place.start {
        Start::Leaves(pages) => {
            pages.iter().for_each(|page| chain::leaf(source, *page, place.unit, &mut page_rows));
            Ok(())
        }
        _ => first_of(source, place).and_then(|first| chain::walk(source, place.unit, first, &mut page_rows)),
    };
    (bad_records, walked.err())
}

/// The fault that a scan of `place` would end with.
pub(crate) fn fault(source: &dyn PageSource, place: Place<'_>) -> Option<ChainFault> {
    first_of(source, place).and_then(|first| chain::walk(source, place.unit, first, |_| {})).err()
}

/// The page at which a walk over the leaves starts.
fn first_of(source: &dyn PageSource, place: Place<'_>) -> Result<chain::First, ChainFault> {
    match place.start {
        Start::FirstPage(page) => Ok(page.into()),
        Start::Root { root, .. } if root.is_none() => Ok(root.into()),
        Start::Root { root, first } => chain::start(source, place.unit, root, first),
        Start::Leftmost(page) => chain::leftmost(source, page, place.unit),
        Start::Leaves(pages) => Ok(pages.first().copied().unwrap_or(PageId::NONE).into()),
    }
}

fn place_of(page: Page<'_>, entry: &SlotEntry) -> RecordId {
    RecordId { page: page.header().page_id(), slot: entry.slot }
}

/// Expands the live rows of a compressed page and calls `visit` with them. Returns the number of slots without a
/// readable row.
fn compressed_rows(
    page: Page<'_>,
    order: &SlotOrder,
    expansion: &Expansion,
    scratch: &mut Scratch,
    visit: &mut impl FnMut(RecordId, Record<'_>),
) -> u32 {
    let slots = order.entries().len() as u32;
    let first = order.entries().first().map_or(PAGE_BYTES, |entry| entry.offset.into());
    let Ok(info) = CompressionInfo::of(page, first, expansion.columns()) else { return slots };
    let mut bad = 0;
    for (position, entry) in order.entries().iter().enumerate() {
        let Ok(record) = CdRecord::read(order.space(page, position), expansion.columns()) else {
            bad += 1;
            continue;
        };
        match record.kind() {
            CdKind::Primary => {}
            CdKind::GhostEmpty | CdKind::GhostData => continue,
            _ => {
                bad += 1;
                continue;
            }
        }
        match expansion.expand(&record, info.as_ref(), scratch) {
            Ok(row) if row.doubts.is_empty() => visit(place_of(page, entry), row.record),
            _ => bad += 1,
        }
    }
    bad
}

/// Combines `record` with the columns of its table into a [`Row`].
pub(crate) fn row<'a>(record: Record<'a>, columns: &'a [(String, RowsetColumn)]) -> Row<'a> {
    Row { record, columns }
}
