//! Compares the header and the slot array of a page with its content.

use findings::{Finding, Owner, registry};
use format::compressed::Expansion;
use format::page::{HEADER_BYTES, page_flags};
use format::record::status::VERSION_TAG;
use format::same_shape::{Rows, SameShapeRows};
use format::slots::{SlotOrder, Span};
use format::{PAGE_BYTES, Page, PageId, PageType};

use super::compressed::{self, Results};
use super::records::{MAX_FINDINGS_PER_PAGE, Records};
use crate::basis::units::{Shape, Unit};
use crate::page::expanded::ExpandedRows;

/// The highest page type number that the engine uses.
const UNDOFILE_HEADER_PAGE: u8 = 0x66;

/// Audits pages one after another and reuses its buffers.
#[derive(Default)]
pub(crate) struct Audit {
    order: SlotOrder,
    records: Records,
    same_shape: SameShapeRows,
    /// Whether `same_shape` rather than `records` describes the page audited last.
    is_same_shape: bool,
}

/// Facts about the database and the page's rowset that the audit needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditRules<'a> {
    /// Whether rows may contain older versions of themselves.
    pub(crate) rows_hold_versions: bool,
    /// Whether the release has accelerated database recovery (ADR). While the version store is empty, nothing shows
    /// whether ADR is on.
    pub(crate) rows_may_hold_versions: bool,
    /// How the rowset's rows are expanded, if they are compressed.
    pub(crate) expansion: Option<&'a Expansion>,
    /// Whether every record is audited on its own, even if all rows of a page have the same layout.
    pub(crate) row_by_row: bool,
}

/// The content of a page that passed its audit.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct PageContent {
    /// Live rows: primary, forwarded or index records.
    pub(crate) rows: u32,
    /// Ghost records.
    pub(crate) ghosts: u32,
    /// Forwarded rows, which are also counted as live rows.
    pub(crate) forwarded: u32,
    /// Forwarding stubs.
    pub(crate) stubs: u32,
    /// Whether the records were audited.
    pub(crate) records_are_audited: bool,
    /// Whether the length of every record is known.
    pub(crate) lengths_are_known: bool,
    /// Whether `ghosts` is certainly the exact number of ghost records.
    pub(crate) ghosts_are_known: bool,
    /// Number of compressed records in an undocumented form.
    pub(crate) undecided: u32,
}

impl Audit {
    /// Positions of the records of the last page audited, by slot; length 0 for an empty slot.
    pub(crate) fn spans(&self) -> &[Span] {
        if self.is_same_shape { self.same_shape.spans() } else { self.records.spans() }
    }

    /// The rows of the last page audited, if they all have the same layout.
    pub(crate) fn same_shape<'p>(&'p self, page: Page<'p>) -> Option<Rows<'p>> {
        self.is_same_shape.then(|| self.same_shape.of(page))
    }

    /// Audits the page at `id`, which belongs to `unit` and has passed its identity check. Returns `None` if the page
    /// fails its audit; `findings` then contains the reason. May expand compressed rows.
    pub(crate) fn page(
        &mut self,
        page: Page<'_>,
        id: PageId,
        unit: &Unit,
        AuditRules { rows_hold_versions, rows_may_hold_versions, expansion, row_by_row }: AuditRules<'_>,
        expanded: &mut ExpandedRows,
        findings: &mut Vec<Finding>,
    ) -> Option<PageContent> {
        // These are checked:
        // 1. The header has a known version, and a type, a level and an end of data that are possible (`header`).
        // 2. Each slot points to a place of its own between the header and the free data (`slots`).
        // 3. Each record is sound, and ends before the next record or the free data (`records`, `compressed`).
        // 4. The page is not marked as part of a system transaction. This proves damage only after a clean shutdown, so
        //    `FindingCollector` decides whether the finding is kept.
        // 5. The header counts as many ghosts and free bytes as there are (`counts`).
        // If all rows have the same layout, 2 and 3 are tested for all of them together.
        self.is_same_shape = false;
        let kind = self.header(page, id, unit, findings)?;
        // Accelerated database recovery stores older versions of rows in the rows themselves. The form of these
        // versions is undocumented, so such rows cannot be audited.
        let holds_versions = rows_hold_versions && page.header().flags.get() & page_flags::VERSION_INFO != 0;
        let auditable = match kind {
            PageType::TextMix | PageType::TextTree => true,
            _ if holds_versions => false,
            _ => unit.shape != Shape::Unknown && !unit.compressed,
        };
        let of_same_shape = if auditable && !row_by_row && self.same_shape.load(page, may_be_empty(unit, kind)) {
            self.records.of_same_shape(&self.same_shape, page, unit.owner)
        } else {
            None
        };
        self.is_same_shape = of_same_shape.is_some();
        if !self.is_same_shape {
            self.order.load(page);
            if !self.slots(page, id, unit, kind, findings) {
                return None;
            }
        }
        let is_leaf = unit.shape.is_leaf(page);
        let expansion = expansion.filter(|_| unit.compressed && is_leaf && unit.shape != Shape::Unknown);
        let mut content = match (of_same_shape, expansion) {
            (Some(content), _) => content,
            _ if auditable => self.records.audit(page, id, unit.owner, kind, &self.order, findings)?,
            (None, Some(expansion)) if !holds_versions => {
                let expanded = (!row_by_row).then_some(expanded);
                let to = Results { records: &mut self.records, expanded, findings };
                compressed::audit(page, id, unit.owner, expansion, &self.order, to)?
            }
            _ => self.records.classify(page, &self.order, unit.compressed),
        };
        if page.header().flags.get() & page_flags::IN_SYSXACT != 0 {
            findings.push(Finding::new(&registry::PAGE_IN_SYSXACT).owner(unit.owner).page(id));
        }
        if rows_may_hold_versions && self.rows_are_longer(page, &content) {
            (content.records_are_audited, content.lengths_are_known) = (false, false);
        }
        self.counts(page, id, unit.owner, &content, findings).then_some(content)
    }

