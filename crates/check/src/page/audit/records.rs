//! The records of a page. Each must be complete, be of a kind that the page may contain, and end before the next
//! record.

use findings::{Finding, Owner, registry};
use format::lob::Fragment;
use format::record::{MIN_HEAP_RECORD_BYTES, Record, RecordFault, RecordKind, RecordTest, status};
use format::same_shape::SameShapeRows;
use format::slots::{SlotEntry, SlotOrder, Span};
use format::{Page, PageId, PageType};

use super::header::PageContent;

/// Limit on the findings of one kind that are listed per page.
pub(super) const MAX_FINDINGS_PER_PAGE: usize = 10;

/// Audits and counts the records of one page at a time.
#[derive(Default)]
pub(super) struct Records {
    spans: Vec<Span>,
    bytes: i64,
    aligned_bytes: i64,
    /// Total bytes of all records, where each shorter record counts as [`MIN_HEAP_RECORD_BYTES`], as in heaps.
    padded_bytes: i64,
}

impl Records {
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Whether the records may occupy `used` bytes. On an aligned page, each record is padded to a multiple of 4 bytes;
    /// on other pages, very short records may be padded to the length of a forwarding stub.
    pub(super) fn can_use(&self, used: i64, aligned: bool) -> bool {
        if aligned { used == self.aligned_bytes } else { used == self.bytes || used == self.padded_bytes }
    }

    /// Bytes that the records occupy.
    pub(super) fn used_bytes(&self, aligned: bool) -> i64 {
        if aligned { self.aligned_bytes } else { self.bytes }
    }

    pub(super) fn start(&mut self, page: Page<'_>) {
        self.spans.clear();
        self.spans.resize(usize::from(page.header().slot_count.get()).min(format::slots::MAX_SLOTS), Span::default());
        (self.bytes, self.aligned_bytes, self.padded_bytes) = (0, 0, 0);
    }

    pub(super) fn place(&mut self, entry: SlotEntry, length: usize) {
        if let Some(span) = self.spans.get_mut(usize::from(entry.slot)) {
            *span = Span { offset: entry.offset, length: length as u16 };
        }
        self.add(length);
    }

    /// Adds the bytes of a record.
    fn add(&mut self, length: usize) {
        self.bytes += length as i64;
        self.aligned_bytes += length.next_multiple_of(4) as i64;
        self.padded_bytes += length.max(MIN_HEAP_RECORD_BYTES) as i64;
    }

    /// Counts the records of a page on which most rows have the same layout. `rows` has already located the records.
    /// Returns `None` if a record is of a kind that the page may not contain.
    pub(super) fn of_same_shape(&mut self, rows: &SameShapeRows, page: Page<'_>, owner: Owner) -> Option<PageContent> {
        // `aligned_bytes` is not needed: a page whose records start at multiples of 4 never counts as same-shape.
        (self.bytes, self.aligned_bytes, self.padded_bytes) = (rows.bytes().into(), 0, rows.padded_bytes().into());
        let mut content = PageContent {
            rows: rows.count() as u32 - rows.ghosts(),
            ghosts: rows.ghosts(),
            records_are_audited: true,
            lengths_are_known: true,
            ghosts_are_known: true,
            ..PageContent::default()
        };
        for span in rows.others().iter().filter_map(|slot| rows.spans().get(usize::from(*slot))) {
            count(span.of(page), PageType::Data, owner.index_id == CLUSTERED, &mut content).ok()?;
            self.add(usize::from(span.length));
        }
        Some(content)
    }

    /// Audits every record; `None` if one fails.
    pub(super) fn audit(
        &mut self,
        page: Page<'_>,
        id: PageId,
        owner: Owner,
        kind: PageType,
        order: &SlotOrder,
        findings: &mut Vec<Finding>,
    ) -> Option<PageContent> {
        self.start(page);
        let pminlen = page.header().pminlen.get();
        let mut content = PageContent {
            records_are_audited: true,
            lengths_are_known: true,
            ghosts_are_known: true,
            ..PageContent::default()
        };
        let (mut sound, mut found) = (true, 0);
        for (position, &entry) in order.entries().iter().enumerate() {
            let space = order.space(page, position);
            let record = match kind {
                PageType::TextMix | PageType::TextTree => Fragment::read(space).map(|fragment| fragment.bytes()),
                PageType::Index => Record::index(space, pminlen).map(|record| record.bytes()),
                _ => Record::data(space).map(|record| record.bytes()),
            };
            match record
                .and_then(|bytes| count(bytes, kind, owner.index_id == CLUSTERED, &mut content).map(|()| bytes.len()))
            {
                Ok(length) => self.place(entry, length),
                Err(_) if found >= MAX_FINDINGS_PER_PAGE => break,
                Err(fault) => {
                    sound = false;
                    found += 1;
                    findings.push(record_finding(fault, page, id, owner, entry, order.entries().get(position + 1)));
                }
            }
        }
        sound.then_some(content)
    }

