//! The rows of a compressed leaf page. They are expanded once to uncompressed records, so that all checks read rows in
//! the same format.

use std::ops::Range;

use catalog::Rowset;
use format::compressed::BYTES_AFTER;
use format::compressed::{CdKind, CdRecord, CompressionInfo, Doubt, ExpandedPage, ExpandedRow, Expansion, Scratch};
use format::record::Record;
use format::same_shape::{Rows, SameShapeRows};
use format::slots::{MAX_SLOTS, SlotEntry, SlotOrder, Span};
use format::{Page, PageType};

/// A value that the expanded record lacks: the null bit of its column, and the reason.
pub(crate) type ColumnDoubt = (u16, Doubt);

/// The smallest step, in bytes, by which the buffer grows when rows are expanded one by one.
const STEP_BYTES: usize = 1 << 18;

/// The most bytes that the expanded rows of one page need, for this rowset.
pub(crate) fn bytes_per_page(expansion: &Expansion) -> u64 {
    let most = expansion.most_of_page();
    // Every value of a page may be missing from its expanded record and then needs an entry in `doubts`. This list
    // doubles when it grows.
    (most.bytes + STEP_BYTES + 2 * most.values * size_of::<(u16, ColumnDoubt)>()) as u64
}

/// The expanded rows of one page at a time. Buffers are reused from page to page.
#[derive(Default)]
pub(crate) struct ExpandedRows {
    is_loaded: bool,
    /// The place of each slot's row in the bytes; empty for a slot without a readable row.
    rows: Vec<Range<u32>>,
    bytes: Vec<u8>,
    /// The rows that were expanded together. If `is_together` is set, they are used instead of `bytes`.
    together: ExpandedPage,
    is_together: bool,
    /// The values that the expanded records lack, each with the slot of its row; sorted by slot.
    doubts: Vec<(u16, ColumnDoubt)>,
    /// The number of rows that could not be expanded.
    failed: u64,
    scratch: Scratch,
    /// The rows, if all of them were expanded without a missing value and have the same layout.
    same_shape: SameShapeRows,
    is_same_shape: bool,
}

/// How to expand the rows of a rowset; `None` if they are not compressed or the catalog does not describe them.
pub(crate) fn expansion(rowset: &Rowset) -> Option<&Expansion> {
    rowset.expansion.as_ref().filter(|_| rowset.is_row_compressed())
}

/// Offset of the first record of a page. Compression information may be stored before it.
pub(crate) fn first_record(page: Page<'_>) -> usize {
    let slots = page.header().slot_count.get().min(MAX_SLOTS as u16);
    let used = (0..slots).filter_map(|slot| page.slot_offset(slot)).filter(|offset| *offset != 0);
    used.min().unwrap_or(page.header().free_data.get()).into()
}

impl ExpandedRows {
    /// Discards the rows of the previous page. Called for a page with uncompressed rows.
    pub(crate) fn clear(&mut self) {
        (self.is_loaded, self.is_together) = (false, false);
        self.failed = 0;
    }

    /// Audits and expands all records of a page together, and calls `place` with the slot, kind and length of each
    /// record. If this is impossible for one of the records, loads nothing and returns false.
    pub(crate) fn load_together(
        &mut self,
        page: Page<'_>,
        order: &SlotOrder,
        expansion: &Expansion,
        info: Option<&CompressionInfo<'_>>,
        mut place: impl FnMut(SlotEntry, CdKind, usize),
    ) -> bool {
        self.clear();
        self.doubts.clear();
        self.rows.clear();
        self.rows.resize(usize::from(page.header().slot_count.get()).min(MAX_SLOTS), 0..0);
        let is_index = page.header().kind() == Some(PageType::Index);
        // The space of a record ends where the next record begins, or at the end of the used space.
        let nexts = order.entries().iter().skip(1).map(|next| next.offset).chain([page.header().free_data.get()]);
        let spaces = order.entries().iter().zip(nexts).map(|(entry, next)| entry.offset.into()..next.into());
        let (mut entries, rows) = (order.entries().iter(), &mut self.rows);
        let is_whole = self.together.load(page.bytes(), spaces, &expansion.of_page(info), |row: ExpandedRow| {
            let Some(entry) = entries.next() else { return false };
            place(*entry, row.kind, row.length);
            if let Some(of_slot) = rows.get_mut(usize::from(entry.slot)) {
                *of_slot = row.place;
            }
            matches!(row.kind, CdKind::Index | CdKind::GhostIndex) == is_index
        });
        if !is_whole {
            return false;
        }
        (self.is_loaded, self.is_together) = (true, true);
        let bytes = self.together.bytes();
        self.is_same_shape = match self.together.form().filter(|_| order.empty() == 0) {
            Some(form) => self.same_shape.load_written(bytes, &self.rows, form),
            None => self.same_shape.load_expanded(bytes, &self.rows),
        };
        true
    }

    /// The bytes of all rows.
    fn bytes(&self) -> &[u8] {
        if self.is_together { self.together.bytes() } else { &self.bytes }
    }

