//! Rows of base tables whose columns are found by name.

use std::collections::HashMap;

use format::PageId;
use format::bytes::{unsigned, utf16};
use format::record::{Record, RecordKind};
use format::slots::SlotOrder;
use format::{AllocUnitId, Page};
use source::PageSource;

use crate::chain::{self, ChainFault};
use crate::layout::RowsetColumn;

/// A row of a base table.
pub(crate) struct Row<'a> {
    record: Record<'a>,
    columns: &'a HashMap<String, RowsetColumn>,
}

impl<'a> Row<'a> {
    /// The bytes of a column; `None` when NULL, missing or unknown to this version.
    pub(crate) fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        self.columns.get(name)?.leaf_bytes(&self.record)
    }

    /// An integer column as unsigned; 0 when NULL.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.bytes(name).map(unsigned).unwrap_or_default()
    }

    /// An int column.
    pub(crate) fn int(&self, name: &str) -> i32 {
        (self.number(name) as u32).cast_signed()
    }

    /// An nvarchar column; empty when NULL.
    pub(crate) fn text(&self, name: &str) -> String {
        self.bytes(name).map(utf16).unwrap_or_default()
    }
}

/// Calls `visit` with each live row of the clustered index with root `root`. Returns the number of slots that hold no
/// readable record, and where reading ended if not at the end.
pub(crate) fn scan(
    source: &dyn PageSource,
    unit: AllocUnitId,
    start: Start,
    mut visit: impl FnMut(Record<'_>),
) -> (u32, Option<ChainFault>) {
    let mut order = SlotOrder::default();
    let mut bad_records = 0;
    let mut page_rows = |page: Page<'_>| {
        order.load(page);
        for position in 0..order.entries().len() {
            match Record::data(order.space(page, position)) {
                Ok(record) if record.kind() == RecordKind::Primary => visit(record),
                Ok(_) => {}
                Err(_) => bad_records += 1,
            }
        }
    };
    let first = match start {
        Start::FirstPage(page) => Ok(page),
        Start::Root(root) if root.is_none() => Ok(root),
        Start::Root(root) => chain::leftmost_leaf(source, root),
    };
    let fault = first.and_then(|first| chain::walk(source, unit, first, &mut page_rows)).err();
    (bad_records, fault)
}

/// Where a scan starts.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// At this leaf page.
    FirstPage(PageId),
    /// At the leftmost leaf below this page.
    Root(PageId),
}

/// Makes a [`Row`] of `record`.
pub(crate) fn row<'a>(record: Record<'a>, columns: &'a HashMap<String, RowsetColumn>) -> Row<'a> {
    Row { record, columns }
}