    /// Whether rows with version tags may be longer than their columns require. A row with a version tag may contain an
    /// older version of itself if there is space for that version before the next row.
    fn rows_are_longer(&self, page: Page<'_>, content: &PageContent) -> bool {
        let header = page.header();
        let missing = self.free_bytes(page) - i64::from(header.free_count.get());
        header.flags.get() & page_flags::VERSION_INFO != 0
            && content.records_are_audited
            && content.lengths_are_known
            && missing > 0
            && missing <= self.room_for_versions(page)
    }

    /// The total number of bytes between the rows with a version tag and the records that follow them.
    fn room_for_versions(&self, page: Page<'_>) -> i64 {
        let mut spans: Vec<&Span> = self.spans().iter().filter(|span| span.length > 0).collect();
        spans.sort_unstable_by_key(|span| span.offset);
        let ends = spans.iter().skip(1).map(|next| next.offset).chain([page.header().free_data.get()]);
        let is_versioned = |span: &Span| span.of(page).first().is_some_and(|status| status & VERSION_TAG != 0);
        let rooms = spans.iter().zip(ends).filter(|(span, _)| is_versioned(span));
        rooms.map(|(span, end)| i64::from(end) - i64::from(span.offset) - i64::from(span.length)).sum()
    }

    /// Bytes of the page that neither records nor the slot array use.
    fn free_bytes(&self, page: Page<'_>) -> i64 {
        let header = page.header();
        let aligned = header.flags.get() & page_flags::ALIGNED4 != 0;
        (PAGE_BYTES - HEADER_BYTES) as i64 - 2 * i64::from(header.slot_count.get()) - self.records.used_bytes(aligned)
    }

    /// Checks the header fields that can be judged without the content of the page. Returns the page type; `None` if
    /// the page fails its audit.
    fn header(&self, page: Page<'_>, id: PageId, unit: &Unit, findings: &mut Vec<Finding>) -> Option<PageType> {
        let header = page.header();
        if header.header_version != 1 {
            findings.push(
                test(&registry::PAGE_HEADER, unit.owner, id, "m_headerVersion == HEADER_7_0")
                    .number("value", header.header_version)
                    .number("against", 1),
            );
            return None;
        }
        let Some(kind) = header.kind() else {
            // Numbers up to 0x66 are page types of the engine, but no allocation unit contains pages of these types.
            if (1..=UNDOFILE_HEADER_PAGE).contains(&header.page_type) {
                findings.push(
                    Finding::new(&registry::PAGE_TYPE).owner(unit.owner).page(id).number("page_type", header.page_type),
                );
                return None;
            }
            let text = "(m_type >= DATA_PAGE && m_type <= UNDOFILE_HEADER_PAGE) || \
                        (m_type == UNKNOWN_PAGE && level == BASIC_HEADER)";
            findings.push(
                test(&registry::PAGE_HEADER, unit.owner, id, text)
                    .state(6)
                    .number("value", header.page_type)
                    .number("against", header.page_type),
            );
            return None;
        };
        if !unit.shape.allows(kind) {
            findings.push(
                Finding::new(&registry::PAGE_TYPE).owner(unit.owner).page(id).number("page_type", header.page_type),
            );
            return None;
        }
        // The data pages of a clustered index are on level 0; a heap has only level 0.
        if kind == PageType::Data && matches!(unit.shape, Shape::Heap | Shape::Clustered) && header.level != 0 {
            findings.push(
                test(&registry::PAGE_HEADER, unit.owner, id, "m_level == 0")
                    .number("value", header.level)
                    .number("against", 0),
            );
            return None;
        }
        let (free_data, slots) = (usize::from(header.free_data.get()), usize::from(header.slot_count.get()));
        let limit = PAGE_BYTES.checked_sub(2 * slots);
        if limit.is_none_or(|limit| !(HEADER_BYTES..=limit).contains(&free_data)) {
            let text = "m_freeData >= PAGEHEADSIZE && m_freeData <= (UINT)PAGESIZE - m_slotCnt * sizeof (Slot)";
            findings.push(
                test(&registry::PAGE_HEADER, unit.owner, id, text)
                    .state(7)
                    .number("value", free_data as i64)
                    .number("against", PAGE_BYTES as i64 - 2 * slots as i64),
            );
            return None;
        }
        if header.flags.get() & page_flags::ALIGNED4 != 0 && !free_data.is_multiple_of(4) {
            findings.push(
                test(&registry::PAGE_ALIGNMENT, unit.owner, id, "IsAligned (m_freeData)")
                    .number("value", free_data as i64),
            );
            return None;
        }
        Some(kind)
    }

