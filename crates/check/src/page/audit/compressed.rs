//! Audits the records of a compressed leaf page (message 5274). The page's compression information is audited first,
//! then each record is compared with it.

use findings::{Finding, Owner, registry};
use format::compressed::{CdFault, CdIssue, CdKind, CdRecord, CdTest, CompressionInfo, Expansion};
use format::slots::{SlotEntry, SlotOrder};
use format::{Page, PageId, PageType};

use super::header::PageContent;
use super::records::{MAX_FINDINGS_PER_PAGE, Records};
use crate::page::expanded::{ExpandedRows, first_record};

/// Where the audit of a page puts its results.
pub(super) struct Results<'a> {
    /// The places of the records.
    pub(super) records: &'a mut Records,
    /// The expanded rows, if records may be expanded together.
    pub(super) expanded: Option<&'a mut ExpandedRows>,
    pub(super) findings: &'a mut Vec<Finding>,
}

/// Audits every record; `None` if one fails. Records in an undocumented form are counted as undecided. If all records
/// can be audited and expanded together, [`Results::expanded`] holds the expanded rows afterwards.
pub(super) fn audit(
    page: Page<'_>,
    id: PageId,
    owner: Owner,
    expansion: &Expansion,
    order: &SlotOrder,
    Results { records, expanded, findings }: Results<'_>,
) -> Option<PageContent> {
    // The slots are already sorted, so the first entry of the sorted list is the first record of the page.
    let first = order.entries().first().map_or_else(|| first_record(page), |first| first.offset.into());
    let info = match CompressionInfo::of(page, first, expansion.columns()) {
        Ok(info) => info,
        Err(CdIssue::Undecided(_)) => return Some(records.classify(page, order, true)),
        Err(CdIssue::Fault(fault)) => {
            findings.push(finding(&registry::COMPRESSION_INFO, fault, owner, "Compression information").page(id));
            return None;
        }
    };
    if let Some(content) =
        expanded.and_then(|expanded| together(page, expansion, order, info.as_ref(), records, expanded))
    {
        return Some(content);
    }
    let mut content = records.classify(page, order, true);
    content.records_are_audited = true;
    let (mut sound, mut found) = (true, 0);
    for (position, &entry) in order.entries().iter().enumerate() {
        match record(order.space(page, position), page, expansion, info.as_ref()) {
            Ok(length) => records.place(entry, length),
            Err(CdIssue::Undecided(_)) => {
                content.undecided += 1;
                records.place(SlotEntry { ..entry }, 0);
            }
            Err(CdIssue::Fault(_)) if found >= MAX_FINDINGS_PER_PAGE => break,
            Err(CdIssue::Fault(fault)) => {
                (sound, found) = (false, found + 1);
                let part = format!("Compressed record in slot {}", entry.slot);
                findings.push(finding(&registry::COMPRESSED_RECORD, fault, owner, &part).at(id, entry.slot));
            }
        }
    }
    sound.then_some(content)
}

/// Audits and expands all records together; `None` if this is impossible for one of the records.
fn together(
    page: Page<'_>,
    expansion: &Expansion,
    order: &SlotOrder,
    info: Option<&CompressionInfo<'_>>,
    records: &mut Records,
    expanded: &mut ExpandedRows,
) -> Option<PageContent> {
    records.start(page);
    let mut content = PageContent { records_are_audited: true, ..PageContent::default() };
    let place = |entry, kind: CdKind, length| {
        records.place(entry, length);
        *if kind.is_ghost() { &mut content.ghosts } else { &mut content.rows } += 1;
    };
    expanded.load_together(page, order, expansion, info, place).then_some(content)
}

/// Audits the record at the start of `space`, and returns the length of the record.
fn record(
    space: &[u8],
    page: Page<'_>,
    expansion: &Expansion,
    info: Option<&CompressionInfo<'_>>,
) -> Result<usize, CdIssue> {
    let record = CdRecord::read(space, expansion.columns())?;
    let is_index = matches!(record.kind(), CdKind::Index | CdKind::GhostIndex);
    if is_index != (page.header().kind() == Some(PageType::Index)) {
        return Err(CdIssue::Undecided("a kind of record that is undocumented for such a page"));
    }
    expansion.audit(&record, info)?;
    Ok(record.bytes().len())
}

/// Creates the finding for a fault. A record that contradicts the catalog is reported with a different message than
/// other faults, because the log may contain a change to the table that explains the contradiction.
fn finding(check: &'static registry::Check, fault: CdFault, owner: Owner, part: &str) -> Finding {
    let check = match fault.test {
        CdTest::ColumnCount | CdTest::BitDescriptor => &registry::COMPRESSED_COLUMNS,
        _ => check,
    };
    Finding::new(check)
        .owner(owner)
        .text_value("part", part)
        .text_value("test", fault.test.text())
        .number("value", fault.value)
        .number("against", fault.against)
}
