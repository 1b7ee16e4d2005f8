//! Finds the fields of a page.
//!
//! The page may be damaged in any way: only fields inside the space of their record are reported, and the walk of a
//! record stops where a stored length points outside that space. The spaces of records do not overlap, so the work is
//! bounded by the page size.

use std::ops::Range;

use crate::bytes::{u8_at, u16_at};
use crate::compressed::info;
use crate::fields::{Count, Field, Part, Place, Structure, Width};
use crate::lob;
use crate::page::{HEADER_BYTES, PAGE_BYTES, Page, PageBytes, PageType, type_flags};
use crate::record::{COMPLEX, GHOST_VERSION_BYTES, RecordKind, VERSION_TAG_BYTES, status};
use crate::slots::{MAX_SLOTS, SlotOrder};
use crate::sparse::SparseVector;

/// One occurrence of a field on a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldInstance {
    /// The row of the field in the catalog of fields.
    pub field: &'static Field,
    /// The place of the field on the page. The range is never empty and never ends beyond the page.
    pub bytes: Range<usize>,
    /// The slot of the record that contains the field; `None` outside of records.
    pub slot: Option<u16>,
    /// The number of the repetition, counted from 0, for a repeated field (slot, link, variable column).
    pub index: Option<u16>,
}

impl FieldInstance {
    /// The value of the field as text. `page` must be the page on which the field was found.
    pub fn render(&self, page: &PageBytes) -> String {
        crate::render::render(self.field, page.get(self.bytes.clone()).unwrap_or_default())
    }
}

/// The bytes that the record of a slot may use. They end at the next record, at the free space, or at the end of the
/// page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordSpace {
    /// The number of the slot.
    pub slot: u16,
    /// The place of the space on the page. It is not empty, and the spaces of two slots do not overlap.
    pub bytes: Range<usize>,
}

/// The record spaces of a page in slot order. A slot is skipped if it is empty, points outside the page, or has the
/// offset of another slot.
pub fn record_spaces(page: Page<'_>) -> Vec<RecordSpace> {
    let mut order = SlotOrder::default();
    order.load(page);
    let entries = order.entries();
    let mut spaces = Vec::with_capacity(entries.len());
    for (position, entry) in entries.iter().enumerate() {
        let start = usize::from(entry.offset);
        let free_data = usize::from(page.header().free_data.get());
        let end = match entries.get(position + 1) {
            Some(next) => usize::from(next.offset).min(PAGE_BYTES),
            None if free_data > start && free_data <= PAGE_BYTES => free_data,
            None => PAGE_BYTES,
        };
        if start >= HEADER_BYTES && start < end {
            spaces.push(RecordSpace { slot: entry.slot, bytes: start..end });
        }
    }
    spaces.sort_unstable_by_key(|space| space.slot);
    spaces
}

/// Every field of `page`: the header, the records in slot order, the slot array. Before the call, the bits that
/// torn-page protection replaced must be restored. An index page of level 0 is treated as a leaf; see [`instances_of`].
pub fn instances(page: &PageBytes) -> Vec<FieldInstance> {
    instances_of(page, Page::new(page).header().level == 0)
}

/// Like [`instances`], but `leaf` tells whether an index page is a leaf. The page alone does not always show this: the
/// first level above the data pages of a clustered index may have level 0, as a leaf has
/// (docs/format/README.md#level-of-the-lowest-index-pages). Only the catalog shows which kind of page it is.
pub fn instances_of(page: &PageBytes, leaf: bool) -> Vec<FieldInstance> {
    let view = Page::new(page);
    let mut walk = Walk { page, leaf, pminlen: view.header().pminlen.get().into(), slot: None, found: Vec::new() };
    walk.plain(Structure::PageHeader, 0..HEADER_BYTES, 0);
    let kind = view.header().kind();
    let spaces = record_spaces(view);
    if matches!(kind, Some(PageType::Data | PageType::Index))
        && view.header().type_flags & type_flags::COMPRESSION_INFO != 0
    {
        let end = spaces.iter().map(|space| space.bytes.start).min().unwrap_or(PAGE_BYTES);
        walk.compression_info(HEADER_BYTES..end);
    }
    if let Some(kind) = kind {
        for space in spaces {
            walk.slot = Some(space.slot);
            walk.record(kind, space.bytes);
        }
        walk.slot = None;
    }
    walk.slot_array(view.header().slot_count.get());
    walk.found
}

/// The fields found so far, and the properties that all records of the page share.
struct Walk<'a> {
    page: &'a PageBytes,
    leaf: bool,
    pminlen: usize,
    slot: Option<u16>,
    found: Vec<FieldInstance>,
}

