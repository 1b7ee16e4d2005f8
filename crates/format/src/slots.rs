//! Reads the slot array of a page: where each record starts, and how much space it has
//! (docs/format/checkdb.md#tests-in-messages, 8941-8943).

use std::ops::RangeInclusive;

use crate::page::{HEADER_BYTES, PAGE_BYTES, Page};

/// The largest possible number of slots on a page. With more slots, the slot array would reach into the header.
pub const MAX_SLOTS: usize = (PAGE_BYTES - HEADER_BYTES) / 2;

/// A rule that an entry of the slot array breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotFault {
    /// The offset points into the header.
    BeforeRecords,
    /// The offset points beyond the free data pointer.
    BeyondFreeData,
    /// The record starts before the end of the preceding record on the page.
    Overlap,
}

/// One used entry of the slot array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SlotEntry {
    /// The start of the record. It is the first field, so that entries sort by it.
    pub offset: u16,
    /// The number of the slot.
    pub slot: u16,
}

/// The place of a record on its page.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Span {
    /// The offset of the first byte.
    pub offset: u16,
    /// The length in bytes; 0 for an empty slot.
    pub length: u16,
}

impl Span {
    /// The bytes of the record.
    #[inline]
    pub fn of(self, page: Page<'_>) -> &[u8] {
        let start = usize::from(self.offset);
        page.bytes().get(start..start + usize::from(self.length)).unwrap_or(&[])
    }
}

/// The slots of one page, ordered by the offset of their records. A `SlotOrder` can be used for many pages, one after
/// another, and then reuses its memory.
#[derive(Default)]
pub struct SlotOrder {
    entries: Vec<SlotEntry>,
    empty: u16,
    /// Whether all sorted entries have different offsets.
    is_ascending: bool,
}

impl SlotOrder {
    /// Loads the slot array of `page`. Entries with offset 0 are counted, but not stored. At most [`MAX_SLOTS`] entries
    /// are read, so the caller must have verified the slot count in the header.
    pub fn load(&mut self, page: Page<'_>) {
        self.entries.clear();
        let count = usize::from(page.header().slot_count.get()).min(MAX_SLOTS);
        let array = page.bytes().get(PAGE_BYTES - 2 * count..).unwrap_or_default();
        let offsets = array.as_chunks().0.iter().rev().map(|offset| u16::from_le_bytes(*offset));
        self.entries.extend(offsets.zip(0..).map(|(offset, slot)| SlotEntry { offset, slot }));
        // The loops have no branches, because most pages have no empty slots and have their records in slot order.
        self.empty = self.entries.iter().map(|entry| u16::from(entry.offset == 0)).sum();
        if self.empty > 0 {
            self.entries.retain(|entry| entry.offset != 0);
        }
        self.is_ascending = self.ascends();
        if !self.is_ascending {
            self.entries.sort_unstable();
            self.is_ascending = self.ascends();
        }
    }

    fn ascends(&self) -> bool {
        let pairs = self.entries.iter().zip(self.entries.iter().skip(1));
        pairs.fold(true, |all, (prior, next)| all & (prior.offset < next.offset))
    }

    /// Whether all used slots have different offsets, and all offsets are in this range.
    pub fn are_apart_in(&self, range: RangeInclusive<u16>) -> bool {
        let ends = [self.entries.first(), self.entries.last()];
        self.is_ascending && ends.iter().flatten().all(|entry| range.contains(&entry.offset))
    }

    /// The used slots by ascending offset.
    pub fn entries(&self) -> &[SlotEntry] {
        &self.entries
    }

    /// The number of slots with offset 0. Such a slot belonged to a deleted row of a heap, or to a deleted fragment on
    /// a LOB page.
    pub fn empty(&self) -> u16 {
        self.empty
    }

    /// The space of the record that entry `position` of [`Self::entries`] points to: from the start of the record to
    /// the start of the next record on the page, or to the end of used space. Empty if the entry points outside the
    /// page.
    pub fn space<'a>(&self, page: Page<'a>, position: usize) -> &'a [u8] {
        let Some(entry) = self.entries.get(position) else { return &[] };
        let end = match self.entries.get(position + 1) {
            Some(next) => usize::from(next.offset),
            None => usize::from(page.header().free_data.get()),
        };
        page.bytes().get(usize::from(entry.offset)..end.min(PAGE_BYTES)).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_runs_to_the_next_record_by_place_not_by_slot() {
        let mut bytes = [0u8; PAGE_BYTES];
        bytes[22] = 3;
        bytes[30..32].copy_from_slice(&300u16.to_le_bytes());
        for (slot, offset) in [(0usize, 200u16), (1, 0), (2, 96)] {
            let at = PAGE_BYTES - 2 - 2 * slot;
            bytes[at..at + 2].copy_from_slice(&offset.to_le_bytes());
        }
        let page = Page::new(&bytes);
        let mut order = SlotOrder::default();
        order.load(page);
        assert_eq!(order.empty(), 1);
        assert_eq!(
            [order.are_apart_in(96..=200), order.are_apart_in(97..=300), order.are_apart_in(96..=199)],
            [true, false, false]
        );
        assert_eq!(order.entries().iter().map(|entry| entry.slot).collect::<Vec<_>>(), [2, 0]);
        assert_eq!(order.space(page, 0).len(), 104);
        assert_eq!(order.space(page, 1).len(), 100);
        assert_eq!(order.space(page, 2).len(), 0);
        // Two slots have equal offsets.
        bytes[PAGE_BYTES - 4] = 96;
        order.load(Page::new(&bytes));
        assert_eq!((order.empty(), order.entries().len(), order.are_apart_in(96..=200)), (0, 3, false));
    }
}
