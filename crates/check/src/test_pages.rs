//! Hand-built pages for unit tests.

use catalog::UnitKind;
use findings::{Finding, Owner};
use format::page::{HEADER_BYTES, PAGE_BYTES, page_flags};
use format::{AllocUnitId, PageBytes, PageId, PageType};

use crate::basis::units::{Shape, Unit};

/// The unit that most tests use.
pub(crate) const UNIT: AllocUnitId = AllocUnitId(72_057_594_040_000_000 & !0xFFFF);
/// The page that most tests use.
pub(crate) const PAGE: PageId = PageId { file: 1, page: 200 };

/// A unit of the given shape. The shape also determines the index ID.
pub(crate) fn unit(shape: Shape) -> Unit {
    let index_id = match shape {
        Shape::Heap | Shape::Text => 0,
        Shape::Nonclustered => 2,
        Shape::Clustered | Shape::Unknown => 1,
    };
    let kind = if shape == Shape::Text { UnitKind::Lob } else { UnitKind::InRow };
    let owner = Owner { object_id: 100, index_id, partition_id: 1 << 40, alloc_unit: UNIT, kind: Some(kind) };
    Unit { id: UNIT, owner, shape, rowset: None, row: None, compressed: false }
}

/// A page with a correct header, to which a test adds records.
pub(crate) struct TestPage {
    bytes: Box<PageBytes>,
    free_data: usize,
    slots: usize,
}

impl TestPage {
    /// Page [`PAGE`] of [`UNIT`], without records.
    pub(crate) fn new(kind: PageType) -> Self {
        let mut bytes = Box::new([0; PAGE_BYTES]);
        (bytes[0], bytes[1]) = (1, kind as u8);
        Self { bytes, free_data: HEADER_BYTES, slots: 0 }.of(UNIT).at(PAGE).set16(14, 8)
    }

    /// Assigns the page to another unit.
    pub(crate) fn of(self, unit: AllocUnitId) -> Self {
        let object = (unit.0 >> 16) as u32;
        self.set16(6, (unit.0 >> 48) as u16).set16(24, object as u16).set16(26, (object >> 16) as u16)
    }

    /// Gives the page another address.
    pub(crate) fn at(self, page: PageId) -> Self {
        self.pointer(32, page)
    }

    /// Sets the level of the page.
    pub(crate) fn level(mut self, level: u8) -> Self {
        self.bytes[3] = level;
        self
    }

    /// Sets the addresses of the previous page and of the next page in the page header.
    pub(crate) fn between(self, prev: PageId, next: PageId) -> Self {
        self.pointer(8, prev).pointer(16, next)
    }

    fn pointer(mut self, at: usize, page: PageId) -> Self {
        self.bytes[at..at + 4].copy_from_slice(&page.page.to_le_bytes());
        self.set16(at + 4, page.file)
    }

    /// Adds a record after the last record, and a slot for it.
    pub(crate) fn record(mut self, record: &[u8]) -> Self {
        let at = self.free_data;
        self.bytes[at..at + record.len()].copy_from_slice(record);
        self.free_data += record.len();
        self.slot(at as u16)
    }

    /// Adds a slot; offset 0 makes it an empty slot.
    pub(crate) fn slot(mut self, offset: u16) -> Self {
        self.slots += 1;
        let at = PAGE_BYTES - 2 * self.slots;
        self.set16(at, offset)
    }

    /// Overwrites two bytes of the page.
    pub(crate) fn set16(mut self, at: usize, value: u16) -> Self {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// Completes the page with its counts and its checksum. `change` may modify the page before the checksum is
    /// computed.
    pub(crate) fn finish_with(mut self, change: impl FnOnce(&mut PageBytes)) -> Box<PageBytes> {
        let is_ghost = |slot: &usize| {
            let entry = PAGE_BYTES - 2 * (slot + 1);
            let at = usize::from(u16::from_le_bytes([self.bytes[entry], self.bytes[entry + 1]]));
            at != 0 && matches!((self.bytes[at] >> 1) & 7, 5..=7)
        };
        let ghosts = (0..self.slots).filter(is_ghost).count();
        let free = PAGE_BYTES - self.free_data - 2 * self.slots;
        let (slots, free_data) = (self.slots as u16, self.free_data as u16);
        self = self.set16(22, slots).set16(28, free as u16).set16(30, free_data).set16(58, ghosts as u16);
        self = self.set16(4, page_flags::CHECKSUM);
        change(&mut self.bytes);
        let sum = format::protection::checksum(&self.bytes);
        self.bytes[60..64].copy_from_slice(&sum.to_le_bytes());
        self.bytes
    }

    /// Completes the page with its counts and its checksum.
    pub(crate) fn finish(self) -> Box<PageBytes> {
        self.finish_with(|_| {})
    }
}

/// A primary data record with an int and a variable-length column.
pub(crate) fn row(key: u32, text: &[u8]) -> Vec<u8> {
    let mut row = vec![0x30, 0, 8, 0];
    row.extend(key.to_le_bytes());
    row.extend([2, 0, 0, 1, 0]);
    row.extend((row.len() as u16 + 2 + text.len() as u16).to_le_bytes());
    row.extend(text);
    row
}

/// Like `row`, but with another record type in the status bits.
pub(crate) fn row_of_kind(kind: u8, key: u32, text: &[u8]) -> Vec<u8> {
    let mut row = row(key, text);
    row[0] |= kind << 1;
    row
}

/// The IDs of the checks that have findings.
pub(crate) fn ids<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<&'static str> {
    findings.into_iter().map(|finding| finding.check.id).collect()
}