    /// Counts compressed records that cannot be audited, by the type in their first byte. Uncompressed records are not
    /// counted.
    pub(super) fn classify(&mut self, page: Page<'_>, order: &SlotOrder, compressed: bool) -> PageContent {
        self.start(page);
        let mut content = PageContent { ghosts: u32::from(page.header().ghost_count.get()), ..PageContent::default() };
        if !compressed {
            return content;
        }
        content.ghosts = 0;
        for position in 0..order.entries().len() {
            // Type of a CD record: bits 2 to 4 of its first byte (docs/format/compression.md#records).
            let first = order.space(page, position).first();
            match first.filter(|byte| *byte & status::COMPRESSED != 0).map(|byte| (byte >> 2) & 7) {
                Some(0 | 6) => content.rows += 1,
                Some(4) => {
                    content.rows += 1;
                    content.forwarded += 1;
                }
                Some(2) => content.stubs += 1,
                Some(_) => content.ghosts += 1,
                None => {}
            }
        }
        content
    }
}

/// Index ID of a clustered index.
const CLUSTERED: i32 = 1;

/// Counts a record by its kind, if the page may hold that kind.
fn count(bytes: &[u8], page: PageType, is_clustered: bool, content: &mut PageContent) -> Result<(), RecordFault> {
    let status = bytes.first().copied().unwrap_or_default();
    let kind = RecordKind::of(status);
    let is_tag_alone = RecordKind::is_tag_alone(status);
    let allowed = match kind {
        _ if is_tag_alone => true,
        RecordKind::Primary => page == PageType::Data,
        // Rows of a clustered index are found by key, so they are never forwarded.
        RecordKind::Forwarded | RecordKind::ForwardingStub => page == PageType::Data && !is_clustered,
        // Ghost records among off-row values were never seen, but may be legal.
        RecordKind::GhostData | RecordKind::GhostVersion => page != PageType::Index,
        RecordKind::Index | RecordKind::GhostIndex => page == PageType::Index,
        RecordKind::BlobFragment => matches!(page, PageType::TextMix | PageType::TextTree),
    };
    let in_transit = !matches!(page, PageType::Data | PageType::Index | PageType::TextMix | PageType::TextTree);
    if !allowed && !in_transit {
        return Err(RecordFault { test: RecordTest::Kind, value: kind as i64, against: page as i64 });
    }
    // In tables whose columns are all sparse, the status byte of a row shows neither a null bitmap nor a variable part,
    // yet the row is longer than its fixed part (docs/format/sparse.md#tables-of-sparse-columns-alone). So the length
    // of the row is unknown.
    content.lengths_are_known &=
        !(kind == RecordKind::Primary && status & (status::NULL_BITMAP | status::VARIABLE) == 0);
    // No stub with a version tag was ever seen, so it is unknown whether the tag takes up space.
    content.lengths_are_known &= !(kind == RecordKind::ForwardingStub && status & status::VERSION_TAG != 0);
    // It is unknown how much of its space a ghost version record frees, and whether the free-space count in the header
    // includes that space.
    content.lengths_are_known &= !is_tag_alone;
    // It is unknown whether the ghost count in the header includes deleted forwarded rows.
    let is_ghost_forwarded = page == PageType::Data && kind == RecordKind::Forwarded && bytes.get(1) == Some(&1);
    content.ghosts_are_known &= !is_tag_alone && !is_ghost_forwarded;
    match kind {
        _ if is_ghost_forwarded => content.ghosts += 1,
        RecordKind::Primary | RecordKind::Index => content.rows += 1,
        RecordKind::Forwarded => {
            content.rows += 1;
            content.forwarded += 1;
        }
        RecordKind::ForwardingStub => content.stubs += 1,
        RecordKind::BlobFragment => {}
        _ if matches!(page, PageType::TextMix | PageType::TextTree) => content.ghosts_are_known = false,
        RecordKind::GhostIndex | RecordKind::GhostData | RecordKind::GhostVersion => content.ghosts += 1,
    }
    Ok(())
}

/// The message is 8942 for a record that overlaps the next one, 8943 for a record that extends into free space, and
/// 8944 for any other fault.
fn record_finding(
    fault: RecordFault,
    page: Page<'_>,
    id: PageId,
    owner: Owner,
    entry: SlotEntry,
    next: Option<&SlotEntry>,
) -> Finding {
    let runs_over = matches!(fault.test, RecordTest::LastOffset | RecordTest::VersionTag);
    match next {
        Some(next) if runs_over => Finding::new(&registry::SLOT_OVERLAP)
            .owner(owner)
            .at(id, next.slot)
            .number("offset", next.offset)
            .number("prior_end", i64::from(entry.offset) + fault.value),
        None if runs_over => Finding::new(&registry::SLOT_INTO_FREE_SPACE)
            .owner(owner)
            .at(id, entry.slot)
            .number("offset", i64::from(entry.offset) + fault.value)
            .number("free_data", page.header().free_data.get()),
        _ => Finding::new(&registry::RECORD_AUDIT)
            .state(fault.test.state())
            .owner(owner)
            .at(id, entry.slot)
            .text_value("test", fault.test.text())
            .number("value", fault.value)
            .number("against", fault.against),
    }
}
