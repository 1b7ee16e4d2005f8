//! The records of one page at a time, as the audit of the page found them: the positions of all records and, for a
//! compressed leaf page, the expanded rows.

use findings::Finding;
use format::record::Record;
use format::same_shape::Rows;
use format::slots::Span;
use format::{Page, PageId, PageType};

use crate::basis::units::Unit;
use crate::page::audit::{Audit, AuditRules, PageContent};
use crate::page::expanded::{ColumnDoubt, ExpandedRows};

/// The records of the page that was audited last. The buffers are reused.
#[derive(Default)]
pub(crate) struct PageRecords {
    audit: Audit,
    expanded: ExpandedRows,
}

impl PageRecords {
    /// Audits a page of a unit. If the page is damaged, adds findings and returns `None`.
    pub(crate) fn audit(
        &mut self,
        page: Page<'_>,
        id: PageId,
        unit: &Unit,
        known: AuditRules<'_>,
        findings: &mut Vec<Finding>,
    ) -> Option<PageContent> {
        self.expanded.clear();
        let content = self.audit.page(page, id, unit, known, &mut self.expanded, findings)?;
        if !content.records_are_audited {
            self.expanded.clear();
        } else if let Some(expansion) = known.expansion
            && !self.expanded.is_loaded()
            && unit.shape.is_leaf(page)
        {
            self.expanded.load(page, self.audit.spans(), expansion, known.row_by_row);
        }
        Some(content)
    }

    /// The positions of the records.
    pub(crate) fn spans(&self) -> &[Span] {
        self.audit.spans()
    }

    /// The rows of the page, if they all have the same layout.
    pub(crate) fn same_shape<'p>(&'p self, page: Page<'p>) -> Option<Rows<'p>> {
        if self.expanded.is_loaded() { self.expanded.same_shape() } else { self.audit.same_shape(page) }
    }

    /// The record in a slot. On a compressed leaf page, the record is the expanded row.
    pub(crate) fn record<'p>(&'p self, page: Page<'p>, slot: usize) -> Option<Record<'p>> {
        if self.expanded.is_loaded() {
            return self.expanded.row(slot);
        }
        record(page, *self.audit.spans().get(slot)?)
    }

    /// Returns the columns whose values are missing in the expanded record of a slot, because their compressed form is
    /// unknown.
    pub(crate) fn doubts(&self, slot: usize) -> impl Iterator<Item = ColumnDoubt> + Clone + '_ {
        self.expanded.doubts(slot)
    }

    /// The expanded rows of a compressed leaf page.
    pub(crate) fn expanded(&self) -> &ExpandedRows {
        &self.expanded
    }
}

/// The record at a position of a page, in its stored form.
pub(crate) fn record<'a>(page: Page<'a>, span: Span) -> Option<Record<'a>> {
    let bytes = span.of(page);
    match page.header().kind() {
        Some(PageType::Data) => Record::data(bytes).ok(),
        _ => Record::index(bytes, page.header().pminlen.get()).ok(),
    }
}