    /// Expands the rows of a page that passed its audit, one by one. Unless `row_by_row` is set, also tests whether all
    /// rows have the same layout.
    pub(crate) fn load(&mut self, page: Page<'_>, spans: &[Span], expansion: &Expansion, row_by_row: bool) {
        let most_bytes = expansion.most_of_page().bytes;
        self.clear();
        (self.is_loaded, self.is_same_shape) = (true, false);
        self.rows.clear();
        self.bytes.clear();
        self.doubts.clear();
        let Ok(info) = CompressionInfo::of(page, first_record(page), expansion.columns()) else { return };
        for (slot, span) in spans.iter().enumerate() {
            let start = self.bytes.len() as u32;
            if span.length > 0 {
                self.add(slot as u16, span.of(page), info.as_ref(), (expansion, most_bytes));
            }
            self.rows.push(start..self.bytes.len() as u32);
        }
        self.bytes.extend_from_slice(&[0; BYTES_AFTER]);
        let is_whole = self.doubts.is_empty() && self.failed == 0;
        self.is_same_shape = is_whole && !row_by_row && self.same_shape.load_expanded(&self.bytes, &self.rows);
    }

    /// The rows, if they all have the same layout.
    pub(crate) fn same_shape(&self) -> Option<Rows<'_>> {
        self.is_same_shape.then(|| self.same_shape.of_bytes(self.bytes()))
    }

    fn add(
        &mut self,
        slot: u16,
        space: &[u8],
        info: Option<&CompressionInfo<'_>>,
        (expansion, most_bytes): (&Expansion, usize),
    ) {
        let record = CdRecord::read(space, expansion.columns()).ok();
        let row = record.and_then(|record| expansion.expand(&record, info, &mut self.scratch).ok());
        match row.filter(|row| self.bytes.len() + row.record.bytes().len() <= most_bytes) {
            Some(row) => {
                let bytes = row.record.bytes();
                let needed = bytes.len() + BYTES_AFTER;
                if self.bytes.capacity() - self.bytes.len() < needed {
                    // The buffer grows in steps, because doubling could exceed the memory grant.
                    self.bytes.reserve_exact(needed.max(STEP_BYTES));
                }
                self.bytes.extend_from_slice(bytes);
                self.doubts.extend(row.doubts.iter().map(|doubt| (slot, *doubt)));
            }
            None => self.failed += 1,
        }
    }

    /// Whether the rows of the page were expanded. If not, they are read from the page itself.
    pub(crate) fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// The number of rows of the page that could not be expanded.
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// The number of rows whose expanded record lacks a value.
    pub(crate) fn doubtful(&self) -> u64 {
        if self.is_loaded { self.doubts.chunk_by(|(a, _), (b, _)| a == b).count() as u64 } else { 0 }
    }

    /// The expanded row of a slot.
    pub(crate) fn row(&self, slot: usize) -> Option<Record<'_>> {
        let place = self.rows.get(slot).filter(|place| !place.is_empty())?;
        Record::data(self.bytes().get(place.start as usize..place.end as usize)?).ok()
    }

    /// The values that the expanded record of a slot's row lacks.
    pub(crate) fn doubts(&self, slot: usize) -> impl Iterator<Item = ColumnDoubt> + Clone + '_ {
        let first = if self.is_loaded {
            self.doubts.partition_point(|(of, _)| usize::from(*of) < slot)
        } else {
            self.doubts.len()
        };
        let rest = self.doubts.get(first..).unwrap_or_default();
        rest.iter().take_while(move |(of, _)| usize::from(*of) == slot).map(|(_, doubt)| *doubt)
    }
}

#[cfg(test)]
mod tests {
    use format::PageType;
    use format::compressed::CompressedColumn;
    use format::types::{TypeInfo, xtype};

    use super::*;
    use crate::test_pages::TestPage;

    #[test]
    fn the_rows_of_a_page_take_no_more_than_what_is_counted_for_them() {
        // An expanded row has 4,096 bytes, so 64 rows fill one step of the buffer exactly.
        let info = TypeInfo { xtype: xtype::CHAR, length: 4089, ..TypeInfo::default() };
        let expansion = Expansion::new(&[Some(CompressedColumn { info, is_uniquifier: false })]).unwrap();
        let record = [0x01, 1, 0];
        let page = (0..1600).fold(TestPage::new(PageType::Data), |page, _| page.record(&record)).finish();
        let spans: Vec<Span> = (0..1600).map(|slot| Span { offset: 96 + 3 * slot, length: 3 }).collect();
        let mut rows = ExpandedRows::default();
        rows.load(Page::new(&page), &spans, &expansion, true);
        assert_eq!((rows.failed(), rows.row(1599).map(|row| row.bytes().len())), (0, Some(4096)));
        assert!(rows.bytes.capacity() as u64 <= bytes_per_page(&expansion), "{}", rows.bytes.capacity());
        assert_eq!(1600 * 4096 % STEP_BYTES, 0);
    }
}