impl Walk<'_> {
    fn put(&mut self, field: &'static Field, bytes: Range<usize>, index: Option<usize>) {
        if bytes.start < bytes.end && bytes.end <= PAGE_BYTES {
            let index = index.and_then(|index| u16::try_from(index).ok());
            self.found.push(FieldInstance { field, bytes, slot: self.slot, index });
        }
    }

    /// Adds the fields of `structure` that have fixed offsets in `space`. If the catalog of fields gives no count for a
    /// repeated field, the field occurs `given` times.
    fn plain(&mut self, structure: Structure, space: Range<usize>, given: usize) {
        for field in structure.fields() {
            let bytes_at = |at: usize| {
                let start = space.start + at;
                let end = match field.width {
                    Width::Bytes(bytes) => start + usize::from(bytes),
                    Width::Bits(bits) => start + (bits as usize).div_ceil(8),
                    Width::Varies => space.end,
                };
                (end <= space.end).then_some(start..end)
            };
            match field.place {
                Place::At(at) => {
                    if let Some(bytes) = bytes_at(at.into()) {
                        self.put(field, bytes, None);
                    }
                }
                Place::Each { first, stride, count } => {
                    let times = match count {
                        Count::Times(times) => times.into(),
                        Count::Given => given,
                    };
                    for index in 0..times {
                        let Some(bytes) = bytes_at(usize::from(first) + index * usize::from(stride)) else { break };
                        self.put(field, bytes, Some(index));
                    }
                }
                Place::FromPageEnd | Place::Part(_) | Place::Column(_) => {}
            }
        }
    }

    /// Adds the field of `structure` that has the place `part`.
    fn part(&mut self, structure: Structure, part: Part, bytes: Range<usize>, index: Option<usize>) {
        if let Some(field) = structure.fields().iter().find(|field| field.place == Place::Part(part)) {
            self.put(field, bytes, index);
        }
    }

    /// The u16 at `at`; `None` if it is not inside `space`.
    fn u16(&self, space: &Range<usize>, at: usize) -> Option<usize> {
        if at < space.start || at + 2 > space.end {
            return None;
        }
        u16_at(self.page, at).map(usize::from)
    }

    fn slot_array(&mut self, count: u16) {
        for field in Structure::SlotArray.fields() {
            for slot in 0..usize::from(count).min(MAX_SLOTS) {
                let end = PAGE_BYTES - 2 * slot;
                self.put(field, end - 2..end, Some(slot));
            }
        }
    }

    fn record(&mut self, kind: PageType, space: Range<usize>) {
        let before = self.found.len();
        let status = u8_at(self.page, space.start).unwrap_or_default();
        match (kind, self.slot) {
            (PageType::Data | PageType::Index, _) if status & status::COMPRESSED != 0 => self.compressed(&space),
            (PageType::Data, _) if RecordKind::of(status) == RecordKind::ForwardingStub => {
                self.plain(Structure::ForwardingStub, space, 0);
            }
            (PageType::Data | PageType::Index | PageType::TextMix | PageType::TextTree, _)
                if RecordKind::is_tag_alone(status) =>
            {
                self.plain(Structure::VersionTag, space.start + 1..space.end.min(space.start + GHOST_VERSION_BYTES), 0);
            }
            (PageType::Data, _) => self.data_record(status, space, Structure::DataRecord),
            (PageType::Index, _) => self.index_record(status, &space),
            (PageType::TextMix | PageType::TextTree, _) => self.fragment(status, &space),
            (PageType::FileHeader, Some(0)) => self.data_record(status, space, Structure::FileHeader),
            (PageType::Boot, Some(0)) => {
                let length = self.u16(&space, space.start + 2).unwrap_or_default().max(4);
                self.plain(Structure::Boot, space.start..space.end.min(space.start + length), 0);
            }
            (PageType::Pfs, Some(0)) => self.plain(Structure::Pfs, space, 0),
            (PageType::Iam, Some(0)) => self.plain(Structure::IamHeader, space, 0),
            (PageType::Gam | PageType::Sgam | PageType::DiffMap | PageType::MlMap, Some(0)) => {
                self.plain(Structure::MapHeader, space, 0);
            }
            (PageType::Gam, Some(1)) => self.plain(Structure::GamBitmap, space, 0),
            (PageType::Sgam, Some(1)) => self.plain(Structure::SgamBitmap, space, 0),
            (PageType::DiffMap, Some(1)) => self.plain(Structure::DiffBitmap, space, 0),
            (PageType::MlMap, Some(1)) => self.plain(Structure::MlBitmap, space, 0),
            (PageType::Iam, Some(1)) => self.plain(Structure::IamBitmap, space, 0),
            _ => {}
        }
        if let Some(fields) = self.found.get_mut(before..) {
            fields.sort_by_key(|instance| instance.bytes.start);
        }
    }

    /// Walks a FixedVar record. The structure `columns` may have names for individual variable columns.
    fn data_record(&mut self, status: u8, space: Range<usize>, columns: Structure) {
        self.plain(Structure::DataRecord, space.clone(), 0);
        let Some(fixed_end) = self.u16(&space, space.start + 2) else { return };
        let (start, end) = (space.start + 4, space.start + fixed_end);
        if end < start || end > space.end {
            return;
        }
        self.part(Structure::DataRecord, Part::FixedColumns, start..end, None);
        self.after_fixed(Structure::DataRecord, status, &space, end, columns);
    }

    fn index_record(&mut self, status: u8, space: &Range<usize>) {
        self.plain(Structure::IndexRecord, space.clone(), 0);
        let (start, end) = (space.start + 1, space.start + self.pminlen);
        if end < start || end > space.end {
            return;
        }
        let child = end.saturating_sub(6);
        if self.leaf || child < start {
            self.part(Structure::IndexRecord, Part::FixedColumns, start..end, None);
        } else {
            self.part(Structure::IndexRecord, Part::FixedColumns, start..child, None);
            self.part(Structure::IndexRecord, Part::ChildPointer, child..end, None);
        }
        self.after_fixed(Structure::IndexRecord, status, space, end, Structure::IndexRecord);
    }

    /// Walks the null bitmap, the variable part and the version tag, which begin at `at`.
    fn after_fixed(&mut self, structure: Structure, status: u8, space: &Range<usize>, at: usize, columns: Structure) {
        let mut at = at;
        if status & status::NULL_BITMAP != 0 {
            let Some(count) = self.u16(space, at) else { return };
            self.part(structure, Part::ColumnCount, at..at + 2, None);
            let end = at + 2 + count.div_ceil(8);
            if end > space.end {
                return;
            }
            self.part(structure, Part::NullBitmap, at + 2..end, None);
            at = end;
        }
        if status & status::VARIABLE != 0 {
            let Some(count) = self.u16(space, at) else { return };
            self.part(structure, Part::VariableCount, at..at + 2, None);
            let offsets = at + 2;
            at = offsets + 2 * count;
            for number in 0..count {
                let entry = offsets + 2 * number;
                if entry + 2 > space.end {
                    return;
                }
                self.part(structure, Part::EndOffset, entry..entry + 2, Some(number));
            }
            let forwarded = RecordKind::of(status) == RecordKind::Forwarded;
            for number in 0..count {
                let Some(entry) = self.u16(space, offsets + 2 * number) else { return };
                let end = space.start + (entry & usize::from(!COMPLEX));
                if end < at || end > space.end {
                    return;
                }
                if entry & usize::from(COMPLEX) != 0 {
                    self.complex_column(structure, at..end, number, forwarded && number + 1 == count);
                } else {
                    self.column(structure, columns, at..end, number);
                }
                at = end;
            }
        }
        if status & status::VERSION_TAG != 0 {
            self.plain(Structure::VersionTag, at..space.end.min(at + VERSION_TAG_BYTES), 0);
        }
    }

    fn column(&mut self, structure: Structure, columns: Structure, bytes: Range<usize>, number: usize) {
        let named = columns.fields().iter().find(|field| match field.place {
            Place::Column(position) => usize::from(position) == number,
            _ => false,
        });
        match named {
            Some(field) => self.put(field, bytes, Some(number)),
            None => self.part(structure, Part::VariableColumn, bytes, Some(number)),
        }
    }

    /// Walks a column that has the high bit set in its end offset. The first bytes of the column show what it contains
    /// (docs/format/records.md#complex-columns).
    fn complex_column(&mut self, structure: Structure, bytes: Range<usize>, number: usize, may_point_back: bool) {
        let length = bytes.len();
        let first = u8_at(self.page, bytes.start).unwrap_or_default();
        let word = self.u16(&bytes, bytes.start);
        if may_point_back && length == 10 && word == Some(0x0400) {
            self.plain(Structure::BackPointer, bytes, 0);
        } else if length == 16 && !self.is_sparse_vector(&bytes) {
            self.plain(Structure::TextPointer, bytes, 0);
        } else if first == 2 && length == 24 {
            self.plain(Structure::OverflowPointer, bytes, 0);
        } else if first == 4 && length >= 24 && length.is_multiple_of(12) {
            self.plain(Structure::InRowRoot, bytes, length / 12 - 1);
        } else if word == Some(5) {
            self.sparse_vector(&bytes);
        } else {
            self.part(structure, Part::VariableColumn, bytes, Some(number));
        }
    }

    /// Whether the bytes are a sparse vector that breaks no rule. The first word alone does not decide, because a text
    /// pointer can begin with any number.
    fn is_sparse_vector(&self, bytes: &Range<usize>) -> bool {
        let vector = self.page.get(bytes.clone()).and_then(SparseVector::read);
        vector.is_some_and(|vector| vector.values().count() > 0 && vector.fault().is_none())
    }

    fn sparse_vector(&mut self, space: &Range<usize>) {
        let Some(count) = self.u16(space, space.start + lob::LENGTH_AT) else { return };
        self.plain(Structure::SparseVector, space.clone(), count);
        let offsets = space.start + 4 + 2 * count;
        let mut at = offsets + 2 * count;
        for number in 0..count {
            let entry = offsets + 2 * number;
            let Some(end) = self.u16(space, entry) else { return };
            self.part(Structure::SparseVector, Part::EndOffset, entry..entry + 2, Some(number));
            let end = space.start + end;
            if end < at || end > space.end {
                return;
            }
            self.part(Structure::SparseVector, Part::VariableColumn, at..end, Some(number));
            at = end;
        }
    }

    fn compressed(&mut self, space: &Range<usize>) {
        self.plain(Structure::CdRecord, space.clone(), 0);
        let at = space.start + 1;
        let Some(first) = self.page.get(at).filter(|_| at < space.end).map(|&byte| usize::from(byte)) else { return };
        // The column count has two bytes from 128 columns on. It is an open question which byte is the high one
        // (docs/format/compression.md#records).
        let (count, codes) = match first & 0x80 {
            0 => (first, at + 1),
            _ => match self.page.get(at + 1).filter(|_| at + 1 < space.end) {
                Some(&second) => ((first & 0x7F) << 8 | usize::from(second), at + 2),
                None => return,
            },
        };
        self.part(Structure::CdRecord, Part::ColumnCount, at..codes, None);
        let end = codes + count.div_ceil(2);
        if end <= space.end {
            self.part(Structure::CdRecord, Part::ColumnCodes, codes..end, None);
            self.part(Structure::CdRecord, Part::Rest, end..space.end, None);
        }
    }

    fn compression_info(&mut self, space: Range<usize>) {
        let structure = Structure::CompressionInfo;
        self.plain(structure, space.clone(), 0);
        let flags = u8_at(self.page, space.start).unwrap_or_default();
        let mut at = space.start + info::VARYING_AT;
        let mut dictionary = None;
        if flags & info::HAS_DICTIONARY != 0 {
            dictionary = self.u16(&space, at);
            if dictionary.is_none() {
                return;
            }
            self.part(structure, Part::DictionaryOffset, at..at + 2, None);
            at += 2;
        }
        let Some(size) = self.u16(&space, at) else { return };
        self.part(structure, Part::TotalBytes, at..at + 2, None);
        at += 2;
        let end = space.end.min(space.start + size);
        match dictionary {
            Some(offset) => {
                let middle = space.start + offset;
                if middle <= end {
                    self.part(structure, Part::Anchor, at..middle, None);
                    self.part(structure, Part::Dictionary, at.max(middle)..end, None);
                }
            }
            None => self.part(structure, Part::Anchor, at..end, None),
        }
    }

    fn fragment(&mut self, status: u8, space: &Range<usize>) {
        self.plain(Structure::LobFragment, space.clone(), 0);
        let Some(length) = self.u16(space, space.start + lob::LENGTH_AT) else { return };
        let Some(kind) = self.u16(space, space.start + lob::TYPE_AT) else { return };
        let body = space.start..space.end.min(space.start + length);
        let links = self.u16(&body, space.start + const { lob::node_at("curLinks") }).unwrap_or_default();
        match kind {
            0 => {
                self.plain(Structure::LobSmallRoot, body.clone(), 0);
                let size = self.u16(&body, space.start + lob::SIZE_AT).unwrap_or_default();
                let start = space.start + lob::SMALL_ROOT_HEADER_BYTES;
                self.part(Structure::LobSmallRoot, Part::Rest, start..body.end.min(start + size), None);
            }
            2 => self.plain(Structure::LobInternal, body.clone(), links),
            3 => self.plain(Structure::LobData, body.clone(), 0),
            4 | 5 => self.plain(Structure::LobRoot, body.clone(), links),
            _ => {}
        }
        if status & status::VERSION_TAG != 0 && length >= lob::FRAGMENT_HEADER_BYTES {
            self.plain(Structure::VersionTag, body.end..space.end.min(body.end + VERSION_TAG_BYTES), 0);
        }
    }
}

#[cfg(test)]
mod tests;