    /// Checks that each slot points to a place between the header and the free data, and that no two slots point to the
    /// same place.
    fn slots(&self, page: Page<'_>, id: PageId, unit: &Unit, kind: PageType, findings: &mut Vec<Finding>) -> bool {
        let before = findings.len();
        let header = page.header();
        let free_data = header.free_data.get();
        let invalid =
            |check, slot: u16, offset: u16| Finding::new(check).owner(unit.owner).at(id, slot).number("offset", offset);
        if self.order.empty() > 0 && !may_be_empty(unit, kind) {
            let empty = (0..header.slot_count.get()).find(|&slot| page.slot_offset(slot) == Some(0));
            findings.push(invalid(&registry::SLOT_BEFORE_RECORDS, empty.unwrap_or_default(), 0));
        }
        let is_aligned = header.flags.get() & page_flags::ALIGNED4 != 0;
        if !is_aligned && self.order.are_apart_in(HEADER_BYTES as u16..=free_data) {
            return findings.len() == before;
        }
        let mut prior = None;
        for entry in self.order.entries() {
            if usize::from(entry.offset) < HEADER_BYTES {
                findings.push(invalid(&registry::SLOT_BEFORE_RECORDS, entry.slot, entry.offset));
            } else if entry.offset > free_data {
                findings.push(invalid(&registry::SLOT_BEYOND_FREE_DATA, entry.slot, entry.offset));
            } else if prior == Some(entry.offset) {
                findings.push(invalid(&registry::SLOT_OVERLAP, entry.slot, entry.offset));
            } else if is_aligned && entry.offset % 4 != 0 {
                findings.push(
                    test(&registry::PAGE_ALIGNMENT, unit.owner, id, "IsAligned (sorted[i].offset)")
                        .state(102)
                        .at(id, entry.slot)
                        .number("value", entry.offset),
                );
            }
            prior = Some(entry.offset);
            if findings.len() - before >= MAX_FINDINGS_PER_PAGE {
                break;
            }
        }
        findings.len() == before
    }

    /// Checks the counts in the header. Returns false if a wrong free-space count makes the page fail its audit. A
    /// wrong ghost count is reported, but the page remains usable.
    fn counts(
        &self,
        page: Page<'_>,
        id: PageId,
        owner: Owner,
        content: &PageContent,
        findings: &mut Vec<Finding>,
    ) -> bool {
        let header = page.header();
        if content.ghosts_are_known && u32::from(header.ghost_count.get()) != content.ghosts {
            findings.push(
                Finding::new(&registry::PAGE_GHOST_COUNT)
                    .owner(owner)
                    .page(id)
                    .number("value", header.ghost_count.get())
                    .number("against", content.ghosts),
            );
        }
        if !content.records_are_audited || !content.lengths_are_known {
            return true;
        }
        let free = (PAGE_BYTES - HEADER_BYTES) as i64 - 2 * i64::from(header.slot_count.get());
        let aligned = header.flags.get() & page_flags::ALIGNED4 != 0;
        if !self.records.can_use(free - i64::from(header.free_count.get()), aligned) {
            findings.push(
                test(&registry::PAGE_FREE_COUNT, owner, id, "m_freeCnt == freeCnt")
                    .number("value", header.free_count.get())
                    .number("against", self.free_bytes(page)),
            );
            return false;
        }
        true
    }
}

/// A slot may be empty only after a deletion in a heap or on a LOB page (docs/format/page-header.md#slot-array).
fn may_be_empty(unit: &Unit, kind: PageType) -> bool {
    matches!(kind, PageType::TextMix | PageType::TextTree)
        || matches!(unit.shape, Shape::Heap | Shape::Unknown) && kind == PageType::Data
}

fn test(check: &'static registry::Check, owner: Owner, id: PageId, text: &str) -> Finding {
    Finding::new(check).owner(owner).page(id).text_value("test", text)
}
